/* Figures of a plan (plan.h, cpl_plan_measure): counts of messages, hops and volume. */
#include "planner/plan/plan_internal.h"

#include <string.h>

static int64_t largest(const int64_t *values, int32_t n)
{
    int64_t max = 0;
    for (int32_t i = 0; i < n; i++)
        if (values[i] > max)
            max = values[i];
    return max;
}

static enum cpl_status count_messages(const struct cpl_plan *plan, struct cpl_arena *scratch,
                                      struct cpl_metrics *metrics)
{
    int64_t *sends = CPL_ARENA_ARRAY(scratch, int64_t, plan->n_ranks);
    int64_t *recvs = CPL_ARENA_ARRAY(scratch, int64_t, plan->n_ranks);
    if (!sends || !recvs)
        return CPL_ERR_NOMEM;
    for (int64_t e = 0; e < plan->n_edges; e++) {
        sends[plan->edges[e].from]++;
        recvs[plan->edges[e].to]++;
    }
    metrics->n_waves = plan->n_waves;
    metrics->sends_max = largest(sends, plan->n_ranks);
    metrics->recvs_max = largest(recvs, plan->n_ranks);
    metrics->sends_avg = (double)plan->n_edges / plan->n_ranks;
    metrics->recvs_avg = metrics->sends_avg;
    return CPL_OK;
}

/* Counts edges by lanes, and messages by MPI. */
static enum cpl_status count_lanes(const struct cpl_plan *plan, const struct cpl_machine *machine,
                                   struct cpl_arena *scratch, struct cpl_metrics *metrics)
{
    int64_t *sends = CPL_ARENA_ARRAY(scratch, int64_t, plan->n_ranks);
    int64_t *recvs = CPL_ARENA_ARRAY(scratch, int64_t, plan->n_ranks);
    int64_t n_lanes = 0;
    if (!sends || !recvs)
        return CPL_ERR_NOMEM;
    for (int64_t e = 0; e < plan->n_edges; e++) {
        const struct cpl_edge *edge = &plan->edges[e];
        bool by_lane = cpl_machine_is_lane(machine, edge->from, edge->to);
        n_lanes += by_lane;
        sends[edge->from] += !by_lane;
        recvs[edge->to] += !by_lane;
    }
    int64_t sent = largest(sends, plan->n_ranks), received = largest(recvs, plan->n_ranks);
    metrics->lanes_avg = (double)n_lanes / plan->n_ranks;
    metrics->mpi_max = sent > received ? sent : received;
    return CPL_OK;
}

/* Counts the different ranks that each rank sends to: edges are grouped by sender, destinations
 * marked with the sender's number. */
static enum cpl_status count_sets(const struct cpl_plan *plan, struct cpl_arena *scratch,
                                  struct cpl_metrics *metrics)
{
    int64_t *first = CPL_ARENA_ARRAY(scratch, int64_t, (size_t)plan->n_ranks + 2);
    int32_t *to = CPL_ARENA_ARRAY(scratch, int32_t, plan->n_edges);
    int32_t *mark = CPL_ARENA_ARRAY(scratch, int32_t, plan->n_ranks);
    if (!first || !to || !mark)
        return CPL_ERR_NOMEM;
    for (int64_t e = 0; e < plan->n_edges; e++)
        first[plan->edges[e].from + 2]++;
    for (int32_t i = 0; i < plan->n_ranks; i++)
        first[i + 2] += first[i + 1];
    for (int64_t e = 0; e < plan->n_edges; e++)
        to[first[plan->edges[e].from + 1]++] = plan->edges[e].to;
    int64_t total = 0;
    for (int32_t i = 0; i < plan->n_ranks; i++) {
        int64_t n = 0;
        for (int64_t k = first[i]; k < first[i + 1]; k++)
            if (mark[to[k]] != i + 1) {
                mark[to[k]] = i + 1;
                n++;
            }
        total += n;
        if (n > metrics->set_max)
            metrics->set_max = n;
    }
    metrics->set_avg = (double)total / plan->n_ranks;
    return CPL_OK;
}

/* Hops to each destination: depths in the bundles' trees. */
static enum cpl_status count_hops(const struct cpl_plan *plan, struct cpl_arena *scratch,
                                  struct cpl_metrics *metrics)
{
    struct cpl_bundle_edges carried;
    int32_t *depth = CPL_ARENA_ARRAY(scratch, int32_t, plan->n_ranks);
    if (!depth || cpl_plan_bundle_edges(plan, scratch, &carried))
        return CPL_ERR_NOMEM;
    int64_t total = 0;
    for (int64_t b = 0; b < plan->n_bundles; b++) {
        const struct cpl_bundle *bundle = &plan->bundles[b];
        depth[bundle->owner] = 0;
        for (int64_t k = carried.first[b]; k < carried.first[b + 1]; k++) {
            const struct cpl_edge *edge = &plan->edges[carried.edge[k]];
            depth[edge->to] = depth[edge->from] + 1;
        }
        for (int32_t k = 0; k < bundle->n_dests; k++) {
            int32_t hops = depth[plan->dests[bundle->first_dest + k]];
            total += hops;
            if (hops > metrics->hops_max)
                metrics->hops_max = hops;
        }
    }
    metrics->hops_avg = plan->n_dests ? (double)total / (double)plan->n_dests : 0;
    return CPL_OK;
}

static double volume_factor(const struct cpl_plan *plan)
{
    double carried = 0, original = 0;
    for (int64_t e = 0; e < plan->n_edges; e++)
        carried += (double)plan->edges[e].volume;
    for (int64_t b = 0; b < plan->n_bundles; b++)
        original += (double)plan->bundles[b].volume * plan->bundles[b].n_dests;
    return original > 0 ? carried / original : 1;
}

enum cpl_status cpl_plan_measure(const struct cpl_plan *plan, const struct cpl_machine *machine,
                                 double unit_bytes, struct cpl_metrics *metrics,
                                 struct cpl_error *error)
{
    struct cpl_metrics result = {.volume_factor = volume_factor(plan)};
    struct cpl_arena scratch = CPL_ARENA_EMPTY;
    enum cpl_status status =
        cpl_plan_chain_cost(plan, machine, unit_bytes, &result.modelled_us, error);
    if (!status)
        status = cpl_plan_cost(plan, machine, unit_bytes, &result.waves_us, error);
    if (!status &&
        (count_messages(plan, &scratch, &result) || count_lanes(plan, machine, &scratch, &result) ||
         count_sets(plan, &scratch, &result) || count_hops(plan, &scratch, &result)))
        status = cpl_fail_memory(error, "measuring the plan");
    cpl_arena_free(&scratch);
    if (!status)
        *metrics = result;
    return status;
}
