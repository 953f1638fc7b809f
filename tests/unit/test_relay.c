/* Tests of relays (shim/carry/relay.h): by slices of random plans payloads have the places that the
 * slice gives them; an out-edge leaves once, when the last of what its segments need has come and
 * not before; those that leave first do so in the plan's order, or in another one. */
#include "shim/carry/relay.h"

#include "plans.h"
#include "random_pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { MOST_RANKS = 24, N_SEEDS = 120 };

static struct cpl_relay cut(struct cpl_slicer *slicer, int32_t rank)
{
    struct cpl_relay relay = {.words = NULL};
    struct cpl_error error = {""};
    int32_t n_words;
    assert_int_equal(cpl_slicer_words(slicer, rank, &n_words, &error), CPL_OK);
    int32_t *words = malloc((size_t)n_words * sizeof *words);
    assert_non_null(words);
    cpl_slicer_extract(slicer, rank, words);
    assert_true(cpl_relay_init(&relay, words, n_words));
    return relay;
}

/* Calls check for the relay of each rank of random plans. */
static void for_relays(void (*check)(struct cpl_relay *relay, uint64_t *random))
{
    for (uint64_t seed = 0; seed < N_SEEDS; seed++) {
        uint64_t random = seed;
        struct cpl_error error = {""};
        struct cpl_slicer slicer;
        struct cpl_pattern pattern = random_pattern(seed, MOST_RANKS);
        struct cpl_plan plan = make_random_plan(&pattern, 1 + random_below(&random, 4), seed);
        assert_int_equal(cpl_slicer_init(&slicer, &plan, &pattern, &error), CPL_OK);
        for (int32_t r = 0; r < pattern.n_ranks; r++) {
            struct cpl_relay relay = cut(&slicer, r);
            check(&relay, &random);
            cpl_relay_free(&relay);
        }
        cpl_slicer_free(&slicer);
        cpl_plan_free(&plan);
        cpl_pattern_free(&pattern);
    }
}

/* Whether all that the segments of out-edge e carry is there; came is by source, own is the last.
 */
static bool is_complete(const struct cpl_rank_plan *slice, int32_t e, const bool *came)
{
    for (int32_t s = slice->out_first[e]; s < slice->out_first[e + 1]; s++) {
        int32_t in_edge = 0;
        if (slice->out_source[s] < 0)
            in_edge = slice->n_in;
        else
            while (slice->out_source[s] >= slice->in_first[in_edge + 1])
                in_edge++;
        if (!came[in_edge])
            return false;
    }
    return true;
}

/* An exchange: the sources come in any order. */
static void exchange(const struct cpl_relay *relay, int32_t *missing, uint64_t *random)
{
    const struct cpl_rank_plan *slice = &relay->slice;
    int32_t n_sources = slice->n_in + 1, n_left = 0;
    bool *came = calloc((size_t)n_sources, sizeof *came);
    bool *left = calloc((size_t)slice->n_out + 1, sizeof *left);
    assert_true(came && left);
    cpl_relay_begin(relay, missing);
    for (int32_t n = 0; n < n_sources; n++) {
        int32_t source = random_below(random, n_sources);
        while (came[source])
            source = (source + 1) % n_sources;
        came[source] = true;
        source = source < slice->n_in ? source : CPL_RELAY_OWN;
        const int32_t *edges;
        int32_t n_waiting = cpl_relay_waiting(relay, source, &edges);
        for (int32_t k = 0; k < n_waiting; k++) {
            assert_in_range(edges[k], 0, slice->n_out - 1);
            assert_in_range(missing[edges[k]], 1, n_sources);
            left[edges[k]] = --missing[edges[k]] == 0;
            n_left += left[edges[k]];
        }
        for (int32_t e = 0; e < slice->n_out; e++)
            assert_int_equal(left[e], is_complete(slice, e, came));
    }
    assert_int_equal(n_left, slice->n_out);
    free(came);
    free(left);
}

/* What a payload's place is, told by all out-segments. */
static void check_places(struct cpl_relay *relay, uint64_t *random)
{
    const struct cpl_rank_plan *slice = &relay->slice;
    (void)random;
    for (int32_t source = -slice->n_payloads; source < slice->n_in_segments; source++) {
        int32_t place = 0;
        while (place < slice->n_out_segments && slice->out_source[place] != source)
            place++;
        assert_int_equal(relay->next[source], place < slice->n_out_segments ? place : -1);
    }
    for (int32_t s = 0; s < slice->n_out_segments; s++) {
        int32_t e = relay->out_edge[s];
        assert_in_range(e, 0, slice->n_out - 1);
        assert_in_range(s, slice->out_first[e], slice->out_first[e + 1] - 1);
    }
}

static void test_places(void **state)
{
    (void)state;
    for_relays(check_places);
}

/* Two exchanges are under way at a time; neither knows of the other. */
static void check_exchanges(struct cpl_relay *relay, uint64_t *random)
{
    size_t n_out = (size_t)relay->slice.n_out;
    int32_t *missing = calloc(2 * n_out + 1, sizeof *missing);
    assert_non_null(missing);
    cpl_relay_begin(relay, missing);
    for (int k = 0; k < 3; k++)
        exchange(relay, missing + n_out, random);
    for (size_t e = 0; e < n_out; e++)
        assert_int_equal(missing[e], relay->waits[e]);
    exchange(relay, missing, random);
    free(missing);
}

static void test_exchanges(void **state)
{
    (void)state;
    for_relays(check_exchanges);
}

/* What leaves when own payloads come first, as ranks; the end is marked by -1. */
static void list_leaving(const struct cpl_relay *relay, int32_t *to)
{
    int32_t *missing = calloc((size_t)relay->slice.n_out + 1, sizeof *missing);
    assert_non_null(missing);
    cpl_relay_begin(relay, missing);
    const int32_t *edges;
    int32_t n = cpl_relay_waiting(relay, CPL_RELAY_OWN, &edges);
    for (int32_t k = 0; k < n; k++)
        if (--missing[edges[k]] == 0)
            *to++ = relay->slice.out_to[edges[k]];
    *to = -1;
    free(missing);
}

static void assert_leaving(const struct cpl_relay *relay, const int32_t *expected, int32_t n)
{
    int32_t *to = calloc((size_t)relay->slice.n_out + 1, sizeof *to);
    assert_non_null(to);
    list_leaving(relay, to);
    for (int32_t k = 0; k < n; k++)
        assert_int_equal(to[k], expected[k]);
    assert_int_equal(to[n], -1);
    free(to);
}

/* The first sends in the plan's order, and backwards. */
static void check_order(struct cpl_relay *relay, uint64_t *random)
{
    const struct cpl_rank_plan *slice = &relay->slice;
    int32_t *to = calloc((size_t)slice->n_out + 1, sizeof *to), n = 0;
    assert_non_null(to);
    for (int32_t e = 0; e < slice->n_out; e++)
        if (slice->out_waits[e] == 0)
            to[n++] = slice->out_to[e];
    assert_int_equal(relay->n_first, n);
    assert_leaving(relay, to, n);
    for (int32_t e = slice->n_out - 1, k = 0; e >= 0; e--)
        if (slice->out_waits[e] == 0) {
            to[k] = slice->out_to[e];
            relay->own[k++] = e;
        }
    assert_leaving(relay, to, n);
    check_exchanges(relay, random);
    free(to);
}

static void test_order(void **state)
{
    (void)state;
    for_relays(check_order);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_exchanges),
        cmocka_unit_test(test_order),
    };
    return cmocka_run_group_tests_name("relay", tests, NULL, NULL);
}
