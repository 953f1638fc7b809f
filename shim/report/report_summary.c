/* The summary of a profile run (report.h): a screenful, however many ranks and exchanges. */
#include "shim/base/log.h"
#include "shim/report/report.h"
#include "shim/state/context.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define MOST_LINES 8

static void describe(const struct cpl_record *r)
{
    const struct cpl_plan_summary *s = &r->summary;
    char name[40], sends[40] = "-", modelled[40] = "-", measured[24] = "-";
    snprintf(name, sizeof name, "%s", cpl_exchange_kind_name(r->kind));
    if (r->kind == CPL_KIND_PT2PT && s->known)
        snprintf(name, sizeof name, "pt2pt, tag %d", s->tag);
    else if (r->data_most > 0 && r->data_most < INT64_MAX)
        snprintf(name, sizeof name, "%s, < %lldK", cpl_exchange_kind_name(r->kind),
                 (long long)(r->data_most + 1) / 1024);
    if (s->known) {
        snprintf(sends, sizeof sends, "%lld -> %lld", (long long)s->direct.sends_max,
                 (long long)s->planned.sends_max);
        snprintf(modelled, sizeof modelled, "%.1f -> %.1f", s->direct.modelled_us,
                 s->planned.modelled_us);
    }
    if (r->direct_seconds > 0)
        snprintf(measured, sizeof measured, "%.1f", r->direct_seconds / (double)r->calls * 1e6);
    cpl_log_plain("  %-20s %6d %9lld %11s %13s %17s  %s%s", name, r->n_ranks, (long long)r->calls,
                  measured, sends, modelled,
                  r->reason == CPL_LEFT_PROFILED ? "carry it by " : "leave it to MPI",
                  r->reason == CPL_LEFT_PROFILED ? s->strategy : "");
    if (r->reason != CPL_LEFT_PROFILED)
        cpl_log_plain("    (%s)", cpl_left_alone_text((enum cpl_left_alone)r->reason));
}

static void tell_totals(const struct cpl_record *records, size_t n)
{
    double all = 0, saved = 0;
    for (size_t k = 0; k < n; k++) {
        const struct cpl_plan_summary *s = &records[k].summary;
        all += records[k].direct_seconds;
        if (records[k].reason == CPL_LEFT_PROFILED)
            saved +=
                (s->direct.modelled_us - s->planned.modelled_us) * 1e-6 * (double)records[k].calls;
    }
    cpl_log_plain(
        "measured in these exchanges: %.3g s of the run; by the model mode auto would save %.3g s",
        all, saved);
}

/* What the times are of. */
static void tell_machine(const json_t *run)
{
    const json_t *builtin = json_object_get(run, "machine_builtin");
    if (builtin)
        cpl_log_plain(
            "modelled times are of %s (%s), not of this machine; `carpool calibrate` measures it",
            json_string_value(json_object_get(run, "machine")), json_string_value(builtin));
    else
        cpl_log_plain("modelled times are of the machine in %s",
                      json_string_value(json_object_get(run, "machine")));
    if (json_is_true(json_object_get(run, "cores_shared")))
        cpl_log_plain(
            "more ranks than cores (%lld): measured times are mostly waiting for a core%s",
            (long long)json_integer_value(json_object_get(run, "cores")),
            json_is_true(json_object_get(run, "yields")) ? "" : "; use carpool run --yield");
}

void cpl_report_summarize(const struct cpl_record *records, size_t n, const json_t *run,
                          const char *file)
{
    cpl_log_plain("profile of %d ranks, %.3g s from MPI_Init to MPI_Finalize; nothing was rerouted",
                  cpl_context.size, PMPI_Wtime() - cpl_context.account.start);
    if (cpl_context.told.all_left)
        cpl_log_plain("all calls were left to MPI: %s", cpl_context.told.all_left);
    else if (n == 0)
        cpl_log_plain(
            "no exchanges were seen: no neighborhood collectives, no point-to-point messages on a "
            "communicator of all ranks");
    else
        cpl_log_plain("  %-20s %6s %9s %11s %13s %17s  %s", "exchange", "ranks", "calls",
                      "measured us", "busiest sends", "modelled us", "mode auto would");
    for (size_t k = 0; k < n && k < MOST_LINES; k++)
        describe(&records[k]);
    if (n > MOST_LINES)
        cpl_log_plain("  and %zu more exchanges%s", n - MOST_LINES,
                      file[0] ? ", see the report" : "");
    if (n > 0) {
        tell_totals(records, n);
        tell_machine(run);
    }
    if (cpl_context.placed.n_possible > 0)
        cpl_log_plain(
            "%lld communicators that the program lets MPI reorder could be placed better, by the "
            "model %.1f us instead of %.1f; CARPOOL_REORDER=auto does, for programs that take "
            "their "
            "ranks from them",
            (long long)cpl_context.placed.n_possible, cpl_context.placed.after_us,
            cpl_context.placed.before_us);
    if (file[0])
        cpl_log_plain("report in %s; `carpool report %s` shows it, with --html=PAGE as a page",
                      file, file);
    else if (!cpl_report_has_file())
        cpl_log_plain("CARPOOL_OUTPUT=DIR keeps the report and the patterns");
}
