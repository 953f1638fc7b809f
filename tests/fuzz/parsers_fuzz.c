/* Fuzz test of the parsers: whatever the bytes, reading returns; what is accepted satisfies the
 * invariants of its header, and what is refused has a text.
 *
 *   parsers_fuzz [-n N] [-s SEED] [-p PARSER] [-k NUMBER]
 *
 * N (20000) mutations of valid inputs in all, the same for the same SEED (1): patterns and gzipped
 * files of them, machine files, distances, plan files, reports, hosts, topologies, settings,
 * strategies; topology files, on which hwloc 2.9's own reader crashes, only with -p. -p: of one
 * parser only (a part of its name); -k: only the execution of that number, which a violation names.
 * The last input is kept in the file `last`, others are written to the present directory. Writes
 * TAP, a test for each parser; a violation aborts. It proves something under
 * -fsanitize=address,undefined: see run-parsers.sh. */
#include "parsers_fuzz.h"

#include "planner/base/hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct parser *const parsers[] = {
    &parser_pattern,       &parser_pattern_file, &parser_machine, &parser_distances,
    &parser_plan_file,     &parser_report,       &parser_hosts,   &parser_topology,
    &parser_topology_file, &parser_settings,     &parser_strategy};

#define N_PARSERS (sizeof parsers / sizeof *parsers)

static FILE *tap; /* standard output: what the commands print goes to /dev/null */
static const struct parser *present;
static uint64_t number;

void need_that(bool condition, const char *what)
{
    if (condition)
        return;
    fprintf(tap, "Bail out! %s, execution %" PRIu64 ": not so: %s\n", present->name, number, what);
    fflush(tap);
    abort();
}

void need_text(enum cpl_status status, const struct cpl_error *error)
{
    if (!status)
        return;
    need(memchr(error->text, 0, sizeof error->text));
    need(error->text[0] && !strchr(error->text, '\n'));
}

void write_input(const char *name, const void *bytes, size_t n)
{
    FILE *file = fopen(name, "wb");
    need(file && fwrite(bytes, 1, n, file) == n);
    need(!fclose(file));
}

static void fill(const struct parser *parser, struct input *input, uint64_t *random)
{
    size_t n = 0;
    if (parser->fill) {
        parser->fill(input, random);
        return;
    }
    while (parser->seeds[n])
        n++;
    const char *seed = parser->seeds[draw(random, n)];
    input->n = strlen(seed);
    memcpy(input->bytes, seed, input->n);
}

/* Returns whether the input was accepted. The first ones of a parser are its seeds as they are. */
static bool run_one(const struct parser *parser, uint64_t random, bool is_mutated)
{
    static struct input input, other;
    other.n = 0;
    if (parser->seeds)
        fill(parser, &other, &random);
    fill(parser, &input, &random);
    if (is_mutated && parser->is_only_cut)
        input.n = draw(&random, input.n + 1);
    else if (is_mutated)
        mutate(&input, &other, &random);
    if (parser->is_text) { /* ends with a 0, in a block of just this size */
        const uint8_t *end = memchr(input.bytes, 0, input.n);
        input.n = end ? (size_t)(end - input.bytes) : input.n;
        input.bytes[input.n] = '\0';
    }
    size_t n = input.n + parser->is_text;
    uint8_t *exact = malloc(n ? n : 1);
    need(exact);
    memcpy(exact, input.bytes, n);
    write_input("last", exact, input.n);
    bool is_accepted = parser->run(exact, input.n, &random);
    free(exact);
    return is_accepted;
}

static void run_parser(const struct parser *parser, size_t place, uint64_t n, uint64_t seed,
                       int64_t only)
{
    static size_t n_tests;
    uint64_t n_accepted = 0, n_run = 0;
    present = parser;
    for (number = 0; number < n; number++) {
        if (only >= 0 && number != (uint64_t)only)
            continue;
        n_accepted += run_one(parser, cpl_hash_mix(seed + 1000 * place) ^ number, number >= 8);
        n_run++;
    }
    /* a parser that refuses everything, or nothing, is not looked at */
    bool is_seen = only >= 0 || n < 50 || (n_accepted > 0 && n_accepted < n_run);
    fprintf(tap, "%sok %zu - %s\n", is_seen ? "" : "not ", ++n_tests, parser->name);
    fprintf(tap, "# %s: %" PRIu64 " executions, %" PRIu64 " accepted, %" PRIu64 " refused\n",
            parser->name, n_run, n_accepted, n_run - n_accepted);
    fflush(tap);
}

static void silence(void)
{
    tap = fdopen(dup(STDOUT_FILENO), "w");
    if (!tap || !freopen("/dev/null", "w", stdout))
        exit(2);
    if (!freopen("/dev/null", "w", stderr)) /* sanitizers write to their log_path */
        exit(2);
}

int main(int argc, char **argv)
{
    uint64_t n = 20000, seed = 1;
    int64_t only = -1;
    const char *name = "";
    int share = 0, option;
    while ((option = getopt(argc, argv, "n:s:p:k:")) != -1) {
        if (option == 'n')
            n = strtoull(optarg, NULL, 10);
        else if (option == 's')
            seed = strtoull(optarg, NULL, 10);
        else if (option == 'p')
            name = optarg;
        else if (option == 'k')
            only = strtoll(optarg, NULL, 10);
        else
            return 2;
    }
    silence();
    present = parsers[0];
    write_input("pattern-aa.mtx", "4\n0 1 2\n1 2 5\n1 3 3\n2 0 1\n3 0 2\n", 31);
    for (size_t k = 0; k < N_PARSERS; k++)
        share += parsers[k]->share;
    for (size_t k = 0; k < N_PARSERS; k++)
        if (strstr(parsers[k]->name, name) && (*name || parsers[k] != &parser_topology_file))
            run_parser(parsers[k], k + 1, n * (uint64_t)parsers[k]->share / (uint64_t)share, seed,
                       only);
    return 0;
}
