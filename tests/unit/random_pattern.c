/* Random patterns (random_pattern.h). */
#include "random_pattern.h"

#include "planner/base/hash.h"
#include "planner/pattern/pattern_items.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum shape { NOTHING, ALL_TO_ALL, HUB, SPARSE, BAND, POWER_LAW, BLOCKS, N_SHAPES };
enum classes { NO_CLASSES, ONE_CLASS, MIXED_CLASSES, ITEMS, N_CLASSES };

struct generator {
    uint64_t random;
    int32_t n_ranks;
    enum shape shape;
    enum classes classes;
    int32_t parameter; /* of the shape: degree, width of the band, size of a block, the hub */
    uint64_t percent_silent;
    uint64_t percent_zero;
    uint64_t percent_doubled;
    uint64_t n_item_numbers; /* of ITEMS: a rank's items are 0 .. n_item_numbers - 1 */
    struct cpl_pattern_item *items;
    int64_t n_items;
    int64_t max_items;
    struct cpl_pattern_entry *entries;
    int64_t n_entries;
    int64_t max_entries;
};

uint64_t random_draw(uint64_t *random, uint64_t n)
{
    return cpl_random_next(random) % n;
}

int32_t random_below(uint64_t *random, int32_t n)
{
    return (int32_t)random_draw(random, (uint64_t)n);
}

static bool chance(struct generator *g, uint64_t percent)
{
    return random_draw(&g->random, 100) < percent;
}

static int64_t draw_volume(struct generator *g)
{
    if (chance(g, g->percent_zero))
        return 0;
    return 1 + (int64_t)random_draw(&g->random, chance(g, 2) ? UINT64_C(1) << 40 : 1000);
}

static int32_t draw_class(struct generator *g)
{
    switch (g->classes) {
    case ONE_CLASS:
        return 0;
    case MIXED_CLASSES:
        return random_below(&g->random, 5) - 1;
    default:
        return -1;
    }
}

static void add_item(struct generator *g, int32_t src, int32_t dst, int64_t item)
{
    if (g->n_items == g->max_items) {
        g->max_items = 2 * g->max_items + 64;
        g->items = realloc(g->items, (size_t)g->max_items * sizeof *g->items);
        assert_non_null(g->items);
    }
    g->items[g->n_items++] = (struct cpl_pattern_item){src, dst, item};
}

/* Some items for a destination: those with small numbers go to most. */
static void add_items(struct generator *g, int32_t src, int32_t dst)
{
    for (uint64_t k = 1 + random_draw(&g->random, 6); k > 0; k--) {
        uint64_t below = 1 + random_draw(&g->random, g->n_item_numbers);
        add_item(g, src, dst, (int64_t)random_draw(&g->random, below));
    }
}

static void add_one(struct generator *g, int32_t src, int32_t dst)
{
    if (g->classes == ITEMS && src != dst && chance(g, 80)) {
        add_items(g, src, dst);
        return;
    }
    if (g->n_entries == g->max_entries) {
        g->max_entries = 2 * g->max_entries + 64;
        g->entries = realloc(g->entries, (size_t)g->max_entries * sizeof *g->entries);
        assert_non_null(g->entries);
    }
    g->entries[g->n_entries++] =
        (struct cpl_pattern_entry){src, dst, draw_volume(g), draw_class(g)};
}

static void add(struct generator *g, int32_t src, int32_t dst)
{
    add_one(g, src, dst);
    if (chance(g, g->percent_doubled))
        add_one(g, src, dst);
}

/* Destinations of one rank; itself may be among them. */
static void add_rank(struct generator *g, int32_t src)
{
    int32_t n = g->n_ranks, p = g->parameter, degree = 0;
    switch (g->shape) {
    case ALL_TO_ALL:
        for (int32_t dst = 0; dst < n; dst++)
            add(g, src, dst);
        break;
    case HUB: /* the hub sends to all, some answer */
        for (int32_t dst = 0; dst < n && src == p % n; dst++)
            add(g, src, dst);
        if (chance(g, 40))
            add(g, src, p % n);
        break;
    case BAND:
        for (int32_t dst = src - p; dst <= src + p; dst++)
            if (dst >= 0 && dst < n)
                add(g, src, dst);
        break;
    case BLOCKS:
        for (int32_t dst = src / p * p; dst < src / p * p + p && dst < n; dst++)
            add(g, src, dst);
        add(g, src, random_below(&g->random, n));
        break;
    case POWER_LAW: /* few ranks of many messages, most of them to the first ranks */
        degree = 1 + n / (1 + random_below(&g->random, n));
        for (int32_t k = 0; k < degree; k++)
            add(g, src, random_below(&g->random, 1 + random_below(&g->random, n)));
        break;
    case SPARSE:
        degree = random_below(&g->random, 2 * p + 1);
        for (int32_t k = 0; k < degree; k++)
            add(g, src, random_below(&g->random, n));
        break;
    default:
        break;
    }
}

static struct generator set_up(uint64_t seed, int32_t max_ranks)
{
    struct generator g = {.random = seed};
    int32_t limit = max_ranks;
    switch (random_below(&g.random, 4)) { /* small ones more often, and very small ones */
    case 0:
        limit = max_ranks < 6 ? max_ranks : 6;
        break;
    case 1:
    case 2:
        limit = max_ranks < 40 ? max_ranks : 40;
        break;
    default:
        break;
    }
    g.n_ranks = 1 + random_below(&g.random, limit);
    g.shape = (enum shape)random_below(&g.random, N_SHAPES);
    g.classes = (enum classes)random_below(&g.random, N_CLASSES);
    g.parameter = 1 + random_below(&g.random, 9);
    g.percent_silent = random_draw(&g.random, 3) ? 0 : random_draw(&g.random, 90);
    g.percent_zero = random_draw(&g.random, 3) ? 0 : random_draw(&g.random, 101);
    g.percent_doubled = random_draw(&g.random, 3) ? 0 : random_draw(&g.random, 50);
    g.n_item_numbers = 1 + random_draw(&g.random, 12);
    return g;
}

/* The entries that the items make join the others. */
static void classify(struct generator *g)
{
    struct cpl_pattern_entry *made = malloc((size_t)(g->n_items + 1) * sizeof *made);
    int64_t n_made = 0;
    assert_non_null(made);
    assert_int_equal(cpl_pattern_classify(g->items, g->n_items, made, &n_made, NULL), CPL_OK);
    g->entries = realloc(g->entries, (size_t)(g->n_entries + n_made + 1) * sizeof *g->entries);
    assert_non_null(g->entries);
    for (int64_t k = 0; k < n_made; k++)
        g->entries[g->n_entries++] = made[k];
    free(made);
    free(g->items);
}

/* Keeps of the entries of the same source and destination the first. */
static void drop_parts(struct generator *g)
{
    bool *seen = calloc((size_t)g->n_ranks * (size_t)g->n_ranks, sizeof *seen);
    int64_t n_kept = 0;
    assert_non_null(seen);
    for (int64_t e = 0; e < g->n_entries; e++) {
        size_t pair = (size_t)g->entries[e].src * (size_t)g->n_ranks + (size_t)g->entries[e].dst;
        if (!seen[pair])
            g->entries[n_kept++] = g->entries[e];
        seen[pair] = true;
    }
    g->n_entries = n_kept;
    free(seen);
}

static struct cpl_pattern draw_pattern(uint64_t seed, int32_t max_ranks, bool with_parts)
{
    struct cpl_pattern pattern;
    struct cpl_error error = {""};
    struct generator g = set_up(seed, max_ranks);
    for (int32_t src = 0; src < g.n_ranks; src++)
        if (!chance(&g, g.percent_silent))
            add_rank(&g, src);
    classify(&g);
    if (!with_parts)
        drop_parts(&g);
    if (cpl_pattern_build(g.n_ranks, g.entries, g.n_entries, &pattern, &error))
        fail_msg("seed %llu: %s", (unsigned long long)seed, error.text);
    free(g.entries);
    return pattern;
}

struct cpl_pattern random_pattern(uint64_t seed, int32_t max_ranks)
{
    return draw_pattern(seed, max_ranks, true);
}

struct cpl_pattern random_pattern_undivided(uint64_t seed, int32_t max_ranks)
{
    return draw_pattern(seed, max_ranks, false);
}

struct cpl_pattern random_pattern_of_own(uint64_t seed, int32_t max_ranks)
{
    struct cpl_pattern pattern, drawn = random_pattern_undivided(seed, max_ranks);
    struct cpl_pattern_entry *entries = calloc((size_t)drawn.n_messages + 1, sizeof *entries);
    int64_t n = 0;
    assert_non_null(entries);
    for (int32_t i = 0; i < drawn.n_ranks; i++)
        for (int64_t m = drawn.first[i]; m < drawn.first[i + 1]; m++)
            entries[n++] =
                (struct cpl_pattern_entry){i, drawn.dst[m], drawn.volume[m] % 100000, -1};
    assert_int_equal(cpl_pattern_build(drawn.n_ranks, entries, n, &pattern, NULL), CPL_OK);
    free(entries);
    cpl_pattern_free(&drawn);
    return pattern;
}
