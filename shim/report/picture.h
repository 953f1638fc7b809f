/* Pictures of exchanges for the report: who sends how much to whom before and after planning,
 * aggregated so that the report stays small at any number of ranks. The rank that plans makes and
 * keeps them; rank 0 of MPI_COMM_WORLD collects them at the end.
 *
 * Order of calls: cpl_picture_add after an exchange was planned; at the end cpl_picture_collect on
 * all ranks, then cpl_picture_free. */
#ifndef CARPOOL_PICTURE_H
#define CARPOOL_PICTURE_H

#include "planner/machine.h"
#include "planner/pattern.h"
#include "planner/plan.h"
#include "planner/strategies/strategy_rank.h"
#include "shim/report/plan_summary.h"

#include <stddef.h>
#include <stdint.h>

#define CPL_PICTURE_CELLS 128 /* the most cells a side */
#define CPL_PICTURE_BINS  256 /* the most bins */
#define CPL_SIZE_CLASSES  32
#define CPL_MOST_TRIED    12

struct cpl_tried {
    char strategy[CPL_STRATEGY_TEXT];
    double us; /* modelled */
};

/* The arrays of counts behind a picture. Cells: messages, or their bytes, from one group of
 * cell_ranks ranks to another, [sender's group * n_cells + receiver's]. Bins: the largest number of
 * messages of a rank among bin_ranks ranks. */
enum cpl_picture_part {
    CPL_DIRECT_CELLS,
    CPL_PLANNED_CELLS,
    CPL_DIRECT_BYTES,
    CPL_PLANNED_BYTES,
    CPL_DIRECT_SENDS,
    CPL_PLANNED_SENDS,
    CPL_DIRECT_RECVS,
    CPL_PLANNED_RECVS,
    CPL_N_PARTS
};

/* Messages of one exchange, or combined messages of its plan: inside nodes and between them. */
struct cpl_traffic {
    int64_t messages[2], bytes[2]; /* 0: inside, 1: between */
};

/* A picture. Plain data, followed in memory by its counts (cpl_picture_part). */
struct cpl_picture {
    uint64_t pattern_fingerprint;
    uint64_t plan_fingerprint;
    int64_t n_bytes; /* size with the counts, a multiple of 8 */
    int32_t n_ranks, n_nodes;
    int32_t n_cells, cell_ranks;
    int32_t n_bins, bin_ranks;
    int32_t n_borders; /* where each node has consecutive ranks: the first ranks of all but the
                          first node; 0 else, and where there are more */
    int64_t border[CPL_PICTURE_CELLS];
    struct cpl_traffic direct, planned;
    int64_t size_class[CPL_SIZE_CLASSES]; /* messages of 0 bytes, 1, 2 to 3, 4 to 7, ... */
    int64_t smallest, largest;            /* sizes of the smallest and largest message, in bytes */
    int32_t is_written; /* 1: the pattern is in CARPOOL_OUTPUT as pattern-FINGERPRINT.mtx */
    int32_t n_tried;
    struct cpl_tried tried[CPL_MOST_TRIED]; /* fastest first; direct is among them */
};

/* One of a picture's arrays (enum cpl_picture_part): n_cells * n_cells or n_bins counts. */
int64_t *cpl_picture_counts(const struct cpl_picture *picture, int part);

/* Makes the picture of a plan and, with CARPOOL_OUTPUT, writes its pattern; once for each pattern
 * and plan. A picture that cannot be kept (no memory, too many) is missing in the report. ranking
 * may be NULL. Local. */
void cpl_picture_add(const struct cpl_pattern *pattern, const struct cpl_plan *plan,
                     const struct cpl_machine *machine, const struct cpl_plan_summary *summary,
                     const struct cpl_ranking *ranking);

/* On rank 0: all ranks' pictures, one after another in *bytes bytes, which the caller frees. NULL
 * on other ranks and when there are none. Collective over MPI_COMM_WORLD. */
unsigned char *cpl_picture_collect(size_t *bytes);

/* Finds the picture of a pattern and plan among those collected, or NULL. */
const struct cpl_picture *cpl_picture_find(const unsigned char *pictures, size_t bytes,
                                           const struct cpl_plan_summary *summary);

void cpl_picture_free(void);

#endif
