/* Folding by sorting (fold.h): unsorted requests by digits; sorted runs by a tree of losers, in
 * which the run with the smallest next element wins and each match remembers its loser, or also by
 * digits, which is faster for many runs. */
#include "fold.h"
#include "work.h"

#include <stdlib.h>
#include <string.h>

enum { DIGIT_BITS = 11, N_DIGITS = 1 << DIGIT_BITS };

/* Finds the least key, and the number of digits by which the others differ from it. */
static int count_digits(int32_t n, const int64_t *key, int64_t *least)
{
    int64_t low = n > 0 ? key[0] : 0, high = low;
    int n_digits = 1;
    for (int32_t k = 1; k < n; k++) {
        low = key[k] < low ? key[k] : low;
        high = key[k] > high ? key[k] : high;
    }
    for (high -= low; high >> DIGIT_BITS; high >>= DIGIT_BITS)
        n_digits++;
    *least = low;
    return n_digits;
}

/* One pass: sorts `from` into `to` by a digit of the keys' differences from the least. */
static void sort_digit(int32_t n, const int64_t *key, int64_t least, int shift, const int32_t *from,
                       int32_t *to)
{
    int32_t start[N_DIGITS + 1] = {0};
    for (int32_t k = 0; k < n; k++)
        start[1 + (((key[k] - least) >> shift) & (N_DIGITS - 1))]++;
    for (int d = 0; d < N_DIGITS; d++)
        start[d + 1] += start[d];
    for (int32_t k = 0; k < n; k++) {
        int32_t position = from ? from[k] : k;
        to[start[((key[position] - least) >> shift) & (N_DIGITS - 1)]++] = position;
    }
}

bool cpl_sort_positions(int32_t n, const int64_t *key, int32_t *position)
{
    int64_t least;
    int n_passes = count_digits(n, key, &least);
    int32_t *other = malloc(((size_t)n + !n) * sizeof *other);
    if (!other)
        return false;
    cpl_array_work(cpl_work_digits_ns(n, n_passes));
    /* the last pass ends in position */
    int32_t *to = n_passes % 2 ? position : other, *from = NULL;
    for (int pass = 0; pass < n_passes; pass++) {
        sort_digit(n, key, least, pass * DIGIT_BITS, from, to);
        from = to;
        to = to == position ? other : position;
    }
    free(other);
    return true;
}

/* Appends a request to the fold: a new element, or one more of the last. */
static inline void append(struct cpl_fold *fold, bool keeps_all, int64_t index, int64_t request)
{
    if (keeps_all || fold->n == 0 || fold->index[fold->n - 1] != index)
        fold->index[fold->n++] = index;
    fold->slot[request] = fold->n - 1;
}

static bool fold_unsorted(const struct cpl_fold_input *input, struct cpl_fold *fold)
{
    int32_t n = (int32_t)input->first[input->n_segments];
    int32_t *position = malloc(((size_t)n + !n) * sizeof *position);
    bool is_sorted = position && cpl_sort_positions(n, input->index, position);
    for (int32_t k = 0; k < n && is_sorted; k++)
        append(fold, input->keeps_all, input->index[position[k]], position[k]);
    free(position);
    return is_sorted;
}

struct losers {
    const struct cpl_fold_input *input;
    int n_leaves;  /* a power of two */
    int64_t *next; /* of each leaf: its next request */
    int64_t *key;  /* the index of that request, INT64_MAX at the end */
    int *loser;    /* of each inner node, from 1 */
};

static bool is_less(const struct losers *t, int a, int b)
{
    return t->key[a] != t->key[b] ? t->key[a] < t->key[b] : a < b;
}

static int64_t key_of(const struct losers *t, int leaf)
{
    bool is_at_end = leaf >= t->input->n_segments || t->next[leaf] == t->input->first[leaf + 1];
    return is_at_end ? INT64_MAX : t->input->index[t->next[leaf]];
}

/* Plays all matches below a node; returns the winner. */
static int play(struct losers *t, int node)
{
    if (node >= t->n_leaves)
        return node - t->n_leaves;
    int left = play(t, 2 * node), right = play(t, 2 * node + 1);
    bool left_wins = is_less(t, left, right);
    t->loser[node] = left_wins ? right : left;
    return left_wins ? left : right;
}

static void merge(struct losers *t, struct cpl_fold *fold)
{
    int winner = play(t, 1);
    while (t->key[winner] != INT64_MAX) {
        append(fold, t->input->keeps_all, t->key[winner], t->next[winner]);
        t->next[winner]++;
        t->key[winner] = key_of(t, winner);
        for (int node = (t->n_leaves + winner) / 2; node > 0; node /= 2)
            if (is_less(t, t->loser[node], winner)) {
                int loser = winner;
                winner = t->loser[node];
                t->loser[node] = loser;
            }
    }
}

static bool fold_segments(const struct cpl_fold_input *input, struct cpl_fold *fold)
{
    struct losers t = {.input = input, .n_leaves = 1};
    while (t.n_leaves < input->n_segments)
        t.n_leaves *= 2;
    size_t n = (size_t)t.n_leaves;
    t.next = malloc(n * sizeof *t.next);
    t.key = malloc(n * sizeof *t.key);
    t.loser = malloc(n * sizeof *t.loser);
    bool has_memory = t.next && t.key && t.loser;
    cpl_array_work(cpl_work_merge_ns((double)input->first[input->n_segments],
                                     cpl_fold_matches(input->n_segments)));
    for (int k = 0; k < t.n_leaves && has_memory; k++) {
        t.next[k] = k < input->n_segments ? input->first[k] : 0;
        t.key[k] = key_of(&t, k);
    }
    if (has_memory)
        merge(&t, fold);
    free(t.next);
    free(t.key);
    free(t.loser);
    return has_memory;
}

/* Whether merging runs is faster than sorting them anew: processors cannot predict the results of
 * matches. */
static bool merges(const struct cpl_fold_input *input)
{
    int32_t n = (int32_t)input->first[input->n_segments];
    int64_t least;
    double merging = cpl_work_merge_ns(n, cpl_fold_matches(input->n_segments));
    return merging <= cpl_work_digits_ns(n, 1) ||
           merging < cpl_work_digits_ns(n, count_digits(n, input->index, &least));
}

bool cpl_fold_sort(const struct cpl_fold_input *input, struct cpl_fold *fold)
{
    if (!input->is_sorted)
        return fold_unsorted(input, fold);
    if (input->n_segments != 1)
        return merges(input) ? fold_segments(input, fold) : fold_unsorted(input, fold);
    cpl_array_work((double)input->first[1] * CPL_WORK_IN_ORDER);
    for (int64_t k = 0; k < input->first[1]; k++)
        append(fold, input->keeps_all, input->index[k], k);
    return true;
}
