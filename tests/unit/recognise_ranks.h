/* Recognising exchanges by all ranks (recognise.h), all of them in one process: each has a stack of
 * its own, and what they tell each other is handed over here. */
#ifndef CARPOOL_TESTS_RECOGNISE_RANKS_H
#define CARPOOL_TESTS_RECOGNISE_RANKS_H

#include "shim/plan/recognise.h"

#include <stdint.h>

/* Notes of rank i are notes[first[i]] up to notes[first[i + 1]]; at most `most` exchanges are
 * wanted; the other arguments and the result are those of cpl_recognise (recognise.h). Fails the
 * test when ranks do not come to the same. n_rounds: of labels. */
int recognise_ranks(int n_ranks, const int64_t *first, const struct cpl_note *notes, int most,
                    int64_t least_times, struct cpl_recurring *found, int32_t *exchange,
                    int *n_rounds);

/* The same by one who has all notes: what the ranks are to come to. */
int recognise_plainly(int n_ranks, const int64_t *first, const struct cpl_note *notes, int most,
                      int64_t least_times, struct cpl_recurring *found, int32_t *exchange);

#endif
