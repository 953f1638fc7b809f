/* The collectives of calls_fuzz.c: blocking and nonblocking ones on communicators of all ranks and
 * of some, neighborhood collectives with changing counts, and sparse MPI_Alltoallv. Their results
 * go into the hash, floating-point sums bit by bit. */
#include "calls_fuzz.h"

#include <stdlib.h>
#include <string.h>

#define N_COLLECTIVES 13

static void fill_doubles(uint64_t key, double *values, int n)
{
    for (int k = 0; k < n; k++)
        values[k] = (double)(mix(key + (uint64_t)k) >> 11) / 3e15 - 1;
}

static void own_sum(void *in, void *inout, int *n, MPI_Datatype *type)
{
    (void)type;
    for (int k = 0; k < *n; k++)
        ((int *)inout)[k] += 3 * ((int *)in)[k];
}

static void reduce_own(const int *in, int *out, int count, MPI_Comm comm)
{
    MPI_Op op;
    MPI_Op_create(own_sum, 0, &op);
    MPI_Allreduce(in, out, count, MPI_INT, op, comm);
    MPI_Op_free(&op);
}

static void gather(const int *in, int *out, int count, int root, int n, MPI_Comm comm)
{
    int counts[64], displs[64], rank;
    MPI_Comm_rank(comm, &rank);
    for (int k = 0; k < n; k++) {
        counts[k] = count > 0 ? k % count : 0;
        displs[k] = k * count;
    }
    MPI_Gatherv(in, counts[rank], MPI_INT, out, counts, displs, MPI_INT, root, comm);
}

static int reduce_by(int which, const void *in, void *out, int count, MPI_Comm comm)
{
    const double *doubles = (const double *)in;
    switch (which) {
    case 1:
        return MPI_Allreduce(in, out, count, MPI_INT, MPI_SUM, comm);
    case 2:
        return MPI_Allreduce(doubles, out, count, MPI_DOUBLE, MPI_SUM, comm);
    case 9:
        return MPI_Allreduce(in, out, count, MPI_2INT, MPI_MAXLOC, comm);
    case 10:
        return MPI_Allreduce(doubles, out, count, MPI_DOUBLE, MPI_MAX, comm);
    default:
        return MPI_Allreduce(in, out, count, MPI_UNSIGNED, MPI_BXOR, comm);
    }
}

/* One blocking collective; the result is noted. */
void collective_on(struct run *run, MPI_Comm comm, int which, int count, uint64_t key)
{
    int rank, n, code = MPI_SUCCESS;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &n);
    int root = (int)(key % (uint64_t)n);
    size_t n_bytes = ((size_t)count * 2 + 1) * sizeof(double);
    void *in = get_memory(n_bytes * (size_t)n), *out = get_memory(n_bytes * (size_t)n);
    if (which == 2 || which == 10)
        fill_doubles(mix3(key, (uint64_t)rank, 5), in, count);
    else
        fill_bytes(mix3(key, (uint64_t)rank, 5), in, n_bytes * (size_t)n);
    run->where = "a blocking collective";
    if (which == 0)
        code = MPI_Barrier(comm);
    else if (which == 3)
        code = MPI_Bcast(rank == root ? in : out, count, MPI_INT, root, comm);
    else if (which == 4)
        code = MPI_Reduce(in, out, count, MPI_INT, MPI_SUM, root, comm);
    else if (which == 5)
        code = MPI_Allgather(in, count, MPI_INT, out, count, MPI_INT, comm);
    else if (which == 6)
        code = MPI_Alltoall(in, count, MPI_INT, out, count, MPI_INT, comm);
    else if (which == 7)
        code = MPI_Scan(in, out, count, MPI_INT, MPI_SUM, comm);
    else if (which == 8)
        gather(in, out, count, root, n, comm);
    else if (which == 12)
        reduce_own(in, out, count, comm);
    else
        code = reduce_by(which, in, out, count, comm);
    must(run, code, "a collective");
    note(run, run->iteration, mix3(hash_bytes(out, n_bytes * (size_t)n), run->event, key));
    free(in);
    free(out);
}

/* The one that each iteration ends with, on every communicator that exchanges use. */
void iteration_collective(struct run *run)
{
    bool is_done[MAX_COMMS] = {false};
    for (int k = 0; k < run->n_exchanges; k++) {
        int comm = run->exchange[k].comm;
        if (is_done[comm])
            continue;
        is_done[comm] = true;
        collective_on(run, run->comm[comm], run->usual_collective, run->usual_count,
                      mix3(run->seed, run->event, (uint64_t)comm));
    }
}

void collective_event(struct run *run, struct draw *draw)
{
    MPI_Comm comm = run->comm[below(draw, MAX_COMMS)];
    int which = below(draw, N_COLLECTIVES), count = 1 + below(draw, below(draw, 4) ? 8 : 300);
    collective_on(run, comm, which, count, mix(draw->state));
}

void subcollective_event(struct run *run, struct draw *draw)
{
    int which = below(draw, N_COLLECTIVES), count = 1 + below(draw, 20);
    int sub = below(draw, 2), color = below(draw, 2);
    if (run->sub_color[sub] == color)
        collective_on(run, run->sub[sub], which, count, mix(draw->state));
}

void icollective_event(struct run *run, struct draw *draw)
{
    MPI_Comm comm = run->comm[below(draw, MAX_COMMS)];
    struct op *op = op_new(run, OP_COLLECTIVE);
    int which = below(draw, 4), count = 1 + below(draw, 12);
    int root = below(draw, run->n_ranks), rank;
    size_t n = (size_t)count * sizeof(double);
    MPI_Comm_rank(comm, &rank);
    op->in = get_memory(n);
    op->out = get_memory(n);
    op->n_out = n;
    fill_doubles(mix3(draw->state, (uint64_t)rank, 1), op->in, count);
    run->where = "a nonblocking collective";
    if (which == 0)
        MUST(run, MPI_Ibarrier(comm, &op->request));
    else if (which == 1)
        MUST(run,
             MPI_Iallreduce(op->in, op->out, count, MPI_UNSIGNED, MPI_SUM, comm, &op->request));
    else if (which == 2)
        MUST(run, MPI_Iallreduce(op->in, op->out, count, MPI_DOUBLE, MPI_SUM, comm, &op->request));
    else {
        memcpy(op->out, op->in, rank == root ? n : 0);
        MUST(run, MPI_Ibcast(op->out, count, MPI_DOUBLE, root, comm, &op->request));
    }
    op_add(run, op);
    if (chance(&run->loose, 50))
        complete_some(run);
}

/* --- neighborhoods */
static void make_graph(struct run *run, struct graph *g, bool is_regular)
{
    int n = run->n_ranks;
    g->in = get_memory((size_t)n * sizeof(int));
    g->out = get_memory((size_t)n * sizeof(int));
    for (int k = 0; k < n; k++) {
        int from = is_regular ? (run->rank - k + n) % n : k;
        int to = is_regular ? (run->rank + k) % n : n - 1 - k;
        uint64_t in = is_regular ? mix3(run->seed, 41, (uint64_t)k)
                                 : mix3(run->seed, (uint64_t)k, (uint64_t)run->rank);
        uint64_t out = is_regular ? in : mix3(run->seed, (uint64_t)run->rank, (uint64_t)to);
        if (in % 100 < 45)
            g->in[g->n_in++] = from;
        if (out % 100 < 45)
            g->out[g->n_out++] = to;
    }
    MUST(run,
         MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, g->n_in, g->in, MPI_UNWEIGHTED, g->n_out,
                                        g->out, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &g->comm));
    MPI_Comm_set_errhandler(g->comm, MPI_ERRORS_RETURN);
}

void make_graphs(struct run *run)
{
    make_graph(run, &run->graph[0], false);
    make_graph(run, &run->graph[1], true);
}

void free_graphs(struct run *run)
{
    for (int k = 0; k < MAX_GRAPHS; k++) {
        MUST(run, MPI_Comm_free(&run->graph[k].comm));
        free(run->graph[k].in);
        free(run->graph[k].out);
    }
}

/* What a call moves: counts of doubles by edge, where they lie, and the data. */
struct traffic {
    int *counts; /* n_out send counts and displacements, n_in receive counts and displacements */
    int *send_displs, *recv_counts, *recv_displs;
    double *in, *out;
    size_t n_out;
    MPI_Aint *bytes; /* displacements for alltoallw: n_out, n_in */
    MPI_Datatype *types;
};

static int edge_count(uint64_t key, int src, int dst)
{
    uint64_t value = mix3(key, (uint64_t)src, (uint64_t)dst);
    return value % 7 == 0 ? 0 : value % 97 == 1 ? 700 : (int)(value % 23);
}

static void make_traffic(struct run *run, const struct graph *g, uint64_t key, int same,
                         struct traffic *t)
{
    int n_out = g->n_out, n_in = g->n_in, at = 0;
    t->counts = get_memory((size_t)(2 * n_out + 2 * n_in + 1) * sizeof(int));
    t->send_displs = t->counts + n_out;
    t->recv_counts = t->send_displs + n_out;
    t->recv_displs = t->recv_counts + n_in;
    for (int k = 0; k < n_out; at += t->counts[k++]) {
        t->counts[k] = same >= 0 ? same : edge_count(key, run->rank, g->out[k]);
        t->send_displs[k] = at;
    }
    t->in = get_memory(((size_t)at + 1) * sizeof(double));
    for (int k = 0; k < n_out; k++)
        for (int j = 0; j < t->counts[k]; j++) {
            uint64_t who = j % 3 ? 0 : (uint64_t)g->out[k] + 1;
            t->in[t->send_displs[k] + j] =
                (double)(mix3(key + run->event, (uint64_t)run->rank * 64 + who, (uint64_t)j) >> 12);
        }
    at = 0;
    for (int k = 0; k < n_in; at += t->recv_counts[k++] + 1) {
        t->recv_counts[k] = same >= 0 ? same : edge_count(key, g->in[k], run->rank);
        t->recv_displs[k] = at;
    }
    t->n_out = ((size_t)at + 1) * sizeof(double);
    t->out = get_memory(t->n_out);
    t->bytes = get_memory((size_t)(n_out + n_in + 1) * sizeof *t->bytes);
    t->types = get_memory((size_t)(n_out + n_in + 1) * sizeof(MPI_Datatype));
    for (int k = 0; k < n_out + n_in; k++) {
        t->types[k] = MPI_DOUBLE;
        t->bytes[k] = (k < n_out ? t->send_displs[k] : t->recv_displs[k - n_out]) * 8;
    }
}

static uint64_t traffic_key(struct run *run, struct draw *draw)
{
    bool is_usual = chance(draw, 60);
    return is_usual ? mix3(run->seed, 61, (uint64_t)below(draw, 2)) : mix(draw->state);
}

void neighbor_event(struct run *run, struct draw *draw)
{
    struct traffic t;
    int which = below(draw, is_on(run, KIND_neighborw) ? 5 : 4), regular = below(draw, 2);
    const struct graph *g = &run->graph[which == 4 ? 1 : regular];
    uint64_t key = traffic_key(run, draw);
    int same = which == 0 || which == 4 ? -1 : (int)(key % 20), code;
    make_traffic(run, g, key, same, &t);
    run->where = "a neighborhood collective";
    if (which == 0)
        code = MPI_Neighbor_alltoallv(t.in, t.counts, t.send_displs, MPI_DOUBLE, t.out,
                                      t.recv_counts, t.recv_displs, MPI_DOUBLE, g->comm);
    else if (which == 1)
        code = MPI_Neighbor_alltoall(t.in, same, MPI_DOUBLE, t.out, same, MPI_DOUBLE, g->comm);
    else if (which == 2)
        code = MPI_Neighbor_allgather(t.in, g->n_out ? same : 0, MPI_DOUBLE, t.out, same,
                                      MPI_DOUBLE, g->comm);
    else if (which == 3)
        code = MPI_Neighbor_allgatherv(t.in, g->n_out ? same : 0, MPI_DOUBLE, t.out, t.recv_counts,
                                       t.recv_displs, MPI_DOUBLE, g->comm);
    else
        code = MPI_Neighbor_alltoallw(t.in, t.counts, t.bytes, t.types, t.out, t.recv_counts,
                                      t.bytes + g->n_out, t.types + g->n_out, g->comm);
    must(run, code, "a neighborhood collective");
    note(run, run->iteration, mix3(hash_bytes(t.out, t.n_out), run->event, 3));
    free(t.counts);
    free(t.in);
    free(t.out);
    free(t.bytes);
    free(t.types);
}

void ineighbor_event(struct run *run, struct draw *draw)
{
    struct traffic t;
    struct op *op = op_new(run, OP_COLLECTIVE);
    const struct graph *g = &run->graph[below(draw, 2)];
    make_traffic(run, g, traffic_key(run, draw), -1, &t);
    free(t.bytes);
    free(t.types);
    op->in = t.in;
    op->out = t.out;
    op->n_out = t.n_out;
    op->more = t.counts;
    run->where = "MPI_Ineighbor_alltoallv";
    MUST(run,
         MPI_Ineighbor_alltoallv(t.in, t.counts, t.send_displs, MPI_DOUBLE, t.out, t.recv_counts,
                                 t.recv_displs, MPI_DOUBLE, g->comm, &op->request));
    op_add(run, op);
    if (chance(&run->loose, 40))
        complete_some(run);
}

void alltoallv_event(struct run *run, struct draw *draw)
{
    int counts[4][64], n = run->n_ranks, rank, at[2] = {0, 0};
    MPI_Comm comm = run->comm[below(draw, MAX_COMMS)];
    uint64_t key = traffic_key(run, draw);
    MPI_Comm_rank(comm, &rank);
    for (int k = 0; k < n; k++) {
        counts[0][k] = mix3(key, (uint64_t)rank, (uint64_t)k) % 5 ? 0 : edge_count(key, rank, k);
        counts[1][k] = at[0];
        counts[2][k] = mix3(key, (uint64_t)k, (uint64_t)rank) % 5 ? 0 : edge_count(key, k, rank);
        counts[3][k] = at[1];
        at[0] += counts[0][k];
        at[1] += counts[2][k];
    }
    int *in = get_memory((size_t)at[0] * sizeof(int) + 8);
    int *out = get_memory((size_t)at[1] * sizeof(int) + 8);
    fill_bytes(mix3(key, run->event, (uint64_t)rank), (uint8_t *)in, (size_t)at[0] * sizeof(int));
    run->where = "MPI_Alltoallv";
    MUST(run, MPI_Alltoallv(in, counts[0], counts[1], MPI_INT, out, counts[2], counts[3], MPI_INT,
                            comm));
    note(run, run->iteration, mix3(hash_bytes(out, (size_t)at[1] * sizeof(int)), run->event, 2));
    free(in);
    free(out);
}
