/* carpool compare: reports of runs beside reports of others (compare.h), as text or as a page. */
#include "cli/command.h"
#include "cli/compare.h"
#include "cli/report_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void usage(FILE *out)
{
    fputs("usage: carpool compare A.json B.json [--html PAGE]\n"
          "       carpool compare A1.json A2.json ... -- B1.json B2.json ... [--html PAGE]\n\n"
          "Compares the reports of two runs, or of several runs of two kinds: how long the runs\n"
          "took, and a call of every exchange, with the spread over the runs. To see whether\n"
          "Carpool pays, let A be runs of carpool run --profile, which changes nothing, and B\n"
          "runs of carpool run.\n\n"
          "  --html PAGE   write it as one HTML file that needs no other\n",
          out);
}

static void print_side(const struct cpl_comparison *c, int side)
{
    static char line[CPL_REPORT_LINES][CPL_REPORT_LINE];
    cpl_report_run_lines(c->last[side], line);
    printf("%c: %s\n   %d run%s: %s\n", side ? 'B' : 'A', line[0][0] ? line[0] : "?",
           c->n_runs[side], c->n_runs[side] == 1 ? "" : "s, the last", line[1]);
    if (line[3][0])
        printf("   %s\n", line[3]);
}

static void print_times(const char *name, const struct cpl_spread *a, const struct cpl_spread *b,
                        const char *how)
{
    char first[64], second[64], ratio[32] = "-";
    if (a->n > 0 && b->n > 0 && b->median > 0)
        snprintf(ratio, sizeof ratio, "%.2f", a->median / b->median);
    printf("%-36s  %24s  %24s  %6s  %s%s%s\n", name, cpl_spread_text(a, first, sizeof first),
           cpl_spread_text(b, second, sizeof second), ratio, how,
           how[0] && cpl_compare_verdict(a, b)[0] ? "; " : "", cpl_compare_verdict(a, b));
}

static int print_text(const struct cpl_comparison *c)
{
    char text[400];
    print_side(c, 0);
    print_side(c, 1);
    if (c->unlike[0])
        printf("The runs are not alike: %s.\n", c->unlike);
    printf("\n%-36s  %24s  %24s  %6s  %s\n", "", "A", "B", "A/B", "carried in B by");
    print_times("whole run, s", &c->seconds[0], &c->seconds[1], "");
    print_times("of that in these exchanges, s", &c->in_exchanges[0], &c->in_exchanges[1], "");
    if (c->n > 0)
        printf("a call on the slowest rank, us:\n");
    for (size_t k = 0; k < c->n; k++) {
        char how[160];
        const struct cpl_compared *row = &c->row[k];
        snprintf(how, sizeof how, "%s", row->side[1].how[0] ? row->side[1].how : "not seen");
        print_times(row->name, &row->side[0].us, &row->side[1].us, how);
    }
    cpl_compare_conclude(c, text, sizeof text);
    printf("\n%s\n", text);
    if (!fflush(stdout) && !ferror(stdout))
        return 0;
    fprintf(stderr, "carpool compare: cannot write to standard output: %s\n", strerror(errno));
    return CPL_EXIT_FAILED;
}

static int write_page(const struct cpl_comparison *c, const char *page)
{
    FILE *out = fopen(page, "w");
    if (!out) {
        fprintf(stderr, "carpool compare: %s: cannot be created: %s\n", page, strerror(errno));
        return CPL_EXIT_FAILED;
    }
    errno = 0;
    cpl_compare_html(c, out);
    bool is_written = !fflush(out) && !ferror(out);
    if (fclose(out) == 0 && is_written)
        return 0;
    fprintf(stderr, "carpool compare: %s: cannot be written: %s\n", page,
            errno ? strerror(errno) : "unknown reason");
    return CPL_EXIT_FAILED;
}

/* Files of A before the mark, of B behind it; without a mark one of each. Returns an exit status.
 */
static int divide(int argc, char **argv, const char *mark, int *n_a)
{
    int n = argc - optind;
    for (*n_a = 0; *n_a < n && argv[optind + *n_a] != mark; ++*n_a)
        ;
    if (*n_a == n && n == 2)
        *n_a = 1;
    else if (*n_a == n || *n_a == 0 || *n_a == n - 1) {
        fprintf(stderr,
                "carpool compare: which reports? Two FILEs, or those of A, then --, then those of "
                "B; `carpool compare --help` tells more\n");
        return CPL_EXIT_USAGE;
    }
    if (*n_a > CPL_COMPARE_RUNS || n - *n_a > CPL_COMPARE_RUNS + 1) {
        fprintf(stderr, "carpool compare: at most %d reports of a side, please\n",
                CPL_COMPARE_RUNS);
        return CPL_EXIT_USAGE;
    }
    return 0;
}

static int compare(int n, char **files, int n_a, const char *mark, const char *page)
{
    static struct cpl_comparison c;
    json_t *report[2 * CPL_COMPARE_RUNS + 1] = {NULL};
    int status = 0;
    for (int k = 0; k < n && !status; k++) {
        if (files[k] == mark)
            continue;
        report[k] = cpl_report_load("compare", files[k]);
        if (!report[k])
            status = CPL_EXIT_FAILED;
        else if (!cpl_compare_add(&c, k >= n_a, report[k])) {
            fprintf(stderr, "carpool compare: no memory\n");
            status = CPL_EXIT_FAILED;
        }
    }
    if (!status) {
        cpl_compare_finish(&c);
        status = page ? write_page(&c, page) : print_text(&c);
    }
    cpl_compare_free(&c);
    for (int k = 0; k < n; k++)
        json_decref(report[k]);
    return status;
}

int cpl_command_compare(int argc, char **argv)
{
    static const struct option known[] = {{"html", required_argument, NULL, 'p'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    static char mark[] = "+"; /* in the place of --, at which getopt would stop */
    const char *page = NULL;
    int option, n_a;
    bool marked = false;
    for (int k = 1; k < argc && !marked; k++)
        if ((marked = strcmp(argv[k], "--") == 0))
            argv[k] = mark;
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
    int status = divide(argc, argv, mark, &n_a);
    return status ? status : compare(argc - optind, argv + optind, n_a, mark, page);
}
