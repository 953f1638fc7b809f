/* Collecting and writing the report (report.h). */
#include "shim/report/report.h"
#include "shim/meet/desk.h"

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
#include <utlist.h>

struct cpl_record_node {
    struct cpl_record record;
    struct cpl_record_node *next;
};

static bool alike(const struct cpl_record *a, const struct cpl_record *b)
{
    return a->kind == b->kind && a->reason == b->reason && a->n_ranks == b->n_ranks &&
           a->data_most == b->data_most && a->summary.tag == b->summary.tag &&
           a->summary.ordinal == b->summary.ordinal && a->summary.decided == b->summary.decided &&
           a->summary.plan_fingerprint == b->summary.plan_fingerprint &&
           strcmp(a->way, b->way) == 0 && a->order.units.given == b->order.units.given &&
           a->order.next_kind == b->order.next_kind &&
           a->order.next_pattern == b->order.next_pattern;
}

void cpl_report_add(const struct cpl_record *record)
{
    struct cpl_record_node *node;
    LL_FOREACH(cpl_context.told.records, node)
    {
        if (!alike(&node->record, record))
            continue;
        node->record.n_communicators += record->n_communicators;
        node->record.calls += record->calls;
        node->record.calls_planned += record->calls_planned;
        node->record.passed |= record->passed;
        node->record.direct_seconds += record->direct_seconds;
        node->record.planned_seconds += record->planned_seconds;
        node->record.forwarded_bytes += record->forwarded_bytes;
        node->record.reductions.n += record->reductions.n;
        node->record.reductions.sends += record->reductions.sends;
        node->record.reductions.messages += record->reductions.messages;
        node->record.reductions.late += record->reductions.late;
        node->record.rides += record->rides;
        node->record.late_rides += record->late_rides;
        node->record.order.calls += record->order.calls;
        return;
    }
    node = malloc(sizeof *node);
    if (!node)
        return; /* the record is missing in the report; the program goes on */
    node->record = *record;
    LL_APPEND(cpl_context.told.records, node);
}

void cpl_report_free(void)
{
    struct cpl_record_node *node, *next;
    LL_FOREACH_SAFE(cpl_context.told.records, node, next)
    free(node);
    cpl_context.told.records = NULL;
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

/* Whether a file may be replaced by renaming: it is a plain file, or does not exist. */
static bool is_plain(const char *file)
{
    struct stat info;
    return lstat(file, &info) != 0 || S_ISREG(info.st_mode);
}

/* Writes a file beside it and renames that, so that after a full disk there is no half report and
 * the old one stays. Devices and links are written directly. */
static bool write_json(const json_t *root, const char *file)
{
    char beside[CPL_SETTINGS_TEXT + 128];
    bool plain = is_plain(file);
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

static void write_all(const struct cpl_record *records, size_t n, const unsigned char *pictures,
                      size_t bytes, const struct cpl_report_hosts *hosts)
{
    char file[CPL_SETTINGS_TEXT + 64] = "";
    if (cpl_report_has_file()) {
        name_file(file, sizeof file);
        json_t *root = cpl_report_json(records, n, pictures, bytes, hosts);
        if (!write_json(root, file))
            file[0] = '\0';
        json_decref(root);
    }
    if (cpl_context.settings.mode == CPL_MODE_PROFILE) {
        json_t *run = cpl_report_run(hosts);
        cpl_report_summarize(records, n, run, file);
        json_decref(run);
    }
}

/* This process's records as an array. */
static struct cpl_record *list_records(int *n)
{
    struct cpl_record_node *node;
    size_t all = 1;
    LL_COUNT(cpl_context.told.records, node, all);
    struct cpl_record *list = calloc(all + 1, sizeof *list);
    *n = 0;
    LL_FOREACH(list ? cpl_context.told.records : NULL, node)
    list[(*n)++] = node->record;
    return list;
}

void cpl_report_write(void)
{
    int n;
    struct cpl_desk desk;
    struct cpl_record *mine = list_records(&n);
    cpl_desk_open(&desk, MPI_COMM_WORLD, 0);
    const struct cpl_handed_in handed = {
        .able = mine, .records = mine, .n = n, .record_bytes = sizeof *mine};
    if (cpl_desk_hand_in(&desk, &handed)) {
        size_t bytes = 0;
        unsigned char *pictures = cpl_report_has_file() ? cpl_picture_collect(&bytes) : NULL;
        struct cpl_report_hosts hosts = cpl_report_hosts();
        if (cpl_desk_is_root(&desk)) {
            size_t total = (size_t)desk.first[desk.n_ranks];
            qsort(desk.records, total, sizeof *mine, compare_seconds);
            write_all(desk.records, total, pictures, bytes, &hosts);
        }
        json_decref(hosts.nodes);
        free(pictures);
    } else if (cpl_desk_is_root(&desk)) {
        cpl_log(CPL_LOG_WARN, "report", "no memory for the report; it is not written");
    }
    free(mine);
    cpl_desk_close(&desk);
}

void cpl_report_write_left(void)
{
    const struct cpl_report_hosts unknown = {.nodes = NULL};
    if (cpl_context.told.all_left && cpl_report_is_wanted())
        write_all(NULL, 0, NULL, 0, &unknown);
}
