/* Ordering sends by the receivers' load (order.h). */
#include "planner/order.h"

#include <stdlib.h>

/* Keys are counted one by one as long as there are at most this many for each rank. */
#define KEYS_PER_RANK 8

struct keyed_rank {
    int64_t key;
    int32_t rank;
};

static int compare_keyed(const void *a, const void *b)
{
    const struct keyed_rank *x = a, *y = b;
    if (x->key != y->key)
        return x->key > y->key ? -1 : 1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

static enum cpl_status sort_by_comparing(int32_t n_ranks, const int64_t *key, int32_t *place,
                                         struct cpl_arena *scratch)
{
    struct keyed_rank *sorted = CPL_ARENA_ARRAY(scratch, struct keyed_rank, n_ranks);
    if (!sorted)
        return CPL_ERR_NOMEM;
    for (int32_t i = 0; i < n_ranks; i++)
        sorted[i] = (struct keyed_rank){key[i], i};
    qsort(sorted, (size_t)n_ranks, sizeof *sorted, compare_keyed);
    for (int32_t k = 0; k < n_ranks; k++)
        place[sorted[k].rank] = k;
    return CPL_OK;
}

static enum cpl_status sort_by_counting(int32_t n_ranks, const int64_t *key, int64_t largest,
                                        int32_t *place, struct cpl_arena *scratch)
{
    /* next[k]: the place of the next rank with key largest - k */
    int32_t *next = CPL_ARENA_ARRAY(scratch, int32_t, largest + 2);
    if (!next)
        return CPL_ERR_NOMEM;
    for (int32_t i = 0; i < n_ranks; i++)
        next[largest - key[i] + 1]++;
    for (int64_t k = 0; k < largest; k++)
        next[k + 1] += next[k];
    for (int32_t i = 0; i < n_ranks; i++)
        place[i] = next[largest - key[i]]++;
    return CPL_OK;
}

enum cpl_status cpl_order_by_key(int32_t n_ranks, const int64_t *key, int32_t *place,
                                 struct cpl_error *error)
{
    struct cpl_arena scratch = CPL_ARENA_EMPTY;
    int64_t largest = 0;
    for (int32_t i = 0; i < n_ranks; i++)
        largest = key[i] > largest ? key[i] : largest;
    enum cpl_status status = largest > (int64_t)KEYS_PER_RANK * n_ranks
                                 ? sort_by_comparing(n_ranks, key, place, &scratch)
                                 : sort_by_counting(n_ranks, key, largest, place, &scratch);
    cpl_arena_free(&scratch);
    return status ? cpl_fail_memory(error, "ordering ranks by their load") : CPL_OK;
}

/* A message on its way into its sender's list. */
struct send {
    int64_t message;
    int32_t from;
};

/* Deals the messages to their receivers' places, then, place by place, to their senders. */
static enum cpl_status deal(int32_t n_ranks, const int64_t *first, const int32_t *to,
                            const int32_t *place, int64_t *order, struct cpl_arena *scratch)
{
    int64_t n = first[n_ranks];
    struct send *sends = CPL_ARENA_ARRAY(scratch, struct send, n);
    int64_t *next = CPL_ARENA_ARRAY(scratch, int64_t, (size_t)n_ranks + 1);
    if (!sends || !next)
        return CPL_ERR_NOMEM;
    for (int64_t m = 0; m < n; m++)
        next[place[to[m]] + 1]++;
    for (int32_t k = 0; k < n_ranks; k++)
        next[k + 1] += next[k];
    for (int32_t i = 0; i < n_ranks; i++)
        for (int64_t m = first[i]; m < first[i + 1]; m++)
            sends[next[place[to[m]]]++] = (struct send){m, i};
    for (int32_t i = 0; i < n_ranks; i++)
        next[i] = first[i];
    for (int64_t k = 0; k < n; k++)
        order[next[sends[k].from]++] = sends[k].message;
    return CPL_OK;
}

enum cpl_status cpl_order_sends(int32_t n_ranks, const int64_t *first, const int32_t *to,
                                const int64_t *key, int64_t *order, struct cpl_error *error)
{
    struct cpl_arena scratch = CPL_ARENA_EMPTY;
    int32_t *place = CPL_ARENA_ARRAY(&scratch, int32_t, n_ranks);
    enum cpl_status status = place ? cpl_order_by_key(n_ranks, key, place, error)
                                   : cpl_fail_memory(error, "ordering sends");
    if (!status && deal(n_ranks, first, to, place, order, &scratch))
        status = cpl_fail_memory(error, "ordering sends");
    cpl_arena_free(&scratch);
    return status;
}

static enum cpl_status check_ranks(const struct cpl_pattern *pre, const struct cpl_pattern *post,
                                   struct cpl_error *error)
{
    if (pre->n_ranks == post->n_ranks)
        return CPL_OK;
    return cpl_fail(error, CPL_ERR_ARG, "an exchange of %d ranks before one of %d", pre->n_ranks,
                    post->n_ranks);
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* When each rank has sent and received all of pre. */
static void find_entries(const struct cpl_pattern *pre, const int64_t *order, int64_t *entered)
{
    for (int32_t i = 0; i < pre->n_ranks; i++)
        entered[i] = cpl_pattern_sends(pre, i);
    for (int32_t i = 0; i < pre->n_ranks; i++)
        for (int64_t k = pre->first[i]; k < pre->first[i + 1]; k++) {
            int32_t to = pre->dst[order ? order[k] : k];
            entered[to] = larger(entered[to], k - pre->first[i] + 1);
        }
}

/* When the last of post's messages has been sent, which is when it arrives; a rank without any is
 * done when it has computed. */
static int64_t find_last(const struct cpl_pattern *post, const int64_t *entered, int64_t work)
{
    int64_t last = 0;
    for (int32_t i = 0; i < post->n_ranks; i++)
        last = larger(last, entered[i] + work + cpl_pattern_sends(post, i));
    return last;
}

enum cpl_status cpl_order_completion(const struct cpl_pattern *pre, const int64_t *order,
                                     const struct cpl_pattern *post, int64_t work,
                                     int64_t *completion, struct cpl_error *error)
{
    struct cpl_arena scratch = CPL_ARENA_EMPTY;
    enum cpl_status status = check_ranks(pre, post, error);
    if (status)
        return status;
    int64_t *entered = CPL_ARENA_ARRAY(&scratch, int64_t, pre->n_ranks);
    if (entered) {
        find_entries(pre, order, entered);
        *completion = find_last(cpl_pattern_pairs(post), entered, work);
    }
    cpl_arena_free(&scratch);
    return entered ? CPL_OK : cpl_fail_memory(error, "the times of an order");
}

struct cpl_order_bounds cpl_order_bound(const struct cpl_pattern *pre,
                                        const struct cpl_pattern *post, int64_t work)
{
    int64_t least = 0;
    post = cpl_pattern_pairs(post);
    for (int32_t i = 0; i < pre->n_ranks; i++)
        least = larger(least, cpl_pattern_sends(pre, i) + cpl_pattern_sends(post, i));
    return (struct cpl_order_bounds){least + work, cpl_pattern_most_sends(pre) + work +
                                                       cpl_pattern_most_sends(post)};
}

enum cpl_status cpl_order_between(const struct cpl_pattern *pre, const struct cpl_pattern *post,
                                  int64_t *order, struct cpl_error *error)
{
    enum cpl_status status = check_ranks(pre, post, error);
    if (status)
        return status;
    struct cpl_arena scratch = CPL_ARENA_EMPTY;
    int64_t *key = CPL_ARENA_ARRAY(&scratch, int64_t, pre->n_ranks);
    if (!key)
        status = cpl_fail_memory(error, "ordering sends");
    for (int32_t i = 0; i < pre->n_ranks && !status; i++)
        key[i] = cpl_pattern_sends(cpl_pattern_pairs(post), i);
    if (!status)
        status = cpl_order_sends(pre->n_ranks, pre->first, pre->dst, key, order, error);
    cpl_arena_free(&scratch);
    return status;
}
