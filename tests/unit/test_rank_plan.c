/* Tests of rank plans (rank_plan.h): slices of random plans are executed in a simulator without
 * MPI, and damaged blocks are refused or at least harmless to execute. */
#include "planner/rank_plan.h"

#include "plans.h"
#include "random_pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* One rank's block, of just its size so that sanitizers see reads past the end. */
struct slice {
    int32_t *words;
    int32_t n_words;
    struct cpl_rank_plan plan;
};

/* What travels in place of bytes: the k-th message of its owner. */
struct payload {
    int32_t owner;
    int32_t k;
};

/* A combined message under way. */
struct flight {
    int32_t from, to, wave, n;
    struct payload *payloads;
};

struct simulator {
    const struct cpl_pattern *pattern;
    struct slice *slices;
    struct payload **in;  /* rank -> what it received, by in-segment */
    bool **received;      /* rank -> in-edge */
    int32_t **waits;      /* rank -> out-edge -> in-edges still missing */
    int32_t *n_delivered; /* message -> times */
    struct flight *flights;
    int64_t n_flights;
    uint64_t random;
};

static void *need(size_t count, size_t size)
{
    void *memory = calloc(count + 1, size);
    assert_non_null(memory);
    return memory;
}

static struct slice *cut(const struct cpl_plan *plan, const struct cpl_pattern *pattern)
{
    struct cpl_slicer slicer;
    struct cpl_error error = {""};
    struct slice *slices = need((size_t)plan->n_ranks, sizeof *slices);
    if (cpl_slicer_init(&slicer, plan, pattern, &error))
        fail_msg("%s", error.text);
    for (int32_t i = 0; i < plan->n_ranks; i++) {
        struct slice *s = &slices[i];
        assert_int_equal(cpl_slicer_words(&slicer, i, &s->n_words, &error), CPL_OK);
        s->words = malloc((size_t)s->n_words * sizeof *s->words);
        assert_non_null(s->words);
        memset(s->words, 0x55, (size_t)s->n_words * sizeof *s->words);
        cpl_slicer_extract(&slicer, i, s->words);
        if (cpl_rank_plan_view(s->words, s->n_words, &s->plan, &error))
            fail_msg("rank %d: %s", i, error.text);
        assert_int_equal(s->plan.rank, i);
        assert_int_equal(s->plan.n_ranks, plan->n_ranks);
        assert_int_equal(s->plan.n_waves, plan->n_waves);
        assert_true(s->plan.fingerprint == plan->fingerprint);
        assert_true(s->plan.pattern_fingerprint == plan->pattern_fingerprint);
    }
    cpl_slicer_free(&slicer);
    return slices;
}

static void free_slices(struct slice *slices, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        free(slices[i].words);
    free(slices);
}

static void send_edge(struct simulator *sim, int32_t rank, int32_t e)
{
    const struct cpl_rank_plan *p = &sim->slices[rank].plan;
    int32_t first = p->out_first[e], n = p->out_first[e + 1] - first;
    struct flight flight = {rank, p->out_to[e], p->out_wave[e], n,
                            need((size_t)n, sizeof(struct payload))};
    for (int32_t s = 0; s < n; s++) {
        int32_t source = p->out_source[first + s];
        if (source < 0)
            flight.payloads[s] = (struct payload){rank, -1 - source};
        else
            flight.payloads[s] = sim->in[rank][source];
        assert_true(flight.payloads[s].owner >= 0); /* it had arrived */
    }
    sim->flights[sim->n_flights++] = flight;
}

/* A segment whose payload is meant for this rank: it must be the right part of the right message.
 */
static void deliver(struct simulator *sim, int32_t rank, int32_t owner, int32_t part,
                    struct payload payload)
{
    const struct cpl_pattern *p = sim->pattern;
    int64_t sent = p->first[owner] + payload.k;
    assert_int_equal(payload.owner, owner);
    assert_true(payload.k >= 0 && sent < p->first[owner + 1]);
    for (int64_t m = p->first[owner]; m < p->first[owner + 1]; m++) {
        if (p->dst[m] != rank || part-- > 0)
            continue;
        sim->n_delivered[m]++;
        assert_true(m == sent || (p->payload_class && p->payload_class[m] >= 0 &&
                                  p->payload_class[m] == p->payload_class[sent]));
        return;
    }
    fail_msg("%d has no message for %d", owner, rank);
}

static int32_t find_in_edge(const struct cpl_rank_plan *p, const struct flight *flight)
{
    for (int32_t e = 0; e < p->n_in; e++)
        if (p->in_from[e] == flight->from && p->in_wave[e] == flight->wave)
            return e;
    fail_msg("%d does not expect %d in wave %d", p->rank, flight->from, flight->wave);
    return -1;
}

static void receive(struct simulator *sim, const struct flight *flight)
{
    int32_t rank = flight->to;
    const struct cpl_rank_plan *p = &sim->slices[rank].plan;
    int32_t e = find_in_edge(p, flight), first = p->in_first[e];
    assert_int_equal(p->in_first[e + 1] - first, flight->n);
    assert_false(sim->received[rank][e]);
    sim->received[rank][e] = true;
    for (int32_t s = 0; s < flight->n; s++) {
        sim->in[rank][first + s] = flight->payloads[s];
        if (p->in_owner[first + s] >= 0)
            deliver(sim, rank, p->in_owner[first + s], p->in_part[first + s], flight->payloads[s]);
    }
    for (int32_t f = p->in_feed_first[e]; f < p->in_feed_first[e + 1]; f++)
        if (--sim->waits[rank][p->in_feed[f]] == 0)
            send_edge(sim, rank, p->in_feed[f]);
}

static void start(struct simulator *sim, int32_t rank)
{
    const struct cpl_rank_plan *p = &sim->slices[rank].plan;
    sim->in[rank] = need((size_t)p->n_in_segments, sizeof **sim->in);
    sim->received[rank] = need((size_t)p->n_in, sizeof **sim->received);
    sim->waits[rank] = need((size_t)p->n_out, sizeof **sim->waits);
    for (int32_t s = 0; s < p->n_in_segments; s++)
        sim->in[rank][s].owner = -1;
    for (int32_t e = 0; e < p->n_out; e++)
        sim->waits[rank][e] = p->out_waits[e];
    for (int32_t e = 0; e < p->n_out; e++)
        if (p->out_waits[e] == 0)
            send_edge(sim, rank, e);
}

static void finish(struct simulator *sim)
{
    for (int64_t m = 0; m < sim->pattern->n_messages; m++)
        assert_int_equal(sim->n_delivered[m], 1);
    for (int32_t i = 0; i < sim->pattern->n_ranks; i++) {
        for (int32_t e = 0; e < sim->slices[i].plan.n_in; e++)
            assert_true(sim->received[i][e]);
        for (int32_t e = 0; e < sim->slices[i].plan.n_out; e++)
            assert_int_equal(sim->waits[i][e], 0);
        free(sim->in[i]);
        free(sim->received[i]);
        free(sim->waits[i]);
    }
    free(sim->in);
    free(sim->received);
    free(sim->waits);
    free(sim->n_delivered);
    free(sim->flights);
}

/* Executes all slices; of the messages under way a random one arrives next. */
static void simulate(const struct cpl_pattern *pattern, const struct cpl_plan *plan,
                     struct slice *slices, uint64_t seed)
{
    size_t n_ranks = (size_t)pattern->n_ranks;
    struct simulator sim = {.pattern = pattern, .slices = slices, .random = seed};
    sim.in = need(n_ranks, sizeof *sim.in);
    sim.received = need(n_ranks, sizeof *sim.received);
    sim.waits = need(n_ranks, sizeof *sim.waits);
    sim.n_delivered = need((size_t)pattern->n_messages, sizeof *sim.n_delivered);
    sim.flights = need((size_t)plan->n_edges, sizeof *sim.flights);
    for (int32_t i = 0; i < pattern->n_ranks; i++)
        start(&sim, i);
    while (sim.n_flights > 0) {
        int64_t k = (int64_t)random_draw(&sim.random, (uint64_t)sim.n_flights);
        struct flight flight = sim.flights[k];
        sim.flights[k] = sim.flights[--sim.n_flights];
        receive(&sim, &flight);
        free(flight.payloads);
    }
    finish(&sim);
}

/* Both ends of every edge agree on its volume, which is the plan's. */
static void check_volumes(const struct cpl_plan *plan, const struct slice *slices)
{
    int32_t *next_in = need((size_t)plan->n_ranks, sizeof *next_in);
    int32_t *next_out = need((size_t)plan->n_ranks, sizeof *next_out);
    for (int64_t e = 0; e < plan->n_edges; e++) {
        const struct cpl_edge *edge = &plan->edges[e];
        const struct cpl_rank_plan *from = &slices[edge->from].plan, *to = &slices[edge->to].plan;
        int32_t out = next_out[edge->from]++, in = next_in[edge->to]++;
        assert_true(from->out_to[out] == edge->to && from->out_wave[out] == edge->wave);
        assert_true(to->in_from[in] == edge->from && to->in_wave[in] == edge->wave);
        assert_true(cpl_rank_plan_out_volume(from, out) == edge->volume);
        assert_true(cpl_rank_plan_in_volume(to, in) == edge->volume);
    }
    free(next_in);
    free(next_out);
}

static void test_execution(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct cpl_pattern pattern = random_pattern(seed, seed % 10 ? 40 : 120);
        struct cpl_plan plan = make_random_plan(&pattern, 1 + (int32_t)(seed % 6), seed);
        struct slice *slices = cut(&plan, &pattern);
        check_volumes(&plan, slices);
        for (uint64_t order = 0; order < 3; order++)
            simulate(&pattern, &plan, slices, seed + order);
        free_slices(slices, plan.n_ranks);
        cpl_plan_free(&plan);
        cpl_pattern_free(&pattern);
    }
}

static void test_other_pattern(void **state)
{
    (void)state;
    const struct cpl_pattern_entry entries[] = {MESSAGE(0, 1, 1), MESSAGE(1, 2, 1)};
    struct cpl_pattern pattern = make_pattern(3, entries, 2);
    struct cpl_pattern larger = make_pattern(4, entries, 2);
    struct cpl_pattern fewer = make_pattern(3, entries, 1);
    struct cpl_plan plan = make_plan(&pattern, 1, (const int32_t[]){1, 2});
    struct cpl_slicer slicer;
    struct cpl_error error = {""};
    assert_int_equal(cpl_slicer_init(&slicer, &plan, &larger, &error), CPL_ERR_ARG);
    assert_int_equal(cpl_slicer_init(&slicer, &plan, &fewer, &error), CPL_ERR_ARG);
    assert_string_equal(error.text, "slices of a plan need the pattern it was made for");
    cpl_plan_free(&plan);
    cpl_pattern_free(&fewer);
    cpl_pattern_free(&larger);
    cpl_pattern_free(&pattern);
}

static void all_in_range(const int32_t *values, int64_t n, int32_t low, int32_t high)
{
    for (int64_t k = 0; k < n; k++)
        assert_true(values[k] >= low && values[k] <= high);
}

static void check_offsets(const int32_t *first, int32_t n, int32_t total)
{
    assert_true(first[0] == 0 && first[n] == total);
    for (int32_t k = 0; k < n; k++)
        assert_true(first[k] <= first[k + 1]);
}

/* A view that was accepted can be followed without leaving any array. */
static void check_view(const struct cpl_rank_plan *p)
{
    int32_t n_feeds = p->in_feed_first[p->n_in];
    assert_true(p->rank >= 0 && p->rank < p->n_ranks);
    check_offsets(p->in_first, p->n_in, p->n_in_segments);
    check_offsets(p->in_feed_first, p->n_in, n_feeds);
    check_offsets(p->out_first, p->n_out, p->n_out_segments);
    all_in_range(p->in_from, p->n_in, 0, p->n_ranks - 1);
    all_in_range(p->out_to, p->n_out, 0, p->n_ranks - 1);
    all_in_range(p->in_wave, p->n_in, 1, p->n_waves);
    all_in_range(p->out_wave, p->n_out, 1, p->n_waves);
    all_in_range(p->in_owner, p->n_in_segments, -1, p->n_ranks - 1);
    all_in_range(p->in_feed, n_feeds, 0, p->n_out - 1);
    all_in_range(p->in_part, p->n_in_segments, 0, INT32_MAX);
    all_in_range(p->out_source, p->n_out_segments, -p->n_payloads, p->n_in_segments - 1);
    all_in_range(p->out_waits, p->n_out, 0, p->n_in);
    uint64_t sum = 0;
    for (int32_t e = 0; e < p->n_in; e++)
        sum += (uint64_t)cpl_rank_plan_in_volume(p, e);
    for (int32_t e = 0; e < p->n_out; e++)
        sum += (uint64_t)cpl_rank_plan_out_volume(p, e);
    (void)sum; /* reading them was the point */
}

static int32_t draw_word(uint64_t *random, int32_t old)
{
    static const int32_t odd[] = {0, -1, 1, INT32_MAX, INT32_MIN, 1 << 24};
    switch (random_below(random, 4)) {
    case 0:
        return old ^ (int32_t)(UINT32_C(1) << random_below(random, 31));
    case 1:
        return odd[random_below(random, (int32_t)N_OF(odd))];
    case 2:
        return random_below(random, 20) - 2;
    default:
        return (int32_t)(uint32_t)random_draw(random, UINT64_C(1) << 32);
    }
}

/* Changes 1 to 3 words, the header's more often than their share. */
static void damage_and_view(const struct slice *slice, uint64_t *random, int64_t *n_refused)
{
    struct cpl_rank_plan plan;
    struct cpl_error error = {""};
    size_t size = (size_t)slice->n_words * sizeof *slice->words;
    int32_t *words = malloc(size);
    assert_non_null(words);
    memcpy(words, slice->words, size);
    for (int32_t n = 1 + random_below(random, 3); n > 0; n--) {
        int32_t limit = random_draw(random, 3) || slice->n_words < 15 ? slice->n_words : 15;
        int32_t at = random_below(random, limit);
        words[at] = draw_word(random, words[at]);
    }
    if (cpl_rank_plan_view(words, slice->n_words, &plan, &error)) {
        assert_true(error.text[0] != '\0');
        ++*n_refused;
    } else {
        check_view(&plan);
    }
    free(words);
}

/* A block that lost its end, or got a longer one. */
static void cut_and_view(const struct slice *slice, uint64_t *random)
{
    struct cpl_rank_plan plan;
    int32_t n = random_below(random, slice->n_words);
    int32_t *words = need((size_t)n, sizeof *words);
    memcpy(words, slice->words, (size_t)n * sizeof *words);
    assert_int_equal(cpl_rank_plan_view(words, n, &plan, NULL), CPL_ERR_FORMAT);
    if (n > 1) {
        words[1] = n; /* and says so */
        assert_int_equal(cpl_rank_plan_view(words, n, &plan, NULL), CPL_ERR_FORMAT);
    }
    free(words);
}

static void test_damage(void **state)
{
    (void)state;
    uint64_t random = 5;
    int64_t n_refused = 0, n_tried = 0;
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct cpl_pattern pattern = random_pattern(seed, 12);
        struct cpl_plan plan = make_random_plan(&pattern, 1 + (int32_t)(seed % 4), seed);
        struct slice *slices = cut(&plan, &pattern);
        for (int variant = 0; variant < 200; variant++, n_tried++) {
            const struct slice *slice = &slices[random_below(&random, plan.n_ranks)];
            damage_and_view(slice, &random, &n_refused);
            cut_and_view(slice, &random);
        }
        free_slices(slices, plan.n_ranks);
        cpl_plan_free(&plan);
        cpl_pattern_free(&pattern);
    }
    assert_in_range(n_refused, n_tried / 2, n_tried - 1);
}

static void test_no_block(void **state)
{
    (void)state;
    const int32_t words[64] = {0};
    struct cpl_rank_plan plan;
    struct cpl_error error = {""};
    assert_int_equal(cpl_rank_plan_view(words, 0, &plan, &error), CPL_ERR_FORMAT);
    assert_int_equal(cpl_rank_plan_view(words, 64, &plan, &error), CPL_ERR_FORMAT);
    assert_string_equal(error.text, "a block of 64 words is no rank plan");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_execution),
        cmocka_unit_test(test_other_pattern),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_no_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
