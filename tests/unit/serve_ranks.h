/* Ranks that start nonblocking neighborhood collectives, for tests of when these are carried
 * (shim/exchange/neighbor_serve.c): each is a fiber with some communicators of all ranks, which it
 * meets in an order of its own. Meetings, exchanges and what they decide are the library's; MPI's
 * nonblocking calls complete when the test lets them; planning is told what to answer, and a call
 * that is carried is only noted.
 *
 * Order of calls: serve_ranks_begin, fibers_run as often as wanted, serve_ranks_end. */
#ifndef CARPOOL_TESTS_SERVE_RANKS_H
#define CARPOOL_TESTS_SERVE_RANKS_H

#include "fibers.h"
#include "shim/exchange/neighbor_internal.h"

#include <stdbool.h>
#include <stdint.h>

enum { SERVE_COMMS = 3, SERVE_CALLS = 400, SERVE_LEARN = 2 };

struct serve_rank {
    struct cpl_comm_state state[SERVE_COMMS];
    double time, pace; /* now; seconds from one collective to the next */
    int n[SERVE_COMMS][CPL_N_NEIGHBOR_KINDS];
    bool carried[SERVE_COMMS][CPL_N_NEIGHBOR_KINDS][SERVE_CALLS];
    bool held[2];  /* names, and tokens, do not come */
    bool unusable; /* its arguments are such that MPI would refuse them */
};

enum { SERVE_NAMES, SERVE_TOKENS };

/* What planning and others answer. */
struct serve_answers {
    bool promises;
    bool early;                        /* planning does not pay yet */
    int no_plan, no_match, no_service; /* the rank where that fails; -1: none */
};

struct serve_world {
    struct serve_rank rank[FIBERS_MOST];
    struct serve_answers answers;
    int victim;    /* whose memory fails (failing_heap.h); -1: nobody's */
    int n_planned; /* on the first rank */
};

extern struct serve_world serve;

void serve_ranks_begin(int n, uint64_t seed);

/* Frees the communicators, and compares which calls were carried. */
void serve_ranks_end(void);

/* This rank starts the next call of a kind. Returns whether it was carried. */
bool serve_start(int comm, enum cpl_neighbor_kind kind);

/* A blocking collective; compares afterwards what must be alike. */
void serve_collective(int comm);

struct cpl_exchange *serve_exchange(int rank, int comm, enum cpl_neighbor_kind kind);

/* While no program runs: whether the calls are decided about, and carried; the same on all ranks.
 */
bool serve_is_settled(int comm, enum cpl_neighbor_kind kind);
bool serve_is_served(int comm, enum cpl_neighbor_kind kind);

#endif
