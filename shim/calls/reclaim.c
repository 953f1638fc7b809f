/* Giving communicators back (start.h). */
#include "shim/calls/start.h"

#include "shim/exchange/neighbor.h"
#include "shim/meet/agree.h"
#include "shim/pt2pt/pt2pt_internal.h"
#include "shim/state/comm_state.h"
#include "shim/state/memory.h"
#include "shim/wait/collective.h"

#include <stdlib.h>
#include <utlist.h>

struct cpl_comm_state *cpl_reclaim_next(int64_t above)
{
    struct cpl_comm_state *next = NULL;
    for (struct cpl_comm_state *s = cpl_context.comms.first; s; s = s->next)
        if (s->private_comm != MPI_COMM_NULL && s->planned_number > above &&
            (!next || s->planned_number < next->planned_number))
            next = s;
    return next;
}

/* Whether no call of this rank is under way that the library carries, or may carry. */
static bool is_quiet(const struct cpl_comm_state *state)
{
    bool quiet = state->persistent.n == 0;
    for (int k = 0; k < CPL_N_NEIGHBOR_KINDS && state->exchanges; k++) {
        const struct cpl_exchange *x = &state->exchanges[k];
        quiet &= !cpl_exchange_is_served(x) && x->nonblocking.phase != CPL_STARTED_WAITING &&
                 !x->nonblocking.pending && !x->nonblocking.notes;
    }
    return quiet;
}

/* What is known of a communicator goes; its ranks learn again. Collective over it. */
static void give_back(struct cpl_comm_state *state)
{
    if (cpl_agree_all(state->private_comm, is_quiet(state)) &&
        (state->pt2pt->phase != CPL_PT2PT_MANAGED || cpl_pt2pt_drain(state)))
        cpl_comm_state_release(state);
}

/* The same of inner communicators, where nothing is under way on any rank; neighborhood collectives
 * of these graphs are MPI's from here on. Collective over the host. */
static void give_back_inner(const struct cpl_comm_state *host)
{
    int n = cpl_context.comms.n_graphs;
    unsigned char *quiet = cpl_memory_need(2 * (size_t)n + 1, "what is given back"),
                  *all = quiet + n;
    for (const struct cpl_graph *g = cpl_context.comms.first_graph; g; g = g->next)
        if (g->number > 0)
            quiet[g->number - 1] = is_quiet(cpl_comm_state_get(g->inner));
    bool told = n > 0 && cpl_collective_Allreduce(quiet, all, n, MPI_BYTE, MPI_BAND,
                                                  host->private_comm) == MPI_SUCCESS;
    for (int k = 0; k < n && told; k++) {
        const struct cpl_graph *graph;
        LL_SEARCH_SCALAR(cpl_context.comms.first_graph, graph, number, k + 1);
        if (all[k])
            cpl_comm_state_free_inner(graph->comm);
    }
    free(quiet);
}

void cpl_reclaim_made(MPI_Comm over)
{
    struct cpl_comm_state *host = cpl_comm_state_get(over);
    if (!host || host->inter || host->size != cpl_context.size || cpl_context.service.shared ||
        host->meeting.n_made < CPL_MANY_STATES ||
        host->meeting.n_made % (CPL_MANY_STATES / 4) != 0 || cpl_agree_own(host) == MPI_COMM_NULL)
        return;
    if (cpl_agree_all(host->private_comm, cpl_context.comms.n_states < CPL_MANY_STATES))
        return;
    give_back_inner(host);
    struct cpl_comm_state *state;
    for (int64_t at = 0; (state = cpl_reclaim_next(at));) {
        at = state->planned_number;
        if (state != host && state->comm != MPI_COMM_WORLD)
            give_back(state);
    }
}
