/* What a report says of its run, in words (report_read.h). */
#include "cli/report_read.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MOST_HOSTS 4

static void add(char text[CPL_REPORT_LINE], const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void add(char text[CPL_REPORT_LINE], const char *format, ...)
{
    size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + used, CPL_REPORT_LINE - used, format, args);
    va_end(args);
}

static const json_t *run_of(const json_t *report)
{
    return json_object_get(report, "run");
}

static bool is_text(const json_t *object, const char *key)
{
    return json_is_string(json_object_get(object, key));
}

void cpl_report_command(const json_t *report, char *text, size_t size)
{
    const json_t *run = run_of(report), *words = json_object_get(run, "arguments");
    size_t used = 0;
    text[0] = '\0';
    if (is_text(run, "program"))
        used = (size_t)snprintf(text, size, "%s", cpl_report_text(run, "program"));
    for (size_t k = 0; k < json_array_size(words) && used < size; k++) {
        const char *word = json_string_value(json_array_get(words, k));
        used += (size_t)snprintf(text + used, size - used, " %s", word ? word : "?");
    }
}

/* "6 ranks on 2 nodes (a, b), 64 cores" */
static void tell_place(const json_t *report, char line[CPL_REPORT_LINE])
{
    const json_t *nodes = json_object_get(report, "nodes");
    const char *told[MOST_HOSTS];
    size_t n = json_array_size(nodes), n_told = 0, k = 0;
    add(line, "%lld ranks", (long long)cpl_report_integer(report, "ranks"));
    if (n == 0)
        return;
    add(line, " on %zu node%s (", n, n == 1 ? "" : "s");
    for (; k < n && n_told < MOST_HOSTS; k++) {
        const char *host = cpl_report_text(json_array_get(nodes, k), "host");
        if (n_told > 0 && strcmp(told[n_told - 1], host) == 0)
            continue;
        add(line, "%s%s", n_told ? ", " : "", host);
        told[n_told++] = host;
    }
    add(line, "%s)", k < n ? ", ..." : "");
    if (cpl_report_has_number(run_of(report), "cores"))
        add(line, ", %lld cores", (long long)cpl_report_integer(run_of(report), "cores"));
}

static void tell_software(const json_t *report, char line[CPL_REPORT_LINE])
{
    const json_t *run = run_of(report);
    add(line, "Carpool %s", cpl_report_text(report, "version"));
    if (cpl_report_has_number(report, "schema"))
        add(line, " (report schema %lld)", (long long)cpl_report_integer(report, "schema"));
    if (is_text(run, "mpi"))
        add(line, ", %s", cpl_report_text(run, "mpi"));
}

static void tell_machine(const json_t *run, long long n_ranks, char line[CPL_REPORT_LINE])
{
    if (is_text(run, "machine_builtin"))
        add(line,
            "Modelled times are of a machine called %s (%s), not of the one that ran this. Measure "
            "yours with mpiexec.hydra -n %lld carpool calibrate --output my.machine, then use "
            "carpool run --machine=my.machine.",
            cpl_report_text(run, "machine"), cpl_report_text(run, "machine_builtin"), n_ranks);
    else if (is_text(run, "machine"))
        add(line, "Modelled times are of the machine that %s describes.",
            cpl_report_text(run, "machine"));
}

static void tell_cores(const json_t *report, char line[CPL_REPORT_LINE])
{
    const json_t *run = run_of(report);
    if (!json_is_true(json_object_get(run, "cores_shared")))
        return;
    add(line,
        "There were more ranks (%lld) than cores (%lld), so measured times are mostly "
        "waiting for a core. ",
        (long long)cpl_report_integer(report, "ranks"),
        (long long)cpl_report_integer(run, "cores"));
    add(line, "%s",
        json_is_true(json_object_get(run, "yields"))
            ? "Compare only with runs whose ranks give up the processor, too (carpool run "
              "--yield), "
              "or use a core for each rank."
            : "Use a core for each rank, or carpool run --yield here and in the run you compare "
              "with.");
}

void cpl_report_run_lines(const json_t *report, char line[CPL_REPORT_LINES][CPL_REPORT_LINE])
{
    const json_t *run = run_of(report);
    for (int k = 0; k < CPL_REPORT_LINES; k++)
        line[k][0] = '\0';
    cpl_report_command(report, line[0], CPL_REPORT_LINE);
    tell_place(report, line[1]);
    add(line[1], ", mode %s", cpl_report_text(report, "mode"));
    if (is_text(run, "started"))
        add(line[1], ", started %s", cpl_report_text(run, "started"));
    if (cpl_report_has_number(report, "seconds"))
        add(line[1], ", %.3g s from MPI_Init to MPI_Finalize",
            cpl_report_number(report, "seconds"));
    tell_software(report, line[2]);
    tell_cores(report, line[3]);
    if (json_array_size(json_object_get(report, "patterns")) > 0)
        tell_machine(run, (long long)cpl_report_integer(report, "ranks"), line[4]);
}
