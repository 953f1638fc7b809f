/* What the files that implement neighbor.h share. */
#ifndef CARPOOL_NEIGHBOR_INTERNAL_H
#define CARPOOL_NEIGHBOR_INTERNAL_H

#include "shim/exchange/neighbor.h"

struct cpl_request;

/* Room for the data of one call, and n_extra messages outside the plan; false when memory ran out
 * (free it then, too). Local. */
bool cpl_neighbor_data_make(struct cpl_neighbor_data *data, const struct cpl_adjacency *adjacency,
                            int n_extra);
void cpl_neighbor_data_free(struct cpl_neighbor_data *data);

/* Finds where the data of all neighbours is: fills out_span and in_span. Returns false when an
 * argument is one that MPI would refuse: the call is then left to MPI, which does. Local. */
bool cpl_neighbor_resolve(const struct cpl_neighbor_call *call,
                          const struct cpl_adjacency *adjacency, struct cpl_neighbor_data *data);

/* Where the data for (or from) a rank is, of a call with arguments for all ranks. Returns false
 * when MPI would refuse an argument. Local. */
bool cpl_neighbor_resolve_rank(const struct cpl_neighbor_side *side, int rank,
                               struct cpl_span *span);

/* Bytes of the payload for out-message m: its parts, and their lengths when there are several.
 * After resolving. */
int64_t cpl_neighbor_payload_bytes(const struct cpl_neighbor_data *data,
                                   const struct cpl_adjacency *adjacency, int m);

/* The messages of a call that are to be planned; room for all out-messages. */
struct cpl_neighbor_list {
    bool *straight; /* per out-message: too large to share */
    int *payload;   /* of those that are not: their numbers, */
    int *dst;       /* destinations, */
    int64_t *bytes; /* and sizes */
    int n;          /* of these */
    int64_t n_straight, straight_bytes;
};

/* Adds out-message m, or counts it where it is too large. */
void cpl_neighbor_list_add(struct cpl_neighbor_list *list, int m, int dst, int64_t bytes);

/* Adds all messages to an empty list. */
void cpl_neighbor_plan_list(const struct cpl_adjacency *adjacency,
                            const struct cpl_neighbor_data *data, struct cpl_neighbor_list *list);

/* The list as part of an agreement's input, which points into it. */
void cpl_neighbor_hand_in(const struct cpl_neighbor_list *list, struct cpl_agree_input *input);

/* Room for what planning finds out about the neighbours; false when memory ran out. */
bool cpl_neighbor_plan_allocate(struct cpl_exchange *exchange);

/* The token of every out-edge: its number among its parallel ones, and whether its message goes
 * straight. Sent along every edge by a call of the exchange's kind, they tell the receivers. */
void cpl_neighbor_plan_tokens(const struct cpl_adjacency *adjacency, const bool *straight,
                              int *token);

/* Finds out how parallel edges match and which messages go straight. Collective; may fail on some
 * ranks only. */
bool cpl_neighbor_plan_match(const struct cpl_comm_state *state, struct cpl_exchange *exchange);

/* How many plans to ask for: several where the blocking calls choose by measurement. */
int cpl_neighbor_plan_most(const struct cpl_exchange *exchange);

/* Keeps what was agreed on, asks the ways for candidates and begins their trial; true when there
 * are some on all ranks. Frees the agreement. Collective over the private communicator. */
bool cpl_neighbor_plan_candidates(const struct cpl_comm_state *state, struct cpl_exchange *exchange,
                                  struct cpl_agree_output *agreed);

/* Sorts the parts of every in-message, and the edges from the rank to itself, by the senders'
 * order. Returns false when the tokens make no sense: the graph's two sides do not fit. */
bool cpl_neighbor_plan_read(struct cpl_exchange *exchange, const int *token);

/* MPI_Alltoallv and MPI_Alltoallw (alltoall.c). Notes the messages of a call: the adjacency, which
 * is freed before, and the bytes of its out-messages (room for all ranks); false when that fails.
 */
bool cpl_alltoall_note(const struct cpl_neighbor_call *call, const struct cpl_comm_state *state,
                       struct cpl_adjacency *adjacency, int64_t *bytes);

/* Plans what was noted; takes over the adjacency. Collective over the private communicator. */
bool cpl_alltoall_plan_noted(struct cpl_comm_state *state, struct cpl_exchange *exchange,
                             struct cpl_adjacency *noted, const int64_t *noted_bytes);

/* Finds all data of a call: that of planned messages and that of others, receives first. False as
 * cpl_neighbor_resolve. */
bool cpl_alltoall_resolve(const struct cpl_neighbor_call *call, const struct cpl_comm_state *state,
                          struct cpl_exchange *exchange, struct cpl_neighbor_data *data);

/* Plans an exchange on all ranks: its phase is PLANNED or DIRECT afterwards. Collective. */
void cpl_neighbor_plan(const struct cpl_neighbor_call *call, struct cpl_comm_state *state,
                       struct cpl_exchange *exchange);

/* A blocking call: counts it, and waits for the nonblocking ones before it. Local. */
void cpl_neighbor_enter(struct cpl_exchange *exchange);

/* Whether a candidate carries the blocking call at hand, or its messages leave in an order that MPI
 * would not send them in: then `carries` is NULL. While a
 * trial is running all ranks come together first: else a late rank would be timed, not the
 * exchange. Collective. */
bool cpl_neighbor_take_turn(const struct cpl_comm_state *state, struct cpl_exchange *exchange);

/* A call that MPI is to carry and nobody wants timed, outside trials and without a report: counts
 * it and returns true. */
bool cpl_neighbor_pass_untimed(struct cpl_exchange *exchange);

/* The executor of a candidate of the exchange's trial; NULL: it is MPI, or no plan. Local. */
struct cpl_executor *cpl_exchange_executor(const struct cpl_exchange *exchange, int32_t candidate);

/* Carries a blocking call whose data is resolved, with what follows for the exchange's figures and
 * its trial; start: when the call began, in seconds. Returns MPI's result, after the error handler
 * when it is an error. Collective. */
int cpl_neighbor_carry_now(const struct cpl_neighbor_call *call, struct cpl_comm_state *state,
                           struct cpl_exchange *exchange, double start);

/* Tags that an exchange has on the private communicator. */
#define CPL_NEIGHBOR_TAGS (CPL_EXECUTOR_TAGS + 1)

static inline int cpl_neighbor_straight_tag(const struct cpl_exchange *exchange)
{
    return exchange->first_tag + CPL_EXECUTOR_TAGS;
}

/* A nonblocking or persistent call (neighbor_pending.c). */
struct cpl_neighbor_op {
    struct cpl_neighbor_op *next; /* in its exchange's queue or among the spare ones */
    struct cpl_carrying carrying;
    struct cpl_neighbor_data data;
    struct cpl_request *request; /* in the program's hands */
    bool running;                /* it has been started */
    /* Of segments (neighbor_embed.h): */
    bool left;                    /* they are on their way */
    int n_open;                   /* messages that are still to come */
    struct cpl_receive *receives; /* in-messages; NULL until there are segments */
};

/* A call with its arguments, to be carried by a way, not started; keeps its datatypes. NULL when
 * memory ran out or, with *refused set, when it is to be left to MPI, which refuses an argument.
 * Local. */
struct cpl_neighbor_op *cpl_neighbor_op_make(const struct cpl_neighbor_call *call,
                                             struct cpl_comm_state *state,
                                             struct cpl_exchange *exchange,
                                             const struct cpl_way *way, bool *refused);

/* Starts it behind those that are pending. Local. */
void cpl_neighbor_op_start(struct cpl_neighbor_op *op);

/* Frees one that is not under way. */
void cpl_neighbor_op_free(struct cpl_neighbor_op *op);

/* Waits, while polling, until nothing of an exchange is pending; frees spare operations. */
void cpl_neighbor_drain(struct cpl_exchange *exchange);

#endif
