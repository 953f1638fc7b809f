/* Phase I of message sharing (share_phase1.h): thesis Algorithms 1 to 3. */
#include "planner/share/share_phase1.h"

#include "planner/share/load_tree.h"
#include "planner/share/share_friend.h"

#include <stdbool.h>

/* The two ranks of a pairing; indices into arrays of two. */
enum side { SIDE_MAX, SIDE_FRIEND };

/* A destination of both ranks of a pairing: the message of each to it. */
struct common {
    int64_t message[2];
};

struct phase1 {
    const struct cpl_pattern *pattern;
    int32_t *sender;
    int64_t *load; /* send set sizes as the thesis counts them */
    struct cpl_load_tree most_loaded;
    struct cpl_share_friend_finder friends;
    int32_t *group; /* rank r's group: who sends messages of r for it, from group[first[r]] on (it
                       cannot have more members than r has messages) */
    int64_t *group_size;
    /* The pairing at hand. */
    int32_t rank[2];
    struct common *common; /* by ascending destination */
    int64_t n_common;
    uint8_t *member; /* per rank: bit `side` is set when it is in that side's group; 0 between
                        pairings */
};

int64_t cpl_share_alpha(int64_t load_max, int64_t load_friend, int64_t n_common)
{
    if (load_friend + n_common <= load_max)
        return n_common;
    int64_t twice = n_common + load_max - load_friend;
    return twice < 0 ? 0 : twice / 2; /* below n_common, or the first case had applied */
}

static enum cpl_status start(struct phase1 *state, const struct cpl_pattern *pattern,
                             struct cpl_arena *arena, int32_t *sender)
{
    int64_t largest = 0;
    *state = (struct phase1){
        .pattern = pattern,
        .sender = sender,
        .load = CPL_ARENA_ARRAY(arena, int64_t, pattern->n_ranks),
        .group = CPL_ARENA_ARRAY(arena, int32_t, pattern->n_messages),
        .group_size = CPL_ARENA_ARRAY(arena, int64_t, pattern->n_ranks),
        .member = CPL_ARENA_ARRAY(arena, uint8_t, pattern->n_ranks),
    };
    if (!state->load || !state->group || !state->group_size || !state->member)
        return CPL_ERR_NOMEM;
    for (int32_t rank = 0; rank < pattern->n_ranks; rank++) {
        state->load[rank] = cpl_pattern_sends(pattern, rank);
        if (state->load[rank] > largest)
            largest = state->load[rank];
        for (int64_t m = pattern->first[rank]; m < pattern->first[rank + 1]; m++)
            sender[m] = rank;
    }
    state->common = CPL_ARENA_ARRAY(arena, struct common, (size_t)largest + 1);
    if (!state->common)
        return CPL_ERR_NOMEM;
    enum cpl_status status = cpl_share_friend_init(&state->friends, pattern, arena);
    return status ? status
                  : cpl_load_tree_init(&state->most_loaded, arena, state->load, pattern->n_ranks,
                                       false);
}

/* Merges the initial send sets of the two ranks (4.3.1, figure 4.4). */
static void find_common(struct phase1 *state)
{
    const struct cpl_pattern *pattern = state->pattern;
    int64_t i = pattern->first[state->rank[SIDE_MAX]];
    int64_t j = pattern->first[state->rank[SIDE_FRIEND]];
    int64_t end_i = pattern->first[state->rank[SIDE_MAX] + 1];
    int64_t end_j = pattern->first[state->rank[SIDE_FRIEND] + 1];
    int64_t n = 0;
    while (i < end_i && j < end_j) {
        int32_t a = pattern->dst[i];
        int32_t b = pattern->dst[j];
        /* Stored in any case, so that there is no branch to mispredict; one entry to spare. */
        state->common[n] = (struct common){.message = {i, j}};
        n += a == b;
        i += a <= b;
        j += b <= a;
    }
    state->n_common = n;
}

static void mark_group(struct phase1 *state, enum side side)
{
    int32_t rank = state->rank[side];
    const int32_t *group = state->group + state->pattern->first[rank];
    for (int64_t k = 0; k < state->group_size[rank]; k++)
        state->member[group[k]] |= (uint8_t)(1U << side);
}

static void unmark_group(struct phase1 *state, enum side side)
{
    int32_t rank = state->rank[side];
    const int32_t *group = state->group + state->pattern->first[rank];
    for (int64_t k = 0; k < state->group_size[rank]; k++)
        state->member[group[k]] = 0;
}

/* Algorithm 3: whether a rank is in the group of a side, which then must go on sending to it
 * itself, because it sends others' messages there too. */
static bool in_group(const struct phase1 *state, enum side side, int32_t rank)
{
    return state->member[rank] >> side & 1;
}

/* Lets `via` send message m of a side, which still sends it itself. */
static void give(struct phase1 *state, enum side side, int64_t m, int32_t via)
{
    int32_t rank = state->rank[side];
    state->sender[m] = via;
    state->load[rank]--;
    if (!in_group(state, side, via)) {
        state->group[state->pattern->first[rank] + state->group_size[rank]++] = via;
        state->member[via] |= (uint8_t)(1U << side);
    }
}

/* The first step of cases 2 to 4: where the other side's message is sent by a third rank of its
 * group, this side's message goes the same way. */
static void follow_group(struct phase1 *state, enum side side)
{
    enum side other = side == SIDE_MAX ? SIDE_FRIEND : SIDE_MAX;
    if (state->group_size[state->rank[other]] == 0)
        return;
    for (int64_t k = 0; k < state->n_common; k++) {
        int64_t own = state->common[k].message[side];
        int32_t via = state->sender[state->common[k].message[other]];
        if (via != state->rank[other] && via != state->rank[side] &&
            state->sender[own] == state->rank[side] &&
            !in_group(state, side, state->pattern->dst[own]))
            give(state, side, own, via);
    }
}

/* Keeps in `common` what both sides still send themselves and one of them may give away. */
static void keep_divisible(struct phase1 *state)
{
    const uint8_t both = 1U << SIDE_MAX | 1U << SIDE_FRIEND;
    int64_t n = 0;
    for (int64_t k = 0; k < state->n_common; k++) {
        struct common common = state->common[k];
        int32_t dst = state->pattern->dst[common.message[SIDE_MAX]];
        state->common[n] = common;
        n += state->sender[common.message[SIDE_MAX]] == state->rank[SIDE_MAX] &&
             state->sender[common.message[SIDE_FRIEND]] == state->rank[SIDE_FRIEND] &&
             state->member[dst] != both;
    }
    state->n_common = n;
}

/* Algorithm 2: the first alpha common destinations are left to the friend, the others to the most
 * loaded rank. A side that may not give its message is passed over. */
static void divide(struct phase1 *state)
{
    keep_divisible(state);
    int64_t alpha = cpl_share_alpha(state->load[state->rank[SIDE_MAX]],
                                    state->load[state->rank[SIDE_FRIEND]], state->n_common);
    int64_t n_given = 0;
    for (int64_t k = 0; k < state->n_common; k++) {
        enum side giver = n_given < alpha ? SIDE_MAX : SIDE_FRIEND;
        enum side keeper = n_given < alpha ? SIDE_FRIEND : SIDE_MAX;
        int64_t m = state->common[k].message[giver];
        if (in_group(state, giver, state->pattern->dst[m]))
            continue;
        give(state, giver, m, state->rank[keeper]);
        n_given += giver == SIDE_MAX;
    }
}

static void share(struct phase1 *state, int32_t max, int32_t mate)
{
    state->rank[SIDE_MAX] = max;
    state->rank[SIDE_FRIEND] = mate;
    find_common(state);
    mark_group(state, SIDE_MAX);
    mark_group(state, SIDE_FRIEND);
    follow_group(state, SIDE_MAX);
    follow_group(state, SIDE_FRIEND);
    divide(state);
    unmark_group(state, SIDE_MAX);
    unmark_group(state, SIDE_FRIEND);
    cpl_load_tree_update(&state->most_loaded, max);
    cpl_load_tree_update(&state->most_loaded, mate);
}

enum cpl_status cpl_share_phase1(const struct cpl_pattern *pattern, struct cpl_arena *arena,
                                 int32_t *sender)
{
    struct phase1 state;
    enum cpl_status status = start(&state, pattern, arena, sender);
    int32_t previous = -1;
    int64_t previous_load = -1;
    while (!status) {
        int32_t max = cpl_load_tree_top(&state.most_loaded);
        /* Loads only fall, so this ends after at most one pairing per message and one more. */
        if (max == previous && state.load[max] == previous_load)
            break;
        previous = max;
        previous_load = state.load[max];
        struct cpl_share_friend mate;
        status = cpl_share_friend_take(&state.friends, max, &mate);
        if (status || mate.rank < 0)
            break;
        share(&state, max, mate.rank);
    }
    return status;
}
