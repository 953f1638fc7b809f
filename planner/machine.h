/* The machine: where ranks sit (node, socket, NUMA domain) and what a message between two places
 * costs.
 *
 * Order of calls: cpl_machine_init (or cpl_machine_from_places), optionally apply a shape, the
 * costs of a machine file and distances; use; cpl_machine_free. The machine must not change while
 * plans are made. Thread rule: may be read by any number of threads. */
#ifndef CARPOOL_MACHINE_H
#define CARPOOL_MACHINE_H

#include "arena.h"
#include "status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

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

/* All costs of the model. Defaults: cpl_costs_default. */
struct cpl_costs {
    struct cpl_link_cost link[CPL_N_LINKS];      /* of messages by MPI */
    struct cpl_link_cost lane[CPL_LINK_NETWORK]; /* inside a node: of a plan's edges by lanes */
    double node_ns_per_byte; /* time per byte on the port of a node, which the messages of its ranks
                                to and from other nodes share */
    double combined_ns;      /* time to pack or unpack a combined message, at each end */
    double segment_ns;       /* time to pack or unpack a segment */
    double packed_ns_per_byte; /* time to pack or unpack a byte, besides ns_per_byte of the link */
    double item_ns;   /* time per item of a segment that is a list of items, at most segment_ns in
                         all: few items are copied by a loop, many by a call */
    double switch_us; /* time to give a core to another rank, where ranks share cores; charged once
                         per wave and rank */
};

struct cpl_machine {
    bool lanes; /* plans' edges inside a node go by lanes, through memory that ranks share, not by
                   MPI */
    int32_t n_ranks;
    int32_t n_nodes;
    /* NULL where `block` is set. */
    int32_t *node;   /* n_ranks entries, 0 .. n_nodes-1, nodes numbered by their first rank */
    int32_t *socket; /* n_ranks entries, numbered inside the node */
    int32_t *numa;   /* n_ranks entries, NUMA domain numbered inside the node */
    int32_t cores_per_node; /* processing units that the ranks of a node share; 0: every rank has
                               its own */
    struct cpl_costs costs;
    const float *distance_us; /* measured message times: n_ranks x n_ranks entries, row i from rank
                                 i; NULL: not measured */
    const float
        *distance_ns_per_byte; /* measured times per byte in the same form; NULL: by class */
    int32_t block;             /* > 0: rank i is on node i / block, and there are no arrays */
    int32_t block_sockets;     /* of each node where `block` is set */
    struct cpl_arena arena;    /* owns the arrays */
};

/* Measured distances of all pairs of ranks. */
struct cpl_distances {
    int32_t n_ranks;
    float *us;              /* n_ranks x n_ranks entries, a row for each rank; 0 on the diagonal */
    float *ns_per_byte;     /* the same for bytes; NULL: not measured */
    struct cpl_arena arena; /* owns both */
};

/* The bytes of the message whose time is the distance of two ranks where ranks are placed. */
#define CPL_DISTANCE_BYTES 1024

/* The most ranks of a file of distances (they take 256 MiB), and the largest distance. */
#define CPL_MAX_DISTANCE_RANKS 8192
#define CPL_MAX_DISTANCE_US    1e12

/* Size of the longest path that a machine file may name, with its terminating 0. */
#define CPL_MACHINE_PATH 1024

/* A file that a machine file names. */
struct cpl_machine_path {
    char name[CPL_MACHINE_PATH]; /* "": none */
    int64_t line;                /* of the machine file */
};

/* What a machine file says. */
struct cpl_machine_file {
    struct cpl_costs costs;
    int32_t ranks_per_node;                 /* 0: the file does not say */
    struct cpl_machine_path distances;      /* measured distances */
    struct cpl_machine_path distance_bytes; /* times per byte of the same pairs */
};

/* A machine that is known by name. */
struct cpl_builtin_machine {
    const char *name;
    const char *doc;        /* a few words */
    int32_t ranks_per_node; /* INT32_MAX: all ranks are on one node */
    struct cpl_costs costs; /* machine_builtin.c names their sources */
};

/* The table of built-in machines: *n rows. The first is the default. */
const struct cpl_builtin_machine *cpl_builtin_machines(size_t *n);

/* The costs of the default machine, a cluster with an EDR InfiniBand network. */
struct cpl_costs cpl_costs_default(void);

/* A machine of n_ranks ranks, ranks_per_node consecutive ones on each node (the last may have
 * fewer), one socket and one NUMA domain a node, default costs, no lanes. Returns CPL_OK,
 * CPL_ERR_ARG (n_ranks < 1 or ranks_per_node < 1), CPL_ERR_NOMEM. */
enum cpl_status cpl_machine_init(int32_t n_ranks, int32_t ranks_per_node,
                                 struct cpl_machine *machine, struct cpl_error *error);

/* A machine from explicit places: node_key[i] names rank i's node by any integer (equal key, same
 * node), socket[i] and numa[i] count inside the node (NULL: all 0). Arrays have n_ranks entries and
 * are copied. cores_per_node as in the struct; no lanes. Returns CPL_OK, CPL_ERR_ARG,
 * CPL_ERR_NOMEM. */
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

/* The machine of cpl_machine_init with a shape (NULL: none) applied, without arrays of ranks: for
 * routers and what ranks make of them (plan/router.h, plan/local_plan.h), which look at places by
 * cpl_machine_node and cpl_machine_socket; not for strategies' plans. Returns CPL_OK, CPL_ERR_ARG.
 */
enum cpl_status cpl_machine_blocks(int32_t n_ranks, int32_t ranks_per_node,
                                   const struct cpl_node_shape *shape, struct cpl_machine *machine,
                                   struct cpl_error *error);

/* Microseconds that a segment of `volume` units takes at each end. of_items: the units are items at
 * fixed places. */
static inline double cpl_segment_us(const struct cpl_costs *costs, bool of_items, double volume)
{
    double items_ns = costs->item_ns * volume;
    return (of_items && items_ns < costs->segment_ns ? items_ns : costs->segment_ns) * 1e-3;
}

/* The last message of a wave waits for a processor before it gets the port, so a wave takes longer
 * than its bytes on a port that is never idle, by this factor. With factors of 1.2 to 1.4 searches
 * find the plans that are best by the chain model, which models ports exactly. */
#define CPL_WAVE_NODE 1.3

/* Nanoseconds that a byte takes on the port of a node, in a model with a barrier after each wave or
 * step. */
static inline double cpl_wave_node_ns(const struct cpl_costs *costs)
{
    return CPL_WAVE_NODE * costs->node_ns_per_byte;
}

/* The socket (or NUMA domain) of local rank i of n_local when n_units of them are filled in equal
 * consecutive blocks. */
int32_t cpl_machine_block_unit(int32_t i, int32_t n_local, int32_t n_units);

/* A machine file that names nothing: the default machine's costs. */
struct cpl_machine_file cpl_machine_file_default(void);

/* Reads a machine file: lines "KEY VALUE", `#` starts a comment; what it does not name keeps its
 * value in *file. Keys: {socket,node,network}.{send_us,recv_us,latency_us,ns_per_byte},
 * {socket,node}.lane.{send_us,recv_us,latency_us,ns_per_byte}, network.node_ns_per_byte,
 * combined_ns, segment_ns, packed_ns_per_byte, item_ns, switch_us, finite and >= 0; ranks_per_node;
 * distances, the path of a file of distances, and distances.ns_per_byte, of the times per byte of
 * the same pairs (not without distances), relative to the machine file's folder. These files are
 * not opened. Returns CPL_OK, CPL_ERR_IO, CPL_ERR_FORMAT ("FILE:LINE: ..."; *file is then
 * unchanged). */
enum cpl_status cpl_machine_file_read(const char *name, struct cpl_machine_file *file,
                                      struct cpl_error *error);

/* Reads the machine file `name` on top of the default or, when there is no such file, takes the
 * costs and ranks per node of the built-in machine of that name. Returns what cpl_machine_file_read
 * returns; CPL_ERR_IO with a text that lists the built-in machines when `name` is neither. */
enum cpl_status cpl_machine_file_load(const char *name, struct cpl_machine_file *file,
                                      struct cpl_error *error);

/* Reads the distances of n_ranks ranks, in microseconds, from a Matrix Market file, whose entry (i,
 * j) is the time of a message from rank i-1 to rank j-1: array or coordinate (then every pair must
 * be there), real or integer, general or symmetric. The diagonal is ignored. Returns CPL_OK (the
 * caller frees *distances), CPL_ERR_IO, CPL_ERR_FORMAT, CPL_ERR_UNFIT (the file has another number
 * of ranks, or there are more than CPL_MAX_DISTANCE_RANKS), CPL_ERR_NOMEM. */
enum cpl_status cpl_distances_read(const char *name, int32_t n_ranks,
                                   struct cpl_distances *distances, struct cpl_error *error);

/* Reads the distances that the machine file `machine_name` names (it must name some), and their
 * times per byte if it names these. When a file cannot be opened, the error text says which line
 * named it. */
enum cpl_status cpl_distances_load(const char *machine_name, const struct cpl_machine_file *file,
                                   int32_t n_ranks, struct cpl_distances *distances,
                                   struct cpl_error *error);

void cpl_distances_free(struct cpl_distances *distances);

/* Gives the machine a copy of the distances between its ranks: rank i of the machine is rank
 * rank[i] of the distances. With rank NULL it is rank i, and both have the same number of ranks.
 * Returns CPL_OK, CPL_ERR_NOMEM. */
enum cpl_status cpl_machine_set_distances(struct cpl_machine *machine,
                                          const struct cpl_distances *distances,
                                          const int32_t *rank, struct cpl_error *error);

/* The measured distance of two ranks: the microseconds of a message of CPL_DISTANCE_BYTES bytes, or
 * of few where times per byte were not measured. The machine must have distances. */
static inline double cpl_machine_distance(const struct cpl_machine *machine, int32_t from,
                                          int32_t to)
{
    int64_t k = (int64_t)from * machine->n_ranks + to;
    double byte_ns = machine->distance_ns_per_byte ? (double)machine->distance_ns_per_byte[k] : 0;
    return (double)machine->distance_us[k] + CPL_DISTANCE_BYTES * byte_ns * 1e-3;
}

/* The node of a rank. */
static inline int32_t cpl_machine_node(const struct cpl_machine *machine, int32_t rank)
{
    return machine->node ? machine->node[rank] : rank / machine->block;
}

/* The socket of a rank, numbered inside its node. */
static inline int32_t cpl_machine_socket(const struct cpl_machine *machine, int32_t rank)
{
    if (machine->socket)
        return machine->socket[rank];
    int32_t first = rank / machine->block * machine->block, n_local = machine->n_ranks - first;
    return cpl_machine_block_unit(rank - first, n_local < machine->block ? n_local : machine->block,
                                  machine->block_sockets);
}

/* The class of the link between two ranks. */
static inline enum cpl_link_class cpl_machine_link(const struct cpl_machine *machine, int32_t a,
                                                   int32_t b)
{
    if (cpl_machine_node(machine, a) != cpl_machine_node(machine, b))
        return CPL_LINK_NETWORK;
    return cpl_machine_socket(machine, a) == cpl_machine_socket(machine, b) ? CPL_LINK_SOCKET
                                                                            : CPL_LINK_NODE;
}

/* Whether there are lanes that some two ranks can use. */
static inline bool cpl_machine_has_lanes(const struct cpl_machine *machine)
{
    return machine->lanes && machine->n_nodes < machine->n_ranks;
}

/* Whether a plan's edge between two ranks goes by a lane. */
static inline bool cpl_machine_is_lane(const struct cpl_machine *machine, int32_t a, int32_t b)
{
    return machine->lanes && cpl_machine_node(machine, a) == cpl_machine_node(machine, b);
}

/* What an edge of a plan costs between two ranks that are joined by a class of link. What MPI
 * carries by itself costs costs.link[class_], whether there are lanes or not. */
static inline const struct cpl_link_cost *cpl_machine_edge_cost(const struct cpl_machine *machine,
                                                                enum cpl_link_class class_)
{
    bool by_lane = machine->lanes && class_ < CPL_LINK_NETWORK;
    return by_lane ? &machine->costs.lane[class_] : &machine->costs.link[class_];
}

/* The same machine, where MPI carries all edges of plans. It shares the machine's arrays and must
 * not be freed. */
static inline struct cpl_machine cpl_machine_without_lanes(const struct cpl_machine *machine)
{
    struct cpl_machine without = *machine;
    without.lanes = false;
    without.arena = CPL_ARENA_EMPTY;
    return without;
}

/* Releases the machine's memory. */
void cpl_machine_free(struct cpl_machine *machine);

#ifdef __cplusplus
}
#endif

#endif
