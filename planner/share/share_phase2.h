/* Phase II of message sharing (thesis chapter 5): while the most loaded rank gets less loaded, it
 * hands entries of its send set over to the least loaded one, in all half of their difference.
 *
 * Works on the send sets after Phase I (share_sets.h). To hand over the destination t from a to b
 * means: what a had for t goes to b, which sends it on, as it sends what else it has for t. So for
 * each destination the ways of all ranks are a tree, and a way is followed from rank to rank.
 *
 * Open in the thesis, and decided:
 *  - Algorithm 4 must take maximum and minimum anew in every iteration; ties to the lowest rank.
 *  - The destination that is the least loaded rank itself is passed over: it cannot be handed to
 *    itself.
 *  - The new combined message from the most to the least loaded rank that carries what was handed
 *    over counts, and is never handed over later.
 *  - What a rank has received may be handed on, so often that no way gets more than most_via ranks
 *    inside, most_via 1: never. The text says that a rank avoids this, but then its own figures
 *    cannot come out: of coAuthorsDBLP the busiest rank has 216 after Phase I, on average they have
 *    49; the first iteration would hand some 84 to one rank, which could never give them away, and
 *    table 6.2 ends with 50. Where they are handed on, the largest send sets of our 15 patterns
 *    fall from 180.6 to 29.3 (-84%, as the thesis's from 187.6 to 30.8), else to 49.6. With
 * most_via 2 it is 32.6, with 3 30.6, with 6 no less than with 4 (bench/results/plans.md).
 *  - A rank that is handed a destination which it has handed over itself sends it the same way, if
 *    the ways stay short enough and do not close a loop. Else it sends to the destination itself
 *    again.
 *  - "Is in the send set of the least loaded rank" is asked of the send set as it is now, not (line
 *    20) of the one at the start of the phase.
 *  - Handing on lengthens ways. Where it does not make the largest send set smaller than most_via 1
 *    does, the ways are those of most_via 1.
 *
 * Cost: O(edges + ranks) to start, O(log ranks + most_via) expected for each entry handed over. */
#ifndef CARPOOL_SHARE_PHASE2_H
#define CARPOOL_SHARE_PHASE2_H

#include "planner/arena.h"
#include "planner/share/share_sets.h"
#include "planner/status.h"

#include <stdint.h>

enum { CPL_SHARE_MOST_VIA = 4 };

struct cpl_share_ways {
    int32_t most_via;     /* of the request, or 1 where handing on gains nothing */
    int64_t largest_load; /* the largest send set, in entries */
    int32_t *via; /* n_edges x most_via: the ranks between the ends of each edge of the sets, in the
                     order of the way; -1 after the last */
};

/* Runs Phase II with at most most_via (1 .. CPL_SHARE_MOST_VIA) ranks inside a way. Sets *ways, in
 * memory from the arena; working space is the call's own. Returns CPL_OK or CPL_ERR_NOMEM. */
enum cpl_status cpl_share_phase2(const struct cpl_share_sets *sets, int32_t most_via,
                                 struct cpl_arena *arena, struct cpl_share_ways *ways);

#endif
