/*
 * MPI_Allgather and MPI_Allgatherv, and their large-count forms: every byte checked.
 *
 *   allgather [--calls N] [--seed S] [--most M] [--same] [--comm world|split|shuffled]
 *             [--form blocking|nonblocking]
 *
 * Nonblocking calls, which are left to MPI, stay pending while the next ones are made.
 * Ranks contribute up to M dozens of elements (all the same with --same), or none, by datatypes
 * that differ from rank to rank and between sending and receiving; some calls are in place.
 * MPI_Allgatherv has one receive datatype on all ranks: MPICH 4.0.2 cuts large data by its extent,
 * and fails where that differs. At the end come calls that MPI refuses; the program prints their
 * error classes.
 */
#include "layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DOZEN 12 /* elements: every unit of a datatype divides it */

enum form { FORM_PLAIN, FORM_V, FORM_PLAIN_C, FORM_V_C, N_FORMS };

#define N_PENDING 3

struct program {
    MPI_Comm comm;
    int rank, size; /* in comm */
    int most;
    bool nonblocking;
    bool same;
    uint64_t seed;
};

struct call {
    int number;
    enum form form;
    MPI_Request request;
    bool in_place;
    struct base base;
    struct layout sent, got;
    int *count, *displ; /* of `got` */
    MPI_Count *large_count;
    MPI_Aint *large_displ;
    MPI_Aint *at; /* bytes: where each rank's data is */
    struct test_area out, in;
};

static bool is_v(enum form form)
{
    return form % 2 == 1;
}

/* Dozens of elements of a rank's data: the same answer on all. */
static int dozens(const struct program *p, const struct call *c, int from)
{
    struct test_rng rng = {test_key(test_key(p->seed, 77 + c->number), is_v(c->form) ? from : -1)};
    if (p->same)
        return p->most;
    if (test_chance(&rng, is_v(c->form) ? 4 : 10))
        return 0;
    return test_chance(&rng, 3) ? 1 + test_below(&rng, p->most) : 1 + test_below(&rng, 3);
}

static struct layout random_layout(struct test_rng *rng, struct base base)
{
    static const int units[] = {1, 2, 3, 4, 6, 12};
    bool derived = test_chance(rng, 2);
    return layout_make(rng, base, derived ? units[test_below(rng, 6)] : 1, derived);
}

static int count_of(const struct program *p, const struct call *c, const struct layout *layout,
                    int from)
{
    return dozens(p, c, from) * DOZEN / layout->unit;
}

/* Where the data of each rank goes: one after the other, or in a random order with gaps. */
static void place_data(const struct program *p, struct call *c, struct test_rng *rng)
{
    int *order = test_alloc((size_t)p->size * sizeof *order);
    MPI_Aint end = 0; /* in extents */

    for (int r = 0; r < p->size; r++)
        order[r] = r;
    if (is_v(c->form))
        test_shuffle(rng, p->size, order);
    for (int k = 0; k < p->size; k++) {
        int r = order[k];
        c->large_count[r] = c->count[r] = count_of(p, c, &c->got, r);
        c->large_displ[r] = c->displ[r] = (int)end;
        c->at[r] = end * c->got.extent - c->got.lb;
        end += c->count[r] + (is_v(c->form) ? test_below(rng, 2) : 0);
    }
    free(order);
    c->in = test_area_make((size_t)(end * c->got.extent), test_next(rng));
}

static void put(const struct program *p, const struct call *c, int from,
                const struct layout *layout, unsigned char *origin)
{
    layout_put(layout, origin, count_of(p, c, layout, from),
               test_key(test_key(p->seed, c->number), from));
}

/* What this rank sends. */
static void fill(const struct program *p, struct call *c)
{
    put(p, c, p->rank, &c->sent, c->out.data - c->sent.lb);
    if (c->in_place)
        put(p, c, p->rank, &c->got, c->in.data + c->at[p->rank]);
}

static struct call begin(const struct program *p, int number)
{
    size_t n = (size_t)p->size;
    struct test_rng common = {test_key(test_key(p->seed, 99), number)};
    struct test_rng own = {test_key(common.state, p->rank)};
    struct call c = {.number = number,
                     .form = (enum form)test_below(&common, HAS_MPI4 ? N_FORMS : FORM_PLAIN_C),
                     .in_place = test_chance(&common, 4),
                     .base = base_pick(&common),
                     .request = MPI_REQUEST_NULL,
                     .count = test_alloc(n * sizeof *c.count),
                     .displ = test_alloc(n * sizeof *c.displ),
                     .large_count = test_alloc(n * sizeof *c.large_count),
                     .large_displ = test_alloc(n * sizeof *c.large_displ),
                     .at = test_alloc(n * sizeof *c.at)};
    c.sent = random_layout(&own, c.base);
    c.got = random_layout(is_v(c.form) ? &common : &own, c.base);
    place_data(p, &c, &own);
    c.out = test_area_make((size_t)(count_of(p, &c, &c.sent, p->rank) * c.sent.extent),
                           test_next(&own));
    fill(p, &c);
    return c;
}

static void start_nonblocking(const struct program *p, struct call *c, const void *out, void *in,
                              int n)
{
    MPI_Datatype sent = c->sent.type, got = c->got.type;
    if (c->form == FORM_PLAIN)
        MPI_Iallgather(out, n, sent, in, c->count[0], got, p->comm, &c->request);
    else if (c->form == FORM_PLAIN_C)
        MPI_Iallgather_c(out, n, sent, in, c->count[0], got, p->comm, &c->request);
    else if (c->form == FORM_V)
        MPI_Iallgatherv(out, n, sent, in, c->count, c->displ, got, p->comm, &c->request);
    else
        MPI_Iallgatherv_c(out, n, sent, in, c->large_count, c->large_displ, got, p->comm,
                          &c->request);
}

static void make(const struct program *p, struct call *c)
{
    const void *out = c->in_place ? MPI_IN_PLACE : c->out.data - c->sent.lb;
    void *in = c->in.data - c->got.lb;
    int n = count_of(p, c, &c->sent, p->rank);

    if (p->nonblocking)
        start_nonblocking(p, c, out, in, n);
    else if (c->form == FORM_PLAIN)
        MPI_Allgather(out, n, c->sent.type, in, c->count[0], c->got.type, p->comm);
    else if (c->form == FORM_PLAIN_C)
        MPI_Allgather_c(out, n, c->sent.type, in, c->count[0], c->got.type, p->comm);
    else if (c->form == FORM_V)
        MPI_Allgatherv(out, n, c->sent.type, in, c->count, c->displ, c->got.type, p->comm);
    else
        MPI_Allgatherv_c(out, n, c->sent.type, in, c->large_count, c->large_displ, c->got.type,
                         p->comm);
}

static void check(const struct call *c, const char *name, const struct test_area *area,
                  const struct test_area *expected)
{
    ptrdiff_t at = test_area_differ(area, expected);
    if (at != PTRDIFF_MAX)
        test_fail("call %d: %s buffer wrong at %td of %zu", c->number, name, at, area->n);
}

/* Checks both buffers; the hash is of the data. */
static uint64_t complete(const struct program *p, struct call *c)
{
    MPI_Wait(&c->request, MPI_STATUS_IGNORE);
    struct test_area out = test_area_make(c->out.n, c->out.key);
    struct test_area in = test_area_make(c->in.n, c->in.key);
    uint64_t hash = TEST_HASH_START;

    put(p, c, p->rank, &c->sent, out.data - c->sent.lb);
    for (int r = 0; r < p->size; r++) {
        put(p, c, r, &c->got, in.data + c->at[r]);
        hash = layout_hash(&c->got, c->in.data + c->at[r], c->count[r], hash);
    }
    check(c, "send", &c->out, &out);
    check(c, "receive", &c->in, &in);
    test_area_free(&out);
    test_area_free(&in);
    return hash;
}

static uint64_t end(const struct program *p, struct call *c)
{
    uint64_t hash = complete(p, c);
    test_area_free(&c->out);
    test_area_free(&c->in);
    layout_free(&c->sent);
    layout_free(&c->got);
    free(c->count);
    free(c->displ);
    free(c->large_count);
    free(c->large_displ);
    free(c->at);
    return hash;
}

static void print_class(const char *what, int code)
{
    int class = MPI_SUCCESS;
    MPI_Error_class(code, &class);
    test_print("%s: class %d\n", what, class);
}

static void refused_started(const struct program *p, int *data, const int *counts)
{
    MPI_Request q;
    print_class("nonblocking, no buffer",
                MPI_Iallgather(data, 1000, MPI_INT, NULL, 1000, MPI_INT, p->comm, &q));
    print_class("nonblocking, no type", MPI_Iallgather(data, 1000, MPI_DATATYPE_NULL, data + 1000,
                                                       1000, MPI_INT, p->comm, &q));
    print_class(
        "nonblocking, negative counts",
        MPI_Iallgatherv(data, 1000, MPI_INT, data + 1000, counts, counts, MPI_INT, p->comm, &q));
}

/* On all ranks alike, so that no rank waits for another. */
static void refused(const struct program *p)
{
    int *data = test_alloc(((size_t)p->size + 1) * 1000 * sizeof *data);
    int *counts = test_alloc((size_t)p->size * sizeof *counts);

    for (int r = 0; r < p->size; r++)
        counts[r] = r == p->size - 1 ? -1 : 1000;
    MPI_Comm_set_errhandler(p->comm, MPI_ERRORS_RETURN);
    print_class("overlap",
                MPI_Allgather(data + p->rank * 1000, 1000, MPI_INT, data, 1000, MPI_INT, p->comm));
    print_class("no buffer", MPI_Allgather(data, 1000, MPI_INT, NULL, 1000, MPI_INT, p->comm));
    print_class("no type",
                MPI_Allgather(data, 1000, MPI_DATATYPE_NULL, data + 1000, 1000, MPI_INT, p->comm));
    print_class("negative count",
                MPI_Allgather(data, -1, MPI_INT, data + 1000, 1000, MPI_INT, p->comm));
    print_class("negative counts",
                MPI_Allgatherv(data, 1000, MPI_INT, data + 1000, counts, counts, MPI_INT, p->comm));
    refused_started(p, data, counts);
    free(data);
    free(counts);
}

static MPI_Comm make_comm(const char *name)
{
    MPI_Comm comm;
    int rank = test_rank();
    if (name[0] == 's' && name[1] == 'p')
        MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &comm);
    else if (name[0] == 's')
        MPI_Comm_split(MPI_COMM_WORLD, 0, (int)(test_key(5, rank) % 1000), &comm);
    else
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    return comm;
}

int main(int argc, char **argv)
{
    static const char *const known[] = {"--calls", "--seed", "--most", "--same",
                                        "--comm",  "--form", NULL};
    struct program p = {.nonblocking = false};
    struct call calls[N_PENDING];
    const char *name;
    uint64_t *mine, *hashes;
    int n;

    test_start(&argc, &argv, known);
    n = (int)test_option(argc, argv, "--calls", 60);
    p.most = (int)test_option(argc, argv, "--most", 300);
    p.same = test_flag(argc, argv, "--same");
    p.seed = test_key((uint64_t)test_option(argc, argv, "--seed", 1), 0);
    name = test_option_text(argc, argv, "--form", "blocking");
    p.nonblocking = strcmp(name, "nonblocking") == 0;
    p.comm = make_comm(test_option_text(argc, argv, "--comm", "world"));
    MPI_Comm_rank(p.comm, &p.rank);
    MPI_Comm_size(p.comm, &p.size);
    mine = test_alloc((size_t)n * sizeof *mine);
    for (int i = 0; i < n + N_PENDING; i++) {
        struct call *c = &calls[i % N_PENDING];
        if (i >= N_PENDING)
            mine[c->number] = end(&p, c);
        if (i % 3 == 0)
            MPI_Barrier(MPI_COMM_WORLD); /* ranks may agree */
        if (i >= n)
            continue;
        *c = begin(&p, i);
        make(&p, c);
    }
    refused(&p);
    hashes = test_hash_ranks(n, mine);
    for (int i = 0; i < n && test_rank() == 0; i++)
        printf("call %d %016llx\n", i, (unsigned long long)hashes[i]);
    free(mine);
    free(hashes);
    MPI_Comm_free(&p.comm);
    return test_finish();
}
