/* What carpool plan shows (plan.h). */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "cli/plan.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int name_width(const struct cpl_plan_results *results)
{
    size_t width = 9;
    for (size_t k = 0; k < results->n; k++)
        if (strlen(results->row[k].name) > width)
            width = strlen(results->row[k].name);
    return (int)width;
}

static int compare_times(const void *a, const void *b)
{
    const struct cpl_plan_result *x = *(const struct cpl_plan_result *const *)a,
                                 *y = *(const struct cpl_plan_result *const *)b;
    double s = x->metrics.modelled_us, t = y->metrics.modelled_us;
    return s == t ? (x > y) - (x < y) : s < t ? -1 : 1;
}

static void print_heading(const struct cpl_plan_results *results)
{
    const struct cpl_pattern *pattern = results->pattern;
    int64_t n_messages = cpl_pattern_pairs(pattern)->n_messages;
    printf("%s: %d ranks, %lld messages (%.2f a rank)", results->file, pattern->n_ranks,
           (long long)n_messages, (double)n_messages / pattern->n_ranks);
    if (pattern->pairs)
        printf(" in %lld parts", (long long)pattern->n_messages);
    printf(", %d node%s, %g bytes a unit\n", results->machine->n_nodes,
           results->machine->n_nodes == 1 ? "" : "s", results->unit_bytes);
}

static void print_short(const struct cpl_plan_result *r, int width)
{
    const struct cpl_metrics *m = &r->metrics;
    printf("%-*s %11.2f %5d %5d %6lld %6lld %6lld %7.2f %8.2f %8.2f\n", width, r->name,
           m->modelled_us, m->n_waves, m->hops_max, (long long)m->sends_max,
           (long long)m->recvs_max, (long long)m->mpi_max, m->volume_factor, r->plan_ms, r->cpu_ms);
}

static void print_wide(const struct cpl_plan_result *r, int width)
{
    const struct cpl_metrics *m = &r->metrics;
    printf("%-*s %11.2f %11.2f %5d %5d %5.2f %9lld %9.2f %9lld %9.2f %9.2f %7lld %7.2f %9.2f %9.2f "
           "%7lld %8.2f\n",
           width, r->name, m->modelled_us, m->waves_us, m->n_waves, m->hops_max, m->hops_avg,
           (long long)m->sends_max, m->sends_avg, (long long)m->recvs_max, m->recvs_avg,
           m->lanes_avg, (long long)m->mpi_max, m->volume_factor, r->plan_ms, r->cpu_ms,
           (long long)m->set_max, m->set_avg);
}

/* What no plan can beat, and how far auto is from it; where it was not asked for, the fastest. */
static void print_bounds(const struct cpl_plan_results *results,
                         const struct cpl_plan_result *fastest)
{
    const struct cpl_plan_result *told = fastest;
    double us = results->bounds.us;
    for (size_t k = 0; k < results->n; k++)
        if (strcmp(results->row[k].name, "auto") == 0)
            told = &results->row[k];
    printf("lower bounds: in two waves some rank sends or receives %lld;\n"
           "no plan takes less than %.2f us (modelled)",
           (long long)results->bounds.messages, us);
    if (us > 0)
        printf(", %s %.2f times as long", told->name, told->metrics.modelled_us / us);
    putchar('\n');
}

static void print_table(const struct cpl_plan_results *results, bool wide)
{
    const struct cpl_plan_result *row[2 * CPL_MAX_CANDIDATES];
    int width = name_width(results);
    for (size_t k = 0; k < results->n; k++)
        row[k] = &results->row[k];
    qsort(row, results->n, sizeof *row, compare_times);
    print_heading(results);
    if (wide) {
        printf("%-*s %11s %11s %5s %5s %5s %9s %9s %9s %9s %9s %7s %7s %9s %9s %7s %8s\n", width,
               "", "modelled", "barriers", "", "hops", "", "sends", "", "recvs", "", "by lanes",
               "by MPI", "volume", "plan", "plan", "set", "");
        printf("%-*s %11s %11s %5s %5s %5s %9s %9s %9s %9s %9s %7s %7s %9s %9s %7s %8s\n", width,
               "strategy", "us", "us", "waves", "max", "avg", "max", "avg", "max", "avg", "avg",
               "max", "factor", "ms", "cpu ms", "max", "avg");
    } else {
        printf("%-*s %11s %5s %5s %20s %7s %8s %8s\n", width, "", "modelled", "", "",
               "--- most of a rank -", "volume", "plan", "plan");
        printf("%-*s %11s %5s %5s %6s %6s %6s %7s %8s %8s\n", width, "strategy", "us", "waves",
               "hops", "sends", "recvs", "by MPI", "factor", "ms", "cpu ms");
    }
    for (size_t k = 0; k < results->n; k++)
        (wide ? print_wide : print_short)(row[k], width);
    for (size_t k = 0; k < results->n; k++)
        if (strcmp(results->row[k].name, results->row[k].chosen) != 0)
            printf("%s chose %s\n", results->row[k].name, results->row[k].chosen);
    print_bounds(results, row[0]);
}

static void print_tsv(const struct cpl_plan_results *results)
{
    printf("strategy\twaves\tsends_max\tsends_avg\trecvs_max\trecvs_avg\thops_max\thops_avg\t"
           "volume_factor\tmodelled_us\tplan_ms\tset_max\tset_avg\tlanes_avg\tmpi_max\tcpu_"
           "ms\tbound_us\n");
    for (size_t k = 0; k < results->n; k++) {
        const struct cpl_plan_result *r = &results->row[k];
        const struct cpl_metrics *m = &r->metrics;
        printf("%s\t%d\t%lld\t%.4f\t%lld\t%.4f\t%d\t%.4f\t%.4f\t%.4f\t%.3f\t%lld\t%.4f\t%.4f\t"
               "%lld\t%.3f\t%.4f\n",
               r->name, m->n_waves, (long long)m->sends_max, m->sends_avg, (long long)m->recvs_max,
               m->recvs_avg, m->hops_max, m->hops_avg, m->volume_factor, m->modelled_us, r->plan_ms,
               (long long)m->set_max, m->set_avg, m->lanes_avg, (long long)m->mpi_max, r->cpu_ms,
               results->bounds.us);
    }
}

static json_t *result_json(const struct cpl_plan_result *r)
{
    const struct cpl_metrics *m = &r->metrics;
    return json_pack("{s:s s:s s:i s:I s:f s:I s:f s:i s:f s:f s:f s:f s:f s:f s:I s:f s:f s:I}",
                     "strategy", r->name, "chosen", r->chosen, "waves", m->n_waves, "sends_max",
                     (json_int_t)m->sends_max, "sends_avg", m->sends_avg, "recvs_max",
                     (json_int_t)m->recvs_max, "recvs_avg", m->recvs_avg, "hops_max", m->hops_max,
                     "hops_avg", m->hops_avg, "volume_factor", m->volume_factor, "modelled_us",
                     m->modelled_us, "waves_us", m->waves_us, "plan_ms", r->plan_ms, "cpu_ms",
                     r->cpu_ms, "set_max", (json_int_t)m->set_max, "set_avg", m->set_avg,
                     "lanes_avg", m->lanes_avg, "mpi_max", (json_int_t)m->mpi_max);
}

static bool print_json(const struct cpl_plan_results *results)
{
    const struct cpl_pattern *pattern = results->pattern;
    json_t *rows = json_array();
    for (size_t k = 0; rows && k < results->n; k++)
        json_array_append_new(rows, result_json(&results->row[k]));
    json_t *root =
        json_pack("{s:s s:s s:i s:I s:I s:i s:f s:I s:f s:o}", "version", PACKAGE_VERSION, "file",
                  results->file, "ranks", pattern->n_ranks, "messages",
                  (json_int_t)cpl_pattern_pairs(pattern)->n_messages, "parts",
                  (json_int_t)pattern->n_messages, "nodes", results->machine->n_nodes, "unit_bytes",
                  results->unit_bytes, "bound_two_waves", (json_int_t)results->bounds.messages,
                  "bound_us", results->bounds.us, "strategies", rows);
    bool done = root && json_dumpf(root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(10)) == 0;
    putchar('\n');
    json_decref(root);
    return done;
}

bool cpl_plan_tell(const struct cpl_plan_results *results, enum cpl_plan_format format, bool wide)
{
    bool done = true;
    if (format == CPL_PLAN_TABLE)
        print_table(results, wide);
    else if (format == CPL_PLAN_TSV)
        print_tsv(results);
    else
        done = print_json(results);
    return done;
}
