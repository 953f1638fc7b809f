/* What run a report is of (report.h), and on which nodes its ranks were. */
#include "shim/base/shared_memory.h"
#include "shim/meet/decision.h"
#include "shim/report/report.h"
#include "shim/state/context.h"

#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

/* --- the run, by rank 0 */

#define COMMAND_BYTES 8192 /* of the command line; what is longer is cut off */

/* JSON is UTF-8: of a text that is not, all but ASCII is replaced. */
static json_t *text_json(char *text)
{
    json_t *value = json_string(text);
    for (char *at = text; !value && *at; at++)
        if (!isascii((unsigned char)*at))
            *at = '?';
    return value ? value : json_string(text);
}

/* The program and its arguments, as the kernel has them. */
static void add_command(json_t *run)
{
    char line[COMMAND_BYTES + 1];
    FILE *in = fopen("/proc/self/cmdline", "r");
    size_t n = in ? fread(line, 1, COMMAND_BYTES, in) : 0;
    json_t *arguments = json_array();
    if (in)
        fclose(in);
    line[n] = '\0';
    for (size_t at = 0; at < n; at += strlen(line + at) + 1) {
        json_t *word = text_json(line + at);
        if (at == 0)
            json_object_set_new(run, "program", word);
        else
            json_array_append_new(arguments, word);
    }
    json_object_set_new(run, "arguments", arguments);
}

static void add_start(json_t *run)
{
    char text[40];
    struct tm utc;
    time_t started = time(NULL) - (time_t)(PMPI_Wtime() - cpl_context.account.start);
    if (gmtime_r(&started, &utc) && strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc) > 0)
        json_object_set_new(run, "started", json_string(text));
}

/* "MPICH 4.0.2", from "MPICH Version:      4.0.2" and further lines. */
static void add_mpi(json_t *run)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "", name[64] = "", version[64] = "", brief[140];
    int length;
    PMPI_Get_library_version(text, &length);
    if (sscanf(text, "%63s Version: %63s", name, version) == 2)
        snprintf(brief, sizeof brief, "%s %s", name, version);
    else
        snprintf(brief, sizeof brief, "%.*s", (int)strcspn(text, "\n"), text);
    json_object_set_new(run, "mpi", text_json(brief));
}

/* The machine that modelled times are of: a file, or a built-in one. */
static void add_machine(json_t *run)
{
    struct cpl_machine_file file;
    struct cpl_error error;
    size_t n;
    const struct cpl_builtin_machine *builtin = cpl_builtin_machines(&n);
    const char *name = cpl_context.settings.machine;
    char text[CPL_SETTINGS_TEXT];
    if (!name[0] || cpl_machine_file_load(name, &file, &error))
        name = builtin[0].name;
    snprintf(text, sizeof text, "%s", name);
    json_object_set_new(run, "machine", text_json(text));
    for (size_t k = 0; k < n; k++)
        if (strcmp(builtin[k].name, name) == 0)
            json_object_set_new(run, "machine_builtin", json_string(builtin[k].doc));
}

/* bench/yield.c, where that is preloaded. */
extern void cpl_yield_waits(bool waits) __attribute__((weak));

/* Beyond so many in a second of its processor time a process was not switched by time slices. */
#define SWITCHES 2000

/* Whether ranks that wait give up the processor, by bench's libyield or by themselves. */
static bool yields(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return cpl_yield_waits ||
           (double)(used.ru_nivcsw + used.ru_nvcsw) > SWITCHES * (double)clock() / CLOCKS_PER_SEC;
}

json_t *cpl_report_run(const struct cpl_report_hosts *hosts)
{
    json_t *run = json_object();
    add_command(run);
    add_start(run);
    add_mpi(run);
    add_machine(run);
    if (hosts->cores > 0) {
        json_object_set_new(run, "cores", json_integer(hosts->cores));
        json_object_set_new(run, "cores_shared", json_boolean(hosts->cores_shared));
    }
    json_object_set_new(run, "yields", json_boolean(yields()));
    return run;
}

/* --- the nodes: the hosts, with CARPOOL_RANKS_PER_NODE divided as planning assumes */

#define NAME_BYTES 64

struct named {
    char name[NAME_BYTES];
    int rank;
    int32_t node;       /* on its host */
    int32_t processors; /* of the host */
};

static int compare_named(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : (x->rank > y->rank) - (x->rank < y->rank);
}

/* The ranks of a node as text, "0-3,8,12-13". NULL: no memory. */
static char *list_ranks(const struct named *ranks, int n)
{
    size_t size = 24 * (size_t)n + 1, used = 0;
    char *text = malloc(size);
    for (int first = 0, last; text && first < n; first = last + 1) {
        for (last = first; last + 1 < n && ranks[last + 1].rank == ranks[last].rank + 1;)
            last++;
        used +=
            (size_t)snprintf(text + used, size - used, "%s%d", used ? "," : "", ranks[first].rank);
        if (last > first)
            used += (size_t)snprintf(text + used, size - used, "-%d", ranks[last].rank);
    }
    return text;
}

/* Sorts all ranks, and lists their nodes and cores. */
static struct cpl_report_hosts list_hosts(struct named *ranks, int n)
{
    struct cpl_report_hosts hosts = {.nodes = json_array()};
    qsort(ranks, (size_t)n, sizeof *ranks, compare_named);
    for (int host = 0, first = 0, last; first < n; first = last) {
        const struct named *r = &ranks[first];
        bool ends = false; /* the host */
        for (last = first; !ends && ranks[last].node == r->node;)
            ends = ++last == n || strcmp(ranks[last].name, r->name) != 0;
        char *text = list_ranks(r, last - first);
        if (text)
            json_array_append_new(hosts.nodes,
                                  json_pack("{s:s s:s}", "host", r->name, "ranks", text));
        free(text);
        if (!ends)
            continue;
        hosts.cores += r->processors;
        hosts.cores_shared |= last - host > r->processors;
        host = last;
    }
    return hosts;
}

struct cpl_report_hosts cpl_report_hosts(void)
{
    char name[MPI_MAX_PROCESSOR_NAME] = "";
    int length;
    const int64_t block = cpl_context.settings.ranks_per_node;
    struct named mine = {.rank = cpl_context.rank,
                         .node = block > 0 ? (int32_t)(cpl_context.rank / block) : 0,
                         .processors = (int32_t)cpl_shared_processors()};
    CPL_DECISION(decision, MPI_COMM_WORLD);
    PMPI_Get_processor_name(name, &length);
    snprintf(mine.name, sizeof mine.name, "%.*s", NAME_BYTES - 1, name);
    const struct cpl_handed_in handed = {
        .able = true, .records = &mine, .n = 1, .record_bytes = sizeof mine};
    if (cpl_decision_hand_in(&decision, &handed) && cpl_decision_is_root(&decision))
        return list_hosts(decision.records, decision.n_ranks);
    return (struct cpl_report_hosts){.nodes = NULL};
}
