/* The built-in machines (machine.h): one row of a table each. */
#include "planner/machine.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Inside a socket of a current node: assumptions near the published measurements of Lassen (see
 * edr). */
#define SOCKET_LINK                                                                                \
    {                                                                                              \
        .send_us = 0.25, .recv_us = 0.25, .latency_us = 0.5, .ns_per_byte = 0.1                    \
    }
/* Between sockets. A cache line that another core has written takes 44 to 51 ns inside the socket
 * of four kinds of Xeon processors and 108 to 136 ns from the other one ([core-to-core]): 77 ns
 * more on average, and 2.6 times as long. A message by MPI waits for two lines, one after the
 * other: that of the queue, which is on the way, and its own, while its receiver works on it. Its
 * bytes take 2.6 times as long where lines come one by one; processors fetch ahead, and twice is
 * assumed. */
#define BETWEEN_SOCKETS                                                                            \
    {                                                                                              \
        .send_us = 0.25, .recv_us = 0.33, .latency_us = 0.58, .ns_per_byte = 0.2                   \
    }
/* A lane on a current processor: a slot is filled, and found and emptied, in 0.03 us, and is seen
 * across the cache 0.15 us later (assumed near what a lane of one slot between two busy cores was
 * measured to take here); bytes are copied once at each end, at half the time that MPI needs. */
#define LANE                                                                                       \
    {                                                                                              \
        .send_us = 0.03, .recv_us = 0.03, .latency_us = 0.15, .ns_per_byte = 0.05                  \
    }
/* One line, the slot, that comes from the other socket. */
#define LANE_BETWEEN_SOCKETS                                                                       \
    {                                                                                              \
        .send_us = 0.03, .recv_us = 0.03, .latency_us = 0.23, .ns_per_byte = 0.1                   \
    }
#define GEMINI_LANE                                                                                \
    {                                                                                              \
        .send_us = 0.06, .recv_us = 0.06, .latency_us = 0.2, .ns_per_byte = 0.12                   \
    }
#define EDR_LINK                                                                                   \
    {                                                                                              \
        .send_us = 0.7, .recv_us = 0.7, .latency_us = 1.6, .ns_per_byte = 0.08                     \
    }
#define GEMINI_NODE_LINK                                                                           \
    {                                                                                              \
        .send_us = 0.35, .recv_us = 0.35, .latency_us = 0.5, .ns_per_byte = 0.25                   \
    }

static const struct cpl_builtin_machine machines[] = {
    /* Assumptions near the published measurements of such a machine, Lassen (arXiv 2010.10378), not
     * measured here. A 12.5 GB/s port for two sockets: 0.08 ns/B for one rank and, with two ports,
     * half of it for the node. item_ns: on a current processor a loop over numbers of 8-byte items
     * in the cache takes 0.3 ns an item, and a call to copy a segment from there 2 ns; segment_ns
     * and item_ns both allow for more. bench/packing measured 10 ns for an end of a combined
     * message, 5 ns for a segment and 0.03 ns a byte. */
    {.name = "edr",
     .doc = "cluster with EDR InfiniBand, 32 ranks a node",
     .ranks_per_node = 32,
     .costs = {.link = {[CPL_LINK_SOCKET] = SOCKET_LINK,
                        [CPL_LINK_NODE] = BETWEEN_SOCKETS,
                        [CPL_LINK_NETWORK] = EDR_LINK},
               .lane = {[CPL_LINK_SOCKET] = LANE, [CPL_LINK_NODE] = LANE_BETWEEN_SOCKETS},
               .node_ns_per_byte = 0.04,
               .combined_ns = 10,
               .segment_ns = 5,
               .packed_ns_per_byte = 0.03,
               .item_ns = 1,
               .switch_us = 4}},
    /* A Cray XE6: two 16-core Interlagos processors a node, Gemini routers in a three-dimensional
     * torus. Published: a latency of 0.7 to 1.4 us, over 6 GB/s for a direction
     * (euroben.nl/reports/web13/xe6.php; the upper end of the latencies stands for ranks that are
     * hops away); at most 6.911 GB/s (Vishnu et al., Evaluating the potential of Cray Gemini
     * interconnect for PGAS communication runtime systems); a message's start-up is as long as 2 to
     * 4 KB take (Selvitopi and Aykanat, of an XE6: 3 KB at 6 GB/s are the 0.5 us of overhead here).
     * Inside the node: assumptions, those of edr with processors of half the speed for bytes. */
    {.name = "torus",
     .doc = "Cray XE6, Gemini 3-D torus, 32 ranks a node",
     .ranks_per_node = 32,
     .costs = {.link = {[CPL_LINK_SOCKET] = GEMINI_NODE_LINK,
                        [CPL_LINK_NODE] = GEMINI_NODE_LINK,
                        [CPL_LINK_NETWORK] = {.send_us = 0.5,
                                              .recv_us = 0.5,
                                              .latency_us = 1.4,
                                              .ns_per_byte = 0.167}},
               .lane = {[CPL_LINK_SOCKET] = GEMINI_LANE, [CPL_LINK_NODE] = GEMINI_LANE},
               .node_ns_per_byte = 0.145,
               .combined_ns = 20,
               .segment_ns = 10,
               .packed_ns_per_byte = 0.06,
               .item_ns = 2,
               .switch_us = 4}},
    /* The inside of an edr node. Should ranks be put on several nodes after all, they are joined by
     * its network. */
    {.name = "node",
     .doc = "one node with shared memory for all ranks",
     .ranks_per_node = INT32_MAX,
     .costs = {.link = {[CPL_LINK_SOCKET] = SOCKET_LINK,
                        [CPL_LINK_NODE] = BETWEEN_SOCKETS,
                        [CPL_LINK_NETWORK] = EDR_LINK},
               .lane = {[CPL_LINK_SOCKET] = LANE, [CPL_LINK_NODE] = LANE_BETWEEN_SOCKETS},
               .node_ns_per_byte = 0.04,
               .combined_ns = 10,
               .segment_ns = 5,
               .packed_ns_per_byte = 0.03,
               .item_ns = 1,
               .switch_us = 4}},
};

#define N_MACHINES (sizeof machines / sizeof *machines)

const struct cpl_builtin_machine *cpl_builtin_machines(size_t *n)
{
    *n = N_MACHINES;
    return machines;
}

struct cpl_costs cpl_costs_default(void)
{
    return machines[0].costs;
}

/* "edr, torus, node" */
static void list_names(char *text, size_t size)
{
    size_t used = 0;
    text[0] = 0;
    for (size_t k = 0; k < N_MACHINES && used < size; k++) {
        int n = snprintf(text + used, size - used, "%s%s", k ? ", " : "", machines[k].name);
        used += n > 0 ? (size_t)n : 0;
    }
}

struct cpl_machine_file cpl_machine_file_default(void)
{
    return (struct cpl_machine_file){.costs = cpl_costs_default()};
}

enum cpl_status cpl_machine_file_load(const char *name, struct cpl_machine_file *file,
                                      struct cpl_error *error)
{
    struct stat info;
    struct cpl_machine_file loaded = cpl_machine_file_default();
    bool missing = stat(name, &info) && (errno == ENOENT || errno == ENOTDIR);
    if (!missing) {
        enum cpl_status status = cpl_machine_file_read(name, &loaded, error);
        if (!status)
            *file = loaded;
        return status;
    }
    for (size_t k = 0; k < N_MACHINES; k++) {
        if (strcmp(machines[k].name, name) != 0)
            continue;
        loaded.costs = machines[k].costs;
        loaded.ranks_per_node = machines[k].ranks_per_node;
        *file = loaded;
        return CPL_OK;
    }
    char names[80];
    list_names(names, sizeof names);
    return cpl_fail(error, CPL_ERR_IO,
                    "%s: no such file, and no such machine; built-in ones are %s", name, names);
}
