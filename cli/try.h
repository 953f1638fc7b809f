/* carpool try: runs programs without the library and with it in several modes, in turns, compares
 * what they print, and tells what was carried and what was left to MPI.
 *
 * command_try.c has the options and goes through the programs, try_program.c through the runs. A
 * launch is try_launch.c's, comparing outputs try_compare.c's. The result is one JSON object, from
 * which try_tell.c prints the table and try_html.c the page. */
#ifndef CARPOOL_TRY_H
#define CARPOOL_TRY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <wordexp.h>

#define CPL_TRY_MOST_REPEAT 1000
#define CPL_TRY_MOST_MODES  3

struct cpl_try_options {
    const char *launcher; /* NULL: the usual one */
    const char *directory, *json, *table;
    long ranks, repeat, limit;
    int yields; /* 1, 0, or -1: as the cores ask for */
    int n_runs; /* the plain one and the modes */
    const char *run[1 + CPL_TRY_MOST_MODES];
};

/* A program that is tried. */
struct cpl_try_program {
    char name[64], directory[512];
    long ranks;
    char *const *argv;
    bool yields;
};

/* --- try_program.c */

/* Prints an error message of carpool try. Returns status. */
int cpl_try_complain(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* All runs of a program, in turns; the plain one runs twice at least, to know what varies. Returns
 * the program's object of the result; NULL after a message. */
json_t *cpl_try_program(const struct cpl_try_options *options,
                        const struct cpl_try_program *program, const wordexp_t *launcher);

/* --- try_launch.c */

#define CPL_TRY_TIMED_OUT (-1) /* as an exit code */

struct cpl_launch {
    char *const *argv;     /* ends with NULL */
    const char *out, *err; /* files for its standard output and standard error */
    double limit;          /* seconds, after which it is ended */
    double seconds;        /* what it took */
    int code;              /* its exit code, 128 and the number of a signal, or CPL_TRY_TIMED_OUT */
};

/* Starts a program, waits for its end, and fills in seconds and code. When this process is
 * interrupted the program is ended, too. Returns false, with errno set, when it cannot be started.
 */
bool cpl_try_launch(struct cpl_launch *launch);

/* Before a launch lists the present directory's files, with when they were changed; after it copies
 * those that are new or changed to a file of that name, one after the other, and returns how many
 * they are: text files of up to 16 MB. Without any there is no such file. The listing is freed. */
struct cpl_listing;
struct cpl_listing *cpl_try_list_files(void);
int cpl_try_keep_files(struct cpl_listing *before, const char *file);

/* --- try_compare.c: what two outputs have in common
 *
 * A line's numbers are apart from its other text, its shape. What is known to vary is masked at
 * once: numbers beside units of time and of rates, behind words such as time, rate, pid, or in a
 * table (cells between bars) under such words or shares in percent; clocks and dates; the host's
 * name. What differs between runs of the program itself is masked, too: the
 * numbers at these places of a shape, or all lines of a shape. Lines may come in any order. */

struct cpl_output_line {
    char *shape;  /* the text, with a mark for each number */
    char *fields; /* the numbers, each with its final 0 */
    size_t n_fields, number;
};

struct cpl_output {
    size_t n;
    struct cpl_output_line *line; /* by shape, then in the order in which they came */
};

struct cpl_difference {
    size_t n;                    /* lines that differ */
    size_t n_lines;              /* of the first plain run */
    size_t n_own;                /* of these, that differ between plain runs, too */
    char plain[160], found[160]; /* the first difference; "" where there is no such line */
};

/* Reads a run's output, and what it wrote into files, if there is such a file. Returns false, with
 * errno set, when it cannot; free it then, too. */
bool cpl_output_read(const char *file, const char *files, struct cpl_output *output);
void cpl_output_free(struct cpl_output *output);

/* Compares a run with n plain runs, at least one. Returns false when memory ran out. */
bool cpl_output_compare(const struct cpl_output *plain, size_t n, const struct cpl_output *run,
                        struct cpl_difference *difference);

/* --- try_tell.c: the result
 *
 * An object with version and programs, an array of objects: name, ranks, command, cores, yields,
 * repeat, lines, own_lines, files (that a plain run wrote), verdict and runs, an array of objects:
 * run (plain or the mode), seconds, codes, median_s, least_s, most_s, speedup, output (same,
 * differs, failed, nothing, or empty for plain), page (of the last run's report, beside
 * index.html), differing, difference, exchanges, carried, left, speed; of the last run's account
 * spent_ms and gained_ms. */

/* What a report says: adds all_left, exchanges, carried and left to the object of a run. */
void cpl_try_add_report(json_t *run, const json_t *report);

/* The verdict: adds to each mode's run whether it is faster or slower than the plain runs, or
 * neither (speed: faster, slower, same), by a rank sum: a difference that chance may make is none.
 * Adds to the program what follows, a clause for people (verdict). */
void cpl_try_judge(json_t *program);

/* Prints the table of all programs on standard output. */
void cpl_try_print(const json_t *result);

/* Whether all runs of all programs ended well and printed the same. */
bool cpl_try_is_same(const json_t *result);

/* --- try_html.c: the page; the caller looks at the stream's errors. */
void cpl_try_html(const json_t *result, FILE *out);

#endif
