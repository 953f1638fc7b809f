/* Tests of the table of strategies (strategy.h): what each row has, and what every strategy
 * promises of its candidates and examples, on random patterns. A new row is tested by being there;
 * what it does beside is for test_strategy.c. */
#include "planner/grid/grid.h"
#include "planner/grid/grid_shape.h"
#include "planner/plan.h"
#include "planner/plan/router.h"
#include "planner/strategy.h"
#include "plans.h"
#include "random_pattern.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define N_PATTERNS      400
#define N_NODES         60
#define MOST_EXAMPLES   4  /* of a strategy */
#define SEARCH_EVERY    20 /* patterns: searching takes long */
#define LEAST_BUDGET_MS 0.001

static struct cpl_strategy_choice parse(const char *text)
{
    struct cpl_strategy_choice choice;
    struct cpl_error error = {""};
    if (cpl_strategy_parse(text, &choice, &error))
        fail_msg("%s", error.text);
    return choice;
}

static const char *text_of(const struct cpl_strategy_choice *choice)
{
    static char text[CPL_STRATEGY_TEXT];
    cpl_strategy_format(choice, text);
    return text;
}

/* The examples of a row as choices, which lead back to themselves. Returns how many: at least 1. */
static size_t parse_examples(const struct cpl_strategy *strategy,
                             struct cpl_strategy_choice choice[MOST_EXAMPLES])
{
    const char *rest = strategy->examples ? strategy->examples : strategy->name;
    size_t n = 0;
    for (; *rest; rest += strspn(rest, ", ")) {
        char text[CPL_STRATEGY_TEXT];
        size_t length = strcspn(rest, ",");
        assert_in_range(n, 0, MOST_EXAMPLES - 1);
        snprintf(text, sizeof text, "%.*s", (int)length, rest);
        choice[n] = parse(text);
        assert_ptr_equal(choice[n].strategy, strategy);
        assert_string_equal(text_of(&choice[n++]), text);
        rest += length;
    }
    assert_true(n > 0);
    return n;
}

/* What each row must have. */
static void test_table(void **state)
{
    (void)state;
    size_t n = 0;
    const struct cpl_strategy *const *table = cpl_strategy_table(&n);
    assert_true(n >= 3);
    assert_ptr_equal(table[0], &cpl_strategy_direct);
    for (size_t k = 0; k < n; k++) {
        struct cpl_strategy_choice examples[MOST_EXAMPLES];
        assert_non_null(table[k]->doc);
        assert_non_null(table[k]->most_hops);
        assert_non_null(table[k]->route);
        assert_true(!table[k]->parameter == !table[k]->parse);
        assert_true(!table[k]->parameter == !table[k]->format);
        assert_true(!table[k]->parameter == !table[k]->examples);
        parse_examples(table[k], examples);
    }
}

/* The sizes of a grid strategy's steps, from what follows "grid:" and "far:" in its name. Returns
 * how many; 0 for locality. */
static int32_t steps_of(const char *text, int32_t n_ranks, int32_t *step)
{
    int32_t n = 0;
    char *end;
    for (int shape = 0; shape < CPL_N_SHAPES; shape++) {
        const char *name = cpl_grid_shape_name((enum cpl_grid_shape)shape);
        size_t length = strlen(name);
        if (strncmp(text, name, length) != 0)
            continue;
        int32_t n_dims = text[length] ? (int32_t)strtol(text + length + 1, NULL, 10) : 0;
        assert_int_equal(
            cpl_grid_shape_sizes((enum cpl_grid_shape)shape, n_ranks, n_dims, &n, step, NULL),
            CPL_OK);
        return n;
    }
    for (step[0] = (int32_t)strtol(text, &end, 10); step[n] > 0 && ++n && *end == 'x';)
        step[n] = (int32_t)strtol(end + 1, &end, 10);
    return n;
}

/* The grid of a vpt or grid strategy; false for others. */
static bool grid_of(const struct cpl_strategy_choice *choice, int32_t n_ranks,
                    struct cpl_grid *grid, enum cpl_grid_order *order)
{
    const char *text = text_of(choice);
    int32_t n = 0, step[CPL_MAX_DIMENSIONS], size[CPL_MAX_DIMENSIONS];
    *order = strstr(text, ":far:") ? CPL_GRID_FAR_FIRST : CPL_GRID_NEAR_FIRST;
    if (strcmp(choice->strategy->name, "vpt") == 0) {
        n = choice->numbers.at[0];
        assert_int_equal(cpl_grid_even_sizes(n_ranks, n, step, NULL), CPL_OK);
    } else if (strcmp(choice->strategy->name, "grid") == 0) {
        n = steps_of(text + (*order == CPL_GRID_FAR_FIRST ? 9 : 5), n_ranks, step);
    }
    for (int32_t d = 0; d < n; d++)
        size[d] = step[*order == CPL_GRID_FAR_FIRST ? n - 1 - d : d];
    return n > 0 && !cpl_grid_init(grid, n_ranks, n, size, NULL);
}

/* The most that a rank may send: on a grid without holes, or walked from far to near, the sum of
 * its sizes less one; else any number. */
static int64_t sends_bound(const struct cpl_strategy_choice *choice, int32_t n_ranks)
{
    struct cpl_grid grid;
    enum cpl_grid_order order;
    int64_t sum = 0;
    if (!grid_of(choice, n_ranks, &grid, &order))
        return INT64_MAX;
    for (int32_t d = 0; d < grid.n_dims; d++)
        sum += grid.size[d] - 1;
    bool has_holes = n_ranks % grid.stride[grid.n_dims - 1] != 0;
    return has_holes && order == CPL_GRID_NEAR_FIRST ? INT64_MAX : sum;
}

struct trial {
    uint64_t seed;
    struct cpl_strategy_input input;
    struct cpl_machine machine;
    struct cpl_pattern pattern;
};

static struct cpl_plan plan_by(const struct trial *trial, const struct cpl_strategy_choice *choice)
{
    struct cpl_plan plan;
    struct cpl_error error = {""};
    if (cpl_strategy_plan(&trial->input, choice, &plan, &error) ||
        cpl_plan_check(&plan, &trial->pattern, &error))
        fail_msg("seed %d, %s: %s", (int)trial->seed, text_of(choice), error.text);
    return plan;
}

/* Everything that holds for one strategy's plan. Returns its fingerprint and modelled time. */
static uint64_t check_choice(const struct trial *trial, const struct cpl_strategy_choice *choice,
                             double *us)
{
    struct cpl_metrics metrics;
    struct cpl_plan plan = plan_by(trial, choice), again = plan_by(trial, choice);
    uint64_t fingerprint = plan.fingerprint;
    assert_int_equal(cpl_plan_measure(&plan, &trial->machine, 8, &metrics, NULL), CPL_OK);
    if (fingerprint != again.fingerprint ||
        metrics.hops_max > choice->strategy->most_hops(&trial->input, &choice->numbers) ||
        metrics.sends_max > sends_bound(choice, plan.n_ranks) ||
        metrics.recvs_max > sends_bound(choice, plan.n_ranks) ||
        metrics.set_max > metrics.sends_max)
        fail_msg("seed %d, %s: %d hops, %d sends", (int)trial->seed, text_of(choice),
                 metrics.hops_max, (int)metrics.sends_max);
    *us = metrics.modelled_us;
    cpl_plan_free(&again);
    cpl_plan_free(&plan);
    return fingerprint;
}

/* Neither auto nor balance is slower than any strategy that does not search. */
static void check_searches(const struct trial *trial, double fastest_us)
{
    struct cpl_strategy_choice chosen, balance = parse("balance");
    struct cpl_plan plan;
    double us = -1;
    assert_int_equal(cpl_strategy_plan_auto(&trial->input, &chosen, &plan, NULL), CPL_OK);
    assert_int_equal(cpl_plan_check(&plan, &trial->pattern, NULL), CPL_OK);
    assert_int_equal(cpl_plan_chain_cost(&plan, &trial->machine, 8, &us, NULL), CPL_OK);
    if (us > fastest_us)
        fail_msg("seed %d: auto takes %g us, not %g", (int)trial->seed, us, fastest_us);
    cpl_plan_free(&plan);
    check_choice(trial, &balance, &us);
    if (us > fastest_us)
        fail_msg("seed %d: balance takes %g us, not %g", (int)trial->seed, us, fastest_us);
}

/* However small the budget, auto is no slower than any strategy whose routes are arithmetic. */
static void check_small_budget(const struct trial *trial, double fastest_us)
{
    struct cpl_strategy_input input = trial->input;
    struct cpl_strategy_choice chosen;
    struct cpl_plan plan;
    double us = -1;
    input.budget_ms = LEAST_BUDGET_MS;
    assert_int_equal(cpl_strategy_plan_auto(&input, &chosen, &plan, NULL), CPL_OK);
    assert_int_equal(cpl_plan_check(&plan, &trial->pattern, NULL), CPL_OK);
    assert_int_equal(cpl_plan_chain_cost(&plan, &trial->machine, 8, &us, NULL), CPL_OK);
    if (us > fastest_us)
        fail_msg("seed %d: auto without time takes %g us, not %g", (int)trial->seed, us,
                 fastest_us);
    cpl_plan_free(&plan);
}

static bool has_router(const struct trial *trial, const struct cpl_strategy_choice *choice)
{
    struct cpl_router router;
    if (cpl_strategy_router(&trial->input, choice, &router, NULL))
        return false;
    cpl_router_free(&router);
    return true;
}

/* Whether a plan in two waves is faster than what MPI does. */
static bool gains_in_two_waves(const struct trial *trial, double mpi_us)
{
    struct cpl_strategy_choice choice;
    struct cpl_plan plan;
    double us = INFINITY;
    assert_int_equal(cpl_strategy_parse("vpt:2", &choice, NULL), CPL_OK);
    if (cpl_strategy_plan(&trial->input, &choice, &plan, NULL))
        return false; /* too few ranks */
    if (plan.n_waves == 2)
        assert_int_equal(cpl_plan_chain_cost(&plan, &trial->machine, 8, &us, NULL), CPL_OK);
    cpl_plan_free(&plan);
    return us < mpi_us;
}

/* Plans to be tried against each other: auto's first, then others, slower one after another, with
 * other numbers of waves, none slower than what MPI does; on one node with lanes direct is one, and
 * not the only one where others are faster than MPI. */
static void check_several(const struct trial *trial)
{
    enum { MOST = 3 };
    const struct cpl_strategy_choice direct = {.strategy = &cpl_strategy_direct};
    struct cpl_strategy_choice choice[MOST], chosen;
    struct cpl_plan plan[MOST], by_auto, by_mpi = plan_by(trial, &direct);
    struct cpl_machine without = trial->machine;
    int32_t n = 0;
    double direct_us = 0, us[MOST] = {0};
    bool has_direct = false;
    without.lanes = false;
    assert_int_equal(cpl_plan_chain_cost(&by_mpi, &without, 8, &direct_us, NULL), CPL_OK);
    assert_int_equal(cpl_strategy_plan_auto(&trial->input, &chosen, &by_auto, NULL), CPL_OK);
    assert_int_equal(cpl_strategy_plan_several(&trial->input, MOST, choice, plan, &n, NULL),
                     CPL_OK);
    assert_in_range(n, 1, MOST);
    assert_true(plan[0].fingerprint == by_auto.fingerprint);
    for (int32_t k = 0; k < n; k++) {
        assert_int_equal(cpl_plan_check(&plan[k], &trial->pattern, NULL), CPL_OK);
        assert_int_equal(cpl_plan_chain_cost(&plan[k], &trial->machine, 8, &us[k], NULL), CPL_OK);
        for (int32_t j = 0; j < k; j++)
            assert_int_not_equal(plan[k].n_waves, plan[j].n_waves);
        if (us[k] > direct_us || (k > 0 && us[k] < us[k - 1]))
            fail_msg("seed %d: plan %d, %s, takes %g us", (int)trial->seed, k, text_of(&choice[k]),
                     us[k]);
        has_direct |= plan[k].n_waves <= 1;
        cpl_plan_free(&plan[k]);
    }
    if (trial->machine.lanes && trial->machine.n_nodes == 1 && trial->pattern.n_messages > 0) {
        assert_true(has_direct);
        assert_true(n > 1 || !gains_in_two_waves(trial, direct_us));
    }
    cpl_plan_free(&by_auto);
    cpl_plan_free(&by_mpi);
}

/* Enough for auto to try every candidate. */
static double budget_ms(const struct cpl_pattern *pattern)
{
    return 2 + 0.007 * (double)pattern->n_messages;
}

/* Ranks dealt to nodes and sockets at random. */
static void scatter_ranks(struct cpl_machine *machine, int32_t n_ranks, uint64_t *random)
{
    int64_t node[RANDOM_PATTERN_MOST_RANKS];
    int32_t socket[RANDOM_PATTERN_MOST_RANKS], n_nodes = 1 + random_below(random, n_ranks);
    for (int32_t i = 0; i < n_ranks; i++) {
        node[i] = random_below(random, 1 + random_below(random, n_nodes));
        socket[i] = random_below(random, 2);
    }
    assert_int_equal(cpl_machine_from_places(n_ranks, node, socket, NULL, 0, machine, NULL),
                     CPL_OK);
}

static void set_up_trial(struct trial *trial, uint64_t seed)
{
    uint64_t random = seed;
    trial->seed = seed;
    trial->pattern = random_pattern(seed, seed % 16 ? 80 : RANDOM_PATTERN_MOST_RANKS);
    int32_t n_ranks = trial->pattern.n_ranks;
    if (seed % 3 == 0)
        scatter_ranks(&trial->machine, n_ranks, &random);
    else
        assert_int_equal(
            cpl_machine_init(n_ranks, 1 + random_below(&random, n_ranks), &trial->machine, NULL),
            CPL_OK);
    trial->machine.cores_per_node = random_below(&random, 3);
    trial->machine.lanes = random_below(&random, 2);
    trial->input = (struct cpl_strategy_input){&trial->pattern, &trial->machine, 8,
                                               budget_ms(&trial->pattern)};
}

/* Whether a choice is in the list, by its text. */
static bool is_listed(const struct cpl_strategy_list *list,
                      const struct cpl_strategy_choice *choice)
{
    char text[CPL_STRATEGY_TEXT];
    cpl_strategy_format(choice, text);
    for (size_t k = 0; k < list->n; k++)
        if (strcmp(text_of(&list->choice[k]), text) == 0)
            return true;
    return false;
}

/* The examples of all rows that are no candidates. One that the ranks do not fit says so. */
static void check_examples(const struct trial *trial, const struct cpl_strategy_list *candidates)
{
    size_t n = 0;
    const struct cpl_strategy *const *table = cpl_strategy_table(&n);
    for (size_t k = 0; k < n; k++) {
        struct cpl_strategy_choice examples[MOST_EXAMPLES];
        size_t n_examples = parse_examples(table[k], examples);
        for (size_t e = 0; e < n_examples; e++) {
            struct cpl_routes routes;
            struct cpl_error error = {""};
            double us;
            if (is_listed(candidates, &examples[e]) ||
                (table[k]->searches && trial->seed % SEARCH_EVERY))
                continue;
            enum cpl_status status =
                cpl_strategy_route(&trial->input, &examples[e], &routes, &error);
            if (!status) {
                cpl_routes_free(&routes);
                check_choice(trial, &examples[e], &us);
            } else if (status != CPL_ERR_UNFIT || !*error.text) {
                fail_msg("seed %d, %s: %s", (int)trial->seed, text_of(&examples[e]), error.text);
            }
        }
    }
}

static void check_trial(const struct trial *trial)
{
    struct cpl_strategy_list list;
    struct cpl_strategy_choice vpt1 = parse("vpt:1");
    uint64_t direct = 0;
    double fastest_us = 1e300, fastest_computed_us = 1e300, us;
    cpl_strategy_candidates(&trial->input, &list);
    for (size_t k = 0; k < list.n; k++) {
        if (list.choice[k].strategy->searches && trial->seed % SEARCH_EVERY)
            continue;
        uint64_t fingerprint = check_choice(trial, &list.choice[k], &us);
        direct = k == 0 ? fingerprint : direct;
        if (!list.choice[k].strategy->searches)
            fastest_us = us < fastest_us ? us : fastest_us;
        if (has_router(trial, &list.choice[k]))
            fastest_computed_us = us < fastest_computed_us ? us : fastest_computed_us;
    }
    check_small_budget(trial, fastest_computed_us);
    check_examples(trial, &list);
    if (trial->seed % SEARCH_EVERY == 0) {
        check_searches(trial, fastest_us);
        check_several(trial);
    }
    assert_true(check_choice(trial, &vpt1, &us) == direct);
}

static void test_promises(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < N_PATTERNS; seed++) {
        struct trial trial;
        set_up_trial(&trial, seed);
        check_trial(&trial);
        cpl_machine_free(&trial.machine);
        cpl_pattern_free(&trial.pattern);
    }
}

/* All ranks on one node that has lanes. */
static void test_what_a_node_tries(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < N_NODES; seed++) {
        struct trial trial = {.seed = seed, .pattern = random_pattern(seed, 80)};
        assert_int_equal(
            cpl_machine_init(trial.pattern.n_ranks, trial.pattern.n_ranks, &trial.machine, NULL),
            CPL_OK);
        trial.machine.lanes = true;
        trial.input = (struct cpl_strategy_input){&trial.pattern, &trial.machine, 8,
                                                  budget_ms(&trial.pattern)};
        check_several(&trial);
        cpl_machine_free(&trial.machine);
        cpl_pattern_free(&trial.pattern);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_promises),
        cmocka_unit_test(test_what_a_node_tries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
