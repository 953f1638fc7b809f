/* Which ranks ran on which node, for the report (report.h). With CARPOOL_RANKS_PER_NODE nodes are
 * those that planning assumes, else the hosts' names. */
#include "shim/base/shared_memory.h"
#include "shim/meet/desk.h"
#include "shim/report/report.h"
#include "shim/state/context.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 64

struct named {
    char name[NAME_BYTES];
    int rank;
    int32_t processors; /* of the host */
};

static int compare_hosts(const void *a, const void *b)
{
    return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

static int compare_nodes(const struct named *x, const struct named *y)
{
    int64_t block = cpl_context.settings.ranks_per_node;
    return block > 0 ? (x->rank / block > y->rank / block) - (x->rank / block < y->rank / block)
                     : compare_hosts(x, y);
}

static int compare_named(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    int order = compare_nodes(x, y);
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

static json_t *list_nodes(struct named *ranks, int n)
{
    json_t *nodes = json_array();
    qsort(ranks, (size_t)n, sizeof *ranks, compare_named);
    for (int first = 0, last; first < n; first = last) {
        for (last = first + 1; last < n && compare_nodes(&ranks[first], &ranks[last]) == 0;)
            last++;
        char *text = list_ranks(ranks + first, last - first);
        if (text)
            json_array_append_new(nodes,
                                  json_pack("{s:s s:s}", "host", ranks[first].name, "ranks", text));
        free(text);
    }
    return nodes;
}

/* The cores of all hosts, and whether one has more ranks than cores. Sorts the ranks. */
static void count_cores(struct named *ranks, int n, struct cpl_report_hosts *hosts)
{
    qsort(ranks, (size_t)n, sizeof *ranks, compare_hosts);
    for (int first = 0, last; first < n; first = last) {
        for (last = first + 1; last < n && compare_hosts(&ranks[first], &ranks[last]) == 0;)
            last++;
        hosts->cores += ranks[first].processors;
        hosts->cores_shared |= last - first > ranks[first].processors;
    }
}

struct cpl_report_hosts cpl_report_hosts(void)
{
    char name[MPI_MAX_PROCESSOR_NAME] = "";
    int length;
    struct named mine = {.rank = cpl_context.rank, .processors = (int32_t)cpl_shared_processors()};
    struct cpl_desk desk;
    struct cpl_report_hosts hosts = {.nodes = NULL};
    PMPI_Get_processor_name(name, &length);
    snprintf(mine.name, sizeof mine.name, "%.*s", NAME_BYTES - 1, name);
    cpl_desk_open(&desk, MPI_COMM_WORLD, 0);
    const struct cpl_handed_in handed = {
        .able = true, .records = &mine, .n = 1, .record_bytes = sizeof mine};
    if (cpl_desk_hand_in(&desk, &handed) && cpl_desk_is_root(&desk)) {
        count_cores(desk.records, desk.n_ranks, &hosts);
        hosts.nodes = list_nodes(desk.records, desk.n_ranks);
    }
    cpl_desk_close(&desk);
    return hosts;
}
