/* The report on all exchanges. Rank 0 writes it as JSON when MPI is finalized, and after a profile
 * run also a summary on stderr.
 *
 * Order of calls: cpl_report_start after MPI_Init; cpl_report_add as exchanges end;
 * cpl_report_write (or cpl_report_write_left) and cpl_report_free at MPI_Finalize. report_json.c
 * makes the file's contents, report_run.c what it says of the run. */
#ifndef CARPOOL_REPORT_H
#define CARPOOL_REPORT_H

#include "shim/base/names.h"
#include "shim/meet/trial.h"
#include "shim/report/plan_summary.h"
#include "shim/state/context.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reductions that carried messages of a point-to-point exchange, or might have. */
struct cpl_record_reductions {
    int64_t n;        /* number of these reductions */
    int64_t sends;    /* messages of the reductions that the busiest rank sent */
    int64_t messages; /* messages of the program that they carried */
    int64_t late;     /* messages of the program that went on alone after the hold time */
    bool mapped;      /* ranks were assigned points that suit what the reductions carry */
};

/* The trials of an exchange: candidate 0 is MPI, k is tried[k - 1]. */
struct cpl_record_trials {
    struct cpl_trial last; /* rounds 0: there was none */
    struct cpl_plan_summary tried[CPL_MAX_TRIED - 1];
};

/* Point-to-point messages: from one collective to the next, in microseconds of a rank; 0: not
 * known. Of `pairs` windows each, or (0) of the last ones. */
struct cpl_record_windows {
    int32_t pairs;
    double mpi_us, plan_us;
};

#define CPL_RECORD_CARRIER 16

/* The version of the report's form, doc/report.schema.json: raised when members change or go. */
#define CPL_REPORT_SCHEMA 7

/* One exchange, or several equal ones of communicators that came and went. Plain data. The first
 * rank of the communicator keeps it. */
struct cpl_record {
    int32_t kind; /* enum cpl_neighbor_kind */
    int32_t n_ranks;
    int64_t n_communicators; /* number of communicators that this record stands for */
    int64_t calls;
    int64_t calls_planned;
    int32_t passed;        /* whether there were more, which passed without a look */
    double direct_seconds; /* calls times the median call of the slowest rank */
    double planned_seconds;
    int64_t forwarded_bytes;         /* bytes that all ranks forwarded in all calls */
    int64_t combined, late_combined; /* of all ranks */
    bool ordered; /* messages left in the order that the next exchange asks for */
    struct cpl_plan_summary summary;
    char carrier[CPL_RECORD_CARRIER]; /* of its calls (exchange/neighbor.h); empty: none */
    int32_t reason;                   /* enum cpl_left_alone */
    int64_t data_most; /* allgathers: the most bytes of all ranks together in a call; else 0 */
    struct cpl_record_reductions reductions;
    struct cpl_record_trials trials;
    struct cpl_record_windows windows;
};

/* Whether there is to be a report or summary at the end; whether there is to be a report file.
 * Local. */
static inline bool cpl_report_has_file(void)
{
    return cpl_context.settings.report[0] || cpl_context.settings.output[0];
}
static inline bool cpl_report_is_wanted(void)
{
    return cpl_report_has_file() || cpl_context.settings.mode == CPL_MODE_PROFILE;
}

/* On rank 0, before the settings are broadcast: makes the directory CARPOOL_OUTPUT and empties that
 * setting if it cannot. Warns early of a report file that will not be writable. */
void cpl_report_start(void);

/* Adds a record to this process's, merging it with one of the same kind, ranks and plan. Local. */
void cpl_report_add(const struct cpl_record *record);

/* Collects all processes' records, writes the file, and after a profile run the summary; When the
 * file cannot be written, warns and keeps the old file. Collective over MPI_COMM_WORLD. */
void cpl_report_write(void);

/* The same where all calls of the run are left to MPI: a report without exchanges that says why, if
 * one is wanted and this rank is to tell (cpl_context.told.all_left). Local. */
void cpl_report_write_left(void);

/* Frees this process's records. */
void cpl_report_free(void);

/* Where the ranks ran. At rank 0 only; elsewhere, and when memory ran out, all is 0. */
struct cpl_report_hosts {
    struct json_t *nodes; /* array of objects with host and ranks */
    int64_t cores;        /* of all hosts; 0: not known */
    bool cores_shared;    /* a host has more ranks than cores */
};

/* For report.c: finds the hosts; the caller releases the nodes. Collective over MPI_COMM_WORLD. */
struct cpl_report_hosts cpl_report_hosts(void);

/* For report.c: what run the report is of, as a JSON object: program, date, job, MPI, cost model,
 * cores. Local, for rank 0. */
struct json_t *cpl_report_run(const struct cpl_report_hosts *hosts);

/* For report.c: all records, the slowest exchanges first, as a JSON object, which the caller
 * releases; NULL when memory ran out. pictures comes from cpl_picture_collect. */
struct json_t *cpl_report_json(const struct cpl_record *records, size_t n, char *pictures,
                               size_t picture_bytes, const struct cpl_report_hosts *hosts);

#endif
