/* Nonblocking and persistent neighborhood collectives that are under way (neighbor.h).
 *
 * An exchange carries one call at a time, in the order in which they were started: all ranks start
 * the calls of a communicator in the same order, so a rank that waits for a later call waits for
 * ranks that have started the earlier ones. Every call that polls advances pending calls (pt2pt.h).
 * The operation of a nonblocking call is used again as soon as it is complete, its request
 * (requests.h) when the program has completed that. */
#include "shim/carry/requests.h"
#include "shim/exchange/neighbor_internal.h"
#include "shim/state/memory.h"
#include "shim/wait/progress.h"

#include <stdlib.h>
#include <utlist.h>

/* The datatype of the k-th place where an operation's data is; NULL: there are no more. */
static struct cpl_type *type_of(struct cpl_neighbor_op *op, int k)
{
    const struct cpl_adjacency *a = op->carrying.x->adjacency;
    struct cpl_neighbor_data *data = &op->data;
    if (k < a->out.n)
        return &data->out_span[k].type;
    if ((k -= a->out.n) < a->in.n)
        return &data->in_span[k].type;
    return (k -= a->in.n) < data->n_extra ? &data->extra[k].span.type : NULL;
}

/* Keeps derived types: the program may free them once the call is started. */
static void keep_types(struct cpl_neighbor_op *op)
{
    MPI_Datatype given = MPI_DATATYPE_NULL, kept = MPI_DATATYPE_NULL;
    struct cpl_type *type;
    int tries = 0;
    for (int k = 0; (type = type_of(op, k)); k++) {
        if (k > 0 && type->handle == given) {
            type->handle = kept;
            continue;
        }
        given = type->handle;
        while (!cpl_type_keep(type))
            cpl_memory_wait(&tries, "a datatype");
        kept = type->handle;
    }
}

static void release_types(struct cpl_neighbor_op *op)
{
    struct cpl_type *type;
    for (int k = 0; (type = type_of(op, k)); k++)
        cpl_type_release(type);
}

static struct cpl_neighbor_op *new_op(struct cpl_exchange *x)
{
    struct cpl_neighbor_op *op = x->nonblocking.spare;
    int tries = 0;
    if (op) {
        LL_DELETE(x->nonblocking.spare, op);
        return op;
    }
    op = cpl_memory_need(sizeof *op, "a nonblocking collective");
    while (!cpl_neighbor_data_make(&op->data, x->adjacency, x->learned.n_extra_most)) {
        cpl_neighbor_data_free(&op->data);
        cpl_memory_wait(&tries, "a nonblocking collective");
    }
    return op;
}

void cpl_neighbor_op_free(struct cpl_neighbor_op *op)
{
    release_types(op);
    cpl_neighbor_data_free(&op->data);
    free(op);
}

struct cpl_neighbor_op *cpl_neighbor_op_make(const struct cpl_neighbor_call *call,
                                             struct cpl_comm_state *state, struct cpl_exchange *x)
{
    struct cpl_neighbor_op *op = new_op(x);
    op->carrying =
        (struct cpl_carrying){.state = state, .x = x, .by = x->plans.candidate, .data = &op->data};
    op->request = NULL;
    op->running = false;
    if (op->carrying.by->carrier->resolve(call, &op->carrying)) {
        keep_types(op);
        return op;
    }
    cpl_neighbor_op_free(op);
    return NULL;
}

/* Advances the first operation and, whenever it completes, the next; a persistent one stays with
 * its owner. Returns whether any completed. */
static bool advance(struct cpl_exchange *x)
{
    bool any = false;
    for (struct cpl_neighbor_op *op; (op = x->nonblocking.pending); any = true) {
        const struct cpl_carrier *carrier = op->carrying.by->carrier;
        if (!op->running) {
            op->carrying.result = MPI_SUCCESS;
            carrier->start(&op->carrying);
        }
        op->running = true;
        if (!carrier->progress(&op->carrying))
            break;
        op->running = false;
        LL_DELETE(x->nonblocking.pending, op);
        cpl_request_close_collective(op->request, op->carrying.result);
        if (op->request->persistent)
            continue;
        release_types(op);
        LL_PREPEND(x->nonblocking.spare, op);
    }
    return any;
}

bool cpl_neighbor_poll(void)
{
    bool any = false;
    for (struct cpl_exchange **at = &cpl_context.busy.first_pending; *at;) {
        struct cpl_exchange *x = *at;
        any |= advance(x);
        if (x->nonblocking.pending)
            at = &x->next_pending;
        else
            *at = x->next_pending;
    }
    return any;
}

void cpl_neighbor_op_start(struct cpl_neighbor_op *op)
{
    struct cpl_exchange *x = op->carrying.x;
    bool alone = !x->nonblocking.pending;
    op->next = NULL;
    LL_APPEND(x->nonblocking.pending, op);
    if (!alone)
        return;
    advance(x);
    if (!x->nonblocking.pending)
        return;
    LL_PREPEND2(cpl_context.busy.first_pending, x, next_pending);
    cpl_progress_update();
}

void cpl_neighbor_drain(struct cpl_exchange *x)
{
    struct cpl_neighbor_op *op, *next;
    while (x->nonblocking.pending)
        cpl_progress_poll();
    LL_FOREACH_SAFE(x->nonblocking.spare, op, next)
    {
        LL_DELETE(x->nonblocking.spare, op);
        cpl_neighbor_op_free(op);
    }
}
