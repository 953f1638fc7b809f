/* carpool calibrate: measures classes of links, message rates and packing, and writes the machine
 * file that the cost model reads; with --distances also the distances of all pairs of ranks. An MPI
 * program, which the command carpool becomes.
 *
 * Ranks are placed as the preloaded library places them: nodes as it finds them, sockets by hwloc
 * and the rule of blocks. All ranks read the options; rank 0 prints messages. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "distances.h"
#include "lanes.h"
#include "links.h"
#include "memory.h"
#include "probe.h"
#include "write.h"

#include "planner/base/option_text.h"
#include "planner/machine.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXIT_FAILED     1
#define EXIT_USAGE      2
#define DEFAULT_SECONDS 8

struct options {
    const char *output;            /* NULL: standard output */
    const char *distances;         /* NULL: not measured */
    char distance_bytes[PATH_MAX]; /* the file of their times per byte */
    const char *topology;
    int ranks_per_node; /* 0: find out */
    double seconds;
    bool help;
};

/* The place of one rank. */
struct place {
    int64_t node;  /* equal for ranks of the same node */
    uint64_t host; /* hash of the host's name */
    int64_t n_processors;
};

static int world_rank(void)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

/* A line on rank 0's stderr. */
__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
    va_list arguments;
    if (world_rank() != 0)
        return;
    va_start(arguments, format);
    fputs("carpool calibrate: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
}

static void usage(FILE *out)
{
    if (world_rank() != 0)
        return;
    fputs("usage: mpiexec -n RANKS carpool calibrate [OPTION...]\n\n"
          "Measures what messages cost and writes a machine file (carpool plan --machine,\n"
          "CARPOOL_MACHINE).\n\n"
          "  -o, --output FILE               the machine file; default: standard output\n"
          "  --distances FILE                measure all pairs of ranks, too, into this file and\n"
          "                                  FILE.ns_per_byte\n"
          "  --seconds N                     about as long as it may take; default 8\n"
          "  --ranks-per-node N              consecutive ranks on a node; default: found out\n"
          "  --topology FILE|SYNTHETIC       the node: hwloc XML or synthetic description\n",
          out);
    fflush(out);
}

static bool parse_positive(const char *text, double max, double *value)
{
    char *end;
    *value = strtod(text, &end);
    return end != text && !*end && *value > 0 && *value <= max;
}

/* The files' names become words of the machine file. */
static bool set_distances(struct options *options, const char *value)
{
    options->distances = value;
    int n = snprintf(options->distance_bytes, PATH_MAX, "%s.ns_per_byte", value);
    return *value && n < PATH_MAX && !strpbrk(value, "#\n\r") && !strchr(" \t", value[0]) &&
           !strchr(" \t", value[strlen(value) - 1]);
}

static bool set_option(struct options *options, int option, const char *value)
{
    double number;
    switch (option) {
    case 'o':
        options->output = value;
        return true;
    case 'd':
        if (set_distances(options, value))
            return true;
        break;
    case 't':
        options->topology = value;
        return true;
    case 'r':
        if (parse_positive(value, INT_MAX, &number) && number >= 1 &&
            number == (double)(int)number) {
            options->ranks_per_node = (int)number;
            return true;
        }
        break;
    case 's':
        if (parse_positive(value, 86400, &options->seconds))
            return true;
        break;
    default:
        return false;
    }
    say("'%s' is not a value for this option; see carpool calibrate --help", value);
    return false;
}

static bool parse_options(int argc, char **argv, struct options *options)
{
    static const struct option known[] = {{"output", required_argument, NULL, 'o'},
                                          {"distances", required_argument, NULL, 'd'},
                                          {"seconds", required_argument, NULL, 's'},
                                          {"ranks-per-node", required_argument, NULL, 'r'},
                                          {"topology", required_argument, NULL, 't'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    int option;
    opterr = 0; /* one rank speaks */
    optind = 1; /* simulated ranks have it in common */
    while ((option = getopt_long(argc, argv, ":ho:", known, NULL)) != -1) {
        if (option == 'h') {
            options->help = true;
            return true;
        }
        if (option == '?' || option == ':') {
            char text[160];
            cpl_option_text(option, argv, known, text, sizeof text);
            say("%s see carpool calibrate --help", text);
            return false;
        }
        if (!set_option(options, option, optarg))
            return false;
    }
    if (optind < argc)
        say("'%s' is too much; see carpool calibrate --help", argv[optind]);
    return optind == argc;
}

/* Whether all ranks succeeded; the first that did not prints why. Collective. */
static bool all_done(enum cpl_status status, const struct cpl_error *error)
{
    int rank = world_rank(), mine = status ? rank : INT_MAX, first = 0;
    MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (first == rank)
        fprintf(stderr, "carpool calibrate: rank %d: %s\n", rank, error->text);
    return first == INT_MAX;
}

static struct place find_place(const struct options *options, char host[MPI_MAX_PROCESSOR_NAME])
{
    int rank = world_rank(), length;
    struct place place = {.host = 14695981039346656037U};
    if (options->ranks_per_node) {
        place.node = rank / options->ranks_per_node;
    } else {
        place.node = cpl_lanes_node();
    }
    MPI_Get_processor_name(host, &length);
    for (int k = 0; k < length; k++)
        place.host = (place.host ^ (unsigned char)host[k]) * 1099511628211U;
    place.n_processors = sysconf(_SC_NPROCESSORS_ONLN);
    if (place.n_processors < 1)
        place.n_processors = 1;
    return place;
}

static int compare_hosts(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    return (x->host > y->host) - (x->host < y->host);
}

/* Hosts, and the most ranks that share a processor of one. Sorts the places. */
static void count_hosts(struct place *places, struct cpl_run_facts *facts)
{
    qsort(places, (size_t)facts->n_ranks, sizeof *places, compare_hosts);
    facts->n_turns = 1;
    for (int i = 0, end; i < facts->n_ranks; i = end) {
        for (end = i; end < facts->n_ranks && places[end].host == places[i].host;)
            end++;
        int n_turns = (int)((end - i + places[i].n_processors - 1) / places[i].n_processors);
        if (n_turns > facts->n_turns)
            facts->n_turns = n_turns;
        facts->n_hosts++;
    }
}

/* The number of consecutive ranks on each node (the last may have fewer), 0 when they differ or
 * there is one node. */
static int count_ranks_per_node(const struct cpl_machine *machine)
{
    int n = 1;
    while (n < machine->n_ranks && machine->node[n] == 0)
        n++;
    for (int rank = 0; rank < machine->n_ranks; rank++)
        if (machine->node[rank] != rank / n)
            return 0;
    return n < machine->n_ranks ? n : 0;
}

static enum cpl_status build_machine(const struct options *options, const struct place *places,
                                     int n_ranks, struct cpl_machine *machine,
                                     struct cpl_error *error)
{
    struct cpl_node_shape shape;
    int64_t *node = calloc((size_t)n_ranks, sizeof *node);
    if (!node)
        return cpl_fail_memory(error, "the nodes");
    for (int i = 0; i < n_ranks; i++)
        node[i] = places[i].node;
    enum cpl_status status = cpl_node_shape_load(options->topology, &shape, error);
    if (!status)
        status = cpl_machine_from_places(n_ranks, node, NULL, NULL, 0, machine, error);
    if (!status)
        cpl_machine_apply_shape(machine, &shape);
    free(node);
    return status;
}

/* Finds out where ranks are. Collective; false on all ranks when it failed on one, which has
 * printed why. The caller frees *machine. */
static bool look_around(const struct options *options, char host[MPI_MAX_PROCESSOR_NAME],
                        struct cpl_machine *machine, struct cpl_run_facts *facts)
{
    struct cpl_error error = {""};
    struct place mine = find_place(options, host);
    struct place *places = calloc((size_t)facts->n_ranks, sizeof *places);
    enum cpl_status status = places ? CPL_OK : cpl_fail_memory(&error, "the places of ranks");
    bool done = all_done(status, &error);
    if (done) {
        MPI_Allgather(&mine, sizeof mine, MPI_BYTE, places, sizeof mine, MPI_BYTE, MPI_COMM_WORLD);
        status = build_machine(options, places, facts->n_ranks, machine, &error);
        done = all_done(status, &error);
    }
    if (done) {
        count_hosts(places, facts);
        facts->n_nodes = machine->n_nodes;
        facts->ranks_per_node = count_ranks_per_node(machine);
    } else if (places && !status) {
        cpl_machine_free(machine);
    }
    free(places);
    return done;
}

static enum cpl_status fail_write(const char *file, struct cpl_error *error)
{
    return cpl_fail(error, CPL_ERR_IO, "%.300s: cannot be written: %s", file, strerror(errno));
}

/* Whether a file can be written, before the time is spent; it is not changed. */
static enum cpl_status try_file(const char *file, struct cpl_error *error)
{
    if (!file)
        return CPL_OK;
    bool is_new = access(file, F_OK) != 0;
    FILE *out = fopen(file, "a");
    if (!out)
        return fail_write(file, error);
    fclose(out);
    if (is_new)
        unlink(file);
    return CPL_OK;
}

static enum cpl_status close_file(FILE *out, const char *file, struct cpl_error *error)
{
    bool failed = fflush(out) || ferror(out);
    int code = errno;
    if (out != stdout)
        failed = fclose(out) || failed;
    errno = code ? code : errno;
    return failed ? fail_write(file, error) : CPL_OK;
}

static enum cpl_status save_figure(const char *file, const struct cpl_run_facts *facts,
                                   const struct cpl_distance *distances,
                                   enum cpl_distance_figure figure, struct cpl_error *error)
{
    FILE *out = fopen(file, "w");
    if (!out)
        return fail_write(file, error);
    cpl_write_distances(out, facts, distances, figure);
    return close_file(out, file, error);
}

/* How the machine file names a file of distances: by its name when both lie in one folder, else by
 * the whole path. */
static enum cpl_status name_file(const struct options *options, const char *path,
                                 char name[PATH_MAX], struct cpl_error *error)
{
    const char *slash = strrchr(path, '/');
    size_t n_directory = slash ? (size_t)(slash + 1 - path) : 0;
    if (options->output) {
        const char *other = strrchr(options->output, '/');
        size_t n_other = other ? (size_t)(other + 1 - options->output) : 0;
        if (n_directory == n_other && memcmp(path, options->output, n_other) == 0) {
            snprintf(name, PATH_MAX, "%s", path + n_directory);
            return CPL_OK;
        }
    }
    if (!realpath(path, name))
        return fail_write(path, error);
    if (strpbrk(name, "#\n\r") || strlen(name) >= CPL_MACHINE_PATH)
        return cpl_fail(error, CPL_ERR_ARG,
                        "a machine file cannot name %.200s; give both files in one directory",
                        name);
    return CPL_OK;
}

/* Everything that was measured; complete on rank 0. */
struct results {
    struct cpl_run_facts facts;
    struct cpl_links_result links;
    struct cpl_memory_result memory;
    struct cpl_distance *distances; /* n_ranks x n_ranks, NULL: not measured */
};

/* Writes both files of distances, and finds how the machine file names them. */
static enum cpl_status save_distances(const struct options *options, const struct results *results,
                                      char name[PATH_MAX], char bytes_name[PATH_MAX],
                                      struct cpl_error *error)
{
    const struct cpl_distance *distances = results->distances;
    const char *bytes = options->distance_bytes;
    enum cpl_status status =
        save_figure(options->distances, &results->facts, distances, CPL_DISTANCE_US, error);
    if (!status)
        status = save_figure(bytes, &results->facts, distances, CPL_DISTANCE_NS_PER_BYTE, error);
    if (!status)
        status = name_file(options, options->distances, name, error);
    return status ? status : name_file(options, bytes, bytes_name, error);
}

static enum cpl_status save(const struct options *options, const struct results *results,
                            struct cpl_error *error)
{
    char name[PATH_MAX], bytes_name[PATH_MAX];
    enum cpl_status status = CPL_OK;
    if (options->distances)
        status = save_distances(options, results, name, bytes_name, error);
    if (status)
        return status;
    FILE *out = options->output ? fopen(options->output, "w") : stdout;
    if (!out)
        return fail_write(options->output, error);
    cpl_write_machine(out, &results->facts, &results->links, &results->memory,
                      options->distances ? name : NULL, options->distances ? bytes_name : NULL);
    return close_file(out, options->output ? options->output : "standard output", error);
}

static bool measure_distances(const struct options *options, const struct cpl_probe *probe,
                              struct results *results)
{
    struct cpl_error error = {""};
    size_t n = (size_t)probe->n_ranks;
    struct cpl_distance *row = calloc(n, sizeof *row);
    if (probe->rank == 0)
        results->distances = calloc(n * n, sizeof *results->distances);
    bool ready = row && (probe->rank != 0 || results->distances);
    bool done = all_done(ready ? CPL_OK : cpl_fail_memory(&error, "the distances"), &error);
    if (done)
        cpl_distances_measure(probe, options->seconds / 2, results->facts.n_turns, row,
                              results->distances);
    free(row);
    return done;
}

static bool measure(const struct options *options, const struct cpl_machine *machine,
                    struct cpl_probe *probe, struct results *results)
{
    struct cpl_error error = {""};
    double start = MPI_Wtime();
    double seconds = options->distances ? options->seconds / 2 : options->seconds;
    /* Where ranks share processors, two at a time are enough. */
    int most_peers = results->facts.n_turns > 1 ? 1 : probe->n_ranks;
    enum cpl_status status = CPL_OK;
    if (cpl_links_measure(probe, machine, seconds, most_peers, &results->links)) {
        say("out of memory for the links of %d ranks", probe->n_ranks);
        return false;
    }
    if (probe->rank == 0 &&
        cpl_memory_measure(&results->memory.segment_ns, &results->memory.item_ns))
        status = cpl_fail_memory(&error, "the pieces to copy");
    cpl_probe_barrier(probe);
    bool done = all_done(status, &error) &&
                (!options->distances || measure_distances(options, probe, results));
    results->facts.seconds = MPI_Wtime() - start;
    return done;
}

/* Measures and writes. Collective. */
static bool calibrate(const struct options *options, struct results *results)
{
    char host[MPI_MAX_PROCESSOR_NAME], version[MPI_MAX_LIBRARY_VERSION_STRING];
    struct cpl_error error = {""};
    struct cpl_machine machine;
    struct cpl_probe probe;
    int length;
    if (!look_around(options, host, &machine, &results->facts))
        return false;
    MPI_Get_library_version(version, &length);
    version[strcspn(version, "\n")] = '\0';
    for (char *at = version; *at; at++)
        *at = *at == '\t' ? ' ' : *at;
    results->facts.host = host;
    results->facts.mpi = version;
    if (results->facts.n_turns > 1)
        say("up to %d ranks share a processor: the figures will be those of the scheduler, "
            "not of the machine; start at most as many ranks as there are processors",
            results->facts.n_turns);
    bool done = cpl_probe_open(&probe) == 0;
    if (!done)
        say("out of memory for messages");
    if (done) {
        done = measure(options, &machine, &probe, results);
        cpl_probe_close(&probe);
    }
    cpl_machine_free(&machine);
    enum cpl_status status = done && world_rank() == 0 ? save(options, results, &error) : CPL_OK;
    return all_done(status, &error) && done;
}

/* Warns of disturbance, unless ranks share processors: that warning was printed already. */
static void warn_of_disturbance(const struct results *results)
{
    double worst = 0;
    for (int c = 0; c < CPL_N_LINKS; c++)
        if (worst < results->links.link[c].disturbance)
            worst = results->links.link[c].disturbance;
    if (worst > CPL_MOST_DISTURBANCE && results->facts.n_turns == 1)
        say("other work disturbed the measurement (round trips or waits for a processor took %.3g "
            "times as long as they should); measure again on an idle machine",
            worst);
}

/* Returns the exit status. Collective. */
static int run(const struct options *options)
{
    struct results results = {.facts = {0}};
    struct cpl_error error = {""};
    enum cpl_status status = CPL_OK;
    MPI_Comm_size(MPI_COMM_WORLD, &results.facts.n_ranks);
    if (results.facts.n_ranks < 2) {
        say("one rank alone has nobody to send to; start more, as in mpiexec -n 8 carpool "
            "calibrate");
        return EXIT_FAILED;
    }
    if (options->distances && results.facts.n_ranks > CPL_MAX_DISTANCE_RANKS) {
        say("distances are for at most %d ranks, not %d", CPL_MAX_DISTANCE_RANKS,
            results.facts.n_ranks);
        return EXIT_FAILED;
    }
    if (world_rank() == 0) {
        status = try_file(options->output, &error);
        if (!status)
            status = try_file(options->distances, &error);
        if (!status && options->distances)
            status = try_file(options->distance_bytes, &error);
    }
    bool done = all_done(status, &error) && calibrate(options, &results);
    free(results.distances);
    if (done)
        warn_of_disturbance(&results);
    if (done && options->output)
        say("%s written after %.1f seconds", options->output, results.facts.seconds);
    return done ? EXIT_SUCCESS : EXIT_FAILED;
}

int main(int argc, char **argv)
{
    struct options options = {.seconds = DEFAULT_SECONDS};
    int exit_status = EXIT_SUCCESS;
    MPI_Init(&argc, &argv);
    if (!parse_options(argc, argv, &options))
        exit_status = EXIT_USAGE;
    else if (options.help)
        usage(stdout);
    else
        exit_status = run(&options);
    MPI_Finalize();
    return exit_status;
}
