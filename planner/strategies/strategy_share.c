/* Strategy `share`: sharing of common messages (thesis chapters 4 and 5).
 *
 * Phase I (share_phase1.h) divides the destinations that two ranks have in common between them, so
 * that a message takes at most two hops; Phase II (share_phase2.h) moves combined messages from the
 * most to the least loaded rank, which puts more ranks inside each hop. The thesis executes the
 * result as one combined message for each pair of ranks. Those can wait for each other in cycles,
 * so here the paths are packed into waves (cpl_routes_from_paths), and a pair of ranks may have a
 * combined message in more than one of them. */
#include "planner/share/share_phase1.h"
#include "planner/share/share_phase2.h"
#include "planner/strategies/rows.h"

#include <stdio.h>
#include <string.h>

enum { PHASE1_HOPS = 2 };
/* Both phases: received entries are handed on, or stay. */
enum { PARAMETER_PHASE1 = 1, PARAMETER_BOTH = 2, PARAMETER_STAY = 3 };

/* The path of every message: always max_hops stops, of which some may be the same rank. */
struct paths {
    int32_t max_hops;
    int32_t *stops;
    int8_t *n_hops;
};

static enum cpl_status init_paths(struct paths *paths, int64_t n_messages, int8_t max_hops,
                                  struct cpl_arena *arena)
{
    paths->max_hops = max_hops;
    paths->stops = cpl_arena_alloc(arena, (size_t)n_messages, (size_t)max_hops * sizeof(int32_t));
    paths->n_hops = CPL_ARENA_ARRAY(arena, int8_t, n_messages);
    if (!paths->stops || !paths->n_hops)
        return CPL_ERR_NOMEM;
    for (int64_t m = 0; m < n_messages; m++)
        paths->n_hops[m] = max_hops;
    return CPL_OK;
}

static enum cpl_status phase1_paths(const struct cpl_pattern *pattern, const int32_t *sender,
                                    struct cpl_arena *arena, struct paths *paths)
{
    if (init_paths(paths, pattern->n_messages, PHASE1_HOPS, arena))
        return CPL_ERR_NOMEM;
    for (int64_t m = 0; m < pattern->n_messages; m++) {
        paths->stops[PHASE1_HOPS * m] = sender[m]; /* may be the source */
        paths->stops[PHASE1_HOPS * m + 1] = pattern->dst[m];
    }
    return CPL_OK;
}

/* The hops of Phase II. */
struct ways {
    const struct cpl_share_sets *sets;
    const struct cpl_share_ways *found;
    int64_t *edge; /* per rank: the edge to it of the rank at hand */
};

/* The way from the rank at hand to `to`: as many stops as there may be ranks inside, and one. */
static void go(int32_t *stops, const struct ways *ways, int32_t to)
{
    int32_t most_via = ways->found->most_via;
    const int32_t *via = ways->found->via + ways->edge[to] * most_via;
    for (int32_t n = 0; n < most_via; n++)
        stops[n] = via[n] >= 0 ? via[n] : to;
    stops[most_via] = to;
}

/* Writes the hops that begin at rank: the first ones of its own messages, the second ones of those
 * that it sends on for others. */
static void write_hops(const struct cpl_pattern *pattern, const int32_t *sender,
                       const struct ways *ways, int32_t rank, struct paths *paths)
{
    int32_t half = paths->max_hops / 2;
    for (int64_t m = pattern->first[rank]; m < pattern->first[rank + 1]; m++) {
        int32_t *stops = paths->stops + paths->max_hops * m;
        int32_t dst = pattern->dst[m];
        go(stops, ways, sender[m] == rank ? dst : sender[m]);
        for (int32_t k = half; k < paths->max_hops && sender[m] == rank; k++)
            stops[k] = dst;
    }
    for (int64_t k = ways->sets->carried_first[rank]; k < ways->sets->carried_first[rank + 1];
         k++) {
        int64_t m = ways->sets->carried[k];
        go(paths->stops + paths->max_hops * m + half, ways, pattern->dst[m]);
    }
}

static int8_t phase2_hops(int32_t most_via)
{
    return (int8_t)(PHASE1_HOPS * (1 + most_via));
}

static int32_t most_via(int32_t parameter)
{
    return parameter == PARAMETER_STAY ? 1 : CPL_SHARE_MOST_VIA;
}

static enum cpl_status phase2_paths(const struct cpl_pattern *pattern, const int32_t *sender,
                                    int32_t parameter, struct cpl_arena *arena, struct paths *paths)
{
    struct cpl_share_sets sets;
    struct cpl_share_ways found;
    if (cpl_share_sets_build(pattern, sender, arena, &sets) ||
        cpl_share_phase2(&sets, most_via(parameter), arena, &found) ||
        init_paths(paths, pattern->n_messages, phase2_hops(found.most_via), arena))
        return CPL_ERR_NOMEM;
    struct ways ways = {&sets, &found, CPL_ARENA_ARRAY(arena, int64_t, pattern->n_ranks)};
    if (!ways.edge)
        return CPL_ERR_NOMEM;
    for (int32_t rank = 0; rank < pattern->n_ranks; rank++) {
        for (int64_t edge = sets.first[rank]; edge < sets.first[rank + 1]; edge++)
            ways.edge[sets.to[edge]] = edge;
        write_hops(pattern, sender, &ways, rank, paths);
    }
    return CPL_OK;
}

static enum cpl_status find_paths(const struct cpl_pattern *pattern, int32_t parameter,
                                  struct cpl_arena *arena, struct paths *paths)
{
    int32_t *sender = CPL_ARENA_ARRAY(arena, int32_t, pattern->n_messages);
    if (!sender)
        return CPL_ERR_NOMEM;
    enum cpl_status status = cpl_share_phase1(pattern, arena, sender);
    if (status)
        return status;
    return parameter == PARAMETER_PHASE1 ? phase1_paths(pattern, sender, arena, paths)
                                         : phase2_paths(pattern, sender, parameter, arena, paths);
}

/* numbers: a PARAMETER. */
static enum cpl_status route(const struct cpl_strategy_input *input,
                             const struct cpl_strategy_numbers *numbers, struct cpl_routes *routes,
                             struct cpl_error *error)
{
    struct cpl_arena scratch = CPL_ARENA_EMPTY;
    struct paths paths;
    enum cpl_status status = find_paths(input->pattern, numbers->at[0], &scratch, &paths);
    if (status)
        cpl_fail_memory(error, "sharing messages");
    else
        status = cpl_routes_from_paths(input->pattern, paths.max_hops, paths.stops, paths.n_hops,
                                       routes, error);
    cpl_arena_free(&scratch);
    return status;
}

static int32_t most_hops(const struct cpl_strategy_input *input,
                         const struct cpl_strategy_numbers *numbers)
{
    (void)input;
    return numbers->at[0] == PARAMETER_PHASE1 ? PHASE1_HOPS : phase2_hops(most_via(numbers->at[0]));
}

static enum cpl_status parse(const struct cpl_strategy *strategy, const char *text,
                             struct cpl_strategy_numbers *numbers, struct cpl_error *error)
{
    (void)strategy;
    *numbers = (struct cpl_strategy_numbers){1, {PARAMETER_BOTH}};
    if (text && strcmp(text, "stay") == 0) {
        numbers->at[0] = PARAMETER_STAY;
        return CPL_OK;
    }
    if (text && strcmp(text, "1") != 0 && strcmp(text, "2") != 0)
        return cpl_fail(error, CPL_ERR_ARG, "strategy share takes 1, 2 or stay after ':', not '%s'",
                        text);
    if (text)
        numbers->at[0] = text[0] == '1' ? PARAMETER_PHASE1 : PARAMETER_BOTH;
    return CPL_OK;
}

static void format(const struct cpl_strategy_numbers *numbers, char text[CPL_STRATEGY_TEXT])
{
    const char *const texts[] = {
        [PARAMETER_PHASE1] = "1", [PARAMETER_BOTH] = "", [PARAMETER_STAY] = "stay"};
    snprintf(text, CPL_STRATEGY_TEXT, "%s", texts[numbers->at[0]]);
}

static void candidates(const struct cpl_strategy *strategy, const struct cpl_strategy_input *input,
                       struct cpl_strategy_list *list)
{
    (void)input;
    for (int32_t kind = PARAMETER_PHASE1; kind <= PARAMETER_BOTH; kind++)
        cpl_strategy_add(list, strategy, &(struct cpl_strategy_numbers){1, {kind}});
}

const struct cpl_strategy cpl_strategy_share = {
    .name = "share",
    .parameter = "[:1|2|stay]",
    .doc = "the busiest rank shares its messages with a rank of common destinations (1: this "
           "alone), then with the least busy one (2, the default; stay: what came so is not "
           "handed on, so paths are shorter); Duymus 2021",
    .examples = "share, share:stay",
    .most_hops = most_hops,
    .parse = parse,
    .format = format,
    .candidates = candidates,
    .route = route};
