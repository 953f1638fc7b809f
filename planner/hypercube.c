/* Carrying a pattern along with a reduction (hypercube.h). */
#include "hypercube.h"

#include <stdbool.h>
#include <string.h>

/* What a rank sends in one step. */
struct cargo {
    double bytes;
    double n_segments;
};

static void add(struct cargo *cargo, double bytes)
{
    cargo->bytes += bytes;
    cargo->n_segments++;
}

/* The time of one rank, which sends one cargo to a partner and gets another from it. */
static double step_us(const struct cpl_machine *machine, int32_t rank, int32_t partner,
                      const struct cargo *out, const struct cargo *in)
{
    const struct cpl_link_cost *link =
        &machine->costs.link[cpl_machine_link(machine, rank, partner)];
    double bytes = out->bytes > in->bytes ? out->bytes : in->bytes;
    return (bytes * link->ns_per_byte +
            (out->n_segments + in->n_segments) * machine->costs.segment_ns) *
           1e-3;
}

/* Visits the messages: those of step `bit` go from the corner where they are then. */
static void load_step(const struct cpl_pattern *pattern, const struct cpl_hypercube *cube,
                      int32_t bit, double unit_bytes, struct cargo *out)
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
                         int32_t bit, const struct cargo *out)
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

/* What the ranks that fold hand over and get back. */
static double folding_us(const struct cpl_pattern *pattern, const struct cpl_machine *machine,
                         const struct cpl_hypercube *cube, double unit_bytes, struct cargo *over,
                         struct cargo *back)
{
    double most_over = 0, most_back = 0;
    for (int32_t src = 0; src < pattern->n_ranks; src++)
        for (int64_t m = pattern->first[src]; m < pattern->first[src + 1]; m++) {
            double bytes = (double)pattern->volume[m] * unit_bytes;
            int32_t dst = pattern->dst[m];
            if (src < 2 * cube->n_folded && src % 2 == 0)
                add(&over[src / 2], bytes);
            if (dst < 2 * cube->n_folded && dst % 2 == 0)
                add(&back[dst / 2], bytes);
        }
    const struct cargo none = {0, 0};
    for (int32_t corner = 0; corner < cube->n_folded; corner++) {
        double us = step_us(machine, 2 * corner, 2 * corner + 1, &over[corner], &none);
        most_over = us > most_over ? us : most_over;
        us = step_us(machine, 2 * corner, 2 * corner + 1, &back[corner], &none);
        most_back = us > most_back ? us : most_back;
    }
    return most_over + most_back;
}

enum cpl_status cpl_hypercube_carry_cost(const struct cpl_pattern *pattern,
                                         const struct cpl_machine *machine, double unit_bytes,
                                         double *microseconds, struct cpl_error *error)
{
    if (machine->n_ranks != pattern->n_ranks)
        return cpl_fail(error, CPL_ERR_ARG, "the machine has %d ranks, the pattern %d",
                        (int)machine->n_ranks, (int)pattern->n_ranks);
    struct cpl_hypercube cube = cpl_hypercube_of(pattern->n_ranks);
    size_t n = (size_t)1 << cube.n_steps;
    struct cpl_arena arena = CPL_ARENA_EMPTY;
    struct cargo *cargo = CPL_ARENA_ARRAY(&arena, struct cargo, n);
    struct cargo *back = CPL_ARENA_ARRAY(&arena, struct cargo, n);
    if (!cargo || !back) {
        cpl_arena_free(&arena);
        return cpl_fail_memory(error, "the steps of a reduction");
    }
    *microseconds = folding_us(pattern, machine, &cube, unit_bytes, cargo, back);
    for (int32_t k = 0; k < cube.n_steps; k++) {
        memset(cargo, 0, n * sizeof *cargo);
        load_step(pattern, &cube, INT32_C(1) << k, unit_bytes, cargo);
        *microseconds += busiest_us(machine, &cube, INT32_C(1) << k, cargo);
    }
    cpl_arena_free(&arena);
    return CPL_OK;
}
