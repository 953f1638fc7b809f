/* Placement of ranks (place.h). */
#include "planner/place.h"

#include "planner/grid/map.h"
#include "planner/place/place_grow.h"
#include "planner/plan.h"
#include "planner/strategy.h"

#include <stdlib.h>
#include <string.h>

#define WEIGHT_SUM      1e12 /* of all messages: gains then fit 64 bits, whatever the scales */
#define LARGEST_SCALE   1024
#define STEPS_OF_A_PAIR 64

struct placer {
    const struct cpl_place_exchange *exchanges;
    int32_t n;
    const struct cpl_machine *machine;
    double unit_bytes;
    const int32_t *order;    /* an order of the ranks to be tried; NULL: none */
    struct cpl_plan *direct; /* per exchange */
    struct cpl_pattern
        weights; /* messages of all exchanges, weighed by their extra cost between nodes */
    struct cpl_map_points points; /* processes: dimension 0 is the node, 1 the socket */
    const int32_t *unit;          /* per process: the smallest unit that makes a difference */
    int32_t n_units;
    struct cpl_arena arena;
};

/* The cost of a message of `bytes` bytes on its link, in microseconds. */
static double link_us(const struct cpl_machine *machine, enum cpl_link_class class_, double bytes)
{
    const struct cpl_link_cost *link = &machine->costs.link[class_];
    double ends = class_ == CPL_LINK_NETWORK ? 1 : 2; /* bytes between nodes overlap */
    return link->send_us + link->recv_us + link->latency_us +
           ends * bytes * link->ns_per_byte * 1e-3;
}

static bool same_cost(const struct cpl_machine *machine, enum cpl_link_class a,
                      enum cpl_link_class b)
{
    return memcmp(&machine->costs.link[a], &machine->costs.link[b],
                  sizeof machine->costs.link[a]) == 0;
}

bool cpl_place_is_even(const struct cpl_machine *machine)
{
    for (int32_t i = 1; i < machine->n_ranks; i++) {
        if (machine->node[i] != machine->node[0])
            return false;
        if (machine->socket[i] != machine->socket[0] &&
            !same_cost(machine, CPL_LINK_SOCKET, CPL_LINK_NODE))
            return false;
    }
    return true;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* The extra cost of a message on one class of link over a nearer one, never negative. */
static double extra_us(const struct placer *placer, enum cpl_link_class far,
                       enum cpl_link_class near, int64_t volume)
{
    double bytes = (double)volume * placer->unit_bytes;
    return larger(0, link_us(placer->machine, far, bytes) - link_us(placer->machine, near, bytes));
}

static double sum_extra_us(const struct placer *placer, enum cpl_link_class far,
                           enum cpl_link_class near)
{
    double sum = 0;
    for (int32_t k = 0; k < placer->n; k++) {
        const struct cpl_pattern *pattern = placer->exchanges[k].pattern;
        for (int64_t m = 0; m < pattern->n_messages; m++)
            sum += placer->exchanges[k].calls * extra_us(placer, far, near, pattern->volume[m]);
    }
    return sum;
}

/* The messages of all exchanges, weighed by their extra cost on `far` links over near ones. */
static enum cpl_status weigh_messages(struct placer *placer, enum cpl_link_class far,
                                      enum cpl_link_class near, double sum, struct cpl_error *error)
{
    int64_t n = 0;
    for (int32_t k = 0; k < placer->n; k++)
        n += placer->exchanges[k].pattern->n_messages;
    struct cpl_pattern_entry *entries = calloc((size_t)n + 1, sizeof *entries);
    if (!entries)
        return cpl_fail_memory(error, "placing the ranks");
    int64_t e = 0;
    for (int32_t k = 0; k < placer->n; k++) {
        const struct cpl_pattern *pattern = placer->exchanges[k].pattern;
        double scale = placer->exchanges[k].calls * WEIGHT_SUM / sum;
        for (int32_t i = 0; i < pattern->n_ranks; i++)
            for (int64_t m = pattern->first[i]; m < pattern->first[i + 1]; m++)
                entries[e++] = (struct cpl_pattern_entry){
                    i, pattern->dst[m],
                    (int64_t)(scale * extra_us(placer, far, near, pattern->volume[m])), -1};
    }
    enum cpl_status status =
        cpl_pattern_build(placer->machine->n_ranks, entries, n, &placer->weights, error);
    free(entries);
    return status;
}

/* Adds a dimension of the processes' coordinates. */
static void add_dimension(struct placer *placer, const int32_t *coordinate, int32_t size,
                          int32_t scale, int32_t *all)
{
    struct cpl_map_points *points = &placer->points;
    for (int32_t i = 0; i < placer->machine->n_ranks; i++)
        all[2 * i + points->n_dims] = coordinate[i];
    points->size[points->n_dims] = size;
    points->scale[points->n_dims++] = scale;
    placer->unit = coordinate;
    placer->n_units = size;
}

/* The sockets of all nodes, numbered through. */
static int32_t *number_sockets(struct placer *placer, int32_t *n_sockets)
{
    const struct cpl_machine *machine = placer->machine;
    int32_t *socket = CPL_ARENA_ARRAY(&placer->arena, int32_t, machine->n_ranks), most = 0;
    for (int32_t i = 0; i < machine->n_ranks; i++)
        most = machine->socket[i] > most ? machine->socket[i] : most;
    int64_t n = (int64_t)machine->n_nodes * (most + 1);
    if (!socket || n * machine->n_ranks > CPL_MAP_CELLS) {
        *n_sockets = 0; /* too many: nodes alone count */
        return socket;
    }
    for (int32_t i = 0; i < machine->n_ranks; i++)
        socket[i] = machine->node[i] * (most + 1) + machine->socket[i];
    *n_sockets = (int32_t)n;
    return socket;
}

/* Gives every process its coordinates, and every message its weight. */
static enum cpl_status describe(struct placer *placer, struct cpl_error *error)
{
    const struct cpl_machine *machine = placer->machine;
    int32_t n_sockets;
    int32_t *all = CPL_ARENA_ARRAY(&placer->arena, int32_t, 2 * (int64_t)machine->n_ranks);
    int32_t *socket = number_sockets(placer, &n_sockets);
    if (!all || !socket)
        return cpl_fail_memory(error, "placing the ranks");
    double nodes_us =
        machine->n_nodes > 1 ? sum_extra_us(placer, CPL_LINK_NETWORK, CPL_LINK_NODE) : 0;
    double sockets_us =
        n_sockets > machine->n_nodes ? sum_extra_us(placer, CPL_LINK_NODE, CPL_LINK_SOCKET) : 0;
    double most_us = larger(nodes_us, sockets_us);
    if (nodes_us > 0)
        add_dimension(placer, machine->node, machine->n_nodes,
                      (int32_t)(LARGEST_SCALE * nodes_us / most_us), all);
    if (sockets_us > 0 && LARGEST_SCALE * sockets_us >= most_us)
        add_dimension(placer, socket, n_sockets, (int32_t)(LARGEST_SCALE * sockets_us / most_us),
                      all);
    if (placer->points.n_dims == 1)
        for (int32_t i = 0; i < machine->n_ranks; i++)
            all[i] = all[2 * i];
    placer->points.coordinate = all;
    if (placer->points.n_dims == 0)
        return CPL_OK;
    return nodes_us > 0 ? weigh_messages(placer, CPL_LINK_NETWORK, CPL_LINK_NODE, nodes_us, error)
                        : weigh_messages(placer, CPL_LINK_NODE, CPL_LINK_SOCKET, sockets_us, error);
}

/* The machine as the placed ranks see it. */
static enum cpl_status place_machine(const struct cpl_machine *machine, const int32_t *place,
                                     struct cpl_machine *placed, struct cpl_error *error)
{
    size_t n = (size_t)machine->n_ranks;
    int64_t *node = calloc(n, sizeof *node);
    int32_t *socket = calloc(n, sizeof *socket);
    enum cpl_status status = CPL_ERR_NOMEM;
    for (size_t i = 0; i < n && node && socket; i++) {
        node[i] = machine->node[place[i]];
        socket[i] = machine->socket[place[i]];
    }
    if (node && socket)
        status = cpl_machine_from_places(machine->n_ranks, node, socket, NULL,
                                         machine->cores_per_node, placed, error);
    else
        cpl_fail_memory(error, "placing the ranks");
    free(node);
    free(socket);
    if (!status)
        placed->costs = machine->costs;
    return status;
}

/* What the messages of a pattern cost on their links. */
static double links_us(const struct placer *placer, const struct cpl_pattern *pattern,
                       const struct cpl_machine *placed)
{
    double sum = 0;
    for (int32_t i = 0; i < pattern->n_ranks; i++)
        for (int64_t m = pattern->first[i]; m < pattern->first[i + 1]; m++)
            sum += link_us(placed, cpl_machine_link(placed, i, pattern->dst[m]),
                           (double)pattern->volume[m] * placer->unit_bytes);
    return sum;
}

static enum cpl_status model(const struct placer *placer, const int32_t *place, double *us,
                             double *all_links_us, struct cpl_error *error)
{
    struct cpl_machine placed;
    enum cpl_status status = place_machine(placer->machine, place, &placed, error);
    if (status)
        return status;
    *us = *all_links_us = 0;
    for (int32_t k = 0; k < placer->n && !status; k++) {
        double once = 0;
        status = cpl_plan_cost(&placer->direct[k], &placed, placer->unit_bytes, &once, error);
        *us += placer->exchanges[k].calls * once;
        *all_links_us +=
            placer->exchanges[k].calls * links_us(placer, placer->exchanges[k].pattern, &placed);
    }
    cpl_machine_free(&placed);
    return status;
}

/* Ranks that were placed in the unit of their process keep that process; the others take the unit's
 * remaining processes in ascending order. next_of has n_ranks, first_of n_units entries.
 */
static void settle(const struct placer *placer, int32_t *place, int32_t *first_of, int32_t *next_of)
{
    int32_t n = placer->machine->n_ranks;
    for (int32_t u = 0; u < placer->n_units; u++)
        first_of[u] = -1;
    for (int32_t i = n - 1; i >= 0; i--) {
        int32_t unit = placer->unit[i];
        if (placer->unit[place[i]] == unit) {
            place[i] = i;
        } else {
            next_of[i] = first_of[unit]; /* its process is taken by another rank */
            first_of[unit] = i;
        }
    }
    for (int32_t i = 0; i < n; i++) {
        int32_t unit = placer->unit[place[i]];
        if (place[i] == i)
            continue;
        place[i] = first_of[unit];
        first_of[unit] = next_of[place[i]];
    }
}

/* Improves a placement and takes it if it is the best so far. */
static enum cpl_status try_placement(const struct placer *placer, int32_t *candidate,
                                     int32_t *place, struct cpl_place_gain *gain,
                                     struct cpl_error *error)
{
    struct cpl_arena scratch = CPL_ARENA_EMPTY;
    int32_t n = placer->machine->n_ranks;
    int64_t steps = (int64_t)n * n * STEPS_OF_A_PAIR;
    int32_t *first_of = CPL_ARENA_ARRAY(&scratch, int32_t, placer->n_units);
    int32_t *next_of = CPL_ARENA_ARRAY(&scratch, int32_t, n);
    enum cpl_status status = first_of && next_of ? CPL_OK : CPL_ERR_NOMEM;
    int64_t cells =
        placer->points.size[0] + (placer->points.n_dims > 1 ? (int64_t)placer->points.size[1] : 0);
    if (!status && cells * n <= CPL_MAP_CELLS)
        status = cpl_map_swap_points(&placer->weights, &placer->points,
                                     steps < CPL_MAP_STEPS ? steps : CPL_MAP_STEPS, candidate);
    if (!status)
        settle(placer, candidate, first_of, next_of);
    cpl_arena_free(&scratch);
    if (status)
        return cpl_fail_memory(error, "placing the ranks");
    double us, all_links_us;
    status = model(placer, candidate, &us, &all_links_us, error);
    if (status || us > gain->after_us ||
        (us == gain->after_us && all_links_us >= gain->after_links_us))
        return status;
    memcpy(place, candidate, (size_t)n * sizeof *place);
    gain->changed = true;
    gain->after_us = us;
    gain->after_links_us = all_links_us;
    return CPL_OK;
}

static enum cpl_status plan_direct(struct placer *placer, struct cpl_error *error)
{
    struct cpl_strategy_choice direct;
    cpl_strategy_parse("direct", &direct, NULL);
    for (int32_t k = 0; k < placer->n; k++) {
        struct cpl_strategy_input input = {placer->exchanges[k].pattern, placer->machine,
                                           placer->unit_bytes, 0};
        struct cpl_plan plan;
        enum cpl_status status = cpl_strategy_plan(&input, &direct, &plan, error);
        if (status)
            return status;
        placer->direct[k] = plan;
    }
    return CPL_OK;
}

static enum cpl_status find_placement(struct placer *placer, int32_t *place,
                                      struct cpl_place_gain *gain, struct cpl_error *error)
{
    int32_t n = placer->machine->n_ranks;
    int32_t *candidate = CPL_ARENA_ARRAY(&placer->arena, int32_t, n);
    if (!candidate)
        return cpl_fail_memory(error, "placing the ranks");
    enum cpl_status status = model(placer, place, &gain->before_us, &gain->before_links_us, error);
    if (status)
        return status;
    gain->after_us = gain->before_us;
    gain->after_links_us = gain->before_links_us;
    if (cpl_place_is_even(placer->machine))
        return CPL_OK;
    status = describe(placer, error);
    if (status || placer->points.n_dims == 0)
        return status;
    memcpy(candidate, place, (size_t)n * sizeof *place);
    status = try_placement(placer, candidate, place, gain, error);
    if (!status && cpl_place_grow(&placer->weights, &placer->points, candidate))
        status = cpl_fail_memory(error, "placing the ranks");
    if (!status)
        status = try_placement(placer, candidate, place, gain, error);
    if (status || !placer->order)
        return status;
    if (cpl_place_fill(&placer->points, n, placer->order, candidate))
        return cpl_fail_memory(error, "placing the ranks");
    return try_placement(placer, candidate, place, gain, error);
}

/* Checks the arguments and plans the exchanges; free the placer then, too. */
static enum cpl_status begin(struct placer *placer, struct cpl_error *error)
{
    int32_t n_ranks = placer->machine->n_ranks;
    if (n_ranks > CPL_PLACE_RANKS)
        return cpl_fail(error, CPL_ERR_UNFIT, "at most %d ranks are placed, not %d",
                        CPL_PLACE_RANKS, (int)n_ranks);
    for (int32_t k = 0; k < placer->n; k++)
        if (placer->exchanges[k].pattern->n_ranks != n_ranks)
            return cpl_fail(error, CPL_ERR_ARG, "an exchange of %d ranks on a machine of %d",
                            (int)placer->exchanges[k].pattern->n_ranks, (int)n_ranks);
    placer->direct = CPL_ARENA_ARRAY(&placer->arena, struct cpl_plan, placer->n);
    return placer->direct ? plan_direct(placer, error)
                          : cpl_fail_memory(error, "placing the ranks");
}

static void end(struct placer *placer)
{
    for (int32_t k = 0; k < placer->n && placer->direct; k++)
        cpl_plan_free(&placer->direct[k]);
    cpl_pattern_free(&placer->weights);
    cpl_arena_free(&placer->arena);
}

enum cpl_status cpl_place(const struct cpl_place_exchange *exchanges, int32_t n,
                          const struct cpl_machine *machine, double unit_bytes,
                          const int32_t *order, int32_t *place, struct cpl_place_gain *gain,
                          struct cpl_error *error)
{
    struct placer placer = {.exchanges = exchanges,
                            .n = n,
                            .machine = machine,
                            .unit_bytes = unit_bytes,
                            .order = order};
    struct cpl_place_gain found = {.changed = false};
    enum cpl_status status = begin(&placer, error);
    for (int32_t i = 0; i < machine->n_ranks && !status; i++)
        place[i] = i;
    if (!status)
        status = find_placement(&placer, place, &found, error);
    end(&placer);
    if (!status)
        *gain = found;
    return status;
}

enum cpl_status cpl_place_model(const struct cpl_place_exchange *exchanges, int32_t n,
                                const struct cpl_machine *machine, double unit_bytes,
                                const int32_t *place, struct cpl_place_gain *gain,
                                struct cpl_error *error)
{
    struct placer placer = {
        .exchanges = exchanges, .n = n, .machine = machine, .unit_bytes = unit_bytes};
    struct cpl_place_gain found = {.changed = false};
    enum cpl_status status = begin(&placer, error);
    int32_t *own = CPL_ARENA_ARRAY(&placer.arena, int32_t, machine->n_ranks);
    if (!status && !own)
        status = cpl_fail_memory(error, "placing the ranks");
    for (int32_t i = 0; i < machine->n_ranks && !status; i++) {
        own[i] = i;
        found.changed |= place[i] != i;
    }
    if (!status)
        status = model(&placer, own, &found.before_us, &found.before_links_us, error);
    if (!status)
        status = model(&placer, place, &found.after_us, &found.after_links_us, error);
    end(&placer);
    if (!status)
        *gain = found;
    return status;
}
