/* How far apart two names are, for "did you mean". Leaf module. */
#ifndef CARPOOL_TEXT_DISTANCE_H
#define CARPOOL_TEXT_DISTANCE_H

#include <stddef.h>

#define CPL_DISTANCE_MOST 64 /* of names longer than that, and the largest distance */

/* Edit distance (Levenshtein): letters to insert, delete or replace. Upper and lower case are
 * equal. */
size_t cpl_text_distance(const char *a, const char *b);

#endif
