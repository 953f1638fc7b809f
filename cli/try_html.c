/* The page of carpool try (try.h). */
#include "cli/report_read.h"
#include "cli/report_svg.h"
#include "cli/try.h"

#include <string.h>

#define MOST_BARS 8

static void put(FILE *out, const char *before, const char *text, const char *after)
{
    fputs(before, out);
    cpl_html_text(out, text);
    fputs(after, out);
}

/* Class o is left out on narrow pages. */
static void number_cell(FILE *out, const json_t *o, const char *key, int digits, const char *class)
{
    if (cpl_report_has_number(o, key))
        fprintf(out, "<td class=\"%s\">%.*f</td>", class, digits, cpl_report_number(o, key));
    else
        fprintf(out, "<td class=\"%s\">&ndash;</td>", class);
}

/* "0.75, slower"; "~0.98" is within the scatter of the runs. */
static void speed_cell(FILE *out, const json_t *run)
{
    const char *speed = cpl_report_text(run, "speed");
    bool slower = strcmp(speed, "slower") == 0;
    if (!cpl_report_has_number(run, "speedup"))
        fputs("<td>&ndash;</td>", out);
    else
        fprintf(out, "<td%s>%s%.2f%s</td>", slower ? " class=\"bad\"" : "",
                strcmp(speed, "same") == 0 ? "~" : "", cpl_report_number(run, "speedup"),
                slower ? ", slower" : "");
}

static bool is_wrong(const json_t *run)
{
    return json_object_get(run, "difference") || json_object_get(run, "failure");
}

static void table_row(FILE *out, const json_t *program, const json_t *run, bool is_first)
{
    put(out, "<tr><td class=\"n\">", is_first ? cpl_report_text(program, "name") : "", "</td>");
    const json_t *page = json_object_get(run, "page");
    put(out, "<td class=\"n\">", "", "");
    if (json_is_string(page))
        put(out, "<a href=\"", json_string_value(page), "\">");
    put(out, "", cpl_report_text(run, "run"), json_is_string(page) ? "</a></td>" : "</td>");
    number_cell(out, run, "median_s", 3, "");
    number_cell(out, run, "least_s", 3, "o");
    number_cell(out, run, "most_s", 3, "o");
    speed_cell(out, run);
    put(out, is_wrong(run) ? "<td class=\"n bad\">" : "<td class=\"n\">",
        cpl_report_text(run, "output"), "</td>");
    number_cell(out, run, "exchanges_carried", 0, "o");
    number_cell(out, run, "exchanges", 0, "o");
    fputs("</tr>\n", out);
}

static void overview(FILE *out, const json_t *programs)
{
    const json_t *program, *run;
    size_t k, r;
    fputs("<h2>All runs</h2>\n<div class=\"wide\"><table>\n<tr><th class=\"n\">program</th>"
          "<th class=\"n\">run</th><th>median s</th><th class=\"o\">min s</th><th class=\"o\">max "
          "s</th><th>speed-up</th>"
          "<th class=\"n\">output</th><th class=\"o\">exchanges carried</th><th "
          "class=\"o\">of</th></tr>\n",
          out);
    json_array_foreach(programs, k, program)
    {
        json_array_foreach(json_object_get(program, "runs"), r, run)
        {
            table_row(out, program, run, r == 0);
        }
    }
    fputs("</table></div>\n<p class=\"sub\">The name of a run leads to the report of the last one. "
          "~: "
          "within the scatter of the runs.</p>\n",
          out);
}

static void times(FILE *out, const json_t *program)
{
    const json_t *run;
    size_t r;
    int n = 0;
    struct cpl_bar bars[MOST_BARS];
    json_array_foreach(json_object_get(program, "runs"), r, run)
    {
        const char *name = cpl_report_text(run, "run");
        if (n < MOST_BARS)
            bars[n++] = (struct cpl_bar){.label = name,
                                         .value = cpl_report_number(run, "median_s"),
                                         .kind = strcmp(name, "plain") == 0  ? CPL_BAR_DIRECT
                                                 : strcmp(name, "auto") == 0 ? CPL_BAR_CHOSEN
                                                                             : CPL_BAR_OTHER};
    }
    cpl_svg_bars(out, "Time of a run", "seconds (median)", bars, n);
}

static void list(FILE *out, const json_t *entries, const char *key, const char *what)
{
    const json_t *o;
    size_t k;
    json_array_foreach(entries, k, o)
    {
        put(out, "<li>", what, "");
        put(out, "", cpl_report_text(o, key), "");
        fprintf(out, " (exchanges: %lld, calls: %lld, of these carried: %lld)",
                (long long)cpl_report_integer(o, "exchanges"),
                (long long)cpl_report_integer(o, "calls"),
                (long long)cpl_report_integer(o, "calls_planned"));
        if (json_object_get(o, "later_left"))
            put(out, "; left to MPI later: ", cpl_report_text(o, "later_left"), "");
        fputs("</li>\n", out);
    }
}

static void show_run(FILE *out, const json_t *run)
{
    const json_t *difference = json_object_get(run, "difference");
    put(out, "<h3>", cpl_report_text(run, "run"), "</h3>\n");
    if (json_object_get(run, "failure"))
        put(out, "<p class=\"verdict\">", cpl_report_text(run, "failure"), "</p>\n");
    if (difference) {
        fprintf(out,
                "<p class=\"verdict\">Lines that differ from those of the plain run: "
                "%lld; the first one:<br>",
                (long long)cpl_report_integer(run, "differing"));
        put(out, "plain: <code>", cpl_report_text(difference, "plain"), "</code><br>");
        put(out, "this run: <code>", cpl_report_text(difference, "found"), "</code></p>\n");
    }
    if (json_object_get(run, "all_left"))
        put(out, "<p>All calls were left to MPI: ", cpl_report_text(run, "all_left"), ".</p>\n");
    else if (cpl_report_integer(run, "exchanges") == 0)
        fputs("<p>No exchanges were seen.</p>\n", out);
    fputs("<ul>\n", out);
    list(out, json_object_get(run, "carried"), "exchange", "carried: ");
    list(out, json_object_get(run, "left"), "reason", "left to MPI: ");
    fputs("</ul>\n", out);
}

static void show_program(FILE *out, const json_t *program)
{
    const json_t *run;
    size_t r;
    put(out, "<h2>", cpl_report_text(program, "name"), "</h2>\n");
    put(out, "<p class=\"verdict\">", cpl_report_text(program, "verdict"), "</p>\n");
    put(out, "<p><code>", cpl_report_text(program, "command"), "</code> on ");
    fprintf(out, "%lld ranks, %lld runs each, in turns.",
            (long long)cpl_report_integer(program, "ranks"),
            (long long)cpl_report_integer(program, "repeat"));
    if (json_object_get(program, "note"))
        put(out, " ", cpl_report_text(program, "note"), ".");
    if (cpl_report_integer(program, "own_lines") > 0)
        fprintf(out,
                " Of %lld lines of output %lld vary without Carpool, too: what varies in them "
                "is not compared.",
                (long long)cpl_report_integer(program, "lines"),
                (long long)cpl_report_integer(program, "own_lines"));
    if (cpl_report_integer(program, "files") > 0)
        fprintf(out,
                " Text files that a run wrote into the present directory, compared, too: %lld.",
                (long long)cpl_report_integer(program, "files"));
    if (cpl_report_integer(program, "lines") == 0)
        fputs(" The program prints nothing, and writes no text file into the present directory: "
              "there was nothing to compare.",
              out);
    fputs("</p>\n", out);
    times(out, program);
    json_array_foreach(json_object_get(program, "runs"), r, run)
    {
        if (r > 0 || json_object_get(run, "failure"))
            show_run(out, run);
    }
}

void cpl_try_html(const json_t *result, FILE *out)
{
    const json_t *programs = json_object_get(result, "programs"), *program;
    size_t k;
    cpl_html_begin(out, "Carpool, tried");
    put(out, "<p class=\"sub\">Runs without Carpool (plain) and with it, in turns; Carpool ",
        cpl_report_text(result, "version"), "</p>\n");
    overview(out, programs);
    json_array_foreach(programs, k, program)
    {
        show_program(out, program);
    }
    cpl_html_end(out);
}
