/* One rank's own part in recognising exchanges (doc/point-to-point.md). Knows nothing of MPI;
 * recognise.h carries what the ranks tell each other.
 *
 * A rank's notes are cut into windows, from one leave point to the next. A message links a window
 * of its sender with a window of its receiver; linked windows belong to the same exchange, and an
 * exchange whose windows come again recurs. So an exchange needs no name that ranks could disagree
 * on, and ranks may skip it, or send the same messages in several exchanges. A step after another:
 *
 * 1. Every rank tells each receiver in which of its windows it sent which messages, and gets the
 *    receiver's windows in answer (cpl_answer). From then on it knows the links of its own windows
 *    to those of others.
 * 2. Linked windows get the same label. Each window has one of its own at first, its name. In every
 *    round a window takes over the lowest label among its neighbours'; then all windows of a label
 *    take over the lowest that one of them has taken, and that of the window with that name. Labels
 *    are random numbers, so about half of them are left after each round. What windows of
 *    one label tell each other is joined by keys (meet/sparse_exchange.h).
 * 3. By labels what is known of exchanges is put together. The first rank that sends in one counts
 *    it; the heaviest of all ranks are chosen.
 *
 * A rank takes some 60 bytes a note, and 12 for each message that others told of. */
#ifndef CARPOOL_RECOGNISE_LOCAL_H
#define CARPOOL_RECOGNISE_LOCAL_H

#include <stdbool.h>
#include <stddef.h>
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

#define CPL_MOST_RECURRING 16 /* the most exchanges that are found at a time */

/* An exchange that recurs. */
struct cpl_recurring {
    uint64_t hash; /* sum over its ranks and their signatures */
    int32_t tag;   /* tag of the first message of the first rank that sends */
    int64_t times; /* how often it was seen complete */
    int64_t n_messages;
};

/* To the rank that told: its window, and the one that received; -1: no note of that is left. */
struct cpl_answer {
    int32_t from, window, linked;
};

/* Records for several ranks, as a sparse exchange takes them: to[k] gets first[k] .. first[k + 1]
 * - 1. They are made for n records; then record k is addressed, ranks ascending. */
struct cpl_records {
    int n;
    int *to;
    int64_t *first;
    void *records;
};

bool cpl_records_make(struct cpl_records *records, int64_t n, size_t bytes);
void cpl_records_address(struct cpl_records *records, int64_t k, int to);
void cpl_records_free(struct cpl_records *records);

/* A link of an own window to one of the peer's. */
struct cpl_link {
    int32_t peer;
    int32_t low, high; /* the windows: of the lower rank, of the higher one */
};

/* Records by keys, to be joined with those of all ranks: words 0 .. words - 1 of each value. */
struct cpl_keys {
    int64_t n;
    int words;
    uint64_t *key, *value;
    void (*join)(uint64_t *into, const uint64_t *value);
};

struct cpl_local_recognising {
    int32_t rank;
    struct cpl_windows windows;
    struct cpl_labels *labels; /* of each window; private */
    int64_t n_links, room;
    struct cpl_link *link; /* by peer; both ranks have them in the same order */
    int32_t n_sending;     /* windows that send in a complete exchange; private, from step 3 on */
    struct cpl_sending *sending;
    struct cpl_keys keys;
};

/* Takes the rank's notes. All return false when memory ran out; cpl_local_close in any case. */
bool cpl_local_open(struct cpl_local_recognising *r, int32_t rank, const struct cpl_note *notes,
                    int64_t n);
void cpl_local_close(struct cpl_local_recognising *r);

/* Step 1. The records are the caller's to free. told are ends of messages whose peer is the sender
 * and whose window is the sender's; came: all that came, in any order. */
bool cpl_local_tell(struct cpl_local_recognising *r, struct cpl_records *told);
bool cpl_local_answer(struct cpl_local_recognising *r, struct cpl_message_end *came, int64_t n,
                      struct cpl_records *answers);
bool cpl_local_link(struct cpl_local_recognising *r, const struct cpl_answer *came, int64_t n);

/* Step 2. cpl_local_names: the labels that the peers' windows have at first, for each link, as far
 * as this rank knows. cpl_local_labels: those of its own windows. cpl_local_compare takes those of
 * the peers' (of links to the rank itself they are not looked at) and says whether some differ; if
 * not on any rank, the labels are found. Else the keys, joined, say what cpl_local_relabel takes
 * over. */
void cpl_local_names(const struct cpl_local_recognising *r, uint64_t *labels);
void cpl_local_labels(const struct cpl_local_recognising *r, uint64_t *labels);
bool cpl_local_compare(struct cpl_local_recognising *r, const uint64_t *labels);
void cpl_local_relabel(struct cpl_local_recognising *r);

/* Step 3. cpl_local_group makes the keys those of exchanges; joined, cpl_local_count makes them the
 * heaviest that this rank counts; joined, cpl_local_found tells the heaviest of all, at most `most`
 * (CPL_MOST_RECURRING), and returns how many. */
void cpl_local_group(struct cpl_local_recognising *r);
void cpl_local_count(struct cpl_local_recognising *r, int64_t least_times);
int cpl_local_found(const struct cpl_local_recognising *r, int most, struct cpl_recurring *found);

/* As cpl_recognise sets exchange[k] for each of the rank's n_notes notes. */
void cpl_local_label(const struct cpl_local_recognising *r, const struct cpl_recurring *found,
                     int n, int64_t n_notes, int32_t *exchange);

#endif
