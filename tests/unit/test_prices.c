/* Tests of the prices that searches use: the exponential function (exponential.h), prices of covers
 * (cover_price.h) and of the full model (time_loads.h). Under random changes, everything that is
 * updated equals the same computed from scratch. */
#include "planner/plan.h"
#include "planner/search/cover_price.h"
#include "planner/search/exponential.h"
#include "planner/search/time_loads.h"
#include "plans.h"
#include "random_machine.h"
#include "random_pattern.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define MOST_RANKS 20
#define N_TRIALS   120
#define MOST_RIDES 300

/* Fails unless a and b differ by less than a part of scale. */
static void assert_near(double a, double b, double part, double scale, uint64_t seed)
{
    if (!(fabs(a - b) <= part * fabs(scale)))
        fail_msg("seed %d: %.17g instead of %.17g", (int)seed, a, b);
}

static double fraction(uint64_t *random)
{
    return (double)random_draw(random, 1 << 30) / (1 << 30);
}

static void test_exponential(void **state)
{
    (void)state;
    uint64_t random = 1;
    assert_true(cpl_exponential(0) == 1);
    assert_true(cpl_exponential(-700.5) == 0);
    assert_true(cpl_exponential(-1e300) == 0);
    assert_true(cpl_exponential(-INFINITY) == 0);
    assert_near(cpl_exponential(701), exp(700), 1e-9, exp(700), 0);
    assert_near(cpl_exponential(INFINITY), exp(700), 1e-9, exp(700), 0);
    for (int k = 0; k < 200000; k++) {
        double x = 1400 * fraction(&random) - 700;
        x = k % 3 == 0 ? x / 700 : x;
        x = k % 97 == 0 ? (double)(k % 1000) * 0.34657359027997264 : x; /* where halving turns */
        assert_near(cpl_exponential(x), exp(x), 1e-10, exp(x), 0);
    }
}

/* --- prices of covers */

struct priced {
    struct cpl_cover_price price;
    bool edge[CPL_COVER_STAGES][MOST_RANKS][MOST_RANKS];
    uint64_t seed;
    double largest; /* of the sums since the last sharpening: their digits end below it */
};

/* The load of a rank's slot: of its sends (or receives) in all stages, or of a stage. */
static int32_t naive_load(const struct priced *p, int32_t stage, int32_t rank, bool sends)
{
    const struct cpl_cover_price *price = &p->price;
    bool time = price->goal == CPL_COVER_TIME;
    int32_t load = 0, latency = 0;
    for (int32_t k = 0; k < CPL_COVER_STAGES; k++)
        for (int32_t peer = 0; peer < price->n_ranks && (!time || k == stage); peer++) {
            const struct cpl_link_cost *link =
                cpl_machine_edge_cost(price->machine, cpl_machine_link(price->machine, rank, peer));
            bool out = p->edge[k][rank][peer], in = p->edge[k][peer][rank];
            if (!time) {
                load += sends ? out : in;
                continue;
            }
            load += out ? (int32_t)(link->send_us / price->unit_us + 0.5) : 0;
            load += in ? (int32_t)(link->recv_us / price->unit_us + 0.5) : 0;
            int32_t units = (int32_t)(link->latency_us / price->unit_us + 0.5);
            latency = (out || in) && units > latency ? units : latency;
        }
    return load + latency;
}

static double naive_sum(const struct priced *p, int32_t group, int32_t *peak)
{
    const struct cpl_cover_price *price = &p->price;
    double sum = 0;
    *peak = 0;
    for (int side = 0; side < (price->goal == CPL_COVER_TIME ? 1 : 2); side++)
        for (int32_t r = 0; r < price->n_ranks; r++) {
            int32_t load = naive_load(p, group, r, side == 0);
            int32_t shown = load < price->n_powers ? load : price->n_powers - 1;
            *peak = load > *peak ? load : *peak;
            sum += exp(price->sharpness * (shown - price->top));
        }
    return sum;
}

/* The sums and peaks; with the largest load at the last sharpening, the powers' room. */
static void check_sums(struct priced *p, double *sums)
{
    int64_t peaks = 0;
    for (int32_t group = 0; group < p->price.n_groups; group++) {
        int32_t peak;
        sums[group] = naive_sum(p, group, &peak);
        p->largest = fmax(p->largest, sums[group]);
        assert_near(p->price.sum[group], sums[group], 1e-9, p->largest, p->seed);
        assert_int_equal(cpl_cover_price_peak(&p->price, group), peak);
        peaks += peak;
    }
    assert_true(cpl_cover_price_peaks(&p->price) == peaks);
}

static void sharpen(struct priced *p, double sharpness)
{
    double sums[CPL_COVER_STAGES];
    assert_int_equal(cpl_cover_price_sharpen(&p->price, sharpness), CPL_OK);
    int64_t top = 0;
    for (int32_t group = 0; group < p->price.n_groups; group++)
        top = cpl_cover_price_peak(&p->price, group) > top ? cpl_cover_price_peak(&p->price, group)
                                                           : top;
    assert_int_equal(p->price.top, top);
    p->largest = 0;
    check_sums(p, sums);
}

/* Adds or removes a random edge: its price before is the change of the group's sum. */
static void toggle_priced(struct priced *p, uint64_t *random)
{
    double before[CPL_COVER_STAGES], after[CPL_COVER_STAGES], product = 1;
    int32_t n = p->price.n_ranks, stage = random_below(random, CPL_COVER_STAGES);
    int32_t from = random_below(random, n), to = random_below(random, n);
    if (from == to)
        return;
    bool *edge = &p->edge[stage][from][to];
    int32_t group = p->price.goal == CPL_COVER_TIME ? stage : 0;
    check_sums(p, before);
    double price = *edge ? -cpl_cover_price_gain(&p->price, stage, from, to)
                         : cpl_cover_price_add(&p->price, stage, from, to);
    cpl_cover_price_mark(&p->price);
    cpl_cover_price_apply(&p->price, stage, from, to, *edge ? -1 : 1);
    *edge = !*edge;
    check_sums(p, after);
    double scale = p->largest / before[group];
    assert_near(price, (after[group] - before[group]) / before[group], 1e-8, scale, p->seed);
    for (int32_t g = 0; g < p->price.n_groups; g++)
        product *= after[g] / before[g];
    assert_near(cpl_cover_price_rise(&p->price), product - 1, 1e-7, scale, p->seed);
}

static void check_priced(uint64_t seed, enum cpl_cover_goal goal)
{
    static struct priced p;
    uint64_t random = seed;
    struct cpl_arena arena = CPL_ARENA_EMPTY;
    int32_t n_ranks = 1 + random_below(&random, MOST_RANKS);
    struct cpl_machine machine = random_machine(&random, n_ranks);
    memset(&p, 0, sizeof p);
    p.seed = seed;
    assert_int_equal(cpl_cover_price_init(&p.price, goal, &machine, &arena, NULL), CPL_OK);
    for (int32_t k = random_below(&random, 60); k > 0; k--) {
        int32_t from = random_below(&random, n_ranks), to = random_below(&random, n_ranks);
        bool *edge = &p.edge[k % CPL_COVER_STAGES][from][to];
        if (from != to && !*edge)
            cpl_cover_price_load(&p.price, k % CPL_COVER_STAGES, from, to);
        *edge = from != to;
    }
    for (int round = 0; round < 4; round++) {
        sharpen(&p, goal == CPL_COVER_TIME ? (0.1 + fraction(&random)) * p.price.unit_us + 0.001
                                           : 0.2 + 2 * fraction(&random));
        for (int step = 0; step < 25; step++)
            toggle_priced(&p, &random);
    }
    cpl_arena_free(&arena);
    cpl_machine_free(&machine);
}

static void test_cover_prices(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < N_TRIALS; seed++) {
        check_priced(seed, CPL_COVER_COUNTS);
        check_priced(seed, CPL_COVER_TIME);
    }
}

/* --- loads under the full model */

static void add_plan(struct cpl_time_loads *loads, const struct cpl_plan *plan, double unit_bytes)
{
    for (int64_t e = 0; e < plan->n_edges; e++) {
        const struct cpl_edge *edge = &plan->edges[e];
        cpl_time_loads_edge(loads, edge->wave - 1, edge->from, edge->to, 1);
        for (int64_t s = edge->first_segment; s < edge->first_segment + edge->n_segments; s++)
            cpl_time_loads_segment(loads, edge->wave - 1, edge->from, edge->to,
                                   (double)plan->bundles[plan->segments[s]].volume * unit_bytes, 1);
    }
}

/* What the loads of a plan take is what plan_cost.c says. */
static void test_loads_cost_what_plans_cost(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 1500; seed++) {
        static const double units[] = {8, 1, 0.3, 1000};
        uint64_t random = seed;
        struct cpl_arena arena = CPL_ARENA_EMPTY;
        struct cpl_time_loads loads;
        struct cpl_pattern pattern = random_pattern_undivided(seed, 60);
        struct cpl_machine machine = random_machine(&random, pattern.n_ranks);
        struct cpl_plan plan =
            make_random_plan(&pattern, 1 + random_below(&random, CPL_MAX_LAYERS), seed);
        double us, unit_bytes = units[seed % 4];
        assert_int_equal(cpl_plan_cost(&plan, &machine, unit_bytes, &us, NULL), CPL_OK);
        assert_int_equal(cpl_time_loads_init(&loads, &machine, CPL_MAX_LAYERS, &arena), CPL_OK);
        cpl_time_loads_sharpen(&loads, seed % 2 ? 0.1 : 0);
        add_plan(&loads, &plan, unit_bytes);
        assert_near(cpl_time_loads_us(&loads), us, 1e-9, us, seed);
        cpl_plan_free(&plan);
        cpl_arena_free(&arena);
        cpl_machine_free(&machine);
        cpl_pattern_free(&pattern);
    }
}

/* An edge with one segment. */
struct ride {
    int32_t wave, from, to;
    double bytes;
};

struct loaded {
    struct cpl_machine machine;
    struct cpl_time_loads loads;
    struct cpl_arena arena;
    struct ride ride[MOST_RIDES];
    int32_t n_rides;
    uint64_t seed;
};

static int32_t riders_of(const struct loaded *l, const struct ride *ride)
{
    int32_t n = 0;
    for (int32_t k = 0; k < l->n_rides; k++)
        n += l->ride[k].wave == ride->wave && l->ride[k].from == ride->from &&
             l->ride[k].to == ride->to;
    return n;
}

static void put(struct loaded *l, struct ride ride)
{
    if (!riders_of(l, &ride))
        cpl_time_loads_edge(&l->loads, ride.wave, ride.from, ride.to, 1);
    cpl_time_loads_segment(&l->loads, ride.wave, ride.from, ride.to, ride.bytes, 1);
    l->ride[l->n_rides++] = ride;
}

static void take(struct loaded *l, int32_t k)
{
    struct ride ride = l->ride[k];
    l->ride[k] = l->ride[--l->n_rides];
    cpl_time_loads_segment(&l->loads, ride.wave, ride.from, ride.to, ride.bytes, -1);
    if (!riders_of(l, &ride))
        cpl_time_loads_edge(&l->loads, ride.wave, ride.from, ride.to, -1);
}

static struct ride random_ride(const struct loaded *l, uint64_t *random)
{
    struct ride ride = {random_below(random, l->loads.n_waves),
                        random_below(random, l->machine.n_ranks),
                        random_below(random, l->machine.n_ranks - 1),
                        (double)(1 + random_draw(random, random_draw(random, 2) ? 10000 : 10))};
    ride.to += ride.to >= ride.from;
    return ride;
}

static void set_up(struct loaded *l, uint64_t seed, uint64_t *random)
{
    *random = seed;
    l->seed = seed;
    l->n_rides = 0;
    l->arena = CPL_ARENA_EMPTY;
    l->machine = random_machine(random, 2 + random_below(random, MOST_RANKS - 1));
    assert_int_equal(
        cpl_time_loads_init(&l->loads, &l->machine, 1 + random_below(random, 3), &l->arena),
        CPL_OK);
    cpl_time_loads_sharpen(&l->loads, 0);
    for (int32_t k = random_below(random, MOST_RIDES / 2); k > 0; k--)
        put(l, random_ride(l, random));
}

static void tear_down(struct loaded *l)
{
    cpl_arena_free(&l->arena);
    cpl_machine_free(&l->machine);
}

/* A sharpness at which the loads differ in price without prices differing beyond all measure. */
static double good_sharpness(const struct loaded *l, double factor)
{
    double us = cpl_time_loads_us(&l->loads) / l->loads.n_waves;
    return us > 1e-9 ? factor / us : 1; /* what is left of loads that came and went is nothing */
}

static double sum_of(const struct loaded *l, int32_t wave)
{
    return l->loads.wave[wave].sum;
}

/* The sharpened state equals that of loads to which the same rides come for the first time. */
static void check_anew(const struct loaded *l)
{
    static struct loaded fresh;
    const struct cpl_time_loads *a = &l->loads, *b = &fresh.loads;
    fresh.machine = l->machine;
    fresh.arena = CPL_ARENA_EMPTY;
    fresh.n_rides = 0;
    assert_int_equal(cpl_time_loads_init(&fresh.loads, &l->machine, a->n_waves, &fresh.arena),
                     CPL_OK);
    for (int32_t k = 0; k < l->n_rides; k++)
        put(&fresh, l->ride[k]);
    cpl_time_loads_sharpen(&fresh.loads, a->sharpness);
    double us = cpl_time_loads_us(b);
    assert_near(cpl_time_loads_us(a), us, 1e-9, us + 1e-3, l->seed);
    for (int32_t w = 0; w < a->n_waves; w++)
        assert_near(a->wave[w].sum, b->wave[w].sum, 1e-8, b->wave[w].sum, l->seed);
    for (int32_t k = 0; k < a->n_waves * l->machine.n_ranks; k++) {
        assert_near(a->rank[k].power, b->rank[k].power, 1e-8, b->rank[k].power, l->seed);
        assert_near(a->rank[k].wire.power, b->rank[k].wire.power, 1e-8, b->rank[k].wire.power,
                    l->seed);
        assert_int_equal(a->rank[k].classes, b->rank[k].classes);
        assert_memory_equal(a->rank[k].n_edges, b->rank[k].n_edges, sizeof b->rank[k].n_edges);
    }
    for (int32_t k = 0; k < a->n_waves * l->machine.n_nodes; k++)
        assert_near(a->node[k].power, b->node[k].power, 1e-8, b->node[k].power, l->seed);
    cpl_arena_free(&fresh.arena);
}

/* With lanes a load may be a thousand times as long as the wave was when it was sharpened. */
static double naive_power(const struct loaded *l, int32_t wave, double us)
{
    return exp(fmin(700, l->loads.sharpness * (us - l->loads.wave[wave].peak_us)));
}

static double naive_wire(const struct loaded *l, int32_t wave, const struct cpl_wire_load *wire,
                         double us_per_byte)
{
    double bytes = fmax(wire->out, wire->in);
    double us = l->machine.costs.link[CPL_LINK_NETWORK].latency_us + bytes * us_per_byte;
    return bytes > 0 ? naive_power(l, wave, us) : 0;
}

/* The sums from the ranks' and nodes' loads. */
static double naive_wave_sum(const struct loaded *l, int32_t wave)
{
    const struct cpl_time_loads *loads = &l->loads;
    double sum = 0;
    for (int32_t r = 0; r < l->machine.n_ranks; r++) {
        const struct cpl_rank_load *load = &loads->rank[wave * l->machine.n_ranks + r];
        double latency_us = 0;
        for (int32_t k = 0; k < CPL_N_LINKS; k++)
            if (load->n_edges[k] > 0)
                latency_us = fmax(latency_us, cpl_machine_edge_cost(&l->machine, k)->latency_us);
        sum += naive_power(l, wave, load->busy_us + latency_us);
        sum += naive_wire(l, wave, &load->wire, loads->net_us_per_byte);
    }
    for (int32_t k = 0; k < l->machine.n_nodes; k++)
        sum += naive_wire(l, wave, &loads->node[wave * l->machine.n_nodes + k],
                          loads->node_us_per_byte);
    return sum;
}

static void test_loads_under_changes(void **state)
{
    (void)state;
    static struct loaded l;
    for (uint64_t seed = 0; seed < N_TRIALS; seed++) {
        uint64_t random;
        set_up(&l, seed, &random);
        for (int round = 0; round < 4; round++) {
            cpl_time_loads_sharpen(&l.loads, good_sharpness(&l, 1 + 4 * fraction(&random)));
            check_anew(&l);
            double before[CPL_MAX_LAYERS], product = 1, largest[CPL_MAX_LAYERS] = {0};
            assert_int_equal(cpl_time_loads_mark(&l.loads), 0);
            for (int32_t w = 0; w < l.loads.n_waves; w++)
                before[w] = sum_of(&l, w);
            for (int step = 0; step < 40; step++) {
                if (l.n_rides > 0 && (random_draw(&random, 2) || l.n_rides == MOST_RIDES))
                    take(&l, random_below(&random, l.n_rides));
                else
                    put(&l, random_ride(&l, &random));
                for (int32_t w = 0; w < l.loads.n_waves; w++) {
                    largest[w] = fmax(largest[w], sum_of(&l, w));
                    assert_near(sum_of(&l, w), naive_wave_sum(&l, w), 1e-8, largest[w], seed);
                }
            }
            for (int32_t w = 0; w < l.loads.n_waves; w++)
                product *= sum_of(&l, w) / before[w];
            if (isinf(product))
                assert_true(isinf(cpl_time_loads_rise(&l.loads)));
            else
                assert_near(cpl_time_loads_rise(&l.loads), product - 1, 1e-9, product + 1, seed);
        }
        tear_down(&l);
    }
}

/* The price of a new edge is the change of the wave's sum. */
static void check_open_price(struct loaded *l, struct ride ride)
{
    enum cpl_link_class class_ = cpl_machine_link(&l->machine, ride.from, ride.to);
    double before = sum_of(l, ride.wave);
    if (riders_of(l, &ride))
        return;
    double price = cpl_time_loads_open_price(&l->loads, ride.wave, ride.from, class_, true) +
                   cpl_time_loads_open_price(&l->loads, ride.wave, ride.to, class_, false);
    cpl_time_loads_edge(&l->loads, ride.wave, ride.from, ride.to, 1);
    assert_near(price, sum_of(l, ride.wave) / before - 1, 1e-8, 1 + price, l->seed);
    cpl_time_loads_edge(&l->loads, ride.wave, ride.from, ride.to, -1);
}

static bool between_slopes(const struct cpl_wire_load *wire, const struct ride *ride)
{
    return fabs(wire->out - wire->in) <= ride->bytes;
}

/* The price of a little more on a present edge is the slope of the wave's sum. */
static void check_ride_price(struct loaded *l, struct ride ride)
{
    enum cpl_link_class class_ = cpl_machine_link(&l->machine, ride.from, ride.to);
    struct cpl_payload_cost payload = cpl_time_loads_payload(&l->loads, ride.bytes);
    const struct cpl_wire_load *nodes = &l->loads.node[ride.wave * l->machine.n_nodes];
    const struct cpl_rank_load *ranks = &l->loads.rank[ride.wave * l->machine.n_ranks];
    double before = sum_of(l, ride.wave);
    if (class_ == CPL_LINK_NETWORK && (between_slopes(&nodes[l->machine.node[ride.from]], &ride) ||
                                       between_slopes(&nodes[l->machine.node[ride.to]], &ride) ||
                                       between_slopes(&ranks[ride.from].wire, &ride) ||
                                       between_slopes(&ranks[ride.to].wire, &ride)))
        return;
    double price =
        cpl_time_loads_ride_price(&l->loads, ride.wave, ride.from, class_, true, &payload) +
        cpl_time_loads_ride_price(&l->loads, ride.wave, ride.to, class_, false, &payload);
    cpl_time_loads_segment(&l->loads, ride.wave, ride.from, ride.to, ride.bytes, 1);
    assert_near(price, sum_of(l, ride.wave) / before - 1, 2e-3, price + 1e-9, l->seed);
    cpl_time_loads_segment(&l->loads, ride.wave, ride.from, ride.to, ride.bytes, -1);
}

static void test_prices_of_rides(void **state)
{
    (void)state;
    static struct loaded l;
    for (uint64_t seed = 0; seed < N_TRIALS; seed++) {
        uint64_t random;
        set_up(&l, seed, &random);
        cpl_time_loads_sharpen(&l.loads, good_sharpness(&l, 3));
        for (int k = 0; k < 60; k++)
            check_open_price(&l, random_ride(&l, &random));
        cpl_time_loads_sharpen(&l.loads, good_sharpness(&l, 1e-3));
        for (int k = 0; k < l.n_rides; k++) {
            struct ride ride = l.ride[k];
            ride.bytes = 1;
            check_ride_price(&l, ride);
        }
        tear_down(&l);
    }
}

/* A load that comes and goes leaves sums without digits; marking makes them anew. */
static void test_marks_mend_lost_digits(void **state)
{
    (void)state;
    static struct loaded l;
    int32_t n_mended = 0;
    for (uint64_t seed = 0; seed < N_TRIALS; seed++) {
        uint64_t random;
        set_up(&l, seed, &random);
        cpl_time_loads_sharpen(&l.loads, good_sharpness(&l, 10));
        for (int k = 0; k < 20; k++) {
            struct ride heavy = random_ride(&l, &random);
            heavy.bytes = (double)(1 + random_draw(&random, UINT64_C(1) << (10 + 2 * k % 40)));
            put(&l, heavy);
            take(&l, l.n_rides - 1);
            n_mended += cpl_time_loads_mark(&l.loads);
            for (int32_t w = 0; w < l.loads.n_waves; w++)
                assert_near(sum_of(&l, w), naive_wave_sum(&l, w), 1e-4, sum_of(&l, w), seed);
        }
        tear_down(&l);
    }
    assert_true(n_mended > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exponential),
        cmocka_unit_test(test_cover_prices),
        cmocka_unit_test(test_loads_cost_what_plans_cost),
        cmocka_unit_test(test_loads_under_changes),
        cmocka_unit_test(test_prices_of_rides),
        cmocka_unit_test(test_marks_mend_lost_digits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
