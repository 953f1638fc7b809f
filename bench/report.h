/*
 * Results as aligned `name: value` lines or as one JSON object on one line; one call per value
 * writes both forms, so they cannot differ.
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
    const char *about; /* a word before the names of the next values, or "" */
    int is_json;
    int n_values;
};

struct report report_begin(FILE *file, int is_json);
void report_text(struct report *report, const char *name, const char *value);
void report_integer(struct report *report, const char *name, int64_t value, const char *unit);

/* A number with `digits` places after the point. */
void report_real(struct report *report, const char *name, double value, int digits,
                 const char *unit);

/* Median and quartiles of n >= 1 values, which are sorted: "NAME median" and so on. */
void report_quartiles(struct report *report, const char *name, double *values, size_t n, int digits,
                      const char *unit);

/* The value "checksum". */
void report_checksum(struct report *report, uint64_t sum);

void report_end(struct report *report);

#endif
