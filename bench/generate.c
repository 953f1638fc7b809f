/*
 * generate: writes matrices made from a seed as Matrix Market coordinate pattern files.
 *
 *     generate rmat --scale S | rgg --rows N | fe --nodes-per-side N | powerlaw|gnm --rows N [...]
 *
 * `generate --help` lists the options, generators.h says what each kind is. The diagonal is always
 * there; symmetric matrices are written as their lower triangle. The header of the file names the
 * command with all settings, and the same command writes the same bytes on every machine.
 * Cost: about a second for 4 million entries. Exit status: 0, 1 on failure, 2 for bad arguments.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* getopt_long */
#endif
#include "edges.h"
#include "generators.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The kinds as bits, so that an option can say which of them it belongs to. */
enum { RMAT = 1, RGG = 2, FE = 4, POWERLAW = 8, GNM = 16, ALL = 31 };

static const struct kind {
    const char *name;
    int bit;
    int (*generate)(const struct generator_options *options, struct edges *edges);
} kinds[] = {
    {"rmat", RMAT, generate_rmat}, {"rgg", RGG, generate_rgg},
    {"fe", FE, generate_fe},       {"powerlaw", POWERLAW, generate_powerlaw},
    {"gnm", GNM, generate_gnm},
};

enum value_type { WHOLE, REAL, FLAG };

/* The table of settings: it makes the parser, the usage and the comment in the file. */
static const struct setting {
    const char *name;
    int kinds;
    enum value_type type;
    size_t offset;
    double least, most, standard; /* standard < least: it must be given */
    const char *meaning;
} settings[] = {
#define FIELD(name) offsetof(struct generator_options, name)
    {"scale", RMAT, WHOLE, FIELD(scale), 1, 30, 0, "2^scale rows"},
    {"edges-per-vertex", RMAT, WHOLE, FIELD(edges_per_vertex), 1, 1e6, 16, "edges drawn per row"},
    {"directed", RMAT, FLAG, FIELD(is_directed), 0, 1, 0, "general instead of symmetric"},
    {"rows", RGG | POWERLAW | GNM, WHOLE, FIELD(n_rows), 1, INT_MAX - 1, 0, "rows"},
    {"degree", RGG | POWERLAW | GNM, REAL, FIELD(degree), 0.01, 1e6, 16, "mean neighbors of a row"},
    {"exponent", POWERLAW, REAL, FIELD(exponent), 1.1, 10, 2.2, "exponent of the power law"},
    {"nodes-per-side", FE, WHOLE, FIELD(nodes_per_side), 1, 1290, 0, "rows are its cube"},
    {"dense-rows", FE, WHOLE, FIELD(n_dense_rows), 0, 1e6, 0, "rows coupled to many more"},
    {"dense-entries", FE, WHOLE, FIELD(dense_entries), 0, 1e9, 1000, "how many, per dense row"},
    {"seed", ALL, WHOLE, FIELD(seed), 0, 9007199254740992.0, 1, "seed of the random numbers"},
#undef FIELD
};

enum { N_KINDS = sizeof kinds / sizeof *kinds, N_SETTINGS = sizeof settings / sizeof *settings };

/* ---- settings ---- */

static int64_t *whole_field(struct generator_options *options, const struct setting *setting)
{
    return (int64_t *)(void *)((char *)options + setting->offset);
}

static double *real_field(struct generator_options *options, const struct setting *setting)
{
    return (double *)(void *)((char *)options + setting->offset);
}

static int set_value(const struct setting *setting, const char *text,
                     struct generator_options *options, struct bench_error *error)
{
    int status = 0;

    if (setting->type == FLAG)
        *whole_field(options, setting) = 1;
    else if (setting->type == REAL)
        status =
            bench_parse_real(text, setting->least, setting->most, real_field(options, setting));
    else
        status = bench_parse_integer(text, (int64_t)setting->least, (int64_t)setting->most,
                                     whole_field(options, setting));
    if (status != 0)
        return bench_fail(error, "--%s wants a number from %.16g to %.16g, not '%s'", setting->name,
                          setting->least, setting->most, text);
    return 0;
}

static void set_standards(struct generator_options *options)
{
    memset(options, 0, sizeof *options);
    for (int i = 0; i < N_SETTINGS; i++) {
        if (settings[i].type == REAL)
            *real_field(options, &settings[i]) = settings[i].standard;
        else
            *whole_field(options, &settings[i]) = (int64_t)settings[i].standard;
    }
}

static void print_usage(FILE *file)
{
    fputs("usage: generate KIND [options]\n", file);
    for (int k = 0; k < N_KINDS; k++) {
        fprintf(file, "  %s\n", kinds[k].name);
        for (int i = 0; i < N_SETTINGS; i++) {
            const struct setting *s = &settings[i];
            if (!(s->kinds & kinds[k].bit))
                continue;
            int width = fprintf(file, "    --%s%s", s->name, s->type == FLAG ? "" : " N");
            fprintf(file, "%*s%s", 26 - width, "", s->meaning);
            if (s->type == FLAG)
                fputs("\n", file);
            else if (s->standard < s->least)
                fputs(" (must be given)\n", file);
            else
                fprintf(file, " (default %g)\n", s->standard);
        }
    }
    fputs("  -o FILE                 write there instead of to standard output\n"
          "  --help                  print this\n",
          file);
}

/* Print as few digits as read back to the same number; returns as snprintf does. */
static int print_real(char *out, size_t size, const char *name, double value)
{
    char digits[32];

    snprintf(digits, sizeof digits, "%.15g", value);
    if (strtod(digits, NULL) != value)
        snprintf(digits, sizeof digits, "%.17g", value);
    return snprintf(out, size, " --%s %s", name, digits);
}

/* The command that makes this file, all settings spelled out. */
static void describe(const struct kind *kind, struct generator_options *options, size_t size,
                     char *out)
{
    size_t n = (size_t)snprintf(out, size, "generate %s", kind->name);

    for (int i = 0; i < N_SETTINGS && n < size; i++) {
        const struct setting *s = &settings[i];
        int length = 0;
        if (!(s->kinds & kind->bit))
            continue;
        if (s->type == REAL)
            length = print_real(out + n, size - n, s->name, *real_field(options, s));
        else if (s->type == WHOLE)
            length = snprintf(out + n, size - n, " --%s %lld", s->name,
                              (long long)*whole_field(options, s));
        else if (*whole_field(options, s))
            length = snprintf(out + n, size - n, " --%s", s->name);
        n += (size_t)length;
    }
}

/* ---- arguments ---- */

struct arguments {
    const struct kind *kind;
    const char *file; /* NULL: standard output */
    struct generator_options options;
    int wants_help;
};

/* Codes of getopt_long beyond the letters: FIRST_CODE + the index in the table. */
enum { FIRST_CODE = 1000, HELP_CODE = 999 };

static void list_options(struct option *out)
{
    for (int i = 0; i < N_SETTINGS; i++)
        out[i] = (struct option){settings[i].name,
                                 settings[i].type == FLAG ? no_argument : required_argument, NULL,
                                 FIRST_CODE + i};
    out[N_SETTINGS] = (struct option){"help", no_argument, NULL, HELP_CODE};
    out[N_SETTINGS + 1] = (struct option){0};
}

static int find_kind(const char *name, const struct kind **out, struct bench_error *error)
{
    for (int k = 0; k < N_KINDS; k++)
        if (strcmp(name, kinds[k].name) == 0) {
            *out = &kinds[k];
            return 0;
        }
    return bench_fail(error, "unknown kind '%s'; known are rmat, rgg, fe, powerlaw, gnm", name);
}

/* Settings that were given must be the kind's, those without a default must be given. */
static int check_settings(const struct kind *kind, const char *given, struct bench_error *error)
{
    for (int i = 0; i < N_SETTINGS; i++) {
        int is_ours = (settings[i].kinds & kind->bit) != 0;
        if (given[i] && !is_ours)
            return bench_fail(error, "%s has no setting --%s", kind->name, settings[i].name);
        if (!given[i] && is_ours && settings[i].standard < settings[i].least)
            return bench_fail(error, "%s needs --%s", kind->name, settings[i].name);
    }
    return 0;
}

static int read_option(int code, char **words, char *given, struct arguments *out,
                       struct bench_error *error)
{
    if (code == ':')
        return bench_fail(error, "%s wants a value", words[optind - 1]);
    if (code == '?')
        return bench_fail(error, "unknown option %s", words[optind - 1]);
    if (code == HELP_CODE) {
        out->wants_help = 1;
    } else if (code == 'o') {
        out->file = optarg;
    } else {
        given[code - FIRST_CODE] = 1;
        return set_value(&settings[code - FIRST_CODE], optarg, &out->options, error);
    }
    return 0;
}

static int read_arguments(int n_words, char **words, struct arguments *out,
                          struct bench_error *error)
{
    struct option names[N_SETTINGS + 2];
    char given[N_SETTINGS] = {0};
    int code;

    *out = (struct arguments){0};
    set_standards(&out->options);
    list_options(names);
    opterr = 0;
    while ((code = getopt_long(n_words, words, ":o:", names, NULL)) != -1)
        if (read_option(code, words, given, out, error) != 0)
            return -1;
    if (out->wants_help)
        return 0;
    if (optind != n_words - 1)
        return bench_fail(error, "%s",
                          optind == n_words ? "no kind given" : "more than one kind given");
    if (find_kind(words[optind], &out->kind, error) != 0)
        return -1;
    return check_settings(out->kind, given, error);
}

/* ---- the program ---- */

static int count_vertices(const struct kind *kind, const struct generator_options *options)
{
    int64_t side = options->nodes_per_side;

    if (kind->bit == RMAT)
        return 1 << options->scale;
    return (int)(kind->bit == FE ? side * side * side : options->n_rows);
}

static int write_file(const char *path, const struct edges *edges, const char *comment,
                      struct bench_error *error)
{
    FILE *file = path ? fopen(path, "w") : stdout;

    if (!file)
        return bench_fail(error, "%s: cannot open: %s; check the name and the permissions", path,
                          strerror(errno));
    int status = edges_write(edges, comment, file);
    if (path && fclose(file) != 0)
        status = -1;
    if (status != 0)
        return bench_fail(error, "%s: cannot write: %s", path ? path : "standard output",
                          strerror(errno));
    return 0;
}

static int run(struct arguments *arguments, struct bench_error *error)
{
    const struct kind *kind = arguments->kind;
    struct edges edges = {
        .n_vertices = count_vertices(kind, &arguments->options),
        .is_symmetric = !arguments->options.is_directed,
    };
    char comment[512];

    int status = kind->generate(&arguments->options, &edges);
    if (status != 0)
        bench_fail(error, "no memory for %d rows; ask for fewer", edges.n_vertices);
    if (status == 0)
        status = edges_finish(&edges, error);
    if (status == 0) {
        describe(kind, &arguments->options, sizeof comment, comment);
        status = write_file(arguments->file, &edges, comment, error);
    }
    edges_free(&edges);
    return status;
}

int main(int n_words, char **words)
{
    struct arguments arguments;
    struct bench_error error;

    if (read_arguments(n_words, words, &arguments, &error) != 0) {
        fprintf(stderr, "generate: %s\n", error.text);
        print_usage(stderr);
        return 2;
    }
    if (arguments.wants_help) {
        print_usage(stdout);
        return 0;
    }
    if (run(&arguments, &error) != 0) {
        fprintf(stderr, "generate: %s\n", error.text);
        return 1;
    }
    return 0;
}
