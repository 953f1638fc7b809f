/* carpool compare: two sets of reports side by side, exchange by exchange.
 *
 * Order of calls: cpl_compare_add for each report, cpl_compare_finish, then the rows are read;
 * cpl_compare_free. command_compare.c has the options and the text, compare_html.c the page. */
#ifndef CARPOOL_COMPARE_H
#define CARPOOL_COMPARE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define CPL_COMPARE_RUNS 64 /* the most of a side */

/* A time in the runs of one side. */
struct cpl_spread {
    int n; /* runs that have it */
    double value[CPL_COMPARE_RUNS];
    double median, least, most;
};

struct cpl_compared_side {
    struct cpl_spread us; /* a call, on the slowest rank; of all calls of a run on average */
    struct cpl_spread calls;
    char how[120]; /* by what the last run carried it */
};

/* An exchange. */
struct cpl_compared {
    char key[200];
    char name[200];
    struct cpl_compared_side side[2];
};

struct cpl_comparison {
    int n_runs[2];
    json_t *last[2];                   /* the last report of each side, borrowed */
    struct cpl_spread seconds[2];      /* from MPI_Init to MPI_Finalize */
    struct cpl_spread in_exchanges[2]; /* seconds, of those that were timed on both sides */
    size_t n, room;
    struct cpl_compared *row;
    char unlike[400]; /* how the sides differ beside the mode: "" or a clause */
};

/* Adds a run to side 0 or 1; the report must live as long. Returns false when memory ran out. */
bool cpl_compare_add(struct cpl_comparison *c, int side, json_t *report);

/* Medians, the order of the rows (most time first), sums, what differs. */
void cpl_compare_finish(struct cpl_comparison *c);
void cpl_compare_free(struct cpl_comparison *c);

/* "faster in every run", "slower in every run", "no clear difference", or "" where there is only
 * one run of a side, or nothing to compare. Of B as against A. */
const char *cpl_compare_verdict(const struct cpl_spread *a, const struct cpl_spread *b);

/* What follows of it, in a sentence or two. */
void cpl_compare_conclude(const struct cpl_comparison *c, char *text, size_t size);

/* "12.3 (11.9 to 14.0)", or "12.3" of one run, or "-". Returns text. */
const char *cpl_spread_text(const struct cpl_spread *s, char *text, size_t size);

/* The page. The caller looks at the stream's errors. */
void cpl_compare_html(const struct cpl_comparison *c, FILE *out);

#endif
