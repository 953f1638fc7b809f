/* Strategy `share`: sharing of common messages (thesis chapters 4 and 5).
 *
 * Phase I (share_phase1.h) divides the destinations that two ranks have in common between them, so
 * that a message takes at most two hops; Phase II (share_phase2.h) moves combined messages from the
 * most to the least loaded rank, which can lengthen each hop by one more rank. The thesis executes
 * the result as one combined message for each pair of ranks. Those can wait for each other in
 * cycles, so here the paths are packed into waves (cpl_routes_from_paths), and a pair of ranks may
 * have a combined message in more than one of them. */
#include "planner/strategies/rows.h"
#include "planner/strategies/share_phase1.h"
#include "planner/strategies/share_phase2.h"

#include <stdio.h>

enum { PHASE1_HOPS = 2, PHASE2_HOPS = 4 };
enum { PARAMETER_PHASE1 = 1, PARAMETER_BOTH = 2 };

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

/* The way from a rank to `to`: over what Phase II put between. detour has an entry per rank that
 * the rank sends to. */
static void go(int32_t *stops, const int32_t *detour, int32_t to)
{
    stops[0] = detour[to] >= 0 ? detour[to] : to;
    stops[1] = to;
}

/* Writes the hops that begin at rank: the first ones of its own messages, the second ones of those
 * that it sends on for others. */
static void write_hops(const struct cpl_pattern *pattern, const int32_t *sender,
                       const struct cpl_share_sets *sets, const int32_t *detour, int32_t rank,
                       struct paths *paths)
{
    for (int64_t m = pattern->first[rank]; m < pattern->first[rank + 1]; m++) {
        int32_t *stops = paths->stops + PHASE2_HOPS * m;
        int32_t dst = pattern->dst[m];
        go(stops, detour, sender[m] == rank ? dst : sender[m]);
        if (sender[m] == rank)
            stops[2] = stops[3] = dst;
    }
    for (int64_t k = sets->carried_first[rank]; k < sets->carried_first[rank + 1]; k++) {
        int64_t m = sets->carried[k];
        go(paths->stops + PHASE2_HOPS * m + 2, detour, pattern->dst[m]);
    }
}

static enum cpl_status phase2_paths(const struct cpl_pattern *pattern, const int32_t *sender,
                                    struct cpl_arena *arena, struct paths *paths)
{
    struct cpl_share_sets sets;
    int32_t *via;
    if (cpl_share_sets_build(pattern, sender, arena, &sets) ||
        cpl_share_phase2(&sets, arena, &via) ||
        init_paths(paths, pattern->n_messages, PHASE2_HOPS, arena))
        return CPL_ERR_NOMEM;
    int32_t *detour = CPL_ARENA_ARRAY(arena, int32_t, pattern->n_ranks);
    if (!detour)
        return CPL_ERR_NOMEM;
    for (int32_t rank = 0; rank < pattern->n_ranks; rank++) {
        for (int64_t edge = sets.first[rank]; edge < sets.first[rank + 1]; edge++)
            detour[sets.to[edge]] = via[edge];
        write_hops(pattern, sender, &sets, detour, rank, paths);
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
                                         : phase2_paths(pattern, sender, arena, paths);
}

/* numbers: the phases, PARAMETER_PHASE1 or PARAMETER_BOTH. */
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
    return numbers->at[0] == PARAMETER_PHASE1 ? PHASE1_HOPS : PHASE2_HOPS;
}

static enum cpl_status parse(const struct cpl_strategy *strategy, const char *text,
                             struct cpl_strategy_numbers *numbers, struct cpl_error *error)
{
    *numbers = (struct cpl_strategy_numbers){1, {PARAMETER_BOTH}};
    return text ? cpl_strategy_parse_number(strategy, text, PARAMETER_PHASE1, PARAMETER_BOTH,
                                            &numbers->at[0], error)
                : CPL_OK;
}

static void format(const struct cpl_strategy_numbers *numbers, char text[CPL_STRATEGY_TEXT])
{
    snprintf(text, CPL_STRATEGY_TEXT, "%s", numbers->at[0] == PARAMETER_PHASE1 ? "1" : "");
}

static void candidates(const struct cpl_strategy *strategy, const struct cpl_strategy_input *input,
                       struct cpl_strategy_list *list)
{
    (void)input;
    for (int32_t phases = PARAMETER_PHASE1; phases <= PARAMETER_BOTH; phases++)
        cpl_strategy_add(list, strategy, &(struct cpl_strategy_numbers){1, {phases}});
}

const struct cpl_strategy cpl_strategy_share = {
    .name = "share",
    .parameter = "[:1|2]",
    .doc = "the busiest rank shares its messages with a rank of common destinations (1: this "
           "alone), then with the least busy one (2, the default); Duymus 2021",
    .examples = "share",
    .most_hops = most_hops,
    .parse = parse,
    .format = format,
    .candidates = candidates,
    .route = route};
