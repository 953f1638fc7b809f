/* The report's contents (report.h; carpool(7), FILES, says what the members mean). */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "shim/report/picture.h"
#include "shim/report/report.h"
#include "shim/state/context.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

/* The most exchanges of a report: programs make communicators by the thousand. */
#define MOST_RECORDS 1000

/* Seconds over calls, in microseconds; null when there were none or they were not measured. */
static json_t *per_call_us(double seconds, int64_t calls)
{
    return calls > 0 && seconds > 0 ? json_real(seconds / (double)calls * 1e6) : json_null();
}

static json_t *metrics_json(const struct cpl_metrics *m, double seconds, int64_t calls)
{
    return json_pack("{s:I s:f s:f s:I s:I s:i s:f s:f s:o}", "sends_max", (json_int_t)m->sends_max,
                     "sends_avg", m->sends_avg, "lanes_avg", m->lanes_avg, "mpi_max",
                     (json_int_t)m->mpi_max, "recvs_max", (json_int_t)m->recvs_max, "hops_max",
                     m->hops_max, "volume_factor", m->volume_factor, "modelled_us", m->modelled_us,
                     "us_per_call", per_call_us(seconds, calls));
}

static json_t *counts_json(const struct cpl_picture *picture, int part)
{
    const int64_t *counts = cpl_picture_counts(picture, part);
    json_t *array = json_array();
    for (int32_t k = 0; array && k < picture->n_bins; k++)
        json_array_append_new(array, json_integer(counts[k]));
    return array;
}

/* The cells of a row that are not empty, as text: "COLUMN:COUNT COLUMN:COUNT". */
static json_t *row_json(const int64_t *cells, int32_t n)
{
    char text[CPL_PICTURE_CELLS * 24];
    size_t used = 0;
    text[0] = '\0';
    for (int32_t k = 0; k < n; k++)
        if (cells[k])
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%d:%lld", used ? " " : "",
                                     k, (long long)cells[k]);
    return json_string(text);
}

static json_t *cells_json(const struct cpl_picture *picture, int part)
{
    const int64_t *counts = cpl_picture_counts(picture, part);
    json_t *rows = json_array();
    for (int32_t i = 0; rows && i < picture->n_cells; i++)
        json_array_append_new(
            rows, row_json(counts + (size_t)i * (size_t)picture->n_cells, picture->n_cells));
    return rows;
}

/* Pairs [largest number of bytes, messages] of the classes that are not empty. */
static json_t *sizes_json(const struct cpl_picture *picture)
{
    json_t *array = json_array();
    for (int k = 0; array && k < CPL_SIZE_CLASSES; k++) {
        json_int_t most = ((json_int_t)1 << k) - 1;
        if (most > picture->largest)
            most = picture->largest;
        if (picture->size_class[k])
            json_array_append_new(array,
                                  json_pack("[I, I]", most, (json_int_t)picture->size_class[k]));
    }
    return array;
}

static json_t *ranked_json(const struct cpl_picture *picture)
{
    json_t *array = json_array();
    for (int k = 0; array && k < picture->n_tried; k++)
        json_array_append_new(array, json_pack("{s:s s:f}", "strategy", picture->tried[k].strategy,
                                               "modelled_us", picture->tried[k].us));
    return array;
}

static void add_side(json_t *side, const struct cpl_picture *picture,
                     const struct cpl_traffic *traffic, bool planned)
{
    static const char *const where[] = {"inside", "between"};
    int next = planned ? 1 : 0; /* the parts of both sides alternate */
    for (int k = 0; k < 2; k++)
        json_object_set_new(side, where[k],
                            json_pack("{s:I s:I}", "messages", (json_int_t)traffic->messages[k],
                                      "bytes", (json_int_t)traffic->bytes[k]));
    json_object_set_new(side, "sends", counts_json(picture, CPL_DIRECT_SENDS + next));
    json_object_set_new(side, "recvs", counts_json(picture, CPL_DIRECT_RECVS + next));
    json_object_set_new(side, "cells", cells_json(picture, CPL_DIRECT_CELLS + next));
    json_object_set_new(side, "cell_bytes", cells_json(picture, CPL_DIRECT_BYTES + next));
}

static json_t *borders_json(const struct cpl_picture *picture)
{
    json_t *array = json_array();
    for (int32_t k = 0; array && k < picture->n_borders; k++)
        json_array_append_new(array, json_integer(picture->border[k]));
    return array;
}

static void add_picture(json_t *o, const struct cpl_picture *picture)
{
    if (!picture)
        return;
    json_object_set_new(o, "nodes", json_integer(picture->n_nodes));
    json_object_set_new(o, "bytes_min", json_integer(picture->smallest));
    json_object_set_new(o, "bytes_max", json_integer(picture->largest));
    json_object_set_new(o, "sizes", sizes_json(picture));
    json_object_set_new(o, "ranked", ranked_json(picture));
    json_object_set_new(o, "cell_ranks", json_integer(picture->cell_ranks));
    json_object_set_new(o, "bin_ranks", json_integer(picture->bin_ranks));
    json_object_set_new(o, "node_borders", borders_json(picture));
    add_side(json_object_get(o, "direct"), picture, &picture->direct, false);
    add_side(json_object_get(o, "planned"), picture, &picture->planned, true);
}

/* The candidates of trials: what the model said and what was measured. */
static json_t *tried_json(const struct cpl_record *r)
{
    json_t *list = json_array();
    for (int32_t k = 0; k < r->trials.n_tried; k++)
        json_array_append_new(
            list, json_pack("{s:s s:f s:o}", "strategy", r->trials.tried[k], "modelled_us",
                            r->trials.modelled_us[k], "measured_us",
                            r->trials.us[k] > 0 ? json_real(r->trials.us[k]) : json_null()));
    return list;
}

/* How long blocking calls took over the run. Calls that passed without a look have no point. */
static json_t *times_json(const struct cpl_record_times *r)
{
    json_t *list = json_array();
    for (int k = 0; k < CPL_TIMELINE_POINTS; k++) {
        const struct cpl_record_time *p = &r->point[k];
        if (p->most_us > 0)
            json_array_append_new(
                list,
                json_pack("{s:I s:f s:f s:f s:f s:b}", "first_call", (json_int_t)(k * r->width),
                          "least_us", (double)p->least_us, "mean_us", (double)p->mean_us, "most_us",
                          (double)p->most_us, "planned", (double)p->planned, "trial", p->tried));
    }
    return json_pack("{s:I s:o}", "calls_per_point", (json_int_t)r->width, "points", list);
}

/* The name of the exchange that follows. */
static json_t *next_json(const struct cpl_record_order *r)
{
    const char *kind = cpl_exchange_kind_name((enum cpl_neighbor_kind)r->next_kind);
    char pattern[24];
    json_t *o = json_pack("{s:s}", "kind", kind);
    snprintf(pattern, sizeof pattern, "%016" PRIx64, r->next_pattern);
    if (r->next_pattern)
        json_object_set_new(o, "pattern", json_string(pattern));
    if (r->next_kind == CPL_KIND_PT2PT) {
        json_object_set_new(o, "tag", json_integer(r->next_tag));
        json_object_set_new(o, "ordinal", json_integer(r->next_ordinal));
    }
    return o;
}

static json_t *order_json(const struct cpl_record_order *r)
{
    return json_pack("{s:o s:{s:i s:i} s:I}", "before", next_json(r), "units", "given",
                     r->units.given, "ordered", r->units.ordered, "calls_ordered",
                     (json_int_t)r->calls);
}

static void add_summary(json_t *o, const struct cpl_record *r, const struct cpl_picture *picture)
{
    const struct cpl_plan_summary *s = &r->summary;
    char fingerprint[24], file[48];
    snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, s->pattern_fingerprint);
    snprintf(file, sizeof file, "pattern-%s.mtx", fingerprint);
    json_object_set_new(o, "considered", json_string(s->strategy));
    if (r->data_most == 0)
        json_object_set_new(o, "pattern", json_string(fingerprint));
    if (picture && picture->is_written)
        json_object_set_new(o, "file", json_string(file));
    if (r->data_most == 0)
        json_object_set_new(o, "world", json_boolean(s->in_world));
    json_object_set_new(o, "messages", json_integer(s->n_messages));
    json_object_set_new(o, "bytes", json_integer(s->bytes));
    json_object_set_new(o, "straight_messages", json_integer(s->n_straight));
    json_object_set_new(o, "straight_bytes", json_integer(s->straight_bytes));
    json_object_set_new(o, "forwarded_bytes", json_integer(r->forwarded_bytes));
    json_object_set_new(o, "plan_ms", json_real(s->cost.ms));
    if (s->cost.together)
        json_object_set_new(o, "planned_together", json_true());
    if (s->cost.times_planned > 0)
        json_object_set_new(o, "times_planned", json_integer(s->cost.times_planned));
    if (s->cost.was_kept)
        json_object_set_new(o, "made_ms", json_real(s->cost.made_ms));
    json_object_set_new(o, "direct",
                        metrics_json(&s->direct, r->direct_seconds, r->calls - r->calls_planned));
    json_object_set_new(o, "planned",
                        metrics_json(&s->planned, r->planned_seconds, r->calls_planned));
    if (r->trials.n_tried > 0) {
        json_object_set_new(o, "trials", json_integer(r->trials.n));
        json_object_set_new(o, "trial_calls", json_integer(r->trials.calls));
        json_object_set_new(o, "tried", tried_json(r));
    }
    if (r->times.width > 0)
        json_object_set_new(o, "times", times_json(&r->times));
    add_picture(o, picture);
}

/* What reductions carried. */
static json_t *reductions_json(const struct cpl_record *r)
{
    return json_pack("{s:I s:f s:I s:I s:b s:f}", "reductions", (json_int_t)r->reductions.n,
                     "sends_max_per_reduction",
                     (double)r->reductions.sends / (double)r->reductions.n, "messages_carried",
                     (json_int_t)r->reductions.messages, "late", (json_int_t)r->reductions.late,
                     "mapped", r->reductions.mapped, "modelled_us", r->summary.embedded_us);
}

static json_t *record_json(const struct cpl_record *r, const struct cpl_picture *picture)
{
    const struct cpl_plan_summary *s = &r->summary;
    json_t *o =
        json_pack("{s:s s:i s:I s:I s:I s:s}", "kind", cpl_exchange_kind_name(r->kind), "ranks",
                  r->n_ranks, "communicators", (json_int_t)r->n_communicators, "calls",
                  (json_int_t)r->calls, "calls_planned", (json_int_t)r->calls_planned, "strategy",
                  s->decided ? s->strategy : "none");
    if (!o)
        return NULL;
    if (r->passed)
        json_object_set_new(o, "calls_passed", json_true());
    if (r->way[0])
        json_object_set_new(o, "way", json_string(r->way));
    if (r->kind == CPL_KIND_PT2PT && s->known) {
        json_object_set_new(o, "tag", json_integer(s->tag));
        json_object_set_new(o, "ordinal", json_integer(s->ordinal));
    }
    if (r->data_most > 0)
        json_object_set_new(o, "data_bytes_max", json_integer(r->data_most));
    if (r->reason != CPL_LEFT_NOT)
        json_object_set_new(o, "left_alone",
                            json_string(cpl_left_alone_text((enum cpl_left_alone)r->reason)));
    if (r->rides > 0) {
        json_object_set_new(o, "combined", json_integer(r->rides));
        json_object_set_new(o, "combined_late", json_integer(r->late_rides));
    }
    if (r->reductions.n > 0)
        json_object_set_new(o, "in_reductions", reductions_json(r));
    if (r->order.units.given > 0)
        json_object_set_new(o, "order", order_json(&r->order));
    if (s->known)
        add_summary(o, r, picture);
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

/* A pattern and plan of several records (kinds, communicators) is shown with the first one only. */
static bool is_shown(const struct cpl_record *records, size_t k)
{
    for (size_t i = 0; i < k; i++)
        if (records[i].summary.known &&
            records[i].summary.pattern_fingerprint == records[k].summary.pattern_fingerprint &&
            records[i].summary.plan_fingerprint == records[k].summary.plan_fingerprint)
            return true;
    return false;
}

json_t *cpl_report_json(const struct cpl_record *records, size_t n, const unsigned char *pictures,
                        size_t picture_bytes, const struct cpl_report_hosts *hosts)
{
    size_t n_listed = n < MOST_RECORDS ? n : MOST_RECORDS;
    json_t *patterns = json_array(), *settings = settings_json();
    for (size_t k = 0; k < n_listed; k++) {
        const struct cpl_plan_summary *summary = &records[k].summary;
        const struct cpl_picture *picture = NULL;
        if (summary->known && records[k].data_most == 0 && !is_shown(records, k))
            picture = cpl_picture_find(pictures, picture_bytes, summary);
        json_array_append_new(patterns, record_json(&records[k], picture));
    }
    json_t *reorderable = json_pack(
        "{s:I s:f s:f}", "communicators", (json_int_t)cpl_context.placed.n_possible, "before_us",
        cpl_context.placed.before_us, "after_us", cpl_context.placed.after_us);
    const struct cpl_account *a = &cpl_context.account;
    json_t *account =
        json_pack("{s:f s:f s:f s:f}", "meetings_ms", 1e3 * a->spent[CPL_COST_MEETINGS],
                  "planning_ms", 1e3 * a->spent[CPL_COST_PLANNING], "trials_ms",
                  1e3 * a->spent[CPL_COST_TRIALS], "gained_ms", 1e3 * a->gained);
    return json_pack(
        "{s:i s:s s:o s:i s:O s:s* s:f s:I s:I s:o s:o s:o s:O* s:o}", "schema", CPL_REPORT_SCHEMA,
        "version", PACKAGE_VERSION, "run", cpl_report_run(hosts), "ranks", cpl_context.size, "mode",
        json_object_get(settings, "CARPOOL_MODE"), "all_left", cpl_context.told.all_left, "seconds",
        PMPI_Wtime() - cpl_context.account.start, "left_out", (json_int_t)(n - n_listed),
        "reordered", (json_int_t)cpl_context.placed.n, "reorderable", reorderable, "account",
        account, "settings", settings, "nodes", hosts->nodes, "patterns", patterns);
}
