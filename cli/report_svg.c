/* Pictures as inline SVG (report_svg.h). */
#include "cli/report_svg.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* Colours of cells: step k is for counts of more than the one before, up to the number; the last is
 * for all above. The page's style has the colours. */
static const struct {
    int64_t most[CPL_HEAT_STEPS - 1];
    const char *legend[CPL_HEAT_STEPS];
    const char *name;
} scales[] = {{{1, 10, 100, 1000, 10000},
               {"1", "2&ndash;10", "to 100", "to 1,000", "to 10,000", "more"},
               "Messages"},
              {{64, 1 << 10, 16 << 10, 256 << 10, 4 << 20},
               {"to 64", "to 1 KiB", "to 16 KiB", "to 256 KiB", "to 4 MiB", "more"},
               "Bytes"}};

void cpl_html_text(FILE *out, const char *text)
{
    for (; *text; text++)
        switch (*text) {
        case '&':
            fputs("&amp;", out);
            break;
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        case '\'':
            fputs("&#39;", out);
            break;
        default:
            fputc((unsigned char)*text < ' ' ? ' ' : *text, out);
        }
}

/* A number as short as it may be: 1234567 as 1.2M. */
static void short_number(double value, char text[32])
{
    static const char units[] = " kMGTP";
    int unit = 0;
    while (fabs(value) >= 10000 && unit < 5) {
        value /= 1000;
        unit++;
    }
    if (unit)
        snprintf(text, 32, "%.3g%c", value, units[unit]);
    else
        snprintf(text, 32, "%.4g", value);
}

/* A step of 1, 2 or 5 times a power of ten, so that there are at most n of them up to the largest.
 */
static double nice_step(double largest, int n)
{
    double step = pow(10, floor(log10(largest / n)));
    static const double factors[] = {1, 2, 5, 10};
    for (int k = 0; k < 4; k++)
        if (largest / (step * factors[k]) <= n)
            return step * factors[k];
    return step * 10;
}

static void text_at(FILE *out, double x, double y, const char *attributes, const char *text)
{
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, attributes);
    cpl_html_text(out, text);
    fputs("</text>\n", out);
}

/* Opens a picture with a title above it. */
static void open_picture(FILE *out, int width, int height, const char *title)
{
    fprintf(out, "<svg viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\">\n<title>",
            width, height, width, height);
    cpl_html_text(out, title);
    fputs("</title>\n", out);
    text_at(out, 8, 18, "class=\"t\"", title);
}

static int step_of(enum cpl_heat_unit unit, int64_t count)
{
    int k = 0;
    while (k < CPL_HEAT_STEPS - 1 && count > scales[unit].most[k])
        k++;
    return k;
}

/* All cells of one colour as one path, runs of a row in one piece. */
static void heat_path(FILE *out, const struct cpl_heat *heat, enum cpl_heat_unit unit, int step)
{
    bool any = false;
    for (int i = 0; i < heat->n; i++)
        for (int j = 0; j < heat->n;) {
            const int64_t *row = heat->count + (size_t)i * (size_t)heat->n;
            int begin = j;
            while (j < heat->n && row[j] > 0 && step_of(unit, row[j]) == step)
                j++;
            if (j > begin) {
                if (!any)
                    fprintf(out, "<path class=\"h%d\" d=\"", step);
                any = true;
                fprintf(out, "M%d %dh%dv1h-%dz", begin, i, j - begin, j - begin);
            } else {
                j++;
            }
        }
    if (any)
        fputs("\"/>\n", out);
}

void cpl_svg_heat(FILE *out, const char *title, const struct cpl_heat *heat,
                  enum cpl_heat_unit unit)
{
    const double left = 64, top = 32, side = 336;
    double ranks = (double)heat->n * (double)heat->cell_ranks;
    double per_rank = side / ranks, step = nice_step((double)heat->n_ranks, 6);
    open_picture(out, 420, 420, title);
    fprintf(out, "<rect x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\" class=\"f\"/>\n", left, top,
            side, side);
    fprintf(out, "<g transform=\"translate(%g %g) scale(%.6f)\" shape-rendering=\"crispEdges\">\n",
            left, top, side / heat->n);
    for (int k = 0; k < CPL_HEAT_STEPS; k++)
        heat_path(out, heat, unit, k);
    fputs("</g>\n", out);
    for (int k = 0; k < heat->n_borders; k++) {
        double at = (double)heat->border[k] * per_rank;
        fprintf(out, "<path class=\"nb\" d=\"M%.1f %gv%gM%g %.1fh%g\"/>\n", left + at, top, side,
                left, top + at, side);
    }
    if (step < 1)
        step = 1;
    for (double rank = 0; rank < (double)heat->n_ranks; rank += step) {
        char label[32];
        double at = (rank + (heat->cell_ranks == 1 ? 0.5 : 0)) * per_rank;
        short_number(rank, label);
        fprintf(out, "<path class=\"k\" d=\"M%.1f %gv5M%gV%.1fh-5\"/>\n", left + at, top + side,
                left, top + at);
        text_at(out, left + at, top + side + 18, "class=\"l m\"", label);
        text_at(out, left - 8, top + at + 4, "class=\"l e\"", label);
    }
    text_at(out, left + side / 2, top + side + 40, "class=\"l m\"", "receiving rank");
    fprintf(out,
            "<text transform=\"translate(16 %g) rotate(-90)\" class=\"l m\">sending rank</text>\n"
            "</svg>\n",
            top + side / 2);
}

void cpl_html_heat_legend(FILE *out, enum cpl_heat_unit unit, int64_t cell_ranks, bool has_borders)
{
    if (cell_ranks > 1)
        fprintf(out, "<p class=\"legend\">A cell is %lld sending by %lld receiving ranks. ",
                (long long)cell_ranks, (long long)cell_ranks);
    else
        fputs("<p class=\"legend\">A cell is a pair of ranks. ", out);
    if (has_borders)
        fputs("Broken lines are the borders of nodes. ", out);
    fprintf(out, "%s in a cell, in one exchange:", scales[unit].name);
    for (int k = 0; k < CPL_HEAT_STEPS; k++)
        fprintf(out, " <span class=\"s\"><i class=\"h%d\"></i>%s</span>", k,
                scales[unit].legend[k]);
    fputs("</p>\n", out);
}

/* Where a chart's plot is. */
struct plot {
    double left, top, width, height;
    double x_most, y_most;
};

static double x_of(const struct plot *p, double x)
{
    return p->left + p->width * x / p->x_most;
}

static double y_of(const struct plot *p, double y)
{
    return p->top + p->height * (1 - y / p->y_most);
}

static void axes(FILE *out, const struct plot *p, const char *x_label, const char *y_label)
{
    double x_step = nice_step(p->x_most, 8), y_step = nice_step(p->y_most, 5);
    char label[32];
    for (double y = 0; y <= p->y_most * 1.0001; y += y_step < 1 ? 1 : y_step) {
        short_number(y, label);
        fprintf(out, "<path class=\"g\" d=\"M%g %.1fh%g\"/>\n", p->left, y_of(p, y), p->width);
        text_at(out, p->left - 8, y_of(p, y) + 4, "class=\"l e\"", label);
    }
    for (double x = 0; x < p->x_most; x += x_step < 1 ? 1 : x_step) {
        short_number(x, label);
        fprintf(out, "<path class=\"k\" d=\"M%.1f %.1fv5\"/>\n", x_of(p, x), p->top + p->height);
        text_at(out, x_of(p, x), p->top + p->height + 18, "class=\"l m\"", label);
    }
    fprintf(out, "<path class=\"k\" d=\"M%g %gv%gh%g\"/>\n", p->left, p->top, p->height, p->width);
    text_at(out, p->left + p->width / 2, p->top + p->height + 38, "class=\"l m\"", x_label);
    fprintf(out, "<text transform=\"translate(14 %.1f) rotate(-90)\" class=\"l m\">",
            p->top + p->height / 2);
    cpl_html_text(out, y_label);
    fputs("</text>\n", out);
}

/* A step for each bin; closed down to the axis when it is to be filled. */
static void steps(FILE *out, const struct plot *p, const double *values, int n, double bin_ranks,
                  const char *class, bool filled)
{
    fprintf(out, "<path class=\"%s\" d=\"M%.1f %.1f", class, x_of(p, 0),
            filled ? y_of(p, 0) : y_of(p, values[0]));
    for (int k = 0; k < n; k++) {
        double end = (k + 1) * bin_ranks < p->x_most ? (k + 1) * bin_ranks : p->x_most;
        fprintf(out, "V%.1fH%.1f", y_of(p, values[k]), x_of(p, end));
    }
    if (filled)
        fprintf(out, "V%.1fz", y_of(p, 0));
    fputs("\"/>\n", out);
}

static void key_at(FILE *out, double x, const char *class, const char *text)
{
    fprintf(out, "<path class=\"%s\" d=\"M%g 34h22\"/>\n", class, x);
    text_at(out, x + 28, 38, "class=\"l\"", text);
}

void cpl_svg_ranks(FILE *out, const char *title, const char *label, const double *direct,
                   const double *planned, int n, int64_t bin_ranks, int64_t n_ranks)
{
    struct plot p = {.left = 64, .top = 52, .width = 420, .height = 180};
    p.x_most = (double)n_ranks;
    p.y_most = 1;
    for (int k = 0; k < n; k++) {
        p.y_most = direct[k] > p.y_most ? direct[k] : p.y_most;
        p.y_most = planned[k] > p.y_most ? planned[k] : p.y_most;
    }
    open_picture(out, 500, 284, title);
    axes(out, &p, "rank", label);
    steps(out, &p, direct, n, (double)bin_ranks, "da", true);
    steps(out, &p, direct, n, (double)bin_ranks, "d", false);
    steps(out, &p, planned, n, (double)bin_ranks, "p", false);
    key_at(out, 64, "d", "direct (MPI alone)");
    key_at(out, 240, "p", "planned");
    fputs("</svg>\n", out);
}

#define MOST_LETTERS 32 /* of a bar's label */
#define LETTER       7.8
#define GAP          8     /* between a label and its bar */
#define NARROWEST    70.0  /* room for labels */
#define WIDTH        430.0 /* of that and the bars */

static void abbreviate(const char *label, char *text, size_t size)
{
    bool fits = strlen(label) <= MOST_LETTERS;
    snprintf(text, size, "%.*s%s", fits ? MOST_LETTERS : MOST_LETTERS - 3, label,
             fits ? "" : "...");
}

void cpl_svg_bars(FILE *out, const char *title, const char *axis, const struct cpl_bar *bars, int n)
{
    static const char *const classes[] = {"bo", "bd", "bp"};
    const double top = 34, row = 24;
    double largest = 0, left = NARROWEST;
    char label[32];
    for (int k = 0; k < n; k++) {
        size_t letters =
            strlen(bars[k].label) < MOST_LETTERS ? strlen(bars[k].label) : MOST_LETTERS;
        largest = bars[k].value > largest ? bars[k].value : largest;
        double room = LETTER * (double)letters + GAP;
        left = room > left ? room : left;
    }
    const double width = WIDTH - left;
    if (!(largest > 0))
        largest = 1;
    double step = nice_step(largest, 4);
    open_picture(out, 500, (int)(top + n * row + 48), title);
    for (double x = 0; x <= largest * 1.0001; x += step) {
        double at = left + width * x / largest;
        short_number(x, label);
        fprintf(out, "<path class=\"g\" d=\"M%.1f %gv%g\"/>\n", at, top, n * row);
        text_at(out, at, top + n * row + 16, "class=\"l m\"", label);
    }
    for (int k = 0; k < n; k++) {
        double y = top + k * row, length = width * bars[k].value / largest;
        bool whole = bars[k].value == floor(bars[k].value) && bars[k].value < 1e12;
        snprintf(label, sizeof label, whole ? "%.0f" : "%.4g", bars[k].value);
        char name[64];
        abbreviate(bars[k].label, name, sizeof name);
        text_at(out, left - GAP, y + 16,
                bars[k].kind == CPL_BAR_CHOSEN ? "class=\"l e c\"" : "class=\"l e\"", name);
        fprintf(out, "<rect x=\"%g\" y=\"%g\" width=\"%.1f\" height=\"16\" class=\"%s\"/>\n", left,
                y + 4, length, classes[bars[k].kind]);
        text_at(out, left + length + 6, y + 16, "class=\"l\"", label);
    }
    text_at(out, left + width / 2, top + n * row + 36, "class=\"l m\"", axis);
    fputs("</svg>\n", out);
}
