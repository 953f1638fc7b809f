/* The cover's counts under changes (cover.h).
 *
 * A change first touches every message whose choices it alters: while the tables are still
 * unchanged, the edges that the message needs are counted down; then the choices change; at the end
 * the edges that the messages now need are counted up again. */
#include "planner/search/cover.h"

#include <string.h>

static void set_row(struct cpl_cover *cover, int32_t i)
{
    const struct cpl_pattern *p = cover->pattern;
    uint64_t *row = cover->row + (size_t)i * cover->n_words;
    int32_t *base = cover->row_base + (size_t)i * cover->n_words;
    for (int64_t m = p->first[i]; m < p->first[i + 1]; m++) {
        row[p->dst[m] / 64] |= UINT64_C(1) << (p->dst[m] % 64);
        cover->choices[m].source = i;
    }
    int64_t m = p->first[i];
    for (size_t w = 0; w < cover->n_words; w++) {
        base[w] = (int32_t)m;
        m += __builtin_popcountll(row[w]);
    }
}

static void set_columns(struct cpl_cover *cover)
{
    const struct cpl_pattern *p = cover->pattern;
    for (int64_t m = 0; m < p->n_messages; m++)
        cover->column_first[p->dst[m] + 1]++;
    for (int32_t d = 0; d < p->n_ranks; d++)
        cover->column_first[d + 1] += cover->column_first[d];
    for (int64_t m = p->n_messages; m-- > 0;)
        cover->column[--cover->column_first[p->dst[m] + 1]] = (int32_t)m;
    /* Filling has moved each entry down to its row's begin, one place to the left of where it
     * belongs. */
    for (int32_t d = 0; d < p->n_ranks; d++)
        cover->column_first[d] = cover->column_first[d + 1];
    cover->column_first[p->n_ranks] = p->n_messages;
}

static bool allocate(struct cpl_cover *cover)
{
    struct cpl_arena *arena = cover->arena;
    size_t n = (size_t)cover->n_ranks, n_messages = (size_t)cover->pattern->n_messages;
    cover->row = CPL_ARENA_ARRAY(arena, uint64_t, n * cover->n_words);
    cover->row_base = CPL_ARENA_ARRAY(arena, int32_t, n * cover->n_words);
    cover->column_first = CPL_ARENA_ARRAY(arena, int64_t, n + 1);
    cover->column = CPL_ARENA_ARRAY(arena, int32_t, n_messages);
    cover->choices = CPL_ARENA_ARRAY(arena, struct cpl_cover_choices, n_messages);
    cover->touched = CPL_ARENA_ARRAY(arena, int32_t, n_messages);
    bool done = cover->row && cover->row_base && cover->column_first && cover->column &&
                cover->choices && cover->touched;
    done = done && !cpl_layers_init(&cover->layers, cover->n_ranks, CPL_COVER_STAGES, arena);
    if (done && cover->n_hops == 3) {
        cover->to_last = CPL_ARENA_ARRAY(arena, uint16_t, n * n);
        cover->from_first = CPL_ARENA_ARRAY(arena, uint16_t, n * n);
        done = cover->to_last && cover->from_first;
        for (size_t i = 0; i < n && done; i++)
            cover->to_last[i * n + i] = cover->from_first[i * n + i] = 1;
    }
    return done;
}

enum cpl_status cpl_cover_init(struct cpl_cover *cover, const struct cpl_pattern *pattern,
                               int32_t n_hops, struct cpl_arena *arena, struct cpl_error *error)
{
    int32_t most_ranks = n_hops == 2 ? CPL_COVER_MOST_RANKS_2 : CPL_COVER_MOST_RANKS_3;
    if (pattern->n_ranks > most_ranks || pattern->n_messages > INT32_MAX / 2)
        return cpl_fail(error, CPL_ERR_UNFIT, "a search with %d hops takes at most %d ranks",
                        n_hops, most_ranks);
    *cover = (struct cpl_cover){.pattern = pattern,
                                .n_ranks = pattern->n_ranks,
                                .n_hops = n_hops,
                                .n_words = ((size_t)pattern->n_ranks + 63) / 64,
                                .arena = arena};
    if (!allocate(cover))
        return cpl_fail_memory(error, "the search");
    for (int32_t i = 0; i < pattern->n_ranks; i++)
        set_row(cover, i);
    set_columns(cover);
    return CPL_OK;
}

bool cpl_cover_reaches(const struct cpl_cover *cover, int32_t x, int32_t d)
{
    if (cover->n_hops == 3)
        return cover->to_last[(size_t)x * (size_t)cover->n_ranks + (size_t)d] > 0;
    return x == d || cpl_layers_find(&cover->layers, CPL_COVER_LAST, x, d);
}

bool cpl_cover_reached(const struct cpl_cover *cover, int32_t s, int32_t y)
{
    if (cover->n_hops == 3)
        return cover->from_first[(size_t)s * (size_t)cover->n_ranks + (size_t)y] > 0;
    return s == y || cpl_layers_find(&cover->layers, CPL_COVER_FIRST, s, y);
}

/* One message more or less needs an edge. An edge that no message needs is put on the list. */
static void count_need(struct cpl_cover *cover, int32_t edge, int32_t by)
{
    struct cpl_cover_need *need = &cover->need[edge];
    need->n_messages += by;
    if (need->n_messages > 0 || need->listed)
        return;
    need->listed = true;
    cover->unneeded[cover->n_unneeded++] = edge;
}

/* Counts the edges that message m needs. */
static void count_needs(struct cpl_cover *cover, int32_t m, int32_t by)
{
    const struct cpl_cover_choices *c = &cover->choices[m];
    int32_t x = c->source, y = cover->pattern->dst[m];
    if (c->n_first == 1 && c->first) {
        count_need(cover, c->first, by);
        x = cover->layers.edge[c->first].to;
    }
    if (c->n_last == 1 && c->last) {
        count_need(cover, c->last, by);
        y = cover->layers.edge[c->last].from;
    }
    if (cover->n_hops == 2 || c->n_first != 1 || c->n_last != 1 || x == y)
        return;
    int32_t middle = cpl_layers_find(&cover->layers, CPL_COVER_MIDDLE, x, y);
    if (middle)
        count_need(cover, middle, by);
}

static void touch(struct cpl_cover *cover, int32_t m)
{
    struct cpl_cover_choices *c = &cover->choices[m];
    if (c->touched == cover->change)
        return;
    c->touched = cover->change;
    cover->touched[cover->n_touched++] = m;
    if (c->n_first == 1 || c->n_last == 1)
        count_needs(cover, m, -1);
}

static void change_first(struct cpl_cover *cover, int32_t m, int32_t by, int32_t edge)
{
    touch(cover, m);
    cover->choices[m].n_first += by;
    cover->choices[m].first ^= edge;
}

static void change_last(struct cpl_cover *cover, int32_t m, int32_t by, int32_t edge)
{
    touch(cover, m);
    cover->choices[m].n_last += by;
    cover->choices[m].last ^= edge;
}

static void begin_change(struct cpl_cover *cover)
{
    cover->change++;
    cover->n_touched = 0;
}

static void end_change(struct cpl_cover *cover)
{
    for (int32_t k = 0; k < cover->n_touched; k++) {
        const struct cpl_cover_choices *c = &cover->choices[cover->touched[k]];
        if (c->n_first == 1 || c->n_last == 1)
            count_needs(cover, cover->touched[k], 1);
    }
    cover->work += 8 + 2 * cover->n_touched;
}

/* With two hops: message s -> d over the rank that both edges (or rests) share. */
static void change_pair(struct cpl_cover *cover, int32_t s, int32_t d, int32_t by, int32_t first,
                        int32_t last)
{
    int64_t m = cpl_cover_message(cover, s, d);
    if (m < 0)
        return;
    change_first(cover, (int32_t)m, by, first);
    change_last(cover, (int32_t)m, by, last);
}

static void change_two_hops(struct cpl_cover *cover, int32_t edge, int32_t by)
{
    const struct cpl_layer_edge *e = &cover->layers.edge[edge];
    if (e->wave == CPL_COVER_FIRST) {
        const struct cpl_layer_links *last = &cover->layers.out[CPL_COVER_LAST][e->to];
        change_pair(cover, e->from, e->to, by, edge, 0);
        for (int32_t k = 0; k < last->n; k++)
            change_pair(cover, e->from, last->link[k].peer, by, edge, last->link[k].edge);
        cover->work += last->n;
    } else {
        const struct cpl_layer_links *first = &cover->layers.in[CPL_COVER_FIRST][e->from];
        change_pair(cover, e->from, e->to, by, 0, edge);
        for (int32_t k = 0; k < first->n; k++)
            change_pair(cover, first->link[k].peer, e->to, by, first->link[k].edge, edge);
        cover->work += first->n;
    }
}

/* Rank s begins (by 1) or ceases (by -1) to reach y: changes the choices of its messages to y
 * itself and over y's last edges. */
static void change_reached(struct cpl_cover *cover, int32_t s, int32_t y, int32_t by)
{
    const struct cpl_layer_links *last = &cover->layers.out[CPL_COVER_LAST][y];
    int64_t m = cpl_cover_message(cover, s, y);
    if (m >= 0)
        change_last(cover, (int32_t)m, by, 0);
    for (int32_t k = 0; k < last->n; k++) {
        m = cpl_cover_message(cover, s, last->link[k].peer);
        if (m >= 0)
            change_last(cover, (int32_t)m, by, last->link[k].edge);
    }
    cover->work += last->n;
}

/* Rank x begins or ceases to reach d: changes the choices of messages to d from x itself and over
 * x's first edges. */
static void change_reaches(struct cpl_cover *cover, int32_t x, int32_t d, int32_t by)
{
    const struct cpl_layer_links *first = &cover->layers.in[CPL_COVER_FIRST][x];
    int64_t m = cpl_cover_message(cover, x, d);
    if (m >= 0)
        change_first(cover, (int32_t)m, by, 0);
    for (int32_t k = 0; k < first->n; k++) {
        m = cpl_cover_message(cover, first->link[k].peer, d);
        if (m >= 0)
            change_first(cover, (int32_t)m, by, first->link[k].edge);
    }
    cover->work += first->n;
}

/* One way more or less from s to y. */
static void count_reached(struct cpl_cover *cover, int32_t s, int32_t y, int32_t by)
{
    uint16_t *n = &cover->from_first[(size_t)s * (size_t)cover->n_ranks + (size_t)y];
    *n = (uint16_t)(*n + by);
    if (*n == (by > 0 ? 1 : 0))
        change_reached(cover, s, y, by);
}

static void count_reaches(struct cpl_cover *cover, int32_t x, int32_t d, int32_t by)
{
    uint16_t *n = &cover->to_last[(size_t)x * (size_t)cover->n_ranks + (size_t)d];
    *n = (uint16_t)(*n + by);
    if (*n == (by > 0 ? 1 : 0))
        change_reaches(cover, x, d, by);
}

static void change_first_edge(struct cpl_cover *cover, int32_t edge, int32_t by)
{
    const struct cpl_layer_edge *e = &cover->layers.edge[edge];
    const struct cpl_pattern *p = cover->pattern;
    const struct cpl_layer_links *middle = &cover->layers.out[CPL_COVER_MIDDLE][e->to];
    const uint16_t *to_last = cover->to_last + (size_t)e->to * (size_t)cover->n_ranks;
    for (int64_t m = p->first[e->from]; m < p->first[e->from + 1]; m++)
        if (to_last[p->dst[m]])
            change_first(cover, (int32_t)m, by, edge);
    cover->work += (p->first[e->from + 1] - p->first[e->from]) / 2;
    count_reached(cover, e->from, e->to, by);
    for (int32_t k = 0; k < middle->n; k++)
        count_reached(cover, e->from, middle->link[k].peer, by);
}

static void change_last_edge(struct cpl_cover *cover, int32_t edge, int32_t by)
{
    const struct cpl_layer_edge *e = &cover->layers.edge[edge];
    const struct cpl_layer_links *middle = &cover->layers.in[CPL_COVER_MIDDLE][e->from];
    for (int64_t k = cover->column_first[e->to]; k < cover->column_first[e->to + 1]; k++) {
        int32_t m = cover->column[k];
        if (cpl_cover_reached(cover, cover->choices[m].source, e->from))
            change_last(cover, m, by, edge);
    }
    cover->work += cover->column_first[e->to + 1] - cover->column_first[e->to];
    count_reaches(cover, e->from, e->to, by);
    for (int32_t k = 0; k < middle->n; k++)
        count_reaches(cover, middle->link[k].peer, e->to, by);
}

static void change_middle_edge(struct cpl_cover *cover, int32_t edge, int32_t by)
{
    const struct cpl_layer_edge *e = &cover->layers.edge[edge];
    const struct cpl_layer_links *first = &cover->layers.in[CPL_COVER_FIRST][e->from];
    const struct cpl_layer_links *last = &cover->layers.out[CPL_COVER_LAST][e->to];
    count_reached(cover, e->from, e->to, by);
    for (int32_t k = 0; k < first->n; k++)
        count_reached(cover, first->link[k].peer, e->to, by);
    count_reaches(cover, e->from, e->to, by);
    for (int32_t k = 0; k < last->n; k++)
        count_reaches(cover, e->from, last->link[k].peer, by);
    cover->work += first->n + last->n;
}

static void change_edge(struct cpl_cover *cover, int32_t edge, int32_t by)
{
    if (cover->n_hops == 2)
        change_two_hops(cover, edge, by);
    else if (cover->layers.edge[edge].wave == CPL_COVER_FIRST)
        change_first_edge(cover, edge, by);
    else if (cover->layers.edge[edge].wave == CPL_COVER_LAST)
        change_last_edge(cover, edge, by);
    else
        change_middle_edge(cover, edge, by);
}

/* Keeps need and unneeded as large as the layers' edge array may become by one more edge. */
static bool reserve_need(struct cpl_cover *cover)
{
    if (cover->layers.n_numbers + 1 < cover->max_needs)
        return true;
    int32_t max = cover->max_needs ? 2 * cover->max_needs : 1024;
    struct cpl_cover_need *need = CPL_ARENA_ARRAY(cover->arena, struct cpl_cover_need, max);
    int32_t *unneeded = CPL_ARENA_ARRAY(cover->arena, int32_t, max);
    if (!need || !unneeded)
        return false;
    if (cover->max_needs) {
        memcpy(need, cover->need, (size_t)cover->max_needs * sizeof *need);
        memcpy(unneeded, cover->unneeded, (size_t)cover->n_unneeded * sizeof *unneeded);
    }
    cover->need = need;
    cover->unneeded = unneeded;
    cover->max_needs = max;
    return true;
}

int32_t cpl_cover_add(struct cpl_cover *cover, int32_t stage, int32_t from, int32_t to)
{
    int32_t edge = 0;
    if (!cover->failed && reserve_need(cover))
        edge = cpl_layers_add(&cover->layers, stage, from, to);
    if (!edge) {
        cover->failed = true;
        return 0;
    }
    cover->need[edge].n_messages = 0;
    begin_change(cover);
    change_edge(cover, edge, 1);
    end_change(cover);
    count_need(cover, edge, 0);
    return edge;
}

void cpl_cover_remove(struct cpl_cover *cover, int32_t edge)
{
    begin_change(cover);
    change_edge(cover, edge, -1);
    cpl_layers_remove(&cover->layers, edge);
    end_change(cover);
}

int32_t cpl_cover_take_unneeded(struct cpl_cover *cover)
{
    while (cover->n_unneeded > 0) {
        int32_t edge = cover->unneeded[--cover->n_unneeded];
        cover->need[edge].listed = false;
        if (cover->layers.edge[edge].from >= 0 && cover->need[edge].n_messages == 0)
            return edge;
    }
    return 0;
}

/* The stage of a wave of routes with n_waves waves. */
static int32_t stage_of(const struct cpl_cover *cover, int32_t wave, int32_t n_waves)
{
    if (wave == 1)
        return CPL_COVER_FIRST;
    return wave == n_waves && (n_waves == cover->n_hops || n_waves == 2) ? CPL_COVER_LAST
                                                                         : CPL_COVER_MIDDLE;
}

enum cpl_status cpl_cover_add_routes(struct cpl_cover *cover, const struct cpl_routes *routes,
                                     struct cpl_error *error)
{
    for (int64_t m = 0; m < routes->n_messages && !cover->failed; m++) {
        const int32_t *stops = cpl_routes_of(routes, m);
        int32_t at = cover->choices[m].source;
        for (int32_t w = 1; w <= routes->n_waves; at = stops[w++ - 1]) {
            int32_t stage = stage_of(cover, w, routes->n_waves);
            if (at != stops[w - 1] && !cpl_layers_find(&cover->layers, stage, at, stops[w - 1]))
                cpl_cover_add(cover, stage, at, stops[w - 1]);
        }
    }
    return cover->failed ? cpl_fail_memory(error, "the search") : CPL_OK;
}

/* A way of a message: x after the first hop, y before the last. */
struct way {
    int32_t x, y;
    int32_t n_hops;
};

static void keep_better(struct way *best, struct way way)
{
    if (way.n_hops < best->n_hops ||
        (way.n_hops == best->n_hops && (way.x < best->x || (way.x == best->x && way.y < best->y))))
        *best = way;
}

/* Tries all ways on from x, which is `hops` hops from the source. */
static void try_from(const struct cpl_cover *cover, int32_t x, int32_t d, int32_t hops,
                     struct way *best)
{
    if (!cpl_cover_reaches(cover, x, d))
        return;
    if (x == d || cpl_layers_find(&cover->layers, CPL_COVER_LAST, x, d))
        keep_better(best, (struct way){x, x, hops + (x != d)});
    if (cover->n_hops == 2 || best->n_hops <= hops + 1)
        return;
    const struct cpl_layer_links *middle = &cover->layers.out[CPL_COVER_MIDDLE][x];
    for (int32_t k = 0; k < middle->n; k++) {
        int32_t y = middle->link[k].peer;
        if (y == d || cpl_layers_find(&cover->layers, CPL_COVER_LAST, y, d))
            keep_better(best, (struct way){x, y, hops + 1 + (y != d)});
    }
}

enum cpl_status cpl_cover_routes(const struct cpl_cover *cover, struct cpl_routes *routes,
                                 struct cpl_error *error)
{
    const struct cpl_pattern *p = cover->pattern;
    enum cpl_status status = cpl_routes_init(p, cover->n_hops, routes, error);
    if (status)
        return status;
    for (int64_t m = 0; m < p->n_messages; m++) {
        int32_t s = cover->choices[m].source, d = p->dst[m];
        const struct cpl_layer_links *first = &cover->layers.out[CPL_COVER_FIRST][s];
        struct way best = {.n_hops = INT32_MAX};
        try_from(cover, s, d, 0, &best);
        for (int32_t k = 0; k < first->n && best.n_hops > 1; k++)
            try_from(cover, first->link[k].peer, d, 1, &best);
        int32_t *stops = cpl_routes_of(routes, m);
        stops[0] = best.x;
        stops[cover->n_hops - 2] = cover->n_hops == 3 ? best.y : best.x;
        stops[cover->n_hops - 1] = d;
    }
    return CPL_OK;
}
