/* Maps by swaps: KLF and KLR, and places of a machine (map.h).
 *
 * The distance of two points is the sum of the scales of the coordinates in which they differ: on
 * grids their number (cpl_map_hops, ignoring holes). A rank's cell (d, c) is the volume of its
 * messages, out and in, with partners at coordinate c of dimension d. The cells give the volume x
 * distance of the rank's messages at any point, and the gain of a swap follows from the cells of
 * the two ranks. A swap changes two cells per dimension of each of their partners; nothing is
 * summed up anew.
 *
 * First come rounds in which each rank in turn takes its best swap, if that gains. Then come passes
 * in the manner of Kernighan and Lin: swap the best pair even at a loss and lock the two, until
 * nothing has been gained for a while; then undo all swaps after the best moment. Rounds and passes
 * end when one gains little, or when the steps, which are counted, run out; so the same input gives
 * the same map.
 *
 * A rank may move to any point (KLF), or to those that differ in one coordinate (KLR). */
#include "planner/grid/map.h"

#include <stdbool.h>
#include <string.h>

/* A round or pass that gains less than this part of the first is the last. */
#define WORTHWHILE 32

#define LOSING_SWAPS 24   /* swaps without a new best moment that end a pass */
#define WEIGHT_SUM   1e12 /* volumes are scaled down to this sum: gains then fit 64 bits */

struct partner {
    int32_t rank;
    int64_t weight;
};

struct swapper {
    const struct cpl_pattern *pattern;
    struct cpl_map_points points;
    const struct cpl_grid *grid; /* KLR: the grid of the points; NULL: any two ranks may swap */
    int32_t n_cells;             /* per rank */
    int32_t offset[CPL_MAX_DIMENSIONS]; /* first cell of a dimension */
    int32_t *position;
    int32_t *rank_at;
    int64_t *first;           /* per rank, n_ranks + 1 entries, into partners */
    struct partner *partners; /* both directions; a rank with messages both ways occurs twice */
    int64_t *cells;           /* n_ranks x n_cells */
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
    return s->cells + (size_t)rank * (size_t)s->n_cells;
}

static const int32_t *coordinates_of(const struct swapper *s, int32_t point)
{
    return s->points.coordinate + (size_t)point * (size_t)s->points.n_dims;
}

/* Tells the partners of a rank that it moves. */
static void tell_move(struct swapper *s, int32_t rank, int32_t from, int32_t to)
{
    const int32_t *before = coordinates_of(s, from), *after = coordinates_of(s, to);
    for (int32_t d = 0; d < s->points.n_dims; d++) {
        if (before[d] == after[d])
            continue;
        int32_t leaves = s->offset[d] + before[d], enters = s->offset[d] + after[d];
        for (int64_t k = s->first[rank]; k < s->first[rank + 1]; k++) {
            int64_t *cell = cells_of(s, s->partners[k].rank);
            cell[leaves] -= s->partners[k].weight;
            cell[enters] += s->partners[k].weight;
        }
        s->steps -= s->first[rank + 1] - s->first[rank];
    }
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

/* Makes best the swap of a and b if that gains more; their points are at this distance. */
static void weigh(struct swapper *s, int32_t a, int32_t b, int32_t distance, int64_t gain,
                  struct swap *best)
{
    if (best->a >= 0 && gain <= best->gain)
        return;
    /* The cells let the partner stay where the rank goes; it comes to where the rank was. */
    s->steps -= s->first[a + 1] - s->first[a];
    gain -= 2 * weight_between(s, a, b) * distance;
    if (best->a < 0 || gain > best->gain)
        *best = (struct swap){a, b, gain};
}

/* The best swap of a with an unlocked rank from `from` on. */
static void seek_any(struct swapper *s, int32_t a, int32_t from, struct swap *best)
{
    const int32_t *here = coordinates_of(s, s->position[a]);
    for (int32_t b = from; b < s->pattern->n_ranks; b++) {
        if (b == a || s->locked[b])
            continue;
        const int32_t *there = coordinates_of(s, s->position[b]);
        const int64_t *cell = cells_of(s, a), *other = cells_of(s, b);
        int64_t gain = 0;
        int32_t distance = 0;
        for (int32_t d = 0; d < s->points.n_dims; d++) {
            gain += s->points.scale[d] *
                    (cell[there[d]] - cell[here[d]] + other[here[d]] - other[there[d]]);
            distance += here[d] != there[d] ? s->points.scale[d] : 0;
            cell += s->points.size[d];
            other += s->points.size[d];
        }
        weigh(s, a, b, distance, gain, best);
    }
    s->steps -= (int64_t)(s->pattern->n_ranks - from) * s->points.n_dims;
}

/* The same among the points that differ in one coordinate. */
static void seek_related(struct swapper *s, int32_t a, int32_t from, struct swap *best)
{
    const struct cpl_grid *grid = s->grid;
    int32_t here = s->position[a];
    const int32_t *own = coordinates_of(s, here);
    for (int32_t d = 0; d < grid->n_dims; d++) {
        const int64_t *cell = cells_of(s, a) + s->offset[d];
        for (int32_t c = 0; c < grid->size[d]; c++) {
            int32_t there = here + (c - own[d]) * grid->stride[d];
            if (c == own[d] || there >= grid->n_ranks)
                continue;
            int32_t b = s->rank_at[there];
            if (b < from || s->locked[b])
                continue;
            const int64_t *other = cells_of(s, b) + s->offset[d];
            weigh(s, a, b, 1, cell[c] - cell[own[d]] + other[own[d]] - other[c], best);
        }
    }
    s->steps -= s->n_cells;
}

static void seek(struct swapper *s, int32_t a, int32_t from, struct swap *best)
{
    if (s->grid)
        seek_related(s, a, from, best);
    else
        seek_any(s, a, from, best);
}

/* Each rank in turn takes its best swap if that gains. Returns the gain. */
static int64_t go_round(struct swapper *s)
{
    int64_t gained = 0;
    for (int32_t a = 0; a < s->pattern->n_ranks && s->steps > 0; a++) {
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
    int32_t n = 0, n_best = 0, n_ranks = s->pattern->n_ranks;
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

/* Fills the cells of a rank. */
static void sum_up(struct swapper *s, int32_t rank)
{
    int64_t *cell = cells_of(s, rank);
    for (int64_t k = s->first[rank]; k < s->first[rank + 1]; k++) {
        const int32_t *at = coordinates_of(s, s->position[s->partners[k].rank]);
        for (int32_t d = 0; d < s->points.n_dims; d++)
            cell[s->offset[d] + at[d]] += s->partners[k].weight;
    }
    s->steps -= (s->first[rank + 1] - s->first[rank]) * s->points.n_dims;
}

static enum cpl_status prepare(struct swapper *s, struct cpl_arena *arena)
{
    int32_t n_ranks = s->pattern->n_ranks;
    for (int32_t d = 0; d < s->points.n_dims; d++) {
        s->offset[d] = s->n_cells;
        s->n_cells += s->points.size[d];
    }
    s->rank_at = CPL_ARENA_ARRAY(arena, int32_t, n_ranks);
    s->locked = CPL_ARENA_ARRAY(arena, bool, n_ranks);
    s->swapped = CPL_ARENA_ARRAY(arena, int32_t, n_ranks);
    s->cells = cpl_arena_alloc(arena, (size_t)n_ranks, (size_t)s->n_cells * sizeof *s->cells);
    if (!s->rank_at || !s->locked || !s->swapped || !s->cells || list_partners(s, arena))
        return CPL_ERR_NOMEM;
    for (int32_t i = 0; i < n_ranks; i++)
        s->rank_at[s->position[i]] = i;
    for (int32_t i = 0; i < n_ranks; i++)
        sum_up(s, i);
    return CPL_OK;
}

/* Rounds, then passes, each until one gains too little against the first. */
static enum cpl_status improve(struct swapper *s)
{
    struct cpl_arena scratch = CPL_ARENA_EMPTY;
    enum cpl_status status = prepare(s, &scratch);
    if (!status) {
        int64_t gain = go_round(s), least = gain / WORTHWHILE + 1;
        while (gain >= least)
            gain = go_round(s);
        do
            gain = pass(s);
        while (gain >= least);
    }
    cpl_arena_free(&scratch);
    return status;
}

/* The coordinates of a grid's points. */
static int32_t *list_coordinates(const struct cpl_grid *grid, struct cpl_arena *arena)
{
    int32_t *coordinate =
        cpl_arena_alloc(arena, (size_t)grid->n_ranks, (size_t)grid->n_dims * sizeof *coordinate);
    for (int32_t i = 0; i < grid->n_ranks && coordinate; i++)
        for (int32_t d = 0; d < grid->n_dims; d++)
            coordinate[(size_t)i * (size_t)grid->n_dims + (size_t)d] =
                i / grid->stride[d] % grid->size[d];
    return coordinate;
}

int64_t cpl_map_enough_steps(const struct cpl_pattern *pattern)
{
    int64_t enough = CPL_MAP_LEAST_STEPS + CPL_MAP_MESSAGE_STEPS * pattern->n_messages;
    return enough < CPL_MAP_STEPS ? enough : CPL_MAP_STEPS;
}

enum cpl_status cpl_map_by_swaps(enum cpl_map map, const struct cpl_pattern *pattern,
                                 const struct cpl_grid *grid, int32_t *position)
{
    struct cpl_arena scratch = CPL_ARENA_EMPTY;
    struct swapper s = {
        .pattern = pattern,
        .points = {.n_dims = grid->n_dims, .coordinate = list_coordinates(grid, &scratch)},
        .grid = map == CPL_MAP_KLR ? grid : NULL,
        .position = position,
        .steps = cpl_map_enough_steps(pattern)};
    for (int32_t d = 0; d < grid->n_dims; d++) {
        s.points.size[d] = grid->size[d];
        s.points.scale[d] = 1;
    }
    enum cpl_status status = s.points.coordinate ? improve(&s) : CPL_ERR_NOMEM;
    cpl_arena_free(&scratch);
    return status;
}

enum cpl_status cpl_map_swap_points(const struct cpl_pattern *pattern,
                                    const struct cpl_map_points *points, int64_t steps,
                                    int32_t *position)
{
    struct swapper s = {
        .pattern = pattern, .points = *points, .position = position, .steps = steps};
    return improve(&s);
}
