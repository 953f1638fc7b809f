/* Tests of placement (place.h): never worse than the ranks as they are, better where they were
 * placed badly on purpose, and on small cases the best of all placements. */
#include "planner/place.h"
#include "planner/strategy.h"
#include "plans.h"
#include "random_machine.h"
#include "random_pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define MOST_RANKS 256

static struct cpl_machine make_machine(int32_t n_ranks, const int64_t *node, const int32_t *socket)
{
    struct cpl_machine machine;
    assert_int_equal(cpl_machine_from_places(n_ranks, node, socket, NULL, 0, &machine, NULL),
                     CPL_OK);
    return machine;
}

/* Ranks dealt to the nodes in turn. */
static struct cpl_machine make_cyclic(int32_t n_ranks, int32_t n_nodes)
{
    int64_t node[MOST_RANKS];
    for (int32_t i = 0; i < n_ranks; i++)
        node[i] = i % n_nodes;
    return make_machine(n_ranks, node, NULL);
}

/* The machine as the placed ranks see it. */
static struct cpl_machine place_on(const struct cpl_machine *machine, const int32_t *place)
{
    int64_t node[MOST_RANKS];
    int32_t socket[MOST_RANKS];
    for (int32_t i = 0; i < machine->n_ranks; i++) {
        node[i] = machine->node[place[i]];
        socket[i] = machine->socket[place[i]];
    }
    struct cpl_machine placed = make_machine(machine->n_ranks, node, socket);
    placed.costs = machine->costs;
    placed.cores_per_node = machine->cores_per_node;
    return placed;
}

static double direct_us(const struct cpl_pattern *pattern, const struct cpl_machine *machine)
{
    struct cpl_strategy_choice direct;
    struct cpl_strategy_input input = {pattern, machine, 1, 0};
    struct cpl_plan plan;
    double us;
    assert_int_equal(cpl_strategy_parse("direct", &direct, NULL), CPL_OK);
    assert_int_equal(cpl_strategy_plan(&input, &direct, &plan, NULL), CPL_OK);
    assert_int_equal(cpl_plan_cost(&plan, machine, 1, &us, NULL), CPL_OK);
    cpl_plan_free(&plan);
    return us;
}

static int64_t volume_between_nodes(const struct cpl_pattern *pattern,
                                    const struct cpl_machine *machine)
{
    int64_t sum = 0;
    for (int32_t i = 0; i < pattern->n_ranks; i++)
        for (int64_t m = pattern->first[i]; m < pattern->first[i + 1]; m++)
            if (machine->node[i] != machine->node[pattern->dst[m]])
                sum += pattern->volume[m];
    return sum;
}

/* Places one exchange and checks all that holds for any placement: a permutation, figures that are
 * those of the placed machine, nothing worse. */
static struct cpl_place_gain place(const struct cpl_pattern *pattern,
                                   const struct cpl_machine *machine, int32_t *found)
{
    bool seen[MOST_RANKS] = {false};
    int32_t again[MOST_RANKS];
    struct cpl_place_gain gain, second;
    struct cpl_place_exchange exchange = {pattern, 1};
    assert_int_equal(cpl_place(&exchange, 1, machine, 1, NULL, found, &gain, NULL), CPL_OK);
    assert_int_equal(cpl_place(&exchange, 1, machine, 1, NULL, again, &second, NULL), CPL_OK);
    assert_memory_equal(found, again, (size_t)machine->n_ranks * sizeof *found);
    assert_int_equal(cpl_place_model(&exchange, 1, machine, 1, found, &second, NULL), CPL_OK);
    assert_true(second.changed == gain.changed && second.before_us == gain.before_us &&
                second.after_us == gain.after_us && second.after_links_us == gain.after_links_us);
    bool moved = false;
    for (int32_t i = 0; i < machine->n_ranks; i++) {
        assert_in_range(found[i], 0, machine->n_ranks - 1);
        assert_false(seen[found[i]]);
        seen[found[i]] = true;
        moved = moved || found[i] != i;
    }
    assert_int_equal(moved, gain.changed);
    struct cpl_machine placed = place_on(machine, found);
    assert_true(gain.before_us == direct_us(pattern, machine));
    assert_true(gain.after_us == direct_us(pattern, &placed));
    cpl_machine_free(&placed);
    assert_true(gain.after_us <= gain.before_us);
    if (gain.changed)
        assert_true(gain.after_us < gain.before_us || gain.after_links_us < gain.before_links_us);
    return gain;
}

static struct cpl_pattern make_ring(int32_t n)
{
    struct cpl_pattern_entry entries[2 * MOST_RANKS];
    for (int32_t i = 0; i < n; i++) {
        entries[2 * i] = (struct cpl_pattern_entry)MESSAGE(i, (i + 1) % n, 100);
        entries[2 * i + 1] = (struct cpl_pattern_entry)MESSAGE(i, (i + n - 1) % n, 100);
    }
    return make_pattern(n, entries, 2 * n);
}

/* A ring dealt to the nodes in turn: afterwards each node has a stretch of it. */
static void test_ring(void **state)
{
    (void)state;
    struct cpl_pattern pattern = make_ring(32);
    struct cpl_machine machine = make_cyclic(32, 4);
    int32_t found[32];
    struct cpl_place_gain gain = place(&pattern, &machine, found);
    assert_true(gain.changed);
    struct cpl_machine placed = place_on(&machine, found);
    assert_int_equal(volume_between_nodes(&pattern, &machine), 2 * 32 * 100);
    assert_int_equal(volume_between_nodes(&pattern, &placed), 2 * 4 * 100);
    /* A rank stays where it is when its process is on its node. */
    for (int32_t i = 0; i < 32; i++)
        if (machine.node[i] == machine.node[found[i]])
            assert_int_equal(found[i], i);
    cpl_machine_free(&placed);
    cpl_machine_free(&machine);
    cpl_pattern_free(&pattern);
}

/* A ring in stretches, one node, a single rank, and no messages: nothing is changed. */
static void test_left_alone(void **state)
{
    (void)state;
    struct cpl_pattern ring = make_ring(32), nothing = make_pattern(8, NULL, 0);
    struct cpl_pattern lonely = make_pattern(1, NULL, 0);
    struct cpl_machine blocks, cyclic = make_cyclic(8, 2), one, alone;
    int32_t found[32];
    assert_int_equal(cpl_machine_init(32, 8, &blocks, NULL), CPL_OK);
    assert_int_equal(cpl_machine_init(32, 32, &one, NULL), CPL_OK);
    assert_int_equal(cpl_machine_init(1, 1, &alone, NULL), CPL_OK);
    assert_false(place(&ring, &blocks, found).changed);
    assert_false(place(&ring, &one, found).changed);
    assert_false(place(&nothing, &cyclic, found).changed);
    assert_false(place(&lonely, &alone, found).changed);
    assert_true(cpl_place_is_even(&one));
    assert_true(cpl_place_is_even(&alone));
    assert_false(cpl_place_is_even(&blocks));
    cpl_machine_free(&blocks);
    cpl_machine_free(&cyclic);
    cpl_machine_free(&one);
    cpl_machine_free(&alone);
    cpl_pattern_free(&ring);
    cpl_pattern_free(&nothing);
    cpl_pattern_free(&lonely);
}

/* One node whose sockets differ in cost: pairs come to share a socket. */
static void test_sockets(void **state)
{
    (void)state;
    int64_t node[8] = {0};
    int32_t socket[8] = {0, 0, 0, 0, 1, 1, 1, 1}, found[8];
    struct cpl_machine machine = make_machine(8, node, socket);
    struct cpl_pattern pattern =
        make_pattern(8,
                     (const struct cpl_pattern_entry[]){MESSAGE(0, 4, 9), MESSAGE(1, 5, 9),
                                                        MESSAGE(2, 6, 9), MESSAGE(3, 7, 9)},
                     4);
    machine.costs.link[CPL_LINK_NODE] = machine.costs.link[CPL_LINK_SOCKET];
    assert_true(cpl_place_is_even(&machine));
    assert_false(place(&pattern, &machine, found).changed);
    machine.costs.link[CPL_LINK_NODE].latency_us *= 3;
    assert_false(cpl_place_is_even(&machine));
    assert_true(place(&pattern, &machine, found).changed);
    for (int32_t i = 0; i < 4; i++)
        assert_int_equal(socket[found[i]], socket[found[i + 4]]);
    cpl_machine_free(&machine);
    cpl_pattern_free(&pattern);
}

/* A grid in rows of 16 on nodes of 16: squares have half of the border. */
static void test_grid(void **state)
{
    (void)state;
    struct cpl_pattern_entry entries[4 * 256];
    struct cpl_machine machine;
    int32_t found[256], order[256];
    int64_t n = 0;
    for (int32_t i = 0; i < 256; i++) {
        int32_t x = i % 16, y = i / 16;
        int32_t others[4] = {y * 16 + (x + 1) % 16, y * 16 + (x + 15) % 16, (y + 1) % 16 * 16 + x,
                             (y + 15) % 16 * 16 + x};
        for (int k = 0; k < 4; k++)
            entries[n++] = (struct cpl_pattern_entry)MESSAGE(i, others[k], 1000);
    }
    struct cpl_pattern pattern = make_pattern(256, entries, n);
    assert_int_equal(cpl_machine_init(256, 16, &machine, NULL), CPL_OK);
    place(&pattern, &machine, found);
    cpl_place_order_grid(2, (const int32_t[]){16, 16}, order);
    struct cpl_place_gain gain;
    struct cpl_place_exchange exchange = {&pattern, 1};
    assert_int_equal(cpl_place(&exchange, 1, &machine, 1, order, found, &gain, NULL), CPL_OK);
    struct cpl_machine placed = place_on(&machine, found);
    int64_t before = volume_between_nodes(&pattern, &machine);
    int64_t after = volume_between_nodes(&pattern, &placed);
    assert_int_equal(before, 2 * 256 * 1000);
    assert_int_equal(after, before / 2);
    cpl_machine_free(&placed);
    cpl_machine_free(&machine);
    cpl_pattern_free(&pattern);
}

/* Any grid's order has every rank once, and its halves are halves of the grid. */
static void test_grid_order(void **state)
{
    (void)state;
    int32_t order[60];
    bool seen[60] = {false};
    cpl_place_order_grid(3, (const int32_t[]){3, 4, 5}, order);
    for (int k = 0; k < 60; k++) {
        assert_in_range(order[k], 0, 59);
        assert_false(seen[order[k]]);
        seen[order[k]] = true;
        assert_int_equal(order[k] % 5 < 2, k < 24);
    }
    cpl_place_order_grid(2, (const int32_t[]){2, 4}, order);
    assert_memory_equal(order, ((const int32_t[]){0, 4, 1, 5, 2, 6, 3, 7}), 8 * sizeof *order);
    cpl_place_order_grid(2, (const int32_t[]){1, 1}, order);
    assert_int_equal(order[0], 0);
}

/* What is called more often counts more: two rings that cannot both be near. */
static void test_calls(void **state)
{
    (void)state;
    struct cpl_pattern_entry near[4] = {MESSAGE(0, 1, 8), MESSAGE(1, 0, 8), MESSAGE(2, 3, 8),
                                        MESSAGE(3, 2, 8)};
    struct cpl_pattern_entry far[4] = {MESSAGE(0, 2, 8), MESSAGE(2, 0, 8), MESSAGE(1, 3, 8),
                                       MESSAGE(3, 1, 8)};
    struct cpl_pattern patterns[2] = {make_pattern(4, near, 4), make_pattern(4, far, 4)};
    struct cpl_machine machine;
    struct cpl_place_gain gain;
    int32_t found[4];
    assert_int_equal(cpl_machine_init(4, 2, &machine, NULL), CPL_OK);
    struct cpl_place_exchange exchanges[2] = {{&patterns[0], 10}, {&patterns[1], 9}};
    assert_int_equal(cpl_place(exchanges, 2, &machine, 1, NULL, found, &gain, NULL), CPL_OK);
    assert_false(gain.changed);
    exchanges[1].calls = 11;
    assert_int_equal(cpl_place(exchanges, 2, &machine, 1, NULL, found, &gain, NULL), CPL_OK);
    assert_true(gain.changed);
    assert_int_equal(found[0] / 2, found[2] / 2);
    assert_int_equal(found[1] / 2, found[3] / 2);
    assert_true(gain.after_us < gain.before_us);
    cpl_machine_free(&machine);
    cpl_pattern_free(&patterns[0]);
    cpl_pattern_free(&patterns[1]);
}

/* Random weighted graphs on random machines, with nodes of different sizes. */
static void test_random(void **state)
{
    (void)state;
    uint64_t random = 7;
    int n_changed = 0;
    for (int k = 0; k < 400; k++) {
        struct cpl_pattern_entry entries[200];
        int32_t n = 1 + random_below(&random, 40), found[40], socket[40];
        int64_t node[40], n_entries = random_below(&random, 200);
        for (int32_t i = 0; i < n; i++) {
            node[i] = random_below(&random, 1 + k % 6);
            socket[i] = random_below(&random, 2);
        }
        for (int64_t e = 0; e < n_entries; e++)
            entries[e] = (struct cpl_pattern_entry)MESSAGE(
                random_below(&random, n), random_below(&random, n), random_below(&random, 5000));
        struct cpl_pattern pattern = make_pattern(n, entries, n_entries);
        struct cpl_machine machine = make_machine(n, node, socket);
        if (k % 3 == 0)
            machine.costs.link[CPL_LINK_NODE].latency_us *= 2;
        if (k % 7 == 0)
            machine.costs.link[CPL_LINK_NETWORK].latency_us = 0.1; /* stranger than any machine */
        n_changed += place(&pattern, &machine, found).changed;
        cpl_machine_free(&machine);
        cpl_pattern_free(&pattern);
    }
    assert_true(n_changed > 200);
}

static void test_refused(void **state)
{
    (void)state;
    struct cpl_pattern pattern = make_pattern(4, NULL, 0);
    struct cpl_place_exchange exchange = {&pattern, 1};
    struct cpl_machine machine;
    struct cpl_place_gain gain;
    struct cpl_error error;
    int32_t found[4];
    assert_int_equal(cpl_machine_init(3, 2, &machine, NULL), CPL_OK);
    assert_int_equal(cpl_place(&exchange, 1, &machine, 1, NULL, found, &gain, &error), CPL_ERR_ARG);
    assert_string_equal(error.text, "an exchange of 4 ranks on a machine of 3");
    cpl_machine_free(&machine);
    assert_int_equal(cpl_machine_init(CPL_PLACE_RANKS + 1, 2, &machine, NULL), CPL_OK);
    assert_int_equal(cpl_place(&exchange, 1, &machine, 1, NULL, found, &gain, &error),
                     CPL_ERR_UNFIT);
    cpl_machine_free(&machine);
    cpl_pattern_free(&pattern);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ring),       cmocka_unit_test(test_left_alone),
        cmocka_unit_test(test_sockets),    cmocka_unit_test(test_grid),
        cmocka_unit_test(test_grid_order), cmocka_unit_test(test_calls),
        cmocka_unit_test(test_random),     cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests_name("place", tests, NULL, NULL);
}
