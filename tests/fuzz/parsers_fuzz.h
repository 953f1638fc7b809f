/* What the parts of parsers_fuzz.c share: mutated inputs, and the parsers that take them. */
#ifndef PARSERS_FUZZ_H
#define PARSERS_FUZZ_H

#include "planner/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAX_INPUT 8192

struct input {
    uint8_t bytes[MAX_INPUT + 8];
    size_t n;
};

/* --- parsers_mutate.c */
size_t draw(uint64_t *random, size_t n); /* 0 .. n - 1 */
/* Flips, inserts, cuts, swaps, repeats, replaces numbers, puts pieces of the other input in. */
void mutate(struct input *input, const struct input *other, uint64_t *random);

/* --- parsers. Each looks at one input, aborts when an invariant does not hold, and tells whether
 * the input was accepted. */
struct parser {
    const char *name;
    int share;                /* of all executions */
    bool is_text;             /* a string: cut at the first 0 */
    const char *const *seeds; /* NULL-terminated; NULL: made by fill */
    void (*fill)(struct input *input, uint64_t *random);
    bool (*run)(const uint8_t *bytes, size_t n, uint64_t *random);
    bool is_only_cut; /* not mutated otherwise */
};

extern const struct parser parser_pattern, parser_pattern_file, parser_machine, parser_distances,
    parser_plan_file, parser_report, parser_hosts, parser_topology, parser_topology_file,
    parser_settings, parser_strategy;

#define need(condition) need_that(condition, #condition)
void need_that(bool condition, const char *what);
/* Writes the file "input" in the present directory. */
void write_input(const char *name, const void *bytes, size_t n);
/* A failure has a text of one line. */
void need_text(enum cpl_status status, const struct cpl_error *error);

#endif
