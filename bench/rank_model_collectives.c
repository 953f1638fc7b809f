/* Collectives, and what else a program asks of MPI (rank_model.h). All communicators are of all
 * ranks, in their order, so that one meeting at a time is enough. Whoever comes last does the work
 * of all; all leave at the same time. */
#undef main
#include "rank_model.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a rank brings to a meeting. */
struct part {
    const void *in;
    void *out;
};

typedef void work(const struct part *part, int count, MPI_Datatype type, MPI_Op op, int root);

static struct part *parts;
static int n_come;
static double latest;
static int contiguous_bytes; /* of the type that MPI_Type_contiguous made last */

#define FIRST_TYPE ((MPI_Datatype)0x7e000001)
#define FIRST_COMM ((MPI_Comm)0x7d000001)

int rank_model_type_bytes(MPI_Datatype type)
{
    return type == FIRST_TYPE ? contiguous_bytes : (type & 0xff00) >> 8; /* as MPICH's handles */
}

/* ---- costs, in seconds ---- */

/* Steps of messages at distances of 1, 2, 4 ... ranks, of so many bytes, which double from step to
 * step where they gather. Of the ranks of a node as many send to another node as the distance. */
static double steps_seconds(double bytes, bool doubles)
{
    const struct cpl_costs *costs = &rank_model.costs;
    int per_node = rank_model.ranks_per_node;
    double us = 0, step_bytes = bytes;
    for (int distance = 1; distance < rank_model.n_ranks; distance *= 2) {
        bool is_near = distance < per_node;
        const struct cpl_link_cost *link = &costs->link[is_near ? CPL_LINK_NODE : CPL_LINK_NETWORK];
        int n_far = rank_model.n_nodes == 1 ? 0 : is_near ? distance : per_node;
        double near_ns = 2 * step_bytes * costs->link[CPL_LINK_NODE].ns_per_byte;
        double far_ns = n_far * step_bytes * costs->node_ns_per_byte;
        us += link->send_us + link->recv_us + link->latency_us;
        us += (is_near && near_ns > far_ns ? near_ns : far_ns) * 1e-3;
        step_bytes *= doubles ? 2 : 1;
    }
    return us * 1e-6;
}

static void meet(struct part mine, double seconds, work *function, int count, MPI_Datatype type,
                 MPI_Op op, int root)
{
    int me = rank_model.running, n = rank_model.n_ranks;
    if (!parts && !(parts = calloc((size_t)n, sizeof *parts)))
        rank_model_fail("no memory for collectives");
    parts[me] = mine;
    latest = n_come == 0 || rank_model.clock[me] > latest ? rank_model.clock[me] : latest;
    if (++n_come < n) {
        rank_model_stop();
        return;
    }
    n_come = 0;
    if (function)
        function(parts, count, type, op, root);
    for (int i = 0; i < n; i++)
        rank_model.clock[i] = latest + seconds;
    for (int i = 0; i < n; i++)
        if (i != me)
            rank_model_resume(i);
}

/* ---- reductions ---- */

#define REDUCE(type, expression)                                                                   \
    for (int k = 0; k < count; k++) {                                                              \
        type a = ((const type *)from)[k], b = ((type *)to)[k];                                     \
        ((type *)to)[k] = (type)(expression);                                                      \
    }
#define REDUCE_INTEGERS(type)                                                                      \
    do {                                                                                           \
        if (op == MPI_MAX)                                                                         \
            REDUCE(type, a > b ? a : b)                                                            \
        else if (op == MPI_MIN)                                                                    \
            REDUCE(type, a < b ? a : b)                                                            \
        else if (op == MPI_SUM)                                                                    \
            REDUCE(type, a + b)                                                                    \
        else if (op == MPI_BAND)                                                                   \
            REDUCE(type, a &b)                                                                     \
        else if (op == MPI_BOR)                                                                    \
            REDUCE(type, a | b)                                                                    \
        else                                                                                       \
            rank_model_fail("an operation of MPI that is not modelled");                           \
    } while (0)

int MPI_Reduce_local(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op)
{
    if (type == MPI_INT)
        REDUCE_INTEGERS(int);
    else if (type == MPI_INT64_T)
        REDUCE_INTEGERS(int64_t);
    else if (type == MPI_UINT64_T)
        REDUCE_INTEGERS(uint64_t);
    else if (type == MPI_DOUBLE && op == MPI_MAX)
        REDUCE(double, a > b ? a : b)
    else
        rank_model_fail("a reduction that is not modelled");
    return MPI_SUCCESS;
}

static const void *given(const struct part *part)
{
    return part->in == MPI_IN_PLACE ? part->out : part->in;
}

static void *copy_of(const void *data, size_t bytes)
{
    void *copy = malloc(bytes ? bytes : 1);
    if (!copy)
        rank_model_fail("no memory for collectives");
    memcpy(copy, data, bytes);
    return copy;
}

/* root -1: all get the result. */
static void reduce(const struct part *part, int count, MPI_Datatype type, MPI_Op op, int root)
{
    size_t bytes = (size_t)count * (size_t)rank_model_type_bytes(type);
    void *sum = copy_of(given(&part[0]), bytes);
    for (int i = 1; i < rank_model.n_ranks; i++)
        MPI_Reduce_local(given(&part[i]), sum, count, type, op);
    for (int i = 0; i < rank_model.n_ranks; i++)
        if (root < 0 || root == i)
            memcpy(part[i].out, sum, bytes);
    free(sum);
}

int MPI_Allreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    (void)comm;
    meet((struct part){in, out}, steps_seconds(count * rank_model_type_bytes(type), false), reduce,
         count, type, op, -1);
    return MPI_SUCCESS;
}

int MPI_Reduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, int root,
               MPI_Comm comm)
{
    (void)comm;
    meet((struct part){in, out}, steps_seconds(count * rank_model_type_bytes(type), false), reduce,
         count, type, op, root);
    return MPI_SUCCESS;
}

/* Of the ranks before; rank 0 gets nothing. */
static void scan(const struct part *part, int count, MPI_Datatype type, MPI_Op op, int root)
{
    size_t bytes = (size_t)count * (size_t)rank_model_type_bytes(type);
    void *sum = copy_of(part[0].in, bytes);
    (void)root;
    for (int i = 1; i < rank_model.n_ranks; i++) {
        memcpy(part[i].out, sum, bytes);
        MPI_Reduce_local(part[i].in, sum, count, type, op);
    }
    free(sum);
}

int MPI_Exscan(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    (void)comm;
    meet((struct part){in, out}, steps_seconds(count * rank_model_type_bytes(type), false), scan,
         count, type, op, 0);
    return MPI_SUCCESS;
}

/* ---- moving data ---- */

int MPI_Barrier(MPI_Comm comm)
{
    (void)comm;
    meet((struct part){NULL, NULL}, steps_seconds(0, false), NULL, 0, MPI_BYTE, MPI_SUM, 0);
    return MPI_SUCCESS;
}

/* Two barriers can be under way: a rank that has left one may have entered the next. */
static struct {
    int n_come;
    double latest, ends;
} barriers[2];
static int *n_entered; /* of each rank */

double rank_model_barrier_ends(void)
{
    int n = n_entered ? n_entered[rank_model.running] : 0;
    return n > 0 ? barriers[n % 2].ends : -INFINITY;
}

int MPI_Ibarrier(MPI_Comm comm, MPI_Request *request)
{
    int n_ranks = rank_model.n_ranks, me = rank_model.running;
    double now = rank_model.clock[me];
    (void)comm;
    if (!n_entered && !(n_entered = calloc((size_t)n_ranks, sizeof *n_entered)))
        rank_model_fail("no memory for barriers");
    int b = ++n_entered[me] % 2;
    bool is_first = barriers[b].n_come == 0;
    barriers[b].latest = is_first || now > barriers[b].latest ? now : barriers[b].latest;
    barriers[b].ends = INFINITY;
    *request = RANK_MODEL_BARRIER;
    if (++barriers[b].n_come == n_ranks) {
        barriers[b].n_come = 0;
        barriers[b].ends = barriers[b].latest + steps_seconds(0, false);
        for (int i = 0; i < n_ranks; i++)
            if (i != me)
                rank_model_wake(i);
    }
    return MPI_SUCCESS;
}

static void broadcast(const struct part *part, int count, MPI_Datatype type, MPI_Op op, int root)
{
    (void)op;
    for (int i = 0; i < rank_model.n_ranks; i++)
        if (i != root)
            memcpy(part[i].out, part[root].out,
                   (size_t)count * (size_t)rank_model_type_bytes(type));
}

int MPI_Bcast(void *data, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    (void)comm;
    meet((struct part){NULL, data}, steps_seconds(count * rank_model_type_bytes(type), false),
         broadcast, count, type, MPI_SUM, root);
    return MPI_SUCCESS;
}

static void gather_all(const struct part *part, int count, MPI_Datatype type, MPI_Op op, int root)
{
    size_t bytes = (size_t)count * (size_t)rank_model_type_bytes(type);
    (void)op;
    (void)root;
    for (int i = 0; i < rank_model.n_ranks; i++)
        for (int k = 0; k < rank_model.n_ranks; k++)
            memcpy((char *)part[i].out + (size_t)k * bytes, part[k].in, bytes);
}

int MPI_Allgather(const void *in, int n_in, MPI_Datatype type_in, void *out, int n_out,
                  MPI_Datatype type_out, MPI_Comm comm)
{
    (void)n_out;
    (void)type_out;
    (void)comm;
    meet((struct part){in, out}, steps_seconds(n_in * rank_model_type_bytes(type_in), true),
         gather_all, n_in, type_in, MPI_SUM, 0);
    return MPI_SUCCESS;
}

static void exchange_all(const struct part *part, int count, MPI_Datatype type, MPI_Op op, int root)
{
    size_t bytes = (size_t)count * (size_t)rank_model_type_bytes(type);
    (void)op;
    (void)root;
    for (int i = 0; i < rank_model.n_ranks; i++)
        for (int k = 0; k < rank_model.n_ranks; k++)
            memcpy((char *)part[i].out + (size_t)k * bytes,
                   (const char *)part[k].in + (size_t)i * bytes, bytes);
}

/* Bruck's algorithm: half of the blocks in each step. */
int MPI_Alltoall(const void *in, int n_in, MPI_Datatype type_in, void *out, int n_out,
                 MPI_Datatype type_out, MPI_Comm comm)
{
    double half = 0.5 * n_in * rank_model_type_bytes(type_in) * rank_model.n_ranks;
    (void)n_out;
    (void)type_out;
    (void)comm;
    meet((struct part){in, out}, steps_seconds(half, false), exchange_all, n_in, type_in, MPI_SUM,
         0);
    return MPI_SUCCESS;
}

/* ---- the rest ---- */

int MPI_Init(int *n_words, char ***words)
{
    (void)n_words;
    (void)words;
    return MPI_SUCCESS;
}

int MPI_Finalize(void)
{
    return MPI_SUCCESS;
}

int MPI_Abort(MPI_Comm comm, int code)
{
    (void)comm;
    exit(code);
}

int MPI_Comm_rank(MPI_Comm comm, int *rank)
{
    *rank = comm == MPI_COMM_SELF ? 0 : rank_model.running;
    return MPI_SUCCESS;
}

int MPI_Comm_size(MPI_Comm comm, int *size)
{
    *size = comm == MPI_COMM_SELF ? 1 : rank_model.n_ranks;
    return MPI_SUCCESS;
}

int MPI_Comm_test_inter(MPI_Comm comm, int *is_inter)
{
    (void)comm;
    *is_inter = 0;
    return MPI_SUCCESS;
}

/* All ranks make and free the same communicators in the same order, each by itself; messages of an
 * earlier one have been received before the next one of the same number is made. */
int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *made)
{
    (void)comm;
    (void)color;
    (void)key;
    *made = FIRST_COMM;
    return MPI_SUCCESS;
}

int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *made)
{
    (void)comm;
    (void)type;
    (void)key;
    (void)info;
    *made = MPI_COMM_NULL;
    rank_model_fail("nodes are not modelled as communicators; give --ranks-per-node");
}

int MPI_Comm_free(MPI_Comm *comm)
{
    *comm = MPI_COMM_NULL;
    return MPI_SUCCESS;
}

int MPI_Comm_create_keyval(MPI_Comm_copy_attr_function *copy, MPI_Comm_delete_attr_function *remove,
                           int *key, void *extra)
{
    (void)copy;
    (void)remove;
    (void)extra;
    *key = MPI_KEYVAL_INVALID;
    return MPI_ERR_OTHER; /* there is no attribute, so nothing is called at the end */
}

int MPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler handler)
{
    (void)comm;
    (void)handler;
    return MPI_SUCCESS;
}

int MPI_Comm_get_errhandler(MPI_Comm comm, MPI_Errhandler *handler)
{
    (void)comm;
    *handler = MPI_ERRORS_ARE_FATAL;
    return MPI_SUCCESS;
}

int MPI_Errhandler_free(MPI_Errhandler *handler)
{
    *handler = MPI_ERRHANDLER_NULL;
    return MPI_SUCCESS;
}

int MPI_Comm_call_errhandler(MPI_Comm comm, int code)
{
    (void)comm;
    fprintf(stderr, "rank_model: error %d on rank %d\n", code, rank_model.running);
    exit(1);
}

int MPI_Type_size(MPI_Datatype type, int *bytes)
{
    *bytes = rank_model_type_bytes(type);
    return MPI_SUCCESS;
}

int MPI_Type_get_extent(MPI_Datatype type, MPI_Aint *lower, MPI_Aint *extent)
{
    *lower = 0;
    *extent = rank_model_type_bytes(type);
    return MPI_SUCCESS;
}

int MPI_Type_get_envelope(MPI_Datatype type, int *n_integers, int *n_addresses, int *n_types,
                          int *combiner)
{
    *n_integers = *n_addresses = *n_types = 0;
    *combiner = type == FIRST_TYPE ? MPI_COMBINER_CONTIGUOUS : MPI_COMBINER_NAMED;
    return MPI_SUCCESS;
}

int MPI_Type_contiguous(int count, MPI_Datatype of, MPI_Datatype *type)
{
    contiguous_bytes = count * rank_model_type_bytes(of);
    *type = FIRST_TYPE;
    return MPI_SUCCESS;
}

int MPI_Type_commit(MPI_Datatype *type)
{
    (void)type;
    return MPI_SUCCESS;
}

int MPI_Type_free(MPI_Datatype *type)
{
    *type = MPI_DATATYPE_NULL;
    return MPI_SUCCESS;
}
