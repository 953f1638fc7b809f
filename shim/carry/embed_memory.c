/* Reductions in memory (embed_memory.h). Steps of a round: before the exchange, one for each three
 * doublings, after it. */
#include "shim/carry/embed_memory.h"

#include "planner/grid/hypercube.h"
#include "shim/state/comm_state.h"
#include "shim/wait/assembly.h"

#include <string.h>

#define DOUBLINGS  3 /* in one step */
#define FOLD       0
#define FIRST_STEP 1

_Static_assert(CPL_EMBED_VECTOR <= CPL_ASSEMBLY_VECTOR, "a slot has room for a vector");
_Static_assert(1 << DOUBLINGS <= CPL_ASSEMBLY_SCRATCH, "all that is seen in a step has room");

struct reduction {
    const struct cpl_comm_state *state;
    const struct cpl_embed_kind *kind;
    struct cpl_hypercube cube;
    size_t bytes;
    void *vector;
};

bool cpl_embed_in_memory(const struct cpl_comm_state *state)
{
    return cpl_assembly_is_whole() && !state->inter && state->size == cpl_context.size;
}

static void show(const struct reduction *r, int step)
{
    if (r->bytes > 0)
        memcpy(cpl_assembly_vector(step), r->vector, r->bytes);
    cpl_assembly_show(step);
}

static const unsigned char *see(const struct reduction *r, int rank, int step)
{
    return cpl_assembly_see(r->state->comm, rank, step);
}

/* *second becomes the two together. */
static void combine(const struct reduction *r, const void *first, void *second)
{
    if (r->bytes > 0)
        PMPI_Reduce_local_c(first, second, r->kind->count, r->kind->type, r->kind->op);
}

/* Combines the vectors of the corners that differ from this rank's in some of n bits from `bit` on,
 * as these ranks would: to each its own vector comes last (embed.c). */
static void double_ranks(const struct reduction *r, int step, int bit, int n)
{
    unsigned char(*seen)[CPL_EMBED_VECTOR] = (void *)cpl_assembly_scratch();
    int corner = cpl_hypercube_corner(&r->cube, r->state->rank);
    show(r, step);
    for (int k = 0; k < 1 << n; k++) {
        int rank = cpl_hypercube_rank(&r->cube, corner ^ k << bit);
        memcpy(seen[k], see(r, rank, step), r->bytes);
    }
    for (int width = 1; width < 1 << n; width *= 2)
        for (int k = 0; k < 1 << n; k += 2 * width)
            combine(r, seen[k + width], seen[k]);
    memcpy(r->vector, seen[0], r->bytes);
}

void cpl_embed_reduce_in_memory(const struct cpl_comm_state *state,
                                const struct cpl_embed_kind *kind, void *vector)
{
    struct reduction r = {state, kind, cpl_hypercube_of(state->size),
                          (size_t)(kind->count * kind->extent), vector};
    int step = FIRST_STEP, unfold = cpl_assembly_steps(state->size) - 1;
    bool folds = cpl_hypercube_folds(&r.cube, state->rank);
    int companion = folds ? cpl_hypercube_companion(&r.cube, state->rank) : state->rank;
    cpl_assembly_begin_round();
    if (cpl_hypercube_is_guest(&r.cube, state->rank)) {
        show(&r, FOLD);
        memcpy(vector, see(&r, companion, unfold), r.bytes);
        return;
    }
    if (folds)
        combine(&r, see(&r, companion, FOLD), vector);
    for (int bit = 0; bit < r.cube.n_steps; bit += DOUBLINGS, step++) {
        int left = r.cube.n_steps - bit;
        double_ranks(&r, step, bit, left < DOUBLINGS ? left : DOUBLINGS);
    }
    if (folds)
        show(&r, unfold);
}
