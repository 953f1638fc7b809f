/* Windows: what a rank did between two leave points, cut out of the notes that it made while
 * learning (doc/point-to-point.md). For recognising exchanges (recognise_local.h). Knows nothing of
 * MPI. */
#ifndef CARPOOL_WINDOWS_H
#define CARPOOL_WINDOWS_H

#include <stdbool.h>
#include <stdint.h>

enum cpl_note_kind {
    CPL_NOTE_SENT,       /* peer, tag */
    CPL_NOTE_POSTED,     /* a nonblocking receive: peer, tag */
    CPL_NOTE_RECEIVED,   /* a blocking receive: peer, tag */
    CPL_NOTE_WINDOW_END, /* the window ends; peer: the number of its signature, -1: it has none */
    CPL_NOTE_COLLECTIVE  /* a blocking collective on the communicator */
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

/* One end of a message that the rank sent or received, in the order of notes. */
struct cpl_message_end {
    int32_t peer, tag, window;
};

/* A rank's windows. */
struct cpl_windows {
    int32_t n;
    struct cpl_window *window;
    int64_t n_sent, n_received;
    struct cpl_message_end *sent, *received;
};

/* Cuts n notes, in the order in which they were made, into windows. A blocking receive ends a
 * window by itself, but consecutive ones are one window. Returns false when memory ran out;
 * cpl_windows_free in any case. */
bool cpl_windows_cut(struct cpl_windows *windows, const struct cpl_note *notes, int64_t n);
void cpl_windows_free(struct cpl_windows *windows);

/* What a window adds to the hash of its exchange, which is a sum over its windows. */
uint64_t cpl_window_hash(int32_t rank, int32_t signature);

#endif
