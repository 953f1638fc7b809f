/* Opening lanes (lanes.h).
 *
 * The memory begins with a head, which tells that two ranks have the same piece, and a table:
 * where the first lane from rank w to rank r of the node lies. The lanes of a writer follow each
 * other in its own part. Those to the same reader are linked by their first lines, where the
 * reader looks for the key that it expects. */
#include "shim/carry/lanes.h"

#include "shim/base/log.h"
#include "shim/base/shared_memory.h"
#include "shim/meet/agree.h"
#include "shim/state/context.h"
#include "shim/wait/collective.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_BYTES (INT64_C(1) << 30) /* of all lanes that a rank's node has open */

/* The first line of a lane. */
struct lane_line {
    _Atomic uint32_t n_taken;
    int32_t key;
    int64_t next; /* lane from the same rank to the same one, from the beginning; 0: none */
};

_Static_assert(sizeof(struct lane_line) <= CPL_LANE_LINE, "a lane begins with one line");

/* While lanes are being opened. */
struct opening {
    MPI_Comm comm, node;    /* node: the ranks of the caller's */
    MPI_Group all, on_node; /* the ranks of both */
    int rank, n;            /* in node */
    unsigned char *memory;
    int64_t bytes, own;       /* of all; where this rank's part begins */
    char why[CPL_SHARED_WHY]; /* it failed; "": it has not */
};

static int64_t *first_lane(const struct opening *o, int from, int to)
{
    return (int64_t *)(void *)(o->memory + CPL_SHARED_HEAD) + (int64_t)from * o->n + to;
}

static struct lane_line *line_at(const struct opening *o, int64_t at)
{
    return (struct lane_line *)(void *)(o->memory + at);
}

/* The rank in the node at the other end; MPI_UNDEFINED on another node, without room, or too
 * large for lanes. */
static int peer_of(const struct opening *o, const struct cpl_lane_end *end)
{
    int peer = MPI_UNDEFINED;
    if (end->lane.room > 0 && end->lane.room <= CPL_LANE_MOST)
        PMPI_Group_translate_ranks(o->all, 1, &end->rank, o->on_node, &peer);
    return peer;
}

/* Where this rank's part begins, and the bytes of all. False: there are too many on a rank, or MPI
 * failed. */
static bool find_sizes(struct opening *o, const struct cpl_lane_ends *out)
{
    int64_t mine = 0, before = 0, all = 0;
    for (int32_t e = 0; e < out->n; e++)
        if (peer_of(o, &out->end[e]) != MPI_UNDEFINED)
            mine += cpl_lane_bytes(out->end[e].lane.room);
    if (cpl_collective_Exscan(&mine, &before, 1, MPI_INT64_T, MPI_SUM, o->node) != MPI_SUCCESS ||
        cpl_collective_Allreduce(&mine, &all, 1, MPI_INT64_T, MPI_SUM, o->node) != MPI_SUCCESS)
        return false;
    int64_t table = CPL_SHARED_HEAD + (int64_t)sizeof(int64_t) * o->n * o->n;
    int64_t parts = (table + CPL_LANE_LINE - 1) / CPL_LANE_LINE * CPL_LANE_LINE;
    o->own = parts + (o->rank > 0 ? before : 0);
    o->bytes = all > 0 ? parts + all : 0;
    int64_t bytes = cpl_context.machine.lane_bytes + o->bytes;
    bool fits = bytes <= MOST_BYTES;
    if (!fits)
        snprintf(o->why, sizeof o->why, "%lld bytes on a node, more than %lld", (long long)bytes,
                 (long long)MOST_BYTES);
    return cpl_agree_all(o->node, fits);
}

/* Makes this rank's lanes in its part. */
static void lay_out(const struct opening *o, const struct cpl_lane_ends *out)
{
    int64_t at = o->own;
    for (int32_t e = 0; e < out->n; e++) {
        struct cpl_lane_end *end = &out->end[e];
        int peer = peer_of(o, end);
        if (peer == MPI_UNDEFINED)
            continue;
        int64_t *first = first_lane(o, o->rank, peer);
        struct lane_line *line = line_at(o, at);
        line->key = end->key;
        line->next = *first;
        *first = at;
        end->lane.shared = o->memory + at;
        at += cpl_lane_bytes(end->lane.room);
    }
}

/* Finds the lanes that other ranks have made for this one. */
static void find(struct opening *o, const struct cpl_lane_ends *in)
{
    for (int32_t e = 0; e < in->n; e++) {
        struct cpl_lane_end *end = &in->end[e];
        int peer = peer_of(o, end);
        if (peer == MPI_UNDEFINED)
            continue;
        int64_t at = *first_lane(o, peer, o->rank);
        while (at && line_at(o, at)->key != end->key)
            at = line_at(o, at)->next;
        if (at)
            end->lane.shared = o->memory + at;
        else
            snprintf(o->why, sizeof o->why, "rank %d has no lane to this one", end->rank);
    }
}

static void forget(const struct cpl_lane_ends *ends)
{
    for (int32_t e = 0; e < ends->n; e++)
        ends->end[e].lane = (struct cpl_lane){.room = ends->end[e].lane.room};
}

/* Ranks that are dealt to nodes by a setting (for tests) may all be on one. */
static void note_cores(const struct opening *o)
{
    int n = o->n;
    if (cpl_context.settings.ranks_per_node > 0)
        PMPI_Comm_size(o->comm, &n);
    cpl_context.machine.shares_cores |= n > cpl_shared_processors();
}

/* On the ranks of one node. */
static void open_on_node(struct opening *o, bool able, const struct cpl_lanes *lanes)
{
    if (!cpl_agree_all(o->node, able) || !find_sizes(o, &lanes->out) || o->bytes == 0)
        return;
    o->memory = cpl_node_memory_open(o->node, o->bytes, o->why);
    if (!o->memory)
        return;
    lay_out(o, &lanes->out);
    cpl_collective_Barrier(o->node);
    find(o, &lanes->in);
}

/* Whether it has failed on no rank. The first rank on which it has says why, unless it has heard
 * that one did before. That ranks share cores is known on all ranks then. */
static bool settle(const struct opening *o, bool able)
{
    bool *told = &cpl_context.machine.lanes_warned;
    int rank, size;
    PMPI_Comm_rank(o->comm, &rank);
    PMPI_Comm_size(o->comm, &size);
    int mine[] = {o->why[0] ? rank : able ? size + 1 : size, !cpl_context.machine.shares_cores};
    int all[] = {-1, 1}, first;
    if (cpl_collective_Allreduce(mine, all, 2, MPI_INT, MPI_MIN, o->comm) != MPI_SUCCESS)
        return false;
    first = all[0];
    cpl_context.machine.shares_cores = !all[1];
    if (first == rank && !*told)
        cpl_log(CPL_LOG_WARN, "lanes",
                "ranks of a node cannot share memory (%s); their messages go by MPI; "
                "CARPOOL_LANES=off says so without this line",
                o->why);
    *told |= first < size;
    return first > size;
}

bool cpl_lanes_open(struct cpl_lanes *lanes, MPI_Comm comm, bool able)
{
    struct opening o = {.comm = comm, .node = MPI_COMM_NULL};
    forget(&lanes->out);
    forget(&lanes->in);
    if (!cpl_context.settings.lanes)
        return true;
    if (cpl_agree_split_node(comm, &o.node)) {
        PMPI_Comm_rank(o.node, &o.rank);
        PMPI_Comm_size(o.node, &o.n);
        PMPI_Comm_group(comm, &o.all);
        PMPI_Comm_group(o.node, &o.on_node);
        note_cores(&o);
        open_on_node(&o, able, lanes);
        PMPI_Group_free(&o.all);
        PMPI_Group_free(&o.on_node);
        PMPI_Comm_free(&o.node);
    } else {
        snprintf(o.why, sizeof o.why, "MPI has no communicator for them");
    }
    lanes->memory = o.memory;
    lanes->bytes = o.memory ? o.bytes : 0;
    cpl_context.machine.lane_bytes += lanes->bytes;
    if (settle(&o, able))
        return true;
    cpl_lanes_close(lanes);
    forget(&lanes->out);
    forget(&lanes->in);
    return false;
}

void cpl_lanes_close(struct cpl_lanes *lanes)
{
    if (lanes->memory)
        cpl_shared_free(lanes->memory, lanes->bytes);
    cpl_context.machine.lane_bytes -= lanes->bytes;
    lanes->memory = NULL;
    lanes->bytes = 0;
}
