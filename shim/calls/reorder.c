/* Placing the ranks of communicators (reorder.h).
 *
 * A process that has become rank r must name the neighbours of graph node r. With
 * MPI_Dist_graph_create_adjacent these are the arguments of the process that had rank r before, so
 * that process sends them. All other calls name edges by ranks of the new communicator, on
 * whichever process. */
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
    int rank, size;
    bool able; /* false: the edges are not known, or arguments are wrong; then MPI gets the call */
    int n;
    struct cpl_pattern_entry *edge;
    int n_dims; /* of a Cartesian grid, for whose pieces a placement may be made; 0: another graph
                 */
    const int *dims;
    /* When they are placed: */
    MPI_Comm placed; /* a communicator of the same processes */
    int new_rank;    /* whose rank there this process plays */
    int donor;       /* the rank in the old one of the process that had the new rank before */
};

/* Whether ranks are placed; else they are only mapped for the report, if at all. */
static bool places(void)
{
    return cpl_context.settings.reorder == CPL_REORDER_AUTO &&
           cpl_context.settings.mode != CPL_MODE_PROFILE;
}

/* Whether the ranks of a communicator may be mapped; then begins the edges. */
static bool may_map(MPI_Comm comm, struct edges *edges)
{
    int inter;
    *edges = (struct edges){.able = false};
    if ((!places() && !cpl_report_is_wanted()) || comm == MPI_COMM_NULL ||
        PMPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS || inter)
        return false;
    PMPI_Comm_rank(comm, &edges->rank);
    PMPI_Comm_size(comm, &edges->size);
    return edges->size > 2 && edges->size <= CPL_PLACE_RANKS && cpl_collective_of_this_world(comm);
}

/* Makes room for n edges. */
static void make_edges(struct edges *edges, int64_t n)
{
    if (n <= INT_MAX)
        edges->edge = calloc((size_t)n + 1, sizeof *edges->edge);
    edges->able = edges->edge;
}

static void add_edge(struct edges *edges, int source, int dest, int weight)
{
    const int size = edges->size;
    if (source < 0 || source >= size || dest < 0 || dest >= size || weight < 0) {
        edges->able = false;
        return;
    }
    edges->edge[edges->n++] = (struct cpl_pattern_entry){source, dest, weight, -1};
}

/* On the root: maps the ranks. Returns whether they are to be placed anew. */
static bool map_ranks(const struct cpl_decision *decision, const struct edges *grid,
                      const struct cpl_machine *machine, int32_t *place)
{
    struct cpl_pattern pattern = {0};
    const struct cpl_place_exchange exchange = {&pattern, 1};
    struct cpl_place_gain gain = {.changed = false};
    struct cpl_error error;
    int32_t *order = NULL;
    enum cpl_status status = cpl_pattern_build(
        decision->n_ranks, decision->records, decision->first[decision->n_ranks], &pattern, &error);
    if (!status && grid->n_dims > 0) {
        order = calloc((size_t)machine->n_ranks, sizeof *order);
        if (order)
            cpl_place_order_grid(grid->n_dims, grid->dims, order);
        else
            status = cpl_fail_memory(&error, "the grid");
    }
    if (!status)
        status =
            cpl_place(&exchange, 1, machine, CPL_REORDER_UNIT_BYTES, order, place, &gain, &error);
    free(order);
    cpl_pattern_free(&pattern);
    if (status)
        cpl_log(CPL_LOG_WARN, "reorder", "%s; the ranks stay where they are", error.text);
    else
        cpl_log(CPL_LOG_INFO, "reorder", "%d ranks %s: modelled %.1f us instead of %.1f",
                decision->n_ranks,
                !gain.changed ? "stay where they are"
                : places()    ? "placed"
                              : "stay, CARPOOL_REORDER=auto would place them",
                gain.after_us, gain.before_us);
    if (status || !gain.changed)
        return false;
    double saved = cpl_context.placed.before_us - cpl_context.placed.after_us;
    if (!places() && (cpl_context.placed.n_possible++ == 0 ||
                      gain.before_us - gain.after_us > saved)) { /* for the report */
        cpl_context.placed.before_us = gain.before_us;
        cpl_context.placed.after_us = gain.after_us;
    }
    return places();
}

/* Hands in the seats and, unless these are all alike, the edges; one rank maps, and all get the
 * result: on success place is a placement. Collective; the same result on all ranks. */
static bool find_places(struct cpl_decision *decision, const struct edges *edges, int32_t *place)
{
    struct cpl_machine machine;
    struct cpl_error error;
    bool has_machine = false;
    int worthwhile = 0;
    if (!cpl_decision_hand_in(
            decision, &(struct cpl_handed_in){.able = edges->able && place, .seated = true}))
        return false;
    if (cpl_decision_is_root(decision))
        has_machine = !cpl_plan_root_machine(decision->n_ranks, decision->seats, &machine, &error);
    worthwhile = has_machine && !cpl_place_is_even(&machine);
    cpl_decision_answer(decision, &worthwhile, sizeof worthwhile);
    const struct cpl_handed_in handed = {
        .able = true, .records = edges->edge, .n = edges->n, .record_bytes = sizeof *edges->edge};
    if (worthwhile && cpl_decision_hand_in(decision, &handed)) {
        worthwhile = cpl_decision_is_root(decision) && map_ranks(decision, edges, &machine, place);
        cpl_decision_answer(decision, &worthwhile, sizeof worthwhile);
        cpl_decision_answer(decision, place, (size_t)decision->n_ranks * sizeof *place);
    } else {
        worthwhile = 0;
    }
    if (has_machine)
        cpl_machine_free(&machine);
    return worthwhile;
}

/* Places the ranks; false on all of them when they stay as they are. Frees the edges. Collective
 * over comm. */
static bool place_ranks(MPI_Comm comm, struct edges *edges)
{
    CPL_DECISION(decision, comm);
    MPI_Errhandler handler;
    bool done = false;
    /* The program must not see errors from here: if anything fails, MPI gets the call. */
    PMPI_Comm_get_errhandler(comm, &handler);
    PMPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    int32_t *place = calloc((size_t)decision.n_ranks, sizeof *place);
    if (find_places(&decision, edges, place)) {
        for (int r = 0; r < decision.n_ranks; r++)
            if (place[r] == edges->rank)
                edges->new_rank = r;
        for (int r = 0; r < decision.n_ranks; r++)
            if (place[r] == edges->new_rank)
                edges->donor = r;
        done = cpl_agree_split(comm, edges->new_rank, &edges->placed);
    }
    PMPI_Comm_set_errhandler(comm, handler);
    if (done)
        PMPI_Comm_set_errhandler(edges->placed, handler);
    PMPI_Errhandler_free(&handler);
    free(place);
    free(edges->edge);
    return done;
}

/* The program's communicator has been made, or not. */
static bool leave(struct edges *edges, bool made)
{
    PMPI_Comm_free(&edges->placed);
    cpl_context.placed.n += made;
    return made;
}

/* A step of the grid from a rank, -1: there is none. stride is what one step adds. */
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
    struct edges edges;
    if (!may_map(comm_old, &edges))
        return false;
    if (ndims > 0 && dims && periods && is_grid_of(ndims, dims, edges.size))
        make_edges(&edges, 2 * (int64_t)ndims);
    edges.n_dims = ndims;
    edges.dims = dims;
    for (int d = ndims - 1, stride = 1; d >= 0 && edges.able; d--) {
        for (int step = -1; step <= 1; step += 2) {
            int to = step_from(edges.rank, dims[d], stride, periods[d], step);
            if (to >= 0)
                add_edge(&edges, edges.rank, to, 1);
        }
        stride *= dims[d];
    }
    if (!place_ranks(comm_old, &edges))
        return false;
    *result = cpl_collective_Cart_create(edges.placed, ndims, dims, periods, 0, comm_cart);
    return leave(&edges, true);
}

bool cpl_reorder_Graph_create(MPI_Comm comm_old, int nnodes, const int indx[], const int edges[],
                              int reorder, MPI_Comm *comm_graph, int *result)
{
    (void)reorder;
    struct edges mine;
    if (!may_map(comm_old, &mine))
        return false;
    if (nnodes == mine.size && indx && edges) {
        int first = mine.rank > 0 ? indx[mine.rank - 1] : 0, end = indx[mine.rank];
        if (first >= 0 && end >= first)
            make_edges(&mine, end - first);
        for (int k = first; mine.able && k < end; k++)
            add_edge(&mine, mine.rank, edges[k], 1);
    }
    if (!place_ranks(comm_old, &mine))
        return false;
    *result = cpl_collective_Graph_create(mine.placed, nnodes, indx, edges, 0, comm_graph);
    return leave(&mine, true);
}

/* Lists the edges that a call of MPI_Dist_graph_create names. */
static void list_edges(struct edges *edges, int n, const int *sources, const int *degrees,
                       const int *destinations, const int *weights)
{
    int64_t n_edges = 0, k = 0;
    if (n < 0 || (n > 0 && (!sources || !degrees)))
        return;
    for (int i = 0; i < n; i++) {
        if (degrees[i] < 0)
            return;
        n_edges += degrees[i];
    }
    if (n_edges > 0 && (!destinations || !weights || weights == MPI_WEIGHTS_EMPTY))
        return;
    make_edges(edges, n_edges);
    for (int i = 0; i < n && edges->able; i++)
        for (int j = 0; j < degrees[i] && edges->able; j++, k++)
            add_edge(edges, sources[i], destinations[k],
                     weights == MPI_UNWEIGHTED ? 1 : weights[k]);
}

bool cpl_reorder_Dist_graph_create(MPI_Comm comm_old, int n, const int sources[],
                                   const int degrees[], const int destinations[],
                                   const int weights[], MPI_Info info, int reorder,
                                   MPI_Comm *comm_dist_graph, int *result)
{
    (void)reorder;
    struct edges edges;
    if (!may_map(comm_old, &edges))
        return false;
    list_edges(&edges, n, sources, degrees, destinations, weights);
    if (!place_ranks(comm_old, &edges))
        return false;
    *result = cpl_collective_Dist_graph_create(edges.placed, n, sources, degrees, destinations,
                                               weights, info, 0, comm_dist_graph);
    return leave(&edges, true);
}

/* The neighbours of a graph node as MPI_Dist_graph_create_adjacent takes them. */
enum { SOURCES, SOURCE_WEIGHTS, DESTINATIONS, DESTINATION_WEIGHTS, N_PARTS };
struct neighborhood {
    int n[N_PARTS]; /* of weights: -1: there are none */
    const int *part[N_PARTS];
};

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

/* Gets words of the donor, in exchange for those of this process. */
static void swap(const struct edges *edges, const int *mine, int n_mine, int *theirs, int n_theirs)
{
    MPI_Request requests[2];
    PMPI_Irecv(theirs, n_theirs, MPI_INT, edges->donor, 0, edges->placed, &requests[0]);
    PMPI_Isend(mine, n_mine, MPI_INT, edges->rank, 0, edges->placed, &requests[1]);
    cpl_collective_waitall(2, requests, MPI_STATUSES_IGNORE);
}

/* Gets the neighbourhood that the process with this process's new rank has named, in exchange for
 * *mine; the caller frees *words, where it lies. False on all ranks when memory ran out. Collective
 * over edges->placed. */
static bool trade(const struct edges *edges, const struct neighborhood *mine,
                  struct neighborhood *theirs, int **words)
{
    swap(edges, mine->n, N_PARTS, theirs->n, N_PARTS);
    *words = calloc(2 * ((size_t)theirs->n[SOURCES] + (size_t)theirs->n[DESTINATIONS]) + 1,
                    sizeof **words);
    if (!cpl_agree_all(edges->placed, *words))
        return false;
    int *to = *words;
    for (int part = 0; part < N_PARTS; part++) {
        const int n_mine = mine->n[part] > 0 ? mine->n[part] : 0;
        const int n_theirs = theirs->n[part] > 0 ? theirs->n[part] : 0;
        theirs->part[part] = theirs->n[part] < 0 ? MPI_UNWEIGHTED : to;
        swap(edges, mine->part[part], n_mine, to, n_theirs);
        to += n_theirs;
    }
    return true;
}

/* Fills mine and, from its destinations, the edges: an edge is named at both its ends. */
static void note_neighborhood(struct edges *edges, int indegree, const int *sources,
                              const int *sourceweights, int outdegree, const int *destinations,
                              const int *destweights, struct neighborhood *mine)
{
    if (!is_valid(indegree, sources, sourceweights, edges->size) ||
        !is_valid(outdegree, destinations, destweights, edges->size))
        return;
    *mine = (struct neighborhood){{indegree, sourceweights == MPI_UNWEIGHTED ? -1 : indegree,
                                   outdegree, destweights == MPI_UNWEIGHTED ? -1 : outdegree},
                                  {sources, sourceweights, destinations, destweights}};
    make_edges(edges, outdegree);
    for (int k = 0; k < outdegree && edges->able; k++)
        add_edge(edges, edges->rank, destinations[k],
                 destweights == MPI_UNWEIGHTED ? 1 : destweights[k]);
}

bool cpl_reorder_Dist_graph_create_adjacent(MPI_Comm comm_old, int indegree, const int sources[],
                                            const int sourceweights[], int outdegree,
                                            const int destinations[], const int destweights[],
                                            MPI_Info info, int reorder, MPI_Comm *comm_dist_graph,
                                            int *result)
{
    (void)reorder;
    struct edges edges;
    struct neighborhood mine = {.n = {0}}, theirs;
    int *words;
    if (!may_map(comm_old, &edges))
        return false;
    note_neighborhood(&edges, indegree, sources, sourceweights, outdegree, destinations,
                      destweights, &mine);
    if (!place_ranks(comm_old, &edges))
        return false;
    bool done = trade(&edges, &mine, &theirs, &words);
    if (done)
        *result = cpl_collective_Dist_graph_create_adjacent(
            edges.placed, theirs.n[SOURCES], theirs.part[SOURCES], theirs.part[SOURCE_WEIGHTS],
            theirs.n[DESTINATIONS], theirs.part[DESTINATIONS], theirs.part[DESTINATION_WEIGHTS],
            info, 0, comm_dist_graph);
    free(words);
    return leave(&edges, done);
}
