/* carpool report --html: the page (report_read.h). No scripts, no links to elsewhere; pictures are
 * inline SVG (report_svg.h). */
#include "cli/report_pictures.h"
#include "cli/report_read.h"
#include "cli/report_svg.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Exchanges that are shown with pictures; all are in the table. */
#define MOST_SECTIONS 24

/* Colours by what they are for; h0 to h5 are the steps of the matrices, in all reports alike. */
static const char colors[] =
    ":root{--fg:#1c2430;--sub:#56606e;--bg:#fff;--soft:#f3f5f8;--line:#d5dae1;--axis:#56606e;"
    "--grid:#e3e7ec;--mpi:#c8551b;--mpisoft:#f8e3d8;--plan:#1f5fa8;--other:#b8c1cc;--node:#c8551b;"
    "--h0:#c6dbef;--h1:#9ecae1;--h2:#6baed6;--h3:#3182bd;--h4:#08519c;--h5:#08254f}"
    "@media(prefers-color-scheme:dark){:root{color-scheme:dark;--fg:#dfe5ec;--sub:#9aa5b3;"
    "--bg:#14181e;--soft:#1f252d;--line:#39424d;--axis:#9aa5b3;--grid:#2a313a;--mpi:#f0884f;"
    "--mpisoft:#4a2c1c;--plan:#63a4f0;--other:#5c6774;--node:#f0884f;--h0:#123a5e;--h1:#1b5489;"
    "--h2:#2b74b5;--h3:#5196d3;--h4:#8dbde8;--h5:#d3e8fb}}";

static const char style[] =
    "body{font:15px/1.5 system-ui,'DejaVu Sans',sans-serif;color:var(--fg);max-width:1060px;"
    "margin:24px auto;padding:0 "
    "16px;background:var(--bg)}p,code,td.n{overflow-wrap:anywhere}td.n{min-width:9em}"
    "h1{font-size:26px;margin:0 0 4px}h2{font-size:20px;margin:40px 0 4px;padding-top:12px;"
    "border-top:2px solid var(--line)}h3{font-size:16px;margin:22px 0 4px}a{color:var(--plan)}"
    ".sub{color:var(--sub);margin:0 0 16px}table{border-collapse:collapse;margin:8px 0}"
    "th,td{padding:4px 10px;border-bottom:1px solid var(--grid);"
    "text-align:right;vertical-align:top}th{background:var(--soft);font-weight:600}"
    "td.n,th.n{text-align:left}th[colspan]{text-align:center}tr.why td{color:var(--sub);"
    "border-bottom:1px solid var(--other)}tr:has(+.why) "
    "td{border-bottom:0}.verdict{background:var(--soft);border-left:4px solid var(--plan);"
    "padding:8px 12px;margin:8px 0}.verdict.mpi{border-color:var(--other)}"
    ".row{display:flex;flex-wrap:wrap;gap:16px;align-items:flex-start}code{background:var(--soft);"
    "padding:1px 4px}"
    ".legend .s{margin-left:8px;display:inline-block}.legend i{display:inline-block;width:14px;"
    "height:14px;margin-right:4px;vertical-align:-2px;border:1px solid var(--other)}"
    ".bad{color:var(--mpi);font-weight:600}.wide{overflow-x:auto}svg{max-width:100%;height:auto}"
    "svg text{font:12px system-ui,'DejaVu Sans',sans-serif;fill:var(--fg)}svg .t{font-size:14px;"
    "font-weight:600}.m{text-anchor:middle}.e{text-anchor:end}.c{font-weight:600}"
    ".f{fill:var(--bg);stroke:var(--other)}.k{stroke:var(--axis);fill:none}"
    ".g{stroke:var(--grid);fill:none}.nb{stroke:var(--node);stroke-dasharray:4 3;fill:none}"
    ".d{stroke:var(--mpi);stroke-width:2;fill:none}.da{fill:var(--mpisoft)}"
    ".p{stroke:var(--plan);stroke-width:2;fill:none}"
    ".bo{fill:var(--other);background:var(--other)}.bd{fill:var(--mpi);background:var(--mpi)}"
    ".bp{fill:var(--plan);background:var(--plan)}.h0{fill:var(--h0);background:var(--h0)}"
    ".h1{fill:var(--h1);background:var(--h1)}.h2{fill:var(--h2);background:var(--h2)}"
    ".h3{fill:var(--h3);background:var(--h3)}.h4{fill:var(--h4);background:var(--h4)}"
    ".h5{fill:var(--h5);background:var(--h5)}"
    "@media(max-width:820px){.o{display:none}th,td{padding:4px 5px}td.n{min-width:5em}.wide "
    "td.n{min-width:0;overflow-wrap:break-word}}"
    "@media print{h2{break-before:page}}";

void cpl_html_begin(FILE *out, const char *title)
{
    fprintf(out,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
            "<title>%s</title>\n<style>%s%s</style>\n</head>\n<body>\n<h1>%s</h1>\n",
            title, colors, style, title);
}

void cpl_html_end(FILE *out)
{
    fputs("</body>\n</html>\n", out);
}

static void put(FILE *out, const char *before, const char *text, const char *after)
{
    fputs(before, out);
    cpl_html_text(out, text);
    fputs(after, out);
}

/* A table cell with a whole number, or a dash when there is none. Class o is left out on narrow
 * pages. */
static void cell(FILE *out, const json_t *object, const char *key, const char *class)
{
    if (cpl_report_has_number(object, key))
        fprintf(out, "<td class=\"%s\">%.0f</td>", class, cpl_report_number(object, key));
    else
        fprintf(out, "<td class=\"%s\">&ndash;</td>", class);
}

static void measured_cell(FILE *out, const struct cpl_measured *measured)
{
    fputs("<td>", out);
    for (int k = 0; k < 2; k++) {
        fputs(k ? " &rarr; " : "", out);
        if (measured->us[k] >= 0)
            fprintf(out, "%.1f", measured->us[k]);
        else
            fputs("&ndash;", out);
    }
    fputs("</td>", out);
}

/* "12.1 &rarr; 5.3": by MPI, then by the plan. */
static void pair_cell(FILE *out, const json_t *p, const char *key, int digits, const char *class)
{
    static const char *const sides[] = {"direct", "planned"};
    fprintf(out, "<td class=\"%s\">", class);
    for (int k = 0; k < 2; k++) {
        const json_t *side = json_object_get(p, sides[k]);
        fputs(k ? " &rarr; " : "", out);
        if (cpl_report_has_number(side, key))
            fprintf(out, "%.*f", digits, cpl_report_number(side, key));
        else
            fputs("&ndash;", out);
    }
    fputs("</td>", out);
}

static void table_row(FILE *out, const json_t *p, size_t number, bool has_section)
{
    char name[160], outcome[200], why[400];
    struct cpl_measured measured;
    cpl_report_name(p, name, sizeof name);
    cpl_report_outcome(p, outcome, sizeof outcome);
    fprintf(out, "<tr><td>%zu</td><td class=\"n\">", number);
    if (has_section)
        fprintf(out, "<a href=\"#e%zu\">", number);
    cpl_html_text(out, name);
    fprintf(out, "%s</td>", has_section ? "</a>" : "");
    cell(out, p, "ranks", "o");
    cell(out, p, "calls", "");
    cpl_report_measured(p, &measured);
    measured_cell(out, &measured);
    pair_cell(out, p, "sends_max", 0, "o");
    pair_cell(out, p, "modelled_us", 1, "");
    cell(out, p, "messages", "o");
    cell(out, p, "bytes", "o");
    put(out, "</tr>\n<tr class=\"why\"><td></td><td class=\"n\" colspan=\"8\">", outcome, "");
    put(out, "", cpl_report_reason(p, why, sizeof why), "");
    put(out, measured.how[0] ? "; " : "", measured.how, "</td></tr>\n");
}

static void words(FILE *out, const json_t *patterns)
{
    struct cpl_word words[CPL_MOST_WORDS];
    size_t n = cpl_report_words(patterns, words);
    fputs(n > 0 ? "<ul class=\"sub\">\n" : "", out);
    for (size_t k = 0; k < n; k++) {
        put(out, "<li><b>", words[k].word, "</b>: ");
        put(out, "", words[k].doc, "</li>\n");
    }
    fputs(n > 0 ? "</ul>\n" : "", out);
}

static void overview(FILE *out, const json_t *report)
{
    const json_t *patterns = json_object_get(report, "patterns");
    size_t n = json_array_size(patterns);
    if (json_object_get(report, "all_left")) {
        put(out, "<p>All calls were left to MPI: ", cpl_report_text(report, "all_left"), ".</p>\n");
        return;
    }
    if (n == 0) {
        fputs("<p>No exchanges were seen: no neighborhood collectives on communicators of several "
              "ranks, and no point-to-point messages on communicators of all ranks.</p>\n",
              out);
        return;
    }
    fputs("<h2>All exchanges</h2>\n<div class=\"wide\"><table>\n<tr><th>no.</th><th "
          "class=\"n\">exchange</th>"
          "<th class=\"o\">ranks</th><th>calls</th><th>measured &micro;s</th>"
          "<th class=\"o\">most sent by a rank</th><th>modelled &micro;s</th><th "
          "class=\"o\">messages of a "
          "call</th><th class=\"o\">its bytes</th></tr>\n",
          out);
    for (size_t k = 0; k < n; k++)
        table_row(out, json_array_get(patterns, k), k + 1, k < MOST_SECTIONS);
    fputs("</table></div>\n"
          "<p class=\"sub\">Before the arrow: every message alone, by MPI. Behind it: by the plan, "
          "combined messages through other ranks. <b>Measured</b>: a call in this run, the median "
          "of the slowest rank, where nothing else is said; more ranks than cores, or a late rank, "
          "show in it. <b>Modelled</b>: one "
          "exchange by the cost model, with a core for every rank.</p>\n",
          out);
    words(out, patterns);
}

static void fact(FILE *out, const char *name, const char *format, double value)
{
    char text[80];
    snprintf(text, sizeof text, format, value);
    put(out, "<tr><td class=\"n\">", name, "</td>");
    put(out, "<td>", text, "</td></tr>\n");
}

static void facts(FILE *out, const json_t *p)
{
    char forwarded[120];
    snprintf(forwarded, sizeof forwarded, "bytes forwarded by intermediate ranks, all calls%s",
             cpl_report_forwarders(p));
    fputs("<table>\n", out);
    fact(out,
         json_is_true(json_object_get(p, "calls_passed"))
             ? "calls looked at; more passed without a look"
             : "calls",
         "%.0f", cpl_report_number(p, "calls"));
    fact(out, "communicators that came and went with this plan", "%.0f",
         cpl_report_number(p, "communicators"));
    fact(out, "messages in one call", "%.0f", cpl_report_number(p, "messages"));
    fact(out, "bytes in one call", "%.0f", cpl_report_number(p, "bytes"));
    if (cpl_report_has_number(p, "bytes_max")) {
        fact(out, "smallest message, bytes", "%.0f", cpl_report_number(p, "bytes_min"));
        fact(out, "largest message, bytes", "%.0f", cpl_report_number(p, "bytes_max"));
    }
    if (cpl_report_integer(p, "straight_messages") > 0) {
        fact(out, "further messages, above CARPOOL_SIZE_LIMIT: always sent straight", "%.0f",
             cpl_report_number(p, "straight_messages"));
        fact(out, "their bytes", "%.0f", cpl_report_number(p, "straight_bytes"));
    }
    fact(out, forwarded, "%.0f", cpl_report_number(p, "forwarded_bytes"));
    fact(out, "bytes carried, planned over direct", "%.2f",
         cpl_report_number(json_object_get(p, "planned"), "volume_factor"));
    fact(out, "combined messages by lanes, through shared memory, of a rank on average", "%.1f",
         cpl_report_number(json_object_get(p, "planned"), "lanes_avg"));
    fact(out, "messages by MPI of the busiest rank", "%.0f",
         cpl_report_number(json_object_get(p, "planned"), "mpi_max"));
    fact(out, "combined messages that carry one message, at most", "%.0f",
         cpl_report_number(json_object_get(p, "planned"), "hops_max"));
    bool was_kept = cpl_report_has_number(p, "made_ms");
    fact(out, was_kept ? "time to read the plan from the cache, ms" : "time to plan, ms", "%.1f",
         cpl_report_number(p, "plan_ms"));
    if (cpl_report_integer(p, "times_planned") > 1)
        fact(out, "times it was planned, within that time", "%.0f",
             cpl_report_number(p, "times_planned"));
    if (was_kept)
        fact(out, "time that planning it took, ms", "%.1f", cpl_report_number(p, "made_ms"));
    fputs("</table>\n", out);
}

static void section(FILE *out, const json_t *patterns, size_t number, const char *directory)
{
    const json_t *p = json_array_get(patterns, number - 1);
    char name[160], outcome[200], why[400], sum[400];
    bool carried = cpl_report_integer(p, "calls_planned") > 0;
    cpl_report_name(p, name, sizeof name);
    cpl_report_outcome(p, outcome, sizeof outcome);
    fprintf(out, "<h2 id=\"e%zu\">%zu. ", number, number);
    cpl_html_text(out, name);
    fprintf(out, " on %lld ranks</h2>\n", (long long)cpl_report_integer(p, "ranks"));
    fprintf(out, "<p class=\"verdict%s\"><b>", carried ? "" : " mpi");
    outcome[0] = outcome[0] == 'l' ? 'L' : 'C';
    put(out, "", outcome, "</b>");
    put(out, "", cpl_report_reason(p, why, sizeof why), "");
    if (!carried && json_is_string(json_object_get(p, "considered")))
        put(out, ". Best plan by the model: ", cpl_report_text(p, "considered"), "");
    put(out, ". ", cpl_report_sum(p, sum, sizeof sum), "</p>\n");
    if (cpl_report_is_ordered(p))
        fputs("<p>Messages leave first to the ranks that send most in what follows.</p>\n", out);
    if (!json_object_get(p, "direct"))
        return;
    cpl_html_times(out, p);
    cpl_html_heats(out, p);
    cpl_html_loads(out, p);
    fputs("<h3>Figures</h3>\n<div class=\"row\"><div>\n", out);
    facts(out, p);
    fputs("</div>\n", out);
    cpl_html_sizes(out, p);
    fputs("</div>\n", out);
    if (!json_object_get(json_object_get(p, "direct"), "cells"))
        fputs("<p class=\"sub\">No pictures: an exchange above has the same pattern and plan, or "
              "the report has enough of them.</p>\n",
              out);
    if (json_is_string(json_object_get(p, "file"))) {
        char nodes[64];
        put(out, "<p>Plan it again: <code>carpool plan --unit 1",
            cpl_report_nodes_option(p, nodes, sizeof nodes), " ");
        put(out, "", directory, "");
        put(out, "", cpl_report_text(p, "file"), "</code></p>\n");
    }
}

static void settings(FILE *out, const json_t *report)
{
    json_t *object = json_object_get(report, "settings");
    const char *name;
    json_t *value;
    fputs("<h2>Settings of this run</h2>\n<table>\n", out);
    json_object_foreach(object, name, value)
    {
        put(out, "<tr><td class=\"n\">", name, "</td>");
        put(out, "<td class=\"n\">", json_is_string(value) ? json_string_value(value) : "?",
            "</td></tr>\n");
    }
    fputs("</table>\n", out);
}

static void show_run(FILE *out, const json_t *report)
{
    static char line[CPL_REPORT_LINES][CPL_REPORT_LINE];
    cpl_report_run_lines(report, line);
    if (line[0][0])
        put(out, "<p><code>", line[0], "</code></p>\n");
    put(out, "<p class=\"sub\">", line[1], "<br>\n");
    put(out, "", line[2], "</p>\n");
    for (int k = 3; k < CPL_REPORT_LINES; k++)
        if (line[k][0])
            put(out, "<p class=\"verdict mpi\">", line[k], "</p>\n");
}

void cpl_report_html(const json_t *report, const char *directory, FILE *out)
{
    const json_t *patterns = json_object_get(report, "patterns");
    cpl_html_begin(out, "Carpool report");
    show_run(out, report);
    overview(out, report);
    for (size_t k = 0; k < json_array_size(patterns) && k < MOST_SECTIONS; k++)
        section(out, patterns, k + 1, directory);
    if (cpl_report_integer(report, "left_out") > 0)
        fprintf(out, "<p>%lld more exchanges, which took least, are not in the report.</p>\n",
                (long long)cpl_report_integer(report, "left_out"));
    settings(out, report);
    cpl_html_end(out);
}
