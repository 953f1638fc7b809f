/* Routes (route.h): stages of a grid, and the places of requests in them. Methods are parsed in
 * method.c. */
#include "route_internal.h"
#include "work.h"

#include <string.h>

static int compare_ints(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

/* Copies n peers, as ranks and ascending. NULL: no memory. */
static int *copy_peers(struct cpl_route *route, int n, const int32_t *peer)
{
    int *ranks = CPL_ARENA_ARRAY(&route->arena, int, n);
    for (int k = 0; ranks && k < n; k++)
        ranks[k] = route->rank_at ? route->rank_at[peer[k]] : peer[k];
    if (ranks && route->rank_at)
        qsort(ranks, (size_t)n, sizeof *ranks, compare_ints);
    return ranks;
}

int cpl_stage_number(int n, const int *ranks, int rank)
{
    int low = 0, high = n - 1;
    while (low < high) {
        int middle = (low + high) / 2;
        if (ranks[middle] < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool make_stage(struct cpl_route *route, int s, int rank, int32_t *peer)
{
    struct cpl_stage *stage = &route->stage[s];
    int32_t n_ranks = route->grid.n_ranks;
    int32_t point = route->point_of ? route->point_of[rank] : rank;
    for (int incoming = 0; incoming < 2; incoming++) {
        int32_t n = n_ranks;
        for (int32_t k = 0; k < n_ranks && route->is_plain; k++)
            peer[k] = k;
        if (!route->is_plain)
            n = cpl_grid_peers(&route->grid, route->order, point, s, incoming, peer);
        *(incoming ? &stage->n_from : &stage->n_to) = n;
        *(incoming ? &stage->from : &stage->to) = copy_peers(route, n, peer);
    }
    stage->out_first = CPL_ARENA_ARRAY(&route->arena, int64_t, stage->n_to + 1);
    stage->in_first = CPL_ARENA_ARRAY(&route->arena, int64_t, stage->n_from + 1);
    stage->peer_of = CPL_ARENA_ARRAY(&route->arena, int32_t, n_ranks);
    if (!stage->to || !stage->from || !stage->out_first || !stage->in_first || !stage->peer_of)
        return false;
    for (int owner = 0; owner < n_ranks; owner++)
        stage->peer_of[owner] =
            cpl_stage_number(stage->n_to, stage->to, cpl_route_next(route, s, rank, owner));
    return true;
}

enum cpl_status cpl_route_stages(struct cpl_route *route, int rank, struct cpl_error *error)
{
    route->n_stages = route->is_plain ? 1 : cpl_grid_n_steps(&route->grid, route->order);
    route->stage = CPL_ARENA_ARRAY(&route->arena, struct cpl_stage, route->n_stages);
    int32_t *peer = malloc((size_t)route->grid.n_ranks * sizeof *peer);
    bool is_made = route->stage && peer;
    for (int s = 0; s < route->n_stages && is_made; s++)
        is_made = make_stage(route, s, rank, peer);
    free(peer);
    return is_made ? CPL_OK : cpl_fail_memory(error, "the route");
}

void cpl_route_free(struct cpl_route *route)
{
    cpl_arena_free(&route->arena);
    *route = (struct cpl_route){.is_plain = false};
}

int cpl_route_next(const struct cpl_route *route, int stage, int at, int owner)
{
    if (route->is_plain)
        return owner;
    if (!route->point_of)
        return cpl_grid_next(&route->grid, route->order, at, owner, stage);
    return route->rank_at[cpl_grid_next(&route->grid, route->order, route->point_of[at],
                                        route->point_of[owner], stage)];
}

void cpl_turn_stage(struct cpl_stage *stage)
{
    *stage = (struct cpl_stage){stage->n_from,   stage->n_to,      stage->from,   stage->to,
                                stage->in_first, stage->out_first, stage->peer_of};
}

bool cpl_route_place(const struct cpl_route *route, int s, int64_t block, int32_t n,
                     const int64_t *index, int32_t *target)
{
    struct cpl_stage *stage = &route->stage[s];
    int64_t *first = stage->out_first, own_first = 0, own_end = 0; /* of the present owner */
    int32_t peer = 0, n_owners = 0;
    double inverse = 1.0 / (double)block; /* dividing takes several times as long */
    bool is_in_order = true;
    memset(first, 0, ((size_t)stage->n_to + 1) * sizeof *first);
    for (int32_t k = 0; k < n; k++) { /* target: the peer, its place follows below */
        if (index[k] < own_first || index[k] >= own_end) {
            int64_t owner = (int64_t)((double)index[k] * inverse); /* or one beside it */
            owner += index[k] >= (owner + 1) * block;
            owner -= index[k] < owner * block;
            int32_t last = peer;
            peer = stage->peer_of[owner];
            own_first = owner * block;
            own_end = own_first + block;
            n_owners++;
            is_in_order = is_in_order && (peer >= last || k == 0);
        }
        first[peer + 1]++;
        target[k] = peer;
    }
    cpl_array_work((double)n * CPL_WORK_MOVE + (double)n_owners * CPL_WORK_OWNER);
    for (int p = 0; p < stage->n_to; p++)
        first[p + 1] += first[p];
    for (int32_t k = 0; k < n; k++)
        target[k] = (int32_t)first[target[k]]++;
    for (int p = stage->n_to; p > 0; p--) /* each start has moved to its end */
        first[p] = first[p - 1];
    first[0] = 0;
    return is_in_order;
}
