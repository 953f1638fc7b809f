/* Plans a pattern with libcarpool-planner: rank 0 sends 100 bytes to each of 15 others.
 *
 *   cc plan_pattern.c $(pkg-config --cflags --libs carpool-planner) -o plan_pattern */
#include <carpool/machine.h>
#include <carpool/pattern.h>
#include <carpool/plan.h>
#include <carpool/strategy.h>
#include <stdio.h>

#define N_RANKS 16

static int complain(const struct cpl_error *error)
{
    fprintf(stderr, "plan_pattern: %s\n", error->text);
    return 1;
}

static int show(const struct cpl_strategy_input *input)
{
    struct cpl_strategy_choice choice;
    struct cpl_metrics metrics;
    struct cpl_error error;
    struct cpl_plan plan;
    if (cpl_strategy_parse("vpt:2", &choice, &error) ||
        cpl_strategy_plan(input, &choice, &plan, &error))
        return complain(&error);
    enum cpl_status status =
        cpl_plan_measure(&plan, input->machine, input->unit_bytes, &metrics, &error);
    if (!status)
        printf("%d ranks, vpt:2: the busiest rank sends %lld messages, %.2f us by the model\n",
               plan.n_ranks, (long long)metrics.sends_max, metrics.modelled_us);
    cpl_plan_free(&plan);
    return status ? complain(&error) : 0;
}

int main(void)
{
    struct cpl_pattern_entry entries[N_RANKS - 1];
    struct cpl_pattern pattern;
    struct cpl_machine machine;
    struct cpl_error error;
    for (int k = 1; k < N_RANKS; k++) {
        entries[k - 1].src = 0;
        entries[k - 1].dst = k;
        entries[k - 1].volume = 100;
        entries[k - 1].payload_class = -1;
    }
    if (cpl_pattern_build(N_RANKS, entries, N_RANKS - 1, &pattern, &error))
        return complain(&error);
    if (cpl_machine_init(N_RANKS, 4, &machine, &error)) /* 4 ranks a node */
        return complain(&error);
    struct cpl_strategy_input input = {&pattern, &machine, 1, CPL_DEFAULT_BUDGET_MS};
    int status = show(&input);
    cpl_machine_free(&machine);
    cpl_pattern_free(&pattern);
    return status;
}
