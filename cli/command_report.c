/* carpool report: the JSON report of a run (shim/report/report.c) as text or as a page.
 * */
#include "cli/command.h"
#include "cli/report_read.h"
#include "cli/try.h"

#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

static void usage(FILE *out)
{
    fprintf(out,
            "usage: carpool report FILE [--html PAGE]\n\n"
            "Shows the report that a run with CARPOOL_REPORT=FILE or CARPOOL_OUTPUT=DIR\n"
            "(DIR/report.json) wrote: for every exchange, how many calls there were, how they\n"
            "were carried and why, and its figures without and with the plan.\n\n"
            "  --html PAGE   write it as one HTML file, with pictures, that needs no other\n");
}

/* Measured first: modelled times may be of another machine. */
static void print_side(const char *name, const json_t *side, double us)
{
    char measured[32] = "-";
    if (us >= 0)
        snprintf(measured, sizeof measured, "%.2f", us);
    printf("    %-10s %11s %9lld %9.2f %9lld %9.2f %7lld %5lld %11.2f\n", name, measured,
           (long long)cpl_report_integer(side, "sends_max"), cpl_report_number(side, "sends_avg"),
           (long long)cpl_report_integer(side, "recvs_max"), cpl_report_number(side, "lanes_avg"),
           (long long)cpl_report_integer(side, "mpi_max"),
           (long long)cpl_report_integer(side, "hops_max"), cpl_report_number(side, "modelled_us"));
}

static void print_plan(const json_t *p)
{
    char times[40] = "";
    bool was_kept = cpl_report_has_number(p, "made_ms");
    if (cpl_report_integer(p, "times_planned") > 1)
        snprintf(times, sizeof times, " %lld times",
                 (long long)cpl_report_integer(p, "times_planned"));
    printf("    plan: %s, %s%s in %.2f ms", cpl_report_text(p, "considered"),
           was_kept                                               ? "read from the plan cache"
           : json_is_true(json_object_get(p, "planned_together")) ? "made by all ranks together"
                                                                  : "made",
           times, cpl_report_number(p, "plan_ms"));
    if (was_kept)
        printf(" (making it took %.2f ms)", cpl_report_number(p, "made_ms"));
    printf("; %lld bytes forwarded in all calls%s\n",
           (long long)cpl_report_integer(p, "forwarded_bytes"), cpl_report_forwarders(p));
    if (cpl_report_integer(p, "straight_messages") > 0)
        printf("    besides, %lld messages of %lld bytes in all are above CARPOOL_SIZE_LIMIT and "
               "go straight\n",
               (long long)cpl_report_integer(p, "straight_messages"),
               (long long)cpl_report_integer(p, "straight_bytes"));
}

static void print_pattern(const json_t *p, const char *directory)
{
    char name[160], outcome[200], why[400], nodes[64], sum[400];
    struct cpl_measured measured;
    cpl_report_name(p, name, sizeof name);
    cpl_report_outcome(p, outcome, sizeof outcome);
    printf("\n%s on %lld ranks, %lld calls%s: %s%s\n", name,
           (long long)cpl_report_integer(p, "ranks"), (long long)cpl_report_integer(p, "calls"),
           json_is_true(json_object_get(p, "calls_passed"))
               ? " looked at (more passed without a look)"
               : "",
           outcome, cpl_report_reason(p, why, sizeof why));
    if (cpl_report_number(p, "combined_late") > 0)
        printf("    %.0f of %.0f combined messages were late\n",
               cpl_report_number(p, "combined_late"), cpl_report_number(p, "combined"));
    if (cpl_report_is_ordered(p))
        printf("    order: messages leave first to ranks that send most in what follows\n");
    if (!json_object_get(p, "direct")) {
        if (!json_object_get(p, "left_alone"))
            printf("    too few calls to be planned\n");
        return;
    }
    printf("    one call: %lld messages, %lld bytes\n",
           (long long)cpl_report_integer(p, "messages"), (long long)cpl_report_integer(p, "bytes"));
    print_plan(p);
    printf("    %-10s %11s %9s %9s %9s %9s %7s %5s %11s\n", "", "measured us", "sends max",
           "sends avg", "recvs max", "lanes avg", "MPI max", "hops", "modelled us");
    cpl_report_measured(p, &measured);
    print_side("by MPI", json_object_get(p, "direct"), measured.us[0]);
    print_side("by plan", json_object_get(p, "planned"), measured.us[1]);
    if (measured.how[0])
        printf("    %s\n", measured.how);
    if (cpl_report_sum(p, sum, sizeof sum)[0])
        printf("    %s\n", sum);
    if (json_object_get(p, "file"))
        printf("    plan it again: carpool plan --unit 1%s %s%s\n",
               cpl_report_nodes_option(p, nodes, sizeof nodes), directory,
               cpl_report_text(p, "file"));
}

static int flush_text(void)
{
    if (!fflush(stdout) && !ferror(stdout))
        return 0;
    fprintf(stderr, "carpool report: cannot write to standard output: %s\n", strerror(errno));
    return CPL_EXIT_FAILED;
}

/* What the library has cost and gained. */
static void print_account(const json_t *root)
{
    const json_t *account = json_object_get(root, "account");
    double planning = cpl_report_number(account, "planning_ms");
    double trials = cpl_report_number(account, "trials_ms");
    if (account && !json_object_get(root, "all_left"))
        printf("Carpool cost %.1f ms (planning %.1f, trials %.1f) and gained %.1f\n",
               cpl_report_spent(account), planning, trials,
               cpl_report_number(account, "gained_ms"));
}

static int print_report(const json_t *root, const char *directory)
{
    static char line[CPL_REPORT_LINES][CPL_REPORT_LINE];
    if (cpl_report_is_trial(root)) {
        cpl_try_print(root);
        return flush_text();
    }
    const json_t *patterns = json_object_get(root, "patterns");
    cpl_report_run_lines(root, line);
    for (int k = 0; k < CPL_REPORT_LINES; k++)
        if (line[k][0])
            puts(line[k]);
    for (size_t k = 0; k < json_array_size(patterns); k++)
        print_pattern(json_array_get(patterns, k), directory);
    if (json_object_get(root, "all_left"))
        printf("all calls were left to MPI: %s\n", cpl_report_text(root, "all_left"));
    else if (json_array_size(patterns) == 0)
        printf("no exchanges were seen\n");
    if (cpl_report_integer(root, "left_out") > 0)
        printf("and %lld more exchanges, which took least\n",
               (long long)cpl_report_integer(root, "left_out"));
    print_account(root);
    return flush_text();
}

static int write_page(const json_t *root, const char *page, const char *directory)
{
    FILE *out = fopen(page, "w");
    if (!out) {
        fprintf(stderr, "carpool report: %s: cannot be created: %s\n", page, strerror(errno));
        return CPL_EXIT_FAILED;
    }
    errno = 0;
    if (cpl_report_is_trial(root))
        cpl_try_html(root, out);
    else
        cpl_report_html(root, directory, out);
    bool is_written = !fflush(out) && !ferror(out);
    int code = errno;
    if (fclose(out) && is_written) {
        is_written = false;
        code = errno;
    }
    if (is_written)
        return 0;
    fprintf(stderr, "carpool report: %s: cannot be written: %s\n", page,
            code ? strerror(code) : "unknown reason");
    return CPL_EXIT_FAILED;
}

int cpl_command_report(int argc, char **argv)
{
    static const struct option known[] = {{"html", required_argument, NULL, 'p'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    const char *page = NULL;
    int option;
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":h", known, NULL)) != -1) {
        if (option == 'h') {
            usage(stdout);
            return 0;
        }
        if (option != 'p')
            return cpl_command_wrong_option(option, argv, known);
        page = optarg;
    }
    if (optind != argc - 1)
        return cpl_command_wrong_file(argc, argv);
    json_t *root = cpl_report_load("report", argv[optind]);
    if (!root)
        return CPL_EXIT_FAILED;
    char directory[4096];
    cpl_report_directory(argv[optind], directory, sizeof directory);
    int status = page ? write_page(root, page, directory) : print_report(root, directory);
    json_decref(root);
    return status;
}
