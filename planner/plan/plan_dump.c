/* The stable text form of a plan (plan.h, cpl_plan_dump), for people and for golden tests. */
#include "planner/plan.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static void dump_bundle(const struct cpl_plan *plan, const struct cpl_bundle *bundle, FILE *out)
{
    fprintf(out, " %d>", bundle->owner);
    for (int32_t k = 0; k < bundle->n_dests; k++)
        fprintf(out, "%s%d", k ? "," : "", plan->dests[bundle->first_dest + k]);
}

enum cpl_status cpl_plan_dump(const struct cpl_plan *plan, FILE *out, struct cpl_error *error)
{
    fprintf(out, "# carpool plan 1\n");
    fprintf(out, "ranks %d waves %d bundles %" PRId64 " edges %" PRId64 " segments %" PRId64 "\n",
            plan->n_ranks, plan->n_waves, plan->n_bundles, plan->n_edges, plan->n_segments);
    fprintf(out, "pattern %016" PRIx64 " plan %016" PRIx64 "\n", plan->pattern_fingerprint,
            plan->fingerprint);
    for (int64_t e = 0; e < plan->n_edges; e++) {
        const struct cpl_edge *edge = &plan->edges[e];
        fprintf(out, "%d %d -> %d:", edge->wave, edge->from, edge->to);
        for (int32_t s = 0; s < edge->n_segments; s++)
            dump_bundle(plan, &plan->bundles[plan->segments[edge->first_segment + s]], out);
        fputc('\n', out);
    }
    if (ferror(out))
        return cpl_fail(error, CPL_ERR_IO, "cannot write the plan: %s", strerror(errno));
    return CPL_OK;
}
