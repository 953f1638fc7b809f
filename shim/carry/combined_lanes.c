/* Lanes of combined messages (combined.h). */
#include "shim/carry/combined.h"

#include <stdlib.h>
#include <string.h>

#define MOST_MESSAGES                                                                              \
    16 /* from one rank to another in an exchange; with more, combined messages go by MPI */

/* What an edge's combined message may take: its header, payloads of twice the size, and heads. The
 * plan has one payload for all messages from one rank to another, each of which has a head, and few
 * of which are shorter than a number. */
static int64_t bytes_of(int64_t volume, int32_t n_payloads)
{
    const int64_t header = 16, padding = 7, number = 8;
    int64_t n_messages = n_payloads + volume / number, n_most = (int64_t)n_payloads * MOST_MESSAGES;
    if (n_messages > n_most)
        n_messages = n_most;
    int64_t bytes =
        header + 2 * volume + n_messages * ((int64_t)sizeof(struct cpl_segment) + padding);
    return bytes < CPL_LANE_MOST ? bytes : CPL_LANE_MOST;
}

/* By rank; the longest combined messages of a rank first. */
static int compare(const void *a, const void *b)
{
    const struct cpl_lane_end *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return (x->lane.room < y->lane.room) - (x->lane.room > y->lane.room);
}

static int32_t n_edges(const struct cpl_rank_plan *slice, bool out)
{
    return out ? slice->n_out : slice->n_in;
}

static struct cpl_lane_end end_of(const struct cpl_rank_plan *p, bool out, int32_t e)
{
    int32_t n = out ? p->out_first[e + 1] - p->out_first[e] : p->in_first[e + 1] - p->in_first[e];
    int64_t volume = out ? cpl_rank_plan_out_volume(p, e) : cpl_rank_plan_in_volume(p, e);
    return (struct cpl_lane_end){.rank = out ? p->out_to[e] : p->in_from[e],
                                 .lane.room = bytes_of(volume, n)};
}

/* Lists the other ends of one side's edges once each, for one lane from rank to rank. Returns false
 * when memory ran out. */
static bool list_side(struct cpl_lane_ends *side, bool out,
                      const struct cpl_rank_plan *const *slices, int n)
{
    size_t most = 1, n_all = 0;
    for (int k = 0; k < n; k++)
        most += (size_t)n_edges(slices[k], out);
    side->end = calloc(most, sizeof *side->end);
    if (!side->end)
        return false;
    for (int k = 0; k < n; k++)
        for (int32_t e = 0; e < n_edges(slices[k], out); e++)
            side->end[n_all++] = end_of(slices[k], out, e);
    qsort(side->end, n_all, sizeof *side->end, compare);
    for (size_t k = 0; k < n_all; k++)
        if (k == 0 || side->end[k].rank != side->end[side->n - 1].rank)
            side->end[side->n++] = side->end[k];
    return true;
}

/* Keeps the lanes that were opened. Returns whether all were. */
static bool compress(struct cpl_lane_ends *side)
{
    int32_t n = 0, n_before = side->n;
    for (int32_t k = 0; k < n_before; k++)
        if (side->end[k].lane.shared)
            side->end[n++] = side->end[k];
    side->n = n;
    return n == n_before;
}

bool cpl_combined_lanes_open(struct cpl_lanes *lanes, MPI_Comm comm, bool able,
                             const struct cpl_rank_plan *const *slices, int n)
{
    bool ready =
        able && list_side(&lanes->out, true, slices, n) && list_side(&lanes->in, false, slices, n);
    if (!cpl_lanes_open(lanes, comm, ready)) {
        cpl_combined_lanes_free(lanes);
        return false;
    }
    compress(&lanes->out);
    return compress(&lanes->in);
}

struct cpl_lane *cpl_combined_lanes_to(const struct cpl_lanes *lanes, int32_t dest)
{
    const struct cpl_lane_ends *out = &lanes->out;
    int32_t low = 0, high = out->n;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (out->end[middle].rank < dest)
            low = middle + 1;
        else
            high = middle;
    }
    return low < out->n && out->end[low].rank == dest ? &out->end[low].lane : NULL;
}

void cpl_combined_lanes_free(struct cpl_lanes *lanes)
{
    cpl_lanes_close(lanes);
    free(lanes->out.end);
    free(lanes->in.end);
    *lanes = (struct cpl_lanes){.memory = NULL};
}
