/* The send sets after Phase I of message sharing: the new communication matrix of thesis chapter 5.
 *
 * Rank b is in the send set of a when any message really goes from a to b: one of a's own, sent to
 * b as its destination or as the one who sends it on, or one that a sends on for another. So an
 * entry remains as long as anything uses it.
 *
 * Cost: O(messages + ranks), four passes of counting. */
#ifndef CARPOOL_SHARE_SETS_H
#define CARPOOL_SHARE_SETS_H

#include "planner/arena.h"
#include "planner/pattern.h"
#include "planner/status.h"

#include <stdint.h>

struct cpl_share_sets {
    int32_t n_ranks;
    int64_t n_edges;
    int64_t *first; /* n_ranks + 1 entries: edges of rank r are first[r] .. first[r + 1] - 1 */
    int32_t *to;    /* n_edges entries, ascending within a rank */
    int64_t *carried_first; /* n_ranks + 1 entries */
    int64_t *carried;       /* the messages of others that rank r sends on, ascending */
};

/* Builds the send sets when sender[m] (n_messages entries) sends message m to its destination.
 * Memory from the arena. Returns CPL_OK or CPL_ERR_NOMEM. */
enum cpl_status cpl_share_sets_build(const struct cpl_pattern *pattern, const int32_t *sender,
                                     struct cpl_arena *arena, struct cpl_share_sets *sets);

/* The edge from -> to, or -1 when there is none. O(log send set). */
int64_t cpl_share_sets_find(const struct cpl_share_sets *sets, int32_t from, int32_t to);

#endif
