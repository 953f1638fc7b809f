/*
 * Erroneous calls between good ones: the program gets the error code, nobody hangs, nothing is
 * written where it must not, and the communicator works on.
 *
 *   errors [--rounds N]
 *
 * Only errors that plain MPICH returns from. It does not report truncation in these calls (4.0.2);
 * whether an implementation does is left open, the memory beyond the count is not.
 */
#include "common.h"

#include <stdlib.h>
#include <string.h>

#define N_GOOD    4
#define MAX_BYTES 20000

struct setting {
    MPI_Comm comm; /* a ring in both directions */
    int peers[2];
    int bytes; /* of a block */
    int counts[2], displs[2];
    MPI_Aint byte_displs[2];
    MPI_Datatype types[2];
    MPI_Datatype uncommitted;
    unsigned char *out, *in;
};

static int n_handled; /* calls of the error handler */

static void on_error(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    (void)code;
    n_handled++;
}

static MPI_Comm create(int peers[2])
{
    int size = test_size(), rank = test_rank();
    MPI_Comm comm;

    peers[0] = (rank + 1) % size;
    peers[1] = (rank + size - 1) % size;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, peers, MPI_UNWEIGHTED, 2, peers,
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
    return comm;
}

static void setting_make(struct setting *s)
{
    s->comm = create(s->peers);
    s->out = test_alloc(2 * MAX_BYTES);
    s->in = test_alloc(2 * MAX_BYTES);
    MPI_Type_contiguous(3, MPI_BYTE, &s->uncommitted);
    MPI_Comm_set_errhandler(s->comm, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
}

static void setting_free(struct setting *s)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Type_free(&s->uncommitted);
    MPI_Comm_free(&s->comm);
    free(s->out);
    free(s->in);
}

/* Byte k of a message. */
static unsigned char byte_of(int from, int to, int round, int k)
{
    return (unsigned char)(1 + (from + 3 * to + 7 * round + k) % 200);
}

static void prepare(struct setting *s, int bytes, int round)
{
    s->bytes = bytes;
    for (int i = 0; i < 2; i++) {
        s->counts[i] = bytes;
        s->displs[i] = i * bytes;
        s->byte_displs[i] = i * bytes;
        s->types[i] = MPI_BYTE;
    }
    for (int k = 0; k < 2 * bytes; k++)
        s->out[k] = byte_of(test_rank(), s->peers[k / bytes], round, k % bytes);
    memset(s->in, 0, 2 * (size_t)bytes);
}

static int exchange(struct setting *s, const int *recv_counts)
{
    return MPI_Neighbor_alltoallv(s->out, s->counts, s->displs, MPI_BYTE, s->in, recv_counts,
                                  s->displs, MPI_BYTE, s->comm);
}

/* How many of the n bytes have the value. */
static int n_equal(const unsigned char *bytes, int n, int value)
{
    int n_found = 0;
    for (int i = 0; i < n; i++)
        n_found += bytes[i] == value;
    return n_found;
}

static void good_call(struct setting *s, int bytes, int round, const char *when)
{
    int code;

    prepare(s, bytes, round);
    code = exchange(s, s->counts);
    if (code != MPI_SUCCESS)
        test_fail("a good call %s returned %d", when, code);
    for (int i = 0; i < 2; i++) {
        int k = 0;
        while (k < bytes && s->in[s->displs[i] + k] == byte_of(s->peers[i], test_rank(), round, k))
            k++;
        if (k < bytes)
            test_fail("wrong data from neighbor %d %s", i, when);
    }
}

/* The last rank has room for half of the first block only. */
static void truncate_message(struct setting *s, int bytes, int round)
{
    int recv_counts[2] = {bytes, bytes};
    int room = test_rank() == test_size() - 1 ? bytes / 2 : bytes;
    int code, class = MPI_SUCCESS;

    prepare(s, bytes, round);
    recv_counts[0] = room;
    code = exchange(s, recv_counts);
    if (code != MPI_SUCCESS)
        MPI_Error_class(code, &class);
    if (class != MPI_SUCCESS && (class != MPI_ERR_TRUNCATE || room == bytes))
        test_fail("truncation gave error class %d", class);
    if (n_equal(s->in + room, bytes - room, 0) != bytes - room)
        test_fail("written beyond the count of a truncated message");
    test_print("truncation of %d bytes: the rest is untouched\n", bytes);
}

static int negative_send_counts(struct setting *s)
{
    const int counts[2] = {-1, -1};
    return MPI_Neighbor_alltoallv(s->out, counts, s->displs, MPI_BYTE, s->in, s->counts, s->displs,
                                  MPI_BYTE, s->comm);
}

static int negative_recv_counts(struct setting *s)
{
    const int counts[2] = {-1, -1};
    return exchange(s, counts);
}

static int negative_count_alltoall(struct setting *s)
{
    return MPI_Neighbor_alltoall(s->out, -1, MPI_BYTE, s->in, -1, MPI_BYTE, s->comm);
}

static int negative_count_allgather(struct setting *s)
{
    return MPI_Neighbor_allgather(s->out, -1, MPI_BYTE, s->in, -1, MPI_BYTE, s->comm);
}

static int negative_counts_alltoallw(struct setting *s)
{
    const int counts[2] = {-1, -1};
    return MPI_Neighbor_alltoallw(s->out, counts, s->byte_displs, s->types, s->in, s->counts,
                                  s->byte_displs, s->types, s->comm);
}

static int null_communicator(struct setting *s)
{
    return MPI_Neighbor_alltoallv(s->out, s->counts, s->displs, MPI_BYTE, s->in, s->counts,
                                  s->displs, MPI_BYTE, MPI_COMM_NULL);
}

/* Not alltoallv: MPICH looks for the counts of neighbors that it did not find. */
static int no_topology(struct setting *s)
{
    return MPI_Neighbor_allgather(s->out, 1, MPI_BYTE, s->in, 1, MPI_BYTE, MPI_COMM_WORLD);
}

static int null_type(struct setting *s)
{
    return MPI_Neighbor_alltoallv(s->out, s->counts, s->displs, MPI_DATATYPE_NULL, s->in, s->counts,
                                  s->displs, MPI_BYTE, s->comm);
}

static int uncommitted_type(struct setting *s)
{
    return MPI_Neighbor_allgather(s->out, 1, s->uncommitted, s->in, 3, MPI_BYTE, s->comm);
}

static int null_buffer(struct setting *s)
{
    return MPI_Neighbor_alltoall(s->out, s->bytes, MPI_BYTE, NULL, s->bytes, MPI_BYTE, s->comm);
}

/* All ranks make the same mistake; the error comes back on all of them. */
static const struct mistake {
    const char *name;
    int (*make)(struct setting *s);
    int class;
    bool on_graph; /* whether the graph communicator's handler is responsible */
} mistakes[] = {
    {"negative send counts", negative_send_counts, MPI_ERR_COUNT, true},
    {"negative receive counts", negative_recv_counts, MPI_ERR_COUNT, true},
    {"negative count in alltoall", negative_count_alltoall, MPI_ERR_COUNT, true},
    {"negative count in allgather", negative_count_allgather, MPI_ERR_COUNT, true},
    {"negative counts in alltoallw", negative_counts_alltoallw, MPI_ERR_COUNT, true},
    {"null communicator", null_communicator, MPI_ERR_COMM, false},
    {"no topology", no_topology, MPI_ERR_TOPOLOGY, false},
    {"null datatype", null_type, MPI_ERR_TYPE, true},
    {"uncommitted datatype", uncommitted_type, MPI_ERR_TYPE, true},
    {"null buffer", null_buffer, MPI_ERR_BUFFER, true},
};

static void try_mistake(const struct mistake *mistake, struct setting *s)
{
    int class = MPI_SUCCESS, code;

    prepare(s, 16, 0);
    code = mistake->make(s);
    if (code != MPI_SUCCESS)
        MPI_Error_class(code, &class);
    if (class != mistake->class)
        test_fail("%s: error class %d instead of %d", mistake->name, class, mistake->class);
    if (n_equal(s->in, 32, 0) != 32)
        test_fail("%s: something was received", mistake->name);
    good_call(s, 16, 1, mistake->name);
    test_print("%s: returned\n", mistake->name);
}

/* The program's own error handler is called once for each mistake. */
static void try_handler(const struct mistake *mistake, struct setting *s)
{
    MPI_Errhandler handler;

    if (!mistake->on_graph)
        return;
    MPI_Comm_create_errhandler(on_error, &handler);
    MPI_Comm_set_errhandler(s->comm, handler);
    n_handled = 0;
    mistake->make(s);
    if (n_handled != 1)
        test_fail("%s: the error handler was called %d times", mistake->name, n_handled);
    MPI_Comm_set_errhandler(s->comm, MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&handler);
}

static void one_round(struct setting *s, int round)
{
    const int sizes[] = {64, MAX_BYTES, 8, 1000};
    int bytes = sizes[round % 4];

    for (int i = 0; i < N_GOOD; i++)
        good_call(s, bytes, round + i, "before");
    truncate_message(s, bytes, round);
    good_call(s, bytes, round, "after truncation");
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        try_mistake(&mistakes[i], s);
        try_handler(&mistakes[i], s);
    }
    for (int i = 0; i < N_GOOD; i++)
        good_call(s, bytes, round + i, "at last");
}

int main(int argc, char **argv)
{
    static const char *const known[] = {"--rounds", NULL};
    struct setting s;
    int n_rounds;

    test_start(&argc, &argv, known);
    n_rounds = (int)test_option(argc, argv, "--rounds", 4);
    setting_make(&s);
    for (int round = 0; round < n_rounds; round++)
        one_round(&s, round);
    setting_free(&s);
    return test_finish();
}
