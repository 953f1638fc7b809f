/*
 * The calls that only move data. A block is one rank's data for another; its bytes follow from the
 * two ranks, so that every rank knows what it must receive. The expected data is copied by a
 * message from the rank to itself, which does not touch the gaps of a datatype, as the call must
 * not.
 */
#include "collectives.h"

#include <stdlib.h>

enum { MAX_RANKS = 64, N_TYPES = 4 };

/* One call: n blocks, sent or received, in slots of equal size. */
struct call {
    struct place *place;
    int round;
    bool large, in_place, vary;
    MPI_Datatype type;
    MPI_Aint extent;
    int most; /* elements of the largest block */
    struct test_area out, in, expected;
    int counts[MAX_RANKS], displs[MAX_RANKS], byte_displs[MAX_RANKS];
    MPI_Count counts_c[MAX_RANKS];
    MPI_Aint displs_c[MAX_RANKS], byte_displs_c[MAX_RANKS];
    MPI_Datatype types[MAX_RANKS];
};

static MPI_Datatype types[N_TYPES];

static void make_types(void)
{
    MPI_Datatype gaps;
    types[0] = MPI_INT;
    types[1] = MPI_DOUBLE;
    MPI_Type_contiguous(3, MPI_SHORT, &types[2]);
    MPI_Type_vector(3, 2, 4, MPI_CHAR, &gaps);
    MPI_Type_create_resized(gaps, 0, 13, &types[3]);
    MPI_Type_free(&gaps);
    MPI_Type_commit(&types[2]);
    MPI_Type_commit(&types[3]);
}

static void free_types(void)
{
    MPI_Type_free(&types[2]);
    MPI_Type_free(&types[3]);
}

/* Elements of the block between two ranks: alike in both directions, for calls in place. */
static int count_of(const struct call *c, int one, int other)
{
    return c->vary ? (one + other + c->round) % (c->most + 1) : c->most;
}

static size_t slot(const struct call *c)
{
    return (size_t)(c->most * c->extent);
}

static struct call begin(struct place *place, int round, bool vary)
{
    struct call c = {.place = place, .round = round, .vary = vary};
    MPI_Aint lower;
    c.type = types[round % N_TYPES];
    c.large = HAS_MPI4 && round / N_TYPES % 2;
    c.in_place = !place->inter && round / N_TYPES / 2 % 2;
    c.most = 1 + (round * 37) % 400;
    MPI_Type_get_extent(c.type, &lower, &c.extent);
    size_t n = (size_t)place->n * slot(&c);
    c.out = test_area_make(n, 1);
    c.in = test_area_make(n, 2);
    c.expected = test_area_make(n, 2);
    for (int j = 0; j < place->n; j++) {
        int at = vary ? place->n - 1 - j : j;
        c.counts_c[j] = c.counts[j] = count_of(&c, place->rank, j);
        c.displs_c[j] = c.displs[j] = at * c.most;
        c.byte_displs_c[j] = c.byte_displs[j] = (int)(at * (MPI_Aint)slot(&c));
        c.types[j] = c.type;
    }
    return c;
}

/* Rooted calls and allgather have one block for a rank, whoever gets it. */
static void one_block_each(struct call *c)
{
    for (int j = 0; j < c->place->n; j++)
        c->counts_c[j] = c->counts[j] = count_of(c, j, 0);
}

static void end(struct call *c, const char *name)
{
    ptrdiff_t at = test_area_differ(&c->in, &c->expected);
    if (at != PTRDIFF_MAX)
        test_fail("%s on %s, round %d: wrong from byte %td on", name, c->place->name, c->round, at);
    place_note(c->place, name, c->in.data, c->in.n);
    test_area_free(&c->out);
    test_area_free(&c->in);
    test_area_free(&c->expected);
}

/* Writes the block from one rank to another, elements at slot j. */
static void write_block(const struct call *c, struct test_area *to, int j, int64_t side, int from,
                        int for_rank, int count)
{
    unsigned char *block = test_alloc(slot(c));
    uint64_t key = test_key(test_key((uint64_t)(side * 1000 + from), for_rank), c->round);
    test_stream(key, 0, slot(c), block);
    MPI_Sendrecv(block, count, c->type, 0, 0, to->data + c->displs[j] * c->extent, count, c->type,
                 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    free(block);
}

static void send_block(struct call *c, struct test_area *to, int j, int for_rank, int count)
{
    write_block(c, to, j, c->place->my_side, c->place->rank, for_rank, count);
}

static void expect_block(struct call *c, int j, int from, int for_rank, int count)
{
    write_block(c, &c->expected, j, c->place->far_side, from, for_rank, count);
}

static void barrier(struct place *place, int round)
{
    (void)round;
    MPI_Barrier(place->comm);
    place_note(place, "Barrier", "", 1);
}

static void bcast(struct place *place, int round)
{
    struct call c = begin(place, round, false);
    if (place->at_root)
        send_block(&c, &c.in, 0, 0, c.most);
    if (place->at_root)
        send_block(&c, &c.expected, 0, 0, c.most);
    else if (place->reached)
        expect_block(&c, 0, place->root, 0, c.most);
    if (c.large)
        MPI_Bcast_c(c.in.data, c.most, c.type, place->root, place->comm);
    else
        MPI_Bcast(c.in.data, c.most, c.type, place->root, place->comm);
    end(&c, "Bcast");
}

/* Prepares gather and scatter calls: the parts of the root and of the others. */
static struct call begin_gather(struct place *place, int round, bool vary, const void **out)
{
    struct call c = begin(place, round, vary);
    one_block_each(&c);
    int at_zero = c.displs[0];
    c.displs[0] = 0;
    send_block(&c, &c.out, 0, 0, count_of(&c, place->rank, 0));
    c.displs[0] = at_zero;
    *out = c.out.data;
    for (int j = 0; j < place->n && place->at_root; j++)
        expect_block(&c, j, j, 0, c.counts[j]);
    if (c.in_place && place->at_root) {
        send_block(&c, &c.in, place->rank, 0, c.counts[place->rank]);
        *out = MPI_IN_PLACE;
    }
    return c;
}

static void gather(struct place *place, int round)
{
    const void *out;
    struct call c = begin_gather(place, round, false, &out);
    if (c.large)
        MPI_Gather_c(out, c.most, c.type, c.in.data, c.most, c.type, place->root, place->comm);
    else
        MPI_Gather(out, c.most, c.type, c.in.data, c.most, c.type, place->root, place->comm);
    end(&c, "Gather");
}

static void gatherv(struct place *place, int round)
{
    const void *out;
    struct call c = begin_gather(place, round, true, &out);
    int mine = count_of(&c, place->rank, 0);
    if (c.large)
        MPI_Gatherv_c(out, mine, c.type, c.in.data, c.counts_c, c.displs_c, c.type, place->root,
                      place->comm);
    else
        MPI_Gatherv(out, mine, c.type, c.in.data, c.counts, c.displs, c.type, place->root,
                    place->comm);
    end(&c, "Gatherv");
}

static struct call begin_scatter(struct place *place, int round, bool vary, void **in)
{
    struct call c = begin(place, round, vary);
    one_block_each(&c);
    for (int j = 0; j < place->n && place->at_root; j++)
        send_block(&c, &c.out, j, j, c.counts[j]);
    *in = c.in_place && place->at_root ? MPI_IN_PLACE : c.in.data;
    if (place->reached && *in != MPI_IN_PLACE) {
        int at_zero = c.displs[0];
        c.displs[0] = 0;
        expect_block(&c, 0, place->root, place->rank, count_of(&c, place->rank, 0));
        c.displs[0] = at_zero;
    }
    return c;
}

static void scatter(struct place *place, int round)
{
    void *in;
    struct call c = begin_scatter(place, round, false, &in);
    if (c.large)
        MPI_Scatter_c(c.out.data, c.most, c.type, in, c.most, c.type, place->root, place->comm);
    else
        MPI_Scatter(c.out.data, c.most, c.type, in, c.most, c.type, place->root, place->comm);
    end(&c, "Scatter");
}

static void scatterv(struct place *place, int round)
{
    void *in;
    struct call c = begin_scatter(place, round, true, &in);
    int mine = count_of(&c, place->rank, 0);
    if (c.large)
        MPI_Scatterv_c(c.out.data, c.counts_c, c.displs_c, c.type, in, mine, c.type, place->root,
                       place->comm);
    else
        MPI_Scatterv(c.out.data, c.counts, c.displs, c.type, in, mine, c.type, place->root,
                     place->comm);
    end(&c, "Scatterv");
}

static struct call begin_allgather(struct place *place, int round, bool vary, const void **out)
{
    struct call c = begin(place, round, vary);
    one_block_each(&c);
    for (int j = 0; j < place->n; j++)
        expect_block(&c, j, j, 0, c.counts[j]);
    if (c.in_place) {
        send_block(&c, &c.in, place->rank, 0, c.counts[place->rank]);
        *out = MPI_IN_PLACE;
    } else {
        int at_zero = c.displs[0];
        c.displs[0] = 0;
        send_block(&c, &c.out, 0, 0, count_of(&c, place->rank, 0));
        c.displs[0] = at_zero;
        *out = c.out.data;
    }
    return c;
}

static void allgather(struct place *place, int round)
{
    const void *out;
    struct call c = begin_allgather(place, round, false, &out);
    if (c.large)
        MPI_Allgather_c(out, c.most, c.type, c.in.data, c.most, c.type, place->comm);
    else
        MPI_Allgather(out, c.most, c.type, c.in.data, c.most, c.type, place->comm);
    end(&c, "Allgather");
}

static void allgatherv(struct place *place, int round)
{
    const void *out;
    struct call c = begin_allgather(place, round, true, &out);
    int mine = count_of(&c, place->rank, 0);
    if (c.large)
        MPI_Allgatherv_c(out, mine, c.type, c.in.data, c.counts_c, c.displs_c, c.type, place->comm);
    else
        MPI_Allgatherv(out, mine, c.type, c.in.data, c.counts, c.displs, c.type, place->comm);
    end(&c, "Allgatherv");
}

static struct call begin_alltoall(struct place *place, int round, bool vary, const void **out)
{
    struct call c = begin(place, round, vary);
    for (int j = 0; j < place->n; j++) {
        send_block(&c, c.in_place ? &c.in : &c.out, j, j, c.counts[j]);
        expect_block(&c, j, j, place->rank, c.counts[j]);
    }
    *out = c.in_place ? MPI_IN_PLACE : c.out.data;
    return c;
}

static void alltoall(struct place *place, int round)
{
    const void *out;
    struct call c = begin_alltoall(place, round, false, &out);
    if (c.large)
        MPI_Alltoall_c(out, c.most, c.type, c.in.data, c.most, c.type, place->comm);
    else
        MPI_Alltoall(out, c.most, c.type, c.in.data, c.most, c.type, place->comm);
    end(&c, "Alltoall");
}

static void alltoallv(struct place *place, int round)
{
    const void *out;
    struct call c = begin_alltoall(place, round, true, &out);
    if (c.large)
        MPI_Alltoallv_c(out, c.counts_c, c.displs_c, c.type, c.in.data, c.counts_c, c.displs_c,
                        c.type, place->comm);
    else
        MPI_Alltoallv(out, c.counts, c.displs, c.type, c.in.data, c.counts, c.displs, c.type,
                      place->comm);
    end(&c, "Alltoallv");
}

static void alltoallw(struct place *place, int round)
{
    const void *out;
    struct call c = begin_alltoall(place, round, true, &out);
    if (c.large)
        MPI_Alltoallw_c(out, c.counts_c, c.byte_displs_c, c.types, c.in.data, c.counts_c,
                        c.byte_displs_c, c.types, place->comm);
    else
        MPI_Alltoallw(out, c.counts, c.byte_displs, c.types, c.in.data, c.counts, c.byte_displs,
                      c.types, place->comm);
    end(&c, "Alltoallw");
}

void collectives_move(struct place *place, int round)
{
    static void (*const calls[])(struct place *, int) = {barrier,  bcast,     gather,    gatherv,
                                                         scatter,  scatterv,  allgather, allgatherv,
                                                         alltoall, alltoallv, alltoallw};
    make_types();
    for (size_t k = 0; k < sizeof calls / sizeof calls[0]; k++)
        calls[k](place, round);
    free_types();
}
