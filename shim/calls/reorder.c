/* Placing the ranks of communicators (reorder.h).
 *
 * A process that has become rank r must name the neighbours of graph node r. With
 * MPI_Dist_graph_create_adjacent these are the arguments of the process that had rank r before, so
 * that process sends them. All other calls name edges by ranks of the new communicator, on
 * whichever process.
 */
#include "shim/calls/reorder.h"
#include "shim/meet/agree.h"
#include "shim/meet/decision.h"

#include "planner/pattern.h"
#include "planner/place.h"
#include "shim/base/log.h"
#include "shim/plan/plan_root.h"
#include "shim/report/report.h"
#include "shim/state/context.h"
#include "shim/wait/collective.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* What one rank hands in. */
struct edges {
    bool able; /* false: the edges are not known, or arguments are wrong; then MPI gets the call */
    int n;
    struct cpl_pattern_entry *edge;
};

/* A Cartesian grid, for whose pieces a placement may be made; no dimensions: another graph. */
struct grid {
    int n_dims;
    const int *dims;
};

/* Whether ranks are placed; else they are only mapped for the report, if at all. */
static bool places(void)
{
    return cpl_context.settings.reorder == CPL_REORDER_AUTO &&
           cpl_context.settings.mode != CPL_MODE_PROFILE;
}

/* Fills in this rank and the size of a communicator whose ranks may be mapped. */
static bool may_map(MPI_Comm comm, int *rank, int *size)
{
    int inter;
    if ((!places() && !cpl_report_is_wanted()) || comm == MPI_COMM_NULL ||
        PMPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS || inter)
        return false;
    PMPI_Comm_rank(comm, rank);
    PMPI_Comm_size(comm, size);
    return *size > 2 && *size <= CPL_PLACE_RANKS && cpl_collective_of_this_world(comm);
}

static struct edges make_edges(int64_t n)
{
    struct edges edges = {.able = false};
    if (n > INT_MAX)
        return edges;
    edges.edge = calloc((size_t)n + 1, sizeof *edges.edge);
    edges.able = edges.edge;
    return edges;
}

/* Adds an edge between ranks of a communicator of this size. */
static void add_edge(struct edges *edges, int size, int source, int dest, int weight)
{
    if (source < 0 || source >= size || dest < 0 || dest >= size || weight < 0) {
        edges->able = false;
        return;
    }
    edges->edge[edges->n++] = (struct cpl_pattern_entry){source, dest, weight, -1};
}

static enum cpl_status place_pattern(const struct cpl_pattern *pattern,
                                     const struct cpl_machine *machine, const struct grid *grid,
                                     int32_t *place, struct cpl_place_gain *gain,
                                     struct cpl_error *error)
{
    struct cpl_place_exchange exchange = {pattern, 1};
    int32_t *order = NULL;
    if (grid->n_dims > 0) {
        order = calloc((size_t)machine->n_ranks, sizeof *order);
        if (!order)
            return cpl_fail_memory(error, "the grid");
        cpl_place_order_grid(grid->n_dims, grid->dims, order);
    }
    enum cpl_status status =
        cpl_place(&exchange, 1, machine, CPL_REORDER_UNIT_BYTES, order, place, gain, error);
    free(order);
    return status;
}

/* For the report. */
static void note_gain(const struct cpl_place_gain *gain)
{
    double saved = cpl_context.placed.before_us - cpl_context.placed.after_us;
    if (cpl_context.placed.n_possible++ > 0 && gain->before_us - gain->after_us <= saved)
        return;
    cpl_context.placed.before_us = gain->before_us;
    cpl_context.placed.after_us = gain->after_us;
}

/* On the root: maps the ranks. Returns whether they are to be placed anew. */
static bool map_ranks(const struct cpl_decision *decision, const struct grid *grid,
                      const struct cpl_machine *machine, int32_t *place)
{
    struct cpl_pattern pattern;
    struct cpl_place_gain gain = {.changed = false};
    struct cpl_error error;
    enum cpl_status status = cpl_pattern_build(
        decision->n_ranks, decision->records, decision->first[decision->n_ranks], &pattern, &error);
    if (!status) {
        status = place_pattern(&pattern, machine, grid, place, &gain, &error);
        cpl_pattern_free(&pattern);
    }
    if (status)
        cpl_log(CPL_LOG_WARN, "reorder", "%s; the ranks stay where they are", error.text);
    else
        cpl_log(CPL_LOG_INFO, "reorder", "%d ranks %s: modelled %.1f us instead of %.1f",
                decision->n_ranks,
                !gain.changed ? "stay where they are"
                : places()    ? "placed"
                              : "stay, CARPOOL_REORDER=auto would place them",
                gain.after_us, gain.before_us);
    if (!status && gain.changed && !places())
        note_gain(&gain);
    return !status && gain.changed && places();
}

/* Hands in the seats and, unless these are all alike, the edges; one rank maps, and all get the
 * result: on success place is a placement. Collective; the same result on all ranks. */
static bool find_places(struct cpl_decision *decision, const struct edges *edges,
                        const struct grid *grid, int32_t *place)
{
    const struct cpl_seat seat = cpl_agree_seat(decision->comm);
    struct cpl_machine machine;
    struct cpl_error error;
    bool has_machine = false;
    int worthwhile = 0;
    if (!cpl_decision_hand_in(decision, &(struct cpl_handed_in){.able = edges->able && place,
                                                                .header = &seat,
                                                                .header_bytes = sizeof seat}))
        return false;
    if (cpl_decision_is_root(decision))
        has_machine = !cpl_plan_root_machine(decision->n_ranks, decision->headers, sizeof seat,
                                             &machine, &error);
    worthwhile = has_machine && !cpl_place_is_even(&machine);
    cpl_decision_answer(decision, &worthwhile, sizeof worthwhile);
    const struct cpl_handed_in handed = {
        .able = true, .records = edges->edge, .n = edges->n, .record_bytes = sizeof *edges->edge};
    if (worthwhile && cpl_decision_hand_in(decision, &handed)) {
        worthwhile = cpl_decision_is_root(decision) && map_ranks(decision, grid, &machine, place);
        cpl_decision_answer(decision, &worthwhile, sizeof worthwhile);
        cpl_decision_answer(decision, place, (size_t)decision->n_ranks * sizeof *place);
    } else {
        worthwhile = 0;
    }
    if (has_machine)
        cpl_machine_free(&machine);
    return worthwhile;
}

/* The communicator of the same processes with its ranks placed, and whose rank this process plays;
 * false on all ranks when it stays as it is. Frees the edges. Collective over comm. */
struct placed {
    MPI_Comm comm;
    int rank;
    int donor; /* the rank in comm of the process that had this process's new rank before */
};

static bool place_ranks(MPI_Comm comm, struct edges *edges, const struct grid *grid,
                        struct placed *placed)
{
    struct cpl_decision decision;
    MPI_Errhandler handler;
    bool done = false;
    int rank;
    PMPI_Comm_rank(comm, &rank);
    /* The program must not see errors from here: if anything fails, MPI gets the call. */
    PMPI_Comm_get_errhandler(comm, &handler);
    PMPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    cpl_decision_open(&decision, comm, cpl_agree_root(comm, rank));
    int32_t *place = calloc((size_t)decision.n_ranks, sizeof *place);
    if (find_places(&decision, edges, grid, place)) {
        for (int r = 0; r < decision.n_ranks; r++)
            if (place[r] == rank)
                placed->rank = r;
        for (int r = 0; r < decision.n_ranks; r++)
            if (place[r] == placed->rank)
                placed->donor = r;
        done = cpl_agree_split(comm, placed->rank, &placed->comm);
    }
    PMPI_Comm_set_errhandler(comm, handler);
    if (done)
        PMPI_Comm_set_errhandler(placed->comm, handler);
    PMPI_Errhandler_free(&handler);
    cpl_decision_close(&decision);
    free(place);
    free(edges->edge);
    return done;
}

/* The program's communicator has been made. */
static void leave(struct placed *placed)
{
    PMPI_Comm_free(&placed->comm);
    cpl_context.placed.n++;
}

/* A step of the grid from a rank in dimension d, -1: there is none. stride is what one step adds.
 */
static int step_from(int rank, int size, int stride, bool is_periodic, int step)
{
    int at = rank / stride % size, to = at + step;
    if (to < 0 || to >= size) {
        if (!is_periodic)
            return -1;
        to = (to + size) % size;
    }
    return rank + (to - at) * stride;
}

static bool is_grid_of(int n_dims, const int *dims, int size)
{
    int64_t n = 1;
    for (int d = 0; d < n_dims; d++) {
        if (dims[d] < 1)
            return false;
        n *= dims[d];
        if (n > size)
            return false;
    }
    return n_dims > 0 && n == size;
}

bool cpl_reorder_Cart_create(MPI_Comm comm_old, int ndims, const int dims[], const int periods[],
                             int reorder, MPI_Comm *comm_cart, int *result)
{
    (void)reorder;
    int rank, size;
    if (!may_map(comm_old, &rank, &size))
        return false;
    struct edges edges = {.able = false};
    struct grid grid = {.n_dims = ndims, .dims = dims};
    if (ndims > 0 && dims && periods && is_grid_of(ndims, dims, size))
        edges = make_edges(2 * (int64_t)ndims);
    for (int d = ndims - 1, stride = 1; d >= 0 && edges.able; d--) {
        for (int step = -1; step <= 1; step += 2) {
            int to = step_from(rank, dims[d], stride, periods[d], step);
            if (to >= 0)
                add_edge(&edges, size, rank, to, 1);
        }
        stride *= dims[d];
    }
    struct placed placed;
    if (!place_ranks(comm_old, &edges, &grid, &placed))
        return false;
    *result = cpl_collective_Cart_create(placed.comm, ndims, dims, periods, 0, comm_cart);
    leave(&placed);
    return true;
}

bool cpl_reorder_Graph_create(MPI_Comm comm_old, int nnodes, const int indx[], const int edges[],
                              int reorder, MPI_Comm *comm_graph, int *result)
{
    (void)reorder;
    int rank, size;
    if (!may_map(comm_old, &rank, &size))
        return false;
    struct edges mine = {.able = false};
    if (nnodes == size && indx && edges) {
        int first = rank > 0 ? indx[rank - 1] : 0;
        if (first >= 0 && indx[rank] >= first)
            mine = make_edges(indx[rank] - first);
        for (int k = first; mine.able && k < indx[rank]; k++)
            add_edge(&mine, size, rank, edges[k], 1);
    }
    struct placed placed;
    if (!place_ranks(comm_old, &mine, &(struct grid){.n_dims = 0}, &placed))
        return false;
    *result = cpl_collective_Graph_create(placed.comm, nnodes, indx, edges, 0, comm_graph);
    leave(&placed);
    return true;
}

/* Lists the edges that a call of MPI_Dist_graph_create names. */
static struct edges list_edges(int size, int n, const int *sources, const int *degrees,
                               const int *destinations, const int *weights)
{
    struct edges edges = {.able = false};
    int64_t n_edges = 0;
    if (n < 0 || (n > 0 && (!sources || !degrees)))
        return edges;
    for (int i = 0; i < n; i++) {
        if (degrees[i] < 0)
            return edges;
        n_edges += degrees[i];
    }
    if (n_edges > 0 && (!destinations || !weights || weights == MPI_WEIGHTS_EMPTY))
        return edges;
    edges = make_edges(n_edges);
    int64_t k = 0;
    for (int i = 0; i < n && edges.able; i++)
        for (int j = 0; j < degrees[i] && edges.able; j++, k++)
            add_edge(&edges, size, sources[i], destinations[k],
                     weights == MPI_UNWEIGHTED ? 1 : weights[k]);
    return edges;
}

bool cpl_reorder_Dist_graph_create(MPI_Comm comm_old, int n, const int sources[],
                                   const int degrees[], const int destinations[],
                                   const int weights[], MPI_Info info, int reorder,
                                   MPI_Comm *comm_dist_graph, int *result)
{
    (void)reorder;
    int rank, size;
    if (!may_map(comm_old, &rank, &size))
        return false;
    struct edges edges = list_edges(size, n, sources, degrees, destinations, weights);
    struct placed placed;
    if (!place_ranks(comm_old, &edges, &(struct grid){.n_dims = 0}, &placed))
        return false;
    *result = cpl_collective_Dist_graph_create(placed.comm, n, sources, degrees, destinations,
                                               weights, info, 0, comm_dist_graph);
    leave(&placed);
    return true;
}

/* The neighbours of a graph node as MPI_Dist_graph_create_adjacent takes them. */
struct neighborhood {
    int head[4]; /* in-degree, out-degree, whether these are weighted */
    int *ranks;  /* sources, their weights, destinations, their weights */
};

enum { IN_DEGREE, OUT_DEGREE, IN_WEIGHTED, OUT_WEIGHTED };

static int *ranks_of(const struct neighborhood *n, int part)
{
    return n->ranks + (part < 2 ? part * n->head[IN_DEGREE]
                                : 2 * n->head[IN_DEGREE] + (part - 2) * n->head[OUT_DEGREE]);
}

static int n_words(const struct neighborhood *n)
{
    return 2 * (n->head[IN_DEGREE] + n->head[OUT_DEGREE]);
}

static bool is_valid(int degree, const int *ranks, const int *weights, int size)
{
    if (degree < 0 || degree > INT_MAX / 8 ||
        (degree > 0 && (!ranks || !weights || weights == MPI_WEIGHTS_EMPTY)))
        return false;
    for (int k = 0; k < degree; k++)
        if (ranks[k] < 0 || ranks[k] >= size || (weights != MPI_UNWEIGHTED && weights[k] < 0))
            return false;
    return true;
}

static void copy_part(const struct neighborhood *n, int part, int degree, const int *from)
{
    if (degree > 0 && from != MPI_UNWEIGHTED)
        memcpy(ranks_of(n, part), from, (size_t)degree * sizeof *from);
}

/* Gets the neighbourhood that the process with this process's new rank has named, in exchange for
 * *mine. False on all ranks when memory ran out. Collective over placed->comm. */
static bool trade(const struct placed *placed, int old_rank, const struct neighborhood *mine,
                  struct neighborhood *theirs)
{
    MPI_Request requests[2];
    theirs->ranks = NULL;
    PMPI_Irecv(theirs->head, 4, MPI_INT, placed->donor, 0, placed->comm, &requests[0]);
    PMPI_Isend(mine->head, 4, MPI_INT, old_rank, 0, placed->comm, &requests[1]);
    cpl_collective_waitall(2, requests, MPI_STATUSES_IGNORE);
    theirs->ranks = calloc((size_t)n_words(theirs) + 1, sizeof *theirs->ranks);
    if (!cpl_agree_all(placed->comm, theirs->ranks))
        return false;
    PMPI_Irecv(theirs->ranks, n_words(theirs), MPI_INT, placed->donor, 1, placed->comm,
               &requests[0]);
    PMPI_Isend(mine->ranks, n_words(mine), MPI_INT, old_rank, 1, placed->comm, &requests[1]);
    cpl_collective_waitall(2, requests, MPI_STATUSES_IGNORE);
    return true;
}

static const int *weights_of(const struct neighborhood *n, int is_weighted, int part)
{
    return is_weighted ? ranks_of(n, part) : MPI_UNWEIGHTED;
}

/* Fills mine and, from its destinations, the edges: an edge is named at both its ends. */
static struct edges note_neighborhood(int rank, int size, int indegree, const int *sources,
                                      const int *sourceweights, int outdegree,
                                      const int *destinations, const int *destweights,
                                      struct neighborhood *mine)
{
    struct edges edges = {.able = false};
    if (!is_valid(indegree, sources, sourceweights, size) ||
        !is_valid(outdegree, destinations, destweights, size))
        return edges;
    *mine = (struct neighborhood){.head = {indegree, outdegree, sourceweights != MPI_UNWEIGHTED,
                                           destweights != MPI_UNWEIGHTED}};
    mine->ranks = calloc((size_t)n_words(mine) + 1, sizeof *mine->ranks);
    if (!mine->ranks)
        return edges;
    copy_part(mine, 0, indegree, sources);
    copy_part(mine, 1, indegree, sourceweights);
    copy_part(mine, 2, outdegree, destinations);
    copy_part(mine, 3, outdegree, destweights);
    edges = make_edges(outdegree);
    for (int k = 0; k < outdegree && edges.able; k++)
        add_edge(&edges, size, rank, destinations[k],
                 destweights == MPI_UNWEIGHTED ? 1 : destweights[k]);
    return edges;
}

bool cpl_reorder_Dist_graph_create_adjacent(MPI_Comm comm_old, int indegree, const int sources[],
                                            const int sourceweights[], int outdegree,
                                            const int destinations[], const int destweights[],
                                            MPI_Info info, int reorder, MPI_Comm *comm_dist_graph,
                                            int *result)
{
    (void)reorder;
    int rank, size;
    if (!may_map(comm_old, &rank, &size))
        return false;
    struct neighborhood mine = {.ranks = NULL}, theirs;
    struct edges edges = note_neighborhood(rank, size, indegree, sources, sourceweights, outdegree,
                                           destinations, destweights, &mine);
    struct placed placed;
    bool done = place_ranks(comm_old, &edges, &(struct grid){.n_dims = 0}, &placed);
    if (done) {
        done = trade(&placed, rank, &mine, &theirs);
        if (done)
            *result = cpl_collective_Dist_graph_create_adjacent(
                placed.comm, theirs.head[IN_DEGREE], ranks_of(&theirs, 0),
                weights_of(&theirs, theirs.head[IN_WEIGHTED], 1), theirs.head[OUT_DEGREE],
                ranks_of(&theirs, 2), weights_of(&theirs, theirs.head[OUT_WEIGHTED], 3), info, 0,
                comm_dist_graph);
        free(theirs.ranks);
        if (done)
            leave(&placed);
        else
            PMPI_Comm_free(&placed.comm);
    }
    free(mine.ranks);
    return done;
}
