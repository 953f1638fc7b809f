/* Machines (machine.h): ranks on nodes, and the shape of a node applied to its ranks.
 *
 * Cost: O(ranks); O(ranks log ranks) from explicit places, whose keys are sorted. */
#include "planner/machine.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A machine with its arrays all 0. */
static enum cpl_status allocate(int32_t n_ranks, struct cpl_machine *machine,
                                struct cpl_error *error)
{
    struct cpl_machine made = {
        .n_ranks = n_ranks, .costs = cpl_costs_default(), .arena = CPL_ARENA_EMPTY};
    made.node = CPL_ARENA_ARRAY(&made.arena, int32_t, n_ranks);
    made.socket = CPL_ARENA_ARRAY(&made.arena, int32_t, n_ranks);
    made.numa = CPL_ARENA_ARRAY(&made.arena, int32_t, n_ranks);
    if (!made.node || !made.socket || !made.numa) {
        cpl_arena_free(&made.arena);
        return cpl_fail_memory(error, "the machine's ranks");
    }
    *machine = made;
    return CPL_OK;
}

static enum cpl_status check_blocks(int32_t n_ranks, int32_t ranks_per_node,
                                    struct cpl_error *error)
{
    if (n_ranks >= 1 && ranks_per_node >= 1)
        return CPL_OK;
    return cpl_fail(error, CPL_ERR_ARG,
                    "a machine of %" PRId32 " ranks, %" PRId32
                    " on each node; both must be at least 1",
                    n_ranks, ranks_per_node);
}

enum cpl_status cpl_machine_init(int32_t n_ranks, int32_t ranks_per_node,
                                 struct cpl_machine *machine, struct cpl_error *error)
{
    enum cpl_status status = check_blocks(n_ranks, ranks_per_node, error);
    if (!status)
        status = allocate(n_ranks, machine, error);
    if (status)
        return status;
    for (int32_t i = 0; i < n_ranks; i++)
        machine->node[i] = i / ranks_per_node;
    machine->n_nodes = (n_ranks - 1) / ranks_per_node + 1;
    return CPL_OK;
}

enum cpl_status cpl_machine_blocks(int32_t n_ranks, int32_t ranks_per_node,
                                   const struct cpl_node_shape *shape, struct cpl_machine *machine,
                                   struct cpl_error *error)
{
    enum cpl_status status = check_blocks(n_ranks, ranks_per_node, error);
    if (status)
        return status;
    int32_t block = ranks_per_node < n_ranks ? ranks_per_node : n_ranks;
    *machine =
        (struct cpl_machine){.n_ranks = n_ranks,
                             .n_nodes = (n_ranks - 1) / block + 1,
                             .cores_per_node = shape && block > shape->n_cores ? shape->n_cores : 0,
                             .costs = cpl_costs_default(),
                             .block = block,
                             .block_sockets = shape ? shape->n_sockets : 1,
                             .arena = CPL_ARENA_EMPTY};
    return CPL_OK;
}

struct keyed_rank {
    int64_t key;
    int32_t rank;
};

static int compare_keyed_ranks(const void *a, const void *b)
{
    const struct keyed_rank *x = a;
    const struct keyed_rank *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

/* Numbers the nodes by their first ranks. node[i] is first set to the first rank of i's node, which
 * is at most i, so that one ascending pass can replace it by that rank's number. */
static enum cpl_status number_nodes(const int64_t *node_key, struct cpl_machine *machine,
                                    struct cpl_error *error)
{
    struct cpl_arena scratch = CPL_ARENA_EMPTY;
    int32_t n = machine->n_ranks;
    struct keyed_rank *sorted = CPL_ARENA_ARRAY(&scratch, struct keyed_rank, n);
    if (!sorted)
        return cpl_fail_memory(error, "the machine's nodes");
    for (int32_t i = 0; i < n; i++)
        sorted[i] = (struct keyed_rank){node_key[i], i};
    qsort(sorted, (size_t)n, sizeof *sorted, compare_keyed_ranks);
    int32_t leader = 0;
    for (int32_t k = 0; k < n; k++) {
        if (k == 0 || sorted[k].key != sorted[k - 1].key)
            leader = sorted[k].rank;
        machine->node[sorted[k].rank] = leader;
    }
    cpl_arena_free(&scratch);
    for (int32_t i = 0; i < n; i++) {
        leader = machine->node[i];
        machine->node[i] = leader == i ? machine->n_nodes++ : machine->node[leader];
    }
    return CPL_OK;
}

static enum cpl_status copy_units(const int32_t *from, int32_t *to, int32_t n, const char *what,
                                  struct cpl_error *error)
{
    for (int32_t i = 0; from && i < n; i++) {
        if (from[i] < 0)
            return cpl_fail(error, CPL_ERR_ARG,
                            "rank %" PRId32 " is on %s %" PRId32 "; they count from 0", i, what,
                            from[i]);
        to[i] = from[i];
    }
    return CPL_OK;
}

enum cpl_status cpl_machine_from_places(int32_t n_ranks, const int64_t *node_key,
                                        const int32_t *socket, const int32_t *numa,
                                        int32_t cores_per_node, struct cpl_machine *machine,
                                        struct cpl_error *error)
{
    if (n_ranks < 1 || cores_per_node < 0)
        return cpl_fail(error, CPL_ERR_ARG,
                        "a machine of %" PRId32 " ranks and %" PRId32
                        " cores a node; expected at least 1 and 0",
                        n_ranks, cores_per_node);
    struct cpl_machine made;
    enum cpl_status status = allocate(n_ranks, &made, error);
    if (status)
        return status;
    made.cores_per_node = cores_per_node;
    status = copy_units(socket, made.socket, n_ranks, "socket", error);
    if (!status)
        status = copy_units(numa, made.numa, n_ranks, "NUMA domain", error);
    if (!status)
        status = number_nodes(node_key, &made, error);
    if (status)
        cpl_machine_free(&made);
    else
        *machine = made;
    return status;
}

int32_t cpl_machine_block_unit(int32_t i, int32_t n_local, int32_t n_units)
{
    if (n_units <= 1 || n_local < 1)
        return 0;
    return (int32_t)((int64_t)i * n_units / n_local);
}

/* Sets socket[i] to rank i's number on its node and numa[v] to the ranks of node v; returns the
 * most ranks of a node. The two arrays are about to be overwritten, so they serve as scratch, and
 * the shape can be applied without an allocation that might fail. */
static int32_t count_local_ranks(struct cpl_machine *machine)
{
    int32_t n_most = 0;
    memset(machine->numa, 0, (size_t)machine->n_nodes * sizeof *machine->numa);
    for (int32_t i = 0; i < machine->n_ranks; i++) {
        int32_t *n_local = &machine->numa[machine->node[i]];
        machine->socket[i] = (*n_local)++;
        n_most = *n_local > n_most ? *n_local : n_most;
    }
    return n_most;
}

void cpl_machine_apply_shape(struct cpl_machine *machine, const struct cpl_node_shape *shape)
{
    int32_t n_most = count_local_ranks(machine);
    machine->cores_per_node = n_most > shape->n_cores ? shape->n_cores : 0;
    /* Descending: nodes are numbered by their first ranks, so node[j] <= j, and the count at
     * numa[i] is needed by no rank j < i any more. */
    for (int32_t i = machine->n_ranks - 1; i >= 0; i--) {
        int32_t local = machine->socket[i];
        int32_t n_local = machine->numa[machine->node[i]];
        machine->socket[i] = cpl_machine_block_unit(local, n_local, shape->n_sockets);
        machine->numa[i] = cpl_machine_block_unit(local, n_local, shape->n_numa);
    }
}

void cpl_machine_free(struct cpl_machine *machine)
{
    cpl_arena_free(&machine->arena);
    *machine = (struct cpl_machine){.arena = CPL_ARENA_EMPTY};
}
