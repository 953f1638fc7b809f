/* The order in which ranks send: first to those that have most to send afterwards.
 *
 * Of two exchanges one after the other, the second must wait for the first on every rank. When
 * sending takes a unit of time and receiving none, the last rank is done as early as possible if
 * every rank sends the first exchange's messages in descending order of how many messages their
 * receivers send in the second (Uçar and Aykanat, A message ordering problem in parallel programs,
 * theorem 1). The order of the second exchange's own messages does not matter. Plans order their
 * edges this way from wave to wave (plan.h); cpl_order_between orders two exchanges of a program.
 * cpl_order_completion and cpl_order_bound give an order's time and its bounds.
 *
 * Cost: sorting by counting. Thread rule: no state. */
#ifndef CARPOOL_ORDER_H
#define CARPOOL_ORDER_H

#include "pattern.h"
#include "status.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sorts ranks by descending key, equal keys by rank: place[i] is the position of rank i, from 0.
 * key and place have n_ranks entries; keys are >= 0. Returns CPL_OK, or CPL_ERR_NOMEM. O(n_ranks +
 * largest key), or O(n_ranks log n_ranks) where keys are larger than a few times n_ranks. */
enum cpl_status cpl_order_by_key(int32_t n_ranks, const int64_t *key, int32_t *place,
                                 struct cpl_error *error);

/* Sorts send lists: rank i sends messages first[i] .. first[i + 1] - 1, message m to rank to[m];
 * order[first[i]] .. are the same numbers in the order in which i should send them: by descending
 * key of the receiver, then by the receiver's rank, then by number. first has n_ranks + 1 entries
 * from 0 on, to and order first[n_ranks], key (>= 0) n_ranks. Returns CPL_OK, CPL_ERR_NOMEM.
 * O(messages + what cpl_order_by_key costs). */
enum cpl_status cpl_order_sends(int32_t n_ranks, const int64_t *first, const int32_t *to,
                                const int64_t *key, int64_t *order, struct cpl_error *error);

/* The order of the messages of pattern pre when exchange post follows: cpl_order_sends with the
 * numbers of messages that the ranks send in post. order has pre->n_messages entries. Returns
 * CPL_OK, CPL_ERR_ARG (patterns of different numbers of ranks), CPL_ERR_NOMEM. */
enum cpl_status cpl_order_between(const struct cpl_pattern *pre, const struct cpl_pattern *post,
                                  int64_t *order, struct cpl_error *error);

/* The time at which the last rank is done with exchange pre, `work` units of computation and
 * exchange post (equations 1 to 4): a send takes one unit, a receive takes none, and a rank
 * computes once it has sent and received all of pre. order as cpl_order_between gives it; NULL: the
 * messages leave as they are numbered, as post's do. Returns CPL_OK, CPL_ERR_ARG (patterns of
 * different numbers of ranks), CPL_ERR_NOMEM. */
enum cpl_status cpl_order_completion(const struct cpl_pattern *pre, const int64_t *order,
                                     const struct cpl_pattern *post, int64_t work,
                                     int64_t *completion, struct cpl_error *error);

/* Bounds on the completion time of every order of pre's messages (section 2). least: the units of a
 * rank that never waits. most: the most sends of a rank in pre plus the most in post. `most` is at
 * most twice `least`, so the worst order takes at most twice as long as the best. */
struct cpl_order_bounds {
    int64_t least, most;
};

/* Both patterns must have the same number of ranks. */
struct cpl_order_bounds cpl_order_bound(const struct cpl_pattern *pre,
                                        const struct cpl_pattern *post, int64_t work);

#ifdef __cplusplus
}
#endif

#endif
