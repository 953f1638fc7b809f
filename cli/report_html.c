/* carpool report --html: the page (report_read.h). No scripts, no links to elsewhere; pictures are
 * inline SVG (report_svg.h). */
#include "cli/report_read.h"
#include "cli/report_svg.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Exchanges that are shown with pictures; all are in the table. */
#define MOST_SECTIONS 24
#define MOST_BINS     4096
#define MOST_BARS     24

static const char style[] =
    "body{font:15px/1.5 system-ui,'DejaVu Sans',sans-serif;color:#1c2430;max-width:1060px;"
    "margin:24px auto;padding:0 16px;background:#fff}"
    "h1{font-size:26px;margin:0 0 4px}h2{font-size:20px;margin:40px 0 4px;padding-top:12px;"
    "border-top:2px solid #d5dae1}h3{font-size:16px;margin:22px 0 4px}"
    ".sub{color:#56606e;margin:0 0 16px}table{border-collapse:collapse;margin:8px 0}"
    ".wide{overflow-x:auto}th,td{padding:4px 10px;border-bottom:1px solid #e3e7ec;"
    "text-align:right;vertical-align:top}th{background:#f3f5f8;font-weight:600}"
    "td.n,th.n{text-align:left}th[colspan]{text-align:center}tr.why td{color:#56606e;"
    "border-bottom:1px solid #b8c1cc}tr:has(+.why) "
    "td{border-bottom:0}.verdict{background:#f3f5f8;border-left:4px solid #1f5fa8;"
    "padding:8px 12px;margin:8px 0}.verdict.mpi{border-color:#8a94a3}"
    ".row{display:flex;flex-wrap:wrap;gap:16px}code{background:#f3f5f8;padding:1px 4px}"
    ".legend .s{white-space:nowrap;margin-left:8px}.legend i{display:inline-block;width:14px;"
    "height:14px;margin-right:4px;vertical-align:-2px;border:1px solid #8a94a3}"
    ".legend i.none{background:#fff}svg{max-width:100%;height:auto}"
    "svg text{font:12px system-ui,'DejaVu Sans',sans-serif;fill:#1c2430}svg .t{font-size:14px;"
    "font-weight:600}.m{text-anchor:middle}.e{text-anchor:end}.c{font-weight:600}"
    ".f{fill:#fff;stroke:#8a94a3}.k{stroke:#56606e;fill:none}.g{stroke:#e3e7ec;fill:none}"
    ".d{stroke:#c8551b;stroke-width:2;fill:none}.da{fill:#f8e3d8}"
    ".p{stroke:#1f5fa8;stroke-width:2;fill:none}.bo{fill:#b8c1cc}.bd{fill:#c8551b}"
    ".bp{fill:#1f5fa8}@media print{h2{break-before:page}}";

void cpl_html_begin(FILE *out, const char *title)
{
    fprintf(out,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
            "<title>%s</title>\n<style>%s</style>\n</head>\n<body>\n<h1>%s</h1>\n",
            title, style, title);
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

/* A table cell with a number, or a dash when there is none. */
static void cell(FILE *out, const json_t *object, const char *key, int digits)
{
    if (cpl_report_has_number(object, key))
        fprintf(out, "<td>%.*f</td>", digits, cpl_report_number(object, key));
    else
        fputs("<td>&ndash;</td>", out);
}

static void table_row(FILE *out, const json_t *p, size_t number, bool has_section)
{
    const json_t *direct = json_object_get(p, "direct"), *planned = json_object_get(p, "planned");
    char name[160], outcome[200], why[400];
    cpl_report_name(p, name, sizeof name);
    cpl_report_outcome(p, outcome, sizeof outcome);
    fprintf(out, "<tr><td>%zu</td><td class=\"n\">", number);
    if (has_section)
        fprintf(out, "<a href=\"#e%zu\">", number);
    cpl_html_text(out, name);
    fprintf(out, "%s</td>", has_section ? "</a>" : "");
    cell(out, p, "ranks", 0);
    cell(out, p, "calls", 0);
    cell(out, direct, "us_per_call", 1);
    cell(out, planned, "us_per_call", 1);
    cell(out, p, "messages", 0);
    cell(out, p, "bytes", 0);
    cell(out, direct, "sends_max", 0);
    cell(out, planned, "sends_max", 0);
    cell(out, direct, "modelled_us", 1);
    cell(out, planned, "modelled_us", 1);
    put(out, "</tr>\n<tr class=\"why\"><td></td><td class=\"n\" colspan=\"11\">", outcome, "");
    put(out, "", cpl_report_reason(p, why, sizeof why), "");
    fputs("</td></tr>\n", out);
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
    fputs("<h2>All exchanges</h2>\n<div class=\"wide\"><table>\n"
          "<tr><th rowspan=\"2\">no.</th><th rowspan=\"2\" class=\"n\">exchange</th>"
          "<th rowspan=\"2\">ranks</th><th rowspan=\"2\">calls</th>"
          "<th colspan=\"2\">measured &micro;s</th>"
          "<th colspan=\"2\">in one call</th><th colspan=\"2\">most sent by a rank</th>"
          "<th colspan=\"2\">modelled &micro;s</th></tr>\n"
          "<tr><th>by MPI</th><th>by plan</th><th>messages</th><th>bytes</th><th>by MPI</th>"
          "<th>by plan</th><th>by MPI</th><th>by plan</th></tr>\n",
          out);
    for (size_t k = 0; k < n; k++)
        table_row(out, json_array_get(patterns, k), k + 1, k < MOST_SECTIONS);
    fputs("</table></div>\n"
          "<p class=\"sub\"><b>By MPI</b>: every message alone. <b>By plan</b>: combined messages "
          "through intermediate ranks. <b>Measured</b>: a call in this run, the median of the "
          "slowest rank; more ranks than cores, or a late rank, show in it. <b>Modelled</b>: one "
          "exchange by the cost model, with a core for every rank.</p>\n",
          out);
}

/* The cells of one side; false when they are not there or make no sense. */
static bool read_heat(const json_t *p, const char *side, struct cpl_heat *heat)
{
    const json_t *rows = json_object_get(json_object_get(p, side), "cells");
    size_t n = json_array_size(rows);
    heat->count = NULL;
    if (n == 0 || n > CPL_HEAT_SIDE)
        return false;
    heat->n = (int)n;
    heat->n_ranks = cpl_report_integer(p, "ranks");
    heat->cell_ranks = cpl_report_integer(p, "cell_ranks");
    if (heat->cell_ranks < 1 || heat->n_ranks < 1 ||
        (heat->n_ranks - 1) / heat->cell_ranks != (int64_t)n - 1)
        return false;
    heat->count = calloc(n * n, sizeof *heat->count);
    for (size_t i = 0; heat->count && i < n; i++) {
        const char *at = json_string_value(json_array_get(rows, i));
        while (at && *at) {
            char *end;
            long column = strtol(at, &end, 10);
            if (end == at || *end != ':' || column < 0 || column >= (long)n)
                break;
            int64_t count = strtoll(end + 1, &end, 10);
            heat->count[i * n + (size_t)column] = count > 0 ? count : 0;
            at = *end == ' ' ? end + 1 : end;
        }
    }
    return heat->count;
}

static int64_t largest_of(const struct cpl_heat *heat)
{
    int64_t largest = 0;
    for (int k = 0; k < heat->n * heat->n; k++)
        largest = heat->count[k] > largest ? heat->count[k] : largest;
    return largest;
}

static void heat_pictures(FILE *out, const json_t *p)
{
    struct cpl_heat direct, planned = {.count = NULL};
    char title[200];
    if (read_heat(p, "direct", &direct) && read_heat(p, "planned", &planned) &&
        direct.n == planned.n) {
        int64_t a = largest_of(&direct), b = largest_of(&planned);
        struct cpl_heat_scale scale = cpl_heat_scale_for(a > b ? a : b);
        fputs("<h3>Who sends to whom</h3>\n<div class=\"row\">\n", out);
        cpl_svg_heat(out, "Before: direct, by MPI", &direct, &scale);
        snprintf(title, sizeof title, "After: planned, %.100s", cpl_report_text(p, "considered"));
        cpl_svg_heat(out, title, &planned, &scale);
        fputs("</div>\n", out);
        cpl_html_heat_legend(out, &scale, direct.cell_ranks);
    }
    free(direct.count);
    free(planned.count);
}

/* The values of a side's member; returns how many. */
static int read_bins(const json_t *p, const char *side, const char *key, double values[MOST_BINS])
{
    const json_t *array = json_object_get(json_object_get(p, side), key);
    size_t n = json_array_size(array);
    for (size_t k = 0; k < n && k < MOST_BINS; k++)
        values[k] = json_number_value(json_array_get(array, k));
    return n <= MOST_BINS ? (int)n : 0;
}

static void rank_pictures(FILE *out, const json_t *p)
{
    static const struct {
        const char *key, *title, *label;
    } kinds[] = {{"sends", "Messages sent", "messages sent in one exchange"},
                 {"recvs", "Messages received", "messages received in one exchange"}};
    double direct[MOST_BINS], planned[MOST_BINS];
    int64_t bin_ranks = cpl_report_integer(p, "bin_ranks");
    bool begun = false;
    for (int k = 0; k < 2; k++) {
        int n = read_bins(p, "direct", kinds[k].key, direct);
        if (n == 0 || n != read_bins(p, "planned", kinds[k].key, planned) || bin_ranks < 1)
            continue;
        if (!begun)
            fputs("<h3>Messages of each rank</h3>\n<div class=\"row\">\n", out);
        begun = true;
        cpl_svg_ranks(out, kinds[k].title, kinds[k].label, direct, planned, n, bin_ranks,
                      cpl_report_integer(p, "ranks"));
    }
    if (begun)
        fputs("</div>\n", out);
    if (begun && bin_ranks > 1)
        fprintf(out, "<p class=\"legend\">Each step is the busiest of %lld ranks.</p>\n",
                (long long)bin_ranks);
}

/* What the strategies that were tried are modelled to take; at least direct and the one chosen. */
static int list_modelled(const json_t *p, struct cpl_bar bars[MOST_BARS])
{
    const json_t *tried = json_object_get(p, "ranked");
    const char *chosen = cpl_report_text(p, "considered");
    int n = 0;
    for (size_t k = 0; k < json_array_size(tried) && n < MOST_BARS; k++) {
        const json_t *one = json_array_get(tried, k);
        const char *name = cpl_report_text(one, "strategy");
        bars[n++] = (struct cpl_bar){name, cpl_report_number(one, "modelled_us"),
                                     strcmp(name, chosen) == 0     ? CPL_BAR_CHOSEN
                                     : strcmp(name, "direct") == 0 ? CPL_BAR_DIRECT
                                                                   : CPL_BAR_OTHER};
    }
    if (n > 0)
        return n;
    bars[n++] = (struct cpl_bar){
        chosen, cpl_report_number(json_object_get(p, "planned"), "modelled_us"), CPL_BAR_CHOSEN};
    if (strcmp(chosen, "direct") != 0)
        bars[n++] = (struct cpl_bar){"direct",
                                     cpl_report_number(json_object_get(p, "direct"), "modelled_us"),
                                     CPL_BAR_DIRECT};
    return n;
}

/* What was measured in the run: calls by MPI, by the plan, and trials of other strategies. */
static int list_measured(const json_t *p, struct cpl_bar bars[MOST_BARS])
{
    const json_t *direct = json_object_get(p, "direct"), *planned = json_object_get(p, "planned");
    const json_t *tried = json_object_get(p, "tried");
    int n = 0;
    if (cpl_report_has_number(direct, "us_per_call"))
        bars[n++] =
            (struct cpl_bar){"by MPI", cpl_report_number(direct, "us_per_call"), CPL_BAR_DIRECT};
    if (cpl_report_has_number(planned, "us_per_call"))
        bars[n++] = (struct cpl_bar){cpl_report_text(p, "strategy"),
                                     cpl_report_number(planned, "us_per_call"), CPL_BAR_CHOSEN};
    for (size_t k = 0; k < json_array_size(tried) && n < MOST_BARS; k++) {
        const json_t *one = json_array_get(tried, k);
        if (cpl_report_has_number(one, "measured_us"))
            bars[n++] = (struct cpl_bar){cpl_report_text(one, "strategy"),
                                         cpl_report_number(one, "measured_us"), CPL_BAR_OTHER};
    }
    return n;
}

static void time_pictures(FILE *out, const json_t *p)
{
    struct cpl_bar bars[MOST_BARS];
    int n = list_modelled(p, bars);
    fputs("<h3>Times</h3>\n", out);
    cpl_svg_bars(out, "Modelled, by strategy", "microseconds for one exchange (cost model)", bars,
                 n);
    fputs(
        "<p class=\"legend\"><span class=\"s\"><i class=\"bp\" style=\"background:#1f5fa8\"></i>"
        "the one considered</span> <span class=\"s\"><i style=\"background:#c8551b\"></i>direct "
        "(MPI alone)</span> <span class=\"s\"><i style=\"background:#b8c1cc\"></i>others that were "
        "tried</span></p>\n",
        out);
    n = list_measured(p, bars);
    if (n > 0)
        cpl_svg_bars(out, "Measured in this run",
                     "microseconds a call (median of the slowest rank)", bars, n);
    else
        fputs("<p>Calls of this exchange were not timed.</p>\n", out);
    if (json_array_size(json_object_get(p, "tried")) > 0)
        fputs("<p class=\"legend\"><span class=\"s\"><i style=\"background:#b8c1cc\"></i>in the "
              "trials by which one was chosen (direct: by MPI)</span></p>\n",
              out);
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
    fputs("<table>\n", out);
    fact(out, "calls", "%.0f", cpl_report_number(p, "calls"));
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
    fact(out, "bytes forwarded by intermediate ranks, all calls", "%.0f",
         cpl_report_number(p, "forwarded_bytes"));
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

/* The number from 1 on of the exchange that an order speaks of; 0: it has no section. */
static size_t find_section(const json_t *patterns, const json_t *before)
{
    const char *pattern = json_string_value(json_object_get(before, "pattern"));
    for (size_t k = 0; k < json_array_size(patterns) && k < MOST_SECTIONS && pattern; k++) {
        const json_t *p = json_array_get(patterns, k);
        if (strcmp(cpl_report_text(p, "pattern"), pattern) == 0 &&
            strcmp(cpl_report_text(p, "kind"), cpl_report_text(before, "kind")) == 0 &&
            cpl_report_integer(p, "tag") == cpl_report_integer(before, "tag") &&
            cpl_report_integer(p, "ordinal") == cpl_report_integer(before, "ordinal"))
            return k + 1;
    }
    return 0;
}

/* In which order the messages leave, and why. */
static void show_order(FILE *out, const json_t *order, const json_t *patterns)
{
    const json_t *before = json_object_get(order, "before");
    const json_t *units = json_object_get(order, "units");
    const json_t *tried = json_object_get(order, "tried_us");
    bool in_use = json_is_true(json_object_get(order, "in_use"));
    size_t number = find_section(patterns, before);
    char name[160];
    if (!order)
        return;
    cpl_report_name(before, name, sizeof name);
    fputs("<h3>Order of messages</h3>\n<p>What always follows is ", out);
    if (number > 0)
        fprintf(out, "<a href=\"#e%zu\">%zu. ", number, number);
    cpl_html_text(out, name);
    fputs(number > 0 ? "</a>" : "", out);
    fprintf(out, ": messages %s first to the ranks that send most then%s.</p>\n<table>\n",
            in_use ? "leave" : "could leave", in_use ? "" : "; not in use");
    fact(out, "sends until the last rank has done both, in the original order", "%.0f",
         cpl_report_number(units, "given"));
    fact(out, "ordered", "%.0f", cpl_report_number(units, "ordered"));
    fact(out, "no order is below", "%.0f", cpl_report_number(units, "least"));
    fact(out, "or above", "%.0f", cpl_report_number(units, "most"));
    if (json_array_size(tried) == 2) {
        fact(out, "both measured in the original order, \302\265s", "%.2f",
             json_number_value(json_array_get(tried, 0)));
        fact(out, "ordered, \302\265s", "%.2f", json_number_value(json_array_get(tried, 1)));
    }
    if (cpl_report_integer(order, "calls_ordered") > 0)
        fact(out, "calls ordered that MPI would have carried", "%.0f",
             cpl_report_number(order, "calls_ordered"));
    fputs("</table>\n", out);
}

/* How many messages there are of which size. */
static void sizes(FILE *out, const json_t *p)
{
    const json_t *array = json_object_get(p, "sizes");
    struct cpl_bar bars[MOST_BARS];
    char labels[MOST_BARS][48];
    double before = -1;
    int n = 0;
    for (size_t k = 0; k < json_array_size(array) && n < MOST_BARS; k++) {
        const json_t *pair = json_array_get(array, k);
        double most = json_number_value(json_array_get(pair, 0));
        if (most == before + 1)
            snprintf(labels[n], sizeof labels[n], "%.0f bytes", most);
        else
            snprintf(labels[n], sizeof labels[n], "up to %.0f bytes", most);
        bars[n] =
            (struct cpl_bar){labels[n], json_number_value(json_array_get(pair, 1)), CPL_BAR_OTHER};
        before = most;
        n++;
    }
    if (n > 0)
        cpl_svg_bars(out, "Message sizes", "messages in one exchange", bars, n);
}

static void section(FILE *out, const json_t *patterns, size_t number, const char *directory)
{
    const json_t *p = json_array_get(patterns, number - 1);
    char name[160], outcome[200], why[400];
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
    fputs(".</p>\n", out);
    show_order(out, json_object_get(p, "order"), patterns);
    if (!json_object_get(p, "direct"))
        return;
    heat_pictures(out, p);
    rank_pictures(out, p);
    time_pictures(out, p);
    fputs("<h3>Figures</h3>\n<div class=\"row\"><div>\n", out);
    facts(out, p);
    fputs("</div>\n", out);
    sizes(out, p);
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

/* What placing ranks would gain. */
static void reorderable(FILE *out, const json_t *gain)
{
    if (!gain || cpl_report_integer(gain, "communicators") == 0)
        return;
    fprintf(out,
            "<p>Communicators that the program lets MPI reorder: %lld could be placed better, "
            "modelled %.1f us instead of %.1f (CARPOOL_REORDER=auto).</p>\n",
            (long long)cpl_report_integer(gain, "communicators"),
            cpl_report_number(gain, "after_us"), cpl_report_number(gain, "before_us"));
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
    reorderable(out, json_object_get(report, "reorderable"));
    settings(out, report);
    cpl_html_end(out);
}
