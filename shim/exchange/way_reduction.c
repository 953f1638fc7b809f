/* Nonblocking calls whose messages travel in reductions as segments: receiving them.
 * neighbor_embed.c sends them, when a reduction or another call that may wait comes. */
#include "shim/carry/line.h"
#include "shim/exchange/carrying.h"

#include <stdlib.h>

/* Alike on all ranks. */
static bool takes(const struct cpl_comm_state *state, const struct cpl_exchange *x)
{
    (void)state;
    return x->embedding.on;
}

/* Posts the receives of a call of segments. */
static int begin(struct cpl_neighbor_op *op)
{
    struct cpl_carrying *c = &op->carrying;
    const struct cpl_adjacency *a = c->x->adjacency;
    const struct cpl_embedding *e = &c->x->embedding;
    struct cpl_neighbor_data *data = &op->data;
    if (!op->receives)
        op->receives = calloc((size_t)a->in.n_messages + 1, sizeof *op->receives);
    if (!op->receives)
        return MPI_ERR_NO_MEM;
    c->made = op;
    op->left = false;
    op->n_open = a->in.n_messages;
    cpl_carrying_open(c);
    for (int m = 0; m < a->in.n_messages; m++) {
        struct cpl_receive *receive = &op->receives[m];
        *receive = (struct cpl_receive){.source = a->in.rank[m],
                                        .tag = e->tag,
                                        .span = data->in_span[a->in.part[a->in.first_part[m]]],
                                        .inner = MPI_REQUEST_NULL};
        receive->span.type.kept = false; /* it is the call's */
        cpl_match_post(&e->on->line->hosted_match, receive);
    }
    for (int k = 0; k < a->in.n_self; k++)
        cpl_carrying_note(
            c, cpl_span_copy(&data->out_span[a->out.self[k]], &data->in_span[a->in.self[k]]));
    return MPI_SUCCESS;
}

static bool progress(struct cpl_carrying *c)
{
    struct cpl_neighbor_op *op = c->made;
    for (; op->n_open > 0; op->n_open--) {
        const struct cpl_receive *receive = &op->receives[op->n_open - 1];
        if (!receive->done)
            return false;
        cpl_carrying_note(c, receive->error);
    }
    return op->left && cpl_carrying_progress(c);
}

const struct cpl_way cpl_way_reduction = {
    .name = "reduction", .takes = takes, .begin = begin, .progress = progress};
