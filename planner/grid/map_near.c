/* Maps by the machine alone (map.h): the ring and recursive doubling heuristics of Bhowmik and
 * Bodele, 3.2 and 3.3, with the measured distances of the machine (their D, from a ping-pong) or,
 * if there are none, the class of the link between two ranks as their distance.
 *
 * Both place rank 0 on point 0 and then, point after point, the nearest rank that is not placed
 * yet: by classes one of the same socket, else of the same node, else any; of equally near ranks
 * the lowest. The ring takes the points in their order, each next to the previous one. Doubling
 * takes, from a point of reference, the points at the largest power-of-two distances, since these
 * steps carry most in a recursive doubling; after two points the second becomes the reference. Two
 * ranks that fold (hypercube.h) and share a corner are placed one after the other, since the last
 * message between them is the largest. O(ranks x sockets of a node), with distances O(ranks^2). */
#include "planner/grid/hypercube.h"
#include "planner/grid/map.h"

/* Ranks in lists by unit (socket or node), each list ascending; placed ranks are skipped. */
struct unit_lists {
    int32_t *head; /* per unit: first rank that may not be placed yet, -1: none */
    int32_t *next; /* per rank: next of its unit, -1: none */
};

struct placer {
    const struct cpl_machine *machine;
    int32_t *position; /* -1: not placed */
    int32_t *socket;   /* per rank: its socket, numbered through the machine */
    struct unit_lists in_socket;
    struct unit_lists in_node;
    int32_t lowest; /* no rank below is left */
};

/* Numbers the sockets of the machine: pairs (node, socket) have the number of their first rank. */
static enum cpl_status number_sockets(struct placer *placer, struct cpl_arena *arena)
{
    const struct cpl_machine *machine = placer->machine;
    int32_t *tail = CPL_ARENA_ARRAY(arena, int32_t, machine->n_nodes); /* of a node's sockets */
    int32_t *before = CPL_ARENA_ARRAY(arena, int32_t, machine->n_ranks);
    if (!tail || !before)
        return CPL_ERR_NOMEM;
    for (int32_t k = 0; k < machine->n_nodes; k++)
        tail[k] = -1;
    for (int32_t i = 0; i < machine->n_ranks; i++) {
        int32_t first = tail[machine->node[i]];
        while (first >= 0 && machine->socket[first] != machine->socket[i])
            first = before[first];
        if (first < 0) {
            before[i] = tail[machine->node[i]];
            tail[machine->node[i]] = first = i;
        }
        placer->socket[i] = first;
    }
    return CPL_OK;
}

static enum cpl_status list_units(struct unit_lists *lists, const int32_t *unit, int32_t n_units,
                                  int32_t n_ranks, struct cpl_arena *arena)
{
    lists->head = CPL_ARENA_ARRAY(arena, int32_t, n_units);
    lists->next = CPL_ARENA_ARRAY(arena, int32_t, n_ranks);
    if (!lists->head || !lists->next)
        return CPL_ERR_NOMEM;
    for (int32_t k = 0; k < n_units; k++)
        lists->head[k] = -1;
    for (int32_t i = n_ranks - 1; i >= 0; i--) {
        lists->next[i] = lists->head[unit[i]];
        lists->head[unit[i]] = i;
    }
    return CPL_OK;
}

static enum cpl_status prepare(struct placer *placer, struct cpl_arena *arena)
{
    const struct cpl_machine *machine = placer->machine;
    for (int32_t i = 0; i < machine->n_ranks; i++)
        placer->position[i] = -1;
    placer->socket = CPL_ARENA_ARRAY(arena, int32_t, machine->n_ranks);
    if (!placer->socket || number_sockets(placer, arena) ||
        list_units(&placer->in_socket, placer->socket, machine->n_ranks, machine->n_ranks, arena) ||
        list_units(&placer->in_node, machine->node, machine->n_nodes, machine->n_ranks, arena))
        return CPL_ERR_NOMEM;
    return CPL_OK;
}

/* The lowest rank of a unit that is not placed, -1: none. */
static int32_t first_free(struct unit_lists *lists, int32_t unit, const int32_t *position)
{
    int32_t rank = lists->head[unit];
    while (rank >= 0 && position[rank] >= 0)
        rank = lists->next[rank];
    lists->head[unit] = rank;
    return rank;
}

/* The nearest rank to `near` of those not placed, by the classes of links. */
static int32_t nearest_by_class(struct placer *placer, int32_t near)
{
    int32_t rank = first_free(&placer->in_socket, placer->socket[near], placer->position);
    if (rank < 0)
        rank = first_free(&placer->in_node, placer->machine->node[near], placer->position);
    if (rank >= 0)
        return rank;
    while (placer->position[placer->lowest] >= 0)
        placer->lowest++;
    return placer->lowest;
}

/* The same by the measured distances from `near`. */
static int32_t nearest_by_distance(const struct placer *placer, int32_t near)
{
    int32_t n_ranks = placer->machine->n_ranks, nearest = -1;
    double nearest_us = 0;
    for (int32_t i = 0; i < n_ranks; i++) {
        if (placer->position[i] >= 0)
            continue;
        double us = cpl_machine_distance(placer->machine, near, i);
        if (nearest < 0 || us < nearest_us) {
            nearest = i;
            nearest_us = us;
        }
    }
    return nearest;
}

/* Places the nearest rank to `near` of those not placed on a point, and returns it. The first call
 * places rank 0, near itself. */
static int32_t place(struct placer *placer, int32_t near, int32_t point)
{
    int32_t rank = near;
    if (placer->position[near] >= 0)
        rank = placer->machine->distance_us ? nearest_by_distance(placer, near)
                                            : nearest_by_class(placer, near);
    placer->position[rank] = point;
    return rank;
}

enum cpl_status cpl_map_near(const struct cpl_machine *machine, int32_t *position)
{
    struct cpl_arena scratch = CPL_ARENA_EMPTY;
    struct placer placer = {.machine = machine, .position = position};
    enum cpl_status status = prepare(&placer, &scratch);
    int32_t near = 0;
    for (int32_t point = 0; point < machine->n_ranks && !status; point++)
        near = place(&placer, near, point);
    cpl_arena_free(&scratch);
    return status;
}

/* The point at the largest power-of-two distance from `from` that nobody plays yet, -1: none. */
static int32_t next_point(int32_t from, int32_t n_points, const int32_t *rank_at)
{
    int32_t distance = 1;
    while (2 * distance < n_points)
        distance *= 2;
    for (; distance > 0; distance /= 2)
        if ((from ^ distance) < n_points && rank_at[from ^ distance] < 0)
            return from ^ distance;
    return -1;
}

/* Places a rank on a point. If the point folds, the rank nearest to that one shares it. */
static void place_point(struct placer *placer, int32_t near, int32_t point, int32_t n_folded,
                        int32_t *rank_at)
{
    rank_at[point] = place(placer, near, point);
    if (point < n_folded)
        place(placer, rank_at[point], point);
}

/* Points of reference: every second point as soon as it is placed; when a point has no free point
 * around it, the earliest placed one that has. */
static void double_from(struct placer *placer, int32_t n_points, int32_t n_folded, int32_t *rank_at,
                        int32_t *placed)
{
    int32_t n_placed = 1, reference = 0, n_around = 0, oldest = 0;
    placed[0] = 0;
    place_point(placer, 0, 0, n_folded, rank_at);
    while (n_placed < n_points) {
        int32_t point = next_point(reference, n_points, rank_at);
        if (point < 0) {
            while (next_point(placed[oldest], n_points, rank_at) < 0)
                oldest++;
            reference = placed[oldest];
            n_around = 0;
            continue;
        }
        place_point(placer, rank_at[reference], point, n_folded, rank_at);
        placed[n_placed++] = point;
        if (++n_around == 2) {
            reference = point;
            n_around = 0;
        }
    }
}

/* Makes the map of n_points points, of which the first n_folded have two ranks each; *rank_at gets
 * the one of the two that was placed first. */
static enum cpl_status double_points(struct placer *placer, int32_t n_points, int32_t n_folded,
                                     int32_t **rank_at, struct cpl_arena *arena)
{
    int32_t *placed = CPL_ARENA_ARRAY(arena, int32_t, n_points);
    *rank_at = CPL_ARENA_ARRAY(arena, int32_t, n_points);
    if (!*rank_at || !placed || prepare(placer, arena))
        return CPL_ERR_NOMEM;
    for (int32_t point = 0; point < n_points; point++)
        (*rank_at)[point] = -1;
    double_from(placer, n_points, n_folded, *rank_at, placed);
    return CPL_OK;
}

enum cpl_status cpl_map_doubling(const struct cpl_machine *machine, int32_t *position)
{
    struct cpl_arena scratch = CPL_ARENA_EMPTY;
    struct placer placer = {.machine = machine, .position = position};
    int32_t *rank_at;
    enum cpl_status status = double_points(&placer, machine->n_ranks, 0, &rank_at, &scratch);
    cpl_arena_free(&scratch);
    return status;
}

enum cpl_status cpl_map_hypercube(const struct cpl_machine *machine, int32_t *position)
{
    struct cpl_arena scratch = CPL_ARENA_EMPTY;
    struct placer placer = {.machine = machine, .position = position};
    struct cpl_hypercube cube = cpl_hypercube_of(machine->n_ranks);
    int32_t *rank_at;
    enum cpl_status status =
        double_points(&placer, INT32_C(1) << cube.n_steps, cube.n_folded, &rank_at, &scratch);
    for (int32_t i = 0; i < machine->n_ranks && !status; i++) {
        int32_t corner = position[i];
        position[i] = cpl_hypercube_rank(&cube, corner) - (rank_at[corner] != i);
    }
    cpl_arena_free(&scratch);
    return status;
}
