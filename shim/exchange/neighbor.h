/* Exchanges: the neighborhood collectives of one kind on one communicator (MPI 4.0, chapter 8.6),
 * or alltoalls, or allgathers of about one size, from the first call to the end of the
 * communicator. One learns, is planned, and is then carried by its plan or left to MPI for good. A
 * persistent request is an exchange of its own. All forms of calls have one description. */
#ifndef CARPOOL_NEIGHBOR_H
#define CARPOOL_NEIGHBOR_H

#include "planner/arena.h"
#include "shim/base/names.h"
#include "shim/base/samples.h"
#include "shim/carry/executor.h"
#include "shim/meet/meeting.h"
#include "shim/meet/pace.h"
#include "shim/meet/trial.h"
#include "shim/plan/plan_agree.h"
#include "shim/report/report.h"
#include "shim/state/adjacency.h"
#include "shim/state/comm_state.h"
#include "shim/state/datatype.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

struct cpl_neighbor_notes;
struct cpl_neighbor_op;

enum cpl_exchange_phase {
    CPL_PHASE_LEARNING, /* calls go through MPI until there have been enough */
    CPL_PHASE_DIRECT,   /* it was decided that MPI carries the exchange */
    CPL_PHASE_PLANNED   /* there are plans; the trial says what carries the next call */
};

/* A message to or from a rank that is not among the neighbours. */
struct cpl_extra {
    int rank;
    bool sent;
    struct cpl_span span;
};

/* Where the data of one call is, and which messages go straight. */
struct cpl_neighbor_data {
    bool same_payload;         /* all out-messages carry the same payload (allgather) */
    struct cpl_span *out_span; /* data for each out-neighbour */
    struct cpl_span *in_span;  /* place for the data of each in-neighbour */
    int64_t *out_bytes;        /* per out-message: bytes of its payload, or CPL_STRAIGHT */
    struct cpl_extra *extra;   /* messages outside the plan */
    int n_extra;
    struct cpl_arena arena; /* of the arrays */
    MPI_Request *requests;  /* requests of messages that go straight */
    int n_requests;
};

/* ---- carriers of a call: by a plan; those of an allgather. A carrier is a struct of functions in
 * a file of its own, carrier_NAME.c. Who decides (neighbor.c, neighbor_serve.c) gives a call its
 * carrier, and everybody else goes by the struct.
 *
 * A blocking call starts and then waits; a nonblocking or persistent one begins when the program
 * makes it, starts when those before it are complete, and progresses while this rank polls. An
 * exchange carries one call at a time, so that `made` may hold what the carrier knows of the call
 * that is under way. */

struct cpl_exchange;
struct cpl_neighbor_call;
struct cpl_carrier;

/* What may carry an exchange's calls, besides MPI: they take turns in its trial (meet/trial.h). The
 * first one also carries nonblocking and persistent calls, untried. */
struct cpl_candidate {
    const struct cpl_carrier *carrier;
    void *made; /* what the carrier needs for the exchange, freed by its `end` */
    const struct cpl_plan_summary *summary; /* its name, and its time by the planner's model */
};

/* What a carrying delivers, on state->private_comm with the exchange's last tag or by the carrier's
 * own means (`in` and `out` are those of x->adjacency, state/adjacency.h):
 *
 *   - the messages: m < out.n_messages goes to out.rank[m], m < in.n_messages comes from
 *     in.rank[m];
 *   - their parts, several where edges are parallel, in the sender's order: the spans
 *     data->out_span[out.part[p]] and data->in_span[notes.in_part[p]], where
 *     first_part[m] <= p < first_part[m + 1];
 *   - extras, data->extra: messages of an MPI_Alltoallv outside the plan that both ends know of;
 *   - messages of the rank to itself: notes.self_from.
 *
 * data->requests has room for a request for each of them. Start and progress go on after an error,
 * which is kept in `result`: others wait for what they are owed. */

/* One carrying of a call, from the data resolved for it until it is complete. */
struct cpl_carrying {
    struct cpl_comm_state *state;
    struct cpl_exchange *x;
    const struct cpl_candidate *by;
    struct cpl_neighbor_data *data;
    bool carried; /* all that goes by combined messages is done */
    int result;   /* MPI's, of the first error */
};

struct cpl_carrier {
    const char *name; /* NAME; shorter than CPL_RECORD_CARRIER (report.h) */
    /* Frees what a candidate has; NULL: nothing. Local. */
    void (*end)(struct cpl_candidate *candidate);

    /* Finds the call's data. False: MPI would refuse an argument, or there is no room; then the
     * call is left to MPI. Of a blocking call collective. */
    bool (*resolve)(const struct cpl_neighbor_call *call, struct cpl_carrying *c);

    /* Never wait; progress (NULL: never a first candidate): is the call complete? Local. */
    void (*start)(struct cpl_carrying *c);
    bool (*progress)(struct cpl_carrying *c);
    /* Waits until a blocking call that was started is complete. */
    void (*wait)(struct cpl_carrying *c);
};

extern const struct cpl_carrier cpl_carrier_plan;

/* What a rank learns of blocking calls, mostly of MPI_Alltoallv and MPI_Alltoallw (neighbor.c). */
struct cpl_learned {
    int n_extra_most;         /* messages outside the plan that a call may have */
    struct cpl_date date;     /* of the calls: the ranks agree, or review that; alike on them */
    int n_vain;               /* agreements that came to nothing; alike on all ranks */
    enum cpl_left_alone left; /* why the last agreement came to nothing; alike on all ranks */
    unsigned char *sent;      /* per rank: whether the previous call sent to it; NULL: not known */
    int64_t n_extra;          /* messages outside the plan since the last review */
    int64_t n_messages;       /* all messages since the last review */
};

/* Candidates of an exchange, by all carriers; each has a summary. */
#define CPL_MOST_CANDIDATES CPL_MAX_PLANS
_Static_assert(CPL_MOST_CANDIDATES < CPL_MAX_TRIED, "a trial has room for them and MPI");

/* The plans of an exchange, and the candidates that may carry its calls. */
struct cpl_exchange_plans {
    struct cpl_plan_turn turn; /* how those of blocking calls were searched for */
    bool again; /* they are to be planned again, by a full search; alike on all ranks */
    int n;      /* number of summaries; alike on all ranks */
    struct cpl_plan_summary summary[CPL_MOST_CANDIDATES];
    int n_candidates; /* alike on all ranks; more than 0 in phase PLANNED, else 0 */
    struct cpl_candidate candidate[CPL_MOST_CANDIDATES];
    int64_t forwarded;      /* bytes that this rank forwarded by plans of before */
    struct cpl_trial trial; /* trial of MPI and the candidates, in phase PLANNED */
};

/* The order in which its messages leave (neighbor_order.c). */
struct cpl_order {
    int32_t next_sends; /* messages that this rank sent in the exchange that came next; 0: none, or
                           not known */
    bool ordered;       /* they leave in the order that this one asks for; alike on all ranks */
};

/* The life of nonblocking calls (neighbor_serve.c); alike on all ranks. */
enum cpl_started_phase {
    CPL_STARTED_OPEN,      /* MPI has them; it has not been decided whether they are carried */
    CPL_STARTED_BY_MPI,    /* it has: they are not */
    CPL_STARTED_WAITING,   /* they are when all ranks poll (pt2pt_parts.h) */
    CPL_STARTED_SERVED,    /* they are carried */
    CPL_STARTED_DOUBTED,   /* they still are, and will be given back to MPI */
    CPL_STARTED_GIVEN_BACK /* MPI has them again */
};

/* Nonblocking calls (neighbor.h). */
struct cpl_exchange_started {
    enum cpl_started_phase phase;
    int64_t n;                        /* calls started; alike on all ranks */
    int64_t n_planned;                /* calls that were carried */
    struct cpl_neighbor_notes *notes; /* the first call's messages, kept until it is decided */
    /* Operations that are started and not complete, in order; the first one runs: */
    struct cpl_neighbor_op *pending, *spare;
};

struct cpl_exchange {
    struct cpl_pass pass;
    enum cpl_neighbor_kind kind;
    enum cpl_exchange_phase phase;
    bool mpi_distrusted; /* MPI would carry the exchange wrongly, so it is never left to MPI; alike
                            on all ranks */
    int64_t calls;       /* alike on all ranks */
    int64_t calls_planned;
    int64_t data_most; /* allgathers: the most bytes of all ranks together in a call; else 0 */
    int first_tag;     /* first tag on the private communicator: tags of the executor, then one for
                          straight messages */
    const struct cpl_adjacency *adjacency; /* the communicator's; of an alltoall once it is planned:
                                              of `notes` */
    struct cpl_learned learned;            /* for MPI_Alltoallv and MPI_Alltoallw only */
    struct cpl_samples direct;             /* durations of this rank's calls that MPI carried */
    struct cpl_samples planned;            /* durations of this rank's calls that plans carried */
    struct cpl_exchange_plans plans;
    struct cpl_order order;           /* order in which its messages are sent */
    struct cpl_neighbor_notes *notes; /* by which it is planned; NULL: it is not */
    struct cpl_neighbor_data data;    /* data of the current blocking call */
    struct cpl_exchange_started nonblocking;
    struct cpl_exchange *next_pending; /* list from cpl_context.busy.first_pending */
};

/* Whether nonblocking calls are carried. Alike on all ranks. */
static inline bool cpl_exchange_is_served(const struct cpl_exchange *x)
{
    return x->nonblocking.phase == CPL_STARTED_SERVED ||
           x->nonblocking.phase == CPL_STARTED_DOUBTED;
}

/* The communicator's exchange of a kind. Makes those of all kinds when there are none yet, in phase
 * LEARNING; waits for memory. Local. */
void cpl_exchange_make(struct cpl_comm_state *state);
static inline struct cpl_exchange *cpl_exchange_of(struct cpl_comm_state *state,
                                                   enum cpl_neighbor_kind kind)
{
    if (!state->exchanges)
        cpl_exchange_make(state);
    return &state->exchanges[kind];
}

/* Brings the counters of an exchange up to date, and ends its grant (meet/meeting.h). Local. */
static inline void cpl_pass_settle(struct cpl_exchange *x)
{
    int64_t n = cpl_pass_take(&x->pass);
    x->calls += n;
    cpl_trial_pass(&x->plans.trial, n);
}

/* Frees the memory that an exchange holds for carrying calls; nothing may be pending. Local. */
void cpl_exchange_release(struct cpl_exchange *exchange);

/* Adds a record to the report, if one is wanted and this is the first rank: of the figures of all
 * ranks of comm, where this is collective, or (MPI_COMM_NULL) of this rank's. */
void cpl_exchange_record(const struct cpl_exchange *exchange, MPI_Comm comm, int rank, int n_ranks);

/* At the end of the communicator: waits for pending calls, frees the exchange's memory and, if a
 * report is wanted, adds a record. Collective over the communicator when the exchange was
 * planned. */
void cpl_exchange_end(struct cpl_exchange *exchange, struct cpl_comm_state *state);

/* ---- calls */

/* One side of a call: where the data of each neighbour is. Unused members are zero. */
struct cpl_neighbor_side {
    char *buffer;
    MPI_Count count;               /* elements for each neighbour, when there are no counts */
    const int *counts;             /* elements per neighbour */
    const MPI_Count *large_counts; /* elements per neighbour, in place of counts */
    const int *displs;             /* displacements in extents of the type or, with types, bytes */
    const MPI_Aint *large_displs;  /* the same, in place of displs */
    MPI_Datatype type;             /* when types is NULL */
    const MPI_Datatype *types;
    bool same; /* every neighbour gets the data at buffer (allgather) */
};

static inline int64_t cpl_neighbor_count(const struct cpl_neighbor_side *side, int k)
{
    if (side->counts)
        return side->counts[k];
    return side->large_counts ? side->large_counts[k] : side->count;
}

struct cpl_neighbor_call {
    enum cpl_neighbor_kind kind;
    MPI_Comm comm;
    struct cpl_neighbor_side send, recv;
    /* Set by the functions that carry it, for cpl_neighbor_passed: */
    struct cpl_comm_state *state;
    struct cpl_exchange *watched; /* exchange that is watched; NULL: none */
    double start;                 /* when the call began, in seconds */
};

/* Carries the call if it is planned; plans the exchange when it has been seen often enough. Returns
 * true when the call is done, with MPI's result in *result; false when it is to be made through
 * PMPI, and cpl_neighbor_passed to be called after it. Collective, as the call is. */
bool cpl_neighbor_carry(struct cpl_neighbor_call *call, int *result);

/* Call it after PMPI made a call that was not carried. */
void cpl_neighbor_passed(struct cpl_neighbor_call *call);

/* Whether a call passes without a look (meet/meeting.h), so that it is MPI's: MPI carries the
 * exchange, and for some calls nothing is to be decided, measured or noted. Local. */
static inline bool cpl_pass_exchange(const struct cpl_neighbor_call *call)
{
    struct cpl_comm_state *state = cpl_pass_state(call->comm);
    if (!state || cpl_context.busy.first_pending)
        return false;
    if (!state->watched && call->kind < CPL_ALLTOALLV) /* one rank */
        return true;
    if (!state->exchanges)
        return false;
    struct cpl_exchange *x = &state->exchanges[call->kind];
    if (x->pass.remaining == 0 || call->send.buffer == MPI_IN_PLACE)
        return false;
    x->pass.remaining--;
    return true;
}

/* Starts the call's nonblocking form if it is carried. Returns false when it is to be made through
 * PMPI. Local. */
bool cpl_neighbor_start(const struct cpl_neighbor_call *call, MPI_Request *request);

/* Makes the call's persistent request if it is carried. Returns false when it is to be made through
 * PMPI. Collective over the communicator. */
bool cpl_neighbor_init(struct cpl_neighbor_call *call, MPI_Request *request);

/* Call it after PMPI made a persistent request that is not carried, or failed to: a profile run
 * counts its starts. Local. */
void cpl_neighbor_init_passed(const struct cpl_neighbor_call *call, int result,
                              const MPI_Request *request);

/* Takes the pace of nonblocking calls at a blocking collective of the communicator, before the
 * ranks meet (meet/meeting.h); and at another call that comes as regularly where there are none.
 * Local. */
void cpl_neighbor_note_collective(struct cpl_comm_state *state);
void cpl_neighbor_note_pace(struct cpl_comm_state *state);

/* Advances pending calls; never waits. Returns whether any was completed. Local. */
bool cpl_neighbor_poll(void);

/* State of these decisions (neighbor_serve.c). */
struct cpl_serve {
    bool named;   /* there has been a nonblocking call */
    bool counted; /* the communicator counts in cpl_context.busy.n_served */
    int64_t id;   /* name of the communicator on all its ranks, once `request` is complete */
    MPI_Request request;
    struct cpl_date date;             /* when they are decided about; alike on all ranks */
    struct cpl_comm_state *candidate; /* that this rank has voted for last; NULL: none */
    bool met_any;                     /* there was something to decide; alike on all ranks */
    struct cpl_pace pace;             /* pace of nonblocking calls on any communicator */
    int64_t n_carried; /* carried nonblocking calls, at the last blocking collective */
};

/* The communicator counts among those whose calls are carried, or does so no longer. Those of fewer
 * ranks count by cpl_part_need. On all its ranks. */
void cpl_neighbor_count_served(struct cpl_comm_state *state, bool served);

extern const struct cpl_hooks cpl_exchange_hooks;

#endif
