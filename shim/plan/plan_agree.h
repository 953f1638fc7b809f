/* Agreement: all ranks of a communicator hand in their send sets, one rank plans, and each
 * gets its slice of the same plan, or all learn that there is none. */
#ifndef CARPOOL_PLAN_AGREE_H
#define CARPOOL_PLAN_AGREE_H

#include "shim/carry/embed.h"
#include "shim/report/plan_summary.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

struct cpl_comm_state;

/* Plans for one exchange, to be tried against each other. */
#define CPL_MAX_PLANS 2

/* How long the ranks search for a plan. Most of what can be gained is found at once, so they first
 * search for a short time, and again when a full search pays (bench/results/planning.md). */
enum cpl_search {
    CPL_SEARCH_FULL, /* by the budget */
    CPL_SEARCH_SHORT /* by a part of it */
};

/* When the ranks plan an exchange, or plan it again. Zero at first; alike on all ranks. */
struct cpl_plan_turn {
    enum cpl_search search; /* how long for */
    int64_t pause;          /* where it is early: calls until planning pays about */
};

/* Input of one rank. */
struct cpl_agree_input {
    bool able; /* false: this rank cannot take part (no memory, ...); then nothing is planned */
    int n_messages; /* number of messages to be planned, each to a different rank, ascending */
    const struct cpl_pattern_entry *messages;
    bool sparingly;     /* of when to plan: the account counts in profile runs, too; alike */
    int n_exchanges;    /* of when to plan: exchanges that are planned one by one then; 0: one */
    int64_t n_straight; /* number of further messages, which are above the size limit */
    int64_t straight_bytes;         /* bytes of those */
    enum cpl_embed_verdict reduced; /* verdict on the reductions that mostly come next on this rank
                                       and could carry the messages; REFUSED: there are none */
    bool needed;                    /* use the plan even if it gains nothing; alike on all ranks */
    bool pt2pt; /* each message is packed and unpacked by itself where it is forwarded; alike */
    bool same_payload; /* all messages carry the same bytes (allgather) */
    int most_plans;    /* number of plans asked for, 1 .. CPL_MAX_PLANS; alike on all ranks */
    struct cpl_plan_turn *turn; /* alike on all ranks; NULL: a full search, now */
};

static inline enum cpl_search cpl_agree_search(const struct cpl_agree_input *input)
{
    return input->turn ? input->turn->search : CPL_SEARCH_FULL;
}

/* Output on every rank: plans, fastest by the model first. */
struct cpl_agree_output {
    int n; /* number of plans whose summary is filled; only plans that are to be used have words */
    struct cpl_plan_summary summary[CPL_MAX_PLANS]; /* alike on all ranks */
    int32_t *words[CPL_MAX_PLANS]; /* this rank's slices, which the caller frees; NULL: none */
    int32_t n_words[CPL_MAX_PLANS];
};

/* Whether it is too early to plan. In mode auto, unless CARPOOL_LEARN says when, an exchange that
 * has taken so many milliseconds of this rank's time so far is planned when that is, on the ranks'
 * average, as long as planning it will take about, and the account (base/account.h) allows that.
 * n_calls: calls that took so long, alike on all ranks; full: only a full search is wanted, else
 * the longest that pays. Of the input the messages, same_payload and most_plans are looked at, and
 * the turn is set. Collective over comm, the same results on all ranks. */
bool cpl_plan_is_early(MPI_Comm comm, const struct cpl_agree_input *input, double ms_so_far,
                       int64_t n_calls, bool full);

/* Gathers the send sets, plans on one rank, and scatters the slices. Returns true when all ranks
 * succeeded; else output holds nothing to be freed. Collective over comm, a private communicator;
 * the same result on all ranks. */
bool cpl_plan_agree(MPI_Comm comm, const struct cpl_agree_input *input,
                    struct cpl_agree_output *output);

/* Maps ranks to points of the reductions of a communicator, so that ranks that exchange much data
 * are near each other ([Selvitopi-embed], section 4): chooses the points of ranks for the messages
 * that reductions are to carry: this rank hands in n of them; destinations may recur; NULL: it had
 * no memory for them. One rank of the private communicator decides for all. If a map costs less,
 * the state's reductions get points. When memory runs out on a rank, all ranks stay their own
 * points. Collective. */
void cpl_embed_map(struct cpl_comm_state *state, int n, const struct cpl_pattern_entry *messages);

static inline void cpl_agree_output_free(struct cpl_agree_output *output)
{
    for (int k = 0; k < output->n; k++)
        free(output->words[k]);
    *output = (struct cpl_agree_output){.n = 0};
}

#endif
