/* Recognising exchanges (recognise.h). */
#include "shim/plan/recognise.h"

#include <stdlib.h>
#include <string.h>

/* One end of a message. */
struct end {
    int32_t source, dest, tag;
    int32_t window;
    int64_t number; /* in the order of notes */
};

struct window {
    struct cpl_window own;
    int32_t rank;
    int32_t parent;  /* another window of the same exchange; the root is its own parent */
    int32_t group;   /* group of a window that sends */
    bool incomplete; /* on a root: the other end of some message is not among the notes */
};

/* Linked windows, at most one of each rank: where a rank has several, its second ones form another
 * group. */
struct group {
    uint64_t hash;
    int64_t n_messages;
    int64_t times;
    int32_t root, next; /* next group of the same root; -1: none */
    int32_t number;     /* number among the exchanges found; -1: none */
    int32_t tag;
    int32_t last_rank; /* whose window was counted */
    bool several;      /* a rank sends several messages */
};

struct search {
    int n_ranks;
    const int64_t *first;
    const struct cpl_note *notes;
    int64_t n_notes;
    struct window *window;
    int32_t n_windows;
    struct end *sent, *received;
    int64_t n_sent, n_received;
    struct group *group;
    int32_t n_groups;
    int32_t *group_of; /* per root window: its first group; -1: none */
    struct group **sorted;
};

static bool allocate(struct search *s)
{
    size_t n = (size_t)s->n_notes + 1;
    s->window = calloc(n, sizeof *s->window);
    s->sent = calloc(n, sizeof *s->sent);
    s->received = calloc(n, sizeof *s->received);
    s->group = calloc(n, sizeof *s->group);
    s->group_of = calloc(n, sizeof *s->group_of);
    s->sorted = calloc(n, sizeof *s->sorted);
    return s->window && s->sent && s->received && s->group && s->group_of && s->sorted;
}

static void release(struct search *s)
{
    free(s->window);
    free(s->sent);
    free(s->received);
    free(s->group);
    free(s->group_of);
    free(s->sorted);
}

/* Adds a rank's windows to those of all. */
static void take_windows(struct search *s, int32_t rank, const struct cpl_windows *windows)
{
    int32_t before = s->n_windows;
    for (int32_t w = 0; w < windows->n; w++) {
        struct cpl_window own = windows->window[w];
        own.end_note += own.end_note >= 0 ? s->first[rank] : 0;
        s->window[s->n_windows] =
            (struct window){.own = own, .rank = rank, .parent = s->n_windows, .group = -1};
        s->n_windows++;
    }
    for (int64_t k = 0; k < windows->n_sent; k++) {
        const struct cpl_message_end *end = &windows->sent[k];
        s->sent[s->n_sent] =
            (struct end){rank, end->peer, end->tag, before + end->window, s->n_sent};
        s->n_sent++;
    }
    for (int64_t k = 0; k < windows->n_received; k++) {
        const struct cpl_message_end *end = &windows->received[k];
        s->received[s->n_received] =
            (struct end){end->peer, rank, end->tag, before + end->window, s->n_received};
        s->n_received++;
    }
}

static bool cut_into_windows(struct search *s)
{
    struct cpl_windows windows;
    int64_t most = 0;
    for (int32_t i = 0; i < s->n_ranks; i++)
        most = s->first[i + 1] - s->first[i] > most ? s->first[i + 1] - s->first[i] : most;
    bool ready = cpl_windows_init(&windows, most);
    for (int32_t i = 0; i < s->n_ranks && ready; i++) {
        cpl_windows_cut(&windows, &s->notes[s->first[i]], s->first[i + 1] - s->first[i]);
        take_windows(s, i, &windows);
    }
    cpl_windows_free(&windows);
    return ready;
}

static int32_t find_root(struct search *s, int32_t w)
{
    while (s->window[w].parent != w) {
        s->window[w].parent = s->window[s->window[w].parent].parent;
        w = s->window[w].parent;
    }
    return w;
}

static void link_windows(struct search *s, int32_t a, int32_t b)
{
    int32_t x = find_root(s, a), y = find_root(s, b);
    int32_t low = x < y ? x : y, high = x < y ? y : x;
    s->window[high].parent = low;
    s->window[low].incomplete |= s->window[high].incomplete;
}

static int compare(int64_t a, int64_t b)
{
    return a < b ? -1 : a > b;
}

/* Orders ends of messages so that those that can match follow each other. */
static int compare_messages(const struct end *a, const struct end *b)
{
    int order = compare(a->source, b->source);
    if (order == 0)
        order = compare(a->dest, b->dest);
    return order ? order : compare(a->tag, b->tag);
}

static int compare_ends(const void *a, const void *b)
{
    const struct end *x = a, *y = b;
    int order = compare_messages(x, y);
    return order ? order : compare(x->number, y->number);
}

static void miss(struct search *s, const struct end *end)
{
    s->window[find_root(s, end->window)].incomplete = true;
}

/* All messages sent have been received, so the last message sent is the last one received, and so
 * on backwards, as far as both ends were noted. */
static void match_ends(struct search *s)
{
    int64_t i = s->n_sent - 1, j = s->n_received - 1;
    qsort(s->sent, (size_t)s->n_sent, sizeof *s->sent, compare_ends);
    qsort(s->received, (size_t)s->n_received, sizeof *s->received, compare_ends);
    while (i >= 0 || j >= 0) {
        int order = i < 0 ? -1 : j < 0 ? 1 : compare_messages(&s->sent[i], &s->received[j]);
        if (order == 0)
            link_windows(s, s->sent[i--].window, s->received[j--].window);
        else if (order > 0)
            miss(s, &s->sent[i--]);
        else
            miss(s, &s->received[j--]);
    }
}

static struct group *add_group(struct search *s, int32_t root, struct group *before)
{
    int32_t number = s->n_groups++;
    s->group[number] = (struct group){.root = root, .next = -1, .number = -1, .last_rank = -1};
    if (before)
        before->next = number;
    else
        s->group_of[root] = number;
    return &s->group[number];
}

/* The group for a window of this rank: the root's first group that has no window of this rank
 * yet. */
static struct group *find_group(struct search *s, int32_t root, int32_t rank)
{
    struct group *group = NULL;
    for (int32_t k = s->group_of[root]; k >= 0; k = s->group[k].next) {
        group = &s->group[k];
        if (group->last_rank != rank)
            return group;
    }
    return add_group(s, root, group);
}

static void gather_groups(struct search *s)
{
    for (int32_t w = 0; w < s->n_windows; w++)
        s->group_of[w] = -1;
    for (int32_t w = 0; w < s->n_windows; w++) {
        struct window *window = &s->window[w];
        int32_t root = find_root(s, w);
        if (window->own.signature < 0 || window->own.n_sent == 0 || s->window[root].incomplete)
            continue;
        struct group *group = find_group(s, root, window->rank);
        if (group->n_messages == 0)
            group->tag = window->own.tag;
        group->last_rank = window->rank;
        group->n_messages += window->own.n_sent;
        group->several |= window->own.n_sent > 1;
        group->hash += cpl_window_hash(window->rank, window->own.signature);
        window->group = (int32_t)(group - s->group);
    }
}

static int compare_hashes(const void *a, const void *b)
{
    const struct group *x = *(struct group *const *)a, *y = *(struct group *const *)b;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    int order = compare(x->root, y->root);
    return order ? order : compare(x - y, 0); /* of the same windows: in the order of making */
}

static int compare_weights(const void *a, const void *b)
{
    const struct group *x = *(struct group *const *)a, *y = *(struct group *const *)b;
    int order = compare(y->times * y->n_messages, x->times * x->n_messages);
    return order ? order : compare_hashes(a, b);
}

/* Counts equal groups in the first of them. Returns the number of different groups, which then come
 * first in s->sorted; the `number` of the others leads to them (below -1). */
static int32_t count_equal(struct search *s)
{
    int32_t n = 0;
    for (int32_t k = 0; k < s->n_groups; k++)
        s->sorted[k] = &s->group[k];
    qsort(s->sorted, (size_t)s->n_groups, sizeof *s->sorted, compare_hashes);
    for (int32_t k = 0; k < s->n_groups; k++) {
        struct group *group = s->sorted[k];
        if (n == 0 || s->sorted[n - 1]->hash != group->hash)
            s->sorted[n++] = group;
        else
            group->number = -2 - (int32_t)(s->sorted[n - 1] - s->group);
        s->sorted[n - 1]->times++;
    }
    return n;
}

static int choose(struct search *s, int most, int64_t least_times, struct cpl_recurring *found)
{
    int32_t n_different = count_equal(s);
    int n = 0;
    qsort(s->sorted, (size_t)n_different, sizeof *s->sorted, compare_weights);
    for (int32_t k = 0; k < n_different && n < most; k++) {
        struct group *group = s->sorted[k];
        if (group->times < least_times || !group->several)
            continue;
        found[n] = (struct cpl_recurring){group->hash, group->tag, group->times, group->n_messages};
        group->number = n++;
    }
    return n;
}

static void label(const struct search *s, int32_t *exchange)
{
    for (int64_t k = 0; k < s->n_notes; k++)
        exchange[k] = -1;
    for (int32_t w = 0; w < s->n_windows; w++) {
        const struct window *window = &s->window[w];
        if (window->group < 0)
            continue;
        int32_t number = s->group[window->group].number;
        exchange[window->own.end_note] = number < -1 ? s->group[-2 - number].number : number;
    }
}

int cpl_recognise(int n_ranks, const int64_t *first, const struct cpl_note *notes, int most,
                  int64_t least_times, struct cpl_recurring *found, int32_t *exchange)
{
    struct search s = {
        .n_ranks = n_ranks, .first = first, .notes = notes, .n_notes = first[n_ranks]};
    int n = -1;
    if (allocate(&s) && cut_into_windows(&s)) {
        match_ends(&s);
        gather_groups(&s);
        n = choose(&s, most, least_times, found);
        label(&s, exchange);
    }
    release(&s);
    return n;
}
