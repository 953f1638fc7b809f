/*
 * One neighborhood collective of the program `neighbors`: buffers with blocks at random places, the
 * call, and the comparison of every byte of the receive buffer, gaps and guards too.
 */
#include "neighbors.h"

#include <stdlib.h>

#define LARGE_BYTES 300000
#define ALIGN       16

const char *const op_names[N_OPS + 1] = {
    "alltoall", "alltoallv", "alltoallw", "allgather", "allgatherv", NULL,
};

/* The type signature of a message, the same at both ends. */
struct signature {
    struct base base;
    int unit;
    int count;
};

static bool is_gather(enum op op)
{
    return op == OP_ALLGATHER || op == OP_ALLGATHERV;
}

/* Whether all blocks have one count and follow each other without gaps. */
static bool is_regular(enum op op)
{
    return op == OP_ALLTOALL || op == OP_ALLGATHER;
}

static int pick_count(struct test_rng *rng, const struct step *step, int bytes)
{
    if (step->large && test_chance(rng, 8))
        return (LARGE_BYTES >> test_below(rng, 5)) / bytes;
    if (test_chance(rng, 3))
        return 0;
    return 1 + test_below(rng, step->max_count);
}

static uint64_t edge_key(uint64_t key, const struct step *step, int from, int to, int k)
{
    key = test_key(key, from);
    return is_gather(step->op) ? key : test_key(test_key(key, to), k);
}

static struct signature signature_of(const struct step *step, int from, int to, int k)
{
    struct test_rng common = {step->layout};
    struct test_rng own = {edge_key(step->layout, step, from, to, k)};
    struct test_rng *for_type = step->op == OP_ALLTOALLW ? &own : &common;
    struct signature sig;

    sig.base = base_pick(for_type);
    sig.unit = step->types == TYPES_BASIC ? 1 : 1 + test_below(for_type, MAX_UNIT);
    sig.count = pick_count(is_regular(step->op) ? &common : &own, step, sig.unit * sig.base.size);
    return sig;
}

static struct signature block_signature(const struct side *side, int i, const struct graph *graph,
                                        const struct step *step)
{
    if (side->edges == NULL)
        return signature_of(step, graph->rank, 0, 0);
    const struct edge *edge = &side->edges[i];
    if (side->sending)
        return signature_of(step, graph->rank, edge->peer, edge->k);
    return signature_of(step, edge->peer, graph->rank, edge->k);
}

static struct layout pick_layout(struct test_rng *rng, const struct step *step,
                                 const struct signature *sig)
{
    bool derived =
        step->types == TYPES_DERIVED || (step->types == TYPES_ALL && test_chance(rng, 2));
    bool single = !derived || test_chance(rng, 4);
    return layout_make(rng, sig->base, single ? 1 : sig->unit, derived);
}

static const struct layout *layout_of(const struct side *side, int i)
{
    return &side->layouts[side->each ? i : 0];
}

static void make_layouts(struct side *side, const struct graph *graph, const struct step *step,
                         struct test_rng *rng)
{
    if (!side->each) { /* base and unit do not depend on the edge */
        struct signature sig = signature_of(step, 0, 0, 0);
        side->layouts[0] = pick_layout(rng, step, &sig);
    }
    for (int i = 0; i < side->n; i++) {
        struct signature sig = block_signature(side, i, graph, step);
        if (side->each) {
            side->layouts[i] = pick_layout(rng, step, &sig);
            side->types[i] = side->layouts[i].type;
        }
        side->counts[i] = sig.count * (sig.unit / layout_of(side, i)->unit);
    }
}

/* Blocks in the order of the neighbors, or all blocks at one place; in units of the extent. */
static MPI_Aint place_regular(struct side *side, bool aliased)
{
    MPI_Aint end = 0, start = 0;
    for (int i = 0; i < side->n; i++) {
        side->displs[i] = (int)start;
        if (start + side->counts[i] > end)
            end = start + side->counts[i];
        if (!aliased)
            start += side->counts[i];
    }
    return end;
}

/* Blocks in random order with gaps. */
static MPI_Aint place_random(struct side *side, struct test_rng *rng)
{
    int *order = test_alloc((size_t)side->n * sizeof(int));
    MPI_Aint end = test_below(rng, 3);

    for (int i = 0; i < side->n; i++)
        order[i] = i;
    test_shuffle(rng, side->n, order);
    for (int i = 0; i < side->n; i++) {
        side->displs[order[i]] = (int)end;
        end += side->counts[order[i]] + test_below(rng, 3);
    }
    free(order);
    return end;
}

/* Lays the blocks out in units of the extent of the side's only type; with a bias, the buffer given
 * to MPI begins inside the area and some displacements are negative. */
static void place_units(struct side *side, const struct step *step, struct test_rng *rng)
{
    const struct layout *layout = &side->layouts[0];
    bool aliased = side->sending && step->same && test_chance(rng, 2);
    bool regular = is_regular(step->op) || side->edges == NULL;
    int bias = regular ? 0 : test_below(rng, 6);
    MPI_Aint end =
        regular || aliased ? place_regular(side, aliased && !regular) : place_random(side, rng);

    side->area = test_area_make((size_t)(end * layout->extent), test_next(rng));
    side->buffer = side->area.data - layout->lb + bias * layout->extent;
    for (int i = 0; i < side->n; i++) {
        side->at[i] = side->displs[i] * layout->extent - layout->lb;
        side->displs[i] -= bias;
        if (side->counts[i] == 0)
            side->displs[i] = test_below(rng, 2000) - 1000; /* must not matter */
    }
}

/* The same in bytes, with a type for each block; sometimes absolute addresses. */
static void place_bytes(struct side *side, struct test_rng *rng)
{
    MPI_Aint end = 0, start = test_chance(rng, 2) ? 0 : ALIGN * test_below(rng, 20);
    int *order = test_alloc((size_t)side->n * sizeof(int));

    for (int i = 0; i < side->n; i++)
        order[i] = i;
    test_shuffle(rng, side->n, order);
    for (int j = 0; j < side->n; j++) {
        int i = order[j];
        const struct layout *layout = &side->layouts[i];
        side->at[i] = end - layout->lb;
        end += side->counts[i] * layout->extent;
        end = (end + ALIGN - 1) / ALIGN * ALIGN + ALIGN * test_below(rng, 2);
    }
    free(order);
    side->area = test_area_make((size_t)end, test_next(rng));
    side->buffer = side->area.data + start;
    if (test_chance(rng, 6)) {
        side->buffer = MPI_BOTTOM;
        MPI_Get_address(side->area.data, &start);
        start = -start;
    }
    for (int i = 0; i < side->n; i++)
        side->byte_displs[i] = side->at[i] - start;
}

static void side_make(struct side *side, const struct graph *graph, const struct step *step,
                      struct test_rng *rng)
{
    size_t n = (size_t)side->n;

    side->each = step->op == OP_ALLTOALLW;
    side->layouts = test_alloc((side->each ? n : 1) * sizeof *side->layouts);
    side->counts = test_alloc(n * sizeof *side->counts);
    side->at = test_alloc(n * sizeof *side->at);
    side->displs = test_alloc(n * sizeof *side->displs);
    side->byte_displs = test_alloc(n * sizeof *side->byte_displs);
    side->types = test_alloc(n * sizeof(MPI_Datatype));
    side->large_counts = test_alloc(n * sizeof *side->large_counts);
    side->large_displs = test_alloc(n * sizeof *side->large_displs);
    make_layouts(side, graph, step, rng);
    if (side->each)
        place_bytes(side, rng);
    else
        place_units(side, step, rng);
    for (size_t i = 0; i < n; i++) {
        side->large_counts[i] = side->counts[i];
        side->large_displs[i] = side->each ? 0 : side->displs[i];
    }
}

void exchange_make(struct exchange *ex, const struct graph *graph, const struct step *step)
{
    struct test_rng rng = {test_key(step->call, graph->rank)};
    bool gather = is_gather(step->op);

    ex->send = (struct side){
        .n = gather ? 1 : graph->n_out, .sending = true, .edges = gather ? NULL : graph->out};
    ex->recv = (struct side){.n = graph->n_in, .edges = graph->in};
    side_make(&ex->send, graph, step, &rng);
    side_make(&ex->recv, graph, step, &rng);
    ex->made = true;
}

static void side_free(struct side *side)
{
    for (int i = 0; i < (side->each ? side->n : 1); i++)
        layout_free(&side->layouts[i]);
    free(side->layouts);
    free(side->counts);
    free(side->at);
    free(side->displs);
    free(side->byte_displs);
    free(side->types);
    free(side->large_counts);
    free(side->large_displs);
    test_area_free(&side->area);
}

void exchange_free(struct exchange *ex)
{
    if (!ex->made)
        return;
    side_free(&ex->send);
    side_free(&ex->recv);
    ex->made = false;
}

static uint64_t content_key(const struct step *step, int from, int to, int k)
{
    if (step->same)
        return test_key(step->call, from);
    return edge_key(step->call, step, from, to, k);
}

/* Writes what belongs into the blocks. */
static void put_content(const struct side *side, const struct graph *graph, const struct step *step,
                        struct test_area *area)
{
    const struct edge alone = {0};

    for (int i = 0; i < side->n; i++) {
        const struct edge *edge = side->edges != NULL ? &side->edges[i] : &alone;
        int from = side->sending ? graph->rank : edge->peer;
        int to = side->sending ? edge->peer : graph->rank;
        int k = step->op == OP_ALLTOALL ? edge->k_alltoall : edge->k;
        if (edge->peer != MPI_PROC_NULL)
            layout_put(layout_of(side, i), area->data + side->at[i], side->counts[i],
                       content_key(step, from, to, k));
    }
}

static ptrdiff_t side_differs(const struct side *side, const struct graph *graph,
                              const struct step *step)
{
    struct test_area expected = test_area_make(side->area.n, side->area.key);
    ptrdiff_t at;

    put_content(side, graph, step, &expected);
    at = test_area_differ(&side->area, &expected);
    test_area_free(&expected);
    return at;
}

static void check(const struct exchange *ex, const struct graph *graph, const struct step *step)
{
    const char *name = op_names[step->op], *kind = kind_names[graph->kind];
    ptrdiff_t at = side_differs(&ex->send, graph, step);

    if (at != PTRDIFF_MAX)
        test_fail("%s %s: send buffer changed at %td of %zu", kind, name, at, ex->send.area.n);
    at = side_differs(&ex->recv, graph, step);
    if (at != PTRDIFF_MAX)
        test_fail("%s %s: wrong in receive buffer at %td of %zu", kind, name, at, ex->recv.area.n);
}

static uint64_t hash_received(const struct side *recv)
{
    uint64_t sum = 0;

    for (int i = 0; i < recv->n; i++) {
        const struct edge *edge = &recv->edges[i];
        uint64_t start = test_key(test_key(TEST_HASH_START, edge->peer), edge->k);
        sum +=
            layout_hash(layout_of(recv, i), recv->area.data + recv->at[i], recv->counts[i], start);
    }
    return sum;
}

static void side_fill(struct side *side, const struct graph *graph, const struct step *step)
{
    test_area_fill(&side->area);
    if (side->sending)
        put_content(side, graph, step, &side->area);
}

/* A view of the side for MPI: without neighbors, half of the time, there are no arrays at all. */
static struct side as_given(const struct side *side, uint64_t call)
{
    struct side given = *side;
    if (side->n == 0 && call % 2 == 0) {
        given.buffer = NULL;
        given.counts = given.displs = NULL;
        given.byte_displs = NULL;
        given.types = NULL;
        given.large_counts = NULL;
        given.large_displs = NULL;
    }
    return given;
}

void exchange_fill(struct exchange *ex, const struct graph *graph, const struct step *step)
{
    side_fill(&ex->send, graph, step);
    side_fill(&ex->recv, graph, step);
}

void exchange_call(const struct exchange *ex, const struct graph *graph, const struct step *step,
                   enum form form, MPI_Request *request)
{
    struct side send = as_given(&ex->send, step->call), recv = as_given(&ex->recv, step->call);

    form_call(&send, &recv, step->op, form, graph->comm, request);
}

uint64_t exchange_check(const struct exchange *ex, const struct graph *graph,
                        const struct step *step)
{
    check(ex, graph, step);
    return hash_received(&ex->recv);
}

uint64_t exchange_run(struct exchange *ex, const struct graph *graph, const struct step *step)
{
    exchange_fill(ex, graph, step);
    exchange_call(ex, graph, step, FORM_BLOCKING, NULL);
    return exchange_check(ex, graph, step);
}

static void side_free_types(struct side *side)
{
    for (int i = 0; i < (side->each ? side->n : 1); i++) {
        layout_free(&side->layouts[i]);
        side->layouts[i].derived = false;
    }
}

void exchange_free_types(struct exchange *ex)
{
    side_free_types(&ex->send);
    side_free_types(&ex->recv);
}
