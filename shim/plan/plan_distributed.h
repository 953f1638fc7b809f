/* Planning without a root: every rank makes its own slices, from the messages that pass through it
 * (planner/plan/local_plan.h). For strategies whose routes are arithmetic, where collecting all
 * send sets on one rank would take too long or too much memory. */
#ifndef CARPOOL_PLAN_DISTRIBUTED_H
#define CARPOOL_PLAN_DISTRIBUTED_H

#include "planner/plan/local_plan.h"
#include "planner/strategy.h"
#include "shim/plan/plan_agree.h"

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An exchange as all ranks know it. */
struct cpl_plan_size {
    int64_t n_messages;
    int32_t n_ranks;
    double ranks_a_core; /* on the average, 1 at least */
    bool by_lanes;       /* all messages, as far as the launcher tells where the ranks are */
};

/* Whether the ranks plan an exchange together: where one rank would take too long for it; and in
 * place of its short search, where enough ranks have a core each and the plans will be tried. Alike
 * on all ranks; local. */
bool cpl_plan_is_distributed(const struct cpl_agree_input *input, enum cpl_search search,
                             const struct cpl_plan_size *size);

/* What that is taken to last, in milliseconds: some two to four times what it takes by the model,
 * unless few ranks get most messages (bench/results/planning.md). */
#define CPL_DISTRIBUTED_MS 10

/* Plans by every candidate of the settings' strategy whose routes are arithmetic, and makes this
 * rank's slices of the fastest by the model with barriers between waves (cpl_plan_cost), to which
 * is added that what comes into a node at once is there late (cpl_port_load_time): up to
 * input->most_plans, each with another number of waves. Fills the output as cpl_plan_agree does;
 * what reductions would carry is not looked at. Returns the same on all ranks; false (nothing to
 * free): one had no memory. comm is the
 * shim's own, its errors return; the first rank tells the user what there is to tell. Collective.
 */
bool cpl_plan_distributed(MPI_Comm comm, const struct cpl_agree_input *input,
                          struct cpl_agree_output *output);

/* --- between plan_distributed.c and distributed_sparse.c: what a rank knows of each candidate, and
 * what the ranks tell each other of the messages */

/* The most bytes that a rank keeps of edges and of messages that pass through it. */
#define CPL_DISTRIBUTED_MOST_BYTES (128 << 20)

/* A growing array. */
struct cpl_distributed_array {
    void *at;
    int64_t n, room;
};

struct cpl_distributed_candidate {
    struct cpl_strategy_choice choice;
    const struct cpl_machine *machine; /* with or without lanes */
    struct cpl_router router;
    struct cpl_distributed_array edges;   /* struct cpl_local_edge */
    struct cpl_distributed_array passing; /* struct cpl_passing: of a candidate that is chosen */
    int64_t handed_on;                    /* of those that pass */
    int first_wave;                       /* of its waves among all candidates' */
    struct cpl_local_counts *sum, *most;
    double us;
};

struct cpl_distributed {
    MPI_Comm comm; /* of the shim's own */
    const struct cpl_agree_input *input;
    int32_t rank, n_ranks;
    struct cpl_machine machine, by_mpi;
    struct cpl_distributed_array came; /* bytes: the last round's records, in no particular order */
    struct cpl_distributed_array leaving; /* what goes in the next one */
    int n_rounds;
    int n;     /* candidates; the first is what MPI does */
    int tally; /* the candidate by which it is told how many messages end where, for those that have
                  one wave; -1: there is none, each tells its own */
    struct cpl_endings endings;
    struct cpl_distributed_candidate *candidate;
    struct cpl_local_counts *sum; /* of each candidate, then the most of each */
    int n_waves;                  /* of all candidates; each has the next two */
    struct cpl_port_load *port;   /* what this rank loads its node's port with; at a node's first
                                     rank, what all of its ranks do */
    double *us;                   /* time; at last of the slowest rank or port */
    int64_t n_bytes;              /* of all arrays */
    int64_t n_handled;            /* records that this rank made or got */
    bool failed; /* no memory, too much came, or MPI failed: the others are yet to be told */
};

/* A round of a sparse exchange: every rank has records for a few others, and none knows who has
 * some for it. After Hoefler, Siebert and Lumsdaine, Scalable communication protocols for dynamic
 * sparse data exchange (2010): synchronous sends, and a barrier that a rank enters when its own
 * have been received. Nothing is as long as there are ranks; it takes O(log ranks) and a message
 * for each pair. Record k of n goes to rank to[k], those for the same rank one after another;
 * records are of record_bytes bytes on all ranks. Returns how many came. Where a rank fails the
 * others' rounds still end. Collective. */
int64_t cpl_distributed_round(struct cpl_distributed *p, const int *to, const void *records,
                              int64_t n, size_t record_bytes);

/* Whether a candidate tells the ranks where messages end nothing. */
static inline bool cpl_distributed_is_tallied(const struct cpl_distributed *p,
                                              const struct cpl_distributed_candidate *c)
{
    return p->tally >= 0 && c->router.n_waves == 1;
}

/* Tells the ranks on the messages' ways, for all candidates, what passes there: fills `edges`,
 * `endings` and what `sum` has of a rank's own messages. Collective. */
void cpl_distributed_count(struct cpl_distributed *p);

/* Tells them the messages themselves, for n candidates: fills `passing`. Collective. */
void cpl_distributed_tell(struct cpl_distributed *p,
                          struct cpl_distributed_candidate *const *chosen, int n);

/* Tells each sender how many edges this rank sends later: sets local->out_later. Collective. */
void cpl_distributed_tell_later(struct cpl_distributed *p, struct cpl_local_plan *local);

#endif
