/* Agreement on a plan (plan_agree.h).
 *
 * After every step that can fail on one rank all ranks learn of it, before anything is sent by a
 * plan: if one rank alone gave the plan up, the others would wait for it. */
#include "shim/plan/plan_agree.h"

#include "planner/grid/hypercube.h"
#include "planner/keep/plan_file.h"
#include "planner/rank_plan.h"
#include "shim/base/aside.h"
#include "shim/base/environment.h"
#include "shim/base/log.h"
#include "shim/base/shared_memory.h"
#include "shim/carry/line.h"
#include "shim/meet/agree.h"
#include "shim/meet/decision.h"
#include "shim/meet/meeting.h"
#include "shim/plan/plan_distributed.h"
#include "shim/plan/plan_root.h"
#include "shim/state/comm_state.h"
#include "shim/state/context.h"
#include "shim/state/describe.h"
#include "shim/wait/collective.h"

#include <stdlib.h>
#include <string.h>

/* On the root: cuts a plan into slices and counts the words of each. Returns all slices, which the
 * caller frees, or NULL. */
static int32_t *cut(struct cpl_decision *decision, const struct cpl_plan *plan,
                    const struct cpl_pattern *pattern)
{
    struct cpl_slicer slicer;
    struct cpl_error error;
    int64_t total = 0;
    int32_t *words = NULL;
    if (cpl_slicer_init(&slicer, plan, pattern, &error))
        return NULL;
    bool done = true;
    for (int i = 0; i < decision->n_ranks && done; i++) {
        done = !cpl_slicer_words(&slicer, i, &decision->counts[i], &error);
        total += decision->counts[i];
    }
    if (done)
        words = calloc((size_t)total + 1, sizeof *words);
    total = 0;
    for (int i = 0; i < decision->n_ranks && words; total += decision->counts[i++])
        cpl_slicer_extract(&slicer, i, words + total);
    cpl_slicer_free(&slicer);
    return words;
}

extern char **environ;

/* Ranks of this node, as far as hydra or Slurm ("4(x2)") tells; 0: neither does. */
static double n_local_ranks(void)
{
    const char *text = cpl_variable(environ, "MPI_LOCALNRANKS");
    if (!text)
        text = cpl_variable(environ, "SLURM_STEP_TASKS_PER_NODE");
    return text ? (double)strtol(text, NULL, 10) : 0;
}

/* What the ranks' inputs are together. */
struct all_inputs {
    struct cpl_plan_size size;
    double ms_so_far, ms_to_spend, ms_elapsed; /* of a rank, on the average, as is the next */
    double n_exchanges;                        /* 1 at least */
    double planning_ratio; /* what planning took last, in times what was expected; 1 at least */
    int64_t n_straight, straight_bytes;
    bool in_world; /* the ranks are those of MPI_COMM_WORLD, in its order */
    bool able;
};

/* ms_so_far: what this rank's calls have taken. Returns false when MPI fails. Collective. */
static bool add_up(MPI_Comm comm, const struct cpl_agree_input *input, double ms_so_far,
                   struct all_inputs *all)
{
    enum { MESSAGES, STRAIGHT, STRAIGHT_BYTES, EXCHANGES, RANKS, MOVED, UNABLE };
    enum { SO_FAR = UNABLE + 1, TO_SPEND, ELAPSED, RATIO, CORE, APART, N };
    const double ratio = cpl_context.account.planning_ratio;
    const double on_core = n_local_ranks() / (double)cpl_shared_processors();
    int rank;
    PMPI_Comm_rank(comm, &rank);
    int64_t mine[N] = {
        [MESSAGES] = input->n_messages,
        [STRAIGHT] = input->n_straight,
        [STRAIGHT_BYTES] = input->straight_bytes,
        [EXCHANGES] = input->n_exchanges > 1 ? input->n_exchanges : 1,
        [RANKS] = 1,
        [MOVED] = rank != cpl_context.rank,
        [UNABLE] = !input->able,
        [SO_FAR] = cpl_agree_ns(ms_so_far * 1e-3),
        [TO_SPEND] = cpl_agree_ns(cpl_context_balance()),
        [ELAPSED] = cpl_agree_ns(PMPI_Wtime() - cpl_context.account.start),
        [RATIO] = cpl_agree_ns((ratio > 1 ? ratio : 1) * 1e-3),
        [CORE] = cpl_agree_ns((on_core > 1 ? on_core : 1) * 1e-3),
        [APART] = !cpl_context.settings.lanes || n_local_ranks() < cpl_context.size,
    };
    int64_t sum[N];
    if (cpl_collective_Allreduce(mine, sum, N, MPI_INT64_T, MPI_SUM, comm) != MPI_SUCCESS)
        return false;
    const double ms = 1e-6 / (double)sum[RANKS]; /* an average of those, in milliseconds */
    *all = (struct all_inputs){
        .size = {sum[MESSAGES], (int32_t)sum[RANKS], (double)sum[CORE] * ms, sum[APART] == 0},
        .n_exchanges = (double)sum[EXCHANGES] / (double)sum[RANKS],
        .ms_so_far = (double)sum[SO_FAR] * ms,
        .ms_to_spend = (double)sum[TO_SPEND] * ms,
        .ms_elapsed = (double)sum[ELAPSED] * ms,
        .planning_ratio = (double)sum[RATIO] * ms,
        .n_straight = sum[STRAIGHT],
        .straight_bytes = sum[STRAIGHT_BYTES],
        .in_world = sum[MOVED] == 0 && sum[RANKS] == cpl_context.size && !cpl_context.met_others,
        .able = sum[UNABLE] == 0};
    return true;
}

/* What planning is taken to last, in milliseconds, if it takes what is usual. */
static double usual_ms(const struct cpl_agree_input *input, const struct cpl_plan_size *size,
                       enum cpl_search search)
{
    return cpl_plan_is_distributed(input, search, size)
               ? CPL_DISTRIBUTED_MS
               : cpl_plan_root_ms(size->n_messages, search, size->ranks_a_core,
                                  input->pt2pt && size->by_lanes);
}

/* The same by what it took last. */
static double planning_ms(const struct cpl_agree_input *input, const struct all_inputs *all,
                          enum cpl_search search)
{
    struct cpl_plan_size size = all->size;
    size.n_messages = (int64_t)((double)size.n_messages / all->n_exchanges);
    return all->planning_ratio * all->n_exchanges * usual_ms(input, &size, search);
}

/* The most that a short search may take to be worth planning twice, as a part of a full one. */
#define WORTH_A_SHORT_ONE 0.75

#define MARGIN 1.1 /* each time that it is early costs a reduction */

#define MOST_TIMES 4.0 /* a program may become slower */

/* Calls after the n-th one until so much may be spent, or the ranks look again: the calls take that
 * long, and the program long enough for the account. */
static int64_t calls_until(const struct all_inputs *all, double ms, int64_t n_calls)
{
    const double part = (double)cpl_context.settings.cost / 100, least = 1e3 * CPL_ACCOUNT_LEAST;
    double of = part * (all->ms_elapsed > least ? all->ms_elapsed : least);
    double times = (of + ms - all->ms_to_spend) / (part * all->ms_elapsed);
    times = times * all->ms_so_far > ms ? times : ms / all->ms_so_far;
    times = times < MOST_TIMES ? times : MOST_TIMES;
    return (int64_t)((times * MARGIN - 1) * (double)n_calls) + 1;
}

bool cpl_plan_is_early(MPI_Comm comm, const struct cpl_agree_input *input, double ms_so_far,
                       int64_t n_calls, bool full)
{
    const struct cpl_settings *settings = &cpl_context.settings;
    struct cpl_plan_turn *turn = input->turn;
    struct all_inputs all;
    bool may_be_kept = settings->plan_cache[0] != '\0';
    bool at_once = settings->mode == CPL_MODE_FORCE || settings->learn > 0 ||
                   (settings->mode == CPL_MODE_PROFILE && !input->sparingly);
    *turn = (struct cpl_plan_turn){.search = CPL_SEARCH_FULL, .pause = CPL_NEVER};
    if (may_be_kept || at_once || !add_up(comm, input, ms_so_far, &all))
        return false;

    double most = all.ms_so_far < all.ms_to_spend ? all.ms_so_far : all.ms_to_spend;
    double ms = planning_ms(input, &all, CPL_SEARCH_FULL);
    double short_ms = planning_ms(input, &all, CPL_SEARCH_SHORT);
    if (most >= ms)
        return false;
    bool is_short = !full && short_ms <= WORTH_A_SHORT_ONE * ms;
    if (is_short && most >= short_ms) {
        turn->search = CPL_SEARCH_SHORT;
        return false;
    }
    turn->pause = calls_until(&all, is_short ? short_ms : ms, n_calls);
    return true;
}

/* By one rank, the root. */
static bool agree_by_root(MPI_Comm comm, const struct cpl_agree_input *input,
                          struct cpl_agree_output *output)
{
    CPL_DECISION(decision, comm);
    struct cpl_pattern pattern;
    struct cpl_plan_set *set = NULL;
    bool done = cpl_decision_hand_in(
        &decision, &(struct cpl_handed_in){true, true, input->reduced, input->messages,
                                           input->n_messages, sizeof *input->messages});
    if (done) {
        if (cpl_decision_is_root(&decision))
            set = cpl_plan_root(&decision, input, output->summary, &pattern);
        cpl_decision_answer(&decision, output->summary, sizeof output->summary);
        while (output->n < CPL_MAX_PLANS && output->summary[output->n].known)
            output->n++;
        done = output->n > 0;
    }
    for (int k = 0; k < output->n && done; k++) {
        void *mine = NULL;
        if (!output->summary[k].decided)
            continue;
        int32_t *all = set ? cut(&decision, &set->plan[k], &pattern) : NULL;
        done = cpl_decision_spread(&decision, all, all, sizeof *all, &mine, &output->n_words[k]);
        output->words[k] = mine;
        free(all);
    }
    if (set) {
        cpl_plan_set_free(set);
        cpl_pattern_free(&pattern);
        free(set);
    }
    if (!done)
        cpl_agree_output_free(output);
    return done;
}

bool cpl_plan_agree(MPI_Comm comm, const struct cpl_agree_input *input,
                    struct cpl_agree_output *output)
{
    CPL_ASIDE;
    struct cpl_account *account = &cpl_context.account;
    struct all_inputs all;
    memset(output, 0, sizeof *output);
    cpl_device_look();
    if (!add_up(comm, input, 0, &all))
        return false;
    struct cpl_expense expense = cpl_account_begin(account, PMPI_Wtime()); /* all have come */
    bool done = all.able;
    if (done)
        done = cpl_plan_is_distributed(input, cpl_agree_search(input), &all.size)
                   ? cpl_plan_distributed(comm, input, output)
                   : agree_by_root(comm, input, output);
    for (int k = 0; k < output->n; k++) {
        output->summary[k].n_straight = all.n_straight;
        output->summary[k].straight_bytes = all.straight_bytes;
        output->summary[k].in_world = all.in_world;
    }
    double seconds = cpl_account_end(account, expense, CPL_COST_PLANNING, PMPI_Wtime());
    account->planning_ratio = 1e3 * seconds / usual_ms(input, &all.size, cpl_agree_search(input));
    return done;
}

/* --- points of ranks in reductions */

/* On the root: makes the map, points of the ranks, then the ranks at the points. Returns whether it
 * moves ranks. */
static bool map(const struct cpl_decision *decision, int32_t *points)
{
    struct cpl_pattern pattern;
    struct cpl_machine machine;
    struct cpl_error error;
    bool changed = false;
    double us = 0;
    if (cpl_pattern_build(decision->n_ranks, decision->records, decision->first[decision->n_ranks],
                          &pattern, &error))
        return false;
    if (!cpl_plan_root_machine(decision->n_ranks, decision->seats, &machine, &error)) {
        bool done = !cpl_hypercube_map(&pattern, &machine, 1, points, &changed, &us, &error);
        changed &= done;
        cpl_machine_free(&machine);
    }
    cpl_pattern_free(&pattern);
    for (int32_t i = 0; i < decision->n_ranks && changed; i++)
        points[decision->n_ranks + points[i]] = i;
    if (changed)
        cpl_log(CPL_LOG_INFO, "embed",
                "%d ranks placed for reductions that carry messages: %.1f us", decision->n_ranks,
                us);
    return changed;
}

void cpl_embed_map(struct cpl_comm_state *state, int n, const struct cpl_pattern_entry *messages)
{
    CPL_DECISION(decision, state->private_comm);
    size_t n_words = 2 * (size_t)state->size;
    int32_t *points = calloc(n_words, sizeof *points);
    int changed = false;
    if (cpl_decision_hand_in(&decision,
                             &(struct cpl_handed_in){points && (n == 0 || messages), true, 0,
                                                     messages, n, sizeof *messages})) {
        changed = cpl_decision_is_root(&decision) && map(&decision, points);
        cpl_decision_answer(&decision, &changed, sizeof changed);
    }
    if (changed) {
        cpl_decision_answer(&decision, points, n_words * sizeof *points);
        state->line->embed.points = points;
    } else {
        free(points);
    }
}
