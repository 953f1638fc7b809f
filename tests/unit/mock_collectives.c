/* Collectives between fibers (mock_collectives.h). */
#include "mock_collectives.h"

#include "fibers.h"
#include "shim/wait/collective.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { MADE_TYPE = 0x10000, MADE_OP = 77, FIRST_SPLIT = 40, MOST_BYTES = 1 << 16 };

static struct {
    int n_types, n_ops, n_comms, n_splits; /* of all ranks, not freed; splits ever */
    int splits_to_fail[FIBERS_MOST];
    MPI_User_function *function;
} mock;

void collectives_begin(void)
{
    memset(&mock, 0, sizeof mock);
}

void collectives_end(void)
{
    assert_int_equal(mock.n_types, 0);
    assert_int_equal(mock.n_ops, 0);
    assert_int_equal(mock.n_comms, 0);
}

MPI_Comm collectives_comm(int number, int rank)
{
    return COLLECTIVES_FIRST + number * COLLECTIVES_STEP + rank;
}

void collectives_fail_splits(int rank, int n)
{
    mock.splits_to_fail[rank] = n;
}

/* ---- datatypes and operations ---- */

/* MPICH's handles of its own types hold their size. */
static size_t size_of(MPI_Datatype type)
{
    unsigned handle = (unsigned)type;
    return handle >> 24 ? handle >> 8 & 0xff : handle - MADE_TYPE;
}

int PMPI_Type_contiguous(int n, MPI_Datatype old, MPI_Datatype *made)
{
    mock.n_types++;
    *made = (MPI_Datatype)(MADE_TYPE + (size_t)n * size_of(old));
    return MPI_SUCCESS;
}

int PMPI_Type_commit(MPI_Datatype *type)
{
    (void)type;
    return MPI_SUCCESS;
}

int PMPI_Type_free(MPI_Datatype *type)
{
    mock.n_types--;
    *type = MPI_DATATYPE_NULL;
    return MPI_SUCCESS;
}

int PMPI_Op_create(MPI_User_function *function, int commutes, MPI_Op *op)
{
    assert_true(commutes);
    mock.n_ops++;
    mock.function = function;
    *op = MADE_OP;
    return MPI_SUCCESS;
}

int PMPI_Op_free(MPI_Op *op)
{
    mock.n_ops--;
    *op = MPI_OP_NULL;
    return MPI_SUCCESS;
}

/* ---- collectives ---- */

struct arguments {
    const void *send;
    void *recv;
    int count; /* of the call, on all ranks or at the root */
    const int *counts, *displs;
    int own_count; /* of this rank in Gatherv and Scatterv */
    MPI_Datatype type;
    MPI_Op op;
    int root;
};

static int64_t id_of(MPI_Comm comm)
{
    if (comm == MPI_COMM_WORLD)
        return comm;
    int rank = (comm - COLLECTIVES_FIRST) % COLLECTIVES_STEP;
    assert_int_equal(rank, fibers_rank());
    return comm - rank;
}

static int64_t combine_words(int64_t a, int64_t b, MPI_Op op)
{
    if (op == MPI_SUM)
        return a + b;
    assert_true(op == MPI_MIN || op == MPI_MAX);
    return (op == MPI_MIN) == (a < b) ? a : b;
}

static double combine_doubles(double a, double b, MPI_Op op)
{
    if (op == MPI_SUM)
        return a + b;
    assert_int_equal(op, MPI_MAX);
    return a > b ? a : b;
}

static void combine(const struct arguments *a, void *in, void *inout)
{
    int n = a->count;
    MPI_Datatype type = a->type;
    if (a->op == MADE_OP) {
        mock.function(in, inout, &n, &type);
        return;
    }
    for (int k = 0; k < n; k++) {
        if (type == MPI_INT || type == MPI_INT32_T)
            ((int32_t *)inout)[k] =
                (int32_t)combine_words(((int32_t *)in)[k], ((int32_t *)inout)[k], a->op);
        else if (type == MPI_INT64_T)
            ((int64_t *)inout)[k] = combine_words(((int64_t *)in)[k], ((int64_t *)inout)[k], a->op);
        else if (type == MPI_UINT64_T && a->op == MPI_SUM)
            ((uint64_t *)inout)[k] += ((uint64_t *)in)[k];
        else if (type == MPI_DOUBLE)
            ((double *)inout)[k] = combine_doubles(((double *)in)[k], ((double *)inout)[k], a->op);
        else
            fail_msg("a type that the mock does not reduce");
    }
}

/* In an order that begins anywhere: what hangs on it shows. */
static void reduce(void *const *all)
{
    static int64_t result[MOST_BYTES / 8], next[MOST_BYTES / 8];
    const struct arguments *first = all[0];
    size_t bytes = (size_t)first->count * size_of(first->type);
    assert_in_range(bytes, 0, MOST_BYTES);
    int n = fibers_n(), from = fibers_draw(n);
    for (int k = 0; k < n; k++) {
        const struct arguments *a = all[(from + k) % n];
        if (k > 0)
            memcpy(next, a->send, bytes);
        else
            memcpy(result, a->send, bytes);
        if (k > 0)
            combine(first, next, result);
    }
    for (int r = 0; r < n; r++) {
        const struct arguments *a = all[r];
        if (a->root < 0 || a->root == r)
            memcpy(a->recv, result, bytes);
    }
}

static void meet(const char *name, struct arguments *a, MPI_Comm comm,
                 void (*together)(void *const *all))
{
    const struct fibers_call call = {name, id_of(comm), a->count, a->type, a->op, a->root};
    fibers_meet(&call, a, together);
}

int cpl_collective_Allreduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
                             MPI_Comm comm)
{
    struct arguments a = {
        .send = send, .recv = recv, .count = count, .type = type, .op = op, .root = -1};
    meet("Allreduce", &a, comm, reduce);
    return MPI_SUCCESS;
}

int cpl_collective_settle(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
                          MPI_Comm comm)
{
    return cpl_collective_Allreduce(send, recv, count, type, op, comm);
}

int cpl_collective_Reduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
                          int root, MPI_Comm comm)
{
    struct arguments a = {
        .send = send, .recv = recv, .count = count, .type = type, .op = op, .root = root};
    meet("Reduce", &a, comm, reduce);
    return MPI_SUCCESS;
}

static void alltoall(void *const *all)
{
    for (int i = 0; i < fibers_n(); i++)
        for (int j = 0; j < fibers_n(); j++) {
            const struct arguments *from = all[i], *to = all[j];
            size_t bytes = (size_t)from->count * size_of(from->type);
            memcpy((char *)to->recv + (size_t)i * bytes,
                   (const char *)from->send + (size_t)j * bytes, bytes);
        }
}

int cpl_collective_Alltoall(const void *send, int count, MPI_Datatype type, void *recv,
                            int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    struct arguments a = {.send = send, .recv = recv, .count = count, .type = type};
    assert_true(recvcount == count && recvtype == type);
    meet("Alltoall", &a, comm, alltoall);
    return MPI_SUCCESS;
}

static void broadcast(void *const *all)
{
    const struct arguments *root = all[((struct arguments *)all[0])->root];
    for (int r = 0; r < fibers_n(); r++) {
        const struct arguments *a = all[r];
        if (a != root)
            memcpy(a->recv, root->recv, (size_t)a->count * size_of(a->type));
    }
}

int cpl_collective_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    struct arguments a = {.recv = buffer, .count = count, .type = type, .root = root};
    meet("Bcast", &a, comm, broadcast);
    return MPI_SUCCESS;
}

/* Of Gather and Gatherv: the root's place for a rank's data. */
static void gather(void *const *all)
{
    const struct arguments *root = all[((struct arguments *)all[0])->root];
    for (int r = 0; r < fibers_n(); r++) {
        const struct arguments *a = all[r];
        size_t size = size_of(a->type), n = (size_t)(root->counts ? a->own_count : a->count);
        size_t at = root->counts ? (size_t)root->displs[r] : (size_t)r * n;
        if (root->counts)
            assert_int_equal(root->counts[r], a->own_count);
        if (n > 0)
            memcpy((char *)root->recv + at * size, a->send, n * size);
    }
}

int cpl_collective_Gather(const void *send, int count, MPI_Datatype type, void *recv, int recvcount,
                          MPI_Datatype recvtype, int root, MPI_Comm comm)
{
    struct arguments a = {.send = send, .recv = recv, .count = count, .type = type, .root = root};
    assert_true(recvcount == count && recvtype == type);
    meet("Gather", &a, comm, gather);
    return MPI_SUCCESS;
}

int cpl_collective_Gatherv(const void *send, int count, MPI_Datatype type, void *recv,
                           const int *counts, const int *displs, MPI_Datatype recvtype, int root,
                           MPI_Comm comm)
{
    struct arguments a = {.send = send,
                          .recv = recv,
                          .counts = counts,
                          .displs = displs,
                          .own_count = count,
                          .type = type,
                          .root = root};
    assert_true(recvtype == type);
    meet("Gatherv", &a, comm, gather);
    return MPI_SUCCESS;
}

static void scatter(void *const *all)
{
    const struct arguments *root = all[((struct arguments *)all[0])->root];
    for (int r = 0; r < fibers_n(); r++) {
        const struct arguments *a = all[r];
        size_t size = size_of(a->type), n = (size_t)(root->counts ? a->own_count : a->count);
        size_t at = root->counts ? (size_t)root->displs[r] : (size_t)r * n;
        if (root->counts)
            assert_int_equal(root->counts[r], a->own_count);
        if (n > 0)
            memcpy(a->recv, (const char *)root->send + at * size, n * size);
    }
}

int cpl_collective_Scatter(const void *send, int count, MPI_Datatype type, void *recv,
                           int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm)
{
    struct arguments a = {.send = send, .recv = recv, .count = count, .type = type, .root = root};
    assert_true(recvcount == count && recvtype == type);
    meet("Scatter", &a, comm, scatter);
    return MPI_SUCCESS;
}

int cpl_collective_Scatterv(const void *send, const int *counts, const int *displs,
                            MPI_Datatype type, void *recv, int recvcount, MPI_Datatype recvtype,
                            int root, MPI_Comm comm)
{
    struct arguments a = {.send = send,
                          .recv = recv,
                          .counts = counts,
                          .displs = displs,
                          .own_count = recvcount,
                          .type = type,
                          .root = root};
    assert_true(recvtype == type);
    meet("Scatterv", &a, comm, scatter);
    return MPI_SUCCESS;
}

/* ---- communicators ---- */

/* Where one rank fails, the others do not hear of it. */
static void split(void *const *all)
{
    (void)all;
    mock.n_splits++;
}

int cpl_collective_Comm_split(MPI_Comm comm, int colour, int key, MPI_Comm *made)
{
    struct arguments a = {.count = colour};
    (void)key;
    meet("Comm_split", &a, comm, split);
    *made = MPI_COMM_NULL;
    if (mock.splits_to_fail[fibers_rank()] > 0) {
        mock.splits_to_fail[fibers_rank()]--;
        return MPI_ERR_OTHER;
    }
    mock.n_comms++;
    *made = collectives_comm(FIRST_SPLIT + mock.n_splits, fibers_rank());
    return MPI_SUCCESS;
}

int cpl_collective_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *made)
{
    (void)comm, (void)type, (void)key, (void)info, (void)made;
    fail_msg("nobody asks who shares memory");
    return MPI_ERR_OTHER;
}

int PMPI_Comm_free(MPI_Comm *comm)
{
    mock.n_comms--;
    *comm = MPI_COMM_NULL;
    return MPI_SUCCESS;
}

int PMPI_Comm_get_errhandler(MPI_Comm comm, MPI_Errhandler *handler)
{
    (void)comm;
    *handler = MPI_ERRORS_ARE_FATAL;
    return MPI_SUCCESS;
}

int PMPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler handler)
{
    (void)comm, (void)handler;
    return MPI_SUCCESS;
}

int PMPI_Errhandler_free(MPI_Errhandler *handler)
{
    *handler = MPI_ERRHANDLER_NULL;
    return MPI_SUCCESS;
}

int PMPI_Comm_test_inter(MPI_Comm comm, int *inter)
{
    (void)comm;
    *inter = 0;
    return MPI_SUCCESS;
}
