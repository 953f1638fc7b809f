/* Arguments of programs (arguments.h). */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* getopt_long */
#endif
#include "arguments.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

/* FIRST: what getopt_long returns for the first row; characters are below. */
enum { MOST_OPTIONS = 30, FIRST = 256 };

int bench_find_word(const char *const *words, const char *word)
{
    for (int k = 0; words[k]; k++)
        if (strcmp(words[k], word) == 0)
            return k;
    return -1;
}

int bench_choose(const struct bench_option *option, const char *value, struct bench_error *error)
{
    const char *const *words = option->words;
    int k = bench_find_word(words, value);
    char list[200] = "";

    for (int w = 0; k < 0 && words[w]; w++) {
        size_t used = strlen(list);
        const char *between = words[w + 1] ? ", " : " or ";
        snprintf(list + used, sizeof list - used, "%s%s", w ? between : "", words[w]);
    }
    return k >= 0 ? k : bench_fail(error, "--%s wants %s, not '%s'", option->name, list, value);
}

static int take_number(const struct bench_option *option, const char *value,
                       struct bench_error *error)
{
    int64_t number;

    if (bench_parse_integer(value, option->least, option->most, &number) != 0)
        return bench_fail(error, "--%s wants a number from %lld to %lld, not '%s'", option->name,
                          (long long)option->least, (long long)option->most, value);
    if (option->count)
        *option->count = (int)number;
    else
        *option->number = number;
    return 0;
}

static int take(const struct bench_option *option, struct bench_error *error)
{
    if (option->take)
        return option->take(option, optarg, error);
    if (option->count || option->number)
        return take_number(option, optarg, error);
    if (option->word)
        return (*option->word = bench_choose(option, optarg, error)) < 0 ? -1 : 0;
    if (option->text)
        *option->text = optarg;
    else
        *option->flag = 1;
    return 0;
}

/* Appends the rows to the n that there are, also for getopt_long; returns how many there are. */
static int add_rows(const struct bench_option *rows, int n, struct bench_option *all,
                    struct option *names)
{
    for (; rows->name && n < MOST_OPTIONS; rows++, n++) {
        all[n] = *rows;
        names[n] = (struct option){rows->name, rows->flag ? no_argument : required_argument, NULL,
                                   FIRST + n};
    }
    return n;
}

int bench_read_arguments(int n_words, char **words, const struct bench_option *table,
                         struct bench_arguments *out, struct bench_error *error)
{
    const struct bench_option of_all[] = {
        {"json", .flag = &out->is_json}, {"help", .flag = &out->wants_help}, {NULL}};
    struct bench_option rows[MOST_OPTIONS];
    struct option names[MOST_OPTIONS + 1] = {{0}};
    int code;

    add_rows(of_all, add_rows(table, 0, rows, names), rows, names);
    opterr = 0; /* rank 0 alone prints */
    while ((code = getopt_long(n_words, words, ":", names, NULL)) != -1) {
        if (code == ':')
            return bench_fail(error, "%s wants a value", words[optind - 1]);
        if (code == '?')
            return bench_fail(error, "unknown option %s", words[optind - 1]);
        if (take(&rows[code - FIRST], error) != 0)
            return -1;
    }
    out->n_names = n_words - optind;
    out->names = words + optind;
    return 0;
}
