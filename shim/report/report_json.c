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

/* The most exchanges of a report: programs make communicators by the thousand. */
#define MOST_RECORDS 1000

/* Microseconds; null when they were not measured. */
static json_t *us_json(double us)
{
    return us > 0 ? json_real(us) : json_null();
}

static json_t *metrics_json(const struct cpl_metrics *m, double seconds, int64_t calls)
{
    return json_pack("{s:I s:f s:f s:I s:I s:i s:f s:f s:o}", "sends_max", (json_int_t)m->sends_max,
                     "sends_avg", m->sends_avg, "lanes_avg", m->lanes_avg, "mpi_max",
                     (json_int_t)m->mpi_max, "recvs_max", (json_int_t)m->recvs_max, "hops_max",
                     m->hops_max, "volume_factor", m->volume_factor, "modelled_us", m->modelled_us,
                     "us_per_call", us_json(calls > 0 ? seconds / (double)calls * 1e6 : 0));
}

/* Adds the members of a picture, those of `direct` and `planned` to what is there. */
static void add_picture(json_t *o, const char *picture)
{
    static const char *const sides[] = {"direct", "planned"};
    json_t *more = picture ? json_loads(picture, 0, NULL) : NULL;
    for (int k = 0; k < 2 && more; k++) {
        json_object_update(json_object_get(o, sides[k]), json_object_get(more, sides[k]));
        json_object_del(more, sides[k]);
    }
    json_object_del(more, "of");
    json_object_update(o, more);
    json_decref(more);
}

/* The candidates of trials: what the model said and what was measured. */
static json_t *tried_json(const struct cpl_record *r)
{
    json_t *list = json_array();
    for (int32_t k = 0; k < r->trials.last.n; k++) {
        const struct cpl_plan_summary *s = k > 0 ? &r->trials.tried[k - 1] : NULL;
        double modelled_us = s ? s->planned.modelled_us : r->summary.direct.modelled_us;
        json_array_append_new(
            list, json_pack("{s:s s:f s:o}", "strategy", s ? s->strategy : "direct", "modelled_us",
                            modelled_us, "measured_us", us_json(cpl_trial_us(&r->trials.last, k))));
    }
    return list;
}

static void add_summary(json_t *o, const struct cpl_record *r, const char *picture)
{
    const struct cpl_plan_summary *s = &r->summary;
    char fingerprint[24];
    snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, s->pattern_fingerprint);
    bool has_pattern = r->data_most == 0;
    json_t *more =
        json_pack("{s:s s:s* s:o* s:I s:I s:I s:I s:I s:f s:o* s:o* s:o* s:o s:o}", "considered",
                  s->strategy, "pattern", has_pattern ? fingerprint : NULL, "world",
                  has_pattern ? json_boolean(s->in_world) : NULL, "messages",
                  (json_int_t)s->n_messages, "bytes", (json_int_t)s->bytes, "straight_messages",
                  (json_int_t)s->n_straight, "straight_bytes", (json_int_t)s->straight_bytes,
                  "forwarded_bytes", (json_int_t)r->forwarded_bytes, "plan_ms", s->cost.ms,
                  "planned_together", s->cost.together ? json_true() : NULL, "times_planned",
                  s->cost.times_planned > 0 ? json_integer(s->cost.times_planned) : NULL, "made_ms",
                  s->cost.was_kept ? json_real(s->cost.made_ms) : NULL, "direct",
                  metrics_json(&s->direct, r->direct_seconds, r->calls - r->calls_planned),
                  "planned", metrics_json(&s->planned, r->planned_seconds, r->calls_planned));
    json_object_update(o, more);
    json_decref(more);
    if (r->kind == CPL_KIND_PT2PT) /* by cpl_plan_carried_promises */
        json_object_set_new(o, "decision",
                            json_pack("{s:f s:f s:f s:f}", "mpi_us", s->direct_us, "most",
                                      CPL_MOST_OF_DIRECT, "plan_us", s->planned.modelled_us,
                                      "matching_us", cpl_plan_matching_us(s)));
    if (r->windows.mpi_us > 0)
        json_object_set_new(o, "windows",
                            json_pack("{s:i s:f s:o}", "pairs", r->windows.pairs, "mpi_us",
                                      r->windows.mpi_us, "plan_us", us_json(r->windows.plan_us)));
    if (r->trials.last.rounds > 0) {
        json_object_set_new(o, "trials", json_integer(r->trials.last.n_trials));
        json_object_set_new(o, "trial_calls", json_integer(r->trials.last.tried));
        json_object_set_new(o, "tried", tried_json(r));
    }
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

static json_t *record_json(const struct cpl_record *r, const char *picture)
{
    const struct cpl_plan_summary *s = &r->summary;
    bool is_named = r->kind == CPL_KIND_PT2PT && s->known;
    json_t *o = json_pack(
        "{s:s s:i s:I s:I s:I s:s s:o* s:s* s:o* s:o* s:o* s:s* s:o* s:o* s:o* s:o*}", "kind",
        cpl_exchange_kind_name(r->kind), "ranks", r->n_ranks, "communicators",
        (json_int_t)r->n_communicators, "calls", (json_int_t)r->calls, "calls_planned",
        (json_int_t)r->calls_planned, "strategy", s->decided ? s->strategy : "none", "calls_passed",
        r->passed ? json_true() : NULL, "way", r->carrier[0] ? r->carrier : NULL, "tag",
        is_named ? json_integer(s->tag) : NULL, "ordinal",
        is_named ? json_integer(s->ordinal) : NULL, "data_bytes_max",
        r->data_most > 0 ? json_integer(r->data_most) : NULL, "left_alone",
        r->reason != CPL_LEFT_NOT ? cpl_left_alone_text((enum cpl_left_alone)r->reason) : NULL,
        "combined", r->combined > 0 ? json_integer(r->combined) : NULL, "combined_late",
        r->combined > 0 ? json_integer(r->late_combined) : NULL, "in_reductions",
        r->reductions.n > 0 ? reductions_json(r) : NULL, "ordered",
        r->ordered ? json_true() : NULL);
    if (o && s->known)
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

json_t *cpl_report_json(const struct cpl_record *records, size_t n, char *pictures,
                        size_t picture_bytes, const struct cpl_report_hosts *hosts)
{
    size_t n_listed = n < MOST_RECORDS ? n : MOST_RECORDS;
    json_t *patterns = json_array(), *settings = settings_json();
    for (size_t k = 0; k < n_listed; k++) {
        const struct cpl_plan_summary *summary = &records[k].summary;
        char *picture = NULL;
        if (summary->known && records[k].data_most == 0)
            picture = cpl_picture_find(pictures, picture_bytes, summary);
        json_array_append_new(patterns, record_json(&records[k], picture));
        if (picture) /* of several records (kinds, communicators) it is shown with the first one */
            *picture = '\0';
    }
    const struct cpl_account *a = &cpl_context.account;
    return json_pack("{s:i s:s s:o s:i s:O s:s* s:f s:I s:I s:{s:f s:f s:f s:f} s:o s:O* s:o}",
                     "schema", CPL_REPORT_SCHEMA, "version", PACKAGE_VERSION, "run",
                     cpl_report_run(hosts), "ranks", cpl_context.size, "mode",
                     json_object_get(settings, "CARPOOL_MODE"), "all_left",
                     cpl_context.told.all_left, "seconds", PMPI_Wtime() - a->start, "left_out",
                     (json_int_t)(n - n_listed), "reordered", (json_int_t)cpl_context.n_placed,
                     "account", "meetings_ms", 1e3 * a->spent[CPL_COST_MEETINGS], "planning_ms",
                     1e3 * a->spent[CPL_COST_PLANNING], "trials_ms",
                     1e3 * a->spent[CPL_COST_TRIALS], "gained_ms", 1e3 * a->gained, "settings",
                     settings, "nodes", hosts->nodes, "patterns", patterns);
}
