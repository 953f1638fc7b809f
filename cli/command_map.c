/* carpool map: from the report of a run to a file that places the ranks of the next one. */
#include "cli/command.h"
#include "cli/report_read.h"
#include "planner/machine.h"
#include "planner/pattern.h"
#include "planner/place.h"

#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options {
    const char *report;
    const char *hosts;   /* NULL: those of the report */
    const char *machine; /* NULL: the default */
    const char *output;  /* NULL: standard output */
    double least_gain;   /* percent of the modelled time */
    bool slurm;
    bool scatter; /* hydra: hosts may come again in the file */
};

/* Where the processes of the next run are: each has a node, each node a host. */
struct places {
    int32_t n_ranks, n_nodes;
    int64_t *node; /* n_ranks */
    char **host;   /* n_nodes; owned */
};

/* The exchanges that the report knows. */
struct exchanges {
    int32_t n, n_left_out;
    struct cpl_pattern *pattern;
    struct cpl_place_exchange *exchange;
};

static void usage(FILE *out)
{
    fputs("usage: carpool map REPORT [OPTION...]\n\n"
          "Reads the report of a run with CARPOOL_OUTPUT=DIR (DIR/report.json; a profile run,\n"
          "`carpool run --profile`, is best) and the patterns beside it, places the ranks so that\n"
          "ranks that exchange much data share a node, and writes a file by which the next launch\n"
          "places them so. Prints the gain by the cost model on standard error.\n\n"
          "  --format hydra|slurm   hydra (default): HOST:COUNT lines for mpiexec.hydra -f FILE;\n"
          "                         slurm: a host for each rank, for SLURM_HOSTFILE=FILE\n"
          "                         srun --distribution=arbitrary\n"
          "  --hosts HOST:N[,...]   the nodes of the next launch; default those of the report\n"
          "  --machine NAME|FILE    costs of messages; default as in carpool plan\n"
          "  --min-gain PERCENT     leave the ranks where they are for less; default 5\n"
          "  --scatter              hydra: let a host come again in the file, which MPICH takes\n"
          "                         for another node\n"
          "  --output FILE          default standard output\n",
          out);
}

static bool read_percent(const char *text, double *percent)
{
    char *end;
    *percent = strtod(text, &end);
    if (end != text && !*end && *percent >= 0 && *percent <= 100)
        return true;
    fprintf(stderr, "carpool map: --min-gain takes a number from 0 to 100, not '%s'\n", text);
    return false;
}

static int read_options(int argc, char **argv, struct options *options)
{
    static const struct option known[] = {
        {"format", required_argument, NULL, 'f'},   {"hosts", required_argument, NULL, 'H'},
        {"machine", required_argument, NULL, 'm'},  {"output", required_argument, NULL, 'o'},
        {"min-gain", required_argument, NULL, 'g'}, {"scatter", no_argument, NULL, 's'},
        {"help", no_argument, NULL, 'h'},           {NULL, 0, NULL, 0}};
    int option;
    *options = (struct options){.least_gain = 5};
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":ho:", known, NULL)) != -1) {
        if (option == 'h') {
            usage(stdout);
            return 0;
        }
        if (option == 'H')
            options->hosts = optarg;
        else if (option == 'm')
            options->machine = optarg;
        else if (option == 'o')
            options->output = optarg;
        else if (option == 's')
            options->scatter = true;
        else if (option == 'g') {
            if (!read_percent(optarg, &options->least_gain))
                return CPL_EXIT_USAGE;
        } else if (option != 'f')
            return cpl_command_wrong_option(option, argv, known);
        else if (strcmp(optarg, "slurm") == 0 || strcmp(optarg, "hydra") == 0)
            options->slurm = optarg[0] == 's';
        else {
            fprintf(stderr, "carpool map: --format takes hydra or slurm, not '%s'\n", optarg);
            return CPL_EXIT_USAGE;
        }
    }
    if (optind != argc - 1)
        return cpl_command_wrong_file(argc, argv);
    options->report = argv[optind];
    return -1;
}

static void *must_have(void *memory)
{
    if (!memory) {
        fprintf(stderr, "carpool map: no memory\n");
        exit(CPL_EXIT_FAILED);
    }
    return memory;
}

/* The node of a host, or -1. */
static int32_t find_host(const struct places *places, const char *name, size_t length)
{
    for (int32_t k = 0; k < places->n_nodes; k++)
        if (strlen(places->host[k]) == length && memcmp(places->host[k], name, length) == 0)
            return k;
    return -1;
}

/* Adds a node. */
static void add_host(struct places *places, const char *name, size_t length)
{
    size_t n = (size_t)places->n_nodes++;
    places->host = must_have(realloc(places->host, (n + 1) * sizeof *places->host));
    places->host[n] = must_have(strndup(name, length));
}

/* "HOST:N,HOST:N": filled in this order until every rank has a place. */
static bool parse_hosts(const char *text, struct places *places)
{
    int32_t n = 0;
    while (*text) {
        size_t length = strcspn(text, ",");
        const char *colon = memchr(text, ':', length);
        char *end = NULL;
        long count = colon ? strtol(colon + 1, &end, 10) : 0;
        if (!colon || colon == text || end != text + length || count < 1) {
            fprintf(stderr, "carpool map: --hosts takes HOST:N[,HOST:N...], not '%.*s'\n",
                    (int)length, text);
            return false;
        }
        int32_t node = find_host(places, text, (size_t)(colon - text));
        if (node >= 0)
            fprintf(stderr, "carpool map: --hosts names %s again: it is taken as one node\n",
                    places->host[node]);
        else
            add_host(places, text, (size_t)(colon - text));
        for (node = node >= 0 ? node : places->n_nodes - 1; count > 0 && n < places->n_ranks;
             count--)
            places->node[n++] = node;
        text += length + (text[length] == ',');
    }
    if (n == places->n_ranks)
        return true;
    fprintf(stderr, "carpool map: --hosts has places for %d ranks, and there are %d\n", (int)n,
            (int)places->n_ranks);
    return false;
}

/* "0-3,8": gives the ranks a node. */
static bool read_ranks(const char *text, int32_t node, struct places *places)
{
    while (*text) {
        char *end;
        long first = strtol(text, &end, 10), last = first;
        if (end == text)
            return false;
        if (*end == '-')
            last = strtol(end + 1, &end, 10);
        if (first < 0 || last < first || last >= places->n_ranks || (*end && *end != ','))
            return false;
        for (long i = first; i <= last; i++)
            places->node[i] = node;
        text = end + (*end == ',');
    }
    return true;
}

/* The nodes that the report names: each with a host of its own, every rank on one. */
static bool read_nodes(const json_t *root, const char *file, struct places *places)
{
    const json_t *nodes = json_object_get(root, "nodes");
    bool complete = json_array_size(nodes) > 0;
    for (int32_t i = 0; i < places->n_ranks; i++)
        places->node[i] = -1;
    for (size_t k = 0; k < json_array_size(nodes); k++) {
        const json_t *node = json_array_get(nodes, k);
        const char *host = cpl_report_text(node, "host");
        if (find_host(places, host, strlen(host)) >= 0) {
            fprintf(stderr,
                    "carpool map: %s: two nodes have the host name %s; name the nodes by "
                    "--hosts\n",
                    file, host);
            return false;
        }
        add_host(places, host, strlen(host));
        complete =
            complete && read_ranks(cpl_report_text(node, "ranks"), places->n_nodes - 1, places);
    }
    for (int32_t i = 0; i < places->n_ranks; i++)
        complete = complete && places->node[i] >= 0;
    if (!complete)
        fprintf(stderr,
                "carpool map: %s does not say on which nodes the ranks ran; name the nodes by "
                "--hosts\n",
                file);
    return complete;
}

/* The path of a file that lies beside the report. */
static char *beside(const char *report, const char *file)
{
    const char *slash = strrchr(report, '/');
    size_t length = slash ? (size_t)(slash - report) + 1 : 0, size = length + strlen(file) + 1;
    char *path = must_have(malloc(size));
    snprintf(path, size, "%.*s%s", (int)length, report, file);
    return path;
}

/* Reads the patterns of all exchanges between the ranks of MPI_COMM_WORLD. Returns whether all that
 * the report names could be read. */
static bool read_exchanges(const json_t *root, const char *report, int32_t n_ranks,
                           struct exchanges *exchanges)
{
    const json_t *list = json_object_get(root, "patterns");
    size_t room = json_array_size(list) + 1;
    exchanges->pattern = must_have(calloc(room, sizeof *exchanges->pattern));
    exchanges->exchange = must_have(calloc(room, sizeof *exchanges->exchange));
    for (size_t k = 0; k + 1 < room; k++) {
        const json_t *p = json_array_get(list, k);
        struct cpl_error error;
        struct cpl_pattern *pattern = &exchanges->pattern[exchanges->n];
        const char *fingerprint = cpl_report_text(p, "pattern");
        double calls = (double)cpl_report_integer(p, "calls");
        if (!json_is_true(json_object_get(p, "world")) || calls <= 0) {
            exchanges->n_left_out++;
            continue;
        }
        char name[64];
        snprintf(name, sizeof name, "pattern-%.32s.mtx", fingerprint);
        char *path = beside(report, name);
        enum cpl_status status = cpl_pattern_read(path, pattern, &error);
        if (!status && pattern->n_ranks != n_ranks) {
            cpl_fail(&error, CPL_ERR_FORMAT, "%.200s: of %d ranks, the run had %d", path,
                     (int)pattern->n_ranks, (int)n_ranks);
            cpl_pattern_free(pattern);
            status = CPL_ERR_FORMAT;
        }
        free(path);
        if (status) {
            fprintf(stderr, "carpool map: %s\n", error.text);
            return false;
        }
        exchanges->exchange[exchanges->n++] = (struct cpl_place_exchange){pattern, calls};
    }
    return true;
}

/* How many lines hydra's file has: a host for each run of ranks on one node. */
static int32_t count_blocks(const struct places *places, const int32_t *place)
{
    int32_t n = 1;
    for (int32_t i = 1; i < places->n_ranks; i++)
        n += places->node[place[i]] != places->node[place[i - 1]];
    return n;
}

static void print_hydra(FILE *out, const struct places *places, const int32_t *place)
{
    for (int32_t first = 0, last; first < places->n_ranks; first = last) {
        int64_t node = places->node[place[first]];
        for (last = first + 1; last < places->n_ranks && places->node[place[last]] == node;)
            last++;
        fprintf(out, "%s:%d\n", places->host[node], (int)(last - first));
    }
    if (count_blocks(places, place) > places->n_nodes)
        fprintf(
            stderr,
            "carpool map: some hosts come again in the file, and MPICH takes each line for another "
            "node: its own collectives\nand MPI_Comm_split_type see %d nodes; Slurm has no "
            "such limit (--format slurm)\n",
            (int)count_blocks(places, place));
}

static bool write_places(const struct options *options, const struct places *places,
                         const int32_t *place)
{
    FILE *out = options->output ? fopen(options->output, "w") : stdout;
    if (!out) {
        fprintf(stderr, "carpool map: %s: cannot be created: %s\n", options->output,
                strerror(errno));
        return false;
    }
    if (options->slurm)
        for (int32_t i = 0; i < places->n_ranks; i++)
            fprintf(out, "%s\n", places->host[places->node[place[i]]]);
    else
        print_hydra(out, places, place);
    bool done = !fflush(out) && !ferror(out);
    if (options->output)
        done = !fclose(out) && done;
    if (!done)
        fprintf(stderr, "carpool map: %s: cannot be written\n",
                options->output ? options->output : "standard output");
    return done;
}

static double percent_of(const struct cpl_place_gain *gain)
{
    return gain->before_us > 0 ? 100 * (1 - gain->after_us / gain->before_us) : 0;
}

/* What was found, what was taken of it, and how to launch. found: any rank anywhere. */
static void tell_gain(const struct options *options, const struct places *places,
                      const struct exchanges *exchanges, const struct cpl_place_gain *found,
                      const struct cpl_place_gain *taken)
{
    const char *file = options->output ? options->output : "FILE";
    double percent = percent_of(taken), most = percent_of(found);
    fprintf(stderr, "carpool map: %d exchanges of %d ranks on %d nodes", (int)exchanges->n,
            (int)places->n_ranks, (int)places->n_nodes);
    if (exchanges->n_left_out > 0)
        fprintf(stderr, " (%d more are not of all ranks, or have no pattern)",
                (int)exchanges->n_left_out);
    if (taken->changed)
        fprintf(stderr,
                ":\n  modelled time of their messages %.4g ms instead of %.4g (%.1f%% less); sum "
                "over all links %.1f%% less\n",
                taken->after_us * 1e-3, taken->before_us * 1e-3, percent,
                100 * (1 - taken->after_links_us / taken->before_links_us));
    else
        fprintf(stderr,
                ":\n  the ranks stay where they are (%.4g ms): no other placement gains %g%% of "
                "the modelled time\n",
                taken->before_us * 1e-3, options->least_gain);
    if (found->changed && most >= options->least_gain && most > percent)
        fprintf(
            stderr,
            "  with hosts that come again it would be %.1f%% less, but MPICH takes each line of "
            "hydra's file for another node;\n  Slurm has no such limit (--format slurm), and "
            "--scatter writes them all the same\n",
            most);
    if (options->slurm)
        fprintf(stderr, "  SLURM_HOSTFILE=%s srun -n %d --distribution=arbitrary ...\n", file,
                (int)places->n_ranks);
    else
        fprintf(stderr, "  mpiexec.hydra -f %s -n %d ...\n", file, (int)places->n_ranks);
}

/* The processes node by node, in the order of the nodes: the one placement beside the ranks' own
 * that a launcher of blocks keeps. */
static void place_blocks(const struct places *places, int32_t *place)
{
    int32_t n = 0;
    for (int32_t node = 0; node < places->n_nodes; node++)
        for (int32_t i = 0; i < places->n_ranks; i++)
            if (places->node[i] == node)
                place[n++] = i;
}

/* Takes the best placement that the launcher keeps, or the ranks' own where that gains too little.
 */
static enum cpl_status choose(const struct options *options, const struct places *places,
                              const struct exchanges *exchanges, const struct cpl_machine *machine,
                              int32_t *place, struct cpl_place_gain *taken, struct cpl_error *error)
{
    enum cpl_status status = CPL_OK;
    if (!options->slurm && !options->scatter && count_blocks(places, place) > places->n_nodes) {
        place_blocks(places, place);
        status =
            cpl_place_model(exchanges->exchange, exchanges->n, machine, 1, place, taken, error);
    }
    if (status || (taken->changed && percent_of(taken) >= options->least_gain))
        return status;
    for (int32_t i = 0; i < places->n_ranks; i++)
        place[i] = i;
    taken->changed = false;
    taken->after_us = taken->before_us;
    return CPL_OK;
}

static bool place_and_write(const struct options *options, const struct places *places,
                            const struct exchanges *exchanges)
{
    struct cpl_machine_file file = cpl_machine_file_default();
    struct cpl_machine machine;
    struct cpl_place_gain found, taken;
    struct cpl_error error;
    int32_t *place = must_have(calloc((size_t)places->n_ranks, sizeof *place));
    enum cpl_status status = CPL_OK;
    if (options->machine)
        status = cpl_machine_file_load(options->machine, &file, &error);
    if (!status)
        status =
            cpl_machine_from_places(places->n_ranks, places->node, NULL, NULL, 0, &machine, &error);
    if (!status) {
        machine.costs = file.costs;
        status =
            cpl_place(exchanges->exchange, exchanges->n, &machine, 1, NULL, place, &found, &error);
        taken = found;
        if (!status)
            status = choose(options, places, exchanges, &machine, place, &taken, &error);
        cpl_machine_free(&machine);
    }
    if (status)
        fprintf(stderr, "carpool map: %s\n", error.text);
    bool done = !status && write_places(options, places, place);
    if (done)
        tell_gain(options, places, exchanges, &found, &taken);
    free(place);
    return done;
}

static bool map_report(const struct options *options, const json_t *root)
{
    json_int_t n_ranks = cpl_report_integer(root, "ranks");
    if (n_ranks < 1 || n_ranks > CPL_PLACE_RANKS) {
        fprintf(stderr, "carpool map: %s is of %lld ranks; 1 to %d can be placed\n",
                options->report, (long long)n_ranks, CPL_PLACE_RANKS);
        return false;
    }
    struct places places = {.n_ranks = (int32_t)n_ranks};
    struct exchanges exchanges = {.n = 0};
    places.node = must_have(calloc((size_t)n_ranks, sizeof *places.node));
    bool done = options->hosts ? parse_hosts(options->hosts, &places)
                               : read_nodes(root, options->report, &places);
    done = done && read_exchanges(root, options->report, places.n_ranks, &exchanges);
    if (done && exchanges.n == 0) {
        fprintf(stderr,
                "carpool map: %s has no exchange of all ranks with its pattern; run with "
                "CARPOOL_OUTPUT=DIR (carpool run --profile)\n",
                options->report);
        done = false;
    }
    done = done && place_and_write(options, &places, &exchanges);
    for (int32_t k = 0; k < exchanges.n; k++)
        cpl_pattern_free(&exchanges.pattern[k]);
    for (int32_t k = 0; k < places.n_nodes; k++)
        free(places.host[k]);
    free(exchanges.pattern);
    free(exchanges.exchange);
    free(places.host);
    free(places.node);
    return done;
}

int cpl_command_map(int argc, char **argv)
{
    struct options options;
    int status = read_options(argc, argv, &options);
    if (status >= 0)
        return status;
    json_t *root = cpl_report_load("map", options.report);
    if (!root)
        return CPL_EXIT_FAILED;
    bool done = map_report(&options, root);
    json_decref(root);
    return done ? 0 : CPL_EXIT_FAILED;
}
