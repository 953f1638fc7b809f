/* Tests of arena.h. */
#include "planner/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_memory_is_zeroed_and_aligned(void **state)
{
    (void)state;
    struct cpl_arena arena = CPL_ARENA_EMPTY;
    for (size_t size = 1; size < 300; size++) {
        unsigned char *bytes = cpl_arena_alloc(&arena, size, 1);
        assert_non_null(bytes);
        assert_int_equal((uintptr_t)bytes % _Alignof(max_align_t), 0);
        for (size_t i = 0; i < size; i++)
            assert_int_equal(bytes[i], 0);
        memset(bytes, 0xff, size);
    }
    cpl_arena_free(&arena);
}

/* Every block keeps its own pattern, across chunks and blocks larger than a chunk. */
static void test_blocks_do_not_overlap(void **state)
{
    (void)state;
    enum { N = 200 };
    struct cpl_arena arena = CPL_ARENA_EMPTY;
    unsigned char *block[N];
    size_t size[N];
    for (size_t i = 0; i < N; i++) {
        size[i] = i % 50 == 49 ? (size_t)5 << 20 : 1 + i * 37;
        block[i] = cpl_arena_alloc(&arena, size[i], 1);
        assert_non_null(block[i]);
        memset(block[i], (int)i, size[i]);
    }
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(block[i][0], i);
        assert_int_equal(block[i][size[i] / 2], i);
        assert_int_equal(block[i][size[i] - 1], i);
    }
    cpl_arena_free(&arena);
}

static void test_overflow_gives_null(void **state)
{
    (void)state;
    struct cpl_arena arena = CPL_ARENA_EMPTY;
    assert_null(cpl_arena_alloc(&arena, SIZE_MAX / 2, 3));
    assert_null(cpl_arena_alloc(&arena, SIZE_MAX, SIZE_MAX));
    assert_null(cpl_arena_alloc(&arena, SIZE_MAX - 3, 1));
    assert_null(cpl_arena_alloc(&arena, SIZE_MAX / 2 + 1, 2));
    assert_non_null(CPL_ARENA_ARRAY(&arena, int64_t, 5)); /* still usable */
    cpl_arena_free(&arena);
}

static void test_nothing_is_a_valid_pointer(void **state)
{
    (void)state;
    struct cpl_arena arena = CPL_ARENA_EMPTY;
    assert_non_null(cpl_arena_alloc(&arena, 0, 8));
    assert_non_null(cpl_arena_alloc(&arena, 8, 0));
    cpl_arena_free(&arena);
}

static void test_free_leaves_it_usable(void **state)
{
    (void)state;
    struct cpl_arena arena = CPL_ARENA_EMPTY;
    cpl_arena_free(&arena);
    for (int round = 0; round < 3; round++) {
        assert_non_null(CPL_ARENA_ARRAY(&arena, int32_t, 100000));
        cpl_arena_free(&arena);
        assert_null(arena.last);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_is_zeroed_and_aligned),
        cmocka_unit_test(test_blocks_do_not_overlap),
        cmocka_unit_test(test_overflow_gives_null),
        cmocka_unit_test(test_nothing_is_a_valid_pointer),
        cmocka_unit_test(test_free_leaves_it_usable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
