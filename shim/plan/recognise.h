/* Recognises which batches of different ranks form one exchange, from the notes that the ranks made
 * while learning (doc/point-to-point.md). No rank gets the notes of all. An exchange needs no name
 * that ranks could disagree on, and ranks may skip it, or send the same messages in several. */
#ifndef CARPOOL_RECOGNISE_H
#define CARPOOL_RECOGNISE_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

enum cpl_note_kind {
    CPL_NOTE_SENT,       /* peer, tag */
    CPL_NOTE_POSTED,     /* a nonblocking receive: peer, tag */
    CPL_NOTE_RECEIVED,   /* a blocking receive: peer, tag */
    CPL_NOTE_WINDOW_END, /* the window ends; peer: the number of its signature, -1: it has none */
    CPL_NOTE_COLLECTIVE  /* a blocking collective of all ranks; peer: how many its communicator has
                            had, tag: which one, by a number alike on all ranks */
};

struct cpl_note {
    int32_t kind, peer, tag;
};

struct cpl_window {
    int32_t signature; /* -1: none, because the window sends nothing that recurs */
    int32_t tag;       /* tag of the first message sent in the window */
    int32_t n_sent;
    int64_t end_note; /* number of the note that ended the window; -1: none */
};

/* One end of a message that the rank sent or received. */
struct cpl_message_end {
    int32_t peer, tag, window;
    bool sent;
};

/* A rank's windows. */
struct cpl_windows {
    int32_t n;
    struct cpl_window *window;
    int64_t n_ends;
    struct cpl_message_end *end; /* in the order of notes */
};

/* Cuts n notes, in the order in which they were made, into windows. A blocking receive ends a
 * window by itself, but consecutive ones are one window. Returns false when memory ran out;
 * cpl_windows_free in any case. */
bool cpl_windows_cut(struct cpl_windows *windows, const struct cpl_note *notes, int64_t n);
void cpl_windows_free(struct cpl_windows *windows);

/* What a window adds to the hash of its exchange, which is a sum over its windows. */
uint64_t cpl_window_hash(int32_t rank, int32_t signature);

#define CPL_MOST_RECURRING 16 /* the most exchanges that are found at a time */

/* An exchange that recurs. */
struct cpl_recurring {
    uint64_t hash; /* sum over its ranks and their signatures */
    int32_t tag;   /* tag of the first message of the first rank that sends */
    int64_t times; /* how often it was seen complete */
    int64_t n_messages;
};

/* n: of the caller's notes, in the order in which they were made; older ones may be missing; all
 * messages sent have been received. Finds at most CPL_MOST_RECURRING exchanges that were seen at
 * least least_times times and in which some rank sends several messages, those with most messages
 * first. Sets exchange[k] for each note of kind CPL_NOTE_WINDOW_END to the number of the window's
 * exchange, else -1; NULL: this rank had no memory for that. Returns how many were found, the same
 * on all ranks, like `found`; -1: a rank had no memory, or would have had to keep more than 64 MB
 * of what others told. comm is the shim's own, its errors return. O(log^2 ranks) steps.
 * Collective. */
int cpl_recognise(MPI_Comm comm, const struct cpl_note *notes, int64_t n, int64_t least_times,
                  struct cpl_recurring *found, int32_t *exchange);

#endif
