/* Friends for Phase I of message sharing (thesis 4.2, 4.3.1): for a rank the others in the order of
 * how many destinations they have in common with it in the initial send sets, ties by rank; a pair
 * is handed out once.
 *
 * Open in the thesis: counts are static, so the best friend of a rank would be the same for ever,
 * and a second sharing of the same pair does nothing. Decided: a pair is never repeated, whoever of
 * the two asked first; the next best follows. Ranks without a common destination are no friends.
 *
 * Cost: common destinations are counted when a rank first asks, and again whenever it has used up a
 * batch of friends: for each of its destinations at most min(in-degree, ranks / 8) additions. The
 * memory is 8 bytes a message and a batch for each rank that asked. */
#ifndef CARPOOL_SHARE_FRIEND_H
#define CARPOOL_SHARE_FRIEND_H

#include "planner/arena.h"
#include "planner/base/pair_map.h"
#include "planner/pattern.h"
#include "planner/status.h"

#include <stdint.h>

struct cpl_share_friend {
    int32_t rank;
    int32_t n_common; /* destinations in common, at least 1 */
};

struct cpl_share_friend_batch; /* share_friend.c */

struct cpl_share_friend_finder {
    const struct cpl_pattern *pattern;
    struct cpl_arena *arena; /* not owned */
    int64_t *sender_first;   /* the transposed pattern: who sends to rank d */
    int32_t *senders;
    size_t column_words; /* a dense column: one byte per rank, 1 where it is a sender */
    int64_t *column_of;  /* per destination: its dense column, or -1 */
    uint64_t *columns;
    uint64_t *sum;      /* column_words words: a byte per rank, for adding dense columns */
    int32_t *n_common;  /* per rank, 0 between calls */
    int32_t *candidate; /* ranks with n_common > 0 */
    uint64_t *best;     /* keys of the batch that is being chosen */
    struct cpl_share_friend_batch **batch; /* per rank, NULL before it asked */
    struct cpl_pair_map used;              /* pairs (lower, higher), 1 when handed out */
};

/* Prepares for the pattern, which must outlive the finder. Memory from the arena. Returns CPL_OK or
 * CPL_ERR_NOMEM. */
enum cpl_status cpl_share_friend_init(struct cpl_share_friend_finder *finder,
                                      const struct cpl_pattern *pattern, struct cpl_arena *arena);

/* The next best friend of rank into *mate, with the rank -1 when there is none left; the pair is
 * used up. Returns CPL_OK or CPL_ERR_NOMEM. */
enum cpl_status cpl_share_friend_take(struct cpl_share_friend_finder *finder, int32_t rank,
                                      struct cpl_share_friend *mate);

#endif
