/* Tests of slices that ranks make for themselves (local_plan.h): all ranks of random patterns in
 * one process, which learn by handing messages on. Everything must be what the whole plan gives:
 * the slices word for word, the fingerprints, the figures, the modelled time. */
#include "planner/plan/local_plan.h"

#include "planner/rank_plan.h"
#include "planner/strategy.h"
#include "plans.h"
#include "random_machine.h"
#include "random_pattern.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TRIALS  60
#define MOST    40
#define LARGE   150
#define N_LARGE 4

/* What each rank knows. */
struct ranks {
    int32_t n;
    struct cpl_passing *passing[LARGE];
    int64_t n_passing[LARGE];
    struct cpl_local_plan plan[LARGE];
};

static struct cpl_passing *room_for(struct ranks *ranks, int32_t rank)
{
    int64_t n = ranks->n_passing[rank]++;
    ranks->passing[rank] = realloc(ranks->passing[rank], (size_t)(n + 1) * sizeof **ranks->passing);
    assert_non_null(ranks->passing[rank]);
    return &ranks->passing[rank][n];
}

/* Hands every message on from rank to rank, as the shim does by messages. */
static void learn(struct ranks *ranks, const struct cpl_router *router,
                  const struct cpl_pattern *pattern)
{
    struct cpl_route_room room;
    int64_t done[LARGE] = {0};
    memset(ranks, 0, sizeof *ranks);
    ranks->n = pattern->n_ranks;
    for (int32_t i = 0; i < ranks->n; i++)
        for (int64_t m = pattern->first[i]; m < pattern->first[i + 1]; m++)
            *room_for(ranks, i) = (struct cpl_passing){i, pattern->dst[m], pattern->volume[m]};
    for (bool more = true; more;) {
        more = false;
        for (int32_t i = 0; i < ranks->n; i++)
            for (; done[i] < ranks->n_passing[i]; done[i]++) {
                struct cpl_passing passing = ranks->passing[i][done[i]];
                struct cpl_passing_here here = cpl_passing_here(router, i, &passing, &room);
                if (here.to >= 0)
                    *room_for(ranks, here.to) = passing;
                more |= here.to >= 0 && here.to < i;
            }
    }
}

static void forget(struct ranks *ranks)
{
    for (int32_t i = 0; i < ranks->n; i++)
        free(ranks->passing[i]);
}

static void assert_near(double a, double b, const char *name)
{
    if (fabs(a - b) > 1e-9 * (1 + fabs(a)))
        fail_msg("%s: %.17g is not %.17g", name, a, b);
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int n_alike; /* messages that go the same way as another */

/* What a rank knows before a router is chosen: its edges, and what it counts of its own messages.
 * straight: without what ends there. The caller frees *edges. Returns how many there are. */
static int64_t before_choice(const struct ranks *ranks, const struct cpl_router *router,
                             int32_t rank, bool straight, struct cpl_local_edge **edges,
                             struct cpl_local_counts *counts)
{
    size_t most = 2 * (size_t)ranks->n_passing[rank] + 1;
    struct cpl_local_edge *found = calloc(most, sizeof *found);
    struct cpl_route_room room;
    int64_t n = 0;
    assert_non_null(found);
    *counts = (struct cpl_local_counts){0};
    for (int64_t k = 0; k < ranks->n_passing[rank]; k++) {
        const struct cpl_passing *m = &ranks->passing[rank][k];
        struct cpl_passing_here here = cpl_passing_here(router, rank, m, &room);
        if (here.from < 0)
            cpl_local_count_own(counts, &here, m->volume);
        else if (!straight)
            found[n++] =
                (struct cpl_local_edge){here.from, (int16_t)here.from_wave, false, 1, m->volume};
        if (here.to >= 0)
            found[n++] =
                (struct cpl_local_edge){here.to, (int16_t)here.to_wave, true, 1, m->volume};
        if (k % 3 == 0)
            n = cpl_local_join_edges(found, n);
    }
    *edges = found;
    return cpl_local_join_edges(found, n);
}

/* Messages for one rank are alike where they go the same way from here on, and there only. */
static void check_rest(const struct ranks *ranks, const struct cpl_router *router, int32_t rank)
{
    struct cpl_route_room room, other_room;
    for (int64_t k = 1; k < ranks->n_passing[rank]; k++) {
        const struct cpl_passing *m = &ranks->passing[rank][k - 1], *o = &ranks->passing[rank][k];
        struct cpl_passing_here here = cpl_passing_here(router, rank, m, &room);
        struct cpl_passing_here there = cpl_passing_here(router, rank, o, &other_room);
        int32_t n = cpl_router_path(router, m->src, m->dst, room.stops, room.path, room.wave),
                i = 0;
        int32_t n_other = cpl_router_path(router, o->src, o->dst, other_room.stops, other_room.path,
                                          other_room.wave);
        bool same = true;
        while (n > i && n_other > i && room.path[n - 1 - i] != rank && same) {
            same = room.path[n - 1 - i] == other_room.path[n_other - 1 - i] &&
                   room.wave[n - 1 - i] == other_room.wave[n_other - 1 - i];
            i++;
        }
        same = same && room.path[n - 1 - i] == other_room.path[n_other - 1 - i];
        assert_int_equal(here.rest == there.rest, same);
        n_alike += same;
    }
}

static int n_tallied; /* ranks, by routes of one wave */

static struct cpl_endings count_endings(const struct ranks *ranks,
                                        const struct cpl_machine *machine, int32_t rank)
{
    struct cpl_endings endings = {{0}, {0}};
    for (int64_t k = 0; k < ranks->n_passing[rank]; k++) {
        const struct cpl_passing *m = &ranks->passing[rank][k];
        if (m->dst != rank)
            continue;
        endings.n[cpl_machine_link(machine, m->src, rank)]++;
        endings.volume[cpl_machine_link(machine, m->src, rank)] += m->volume;
    }
    return endings;
}

/* Sums and maxima of what the ranks count are the whole plan's figures. */
static void check_figures(const struct ranks *ranks, const struct cpl_strategy_input *input,
                          const struct cpl_router *router, const struct cpl_plan *plan,
                          const char *name)
{
    const struct cpl_machine *machine = input->machine;
    struct cpl_metrics whole;
    struct cpl_local_counts counts, sum = {0}, most = {0};
    struct cpl_rank_load load[CPL_LOCAL_WAVES];
    static struct cpl_port_load port[CPL_LOCAL_WAVES][LARGE];
    double wave[CPL_LOCAL_WAVES] = {0}, total = 0;
    memset(port, 0, sizeof port);
    for (int32_t i = 0; i < ranks->n; i++) {
        struct cpl_local_edge *edges;
        int64_t n_edges = before_choice(ranks, router, i, false, &edges, &counts);
        assert_int_equal(cpl_local_loads(router, machine, i, edges, n_edges, input->unit_bytes,
                                         load, &counts, NULL),
                         CPL_OK);
        check_rest(ranks, router, i);
        if (router->n_waves == 1) { /* the same again by numbers of what ends there */
            struct cpl_local_counts tallied;
            struct cpl_rank_load its[CPL_LOCAL_WAVES];
            struct cpl_endings endings = count_endings(ranks, machine, i);
            free(edges);
            n_edges = before_choice(ranks, router, i, true, &edges, &tallied);
            assert_int_equal(cpl_local_loads(router, machine, i, edges, n_edges, input->unit_bytes,
                                             its, &tallied, NULL),
                             CPL_OK);
            cpl_local_add_endings(machine, &endings, input->unit_bytes, its, &tallied);
            assert_memory_equal(&tallied, &counts, sizeof counts);
            assert_near(its[0].busy_us, load[0].busy_us, name);
            assert_near(its[0].latency_us, load[0].latency_us, name);
            assert_near(its[0].net_in, load[0].net_in, name);
            assert_near(its[0].net_out, load[0].net_out, name);
            n_tallied++;
        }
        free(edges);
        sum.sends += counts.sends;
        sum.lanes += counts.lanes;
        sum.set += counts.set;
        sum.carried += counts.carried;
        sum.messages += counts.messages;
        sum.volume += counts.volume;
        sum.hops += counts.hops;
        most.sends = larger(most.sends, counts.sends);
        most.recvs = larger(most.recvs, counts.recvs);
        most.set = larger(most.set, counts.set);
        most.mpi = larger(most.mpi, counts.mpi);
        most.most_hops = larger(most.most_hops, counts.most_hops);
        for (int32_t w = 0; w < router->n_waves; w++) {
            wave[w] = fmax(wave[w], cpl_rank_load_time(&machine->costs, &load[w]));
            cpl_port_load_add(&port[w][machine->node[i]], &load[w]);
            port[w][machine->node[i]].recv_us = 0; /* which cpl_plan_cost leaves out */
        }
    }
    for (int32_t w = 0; w < router->n_waves; total += wave[w++])
        for (int32_t k = 0; k < machine->n_nodes; k++)
            wave[w] = fmax(wave[w], cpl_port_load_time(&machine->costs, &port[w][k]));
    assert_int_equal(cpl_plan_measure(plan, machine, input->unit_bytes, &whole, NULL), CPL_OK);
    assert_near(whole.waves_us, total, name);
    assert_near(whole.sends_avg * ranks->n, (double)sum.sends, name);
    assert_near(whole.lanes_avg * ranks->n, (double)sum.lanes, name);
    assert_near(whole.set_avg * ranks->n, (double)sum.set, name);
    assert_near(whole.hops_avg * (double)plan->n_dests, (double)sum.hops, name);
    if (sum.volume > 0)
        assert_near(whole.volume_factor * (double)sum.volume, (double)sum.carried, name);
    assert_int_equal(whole.sends_max, most.sends);
    assert_int_equal(whole.recvs_max, most.recvs);
    assert_int_equal(whole.set_max, most.set);
    assert_int_equal(whole.mpi_max, most.mpi);
    assert_int_equal(whole.hops_max, most.most_hops);
    assert_int_equal(plan->n_dests, sum.messages);
}

/* Each receiver tells the senders of its edges how many it sends later. */
static void tell_later(struct ranks *ranks)
{
    for (int32_t i = 0; i < ranks->n; i++)
        for (int32_t e = 0; e < ranks->plan[i].n_out; e++) {
            struct cpl_local_plan *to = &ranks->plan[ranks->plan[i].out_to[e]];
            int n_found = 0;
            for (int32_t k = 0; k < to->n_in; k++)
                if (to->in_from[k] == i && to->in_wave[k] == ranks->plan[i].out_wave[e]) {
                    ranks->plan[i].out_later[e] = to->in_later[k];
                    n_found++;
                }
            assert_int_equal(n_found, 1); /* both ends know the edge */
        }
}

static void check_slices(struct ranks *ranks, const struct cpl_router *router,
                         const struct cpl_pattern *pattern, const struct cpl_plan *plan,
                         const char *name)
{
    struct cpl_slicer slicer;
    uint64_t waves = 0, rows = 0, edges = 0;
    assert_int_equal(cpl_slicer_init(&slicer, plan, pattern, NULL), CPL_OK);
    for (int32_t i = 0; i < ranks->n; i++) {
        assert_int_equal(cpl_local_plan_make(router, ranks->n, i, ranks->passing[i],
                                             ranks->n_passing[i], &ranks->plan[i], NULL),
                         CPL_OK);
        waves |= ranks->plan[i].waves;
    }
    tell_later(ranks);
    for (int32_t i = 0; i < ranks->n; i++) {
        cpl_local_plan_order(&ranks->plan[i], waves);
        rows += ranks->plan[i].row_hash;
        edges += ranks->plan[i].edges_hash;
    }
    uint64_t of_pattern = cpl_pattern_join_hashes(ranks->n, rows);
    uint64_t of_plan = cpl_plan_join_hashes(of_pattern, ranks->n, plan->n_waves, edges);
    assert_true(of_pattern == plan->pattern_fingerprint);
    assert_true(of_plan == plan->fingerprint);
    for (int32_t i = 0; i < ranks->n; i++) {
        int32_t n_words, n_mine, *mine;
        assert_int_equal(cpl_slicer_words(&slicer, i, &n_words, NULL), CPL_OK);
        int32_t *words = malloc((size_t)n_words * sizeof *words);
        assert_non_null(words);
        cpl_slicer_extract(&slicer, i, words);
        assert_int_equal(
            cpl_local_plan_words(&ranks->plan[i], of_pattern, of_plan, &mine, &n_mine, NULL),
            CPL_OK);
        if (n_mine != n_words || memcmp(mine, words, (size_t)n_words * sizeof *words) != 0)
            fail_msg("%s: the slice of rank %d of %d differs", name, (int)i, (int)ranks->n);
        free(words);
        free(mine);
        cpl_local_plan_free(&ranks->plan[i]);
    }
    cpl_slicer_free(&slicer);
}

/* Returns whether the choice has a router. */
static bool check_choice(const struct cpl_strategy_input *input,
                         const struct cpl_strategy_choice *choice)
{
    static struct ranks ranks;
    char name[CPL_STRATEGY_TEXT];
    struct cpl_router router;
    struct cpl_routes routes, by_router;
    struct cpl_plan plan;
    if (cpl_strategy_router(input, choice, &router, NULL))
        return false;
    cpl_strategy_format(choice, name);
    assert_int_equal(cpl_strategy_route(input, choice, &routes, NULL), CPL_OK);
    assert_int_equal(cpl_router_routes(&router, input->pattern, &by_router, NULL), CPL_OK);
    assert_int_equal(routes.n_waves, router.n_waves);
    assert_memory_equal(routes.stops, by_router.stops,
                        (size_t)(routes.n_messages * routes.n_waves) * sizeof *routes.stops);
    assert_int_equal(cpl_plan_build(input->pattern, &routes, &plan, NULL), CPL_OK);
    learn(&ranks, &router, input->pattern);
    check_figures(&ranks, input, &router, &plan, name);
    check_slices(&ranks, &router, input->pattern, &plan, name);
    forget(&ranks);
    cpl_plan_free(&plan);
    cpl_routes_free(&routes);
    cpl_routes_free(&by_router);
    cpl_router_free(&router);
    return true;
}

static void check_pattern(uint64_t seed, int32_t most, size_t *n_computed)
{
    uint64_t random = seed;
    struct cpl_pattern pattern = random_pattern_of_own(seed, most);
    struct cpl_machine machine = random_machine(&random, pattern.n_ranks);
    struct cpl_strategy_input input = {&pattern, &machine, 1 + (double)random_below(&random, 9), 1};
    struct cpl_strategy_list list = {0};
    machine.lanes = random_below(&random, 2);
    cpl_strategy_candidates(&input, &list);
    for (size_t k = 0; k < list.n; k++)
        *n_computed += check_choice(&input, &list.choice[k]);
    cpl_machine_free(&machine);
    cpl_pattern_free(&pattern);
}

static void test_same_as_the_whole(void **state)
{
    (void)state;
    size_t n_computed = 0;
    for (uint64_t seed = 0; seed < TRIALS; seed++)
        check_pattern(seed, MOST, &n_computed);
    for (uint64_t seed = 0; seed < N_LARGE; seed++)
        check_pattern(1000 + seed, LARGE, &n_computed);
    assert_true(n_computed > 3 * TRIALS);
    assert_true(n_tallied > TRIALS);
    assert_true(n_alike > TRIALS);
}

static void test_what_has_no_router(void **state)
{
    (void)state;
    static const char *const names[] = {"share", "balance", "vpt:2+klr", "grid:2x2+near"};
    struct cpl_pattern pattern = random_pattern_of_own(3, MOST);
    struct cpl_machine machine;
    struct cpl_strategy_input input = {&pattern, &machine, 1, 1};
    assert_int_equal(cpl_machine_init(pattern.n_ranks, 4, &machine, NULL), CPL_OK);
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        struct cpl_strategy_choice choice;
        struct cpl_router router;
        struct cpl_error error = {""};
        assert_int_equal(cpl_strategy_parse(names[k], &choice, &error), CPL_OK);
        assert_int_equal(cpl_strategy_router(&input, &choice, &router, &error), CPL_ERR_UNFIT);
        assert_true(strstr(error.text, "all messages") != NULL);
    }
    cpl_machine_free(&machine);
    cpl_pattern_free(&pattern);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_as_the_whole),
        cmocka_unit_test(test_what_has_no_router),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
