/* Lanes of combined messages (combined.h). */
#include "shim/carry/combined.h"

#include <stdlib.h>

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

/* Lists all ranks, with the room of one lane for all edges that lead there, or come from there.
 * Returns false when memory ran out. */
static bool list_side(struct cpl_lane_ends *side, bool out, int n_ranks,
                      const struct cpl_rank_plan *const *slices, int n)
{
    side->end = calloc((size_t)n_ranks, sizeof *side->end);
    side->n = side->end ? n_ranks : 0;
    for (int32_t r = 0; r < side->n; r++)
        side->end[r].rank = r;
    for (int k = 0; k < n && side->end; k++) {
        const struct cpl_rank_plan *p = slices[k];
        const int32_t *rank = out ? p->out_to : p->in_from;
        const int32_t *first = out ? p->out_first : p->in_first;
        for (int32_t e = 0; e < (out ? p->n_out : p->n_in); e++) {
            int64_t volume = out ? cpl_rank_plan_out_volume(p, e) : cpl_rank_plan_in_volume(p, e);
            int64_t bytes = bytes_of(volume, first[e + 1] - first[e]);
            int64_t *room = &side->end[rank[e]].lane.room;
            *room = bytes > *room ? bytes : *room;
        }
    }
    return side->end;
}

/* Keeps those that were opened. Returns whether all were. */
static bool compress(struct cpl_lane_ends *side)
{
    int32_t n = 0;
    bool all = true;
    for (int32_t k = 0; k < side->n; k++)
        if (side->end[k].lane.shared)
            side->end[n++] = side->end[k];
        else
            all &= side->end[k].lane.room == 0;
    side->n = n;
    return all;
}

bool cpl_combined_lanes_open(struct cpl_lanes *lanes, MPI_Comm comm, bool able,
                             const struct cpl_rank_plan *const *slices, int n)
{
    int size = 0;
    PMPI_Comm_size(comm, &size);
    bool ready = able && list_side(&lanes->out, true, size, slices, n) &&
                 list_side(&lanes->in, false, size, slices, n);
    if (cpl_lanes_open(lanes, comm, ready))
        return compress(&lanes->in);
    cpl_combined_lanes_free(lanes);
    return false;
}

struct cpl_lane *cpl_combined_lanes_to(const struct cpl_lanes *lanes, int32_t dest)
{
    struct cpl_lane *lane = dest < lanes->out.n ? &lanes->out.end[dest].lane : NULL;
    return lane && lane->shared ? lane : NULL;
}

void cpl_combined_lanes_free(struct cpl_lanes *lanes)
{
    cpl_lanes_close(lanes);
    free(lanes->out.end);
    free(lanes->in.end);
    *lanes = (struct cpl_lanes){.memory = NULL};
}
