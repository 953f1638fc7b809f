/* The exchanges that recur on a communicator (doc/point-to-point.md).
 *
 * While learning a rank makes notes. At an agreement the ranks recognise exchanges in them
 * (recognise.h), and each rank keeps the cycle in which its own batches recur (cycle.h). */
#ifndef CARPOOL_PT2PT_EXCHANGES_H
#define CARPOOL_PT2PT_EXCHANGES_H

#include "shim/plan/cycle.h"
#include "shim/plan/recognise_local.h"

#include <stdbool.h>
#include <stdint.h>

struct cpl_comm_state;
struct cpl_pt2pt;

#define CPL_MOST_NAMES   64
#define CPL_RECURS_TIMES 3 /* a batch or exchange that was seen this often recurs */

struct cpl_notes {
    int n, room;
    struct cpl_note *note;
};

/* Adds a note; drops old ones when there are too many. */
void cpl_notes_add(struct cpl_notes *notes, enum cpl_note_kind kind, int peer, int tag);
void cpl_notes_free(struct cpl_notes *notes);

/* Names of exchanges for the report, alike on all ranks. */
struct cpl_exchange_names {
    int n;
    uint64_t hash[CPL_MOST_NAMES];
    int32_t tag[CPL_MOST_NAMES];
};

/* Exchanges that recur. of_note, signature and fraction are this rank's own, the rest is alike on
 * all ranks. */
struct cpl_exchanges {
    int n;
    struct cpl_recurring found[CPL_MOST_RECURRING];
    int32_t tag[CPL_MOST_RECURRING],
        ordinal[CPL_MOST_RECURRING];   /* ordinal: number among exchanges with that tag */
    int signature[CPL_MOST_RECURRING]; /* number of the signature that this rank sends; -1: it sends
                                          nothing */
    double fraction[CPL_MOST_RECURRING]; /* fraction of that signature's batches in this exchange */
    int32_t *of_note; /* per note of kind CPL_NOTE_WINDOW_END: its exchange, or -1 */
};

/* Finds the exchanges that recur. Collective; false on all ranks when memory ran out on one. All
 * messages sent must have been received, or their receives posted. */
bool cpl_exchanges_find(struct cpl_comm_state *state, struct cpl_exchanges *exchanges);
void cpl_exchanges_free(struct cpl_exchanges *exchanges);

/* Finds the cycle in which this rank's batches recur from its notes, the last of which is a
 * collective, and keeps it. plan[e] is the plan of exchange e or CPL_NO_PLAN. Returns false when
 * memory ran out. Local.
 */
bool cpl_exchanges_keep_cycle(struct cpl_pt2pt *p, const struct cpl_exchanges *exchanges,
                              const int *plan);

#endif
