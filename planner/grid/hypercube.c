/* Carrying a pattern along with a reduction (hypercube.h). */
#include "planner/grid/hypercube.h"

#include "planner/grid/grid.h"
#include "planner/grid/map.h"

#include <stdbool.h>
#include <string.h>

/* What a rank sends in one step. */
struct load {
    double bytes;
    double n_segments;
};

static void add(struct load *load, double bytes)
{
    load->bytes += bytes;
    load->n_segments++;
}

/* The time of one rank, which sends one load to a partner and gets another from it. */
static double step_us(const struct cpl_machine *machine, int32_t rank, int32_t partner,
                      const struct load *out, const struct load *in)
{
    const struct cpl_link_cost *link =
        &machine->costs.link[cpl_machine_link(machine, rank, partner)];
    double bytes = out->bytes > in->bytes ? out->bytes : in->bytes;
    return (bytes * link->ns_per_byte +
            (out->n_segments + in->n_segments) * machine->costs.segment_ns) *
           1e-3;
}

/* Adds up the load of step `bit`: each message that moves in it goes from the corner where it then
 * is. */
static void load_step(const struct cpl_pattern *pattern, const struct cpl_hypercube *cube,
                      int32_t bit, double unit_bytes, struct load *out)
{
    for (int32_t src = 0; src < pattern->n_ranks; src++)
        for (int64_t m = pattern->first[src]; m < pattern->first[src + 1]; m++) {
            int32_t from = cpl_hypercube_corner(cube, src);
            int32_t to = cpl_hypercube_corner(cube, pattern->dst[m]);
            if (((from ^ to) & bit) == 0)
                continue;
            int32_t here = (to & (bit - 1)) | (from & ~(bit - 1));
            add(&out[here], (double)pattern->volume[m] * unit_bytes);
        }
}

/* The busiest rank of one step among the corners. */
static double busiest_us(const struct cpl_machine *machine, const struct cpl_hypercube *cube,
                         int32_t bit, const struct load *out)
{
    double most = 0;
    for (int32_t corner = 0; corner < 1 << cube->n_steps; corner++) {
        int32_t partner = corner ^ bit;
        double us = step_us(machine, cpl_hypercube_rank(cube, corner),
                            cpl_hypercube_rank(cube, partner), &out[corner], &out[partner]);
        most = us > most ? us : most;
    }
    return most;
}

/* The time in which ranks that fold hand over their messages and get theirs back. */
static double folding_us(const struct cpl_pattern *pattern, const struct cpl_machine *machine,
                         const struct cpl_hypercube *cube, double unit_bytes, struct load *over,
                         struct load *back)
{
    double most_over = 0, most_back = 0;
    for (int32_t src = 0; src < pattern->n_ranks; src++)
        for (int64_t m = pattern->first[src]; m < pattern->first[src + 1]; m++) {
            double bytes = (double)pattern->volume[m] * unit_bytes;
            int32_t dst = pattern->dst[m];
            if (cpl_hypercube_is_guest(cube, src))
                add(&over[cpl_hypercube_corner(cube, src)], bytes);
            if (cpl_hypercube_is_guest(cube, dst))
                add(&back[cpl_hypercube_corner(cube, dst)], bytes);
        }
    const struct load none = {0, 0};
    for (int32_t corner = 0; corner < cube->n_folded; corner++) {
        int32_t guest = cpl_hypercube_at(cube, 2 * corner), host = cpl_hypercube_rank(cube, corner);
        double us = step_us(machine, guest, host, &over[corner], &none);
        most_over = us > most_over ? us : most_over;
        us = step_us(machine, guest, host, &back[corner], &none);
        most_back = us > most_back ? us : most_back;
    }
    return most_over + most_back;
}

enum cpl_status cpl_hypercube_carry_cost(const struct cpl_hypercube *cube,
                                         const struct cpl_pattern *pattern,
                                         const struct cpl_machine *machine, double unit_bytes,
                                         double *microseconds, struct cpl_error *error)
{
    if (machine->n_ranks != pattern->n_ranks)
        return cpl_fail(error, CPL_ERR_ARG, "the machine has %d ranks, the pattern %d",
                        (int)machine->n_ranks, (int)pattern->n_ranks);
    size_t n = (size_t)1 << cube->n_steps;
    struct cpl_arena arena = CPL_ARENA_EMPTY;
    struct load *load = CPL_ARENA_ARRAY(&arena, struct load, n);
    struct load *back = CPL_ARENA_ARRAY(&arena, struct load, n);
    if (!load || !back) {
        cpl_arena_free(&arena);
        return cpl_fail_memory(error, "the steps of a reduction");
    }
    *microseconds = folding_us(pattern, machine, cube, unit_bytes, load, back);
    for (int32_t k = 0; k < cube->n_steps; k++) {
        memset(load, 0, n * sizeof *load);
        load_step(pattern, cube, INT32_C(1) << k, unit_bytes, load);
        *microseconds += busiest_us(machine, cube, INT32_C(1) << k, load);
    }
    cpl_arena_free(&arena);
    return CPL_OK;
}

/* --- maps */

/* The coordinates of a point: the bits of its corner, then whether it is a guest there. */
static void list_coordinates(const struct cpl_hypercube *cube, int32_t n_ranks, int32_t n_dims,
                             int32_t *coordinate)
{
    for (int32_t point = 0; point < n_ranks; point++) {
        int32_t *at = coordinate + (size_t)point * (size_t)n_dims;
        int32_t corner = cpl_hypercube_corner(cube, point);
        for (int32_t d = 0; d < cube->n_steps; d++)
            at[d] = corner >> d & 1;
        if (cube->n_folded > 0)
            at[cube->n_steps] = cpl_hypercube_is_guest(cube, point);
    }
}

/* Makes the map by one heuristic, starting from the identity. KLR is for grids, so for powers of
 * two. */
static enum cpl_status map_by(enum cpl_map map, const struct cpl_pattern *pattern,
                              const struct cpl_hypercube *cube, int32_t *point_of)
{
    for (int32_t i = 0; i < pattern->n_ranks; i++)
        point_of[i] = i;
    struct cpl_map_points points = {.n_dims = cube->n_steps + (cube->n_folded > 0)};
    struct cpl_grid grid = {.n_ranks = pattern->n_ranks, .n_dims = cube->n_steps};
    for (int32_t d = 0; d < points.n_dims; d++) {
        points.size[d] = 2;
        points.scale[d] = 1;
    }
    for (int32_t d = 0; d < grid.n_dims; d++) {
        grid.size[d] = 2;
        grid.stride[d] = INT32_C(1) << d;
    }
    if (map == CPL_MAP_KLR)
        return cpl_map_by_swaps(map, pattern, &grid, point_of);
    struct cpl_arena arena = CPL_ARENA_EMPTY;
    int32_t *coordinate =
        CPL_ARENA_ARRAY(&arena, int32_t, (size_t)pattern->n_ranks * (size_t)points.n_dims);
    enum cpl_status status = coordinate ? CPL_OK : CPL_ERR_NOMEM;
    if (!status) {
        list_coordinates(cube, pattern->n_ranks, points.n_dims, coordinate);
        points.coordinate = coordinate;
        status = cpl_map_swap_points(pattern, &points, cpl_map_enough_steps(pattern), point_of);
    }
    cpl_arena_free(&arena);
    return status;
}

static void invert(int32_t n, const int32_t *point_of, int32_t *rank_at)
{
    for (int32_t i = 0; i < n; i++)
        rank_at[point_of[i]] = i;
}

/* The most that a map may cost, as a part of the cost without one. */
#define MOST_OF_UNMAPPED 0.9

/* Keeps the heuristic's map in point_of when it is the cheapest so far. */
static enum cpl_status try_map(enum cpl_map map, const struct cpl_pattern *pattern,
                               const struct cpl_machine *machine, double unit_bytes,
                               int32_t *scratch, int32_t *point_of, double *best,
                               struct cpl_error *error)
{
    int32_t n = pattern->n_ranks;
    struct cpl_hypercube cube = cpl_hypercube_of(n);
    double us = 0;
    if (map_by(map, pattern, &cube, scratch))
        return cpl_fail_memory(error, "mapping the ranks");
    invert(n, scratch, scratch + n);
    cube.point_of = scratch;
    cube.rank_at = scratch + n;
    enum cpl_status status =
        cpl_hypercube_carry_cost(&cube, pattern, machine, unit_bytes, &us, error);
    if (!status && us < *best) {
        *best = us;
        memcpy(point_of, scratch, (size_t)n * sizeof *point_of);
    }
    return status;
}

enum cpl_status cpl_hypercube_map(const struct cpl_pattern *pattern,
                                  const struct cpl_machine *machine, double unit_bytes,
                                  int32_t *point_of, bool *changed, double *microseconds,
                                  struct cpl_error *error)
{
    int32_t n = pattern->n_ranks;
    struct cpl_hypercube cube = cpl_hypercube_of(n);
    struct cpl_arena arena = CPL_ARENA_EMPTY;
    int32_t *scratch = CPL_ARENA_ARRAY(&arena, int32_t, 2 * (size_t)n);
    if (!scratch)
        return cpl_fail_memory(error, "mapping the ranks");
    for (int32_t i = 0; i < n; i++)
        point_of[i] = i;
    enum cpl_status status =
        cpl_hypercube_carry_cost(&cube, pattern, machine, unit_bytes, microseconds, error);
    double best = MOST_OF_UNMAPPED * *microseconds, before = best;
    if (!status && cube.n_steps > 1)
        status =
            try_map(CPL_MAP_KLF, pattern, machine, unit_bytes, scratch, point_of, &best, error);
    if (!status && cube.n_steps > 1 && cube.n_folded == 0)
        status =
            try_map(CPL_MAP_KLR, pattern, machine, unit_bytes, scratch, point_of, &best, error);
    *changed = best < before;
    if (*changed)
        *microseconds = best;
    cpl_arena_free(&arena);
    return status;
}
