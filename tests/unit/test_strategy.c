/* Tests of strategies one by one (strategy.h): names, candidates, and what one strategy does. What
 * every strategy promises is tested by test_strategies.c, from the table. */
#include "planner/plan.h"
#include "planner/strategy.h"
#include "plans.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct cpl_strategy_choice parse(const char *text)
{
    struct cpl_strategy_choice choice;
    struct cpl_error error = {""};
    if (cpl_strategy_parse(text, &choice, &error))
        fail_msg("%s", error.text);
    return choice;
}

static void check_format(const char *text, const char *canonical)
{
    char formatted[CPL_STRATEGY_TEXT];
    struct cpl_strategy_choice choice = parse(text);
    cpl_strategy_format(&choice, formatted);
    assert_string_equal(formatted, canonical);
}

static void test_names(void **state)
{
    (void)state;
    check_format("auto", "auto");
    check_format("direct", "direct");
    check_format("share", "share");
    check_format("share:1", "share:1");
    check_format("share:2", "share");
    check_format("share:stay", "share:stay");
    check_format("vpt:1", "vpt:1");
    check_format("vpt:24", "vpt:24");
    check_format("grid:8x64", "grid:8x64");
    check_format("grid:far:08x64x1", "grid:far:8x64x1");
    check_format("grid:7", "grid:7");
    check_format("grid:16777216x16777216", "grid:16777216x16777216");
    check_format("grid:equal", "grid:equal");
    check_format("grid:inverse-hourglass:24", "grid:inverse-hourglass:24");
    check_format("grid:far:locality", "grid:far:locality");
    check_format("vpt:3+klf", "vpt:3+klf");
    check_format("vpt:3+klr", "vpt:3+klr");
    check_format("grid:far:equal:2+near", "grid:far:equal:2+near");
    check_format("grid:2x2+doubling", "grid:2x2+doubling");
    check_format("node", "node");
    check_format("node:1", "node");
    check_format("node:2", "node:2");
    check_format("node:spread", "node:spread");
    check_format("node:partner", "node:partner");
    check_format("node-grid:0:24:1", "node-grid:0:24:1");
    check_format("part-grid:3", "part-grid:3");
    check_format("part-grid:product", "part-grid:product");
    check_format("grid:far:1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x10x10x10x10x10x10x10x16777216+doubling",
                 "grid:far:1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x10x10x10x10x10x10x10x16777216+doubling");
    check_format("balance", "balance");
    check_format("balance:hops=2", "balance:hops=2");
    assert_null(parse("auto").strategy);
    assert_string_equal(parse("vpt:3").strategy->name, "vpt");
    assert_int_equal(parse("vpt:3").numbers.at[0], 3);
    assert_int_equal(parse("share").numbers.at[0], 2);
}

static void check_refused(const char *text, const char *expected)
{
    struct cpl_strategy_choice choice;
    struct cpl_error error = {""};
    assert_int_equal(cpl_strategy_parse(text, &choice, &error), CPL_ERR_ARG);
    if (!strstr(error.text, expected))
        fail_msg("\"%s\" does not say \"%s\"", error.text, expected);
    assert_int_equal(cpl_strategy_parse(text, &choice, NULL), CPL_ERR_ARG);
}

static void test_wrong_names(void **state)
{
    (void)state;
    check_refused("", "no strategy ''; there are direct, ");
    check_refused("Direct", "no strategy 'Direct'; there are direct, ");
    check_refused("vp:2", "auto");
    check_refused("shared", "no strategy 'shared'");
    check_refused("direct:1", "strategy direct takes no parameter");
    check_refused("direct:", "strategy direct takes no parameter");
    check_refused("vpt", "strategy vpt needs its dimensions, as in vpt:2");
    check_refused("vpt:", "strategy vpt takes a whole number from 1 to 24 after ':', not ''");
    check_refused("vpt:0", "from 1 to 24");
    check_refused("vpt:25", "from 1 to 24");
    check_refused("vpt:-1", "from 1 to 24");
    check_refused("vpt:2x", "not '2x'");
    check_refused("vpt:99999999999999999999", "from 1 to 24");
    check_refused("share:3", "strategy share takes 1, 2 or stay after ':', not '3'");
    check_refused("grid", "strategy grid takes 1 to 24 sizes");
    check_refused("grid:", "one of equal, hypercube, increase, decrease, hourglass, "
                           "inverse-hourglass, locality, not ''");
    check_refused("grid:far:", "not 'far:'");
    check_refused("grid:far:far:2x2", "not 'far:far:2x2'");
    check_refused("grid:0x4", "not '0x4'");
    check_refused("grid:-2x4", "not '-2x4'");
    check_refused("grid:4x", "not '4x'");
    check_refused("grid:4xx4", "not '4xx4'");
    check_refused("grid: 4x4", "not ' 4x4'");
    check_refused("grid:4X4", "not '4X4'");
    check_refused("grid:16777217", "not '16777217'");
    check_refused("grid:16777216x2x2", "not '16777216x2x2'");
    check_refused("grid:1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1", "1 to 24 sizes");
    check_refused("grid:equa", "not 'equa'");
    check_refused("grid:equal:", "strategy grid takes a whole number from 1 to 24 after ':'");
    check_refused("grid:equal:25", "from 1 to 24");
    check_refused("grid:hypercube:3", "not 'hypercube:3'");
    check_refused("grid:locality:3", "not 'locality:3'");
    check_refused("vpt:3+",
                  "strategy vpt takes +klf, +klr, +near or +doubling at its end, not '+'");
    check_refused("vpt:3+KLF", "not '+KLF'");
    check_refused("vpt:3+klf+klr", "not '+klf+klr'");
    check_refused("vpt:+klf", "not ''");
    check_refused("grid:+klf", "not '+klf'");
    check_refused("grid:locality+klf", "strategy grid:locality takes no +klf");
    check_refused("grid:00000000000000000000000000000000000000000000000000000000000000000000000000"
                  "00000000000000000000000000000000000004x2",
                  "is too long");
    check_refused("node:0", "a whole number from 1, or spread or partner after ':', not '0'");
    check_refused("node:", "not ''");
    check_refused("node:spreads", "not 'spreads'");
    check_refused("node:16777217", "not '16777217'");
    check_refused("part-grid", "as in part-grid:2, or part-grid:product");
    check_refused("part-grid:0", "not '0'");
    check_refused("part-grid:products", "not 'products'");
    check_refused("node-grid", "as in node-grid:1:2:1, not ''");
    check_refused("node-grid:1:1", "not '1:1'");
    check_refused("node-grid:1:1:", "not '1:1:'");
    check_refused("node-grid:1:1:1:1", "not '1:1:1:1'");
    check_refused("node-grid:1:1:1:", "not '1:1:1:'");
    check_refused("node-grid:1:0:1", "not '1:0:1'");
    check_refused("node-grid:1:1:0", "not '1:1:0'");
    check_refused("node-grid:25:1:1", "not '25:1:1'");
    check_refused("node-grid:1: 1:1", "not '1: 1:1'");
    check_refused("auto:1", "no strategy 'auto:1'");
    check_refused("balance:2", "takes hops=2 or hops=3 after ':', not '2'");
    check_refused("balance:hops=4", "from 2 to 3");
    check_refused("balance:hops=", "from 2 to 3");
}

/* What the candidates for ranks on nodes of some size are called, and that the names lead back to
 * them. */
static void check_candidates(int32_t n_ranks, int32_t ranks_per_node, const char *expected)
{
    struct cpl_strategy_list list;
    struct cpl_pattern pattern = make_pattern(n_ranks, NULL, 0);
    struct cpl_machine machine;
    struct cpl_strategy_input input = {&pattern, &machine, 8, 1};
    char text[CPL_MAX_CANDIDATES * CPL_STRATEGY_TEXT] = "", one[CPL_STRATEGY_TEXT];
    assert_int_equal(cpl_machine_init(n_ranks, ranks_per_node, &machine, NULL), CPL_OK);
    cpl_strategy_candidates(&input, &list);
    for (size_t k = 0; k < list.n; k++) {
        cpl_strategy_format(&list.choice[k], one);
        strcat(strcat(text, k ? " " : ""), one);
        struct cpl_strategy_choice again = parse(one);
        assert_true(again.strategy == list.choice[k].strategy);
        assert_memory_equal(&again.numbers, &list.choice[k].numbers, sizeof again.numbers);
    }
    assert_string_equal(text, expected);
    cpl_machine_free(&machine);
    cpl_pattern_free(&pattern);
}

static void test_candidates(void **state)
{
    (void)state;
    check_candidates(1, 1, "direct share:1 share balance");
    check_candidates(2, 1, "direct share:1 share balance");
    check_candidates(3, 3, "direct share:1 share balance");
    check_candidates(
        4, 4,
        "direct share:1 share vpt:2 vpt:2+klr grid:far:equal part-grid:product part-grid:2 "
        "balance:hops=2 balance");
    check_candidates(
        15, 5,
        "direct share:1 share vpt:2 vpt:3 vpt:2+klr vpt:3+klr grid:far:equal grid:equal "
        "grid:far:hypercube grid:hypercube grid:locality grid:far:equal:3 "
        "grid:equal:3 node node:spread node:4 node:partner node-grid:0:1:2 "
        "node-grid:1:1:1 node-grid:2:1:2 part-grid:product part-grid:2 part-grid:3 "
        "balance:hops=2 balance:hops=3 balance");
    check_candidates(16, 16,
                     "direct share:1 share vpt:2 vpt:3 vpt:4 vpt:2+klr vpt:3+klr vpt:4+klr "
                     "grid:far:equal grid:far:hypercube "
                     "grid:far:equal:3 part-grid:product part-grid:2 part-grid:3 part-grid:4 "
                     "balance:hops=2 balance:hops=3 balance");
}

/* Plans by direct are named apart where lanes carry a part of them; MPI has no lanes. */
static void test_lanes(void **state)
{
    (void)state;
    const struct cpl_pattern_entry entries[] = {MESSAGE(0, 1, 1), MESSAGE(0, 2, 1)};
    const struct cpl_strategy_choice direct = parse("direct"), node = parse("node");
    struct cpl_pattern pattern = make_pattern(4, entries, N_OF(entries));
    struct cpl_machine machine;
    struct cpl_metrics before, mpi;
    char text[CPL_STRATEGY_TEXT];
    assert_int_equal(cpl_machine_init(4, 2, &machine, NULL), CPL_OK);
    struct cpl_strategy_input input = {&pattern, &machine, 8, 1};
    assert_int_equal(cpl_strategy_measure_mpi(&input, &before, NULL), CPL_OK);
    assert_int_equal(before.mpi_max, 2);
    cpl_strategy_label(&direct, &machine, text);
    assert_string_equal(text, "direct");
    machine.lanes = true;
    assert_int_equal(cpl_strategy_measure_mpi(&input, &mpi, NULL), CPL_OK);
    assert_memory_equal(&mpi, &before, sizeof mpi);
    cpl_strategy_label(&direct, &machine, text);
    assert_string_equal(text, "direct by lanes");
    cpl_strategy_label(&node, &machine, text);
    assert_string_equal(text, "node");
    cpl_machine_free(&machine);
    cpl_pattern_free(&pattern);
    assert_int_equal(cpl_machine_init(4, 1, &machine, NULL), CPL_OK);
    machine.lanes = true;
    cpl_strategy_label(&direct, &machine, text);
    assert_string_equal(text, "direct"); /* no two ranks share a node */
    cpl_machine_free(&machine);
}

/* The whole list has room for the largest inputs. */
static void test_candidates_fit(void **state)
{
    (void)state;
    static const int32_t n_ranks[] = {512, 1000, 4096, 100000, 1 << 20, (1 << 24) - 3, 1 << 24};
    for (size_t k = 0; k < sizeof n_ranks / sizeof *n_ranks; k++) {
        struct cpl_strategy_list list;
        struct cpl_pattern pattern = {.n_ranks = n_ranks[k]};
        struct cpl_machine machine = {.n_ranks = n_ranks[k], .n_nodes = n_ranks[k] / 32};
        struct cpl_strategy_input input = {&pattern, &machine, 8, 1};
        int n_grids = 0;
        cpl_strategy_candidates(&input, &list);
        assert_true(list.n < CPL_MAX_CANDIDATES);
        for (size_t c = 0; c < list.n; c++)
            n_grids += strcmp(list.choice[c].strategy->name, "grid") == 0;
        assert_in_range(n_grids, 20, 30);
    }
}

/* --- what one strategy does */

/* Ranks 5, 9 and 13 of a 4 x 4 grid get the same item from 0 over 1, 5 and 13 another one each:
 * the first hop carries the item three times as plain volume, once as an item. */
static void test_items(void **state)
{
    (void)state;
    const struct cpl_pattern_entry plain[] = {MESSAGE(0, 5, 2), MESSAGE(0, 9, 1),
                                              MESSAGE(0, 13, 2)};
    const struct cpl_pattern_entry items[] = {CLASSED(0, 5, 1, 0), MESSAGE(0, 5, 1),
                                              CLASSED(0, 9, 1, 0), CLASSED(0, 13, 1, 0),
                                              MESSAGE(0, 13, 1)};
    struct cpl_pattern patterns[] = {make_pattern(16, plain, N_OF(plain)),
                                     make_pattern(16, items, N_OF(items))};
    const char *edges[] = {
        "1 0 -> 1: 0>5 0>9 0>13\n2 1 -> 5: 0>5\n2 1 -> 9: 0>9\n2 1 -> 13: 0>13\n",
        "1 0 -> 1: 0>5 0>5,9,13 0>13\n2 1 -> 5: 0>5 0>5,9,13\n2 1 -> 9: 0>5,9,13\n"
        "2 1 -> 13: 0>5,9,13 0>13\n"};
    const int64_t first_volume[] = {5, 3}, volume[] = {10, 8};
    struct cpl_machine machine;
    assert_int_equal(cpl_machine_init(16, 4, &machine, NULL), CPL_OK);
    for (int k = 0; k < 2; k++) {
        struct cpl_strategy_input input = {&patterns[k], &machine, 8, 1};
        struct cpl_strategy_choice vpt = parse("vpt:2");
        struct cpl_metrics metrics;
        struct cpl_plan plan;
        assert_int_equal(cpl_strategy_plan(&input, &vpt, &plan, NULL), CPL_OK);
        assert_int_equal(cpl_plan_check(&plan, &patterns[k], NULL), CPL_OK);
        assert_int_equal(cpl_plan_measure(&plan, &machine, 8, &metrics, NULL), CPL_OK);
        assert_edges(&plan, edges[k]);
        assert_int_equal(plan.edges[0].volume, first_volume[k]);
        assert_true(metrics.volume_factor * 5 > (double)volume[k] - 1e-9 &&
                    metrics.volume_factor * 5 < (double)volume[k] + 1e-9);
        assert_int_equal(metrics.sends_max, 3);
        assert_int_equal(metrics.hops_max, 2);
        cpl_plan_free(&plan);
        cpl_pattern_free(&patterns[k]);
    }
    cpl_machine_free(&machine);
}

static void check_unfit(const struct cpl_strategy_input *input, const char *text,
                        const char *expected)
{
    struct cpl_plan plan;
    struct cpl_error error = {""};
    struct cpl_strategy_choice choice = parse(text);
    assert_int_equal(cpl_strategy_plan(input, &choice, &plan, &error), CPL_ERR_UNFIT);
    assert_string_equal(error.text, expected);
    assert_int_equal(cpl_strategy_plan(input, &choice, &plan, NULL), CPL_ERR_UNFIT);
}

/* What the ranks do not fit is refused, with the remedy. */
static void test_unfit(void **state)
{
    (void)state;
    struct cpl_pattern pattern = make_pattern(8, NULL, 0);
    struct cpl_strategy_input input = {&pattern, NULL, 8, 1};
    check_unfit(&input, "vpt:4", "8 ranks fit 1 to 3 dimensions, not 4");
    check_unfit(&input, "grid:7", "a grid of 7 points does not hold 8 ranks; grid:4x2 fits");
    check_unfit(&input, "grid:far:2x3", "a grid of 6 points does not hold 8 ranks; grid:4x2 fits");
    check_unfit(&input, "grid:9x1",
                "a grid with 1 points in dimension 2 is not one for 8 ranks; grid:4x2 fits");
    check_unfit(&input, "grid:decrease:4",
                "8 ranks fit decrease shapes of 1 to 3 dimensions, not 4");
    cpl_pattern_free(&pattern);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),      cmocka_unit_test(test_wrong_names),
        cmocka_unit_test(test_candidates), cmocka_unit_test(test_candidates_fit),
        cmocka_unit_test(test_items),      cmocka_unit_test(test_unfit),
        cmocka_unit_test(test_lanes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
