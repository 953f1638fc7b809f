/* One rank's own part in recognising exchanges without a rank that has all notes: the same result
 * as cpl_recognise (recognise.h) gives. Knows nothing of MPI; recognise_together.h carries what the
 * ranks tell each other, a step after another:
 *
 * 1. Every rank tells each receiver in which of its windows it sent which messages
 * (cpl_told_message), and gets the receiver's windows in answer (cpl_answer). From then on it knows
 * the links of its own windows to those of others.
 * 2. Linked windows get the same label. Each window has one of its own at first. In every round
 *    neighbours compare labels; all windows of a label take over the lowest one among their
 *    neighbours', and once more the one that the windows of that label have taken over. Labels are
 *    random numbers, so about a third of them is left after each round (after Boruvka, and
 *    pointer jumping). What windows of one label tell each other is joined by keys (meet/keyed.h).
 * 3. By labels, then by hashes of what has a label, the exchanges are counted.
 *
 * A rank takes some 60 bytes a note, and 24 for each message that others told of. */
#ifndef CARPOOL_RECOGNISE_LOCAL_H
#define CARPOOL_RECOGNISE_LOCAL_H

#include "shim/plan/recognise.h"
#include "shim/plan/windows.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A message that a rank sent in one of its windows. */
struct cpl_told_message {
    int32_t source, tag, window;
};

/* To the rank that told: its window, and the one that received; -1: no note of that is left. */
struct cpl_answer {
    int32_t from, window, linked;
};

/* Records for several ranks, as a census takes them: to[k] gets first[k] .. first[k + 1] - 1. */
struct cpl_records {
    int n;
    int *to;
    int64_t *first;
    void *records;
};

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
    struct cpl_local_window *more; /* of each window; private */
    int64_t n_links, room;
    struct cpl_link *link; /* by peer; both ranks have them in the same order */
    struct cpl_keys keys;
};

/* Takes the rank's notes. All return false when memory ran out; cpl_local_close in any case. */
bool cpl_local_open(struct cpl_local_recognising *r, int32_t rank, const struct cpl_note *notes,
                    int64_t n);
void cpl_local_close(struct cpl_local_recognising *r);

/* Step 1. The records are the caller's to free. came: all that came, those of one rank in the order
 * in which it sent them. */
bool cpl_local_tell(struct cpl_local_recognising *r, struct cpl_records *told);
bool cpl_local_answer(struct cpl_local_recognising *r, const struct cpl_told_message *came,
                      int64_t n, struct cpl_records *answers);
bool cpl_local_link(struct cpl_local_recognising *r, const struct cpl_answer *came, int64_t n);

/* Step 2, a round. cpl_local_labels: the label of the own window of each link. cpl_local_compare
 * takes those of the peers' windows (those of links to the rank itself are not looked at) and says
 * whether some differ; if not on any rank, the labels are found. Else the keys are those of the
 * labels; joined, cpl_local_hook makes them those of the labels that were taken over; joined,
 * cpl_local_jump ends the round. */
void cpl_local_labels(const struct cpl_local_recognising *r, uint64_t *labels);
bool cpl_local_compare(struct cpl_local_recognising *r, const uint64_t *labels);
void cpl_local_hook(struct cpl_local_recognising *r);
void cpl_local_jump(struct cpl_local_recognising *r);

/* Step 3. cpl_local_group makes the keys those of exchanges; joined, cpl_local_count makes them
 * those of equal ones; joined, cpl_local_counted ends it. */
void cpl_local_group(struct cpl_local_recognising *r);
void cpl_local_count(struct cpl_local_recognising *r);
void cpl_local_counted(struct cpl_local_recognising *r);

/* The heaviest exchange that this rank knows of (not every rank of an exchange does), was seen
 * least_times times and is none of the n found; its times * messages, then the lower hash. weight
 * is 0 when there is none. */
struct cpl_heaviest {
    int64_t weight;
    struct cpl_recurring exchange;
};
struct cpl_heaviest cpl_local_heaviest(const struct cpl_local_recognising *r,
                                       const struct cpl_recurring *found, int n,
                                       int64_t least_times);

/* As cpl_recognise sets exchange[k] for each of the rank's n_notes notes. */
void cpl_local_label(const struct cpl_local_recognising *r, const struct cpl_recurring *found,
                     int n, int64_t n_notes, int32_t *exchange);

#endif
