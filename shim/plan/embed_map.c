/* Points of ranks in reductions (embed_map.h). */
#include "shim/plan/embed_map.h"
#include "shim/carry/line.h"
#include "shim/meet/agree.h"

#include "planner/grid/hypercube.h"
#include "shim/base/log.h"
#include "shim/plan/plan_agree.h"
#include "shim/plan/plan_root.h"
#include "shim/state/comm_state.h"
#include "shim/wait/collective.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER_MESSAGES, HEADER_NODE, HEADER_WORLD_RANK, HEADER_WORDS };

/* What the rank that maps holds; the others have the points only. */
struct desk {
    int root, rank, n_ranks;
    int64_t *headers;
    int64_t *messages;
    int *counts, *displs;
    int32_t *points; /* of the ranks, then the ranks at the points */
};

static bool open_desk(struct desk *desk)
{
    size_t n = (size_t)desk->n_ranks;
    desk->points = calloc(2 * n, sizeof *desk->points);
    if (desk->rank != desk->root)
        return desk->points;
    desk->headers = calloc(n, HEADER_WORDS * sizeof *desk->headers);
    desk->counts = calloc(n, sizeof *desk->counts);
    desk->displs = calloc(n, sizeof *desk->displs);
    return desk->points && desk->headers && desk->counts && desk->displs;
}

static void close_desk(struct desk *desk)
{
    free(desk->headers);
    free(desk->messages);
    free(desk->counts);
    free(desk->displs);
    free(desk->points);
}

/* Makes room for everybody's messages. */
static bool expect_messages(struct desk *desk)
{
    int64_t total = 0;
    for (int i = 0; i < desk->n_ranks; i++) {
        desk->displs[i] = (int)total;
        total +=
            desk->headers[(size_t)i * HEADER_WORDS + HEADER_MESSAGES] * CPL_EMBED_MESSAGE_WORDS;
        if (total > INT_MAX)
            return false;
        desk->counts[i] = (int)(total - desk->displs[i]);
    }
    desk->messages = calloc((size_t)total + 1, sizeof *desk->messages);
    return desk->messages;
}

static enum cpl_status build_pattern(const struct desk *desk, struct cpl_pattern *pattern,
                                     struct cpl_error *error)
{
    int last = desk->n_ranks - 1;
    int64_t n = ((int64_t)desk->displs[last] + desk->counts[last]) / CPL_EMBED_MESSAGE_WORDS, m = 0;
    struct cpl_pattern_entry *entries = calloc((size_t)n + 1, sizeof *entries);
    if (!entries)
        return cpl_fail_memory(error, "the pattern");
    for (int i = 0; i < desk->n_ranks; i++)
        for (; m < (desk->displs[i] + desk->counts[i]) / CPL_EMBED_MESSAGE_WORDS; m++) {
            const int64_t *words = desk->messages + m * CPL_EMBED_MESSAGE_WORDS;
            entries[m] = (struct cpl_pattern_entry){i, (int32_t)words[CPL_EMBED_MESSAGE_DST],
                                                    words[CPL_EMBED_MESSAGE_BYTES], -1};
        }
    enum cpl_status status = cpl_pattern_build(desk->n_ranks, entries, n, pattern, error);
    free(entries);
    return status;
}

static enum cpl_status make_machine(const struct desk *desk, struct cpl_machine *machine,
                                    struct cpl_error *error)
{
    size_t n = (size_t)desk->n_ranks;
    int64_t *node = calloc(n, sizeof *node);
    int32_t *world_rank = calloc(n, sizeof *world_rank);
    enum cpl_status status = CPL_ERR_NOMEM;
    for (size_t i = 0; i < n && node && world_rank; i++) {
        node[i] = desk->headers[i * HEADER_WORDS + HEADER_NODE];
        world_rank[i] = (int32_t)desk->headers[i * HEADER_WORDS + HEADER_WORLD_RANK];
    }
    if (node && world_rank)
        status = cpl_plan_root_machine(desk->n_ranks, node, world_rank, machine, error);
    free(node);
    free(world_rank);
    return status;
}

/* The root maps. Returns whether ranks change places. */
static bool map(struct desk *desk)
{
    struct cpl_pattern pattern;
    struct cpl_machine machine;
    struct cpl_error error;
    bool changed = false;
    double us = 0;
    if (build_pattern(desk, &pattern, &error))
        return false;
    if (!make_machine(desk, &machine, &error)) {
        bool done = !cpl_hypercube_map(&pattern, &machine, 1, desk->points, &changed, &us, &error);
        changed &= done;
        cpl_machine_free(&machine);
    }
    cpl_pattern_free(&pattern);
    for (int32_t i = 0; i < desk->n_ranks && changed; i++)
        desk->points[desk->n_ranks + desk->points[i]] = i;
    if (changed)
        cpl_log(CPL_LOG_INFO, "embed",
                "%d ranks placed for reductions that carry messages: %.1f us", desk->n_ranks, us);
    return changed;
}

/* Gathers, maps, spreads. Returns whether there are points; alike on all ranks. */
static bool find_points(MPI_Comm comm, struct desk *desk, int n, const int64_t *messages)
{
    int64_t header[HEADER_WORDS] = {n, cpl_agree_node(comm), cpl_context.rank};
    bool at_root = desk->rank == desk->root;
    cpl_collective_Gather(header, HEADER_WORDS, MPI_INT64_T, desk->headers, HEADER_WORDS,
                          MPI_INT64_T, desk->root, comm);
    if (!cpl_agree_all(comm, !at_root || expect_messages(desk)))
        return false;
    cpl_collective_Gatherv(messages, n * CPL_EMBED_MESSAGE_WORDS, MPI_INT64_T, desk->messages,
                           desk->counts, desk->displs, MPI_INT64_T, desk->root, comm);
    int changed = at_root && map(desk);
    cpl_collective_Bcast(&changed, 1, MPI_INT, desk->root, comm);
    if (changed)
        cpl_collective_Bcast(desk->points, 2 * desk->n_ranks, MPI_INT32_T, desk->root, comm);
    return changed;
}

void cpl_embed_map(struct cpl_comm_state *state, int n, const int64_t *messages)
{
    MPI_Comm comm = state->private_comm;
    struct desk desk = {.rank = state->rank, .n_ranks = state->size};
    desk.root = cpl_agree_root(comm, state->rank);
    if (cpl_agree_all(comm, open_desk(&desk) && (n == 0 || messages)) &&
        find_points(comm, &desk, n, messages)) {
        state->line->embed.points = desk.points;
        desk.points = NULL;
    }
    close_desk(&desk);
}
