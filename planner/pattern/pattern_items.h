/* Items: units of a rank's data, each sent to one or several ranks, and the payload classes that
 * follow from them (pattern.h). */
#ifndef CARPOOL_PATTERN_ITEMS_H
#define CARPOOL_PATTERN_ITEMS_H

#include "planner/pattern.h"
#include "planner/status.h"

#include <stdint.h>

/* Rank src sends an item to rank dst. src numbers its items itself. */
struct cpl_pattern_item {
    int32_t src;
    int32_t dst;
    int64_t item;
};

/* Turns items in any order into entries for cpl_pattern_build: items of a rank with the same set of
 * several destinations make a payload class, with one entry per destination; classes are numbered
 * from 0 by their smallest items. Items with one destination make an entry without class. An item's
 * volume is 1; duplicates count once. Sorts the items in place; entries has room for n_items of
 * them. Returns CPL_OK, CPL_ERR_NOMEM. O(items log items). */
enum cpl_status cpl_pattern_classify(struct cpl_pattern_item *items, int64_t n_items,
                                     struct cpl_pattern_entry *entries, int64_t *n_entries,
                                     struct cpl_error *error);

#endif
