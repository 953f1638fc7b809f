/* Ways of carrying a call of an exchange: by a plan; those of an allgather. A way is a struct of
 * functions in a file of its own, way_NAME.c. Who decides (neighbor.c, neighbor_serve.c) gives a
 * call its way, and everybody else goes by the struct.
 *
 * Candidates take turns with MPI in the exchange's trial; the first one carries all forms of calls.
 *
 * A blocking call starts and then waits; a nonblocking or persistent one begins when the program
 * makes it, starts when those before it are complete, and progresses while this rank polls. An
 * exchange carries one call at a time, so that `made` may hold what the way knows of the call that
 * is under way. */
#ifndef CARPOOL_WAY_H
#define CARPOOL_WAY_H

#include "shim/plan/plan_agree.h"

#include <stdbool.h>

struct cpl_comm_state;
struct cpl_exchange;
struct cpl_neighbor_data;
struct cpl_way;

/* What may carry an exchange's calls, besides MPI: they take turns in its trial (meet/trial.h). The
 * first one also carries nonblocking and persistent calls, untried. */
struct cpl_candidate {
    const struct cpl_way *way;
    void *made; /* what the way needs for the exchange, freed by its `end` */
    const struct cpl_plan_summary *summary; /* its name, and its time by the planner's model */
};

/* What a carrying delivers, on state->private_comm with the exchange's last tag or by the way's
 * own means (neighbor.h has the structs; `in` and `out` are those of x->adjacency,
 * state/adjacency.h):
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
    const struct cpl_way *way;
    void *made; /* the candidate's */
    struct cpl_neighbor_data *data;
    bool carried; /* all that goes by combined messages is done */
    int result;   /* MPI's, of the first error */
};

struct cpl_way {
    const char *name; /* NAME; shorter than CPL_RECORD_WAY (report.h) */
    /* Frees what a candidate has; NULL: nothing. Local. */
    void (*end)(struct cpl_candidate *candidate);

    /* Never wait; progress returns true when the call is complete. Local. */
    void (*start)(struct cpl_carrying *c);
    bool (*progress)(struct cpl_carrying *c);
    /* Waits until a blocking call that was started is complete. */
    void (*wait)(struct cpl_carrying *c);
};

extern const struct cpl_way cpl_way_plan;

/* Makes an exchange's candidates, when at least one plan was decided on. Candidate k of the trial
 * is candidate[k - 1]. False on all ranks when there are none, or one rank could not make its own.
 * Collective over the private communicator. */
bool cpl_ways_offer(const struct cpl_comm_state *state, struct cpl_exchange *x,
                    struct cpl_agree_output *agreed);

#endif
