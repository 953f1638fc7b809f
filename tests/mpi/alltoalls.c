/*
 * MPI_Alltoallv and MPI_Alltoallw, with few messages or (--dense) many: every byte checked.
 *
 *   alltoalls [--calls N] [--seed S] [--period N] [--max-count C] [--large] [--form FORM|all]
 *             [--comm world|split] [--dense] [--in-place] [--empty N]
 *
 * Each rank sends to a few others and perhaps to itself. For `period` calls the pattern stays
 * mostly the same, with some messages missing and some others now and then; then comes another
 * pattern. Counts change with every call. Some calls are made in place, with --in-place half of all
 * forms; nonblocking ones stay pending while the next calls are made, persistent ones are started
 * again. The first N calls have no data. MPICH's (4.0.2) MPI_Ialltoallw and MPI_Alltoallw_init in
 * place mix up the types of several ranks, so these are alike, and large ones in place fail for
 * MPI_DOUBLE_INT.
 */
#include "layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum form {
    FORM_V,
    FORM_W,
    FORM_V_C,
    FORM_W_C,
    FORM_IV,
    FORM_IW,
    FORM_IV_C,
    FORM_IW_C,
    FORM_PV,
    FORM_PW,
    FORM_PV_C,
    FORM_PW_C,
    N_FORMS
};

static const char *const form_names[] = {"v",    "w",  "v_c", "w_c",  "iv",   "iw", "iv_c",
                                         "iw_c", "pv", "pw",  "pv_c", "pw_c", NULL};

struct program {
    MPI_Comm comm;
    int rank, size; /* in comm */
    int n_calls, n_empty, period, max_count, form;
    bool large, dense, in_place;
    uint64_t seed;
};

/* One side of a call: `count[r]` elements for rank r. */
struct side {
    struct layout *layout; /* one, or one for each rank */
    bool each;
    int *count, *displ; /* displ in extents, or bytes if each */
    MPI_Count *large_count;
    MPI_Aint *large_displ;
    MPI_Datatype *type;
    MPI_Aint *at;
    struct test_area area;
};

/* A call; the nonblocking ones are left pending while the next ones are made. */
#define N_SLOTS 3

#define N_STARTS 3 /* of a persistent call */

struct slot {
    bool busy, in_place, persistent;
    int call;
    struct side send, recv;
    MPI_Request request;
};

static bool is_w(enum form form)
{
    return form % 2 == 1;
}

static bool is_in_place(const struct program *p, int call)
{
    struct test_rng rng = {test_key(test_key(p->seed, 88), call)};
    return p->in_place && test_chance(&rng, 2);
}

/* In place, both ranks of a pair send the same. */
static void order_pair(const struct program *p, int call, int *from, int *to)
{
    int low = *from < *to ? *from : *to;
    if (!is_in_place(p, call))
        return;
    *to = *from < *to ? *to : *from;
    *from = low;
}

static bool is_member(const struct program *p, struct test_rng *pattern, int from, int to)
{
    if (from == to)
        return test_chance(pattern, 2);
    if (p->dense)
        return !test_chance(pattern, 8);
    return test_below(pattern, p->size) < (from == 0 ? p->size / 2 : 2);
}

/* Elements that a rank sends to another: the same answer on both. */
static int count_for(const struct program *p, int call, int from, int to)
{
    order_pair(p, call, &from, &to);
    uint64_t epoch = test_key(test_key(p->seed, call / p->period), from);
    struct test_rng pattern = {test_key(epoch, to)};
    struct test_rng now = {test_key(test_key(test_key(p->seed, 77 + call), from), to)};
    bool member = is_member(p, &pattern, from, to);
    if (test_chance(&now, member ? 10 : 15 * p->size))
        member = !member;
    if (!member || call < p->n_empty)
        return 0;
    if (p->large && test_chance(&now, 10))
        return 2000;
    return 1 + test_below(&now, p->max_count);
}

static struct base base_for(const struct program *p, int call, bool each, int from, int to)
{
    order_pair(p, call, &from, &to);
    uint64_t key = test_key(test_key(p->seed, 99), call);
    struct test_rng rng = {each ? test_key(test_key(key, from), to) : key};
    struct base base = base_pick(&rng);
    while (p->large && is_in_place(p, call) && base.type == MPI_DOUBLE_INT)
        base = base_pick(&rng);
    return base;
}

static const struct layout *layout_of(const struct side *s, int r)
{
    return &s->layout[s->each ? r : 0];
}

static void make_side(const struct program *p, struct side *s, int call, bool sending, bool each,
                      struct test_rng *rng)
{
    size_t n = (size_t)p->size;
    MPI_Aint end = 0;

    bool alike = each && is_in_place(p, call);
    const struct test_rng same = *rng;
    *s = (struct side){.each = each,
                       .layout = test_alloc(n * sizeof *s->layout),
                       .count = test_alloc(n * sizeof *s->count),
                       .displ = test_alloc(n * sizeof *s->displ),
                       .large_count = test_alloc(n * sizeof *s->large_count),
                       .large_displ = test_alloc(n * sizeof *s->large_displ),
                       .type = test_alloc(n * sizeof(MPI_Datatype)),
                       .at = test_alloc(n * sizeof *s->at)};
    for (int r = 0; r < p->size; r++) {
        int from = sending ? p->rank : r, to = sending ? r : p->rank;
        struct test_rng copy = same;
        struct test_rng *used = alike ? &copy : rng;
        if (each || r == 0)
            s->layout[r] = layout_make(used, base_for(p, call, each && !alike, from, to), 1,
                                       test_chance(used, 2));
        const struct layout *layout = layout_of(s, r);
        MPI_Aint unit = each ? 1 : layout->extent;
        if (each)
            end = (end + 15) / 16 * 16;
        s->count[r] = count_for(p, call, from, to);
        s->at[r] = end - (each ? layout->lb : 0);
        s->displ[r] = (int)(s->at[r] / unit);
        end += s->count[r] * layout->extent + test_below(rng, 2) * unit;
        s->large_count[r] = s->count[r];
        s->large_displ[r] = s->displ[r];
        s->type[r] =
            each && !alike && s->count[r] == 0 && test_chance(rng, 2) ? MPI_BYTE : layout->type;
        if (!each)
            s->at[r] -= layout->lb;
    }
    s->area = test_area_make((size_t)end, test_next(rng));
}

static void free_side(const struct program *p, struct side *s)
{
    for (int r = 0; r < (s->each ? p->size : 1); r++)
        layout_free(&s->layout[r]);
    free(s->layout);
    free(s->count);
    free(s->displ);
    free(s->large_count);
    free(s->large_displ);
    free(s->type);
    free(s->at);
    test_area_free(&s->area);
}

/* What is sent in place to oneself stays there, so `sending` says only whose the other data is. */
static void put(const struct program *p, const struct side *s, int call, bool sending,
                struct test_area *area)
{
    for (int r = 0; r < p->size; r++) {
        int from = sending ? p->rank : r, to = sending ? r : p->rank;
        uint64_t key = test_key(test_key(test_key(p->seed, call), from), to);
        layout_put(layout_of(s, r), area->data + s->at[r], s->count[r], key);
    }
}

static void check(const struct program *p, const struct side *s, int call, bool sending)
{
    struct test_area expected = test_area_make(s->area.n, s->area.key);
    put(p, s, call, sending, &expected);
    ptrdiff_t at = test_area_differ(&s->area, &expected);
    if (at != PTRDIFF_MAX)
        test_fail("call %d: %s buffer wrong at %td of %zu", call, sending ? "send" : "receive", at,
                  s->area.n);
    test_area_free(&expected);
}

static MPI_Request make_call(const struct program *p, const struct side *s, const struct side *r,
                             enum form form, bool in_place)
{
    MPI_Request q = MPI_REQUEST_NULL;
    void *from = in_place ? MPI_IN_PLACE : s->area.data - (s->each ? 0 : s->layout[0].lb);
    void *to = r->area.data - (r->each ? 0 : r->layout[0].lb);
    MPI_Datatype sent = s->layout[0].type, got = r->layout[0].type;

    switch (form) {
    case FORM_V:
        MPI_Alltoallv(from, s->count, s->displ, sent, to, r->count, r->displ, got, p->comm);
        break;
    case FORM_W:
        MPI_Alltoallw(from, s->count, s->displ, s->type, to, r->count, r->displ, r->type, p->comm);
        break;
    case FORM_V_C:
        MPI_Alltoallv_c(from, s->large_count, s->large_displ, sent, to, r->large_count,
                        r->large_displ, got, p->comm);
        break;
    case FORM_W_C:
        MPI_Alltoallw_c(from, s->large_count, s->large_displ, s->type, to, r->large_count,
                        r->large_displ, r->type, p->comm);
        break;
    case FORM_IV:
        MPI_Ialltoallv(from, s->count, s->displ, sent, to, r->count, r->displ, got, p->comm, &q);
        break;
    case FORM_IW:
        MPI_Ialltoallw(from, s->count, s->displ, s->type, to, r->count, r->displ, r->type, p->comm,
                       &q);
        break;
    case FORM_IV_C:
        MPI_Ialltoallv_c(from, s->large_count, s->large_displ, sent, to, r->large_count,
                         r->large_displ, got, p->comm, &q);
        break;
    case FORM_IW_C:
        MPI_Ialltoallw_c(from, s->large_count, s->large_displ, s->type, to, r->large_count,
                         r->large_displ, r->type, p->comm, &q);
        break;
    case FORM_PV:
        MPI_Alltoallv_init(from, s->count, s->displ, sent, to, r->count, r->displ, got, p->comm,
                           MPI_INFO_NULL, &q);
        break;
    case FORM_PW:
        MPI_Alltoallw_init(from, s->count, s->displ, s->type, to, r->count, r->displ, r->type,
                           p->comm, MPI_INFO_NULL, &q);
        break;
    case FORM_PV_C:
        MPI_Alltoallv_init_c(from, s->large_count, s->large_displ, sent, to, r->large_count,
                             r->large_displ, got, p->comm, MPI_INFO_NULL, &q);
        break;
    default:
        MPI_Alltoallw_init_c(from, s->large_count, s->large_displ, s->type, to, r->large_count,
                             r->large_displ, r->type, p->comm, MPI_INFO_NULL, &q);
    }
    return q;
}

/* A number to and from every rank with a lower or higher distance of one, in place. */
static void call_in_place(const struct program *p, int call)
{
    int *counts = test_alloc((size_t)p->size * sizeof *counts);
    int *displs = test_alloc((size_t)p->size * sizeof *displs);
    int *data = test_alloc((size_t)p->size * sizeof *data);

    for (int r = 0; r < p->size; r++) {
        counts[r] = abs(r - p->rank) <= 1;
        displs[r] = r;
        data[r] = 1000 * p->rank + r + call;
    }
    MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, data, counts, displs, MPI_INT,
                  p->comm);
    for (int r = 0; r < p->size; r++)
        if (data[r] != (counts[r] ? 1000 * r + p->rank : 1000 * p->rank + r) + call)
            test_fail("call %d in place: got %d for rank %d", call, data[r], r);
    free(counts);
    free(displs);
    free(data);
}

/* Data of its own for each start of a persistent call. */
static int data_of(const struct slot *slot, int n)
{
    return slot->call + 1000003 * n;
}

static void fill(const struct program *p, struct slot *slot, int n)
{
    struct side *s = slot->in_place ? &slot->recv : &slot->send;
    put(p, s, data_of(slot, n), true, &s->area);
}

static void complete(const struct program *p, struct slot *slot, int n)
{
    MPI_Wait(&slot->request, MPI_STATUS_IGNORE);
    if (!slot->in_place)
        check(p, &slot->send, data_of(slot, n), true);
    check(p, &slot->recv, data_of(slot, n), false);
}

/* Completes a call, if there is one. Returns the hash of what was received. */
static uint64_t finish(const struct program *p, struct slot *slot)
{
    uint64_t hash = TEST_HASH_START;

    complete(p, slot, 0);
    for (int n = 1; n < N_STARTS && slot->persistent; n++) {
        fill(p, slot, n);
        MPI_Start(&slot->request);
        complete(p, slot, n);
    }
    if (slot->persistent)
        MPI_Request_free(&slot->request);
    for (int r = 0; r < p->size; r++)
        hash = layout_hash(layout_of(&slot->recv, r), slot->recv.area.data + slot->recv.at[r],
                           slot->recv.count[r], hash);
    free_side(p, &slot->send);
    free_side(p, &slot->recv);
    slot->busy = false;
    return hash;
}

static void start(const struct program *p, struct slot *slot, int call)
{
    struct test_rng common = {test_key(p->seed, 5000 + call)};
    struct test_rng own = {test_key(common.state, 1 + p->rank)};
    enum form form = (enum form)(p->form < N_FORMS ? p->form : test_below(&common, N_FORMS));

    if (!HAS_MPI4 && p->form == N_FORMS)
        form = (enum form)(form % 2 + (form % 4 < 2 ? FORM_V : FORM_IV));

    if (test_chance(&common, 8))
        call_in_place(p, call);
    if (test_chance(&common, 4))
        MPI_Barrier(MPI_COMM_WORLD);
    slot->busy = true;
    slot->call = call;
    slot->in_place = is_in_place(p, call);
    slot->persistent = form >= FORM_PV;
    make_side(p, &slot->send, call, true, is_w(form), &own);
    make_side(p, &slot->recv, call, false, is_w(form), &own);
    fill(p, slot, 0);
    slot->request = make_call(p, &slot->send, &slot->recv, form, slot->in_place);
    if (slot->persistent)
        MPI_Start(&slot->request);
}

int main(int argc, char **argv)
{
    static const char *const known[] = {"--calls",     "--seed",  "--period", "--form",
                                        "--max-count", "--large", "--comm",   "--dense",
                                        "--in-place",  "--empty", NULL};
    struct program p = {.comm = MPI_COMM_WORLD};
    const char *name;
    struct slot slots[N_SLOTS] = {{.busy = false}};
    uint64_t *mine, *hashes;

    test_start(&argc, &argv, known);
    p.n_calls = (int)test_option(argc, argv, "--calls", 40);
    p.n_empty = (int)test_option(argc, argv, "--empty", 0);
    p.period = (int)test_option(argc, argv, "--period", 1000);
    p.max_count = (int)test_option(argc, argv, "--max-count", 20);
    p.large = test_flag(argc, argv, "--large");
    p.dense = test_flag(argc, argv, "--dense");
    p.in_place = test_flag(argc, argv, "--in-place");
    p.seed = test_key((uint64_t)test_option(argc, argv, "--seed", 1), 0);
    name = test_option_text(argc, argv, "--form", "all");
    while (p.form < N_FORMS && strcmp(form_names[p.form], name) != 0)
        p.form++;
    if (strcmp(test_option_text(argc, argv, "--comm", "world"), "split") == 0)
        MPI_Comm_split(MPI_COMM_WORLD, test_rank() % 2, -test_rank(), &p.comm);
    MPI_Comm_rank(p.comm, &p.rank);
    MPI_Comm_size(p.comm, &p.size);
    mine = test_alloc((size_t)p.n_calls * sizeof *mine);
    for (int i = 0; i < p.n_calls + N_SLOTS; i++) {
        struct slot *slot = &slots[i % N_SLOTS];
        if (slot->busy)
            mine[slot->call] = finish(&p, slot);
        if (i < p.n_calls)
            start(&p, slot, i);
    }
    hashes = test_hash_ranks(p.n_calls, mine);
    for (int i = 0; i < p.n_calls && test_rank() == 0; i++)
        printf("call %d %016llx\n", i, (unsigned long long)hashes[i]);
    free(mine);
    free(hashes);
    if (p.comm != MPI_COMM_WORLD)
        MPI_Comm_free(&p.comm);
    return test_finish();
}
