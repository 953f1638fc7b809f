/* The machine: where ranks sit (node, socket, NUMA domain) and what a message costs between any two
 * of those.
 *
 * Order of calls: cpl_machine_init (or a describing function), optionally cpl_costs_load,
 * then use, then cpl_machine_free. Not changed while plans are made. Thread rule: may be read by
 * any number of threads. */
#ifndef CARPOOL_MACHINE_H
#define CARPOOL_MACHINE_H

#include "arena.h"
#include "status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Link classes, nearest first. Two ranks are joined by the class of the smallest unit they share.
 */
enum cpl_link_class {
    CPL_LINK_SOCKET,  /* same socket (package) of one node */
    CPL_LINK_NODE,    /* same node, different sockets */
    CPL_LINK_NETWORK, /* different nodes */
    CPL_N_LINKS
};

/* Cost of a message over one class of link (LogGP-like: o_s, o_r, L, G). */
struct cpl_link_cost {
    double send_us;     /* processor time of the sender per message */
    double recv_us;     /* processor time of the receiver per message */
    double latency_us;  /* time on the way */
    double ns_per_byte; /* per byte, at each end */
};

/* What everything costs. Defaults: cpl_costs_default. */
struct cpl_costs {
    struct cpl_link_cost link[CPL_N_LINKS];
    double node_ns_per_byte; /* per byte that a node sends to or receives from other nodes (its
                                network interface) */
    double segment_ns; /* per segment of a combined message, at each end (packing, unpacking) */
    double item_ns;    /* the same per item of a segment that is a list of items, up to segment_ns:
                        * few items are copied by a loop, more by a call */
    double switch_us;  /* to give a core to another rank, where ranks share cores; once a wave and
                          rank */
};

struct cpl_machine {
    int32_t n_ranks;
    int32_t n_nodes;
    int32_t *node;   /* n_ranks entries, 0 .. n_nodes-1, nodes numbered by their first rank */
    int32_t *socket; /* n_ranks entries, numbered inside the node */
    int32_t *numa;   /* n_ranks entries, NUMA domain numbered inside the node */
    int32_t cores_per_node; /* processing units that the ranks of a node share; 0: at least one per
                               rank */
    struct cpl_costs costs;
    struct cpl_arena arena; /* owns the arrays */
};

/* A machine that need not be described. */
struct cpl_builtin_machine {
    const char *name;
    const char *doc;        /* a few words */
    int32_t ranks_per_node; /* INT32_MAX: all ranks are on one node */
    struct cpl_costs costs; /* the table says where they come from (machine_builtin.c) */
};

/* The table of built-in machines: *n rows. The first is the default. */
const struct cpl_builtin_machine *cpl_builtin_machines(size_t *n);

/* The costs of the default machine, a cluster with an EDR InfiniBand network. */
struct cpl_costs cpl_costs_default(void);

/* A machine of n_ranks ranks, ranks_per_node consecutive ones on each node (the last may have
 * fewer), one socket and one NUMA domain a node, default costs. Returns CPL_OK, CPL_ERR_ARG
 * (n_ranks < 1 or ranks_per_node < 1), CPL_ERR_NOMEM. */
enum cpl_status cpl_machine_init(int32_t n_ranks, int32_t ranks_per_node,
                                 struct cpl_machine *machine, struct cpl_error *error);

/* A machine from explicit places: node_key[i] names rank i's node by any integer (equal key, same
 * node), socket[i] and numa[i] count inside the node (NULL: all 0). Arrays have n_ranks entries and
 * are copied. cores_per_node as in the struct. Returns CPL_OK, CPL_ERR_ARG, CPL_ERR_NOMEM. */
enum cpl_status cpl_machine_from_places(int32_t n_ranks, const int64_t *node_key,
                                        const int32_t *socket, const int32_t *numa,
                                        int32_t cores_per_node, struct cpl_machine *machine,
                                        struct cpl_error *error);

/* What one node looks like inside. */
struct cpl_node_shape {
    int32_t n_sockets;
    int32_t n_numa;
    int32_t n_cores; /* cores (not hardware threads) */
};

/* Describes a node by hwloc: topology NULL or "" means the node this process runs on; the name of a
 * readable file means hwloc's XML (lstopo --of xml); anything else is hwloc's synthetic description
 * ("pack:2 numa:1 core:16 pu:1"). Returns CPL_OK, CPL_ERR_FORMAT (neither a readable file nor a
 * synthetic description), CPL_ERR_IO. */
enum cpl_status cpl_node_shape_load(const char *topology, struct cpl_node_shape *shape,
                                    struct cpl_error *error);

/* Gives the ranks of every node sockets and NUMA domains by shape: local ranks are dealt in equal
 * consecutive blocks (the launchers' default binding), and cores_per_node is set when a node has
 * more ranks than cores. */
void cpl_machine_apply_shape(struct cpl_machine *machine, const struct cpl_node_shape *shape);

/* What a segment of so many units of volume takes at each end, in microseconds; of_items: units are
 * items, at fixed places. */
static inline double cpl_segment_us(const struct cpl_costs *costs, bool of_items, double volume)
{
    double items_ns = costs->item_ns * volume;
    return (of_items && items_ns < costs->segment_ns ? items_ns : costs->segment_ns) * 1e-3;
}

/* The socket (or NUMA domain) of local rank i of n_local when n_units of them are filled in equal
 * consecutive blocks. */
int32_t cpl_machine_block_unit(int32_t i, int32_t n_local, int32_t n_units);

/* Reads costs from a machine file into *costs: lines "KEY VALUE", `#` starts a comment; keys not
 * named keep the value that *costs has. Keys:
 * {socket,node,network}.{send_us,recv_us,latency_us,ns_per_byte}, network.node_ns_per_byte,
 * segment_ns, item_ns, switch_us, and ranks_per_node, stored in *ranks_per_node when that is not
 * NULL. Values are finite and >= 0. Returns CPL_OK, CPL_ERR_IO, CPL_ERR_FORMAT ("FILE:LINE: ...";
 * *costs is then unchanged). */
enum cpl_status cpl_costs_read(const char *file, struct cpl_costs *costs, int32_t *ranks_per_node,
                               struct cpl_error *error);

/* cpl_costs_read for a machine file or, where there is no such file, the costs (all of them) and
 * the ranks per node of the built-in machine of that name. ranks_per_node may be NULL. Returns what
 * cpl_costs_read returns, CPL_ERR_IO with a text that lists the built-in machines when there is
 * neither. */
enum cpl_status cpl_costs_load(const char *name, struct cpl_costs *costs, int32_t *ranks_per_node,
                               struct cpl_error *error);

/* The class of the link between two ranks. */
static inline enum cpl_link_class cpl_machine_link(const struct cpl_machine *machine, int32_t a,
                                                   int32_t b)
{
    if (machine->node[a] != machine->node[b])
        return CPL_LINK_NETWORK;
    return machine->socket[a] == machine->socket[b] ? CPL_LINK_SOCKET : CPL_LINK_NODE;
}

/* Releases the machine's memory. */
void cpl_machine_free(struct cpl_machine *machine);

#endif
