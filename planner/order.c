/* Ordering sends by the receivers' load (order.h). */
#include "order.h"

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

enum cpl_status cpl_order_between(const struct cpl_pattern *pre, const struct cpl_pattern *post,
                                  int64_t *order, struct cpl_error *error)
{
    if (pre->n_ranks != post->n_ranks)
        return cpl_fail(error, CPL_ERR_ARG, "an exchange of %d ranks before one of %d",
                        pre->n_ranks, post->n_ranks);
    struct cpl_arena scratch = CPL_ARENA_EMPTY;
    int64_t *key = CPL_ARENA_ARRAY(&scratch, int64_t, pre->n_ranks);
    enum cpl_status status = CPL_OK;
    if (!key)
        status = cpl_fail_memory(error, "ordering sends");
    for (int32_t i = 0; i < pre->n_ranks && !status; i++)
        key[i] = cpl_pattern_sends(cpl_pattern_pairs(post), i);
    if (!status)
        status = cpl_order_sends(pre->n_ranks, pre->first, pre->dst, key, order, error);
    cpl_arena_free(&scratch);
    return status;
}
