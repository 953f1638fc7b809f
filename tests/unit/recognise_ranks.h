/* Recognising exchanges by all ranks (recognise_local.h), all of them in one process: what they
 * tell each other is handed over here. */
#ifndef CARPOOL_TESTS_RECOGNISE_RANKS_H
#define CARPOOL_TESTS_RECOGNISE_RANKS_H

#include "shim/plan/recognise.h"

#include <stdint.h>

/* Arguments and result as cpl_recognise has. Fails the test when ranks do not come to the same.
 * n_rounds: of labels. */
int recognise_ranks(int n_ranks, const int64_t *first, const struct cpl_note *notes, int most,
                    int64_t least_times, struct cpl_recurring *found, int32_t *exchange,
                    int *n_rounds);

#endif
