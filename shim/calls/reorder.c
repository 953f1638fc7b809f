/* Placing the ranks of communicators (reorder.h).
 *
 * A process that has become rank r must name the neighbours of graph node r. With
 * MPI_Dist_graph_create_adjacent these are what the process that had rank r before has named, so
 * that process sends them. All other calls name edges by ranks of the new communicator, on
 * whichever process. */
#include "shim/calls/reorder.h"
#include "shim/meet/agree.h"
#include "shim/meet/decision.h"

#include "planner/pattern.h"
#include "planner/place.h"
#include "shim/base/log.h"
#include "shim/plan/plan_root.h"
#include "shim/state/adjacency.h"
#include "shim/state/context.h"
#include "shim/state/memory.h"
#include "shim/wait/collective.h"

#include <stdlib.h>

#define UNIT_BYTES 1024 /* that a weight of 1 stands for */

/* A communicator that MPI has made, while its ranks are placed. */
struct placing {
    MPI_Comm comm;
    MPI_Comm placed;                 /* of the same processes, by new ranks; or MPI_COMM_NULL */
    MPI_Errhandler handler;          /* of comm, whose errors return meanwhile */
    int new_rank;                    /* the rank in comm that this process is to play */
    int heir;                        /* who is to play this process's */
    struct cpl_adjacency around;     /* its neighbours in comm */
    int *weights;                    /* of the edges from these, then of those to them */
    int weighted;                    /* whether they are the program's; else 1 */
    struct cpl_pattern_entry *edges; /* to these */
    int n_edges;
};

/* Asks MPI for the neighbours. False: they cannot be had. */
static bool look_around(struct placing *p, int rank)
{
    const struct cpl_neighbors *in = &p->around.in, *out = &p->around.out;
    int topology, n_in, n_out;
    if (!cpl_adjacency_query(p->comm, &p->around))
        return false;
    p->weights = calloc((size_t)in->n + (size_t)out->n + 1, sizeof *p->weights);
    p->edges = calloc((size_t)out->n + 1, sizeof *p->edges);
    if (!p->weights || !p->edges)
        return false;
    for (int k = 0; k < in->n + out->n; k++)
        p->weights[k] = 1; /* MPI does not write those of an unweighted graph */
    PMPI_Topo_test(p->comm, &topology);
    if (topology == MPI_DIST_GRAPH &&
        (PMPI_Dist_graph_neighbors_count(p->comm, &n_in, &n_out, &p->weighted) != MPI_SUCCESS ||
         PMPI_Dist_graph_neighbors(p->comm, in->n, in->peer, p->weights, out->n, out->peer,
                                   p->weights + in->n) != MPI_SUCCESS))
        return false;
    for (int k = 0; k < out->n; k++) {
        if (p->weights[in->n + k] < 0) /* MPICH takes them */
            return false;
        if (out->peer[k] != MPI_PROC_NULL)
            p->edges[p->n_edges++] =
                (struct cpl_pattern_entry){rank, out->peer[k], p->weights[in->n + k], -1};
    }
    return true;
}

/* An order of a grid's ranks, for whose pieces a placement may be made; NULL: there is none. */
static int32_t *order_grid(MPI_Comm comm, int n_ranks)
{
    int topology, n_dims = 0;
    if (PMPI_Topo_test(comm, &topology) != MPI_SUCCESS || topology != MPI_CART ||
        PMPI_Cartdim_get(comm, &n_dims) != MPI_SUCCESS || n_dims == 0)
        return NULL;
    int *dims = calloc(3 * (size_t)n_dims, sizeof *dims); /* and periods and coordinates */
    int32_t *order = dims ? calloc((size_t)n_ranks, sizeof *order) : NULL;
    if (order) {
        PMPI_Cart_get(comm, n_dims, dims, dims + n_dims, dims + 2 * (size_t)n_dims);
        cpl_place_order_grid(n_dims, dims, order);
    }
    free(dims);
    return order;
}

/* On the root: maps the ranks. Returns whether they are to be placed anew. */
static bool map_ranks(const struct cpl_decision *decision, const struct cpl_machine *machine,
                      int32_t *place)
{
    struct cpl_pattern pattern = {0};
    const struct cpl_place_exchange exchange = {&pattern, 1};
    struct cpl_place_gain gain = {.changed = false};
    struct cpl_error error;
    int32_t *order = order_grid(decision->comm, decision->n_ranks);
    enum cpl_status status = cpl_pattern_build(
        decision->n_ranks, decision->records, decision->first[decision->n_ranks], &pattern, &error);
    if (!status)
        status = cpl_place(&exchange, 1, machine, UNIT_BYTES, order, place, &gain, &error);
    free(order);
    cpl_pattern_free(&pattern);
    if (status)
        cpl_log(CPL_LOG_WARN, "reorder", "%s; the ranks stay where they are", error.text);
    else
        cpl_log(CPL_LOG_INFO, "reorder", "%d ranks %s: modelled %.1f us instead of %.1f",
                decision->n_ranks, gain.changed ? "placed" : "stay where they are", gain.after_us,
                gain.before_us);
    return !status && gain.changed;
}

/* Hands in the seats and the edges; one rank maps, and all get the result: on success place is a
 * placement. Collective; the same result on all ranks. */
static bool find_places(struct cpl_decision *decision, const struct placing *p, bool able,
                        int32_t *place)
{
    struct cpl_machine machine;
    struct cpl_error error;
    int found = 0;
    const struct cpl_handed_in handed = {.able = able,
                                         .seated = true,
                                         .records = p->edges,
                                         .n = p->n_edges,
                                         .record_bytes = sizeof *p->edges};
    if (!cpl_decision_hand_in(decision, &handed))
        return false;
    if (cpl_decision_is_root(decision) &&
        !cpl_plan_root_machine(decision->n_ranks, decision->seats, &machine, &error)) {
        found = !cpl_place_is_even(&machine) && map_ranks(decision, &machine, place);
        cpl_machine_free(&machine);
    }
    cpl_decision_answer(decision, &found, sizeof found);
    cpl_decision_answer(decision, place, (size_t)decision->n_ranks * sizeof *place);
    return found;
}

/* The program's communicator is made. */
static void finish(struct placing *p, MPI_Comm made)
{
    PMPI_Comm_set_errhandler(made, p->handler);
    PMPI_Errhandler_free(&p->handler);
    cpl_adjacency_free(&p->around);
    free(p->weights);
    free(p->edges);
}

/* Places the ranks of a communicator that MPI has made. Returns the communicator on which to make
 * it again; MPI_COMM_NULL on all ranks: they stay as they are. Collective over it. */
static MPI_Comm begin(MPI_Comm made, struct placing *p)
{
    const struct cpl_settings *settings = &cpl_context.settings;
    *p = (struct placing){.comm = made, .placed = MPI_COMM_NULL};
    if (settings->reorder != CPL_REORDER_AUTO || settings->mode == CPL_MODE_PROFILE ||
        made == MPI_COMM_NULL || !cpl_collective_of_this_world(made))
        return MPI_COMM_NULL;
    CPL_DECISION(decision, made);
    if (decision.n_ranks <= 2 || decision.n_ranks > CPL_PLACE_RANKS)
        return MPI_COMM_NULL;
    PMPI_Comm_get_errhandler(made, &p->handler);
    PMPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
    int32_t *place = calloc((size_t)decision.n_ranks, sizeof *place);
    if (find_places(&decision, p, place && look_around(p, decision.rank), place)) {
        while (place[p->new_rank] != decision.rank)
            p->new_rank++;
        p->heir = place[decision.rank];
        cpl_agree_split(made, p->new_rank, &p->placed);
    }
    free(place);
    if (p->placed == MPI_COMM_NULL)
        finish(p, made);
    return p->placed;
}

/* It was made again, with this result: takes the place of the first one, if it was on all ranks. */
static void end(struct placing *p, int result, MPI_Comm *made)
{
    bool all = cpl_agree_all(p->placed, result == MPI_SUCCESS);
    if (all)
        PMPI_Comm_free(&p->comm);
    else if (result == MPI_SUCCESS)
        PMPI_Comm_free(made);
    if (!all)
        *made = p->comm;
    cpl_context.n_placed += all;
    PMPI_Comm_free(&p->placed);
    finish(p, *made);
}

/* Gets words of the process whose rank this one is to play, in exchange for its own. */
static void swap(const struct placing *p, const int *mine, int n_mine, int *theirs, int n_theirs)
{
    MPI_Request requests[2];
    PMPI_Irecv(theirs, n_theirs, MPI_INT, p->new_rank, 0, p->comm, &requests[0]);
    PMPI_Isend(mine, n_mine, MPI_INT, p->heir, 0, p->comm, &requests[1]);
    cpl_collective_waitall(2, requests, MPI_STATUSES_IGNORE);
}

void cpl_reorder_Dist_graph_create_adjacent(MPI_Comm comm_old, int indegree, const int sources[],
                                            const int sourceweights[], int outdegree,
                                            const int destinations[], const int destweights[],
                                            MPI_Info info, int reorder, MPI_Comm *newcomm)
{
    struct placing p;
    (void)sources, (void)sourceweights, (void)destinations, (void)destweights, (void)reorder;
    comm_old = begin(*newcomm, &p);
    if (comm_old == MPI_COMM_NULL)
        return;
    const int n_in = indegree, n_out = outdegree;
    swap(&p, &n_in, 1, &indegree, 1);
    swap(&p, &n_out, 1, &outdegree, 1);
    const size_t n = (size_t)indegree + (size_t)outdegree;
    int *in = cpl_memory_need((2 * n + 1) * sizeof *in, "the neighbours of a rank");
    int *out = in + indegree, *weights = in + n;
    swap(&p, p.around.in.peer, n_in, in, indegree);
    swap(&p, p.around.out.peer, n_out, out, outdegree);
    swap(&p, p.weights, n_in + n_out, weights, indegree + outdegree);
    end(&p,
        cpl_collective_Dist_graph_create_adjacent(
            comm_old, indegree, in, p.weighted ? weights : MPI_UNWEIGHTED, outdegree, out,
            p.weighted ? weights + indegree : MPI_UNWEIGHTED, info, 0, newcomm),
        newcomm);
    free(in);
}

#define REORDERS(name, over, parameters, arguments)                                                \
    void cpl_reorder_##name parameters                                                             \
    {                                                                                              \
        struct placing p;                                                                          \
        reorder = 0;                                                                               \
        over = begin(*newcomm, &p);                                                                \
        if (over != MPI_COMM_NULL)                                                                 \
            end(&p, cpl_collective_##name arguments, newcomm);                                     \
    }

#define TRADES(...) /* the one above */
#include "shim/tables/collectives.def"
