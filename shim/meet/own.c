/* What is made for ranks: a communicator's private one, the inner one of a graph, where those of a
 * node assemble (agree.h). */
#include "shim/meet/agree.h"

#include "shim/state/adjacency.h"
#include "shim/state/comm_state.h"
#include "shim/state/hooks.h"
#include "shim/state/memory.h"
#include "shim/wait/assembly.h"
#include "shim/wait/collective.h"

#include <stdlib.h>
#include <string.h>

#define OWN_TAG 0 /* of no message of the program's: MPI has them in another context */

/* MPI_COMM_NULL: MPI has none to give, on no rank. */
static MPI_Comm try_own(const struct cpl_comm_state *state)
{
    MPI_Comm made;
#ifdef CPL_SIMULATED
    int result = PMPI_Comm_split(state->comm, 0, state->rank, &made);
#else
    MPI_Group group;
    PMPI_Comm_group(state->comm, &group);
    cpl_away_group(group);
    CPL_OUTSIDE;
    int result = PMPI_Comm_create_group(state->comm, group, OWN_TAG, &made);
    PMPI_Group_free(&group);
#endif
    return result == MPI_SUCCESS ? made : MPI_COMM_NULL;
}

MPI_Comm cpl_agree_own(struct cpl_comm_state *state)
{
    MPI_Errhandler handler;
    if (state->private_comm != MPI_COMM_NULL || state->planned_number < 0)
        return state->private_comm;
    const double begin = PMPI_Wtime();
    PMPI_Comm_get_errhandler(state->comm, &handler);
    PMPI_Comm_set_errhandler(state->comm, MPI_ERRORS_RETURN);
    MPI_Comm made = try_own(state);
    PMPI_Comm_set_errhandler(state->comm, handler);
    PMPI_Errhandler_free(&handler);
    if (made != MPI_COMM_NULL) {
        PMPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
        if (!cpl_agree_all(made, cpl_context.comms.n_planned < CPL_MAX_PLANNED &&
                                     cpl_context.comms.n_states < CPL_MANY_STATES))
            PMPI_Comm_free(&made);
    }
    cpl_comm_state_keep_own(state, made);
    cpl_context.account.communicator = PMPI_Wtime() - begin;
    return made;
}

/* Ranks become their numbers. Returns false where one has none: it does not know of the edge. */
static bool renumber(int n, int *ranks, const int *number)
{
    bool all_have = true;
    for (int k = 0; k < n; k++) {
        ranks[k] = number[ranks[k]];
        all_have &= ranks[k] >= 0;
    }
    return all_have;
}

/* The graph of `comm` on `some`, which has those of its ranks that have neighbours. Returns whether
 * there is one; ranks may differ in that. Collective over `some`. */
static bool copy_graph(MPI_Comm comm, MPI_Comm some, const int *number, MPI_Comm *made)
{
    struct cpl_adjacency a = {.in = {.n = 0}};
    int *volatile weights = MPI_UNWEIGHTED; /* an address that nobody reads */
    bool known =
        cpl_agree_all(some, cpl_adjacency_query(comm, &a) && renumber(a.in.n, a.in.peer, number) &&
                                renumber(a.out.n, a.out.peer, number));
    bool done = known && cpl_collective_Dist_graph_create_adjacent(
                             some, a.in.n, a.in.peer, weights, a.out.n, a.out.peer, weights,
                             MPI_INFO_NULL, 0, made) == MPI_SUCCESS;
    cpl_adjacency_free(&a);
    return done;
}

/* The inner communicator of the ranks that have neighbours: these are numbered, the others get -1.
 * MPI_COMM_NULL: there is none to be had, on no rank. Collective. */
static MPI_Comm make_inner(MPI_Comm comm, const unsigned char *have, int n)
{
    MPI_Comm some, inner = MPI_COMM_NULL;
    int rank = 0, n_having = 0;
    int *number = cpl_memory_need((size_t)n * sizeof *number, "a graph's ranks");
    for (int r = 0; r < n; r++)
        number[r] = have[r] ? n_having++ : -1;
    PMPI_Comm_rank(comm, &rank);
    if (cpl_collective_Comm_split(comm, number[rank] < 0 ? rank + 1 : 0, rank, &some) ==
        MPI_SUCCESS) {
        PMPI_Comm_set_errhandler(some, MPI_ERRORS_RETURN);
        bool made = copy_graph(comm, some, number, &inner);
        if (!cpl_agree_all(comm, made && cpl_context.comms.n_states < CPL_MANY_STATES) && made)
            PMPI_Comm_free(&inner);
        PMPI_Comm_free(&some);
    }
    free(number);
    return inner;
}

/* Whether this rank has neighbours, in a graph. */
static bool has_neighbors(MPI_Comm comm, int topology)
{
    int rank = 0, n_in = 0, n_out = 0, weighted = 0;
    if (topology == MPI_DIST_GRAPH)
        PMPI_Dist_graph_neighbors_count(comm, &n_in, &n_out, &weighted);
    else if (PMPI_Comm_rank(comm, &rank) == MPI_SUCCESS)
        PMPI_Graph_neighbors_count(comm, rank, &n_in);
    return n_in + n_out > 0;
}

void cpl_agree_graph(MPI_Comm made)
{
    int topology = MPI_UNDEFINED, n = 0;
    if (made == MPI_COMM_NULL)
        return;
    PMPI_Topo_test(made, &topology);
    if ((topology != MPI_DIST_GRAPH && topology != MPI_GRAPH) || cpl_graph_of(made))
        return;
    MPI_Errhandler handler;
    PMPI_Comm_get_errhandler(made, &handler);
    PMPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
    PMPI_Comm_size(made, &n);
    unsigned char *have = cpl_memory_need((size_t)n, "a graph's ranks");
    unsigned char mine = has_neighbors(made, topology);
    if (cpl_collective_Allgather(&mine, 1, MPI_BYTE, have, 1, MPI_BYTE, made) != MPI_SUCCESS)
        memset(have, 0, (size_t)n);
    int n_having = 0;
    for (int r = 0; r < n; r++)
        n_having += have[r];
    MPI_Comm inner = n_having > 0 && n_having < n ? make_inner(made, have, n) : MPI_COMM_NULL;
    if (n_having == n || inner != MPI_COMM_NULL)
        cpl_graph_keep(made, inner);
    if (inner != MPI_COMM_NULL && mine)
        cpl_graph_keep(inner, MPI_COMM_NULL);
    PMPI_Comm_set_errhandler(made, handler);
    PMPI_Errhandler_free(&handler);
    free(have);
}

/* Opens where the ranks of each node assemble (wait/assembly.h) before anything is managed, if they
 * can share memory on all nodes; else they go on by MPI. Simulated ranks have no memory in common
 * that costs what a node's does; threads could enter barriers that two ranks have in common in
 * different orders. */
static void prepare(void)
{
#ifndef CPL_SIMULATED
    MPI_Comm node, leaders = MPI_COMM_NULL, all = cpl_context.comms.away;
    char why[CPL_SHARED_WHY] = "";
    int rank, n;
    if (cpl_context.comms.assembly || cpl_context.service.shared || !cpl_context.settings.lanes ||
        !cpl_agree_split_node(all, &node))
        return;
    PMPI_Comm_rank(node, &rank);
    PMPI_Comm_size(node, &n);
    int result =
        cpl_collective_Comm_split(all, rank == 0 ? 0 : MPI_UNDEFINED, cpl_context.rank, &leaders);
    int64_t bytes = CPL_SHARED_HEAD + cpl_assembly_bytes(n);
    unsigned char *memory = cpl_node_memory_open(node, bytes, why);
    struct cpl_assembly *assembly = cpl_assembly_make(node, leaders, memory, bytes);
    if (cpl_agree_all(all, assembly && memory && result == MPI_SUCCESS))
        cpl_context.comms.assembly = assembly;
    else
        cpl_assembly_free(assembly);
#endif
}

const struct cpl_hooks cpl_node_hooks = {.prepare = prepare};
