/*
 * The options of a program as a table: each row is a name and where its value goes. Call before or
 * after MPI_Init; nothing is printed here.
 */
#ifndef BENCH_ARGUMENTS_H
#define BENCH_ARGUMENTS_H

#include "common.h"

#include <stdint.h>

/* An option --name; it has a value unless it sets a flag. One of the pointers says where its value
 * goes. */
struct bench_option {
    const char *name;
    int *flag;                /* becomes 1 */
    int *count;               /* the value is a whole number from least to most */
    int64_t *number;          /* the same */
    const char **text;        /* the value itself */
    int *word;                /* the value is one of words; its place goes here */
    const char *const *words; /* they end with NULL */
    int64_t least, most;
    /* or this takes the value: 0, or -1 with *error written */
    int (*take)(const struct bench_option *option, char *value, struct bench_error *error);
};

/* Arguments besides the options of the table. */
struct bench_arguments {
    int is_json, wants_help; /* --json and --help, which all tables have without a row */
    int n_names;             /* arguments that are no options */
    char **names;
};

/*
 * Read all options of the table, which ends with a row without a name. 0, or -1 with *error
 * written: an option is unknown, lacks its value, or was not taken.
 */
int bench_read_arguments(int n_words, char **words, const struct bench_option *table,
                         struct bench_arguments *out, struct bench_error *error);

/* The position of the word in words, which end with NULL, or -1. */
int bench_find_word(const char *const *words, const char *word);

/* The place of the value among the option's words, or -1 with *error written. */
int bench_choose(const struct bench_option *option, const char *value, struct bench_error *error);

#endif
