/* Tests of parts and products (grid/parts.h, grid/product.h): examples by hand, grids of processes
 * under random numbers, and what must not be taken for one. */
#include "planner/grid/parts.h"
#include "planner/grid/product.h"
#include "planner/strategy.h"
#include "plans.h"
#include "random_pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define MOST_RANKS    512
#define MOST_MESSAGES (64 * MOST_RANKS)

/* Ranks 0 2 4 are joined, 1 3, and 5 is alone; nodes are 0 1, 2 3, 4 5 under random numbers. */
static void test_parts_by_hand(void **state)
{
    (void)state;
    const struct cpl_pattern_entry entries[] = {MESSAGE(4, 2, 1), MESSAGE(0, 4, 1),
                                                MESSAGE(3, 1, 1)};
    const int64_t node[] = {7, 8, 8, 7, 7, 8};
    const int32_t part[] = {0, 1, 0, 1, 0, 2}, place[] = {0, 1, 2, 0, 1, 0};
    struct cpl_pattern pattern = make_pattern(6, entries, N_OF(entries));
    struct cpl_machine machine;
    struct cpl_arena arena = CPL_ARENA_EMPTY;
    struct cpl_parts parts;
    assert_int_equal(cpl_machine_from_places(6, node, NULL, NULL, 0, &machine, NULL), CPL_OK);
    assert_int_equal(cpl_parts_find(&pattern, &machine, &arena, &parts), CPL_OK);
    assert_int_equal(parts.n_parts, 3);
    assert_memory_equal(parts.part, part, sizeof part);
    assert_memory_equal(parts.place, place, sizeof place);
    for (int32_t i = 0; i < 6; i++)
        assert_int_equal(parts.ranks[parts.first[part[i]] + place[i]], i);
    cpl_arena_free(&arena);
    cpl_machine_free(&machine);
    cpl_pattern_free(&pattern);
}

/* A grid of processes. */
struct shape {
    int32_t size[3]; /* 1: there is no such dimension */
    bool corners;    /* messages to all ranks around, not along one dimension only */
    bool rings;      /* dimensions are closed */
};

static int32_t size_of(const struct shape *shape)
{
    return shape->size[0] * shape->size[1] * shape->size[2];
}

/* The rank at an offset (0 to 26: -1, 0, 1 in each dimension) from rank i; -1: there is none, or no
 * message goes there. */
static int32_t neighbour(const struct shape *shape, int32_t i, int offset)
{
    int32_t rank = 0, stride = 1, n_moves = 0;
    for (int d = 0; d < 3; d++, offset /= 3) {
        int32_t size = shape->size[d], at = i % size + offset % 3 - 1;
        i /= size;
        n_moves += offset % 3 != 1;
        if (offset % 3 != 1 && size == 1)
            return -1;
        if (shape->rings)
            at = (at + size) % size;
        if (at < 0 || at >= size)
            return -1;
        rank += at * stride;
        stride *= size;
    }
    return n_moves == 0 || (n_moves > 1 && !shape->corners) ? -1 : rank;
}

static void shuffle(uint64_t *random, int32_t *number, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        number[i] = i;
    for (int32_t i = n - 1; i > 0; i--) {
        int32_t k = random_below(random, i + 1), kept = number[i];
        number[i] = number[k];
        number[k] = kept;
    }
}

/* Appends the messages of a grid of processes whose rank i has the number number[first + i]. */
static int64_t add_shape(const struct shape *shape, const int32_t *number, int32_t first,
                         struct cpl_pattern_entry *entries, int64_t n)
{
    for (int32_t i = 0; i < size_of(shape); i++)
        for (int offset = 0; offset < 27; offset++) {
            int32_t other = neighbour(shape, i, offset);
            if (other >= 0)
                entries[n++] =
                    (struct cpl_pattern_entry)MESSAGE(number[first + i], number[first + other], 1);
        }
    return n;
}

/* Whether part 0 is a product. Its points are a permutation, and a message changes one coordinate,
 * or several where there are corners. */
static bool find_product(const struct cpl_pattern *pattern, const struct cpl_machine *machine,
                         const struct shape *shape, struct cpl_grid *grid)
{
    struct cpl_arena arena = CPL_ARENA_EMPTY;
    struct cpl_neighbours neighbours;
    struct cpl_parts parts;
    bool found, seen[MOST_RANKS] = {false};
    assert_int_equal(cpl_parts_find(pattern, machine, &arena, &parts), CPL_OK);
    assert_int_equal(cpl_neighbours_find(pattern, &arena, &neighbours), CPL_OK);
    assert_int_equal(cpl_product_find(&neighbours, machine, &parts, 0, grid, &found), CPL_OK);
    for (int32_t i = 0; i < pattern->n_ranks && found; i++) {
        assert_false(seen[parts.place[i]]);
        seen[parts.place[i]] = true;
        assert_int_equal(parts.ranks[parts.place[i]], i);
        for (int64_t m = pattern->first[i]; m < pattern->first[i + 1] && !shape->corners; m++) {
            int32_t a = parts.place[i], b = parts.place[pattern->dst[m]], n_changed = 0;
            for (int32_t d = 0; d < grid->n_dims; d++)
                n_changed +=
                    a / grid->stride[d] % grid->size[d] != b / grid->stride[d] % grid->size[d];
            assert_int_equal(n_changed, 1);
        }
    }
    cpl_arena_free(&arena);
    return found;
}

static int compare(const void *a, const void *b)
{
    return *(const int32_t *)a - *(const int32_t *)b;
}

/* The machine on which the rank that had the number i is where rank i is on nodes of so many. */
static struct cpl_machine place_along(int32_t n_ranks, int32_t ranks_per_node,
                                      const int32_t *number)
{
    struct cpl_machine machine;
    int64_t node[MOST_RANKS];
    for (int32_t i = 0; i < n_ranks; i++)
        node[number[i]] = i / ranks_per_node;
    assert_int_equal(cpl_machine_from_places(n_ranks, node, NULL, NULL, 0, &machine, NULL), CPL_OK);
    return machine;
}

static void check_shape(const struct shape *shape, uint64_t seed)
{
    static struct cpl_pattern_entry entries[MOST_MESSAGES];
    int32_t number[MOST_RANKS] = {0}, n = size_of(shape), wanted[3], n_wanted = 0;
    uint64_t random = seed;
    struct cpl_grid grid;
    shuffle(&random, number, n);
    struct cpl_pattern pattern = make_pattern(n, entries, add_shape(shape, number, 0, entries, 0));
    struct cpl_machine machine = place_along(n, 10, number);
    for (int d = 0; d < 3; d++)
        if (shape->size[d] > 1)
            wanted[n_wanted++] = shape->size[d];
    if (!find_product(&pattern, &machine, shape, &grid))
        fail_msg("%d x %d x %d was not found, seed %d", shape->size[0], shape->size[1],
                 shape->size[2], (int)seed);
    qsort(wanted, (size_t)n_wanted, sizeof *wanted, compare);
    qsort(grid.size, (size_t)grid.n_dims, sizeof *grid.size, compare);
    assert_int_equal(grid.n_dims, n_wanted);
    for (int32_t d = 0; d < n_wanted; d++)
        assert_int_equal(grid.size[d], wanted[d]);
    cpl_machine_free(&machine);
    cpl_pattern_free(&pattern);
}

/* Stencils of 5, 7, 9 and 27 points and rings of five or more, all sizes from small on. */
static void test_products(void **state)
{
    (void)state;
    static const struct shape shapes[] = {
        {{2, 3, 1}, false, false}, {{3, 3, 1}, true, false},  {{5, 7, 1}, false, true},
        {{6, 5, 1}, true, true},   {{3, 4, 5}, false, false}, {{3, 4, 5}, true, false},
        {{8, 8, 8}, true, false},  {{8, 8, 8}, false, false}, {{5, 6, 7}, false, true},
        {{7, 6, 5}, true, true},   {{2, 2, 3}, false, false}, {{40, 2, 1}, false, false}};
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++)
        for (uint64_t seed = 0; seed < 3; seed++)
            check_shape(&shapes[k], seed);
}

/* All to all, a path, a ring, random patterns, and a grid of processes with one message too many or
 * a rank too few are no products. */
static void test_no_products(void **state)
{
    (void)state;
    static struct cpl_pattern_entry entries[MOST_MESSAGES];
    const struct shape path = {{30, 1, 1}, false, false}, ring = {{30, 1, 1}, false, true},
                       grid = {{6, 7, 1}, false, false}, all = {{1, 1, 1}, true, false};
    int32_t number[MOST_RANKS];
    for (int kind = 0; kind < 6; kind++) {
        uint64_t random = 5;
        struct cpl_grid found;
        int32_t n_ranks = kind == 4 ? 41 : kind == 3 ? 42 : 30;
        int64_t n = 0;
        shuffle(&random, number, 42);
        if (kind < 2)
            shuffle(&random, number, 30);
        if (kind < 2)
            n = add_shape(kind == 0 ? &path : &ring, number, 0, entries, 0);
        else if (kind == 3 || kind == 4)
            n = add_shape(&grid, number, 0, entries, 0);
        for (int32_t i = 0; i < 30 && kind == 2; i++)
            for (int32_t j = 0; j < 30; j++)
                entries[n++] = (struct cpl_pattern_entry)MESSAGE(i, j, 1);
        for (int32_t i = 0; i < 120 && kind == 5; i++)
            entries[n++] = (struct cpl_pattern_entry)MESSAGE(i % 30, random_below(&random, 30), 1);
        if (kind == 3)
            entries[n++] = (struct cpl_pattern_entry)MESSAGE(number[0], number[41], 1);
        int64_t n_kept = 0;
        for (int64_t m = 0; m < n; m++)
            if (entries[m].src < n_ranks && entries[m].dst < n_ranks)
                entries[n_kept++] = entries[m];
        struct cpl_pattern pattern = make_pattern(n_ranks, entries, n_kept);
        struct cpl_machine machine;
        assert_int_equal(cpl_machine_init(n_ranks, 8, &machine, NULL), CPL_OK);
        if (find_product(&pattern, &machine, &all, &found))
            fail_msg("kind %d is no product", kind);
        cpl_machine_free(&machine);
        cpl_pattern_free(&pattern);
    }
}

static struct cpl_metrics measure(const struct cpl_strategy_input *input, const char *name)
{
    struct cpl_strategy_choice choice;
    struct cpl_plan plan;
    struct cpl_metrics metrics;
    assert_int_equal(cpl_strategy_parse(name, &choice, NULL), CPL_OK);
    assert_int_equal(cpl_strategy_plan(input, &choice, &plan, NULL), CPL_OK);
    assert_int_equal(cpl_plan_check(&plan, input->pattern, NULL), CPL_OK);
    assert_int_equal(cpl_plan_measure(&plan, input->machine, input->unit_bytes, &metrics, NULL),
                     CPL_OK);
    cpl_plan_free(&plan);
    return metrics;
}

/* Two stencils of different sizes under random numbers: of 26 messages 6 are left. */
static void test_combining_along_dimensions(void **state)
{
    (void)state;
    static struct cpl_pattern_entry entries[MOST_MESSAGES];
    const struct shape one = {{5, 5, 5}, true, false}, other = {{4, 6, 3}, true, false};
    int32_t number[MOST_RANKS], n_ranks = size_of(&one) + size_of(&other);
    uint64_t random = 3;
    shuffle(&random, number, n_ranks);
    int64_t n = add_shape(&one, number, 0, entries, 0);
    n = add_shape(&other, number, size_of(&one), entries, n);
    struct cpl_pattern pattern = make_pattern(n_ranks, entries, n);
    struct cpl_machine machine = place_along(n_ranks, 20, number);
    const struct cpl_strategy_input input = {&pattern, &machine, 8, 10};
    assert_int_equal(measure(&input, "direct").sends_max, 26);
    assert_int_equal(measure(&input, "part-grid:product").sends_max, 6);
    assert_int_equal(measure(&input, "part-grid:product").recvs_max, 6);
    assert_true(measure(&input, "part-grid:3").sends_max > 6);
    cpl_machine_free(&machine);
    cpl_pattern_free(&pattern);
}

/* Eight all-to-alls of 16 ranks: the same plan whatever the numbers, and auto has no worse one;
 * with hops=2 a rank sends no more than in a grid of 4x4. */
static void test_scrambled(void **state)
{
    (void)state;
    static struct cpl_pattern_entry entries[MOST_MESSAGES];
    double first_us = 0, auto_us = 0;
    for (uint64_t seed = 0; seed < 5; seed++) {
        int32_t number[128];
        int64_t n = 0;
        uint64_t random = seed;
        shuffle(&random, number, 128);
        for (int32_t i = 0; i < 128; i++)
            for (int32_t j = i / 16 * 16; j < i / 16 * 16 + 16; j++)
                entries[n++] = (struct cpl_pattern_entry)MESSAGE(number[i], number[j], 1);
        struct cpl_pattern pattern = make_pattern(128, entries, n);
        struct cpl_machine machine = place_along(128, 8, number);
        const struct cpl_strategy_input input = {&pattern, &machine, 8, 100};
        struct cpl_strategy_choice choice;
        struct cpl_plan plan;
        double us = measure(&input, "part-grid:3").modelled_us, best_us;
        first_us = seed == 0 ? us : first_us;
        assert_true(us > 0.999 * first_us && us < 1.001 * first_us);
        assert_true(measure(&input, "balance:hops=2").sends_max <= 6);
        assert_int_equal(cpl_strategy_plan_auto(&input, &choice, &plan, NULL), CPL_OK);
        assert_int_equal(cpl_plan_chain_cost(&plan, &machine, 8, &best_us, NULL), CPL_OK);
        assert_true(best_us <= us);
        auto_us = seed == 0 ? best_us : auto_us;
        assert_true(best_us > 0.97 * auto_us && best_us < 1.03 * auto_us);
        cpl_plan_free(&plan);
        cpl_machine_free(&machine);
        cpl_pattern_free(&pattern);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_by_hand), cmocka_unit_test(test_products),
        cmocka_unit_test(test_no_products),   cmocka_unit_test(test_combining_along_dimensions),
        cmocka_unit_test(test_scrambled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
