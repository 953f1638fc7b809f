/* Maps by swaps: KLF and KLR (map.h).
 *
 * For every rank and every point that it may move to, a cell holds what the rank's own messages,
 * out and in, would forward if it sat there and nobody else moved. The gain of a swap follows from
 * four cells. A swap changes the cells of the partners of the two ranks by the difference of two
 * distances, so nothing is summed up anew.
 *
 * First rounds in which each rank in turn takes its best swap, if that gains. Then passes in the
 * manner of Kernighan and Lin: swap the best pair even at a loss and lock the two, until nothing
 * has been gained for a while; then take back all swaps after the best moment. Rounds and passes
 * end when one gains little, or steps run out: those are counted, so that the same input gives the
 * same map.
 *
 * The points that a rank may move to are its slots. KLF: all points. KLR: the points that differ in
 * one coordinate; slot (d, c) is the point with c in dimension d, one of which per dimension is the
 * rank's own. Distances are cpl_map_hops, without regard to holes. */
#include "map.h"

#include <stdbool.h>
#include <string.h>

/* A round or pass that gains less than this part of the first is the last. */
#define WORTHWHILE 32

#define LOSING_SWAPS 24   /* so many without a new best moment end a pass */
#define WEIGHT_SUM   1e12 /* volumes are scaled down to this sum: gains then fit 64 bits */

struct partner {
    int32_t rank;
    int64_t weight;
};

struct swapper {
    const struct cpl_pattern *pattern;
    const struct cpl_grid *grid;
    bool any;                           /* KLF */
    int32_t n_slots;                    /* per rank */
    int32_t offset[CPL_MAX_DIMENSIONS]; /* KLR: first slot of a dimension */
    int32_t *position;
    int32_t *rank_at;
    int64_t *first;           /* per rank, n_ranks + 1 entries, into partners */
    struct partner *partners; /* both directions; a rank with messages both ways occurs twice */
    int32_t *coordinate;      /* KLR: n_ranks points x n_dims */
    int8_t *hops;             /* KLF: n_ranks x n_ranks points */
    int64_t *cells;           /* n_ranks x n_slots */
    bool *locked;             /* per rank */
    int32_t *swapped;         /* in this pass: pairs of ranks */
    int64_t steps;            /* left */
};

struct swap {
    int32_t a, b; /* ranks; a < 0: none */
    int64_t gain;
};

static int64_t *cells_of(const struct swapper *s, int32_t rank)
{
    return s->cells + (size_t)rank * (size_t)s->n_slots;
}

static const int32_t *coordinates_of(const struct swapper *s, int32_t point)
{
    return s->coordinate + (size_t)point * (size_t)s->grid->n_dims;
}

static int32_t hops_between(const struct swapper *s, int32_t a, int32_t b)
{
    if (s->any)
        return s->hops[(size_t)a * (size_t)s->grid->n_ranks + (size_t)b];
    return memcmp(coordinates_of(s, a), coordinates_of(s, b),
                  (size_t)s->grid->n_dims * sizeof(int32_t)) != 0
               ? cpl_map_hops(s->grid, a, b)
               : 0;
}

/* Adds weight x the distance to a target to all cells of a rank. */
static void add_distances(struct swapper *s, int32_t rank, int32_t target, int64_t weight)
{
    int64_t *cell = cells_of(s, rank);
    if (s->any) {
        const int8_t *hops = s->hops + (size_t)target * (size_t)s->grid->n_ranks;
        for (int32_t slot = 0; slot < s->n_slots; slot++)
            cell[slot] += weight * hops[slot];
        return;
    }
    const int32_t *own = coordinates_of(s, s->position[rank]), *to = coordinates_of(s, target);
    int32_t hops = 0;
    for (int32_t d = 0; d < s->grid->n_dims; d++)
        hops += own[d] != to[d];
    for (int32_t d = 0; d < s->grid->n_dims; d++) {
        int64_t differing = weight * (hops - (own[d] != to[d]) + 1);
        int64_t *at = cell + s->offset[d];
        for (int32_t c = 0; c < s->grid->size[d]; c++)
            at[c] += differing;
        at[to[d]] -= weight;
    }
}

/* Changes all cells of a rank for a partner that moves to any point. */
static void change_any(struct swapper *s, int32_t rank, int32_t from, int32_t to, int64_t weight)
{
    const int8_t *before = s->hops + (size_t)from * (size_t)s->grid->n_ranks;
    const int8_t *after = s->hops + (size_t)to * (size_t)s->grid->n_ranks;
    int64_t *cell = cells_of(s, rank);
    for (int32_t slot = 0; slot < s->n_slots; slot++)
        cell[slot] += weight * (after[slot] - before[slot]);
}

/* The same for one that moves from coordinate `from` to `to` of one dimension: the cells of the
 * points with these coordinates change, and, when the rank has one of them itself, those of all
 * points in other dimensions. */
static void change_related(struct swapper *s, int32_t rank, int32_t dim, int32_t from, int32_t to,
                           int64_t weight)
{
    int64_t *cell = cells_of(s, rank);
    int32_t own = coordinates_of(s, s->position[rank])[dim];
    int32_t end = s->offset[dim] + s->grid->size[dim];
    cell[s->offset[dim] + from] += weight;
    cell[s->offset[dim] + to] -= weight;
    if (own != from && own != to)
        return;
    if (own == to)
        weight = -weight;
    for (int32_t slot = 0; slot < s->offset[dim]; slot++)
        cell[slot] += weight;
    for (int32_t slot = end; slot < s->n_slots; slot++)
        cell[slot] += weight;
}

/* Fills the cells of a rank anew. */
static void sum_up(struct swapper *s, int32_t rank)
{
    memset(cells_of(s, rank), 0, (size_t)s->n_slots * sizeof(int64_t));
    for (int64_t k = s->first[rank]; k < s->first[rank + 1]; k++)
        add_distances(s, rank, s->position[s->partners[k].rank], s->partners[k].weight);
}

/* Tells the partners of a rank that it moves. */
static void tell_move(struct swapper *s, int32_t rank, int32_t from, int32_t to)
{
    const int32_t *before = coordinates_of(s, from), *after = coordinates_of(s, to);
    int32_t dim = 0;
    while (before[dim] == after[dim])
        dim++;
    for (int64_t k = s->first[rank]; k < s->first[rank + 1]; k++)
        if (s->any)
            change_any(s, s->partners[k].rank, from, to, s->partners[k].weight);
        else
            change_related(s, s->partners[k].rank, dim, before[dim], after[dim],
                           s->partners[k].weight);
    s->steps -= (s->first[rank + 1] - s->first[rank]) * (s->any ? s->n_slots : 4);
}

static void swap_points(struct swapper *s, int32_t a, int32_t b)
{
    int32_t point_a = s->position[a], point_b = s->position[b];
    tell_move(s, a, point_a, point_b);
    tell_move(s, b, point_b, point_a);
    s->position[a] = point_b;
    s->position[b] = point_a;
    s->rank_at[point_b] = a;
    s->rank_at[point_a] = b;
    sum_up(s, a);
    sum_up(s, b);
}

/* The volume between two ranks, both ways. */
static int64_t weight_between(const struct swapper *s, int32_t a, int32_t b)
{
    int64_t weight = 0;
    for (int64_t k = s->first[a]; k < s->first[a + 1]; k++)
        if (s->partners[k].rank == b)
            weight += s->partners[k].weight;
    return weight;
}

/* Makes best the swap of a and b if that gains more. cells: now and then of both. */
static void weigh(struct swapper *s, int32_t a, int32_t b, int64_t gain, struct swap *best)
{
    s->steps--;
    if (best->a >= 0 && gain <= best->gain)
        return;
    /* The cells let the partner stay where the rank goes; it comes to where the rank was. */
    s->steps -= s->first[a + 1] - s->first[a];
    gain -= 2 * weight_between(s, a, b) * hops_between(s, s->position[a], s->position[b]);
    if (best->a < 0 || gain > best->gain)
        *best = (struct swap){a, b, gain};
}

/* The best swap of a with an unlocked rank from `from` on. */
static void seek_any(struct swapper *s, int32_t a, int32_t from, struct swap *best)
{
    const int64_t *cell = cells_of(s, a);
    int32_t here = s->position[a];
    for (int32_t b = from; b < s->grid->n_ranks; b++) {
        const int64_t *other = cells_of(s, b);
        int32_t there = s->position[b];
        if (b != a && !s->locked[b])
            weigh(s, a, b, cell[here] - cell[there] + other[there] - other[here], best);
    }
}

/* The same among the points that differ in one coordinate. */
static void seek_related(struct swapper *s, int32_t a, int32_t from, struct swap *best)
{
    const struct cpl_grid *grid = s->grid;
    const int64_t *cell = cells_of(s, a);
    int32_t here = s->position[a];
    const int32_t *own = coordinates_of(s, here);
    int64_t stays = cell[own[0]];
    for (int32_t d = 0; d < grid->n_dims; d++)
        for (int32_t c = 0; c < grid->size[d]; c++) {
            int32_t there = here + (c - own[d]) * grid->stride[d];
            if (c == own[d] || there >= grid->n_ranks)
                continue;
            int32_t b = s->rank_at[there];
            if (b < from || s->locked[b])
                continue;
            const int64_t *other = cells_of(s, b) + s->offset[d];
            weigh(s, a, b, stays - cell[s->offset[d] + c] + other[c] - other[own[d]], best);
        }
}

static void seek(struct swapper *s, int32_t a, int32_t from, struct swap *best)
{
    if (s->any)
        seek_any(s, a, from, best);
    else
        seek_related(s, a, from, best);
}

/* Each rank in turn takes its best swap if that gains. Returns the gain. */
static int64_t go_round(struct swapper *s)
{
    int64_t gained = 0;
    for (int32_t a = 0; a < s->grid->n_ranks && s->steps > 0; a++) {
        struct swap best = {.a = -1};
        seek(s, a, 0, &best);
        if (best.a < 0 || best.gain <= 0)
            continue;
        swap_points(s, best.a, best.b);
        gained += best.gain;
    }
    return gained;
}

/* A pass of swaps with locks. Returns the gain. */
static int64_t pass(struct swapper *s)
{
    int64_t gained = 0, most = 0;
    int32_t n = 0, n_best = 0, n_ranks = s->grid->n_ranks;
    memset(s->locked, 0, (size_t)n_ranks * sizeof *s->locked);
    while (n < n_best + LOSING_SWAPS && s->steps > 0) {
        struct swap best = {.a = -1};
        for (int32_t a = 0; a < n_ranks; a++)
            if (!s->locked[a])
                seek(s, a, a + 1, &best);
        if (best.a < 0)
            break;
        swap_points(s, best.a, best.b);
        s->locked[best.a] = s->locked[best.b] = true;
        s->swapped[2 * n] = best.a;
        s->swapped[2 * n + 1] = best.b;
        n++;
        gained += best.gain;
        if (gained > most) {
            most = gained;
            n_best = n;
        }
    }
    while (n > n_best) {
        n--;
        swap_points(s, s->swapped[2 * n], s->swapped[2 * n + 1]);
    }
    memset(s->locked, 0, (size_t)n_ranks * sizeof *s->locked);
    return most;
}

/* Lists the partners of every rank with scaled volumes. */
static enum cpl_status list_partners(struct swapper *s, struct cpl_arena *arena)
{
    const struct cpl_pattern *pattern = s->pattern;
    double sum = 0;
    int shift = 0;
    for (int64_t m = 0; m < pattern->n_messages; m++)
        sum += (double)pattern->volume[m];
    for (; sum > WEIGHT_SUM; sum /= 2)
        shift++;
    s->first = CPL_ARENA_ARRAY(arena, int64_t, pattern->n_ranks + 2);
    s->partners = CPL_ARENA_ARRAY(arena, struct partner, 2 * pattern->n_messages);
    if (!s->first || !s->partners)
        return CPL_ERR_NOMEM;
    for (int32_t i = 0; i < pattern->n_ranks; i++)
        for (int64_t m = pattern->first[i]; m < pattern->first[i + 1]; m++) {
            s->first[i + 2]++;
            s->first[pattern->dst[m] + 2]++;
        }
    for (int32_t i = 2; i <= pattern->n_ranks; i++)
        s->first[i] += s->first[i - 1];
    for (int32_t i = 0; i < pattern->n_ranks; i++)
        for (int64_t m = pattern->first[i]; m < pattern->first[i + 1]; m++) {
            int32_t dest = pattern->dst[m];
            int64_t weight = pattern->volume[m] >> shift;
            s->partners[s->first[i + 1]++] = (struct partner){dest, weight};
            s->partners[s->first[dest + 1]++] = (struct partner){i, weight};
        }
    return CPL_OK;
}

/* Tables of distances. */
static enum cpl_status list_points(struct swapper *s, struct cpl_arena *arena)
{
    const struct cpl_grid *grid = s->grid;
    s->n_slots = 0;
    for (int32_t d = 0; d < grid->n_dims; d++) {
        s->offset[d] = s->n_slots;
        s->n_slots += grid->size[d];
    }
    s->coordinate =
        cpl_arena_alloc(arena, (size_t)grid->n_ranks, (size_t)grid->n_dims * sizeof *s->coordinate);
    if (!s->coordinate)
        return CPL_ERR_NOMEM;
    for (int32_t i = 0; i < grid->n_ranks; i++)
        for (int32_t d = 0; d < grid->n_dims; d++)
            s->coordinate[(size_t)i * (size_t)grid->n_dims + (size_t)d] =
                i / grid->stride[d] % grid->size[d];
    if (!s->any)
        return CPL_OK;
    s->n_slots = grid->n_ranks;
    s->hops = cpl_arena_alloc(arena, (size_t)grid->n_ranks, (size_t)grid->n_ranks);
    if (!s->hops)
        return CPL_ERR_NOMEM;
    for (int32_t a = 0; a < grid->n_ranks; a++)
        for (int32_t b = 0; b < grid->n_ranks; b++)
            s->hops[(size_t)a * (size_t)grid->n_ranks + (size_t)b] =
                (int8_t)cpl_map_hops(grid, a, b);
    return CPL_OK;
}

static enum cpl_status prepare(struct swapper *s, struct cpl_arena *arena)
{
    int32_t n_ranks = s->grid->n_ranks;
    if (list_partners(s, arena) || list_points(s, arena))
        return CPL_ERR_NOMEM;
    s->rank_at = CPL_ARENA_ARRAY(arena, int32_t, n_ranks);
    s->locked = CPL_ARENA_ARRAY(arena, bool, n_ranks);
    s->swapped = CPL_ARENA_ARRAY(arena, int32_t, n_ranks);
    s->cells = cpl_arena_alloc(arena, (size_t)n_ranks, (size_t)s->n_slots * sizeof *s->cells);
    if (!s->rank_at || !s->locked || !s->swapped || !s->cells)
        return CPL_ERR_NOMEM;
    for (int32_t i = 0; i < n_ranks; i++)
        s->rank_at[s->position[i]] = i;
    for (int32_t i = 0; i < n_ranks; i++)
        sum_up(s, i);
    return CPL_OK;
}

/* Rounds, then passes, each until one gains too little against the first. */
static void improve(struct swapper *s)
{
    int64_t gain = go_round(s), least = gain / WORTHWHILE + 1;
    while (gain >= least)
        gain = go_round(s);
    do
        gain = pass(s);
    while (gain >= least);
}

enum cpl_status cpl_map_by_swaps(enum cpl_map map, const struct cpl_pattern *pattern,
                                 const struct cpl_grid *grid, int32_t *position)
{
    struct cpl_arena scratch = CPL_ARENA_EMPTY;
    struct swapper s = {.pattern = pattern,
                        .grid = grid,
                        .any = map == CPL_MAP_KLF,
                        .position = position,
                        .steps = CPL_MAP_STEPS};
    int64_t enough = CPL_MAP_LEAST_STEPS + CPL_MAP_MESSAGE_STEPS * pattern->n_messages;
    if (!s.any && enough < s.steps)
        s.steps = enough;
    enum cpl_status status = prepare(&s, &scratch);
    if (!status)
        improve(&s);
    cpl_arena_free(&scratch);
    return status;
}
