/* One rank's part in recognising (recognise_local.h). */
#include "shim/plan/recognise_local.h"

#include "planner/base/hash.h"

#include <stdlib.h>
#include <string.h>

#define NONE UINT64_MAX

/* What all ranks know of windows with the same label, or of those of them that are one exchange:
 * the words of a value. */
enum { HASH, MESSAGES, ROOT, FLAGS, FIRST, GROUP_WORDS };
enum { INCOMPLETE = 1, SEVERAL = 2 };

/* Of equal exchanges. */
enum { TIMES, COUNT_ROOT, ORDINAL, TAG, COUNT_WORDS };

struct cpl_local_window {
    uint64_t label;
    uint64_t lowest; /* label among its neighbours'; NONE: no other one */
    int32_t ordinal; /* among the rank's windows with that label which send; -1: it sends nothing
                        that recurs */
    bool incomplete; /* the other end of some message is not among the notes */
    bool counts;     /* this rank counts its exchange for all */
    uint64_t group[GROUP_WORDS];
    int64_t times;
    int32_t tag;
};

static int compare(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

void cpl_records_free(struct cpl_records *records)
{
    free(records->to);
    free(records->first);
    free(records->records);
    *records = (struct cpl_records){.n = 0};
}

static bool make_records(struct cpl_records *records, int64_t n, size_t bytes)
{
    records->n = 0;
    records->to = calloc((size_t)n + 1, sizeof *records->to);
    records->first = calloc((size_t)n + 2, sizeof *records->first);
    records->records = calloc((size_t)n + 1, bytes);
    if (records->to && records->first && records->records)
        return true;
    cpl_records_free(records);
    return false;
}

/* Record number k is for this rank; ranks ascend. */
static void address(struct cpl_records *records, int64_t k, int to)
{
    if (records->n == 0 || records->to[records->n - 1] != to)
        records->to[records->n++] = to;
    records->first[records->n] = k + 1;
}

bool cpl_local_open(struct cpl_local_recognising *r, int32_t rank, const struct cpl_note *notes,
                    int64_t n)
{
    *r = (struct cpl_local_recognising){.rank = rank};
    if (!cpl_windows_init(&r->windows, n))
        return false;
    cpl_windows_cut(&r->windows, notes, n);
    size_t n_windows = (size_t)r->windows.n + 1;
    r->more = calloc(n_windows, sizeof *r->more);
    r->keys.key = calloc(2 * n_windows, sizeof *r->keys.key);
    r->keys.value = calloc(2 * n_windows, GROUP_WORDS * sizeof *r->keys.value);
    if (!r->more || !r->keys.key || !r->keys.value)
        return false;
    for (int32_t w = 0; w < r->windows.n; w++)
        r->more[w].label =
            cpl_hash_word(CPL_HASH_START, (uint64_t)(uint32_t)rank << 32 | (uint32_t)w);
    return true;
}

void cpl_local_close(struct cpl_local_recognising *r)
{
    cpl_windows_free(&r->windows);
    free(r->more);
    free(r->link);
    free(r->keys.key);
    free(r->keys.value);
    *r = (struct cpl_local_recognising){.n_links = 0};
}

/* --- step 1: links */

/* A message's end and its number in the order of notes, or of coming. */
struct numbered {
    int32_t peer, tag, window;
    int64_t number;
};

static int compare_messages(const struct numbered *a, const struct numbered *b)
{
    int order = compare(a->peer, b->peer);
    return order ? order : compare(a->tag, b->tag);
}

static int by_message(const void *a, const void *b)
{
    const struct numbered *x = a, *y = b;
    int order = compare_messages(x, y);
    return order ? order : compare(x->number, y->number);
}

/* Sorts ends by peer, tag, number; NULL: no memory. */
static struct numbered *sort_ends(const struct cpl_message_end *ends, int64_t n)
{
    struct numbered *sorted = calloc((size_t)n + 1, sizeof *sorted);
    for (int64_t k = 0; k < n && sorted; k++)
        sorted[k] = (struct numbered){ends[k].peer, ends[k].tag, ends[k].window, k};
    if (sorted)
        qsort(sorted, (size_t)n, sizeof *sorted, by_message);
    return sorted;
}

bool cpl_local_tell(struct cpl_local_recognising *r, struct cpl_records *told)
{
    int64_t n = r->windows.n_sent;
    struct numbered *sent = sort_ends(r->windows.sent, n);
    bool made = sent && make_records(told, n, sizeof(struct cpl_told_message));
    struct cpl_told_message *record = made ? told->records : NULL;
    for (int64_t k = 0; k < n && made; k++) {
        record[k] = (struct cpl_told_message){r->rank, sent[k].tag, sent[k].window};
        address(told, k, sent[k].peer);
    }
    free(sent);
    return made;
}

static void add_link(struct cpl_local_recognising *r, int32_t own, int32_t peer, int32_t theirs)
{
    bool lower = r->rank <= peer;
    r->link[r->n_links++] = (struct cpl_link){peer, lower ? own : theirs, lower ? theirs : own};
}

/* The answer's rank is that for which it is meant, until they are sorted. */
static int by_rank(const void *a, const void *b)
{
    const struct cpl_answer *x = a, *y = b;
    int order = compare(x->from, y->from);
    if (order == 0)
        order = compare(x->window, y->window);
    return order ? order : compare(x->linked, y->linked);
}

/* Each answer once. */
static int64_t drop_equal(struct cpl_answer *answer, int64_t n)
{
    int64_t n_left = 0;
    for (int64_t k = 0; k < n; k++)
        if (n_left == 0 || by_rank(&answer[k], &answer[n_left - 1]) != 0)
            answer[n_left++] = answer[k];
    return n_left;
}

/* All messages sent have been received, so the last message told of is the last one received, and
 * so on backwards, as far as both ends were noted. */
static void match(struct cpl_local_recognising *r, const struct numbered *told, int64_t n_told,
                  const struct numbered *received, struct cpl_answer *answer)
{
    int64_t i = n_told - 1, j = r->windows.n_received - 1, n = 0;
    while (i >= 0 || j >= 0) {
        int order = i < 0 ? -1 : j < 0 ? 1 : compare_messages(&told[i], &received[j]);
        if (order < 0) {
            r->more[received[j--].window].incomplete = true;
            continue;
        }
        answer[n] = (struct cpl_answer){told[i].peer, told[i].window, -1};
        if (order == 0) {
            add_link(r, received[j].window, told[i].peer, told[i].window);
            answer[n].linked = received[j--].window;
        }
        n++;
        i--;
    }
}

bool cpl_local_answer(struct cpl_local_recognising *r, const struct cpl_told_message *came,
                      int64_t n, struct cpl_records *answers)
{
    struct numbered *received = sort_ends(r->windows.received, r->windows.n_received);
    struct numbered *told = calloc((size_t)n + 1, sizeof *told);
    r->room = r->windows.n_sent + r->windows.n_received;
    r->link = calloc((size_t)r->room + 1, sizeof *r->link);
    bool made = received && told && r->link && make_records(answers, n, sizeof(struct cpl_answer));
    if (made) {
        struct cpl_answer *answer = answers->records;
        for (int64_t k = 0; k < n; k++)
            told[k] = (struct numbered){came[k].source, came[k].tag, came[k].window, k};
        qsort(told, (size_t)n, sizeof *told, by_message);
        match(r, told, n, received, answer);
        qsort(answer, (size_t)n, sizeof *answer, by_rank);
        int64_t n_answers = drop_equal(answer, n);
        for (int64_t k = 0; k < n_answers; k++) {
            address(answers, k, answer[k].from);
            answer[k].from = r->rank;
        }
    }
    free(received);
    free(told);
    return made;
}

static int by_peer(const void *a, const void *b)
{
    const struct cpl_link *x = a, *y = b;
    int order = compare(x->peer, y->peer);
    if (order == 0)
        order = compare(x->low, y->low);
    return order ? order : compare(x->high, y->high);
}

bool cpl_local_link(struct cpl_local_recognising *r, const struct cpl_answer *came, int64_t n)
{
    int64_t n_left = 0;
    for (int64_t k = 0; k < n; k++) {
        if (came[k].window < 0 || came[k].window >= r->windows.n || r->n_links == r->room)
            return false; /* more than this rank has told: something was lost */
        if (came[k].linked < 0)
            r->more[came[k].window].incomplete = true;
        else
            add_link(r, came[k].window, came[k].from, came[k].linked);
    }
    qsort(r->link, (size_t)r->n_links, sizeof *r->link, by_peer);
    for (int64_t k = 0; k < r->n_links; k++)
        if (n_left == 0 || by_peer(&r->link[k], &r->link[n_left - 1]) != 0)
            r->link[n_left++] = r->link[k];
    r->n_links = n_left;
    return true;
}

/* --- step 2: labels */

static int32_t own_window(const struct cpl_local_recognising *r, const struct cpl_link *link)
{
    return r->rank <= link->peer ? link->low : link->high;
}

void cpl_local_labels(const struct cpl_local_recognising *r, uint64_t *labels)
{
    for (int64_t k = 0; k < r->n_links; k++)
        labels[k] = r->more[own_window(r, &r->link[k])].label;
}

static uint64_t lower_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void join_lowest(uint64_t *into, const uint64_t *value)
{
    *into = lower_of(*into, *value);
}

bool cpl_local_compare(struct cpl_local_recognising *r, const uint64_t *labels)
{
    bool differ = false;
    for (int32_t w = 0; w < r->windows.n; w++)
        r->more[w].lowest = NONE;
    for (int64_t k = 0; k < r->n_links; k++) {
        const struct cpl_link *link = &r->link[k];
        struct cpl_local_window *w = &r->more[own_window(r, link)];
        uint64_t label = link->peer == r->rank ? r->more[link->high].label : labels[k];
        if (label == w->label)
            continue;
        differ = true;
        w->lowest = lower_of(w->lowest, label);
    }
    r->keys.n = r->windows.n;
    r->keys.words = 1;
    r->keys.join = join_lowest;
    for (int32_t w = 0; w < r->windows.n; w++) {
        r->keys.key[w] = r->more[w].label;
        r->keys.value[w] = r->more[w].lowest;
    }
    return differ;
}

void cpl_local_hook(struct cpl_local_recognising *r)
{
    int64_t n = r->windows.n;
    r->keys.n = 2 * n;
    for (int64_t w = 0; w < n; w++) {
        r->keys.value[w] = lower_of(r->keys.value[w], r->more[w].label);
        r->keys.key[n + w] = r->keys.value[w];
        r->keys.value[n + w] = NONE;
    }
}

void cpl_local_jump(struct cpl_local_recognising *r)
{
    for (int32_t w = 0; w < r->windows.n; w++)
        r->more[w].label = r->keys.value[r->windows.n + w];
}

/* --- step 3: exchanges */

static void join_groups(uint64_t *into, const uint64_t *value)
{
    into[HASH] += value[HASH];
    into[MESSAGES] += value[MESSAGES];
    into[ROOT] = lower_of(into[ROOT], value[ROOT]);
    into[FLAGS] |= value[FLAGS];
    into[FIRST] = lower_of(into[FIRST], value[FIRST]);
}

static bool sends(const struct cpl_window *window)
{
    return window->signature >= 0 && window->n_sent > 0;
}

struct labelled {
    uint64_t label;
    int32_t window;
};

static int by_label(const void *a, const void *b)
{
    const struct labelled *x = a, *y = b;
    if (x->label != y->label)
        return x->label < y->label ? -1 : 1;
    return compare(x->window, y->window);
}

/* Numbers the windows that send among those with their label. The memory is that of the values,
 * which are not needed now. */
static void number_windows(struct cpl_local_recognising *r)
{
    _Static_assert(sizeof(struct labelled) <= GROUP_WORDS * sizeof(uint64_t), "they fit");
    struct labelled *sorted = (struct labelled *)(void *)r->keys.value;
    int32_t n = 0;
    for (int32_t w = 0; w < r->windows.n; w++) {
        r->more[w].ordinal = -1;
        if (sends(&r->windows.window[w]))
            sorted[n++] = (struct labelled){r->more[w].label, w};
    }
    qsort(sorted, (size_t)n, sizeof *sorted, by_label);
    for (int32_t k = 0; k < n; k++) {
        bool same = k > 0 && sorted[k].label == sorted[k - 1].label;
        r->more[sorted[k].window].ordinal = same ? r->more[sorted[k - 1].window].ordinal + 1 : 0;
    }
}

/* The first n keys are of all windows with a label, the others of those that are an exchange: where
 * a rank has several of them, its second ones are another one. */
void cpl_local_group(struct cpl_local_recognising *r)
{
    int32_t n = r->windows.n;
    number_windows(r);
    r->keys.n = 2 * (int64_t)n;
    r->keys.words = GROUP_WORDS;
    r->keys.join = join_groups;
    memset(r->keys.value, 0, 2 * (size_t)n * GROUP_WORDS * sizeof *r->keys.value);
    for (int32_t w = 0; w < n; w++) {
        const struct cpl_window *window = &r->windows.window[w];
        uint64_t *whole = &r->keys.value[(size_t)w * GROUP_WORDS];
        uint64_t *part = &r->keys.value[(size_t)(n + w) * GROUP_WORDS];
        r->keys.key[w] = r->more[w].label;
        r->keys.key[n + w] = cpl_hash_word(r->more[w].label, (uint64_t)r->more[w].ordinal + 2);
        whole[ROOT] = (uint64_t)(uint32_t)r->rank << 32 | (uint32_t)w;
        whole[FLAGS] = r->more[w].incomplete ? INCOMPLETE : 0;
        whole[FIRST] = part[FIRST] = part[ROOT] = NONE;
        if (r->more[w].ordinal < 0)
            continue;
        part[HASH] = cpl_window_hash(r->rank, window->signature);
        part[MESSAGES] = (uint64_t)window->n_sent;
        part[FLAGS] = window->n_sent > 1 ? SEVERAL : 0;
        part[FIRST] = (uint64_t)(uint32_t)r->rank << 32 | (uint32_t)window->tag;
    }
}

/* Of the same exchange at two times what is said is that of the first one. */
static void join_counts(uint64_t *into, const uint64_t *value)
{
    uint64_t times = into[TIMES] + value[TIMES];
    if (value[COUNT_ROOT] < into[COUNT_ROOT] ||
        (value[COUNT_ROOT] == into[COUNT_ROOT] && value[ORDINAL] < into[ORDINAL]))
        memcpy(into, value, COUNT_WORDS * sizeof *into);
    into[TIMES] = times;
}

/* Each is counted by the first rank that sends in it. */
void cpl_local_count(struct cpl_local_recognising *r)
{
    int32_t n = r->windows.n;
    for (int32_t w = 0; w < n; w++) {
        const uint64_t *whole = &r->keys.value[(size_t)w * GROUP_WORDS];
        struct cpl_local_window *more = &r->more[w];
        memcpy(more->group, &r->keys.value[(size_t)(n + w) * GROUP_WORDS], sizeof more->group);
        more->group[ROOT] = whole[ROOT];
        if (whole[FLAGS] & INCOMPLETE)
            more->ordinal = -1;
        more->counts = more->ordinal >= 0 && more->group[FIRST] >> 32 == (uint32_t)r->rank;
    }
    r->keys.n = 0;
    r->keys.words = COUNT_WORDS;
    r->keys.join = join_counts;
    for (int32_t w = 0; w < n; w++) {
        const struct cpl_local_window *more = &r->more[w];
        if (!more->counts)
            continue;
        uint64_t *value = &r->keys.value[(size_t)r->keys.n * COUNT_WORDS];
        value[TIMES] = 1;
        value[COUNT_ROOT] = more->group[ROOT];
        value[ORDINAL] = (uint64_t)more->ordinal;
        value[TAG] = more->group[FIRST] & UINT32_MAX;
        r->keys.key[r->keys.n++] = more->group[HASH];
    }
}

void cpl_local_counted(struct cpl_local_recognising *r)
{
    const uint64_t *value = r->keys.value;
    for (int32_t w = 0; w < r->windows.n; w++) {
        if (!r->more[w].counts)
            continue;
        r->more[w].times = (int64_t)value[TIMES];
        r->more[w].tag = (int32_t)(uint32_t)value[TAG];
        value += COUNT_WORDS;
    }
}

static int number_of(const struct cpl_recurring *found, int n, uint64_t hash)
{
    for (int e = 0; e < n; e++)
        if (found[e].hash == hash)
            return e;
    return -1;
}

struct cpl_heaviest cpl_local_heaviest(const struct cpl_local_recognising *r,
                                       const struct cpl_recurring *found, int n,
                                       int64_t least_times)
{
    struct cpl_heaviest best = {.weight = 0};
    for (int32_t w = 0; w < r->windows.n; w++) {
        const struct cpl_local_window *more = &r->more[w];
        int64_t n_messages = (int64_t)more->group[MESSAGES], weight = more->times * n_messages;
        uint64_t hash = more->group[HASH];
        if (!more->counts || more->times < least_times || !(more->group[FLAGS] & SEVERAL) ||
            weight < best.weight || (weight == best.weight && hash >= best.exchange.hash) ||
            number_of(found, n, hash) >= 0)
            continue;
        best = (struct cpl_heaviest){weight, {hash, more->tag, more->times, n_messages}};
    }
    return best;
}

void cpl_local_label(const struct cpl_local_recognising *r, const struct cpl_recurring *found,
                     int n, int64_t n_notes, int32_t *exchange)
{
    for (int64_t k = 0; k < n_notes; k++)
        exchange[k] = -1;
    for (int32_t w = 0; w < r->windows.n; w++)
        if (r->more[w].ordinal >= 0)
            exchange[r->windows.window[w].end_note] = number_of(found, n, r->more[w].group[HASH]);
}
