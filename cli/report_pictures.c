/* The pictures of an exchange on the report's page (report_pictures.h). */
#include "cli/report_pictures.h"

#include "cli/report_read.h"
#include "cli/report_svg.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MOST_BINS 4096
#define MOST_BARS 24

/* One side's cells of messages ("cells") or bytes ("cell_bytes"); false when they are not there or
 * make no sense. */
static bool read_heat(const json_t *p, const char *side, const char *key, struct cpl_heat *heat)
{
    const json_t *rows = json_object_get(json_object_get(p, side), key);
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

/* The borders of nodes, in ranks; returns how many. */
static int read_borders(const json_t *p, int64_t border[CPL_HEAT_SIDE])
{
    const json_t *list = json_object_get(p, "node_borders");
    int n = 0;
    for (size_t k = 0; k < json_array_size(list) && n < CPL_HEAT_SIDE; k++) {
        int64_t at = json_integer_value(json_array_get(list, k));
        if (at > 0 && at < cpl_report_integer(p, "ranks"))
            border[n++] = at;
    }
    return n;
}

static void heat_pair(FILE *out, const json_t *p, const char *key, enum cpl_heat_unit unit)
{
    struct cpl_heat direct, planned = {.count = NULL};
    int64_t border[CPL_HEAT_SIDE];
    int n_borders = read_borders(p, border);
    char title[200];
    const char *what = unit == CPL_HEAT_BYTES ? "bytes" : "messages";
    if (read_heat(p, "direct", key, &direct) && read_heat(p, "planned", key, &planned) &&
        direct.n == planned.n) {
        direct.n_borders = planned.n_borders = n_borders;
        direct.border = planned.border = border;
        fputs("<div class=\"row\">\n", out);
        snprintf(title, sizeof title, "Before: %s, by MPI", what);
        cpl_svg_heat(out, title, &direct, unit);
        snprintf(title, sizeof title, "After: %s, by %.100s", what,
                 cpl_report_text(p, "considered"));
        cpl_svg_heat(out, title, &planned, unit);
        fputs("</div>\n", out);
        cpl_html_heat_legend(out, unit, direct.cell_ranks, n_borders > 0);
    }
    free(direct.count);
    free(planned.count);
}

static void traffic_row(FILE *out, const char *name, const json_t *side)
{
    const json_t *inside = json_object_get(side, "inside"),
                 *between = json_object_get(side, "between");
    fprintf(
        out,
        "<tr><td class=\"n\">%s</td><td>%lld</td><td>%lld</td><td>%lld</td><td>%lld</td></tr>\n",
        name, (long long)cpl_report_integer(inside, "messages"),
        (long long)cpl_report_integer(between, "messages"),
        (long long)cpl_report_integer(inside, "bytes"),
        (long long)cpl_report_integer(between, "bytes"));
}

void cpl_html_heats(FILE *out, const json_t *p)
{
    const json_t *direct = json_object_get(p, "direct"), *planned = json_object_get(p, "planned");
    if (!json_is_array(json_object_get(direct, "cells")))
        return;
    fputs("<h3>Who sends to whom</h3>\n", out);
    heat_pair(out, p, "cells", CPL_HEAT_MESSAGES);
    heat_pair(out, p, "cell_bytes", CPL_HEAT_BYTES);
    if (!json_object_get(direct, "inside"))
        return;
    fputs("<table>\n<tr><th class=\"n\">one call</th><th colspan=\"2\">messages</th><th "
          "colspan=\"2\">bytes</th></tr>\n<tr><th></th><th>inside nodes</th><th>between "
          "nodes</th><th>inside nodes</th><th>between nodes</th></tr>\n",
          out);
    traffic_row(out, "by MPI", direct);
    traffic_row(out, "by plan", planned);
    fputs("</table>\n", out);
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

void cpl_html_loads(FILE *out, const json_t *p)
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

/* What the strategies are modelled to take; at least direct and the plan's. */
static int list_modelled(const json_t *p, struct cpl_bar bars[MOST_BARS])
{
    const char *chosen = cpl_report_text(p, "considered");
    int n = 0;
    bars[n++] = (struct cpl_bar){
        chosen, cpl_report_number(json_object_get(p, "planned"), "modelled_us"), CPL_BAR_CHOSEN};
    if (strcmp(chosen, "direct") != 0)
        bars[n++] = (struct cpl_bar){"direct",
                                     cpl_report_number(json_object_get(p, "direct"), "modelled_us"),
                                     CPL_BAR_DIRECT};
    return n;
}

/* What was measured in the run: all calls by MPI and by the plan, then those of the trials. */
static int list_measured(const json_t *p, struct cpl_bar bars[MOST_BARS],
                         char labels[MOST_BARS][CPL_BAR_LABEL])
{
    const json_t *direct = json_object_get(p, "direct"), *planned = json_object_get(p, "planned");
    const json_t *tried = json_object_get(p, "tried");
    int n = 0;
    if (cpl_report_has_number(direct, "us_per_call"))
        bars[n++] = (struct cpl_bar){"all calls by MPI", cpl_report_number(direct, "us_per_call"),
                                     CPL_BAR_DIRECT};
    if (cpl_report_has_number(planned, "us_per_call")) {
        snprintf(labels[n], sizeof labels[n], "all calls by %.60s", cpl_report_text(p, "strategy"));
        bars[n] =
            (struct cpl_bar){labels[n], cpl_report_number(planned, "us_per_call"), CPL_BAR_CHOSEN};
        n++;
    }
    for (size_t k = 0; k < json_array_size(tried) && n < MOST_BARS; k++) {
        const json_t *one = json_array_get(tried, k);
        const char *name = cpl_report_text(one, "strategy");
        if (!cpl_report_has_number(one, "measured_us"))
            continue;
        snprintf(labels[n], sizeof labels[n], "trial: %.60s",
                 strcmp(name, "direct") == 0 ? "MPI" : name);
        bars[n] = (struct cpl_bar){labels[n], cpl_report_number(one, "measured_us"), CPL_BAR_OTHER};
        n++;
    }
    return n;
}

/* Of messages what was measured is the time from one collective to the next. */
static int list_windows(const json_t *p, struct cpl_bar bars[MOST_BARS])
{
    struct cpl_measured measured;
    int n = 0;
    cpl_report_measured(p, &measured);
    if (measured.us[0] >= 0)
        bars[n++] = (struct cpl_bar){"by MPI", measured.us[0], CPL_BAR_DIRECT};
    if (measured.us[1] >= 0)
        bars[n++] = (struct cpl_bar){"by the plan", measured.us[1], CPL_BAR_CHOSEN};
    return n;
}

void cpl_html_times(FILE *out, const json_t *p)
{
    struct cpl_bar bars[MOST_BARS];
    char labels[MOST_BARS][CPL_BAR_LABEL];
    int n = list_measured(p, bars, labels);
    const char *axis = n > 0 ? "microseconds a call (median of the slowest rank)"
                             : "microseconds from one collective to the next";
    if (n == 0)
        n = list_windows(p, bars);
    fputs("<h3>Times</h3>\n<div class=\"row\">\n", out);
    if (n > 0)
        cpl_svg_bars(out, "Measured in this run", axis, bars, n);
    else
        fputs("<p>Calls of this exchange were not timed.</p>\n", out);
    n = list_modelled(p, bars);
    cpl_svg_bars(out, "Modelled, by strategy", "microseconds for one exchange (cost model)", bars,
                 n);
    fputs("</div>\n"
          "<p class=\"legend\"><span class=\"s\"><i class=\"bd\"></i>MPI alone (direct)</span> "
          "<span class=\"s\"><i class=\"bp\"></i>the plan</span> <span class=\"s\"><i "
          "class=\"bo\"></i>trials, in which MPI and the plans took turns; plans that were only "
          "modelled</span></p>\n",
          out);
}

/* How many messages there are of which size. */
void cpl_html_sizes(FILE *out, const json_t *p)
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
