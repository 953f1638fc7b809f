/* The ways in which an array's steps can be done: the one that the method names, or for "auto"
 * several, among which each step chooses (choice.h). */
#include "array_internal.h"

#include "planner/machine/memory_domain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Makes the machine. Places of ranks are found only for routes that need them; auto needs nodes
 * only. Collective.
 */
static enum cpl_status make_machine(const struct cpl_array *array, const struct cpl_method *method,
                                    struct cpl_machine *machine, struct cpl_error *error)
{
    int per_node = array->options.ranks_per_node;
    struct cpl_node_shape shape;
    if ((strcmp(method->route, "locality") != 0 && !method->is_auto) || per_node)
        return cpl_machine_init(array->n_ranks, per_node ? per_node : array->n_ranks, machine,
                                error);
    MPI_Comm node;
    int leader = array->rank, size;
    int64_t *nodes = cpl_array_alloc(array->n_ranks, sizeof *nodes);
    MPI_Comm_split_type(array->comm, MPI_COMM_TYPE_SHARED, array->rank, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &size);
    MPI_Bcast(&leader, 1, MPI_INT, 0, node);
    MPI_Comm_free(&node);
    int most[] = {nodes == NULL, size};
    MPI_Allreduce(MPI_IN_PLACE, most, 2, MPI_INT, MPI_MAX, array->comm);
    if (most[0]) {
        free(nodes);
        return cpl_fail_memory(error, "the places of the ranks");
    }
    int64_t own = cpl_memory_node(leader, most[1] > 1);
    MPI_Allgather(&own, 1, MPI_INT64_T, nodes, 1, MPI_INT64_T, array->comm);
    /* rank 0's node stands for all nodes, so that all ranks make the same route */
    int sockets[3] = {1, 1, 1};
    if (array->rank == 0 && !method->is_auto && !cpl_node_shape_load(NULL, &shape, NULL)) {
        sockets[0] = shape.n_sockets;
        sockets[1] = shape.n_numa;
        sockets[2] = shape.n_cores;
    }
    MPI_Bcast(sockets, 3, MPI_INT, 0, array->comm);
    enum cpl_status status =
        cpl_machine_from_places(array->n_ranks, nodes, NULL, NULL, 0, machine, error);
    free(nodes);
    if (status)
        return status;
    shape = (struct cpl_node_shape){sockets[0], sockets[1], sockets[2]};
    cpl_machine_apply_shape(machine, &shape);
    return CPL_OK;
}

/* The costs of messages by the options' machine, which rank 0 reads. Collective. */
static enum cpl_status read_costs(struct cpl_array *array, struct cpl_error *error)
{
    struct cpl_machine_file file = cpl_machine_file_default();
    const char *name = array->options.machine;
    struct {
        int status;
        struct cpl_error error;
        struct cpl_costs costs;
    } read = {0};
    if (array->rank == 0) {
        read.status = name && *name ? (int)cpl_machine_file_load(name, &file, &read.error) : CPL_OK;
        read.costs = file.costs;
    }
    MPI_Bcast(&read, (int)sizeof read, MPI_BYTE, 0, array->comm);
    array->costs = read.costs;
    return read.status ? cpl_fail(error, (enum cpl_status)read.status, "options.machine: %s",
                                  read.error.text)
                       : CPL_OK;
}

/* Whether the results of a step are known to be the same to the last bit by all ways: only then may
 * measured times choose among them. Types for which MPI_BAND is defined are integers. */
static bool is_exact(const struct cpl_array *array)
{
    const struct carpool_array_options *options = &array->options;
    _Alignas(16) char zero[2][64] = {{0}};
    if (options->policy == CARPOOL_ARRAY_LAST || options->policy == CARPOOL_ARRAY_FIRST)
        return true;
    if (options->policy == CARPOOL_ARRAY_USER)
        return false;
    struct cpl_quiet quiet = cpl_quiet_begin();
    int code = MPI_Reduce_local(zero[0], zero[1], 1, options->type, MPI_BAND);
    cpl_quiet_end(&quiet);
    return code == MPI_SUCCESS;
}

/* Adds a way, unless there is one with the same text. */
static enum cpl_status add_way(struct cpl_array *array, const struct cpl_method *method,
                               const struct cpl_machine *machine, struct cpl_error *error)
{
    struct cpl_way *way = &array->way[array->n_ways];
    way->route = &array->routes[array->n_routes];
    enum cpl_status status = cpl_route_make(method, machine, array->rank, way->route, way->method,
                                            sizeof way->method, error);
    if (status)
        return status;
    way->variant = method->variant;
    for (int k = 0; k < array->n_ways; k++)
        if (strcmp(array->way[k].method, way->method) == 0) {
            cpl_route_free(way->route);
            return CPL_OK;
        }
    array->n_routes++;
    array->n_ways++;
    return CPL_OK;
}

/* Gives the ways, which all sort, twins that hash; twin gets the numbers of both. */
static void add_twins(struct cpl_array *array, int *twin)
{
    int n = array->n_ways;
    for (int k = 0; k < n; k++) {
        const struct cpl_way *way = &array->way[k];
        struct cpl_way *other = &array->way[n + k];
        const char *route = strchr(way->method, ':');
        *other = (struct cpl_way){.variant = CPL_VARIANT_HASH, .route = way->route};
        snprintf(other->method, sizeof other->method, "%s%s", cpl_variant_name(other->variant),
                 route ? route : ":plain");
        twin[k] = n + k;
        twin[n + k] = k;
    }
    array->n_ways = 2 * n;
}

/* Peters 2024 finds sort the best variant and the number of stages what matters of a route; hash
 * was measured faster here where many requests are for the same elements, tree and envelopes never
 * (bench/results/array.md). */
static enum cpl_status add_all(struct cpl_array *array, const struct cpl_machine *machine,
                               struct cpl_error *error)
{
    static const char *const texts[] = {"sort:equal:2", "sort:equal:3",   "sort:equal",
                                        "sort:equal:1", "sort:hypercube", "sort:locality",
                                        "plain"};
    enum { N_TEXTS = sizeof texts / sizeof *texts };
    _Static_assert(2 * (int)N_TEXTS <= CPL_MOST_WAYS, "room for all ways and their twins");
    int twin[CPL_MOST_WAYS];
    for (int k = 0; k < N_TEXTS; k++) {
        struct cpl_method method;
        enum cpl_status status = cpl_method_parse(texts[k], &method, error);
        if (!status)
            status = add_way(array, &method, machine, error);
        if (status && status != CPL_ERR_UNFIT) /* few ranks have few shapes */
            return status;
    }
    add_twins(array, twin);
    array->ranks_per_node = (array->n_ranks + machine->n_nodes - 1) / machine->n_nodes;
    cpl_choice_begin(&array->choice, array->n_ways, twin, is_exact(array));
    return CPL_OK;
}

static void take_way(struct cpl_array *array, int k)
{
    const struct cpl_way *way = &array->way[k];
    array->variant = way->variant;
    array->route = way->route;
    array->method = way->method;
}

enum cpl_status cpl_ways_make(struct cpl_array *array, const struct cpl_method *method,
                              struct cpl_error *error)
{
    struct cpl_machine machine;
    enum cpl_status status = method->is_auto ? read_costs(array, error) : CPL_OK;
    if (!status)
        status = make_machine(array, method, &machine, error);
    if (status)
        return status;
    status =
        method->is_auto ? add_all(array, &machine, error) : add_way(array, method, &machine, error);
    cpl_machine_free(&machine);
    if (!status)
        take_way(array, 0);
    return status;
}

void cpl_ways_free(struct cpl_array *array)
{
    for (int k = 0; k < array->n_routes; k++)
        cpl_route_free(&array->routes[k]);
}

/* What the ways take by the model. */
static void model_all(const struct cpl_array *array, const struct cpl_step_load *load, double *us)
{
    for (int k = 0; k < array->n_ways; k++) {
        const struct cpl_way *way = &array->way[k];
        struct cpl_way_model model = {way->route->is_plain ? NULL : &way->route->grid,
                                      way->variant == CPL_VARIANT_HASH};
        us[k] =
            cpl_choice_model_us(&array->costs, &model, array->n_ranks, array->ranks_per_node, load);
    }
}

static void note_last(struct cpl_array *array, const struct cpl_step_sums *sums)
{
    double distinct[2];
    for (int kind = 0; kind < 2; kind++) {
        int64_t n = array->last_n[kind], kept = sums->kept[kind];
        distinct[kind] = kept < n ? (double)kept / (double)n : 1;
    }
    cpl_choice_note(&array->choice, (double)sums->last_ns * 1e-3 / array->n_ranks, distinct);
}

void cpl_ways_choose(struct cpl_array *array, const struct cpl_step_sums *sums)
{
    struct cpl_choice *choice = &array->choice;
    struct cpl_step_load load = {{sums->n[0], sums->n[1]}, {1, 1}, (int64_t)array->size};
    double us[CPL_MOST_WAYS], known_us[CPL_MOST_WAYS];
    if (array->n_ways < 2)
        return;
    note_last(array, sums);
    model_all(array, &load, us);
    cpl_choice_recall(choice, &load);
    model_all(array, &load, known_us);
    int way = cpl_choice_next(choice, &load, choice->measures ? known_us : us);
    /* equal steps take the same route in any case; twins come to the same, bit by bit */
    int twin = choice->twin[way];
    if (!choice->measures && twin >= 0 && known_us[twin] < known_us[way])
        way = twin;
    take_way(array, way);
}
