/* Every message alone, from the program's buffers. The simplest way: what a new one may be copied
 * from. */
#include "shim/exchange/neighbor_internal.h"

static void start(struct cpl_carrying *c)
{
    const struct cpl_adjacency *a = c->x->adjacency;
    for (int m = 0; m < a->in.n_messages; m++)
        cpl_carrying_receive(c, m);
    cpl_carrying_extras(c);
    for (int k = 0; k < a->out.n_messages; k++)
        cpl_carrying_send(c, k);
    cpl_carrying_selves(c);
}

const struct cpl_way cpl_way_straight = {.name = "straight",
                                         .start = start,
                                         .progress = cpl_carrying_progress,
                                         .wait = cpl_carrying_wait};
