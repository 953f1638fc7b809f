/* Tests of covers (cover.h): after every one of many random changes all counts equal those made
 * from scratch, and the routes are ways with the fewest hops. */
#include "planner/search/cover.h"
#include "plans.h"
#include "random_pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define MOST_RANKS 14
#define N_COVERS   400
#define N_CHANGES  120

/* The edges that should be there, and the ways over them. */
struct model {
    const struct cpl_pattern *pattern;
    int32_t n_hops;
    bool edge[CPL_COVER_STAGES][MOST_RANKS][MOST_RANKS];
    int32_t needed[CPL_COVER_STAGES][MOST_RANKS][MOST_RANKS]; /* messages that need it */
};

/* A way of one message: ranks before the middle and the last stage. */
struct way {
    int32_t x, y;
};

static bool goes(const struct model *model, int32_t stage, int32_t from, int32_t to)
{
    if (stage == CPL_COVER_MIDDLE && model->n_hops == 2)
        return from == to;
    return from == to || model->edge[stage][from][to];
}

static bool is_way(const struct model *model, int32_t s, struct way way, int32_t d)
{
    return goes(model, CPL_COVER_FIRST, s, way.x) && goes(model, CPL_COVER_MIDDLE, way.x, way.y) &&
           goes(model, CPL_COVER_LAST, way.y, d);
}

static int32_t hops_of(int32_t s, struct way way, int32_t d)
{
    return (s != way.x) + (way.x != way.y) + (way.y != d);
}

/* All ways of a message. */
static int32_t list_ways(const struct model *model, int32_t s, int32_t d, struct way *ways)
{
    int32_t n = 0, n_ranks = model->pattern->n_ranks;
    for (int32_t x = 0; x < n_ranks; x++)
        for (int32_t y = 0; y < n_ranks; y++)
            if (is_way(model, s, (struct way){x, y}, d))
                ways[n++] = (struct way){x, y};
    return n;
}

static int32_t count_ranks(const struct way *ways, int32_t n, bool first)
{
    bool seen[MOST_RANKS] = {false};
    int32_t n_ranks = 0;
    for (int32_t k = 0; k < n; k++) {
        int32_t rank = first ? ways[k].x : ways[k].y;
        n_ranks += !seen[rank];
        seen[rank] = true;
    }
    return n_ranks;
}

/* Adds the edges that all ways of a message take to what is needed. */
static void need_edges(struct model *model, int32_t s, int32_t d, const struct way *ways, int32_t n)
{
    for (int32_t stage = 0; stage < CPL_COVER_STAGES && n > 0; stage++) {
        bool same = true;
        int32_t from = 0, to = 0;
        for (int32_t k = 0; k < n; k++) {
            int32_t stops[] = {s, ways[k].x, ways[k].y, d};
            same = same && (k == 0 || (from == stops[stage] && to == stops[stage + 1]));
            from = stops[stage];
            to = stops[stage + 1];
        }
        if (same && from != to)
            model->needed[stage][from][to]++;
    }
}

static void check_message(struct model *model, const struct cpl_cover *cover, int32_t s, int64_t m)
{
    static struct way ways[MOST_RANKS * MOST_RANKS];
    int32_t d = model->pattern->dst[m];
    int32_t n = list_ways(model, s, d, ways);
    assert_int_equal(cover->choices[m].source, s);
    assert_int_equal(cpl_cover_message(cover, s, d), m);
    assert_int_equal(cpl_cover_has_way(cover, m), n > 0);
    assert_int_equal(cover->choices[m].n_first, count_ranks(ways, n, true));
    assert_int_equal(cover->choices[m].n_last, count_ranks(ways, n, false));
    need_edges(model, s, d, ways, n);
}

/* Whether b is reached from a over edges of two stages, either of which may be a rest. */
static bool reaches_over(const struct model *model, int32_t stage, int32_t a, int32_t b)
{
    for (int32_t z = 0; z < model->pattern->n_ranks; z++)
        if (goes(model, stage, a, z) && goes(model, stage + 1, z, b))
            return true;
    return false;
}

static void check_reach(const struct model *model, const struct cpl_cover *cover)
{
    for (int32_t a = 0; a < cover->n_ranks; a++)
        for (int32_t b = 0; b < cover->n_ranks; b++) {
            assert_int_equal(cpl_cover_reaches(cover, a, b),
                             reaches_over(model, CPL_COVER_MIDDLE, a, b));
            assert_int_equal(cpl_cover_reached(cover, a, b),
                             reaches_over(model, CPL_COVER_FIRST, a, b));
        }
}

/* The edges and their needs; every edge that no message needs waits in the list. */
static void check_edges(const struct model *model, const struct cpl_cover *cover)
{
    for (int32_t stage = 0; stage < CPL_COVER_STAGES; stage++)
        for (int32_t from = 0; from < cover->n_ranks; from++)
            for (int32_t to = 0; to < cover->n_ranks; to++) {
                int32_t edge = cpl_layers_find(&cover->layers, stage, from, to);
                assert_int_equal(edge > 0, model->edge[stage][from][to]);
                if (!edge)
                    continue;
                int32_t needed = model->needed[stage][from][to];
                assert_int_equal(cover->need[edge].n_messages, needed);
                assert_true(needed > 0 || cover->need[edge].listed);
            }
}

static void check_cover(struct model *model, const struct cpl_cover *cover)
{
    const struct cpl_pattern *p = model->pattern;
    memset(model->needed, 0, sizeof model->needed);
    for (int32_t s = 0; s < p->n_ranks; s++)
        for (int64_t m = p->first[s]; m < p->first[s + 1]; m++)
            check_message(model, cover, s, m);
    for (int32_t s = 0; s < p->n_ranks; s++)
        assert_int_equal(cpl_cover_message(cover, s, s), -1);
    check_reach(model, cover);
    check_edges(model, cover);
}

/* Which messages have a way. */
static void list_served(const struct cpl_cover *cover, bool *served)
{
    for (int64_t m = 0; m < cover->pattern->n_messages; m++)
        served[m] = cpl_cover_has_way(cover, m);
}

/* Messages that lose their way by a change are among those touched. */
static void check_touched(const struct cpl_cover *cover, const bool *served)
{
    bool touched[MOST_RANKS * MOST_RANKS] = {false};
    for (int32_t k = 0; k < cover->n_touched; k++) {
        assert_false(touched[cover->touched[k]]); /* each once */
        touched[cover->touched[k]] = true;
    }
    for (int64_t m = 0; m < cover->pattern->n_messages; m++)
        assert_true(touched[m] || served[m] == cpl_cover_has_way(cover, m));
}

static void toggle(struct model *model, struct cpl_cover *cover, int32_t stage, int32_t from,
                   int32_t to)
{
    bool served[MOST_RANKS * MOST_RANKS];
    list_served(cover, served);
    int32_t edge = cpl_layers_find(&cover->layers, stage, from, to);
    if (edge)
        cpl_cover_remove(cover, edge);
    else
        assert_true(cpl_cover_add(cover, stage, from, to) > 0);
    model->edge[stage][from][to] = !edge;
    check_touched(cover, served);
}

static void toggle_random(struct model *model, struct cpl_cover *cover, uint64_t *random)
{
    int32_t stage = random_below(random, model->n_hops), n = cover->n_ranks;
    int32_t from = random_below(random, n), to = random_below(random, n);
    if (model->n_hops == 2 && stage == CPL_COVER_MIDDLE)
        stage = CPL_COVER_LAST;
    if (from != to)
        toggle(model, cover, stage, from, to);
}

/* Takes edges off the list and removes them until every edge is needed. */
static void remove_unneeded(struct model *model, struct cpl_cover *cover)
{
    int32_t edge;
    check_cover(model, cover);
    while ((edge = cpl_cover_take_unneeded(cover)) > 0) {
        const struct cpl_layer_edge e = cover->layers.edge[edge];
        assert_true(e.from >= 0);
        assert_int_equal(model->needed[e.wave][e.from][e.to], 0);
        toggle(model, cover, e.wave, e.from, e.to);
        check_cover(model, cover);
    }
    for (edge = 1; edge <= cover->layers.n_numbers; edge++)
        assert_true(cover->layers.edge[edge].from < 0 || cover->need[edge].n_messages > 0);
}

/* Takes all edges off the list: each that no message needs once, and no others. */
static void drain_unneeded(struct model *model, struct cpl_cover *cover)
{
    int32_t edge;
    check_cover(model, cover);
    while ((edge = cpl_cover_take_unneeded(cover)) > 0) {
        const struct cpl_layer_edge *e = &cover->layers.edge[edge];
        assert_true(e->from >= 0);
        assert_int_equal(model->needed[e->wave][e->from][e->to], 0);
        model->needed[e->wave][e->from][e->to] = -1;
    }
    for (int32_t stage = 0; stage < CPL_COVER_STAGES; stage++)
        for (int32_t from = 0; from < cover->n_ranks; from++)
            for (int32_t to = 0; to < cover->n_ranks; to++)
                assert_true(!model->edge[stage][from][to] || model->needed[stage][from][to] != 0);
}

/* The routes of a cover on which every message has a way: ways with the fewest hops. */
static void check_routes(const struct model *model, const struct cpl_cover *cover)
{
    static struct way ways[MOST_RANKS * MOST_RANKS];
    const struct cpl_pattern *p = model->pattern;
    struct cpl_routes routes;
    assert_int_equal(cpl_cover_routes(cover, &routes, NULL), CPL_OK);
    assert_int_equal(routes.n_waves, cover->n_hops);
    for (int64_t m = 0; m < p->n_messages; m++) {
        const int32_t *stops = cpl_routes_of(&routes, m);
        int32_t s = cover->choices[m].source, d = p->dst[m], fewest = INT32_MAX;
        struct way taken = {stops[0], stops[routes.n_waves - 2]};
        int32_t n = list_ways(model, s, d, ways);
        for (int32_t k = 0; k < n; k++)
            fewest = hops_of(s, ways[k], d) < fewest ? hops_of(s, ways[k], d) : fewest;
        assert_true(is_way(model, s, taken, d));
        assert_int_equal(hops_of(s, taken, d), fewest);
        assert_int_equal(stops[routes.n_waves - 1], d);
    }
    cpl_routes_free(&routes);
}

/* Gives every message a way by edges from its source to its destination. */
static void serve_all(struct model *model, struct cpl_cover *cover, uint64_t *random)
{
    for (int64_t m = 0; m < cover->pattern->n_messages; m++) {
        int32_t stage = random_below(random, 2) ? CPL_COVER_FIRST : CPL_COVER_LAST;
        if (!cpl_cover_has_way(cover, m))
            toggle(model, cover, stage, cover->choices[m].source, cover->pattern->dst[m]);
        assert_true(cpl_cover_has_way(cover, m));
    }
    check_routes(model, cover);
    remove_unneeded(model, cover);
    check_routes(model, cover);
}

static void check_changes(uint64_t seed, int32_t n_hops)
{
    static struct model model;
    uint64_t random = seed;
    struct cpl_arena arena = CPL_ARENA_EMPTY;
    struct cpl_cover cover;
    struct cpl_pattern pattern = random_pattern_undivided(seed, MOST_RANKS);
    memset(&model, 0, sizeof model);
    model.pattern = &pattern;
    model.n_hops = n_hops;
    assert_int_equal(cpl_cover_init(&cover, &pattern, n_hops, &arena, NULL), CPL_OK);
    check_cover(&model, &cover);
    for (int step = 0; step < N_CHANGES; step++) {
        toggle_random(&model, &cover, &random);
        check_cover(&model, &cover);
        if (random_draw(&random, N_CHANGES / 2) == 0)
            remove_unneeded(&model, &cover);
    }
    serve_all(&model, &cover, &random);
    for (int step = 0; step < N_CHANGES / 4; step++)
        toggle_random(&model, &cover, &random);
    drain_unneeded(&model, &cover);
    cpl_arena_free(&arena);
    cpl_pattern_free(&pattern);
}

static void test_two_hops_under_changes(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < N_COVERS; seed++)
        check_changes(seed, 2);
}

static void test_three_hops_under_changes(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < N_COVERS; seed++)
        check_changes(seed, 3);
}

/* Where the edges of routes go, and that every message can go as its route says. */
static void check_added(const struct cpl_pattern *pattern, const int32_t *stops, int32_t n_waves,
                        int32_t n_hops)
{
    static const int32_t stage_of[4][4][4] = {
        [2] = {[1] = {0, 0}, [2] = {0, 0, 2}},
        [3] = {[1] = {0, 0}, [2] = {0, 0, 2}, [3] = {0, 0, 1, 2}}};
    struct cpl_arena arena = CPL_ARENA_EMPTY;
    struct cpl_cover cover;
    struct cpl_routes routes;
    assert_int_equal(cpl_routes_init(pattern, n_waves, &routes, NULL), CPL_OK);
    memcpy(routes.stops, stops, (size_t)pattern->n_messages * (size_t)n_waves * sizeof *stops);
    assert_int_equal(cpl_cover_init(&cover, pattern, n_hops, &arena, NULL), CPL_OK);
    assert_int_equal(cpl_cover_add_routes(&cover, &routes, NULL), CPL_OK);
    for (int64_t m = 0; m < pattern->n_messages; m++) {
        int32_t at = cover.choices[m].source;
        assert_true(cpl_cover_has_way(&cover, m));
        for (int32_t w = 1; w <= n_waves; at = stops[m * n_waves + w++ - 1])
            assert_true(at == stops[m * n_waves + w - 1] ||
                        cpl_layers_find(&cover.layers, stage_of[n_hops][n_waves][w], at,
                                        stops[m * n_waves + w - 1]) > 0);
    }
    cpl_routes_free(&routes);
    cpl_arena_free(&arena);
}

static void test_adding_routes(void **state)
{
    (void)state;
    const struct cpl_pattern_entry entries[] = {MESSAGE(0, 3, 1), MESSAGE(1, 2, 1),
                                                MESSAGE(2, 0, 1)};
    struct cpl_pattern pattern = make_pattern(4, entries, N_OF(entries));
    check_added(&pattern, (const int32_t[]){3, 2, 0}, 1, 2);
    check_added(&pattern, (const int32_t[]){3, 2, 0}, 1, 3);
    check_added(&pattern, (const int32_t[]){1, 3, 1, 2, 0, 0}, 2, 2);
    check_added(&pattern, (const int32_t[]){1, 3, 1, 2, 0, 0}, 2, 3);
    check_added(&pattern, (const int32_t[]){1, 2, 3, 1, 0, 2, 3, 3, 0}, 3, 3);
    cpl_pattern_free(&pattern);
}

static void test_tables_that_would_be_too_large(void **state)
{
    (void)state;
    struct cpl_arena arena = CPL_ARENA_EMPTY;
    struct cpl_cover cover;
    struct cpl_error error = {""};
    struct cpl_pattern pattern = {.n_ranks = CPL_COVER_MOST_RANKS_3 + 1};
    assert_int_equal(cpl_cover_init(&cover, &pattern, 3, &arena, &error), CPL_ERR_UNFIT);
    assert_string_equal(error.text, "a search with 3 hops takes at most 8192 ranks");
    pattern.n_ranks = CPL_COVER_MOST_RANKS_2 + 1;
    assert_int_equal(cpl_cover_init(&cover, &pattern, 2, &arena, NULL), CPL_ERR_UNFIT);
    pattern = (struct cpl_pattern){.n_ranks = 2, .n_messages = INT32_MAX};
    assert_int_equal(cpl_cover_init(&cover, &pattern, 2, &arena, NULL), CPL_ERR_UNFIT);
    assert_null(arena.last);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_hops_under_changes),
        cmocka_unit_test(test_three_hops_under_changes),
        cmocka_unit_test(test_adding_routes),
        cmocka_unit_test(test_tables_that_would_be_too_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
