/* Tests of searches in parts (part_search.h, detours.h): the parts of random patterns' plans are
 * searched one after another, as different ranks would. What they find must stay inside each part,
 * be no slower by the model, and fit together to one plan, which is that of the walk but for the
 * detours. */
#include "planner/strategies/part_search.h"

#include "planner/plan.h"
#include "planner/strategy.h"
#include "plans.h"
#include "random_machine.h"
#include "random_pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TRIALS    80
#define MOST      48
#define BUDGET_MS 2

/* A pattern's plan, and what the parts have found. */
struct trial {
    struct cpl_pattern pattern;
    struct cpl_machine machine;
    struct cpl_strategy_input input;
    struct cpl_walk walk;
    int32_t nodes_a_part, n_parts;
    struct cpl_detour *detours;
    int64_t n_detours;
};

static int n_improved, n_outside; /* parts; messages that leave theirs */

static int32_t part_of(const struct trial *t, int32_t rank)
{
    return t->machine.node[rank] / t->nodes_a_part;
}

/* Whether a message's way is inside a part, and whether it passes through it. */
struct where {
    bool inside, through;
};

static struct where look(const struct trial *t, const struct cpl_walk *walk, int32_t part,
                         int32_t src, int32_t dst)
{
    struct cpl_way_room room;
    struct where where = {true, false};
    int32_t n = cpl_walk_path(walk, src, dst, room.stops, room.path, room.wave);
    for (int32_t k = 0; k < n; k++) {
        where.inside &= part_of(t, room.path[k]) == part;
        where.through |= part_of(t, room.path[k]) == part;
    }
    return where;
}

static void check_detour(const struct trial *t, int32_t part, const struct cpl_detour *detour)
{
    const struct cpl_passing *m = &detour->message;
    int32_t n_waves = cpl_part_waves(&t->walk);
    assert_true(look(t, &t->walk, part, m->src, m->dst).inside);
    for (int32_t w = 0; w < n_waves; w++) {
        assert_in_range(detour->stops[w], 0, t->pattern.n_ranks - 1);
        assert_int_equal(part_of(t, detour->stops[w]), part);
    }
    assert_int_equal(detour->stops[n_waves - 1], m->dst);
    for (int64_t k = 0; k < t->n_detours; k++)
        assert_true(cpl_detour_compare(&t->detours[k], detour) != 0);
}

static void search(struct trial *t, int32_t part)
{
    const struct cpl_pattern *p = &t->pattern;
    struct cpl_passing *passing = calloc((size_t)p->n_messages + 1, sizeof *passing);
    int32_t *inside = calloc((size_t)p->n_ranks, sizeof *inside), n_inside = 0;
    struct cpl_part_found found;
    int64_t n = 0;
    assert_true(passing && inside);
    for (int32_t i = 0; i < p->n_ranks; i++) {
        if (part_of(t, i) == part)
            inside[n_inside++] = i;
        for (int64_t m = p->first[i]; m < p->first[i + 1]; m++) {
            struct where where = look(t, &t->walk, part, i, p->dst[m]);
            if (where.through)
                passing[n++] = (struct cpl_passing){i, p->dst[m], p->volume[m]};
            n_outside += where.through && !where.inside;
        }
    }
    const struct cpl_part of = {&t->walk, &t->machine, n_inside, inside};
    assert_int_equal(cpl_part_search(&of, passing, n, t->input.unit_bytes, BUDGET_MS, &found, NULL),
                     CPL_OK);
    assert_true(found.us <= found.before_us);
    assert_true(found.us < found.before_us || found.n == 0);
    n_improved += found.n > 0;
    for (int64_t k = 0; k < found.n; k++) {
        check_detour(t, part, &found.detours[k]);
        t->detours[t->n_detours++] = found.detours[k];
    }
    if (t->n_parts == 1) {
        struct cpl_routes routes;
        double us;
        assert_int_equal(cpl_walk_routes(&t->walk, p, &routes, NULL), CPL_OK);
        assert_int_equal(cpl_strategy_time(&t->input, &routes, &us, NULL), CPL_OK);
        assert_true(us - found.before_us < 1e-9 && found.before_us - us < 1e-9);
        cpl_routes_free(&routes);
    }
    cpl_part_found_free(&found);
    free(passing);
    free(inside);
}

static int64_t find(const struct trial *t, int32_t src, int32_t dst)
{
    int64_t k = 0;
    while (k < t->n_detours &&
           (t->detours[k].message.src != src || t->detours[k].message.dst != dst))
        k++;
    return k;
}

/* All detours together make a plan, and other messages go as before. */
static void check_whole(const struct trial *t)
{
    const struct cpl_pattern *p = &t->pattern;
    struct cpl_walk walk;
    struct cpl_routes routes;
    struct cpl_plan plan;
    struct cpl_way_room before, now;
    struct cpl_error error;
    assert_int_equal(
        cpl_detours_walk(&t->walk, cpl_part_waves(&t->walk), t->detours, t->n_detours, &walk, NULL),
        CPL_OK);
    assert_int_equal(cpl_walk_routes(&walk, p, &routes, NULL), CPL_OK);
    assert_int_equal(cpl_plan_build(p, &routes, &plan, NULL), CPL_OK);
    if (cpl_plan_check(&plan, p, &error))
        fail_msg("%s", error.text);
    for (int32_t i = 0; i < p->n_ranks; i++)
        for (int64_t m = p->first[i]; m < p->first[i + 1]; m++) {
            int64_t k = find(t, i, p->dst[m]);
            if (k < t->n_detours) {
                assert_memory_equal(cpl_routes_of(&routes, m), t->detours[k].stops,
                                    (size_t)walk.n_waves * sizeof(int32_t));
                continue;
            }
            int32_t n = cpl_walk_path(&walk, i, p->dst[m], now.stops, now.path, now.wave);
            assert_int_equal(
                cpl_walk_path(&t->walk, i, p->dst[m], before.stops, before.path, before.wave), n);
            assert_memory_equal(now.path, before.path, (size_t)n * sizeof *now.path);
            assert_memory_equal(now.wave, before.wave, (size_t)n * sizeof *now.wave);
        }
    cpl_plan_free(&plan);
    cpl_routes_free(&routes);
    cpl_walk_free(&walk);
}

static void try(uint64_t seed)
{
    uint64_t random = seed;
    struct trial t = {.pattern = random_pattern_of_own(seed, MOST)};
    struct cpl_strategy_list list = {0};
    t.machine = random_machine(&random, t.pattern.n_ranks);
    t.machine.lanes = random_below(&random, 2);
    t.input = (struct cpl_strategy_input){&t.pattern, &t.machine,
                                          1 + (double)random_below(&random, 9), BUDGET_MS};
    t.nodes_a_part = 1 + random_below(&random, t.machine.n_nodes);
    t.n_parts = (t.machine.n_nodes - 1) / t.nodes_a_part + 1;
    t.detours = calloc((size_t)t.pattern.n_messages + 1, sizeof *t.detours);
    assert_non_null(t.detours);
    cpl_strategy_candidates(&t.input, &list);
    for (size_t k = (size_t)random_below(&random, 5); k < list.n; k += 5) {
        if (cpl_strategy_walk(&t.input, &list.choice[k], &t.walk, NULL))
            continue;
        t.n_detours = 0;
        for (int32_t part = 0; part < t.n_parts && t.walk.n_waves <= CPL_DETOUR_WAVES; part++)
            search(&t, part);
        if (t.walk.n_waves <= CPL_DETOUR_WAVES)
            check_whole(&t);
        cpl_walk_free(&t.walk);
    }
    free(t.detours);
    cpl_machine_free(&t.machine);
    cpl_pattern_free(&t.pattern);
}

static void test_parts_fit_together(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < TRIALS; seed++)
        try(seed);
    assert_true(n_improved > TRIALS);
    assert_true(n_outside > 100 * TRIALS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_fit_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
