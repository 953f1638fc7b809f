/*
 * One end of a message: its buffer, the calls that send or receive it, the check of what came.
 */
#include "exchange.h"

#include <stdlib.h>
#include <string.h>

static struct test_area area_for(const struct layout *layout, int count, uint64_t key)
{
    return test_area_make((size_t)count * (size_t)layout->extent, key);
}

/* Instances of the end's type, or bytes, that the message is. */
static int expected_count(const struct op *op)
{
    return op->packed ? message_size(op->msg) : op->msg->n * op->msg->unit / op->layout.unit;
}

/* A buffer for the message and `spare` instances, of its basic type or a derived one. */
static void make_typed(struct op *op, const struct message *msg, int spare, bool derived,
                       struct test_rng *rng)
{
    *op = (struct op){.msg = msg, .tag = msg->tag, .kept = MPI_REQUEST_NULL};
    op->layout = layout_make(rng, msg->base, derived ? msg->unit : 1, derived);
    op->count = expected_count(op) + spare;
    op->area = area_for(&op->layout, op->count, test_next(rng));
    op->origin = op->area.data - op->layout.lb;
}

static void make_packed(struct op *op, const struct message *msg, int n_bytes)
{
    *op = (struct op){.msg = msg, .packed = true, .count = n_bytes, .kept = MPI_REQUEST_NULL};
    op->area = test_area_make((size_t)n_bytes, 77);
    op->origin = op->area.data;
}

void op_make_send(struct op *op, const struct message *msg, bool types, struct test_rng *rng)
{
    if (types && test_chance(rng, 3)) {
        make_packed(op, msg, message_size(msg));
        op->tag = msg->tag;
    } else {
        make_typed(op, msg, 0, types && !test_chance(rng, 3), rng);
    }
    op->peer = msg->dst;
}

void op_make_recv(struct op *op, const struct message *msg, bool types, struct test_rng *rng)
{
    int spare = test_chance(rng, 3) ? test_below(rng, 9) : 0;

    if (types && test_chance(rng, 4)) {
        make_packed(op, msg, message_size(msg) + spare);
        op->tag = msg->tag;
    } else {
        make_typed(op, msg, spare, types && !test_chance(rng, 3), rng);
    }
    op->peer = msg->src;
}

void op_make_wild(struct op *op, int peer, int tag, int n_bytes)
{
    make_packed(op, NULL, n_bytes);
    op->peer = peer;
    op->tag = tag;
}

void op_make_null(struct op *op)
{
    make_packed(op, NULL, 8);
    op->peer = MPI_PROC_NULL;
    op->tag = 5;
}

void op_free(struct op *op)
{
    if (op->kept != MPI_REQUEST_NULL)
        MPI_Request_free(&op->kept);
    if (!op->packed)
        layout_free(&op->layout);
    test_area_free(&op->area);
}

MPI_Datatype op_type(const struct op *op)
{
    return op->packed ? MPI_PACKED : op->layout.type;
}

/* Packs the message's content, from a plain buffer of its basic type. */
static void fill_packed(struct op *op, MPI_Comm comm)
{
    const struct message *msg = op->msg;
    struct test_rng rng = {0};
    struct layout plain = layout_make(&rng, msg->base, 1, false);
    int n = msg->n * msg->unit, position = 0;
    struct test_area area = area_for(&plain, n, 1);

    layout_put(&plain, area.data, n, msg->key);
    MPI_Pack(area.data, n, plain.type, op->origin, op->count, &position, comm);
    if (position != op->count)
        test_fail("%d bytes are packed in %d", op->count, position);
    test_area_free(&area);
}

void op_fill_send(struct op *op, MPI_Comm comm)
{
    test_area_fill(&op->area);
    if (op->msg == NULL)
        return;
    if (op->packed)
        fill_packed(op, comm);
    else
        layout_put(&op->layout, op->origin, op->count, op->msg->key);
}

void op_fill_recv(struct op *op)
{
    test_area_fill(&op->area);
}

void op_init_send(struct op *op, enum mode mode, MPI_Comm comm)
{
    int (*const calls[N_MODES])(const void *, int, MPI_Datatype, int, int, MPI_Comm,
                                MPI_Request *) = {
        MPI_Send_init,
        MPI_Ssend_init,
        MPI_Bsend_init,
        MPI_Rsend_init,
    };
    calls[mode](op->origin, op->count, op_type(op), op->peer, op->tag, comm, &op->kept);
}

void op_init_recv(struct op *op, MPI_Comm comm)
{
    MPI_Recv_init(op->origin, op->count, op_type(op), op->peer, op->tag, comm, &op->kept);
}

MPI_Request op_isend(const struct op *op, enum mode mode, MPI_Comm comm)
{
    int (*const calls[N_MODES])(const void *, int, MPI_Datatype, int, int, MPI_Comm,
                                MPI_Request *) = {
        MPI_Isend,
        MPI_Issend,
        MPI_Ibsend,
        MPI_Irsend,
    };
    MPI_Request request;
    calls[mode](op->origin, op->count, op_type(op), op->peer, op->tag, comm, &request);
    return request;
}

void op_send(const struct op *op, enum mode mode, MPI_Comm comm)
{
    int (*const calls[N_MODES])(const void *, int, MPI_Datatype, int, int, MPI_Comm) = {
        MPI_Send,
        MPI_Ssend,
        MPI_Bsend,
        MPI_Rsend,
    };
    calls[mode](op->origin, op->count, op_type(op), op->peer, op->tag, comm);
}

static void check_status(const struct op *op, const MPI_Status *status)
{
    const struct message *msg = op->msg;
    int source = msg ? msg->src : MPI_PROC_NULL, tag = msg ? msg->tag : MPI_ANY_TAG;
    int expected = msg != NULL ? expected_count(op) : 0;
    int count, cancelled;

    if (status->MPI_SOURCE != source || status->MPI_TAG != tag)
        test_fail("a receive of source %d tag %d has source %d tag %d", source, tag,
                  status->MPI_SOURCE, status->MPI_TAG);
    MPI_Get_count(status, op_type(op), &count);
    if (count != expected)
        test_fail("source %d tag %d: count %d instead of %d", source, tag, count, expected);
    MPI_Test_cancelled(status, &cancelled);
    if (cancelled)
        test_fail("source %d tag %d: cancelled", source, tag);
}

/* Compares the whole buffer, gaps and guards included, with what it must be. */
static uint64_t check_typed(const struct op *op)
{
    const struct message *msg = op->msg;
    struct test_area expected = test_area_make(op->area.n, op->area.key);
    ptrdiff_t at;

    layout_put(&op->layout, expected.data - op->layout.lb, expected_count(op), msg->key);
    at = test_area_differ(&op->area, &expected);
    if (at != PTRDIFF_MAX)
        test_fail("source %d tag %d, %d bytes: byte %td of the buffer is wrong", msg->src, msg->tag,
                  message_size(msg), at);
    test_area_free(&expected);
    return layout_hash(&op->layout, op->origin, expected_count(op), TEST_HASH_START);
}

/* Unpacks what came and compares it; checks that the rest was not touched. */
static uint64_t check_packed(struct op *op, MPI_Comm comm)
{
    const struct message *msg = op->msg;
    struct test_rng rng = {0};
    struct op plain;
    struct test_area rest = test_area_make(op->area.n, op->area.key);
    int size = msg ? message_size(msg) : 0, position = 0;
    uint64_t hash = 0;

    if (msg != NULL) {
        make_typed(&plain, msg, 0, false, &rng);
        MPI_Unpack(op->origin, size, &position, plain.origin, plain.count, plain.layout.type, comm);
        hash = check_typed(&plain);
        op_free(&plain);
    }
    memcpy(rest.data, op->area.data, (size_t)size);
    if (test_area_differ(&op->area, &rest) != PTRDIFF_MAX)
        test_fail("a packed receive of %d bytes wrote beyond them", size);
    test_area_free(&rest);
    return hash;
}

uint64_t op_check(struct op *op, const MPI_Status *status, MPI_Comm comm)
{
    uint64_t hash = test_key((uint64_t)status->MPI_SOURCE, status->MPI_TAG);

    /* MPICH sets no status for a nonblocking receive from MPI_PROC_NULL */
    if (op->msg == NULL)
        return 0;
    check_status(op, status);
    return test_key(hash, (int64_t)(op->packed ? check_packed(op, comm) : check_typed(op)));
}
