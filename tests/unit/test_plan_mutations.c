/* Random changes of valid plans: cpl_plan_check must refuse each, or the changed plan must equal
 * the plan that cpl_plan_build makes from the changed plan's own routes, which proves the change
 * harmless. */
#include "planner/plan/plan_internal.h"
#include "planner/routes.h"
#include "plans.h"
#include "random_pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define N_PLANS        60
#define MUTATIONS_EACH 50

/* A number near the old one, within the ranks or waves, or far out, but never the old one. */
static int32_t draw_other(uint64_t *random, int32_t old, int32_t n)
{
    static const int32_t odd[] = {-1, 0, 1, INT32_MAX, INT32_MIN};
    int32_t new = old;
    while (new == old) {
        switch (random_below(random, 3)) {
        case 0:
            new = old + random_below(random, 5) - 2;
            break;
        case 1:
            new = random_below(random, n + 1);
            break;
        default:
            new = odd[random_below(random, (int32_t)N_OF(odd))];
            break;
        }
    }
    return new;
}

static int64_t draw_other_long(uint64_t *random, int64_t old)
{
    int64_t new = old + 1 + random_below(random, 9);
    return random_draw(random, 2) ? new : old - (new - old);
}

static void mutate_edge(struct cpl_plan *plan, uint64_t *random)
{
    struct cpl_edge *edge = &plan->edges[random_draw(random, (uint64_t)plan->n_edges)];
    switch (random_below(random, 6)) {
    case 0:
        edge->from = draw_other(random, edge->from, plan->n_ranks);
        break;
    case 1:
        edge->to = draw_other(random, edge->to, plan->n_ranks);
        break;
    case 2:
        edge->wave = draw_other(random, edge->wave, plan->n_waves);
        break;
    case 3:
        edge->n_segments = draw_other(random, edge->n_segments, 9);
        break;
    case 4:
        edge->first_segment = draw_other_long(random, edge->first_segment);
        break;
    default:
        edge->volume = draw_other_long(random, edge->volume);
        break;
    }
}

static void mutate_bundle(struct cpl_plan *plan, uint64_t *random)
{
    struct cpl_bundle *bundle = &plan->bundles[random_draw(random, (uint64_t)plan->n_bundles)];
    switch (random_below(random, 5)) {
    case 0:
        bundle->owner = draw_other(random, bundle->owner, plan->n_ranks);
        break;
    case 1:
        bundle->n_dests = draw_other(random, bundle->n_dests, 4);
        break;
    case 2:
        bundle->first_dest = draw_other_long(random, bundle->first_dest);
        break;
    case 3:
        bundle->message = draw_other_long(random, bundle->message);
        break;
    default:
        bundle->volume = draw_other_long(random, bundle->volume);
        break;
    }
}

/* Counts of arrays only shrink: how long the arrays are the checker cannot know. */
static void mutate_header(struct cpl_plan *plan, uint64_t *random)
{
    switch (random_below(random, 6)) {
    case 0:
        plan->n_ranks = draw_other(random, plan->n_ranks, plan->n_ranks);
        break;
    case 1:
        plan->n_waves = draw_other(random, plan->n_waves, plan->n_waves);
        break;
    case 2:
        plan->n_bundles = (int64_t)random_draw(random, (uint64_t)plan->n_bundles);
        break;
    case 3:
        plan->n_dests = (int64_t)random_draw(random, (uint64_t)plan->n_dests);
        break;
    case 4:
        plan->n_edges = (int64_t)random_draw(random, (uint64_t)plan->n_edges);
        break;
    default:
        plan->n_segments = (int64_t)random_draw(random, (uint64_t)plan->n_segments);
        break;
    }
}

static void swap_edges(struct cpl_plan *plan, uint64_t *random)
{
    struct cpl_edge *a = &plan->edges[random_draw(random, (uint64_t)plan->n_edges)];
    struct cpl_edge *b = &plan->edges[random_draw(random, (uint64_t)plan->n_edges)];
    struct cpl_edge kept = *a;
    if (a == b) {
        a->volume++;
    } else {
        *a = *b;
        *b = kept;
    }
}

static void mutate(struct cpl_plan *plan, uint64_t *random)
{
    int32_t *dest = &plan->dests[random_draw(random, (uint64_t)plan->n_dests)];
    int32_t *segment = &plan->segments[random_draw(random, (uint64_t)plan->n_segments)];
    switch (random_below(random, 8)) {
    case 0:
    case 1:
        mutate_edge(plan, random);
        break;
    case 2:
    case 3:
        mutate_bundle(plan, random);
        break;
    case 4:
        mutate_header(plan, random);
        break;
    case 5:
        *dest = draw_other(random, *dest, plan->n_ranks);
        break;
    case 6:
        *segment = draw_other(random, *segment, (int32_t)plan->n_bundles);
        break;
    default:
        swap_edges(plan, random);
        break;
    }
}

/* The wave in which a bundle reaches a rank by this plan, and from where; 0 when it does not. */
static int32_t arrival(const struct cpl_plan *plan, int32_t bundle, int32_t rank, int32_t *from)
{
    for (int64_t e = 0; e < plan->n_edges; e++) {
        const struct cpl_edge *edge = &plan->edges[e];
        for (int32_t s = 0; s < edge->n_segments && edge->to == rank; s++)
            if (plan->segments[edge->first_segment + s] == bundle) {
                *from = edge->from;
                return edge->wave;
            }
    }
    return 0;
}

/* Writes the stops of the bundle's message to dest, from the end: dest until it was reached, before
 * that the rank it came from, and so on back to the owner. */
static void read_route(const struct cpl_plan *plan, int32_t n_waves, int32_t bundle, int32_t dest,
                       int32_t *stops)
{
    int32_t rank = dest, from = dest;
    int32_t wave = arrival(plan, bundle, rank, &from);
    for (int32_t w = n_waves; w >= 1; w--) {
        if (w < wave) {
            rank = from;
            wave = arrival(plan, bundle, rank, &from);
        }
        stops[w - 1] = rank;
    }
    if (wave > 0)
        rank = from;
    assert_int_equal(rank, plan->bundles[bundle].owner);
}

/* The message to dst with the bundle's payload. */
static int64_t find_message(const struct cpl_pattern *pattern, const struct cpl_bundle *bundle,
                            int32_t dst)
{
    const int32_t *class_ = pattern->payload_class;
    int32_t src = bundle->owner;
    for (int64_t m = pattern->first[src]; m < pattern->first[src + 1]; m++)
        if (pattern->dst[m] == dst && (!class_ || class_[m] == class_[bundle->message]))
            return m;
    fail_msg("no message %d -> %d", src, dst);
    return -1;
}

/* Equal but for waves without edges, which building drops. */
static void assert_equal_plans(const struct cpl_plan *plan, const struct cpl_plan *built)
{
    assert_int_equal(plan->n_bundles, built->n_bundles);
    assert_int_equal(plan->n_dests, built->n_dests);
    assert_int_equal(plan->n_edges, built->n_edges);
    assert_int_equal(plan->n_segments, built->n_segments);
    for (int64_t b = 0; b < plan->n_bundles; b++) {
        const struct cpl_bundle *x = &plan->bundles[b], *y = &built->bundles[b];
        assert_true(x->owner == y->owner && x->n_dests == y->n_dests);
        assert_true(x->first_dest == y->first_dest && x->message == y->message);
        assert_true(x->volume == y->volume);
    }
    for (int64_t k = 0; k < plan->n_dests; k++)
        assert_int_equal(plan->dests[k], built->dests[k]);
    for (int64_t s = 0; s < plan->n_segments; s++)
        assert_int_equal(plan->segments[s], built->segments[s]);
    int32_t wave = 0;
    for (int64_t e = 0; e < plan->n_edges; e++) {
        const struct cpl_edge *x = &plan->edges[e], *y = &built->edges[e];
        wave += e == 0 || x->wave != x[-1].wave;
        assert_true(x->from == y->from && x->to == y->to && y->wave == wave);
        assert_true(x->n_segments == y->n_segments && x->volume == y->volume);
        assert_true(x->first_segment == y->first_segment);
    }
}

static void prove_harmless(const struct cpl_plan *plan, const struct cpl_pattern *pattern)
{
    struct cpl_routes routes;
    struct cpl_plan built;
    struct cpl_error error = {""};
    int32_t n_waves = plan->edges[plan->n_edges - 1].wave; /* the plan may say more */
    if (cpl_routes_init(pattern, n_waves, &routes, &error))
        fail_msg("%s", error.text);
    for (int64_t b = 0; b < plan->n_bundles; b++) {
        const struct cpl_bundle *bundle = &plan->bundles[b];
        for (int32_t k = 0; k < bundle->n_dests; k++) {
            int32_t dest = plan->dests[bundle->first_dest + k];
            int64_t m = find_message(pattern, bundle, dest);
            read_route(plan, n_waves, (int32_t)b, dest, cpl_routes_of(&routes, m));
        }
    }
    if (cpl_plan_build(pattern, &routes, &built, &error))
        fail_msg("%s", error.text);
    assert_equal_plans(plan, &built);
    cpl_plan_free(&built);
    cpl_routes_free(&routes);
}

/* One change of the plan that the seed stands for. Returns whether it was refused. */
static bool try_mutation(uint64_t seed, uint64_t variant, bool with_fingerprint)
{
    struct cpl_error error = {""};
    struct cpl_pattern pattern = random_pattern(seed, 20);
    bool refused = true;
    if (pattern.n_messages > 0) {
        uint64_t random = (seed << 16) + variant;
        struct cpl_plan plan = make_random_plan(&pattern, 1 + (int32_t)(seed % 5), seed);
        mutate(&plan, &random);
        if (with_fingerprint)
            plan.fingerprint = cpl_plan_compute_fingerprint(&plan);
        enum cpl_status status = cpl_plan_check(&plan, &pattern, &error);
        refused = status != CPL_OK;
        if (refused) {
            assert_int_equal(status, CPL_ERR_BROKEN);
            assert_true(error.text[0] != '\0');
        } else {
            prove_harmless(&plan, &pattern);
        }
        cpl_plan_free(&plan);
    }
    cpl_pattern_free(&pattern);
    return refused;
}

/* The fingerprint gives away every change. */
static void test_unsigned_mutations(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < N_PLANS; seed++)
        for (uint64_t variant = 0; variant < MUTATIONS_EACH; variant++)
            if (!try_mutation(seed, variant, false))
                fail_msg("variant %d of plan %d was not refused", (int)variant, (int)seed);
}

/* With the fingerprint of the changed plan the other invariants have to find it. */
static void test_signed_mutations(void **state)
{
    (void)state;
    int n_harmless = 0;
    for (uint64_t seed = 0; seed < N_PLANS; seed++)
        for (uint64_t variant = 0; variant < MUTATIONS_EACH; variant++)
            n_harmless += !try_mutation(seed, variant, true);
    assert_in_range(n_harmless, 1, N_PLANS * MUTATIONS_EACH / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unsigned_mutations),
        cmocka_unit_test(test_signed_mutations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
