/* Tests of edges in layers (layers.h) and of the map from pairs they are found by (pair_map.h):
 * random changes against a model that is an array. */
#include "planner/base/pair_map.h"
#include "planner/search/layers.h"
#include "random_pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define MOST_RANKS 24
#define MAP_RANKS  40 /* 1600 pairs: the map grows several times */

/* What the map should hold: -1 for nothing. */
static int64_t expected[MAP_RANKS][MAP_RANKS];

static void check_pair(const struct cpl_pair_map *map, int32_t a, int32_t b)
{
    const uint64_t *value = cpl_pair_map_find(map, a, b);
    if (expected[a][b] < 0)
        assert_null(value);
    else
        assert_true(value && *value == (uint64_t)expected[a][b]);
}

static size_t check_map(const struct cpl_pair_map *map, int32_t n)
{
    size_t n_pairs = 0;
    for (int32_t a = 0; a < n; a++)
        for (int32_t b = 0; b < n; b++) {
            check_pair(map, a, b);
            n_pairs += expected[a][b] >= 0;
        }
    assert_int_equal(map->n_pairs, n_pairs);
    assert_true(map->n_pairs <= map->n_slots / 2);
    return n_pairs;
}

/* Puts or removes random pairs of n ranks; `percent` of the changes put one. */
static void change_map(struct cpl_pair_map *map, int32_t n, uint64_t percent, uint64_t *random)
{
    int32_t a = random_below(random, n), b = random_below(random, n);
    if (random_draw(random, 100) < percent) {
        assert_int_equal(cpl_pair_map_reserve(map, 1), CPL_OK);
        uint64_t *value = cpl_pair_map_at(map, a, b);
        assert_true(*value == (expected[a][b] < 0 ? 0 : (uint64_t)expected[a][b]));
        expected[a][b] = (int64_t)random_draw(random, UINT64_C(1) << 40);
        *value = (uint64_t)expected[a][b];
    } else {
        cpl_pair_map_remove(map, a, b);
        expected[a][b] = -1;
    }
    check_pair(map, a, b);
}

static void test_map_under_changes(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        uint64_t random = seed;
        int32_t n = 1 + random_below(&random, MAP_RANKS);
        struct cpl_arena arena = CPL_ARENA_EMPTY;
        struct cpl_pair_map map;
        assert_int_equal(cpl_pair_map_init(&map, &arena), CPL_OK);
        memset(expected, -1, sizeof expected);
        for (int step = 0; step < 4000; step++) { /* filling, then emptying */
            change_map(&map, n, step < 2000 ? 70 : 30, &random);
            if (step % 100 == 0)
                check_map(&map, n);
        }
        check_map(&map, n);
        cpl_arena_free(&arena);
    }
}

/* The table stays as it is when pairs come and go: removed ones leave nothing behind. */
static void test_map_does_not_grow_by_removals(void **state)
{
    (void)state;
    struct cpl_arena arena = CPL_ARENA_EMPTY;
    struct cpl_pair_map map;
    assert_int_equal(cpl_pair_map_init(&map, &arena), CPL_OK);
    size_t n_slots = map.n_slots;
    for (int32_t k = 0; k < 100000; k++) {
        assert_int_equal(cpl_pair_map_reserve(&map, 1), CPL_OK);
        *cpl_pair_map_at(&map, k, INT32_MAX - k) = 1;
        if (k >= 100)
            cpl_pair_map_remove(&map, k - 100, INT32_MAX - k + 100);
    }
    assert_int_equal(map.n_pairs, 100);
    assert_int_equal(map.n_slots, n_slots);
    cpl_arena_free(&arena);
}

static void test_map_refuses_what_memory_cannot_hold(void **state)
{
    (void)state;
    struct cpl_arena arena = CPL_ARENA_EMPTY;
    struct cpl_pair_map map;
    assert_int_equal(cpl_pair_map_init(&map, &arena), CPL_OK);
    assert_int_equal(cpl_pair_map_reserve(&map, SIZE_MAX / 4), CPL_ERR_NOMEM);
    assert_int_equal(cpl_pair_map_reserve(&map, SIZE_MAX), CPL_ERR_NOMEM);
    assert_null(cpl_pair_map_find(&map, 0, 0));
    cpl_arena_free(&arena);
}

/* The number of every edge that should be there, 0 for none. */
struct model {
    int32_t number[CPL_MAX_LAYERS][MOST_RANKS][MOST_RANKS];
    int32_t n_edges;
    int32_t most_edges; /* at any time */
};

static void check_list(const struct cpl_layers *layers, const struct model *model, int32_t wave,
                       int32_t rank, bool sends)
{
    const struct cpl_layer_links *links =
        sends ? &layers->out[wave][rank] : &layers->in[wave][rank];
    bool seen[MOST_RANKS] = {false};
    int32_t n = 0;
    for (int32_t k = 0; k < links->n; k++) {
        int32_t peer = links->link[k].peer, edge = links->link[k].edge;
        assert_false(seen[peer]);
        seen[peer] = true;
        assert_int_equal(edge,
                         sends ? model->number[wave][rank][peer] : model->number[wave][peer][rank]);
        assert_int_equal(sends ? layers->edge[edge].out_at : layers->edge[edge].in_at, k);
    }
    for (int32_t peer = 0; peer < layers->n_ranks; peer++)
        n += (sends ? model->number[wave][rank][peer] : model->number[wave][peer][rank]) != 0;
    assert_int_equal(links->n, n);
}

static void check_layers(const struct cpl_layers *layers, const struct model *model)
{
    for (int32_t wave = 0; wave < layers->n_waves; wave++)
        for (int32_t from = 0; from < layers->n_ranks; from++) {
            check_list(layers, model, wave, from, true);
            check_list(layers, model, wave, from, false);
            for (int32_t to = 0; to < layers->n_ranks; to++) {
                int32_t edge = model->number[wave][from][to];
                assert_int_equal(cpl_layers_find(layers, wave, from, to), edge);
                const struct cpl_layer_edge *e = edge ? &layers->edge[edge] : NULL;
                assert_true(!e || (e->from == from && e->to == to && e->wave == wave));
            }
        }
    /* Numbers are used again before new ones are given out. */
    assert_int_equal(layers->n_numbers, model->most_edges);
    int32_t n_free = 0;
    for (int32_t edge = layers->first_free; edge; edge = layers->edge[edge].to) {
        assert_int_equal(layers->edge[edge].from, -1);
        n_free++;
    }
    assert_int_equal(n_free, layers->n_numbers - model->n_edges);
}

static void toggle(struct cpl_layers *layers, struct model *model, int32_t wave, int32_t from,
                   int32_t to)
{
    int32_t *number = &model->number[wave][from][to];
    if (*number) {
        cpl_layers_remove(layers, *number);
        *number = 0;
        model->n_edges--;
        return;
    }
    *number = cpl_layers_add(layers, wave, from, to);
    assert_in_range(*number, 1, layers->max_numbers);
    model->n_edges++;
    if (model->n_edges > model->most_edges)
        model->most_edges = model->n_edges;
}

static void test_layers_under_changes(void **state)
{
    (void)state;
    static struct model model;
    for (uint64_t seed = 0; seed < 40; seed++) {
        uint64_t random = seed;
        struct cpl_arena arena = CPL_ARENA_EMPTY;
        struct cpl_layers layers;
        int32_t n_ranks = 1 + random_below(&random, MOST_RANKS);
        int32_t n_waves = 1 + random_below(&random, CPL_MAX_LAYERS);
        int32_t n_steps = seed % 8 ? 500 : 12000; /* some grow beyond the first room */
        memset(&model, 0, sizeof model);
        assert_int_equal(cpl_layers_init(&layers, n_ranks, n_waves, &arena), CPL_OK);
        for (int32_t step = 0; step < n_steps; step++) {
            toggle(&layers, &model, random_below(&random, n_waves), random_below(&random, n_ranks),
                   random_below(&random, n_ranks));
            if (step % (n_steps / 25) == 0)
                check_layers(&layers, &model);
        }
        check_layers(&layers, &model);
        cpl_arena_free(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_map_under_changes),
        cmocka_unit_test(test_map_does_not_grow_by_removals),
        cmocka_unit_test(test_map_refuses_what_memory_cannot_hold),
        cmocka_unit_test(test_layers_under_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
