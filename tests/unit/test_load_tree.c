/* Tests of the tournament tree (load_tree.h). */
#include "planner/share/load_tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MOST_RANKS 37

static int32_t naive_top(const int64_t *load, int32_t n, bool least)
{
    int32_t top = 0;
    for (int32_t i = 1; i < n; i++) {
        if (least ? load[i] < load[top] : load[i] > load[top])
            top = i;
    }
    return top;
}

static void test_ties_go_to_the_lowest_rank(void **state)
{
    (void)state;
    int64_t load[] = {4, 7, 4, 7, 1, 1};
    struct cpl_arena arena = CPL_ARENA_EMPTY;
    struct cpl_load_tree most;
    struct cpl_load_tree least;
    assert_int_equal(cpl_load_tree_init(&most, &arena, load, 6, false), CPL_OK);
    assert_int_equal(cpl_load_tree_init(&least, &arena, load, 6, true), CPL_OK);
    assert_int_equal(cpl_load_tree_top(&most), 1);
    assert_int_equal(cpl_load_tree_top(&least), 4);
    load[1] = 1;
    cpl_load_tree_update(&most, 1);
    cpl_load_tree_update(&least, 1);
    assert_int_equal(cpl_load_tree_top(&most), 3);
    assert_int_equal(cpl_load_tree_top(&least), 1);
    cpl_arena_free(&arena);
}

static void check_size(int32_t n, bool least)
{
    int64_t load[MOST_RANKS] = {0};
    uint32_t random = 1;
    struct cpl_arena arena = CPL_ARENA_EMPTY;
    struct cpl_load_tree tree;
    assert_int_equal(cpl_load_tree_init(&tree, &arena, load, n, least), CPL_OK);
    for (int step = 0; step < 300; step++) {
        assert_int_equal(cpl_load_tree_top(&tree), naive_top(load, n, least));
        random = random * 1664525U + 1013904223U;
        int32_t rank = (int32_t)((random >> 8) % (uint32_t)n);
        load[rank] = (random >> 20) % 5;
        cpl_load_tree_update(&tree, rank);
    }
    cpl_arena_free(&arena);
}

static void test_agrees_with_a_scan(void **state)
{
    (void)state;
    for (int32_t n = 1; n <= MOST_RANKS; n++) {
        check_size(n, false);
        check_size(n, true);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ties_go_to_the_lowest_rank),
        cmocka_unit_test(test_agrees_with_a_scan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
