/* Points of ranks in reductions (embed_map.h). */
#include "shim/plan/embed_map.h"
#include "shim/carry/line.h"
#include "shim/meet/agree.h"
#include "shim/meet/desk.h"

#include "planner/grid/hypercube.h"
#include "shim/base/log.h"
#include "shim/plan/plan_root.h"
#include "shim/state/comm_state.h"

#include <stdlib.h>

/* On the root: makes the map, points of the ranks, then the ranks at the points. Returns whether it
 * moves ranks. */
static bool map(const struct cpl_desk *desk, int32_t *points)
{
    struct cpl_pattern pattern;
    struct cpl_machine machine;
    struct cpl_error error;
    bool changed = false;
    double us = 0;
    if (cpl_plan_root_pattern(desk, &pattern, &error))
        return false;
    if (!cpl_plan_root_machine(desk->n_ranks, desk->headers, sizeof(struct cpl_seat), &machine,
                               &error)) {
        bool done = !cpl_hypercube_map(&pattern, &machine, 1, points, &changed, &us, &error);
        changed &= done;
        cpl_machine_free(&machine);
    }
    cpl_pattern_free(&pattern);
    for (int32_t i = 0; i < desk->n_ranks && changed; i++)
        points[desk->n_ranks + points[i]] = i;
    if (changed)
        cpl_log(CPL_LOG_INFO, "embed",
                "%d ranks placed for reductions that carry messages: %.1f us", desk->n_ranks, us);
    return changed;
}

void cpl_embed_map(struct cpl_comm_state *state, int n, const struct cpl_handed_message *messages)
{
    MPI_Comm comm = state->private_comm;
    size_t n_words = 2 * (size_t)state->size;
    int32_t *points = calloc(n_words, sizeof *points);
    const struct cpl_seat seat = cpl_agree_seat(comm);
    int changed = false;
    struct cpl_desk desk;
    cpl_desk_open(&desk, comm, cpl_agree_root(comm, state->rank));
    if (cpl_desk_hand_in(&desk,
                         &(struct cpl_handed_in){points && (n == 0 || messages), &seat, sizeof seat,
                                                 messages, n, sizeof *messages})) {
        changed = cpl_desk_is_root(&desk) && map(&desk, points);
        cpl_desk_answer(&desk, &changed, sizeof changed);
    }
    if (changed) {
        cpl_desk_answer(&desk, points, n_words * sizeof *points);
        state->line->embed.points = points;
    } else {
        free(points);
    }
    cpl_desk_close(&desk);
}
