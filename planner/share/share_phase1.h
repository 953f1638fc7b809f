/* Phase I of message sharing (thesis chapter 4): while the most loaded rank gets less loaded, it is
 * paired with a friend, and of each destination that both send to only one keeps sending. The other
 * gives its message to the one that does.
 *
 * The four cases of pairings (4.3.2) are one procedure here: a rank that was in no pairing before
 * has given nothing away, so the steps for a non-singleton do nothing for it.
 *
 * Open in the thesis, and decided:
 *  - Algorithm 1 must take the maximum anew in every iteration (as printed, `max` is never reset).
 *    Ties go to the lowest rank.
 *  - Friends: see share_friend.h; when the most loaded rank has none left, the phase ends.
 *  - Loads: Algorithm 2 counts a send set down when a message leaves it, but not up for the new
 *    message to the friend that carries what left (4.1: "this overhead will be ignored"). So is it
 *    done here, since this reproduces the published averages best.
 *  - Alpha of 4.2.2 rounds down; in cases 2 to 4 it could be negative or too large: clipped.
 *  - In cases 2 to 4, only destinations that both still send to themselves are divided, and those
 *    that both must keep because they are in both groups are not counted.
 *  - 4.3 also mentions that a message given to one rank may later be given to another; Algorithm 3
 *    requires that it is still at its source. The algorithm is followed: a message moves once.
 *
 * Cost: O(send sets of the two) for a pairing plus share_friend.h; every pairing but the last
 * moves a message. */
#ifndef CARPOOL_SHARE_PHASE1_H
#define CARPOOL_SHARE_PHASE1_H

#include "planner/arena.h"
#include "planner/pattern.h"
#include "planner/status.h"

#include <stdint.h>

/* How many of n_common common destinations the more loaded of two ranks gives to the other: all
 * when it stays the more loaded one even so (4.2.1), else so many that both end equal (4.2.2). */
int64_t cpl_share_alpha(int64_t load_max, int64_t load_friend, int64_t n_common);

/* Runs Phase I. sender (n_messages entries, set by the call) tells for each message who sends it to
 * its destination: its source, or the only intermediate. Working space from the arena. Returns
 * CPL_OK or CPL_ERR_NOMEM. */
enum cpl_status cpl_share_phase1(const struct cpl_pattern *pattern, struct cpl_arena *arena,
                                 int32_t *sender);

#endif
