/* direct: every message travels alone, in one wave. What MPI does, where no lanes carry messages
 * inside nodes; all plans are measured against that. */
#include "planner/plan/router.h"
#include "planner/strategy.h"

#include <stdio.h>

static enum cpl_status route(const struct cpl_strategy_input *input,
                             const struct cpl_strategy_numbers *numbers, struct cpl_routes *routes,
                             struct cpl_error *error)
{
    (void)numbers;
    return cpl_routes_init(input->pattern, 1, routes, error);
}

static void go(const struct cpl_router *router, int32_t src, int32_t dst, int32_t *stops)
{
    (void)router;
    (void)src;
    stops[0] = dst;
}

static enum cpl_status router(const struct cpl_strategy_input *input,
                              const struct cpl_strategy_numbers *numbers, struct cpl_router *router,
                              struct cpl_error *error)
{
    (void)input;
    (void)numbers;
    (void)error;
    *router = (struct cpl_router){.n_waves = 1, .go = go, .arena = CPL_ARENA_EMPTY};
    return CPL_OK;
}

static int32_t most_hops(const struct cpl_strategy_input *input,
                         const struct cpl_strategy_numbers *numbers)
{
    (void)input;
    (void)numbers;
    return 1;
}

void cpl_strategy_label(const struct cpl_strategy_choice *choice, const struct cpl_machine *machine,
                        char text[CPL_STRATEGY_TEXT])
{
    cpl_strategy_format(choice, text);
    if (choice->strategy == &cpl_strategy_direct && cpl_machine_has_lanes(machine))
        snprintf(text, CPL_STRATEGY_TEXT, "%s by lanes", cpl_strategy_direct.name);
}

enum cpl_status cpl_strategy_measure_mpi(const struct cpl_strategy_input *input,
                                         struct cpl_metrics *metrics, struct cpl_error *error)
{
    const struct cpl_machine without = cpl_machine_without_lanes(input->machine);
    const struct cpl_strategy_input by_mpi = {input->pattern, &without, input->unit_bytes,
                                              input->budget_ms};
    return cpl_strategy_measure_direct(&by_mpi, metrics, error);
}

enum cpl_status cpl_strategy_measure_direct(const struct cpl_strategy_input *input,
                                            struct cpl_metrics *metrics, struct cpl_error *error)
{
    const struct cpl_strategy_choice direct = {.strategy = &cpl_strategy_direct};
    struct cpl_plan plan;
    enum cpl_status status = cpl_strategy_plan(input, &direct, &plan, error);
    if (status)
        return status;
    status = cpl_plan_measure(&plan, input->machine, input->unit_bytes, metrics, error);
    cpl_plan_free(&plan);
    return status;
}

const struct cpl_strategy cpl_strategy_direct = {
    .name = "direct",
    .doc = "every message travels alone, inside nodes by lanes if there are any",
    .most_hops = most_hops,
    .candidates = cpl_strategy_add_itself,
    .route = route,
    .router = router};
