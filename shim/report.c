/* The JSON report (report.h). */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "report.h"

#include "context.h"
#include "log.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

struct cpl_record_node {
    struct cpl_record record;
    struct cpl_record_node *next;
};

const char *cpl_left_alone_text(enum cpl_left_alone reason)
{
    static const char *const texts[CPL_N_LEFT] = {
        [CPL_LEFT_NOT] = "",
        [CPL_LEFT_TOO_FEW_COLLECTIVES] = "fewer than four blocking collectives were called on the "
                                         "communicator",
        [CPL_LEFT_UNABLE] = "no memory, too many communicators, or processes of several "
                            "MPI_COMM_WORLDs",
        [CPL_LEFT_VARIED] = "a rank never sends the same batch of messages again",
        [CPL_LEFT_OPENED] = "a window or file was opened",
        [CPL_LEFT_WILDCARD] = "a rank posted a nonblocking receive with wildcards, or called "
                              "MPI_Mprobe or MPI_Isendrecv, before the exchange was learned",
        [CPL_LEFT_NOTHING_RECURS] = "no rank sends to two or more others again and again",
        [CPL_LEFT_UNMATCHED] = "messages were under way at every agreement that had no "
                               "receive yet",
        [CPL_LEFT_NO_GAIN] = "no plan is modelled faster than direct",
        [CPL_LEFT_SLOWER] = "no plan was measured faster than MPI",
        [CPL_LEFT_GIVEN_UP] = "rerouted at first; the exchanges did not recur as before",
    };
    return texts[reason];
}

static bool alike(const struct cpl_record *a, const struct cpl_record *b)
{
    return a->kind == b->kind && a->reason == b->reason && a->n_ranks == b->n_ranks &&
           a->summary.decided == b->summary.decided &&
           a->summary.plan_fingerprint == b->summary.plan_fingerprint;
}

void cpl_report_add(const struct cpl_record *record)
{
    struct cpl_record_node *node;
    LL_FOREACH(cpl_context.records, node)
    {
        if (!alike(&node->record, record))
            continue;
        node->record.n_communicators += record->n_communicators;
        node->record.calls += record->calls;
        node->record.calls_planned += record->calls_planned;
        node->record.direct_seconds += record->direct_seconds;
        node->record.planned_seconds += record->planned_seconds;
        node->record.forwarded_bytes += record->forwarded_bytes;
        return;
    }
    node = malloc(sizeof *node);
    if (!node)
        return; /* the report is the poorer for it, the program is not */
    node->record = *record;
    LL_APPEND(cpl_context.records, node);
}

void cpl_report_free(void)
{
    struct cpl_record_node *node, *next;
    LL_FOREACH_SAFE(cpl_context.records, node, next)
    free(node);
    cpl_context.records = NULL;
}

/* The candidates of trials: what the model said and what was measured. */
static json_t *tried_json(const struct cpl_record *r)
{
    json_t *list = json_array();
    for (int32_t k = 0; k < r->n_tried; k++)
        json_array_append_new(
            list, json_pack("{s:s s:f s:o}", "strategy", r->tried[k], "modelled_us",
                            r->tried_modelled_us[k], "measured_us",
                            r->tried_us[k] > 0 ? json_real(r->tried_us[k]) : json_null()));
    return list;
}

/* Seconds over calls, in microseconds; null when there were none. */
static json_t *per_call_us(double seconds, int64_t calls)
{
    return calls > 0 ? json_real(seconds / (double)calls * 1e6) : json_null();
}

static json_t *metrics_json(const struct cpl_metrics *m, double seconds, int64_t calls)
{
    return json_pack("{s:I s:f s:I s:i s:f s:f s:o}", "sends_max", (json_int_t)m->sends_max,
                     "sends_avg", m->sends_avg, "recvs_max", (json_int_t)m->recvs_max, "hops_max",
                     m->hops_max, "volume_factor", m->volume_factor, "modelled_us", m->modelled_us,
                     "us_per_call", per_call_us(seconds, calls));
}

static json_t *record_json(const struct cpl_record *r)
{
    const struct cpl_plan_summary *s = &r->summary;
    char fingerprint[24];
    snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, s->pattern_fingerprint);
    json_t *o = json_pack("{s:s s:i s:I s:I s:I s:s}", "kind",
                          cpl_exchange_kind_name((enum cpl_neighbor_kind)r->kind), "ranks",
                          r->n_ranks, "communicators", (json_int_t)r->n_communicators, "calls",
                          (json_int_t)r->calls, "calls_planned", (json_int_t)r->calls_planned,
                          "strategy", s->decided ? s->strategy : "none");
    if (o && r->reason != CPL_LEFT_NOT)
        json_object_set_new(o, "left_alone",
                            json_string(cpl_left_alone_text((enum cpl_left_alone)r->reason)));
    if (!o || !s->known)
        return o;
    json_object_set_new(o, "considered", json_string(s->strategy));
    json_object_set_new(o, "pattern", json_string(fingerprint));
    json_object_set_new(o, "messages", json_integer(s->n_messages));
    json_object_set_new(o, "bytes", json_integer(s->bytes));
    json_object_set_new(o, "forwarded_bytes", json_integer(r->forwarded_bytes));
    json_object_set_new(o, "plan_ms", json_real(s->plan_ms));
    json_object_set_new(o, "direct",
                        metrics_json(&s->direct, r->direct_seconds, r->calls - r->calls_planned));
    json_object_set_new(o, "planned",
                        metrics_json(&s->planned, r->planned_seconds, r->calls_planned));
    if (r->n_tried > 0) {
        json_object_set_new(o, "trials", json_integer(r->n_trials));
        json_object_set_new(o, "trial_calls", json_integer(r->trial_calls));
        json_object_set_new(o, "tried", tried_json(r));
    }
    return o;
}

static json_t *settings_json(void)
{
    json_t *o = json_object();
    for (size_t i = 0; i < cpl_settings_count(); i++) {
        char value[CPL_SETTINGS_TEXT];
        cpl_settings_value(&cpl_context.settings, i, value, sizeof value);
        json_object_set_new(o, cpl_settings_info(i).variable, json_string(value));
    }
    return o;
}

static void write_file(const struct cpl_record *records, size_t n)
{
    static const char *const modes[] = {CHOICES_MODE};
    const char *file = cpl_context.settings.report;
    json_t *patterns = json_array();
    for (size_t k = 0; k < n; k++)
        json_array_append_new(patterns, record_json(&records[k]));
    json_t *root = json_pack("{s:s s:i s:s s:o s:o}", "version", PACKAGE_VERSION, "ranks",
                             cpl_context.size, "mode", modes[cpl_context.settings.mode], "settings",
                             settings_json(), "patterns", patterns);
    errno = 0;
    if (!root || json_dump_file(root, file, JSON_INDENT(2) | JSON_REAL_PRECISION(9)))
        cpl_log(CPL_LOG_WARN, "report",
                "CARPOOL_REPORT: cannot write %s (%s); name a file in a writable directory", file,
                errno ? strerror(errno) : "no memory");
    json_decref(root);
}

/* This process's records as an array. */
static struct cpl_record *list_records(int *n)
{
    struct cpl_record_node *node;
    *n = 0;
    LL_COUNT(cpl_context.records, node, *n);
    struct cpl_record *list = calloc((size_t)*n + 1, sizeof *list);
    if (!list) {
        *n = 0;
        return NULL;
    }
    int k = 0;
    LL_FOREACH(cpl_context.records, node)
    list[k++] = node->record;
    return list;
}

/* Rank 0: room for everybody's records, in counts and displs (bytes). Returns NULL when there is
 * none. */
static struct cpl_record *expect(const int *n_records, int *counts, int *displs, size_t *total)
{
    *total = 0;
    for (int i = 0; i < cpl_context.size; i++) {
        counts[i] = n_records[i] * (int)sizeof(struct cpl_record);
        displs[i] = (int)(*total * sizeof(struct cpl_record));
        *total += (size_t)n_records[i];
    }
    if (*total > INT_MAX / sizeof(struct cpl_record))
        return NULL;
    return calloc(*total + 1, sizeof(struct cpl_record));
}

void cpl_report_write(void)
{
    int n, size = cpl_context.size;
    bool root = cpl_context.rank == 0;
    struct cpl_record *mine = list_records(&n), *all = NULL;
    int *ints = calloc(3 * (size_t)size, sizeof *ints); /* records, counts, displacements */
    size_t total = 0;
    if (cpl_agree_all(MPI_COMM_WORLD, mine && ints)) {
        PMPI_Gather(&n, 1, MPI_INT, ints, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (root)
            all = expect(ints, ints + size, ints + 2 * size, &total);
        if (cpl_agree_all(MPI_COMM_WORLD, !root || all))
            PMPI_Gatherv(mine, n * (int)sizeof *mine, MPI_BYTE, all, ints + size, ints + 2 * size,
                         MPI_BYTE, 0, MPI_COMM_WORLD);
        if (all)
            write_file(all, total);
        else if (root)
            cpl_log(CPL_LOG_WARN, "report", "no memory for the report; it is not written");
    }
    free(mine);
    free(all);
    free(ints);
}
