/* Ranks in one process for tests of shim/exchange/neighbor_embed.h: each has a context of its own,
 * and two communicators with a random graph, on each of which it calls MPI_Ineighbor_alltoallv. The
 * network is mock_mpi.h; all other functions that the code under test calls are here, without
 * reductions: segments that would travel in one are kept in their rank's cargo.
 *
 * Order of calls: neighbor_ranks_begin, act_as before anything is called for a rank,
 * neighbor_ranks_end, which fails the test when a call is still open. */
#ifndef CARPOOL_TESTS_NEIGHBOR_RANKS_H
#define CARPOOL_TESTS_NEIGHBOR_RANKS_H

#include "shim/exchange/neighbor_internal.h"
#include "shim/state/comm_state.h"
#include "shim/state/context.h"

#include <stdbool.h>
#include <stdint.h>

enum { MOST_RANKS = 5, N_EXCHANGES = 2, CALLS = 12, MOST_BYTES = 100, SEGMENT_BYTES = 60 };
enum { MOST_CARGO = MOST_RANKS * N_EXCHANGES * CALLS };

/* A segment that is aboard. */
struct aboard {
    struct cpl_segment segment;
    unsigned char payload[SEGMENT_BYTES + 8];
};

struct rank {
    struct cpl_context context;
    struct cpl_comm_state state[N_EXCHANGES]; /* the first one's reductions carry all */
    int rank[N_EXCHANGES][2][MOST_RANKS];     /* neighbours: in, out */
    int first_part[MOST_RANKS + 1], part[MOST_RANKS];
    int n_started[N_EXCHANGES], n_complete[N_EXCHANGES];
    int n_cargo;
    struct aboard cargo[MOST_CARGO];
    struct cpl_neighbor_op op[N_EXCHANGES][CALLS];
    struct cpl_span in[N_EXCHANGES][CALLS][MOST_RANKS], out[N_EXCHANGES][CALLS][MOST_RANKS];
    unsigned char received[N_EXCHANGES][CALLS][MOST_RANKS][MOST_BYTES];
    unsigned char sent[N_EXCHANGES][CALLS][MOST_RANKS][MOST_BYTES];
    MPI_Request requests[N_EXCHANGES][CALLS][MOST_RANKS];
};

struct world {
    int n_ranks;
    uint64_t random;
    bool edge[N_EXCHANGES][MOST_RANKS][MOST_RANKS];
    struct rank *ranks;
    struct rank *acting;
};

extern struct world world;

void neighbor_ranks_begin(int n_ranks, uint64_t seed);
void neighbor_ranks_end(void);

/* From here on cpl_context is this rank's. */
void act_as(int r);

struct cpl_exchange *exchange_of(struct rank *me, int x);

#endif
