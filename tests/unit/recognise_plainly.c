/* Recognising exchanges by one who has the notes of all (recognise_ranks.h), with nothing in mind
 * but to be plain. */
#include "planner/base/hash.h"
#include "recognise_ranks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct end {
    int32_t source, dest, tag;
    int window; /* in all windows; ascends in the order of notes */
};

struct window {
    int rank;
    struct cpl_window own;
    int64_t note; /* the one that ended it, in the notes of all */
    int label;    /* the lowest number of the windows that it is linked with */
    bool misses;  /* an end of some message of these */
    int group;    /* -1: none */
};

struct group {
    int label, last_rank;
    uint64_t hash;
    bool several;
    struct cpl_recurring exchange;
};

struct all {
    int n_windows, n_sent, n_received, n_links, n_groups;
    struct window *window;
    struct end *sent, *received;
    int (*link)[2];
    struct group *group;
};

static void *room(size_t n, size_t bytes)
{
    void *made = calloc(n + 1, bytes);
    assert_non_null(made);
    return made;
}

static void take_rank(struct all *all, int rank, const struct cpl_note *notes, int64_t first,
                      int64_t n)
{
    struct cpl_windows w;
    int before = all->n_windows;
    assert_true(cpl_windows_cut(&w, notes + first, n));
    for (int k = 0; k < w.n; k++, all->n_windows++)
        all->window[all->n_windows] = (struct window){
            rank, w.window[k], first + w.window[k].end_note, all->n_windows, false, -1};
    for (int64_t k = 0; k < w.n_ends; k++) {
        const struct cpl_message_end *e = &w.end[k];
        if (e->sent)
            all->sent[all->n_sent++] = (struct end){rank, e->peer, e->tag, before + e->window};
        else
            all->received[all->n_received++] =
                (struct end){e->peer, rank, e->tag, before + e->window};
    }
    cpl_windows_free(&w);
}

static int compare_messages(const struct end *a, const struct end *b)
{
    if (a->source != b->source)
        return a->source < b->source ? -1 : 1;
    if (a->dest != b->dest)
        return a->dest < b->dest ? -1 : 1;
    return (a->tag > b->tag) - (a->tag < b->tag);
}

static int by_message(const void *a, const void *b)
{
    const struct end *x = a, *y = b;
    int order = compare_messages(x, y);
    return order ? order : x->window - y->window;
}

/* The last message sent is the last one received, and so on backwards. */
static void match(struct all *all)
{
    int i = all->n_sent - 1, j = all->n_received - 1;
    qsort(all->sent, (size_t)all->n_sent, sizeof *all->sent, by_message);
    qsort(all->received, (size_t)all->n_received, sizeof *all->received, by_message);
    while (i >= 0 || j >= 0) {
        int order = i < 0 ? -1 : j < 0 ? 1 : compare_messages(&all->sent[i], &all->received[j]);
        if (order > 0)
            all->window[all->sent[i--].window].misses = true;
        else if (order < 0)
            all->window[all->received[j--].window].misses = true;
        else {
            all->link[all->n_links][0] = all->sent[i--].window;
            all->link[all->n_links++][1] = all->received[j--].window;
        }
    }
}

static void spread_labels(struct all *all)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (int k = 0; k < all->n_links; k++) {
            struct window *a = &all->window[all->link[k][0]], *b = &all->window[all->link[k][1]];
            changed |= a->label != b->label || a->misses != b->misses;
            a->label = b->label = a->label < b->label ? a->label : b->label;
            a->misses = b->misses = a->misses || b->misses;
        }
    }
}

/* The first group of a label that has no window of this rank yet. */
static int find_group(struct all *all, int label, int rank)
{
    int g = 0;
    while (g < all->n_groups && (all->group[g].label != label || all->group[g].last_rank == rank))
        g++;
    if (g == all->n_groups)
        all->group[all->n_groups++] = (struct group){.label = label};
    all->group[g].last_rank = rank;
    return g;
}

static void make_groups(struct all *all)
{
    for (int k = 0; k < all->n_windows; k++) {
        struct window *w = &all->window[k];
        if (w->misses || w->own.signature < 0 || w->own.n_sent == 0)
            continue;
        w->group = find_group(all, w->label, w->rank);
        struct group *g = &all->group[w->group];
        if (g->exchange.n_messages == 0)
            g->exchange.tag = w->own.tag;
        g->exchange.n_messages += w->own.n_sent;
        g->several |= w->own.n_sent > 1;
        g->hash += cpl_window_hash(w->rank, w->own.signature);
    }
}

static bool is_heavier(const struct cpl_recurring *a, const struct cpl_recurring *b)
{
    int64_t x = a->times * a->n_messages, y = b->times * b->n_messages;
    return x != y ? x > y : a->hash < b->hash;
}

static int number_of(const struct cpl_recurring *found, int n, uint64_t hash)
{
    int e = 0;
    while (e < n && found[e].hash != hash)
        e++;
    return e;
}

/* Different groups that came often enough, the heaviest first. */
static int choose(struct all *all, int most, int64_t least_times, struct cpl_recurring *found)
{
    struct cpl_recurring *of = room((size_t)all->n_groups, sizeof *of);
    int n = 0, n_found = 0;
    for (int g = 0; g < all->n_groups; g++) {
        int e = number_of(of, n, all->group[g].hash);
        if (!all->group[g].several)
            continue;
        if (e == n) {
            of[n] = all->group[g].exchange;
            of[n++].hash = all->group[g].hash;
        }
        of[e].times++;
    }
    while (n_found < most) {
        int best = -1;
        for (int e = 0; e < n; e++)
            if (of[e].times >= least_times && number_of(found, n_found, of[e].hash) == n_found &&
                (best < 0 || is_heavier(&of[e], &of[best])))
                best = e;
        if (best < 0)
            break;
        found[n_found++] = of[best];
    }
    free(of);
    return n_found;
}

int recognise_plainly(int n_ranks, const int64_t *first, const struct cpl_note *notes, int most,
                      int64_t least_times, struct cpl_recurring *found, int32_t *exchange)
{
    size_t n_notes = (size_t)first[n_ranks];
    struct all all = {.window = room(n_notes, sizeof *all.window),
                      .sent = room(n_notes, sizeof *all.sent),
                      .received = room(n_notes, sizeof *all.received),
                      .link = room(n_notes, sizeof *all.link),
                      .group = room(n_notes, sizeof *all.group)};
    for (int r = 0; r < n_ranks; r++)
        take_rank(&all, r, notes, first[r], first[r + 1] - first[r]);
    match(&all);
    spread_labels(&all);
    make_groups(&all);
    int n = choose(&all, most, least_times, found);
    memset(exchange, -1, n_notes * sizeof *exchange);
    for (int k = 0; k < all.n_windows; k++) {
        const struct window *w = &all.window[k];
        int e = w->group < 0 ? n : number_of(found, n, all.group[w->group].hash);
        if (e < n)
            exchange[w->note] = e;
    }
    free(all.window);
    free(all.sent);
    free(all.received);
    free(all.link);
    free(all.group);
    return n;
}
