/* Ranks that recognise together in one process (recognise_ranks.h). */
#include "recognise_ranks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct ranks {
    int n;
    struct cpl_local_recognising *rank;
};

/* What comes to a rank in a round: of each source what it sent, sources from the last one on. */
static int64_t come(const struct ranks *ranks, const struct cpl_records *sent, int to, size_t bytes,
                    char **came)
{
    size_t n = 0;
    *came = NULL;
    for (int i = ranks->n - 1; i >= 0; i--)
        for (int k = 0; k < sent[i].n; k++) {
            assert_true(k == 0 || sent[i].to[k] > sent[i].to[k - 1]);
            if (sent[i].to[k] != to)
                continue;
            size_t more = (size_t)(sent[i].first[k + 1] - sent[i].first[k]);
            *came = realloc(*came, (n + more) * bytes);
            assert_non_null(*came);
            memcpy(*came + n * bytes,
                   (const char *)sent[i].records + (size_t)sent[i].first[k] * bytes, more * bytes);
            n += more;
        }
    return (int64_t)n;
}

static void link_all(struct ranks *ranks)
{
    struct cpl_records *told = calloc((size_t)ranks->n, sizeof *told);
    struct cpl_records *answers = calloc((size_t)ranks->n, sizeof *answers);
    char *came;
    assert_true(told && answers);
    for (int i = 0; i < ranks->n; i++)
        assert_true(cpl_local_tell(&ranks->rank[i], &told[i]));
    for (int i = 0; i < ranks->n; i++) {
        int64_t n = come(ranks, told, i, sizeof(struct cpl_message_end), &came);
        assert_true(cpl_local_answer(&ranks->rank[i], (struct cpl_message_end *)(void *)came, n,
                                     &answers[i]));
        free(came);
    }
    for (int i = 0; i < ranks->n; i++) {
        int64_t n = come(ranks, answers, i, sizeof(struct cpl_answer), &came);
        assert_true(cpl_local_link(&ranks->rank[i], (struct cpl_answer *)(void *)came, n));
        free(came);
    }
    for (int i = 0; i < ranks->n; i++) {
        cpl_records_free(&told[i]);
        cpl_records_free(&answers[i]);
    }
    free(told);
    free(answers);
}

struct keyed {
    uint64_t key, *value;
};

static int by_key(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;
    return (x->key > y->key) - (x->key < y->key);
}

static void join(struct ranks *ranks)
{
    const struct cpl_keys *keys = &ranks->rank[0].keys;
    size_t n = 0, bytes = (size_t)keys->words * sizeof *keys->value;
    for (int i = 0; i < ranks->n; i++)
        n += (size_t)ranks->rank[i].keys.n;
    struct keyed *all = calloc(n + 1, sizeof *all);
    assert_non_null(all);
    n = 0;
    for (int i = 0; i < ranks->n; i++) {
        const struct cpl_keys *own = &ranks->rank[i].keys;
        assert_true(own->words == keys->words && own->join == keys->join);
        for (int64_t k = 0; k < own->n; k++)
            all[n++] = (struct keyed){own->key[k], own->value + k * own->words};
    }
    qsort(all, n, sizeof *all, by_key);
    for (size_t k = 0, last; k < n; k = last) {
        for (last = k + 1; last < n && all[last].key == all[k].key; last++)
            keys->join(all[k].value, all[last].value);
        for (size_t j = k + 1; j < last; j++)
            memcpy(all[j].value, all[k].value, bytes);
    }
    free(all);
}

/* The labels of the peer's windows of a rank's links, in the order of both ranks. */
static void look_over(const struct ranks *ranks, uint64_t *const *labels, int i, uint64_t *theirs)
{
    const struct cpl_local_recognising *r = &ranks->rank[i];
    for (int64_t k = 0, j = 0; k < r->n_links; k++) {
        int peer = r->link[k].peer;
        const struct cpl_local_recognising *other = &ranks->rank[peer];
        if (k == 0 || r->link[k - 1].peer != peer)
            for (j = 0; other->link[j].peer != i; j++)
                assert_true(j + 1 < other->n_links);
        assert_true(j < other->n_links && other->link[j].peer == i);
        assert_true(peer == i || (other->link[j].low == r->link[k].low &&
                                  other->link[j].high == r->link[k].high));
        theirs[k] = labels[peer][j++];
    }
}

static void compare_names(struct ranks *ranks)
{
    for (int i = 0; i < ranks->n; i++) {
        uint64_t *names = calloc((size_t)ranks->rank[i].n_links + 1, sizeof *names);
        assert_non_null(names);
        cpl_local_names(&ranks->rank[i], names);
        cpl_local_compare(&ranks->rank[i], names);
        free(names);
    }
}

static bool compare_labels(struct ranks *ranks)
{
    uint64_t **labels = calloc((size_t)ranks->n, sizeof *labels);
    bool differ = false;
    assert_non_null(labels);
    for (int i = 0; i < ranks->n; i++) {
        labels[i] = calloc((size_t)ranks->rank[i].n_links + 1, sizeof **labels);
        assert_non_null(labels[i]);
        cpl_local_labels(&ranks->rank[i], labels[i]);
    }
    for (int i = 0; i < ranks->n; i++) {
        uint64_t *theirs = calloc((size_t)ranks->rank[i].n_links + 1, sizeof *theirs);
        assert_non_null(theirs);
        look_over(ranks, labels, i, theirs);
        differ |= cpl_local_compare(&ranks->rank[i], theirs);
        free(theirs);
    }
    for (int i = 0; i < ranks->n; i++)
        free(labels[i]);
    free(labels);
    return differ;
}

int recognise_ranks(int n_ranks, const int64_t *first, const struct cpl_note *notes, int most,
                    int64_t least_times, struct cpl_recurring *found, int32_t *exchange,
                    int *n_rounds)
{
    struct ranks ranks = {n_ranks, calloc((size_t)n_ranks, sizeof *ranks.rank)};
    struct cpl_recurring own[CPL_MOST_RECURRING];
    int n = 0;
    assert_non_null(ranks.rank);
    for (int i = 0; i < n_ranks; i++)
        assert_true(cpl_local_open(&ranks.rank[i], i, notes + first[i], first[i + 1] - first[i]));
    link_all(&ranks);
    compare_names(&ranks);
    *n_rounds = 0;
    do {
        join(&ranks);
        for (int i = 0; i < n_ranks; i++)
            cpl_local_relabel(&ranks.rank[i]);
        (*n_rounds)++;
    } while (compare_labels(&ranks));
    for (int i = 0; i < n_ranks; i++)
        cpl_local_group(&ranks.rank[i]);
    join(&ranks);
    for (int i = 0; i < n_ranks; i++)
        cpl_local_count(&ranks.rank[i], least_times);
    join(&ranks);
    for (int i = 0; i < n_ranks; i++) {
        int n_own = cpl_local_found(&ranks.rank[i], most, i == 0 ? found : own);
        assert_true(i == 0 || n_own == n);
        n = n_own;
        if (i > 0)
            assert_memory_equal(own, found, (size_t)n * sizeof *own);
    }
    for (int i = 0; i < n_ranks; i++) {
        cpl_local_label(&ranks.rank[i], found, n, first[i + 1] - first[i], exchange + first[i]);
        cpl_local_close(&ranks.rank[i]);
    }
    free(ranks.rank);
    return n;
}
