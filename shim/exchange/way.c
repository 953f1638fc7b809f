/* The table of ways (way.h). */
#include "shim/exchange/way.h"

#include "shim/base/log.h"
#include "shim/exchange/exchange.h"
#include "shim/meet/agree.h"
#include "shim/state/comm_state.h"
#include "shim/state/context.h"

#include <stdio.h>
#include <string.h>

#define ANY "auto"

static const struct cpl_way *const ways[] = {
#define WAY(name) &cpl_way_##name,
#include "shim/exchange/ways.def"
#undef WAY
};

#define N_WAYS (sizeof ways / sizeof *ways)

/* The way that CARPOOL_WAY names; NULL: it names none. */
static const struct cpl_way *find_named(void)
{
    for (size_t k = 0; k < N_WAYS; k++)
        if (ways[k]->offer && strcmp(ways[k]->name, cpl_context.settings.way) == 0)
            return ways[k];
    return NULL;
}

void cpl_ways_start(void)
{
    char *name = cpl_context.settings.way, known[256] = ANY;
    if (!name[0] || strcmp(name, ANY) == 0 || find_named())
        return;
    for (size_t k = 0, used = strlen(known); k < N_WAYS && used < sizeof known; k++)
        if (ways[k]->offer)
            used += (size_t)snprintf(known + used, sizeof known - used, "|%s", ways[k]->name);
    cpl_log(CPL_LOG_WARN, "settings",
            "CARPOOL_WAY='%.200s' cannot be used: it takes %s; the default '" ANY "' holds", name,
            known);
    snprintf(name, sizeof cpl_context.settings.way, ANY);
}

/* Asks all ways, or only one, for what there is room for. Returns whether this rank made all. */
static bool ask(const struct cpl_comm_state *state, struct cpl_exchange *x,
                struct cpl_agree_output *agreed, const struct cpl_way *only)
{
    struct cpl_exchange_plans *plans = &x->plans;
    bool made = true;
    for (size_t k = 0; k < N_WAYS && plans->n_candidates < CPL_MOST_CANDIDATES; k++) {
        bool asked = only ? ways[k] == only : !ways[k]->only_named;
        if (ways[k]->offer && asked)
            plans->n_candidates +=
                ways[k]->offer(state, x, agreed, &plans->candidate[plans->n_candidates],
                               CPL_MOST_CANDIDATES - plans->n_candidates, &made);
    }
    return made;
}

bool cpl_ways_offer(const struct cpl_comm_state *state, struct cpl_exchange *x,
                    struct cpl_agree_output *agreed)
{
    struct cpl_exchange_plans *plans = &x->plans;
    const struct cpl_way *named = find_named();
    bool decided = false;
    for (int k = 0; k < agreed->n; k++)
        decided |= agreed->summary[k].decided;
    if (!decided) /* profile runs, nothing to gain: MPI's */
        return false;
    bool made = ask(state, x, agreed, named);
    if (named && plans->n_candidates == 0 && x->mpi_distrusted)
        made &= ask(state, x, agreed, NULL);
    return plans->n_candidates > 0 && cpl_agree_all(state->private_comm, made);
}
