/* Routes: allocation, and the packing of paths into waves (routes.h).
 *
 * Packing: combined messages of the same two ranks in different waves are different combined
 * messages, so a hop should take a wave in which its edge is open already. Each message chooses by
 * a dynamic programme over (hop, wave). Messages with the longest paths have the fewest choices and
 * choose first, then in the order of the pattern. Of equally good waves the last is taken, so that
 * short paths end up together in the last waves, where the long paths end, too.
 *
 * Waves are needed because one combined message per pair of ranks, as the thesis has it, can wait
 * for itself: M(a,b) carries a segment on that came with M(c,a), and so on around to M(a,b). With
 * waves a hop only waits for hops of earlier waves. */
#include "planner/routes.h"

#include "planner/base/pair_map.h"

#include <stdbool.h>
#include <string.h>

#define BLOCK_BITS  64
#define WAVE_BLOCKS ((INT8_MAX - 1) / BLOCK_BITS + 1)

enum cpl_status cpl_routes_init(const struct cpl_pattern *pattern, int32_t n_waves,
                                struct cpl_routes *routes, struct cpl_error *error)
{
    if (n_waves < 1)
        return cpl_fail(error, CPL_ERR_ARG, "routes of %d waves, there must be at least one",
                        (int)n_waves);
    struct cpl_routes built = {
        .n_waves = n_waves, .n_messages = pattern->n_messages, .arena = CPL_ARENA_EMPTY};
    if ((size_t)n_waves > SIZE_MAX / sizeof(int32_t))
        return cpl_fail_memory(error, "the routes");
    built.stops = cpl_arena_alloc(&built.arena, (size_t)pattern->n_messages,
                                  (size_t)n_waves * sizeof(int32_t));
    if (!built.stops) {
        cpl_arena_free(&built.arena);
        return cpl_fail_memory(error, "the routes");
    }
    for (int32_t rank = 0; rank < pattern->n_ranks; rank++) {
        for (int64_t m = pattern->first[rank]; m < pattern->first[rank + 1]; m++) {
            int32_t *stops = cpl_routes_of(&built, m);
            for (int32_t w = 0; w < n_waves - 1; w++)
                stops[w] = rank;
            stops[n_waves - 1] = pattern->dst[m];
        }
    }
    *routes = built;
    return CPL_OK;
}

static void copy_stops(const struct cpl_routes *from, int64_t m, struct cpl_routes *to, int64_t n)
{
    memcpy(cpl_routes_of(to, n), cpl_routes_of(from, m), (size_t)to->n_waves * sizeof *to->stops);
}

enum cpl_status cpl_routes_of_parts(const struct cpl_pattern *pattern,
                                    const struct cpl_routes *of_pairs, struct cpl_routes *routes,
                                    struct cpl_error *error)
{
    const struct cpl_pattern *pairs = cpl_pattern_pairs(pattern);
    enum cpl_status status = cpl_routes_init(pattern, of_pairs->n_waves, routes, error);
    for (int32_t i = 0; i < pattern->n_ranks && !status; i++) {
        int64_t pair = pairs->first[i];
        for (int64_t m = pattern->first[i]; m < pattern->first[i + 1]; m++) {
            pair += pattern->dst[m] != pairs->dst[pair];
            copy_stops(of_pairs, pair, routes, m);
        }
    }
    return status;
}

enum cpl_status cpl_routes_of_pairs(const struct cpl_pattern *pattern,
                                    const struct cpl_routes *of_parts, struct cpl_routes *routes,
                                    struct cpl_error *error)
{
    const struct cpl_pattern *pairs = cpl_pattern_pairs(pattern);
    enum cpl_status status = cpl_routes_init(pairs, of_parts->n_waves, routes, error);
    for (int32_t i = 0; i < pattern->n_ranks && !status; i++) {
        int64_t m = pattern->first[i];
        for (int64_t pair = pairs->first[i]; pair < pairs->first[i + 1]; pair++, m++) {
            while (pattern->dst[m] != pairs->dst[pair])
                m++;
            copy_stops(of_parts, m, routes, pair);
        }
    }
    return status;
}

void cpl_routes_free(struct cpl_routes *routes)
{
    cpl_arena_free(&routes->arena);
    *routes = (struct cpl_routes){.arena = CPL_ARENA_EMPTY};
}

/* A hop of the current message. */
struct hop {
    int32_t to;
    uint64_t *open[WAVE_BLOCKS]; /* bit w % 64 of block w / 64: in wave w (from 0) there is a
                                    combined message along this hop already */
};

/* Working state of the packing. */
struct packer {
    const struct cpl_pattern *pattern;
    int32_t max_hops;
    const int32_t *path;
    const int8_t *n_hops;
    int8_t *length; /* per message: hops of its path without loops */
    int32_t n_waves;
    int32_t n_blocks;
    struct cpl_pair_map open[WAVE_BLOCKS];
    struct hop hop[INT8_MAX];
    uint8_t *cost; /* (n_waves + 1) x n_waves: new combined messages, see weigh_waves */
    bool *taken;   /* the same shape: whether the best choice up to here has the hop in this wave */
};

/* Writes the path of message m from its source without loops into ranks, the source first: when it
 * comes to a rank again, everything since its first visit is dropped. Returns the number of hops
 * that remain. */
static int32_t cut_loops(const struct packer *packer, int32_t source, int64_t m,
                         int32_t ranks[1 + INT8_MAX])
{
    const int32_t *path = packer->path + m * packer->max_hops;
    int32_t n = 1;
    ranks[0] = source;
    for (int32_t i = 0; i < packer->n_hops[m]; i++) {
        int32_t seen = 0;
        while (seen < n && ranks[seen] != path[i])
            seen++;
        ranks[seen] = path[i];
        n = seen + 1;
    }
    return n - 1;
}

/* Finds the lengths of all paths; the longest is the number of waves. */
static void measure_paths(struct packer *packer)
{
    const struct cpl_pattern *pattern = packer->pattern;
    int32_t ranks[1 + INT8_MAX];
    packer->n_waves = 1;
    for (int32_t source = 0; source < pattern->n_ranks; source++) {
        for (int64_t m = pattern->first[source]; m < pattern->first[source + 1]; m++) {
            packer->length[m] = (int8_t)cut_loops(packer, source, m, ranks);
            if (packer->length[m] > packer->n_waves)
                packer->n_waves = packer->length[m];
        }
    }
    packer->n_blocks = (packer->n_waves - 1) / BLOCK_BITS + 1;
}

static enum cpl_status prepare(struct packer *packer, struct cpl_arena *arena)
{
    packer->length = CPL_ARENA_ARRAY(arena, int8_t, packer->pattern->n_messages);
    if (!packer->length)
        return CPL_ERR_NOMEM;
    measure_paths(packer);
    size_t n_cells = (size_t)(packer->n_waves + 1) * (size_t)packer->n_waves;
    packer->cost = CPL_ARENA_ARRAY(arena, uint8_t, n_cells);
    packer->taken = CPL_ARENA_ARRAY(arena, bool, n_cells);
    if (!packer->cost || !packer->taken)
        return CPL_ERR_NOMEM;
    for (int32_t block = 0; block < packer->n_blocks; block++) {
        if (cpl_pair_map_init(&packer->open[block], arena))
            return CPL_ERR_NOMEM;
    }
    return CPL_OK;
}

static bool is_open(const struct hop *hop, int32_t wave)
{
    return *hop->open[wave / BLOCK_BITS] >> (wave % BLOCK_BITS) & 1;
}

static void open_hop(struct hop *hop, int32_t wave)
{
    *hop->open[wave / BLOCK_BITS] |= UINT64_C(1) << (wave % BLOCK_BITS);
}

/* Sets the hops of message m and looks up in which waves they are open. */
static enum cpl_status load_hops(struct packer *packer, int32_t source, int64_t m)
{
    int32_t ranks[1 + INT8_MAX];
    int32_t n_hops = cut_loops(packer, source, m, ranks);
    for (int32_t block = 0; block < packer->n_blocks; block++) {
        if (cpl_pair_map_reserve(&packer->open[block], (size_t)n_hops))
            return CPL_ERR_NOMEM;
        for (int32_t i = 0; i < n_hops; i++)
            packer->hop[i].open[block] =
                cpl_pair_map_at(&packer->open[block], ranks[i], ranks[i + 1]);
    }
    for (int32_t i = 0; i < n_hops; i++)
        packer->hop[i].to = ranks[i + 1];
    return CPL_OK;
}

/* Fills cost and taken for the current message, which can rest in `slack` waves. Cell (i, s) has
 * the fewest new combined messages that its first i hops need when hop i takes wave i - 1 + s at
 * the latest (waves count from 0, hops from 1). Row 0 stays 0. */
static void weigh_waves(struct packer *packer, int32_t n_hops, int32_t slack)
{
    for (int32_t i = 1; i <= n_hops; i++) {
        const uint8_t *before = packer->cost + (size_t)(i - 1) * (size_t)packer->n_waves;
        uint8_t *cost = packer->cost + (size_t)i * (size_t)packer->n_waves;
        bool *taken = packer->taken + (size_t)i * (size_t)packer->n_waves;
        for (int32_t s = 0; s <= slack; s++) {
            uint8_t here = (uint8_t)(before[s] + !is_open(&packer->hop[i - 1], i - 1 + s));
            taken[s] = s == 0 || here <= cost[s - 1];
            cost[s] = taken[s] ? here : cost[s - 1];
        }
    }
}

/* Chooses the waves of the hops of a message, opens them there and writes the message's stops. */
static void place_hops(struct packer *packer, int32_t source, int32_t n_hops, int32_t *stops)
{
    int32_t s = packer->n_waves - n_hops;
    int32_t end = packer->n_waves; /* stops[end ..] are written */
    if (s > 0)
        weigh_waves(packer, n_hops, s);
    for (int32_t i = n_hops; i >= 1; i--) {
        while (s > 0 && !packer->taken[(size_t)i * (size_t)packer->n_waves + (size_t)s])
            s--;
        open_hop(&packer->hop[i - 1], i - 1 + s);
        while (end > i - 1 + s)
            stops[--end] = packer->hop[i - 1].to;
    }
    while (end > 0)
        stops[--end] = source;
}

/* Places all messages with n_hops hops. */
static enum cpl_status place_length(struct packer *packer, int32_t n_hops,
                                    struct cpl_routes *routes)
{
    const struct cpl_pattern *pattern = packer->pattern;
    for (int32_t source = 0; source < pattern->n_ranks; source++) {
        for (int64_t m = pattern->first[source]; m < pattern->first[source + 1]; m++) {
            if (packer->length[m] != n_hops)
                continue;
            if (load_hops(packer, source, m))
                return CPL_ERR_NOMEM;
            place_hops(packer, source, n_hops, cpl_routes_of(routes, m));
        }
    }
    return CPL_OK;
}

enum cpl_status cpl_routes_from_paths(const struct cpl_pattern *pattern, int32_t max_hops,
                                      const int32_t *path, const int8_t *n_hops,
                                      struct cpl_routes *routes, struct cpl_error *error)
{
    struct cpl_arena scratch = CPL_ARENA_EMPTY;
    struct packer packer = {
        .pattern = pattern, .max_hops = max_hops, .path = path, .n_hops = n_hops};
    struct cpl_routes built;
    enum cpl_status status = prepare(&packer, &scratch);
    if (!status)
        status = cpl_routes_init(pattern, packer.n_waves, &built, NULL);
    bool has_routes = !status;
    for (int32_t length = packer.n_waves; length >= 1 && !status; length--)
        status = place_length(&packer, length, &built);
    cpl_arena_free(&scratch);
    if (!status) {
        *routes = built;
        return CPL_OK;
    }
    if (has_routes)
        cpl_routes_free(&built);
    return cpl_fail_memory(error, "packing the paths into waves");
}
