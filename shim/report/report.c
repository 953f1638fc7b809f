/* Collecting and writing the report (report.h). */
#include "shim/report/report.h"
#include "shim/meet/decision.h"

#include "shim/base/log.h"
#include "shim/report/picture.h"
#include "shim/state/context.h"

#include <errno.h>
#include <jansson.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool alike(const struct cpl_record *a, const struct cpl_record *b)
{
    return a->kind == b->kind && a->reason == b->reason && a->n_ranks == b->n_ranks &&
           a->data_most == b->data_most && a->summary.tag == b->summary.tag &&
           a->summary.ordinal == b->summary.ordinal && a->summary.decided == b->summary.decided &&
           a->summary.plan_fingerprint == b->summary.plan_fingerprint &&
           strcmp(a->carrier, b->carrier) == 0 && a->ordered == b->ordered;
}

void cpl_report_add(const struct cpl_record *record)
{
    struct cpl_told *told = &cpl_context.told;
    for (int k = 0; k < told->n_records; k++) {
        struct cpl_record *r = &told->records[k];
        if (!alike(r, record))
            continue;
        r->n_communicators += record->n_communicators;
        r->calls += record->calls;
        r->calls_planned += record->calls_planned;
        r->passed |= record->passed;
        r->direct_seconds += record->direct_seconds;
        r->planned_seconds += record->planned_seconds;
        r->forwarded_bytes += record->forwarded_bytes;
        r->reductions.n += record->reductions.n;
        r->reductions.sends += record->reductions.sends;
        r->reductions.messages += record->reductions.messages;
        r->reductions.late += record->reductions.late;
        r->combined += record->combined;
        r->late_combined += record->late_combined;
        return;
    }
    struct cpl_record *more =
        realloc(told->records, ((size_t)told->n_records + 1) * sizeof *record);
    if (!more)
        return; /* the record is missing in the report; the program goes on */
    more[told->n_records++] = *record;
    told->records = more;
}

void cpl_report_free(void)
{
    free(cpl_context.told.records);
    cpl_context.told.records = NULL;
    cpl_context.told.n_records = 0;
}

/* The name of the report's file: CARPOOL_REPORT, or report.json in CARPOOL_OUTPUT. */
static void name_file(char *file, size_t size)
{
    const struct cpl_settings *settings = &cpl_context.settings;
    if (settings->report[0])
        snprintf(file, size, "%s", settings->report);
    else
        snprintf(file, size, "%s/report.json", settings->output);
}

static void warn_of(const char *file, int code)
{
    bool named = cpl_context.settings.report[0];
    cpl_log(CPL_LOG_WARN, "report", "%s: cannot write %s (%s); name %s",
            named ? "CARPOOL_REPORT" : "CARPOOL_OUTPUT", file, code ? strerror(code) : "no memory",
            named ? "a file in a writable directory" : "another directory");
}

/* Whether a file can be written: the file if it exists, else its directory must be writable. */
static bool is_writable(const char *file)
{
    char directory[CPL_SETTINGS_TEXT + 64];
    snprintf(directory, sizeof directory, "%s", file);
    if (access(file, F_OK) == 0)
        return access(file, W_OK) == 0;
    return access(dirname(directory), W_OK) == 0;
}

void cpl_report_start(void)
{
    struct cpl_settings *settings = &cpl_context.settings;
    char file[CPL_SETTINGS_TEXT + 64];
    if (settings->output[0] && !cpl_settings_make_directory(settings->output)) {
        cpl_log(CPL_LOG_WARN, "report",
                "CARPOOL_OUTPUT: cannot make the directory %s (%s); nothing is written there; name "
                "another one",
                settings->output, strerror(errno));
        settings->output[0] = '\0';
    }
    if (!cpl_report_has_file())
        return;
    name_file(file, sizeof file);
    if (!is_writable(file))
        warn_of(file, errno);
}

/* Writes a file beside it and renames that, so that after a full disk there is no half report and
 * the old one stays. Devices and links are written directly. */
static bool write_json(const json_t *root, const char *file)
{
    char beside[CPL_SETTINGS_TEXT + 128];
    struct stat info;
    bool plain = lstat(file, &info) != 0 || S_ISREG(info.st_mode);
    snprintf(beside, sizeof beside, "%s%s", file, plain ? ".part" : "");
    errno = 0;
    bool done = root && !json_dump_file(root, beside, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    int code = errno;
    if (done && plain && rename(beside, file) != 0) {
        code = errno;
        done = false;
    }
    if (!done && plain)
        remove(beside);
    if (!done)
        warn_of(file, code);
    return done;
}

/* The time of all calls of an exchange: measured, or modelled where it was not measured. */
static double seconds_of(const struct cpl_record *r)
{
    double measured = r->direct_seconds + r->planned_seconds;
    double modelled = r->summary.known ? r->summary.direct.modelled_us * 1e-6 : 0;
    return measured > 0 ? measured : modelled * (double)r->calls;
}

static int compare_seconds(const void *a, const void *b)
{
    double x = seconds_of(a), y = seconds_of(b);
    return (x < y) - (x > y);
}

/* On stderr, of a profile run; file: the report's name, empty: there is none. */
static void summarize(const struct cpl_record *records, size_t n, const char *file)
{
    const char *machine = cpl_context.settings.machine;
    double all = 0, saved_us = 0;
    size_t n_builtin;
    for (size_t k = 0; k < n; k++) {
        const struct cpl_plan_summary *s = &records[k].summary;
        all += records[k].direct_seconds;
        if (records[k].reason == CPL_LEFT_PROFILED)
            saved_us += (s->direct.modelled_us - s->planned.modelled_us) * (double)records[k].calls;
    }
    cpl_log_plain("profile of %d ranks, %.3g s from MPI_Init to MPI_Finalize; nothing was rerouted",
                  cpl_context.size, PMPI_Wtime() - cpl_context.account.start);
    if (cpl_context.told.all_left)
        cpl_log_plain("all calls were left to MPI: %s", cpl_context.told.all_left);
    else if (n == 0)
        cpl_log_plain("no exchanges were seen: no neighborhood collectives, no point-to-point "
                      "messages on a communicator of all ranks");
    else
        cpl_log_plain("%zu exchange%s, measured %.3g s in all %s calls; by the model of %s mode "
                      "auto would save %.3g s",
                      n, n > 1 ? "s" : "", all, n > 1 ? "their" : "its",
                      machine[0] ? machine : cpl_builtin_machines(&n_builtin)[0].name,
                      saved_us * 1e-6);
    if (file[0])
        cpl_log_plain("report in %s; `carpool report %s` shows it, with --html=PAGE as a page",
                      file, file);
    else if (!cpl_report_has_file())
        cpl_log_plain("CARPOOL_OUTPUT=DIR keeps the report and the patterns");
}

/* --- writing */

static void write_all(const struct cpl_record *records, size_t n, char *pictures, size_t bytes,
                      const struct cpl_report_hosts *hosts)
{
    char file[CPL_SETTINGS_TEXT + 64] = "";
    if (cpl_report_has_file()) {
        name_file(file, sizeof file);
        json_t *root = cpl_report_json(records, n, pictures, bytes, hosts);
        if (!write_json(root, file))
            file[0] = '\0';
        json_decref(root);
    }
    if (cpl_context.settings.mode == CPL_MODE_PROFILE)
        summarize(records, n, file);
}

void cpl_report_write(void)
{
    CPL_DECISION(decision, MPI_COMM_WORLD);
    const struct cpl_record *mine = cpl_context.told.records;
    const struct cpl_handed_in handed = {.able = true,
                                         .records = mine,
                                         .n = cpl_context.told.n_records,
                                         .record_bytes = sizeof *mine};
    if (cpl_decision_hand_in(&decision, &handed)) {
        size_t bytes = 0;
        char *pictures = cpl_report_has_file() ? cpl_picture_collect(&bytes) : NULL;
        struct cpl_report_hosts hosts = cpl_report_hosts();
        if (cpl_decision_is_root(&decision)) {
            size_t total = (size_t)decision.first[decision.n_ranks];
            qsort(decision.records, total, sizeof *mine, compare_seconds);
            write_all(decision.records, total, pictures, bytes, &hosts);
        }
        json_decref(hosts.nodes);
        free(pictures);
    } else if (cpl_decision_is_root(&decision)) {
        cpl_log(CPL_LOG_WARN, "report", "no memory for the report; it is not written");
    }
}

void cpl_report_write_left(void)
{
    const struct cpl_report_hosts unknown = {.nodes = NULL};
    if (cpl_context.told.all_left && cpl_report_is_wanted())
        write_all(NULL, 0, NULL, 0, &unknown);
}
