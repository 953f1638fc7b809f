/* The bound on combined messages in two waves (lower_bound.h).
 *
 * Sends. Let no rank send more than M. A rank s that opens x edges in the first wave reaches with
 * each of them the rank w at its end and, in the second wave, at most Y(w) others, and with its own
 * second wave M - x more: at most (sum of the x largest Y(w) + 1) + M - x destinations. What it has
 * to reach says how large x must be, and Y(s) can be at most M - x. Beginning with Y = M this is
 * repeated until nothing changes; when somebody cannot reach what it has to, M is too small. Less
 * rounds only make the bound weaker.
 *
 * Receives. The same with time reversed: X(w) bounds what w receives in the first wave.
 *
 * Both. Every message passes a rank w with its source among w and those that send to w in the first
 * wave and its destination among w and those that w sends to in the second. With i(w) and y(w) such
 * edges these are (i + 1) (y + 1) pairs, of which one, (w, w), is no message. So the sum of
 * (i + 1) (y + 1) over all w is at least messages + ranks, where i(w) <= X(w), y(w) <= Y(w), and
 * the sum of i, which is the number of first-wave edges, is at most the sum of M - y. For any price
 * k / 4 >= 0 of an edge beyond that the sum is at most
 *     sum over w of the largest (i + 1) (y + 1) - k / 4 (i + y - M),
 * which is linear in i and in y, so that a corner of the box is largest; it is convex in k. */
#include "planner/lower_bound.h"

#include <stdbool.h>
#include <string.h>

#define MOST_ROUNDS 100

struct two_waves {
    int32_t n_ranks;
    int64_t n_messages;
    int64_t *n_out; /* messages of each rank */
    int64_t *n_in;
    int64_t *most_out; /* Y: second-wave sends of each rank */
    int64_t *most_in;  /* X: first-wave receives */
    int64_t *reach;    /* scratch, n_ranks + 1 */
    int64_t *count;    /* scratch, largest degree + 2 */
};

/* reach[x] becomes the sum of the x largest most[w] + 1; most is at most cap. */
static void sum_largest(struct two_waves *t, const int64_t *most, int64_t cap)
{
    memset(t->count, 0, (size_t)(cap + 1) * sizeof *t->count);
    for (int32_t w = 0; w < t->n_ranks; w++)
        t->count[most[w]]++;
    int32_t x = 0;
    t->reach[0] = 0;
    for (int64_t value = cap; value >= 0; value--)
        for (int64_t k = 0; k < t->count[value]; k++, x++)
            t->reach[x + 1] = t->reach[x] + value + 1;
}

/* The fewest first-wave edges with which n destinations can be reached under the cap, or -1. */
static int64_t fewest_edges(const struct two_waves *t, int64_t n, int64_t cap)
{
    int64_t low = 0, high = cap < t->n_ranks - 1 ? cap : t->n_ranks - 1;
    if (t->reach[high] + cap - high < n)
        return -1;
    while (low < high) {
        int64_t x = low + (high - low) / 2;
        if (t->reach[x] + cap - x >= n)
            high = x;
        else
            low = x + 1;
    }
    return low;
}

/* Sets most for ranks with these numbers of messages; false when the cap is too small. */
static bool bound_ends(struct two_waves *t, const int64_t *n_messages, int64_t cap, int64_t *most)
{
    bool changed = true;
    for (int32_t w = 0; w < t->n_ranks; w++)
        most[w] = cap;
    for (int round = 0; round < MOST_ROUNDS && changed; round++) {
        changed = false;
        sum_largest(t, most, cap);
        for (int32_t i = 0; i < t->n_ranks; i++) {
            int64_t x = n_messages[i] > 0 ? fewest_edges(t, n_messages[i], cap) : 0;
            if (x < 0)
                return false;
            changed |= cap - x < most[i];
            most[i] = cap - x < most[i] ? cap - x : most[i];
        }
    }
    return true;
}

/* Four times the bound on the pairs for price k / 4. */
static int64_t most_pairs(const struct two_waves *t, int64_t cap, int64_t k)
{
    int64_t sum = 0;
    for (int32_t w = 0; w < t->n_ranks; w++) {
        int64_t x = t->most_in[w], y = t->most_out[w], best = 4 + k * cap;
        int64_t only_x = 4 * (x + 1) - k * (x - cap), only_y = 4 * (y + 1) - k * (y - cap);
        int64_t both = 4 * (x + 1) * (y + 1) - k * (x + y - cap);
        best = only_x > best ? only_x : best;
        best = only_y > best ? only_y : best;
        sum += both > best ? both : best;
    }
    return sum;
}

/* Whether so many pairs are possible, by the best price. */
static bool pairs_suffice(const struct two_waves *t, int64_t cap)
{
    int64_t needed = 4 * (t->n_messages + t->n_ranks), low = 0, high = 8 * (cap + 2);
    while (low < high) {
        int64_t k = low + (high - low) / 2;
        int64_t here = most_pairs(t, cap, k);
        if (here < needed)
            return false;
        if (here <= most_pairs(t, cap, k + 1))
            high = k;
        else
            low = k + 1;
    }
    return most_pairs(t, cap, low) >= needed;
}

static bool possible(struct two_waves *t, int64_t cap)
{
    return bound_ends(t, t->n_out, cap, t->most_out) && bound_ends(t, t->n_in, cap, t->most_in) &&
           pairs_suffice(t, cap);
}

static enum cpl_status prepare(struct two_waves *t, const struct cpl_pattern *pattern,
                               struct cpl_arena *arena, int64_t *largest)
{
    t->n_ranks = pattern->n_ranks;
    t->n_messages = pattern->n_messages;
    t->n_out = CPL_ARENA_ARRAY(arena, int64_t, t->n_ranks);
    t->n_in = CPL_ARENA_ARRAY(arena, int64_t, t->n_ranks);
    t->most_out = CPL_ARENA_ARRAY(arena, int64_t, t->n_ranks);
    t->most_in = CPL_ARENA_ARRAY(arena, int64_t, t->n_ranks);
    t->reach = CPL_ARENA_ARRAY(arena, int64_t, (size_t)t->n_ranks + 1);
    t->count = CPL_ARENA_ARRAY(arena, int64_t, (size_t)t->n_ranks + 1);
    if (!t->n_out || !t->n_in || !t->most_out || !t->most_in || !t->reach || !t->count)
        return CPL_ERR_NOMEM;
    for (int64_t m = 0; m < pattern->n_messages; m++)
        t->n_in[pattern->dst[m]]++;
    *largest = 0;
    for (int32_t i = 0; i < t->n_ranks; i++) {
        t->n_out[i] = cpl_pattern_sends(pattern, i);
        *largest = t->n_out[i] > *largest ? t->n_out[i] : *largest;
        *largest = t->n_in[i] > *largest ? t->n_in[i] : *largest;
    }
    return CPL_OK;
}

/* What is possible under a cap is possible under a larger one: bisection. The direct plan shows
 * that the largest number of messages of a rank is possible. */
enum cpl_status cpl_bound_two_waves(const struct cpl_pattern *pattern, int64_t *messages,
                                    struct cpl_error *error)
{
    pattern = cpl_pattern_pairs(pattern);
    struct cpl_arena arena = CPL_ARENA_EMPTY;
    struct two_waves t;
    int64_t high;
    enum cpl_status status = prepare(&t, pattern, &arena, &high);
    if (status) {
        cpl_arena_free(&arena);
        return cpl_fail_memory(error, "the lower bound");
    }
    int64_t low = high > 0 ? 1 : 0;
    while (low < high) {
        int64_t cap = low + (high - low) / 2;
        if (possible(&t, cap))
            high = cap;
        else
            low = cap + 1;
    }
    cpl_arena_free(&arena);
    *messages = low;
    return CPL_OK;
}
