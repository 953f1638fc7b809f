/* Recognising products (product.h), in three steps.
 *
 * Skeleton: of a stencil with corners, a strong product, the edges along one dimension are those
 * that remain when an edge is left out whose ends have less in common than either has with a third
 * rank (the Cartesian skeleton of Hammack and Imrich 2009).
 *
 * Dimensions: in what remains, two edges of a rank that are sides of exactly one square are of
 * different dimensions (or of one that is no prime factor), and its opposite sides are of the same
 * ones. Edges of a rank that are sides of no square, or of several, are of the same dimension.
 *
 * Coordinates: ranks that are joined by edges of other dimensions have the same coordinate. If each
 * combination of coordinates is one rank, they are right, however they were found. */
#include "planner/grid/product.h"

#include <string.h>

#define MOST_SIDES 16 /* edges of a rank in a skeleton */

/* Appends to each rank's row, from next on, the other ends of its messages. */
static void list_both_ways(const struct cpl_pattern *pattern, int64_t *next, int32_t *rank)
{
    for (int32_t i = 0; i < pattern->n_ranks; i++)
        for (int64_t m = pattern->first[i]; m < pattern->first[i + 1]; m++) {
            rank[next[i]++] = pattern->dst[m];
            rank[next[pattern->dst[m]]++] = i;
        }
}

/* Sorts the rows of a symmetric list, which begin at begin[i], and drops what is there twice. The
 * ranks are dealt to each other's rows in ascending order. */
static void sort_rows(int32_t n, const int64_t *begin, const int32_t *unsorted, int64_t *next,
                      struct cpl_neighbours *neighbours)
{
    int64_t used = 0;
    memcpy(next, begin, (size_t)n * sizeof *next);
    for (int32_t i = 0; i < n; i++)
        for (int64_t e = begin[i]; e < begin[i + 1]; e++)
            neighbours->rank[next[unsorted[e]]++] = i;
    for (int32_t i = 0; i < n; i++) {
        neighbours->first[i] = used;
        for (int64_t e = begin[i]; e < begin[i + 1]; e++)
            if (e == begin[i] || neighbours->rank[e] != neighbours->rank[e - 1])
                neighbours->rank[used++] = neighbours->rank[e];
    }
    neighbours->first[n] = used;
}

static int64_t degree(const struct cpl_neighbours *neighbours, int32_t i)
{
    return neighbours->first[i + 1] - neighbours->first[i];
}

/* Which of i's neighbours and i itself are neighbours of j or j itself. */
static uint64_t find_joint(const struct cpl_neighbours *neighbours, int32_t i, int32_t j)
{
    uint64_t joint = 1;
    int64_t f = neighbours->first[j], end = neighbours->first[j + 1];
    for (int64_t e = neighbours->first[i]; e < neighbours->first[i + 1]; e++) {
        int32_t rank = neighbours->rank[e];
        while (f < end && neighbours->rank[f] < rank)
            f++;
        if (rank == j || (f < end && neighbours->rank[f] == rank))
            joint |= (uint64_t)2 << (e - neighbours->first[i]);
    }
    return joint;
}

enum cpl_status cpl_neighbours_find(const struct cpl_pattern *pattern, struct cpl_arena *arena,
                                    struct cpl_neighbours *neighbours)
{
    int32_t n = pattern->n_ranks;
    int64_t n_both = 2 * pattern->n_messages;
    struct cpl_arena scratch = CPL_ARENA_EMPTY;
    int64_t *begin = CPL_ARENA_ARRAY(&scratch, int64_t, n + 1);
    int64_t *next = CPL_ARENA_ARRAY(&scratch, int64_t, n + 1);
    int32_t *unsorted = CPL_ARENA_ARRAY(&scratch, int32_t, n_both);
    *neighbours = (struct cpl_neighbours){.first = CPL_ARENA_ARRAY(arena, int64_t, n + 1),
                                          .rank = CPL_ARENA_ARRAY(arena, int32_t, n_both),
                                          .twin = CPL_ARENA_ARRAY(arena, int64_t, n_both),
                                          .joint = CPL_ARENA_ARRAY(arena, uint64_t, n_both)};
    if (!begin || !next || !unsorted || !neighbours->first || !neighbours->rank ||
        !neighbours->twin || !neighbours->joint) {
        cpl_arena_free(&scratch);
        return CPL_ERR_NOMEM;
    }
    for (int32_t i = 0; i < n; i++)
        for (int64_t m = pattern->first[i]; m < pattern->first[i + 1]; m++) {
            begin[i + 1]++;
            begin[pattern->dst[m] + 1]++;
        }
    for (int32_t i = 0; i < n; i++)
        begin[i + 1] += begin[i];
    memcpy(next, begin, (size_t)n * sizeof *next);
    list_both_ways(pattern, next, unsorted);
    sort_rows(n, begin, unsorted, next, neighbours);
    memcpy(next, neighbours->first, (size_t)n * sizeof *next);
    for (int32_t i = 0; i < n; i++)
        for (int64_t e = neighbours->first[i]; e < neighbours->first[i + 1]; e++) {
            int32_t j = neighbours->rank[e];
            neighbours->twin[e] = next[j]++;
            if (degree(neighbours, i) <= CPL_PRODUCT_NEIGHBOURS &&
                degree(neighbours, j) <= CPL_PRODUCT_NEIGHBOURS)
                neighbours->joint[e] = find_joint(neighbours, i, j);
        }
    cpl_arena_free(&scratch);
    return CPL_OK;
}

/* A part whose dimensions are looked for. Its ranks are numbered by their places. */
struct product {
    const struct cpl_neighbours *neighbours;
    const struct cpl_machine *machine;
    const struct cpl_parts *parts;
    const int32_t *rank; /* place -> rank */
    int32_t n;
    int32_t *n_sides;    /* edges in the skeleton */
    int32_t *side;       /* MOST_SIDES places for each, at the other ends */
    int32_t *set;        /* of each side, by its number: sides of one set are of one dimension */
    int32_t *dimension;  /* of the side that is the root of a set */
    int32_t *coordinate; /* n for each dimension */
    int32_t *root;       /* scratch: n */
    int32_t n_dims;
    int32_t size[CPL_MAX_DIMENSIONS];
    double crossing[CPL_MAX_DIMENSIONS]; /* of the sides: the part that leaves a node */
};

/* Whether the set a is a true part of b. */
static bool is_inside(uint64_t a, uint64_t b)
{
    return (a & ~b) == 0 && a != b;
}

static int64_t find_edge(const struct cpl_neighbours *neighbours, int32_t from, int32_t to)
{
    int64_t low = neighbours->first[from], high = neighbours->first[from + 1] - 1;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (neighbours->rank[middle] < to)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Whether all neighbours of the edge's beginning are such of its end, which has more. */
static bool is_below(const struct cpl_neighbours *neighbours, int64_t edge)
{
    int32_t from = neighbours->rank[neighbours->twin[edge]], to = neighbours->rank[edge];
    int64_t n = degree(neighbours, from);
    uint64_t all = ((uint64_t)2 << n) - 1;
    return neighbours->joint[edge] == all && degree(neighbours, to) > n;
}

/* Whether an edge from x to y is not along one dimension, which the rank z shows. */
static bool shows(const struct cpl_neighbours *g, int64_t xy, int64_t xz, int64_t yz)
{
    bool first =
        is_inside(g->joint[xy], g->joint[xz]) || (is_below(g, xz) && is_below(g, g->twin[yz]));
    bool second = is_inside(g->joint[g->twin[xy]], g->joint[yz]) ||
                  (is_below(g, yz) && is_below(g, g->twin[xz]));
    return first && second;
}

static bool is_in_skeleton(const struct cpl_neighbours *g, int32_t x, int64_t xy)
{
    int32_t y = g->rank[xy];
    for (int64_t xz = g->first[x]; xz < g->first[x + 1]; xz++)
        if (xz != xy && g->joint[xy] >> (xz - g->first[x] + 1) & 1 &&
            shows(g, xy, xz, find_edge(g, y, g->rank[xz])))
            return false;
    return true;
}

/* Lists the sides of all ranks. Returns false when some rank has too many. */
static bool find_sides(struct product *p)
{
    const struct cpl_neighbours *g = p->neighbours;
    for (int32_t v = 0; v < p->n; v++)
        if (degree(g, p->rank[v]) > CPL_PRODUCT_NEIGHBOURS)
            return false;
    for (int32_t v = 0; v < p->n; v++)
        for (int64_t e = g->first[p->rank[v]]; e < g->first[p->rank[v] + 1]; e++) {
            if (!is_in_skeleton(g, p->rank[v], e))
                continue;
            if (p->n_sides[v] == MOST_SIDES)
                return false;
            p->side[v * MOST_SIDES + p->n_sides[v]++] = p->parts->place[g->rank[e]];
        }
    return true;
}

/* The number of v's side to w; -1: there is none. */
static int32_t side_to(const struct product *p, int32_t v, int32_t w)
{
    for (int32_t s = 0; s < p->n_sides[v]; s++)
        if (p->side[v * MOST_SIDES + s] == w)
            return v * MOST_SIDES + s;
    return -1;
}

static int32_t root_of(int32_t *parent, int32_t i)
{
    while (parent[i] != i) {
        parent[i] = parent[parent[i]];
        i = parent[i];
    }
    return i;
}

static void join(int32_t *parent, int32_t a, int32_t b)
{
    a = root_of(parent, a);
    b = root_of(parent, b);
    if (a < b)
        parent[b] = a;
    else
        parent[a] = b;
}

/* Looks at the squares of which v's sides s and t are sides. */
static void compare_sides(struct product *p, int32_t v, int32_t s, int32_t t)
{
    int32_t a = p->side[s], b = p->side[t], n_squares = 0, corner = -1;
    for (int32_t k = 0; k < p->n_sides[a]; k++) {
        int32_t w = p->side[a * MOST_SIDES + k];
        if (w != v && w != b && side_to(p, b, w) >= 0) {
            n_squares++;
            corner = w;
        }
    }
    if (n_squares != 1 || side_to(p, a, b) >= 0) {
        join(p->set, s, t);
        return;
    }
    join(p->set, s, side_to(p, b, corner));
    join(p->set, t, side_to(p, a, corner));
}

/* Finds which sides are of one dimension. Returns false when there are not two or more dimensions.
 */
static bool find_dimensions(struct product *p)
{
    for (int32_t s = 0; s < p->n * MOST_SIDES; s++)
        p->set[s] = s;
    for (int32_t v = 0; v < p->n; v++)
        for (int32_t s = v * MOST_SIDES; s < v * MOST_SIDES + p->n_sides[v]; s++) {
            int32_t back = side_to(p, p->side[s], v);
            if (back < 0)
                return false;
            join(p->set, s, back);
            for (int32_t t = v * MOST_SIDES; t < s; t++)
                compare_sides(p, v, s, t);
        }
    for (int32_t v = 0; v < p->n; v++)
        for (int32_t s = v * MOST_SIDES; s < v * MOST_SIDES + p->n_sides[v]; s++)
            if (root_of(p->set, s) == s) {
                if (p->n_dims == CPL_MAX_DIMENSIONS)
                    return false;
                p->dimension[s] = p->n_dims++;
            }
    return p->n_dims > 1;
}

/* Finds the coordinates along dimension d, and how many of its sides leave a node. */
static void find_coordinates(struct product *p, int32_t d)
{
    int64_t n_sides = 0, n_crossing = 0;
    for (int32_t v = 0; v < p->n; v++)
        p->root[v] = v;
    for (int32_t v = 0; v < p->n; v++)
        for (int32_t s = v * MOST_SIDES; s < v * MOST_SIDES + p->n_sides[v]; s++) {
            const int32_t *node = p->machine->node;
            if (p->dimension[root_of(p->set, s)] != d) {
                join(p->root, v, p->side[s]);
                continue;
            }
            n_sides++;
            n_crossing += node[p->rank[v]] != node[p->rank[p->side[s]]];
        }
    p->size[d] = 0;
    p->crossing[d] = (double)n_crossing / (double)n_sides;
    int32_t *coordinate = p->coordinate + (int64_t)d * p->n;
    for (int32_t v = 0; v < p->n; v++) {
        int32_t root = root_of(p->root, v);
        coordinate[v] = root == v ? p->size[d]++ : coordinate[root];
    }
}

/* Whether the sizes fit the number of ranks. */
static bool sizes_fit(const struct product *p)
{
    int64_t points = 1;
    for (int32_t d = 0; d < p->n_dims && points <= p->n; d++)
        points *= p->size[d];
    return points == p->n;
}

/* The dimensions in the order of how much they cross nodes. */
static void sort_dimensions(const struct product *p, int32_t *order)
{
    for (int32_t d = 0; d < p->n_dims; d++) {
        int32_t k = d;
        for (; k > 0 && p->crossing[order[k - 1]] > p->crossing[d]; k--)
            order[k] = order[k - 1];
        order[k] = d;
    }
}

/* Makes the grid, and root[v] the point of v. Returns false when two have the same one. */
static bool find_points(struct product *p, struct cpl_grid *grid)
{
    int32_t order[CPL_MAX_DIMENSIONS], size[CPL_MAX_DIMENSIONS];
    bool one_each = true;
    sort_dimensions(p, order);
    for (int32_t k = 0; k < p->n_dims; k++)
        size[k] = p->size[order[k]];
    if (cpl_grid_init(grid, p->n, p->n_dims, size, NULL))
        return false;
    int32_t *taken = p->n_sides; /* is not needed any more */
    memset(taken, 0, (size_t)p->n * sizeof *taken);
    for (int32_t v = 0; v < p->n; v++) {
        p->root[v] = 0;
        for (int32_t k = 0; k < p->n_dims; k++)
            p->root[v] += p->coordinate[(int64_t)order[k] * p->n + v] * grid->stride[k];
        one_each &= !taken[p->root[v]]++;
    }
    return one_each;
}

static enum cpl_status find(struct product *p, struct cpl_arena *arena, struct cpl_grid *grid,
                            bool *found)
{
    int64_t n_sides = (int64_t)p->n * MOST_SIDES;
    p->n_sides = CPL_ARENA_ARRAY(arena, int32_t, p->n);
    p->side = CPL_ARENA_ARRAY(arena, int32_t, n_sides);
    p->set = CPL_ARENA_ARRAY(arena, int32_t, n_sides);
    p->dimension = CPL_ARENA_ARRAY(arena, int32_t, n_sides);
    p->root = CPL_ARENA_ARRAY(arena, int32_t, p->n);
    if (!p->n_sides || !p->side || !p->set || !p->dimension || !p->root)
        return CPL_ERR_NOMEM;
    if (!find_sides(p) || !find_dimensions(p))
        return CPL_OK;
    p->coordinate = CPL_ARENA_ARRAY(arena, int32_t, (int64_t)p->n_dims * p->n);
    if (!p->coordinate)
        return CPL_ERR_NOMEM;
    for (int32_t d = 0; d < p->n_dims; d++)
        find_coordinates(p, d);
    *found = sizes_fit(p) && find_points(p, grid);
    return CPL_OK;
}

enum cpl_status cpl_product_find(const struct cpl_neighbours *neighbours,
                                 const struct cpl_machine *machine, struct cpl_parts *parts,
                                 int32_t k, struct cpl_grid *grid, bool *found)
{
    struct cpl_arena arena = CPL_ARENA_EMPTY;
    int32_t *ranks = parts->ranks + parts->first[k];
    struct product p = {.neighbours = neighbours,
                        .machine = machine,
                        .parts = parts,
                        .rank = ranks,
                        .n = cpl_part_size(parts, k)};
    *found = false;
    if (p.n < 4 || p.n > INT32_MAX / MOST_SIDES)
        return CPL_OK;
    enum cpl_status status = find(&p, &arena, grid, found);
    if (!status && *found) {
        for (int32_t v = 0; v < p.n; v++)
            parts->place[ranks[v]] = p.root[v];
        memcpy(p.n_sides, ranks, (size_t)p.n * sizeof *ranks);
        for (int32_t v = 0; v < p.n; v++)
            ranks[p.root[v]] = p.n_sides[v];
    }
    cpl_arena_free(&arena);
    return status;
}
