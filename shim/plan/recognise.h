/* Recognises which batches of different ranks form one exchange, from the notes that the ranks made
 * while learning (doc/point-to-point.md). No rank gets the notes of all: every rank does its own
 * part (recognise_local.h), and the ranks that exchange messages tell each other what they know.
 * O(log^2 ranks) steps. */
#ifndef CARPOOL_RECOGNISE_H
#define CARPOOL_RECOGNISE_H

#include "shim/plan/recognise_local.h"

#include <mpi.h>
#include <stdint.h>

/* n: of the caller's notes, in the order in which they were made; older ones may be missing; all
 * messages sent have been received. Finds at most CPL_MOST_RECURRING exchanges that were seen at
 * least least_times times and in which some rank sends several messages, those with most messages
 * first. Sets exchange[k] for each note of kind CPL_NOTE_WINDOW_END to the number of the window's
 * exchange, else -1; NULL: this rank had no memory for that. Returns how many were found, the same
 * on all ranks, like `found`; -1: a rank had no memory, or would have had to keep more than 64 MB
 * of what others told. comm is the shim's own, its errors return. Collective. */
int cpl_recognise(MPI_Comm comm, const struct cpl_note *notes, int64_t n, int64_t least_times,
                  struct cpl_recurring *found, int32_t *exchange);

#endif
