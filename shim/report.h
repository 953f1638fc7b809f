/* The report: what became of every exchange, written as JSON by rank 0 when MPI is finalized. */
#ifndef CARPOOL_REPORT_H
#define CARPOOL_REPORT_H

#include "agree.h"
#include "exchange.h"

#include <stdbool.h>
#include <stdint.h>

/* One exchange, or several alike of communicators that came and went; plain data. Kept by the first
 * rank of the communicator. */
struct cpl_record {
    int32_t kind; /* enum cpl_neighbor_kind */
    int32_t n_ranks;
    int64_t n_communicators; /* that this record stands for */
    int64_t calls;
    int64_t calls_planned;
    double direct_seconds; /* calls times the median call of the slowest rank */
    double planned_seconds;
    int64_t forwarded_bytes; /* by all ranks, in all calls */
    struct cpl_plan_summary summary;
    int32_t reason; /* enum cpl_left_alone */
    int32_t n_trials;
    int64_t trial_calls; /* that were part of trials */
    int32_t n_tried;     /* candidates; the first is direct */
    char tried[CPL_MAX_TRIED][CPL_STRATEGY_TEXT];
    double tried_modelled_us[CPL_MAX_TRIED];
    double tried_us[CPL_MAX_TRIED]; /* median call of the slowest rank; 0: not tried */
};

/* Why an exchange was left to MPI. */
enum cpl_left_alone {
    CPL_LEFT_NOT, /* they were not */
    CPL_LEFT_TOO_FEW_COLLECTIVES,
    CPL_LEFT_UNABLE,
    CPL_LEFT_VARIED,
    CPL_LEFT_OPENED,
    CPL_LEFT_WILDCARD,
    CPL_LEFT_NOTHING_RECURS,
    CPL_LEFT_UNMATCHED,
    CPL_LEFT_NO_GAIN,
    CPL_LEFT_GIVEN_UP,
    CPL_LEFT_SLOWER,
    CPL_N_LEFT
};

/* A clause that says so. */
const char *cpl_left_alone_text(enum cpl_left_alone reason);

/* Adds a record to this process's, merging it with one of the same kind, ranks and plan. Local. */
void cpl_report_add(const struct cpl_record *record);

/* Collects all processes' records and writes the file that the setting names; a file that cannot be
 * written is warned about. Collective over MPI_COMM_WORLD. */
void cpl_report_write(void);

/* Frees this process's records. */
void cpl_report_free(void);

#endif
