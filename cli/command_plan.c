/* carpool plan: plans a pattern without MPI and shows the strategies side by side. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "cli/command.h"
#include "cli/plan.h"
#include "planner/lower_bound.h"

#include <getopt.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct options {
    int n_files;
    char **files; /* "-" is standard input */
    const char *strategies;
    const char *topology;
    const char *machine;    /* a file or a built-in machine; NULL: the default */
    int32_t ranks_per_node; /* 0: not given */
    double unit_bytes;
    double size_limit; /* bytes; larger messages are not planned */
    double budget_ms;
    enum cpl_plan_format format;
    bool wide, dump;
    bool no_lanes;
};

static void usage(FILE *out)
{
    size_t n_machines;
    const struct cpl_builtin_machine *machines = cpl_builtin_machines(&n_machines);
    fputs(
        "usage: carpool plan FILE... [OPTION...]\n\n"
        "Plans the communication pattern in FILE (- is standard input; Matrix Market coordinate, "
        "or text: P, then "
        "lines\n"
        "`src dst volume` or `src dst : item item ...`; may be gzipped) and prints each "
        "strategy's\n"
        "figures.\n\n"
        "  --strategy NAME[,NAME...]|all   strategies to try (`carpool strategies`); default all\n"
        "  --ranks-per-node N              consecutive ranks on a node; default: the cores of\n"
        "                                  --topology, or what --machine says, or 32\n"
        "  --topology FILE|SYNTHETIC       the node: hwloc XML or synthetic description\n"
        "  --machine NAME|FILE             costs of messages; default the first of\n",
        out);
    for (size_t k = 0; k < n_machines; k++)
        fprintf(out, "                                    %-6s %s\n", machines[k].name,
                machines[k].doc);
    fputs("  --unit BYTES                    bytes of a unit of volume; default 8\n"
          "  --size-limit BYTES|none         larger messages go straight, not by plans, as with\n"
          "                                  CARPOOL_SIZE_LIMIT; default 4096\n"
          "  --budget MS                     effort of strategies that search; default 500\n"
          "  --format table|tsv|json         default table\n"
          "  --wide                          a table with all columns (more than 100 characters)\n"
          "  --no-lanes                      plan as if MPI carried messages inside nodes, too\n"
          "  --dump                          print the plans themselves instead\n",
          out);
}

static bool parse_positive(const char *text, double max, double *value)
{
    char *end;
    *value = strtod(text, &end);
    return end != text && !*end && *value > 0 && *value <= max;
}

static bool complain_of(const char *option, const char *takes, const char *value)
{
    fprintf(stderr, "carpool plan: %s takes %s, not '%s'; `carpool plan --help` tells more\n",
            option, takes, value);
    return false;
}

static bool set_ranks_per_node(struct options *options, const char *value)
{
    double number;
    char takes[64];
    snprintf(takes, sizeof takes, "a whole number from 1 to %d", CPL_MAX_RANKS);
    if (!parse_positive(value, CPL_MAX_RANKS, &number) || number != floor(number))
        return complain_of("--ranks-per-node", takes, value);
    options->ranks_per_node = (int32_t)number;
    return true;
}

static bool set_format(struct options *options, const char *value)
{
    static const char *const names[] = {"table", "tsv", "json"};
    for (int k = 0; k < 3; k++)
        if (strcmp(value, names[k]) == 0) {
            options->format = (enum cpl_plan_format)k;
            return true;
        }
    return complain_of("--format", "table, tsv or json", value);
}

static bool set_option(struct options *options, int option, const char *value)
{
    switch (option) {
    case 's':
        options->strategies = value;
        return true;
    case 'r':
        return set_ranks_per_node(options, value);
    case 't':
        options->topology = value;
        return true;
    case 'm':
        options->machine = value;
        return true;
    case 'u':
        return parse_positive(value, 1e12, &options->unit_bytes) ||
               complain_of("--unit", "a number of bytes above 0, up to 1e12", value);
    case 'b':
        return parse_positive(value, 1e9, &options->budget_ms) ||
               complain_of("--budget", "milliseconds above 0, up to 1e9", value);
    case 'S':
        options->size_limit = INFINITY;
        return strcmp(value, "none") == 0 || parse_positive(value, 1e12, &options->size_limit) ||
               complain_of("--size-limit", "bytes above 0, up to 1e12, or none", value);
    case 'f':
        return set_format(options, value);
    case 'w':
        options->wide = true;
        return true;
    case 'd':
        options->dump = true;
        return true;
    default:
        options->no_lanes = true;
        return true;
    }
}

/* Returns -1 to go on, else an exit status. */
static int parse_options(int argc, char **argv, struct options *options)
{
    static const struct option known[] = {{"strategy", required_argument, NULL, 's'},
                                          {"ranks-per-node", required_argument, NULL, 'r'},
                                          {"topology", required_argument, NULL, 't'},
                                          {"machine", required_argument, NULL, 'm'},
                                          {"unit", required_argument, NULL, 'u'},
                                          {"size-limit", required_argument, NULL, 'S'},
                                          {"budget", required_argument, NULL, 'b'},
                                          {"format", required_argument, NULL, 'f'},
                                          {"wide", no_argument, NULL, 'w'},
                                          {"dump", no_argument, NULL, 'd'},
                                          {"no-lanes", no_argument, NULL, 'l'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    int option;
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":h", known, NULL)) != -1) {
        if (option == 'h') {
            usage(stdout);
            return 0;
        }
        if (option == '?' || option == ':')
            return cpl_command_wrong_option(option, argv, known);
        if (!set_option(options, option, optarg))
            return CPL_EXIT_USAGE;
    }
    if (optind == argc)
        return cpl_command_wrong_file(argc, argv);
    options->files = argv + optind;
    options->n_files = argc - optind;
    return -1;
}

static enum cpl_status apply_distances(const struct options *options,
                                       const struct cpl_machine_file *file,
                                       struct cpl_machine *machine, struct cpl_error *error)
{
    struct cpl_distances distances;
    enum cpl_status status =
        cpl_distances_load(options->machine, file, machine->n_ranks, &distances, error);
    if (status)
        return status;
    status = cpl_machine_set_distances(machine, &distances, NULL, error);
    cpl_distances_free(&distances);
    return status;
}

/* The machine that the options describe, for n_ranks ranks. */
static enum cpl_status describe_machine(const struct options *options, int32_t n_ranks,
                                        struct cpl_machine *machine, struct cpl_error *error)
{
    struct cpl_machine_file file = cpl_machine_file_default();
    struct cpl_node_shape shape;
    enum cpl_status status = CPL_OK;
    if (options->machine)
        status = cpl_machine_file_load(options->machine, &file, error);
    if (!status && options->topology)
        status = cpl_node_shape_load(options->topology, &shape, error);
    if (status)
        return status;
    int32_t ranks_per_node = file.ranks_per_node;
    if (options->topology && shape.n_cores > 0)
        ranks_per_node = shape.n_cores;
    if (options->ranks_per_node)
        ranks_per_node = options->ranks_per_node;
    if (!ranks_per_node)
        ranks_per_node = cpl_builtin_machines(&(size_t){0})->ranks_per_node;
    status = cpl_machine_init(n_ranks, ranks_per_node, machine, error);
    if (status)
        return status;
    machine->costs = file.costs;
    machine->lanes = !options->no_lanes;
    if (options->topology)
        cpl_machine_apply_shape(machine, &shape);
    if (file.distances.name[0])
        status = apply_distances(options, &file, machine, error);
    if (status)
        cpl_machine_free(machine);
    return status;
}

/* What --strategy asks for. Returns false after saying what is wrong. */
static bool list_choices(const char *text, const struct cpl_strategy_input *input,
                         struct cpl_strategy_list *list)
{
    if (strcmp(text, "all") == 0) {
        cpl_strategy_candidates(input, list);
        cpl_strategy_add(list, NULL, &(struct cpl_strategy_numbers){0});
        return true;
    }
    for (list->n = 0; list->n < CPL_MAX_CANDIDATES; list->n++) {
        size_t length = strcspn(text, ",");
        char name[2 * CPL_STRATEGY_TEXT];
        struct cpl_error error;
        snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1),
                 text);
        if (cpl_strategy_parse(name, &list->choice[list->n], &error)) {
            fprintf(stderr, "carpool plan: %s\n", error.text);
            return false;
        }
        if (!text[length]) {
            list->n++;
            return true;
        }
        text += length + 1;
    }
    fprintf(stderr, "carpool plan: more than %d strategies\n", CPL_MAX_CANDIDATES);
    return false;
}

static double clock_ms(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* Where no plan is faster than MPI without lanes the library leaves the exchange to it. */
static enum cpl_status leave_to_mpi(const struct cpl_strategy_input *input,
                                    struct cpl_plan_result *result, struct cpl_error *error)
{
    struct cpl_metrics mpi;
    if (!cpl_machine_has_lanes(input->machine))
        return CPL_OK;
    enum cpl_status status = cpl_strategy_measure_mpi(input, &mpi, error);
    if (!status && mpi.modelled_us < result->metrics.modelled_us) {
        result->metrics = mpi;
        snprintf(result->chosen, sizeof result->chosen, "%s", cpl_strategy_direct.name);
    }
    return status;
}

/* Plans by one choice, checks the plan, measures or dumps it. */
static enum cpl_status try_choice(const struct options *options,
                                  const struct cpl_strategy_input *input,
                                  struct cpl_strategy_choice choice, struct cpl_plan_result *result,
                                  struct cpl_error *error)
{
    struct cpl_plan plan;
    bool is_auto = !choice.strategy;
    cpl_strategy_label(&choice, input->machine, result->name);
    double start = clock_ms(CLOCK_MONOTONIC), cpu = clock_ms(CLOCK_PROCESS_CPUTIME_ID);
    enum cpl_status status = choice.strategy ? cpl_strategy_plan(input, &choice, &plan, error)
                                             : cpl_strategy_plan_auto(input, &choice, &plan, error);
    if (status)
        return status;
    result->plan_ms = clock_ms(CLOCK_MONOTONIC) - start;
    result->cpu_ms = clock_ms(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    cpl_strategy_label(&choice, input->machine, result->chosen);
    status = cpl_plan_check(&plan, input->pattern, error);
    if (!status)
        status =
            cpl_plan_measure(&plan, input->machine, input->unit_bytes, &result->metrics, error);
    if (!status && options->dump) {
        printf("# strategy %s\n", result->chosen);
        if (input->machine->lanes)
            printf("# edges by lanes: %.0f of %lld\n", result->metrics.lanes_avg * plan.n_ranks,
                   (long long)plan.n_edges);
        status = cpl_plan_dump(&plan, stdout, error);
    }
    cpl_plan_free(&plan);
    if (!status && is_auto && !options->dump)
        status = leave_to_mpi(input, result, error);
    return status;
}

/* On a terminal: which strategy is at work, and how many are; n 0 takes that away again. */
static void tell_progress(size_t k, size_t n, const struct cpl_strategy_choice *choice,
                          const struct cpl_machine *machine)
{
    char name[CPL_STRATEGY_TEXT];
    if (!isatty(STDERR_FILENO))
        return;
    if (n > 0)
        cpl_strategy_label(choice, machine, name);
    if (n > 0)
        fprintf(stderr, "\r\033[Kcarpool plan: %zu of %zu, %s ...", k + 1, n, name);
    else
        fputs("\r\033[K", stderr);
    fflush(stderr);
}

/* Plans by all choices. direct on a machine with lanes has two rows: what MPI does, and direct by
 * lanes. Returns false after saying what is wrong. */
static bool try_all(const struct options *options, const struct cpl_strategy_input *input,
                    const struct cpl_strategy_list *list, struct cpl_plan_results *results)
{
    const struct cpl_machine without = cpl_machine_without_lanes(input->machine);
    struct cpl_strategy_input by_mpi = *input;
    struct cpl_error error;
    enum cpl_status status = CPL_OK;
    size_t n = 0;
    by_mpi.machine = &without;
    for (size_t k = 0; k < list->n && !status; k++) {
        const struct cpl_strategy_choice *choice = &list->choice[k];
        tell_progress(k, list->n, choice, input->machine);
        if (choice->strategy == &cpl_strategy_direct && cpl_machine_has_lanes(input->machine) &&
            !options->dump)
            status = try_choice(options, &by_mpi, *choice, &results->row[n++], &error);
        if (!status)
            status = try_choice(options, input, *choice, &results->row[n++], &error);
    }
    tell_progress(0, 0, NULL, NULL);
    if (status)
        fprintf(stderr, "carpool plan: %s: strategy %s: %s\n", results->file,
                results->row[n - 1].name, error.text);
    results->n = n;
    return !status;
}

static int plan_all(const struct options *options, const struct cpl_strategy_input *input,
                    const char *file)
{
    static struct cpl_plan_results results;
    struct cpl_strategy_list list;
    struct cpl_error error;
    if (!list_choices(options->strategies, input, &list))
        return CPL_EXIT_USAGE;
    results.file = file;
    results.pattern = input->pattern;
    results.machine = input->machine;
    results.unit_bytes = input->unit_bytes;
    if (!try_all(options, input, &list, &results))
        return CPL_EXIT_FAILED;
    if (cpl_bound_two_waves(input->pattern, &results.bounds.messages, &error) ||
        cpl_bound_time(input->pattern, input->machine, input->unit_bytes, &results.bounds.us,
                       &error)) {
        fprintf(stderr, "carpool plan: %s\n", error.text);
        return CPL_EXIT_FAILED;
    }
    bool done = options->dump || cpl_plan_tell(&results, options->format, options->wide);
    if (!done || fflush(stdout) || ferror(stdout)) {
        fprintf(stderr, "carpool plan: cannot write the result to standard output\n");
        return CPL_EXIT_FAILED;
    }
    return 0;
}

/* What was changed or assumed without being asked for: a line each, after success. */
static void tell_changes(const struct options *options, const char *name,
                         const struct cpl_pattern *pattern)
{
    struct cpl_machine_file file, preset = cpl_machine_file_default();
    struct cpl_error error;
    if (pattern->n_self > 0)
        fprintf(stderr, "carpool plan: %s: messages of ranks to themselves, left out: %lld\n", name,
                (long long)pattern->n_self);
    if (pattern->n_merged > 0)
        fprintf(stderr, "carpool plan: %s: lines that repeat a pair of ranks, added up: %lld\n",
                name, (long long)pattern->n_merged);
    if (options->machine && access(options->machine, F_OK) == 0 &&
        !cpl_machine_file_load(options->machine, &file, &error) &&
        memcmp(&file.costs, &preset.costs, sizeof file.costs) == 0 && !file.distances.name[0])
        fprintf(stderr, "carpool plan: %s: has no costs; those of %s hold\n", options->machine,
                cpl_builtin_machines(&(size_t){0})->name);
}

/* Takes the messages above the size limit out of the pattern, which the preloaded library sends
 * straight. *n_straight becomes their number. */
static enum cpl_status take_straight(const struct options *options, struct cpl_pattern *pattern,
                                     int64_t *n_straight, struct cpl_error *error)
{
    const struct cpl_pattern *pairs = cpl_pattern_pairs(pattern);
    struct cpl_pattern_entry *entries = calloc((size_t)pattern->n_messages + 1, sizeof *entries);
    struct cpl_pattern kept;
    int64_t n = 0;
    *n_straight = 0;
    if (!entries)
        return cpl_fail_memory(error, "the pattern");
    for (int32_t i = 0; i < pattern->n_ranks; i++) {
        int64_t pair = pairs->first[i];
        for (int64_t m = pattern->first[i]; m < pattern->first[i + 1]; m++) {
            bool begins = m == pattern->first[i] || pattern->dst[m] != pattern->dst[m - 1];
            pair += m > pattern->first[i] && begins;
            bool rides = (double)pairs->volume[pair] * options->unit_bytes <= options->size_limit;
            *n_straight += begins && !rides;
            if (rides)
                entries[n++] = (struct cpl_pattern_entry){
                    i, pattern->dst[m], pattern->volume[m],
                    pattern->payload_class ? pattern->payload_class[m] : -1};
        }
    }
    enum cpl_status status =
        *n_straight ? cpl_pattern_build(pattern->n_ranks, entries, n, &kept, error) : CPL_OK;
    free(entries);
    if (status || !*n_straight)
        return status;
    kept.n_self = pattern->n_self;
    kept.n_merged = pattern->n_merged;
    cpl_pattern_free(pattern);
    *pattern = kept;
    return CPL_OK;
}

static int plan_file(const struct options *options, const char *file)
{
    struct cpl_pattern pattern;
    int64_t n_straight;
    struct cpl_machine machine;
    struct cpl_error error;
    bool is_input = strcmp(file, "-") == 0;
    if (cpl_pattern_read(is_input ? "/dev/stdin" : file, &pattern, &error)) {
        fprintf(stderr, "carpool plan: %s\n", error.text);
        return CPL_EXIT_FAILED;
    }
    if (take_straight(options, &pattern, &n_straight, &error) ||
        describe_machine(options, pattern.n_ranks, &machine, &error)) {
        fprintf(stderr, "carpool plan: %s\n", error.text);
        cpl_pattern_free(&pattern);
        return CPL_EXIT_FAILED;
    }
    struct cpl_strategy_input input = {&pattern, &machine, options->unit_bytes, options->budget_ms};
    const char *name = is_input ? "standard input" : file;
    int exit_status = plan_all(options, &input, name);
    if (exit_status == 0 && n_straight > 0)
        fprintf(stderr,
                "carpool plan: %s: messages above %g bytes, which go straight, left out: %lld "
                "(--size-limit)\n",
                name, options->size_limit, (long long)n_straight);
    if (exit_status == 0)
        tell_changes(options, name, &pattern);
    cpl_machine_free(&machine);
    cpl_pattern_free(&pattern);
    return exit_status;
}

int cpl_command_plan(int argc, char **argv)
{
    struct options options = {.strategies = "all",
                              .unit_bytes = 8,
                              .size_limit = 4096,
                              .budget_ms = CPL_DEFAULT_BUDGET_MS};
    int exit_status = parse_options(argc, argv, &options);
    if (exit_status >= 0)
        return exit_status;
    for (int k = exit_status = 0; k < options.n_files && exit_status == 0; k++) {
        if (k > 0 && !options.dump)
            putchar('\n');
        exit_status = plan_file(&options, options.files[k]);
    }
    return exit_status;
}
