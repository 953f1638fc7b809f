/* Phase II of message sharing (thesis chapter 5): while the most loaded rank gets less loaded, it
 * hands combined messages over to the least loaded one, in all half of their difference.
 *
 * Works on the send sets after Phase I (share_sets.h).
 *
 * Open in the thesis, and decided:
 *  - Algorithm 4 must take maximum and minimum anew in every iteration; ties to the lowest rank.
 *  - The destination that is the least loaded rank itself is passed over: it cannot be handed to
 *    itself.
 *  - The new combined message from the most to the least loaded rank that carries what was handed
 *    over counts, and may never be handed over later, else what it carries would take a third way.
 *  - What was received in this phase is not handed on, and a rank that got a destination which is
 *    in its own send set too keeps that one: else a path could grow without limit or close a loop.
 *    So a path has at most four hops: each of the two of Phase I may get one more rank inside.
 *  - "Is in the send set of the least loaded rank" is asked of the send set as it is now, not (line
 *    20) of the one at the start of the phase.
 *
 * Cost: O(edges + ranks) to start, O(log ranks) for each edge handed over; every iteration but the
 * last hands one over, so there are at most as many as edges. */
#ifndef CARPOOL_SHARE_PHASE2_H
#define CARPOOL_SHARE_PHASE2_H

#include "planner/arena.h"
#include "planner/status.h"
#include "planner/strategies/share_sets.h"

#include <stdint.h>

/* Runs Phase II. *via gets an entry per edge of sets: the rank over which the edge goes now, or -1.
 * The entries and working space come from the arena. Returns CPL_OK or CPL_ERR_NOMEM. */
enum cpl_status cpl_share_phase2(const struct cpl_share_sets *sets, struct cpl_arena *arena,
                                 int32_t **via);

#endif
