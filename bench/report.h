/*
 * Results as aligned `name: value` lines or as one JSON object on one line; one call per value
 * writes either, so the two cannot differ.
 *
 * Use: report_begin, report_* per value, report_end. Names are plain words; in JSON their blanks
 * become underscores and the unit, if any, is appended (time median, us: "time_median_us").
 */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include <stdint.h>
#include <stdio.h>

struct report {
    FILE *file;
    int is_json;
    int n_values;
};

struct report report_begin(FILE *file, int is_json);
void report_text(struct report *report, const char *name, const char *value);
void report_integer(struct report *report, const char *name, int64_t value, const char *unit);

/* A number with `digits` places after the point. */
void report_real(struct report *report, const char *name, double value, int digits,
                 const char *unit);

void report_end(struct report *report);

#endif
