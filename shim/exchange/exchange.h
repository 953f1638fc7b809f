/* An exchange: the neighborhood collectives of one kind on one communicator, from the first call to
 * the end of the communicator. Learns, is planned, and is then carried by its plan or left to MPI
 * for good. A persistent request is an exchange of its own. */
#ifndef CARPOOL_EXCHANGE_H
#define CARPOOL_EXCHANGE_H

#include "shim/base/names.h"
#include "shim/base/samples.h"
#include "shim/carry/executor.h"
#include "shim/exchange/neighbor_embed.h"
#include "shim/exchange/neighbor_order.h"
#include "shim/exchange/way.h"
#include "shim/meet/date.h"
#include "shim/meet/trial.h"
#include "shim/plan/plan_agree.h"
#include "shim/state/adjacency.h"
#include "shim/state/comm_state.h"
#include "shim/state/datatype.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

struct cpl_comm_state;
struct cpl_alike;
struct cpl_neighbor_notes;
struct cpl_neighbor_op;

enum cpl_exchange_phase {
    CPL_PHASE_LEARNING, /* calls go through MPI until there have been enough */
    CPL_PHASE_DIRECT,   /* decided: MPI carries it */
    CPL_PHASE_PLANNED   /* there are plans: the trial says what carries the next call */
};

/* A message to or from a rank that is not among the neighbours. */
struct cpl_extra {
    int rank;
    bool sent;
    struct cpl_span span;
};

/* Where the data of one call is, and what of it goes straight. */
struct cpl_neighbor_data {
    bool same_payload;         /* all out-messages carry the same payload (allgather) */
    struct cpl_span *out_span; /* per out-neighbour: its data */
    struct cpl_span *in_span;  /* per in-neighbour */
    int64_t *out_bytes;        /* per out-message: bytes of its payload, or CPL_STRAIGHT */
    struct cpl_extra *extra; /* messages outside the plan (alltoall.c); NULL: there cannot be any */
    int n_extra;
    MPI_Request *requests; /* of messages that go straight */
    MPI_Status *statuses;  /* of these */
    int n_requests;
};

/* What is learned of MPI_Alltoallv and MPI_Alltoallw (alltoall.c). */
struct cpl_learned {
    struct cpl_adjacency own; /* who sends to whom, as planned */
    int n_extra_most;         /* messages outside the plan that a call may have */
    struct cpl_date date;     /* of the calls: the ranks agree, or review that; alike on them */
    int n_vain;               /* agreements that came to nothing; alike on all ranks */
    unsigned char *sent;      /* per rank: whether the call before sent to it; NULL: not known */
    int64_t n_extra;          /* messages outside the plan since the last review */
    int64_t n_messages;       /* all of them */
};

/* The plans of an exchange, and what may carry its calls. */
struct cpl_exchange_plans {
    int n; /* the summaries below; alike on all ranks */
    struct cpl_plan_summary summary[CPL_MAX_PLANS];
    int n_candidates; /* alike on all ranks; some in phase PLANNED, else 0 */
    struct cpl_candidate candidate[CPL_MOST_CANDIDATES];
    const struct cpl_candidate *carries; /* the call at hand; NULL: MPI or, in order, no plan */
    struct cpl_trial trial;              /* of MPI and the candidates, in phase PLANNED */
};

/* How this rank's neighbours take part, set when planned. */
struct cpl_exchange_ends {
    bool *out_straight; /* per out-message: always sent straight, it is not part of the plan */
    bool *in_straight;  /* per in-message */
    int *payload;       /* per out-message that is in the plan, in order: its number; [payload k] */
    int *
        in_part; /* the in-neighbours of in-message m in the sender's order of its parallel edges */
    int *self_from; /* per own in-neighbour that is the rank itself: the out-neighbour it gets its
                     * data from */
};

/* Nonblocking calls (neighbor_serve.h). */
struct cpl_exchange_started {
    int64_t n; /* alike on all ranks */
    int64_t n_planned;
    bool settled;                     /* decided whether they are carried; alike on all ranks */
    bool served;                      /* they are */
    bool doubted;                     /* to be given back to MPI; alike on all ranks */
    bool given_back;                  /* they have been */
    struct cpl_neighbor_notes *notes; /* of the first one, until it is decided */
    struct cpl_neighbor_op *pending;  /* started and not complete, in order; the first one runs */
    struct cpl_neighbor_op *spare;
};

struct cpl_exchange {
    struct cpl_quiet quiet;
    enum cpl_neighbor_kind kind;
    enum cpl_exchange_phase phase;
    bool mpi_distrusted; /* MPI would carry it wrongly: not to be left to it; alike on all ranks */
    int64_t calls;       /* alike on all ranks */
    int64_t calls_planned;
    int first_tag; /* on the private communicator: the executor's, and one for straight messages */
    const struct cpl_adjacency *adjacency; /* the communicator's, or that of `learned` */
    struct cpl_learned learned;            /* of MPI_Alltoallv and MPI_Alltoallw */
    struct cpl_samples direct;             /* this rank's calls that MPI carried */
    struct cpl_samples planned;
    struct cpl_exchange_plans plans;
    struct cpl_order order; /* of its messages */
    struct cpl_exchange_ends ends;
    struct cpl_neighbor_data data; /* of the blocking call at hand */
    struct cpl_exchange_started nonblocking;
    struct cpl_embedding embedding;
    struct cpl_exchange *next_pending; /* in cpl_context.busy.first_pending */
};

/* A communicator is met: its exchanges, all learning. Returns false when memory ran out. Local. */
bool cpl_exchange_begin(struct cpl_comm_state *state);

/* Frees what the exchange holds for carrying; nothing may be pending. Local. */
void cpl_exchange_release(struct cpl_exchange *exchange);

/* Adds a record of this rank's figures to the report, when one is wanted and it is the first rank.
 * Local. */
void cpl_exchange_record(const struct cpl_exchange *exchange, int rank, int n_ranks);

/* The end of the communicator: frees what the exchange holds and, when a report is wanted, adds a
 * record of it. Waits for what is pending. Collective over the communicator when the exchange was
 * planned. */
void cpl_exchange_end(struct cpl_exchange *exchange, struct cpl_comm_state *state);

/* What ranks take to be alike of a communicator's exchanges (hooks.h). */
void cpl_exchange_alike(const struct cpl_comm_state *state, struct cpl_alike *alike);

#endif
