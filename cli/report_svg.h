/* Pictures for the report's page, as inline SVG: all are written to a stream whose errors the
 * caller checks, with titles for readers who cannot see pictures. The functions escape texts. */
#ifndef CARPOOL_REPORT_SVG_H
#define CARPOOL_REPORT_SVG_H

#include <stdint.h>
#include <stdio.h>

/* Writes text with the characters that mean something in HTML escaped; control characters become
 * spaces. */
void cpl_html_text(FILE *out, const char *text);

#define CPL_HEAT_SIDE  256 /* the most cells a side */
#define CPL_HEAT_STEPS 6

/* Messages from groups of ranks to groups of ranks: count[sender * n + receiver]. */
struct cpl_heat {
    int n;
    int64_t n_ranks, cell_ranks;
    int64_t *count;
};

/* Colours: step k is for counts of more than most[k - 1] (0) up to most[k]. */
struct cpl_heat_scale {
    int n_steps;
    int64_t most[CPL_HEAT_STEPS];
};

/* A scale for counts up to the largest, in geometric steps. */
struct cpl_heat_scale cpl_heat_scale_for(int64_t largest);

/* The picture: senders downwards, receivers to the right. */
void cpl_svg_heat(FILE *out, const char *title, const struct cpl_heat *heat,
                  const struct cpl_heat_scale *scale);

/* The scale as a row of colours with numbers (HTML). */
void cpl_html_heat_legend(FILE *out, const struct cpl_heat_scale *scale, int64_t cell_ranks);

/* Messages of each rank before and after: n values of bin_ranks ranks each. label names the y axis.
 */
void cpl_svg_ranks(FILE *out, const char *title, const char *label, const double *direct,
                   const double *planned, int n, int64_t bin_ranks, int64_t n_ranks);

enum cpl_bar_kind { CPL_BAR_OTHER, CPL_BAR_DIRECT, CPL_BAR_CHOSEN };

struct cpl_bar {
    const char *label;
    double value;
    enum cpl_bar_kind kind;
};

/* Horizontal bars with their values, over one axis from 0. */
void cpl_svg_bars(FILE *out, const char *title, const char *axis, const struct cpl_bar *bars,
                  int n);

#endif
