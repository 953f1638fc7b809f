/* Tests of everything that works by nodes: their ranks (node_ranks.h), the strategies node and
 * node-grid, and grid:locality, on small machines worked out by hand. test_strategy.c tests them on
 * any machine. */
#include "planner/grid/node_ranks.h"
#include "planner/plan.h"
#include "planner/strategy.h"
#include "plans.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* The machine whose rank i is on node node[i]. */
static struct cpl_machine make_machine(int32_t n_ranks, const int64_t *node)
{
    struct cpl_machine machine;
    assert_int_equal(cpl_machine_from_places(n_ranks, node, NULL, NULL, 0, &machine, NULL), CPL_OK);
    return machine;
}

static struct cpl_machine make_even_machine(int32_t n_ranks, int32_t ranks_per_node)
{
    struct cpl_machine machine;
    assert_int_equal(cpl_machine_init(n_ranks, ranks_per_node, &machine, NULL), CPL_OK);
    return machine;
}

static struct cpl_pattern make_all_to_all(int32_t n_ranks)
{
    struct cpl_pattern_entry entries[32 * 32];
    int64_t n = 0;
    assert_in_range(n_ranks, 1, 32);
    for (int32_t i = 0; i < n_ranks; i++)
        for (int32_t j = 0; j < n_ranks; j++)
            entries[n++] = (struct cpl_pattern_entry)MESSAGE(i, j, 1);
    return make_pattern(n_ranks, entries, n);
}

/* The plan of a strategy, which passed cpl_plan_check. */
static struct cpl_plan plan_by(const struct cpl_pattern *pattern, const struct cpl_machine *machine,
                               const char *strategy)
{
    struct cpl_strategy_choice choice;
    struct cpl_strategy_input input = {pattern, machine, 8, 1};
    struct cpl_plan plan;
    struct cpl_error error = {""};
    if (cpl_strategy_parse(strategy, &choice, &error) ||
        cpl_strategy_plan(&input, &choice, &plan, &error) || cpl_plan_check(&plan, pattern, &error))
        fail_msg("%s: %s", strategy, error.text);
    return plan;
}

/* Frees the machine too. */
static void check_edges(struct cpl_machine machine, const struct cpl_pattern_entry *entries,
                        int64_t n_entries, const char *strategy, const char *expected)
{
    struct cpl_pattern pattern = make_pattern(machine.n_ranks, entries, n_entries);
    struct cpl_plan plan = plan_by(&pattern, &machine, strategy);
    assert_edges(&plan, expected);
    cpl_plan_free(&plan);
    cpl_pattern_free(&pattern);
    cpl_machine_free(&machine);
}

static void test_node_ranks(void **state)
{
    (void)state;
    struct cpl_machine machine = make_machine(7, (const int64_t[]){5, 9, 5, 5, 9, 2, 9});
    struct cpl_arena arena = CPL_ARENA_EMPTY;
    struct cpl_node_ranks nodes;
    assert_int_equal(cpl_node_ranks_build(&machine, &arena, &nodes), CPL_OK);
    assert_int_equal(nodes.n_nodes, 3);
    assert_int_equal(nodes.largest, 3);
    assert_memory_equal(nodes.first, ((const int32_t[]){0, 3, 6, 7}), 4 * sizeof(int32_t));
    assert_memory_equal(nodes.rank, ((const int32_t[]){0, 2, 3, 1, 4, 6, 5}), 7 * sizeof(int32_t));
    assert_memory_equal(nodes.local, ((const int32_t[]){0, 0, 1, 2, 1, 0, 2}), 7 * sizeof(int32_t));
    assert_int_equal(cpl_node_rank_at(&nodes, 1, 2), 6);
    assert_int_equal(cpl_node_rank_at(&nodes, 1, 4), 4);
    assert_int_equal(cpl_node_rank_at(&nodes, 2, INT64_C(1) << 40), 5);
    cpl_arena_free(&arena);
    cpl_machine_free(&machine);
}

/* Blocks need no arrays, and say the same; a block that is larger than the first is none. */
static void test_blocks_of_ranks(void **state)
{
    (void)state;
    static const int64_t even[] = {4, 4, 4, 7, 7, 7, 1, 1}, uneven[] = {4, 4, 7, 7, 7, 1, 1, 1};
    for (int k = 0; k < 2; k++) {
        struct cpl_machine machine = make_machine(8, k ? uneven : even);
        struct cpl_arena arena = CPL_ARENA_EMPTY;
        struct cpl_node_ranks nodes;
        assert_int_equal(cpl_node_ranks_build(&machine, &arena, &nodes), CPL_OK);
        assert_int_equal(nodes.first == NULL, k == 0);
        assert_int_equal(nodes.n_nodes, 3);
        assert_int_equal(nodes.largest, 3);
        for (int32_t i = 0, local = 0; i < 8; i++) {
            local = i > 0 && machine.node[i] == machine.node[i - 1] ? local + 1 : 0;
            assert_int_equal(cpl_node_local(&nodes, i), local);
            assert_int_equal(cpl_node_rank_at(&nodes, machine.node[i], local), i);
        }
        assert_int_equal(cpl_node_size(&nodes, 0), k ? 2 : 3);
        assert_int_equal(cpl_node_size(&nodes, 2), k ? 3 : 2);
        cpl_arena_free(&arena);
        cpl_machine_free(&machine);
    }
}

/* Machines of blocks say what the same ones with arrays say. */
static void test_blocks(void **state)
{
    (void)state;
    for (int32_t n = 1; n <= 40; n++)
        for (int32_t per_node = 1; per_node <= n + 1; per_node++)
            for (int32_t n_sockets = 1; n_sockets <= 3; n_sockets++) {
                const struct cpl_node_shape shape = {n_sockets, 1, 8};
                struct cpl_machine machine, blocks;
                assert_int_equal(cpl_machine_init(n, per_node, &machine, NULL), CPL_OK);
                cpl_machine_apply_shape(&machine, &shape);
                assert_int_equal(cpl_machine_blocks(n, per_node, &shape, &blocks, NULL), CPL_OK);
                assert_int_equal(blocks.n_nodes, machine.n_nodes);
                assert_int_equal(blocks.cores_per_node, machine.cores_per_node);
                for (int32_t i = 0; i < n; i++) {
                    assert_int_equal(cpl_machine_node(&blocks, i), machine.node[i]);
                    assert_int_equal(cpl_machine_socket(&blocks, i), machine.socket[i]);
                }
                cpl_machine_free(&blocks);
                cpl_machine_free(&machine);
            }
    struct cpl_error error;
    struct cpl_machine none;
    assert_int_equal(cpl_machine_blocks(4, 0, NULL, &none, &error), CPL_ERR_ARG);
}

/* Two nodes of two ranks, all to all: ranks 0 and 2 are the leaders. */
static void test_two_nodes(void **state)
{
    (void)state;
    struct cpl_machine machine = make_even_machine(4, 2);
    struct cpl_pattern pattern = make_all_to_all(4);
    struct cpl_plan plan = plan_by(&pattern, &machine, "node");
    assert_edges(&plan, "1 1 -> 0: 1>2 1>3\n"
                        "1 3 -> 2: 3>0 3>1\n"
                        "2 0 -> 2: 0>2 0>3 1>2 1>3\n"
                        "2 2 -> 0: 2>0 2>1 3>0 3>1\n"
                        "3 0 -> 1: 0>1 2>1 3>1\n"
                        "3 1 -> 0: 1>0\n"
                        "3 2 -> 3: 0>3 1>3 2>3\n"
                        "3 3 -> 2: 3>2\n");
    cpl_plan_free(&plan);
    plan = plan_by(&pattern, &machine, "node:partner");
    assert_edges(&plan, "1 0 -> 2: 0>2 0>3\n"
                        "1 1 -> 3: 1>2 1>3\n"
                        "1 2 -> 0: 2>0 2>1\n"
                        "1 3 -> 1: 3>0 3>1\n"
                        "2 0 -> 1: 0>1 2>1\n"
                        "2 1 -> 0: 1>0 3>0\n"
                        "2 2 -> 3: 0>3 2>3\n"
                        "2 3 -> 2: 1>2 3>2\n");
    cpl_plan_free(&plan);
    cpl_pattern_free(&pattern);
    cpl_machine_free(&machine);
}

/* Ranks 0, 2, 3 on one node, 1 alone, 4 and 5 on a third. Node 0 deals node 1 to rank 0 and node 2
 * to rank 2; node 2 deals node 0 to rank 4 and node 1 to rank 5. */
static void test_scattered_ranks(void **state)
{
    (void)state;
    static const int64_t node[] = {7, 3, 7, 7, 5, 5};
    static const struct cpl_pattern_entry entries[] = {MESSAGE(3, 5, 1), MESSAGE(3, 1, 1),
                                                       MESSAGE(1, 3, 1), MESSAGE(2, 0, 1)};
    check_edges(make_machine(6, node), entries, N_OF(entries), "node",
                "1 3 -> 0: 3>1\n"
                "1 3 -> 2: 3>5\n"
                "2 0 -> 1: 3>1\n"
                "2 1 -> 0: 1>3\n"
                "2 2 -> 4: 3>5\n"
                "3 0 -> 3: 1>3\n"
                "3 2 -> 0: 2>0\n"
                "3 4 -> 5: 3>5\n");
    check_edges(make_machine(6, node), entries, N_OF(entries), "node:partner",
                "1 1 -> 0: 1>3\n"
                "1 3 -> 4: 3>5\n"
                "1 3 -> 1: 3>1\n"
                "2 0 -> 3: 1>3\n"
                "2 2 -> 0: 2>0\n"
                "2 4 -> 5: 3>5\n");
}

struct network_load {
    int64_t edges;
    int32_t sends_max, recvs_max; /* of a rank */
};

/* What an all-to-all by the strategy sends between nodes. Frees the machine too. */
static struct network_load load_of(struct cpl_machine machine, const char *strategy)
{
    int32_t sends[32] = {0}, recvs[32] = {0};
    struct network_load load = {0, 0, 0};
    struct cpl_pattern pattern = make_all_to_all(machine.n_ranks);
    struct cpl_plan plan = plan_by(&pattern, &machine, strategy);
    for (int64_t e = 0; e < plan.n_edges; e++) {
        const struct cpl_edge *edge = &plan.edges[e];
        if (machine.node[edge->from] == machine.node[edge->to])
            continue;
        load.edges++;
        if (++sends[edge->from] > load.sends_max)
            load.sends_max = sends[edge->from];
        if (++recvs[edge->to] > load.recvs_max)
            load.recvs_max = recvs[edge->to];
    }
    cpl_plan_free(&plan);
    cpl_pattern_free(&pattern);
    cpl_machine_free(&machine);
    return load;
}

static void check_load(struct network_load load, int64_t edges, int32_t sends_max,
                       int32_t recvs_max)
{
    assert_int_equal(load.edges, edges);
    assert_int_equal(load.sends_max, sends_max);
    assert_int_equal(load.recvs_max, recvs_max);
}

/* The combined messages between nodes, and that the ranks of a node have equally many. */
static void test_leaders(void **state)
{
    (void)state;
    check_load(load_of(make_even_machine(16, 4), "node"), 12, 1, 1);
    check_load(load_of(make_even_machine(15, 3), "node"), 20, 2, 2);
    check_load(load_of(make_even_machine(16, 4), "node:2"), 24, 2, 2);
    check_load(load_of(make_even_machine(16, 8), "node"), 2, 1, 1);
    check_load(load_of(make_even_machine(16, 8), "node:3"), 6, 1, 1);
    check_load(load_of(make_even_machine(16, 8), "node:spread"), 16, 1, 1);
    check_load(load_of(make_even_machine(24, 8), "node:spread"), 24, 1, 1);
    check_load(load_of(make_even_machine(16, 8), "node:100"), 16, 1, 1);
    check_load(load_of(make_even_machine(16, 4), "node:partner"), 48, 3, 3);
    check_load(load_of(make_even_machine(16, 4), "node-grid:1:1:1"), 12, 1, 1);
    check_load(load_of(make_machine(7, (const int64_t[]){1, 1, 2, 1, 1, 2, 1}), "node:4"), 4, 1, 1);
}

/* Nothing to combine: one node, or one rank a node. */
static void test_nothing_to_combine(void **state)
{
    (void)state;
    static const char *const strategies[] = {"node",         "node:2",          "node:spread",
                                             "node:partner", "node-grid:1:1:1", "node-grid:0:1:1"};
    struct cpl_pattern pattern = make_all_to_all(6);
    for (int32_t per_node = 1; per_node <= 6; per_node += 5)
        for (size_t k = 0; k < sizeof strategies / sizeof *strategies; k++) {
            struct cpl_machine machine = make_even_machine(6, per_node);
            struct cpl_plan direct = plan_by(&pattern, &machine, "direct");
            struct cpl_plan plan = plan_by(&pattern, &machine, strategies[k]);
            assert_true(plan.fingerprint == direct.fingerprint);
            cpl_plan_free(&plan);
            cpl_plan_free(&direct);
            cpl_machine_free(&machine);
        }
    cpl_pattern_free(&pattern);
}

/* Four nodes of two ranks, as points of 2 x 2. */
static void test_node_grid(void **state)
{
    (void)state;
    static const struct cpl_pattern_entry entries[] = {MESSAGE(1, 6, 1), MESSAGE(5, 4, 1)};
    check_edges(make_even_machine(8, 2), entries, N_OF(entries), "node-grid:0:2:1",
                "1 1 -> 3: 1>6\n"
                "2 3 -> 7: 1>6\n"
                "3 5 -> 4: 5>4\n"
                "3 7 -> 6: 1>6\n");
    check_edges(make_even_machine(8, 2), entries, N_OF(entries), "node-grid:1:1:1",
                "1 1 -> 0: 1>6\n"
                "2 0 -> 6: 1>6\n"
                "3 5 -> 4: 5>4\n");
}

/* Nodes of 8, 4 and 1 ranks: three dimensions scatter in the first, two in the second, the rest is
 * rested. */
static void test_node_grid_of_uneven_nodes(void **state)
{
    (void)state;
    static const int64_t node[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2};
    static const struct cpl_pattern_entry entries[] = {MESSAGE(12, 7, 1), MESSAGE(12, 11, 1),
                                                       MESSAGE(6, 9, 1)};
    check_edges(make_machine(13, node), entries, N_OF(entries), "node-grid:0:1:3",
                "1 6 -> 10: 6>9\n"
                "1 12 -> 0: 12>7\n"
                "1 12 -> 8: 12>11\n"
                "2 0 -> 1: 12>7\n"
                "2 8 -> 9: 12>11\n"
                "2 10 -> 11: 6>9\n"
                "3 1 -> 3: 12>7\n"
                "3 9 -> 11: 12>11\n"
                "3 11 -> 9: 6>9\n"
                "4 3 -> 7: 12>7\n");
}

/* Nodes {0, 1, 2}, {3}, {4, 5}: three points of a hypercube of four. The way from node 2 to node 1
 * would lead over the missing one; node 1 itself stands in. */
static void test_locality(void **state)
{
    (void)state;
    static const int64_t node[] = {0, 0, 0, 1, 2, 2};
    static const struct cpl_pattern_entry entries[] = {MESSAGE(2, 5, 1), MESSAGE(5, 3, 1),
                                                       MESSAGE(3, 5, 1), MESSAGE(0, 2, 1)};
    check_edges(make_machine(6, node), entries, N_OF(entries), "grid:locality",
                "1 3 -> 0: 3>5\n"
                "1 5 -> 3: 5>3\n"
                "2 0 -> 4: 3>5\n"
                "2 2 -> 4: 2>5\n"
                "3 0 -> 2: 0>2\n"
                "3 4 -> 5: 2>5 3>5\n");
}

static void check_unfit(struct cpl_machine machine, const char *strategy, const char *expected)
{
    struct cpl_pattern pattern = make_all_to_all(machine.n_ranks);
    struct cpl_strategy_input input = {&pattern, &machine, 8, 1};
    struct cpl_strategy_choice choice;
    struct cpl_plan plan;
    struct cpl_error error = {""};
    assert_int_equal(cpl_strategy_parse(strategy, &choice, NULL), CPL_OK);
    assert_int_equal(cpl_strategy_plan(&input, &choice, &plan, &error), CPL_ERR_UNFIT);
    assert_string_equal(error.text, expected);
    cpl_pattern_free(&pattern);
    cpl_machine_free(&machine);
}

static void test_unfit(void **state)
{
    (void)state;
    check_unfit(make_even_machine(16, 4), "node-grid:1:3:1",
                "4 nodes fit 1 to 2 dimensions between, not 3");
    check_unfit(make_even_machine(16, 4), "node-grid:3:1:1",
                "nodes of 4 ranks fit 1 to 2 dimensions inside, not 3");
    check_unfit(make_even_machine(16, 4), "node-grid:0:1:4",
                "nodes of 4 ranks fit 1 to 2 dimensions inside, not 4");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_node_ranks),
        cmocka_unit_test(test_blocks_of_ranks),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_two_nodes),
        cmocka_unit_test(test_scattered_ranks),
        cmocka_unit_test(test_leaders),
        cmocka_unit_test(test_nothing_to_combine),
        cmocka_unit_test(test_node_grid),
        cmocka_unit_test(test_node_grid_of_uneven_nodes),
        cmocka_unit_test(test_locality),
        cmocka_unit_test(test_unfit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
