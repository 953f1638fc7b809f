/* Tests of the searches for plans: over covers (cover_search.h), over routes (improve.h,
 * improve_state.h, improve_paths.h), and of the strategy that uses them (strategy_balance.c). */
#include "planner/plan.h"
#include "planner/search/cover_search.h"
#include "planner/strategies/improve.h"
#include "planner/strategies/improve_paths.h"
#include "planner/strategies/improve_state.h"
#include "planner/strategy.h"
#include "plans.h"
#include "random_machine.h"
#include "random_pattern.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MOST_RANKS     40
#define LEAST_PLANNING 0.001 /* of the budget, in nominal milliseconds */

struct trial {
    uint64_t seed;
    uint64_t random;
    struct cpl_pattern pattern;
    struct cpl_machine machine;
    struct cpl_strategy_input input;
};

static void set_up(struct trial *trial, uint64_t seed, int32_t most_ranks)
{
    trial->seed = trial->random = seed;
    trial->pattern = random_pattern_undivided(seed, most_ranks);
    trial->machine = random_machine(&trial->random, trial->pattern.n_ranks);
    trial->input = (struct cpl_strategy_input){&trial->pattern, &trial->machine, 8, 1};
}

static void tear_down(struct trial *trial)
{
    cpl_machine_free(&trial->machine);
    cpl_pattern_free(&trial->pattern);
}

/* Routes over random ranks that none visits twice, with rests. */
static struct cpl_routes random_routes(struct trial *trial, int32_t n_waves)
{
    struct cpl_routes routes;
    const struct cpl_pattern *p = &trial->pattern;
    assert_int_equal(cpl_routes_init(p, n_waves, &routes, NULL), CPL_OK);
    for (int32_t s = 0; s < p->n_ranks; s++)
        for (int64_t m = p->first[s]; m < p->first[s + 1]; m++) {
            int32_t *stops = cpl_routes_of(&routes, m), at = s;
            for (int32_t w = 0; w < n_waves - 1; at = stops[w++]) {
                int32_t next = random_below(&trial->random, p->n_ranks);
                bool visited = at == p->dst[m] || next == s || random_draw(&trial->random, 2);
                for (int32_t k = 0; k < w; k++)
                    visited = visited || stops[k] == next;
                stops[w] = visited ? at : next;
            }
        }
    return routes;
}

static double cost_of(const struct trial *trial, const struct cpl_routes *routes)
{
    struct cpl_plan plan;
    double us;
    assert_int_equal(cpl_plan_build(&trial->pattern, routes, &plan, NULL), CPL_OK);
    assert_int_equal(cpl_plan_check(&plan, &trial->pattern, NULL), CPL_OK);
    assert_int_equal(
        cpl_plan_chain_cost(&plan, &trial->machine, trial->input.unit_bytes, &us, NULL), CPL_OK);
    cpl_plan_free(&plan);
    return us;
}

/* --- covers */

static const struct cpl_cover_slot *slot_of(const struct cpl_cover_price *price, int32_t stage,
                                            int32_t rank, bool sends)
{
    return cpl_cover_slot_of(price, stage, rank, sends);
}

/* The prices' slots hold the edges of the cover and no others. */
static void check_slots(const struct cpl_cover *cover, const struct cpl_cover_price *price)
{
    int32_t n_slots = cover->n_ranks * CPL_COVER_STAGES;
    int32_t *n_edges = calloc((size_t)n_slots, sizeof *n_edges);
    assert_non_null(n_edges);
    for (int32_t edge = 1; edge <= cover->layers.n_numbers; edge++) {
        const struct cpl_layer_edge *e = &cover->layers.edge[edge];
        if (e->from < 0)
            continue;
        assert_true(cover->need[edge].n_messages > 0);
        n_edges[slot_of(price, e->wave, e->from, true) - price->slot]++;
        n_edges[slot_of(price, e->wave, e->to, false) - price->slot]++;
    }
    for (int32_t k = 0; k < n_slots; k++) {
        const int32_t *by_class = price->slot[k].n_edges;
        assert_int_equal(by_class[0] + by_class[1] + by_class[2], n_edges[k]);
    }
    free(n_edges);
}

static void check_cover_search(struct trial *trial, int32_t n_hops, enum cpl_cover_goal goal)
{
    struct cpl_arena arena = CPL_ARENA_EMPTY;
    struct cpl_cover cover;
    struct cpl_cover_price price;
    struct cpl_routes routes = random_routes(trial, n_hops), found;
    int64_t work = random_draw(&trial->random, 4) ? 40000 : random_below(&trial->random, 2000);
    struct cpl_cover_schedule schedule = {.work = work};
    assert_int_equal(cpl_cover_init(&cover, &trial->pattern, n_hops, &arena, NULL), CPL_OK);
    assert_int_equal(cpl_cover_price_init(&price, goal, &trial->machine, &arena, NULL), CPL_OK);
    assert_int_equal(cpl_cover_add_routes(&cover, &routes, NULL), CPL_OK);
    cpl_cover_schedule_for(&price, n_hops, &schedule);
    assert_int_equal(cpl_cover_search(&cover, &price, &schedule), CPL_OK);
    for (int64_t m = 0; m < trial->pattern.n_messages; m++)
        assert_true(cpl_cover_has_way(&cover, m));
    check_slots(&cover, &price);
    assert_int_equal(cpl_cover_routes(&cover, &found, NULL), CPL_OK);
    cost_of(trial, &found);
    cpl_routes_free(&found);
    cpl_routes_free(&routes);
    cpl_arena_free(&arena);
}

static void test_cover_search(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 150; seed++) {
        struct trial trial;
        set_up(&trial, seed, MOST_RANKS);
        check_cover_search(&trial, 2 + (int32_t)(seed % 2),
                           seed % 4 < 2 ? CPL_COVER_COUNTS : CPL_COVER_TIME);
        tear_down(&trial);
    }
}

/* --- routes */

/* Every edge's riders are the messages whose stops take it, and the loads are as made anew. */
static void check_state(const struct trial *trial, const struct cpl_improve_state *state)
{
    struct cpl_arena arena = CPL_ARENA_EMPTY;
    struct cpl_improve_state fresh;
    const struct cpl_pattern *p = state->pattern;
    struct cpl_routes routes = {state->n_waves, p->n_messages, state->stops, CPL_ARENA_EMPTY};
    int64_t n_rides = 0, n_hops = 0;
    assert_int_equal(cpl_improve_init(&fresh, &trial->input, &routes, &arena), CPL_OK);
    double us = cpl_time_loads_us(&fresh.loads);
    assert_true(fabs(cpl_time_loads_us(&state->loads) - us) <= 1e-9 * us + 1e-9);
    for (int64_t m = 0; m < p->n_messages; m++)
        for (int32_t w = 0, at = state->source[m]; w < state->n_waves; w++) {
            n_hops += state->stops[m * state->n_waves + w] != at;
            at = state->stops[m * state->n_waves + w];
        }
    for (int32_t edge = 1; edge <= state->layers.n_numbers; edge++) {
        const struct cpl_layer_edge *e = &state->layers.edge[edge];
        int32_t n = 0, m = e->from < 0 ? -1 : state->riders[edge].first;
        for (; m >= 0; m = state->next[(int64_t)m * state->n_waves + e->wave]) {
            const int32_t *stops = state->stops + (int64_t)m * state->n_waves;
            assert_int_equal(e->wave ? stops[e->wave - 1] : state->source[m], e->from);
            assert_int_equal(stops[e->wave], e->to);
            n++;
        }
        assert_true(e->from < 0 || (n > 0 && n == state->riders[edge].n));
        n_rides += n;
    }
    assert_true(n_rides == n_hops);
    cpl_arena_free(&arena);
}

/* --- the cheapest way */

/* The price of a way as cpl_path_find counts it; 1e300 with more than one new edge or over the
 * banned one. */
static double price_way(const struct cpl_improve_state *state, int32_t m,
                        const struct cpl_banned_edge *banned, const int32_t *stops)
{
    const struct cpl_time_loads *loads = &state->loads;
    struct cpl_payload_cost payload = cpl_time_loads_payload(loads, cpl_improve_bytes(state, m));
    int32_t n_new = 0;
    double price = 0;
    for (int32_t w = 0, at = state->source[m]; w < state->n_waves; at = stops[w++]) {
        int32_t to = stops[w];
        if (at == to)
            continue;
        enum cpl_link_class class_ = cpl_machine_link(loads->machine, at, to);
        int32_t edge = cpl_layers_find(&state->layers, w, at, to);
        if (w == banned->wave && at == banned->from && to == banned->to)
            return 1e300;
        if (!edge) {
            n_new++;
            price += cpl_time_loads_open_price(loads, w, at, class_, true) +
                     cpl_time_loads_open_price(loads, w, to, class_, false);
        }
        if (!edge || !cpl_improve_rides_free(state, edge))
            price += cpl_time_loads_ride_price(loads, w, at, class_, true, &payload) +
                     cpl_time_loads_ride_price(loads, w, to, class_, false, &payload);
    }
    return n_new > 1 ? 1e300 : price;
}

/* The smallest price of all ways. */
static double cheapest(const struct cpl_improve_state *state, int32_t m,
                       const struct cpl_banned_edge *banned)
{
    int32_t stops[CPL_MAX_LAYERS], n = state->pattern->n_ranks;
    int64_t n_ways = 1;
    double least = 1e300;
    for (int32_t w = 1; w < state->n_waves; w++)
        n_ways *= n;
    for (int64_t way = 0; way < n_ways; way++) {
        int64_t rest = way;
        for (int32_t w = 0; w < state->n_waves - 1; w++, rest /= n)
            stops[w] = (int32_t)(rest % n);
        stops[state->n_waves - 1] = state->pattern->dst[m];
        least = fmin(least, price_way(state, m, banned, stops));
    }
    return least;
}

/* Takes a message off, bans an edge and finds the cheapest way. */
static void find_way(struct trial *trial, struct cpl_improve_state *state,
                     struct cpl_path_finder *finder)
{
    int32_t m = random_below(&trial->random, (int32_t)trial->pattern.n_messages), found;
    int32_t *stops = cpl_improve_stops(state, m),
            wave = random_below(&trial->random, state->n_waves);
    struct cpl_banned_edge banned = {wave, wave ? stops[wave - 1] : state->source[m], stops[wave]};
    cpl_improve_take(state, m);
    cpl_improve_mark_free(state, m);
    double least = cheapest(state, m, &banned);
    found = least < 1e300;
    cpl_path_find(finder, m, cpl_improve_bytes(state, m), &banned, stops);
    assert_int_equal(stops[state->n_waves - 1], trial->pattern.dst[m]);
    double price = price_way(state, m, &banned, stops);
    if (found && !(price <= least * (1 + 1e-9) + 1e-12))
        fail_msg("seed %d: a way for %g, not for %g", (int)trial->seed, price, least);
    cpl_improve_put(state, m);
}

static void check_ways(struct trial *trial, int32_t n_waves)
{
    struct cpl_arena arena = CPL_ARENA_EMPTY;
    struct cpl_improve_state state;
    struct cpl_path_finder finder;
    struct cpl_routes routes = random_routes(trial, n_waves);
    assert_int_equal(cpl_improve_init(&state, &trial->input, &routes, &arena), CPL_OK);
    assert_int_equal(cpl_path_finder_init(&finder, &state, &arena), CPL_OK);
    double us = cpl_time_loads_us(&state.loads);
    cpl_time_loads_sharpen(&state.loads, us > 0 ? 10 / us : 1);
    check_state(trial, &state);
    for (int step = 0; step < 12 && trial->pattern.n_messages > 0; step++) {
        find_way(trial, &state, &finder);
        cpl_time_loads_mark(&state.loads);
        check_state(trial, &state);
    }
    cpl_routes_free(&routes);
    cpl_arena_free(&arena);
}

static void test_cheapest_ways(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct trial trial;
        set_up(&trial, seed, 10);
        check_ways(&trial, 1 + (int32_t)(seed % 4));
        tear_down(&trial);
    }
}

/* --- improving */

static void improve(const struct trial *trial, int64_t work, struct cpl_routes *routes)
{
    const struct cpl_improve_schedule schedule = {12, 40, 1, work, trial->seed};
    assert_int_equal(cpl_improve_routes(&trial->input, &schedule, routes, NULL), CPL_OK);
}

static void check_improve(struct trial *trial)
{
    int32_t n_waves = 1 + random_below(&trial->random, 5);
    struct cpl_routes routes = random_routes(trial, n_waves), again;
    size_t bytes = (size_t)trial->pattern.n_messages * (size_t)n_waves * sizeof(int32_t);
    double before = cost_of(trial, &routes);
    assert_int_equal(cpl_routes_init(&trial->pattern, n_waves, &again, NULL), CPL_OK);
    memcpy(again.stops, routes.stops, bytes);
    improve(trial, 60000, &routes);
    improve(trial, 60000, &again);
    assert_memory_equal(routes.stops, again.stops, bytes);
    double after = cost_of(trial, &routes);
    if (!(after <= before))
        fail_msg("seed %d: improved from %g us to %g", (int)trial->seed, before, after);
    cpl_routes_free(&again);
    cpl_routes_free(&routes);
}

static void test_improving_never_worsens(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 150; seed++) {
        struct trial trial;
        set_up(&trial, seed, MOST_RANKS);
        check_improve(&trial);
        tear_down(&trial);
    }
}

static void test_too_many_waves(void **state)
{
    (void)state;
    struct trial trial;
    struct cpl_routes routes;
    struct cpl_error error;
    const struct cpl_improve_schedule schedule = {12, 40, 1, 100, 1};
    set_up(&trial, 3, MOST_RANKS);
    assert_int_equal(cpl_routes_init(&trial.pattern, CPL_MAX_LAYERS + 1, &routes, NULL), CPL_OK);
    assert_int_equal(cpl_improve_routes(&trial.input, &schedule, &routes, &error), CPL_ERR_UNFIT);
    assert_string_equal(error.text, "a search takes at most 8 waves");
    cpl_routes_free(&routes);
    tear_down(&trial);
}

/* --- balance */

static struct cpl_plan plan_by(const struct trial *trial, const char *text)
{
    struct cpl_strategy_choice choice;
    struct cpl_plan plan;
    struct cpl_error error = {""};
    assert_int_equal(cpl_strategy_parse(text, &choice, NULL), CPL_OK);
    if ((choice.strategy ? cpl_strategy_plan(&trial->input, &choice, &plan, &error)
                         : cpl_strategy_plan_auto(&trial->input, &choice, &plan, &error)) ||
        cpl_plan_check(&plan, &trial->pattern, &error))
        fail_msg("seed %d, %s: %s", (int)trial->seed, text, error.text);
    return plan;
}

static struct cpl_metrics measure(const struct trial *trial, const struct cpl_plan *plan)
{
    struct cpl_metrics metrics;
    assert_int_equal(
        cpl_plan_measure(plan, &trial->machine, trial->input.unit_bytes, &metrics, NULL), CPL_OK);
    return metrics;
}

static struct cpl_metrics measure_by(const struct trial *trial, const char *text)
{
    struct cpl_plan plan = plan_by(trial, text), again = plan_by(trial, text);
    struct cpl_metrics metrics = measure(trial, &plan);
    assert_true(plan.fingerprint == again.fingerprint);
    cpl_plan_free(&again);
    cpl_plan_free(&plan);
    return metrics;
}

static int64_t busiest(const struct cpl_metrics *metrics)
{
    return metrics->sends_max > metrics->recvs_max ? metrics->sends_max : metrics->recvs_max;
}

/* hops=N: at most N hops, and no rank has more to do than the busiest one of vpt:N or direct. */
static void check_hops(const struct trial *trial, int32_t n_hops)
{
    struct cpl_metrics direct = measure_by(trial, "direct");
    struct cpl_metrics found = measure_by(trial, n_hops == 2 ? "balance:hops=2" : "balance:hops=3");
    assert_true(found.hops_max <= n_hops && found.n_waves <= n_hops);
    assert_true(busiest(&found) <= busiest(&direct));
    if (INT64_C(1) << n_hops > trial->pattern.n_ranks)
        return;
    struct cpl_metrics vpt = measure_by(trial, n_hops == 2 ? "vpt:2" : "vpt:3");
    if (busiest(&found) > busiest(&vpt))
        fail_msg("seed %d: %d messages with %d hops, not %d", (int)trial->seed,
                 (int)busiest(&found), (int)n_hops, (int)busiest(&vpt));
}

static void check_balance(struct trial *trial)
{
    static const double budgets[] = {LEAST_PLANNING, 0.1, 2};
    for (size_t k = 0; k < sizeof budgets / sizeof *budgets; k++) {
        trial->input.budget_ms = budgets[k];
        check_hops(trial, 2);
        check_hops(trial, 3);
        struct cpl_metrics direct = measure_by(trial, "direct");
        struct cpl_metrics found = measure_by(trial, "balance"), chosen = measure_by(trial, "auto");
        assert_true(found.modelled_us <= direct.modelled_us);
        assert_true(chosen.modelled_us <= found.modelled_us);
    }
}

static void test_balance_on_random_patterns(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct trial trial;
        set_up(&trial, seed, 60);
        trial.machine.cores_per_node = seed % 3 ? 0 : 1 + (int32_t)(seed % 5);
        check_balance(&trial);
        tear_down(&trial);
    }
}

/* Patterns from which nothing can be gained, or everything. */
static void test_balance_at_the_limits(void **state)
{
    (void)state;
    static struct cpl_pattern_entry entries[16 * 16];
    for (int32_t n_ranks = 1; n_ranks <= 16; n_ranks = n_ranks < 4 ? n_ranks + 1 : 2 * n_ranks)
        for (int shape = 0; shape < 4; shape++) { /* nothing, all to all, a hub, one message */
            int32_t n = 0;
            for (int32_t s = 0; s < n_ranks && shape > 0; s++)
                for (int32_t d = 0; d < n_ranks; d++)
                    if (shape == 1 || (shape == 2 && (s == 0 || d == 0)) ||
                        (shape == 3 && s + d == 1))
                        entries[n++] = (struct cpl_pattern_entry)MESSAGE(s, d, s + d);
            struct trial trial = {.seed = (uint64_t)n_ranks, .random = 1};
            trial.pattern = make_pattern(n_ranks, entries, n);
            trial.machine = random_machine(&trial.random, n_ranks);
            trial.input = (struct cpl_strategy_input){&trial.pattern, &trial.machine, 8, 1};
            check_balance(&trial);
            tear_down(&trial);
        }
}

/* A hub's messages go over intermediate ranks: the search does find something. */
static void test_balance_gains(void **state)
{
    (void)state;
    struct trial trial = {.random = 1};
    struct cpl_pattern_entry entries[64];
    for (int32_t d = 0; d < 64; d++)
        entries[d] = (struct cpl_pattern_entry)MESSAGE(0, d, 1);
    trial.pattern = make_pattern(64, entries, 64);
    assert_int_equal(cpl_machine_init(64, 1, &trial.machine, NULL), CPL_OK);
    trial.input = (struct cpl_strategy_input){&trial.pattern, &trial.machine, 8, 20};
    struct cpl_metrics two = measure_by(&trial, "balance:hops=2");
    struct cpl_metrics three = measure_by(&trial, "balance:hops=3");
    struct cpl_metrics direct = measure_by(&trial, "direct"), found = measure_by(&trial, "balance");
    assert_in_range(busiest(&two), 7, 8);   /* 8 x 8 */
    assert_in_range(busiest(&three), 3, 5); /* 4 x 4 x 4, and what a rank receives */
    assert_true(found.modelled_us < direct.modelled_us / 2);
    tear_down(&trial);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cover_search),
        cmocka_unit_test(test_cheapest_ways),
        cmocka_unit_test(test_improving_never_worsens),
        cmocka_unit_test(test_too_many_waves),
        cmocka_unit_test(test_balance_on_random_patterns),
        cmocka_unit_test(test_balance_at_the_limits),
        cmocka_unit_test(test_balance_gains),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
