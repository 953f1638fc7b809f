/* One rank's part in recognising (recognise_local.h). */
#include "shim/plan/recognise_local.h"

#include "planner/base/hash.h"

#include <stdlib.h>
#include <string.h>

/* A bit of a label: all ends of the messages of all windows with the label are among the notes. The
 * lowest label of linked windows lacks it when one of them does. */
#define COMPLETE (UINT64_C(1) << 63)

struct cpl_labels {
    uint64_t name, label;
};

/* A window that sends in a complete exchange. */
struct cpl_sending {
    uint64_t key;       /* its label, then the hash of its exchange */
    int32_t window, at; /* at: what was said of it, among the keys */
};

/* What all ranks know of windows with the same label that are one exchange: words of a value.
 * FIRST: the first rank that sends, and the tag of its first message. */
enum { HASH, MESSAGES, SEVERAL, FIRST, GROUP_WORDS };

/* The heaviest exchanges, as the words of a value. */
#define LIST_BYTES (CPL_MOST_RECURRING * sizeof(struct cpl_recurring))
#define LIST_WORDS (LIST_BYTES / sizeof(uint64_t))

/* --- windows */

static bool make_room(struct cpl_windows *windows, size_t n)
{
    *windows = (struct cpl_windows){.n = 0};
    windows->window = calloc(n, sizeof *windows->window);
    windows->sent = calloc(n, sizeof *windows->sent);
    windows->received = calloc(n, sizeof *windows->received);
    return windows->window && windows->sent && windows->received;
}

void cpl_windows_free(struct cpl_windows *windows)
{
    free(windows->window);
    free(windows->sent);
    free(windows->received);
    *windows = (struct cpl_windows){.n = 0};
}

static void note_end(struct cpl_windows *windows, const struct cpl_note *note, int32_t window)
{
    const struct cpl_message_end end = {note->peer, note->tag, window};
    struct cpl_window *w = &windows->window[window];
    if (note->kind != CPL_NOTE_SENT) {
        windows->received[windows->n_received++] = end;
        return;
    }
    if (w->n_sent++ == 0)
        w->tag = note->tag;
    windows->sent[windows->n_sent++] = end;
}

bool cpl_windows_cut(struct cpl_windows *windows, const struct cpl_note *notes, int64_t n)
{
    int32_t window = -1;
    bool blocking = false;
    if (!make_room(windows, (size_t)n + 1))
        return false;
    for (int64_t k = 0; k < n; k++) {
        const struct cpl_note *note = &notes[k];
        if (note->kind == CPL_NOTE_COLLECTIVE || note->kind == CPL_NOTE_WINDOW_END) {
            if (note->kind == CPL_NOTE_WINDOW_END && window >= 0 && !blocking) {
                windows->window[window].signature = note->peer;
                windows->window[window].end_note = k;
            }
            window = -1;
            continue;
        }
        if (window < 0 || (blocking && note->kind != CPL_NOTE_RECEIVED)) {
            window = windows->n++;
            windows->window[window] = (struct cpl_window){.signature = -1, .end_note = -1};
            blocking = note->kind == CPL_NOTE_RECEIVED;
        }
        note_end(windows, note, window);
    }
    return true;
}

uint64_t cpl_window_hash(int32_t rank, int32_t signature)
{
    return cpl_hash_word(CPL_HASH_START,
                         (uint64_t)(uint32_t)rank << 32 | (uint64_t)(uint32_t)signature);
}

/* --- records */

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

bool cpl_records_make(struct cpl_records *records, int64_t n, size_t bytes)
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

void cpl_records_address(struct cpl_records *records, int64_t k, int to)
{
    if (records->n == 0 || records->to[records->n - 1] != to)
        records->to[records->n++] = to;
    records->first[records->n] = k + 1;
}

/* The name of a window that is not known to miss an end. */
static uint64_t name_of(int32_t rank, int32_t window)
{
    return cpl_window_hash(rank, window) | COMPLETE;
}

bool cpl_local_open(struct cpl_local_recognising *r, int32_t rank, const struct cpl_note *notes,
                    int64_t n)
{
    *r = (struct cpl_local_recognising){.rank = rank};
    if (!cpl_windows_cut(&r->windows, notes, n))
        return false;
    size_t n_windows = (size_t)r->windows.n + 1;
    r->labels = calloc(n_windows, sizeof *r->labels);
    r->sending = calloc(n_windows, sizeof *r->sending);
    r->keys.key = calloc(2 * n_windows, sizeof *r->keys.key);
    r->keys.value = calloc(GROUP_WORDS * n_windows + LIST_WORDS, sizeof *r->keys.value);
    if (!r->labels || !r->sending || !r->keys.key || !r->keys.value)
        return false;
    for (int32_t w = 0; w < r->windows.n; w++)
        r->labels[w].name = name_of(rank, w);
    return true;
}

void cpl_local_close(struct cpl_local_recognising *r)
{
    cpl_windows_free(&r->windows);
    free(r->labels);
    free(r->link);
    free(r->sending);
    free(r->keys.key);
    free(r->keys.value);
    *r = (struct cpl_local_recognising){.n_links = 0};
}

/* --- step 1: links */

static int compare_messages(const struct cpl_message_end *a, const struct cpl_message_end *b)
{
    int order = compare(a->peer, b->peer);
    return order ? order : compare(a->tag, b->tag);
}

/* Windows ascend as the messages do. */
static int by_message(const void *a, const void *b)
{
    const struct cpl_message_end *x = a, *y = b;
    int order = compare_messages(x, y);
    return order ? order : compare(x->window, y->window);
}

static void sort_ends(struct cpl_message_end *ends, int64_t n)
{
    qsort(ends, (size_t)n, sizeof *ends, by_message);
}

bool cpl_local_tell(struct cpl_local_recognising *r, struct cpl_records *told)
{
    int64_t n = r->windows.n_sent;
    const struct cpl_message_end *sent = r->windows.sent;
    if (!cpl_records_make(told, n, sizeof *sent))
        return false;
    struct cpl_message_end *record = told->records;
    sort_ends(r->windows.sent, n);
    for (int64_t k = 0; k < n; k++) {
        record[k] = (struct cpl_message_end){r->rank, sent[k].tag, sent[k].window};
        cpl_records_address(told, k, sent[k].peer);
    }
    return true;
}

static void miss_end(struct cpl_local_recognising *r, int32_t window)
{
    r->labels[window].name &= ~COMPLETE;
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
static void match(struct cpl_local_recognising *r, const struct cpl_message_end *told,
                  int64_t n_told, struct cpl_answer *answer)
{
    const struct cpl_message_end *received = r->windows.received;
    int64_t i = n_told - 1, j = r->windows.n_received - 1, n = 0;
    while (i >= 0 || j >= 0) {
        int order = i < 0 ? -1 : j < 0 ? 1 : compare_messages(&told[i], &received[j]);
        if (order < 0) {
            miss_end(r, received[j--].window);
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

bool cpl_local_answer(struct cpl_local_recognising *r, struct cpl_message_end *came, int64_t n,
                      struct cpl_records *answers)
{
    r->room = r->windows.n_sent + r->windows.n_received;
    r->link = calloc((size_t)r->room + 1, sizeof *r->link);
    if (!r->link || !cpl_records_make(answers, n, sizeof(struct cpl_answer)))
        return false;
    struct cpl_answer *answer = answers->records;
    sort_ends(r->windows.received, r->windows.n_received);
    sort_ends(came, n);
    match(r, came, n, answer);
    qsort(answer, (size_t)n, sizeof *answer, by_rank);
    int64_t n_answers = drop_equal(answer, n);
    for (int64_t k = 0; k < n_answers; k++) {
        cpl_records_address(answers, k, answer[k].from);
        answer[k].from = r->rank;
    }
    return true;
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
            miss_end(r, came[k].window);
        else
            add_link(r, came[k].window, came[k].from, came[k].linked);
    }
    qsort(r->link, (size_t)r->n_links, sizeof *r->link, by_peer);
    for (int64_t k = 0; k < r->n_links; k++)
        if (n_left == 0 || by_peer(&r->link[k], &r->link[n_left - 1]) != 0)
            r->link[n_left++] = r->link[k];
    r->n_links = n_left;
    for (int32_t w = 0; w < r->windows.n; w++)
        r->labels[w].label = r->labels[w].name;
    return true;
}

/* --- step 2: labels */

static int32_t own_window(const struct cpl_local_recognising *r, const struct cpl_link *link)
{
    return r->rank <= link->peer ? link->low : link->high;
}

void cpl_local_names(const struct cpl_local_recognising *r, uint64_t *labels)
{
    for (int64_t k = 0; k < r->n_links; k++) {
        const struct cpl_link *link = &r->link[k];
        labels[k] = name_of(link->peer, r->rank <= link->peer ? link->high : link->low);
    }
}

void cpl_local_labels(const struct cpl_local_recognising *r, uint64_t *labels)
{
    for (int64_t k = 0; k < r->n_links; k++)
        labels[k] = r->labels[own_window(r, &r->link[k])].label;
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
    int32_t n = r->windows.n;
    uint64_t *key = r->keys.key, *lowest = r->keys.value;
    bool differ = false;
    for (int32_t w = 0; w < n; w++) {
        key[w] = r->labels[w].name;
        key[n + w] = lowest[w] = r->labels[w].label;
    }
    for (int64_t k = 0; k < r->n_links; k++) {
        const struct cpl_link *link = &r->link[k];
        int32_t w = own_window(r, link);
        uint64_t label = link->peer == r->rank ? r->labels[link->high].label : labels[k];
        differ |= label != r->labels[w].label;
        lowest[w] = lower_of(lowest[w], label);
    }
    memcpy(lowest + n, lowest, (size_t)n * sizeof *lowest);
    r->keys.n = 2 * (int64_t)n;
    r->keys.words = 1;
    r->keys.join = join_lowest;
    return differ;
}

void cpl_local_relabel(struct cpl_local_recognising *r)
{
    int32_t n = r->windows.n;
    for (int32_t w = 0; w < n; w++)
        r->labels[w].label = lower_of(r->keys.value[w], r->keys.value[n + w]);
}

/* --- step 3: exchanges */

static int by_key(const void *a, const void *b)
{
    const struct cpl_sending *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return compare(x->window, y->window);
}

static void sort_sending(struct cpl_local_recognising *r)
{
    qsort(r->sending, (size_t)r->n_sending, sizeof *r->sending, by_key);
}

static void join_groups(uint64_t *into, const uint64_t *value)
{
    into[HASH] += value[HASH];
    into[MESSAGES] += value[MESSAGES];
    into[SEVERAL] |= value[SEVERAL];
    into[FIRST] = lower_of(into[FIRST], value[FIRST]);
}

/* Where a rank has several windows with a label, its second ones are another exchange. */
void cpl_local_group(struct cpl_local_recognising *r)
{
    uint64_t ordinal = 0;
    r->n_sending = 0;
    for (int32_t w = 0; w < r->windows.n; w++) {
        const struct cpl_window *window = &r->windows.window[w];
        if (window->signature >= 0 && window->n_sent > 0 && r->labels[w].label & COMPLETE)
            r->sending[r->n_sending++] = (struct cpl_sending){r->labels[w].label, w, 0};
    }
    sort_sending(r);
    for (int32_t k = 0; k < r->n_sending; k++) {
        struct cpl_sending *s = &r->sending[k];
        const struct cpl_window *window = &r->windows.window[s->window];
        uint64_t *value = &r->keys.value[(size_t)k * GROUP_WORDS];
        ordinal = k > 0 && s->key == s[-1].key ? ordinal + 1 : 0;
        r->keys.key[k] = cpl_hash_word(s->key, ordinal);
        value[HASH] = cpl_window_hash(r->rank, window->signature);
        value[MESSAGES] = (uint64_t)window->n_sent;
        value[SEVERAL] = window->n_sent > 1;
        value[FIRST] = (uint64_t)(uint32_t)r->rank << 32 | (uint32_t)window->tag;
    }
    r->keys.n = r->n_sending;
    r->keys.words = GROUP_WORDS;
    r->keys.join = join_groups;
}

static bool is_heavier(const struct cpl_recurring *a, const struct cpl_recurring *b)
{
    int64_t x = a->times * a->n_messages, y = b->times * b->n_messages;
    return x != y ? x > y : a->hash < b->hash;
}

/* Of two lists of the heaviest, in order, that of both; none is in both. */
static void join_lists(uint64_t *into, const uint64_t *value)
{
    struct cpl_recurring a[CPL_MOST_RECURRING], b[CPL_MOST_RECURRING], both[CPL_MOST_RECURRING];
    memcpy(a, into, sizeof a);
    memcpy(b, value, sizeof b);
    for (int i = 0, j = 0; i + j < CPL_MOST_RECURRING;) {
        bool first = !is_heavier(&b[j], &a[i]);
        both[i + j] = first ? a[i] : b[j];
        i += first;
        j += !first;
    }
    memcpy(into, both, sizeof both);
}

/* The first rank that sends in an exchange counts it: it is the same one each time. */
void cpl_local_count(struct cpl_local_recognising *r, int64_t least_times)
{
    uint64_t list[LIST_WORDS] = {0};
    for (int32_t k = 0; k < r->n_sending; k++) {
        r->sending[k].at = k;
        r->sending[k].key = r->keys.value[(size_t)k * GROUP_WORDS + HASH];
    }
    sort_sending(r);
    for (int32_t k = 0, last; k < r->n_sending; k = last) {
        const struct cpl_sending *s = &r->sending[k];
        const uint64_t *group = &r->keys.value[(size_t)s->at * GROUP_WORDS];
        for (last = k + 1; last < r->n_sending && r->sending[last].key == s->key; last++)
            continue;
        if (group[FIRST] >> 32 != (uint32_t)r->rank || !group[SEVERAL] || last - k < least_times)
            continue;
        struct cpl_recurring one[CPL_MOST_RECURRING] = {
            {s->key, (int32_t)(uint32_t)group[FIRST], last - k, (int64_t)group[MESSAGES]}};
        uint64_t more[LIST_WORDS];
        memcpy(more, one, sizeof more);
        join_lists(list, more);
    }
    memcpy(r->keys.value, list, sizeof list);
    r->keys.key[0] = 0;
    r->keys.n = 1;
    r->keys.words = LIST_WORDS;
    r->keys.join = join_lists;
}

int cpl_local_found(const struct cpl_local_recognising *r, int most, struct cpl_recurring *found)
{
    struct cpl_recurring list[CPL_MOST_RECURRING];
    int n = 0;
    memcpy(list, r->keys.value, sizeof list);
    while (n < most && n < CPL_MOST_RECURRING && list[n].times > 0) {
        found[n] = list[n];
        n++;
    }
    return n;
}

static int number_of(const struct cpl_recurring *found, int n, uint64_t hash)
{
    for (int e = 0; e < n; e++)
        if (found[e].hash == hash)
            return e;
    return -1;
}

void cpl_local_label(const struct cpl_local_recognising *r, const struct cpl_recurring *found,
                     int n, int64_t n_notes, int32_t *exchange)
{
    for (int64_t k = 0; k < n_notes; k++)
        exchange[k] = -1;
    for (int32_t k = 0; k < r->n_sending; k++) {
        const struct cpl_sending *s = &r->sending[k];
        exchange[r->windows.window[s->window].end_note] = number_of(found, n, s->key);
    }
}
