/* Types and functions that the files which implement neighbor.h share. */
#ifndef CARPOOL_NEIGHBOR_INTERNAL_H
#define CARPOOL_NEIGHBOR_INTERNAL_H

#include "shim/exchange/neighbor.h"
#include "shim/state/describe.h"

#include <stdlib.h>

struct cpl_request;

/* Makes room for the data of one call and n_extra messages outside the plan. Returns false when
 * memory ran out; free it then, too. Local. */
bool cpl_neighbor_data_make(struct cpl_neighbor_data *data, const struct cpl_adjacency *adjacency,
                            int n_extra);
void cpl_neighbor_data_free(struct cpl_neighbor_data *data);

/* Finds where the data of all neighbours is: fills out_span and in_span. Returns false when MPI
 * would refuse an argument: the call is then left to MPI, which refuses it. Local. */
bool cpl_neighbor_resolve(const struct cpl_neighbor_call *call,
                          const struct cpl_adjacency *adjacency, struct cpl_neighbor_data *data);

/* Finds where the data of n arguments of one side is: of these, or (NULL) of the first ones.
 * Returns false when MPI would refuse one. Local. */
bool cpl_neighbor_resolve_side(const struct cpl_neighbor_side *side, int n, const int *argument,
                               struct cpl_span *spans);

/* Finds where the data for (or from) a rank is, in a call with arguments for all ranks. Returns
 * false when MPI would refuse an argument. Local. */
bool cpl_neighbor_resolve_rank(const struct cpl_neighbor_side *side, int rank,
                               struct cpl_span *span);

/* Bytes of that data; -1: MPI would refuse an argument. */
int64_t cpl_neighbor_rank_bytes(const struct cpl_neighbor_side *side, int rank);

/* The same of a call that a plan is to carry, with the messages outside it, receives first. Local.
 */
bool cpl_neighbor_resolve_all(const struct cpl_neighbor_call *call, struct cpl_carrying *c);

/* Bytes of the payload for out-message m: its parts, and their lengths when there are several. Call
 * it after resolving. */
int64_t cpl_neighbor_payload_bytes(const struct cpl_neighbor_data *data,
                                   const struct cpl_adjacency *adjacency, int m);

/* The state of a call's communicator; NULL: the call is MPI's, as an alltoall in place is. Local.
 */
struct cpl_comm_state *cpl_neighbor_describe(const struct cpl_neighbor_call *call);

/* What a rank notes of a call: of a nonblocking one until it is decided whether such calls are
 * carried (neighbor_serve.c). An exchange keeps those by which it is planned. */
struct cpl_neighbor_notes {
    bool usable;
    bool *straight; /* per out-message: too large for combined messages */
    int *payload;   /* number of the out-message that is payload k of the plan */
    struct cpl_pattern_entry *messages; /* these */
    int n;                              /* how many there are */
    int64_t n_straight, straight_bytes;
    int *token_out, *token_in; /* what senders tell receivers (neighbor_plan.c) */
    int *ones, *displs;
    MPI_Request request;      /* of the tokens; MPI_REQUEST_NULL: they are here */
    struct cpl_adjacency own; /* who sends to whom in an alltoall, as planned */
    /* By the tokens: */
    int *in_part;     /* the in-neighbours of each in-message, in the sender's order of its parallel
                         edges */
    int *self_from;   /* for each in-neighbour that is the rank itself: the out-neighbour that its
                         data comes from */
    int *in_straight; /* per in-message: 1, it is always sent straight; else 0 */
    struct cpl_arena arena; /* of the arrays */
};

/* Notes with room for the messages of an exchange, usable; NULL when memory ran out. Local. */
struct cpl_neighbor_notes *cpl_neighbor_notes_make(const struct cpl_comm_state *state,
                                                   const struct cpl_exchange *x);
static inline void cpl_neighbor_notes_free(struct cpl_neighbor_notes *notes) /* or NULL */
{
    if (!notes)
        return;
    cpl_adjacency_free(&notes->own);
    cpl_arena_free(&notes->arena);
    free(notes);
}

/* Notes the messages of a call, in place of those that it has. Those of a neighborhood collective
 * start the exchange of tokens. Local; all ranks start it. */
void cpl_neighbor_notes_fill(struct cpl_neighbor_notes *notes, const struct cpl_neighbor_call *call,
                             const struct cpl_comm_state *state, const struct cpl_exchange *x);

/* Makes an exchange's candidates, when at least one plan was decided on. Candidate k of the trial
 * is candidate[k - 1]. False on all ranks when there are none, or one rank could not make its own.
 * Collective over the private communicator. */
bool cpl_carriers_offer(const struct cpl_comm_state *state, struct cpl_exchange *x,
                        struct cpl_agree_output *agreed);

/* Notes a call of an alltoall, which has no plan yet. Returns whether its messages are worth one,
 * else learned.left says why not. Collective over the private communicator; alike on all ranks. */
bool cpl_alltoall_promises(const struct cpl_neighbor_call *call, const struct cpl_comm_state *state,
                           struct cpl_exchange *x);

/* Plans the exchange by its notes, when the tokens are here, if it is noted on all ranks; an
 * alltoall if they promise anything, else it says why not (learned.left). Its phase is PLANNED or
 * DIRECT afterwards, or LEARNING if it is to be planned again. Collective over the private
 * communicator, if it is noted. */
void cpl_neighbor_plan_noted(const struct cpl_comm_state *state, struct cpl_exchange *x,
                             bool noted);

/* Plans an exchange for the messages of this call, and gives up the plans that it has; of
 * neighborhood collectives and alltoalls as cpl_neighbor_plan_noted does. Collective. */
typedef void cpl_planner(const struct cpl_neighbor_call *call, struct cpl_comm_state *state,
                         struct cpl_exchange *x);
cpl_planner cpl_neighbor_plan;

/* What cpl_neighbor_carry does, of an exchange that is planned so. */
bool cpl_life_carry(cpl_planner *plan, struct cpl_neighbor_call *call, struct cpl_comm_state *state,
                    struct cpl_exchange *x, int *result);

/* Whether it is too early to plan a blocking call's exchange (cpl_plan_is_early); the exchange
 * notes when the ranks ask again or, where it is not, how long to search for. n_messages: those of
 * this rank. Collective over the private communicator, the same result on all ranks. */
bool cpl_neighbor_is_early(const struct cpl_neighbor_call *call, const struct cpl_comm_state *state,
                           struct cpl_exchange *x, int n_messages);

/* Looks for a better order of sends (neighbor_order.c). With CARPOOL_ORDER before each blocking
 * call. Collective over the communicator. */
void cpl_neighbor_order(struct cpl_comm_state *state, struct cpl_exchange *x);

/* Whether an exchange that has plans is to be planned again when that pays, by a full search.
 * Nonblocking calls may be carried by the plans, so then these stay. Alike on all ranks. */
static inline bool cpl_neighbor_plans_again(const struct cpl_exchange *x)
{
    return x->phase == CPL_PHASE_PLANNED && x->plans.again && x->nonblocking.n == 0;
}

/* The executor of a candidate of the exchange's trial; NULL: the candidate is MPI or uses no plan.
 * Local. */
struct cpl_executor *cpl_exchange_executor(const struct cpl_exchange *x, int32_t candidate);

/* Number of tags that an exchange has on the private communicator: the last one is that of straight
 * messages. */
#define CPL_NEIGHBOR_TAGS (CPL_EXECUTOR_TAGS + 1)

/* Whether nonblocking calls on the communicator may be planned; in a profile run plans are made and
 * not used. Of processes of other worlds there may be more. Alike on its ranks. */
static inline bool cpl_neighbor_may_be_served(const struct cpl_comm_state *state)
{
    return !state->inter && state->size > 1 && state->size <= cpl_context.size;
}

/* A nonblocking or persistent call (neighbor_pending.c). */
struct cpl_neighbor_op {
    struct cpl_neighbor_op *next; /* next in its exchange's queue or in the list of spare ones */
    struct cpl_carrying carrying;
    struct cpl_neighbor_data data;
    struct cpl_request *request; /* request that the program holds */
    bool running;                /* the operation has been started */
};

/* Makes an operation, not started, for a call that the exchange's first candidate is to carry;
 * keeps its datatypes. NULL: the call is to be left to MPI, which refuses an argument. Waits for
 * memory. Local. */
struct cpl_neighbor_op *cpl_neighbor_op_make(const struct cpl_neighbor_call *call,
                                             struct cpl_comm_state *state, struct cpl_exchange *x);

/* Starts an operation behind those that are pending. Local. */
void cpl_neighbor_op_start(struct cpl_neighbor_op *op);

/* Frees an operation that is not under way. */
void cpl_neighbor_op_free(struct cpl_neighbor_op *op);

/* Waits, while polling, until nothing of an exchange is pending; frees spare operations. */
void cpl_neighbor_drain(struct cpl_exchange *x);

/* Keeps MPI's result when it is the first error: nothing stops at one. */
static inline void cpl_carrying_note(struct cpl_carrying *c, int code)
{
    if (c->result == MPI_SUCCESS)
        c->result = code;
}

/* Starts to send or receive a message of its own, on the private communicator. Local. */
void cpl_carrying_move(struct cpl_carrying *c, bool sends, const struct cpl_span *span, int peer,
                       int tag, MPI_Request *request);

/* Waits for some requests; with collectives that poll, it does, too (wait/collective.h). */
void cpl_carrying_wait_for(struct cpl_carrying *c, int n, MPI_Request *requests);

#endif
