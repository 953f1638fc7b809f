/* Reading the report's JSON: members that are missing or of another type read as 0, NULL or "?", so
 * that reports of other versions and damaged ones are shown as far as possible. */
#ifndef CARPOOL_REPORT_READ_H
#define CARPOOL_REPORT_READ_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Loads the report in a file (for the subcommand report also the result of carpool try); the caller
 * releases it. NULL on failure, after an error message in the name of the subcommand. */
json_t *cpl_report_load(const char *command, const char *file);

/* Whether it is the result of carpool try (try.h). */
bool cpl_report_is_trial(const json_t *root);

json_int_t cpl_report_integer(const json_t *object, const char *key);
double cpl_report_number(const json_t *object, const char *key);

/* What carried the calls that were: the plan's strategy, also where they were left to MPI later. */
const char *cpl_report_carrier(const json_t *pattern);

/* Milliseconds that an account says the library has cost. */
double cpl_report_spent(const json_t *account);
const char *cpl_report_text(const json_t *object, const char *key); /* "?" when there is none */

/* Whether messages left in the order that the next exchange asks for; schemas before 6 say which
 * one that is. */
bool cpl_report_is_ordered(const json_t *pattern);

/* Whether the member is a number: a time that was not measured is null. */
bool cpl_report_has_number(const json_t *object, const char *key);

/* The program and its arguments; "" in a report of before they were told. */
void cpl_report_command(const json_t *report, char *text, size_t size);

/* What the run was, in lines, some of which may be empty: program; ranks, nodes, mode, date;
 * versions; a warning of more ranks than cores; the machine that modelled times are of.
 * (report_run.c) */
#define CPL_REPORT_LINES 5
#define CPL_REPORT_LINE  1024
void cpl_report_run_lines(const json_t *report, char line[CPL_REPORT_LINES][CPL_REPORT_LINE]);

/* "Neighbor_alltoallv", "pt2pt, tag 5", or "Allgather, below 64 KiB". */
void cpl_report_name(const json_t *pattern, char *name, size_t size);

/* "carried by vpt:3 in 90 of 100 calls" or "left to MPI". */
void cpl_report_outcome(const json_t *pattern, char *text, size_t size);

/* What follows that: ": no gain", "; later left to MPI: the program became slower", or "". Returns
 * text. */
const char *cpl_report_reason(const json_t *pattern, char *text, size_t size);

/* What an exchange takes, as far as it was measured: the figures by which it was decided
 * (report_words.c). */
struct cpl_measured {
    double us[2];  /* by MPI, by the plan; negative: not measured */
    char how[200]; /* of what, where it is not the median call of the slowest rank */
};

void cpl_report_measured(const json_t *pattern, struct cpl_measured *measured);

/* The sum by which it was decided whether to manage messages, in sentences; "" for other exchanges.
 * Returns text. */
const char *cpl_report_sum(const json_t *pattern, char *text, size_t size);

/* By which plans bytes were forwarded, where it is not by the one that is told of alone: a clause
 * with a comma before it, or "". */
const char *cpl_report_forwarders(const json_t *pattern);

/* What strategies, ways and names of exchanges are called, and what that means: those words that
 * the exchanges use. Returns how many. */
#define CPL_MOST_WORDS 32
struct cpl_word {
    const char *word, *doc;
};

size_t cpl_report_words(const json_t *patterns, struct cpl_word words[CPL_MOST_WORDS]);

/* The option of carpool plan for as many nodes, " --ranks-per-node 4"; "" when the report does not
 * say. Returns text. */
const char *cpl_report_nodes_option(const json_t *pattern, char *text, size_t size);

/* The directory of a file, with a slash at its end; "" is the present one. */
void cpl_report_directory(const char *file, char *text, size_t size);

/* The beginning of a page, with its style and heading, and its end (report_html.c). */
void cpl_html_begin(FILE *out, const char *title);
void cpl_html_end(FILE *out);

/* The page (report_html.c): the whole report as one HTML file that needs no other. directory is
 * where the patterns are. The caller looks at the stream's errors. */
void cpl_report_html(const json_t *report, const char *directory, FILE *out);

#endif
