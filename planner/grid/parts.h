/* Parts of a pattern: ranks that are joined by messages, directly or over others. Messages of one
 * part never meet those of another, so that each can have a grid of its own. */
#ifndef CARPOOL_PARTS_H
#define CARPOOL_PARTS_H

#include "planner/arena.h"
#include "planner/machine.h"
#include "planner/pattern.h"
#include "planner/status.h"

#include <stdint.h>

struct cpl_parts {
    int32_t n_parts;
    int32_t *part;  /* rank -> its part, 0 .. n_parts - 1, in the order of their lowest ranks */
    int32_t *place; /* rank -> its place in the part, from 0: node by node, in a node by number */
    int32_t *first; /* n_parts + 1 entries: part k's ranks begin at ranks[first[k]] */
    int32_t *ranks; /* in the order of places */
};

/* Finds the parts of a pattern of as many ranks as the machine has; the arena owns the arrays. A
 * rank without messages is a part of its own. Returns CPL_OK, CPL_ERR_NOMEM. O(messages + ranks).
 */
enum cpl_status cpl_parts_find(const struct cpl_pattern *pattern, const struct cpl_machine *machine,
                               struct cpl_arena *arena, struct cpl_parts *parts);

static inline int32_t cpl_part_size(const struct cpl_parts *parts, int32_t k)
{
    return parts->first[k + 1] - parts->first[k];
}

#endif
