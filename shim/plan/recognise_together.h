/* Recognising exchanges (recognise.h) without a rank that gets the notes of all: every rank does
 * its own part (recognise_local.h), and the ranks that exchange messages tell each other what they
 * know. O(log^2 ranks) steps. */
#ifndef CARPOOL_RECOGNISE_TOGETHER_H
#define CARPOOL_RECOGNISE_TOGETHER_H

#include "shim/plan/recognise.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

/* Whether the ranks recognise together what one rank would find in so many notes (of all ranks): by
 * CARPOOL_PLANNING, else where that rank would take longer than CARPOOL_BUDGET. Alike on all ranks;
 * local. */
bool cpl_recognise_is_together(int64_t n_notes);

/* Recognises as cpl_recognise does, from the caller's n notes; exchange[k] is set for each of them;
 * NULL: this rank had no memory for that.
 * Returns how many exchanges were found, the same on all ranks, like `found`; -1: a rank had no
 * memory, or would have had to keep more than 64 MB of what others told. comm is the shim's own,
 * its errors return. Collective. */
int cpl_recognise_together(MPI_Comm comm, const struct cpl_note *notes, int64_t n, int most,
                           int64_t least_times, struct cpl_recurring *found, int32_t *exchange);

#endif
