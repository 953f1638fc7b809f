/* Lanes of combined messages (combined_lanes.h). */
#include "shim/carry/combined_lanes.h"

#include "shim/carry/match.h"

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

/* The rank at the other end of an edge, and the bytes of its combined messages. */
struct edge {
    int32_t rank;
    int64_t bytes;
};

/* By rank; the longest combined messages of a rank first. */
static int compare(const void *a, const void *b)
{
    const struct edge *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

static int32_t n_edges(const struct cpl_rank_plan *slice, bool out)
{
    return out ? slice->n_out : slice->n_in;
}

static struct edge edge_at(const struct cpl_rank_plan *p, bool out, int32_t e)
{
    return out ? (struct edge){p->out_to[e], bytes_of(cpl_rank_plan_out_volume(p, e),
                                                      p->out_first[e + 1] - p->out_first[e])}
               : (struct edge){p->in_from[e], bytes_of(cpl_rank_plan_in_volume(p, e),
                                                       p->in_first[e + 1] - p->in_first[e])};
}

/* Lists the other ends of one side's edges once each. Returns the bytes of their combined messages,
 * which the caller frees; NULL: no memory. */
static int64_t *list_side(struct cpl_combined_side *side, bool out,
                          const struct cpl_rank_plan *const *slices, int n)
{
    size_t most = 1, n_all = 0;
    for (int k = 0; k < n; k++)
        most += (size_t)n_edges(slices[k], out);
    struct edge *all = calloc(most, sizeof *all);
    int64_t *bytes = calloc(most, sizeof *bytes);
    side->rank = calloc(most, sizeof *side->rank);
    side->lane = calloc(most, sizeof *side->lane);
    bool ready = all && bytes && side->rank && side->lane;
    for (int k = 0; k < n && ready; k++)
        for (int32_t e = 0; e < n_edges(slices[k], out); e++)
            all[n_all++] = edge_at(slices[k], out, e);
    if (ready)
        qsort(all, n_all, sizeof *all, compare);
    for (size_t k = 0; k < n_all; k++)
        if (k == 0 || all[k].rank != all[k - 1].rank) {
            bytes[side->n] = all[k].bytes;
            side->rank[side->n++] = all[k].rank;
        }
    free(all);
    if (ready)
        return bytes;
    free(bytes);
    return NULL;
}

/* Keeps the lanes that were opened. */
static void compress(struct cpl_combined_side *side)
{
    int32_t n = 0;
    for (int32_t k = 0; k < side->n; k++)
        if (side->lane[k].shared) {
            side->rank[n] = side->rank[k];
            side->lane[n++] = side->lane[k];
        }
    side->n = n;
}

void cpl_combined_lanes_open(struct cpl_combined_lanes *lanes, MPI_Comm comm, bool able,
                             const struct cpl_rank_plan *const *slices, int n)
{
    int64_t *to_bytes = able ? list_side(&lanes->out, true, slices, n) : NULL;
    int64_t *from_bytes = able ? list_side(&lanes->in, false, slices, n) : NULL;
    bool ready = to_bytes && from_bytes;
    int32_t n_out = ready ? lanes->out.n : 0, n_in = ready ? lanes->in.n : 0;
    size_t n_most = (size_t)(n_out > n_in ? n_out : n_in) + 1;
    int32_t *key = calloc(n_most, sizeof *key); /* one lane from rank to rank */
    const struct cpl_lane_ends to = {key ? n_out : 0, lanes->out.rank, key, to_bytes,
                                     lanes->out.lane};
    const struct cpl_lane_ends from = {key ? n_in : 0, lanes->in.rank, key, from_bytes,
                                       lanes->in.lane};
    if (cpl_lanes_open(&lanes->lanes, comm, ready && key, &to, &from)) {
        compress(&lanes->out);
        compress(&lanes->in);
        lanes->take_all = lanes->in.n == n_in;
    } else {
        cpl_combined_lanes_free(lanes);
    }
    free(key);
    free(to_bytes);
    free(from_bytes);
}

struct cpl_lane *cpl_combined_lanes_to(const struct cpl_combined_lanes *lanes, int32_t dest)
{
    const struct cpl_combined_side *out = &lanes->out;
    int32_t low = 0, high = out->n;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (out->rank[middle] < dest)
            low = middle + 1;
        else
            high = middle;
    }
    return low < out->n && out->rank[low] == dest ? &out->lane[low] : NULL;
}

static void free_side(struct cpl_combined_side *side)
{
    free(side->rank);
    free(side->lane);
    *side = (struct cpl_combined_side){.n = 0};
}

void cpl_combined_lanes_free(struct cpl_combined_lanes *lanes)
{
    cpl_lanes_close(&lanes->lanes);
    free_side(&lanes->out);
    free_side(&lanes->in);
}
