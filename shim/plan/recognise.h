/* Recognises which batches of different ranks form one exchange, from the notes that ranks made
 * while learning (doc/point-to-point.md), on one rank that has the notes of all: about 164 bytes a
 * note. recognise_together.h does the same without such a rank. Knows nothing of MPI.
 *
 * A rank's notes are cut into windows, from one leave point to the next. A message links a window
 * of its sender with a window of its receiver; linked windows belong to the same exchange, and an
 * exchange whose windows come again recurs. So an exchange needs no name that ranks could disagree
 * on, and ranks may skip it, or send the same messages in several exchanges. */
#ifndef CARPOOL_RECOGNISE_H
#define CARPOOL_RECOGNISE_H

#include "shim/plan/windows.h"

#include <stdint.h>

#define CPL_MOST_RECURRING 16 /* the most exchanges that are found at a time */

/* An exchange that recurs. */
struct cpl_recurring {
    uint64_t hash; /* sum over its ranks and their signatures */
    int32_t tag;   /* tag of the first message of the first rank that sends */
    int64_t times; /* how often it was seen complete */
    int64_t n_messages;
};

/* Notes of rank i are notes[first[i]] up to notes[first[i + 1]], in the order in which they were
 * made; older notes may be missing; all messages sent have been received. Finds at most `most`
 * exchanges that were seen at least `least_times` times and in which some rank sends several
 * messages, those with most messages first. Sets exchange[k] for each note of kind
 * CPL_NOTE_WINDOW_END to the number of the window's exchange, else -1. Returns how many were found,
 * -1 when memory ran out. */
int cpl_recognise(int n_ranks, const int64_t *first, const struct cpl_note *notes, int most,
                  int64_t least_times, struct cpl_recurring *found, int32_t *exchange);

#endif
