/* The report: what became of every exchange, written as JSON by rank 0 when MPI is finalized, and
 * after a profile run a summary on stderr.
 *
 * Order of calls: cpl_report_start after MPI_Init; cpl_report_add as exchanges end;
 * cpl_report_write and cpl_report_free at MPI_Finalize. report_json.c makes the file's contents,
 * report_summary.c the summary. */
#ifndef CARPOOL_REPORT_H
#define CARPOOL_REPORT_H

#include "shim/base/names.h"
#include "shim/meet/send_order.h"
#include "shim/meet/trial.h"
#include "shim/report/plan_summary.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An exchange that another one always follows: in which order its messages leave. */
struct cpl_record_order {
    int32_t found;  /* a better order than before; 0: the rest is not filled */
    int32_t in_use; /* at the end */
    int32_t next_kind;
    int32_t next_tag, next_ordinal; /* of a point-to-point exchange */
    uint64_t next_pattern;          /* fingerprint of what follows; 0: not known */
    struct cpl_order_units units;
    int64_t calls;      /* that MPI would have carried and that left in order */
    double tried_us[2]; /* of both exchanges, without and with the order; 0: not tried */
};

/* Reductions that messages rode in, or might have. */
struct cpl_record_reductions {
    int64_t n;        /* that carried messages, or might have */
    int64_t sends;    /* messages of these by the rank that sent most */
    int64_t messages; /* of the program's in them, */
    int64_t late;     /* and of these: that went on alone */
    int64_t calls;    /* of a neighborhood collective, on the first rank, that rode */
    bool mapped;      /* the ranks were placed for what they carry */
    int32_t left;     /* enum cpl_embed_left: why its calls do not ride (any more) */
};

/* What was tried. */
struct cpl_record_trials {
    int32_t n;
    int64_t calls;   /* that were part of trials */
    int32_t n_tried; /* candidates; the first is direct */
    char tried[CPL_MAX_TRIED][CPL_STRATEGY_TEXT];
    double modelled_us[CPL_MAX_TRIED];
    double us[CPL_MAX_TRIED]; /* median call of the slowest rank; 0: not tried */
};

#define CPL_RECORD_WAY 16

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
    struct cpl_record_order order;
    struct cpl_plan_summary summary;
    char way[CPL_RECORD_WAY]; /* that carries its calls (exchange/ways.def); empty: none */
    int32_t reason;           /* enum cpl_left_alone */
    int64_t data_most;        /* of an allgather: bytes of all ranks in a call, at most; else 0 */
    struct cpl_record_reductions reductions;
    struct cpl_record_trials trials;
};

/* Whether anything is to be told at the end, and whether in a file. Local. */
bool cpl_report_is_wanted(void);
bool cpl_report_has_file(void);

/* The report's file: what CARPOOL_REPORT says, or report.json in CARPOOL_OUTPUT. */
void cpl_report_file(char *file, size_t size);

/* On rank 0, before its settings become everybody's: makes the directory CARPOOL_OUTPUT, a setting
 * that is empty afterwards if that fails, and warns of a file that will not be writable while there
 * is still time to see to it. */
void cpl_report_start(void);

/* Adds a record to this process's, merging it with one of the same kind, ranks and plan. Local. */
void cpl_report_add(const struct cpl_record *record);

/* Collects all processes' records, writes the file, and after a profile run the summary; a file
 * that cannot be written is warned about, and what was there before stays. Collective over
 * MPI_COMM_WORLD. */
void cpl_report_write(void);

/* Frees this process's records. */
void cpl_report_free(void);

/* For report.c: all records, those that took most first, as a JSON object, which the caller
 * releases; NULL when memory ran out. The pictures are those of cpl_picture_collect. */
struct json_t *cpl_report_json(const struct cpl_record *records, size_t n,
                               const unsigned char *pictures, size_t picture_bytes,
                               struct json_t *nodes);

/* For report.c: which ranks ran on which node, an array of objects with host and ranks, on rank 0,
 * which cpl_report_json takes over; else, or when memory ran out, NULL. Collective over
 * MPI_COMM_WORLD. */
struct json_t *cpl_report_nodes(void);

/* For report.c: the summary of a profile run, on stderr. */
void cpl_report_summarize(const struct cpl_record *records, size_t n, const char *file);

#endif
