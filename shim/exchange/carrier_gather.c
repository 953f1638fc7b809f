/* The algorithms of an allgather, in steps (allgather.h): each step sends and receives at most one
 * message, and begins when those of the step before are complete. The ring sends from and receives
 * into the program's buffer, by its datatypes; doubling gathers in the order of the points, since
 * one message holds the data of many: in the program's buffer, if it lies there so on this rank,
 * else in a buffer of its own, from which it is copied to its places at the end. Messages of no
 * bytes are not sent by the ring: both ends know. */
#include "shim/exchange/allgather.h"

#include "planner/grid/hypercube.h"
#include "shim/base/work.h"
#include "shim/exchange/neighbor_internal.h"
#include "shim/meet/agree.h"

#include <stdlib.h>

#define TAG 999 /* on the private communicator, above those of exchanges */

/* What an algorithm that is not in place gathers in, at most: its data is copied once more. */
#define MOST_ROOM (INT64_C(64) << 20)

static int rank_of(const struct cpl_gathering *g, int32_t point)
{
    return g->rank_at[point];
}

/* ---- ring ---- */

static const struct cpl_span *span_of(const struct cpl_gathering *g, int32_t point)
{
    return &g->span[rank_of(g, point)];
}

/* Starts to send or receive the data of a rank, unless there is none. */
static void start_span(struct cpl_gathering *g, bool sends, int32_t point, int peer,
                       MPI_Request *request)
{
    const struct cpl_span *span = span_of(g, point);
    *request = MPI_REQUEST_NULL;
    if (cpl_span_bytes(span) > 0)
        cpl_carrying_move(g->call, sends, span, peer, TAG, request);
}

/* In step k the data of the point k before travels on; the receive of the step after it is posted
 * already. */
static bool ring(struct cpl_gathering *g, int32_t step)
{
    int32_t n = g->n, mine = g->point;
    int before = rank_of(g, (mine + n - 1) % n), after = rank_of(g, (mine + 1) % n);
    if (step == 0)
        start_span(g, false, (mine + n - 1) % n, before, &g->next);
    if (step + 1 >= n)
        return false;
    g->pair[0] = g->next;
    g->next = MPI_REQUEST_NULL;
    if (step + 2 < n)
        start_span(g, false, (mine + 2 * n - step - 2) % n, before, &g->next);
    start_span(g, true, (mine + n - step) % n, after, &g->pair[1]);
    return true;
}

/* ---- doubling ---- */

/* Where the points' data begins in the program's buffer when it lies there one after the other;
 * else, or when there is none, NULL. */
static unsigned char *find_in_order(const struct cpl_gathering *g)
{
    char *first = NULL;
    for (int32_t point = 0; point < g->n; point++) {
        const struct cpl_span *span = span_of(g, point);
        if (cpl_span_bytes(span) == 0)
            continue;
        first = first ? first : span->address;
        if (!span->type.dense || span->address != first + g->at[point])
            return NULL;
    }
    return (unsigned char *)first;
}

/* Lays the points' data out, and packs this rank's unless it is there. */
static void lay_out(struct cpl_gathering *g)
{
    g->at[0] = 0;
    for (int32_t point = 0; point < g->n; point++)
        g->at[point + 1] = g->at[point] + cpl_span_bytes(span_of(g, point));
    g->gathered = find_in_order(g);
    if (g->gathered)
        return;
    g->gathered = g->room;
    cpl_carrying_note(g->call, cpl_span_pack(span_of(g, g->point), g->gathered + g->at[g->point]));
}

/* Exchanges with a point: sends the data of points from first to end, and receives that of others;
 * empty ranges are not sent. */
static void exchange(struct cpl_gathering *g, int32_t with, const int32_t sent[2],
                     const int32_t received[2])
{
    const int64_t *at = g->at;
    for (int sends = 0; sends < 2; sends++) {
        const int32_t *range = sends ? sent : received;
        const struct cpl_span span = {.address = (char *)g->gathered + at[range[0]],
                                      .count = at[range[1]] - at[range[0]],
                                      .type = {.handle = MPI_BYTE}};
        if (range[1] > range[0])
            cpl_carrying_move(g->call, sends, &span, rank_of(g, with), TAG, &g->pair[sends]);
    }
}

/* The first point of a corner; that of the corner behind the last one is the number of points. */
static int32_t first_point(const struct cpl_hypercube *cube, int32_t corner)
{
    return corner < cube->n_folded ? 2 * corner : corner + cube->n_folded;
}

static void climb(struct cpl_gathering *g, const struct cpl_hypercube *cube, int32_t bit)
{
    int32_t corner = cpl_hypercube_corner(cube, g->point);
    int32_t mine = corner & ~(bit - 1), theirs = mine ^ bit;
    exchange(g, cpl_hypercube_rank(cube, corner ^ bit),
             (const int32_t[]){first_point(cube, mine), first_point(cube, mine + bit)},
             (const int32_t[]){first_point(cube, theirs), first_point(cube, theirs + bit)});
}

static void unpack(struct cpl_gathering *g)
{
    if (g->gathered != g->room)
        return;
    for (int32_t point = 0; point < g->n; point++)
        if (point != g->point)
            cpl_carrying_note(g->call,
                              cpl_span_unpack(span_of(g, point), g->gathered + g->at[point],
                                              g->at[point + 1] - g->at[point]));
    cpl_work_combined(g->n, g->at[g->n]);
}

/* Of two points that share a corner one climbs for both, before and after which it exchanges with
 * the other one. */
static bool double_up(struct cpl_gathering *g, int32_t step)
{
    const struct cpl_hypercube cube = cpl_hypercube_of(g->n);
    const bool folds = cpl_hypercube_folds(&cube, g->point);
    const int32_t other = folds ? cpl_hypercube_companion(&cube, g->point) : g->point;
    const int32_t none[2] = {0, 0}, all[2] = {0, g->n}, own[2] = {g->point, g->point + 1};
    const int32_t others[2] = {other, other + 1}, climbed = step - folds;
    if (cpl_hypercube_is_guest(&cube, g->point)) {
        if (step < 2)
            exchange(g, other, step == 0 ? own : none, step == 0 ? none : all);
        return step < 2;
    }
    if (climbed < 0)
        exchange(g, other, none, others);
    else if (climbed < cube.n_steps)
        climb(g, &cube, 1 << climbed);
    else if (folds && climbed == cube.n_steps)
        exchange(g, other, all, none);
    else
        return false;
    return true;
}

static bool doubling(struct cpl_gathering *g, int32_t step)
{
    if (step == 0)
        lay_out(g);
    if (double_up(g, step))
        return true;
    unpack(g);
    return false;
}

/* ---- the table ---- */

int64_t cpl_allgather_bytes(const struct cpl_neighbor_call *call, int n_ranks)
{
    const struct cpl_neighbor_side *recv = &call->recv;
    const bool each = recv->counts || recv->large_counts;
    int64_t count = 0, bytes;
    if (!each && __builtin_mul_overflow(recv->count, n_ranks, &count))
        return -1;
    for (int r = 0; each && r < n_ranks; r++)
        if (cpl_neighbor_count(recv, r) < 0 ||
            __builtin_add_overflow(count, cpl_neighbor_count(recv, r), &count))
            return -1;
    return __builtin_mul_overflow(count, cpl_type_size(recv->type), &bytes) ? -1 : bytes;
}

static enum cpl_allgather_algorithm algorithm_of(const struct cpl_carrying *c)
{
    return (enum cpl_allgather_algorithm)(c->by->carrier - cpl_gather_carriers);
}

/* Makes room for so many bytes. Collective; the same result on all ranks. */
static bool make_room(const struct cpl_comm_state *state, struct cpl_gathering *g, int64_t bytes)
{
    if (bytes <= g->n_room)
        return true;
    if (g->n_room < 0 || bytes > MOST_ROOM)
        return false;
    int64_t n_room = cpl_allgather_class_most(cpl_allgather_class_of(bytes)) + 1;
    free(g->room);
    g->room = malloc((size_t)n_room);
    g->n_room = cpl_agree_all(state->private_comm, g->room) ? n_room : -1;
    return g->n_room > 0;
}

/* Finds the data of a call that an algorithm is to carry: for each rank, and what this one sends
 * unless it is in place. False when MPI would refuse an argument, or there is no room. Collective.
 */
static bool resolve(const struct cpl_neighbor_call *call, struct cpl_carrying *c)
{
    const struct cpl_comm_state *state = c->state;
    struct cpl_gathering *g = &state->allgathers.kept->gathering;
    if ((!cpl_allgather_is_in_place(algorithm_of(c)) &&
         !make_room(state, g, cpl_allgather_bytes(call, state->size))) ||
        !cpl_neighbor_resolve_side(&call->recv, state->size, NULL, g->span))
        return false;
    g->in_place = call->send.buffer == MPI_IN_PLACE;
    if (g->in_place)
        return true;
    const struct cpl_span *to = &g->span[state->rank], *own = &g->own;
    return cpl_neighbor_resolve_rank(&call->send, 0, &g->own) &&
           (own->address != to->address || own->count != to->count || own->count == 0 ||
            own->type.handle != to->type.handle); /* MPI's to refuse: buffers overlap */
}

#define ROW(NAME, name) [CPL_ALLGATHER_##NAME] = name,
static bool (*const steps[])(struct cpl_gathering *, int32_t) = {CPL_ALLGATHER_ALGORITHMS(ROW)};
#undef ROW

static void start(struct cpl_carrying *c)
{
    struct cpl_gathering *g = &c->state->allgathers.kept->gathering;
    g->call = c;
    g->rank_at = c->by->made;
    g->n = c->state->size;
    for (g->point = 0; g->rank_at[g->point] != c->state->rank; g->point++)
        continue;
    g->next = g->pair[0] = g->pair[1] = MPI_REQUEST_NULL;
    if (!g->in_place)
        cpl_carrying_note(c, cpl_span_copy(&g->own, span_of(g, g->point)));
}

static void run(struct cpl_carrying *c)
{
    struct cpl_gathering *g = &c->state->allgathers.kept->gathering;
    for (int32_t step = 0; steps[algorithm_of(c)](g, step); step++)
        cpl_carrying_wait_for(c, 2, g->pair);
}

#define ROW(NAME, own)                                                                             \
    [CPL_ALLGATHER_##NAME] = {.name = #own, .resolve = resolve, .start = start, .wait = run},
const struct cpl_carrier cpl_gather_carriers[] = {CPL_ALLGATHER_ALGORITHMS(ROW)};
#undef ROW
