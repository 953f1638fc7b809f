/* Tests of combined messages (shim/carry/combined.h): several ranks in one process exchange by
 * random plans over a network with random delays, with lanes inside nodes or without. Every segment
 * arrives once, at its destination, with its payload: by the plan's combined messages alone when
 * all ranks do as planned, and by other messages when they do not. */
#include "shim/carry/combined.h"

#include "mock_lanes.h"
#include "mock_mpi.h"
#include "plans.h"
#include "random_pattern.h"
#include "shim/state/context.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_RANKS = 12, MOST_EXCHANGES = 40 };

struct cpl_context cpl_context;

struct machine;

struct rank {
    struct machine *machine;
    struct cpl_combined combined;
    int plan;
    int n_sent[MOST_RANKS]; /* segments to each */
};

struct machine {
    uint64_t random;
    struct cpl_pattern pattern;
    struct cpl_plan plan;
    struct rank rank[MOST_RANKS];
    bool *came[MOST_RANKS][MOST_RANKS]; /* by source, destination, number */
    int64_t n_missing;
};

/* What segment `number` of a pair carries: its length and bytes are told by the three numbers. */
static uint32_t make_payload(int source, int dest, uint32_t number, unsigned char *to)
{
    uint64_t random = (uint64_t)source << 40 | (uint64_t)dest << 20 | number;
    uint64_t kind = random_draw(&random, 8);
    uint32_t n = kind == 0 ? 0 : (uint32_t)random_draw(&random, kind == 1 ? 9000 : 40);
    for (uint32_t k = 0; k < n; k++)
        to[k] = (unsigned char)random_draw(&random, 256);
    return n;
}

static void deliver(void *context, const struct cpl_segment *segment, const unsigned char *payload)
{
    static unsigned char expected[9000];
    struct rank *rank = context;
    struct machine *m = rank->machine;
    assert_int_equal(segment->dest, rank->combined.rank);
    assert_int_equal(segment->tag, 7);
    assert_int_equal(segment->bytes, segment->payload_bytes);
    assert_int_equal(make_payload(segment->source, segment->dest, segment->number, expected),
                     segment->payload_bytes);
    assert_memory_equal(payload, expected, segment->payload_bytes);
    bool *came = &m->came[segment->source][segment->dest][segment->number];
    assert_false(*came);
    *came = true;
    m->n_missing--;
}

static void add_plan(struct rank *rank, struct cpl_slicer *slicer, int r)
{
    struct cpl_error error = {""};
    int32_t n_words;
    assert_int_equal(cpl_slicer_words(slicer, r, &n_words, &error), CPL_OK);
    int32_t *words = malloc((size_t)n_words * sizeof *words);
    assert_non_null(words);
    cpl_slicer_extract(slicer, r, words);
    rank->plan = cpl_combined_add_plan(&rank->combined, words, n_words);
    assert_int_equal(rank->plan, 0);
}

/* Ranks of the machine's pattern and plan. */
static void open_ranks(struct machine *m, uint64_t seed, int ranks_per_node)
{
    struct cpl_slicer slicer;
    struct cpl_error error = {""};
    assert_int_equal(cpl_slicer_init(&slicer, &m->plan, &m->pattern, &error), CPL_OK);
    mock_begin(m->pattern.n_ranks, seed);
    mock_lanes_begin(ranks_per_node);
    cpl_context.machine.shares_cores = seed % 2;
    for (int r = 0; r < m->pattern.n_ranks; r++) {
        struct rank *rank = &m->rank[r];
        rank->machine = m;
        rank->combined.deliver = deliver;
        rank->combined.context = rank;
        assert_true(cpl_combined_init(&rank->combined, mock_comm(r), 1e-3));
        assert_int_equal(rank->combined.rank, r);
        add_plan(rank, &slicer, r);
        for (int d = 0; d < MOST_RANKS; d++) {
            m->came[r][d] = calloc(4 * MOST_EXCHANGES, sizeof(bool));
            assert_non_null(m->came[r][d]);
        }
        cpl_combined_open_lanes(&rank->combined, mock_comm(r), true);
    }
    cpl_slicer_free(&slicer);
}

/* Ranks of a random pattern and plan. */
static struct machine *begin(uint64_t seed, int ranks_per_node)
{
    struct machine *m = calloc(1, sizeof *m);
    assert_non_null(m);
    m->random = seed;
    m->pattern = random_pattern_undivided(seed, MOST_RANKS);
    m->pattern.payload_class = NULL; /* messages share nothing */
    m->plan = make_random_plan(&m->pattern, 1 + random_below(&m->random, 3), seed);
    open_ranks(m, seed, ranks_per_node);
    return m;
}

static int per_node(uint64_t seed)
{
    return (int)(seed / 2 % 4) * 3;
}

/* Combined messages that have been sent, by lanes and by MPI. */
static int64_t n_rides(const struct machine *m)
{
    int64_t n = 0;
    for (int r = 0; r < m->pattern.n_ranks; r++)
        n += m->rank[r].combined.sent;
    return n;
}

/* Returns how many combined messages went by lanes. */
static int64_t end(struct machine *m)
{
    int64_t sent = n_rides(m), received = 0, by_lanes = sent - mock_n_sent();
    for (int r = 0; r < m->pattern.n_ranks; r++) {
        assert_int_equal(m->rank[r].combined.n_holding, 0);
        received += m->rank[r].combined.received;
        cpl_combined_free(&m->rank[r].combined);
        for (int d = 0; d < MOST_RANKS; d++)
            free(m->came[r][d]);
    }
    assert_int_equal(received, sent);
    if (mock_lanes_end() == 0)
        assert_int_equal(by_lanes, 0);
    mock_end();
    cpl_plan_free(&m->plan);
    cpl_pattern_free(&m->pattern);
    free(m);
    return by_lanes;
}

static struct cpl_segment make_segment(struct machine *m, int source, int dest, unsigned char *to)
{
    uint32_t number = (uint32_t)m->rank[source].n_sent[dest]++, n;
    assert_in_range(number, 0, 4 * MOST_EXCHANGES - 1);
    n = make_payload(source, dest, number, to);
    m->n_missing++;
    return (struct cpl_segment){.source = source,
                                .dest = dest,
                                .tag = 7,
                                .number = number,
                                .slot = CPL_NO_SLOT,
                                .payload_bytes = n,
                                .bytes = n};
}

/* Puts the k-th message of a rank, from memory or as from a program's buffer. */
static void put(struct machine *m, int r, int32_t k)
{
    static unsigned char payload[9000];
    struct rank *rank = &m->rank[r];
    struct cpl_segment segment =
        make_segment(m, r, m->pattern.dst[m->pattern.first[r] + k], payload);
    struct cpl_span span = mock_span(payload, (int)segment.payload_bytes);
    assert_int_equal(cpl_combined_put(&rank->combined, rank->plan, k, &segment, payload,
                                      random_below(&m->random, 2) ? &span : NULL,
                                      random_below(&m->random, 2)),
                     MPI_SUCCESS);
}

static int32_t n_messages(const struct machine *m, int r)
{
    return (int32_t)(m->pattern.first[r + 1] - m->pattern.first[r]);
}

static void send_planned(struct machine *m, int r, int32_t n)
{
    struct rank *rank = &m->rank[r];
    bool all = n == n_messages(m, r);
    if (n_messages(m, r) == 0)
        return;
    cpl_combined_begin(&rank->combined, rank->plan);
    for (int32_t k = 0; k < n; k++)
        put(m, r, k);
    if (all)
        cpl_combined_end(&rank->combined, rank->plan);
    else
        cpl_combined_abandon(&rank->combined, rank->plan);
}

/* Messages of the plan's pairs without the plan, as they lie in memory. */
static void send_straight(struct machine *m, int r, int32_t from)
{
    static unsigned char memory[9064];
    for (int32_t k = from; k < n_messages(m, r); k++) {
        int dest = m->pattern.dst[m->pattern.first[r] + k];
        memset(memory, 0, sizeof memory);
        struct cpl_segment segment = make_segment(m, r, dest, memory + sizeof segment);
        memcpy(memory, &segment, sizeof segment);
        cpl_combined_send(&m->rank[r].combined, memory, cpl_segment_bytes(&segment));
    }
}

static void send_all_planned(struct machine *m)
{
    for (int r = 0; r < m->pattern.n_ranks; r++)
        send_planned(m, r, n_messages(m, r));
}

static void poll_any(struct machine *m)
{
    cpl_combined_poll(&m->rank[random_below(&m->random, m->pattern.n_ranks)].combined);
}

/* Until everything has arrived; not for ever. */
static void poll_all(struct machine *m)
{
    for (int64_t k = 0; m->n_missing > 0; k++) {
        assert_in_range(k, 0, 1000000);
        poll_any(m);
    }
}

/* Combined messages without segments may still be under way. */
static void drain(struct machine *m)
{
    for (int64_t k = 0, sent = 0, received = -1; sent != received; k++) {
        assert_in_range(k, 0, 1000000);
        for (int r = 0; r < m->pattern.n_ranks; r++)
            cpl_combined_release(&m->rank[r].combined, true);
        poll_any(m);
        sent = received = 0;
        for (int r = 0; r < m->pattern.n_ranks; r++) {
            sent += m->rank[r].combined.sent;
            received += m->rank[r].combined.received;
        }
    }
}

/* Those that are not held. */
static int n_buffers(const struct cpl_send_buffers *buffers)
{
    int n = buffers->n_sending;
    for (const struct cpl_send_buffer *spare = buffers->spare; spare; spare = spare->next)
        n++;
    return n;
}

static void sum_up(const struct machine *m, int64_t *in_time, int64_t *late, int *n_made)
{
    *in_time = *late = 0;
    *n_made = 0;
    for (int r = 0; r < m->pattern.n_ranks; r++) {
        const struct cpl_combined_counts count =
            cpl_combined_counts(&m->rank[r].combined, m->rank[r].plan);
        *in_time += count.sent - count.late;
        *late += count.late;
        *n_made += n_buffers(&m->rank[r].combined.buffers);
    }
}

/* As planned: no edge leaves late, however long combined messages are under way; and buffers are
 * used again, so that there are not more than may be under way or held at a time. */
static void check_as_planned(int ranks_per_node)
{
    int64_t most_sent = 0, in_time, late, by_lanes = 0, all = 0;
    int n_made;
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct machine *m = begin(seed, ranks_per_node);
        for (int x = 0; x < MOST_EXCHANGES; x++) {
            send_all_planned(m);
            poll_all(m);
            drain(m);
        }
        sum_up(m, &in_time, &late, &n_made);
        assert_int_equal(late, 0);
        for (int r = 0; r < m->pattern.n_ranks; r++) {
            const struct cpl_combined *combined = &m->rank[r].combined;
            assert_true(n_buffers(&combined->buffers) <= 100);
            most_sent = combined->sent > most_sent ? combined->sent : most_sent;
        }
        all += n_rides(m);
        by_lanes += end(m);
    }
    assert_true(most_sent > 400);
    if (ranks_per_node > 0)
        assert_true(by_lanes > all / 4 && by_lanes < all);
}

/* MPI is asked about many sends in one call, as each call makes all of it go on. */
static void test_taking_back(void **state)
{
    enum { N = 320 };
    struct cpl_send_buffers buffers = {0};
    (void)state;
    mock_begin(2, 1);
    for (int k = 0; k < N; k++)
        cpl_send_buffers_send(&buffers, cpl_send_buffers_take(&buffers, 8, 8), 1, 1, mock_comm(0));
    assert_true(n_buffers(&buffers) < N / 2);
    assert_true(mock_n_tests() < N / 2);
    cpl_send_buffers_free(&buffers);
    mock_discard();
    mock_end();
}

static void test_as_planned(void **state)
{
    (void)state;
    check_as_planned(0);
}

static void test_with_lanes(void **state)
{
    (void)state;
    check_as_planned(4);
    check_as_planned(MOST_RANKS);
}

/* Short messages, so that no combined message is full: combined messages are counted. */
static void test_combined_are_the_plan(void **state)
{
    (void)state;
    int n_checked = 0;
    for (uint64_t seed = 100; seed < 160; seed++) {
        struct machine *m = begin(seed, per_node(seed));
        if (m->pattern.n_messages > 40) { /* might fill one */
            end(m);
            continue;
        }
        for (int x = 0; x < 3; x++) {
            int64_t before = n_rides(m);
            send_all_planned(m);
            poll_all(m);
            drain(m);
            assert_int_equal(n_rides(m) - before, m->plan.n_edges);
        }
        n_checked += m->plan.n_edges > 0 && m->plan.n_edges < m->pattern.n_messages;
        end(m);
    }
    assert_true(n_checked > 5); /* in which something was combined */
}

/* Ranks run ahead of each other, stay away, break off, send without the plan. */
static void test_deviations(void **state)
{
    (void)state;
    int64_t all_in_time = 0, all_late = 0, in_time, late;
    int n_made;
    for (uint64_t seed = 200; seed < 320; seed++) {
        struct machine *m = begin(seed, per_node(seed));
        double now = 1;
        for (int x = 0; x < MOST_EXCHANGES; x++) {
            for (int r = 0; r < m->pattern.n_ranks; r++) {
                int what = random_below(&m->random, 12);
                int32_t n = n_messages(m, r);
                int32_t part = n > 0 ? random_below(&m->random, n) : 0;
                if (what == 0)
                    continue; /* sends nothing */
                if (what == 1) {
                    send_straight(m, r, 0);
                } else if (what == 2) {
                    send_planned(m, r, part);
                    send_straight(m, r, part);
                } else {
                    send_planned(m, r, n);
                }
                for (int k = random_below(&m->random, 4); k > 0; k--)
                    poll_any(m);
                now += 1e-4 * random_below(&m->random, 4);
                mock_set_time(now);
            }
        }
        for (int k = 0; k < 1000000 && m->n_missing > 0; k++) {
            mock_set_time(now += 1e-5);
            poll_any(m);
        }
        assert_int_equal(m->n_missing, 0); /* the hold time alone lets all arrive */
        drain(m);
        sum_up(m, &in_time, &late, &n_made);
        all_in_time += in_time;
        all_late += late;
        end(m);
    }
    assert_true(all_in_time > 0 && all_late > 0);
}

/* An instance that was abandoned has the number of the next one: the exchanges after it go as
 * planned again. */
static void test_abandoned_once(void **state)
{
    (void)state;
    for (uint64_t seed = 400; seed < 440; seed++) {
        struct machine *m = begin(seed, per_node(seed));
        int64_t in_time, late, late_before;
        int n_made, who = random_below(&m->random, m->pattern.n_ranks);
        send_planned(m, who, n_messages(m, who) / 2);
        for (int x = 0; x < 12; x++) {
            sum_up(m, &in_time, &late_before, &n_made);
            send_all_planned(m);
            for (double now = 1; x == 0 && m->n_missing > 0; now += 1e-5) {
                mock_set_time(now);
                poll_any(m);
                assert_true(now < 2);
            }
            poll_all(m);
            drain(m);
            sum_up(m, &in_time, &late, &n_made);
            if (x >= 1)
                assert_int_equal(late, late_before);
        }
        end(m);
    }
}

/* A rank runs ahead of another: what the lane has no slot for goes by MPI, and all comes. Then the
 * lane is empty again. */
static void test_lane_is_full(void **state)
{
    (void)state;
    enum { AHEAD = 20 };
    for (uint64_t seed = 500; seed < 540; seed++) {
        struct machine *m = calloc(1, sizeof *m);
        assert_non_null(m);
        m->random = seed;
        m->pattern = make_pattern(2, (struct cpl_pattern_entry[]){MESSAGE(0, 1, 20)}, 1);
        m->plan = make_plan(&m->pattern, 1, (int32_t[]){1});
        open_ranks(m, seed, 2);
        for (int round = 1; round < 3; round++) {
            for (int x = 0; x < AHEAD; x++)
                send_all_planned(m);
            poll_all(m);
            assert_int_equal(n_rides(m), round * AHEAD);
            assert_in_range(mock_n_sent(), round * (AHEAD - CPL_LANE_SLOTS),
                            round * (AHEAD - CPL_LANE_SLOTS) + round * AHEAD / 4);
        }
        end(m);
    }
}

/* A payload's only message that ends where its edge does leaves when it is put, unless its lane is
 * full or it is held; at the end of the batch nothing more leaves. */
static void test_alone(void **state)
{
    (void)state;
    for (int ahead = 1; ahead <= CPL_LANE_SLOTS + 1; ahead++)
        for (int only = 0; only < 2; only++) {
            struct machine *m = calloc(1, sizeof *m);
            assert_non_null(m);
            m->pattern = make_pattern(2, (struct cpl_pattern_entry[]){MESSAGE(0, 1, 20)}, 1);
            m->plan = make_plan(&m->pattern, 1, (int32_t[]){1});
            open_ranks(m, 1, 2);
            struct rank *rank = &m->rank[0];
            for (int x = 1; x <= ahead; x++) {
                unsigned char payload[9000];
                struct cpl_segment segment = make_segment(m, 0, 1, payload);
                struct cpl_span span = mock_span(payload, (int)segment.payload_bytes);
                bool at_once = only && x <= CPL_LANE_SLOTS;
                cpl_combined_begin(&rank->combined, rank->plan);
                assert_int_equal(
                    cpl_combined_put(&rank->combined, rank->plan, 0, &segment, NULL, &span, only),
                    MPI_SUCCESS);
                assert_int_equal(n_rides(m), at_once ? x : x - 1);
                assert_int_equal(rank->combined.n_holding, at_once ? 0 : 1);
                cpl_combined_end(&rank->combined, rank->plan);
                assert_int_equal(n_rides(m), x);
                assert_int_equal(cpl_combined_counts(&rank->combined, rank->plan).sent, x);
            }
            poll_all(m);
            assert_int_equal(m->n_missing, 0);
            end(m);
        }
}

static int64_t count_late(struct machine *m)
{
    int64_t in_time, late;
    int n_made;
    sum_up(m, &in_time, &late, &n_made);
    return late;
}

/* A rank leaves an instance out: from then on it is out of step with the others, and combined
 * messages are late again and again, until all are aligned. */
static void test_aligned(void **state)
{
    (void)state;
    int64_t late_again = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct machine *m = begin(seed, 0);
        int silent = random_below(&m->random, m->pattern.n_ranks);
        for (int r = 0; r < m->pattern.n_ranks; r++)
            if (r != silent)
                send_planned(m, r, n_messages(m, r));
        drain(m);
        poll_all(m);
        int64_t late = count_late(m);
        send_all_planned(m);
        drain(m);
        poll_all(m);
        late_again += count_late(m) - late;
        for (int r = 0; r < m->pattern.n_ranks; r++)
            cpl_combined_align(&m->rank[r].combined);
        late = count_late(m);
        for (int x = 0; x < 3; x++) {
            send_all_planned(m);
            poll_all(m);
            drain(m);
        }
        assert_int_equal(count_late(m), late);
        end(m);
    }
    assert_true(late_again > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_taking_back),  cmocka_unit_test(test_as_planned),
        cmocka_unit_test(test_with_lanes),   cmocka_unit_test(test_combined_are_the_plan),
        cmocka_unit_test(test_deviations),   cmocka_unit_test(test_abandoned_once),
        cmocka_unit_test(test_lane_is_full), cmocka_unit_test(test_alone),
        cmocka_unit_test(test_aligned),
    };
    return cmocka_run_group_tests_name("combined messages", tests, NULL, NULL);
}
