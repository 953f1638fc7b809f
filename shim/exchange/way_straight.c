/* Every message alone, from the program's buffers. The simplest way: what a new one may be copied
 * from. */
#include "shim/exchange/neighbor_internal.h"

static void start(struct cpl_carrying *c)
{
    cpl_carrying_start(c, true);
}

const struct cpl_way cpl_way_straight = {.name = "straight",
                                         .start = start,
                                         .progress = cpl_carrying_progress,
                                         .wait = cpl_carrying_wait};
