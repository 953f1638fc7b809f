/* The page of carpool compare (compare.h). */
#include "cli/compare.h"
#include "cli/report_read.h"
#include "cli/report_svg.h"

#define MOST_PAIRS 10 /* exchanges in the picture */

static void put(FILE *out, const char *before, const char *text, const char *after)
{
    fputs(before, out);
    cpl_html_text(out, text);
    fputs(after, out);
}

static void show_side(FILE *out, const struct cpl_comparison *c, int side)
{
    static char line[CPL_REPORT_LINES][CPL_REPORT_LINE];
    cpl_report_run_lines(c->last[side], line);
    fprintf(out, "<p><b>%c</b> ", side ? 'B' : 'A');
    put(out, "<code>", line[0], "</code><br>\n<span class=\"sub\">");
    fprintf(out, "%d run%s: ", c->n_runs[side], c->n_runs[side] == 1 ? "" : "s, the last");
    put(out, "", line[1], "<br>\n");
    put(out, "", line[2], "</span></p>\n");
    if (line[3][0])
        put(out, "<p class=\"verdict mpi\">", line[3], "</p>\n");
}

static void show_times(FILE *out, const char *name, const struct cpl_spread *a,
                       const struct cpl_spread *b, const char *how)
{
    char text[64];
    put(out, "<tr><td class=\"n\">", name, "</td>");
    put(out, "<td>", cpl_spread_text(a, text, sizeof text), "</td>");
    put(out, "<td>", cpl_spread_text(b, text, sizeof text), "</td>");
    if (a->n > 0 && b->n > 0 && b->median > 0)
        fprintf(out, "<td>%.2f</td>", a->median / b->median);
    else
        fputs("<td>&ndash;</td>", out);
    put(out, "<td class=\"n\">", cpl_compare_verdict(a, b), "</td>");
    put(out, "<td class=\"n\">", how, "</td></tr>\n");
}

static void show_picture(FILE *out, const struct cpl_comparison *c)
{
    struct cpl_bar bars[2 * MOST_PAIRS];
    static char label[2 * MOST_PAIRS][64];
    int n = 0;
    for (size_t k = 0; k < c->n && n < 2 * MOST_PAIRS; k++)
        for (int side = 0; side < 2; side++) {
            const struct cpl_compared *row = &c->row[k];
            if (row->side[0].us.n == 0 || row->side[1].us.n == 0)
                break;
            snprintf(label[n], sizeof label[n], "%c, %.50s", side ? 'B' : 'A', row->name);
            bars[n] = (struct cpl_bar){label[n], row->side[side].us.median,
                                       side ? CPL_BAR_CHOSEN : CPL_BAR_DIRECT};
            n++;
        }
    if (n > 0)
        cpl_svg_bars(out, "A call of each exchange", "microseconds (median of the runs)", bars, n);
}

void cpl_compare_html(const struct cpl_comparison *c, FILE *out)
{
    char text[400];
    cpl_html_begin(out, "Carpool, two kinds of runs compared");
    show_side(out, c, 0);
    show_side(out, c, 1);
    if (c->unlike[0])
        put(out, "<p class=\"verdict mpi\">The runs are not alike: ", c->unlike, ".</p>\n");
    cpl_compare_conclude(c, text, sizeof text);
    put(out, "<p class=\"verdict\">", text, "</p>\n");
    fputs("<div class=\"wide\"><table>\n<tr><th class=\"n\"></th><th>A</th><th>B</th><th>A/B</th>"
          "<th class=\"n\">B was</th><th class=\"n\">carried in B by</th></tr>\n",
          out);
    show_times(out, "whole run, s", &c->seconds[0], &c->seconds[1], "");
    show_times(out, "in the exchanges below, s", &c->in_exchanges[0], &c->in_exchanges[1], "");
    for (size_t k = 0; k < c->n; k++) {
        char name[240];
        snprintf(name, sizeof name, "%s, a call, \302\265s", c->row[k].name);
        show_times(out, name, &c->row[k].side[0].us, &c->row[k].side[1].us, c->row[k].side[1].how);
    }
    fputs("</table></div>\n"
          "<p class=\"sub\">The median of the runs, and in brackets the least and the most. A call "
          "is that of the slowest rank.</p>\n",
          out);
    show_picture(out, c);
    cpl_html_end(out);
}
