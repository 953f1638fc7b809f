/* Finding duplicates: elements that a rank packs into the messages for several others, known by
 * their values, which were equal in several exchanges and not always the same.
 *
 * Order of calls: create, note the messages of some exchanges, divide; forget what turned out to
 * differ, divide again; free. Each element of a message has 16 bytes of memory; noting costs a hash
 * of each, dividing sorts them. That they were equal proves nothing: parts.h compares before every
 * exchange. Leaf module: no MPI calls. */
#ifndef CARPOOL_DUPLICATES_H
#define CARPOOL_DUPLICATES_H

#include "shim/carry/parts.h"

#include <stdbool.h>
#include <stdint.h>

struct cpl_duplicates;

/* What could be saved, in bytes of an exchange. */
struct cpl_duplicates_found {
    int64_t bytes;     /* of all messages */
    int64_t undecided; /* of copies that were equal, but never changed, and of messages whose size
                        * did change: to be looked at again later */
};

/* For n messages like these. Those that are not in one piece, empty, or of another unit than the
 * first are not looked at. NULL when there is nothing to find (fewer than two messages, units that
 * are too small or large), too much to remember, or no memory. */
struct cpl_duplicates *cpl_duplicates_create(int32_t n, const struct cpl_piece *pieces);

/* Notes the messages of an exchange. One that is not as it was is not looked at any more. */
void cpl_duplicates_note(struct cpl_duplicates *duplicates, const struct cpl_piece *pieces);

/* Divides the messages by the elements that had equal values in all exchanges that were noted, and
 * have in this one. False when memory ran out. The caller frees *parts. */
bool cpl_duplicates_divide(const struct cpl_duplicates *duplicates, const struct cpl_piece *pieces,
                           struct cpl_parts *parts, struct cpl_duplicates_found *found);

/* The element is not to be shared any more. */
void cpl_duplicates_forget(struct cpl_duplicates *duplicates, int32_t message, int32_t position);

void cpl_duplicates_free(struct cpl_duplicates *duplicates);

#endif
