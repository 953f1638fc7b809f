/* carpool plan: plans a pattern without MPI and shows the strategies side by side. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "cli/command.h"
#include "planner/lower_bound.h"
#include "planner/machine.h"
#include "planner/pattern.h"
#include "planner/plan.h"
#include "planner/strategy.h"

#include <getopt.h>
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum format { FORMAT_TABLE, FORMAT_TSV, FORMAT_JSON };

struct options {
    const char *file;
    const char *strategies;
    const char *topology;
    const char *machine;    /* a file or a built-in machine; NULL: the default */
    int32_t ranks_per_node; /* 0: not given */
    double unit_bytes;
    double budget_ms;
    enum format format;
    bool dump;
    bool no_lanes;
};

struct result {
    char name[CPL_STRATEGY_TEXT];   /* as asked for */
    char chosen[CPL_STRATEGY_TEXT]; /* what auto chose, else the same */
    struct cpl_metrics metrics;
    double plan_ms;
};

/* What no plan can beat. */
struct lower_bounds {
    int64_t messages; /* cpl_bound_two_waves */
    double us;        /* cpl_bound_time */
};

static void usage(FILE *out)
{
    size_t n_machines;
    const struct cpl_builtin_machine *machines = cpl_builtin_machines(&n_machines);
    fputs(
        "usage: carpool plan FILE [OPTION...]\n\n"
        "Plans the communication pattern in FILE (Matrix Market coordinate, or text: P, then "
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
          "  --budget MS                     effort of strategies that search; default 500\n"
          "  --format table|tsv|json         default table\n"
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

static bool set_option(struct options *options, int option, const char *value)
{
    double number;
    switch (option) {
    case 's':
        options->strategies = value;
        return true;
    case 'r':
        if (!parse_positive(value, CPL_MAX_RANKS, &number) || number != floor(number))
            break;
        options->ranks_per_node = (int32_t)number;
        return true;
    case 't':
        options->topology = value;
        return true;
    case 'm':
        options->machine = value;
        return true;
    case 'u':
        if (!parse_positive(value, 1e12, &options->unit_bytes))
            break;
        return true;
    case 'b':
        if (!parse_positive(value, 1e9, &options->budget_ms))
            break;
        return true;
    case 'f':
        if (strcmp(value, "table") && strcmp(value, "tsv") && strcmp(value, "json"))
            break;
        options->format = value[0] == 'j'   ? FORMAT_JSON
                          : value[1] == 's' ? FORMAT_TSV
                                            : FORMAT_TABLE;
        return true;
    case 'd':
        options->dump = true;
        return true;
    case 'l':
        options->no_lanes = true;
        return true;
    default:
        return false;
    }
    fprintf(stderr, "carpool plan: '%s' is not a value for this option; see carpool plan --help\n",
            value);
    return false;
}

/* Returns -1 to go on, else an exit status. */
static int parse_options(int argc, char **argv, struct options *options)
{
    static const struct option known[] = {{"strategy", required_argument, NULL, 's'},
                                          {"ranks-per-node", required_argument, NULL, 'r'},
                                          {"topology", required_argument, NULL, 't'},
                                          {"machine", required_argument, NULL, 'm'},
                                          {"unit", required_argument, NULL, 'u'},
                                          {"budget", required_argument, NULL, 'b'},
                                          {"format", required_argument, NULL, 'f'},
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
    if (optind != argc - 1)
        return cpl_command_wrong_file(argc, argv);
    options->file = argv[optind];
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
    if (file.distances[0])
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

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* Plans by one choice, checks the plan, measures or dumps it. */
static enum cpl_status try_choice(const struct options *options,
                                  const struct cpl_strategy_input *input,
                                  struct cpl_strategy_choice choice, struct result *result,
                                  struct cpl_error *error)
{
    struct cpl_plan plan;
    cpl_strategy_label(&choice, input->machine, result->name);
    double start = now_ms();
    enum cpl_status status = choice.strategy ? cpl_strategy_plan(input, &choice, &plan, error)
                                             : cpl_strategy_plan_auto(input, &choice, &plan, error);
    if (status)
        return status;
    result->plan_ms = now_ms() - start;
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
    return status;
}

static int name_width(const struct result *results, size_t n)
{
    size_t width = 9;
    for (size_t k = 0; k < n; k++)
        if (strlen(results[k].name) > width)
            width = strlen(results[k].name);
    return (int)width;
}

static void print_table(const struct options *options, const struct cpl_pattern *pattern,
                        const struct cpl_machine *machine, const struct lower_bounds *bounds,
                        const struct result *results, size_t n)
{
    int width = name_width(results, n);
    int64_t n_messages = cpl_pattern_pairs(pattern)->n_messages;
    printf("%s: %d ranks, %lld messages (%.2f a rank)", options->file, pattern->n_ranks,
           (long long)n_messages, (double)n_messages / pattern->n_ranks);
    if (pattern->pairs)
        printf(" in %lld parts", (long long)pattern->n_messages);
    printf(", %d nodes, %g bytes a unit\n", machine->n_nodes, options->unit_bytes);
    printf("%-*s %5s %9s %9s %9s %9s %9s %7s %5s %5s %7s %11s %11s %9s %7s %8s\n", width, "", "",
           "sends", "", "recvs", "", "by lanes", "by MPI", "hops", "", "volume", "modelled",
           "barriers", "plan", "set", "");
    printf("%-*s %5s %9s %9s %9s %9s %9s %7s %5s %5s %7s %11s %11s %9s %7s %8s\n", width,
           "strategy", "waves", "max", "avg", "max", "avg", "avg", "max", "max", "avg", "factor",
           "us", "us", "ms", "max", "avg");
    for (size_t k = 0; k < n; k++) {
        const struct result *r = &results[k];
        const struct cpl_metrics *m = &r->metrics;
        printf("%-*s %5d %9lld %9.2f %9lld %9.2f %9.2f %7lld %5d %5.2f %7.2f %11.2f %11.2f %9.2f "
               "%7lld %8.2f\n",
               width, r->name, m->n_waves, (long long)m->sends_max, m->sends_avg,
               (long long)m->recvs_max, m->recvs_avg, m->lanes_avg, (long long)m->mpi_max,
               m->hops_max, m->hops_avg, m->volume_factor, m->modelled_us, m->waves_us, r->plan_ms,
               (long long)m->set_max, m->set_avg);
        if (strcmp(r->name, r->chosen) != 0)
            printf("(auto chose %s)\n", r->chosen);
    }
    printf("lower bounds: in two waves some rank sends or receives %lld, in any number of waves it "
           "takes %.2f us (modelled, with barriers)\n",
           (long long)bounds->messages, bounds->us);
}

static void print_tsv(const struct result *results, size_t n)
{
    printf("strategy\twaves\tsends_max\tsends_avg\trecvs_max\trecvs_avg\thops_max\thops_avg\t"
           "volume_factor\tmodelled_us\tplan_ms\tset_max\tset_avg\tlanes_avg\tmpi_max\n");
    for (size_t k = 0; k < n; k++) {
        const struct cpl_metrics *m = &results[k].metrics;
        printf("%s\t%d\t%lld\t%.4f\t%lld\t%.4f\t%d\t%.4f\t%.4f\t%.4f\t%.3f\t%lld\t%.4f\t%.4f\t"
               "%lld\n",
               results[k].name, m->n_waves, (long long)m->sends_max, m->sends_avg,
               (long long)m->recvs_max, m->recvs_avg, m->hops_max, m->hops_avg, m->volume_factor,
               m->modelled_us, results[k].plan_ms, (long long)m->set_max, m->set_avg, m->lanes_avg,
               (long long)m->mpi_max);
    }
}

static json_t *result_json(const struct result *r)
{
    const struct cpl_metrics *m = &r->metrics;
    return json_pack("{s:s s:s s:i s:I s:f s:I s:f s:i s:f s:f s:f s:f s:f s:I s:f s:f s:I}",
                     "strategy", r->name, "chosen", r->chosen, "waves", m->n_waves, "sends_max",
                     (json_int_t)m->sends_max, "sends_avg", m->sends_avg, "recvs_max",
                     (json_int_t)m->recvs_max, "recvs_avg", m->recvs_avg, "hops_max", m->hops_max,
                     "hops_avg", m->hops_avg, "volume_factor", m->volume_factor, "modelled_us",
                     m->modelled_us, "waves_us", m->waves_us, "plan_ms", r->plan_ms, "set_max",
                     (json_int_t)m->set_max, "set_avg", m->set_avg, "lanes_avg", m->lanes_avg,
                     "mpi_max", (json_int_t)m->mpi_max);
}

static bool print_json(const struct options *options, const struct cpl_pattern *pattern,
                       const struct cpl_machine *machine, const struct lower_bounds *bounds,
                       const struct result *results, size_t n)
{
    json_t *rows = json_array();
    for (size_t k = 0; rows && k < n; k++)
        json_array_append_new(rows, result_json(&results[k]));
    json_t *root =
        json_pack("{s:s s:s s:i s:I s:I s:i s:f s:I s:f s:o}", "version", PACKAGE_VERSION, "file",
                  options->file, "ranks", pattern->n_ranks, "messages",
                  (json_int_t)cpl_pattern_pairs(pattern)->n_messages, "parts",
                  (json_int_t)pattern->n_messages, "nodes", machine->n_nodes, "unit_bytes",
                  options->unit_bytes, "bound_two_waves", (json_int_t)bounds->messages, "bound_us",
                  bounds->us, "strategies", rows);
    bool done = root && json_dumpf(root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(10)) == 0;
    putchar('\n');
    json_decref(root);
    return done;
}

static int show(const struct options *options, const struct cpl_strategy_input *input,
                const struct lower_bounds *bounds, const struct result *results, size_t n)
{
    bool done = true;
    if (options->dump)
        done = true; /* the plans have been printed */
    else if (options->format == FORMAT_TABLE)
        print_table(options, input->pattern, input->machine, bounds, results, n);
    else if (options->format == FORMAT_TSV)
        print_tsv(results, n);
    else
        done = print_json(options, input->pattern, input->machine, bounds, results, n);
    if (!done || fflush(stdout) || ferror(stdout)) {
        fprintf(stderr, "carpool plan: cannot write the result to standard output\n");
        return CPL_EXIT_FAILED;
    }
    return 0;
}

/* Plans by all choices. direct on a machine with lanes has two rows: what MPI does, and direct by
 * lanes. Returns the number of rows, 0 after saying what is wrong. */
static size_t try_all(const struct options *options, const struct cpl_strategy_input *input,
                      const struct cpl_strategy_list *list, struct result *results)
{
    const struct cpl_machine without = cpl_machine_without_lanes(input->machine);
    struct cpl_strategy_input by_mpi = *input;
    struct cpl_error error;
    enum cpl_status status = CPL_OK;
    size_t n = 0;
    by_mpi.machine = &without;
    for (size_t k = 0; k < list->n && !status; k++) {
        const struct cpl_strategy_choice *choice = &list->choice[k];
        if (choice->strategy == &cpl_strategy_direct && cpl_machine_has_lanes(input->machine) &&
            !options->dump)
            status = try_choice(options, &by_mpi, *choice, &results[n++], &error);
        if (!status)
            status = try_choice(options, input, *choice, &results[n++], &error);
    }
    if (status)
        fprintf(stderr, "carpool plan: %s: strategy %s: %s\n", options->file, results[n - 1].name,
                error.text);
    return status ? 0 : n;
}

static int plan_all(const struct options *options, const struct cpl_strategy_input *input)
{
    struct cpl_strategy_list list;
    struct result results[2 * CPL_MAX_CANDIDATES];
    struct cpl_error error;
    if (!list_choices(options->strategies, input, &list))
        return CPL_EXIT_USAGE;
    size_t n = try_all(options, input, &list, results);
    if (n == 0)
        return CPL_EXIT_FAILED;
    struct lower_bounds bounds;
    if (cpl_bound_two_waves(input->pattern, &bounds.messages, &error) ||
        cpl_bound_time(input->pattern, input->machine, input->unit_bytes, &bounds.us, &error)) {
        fprintf(stderr, "carpool plan: %s\n", error.text);
        return CPL_EXIT_FAILED;
    }
    return show(options, input, &bounds, results, n);
}

int cpl_command_plan(int argc, char **argv)
{
    struct options options = {
        .strategies = "all", .unit_bytes = 8, .budget_ms = CPL_DEFAULT_BUDGET_MS};
    int exit_status = parse_options(argc, argv, &options);
    if (exit_status >= 0)
        return exit_status;
    struct cpl_pattern pattern;
    struct cpl_machine machine;
    struct cpl_error error;
    if (cpl_pattern_read(options.file, &pattern, &error)) {
        fprintf(stderr, "carpool plan: %s\n", error.text);
        return CPL_EXIT_FAILED;
    }
    if (describe_machine(&options, pattern.n_ranks, &machine, &error)) {
        fprintf(stderr, "carpool plan: %s\n", error.text);
        cpl_pattern_free(&pattern);
        return CPL_EXIT_FAILED;
    }
    struct cpl_strategy_input input = {&pattern, &machine, options.unit_bytes, options.budget_ms};
    exit_status = plan_all(&options, &input);
    cpl_machine_free(&machine);
    cpl_pattern_free(&pattern);
    return exit_status;
}
