/* Tests of a lane (shim/carry/lane.h): messages come in order and whole, a full lane takes no more,
 * and a slot is the writer's again only when its message has been taken; also where the counters
 * wrap around, and between two threads. */
#include "shim/carry/lane.h"

#include "random_pattern.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROOM = 300, HAMMERED = 200000 };

/* Both ends, after n messages. */
struct ends {
    struct cpl_lane writer, reader;
    unsigned char *shared;
};

static struct ends open_ends(uint32_t n)
{
    struct ends ends = {.shared = aligned_alloc(CPL_LANE_LINE, (size_t)cpl_lane_bytes(ROOM))};
    assert_non_null(ends.shared);
    memset(ends.shared, 0, (size_t)cpl_lane_bytes(ROOM));
    ends.writer = ends.reader = (struct cpl_lane){.shared = ends.shared, .room = ROOM, .n = n};
    ends.writer.n_taken = n;
    for (uint32_t k = 0; k < CPL_LANE_SLOTS && n >= CPL_LANE_SLOTS; k++) /* as so many left them */
        cpl_lane_slot(&ends.writer, n - 1 - k)->number = n - k;
    *(_Atomic uint32_t *)(void *)ends.shared = n;
    return ends;
}

/* What the k-th message is; its length is returned. */
static int64_t make_message(uint32_t k, unsigned char *to)
{
    uint64_t random = k;
    int64_t n = (int64_t)random_draw(&random, 4) == 0 ? (int64_t)random_draw(&random, ROOM + 1)
                                                      : (int64_t)(k % 9);
    for (int64_t b = 0; b < n; b++)
        to[b] = (unsigned char)(k * 7 + (uint32_t)b);
    return n;
}

static bool send(struct cpl_lane *writer, uint32_t k)
{
    unsigned char *slot = cpl_lane_next(writer);
    if (slot)
        cpl_lane_send(writer, make_message(k, slot));
    return slot;
}

/* Whether the next message is there; it must be the k-th. */
static bool sees(const struct cpl_lane *reader, uint32_t k)
{
    unsigned char expected[ROOM];
    int64_t bytes = -1;
    const unsigned char *message = cpl_lane_look(reader, &bytes);
    if (!message)
        return false;
    assert_int_equal(bytes, make_message(k, expected));
    assert_memory_equal(message, expected, (size_t)bytes);
    return true;
}

static void test_layout(void **state)
{
    (void)state;
    for (int64_t room = 0; room < 200; room++) {
        assert_int_equal(cpl_lane_stride(room) % CPL_LANE_LINE, 0);
        assert_true(cpl_lane_stride(room) >= room + (int64_t)sizeof(struct cpl_lane_slot));
        assert_true(cpl_lane_stride(room) < room + 2 * CPL_LANE_LINE);
        assert_int_equal(cpl_lane_bytes(room),
                         CPL_LANE_LINE + CPL_LANE_SLOTS * cpl_lane_stride(room));
    }
    struct ends ends = open_ends(0);
    unsigned char *end = ends.shared + cpl_lane_bytes(ROOM);
    for (uint32_t k = 0; k < 2 * CPL_LANE_SLOTS; k++) {
        unsigned char *slot = (unsigned char *)cpl_lane_slot(&ends.writer, k);
        assert_ptr_equal(slot, cpl_lane_slot(&ends.writer, k + CPL_LANE_SLOTS));
        assert_true(slot >= ends.shared + CPL_LANE_LINE);
        assert_true(slot + sizeof(struct cpl_lane_slot) + ROOM <= end);
    }
    free(ends.shared);
}

static void test_empty_and_full(void **state)
{
    (void)state;
    struct ends ends = open_ends(0);
    assert_false(sees(&ends.reader, 0));
    for (uint32_t k = 0; k < CPL_LANE_SLOTS; k++)
        assert_true(send(&ends.writer, k));
    for (int again = 0; again < 3; again++)
        assert_false(send(&ends.writer, 99));
    for (int again = 0; again < 3; again++)
        assert_true(sees(&ends.reader, 0)); /* looking takes nothing */
    assert_false(send(&ends.writer, 99));
    cpl_lane_take(&ends.reader);
    assert_true(send(&ends.writer, CPL_LANE_SLOTS));
    assert_false(send(&ends.writer, 99));
    for (uint32_t k = 1; k <= CPL_LANE_SLOTS; k++) {
        assert_true(sees(&ends.reader, k));
        cpl_lane_take(&ends.reader);
    }
    assert_false(sees(&ends.reader, 0));
    free(ends.shared);
}

/* What is being written is not yet seen. */
static void test_not_before_it_is_sent(void **state)
{
    (void)state;
    struct ends ends = open_ends(0);
    for (uint32_t k = 0; k < 6; k++) {
        unsigned char *slot = cpl_lane_next(&ends.writer);
        assert_non_null(slot);
        int64_t bytes = make_message(k, slot);
        assert_false(sees(&ends.reader, k));
        cpl_lane_send(&ends.writer, bytes);
        assert_true(sees(&ends.reader, k));
        cpl_lane_take(&ends.reader);
    }
    free(ends.shared);
}

/* Either end does what it can, in any order, from a number of messages on. */
static void run_at_random(uint32_t n, uint64_t random)
{
    struct ends ends = open_ends(n);
    uint32_t sent = n, taken = n;
    for (int step = 0; step < 300; step++) {
        if (random_below(&random, 2)) {
            bool done = send(&ends.writer, sent);
            assert_int_equal(done, sent - taken < CPL_LANE_SLOTS);
            sent += done;
        } else {
            bool seen = sees(&ends.reader, taken);
            assert_int_equal(seen, sent != taken);
            if (seen)
                cpl_lane_take(&ends.reader);
            taken += seen;
        }
    }
    assert_true(sent - n > 50);
    free(ends.shared);
}

static void test_random_turns(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 100; seed++)
        run_at_random(0, seed);
}

static void test_counters_wrap_around(void **state)
{
    (void)state;
    for (uint32_t before = 0; before < 40; before++)
        run_at_random(UINT32_MAX - before, before);
    for (uint32_t before = 0; before < 4; before++)
        run_at_random((uint32_t)INT32_MAX - before, before);
}

static void *write_all(void *context)
{
    struct cpl_lane *writer = context;
    uint32_t first = writer->n;
    while (writer->n - first < HAMMERED)
        if (!send(writer, writer->n))
            sched_yield();
    return NULL;
}

/* One thread at each end, as fast as they can. */
static void test_two_threads(void **state)
{
    (void)state;
    const uint32_t firsts[] = {0, UINT32_MAX - HAMMERED / 2};
    for (int k = 0; k < 2; k++) {
        struct ends ends = open_ends(firsts[k]);
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, write_all, &ends.writer), 0);
        while (ends.reader.n - firsts[k] < HAMMERED)
            if (sees(&ends.reader, ends.reader.n))
                cpl_lane_take(&ends.reader);
            else
                sched_yield();
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_false(sees(&ends.reader, 0));
        free(ends.shared);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_empty_and_full),
        cmocka_unit_test(test_not_before_it_is_sent),
        cmocka_unit_test(test_random_turns),
        cmocka_unit_test(test_counters_wrap_around),
        cmocka_unit_test(test_two_threads),
    };
    return cmocka_run_group_tests_name("lane", tests, NULL, NULL);
}
