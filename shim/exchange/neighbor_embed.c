/* Nonblocking neighborhood collectives that travel in reductions (neighbor_embed.h): the calls.
 * neighbor_embed_agree.c has the agreement of the ranks. */
#include "shim/exchange/neighbor_embed.h"

#include "shim/carry/embed.h"
#include "shim/carry/line.h"
#include "shim/exchange/neighbor_internal.h"
#include "shim/state/comm_state.h"
#include "shim/state/context.h"

#include <stdlib.h>
#include <utlist.h>

/* Calls of an exchange are watched at most this often to see whether reductions follow. */
#define MOST_SEEN 1024

/* --- what comes next after a call */

static bool is_watched(const struct cpl_comm_state *state, const struct cpl_embedding *e)
{
    return !e->settled && e->n_seen < MOST_SEEN && state->size == cpl_context.size &&
           cpl_context.settings.embed != CPL_EMBED_OFF &&
           cpl_context.settings.mode != CPL_MODE_PROFILE;
}

static bool has_worlds_ranks(MPI_Comm comm)
{
    int result = MPI_UNEQUAL;
    PMPI_Comm_compare(comm, MPI_COMM_WORLD, &result);
    return result == MPI_IDENT || result == MPI_CONGRUENT;
}

/* Sends the messages of waiting calls alone. */
static void leave(struct cpl_exchange *x);

void cpl_neighbor_embed_started(struct cpl_comm_state *state, struct cpl_exchange *x)
{
    struct cpl_embedding *e = &x->embedding;
    if (e->open || (!e->on && !is_watched(state, e)))
        return;
    if (!e->on && e->n_seen == 0)
        e->same_ranks = has_worlds_ranks(state->comm);
    e->state = state;
    e->open = true;
    LL_PREPEND2(cpl_context.busy.first_open, x, embedding.next_open);
    cpl_context.busy.n_open_batches++;
}

/* Marks the call as no longer open; the caller removes it from the list. */
static void close_call(struct cpl_exchange *x)
{
    x->embedding.open = false;
    cpl_context.busy.n_open_batches--;
}

void cpl_neighbor_embed_unopen(struct cpl_exchange *x)
{
    if (!x->embedding.open)
        return;
    LL_DELETE2(cpl_context.busy.first_open, x, embedding.next_open);
    close_call(x);
}

void cpl_neighbor_embed_leave(void)
{
    for (struct cpl_exchange **at = &cpl_context.busy.first_open, *x; (x = *at);) {
        struct cpl_embedding *e = &x->embedding;
        if (e->on && e->on->line->embed.waiting) {
            at = &e->next_open;
            continue;
        }
        *at = e->next_open;
        close_call(x);
        if (e->on)
            leave(x);
        else
            e->n_seen++;
    }
}

bool cpl_neighbor_embed_leave_late(void)
{
    bool any = false;
    for (struct cpl_exchange **at = &cpl_context.busy.first_open, *x; (x = *at);) {
        if (!x->embedding.on) {
            at = &x->embedding.next_open;
            continue;
        }
        *at = x->embedding.next_open;
        close_call(x);
        leave(x);
        any = true;
    }
    return any;
}

void cpl_neighbor_embed_note(struct cpl_comm_state *state, enum cpl_embed_verdict verdict)
{
    if (verdict == CPL_EMBED_REFUSED)
        return;
    for (struct cpl_exchange **at = &cpl_context.busy.first_open, *x; (x = *at);) {
        struct cpl_embedding *e = &x->embedding;
        bool is_world = e->same_ranks && state->comm == MPI_COMM_WORLD;
        if (e->on || (e->state != state && !is_world)) {
            at = &e->next_open;
            continue;
        }
        enum cpl_embed_host host = e->state == state ? CPL_HOST_SELF : CPL_HOST_WORLD;
        *at = e->next_open;
        close_call(x);
        e->n_seen++;
        e->n_reduced[host]++;
        e->n_in_any_order[host] += verdict == CPL_EMBED_ANY_ORDER;
    }
}

/* --- calls of segments */

static void note(int *result, int code)
{
    if (*result == MPI_SUCCESS)
        *result = code;
}

/* Sends one message of a call, aboard the reduction or alone; large ones as messages of their own
 * behind the segment. */
static void send_message(struct cpl_neighbor_op *op, int m, bool boards)
{
    const struct cpl_neighbors *out = &op->carrying.x->adjacency->out;
    const struct cpl_embedding *e = &op->carrying.x->embedding;
    const struct cpl_span *span = &op->data.out_span[out->part[out->first_part[m]]];
    struct cpl_line *line = e->on->line;
    struct cpl_segment segment = {.source = e->on->rank,
                                  .dest = out->rank[m],
                                  .tag = e->tag,
                                  .number = line->hosted_number[out->rank[m]]++,
                                  .flags = CPL_SEGMENT_NEIGHBOR,
                                  .slot = CPL_NO_SLOT,
                                  .bytes = cpl_span_bytes(span)};
    if (cpl_goes_straight(segment.bytes)) {
        segment.flags |= CPL_SEGMENT_STRAIGHT;
        note(&op->carrying.result, PMPI_Isend_c(span->address, span->count, span->type.handle,
                                                segment.dest, CPL_HOSTED_TAG, e->on->private_comm,
                                                &op->data.requests[op->data.n_requests++]));
    } else {
        segment.payload_bytes = (uint32_t)segment.bytes;
    }
    unsigned char *to = boards ? cpl_embed_place(line, &segment) : NULL;
    if (!to)
        note(&op->carrying.result, cpl_rides_send_span(&line->rides, &segment, span));
    else if (segment.payload_bytes > 0)
        note(&op->carrying.result, cpl_span_pack(span, to));
}

static void send_all(struct cpl_neighbor_op *op, bool boards)
{
    const struct cpl_adjacency *a = op->carrying.x->adjacency;
    op->left = true;
    for (int m = 0; m < a->out.n_messages; m++)
        send_message(op, m, boards);
}

static bool waits(const struct cpl_neighbor_op *op)
{
    return op->carrying.way == &cpl_way_reduction && !op->left;
}

static void leave(struct cpl_exchange *x)
{
    struct cpl_embedding *e = &x->embedding;
    struct cpl_neighbor_op *op;
    LL_FOREACH(x->nonblocking.pending, op)
    {
        if (!waits(op))
            continue;
        send_all(op, false);
        e->n_missed += !e->on->line->embed.not_yet;
    }
}

void cpl_neighbor_embed_board(struct cpl_comm_state *state, bool blocking)
{
    (void)blocking;
    for (struct cpl_exchange **at = &cpl_context.busy.first_open, *x; (x = *at);) {
        struct cpl_embedding *e = &x->embedding;
        struct cpl_neighbor_op *op;
        if (e->on != state) {
            at = &e->next_open;
            continue;
        }
        *at = e->next_open;
        close_call(x);
        LL_FOREACH(x->nonblocking.pending, op)
        {
            if (!waits(op))
                continue;
            send_all(op, true);
            e->n_carried++;
            e->n_segments += x->adjacency->out.n_messages;
        }
    }
}
