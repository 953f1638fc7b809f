/* Planning for a communicator (plan_root.h). */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "shim/plan/plan_root.h"

#include "planner/grid/hypercube.h"
#include "planner/keep/plan_cache.h"
#include "planner/machine.h"
#include "shim/base/log.h"
#include "shim/base/names.h"
#include "shim/base/work.h"
#include "shim/meet/agree.h"
#include "shim/report/picture.h"
#include "shim/state/context.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Static_assert(CPL_MAX_PLANS <= CPL_MOST_KEPT, "all plans of an exchange can be kept");

/* Warns once in a run, not at every plan, about a file or description that cannot be used. */
#define WARN_ONCE(warned, ...)                                                                     \
    do {                                                                                           \
        if (!(warned))                                                                             \
            cpl_log(CPL_LOG_WARN, "plan", __VA_ARGS__);                                            \
        (warned) = true;                                                                           \
    } while (0)

/* Reads the node's shape and the files of CARPOOL_MACHINE. Warns of what cannot be used and does
 * without it. */
static void look(struct cpl_shim_machine *cache)
{
    const char *name = cpl_context.settings.machine, *topology = cpl_context.settings.topology;
    struct cpl_error error;
    cache->looked = true;
    cache->costs.shape_known = !cpl_node_shape_load(topology, &cache->costs.shape, &error);
    if (!cache->costs.shape_known)
        cpl_log(CPL_LOG_WARN, "plan", "%s%s; nodes are taken as one socket",
                topology[0] ? "CARPOOL_TOPOLOGY: " : "", error.text);
    struct cpl_machine_file file = cpl_machine_file_default();
    if (name[0] && cpl_machine_file_load(name, &file, &error))
        cpl_log(CPL_LOG_WARN, "plan", "CARPOOL_MACHINE: %s; using the built-in costs", error.text);
    cache->costs.costs = file.costs;
    if (file.distances.name[0] &&
        cpl_distances_load(name, &file, cpl_context.size, &cache->distances, &error))
        cpl_log(CPL_LOG_WARN, "plan", "CARPOOL_MACHINE: %s; planning goes on without distances",
                error.text);
}

const struct cpl_planning_costs *cpl_plan_root_costs(void)
{
    struct cpl_shim_machine *cache = &cpl_context.machine;
    if (!cache->looked)
        look(cache);
    return &cache->costs;
}

/* Ranks of another MPI_COMM_WORLD have no distances. */
static enum cpl_status apply_distances(int32_t n_ranks, const struct cpl_seat *seats,
                                       struct cpl_machine *machine, struct cpl_error *error)
{
    const struct cpl_distances *distances = &cpl_context.machine.distances;
    if (!distances->n_ranks || cpl_context.met_others)
        return CPL_OK;
    int32_t *world_rank = calloc((size_t)n_ranks, sizeof *world_rank);
    if (!world_rank)
        return cpl_fail_memory(error, "the machine");
    for (int32_t i = 0; i < n_ranks; i++)
        world_rank[i] = (int32_t)seats[i].world_rank;
    enum cpl_status status = cpl_machine_set_distances(machine, distances, world_rank, error);
    free(world_rank);
    return status;
}

enum cpl_status cpl_plan_machine(int32_t n_ranks, const struct cpl_seat *seats,
                                 const struct cpl_planning_costs *costs,
                                 struct cpl_machine *machine, struct cpl_error *error)
{
    int64_t *node = calloc((size_t)n_ranks, sizeof *node);
    if (!node)
        return cpl_fail_memory(error, "the machine");
    for (int32_t i = 0; i < n_ranks; i++)
        node[i] = seats[i].node;
    enum cpl_status status = cpl_machine_from_places(n_ranks, node, NULL, NULL, 0, machine, error);
    free(node);
    if (status)
        return status;
    if (costs->shape_known)
        cpl_machine_apply_shape(machine, &costs->shape);
    /* A run with more ranks than cores tests a program that will run elsewhere: plan for that
     * machine, with a core for every rank. */
    machine->cores_per_node = 0;
    machine->costs = costs->costs;
    return CPL_OK;
}

enum cpl_status cpl_plan_root_machine(int32_t n_ranks, const struct cpl_seat *seats,
                                      struct cpl_machine *machine, struct cpl_error *error)
{
    enum cpl_status status =
        cpl_plan_machine(n_ranks, seats, cpl_plan_root_costs(), machine, error);
    if (!status) {
        status = apply_distances(n_ranks, seats, machine, error);
        if (status)
            cpl_machine_free(machine);
    }
    return status;
}

void cpl_plan_root_start(void)
{
    struct cpl_settings *settings = &cpl_context.settings;
    if (settings->mode == CPL_MODE_OFF || !settings->plan_cache[0])
        return;
    bool made = cpl_settings_make_directory(settings->plan_cache);
    if (made && access(settings->plan_cache, R_OK | X_OK) == 0)
        return;
    cpl_log(CPL_LOG_WARN, "plan",
            "CARPOOL_PLAN_CACHE: cannot %s the directory %s (%s); plans are not kept; name another "
            "one",
            made ? "read" : "make", settings->plan_cache, strerror(errno));
    settings->plan_cache[0] = '\0';
}

/* Gets the plans for a choice, from the cache or new. */
static enum cpl_status find_or_plan(const struct cpl_strategy_input *input, int most,
                                    const struct cpl_strategy_choice *choice,
                                    struct cpl_plan_set *set, struct cpl_plan_cost *cost,
                                    struct cpl_error *error)
{
    struct cpl_shim_machine *known = &cpl_context.machine;
    const char *cache = cpl_context.settings.plan_cache;
    char strategy[CPL_STRATEGY_TEXT];
    struct cpl_error trouble;
    bool found = false;
    cpl_strategy_format(choice, strategy);
    const struct cpl_plan_key key = {PACKAGE_VERSION, strategy, choice->strategy ? 1 : most, input};
    if (cache[0] && cpl_plan_cache_find(cache, &key, set, &found, &trouble))
        WARN_ONCE(known->cache_warned,
                  "CARPOOL_PLAN_CACHE: %s; it is planned anew and the file replaced", trouble.text);
    cost->was_kept = found;
    if (found) {
        cost->made_ms = set->ms;
        return CPL_OK;
    }
    double start = cpl_plan_now_ms();
    *set = (struct cpl_plan_set){.n = 1, .choice = {*choice}};
    enum cpl_status status =
        choice->strategy
            ? cpl_strategy_plan(input, choice, set->plan, error)
            : cpl_strategy_plan_several(input, most, set->choice, set->plan, &set->n, error);
    set->ms = cpl_plan_now_ms() - start;
    set->n = status ? 0 : set->n;
    if (!status && cache[0] && !known->cache_closed &&
        cpl_plan_cache_keep(cache, &key, set, &trouble)) {
        WARN_ONCE(known->cache_warned,
                  "CARPOOL_PLAN_CACHE: %s; plans of this run are not kept; name a directory with "
                  "room that can be written to",
                  trouble.text);
        known->cache_closed = true;
    }
    return status;
}

/* Whether messages go to their destinations by lanes alone: forwarding one takes longer than
 * writing it into a lane (bench/results/lanes.md), which the model leaves out. */
static bool goes_direct(const struct cpl_strategy_input *input, const struct cpl_agree_input *asked)
{
    return asked->pt2pt && input->machine->lanes && input->machine->n_nodes == 1;
}

/* The plans of the settings' strategy. *fits becomes false when it cannot serve the pattern; the
 * plan is then direct. */
static enum cpl_status make_plans(const struct cpl_strategy_input *input,
                                  const struct cpl_agree_input *asked, struct cpl_plan_set *set,
                                  bool *fits, struct cpl_plan_cost *cost, struct cpl_error *error)
{
    struct cpl_strategy_choice choice;
    *fits = true;
    enum cpl_status status = cpl_strategy_parse(cpl_context.settings.strategy, &choice, error);
    if (!status && !choice.strategy && goes_direct(input, asked))
        status = cpl_strategy_parse("direct", &choice, error);
    if (!status)
        status = find_or_plan(input, asked->most_plans, &choice, set, cost, error);
    if (status != CPL_ERR_UNFIT)
        return status;
    WARN_ONCE(cpl_context.machine.unfit_warned,
              "CARPOOL_STRATEGY=%s cannot be used here: %s; such exchanges are left to MPI",
              cpl_context.settings.strategy, error->text);
    *fits = false;
    cpl_strategy_parse("direct", &choice, NULL);
    return find_or_plan(input, asked->most_plans, &choice, set, cost, error);
}

/* The same as CPL_MOST_OF_DIRECT for a plan that will be measured. The model leaves out packing. */
#define WORTH_A_TRIAL 0.95

bool cpl_plan_promises(const struct cpl_plan_summary *summary)
{
    return summary->planned.modelled_us < CPL_MOST_OF_DIRECT * summary->direct.modelled_us;
}

/* Whether managing the messages of an exchange promises enough if they take modelled_us in place of
 * direct_us. */
static bool managed_promises(const struct cpl_plan_summary *summary, double modelled_us,
                             double direct_us)
{
    return modelled_us + cpl_plan_matching_us(summary) < CPL_MOST_OF_DIRECT * direct_us;
}

bool cpl_plan_carried_promises(const struct cpl_plan_summary *summary)
{
    return managed_promises(summary, summary->planned.modelled_us, summary->direct_us);
}

bool cpl_plan_embedded_promises(const struct cpl_plan_summary *summary)
{
    return summary->reduced != CPL_EMBED_REFUSED &&
           managed_promises(summary, summary->embedded_us, summary->direct.modelled_us);
}

/* The reason why the mode does not use or try this plan; CPL_LEFT_NOT: it does. */
static enum cpl_left_alone decide(const struct cpl_plan_summary *summary, bool fits, bool needed)
{
    const bool profiles = cpl_context.settings.mode == CPL_MODE_PROFILE;
    const enum cpl_left_alone used = profiles ? CPL_LEFT_PROFILED : CPL_LEFT_NOT;
    if (needed)
        return used;
    if (!fits)
        return CPL_LEFT_UNFIT;
    if (summary->n_messages == 0)
        return CPL_LEFT_EMPTY;
    bool gains = cpl_context.settings.trial > 0
                     ? summary->planned.modelled_us < WORTH_A_TRIAL * summary->direct.modelled_us
                     : cpl_plan_promises(summary);
    if (cpl_context.settings.mode != CPL_MODE_FORCE && !gains &&
        !cpl_plan_embedded_promises(summary))
        return CPL_LEFT_NO_GAIN;
    return used;
}

void cpl_plan_decide(struct cpl_plan_summary *summary, bool fits, bool needed)
{
    summary->reason = decide(summary, fits, needed);
    summary->decided = summary->reason == CPL_LEFT_NOT;
}

/* The budget of small patterns, which are not worth all of it: programs make communicators by the
 * hundred. */
#define BUDGET_MS_PER_MESSAGE 0.04
#define SHORT_PART            0.125

static double budget_ms(int64_t n_messages, enum cpl_search search)
{
    double enough = BUDGET_MS_PER_MESSAGE * (double)n_messages;
    double most = (double)cpl_context.settings.budget;
    return (enough < most ? enough : most) * (search == CPL_SEARCH_SHORT ? SHORT_PART : 1);
}

/* Agreeing, with what each rank does for it, and pricing, which small budgets do not shorten. */
#define AGREE_MS            3
#define AGREE_MS_A_RANK     1 /* of those on a core */
#define RANK_MS_PER_MESSAGE 0.01
#define RANK_MS_MOST        100
#define PLAN_MS_PER_MESSAGE 0.001 /* by one strategy */

/* What making plans takes about, in milliseconds. */
static double planning_ms(int64_t n_messages, enum cpl_search search, bool direct)
{
    struct cpl_strategy_choice choice = {NULL};
    cpl_strategy_parse(cpl_context.settings.strategy, &choice, NULL);
    if (choice.strategy ? !choice.strategy->searches : direct)
        return PLAN_MS_PER_MESSAGE * (double)n_messages;
    double rank_ms = RANK_MS_PER_MESSAGE * (double)n_messages;
    return budget_ms(n_messages, search) + (rank_ms < RANK_MS_MOST ? rank_ms : RANK_MS_MOST);
}

/* Checks a plan and fills its summary; the figures of direct are filled already. */
static enum cpl_status summarise(const struct cpl_strategy_input *input,
                                 const struct cpl_strategy_choice *choice,
                                 const struct cpl_plan *plan, struct cpl_plan_summary *summary,
                                 struct cpl_error *error)
{
    enum cpl_status status = CPL_OK;
#ifdef NDEBUG
    if (cpl_context.settings.check)
#endif
        status = cpl_plan_check(plan, input->pattern, error);
    if (!status)
        status = cpl_plan_measure(plan, input->machine, 1, &summary->planned, error);
    if (status)
        return status;
    cpl_strategy_label(choice, input->machine, summary->strategy);
    summary->known = 1;
    summary->pattern_fingerprint = plan->pattern_fingerprint;
    summary->plan_fingerprint = plan->fingerprint;
    const struct cpl_pattern *pairs = cpl_pattern_pairs(input->pattern);
    summary->n_messages = pairs->n_messages;
    for (int64_t m = 0; m < pairs->n_messages; m++)
        summary->bytes += pairs->volume[m];
    return CPL_OK;
}

/* What the messages add to a reduction, over ranks placed for them if its order does not matter. */
static enum cpl_status embedded_cost(const struct cpl_strategy_input *input,
                                     enum cpl_embed_verdict reduced, double *us,
                                     struct cpl_error *error)
{
    const struct cpl_pattern *pairs = cpl_pattern_pairs(input->pattern);
    struct cpl_hypercube cube = cpl_hypercube_of(pairs->n_ranks);
    bool changed;
    if (reduced == CPL_EMBED_REFUSED) /* no reduction follows */
        return CPL_OK;
    if (reduced != CPL_EMBED_ANY_ORDER)
        return cpl_hypercube_carry_cost(&cube, pairs, input->machine, input->unit_bytes, us, error);
    int32_t *point_of = calloc((size_t)pairs->n_ranks, sizeof *point_of);
    if (!point_of)
        return cpl_fail_memory(error, "mapping the ranks");
    enum cpl_status status =
        cpl_hypercube_map(pairs, input->machine, input->unit_bytes, point_of, &changed, us, error);
    free(point_of);
    return status;
}

/* Makes the plans, in a zeroed set, which the caller frees in any case, and their summaries. */
static enum cpl_status plan_set(const struct cpl_strategy_input *input,
                                const struct cpl_agree_input *asked, enum cpl_embed_verdict reduced,
                                struct cpl_plan_set *set, struct cpl_plan_summary *summary,
                                struct cpl_error *error)
{
    struct cpl_metrics direct, by_lanes;
    struct cpl_plan_cost cost = {.ms = 0};
    bool fits = true;
    double start = cpl_plan_now_ms();
    enum cpl_status status = make_plans(input, asked, set, &fits, &cost, error);
    if (status)
        return status;
    if (!cost.was_kept)
        cpl_work_planned(planning_ms(input->pattern->n_messages, cpl_agree_search(asked),
                                     goes_direct(input, asked)));
    cost.ms = cpl_plan_now_ms() - start;
    double embedded_us = 0;
    status = cpl_strategy_measure_mpi(input, &direct, error);
    if (!status)
        status = cpl_strategy_measure_direct(input, &by_lanes, error);
    if (!status)
        status = embedded_cost(input, reduced, &embedded_us, error);
    for (int k = 0; k < set->n && !status; k++) {
        summary[k].cost = cost;
        summary[k].direct = direct;
        summary[k].direct_us = by_lanes.modelled_us;
        summary[k].reduced = (int32_t)reduced;
        summary[k].embedded_us = embedded_us;
        status = summarise(input, &set->choice[k], &set->plan[k], &summary[k], error);
        if (status)
            break;
        cpl_plan_decide(&summary[k], fits, asked->needed);
        cpl_picture_add(cpl_pattern_pairs(input->pattern), &set->plan[k], input->machine,
                        &summary[k]);
    }
    return status;
}

void cpl_plan_log(const struct cpl_plan_summary *s, bool tried)
{
    char made[80] = "planned";
    if (s->cost.was_kept)
        snprintf(made, sizeof made, "read from the plan cache (planning took %.1f ms)",
                 s->cost.made_ms);
    cpl_log(
        CPL_LOG_INFO, "plan",
        "%d ranks, %lld messages: %s, busiest rank sends %lld instead of %lld, modelled %.1f us "
        "instead of %.1f, %s in %.1f ms; %s",
        cpl_context.size, (long long)s->n_messages, s->strategy, (long long)s->planned.sends_max,
        (long long)s->direct.sends_max, s->planned.modelled_us, s->direct.modelled_us, made,
        s->cost.ms,
        !s->decided ? "left to MPI"
        : tried     ? "to be tried"
                    : "rerouted from now on");
}

double cpl_plan_root_ms(int64_t n_messages, enum cpl_search search, double ranks_a_core,
                        bool direct)
{
    return AGREE_MS + AGREE_MS_A_RANK * ranks_a_core + planning_ms(n_messages, search, direct);
}

/* The lowest verdict among ranks that send. */
static enum cpl_embed_verdict all_reduced(const struct cpl_decision *decision)
{
    int64_t least = CPL_EMBED_ANY_ORDER;
    for (int i = 0; i < decision->n_ranks; i++)
        if (decision->first[i + 1] > decision->first[i] && decision->seats[i].word < least)
            least = decision->seats[i].word;
    return (enum cpl_embed_verdict)least;
}

struct cpl_plan_set *cpl_plan_root(const struct cpl_decision *decision,
                                   const struct cpl_agree_input *asked,
                                   struct cpl_plan_summary summary[CPL_MAX_PLANS],
                                   struct cpl_pattern *pattern)
{
    struct cpl_machine machine = {0};
    struct cpl_error error;
    struct cpl_plan_set *set = calloc(1, sizeof *set); /* stacks may be small */
    memset(summary, 0, CPL_MAX_PLANS * sizeof *summary);
    *pattern = (struct cpl_pattern){0};
    enum cpl_status status =
        set ? cpl_pattern_build(decision->n_ranks, decision->records,
                                decision->first[decision->n_ranks], pattern, &error)
            : cpl_fail_memory(&error, "the plans");
    if (!status)
        status = cpl_plan_root_machine(decision->n_ranks, decision->seats, &machine, &error);
    if (!status) {
        machine.lanes = cpl_context.settings.lanes;
        struct cpl_strategy_input input = {pattern, &machine, 1,
                                           budget_ms(pattern->n_messages, cpl_agree_search(asked))};
        status = plan_set(&input, asked, all_reduced(decision), set, summary, &error);
    }
    cpl_machine_free(&machine);
    if (status) {
        cpl_log(CPL_LOG_WARN, "plan", "no plan: %s; the exchange is left to MPI", error.text);
        memset(summary, 0, CPL_MAX_PLANS * sizeof *summary);
        cpl_pattern_free(pattern);
        if (set)
            cpl_plan_set_free(set);
        free(set);
        return NULL;
    }
    for (int k = 0; k < set->n; k++)
        cpl_plan_log(&summary[k], asked->most_plans > 1);
    return set;
}
