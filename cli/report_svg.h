/* Pictures for the report's page, as inline SVG: all are written to a stream whose errors the
 * caller checks, with titles for readers who cannot see pictures. The functions escape texts. */
#ifndef CARPOOL_REPORT_SVG_H
#define CARPOOL_REPORT_SVG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Writes text with the characters that mean something in HTML escaped; control characters become
 * spaces. */
void cpl_html_text(FILE *out, const char *text);

#define CPL_HEAT_SIDE  256 /* the most cells a side */
#define CPL_HEAT_STEPS 6

/* What cells count. Each has one scale of colours in all reports, so that they can be compared. */
enum cpl_heat_unit { CPL_HEAT_MESSAGES, CPL_HEAT_BYTES };

/* From groups of ranks to groups of ranks: count[sender * n + receiver]. */
struct cpl_heat {
    int n;
    int64_t n_ranks, cell_ranks;
    int64_t *count;
    int n_borders; /* of nodes: the ranks before which a line is drawn */
    const int64_t *border;
};

/* The picture: senders downwards, receivers to the right. */
void cpl_svg_heat(FILE *out, const char *title, const struct cpl_heat *heat,
                  enum cpl_heat_unit unit);

/* The scale as a row of colours with numbers (HTML). */
void cpl_html_heat_legend(FILE *out, enum cpl_heat_unit unit, int64_t cell_ranks, bool has_borders);

/* Messages of each rank before and after: n values of bin_ranks ranks each. label names the y axis.
 */
void cpl_svg_ranks(FILE *out, const char *title, const char *label, const double *direct,
                   const double *planned, int n, int64_t bin_ranks, int64_t n_ranks);

enum cpl_bar_kind { CPL_BAR_OTHER, CPL_BAR_DIRECT, CPL_BAR_CHOSEN };

#define CPL_BAR_LABEL 96

struct cpl_bar {
    const char *label;
    double value;
    enum cpl_bar_kind kind;
};

/* Horizontal bars with their values, over one axis from 0. */
void cpl_svg_bars(FILE *out, const char *title, const char *axis, const struct cpl_bar *bars,
                  int n);

#endif
