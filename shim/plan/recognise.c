/* Recognising exchanges (recognise.h), by joins: every rank has records, a key with a value, and
 * gets for each of its keys what the values of all ranks' records with that key come to. A rank
 * that has failed goes through the same calls as the others until they learn of it.
 *
 * 1. Both ends of a message make a record with the same key. So their windows learn that they are
 *    linked, or that the other end is not among the notes.
 * 2. Linked windows get the same label. Each window has one of its own at first, its name. In every
 *    round a window takes over the lowest label among its neighbours'; then all windows of a label
 *    take over the lowest that one of them has taken, and that of the window with that name. Labels
 *    are random numbers, so about half of them are left after each round.
 * 3. By labels what is known of exchanges is put together. The first rank that sends in one counts
 *    it; the heaviest of all ranks are chosen. */
#include "shim/plan/recognise.h"

#include "planner/base/hash.h"
#include "shim/meet/agree.h"
#include "shim/wait/collective.h"
#include "shim/wait/progress.h"

#include <stdlib.h>
#include <string.h>

#define MOST_BYTES (64 << 20)
#define TAG        2005 /* no other messages of the shim's communicators have it */

/* A bit of a label: all ends of the messages of all windows with the label are among the notes. The
 * lowest label of linked windows lacks it when one of them does. */
#define COMPLETE (UINT64_C(1) << 63)

/* Of a window: a link, which both ends have by the same key; or that it sends in a complete
 * exchange, by its label, then by the hash of its exchange. */
struct keyed {
    uint64_t key;
    int32_t window, at; /* at: what was said of it, among the records */
};

typedef void combine(uint64_t *into, const uint64_t *record);

struct recognising {
    MPI_Comm comm;
    int rank, n_ranks;
    bool failed; /* on this rank; the others do not know yet */
    struct cpl_windows windows;
    uint64_t *name, *label,
        *lowest; /* of each window; lowest: label of itself and its neighbours */
    int64_t n_links;
    struct keyed *link;
    int32_t n_sending;
    struct keyed *sending;
    int64_t n; /* records to be joined: each is a key, then a value of some words */
    uint64_t *records;
};

static int compare(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* --- windows */

void cpl_windows_free(struct cpl_windows *windows)
{
    free(windows->window);
    free(windows->end);
    *windows = (struct cpl_windows){.n = 0};
}

bool cpl_windows_cut(struct cpl_windows *windows, const struct cpl_note *notes, int64_t n)
{
    int32_t window = -1;
    bool blocking = false;
    const size_t room = (size_t)n + 1;
    *windows = (struct cpl_windows){.window = calloc(room, sizeof *windows->window),
                                    .end = calloc(room, sizeof *windows->end)};
    if (!windows->window || !windows->end)
        return false;
    for (int64_t k = 0; k < n; k++) {
        const struct cpl_note *note = &notes[k];
        const bool sent = note->kind == CPL_NOTE_SENT;
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
        windows->end[windows->n_ends++] =
            (struct cpl_message_end){note->peer, note->tag, window, sent};
        if (sent && windows->window[window].n_sent++ == 0)
            windows->window[window].tag = note->tag;
    }
    return true;
}

uint64_t cpl_window_hash(int32_t rank, int32_t signature)
{
    return cpl_hash_word(CPL_HASH_START,
                         (uint64_t)(uint32_t)rank << 32 | (uint64_t)(uint32_t)signature);
}

/* --- joining
 *
 * Records travel to their key's owner, a rank that follows from the key, by log2(ranks) stages of
 * doubling distance, and are joined on the way; the answers go back the same way. So no rank gets
 * all records of a key that many have. */

/* Records that this rank knows of: one for each key, keys ascending. */
struct table {
    struct recognising *of;
    size_t words; /* of a record */
    combine *join;
    int64_t n;
    uint64_t *records;
};

static uint64_t *record(const struct table *t, uint64_t *records, int64_t k)
{
    return records + (size_t)k * t->words;
}

static int by_key(const void *a, const void *b)
{
    return compare(*(const uint64_t *)a, *(const uint64_t *)b);
}

/* Adds n records, which are in the order of keys; keys may recur. */
static bool enter(struct table *t, uint64_t *more, int64_t n)
{
    const size_t bytes = t->words * sizeof *more, room = (size_t)(t->n + n + 1) * bytes;
    uint64_t *all = more && room <= MOST_BYTES ? malloc(room) : NULL;
    int64_t n_all = 0;
    if (!all)
        return false;
    for (int64_t i = 0, j = 0; i < t->n || j < n;) {
        uint64_t *mine = record(t, t->records, i), *theirs = record(t, more, j);
        bool first = j == n || (i < t->n && *mine <= *theirs);
        uint64_t *next = first ? mine : theirs, *last = record(t, all, n_all - 1);
        i += first;
        j += !first;
        if (n_all > 0 && *last == *next)
            t->join(last, next);
        else
            memcpy(record(t, all, n_all++), next, bytes);
    }
    free(t->records);
    t->records = all;
    t->n = n_all;
    return true;
}

/* Sends n records to the rank at a distance. Returns those that came from the one on the other
 * side, which the caller frees, and how many. */
static uint64_t *shift(struct table *t, int64_t distance, const uint64_t *records, int64_t n,
                       int64_t *n_came)
{
    const int n_ranks = t->of->n_ranks, size = (int)(t->words * sizeof *records);
    const int to = (int)((t->of->rank + distance + n_ranks) % n_ranks);
    const int from = (int)((t->of->rank - distance + n_ranks) % n_ranks);
    MPI_Request request, receive;
    MPI_Status status;
    int flag = 0, bytes = 0;
    PMPI_Isend(records, t->of->failed ? 0 : (int)n * size, MPI_BYTE, to, TAG, t->of->comm,
               &request);
    for (int n_idle = 1; !flag; n_idle++) {
        PMPI_Iprobe(from, TAG, t->of->comm, &flag, &status);
        if (!flag)
            cpl_progress_pause(n_idle);
    }
    PMPI_Get_count(&status, MPI_BYTE, &bytes);
    uint64_t *came = malloc((size_t)bytes + 1);
    t->of->failed |= !came;
    if (!came) /* it is cut off: its sender must not wait for ever (distributed_sparse.c) */
        PMPI_Recv(NULL, 0, MPI_BYTE, from, TAG, t->of->comm, MPI_STATUS_IGNORE);
    else if (PMPI_Irecv(came, bytes, MPI_BYTE, from, TAG, t->of->comm, &receive) != MPI_SUCCESS ||
             cpl_progress_wait(&receive, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        t->of->failed = true;
    cpl_progress_wait(&request, MPI_STATUS_IGNORE);
    *n_came = t->of->failed ? 0 : bytes / size;
    return came;
}

/* Whether a record leaves this rank in a stage: the lowest bit of how far the key's owner is from
 * here is the stage's. */
static bool leaves(const struct table *t, uint64_t key, int stage)
{
    const uint64_t n = (uint64_t)t->of->n_ranks, bits = (UINT64_C(2) << stage) - 1;
    return ((cpl_hash_mix(key) % n + n - (uint64_t)t->of->rank) % n & bits) == UINT64_C(1) << stage;
}

/* Copies the values of n records, in the order of keys, between them and the table. */
static void copy_values(struct table *t, uint64_t *records, int64_t n, bool to_table)
{
    const size_t bytes = (t->words - 1) * sizeof *records;
    for (int64_t k = 0, e = 0; k < n; k++) {
        uint64_t *other = record(t, records, k);
        while (e + 1 < t->n && *record(t, t->records, e) != *other)
            e++;
        uint64_t *known = record(t, t->records, e);
        memcpy((to_table ? known : other) + 1, (to_table ? other : known) + 1, bytes);
    }
}

/* A stage and those behind it: records leave towards their owners, and their values come back. */
static void pass(struct table *t, int stage)
{
    const int64_t distance = INT64_C(1) << stage;
    const size_t bytes = t->words * sizeof *t->records;
    int64_t n = 0, n_heard, n_came;
    if (distance >= t->of->n_ranks)
        return;
    uint64_t *leaving = malloc((size_t)(t->n + 1) * bytes);
    t->of->failed |= !leaving;
    for (int64_t k = 0; leaving && k < t->n; k++)
        if (leaves(t, *record(t, t->records, k), stage))
            memcpy(record(t, leaving, n++), record(t, t->records, k), bytes);
    uint64_t *heard = shift(t, distance, leaving, n, &n_heard);
    free(leaving);
    t->of->failed = t->of->failed || !enter(t, heard, n_heard);
    pass(t, stage + 1);
    if (!t->of->failed)
        copy_values(t, heard, n_heard, false);
    uint64_t *came = shift(t, -distance, heard, n_heard, &n_came);
    t->of->failed |= n_came != n;
    if (!t->of->failed)
        copy_values(t, came, n_came, true);
    free(came);
    free(heard);
}

/* Joins the records, of so many words. `how` is associative and commutative; no record is joined
 * twice. Collective. */
static void join(struct recognising *r, size_t words, combine *how)
{
    struct table t = {.of = r, .words = words, .join = how};
    const size_t bytes = t.words * sizeof *r->records, room = (size_t)(r->n + 1) * bytes;
    uint64_t *own = r->failed ? NULL : malloc(room);
    if (own && r->n > 0) {
        memcpy(own, r->records, (size_t)r->n * bytes);
        qsort(own, (size_t)r->n, bytes, by_key);
    }
    r->failed = r->failed || !enter(&t, own, r->n);
    pass(&t, 0);
    for (int64_t k = 0; k < r->n && !r->failed; k++) {
        uint64_t *mine = record(&t, r->records, k);
        memcpy(mine, bsearch(mine, t.records, (size_t)t.n, bytes, by_key), bytes);
    }
    free(own);
    free(t.records);
}

static uint64_t lower_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void join_lowest(uint64_t *into, const uint64_t *record)
{
    into[1] = lower_of(into[1], record[1]);
}

static void add(struct recognising *r, uint64_t key, uint64_t value)
{
    memcpy(r->records + 2 * r->n++, (uint64_t[]){key, value}, 2 * sizeof key);
}

/* --- step 1: links */

/* The words of an end's record behind its key: the names of both windows, added up, which tell the
 * link from others, and how many ends. */
enum { NAMES = 1, N_ENDS, END_RECORD };

static void join_ends(uint64_t *into, const uint64_t *record)
{
    into[NAMES] += record[NAMES];
    into[N_ENDS] += record[N_ENDS];
}

static uint64_t ends_of(const struct cpl_message_end *end)
{
    return (uint64_t)(uint32_t)end->peer << 32 | (uint32_t)end->tag;
}

/* Windows ascend as the messages do. */
static int by_message(const void *a, const void *b)
{
    const struct cpl_message_end *x = a, *y = b;
    int order = y->sent - x->sent;
    order = order ? order : compare(ends_of(x), ends_of(y));
    return order ? order : x->window - y->window;
}

/* Makes a record of each end. All messages sent have been received, so the last one sent with a
 * source, destination and tag is the last one received, and so on backwards. */
static void list_ends(struct recognising *r)
{
    const int64_t n = r->windows.n_ends;
    uint64_t number = 0;
    if (n > 0)
        qsort(r->windows.end, (size_t)n, sizeof *r->windows.end, by_message);
    for (int64_t k = n - 1; k >= 0; k--) {
        const struct cpl_message_end *end = &r->windows.end[k];
        int32_t from = end->sent ? r->rank : end->peer, to = end->sent ? end->peer : r->rank;
        uint64_t *at = r->records + k * END_RECORD;
        bool again = k + 1 < n && ends_of(end) == ends_of(&end[1]) && end->sent == end[1].sent;
        number = again ? number + 1 : 0;
        at[0] =
            cpl_hash_word(cpl_window_hash(from, to), (uint64_t)(uint32_t)end->tag << 32 | number);
        at[NAMES] = r->name[end->window];
        at[N_ENDS] = 1;
    }
    r->n = n;
}

static int by_window(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;
    return x->key != y->key ? compare(x->key, y->key) : x->window - y->window;
}

static void sort(struct keyed *keyed, int64_t n)
{
    if (n > 0)
        qsort(keyed, (size_t)n, sizeof *keyed, by_window);
}

static void find_links(struct recognising *r)
{
    int64_t n_left = 0;
    list_ends(r);
    join(r, END_RECORD, join_ends);
    for (int64_t k = 0; k < r->n; k++) {
        const uint64_t *known = r->records + k * END_RECORD;
        int32_t window = r->windows.end[k].window;
        if (known[N_ENDS] == 2)
            r->link[r->n_links++] = (struct keyed){known[NAMES], window, 0};
        else /* the window misses the other end */
            r->name[window] &= ~COMPLETE;
    }
    sort(r->link, r->n_links);
    for (int64_t k = 0; k < r->n_links; k++)
        if (n_left == 0 || by_window(&r->link[k], &r->link[n_left - 1]) != 0)
            r->link[n_left++] = r->link[k];
    r->n_links = n_left;
}

/* --- step 2: labels */

/* Finds the lowest labels of the windows' neighbours. Returns whether some differ. */
static bool look_at_neighbours(struct recognising *r)
{
    bool differ = false;
    r->n = 0;
    for (int64_t k = 0; k < r->n_links; k++)
        add(r, r->link[k].key, r->label[r->link[k].window]);
    join(r, 2, join_lowest);
    for (int32_t w = 0; w < r->windows.n; w++)
        r->lowest[w] = r->label[w];
    for (int64_t k = 0; k < r->n_links; k++) {
        int32_t w = r->link[k].window;
        r->lowest[w] = lower_of(r->lowest[w], r->records[2 * k + 1]);
        differ |= r->lowest[w] != r->label[w];
    }
    return differ;
}

static void relabel(struct recognising *r)
{
    const int32_t n = r->windows.n;
    r->n = 0;
    for (int32_t w = 0; w < n; w++) {
        add(r, r->name[w], r->lowest[w]);
        add(r, r->label[w], r->lowest[w]);
    }
    join(r, 2, join_lowest);
    for (int32_t w = 0; w < n; w++)
        r->label[w] = lower_of(r->records[4 * w + 1], r->records[4 * w + 3]);
}

/* Whether labels differ anywhere; false on all ranks, too, when one has failed. */
static bool any_differ(struct recognising *r, bool differ)
{
    int64_t mine[2] = {r->failed, differ}, all[2] = {1, 0};
    if (cpl_collective_Allreduce(mine, all, 2, MPI_INT64_T, MPI_MAX, r->comm) != MPI_SUCCESS)
        all[0] = 1;
    r->failed |= all[0] != 0;
    return !r->failed && all[1];
}

/* --- step 3: exchanges */

/* The words of a record behind its key, of windows with the same label that are one exchange.
 * FIRST: the first rank that sends, and the tag of its first message. */
enum { HASH = 1, MESSAGES, SEVERAL, FIRST, GROUP_RECORD };

/* The heaviest exchanges, as the words of a record. */
#define LIST_RECORD (1 + CPL_MOST_RECURRING * sizeof(struct cpl_recurring) / sizeof(uint64_t))

static void join_groups(uint64_t *into, const uint64_t *record)
{
    into[HASH] += record[HASH];
    into[MESSAGES] += record[MESSAGES];
    into[SEVERAL] |= record[SEVERAL];
    into[FIRST] = lower_of(into[FIRST], record[FIRST]);
}

/* Where a rank has several windows with a label, its second ones are another exchange. */
static void group(struct recognising *r)
{
    uint64_t ordinal = 0;
    for (int32_t w = 0; w < r->windows.n; w++) {
        const struct cpl_window *window = &r->windows.window[w];
        if (window->signature >= 0 && window->n_sent > 0 && r->label[w] & COMPLETE)
            r->sending[r->n_sending++] = (struct keyed){r->label[w], w, 0};
    }
    sort(r->sending, r->n_sending);
    for (int32_t k = 0; k < r->n_sending; k++) {
        const struct keyed *s = &r->sending[k];
        const struct cpl_window *window = &r->windows.window[s->window];
        uint64_t *at = r->records + (size_t)k * GROUP_RECORD;
        ordinal = k > 0 && s->key == s[-1].key ? ordinal + 1 : 0;
        at[0] = cpl_hash_word(s->key, ordinal);
        at[HASH] = cpl_window_hash(r->rank, window->signature);
        at[MESSAGES] = (uint64_t)window->n_sent;
        at[SEVERAL] = window->n_sent > 1;
        at[FIRST] = (uint64_t)(uint32_t)r->rank << 32 | (uint32_t)window->tag;
    }
    r->n = r->n_sending;
    join(r, GROUP_RECORD, join_groups);
}

/* Of two lists of the heaviest, in order, that of both; none is in both. */
static void join_lists(uint64_t *into, const uint64_t *record)
{
    struct cpl_recurring a[CPL_MOST_RECURRING], b[CPL_MOST_RECURRING], both[CPL_MOST_RECURRING];
    memcpy(a, into + 1, sizeof a);
    memcpy(b, record + 1, sizeof b);
    for (int i = 0, j = 0; i + j < CPL_MOST_RECURRING;) {
        int64_t x = a[i].times * a[i].n_messages, y = b[j].times * b[j].n_messages;
        bool first = x != y ? x > y : a[i].hash <= b[j].hash;
        both[i + j] = first ? a[i] : b[j];
        i += first;
        j += !first;
    }
    memcpy(into + 1, both, sizeof both);
}

/* Chooses the heaviest. The first rank that sends in an exchange counts it: it is the same one each
 * time. */
static void choose(struct recognising *r, int64_t least_times)
{
    uint64_t list[LIST_RECORD] = {0};
    for (int32_t k = 0; k < r->n_sending; k++) {
        r->sending[k].at = k;
        r->sending[k].key = r->records[(size_t)k * GROUP_RECORD + HASH];
    }
    sort(r->sending, r->n_sending);
    for (int32_t k = 0, last; k < r->n_sending; k = last) {
        const struct keyed *s = &r->sending[k];
        const uint64_t *at = r->records + (size_t)s->at * GROUP_RECORD;
        for (last = k + 1; last < r->n_sending && r->sending[last].key == s->key; last++)
            continue;
        if (at[FIRST] >> 32 != (uint32_t)r->rank || !at[SEVERAL] || last - k < least_times)
            continue;
        struct cpl_recurring one[CPL_MOST_RECURRING] = {
            {s->key, (int32_t)(uint32_t)at[FIRST], last - k, (int64_t)at[MESSAGES]}};
        uint64_t more[LIST_RECORD];
        memcpy(more + 1, one, sizeof one);
        join_lists(list, more);
    }
    memcpy(r->records, list, sizeof list);
    r->n = 1;
    join(r, LIST_RECORD, join_lists);
}

/* Tells the exchanges, and those of the windows. Returns how many there are. */
static int tell(const struct recognising *r, int64_t n_notes, struct cpl_recurring *found,
                int32_t *exchange)
{
    int n = 0;
    memcpy(found, r->records + 1, CPL_MOST_RECURRING * sizeof *found);
    while (n < CPL_MOST_RECURRING && found[n].times > 0)
        n++;
    for (int64_t k = 0; k < n_notes; k++)
        exchange[k] = -1;
    for (int32_t k = 0; k < r->n_sending; k++)
        for (int e = 0; e < n; e++)
            if (found[e].hash == r->sending[k].key)
                exchange[r->windows.window[r->sending[k].window].end_note] = e;
    return n;
}

static void end(struct recognising *r)
{
    cpl_windows_free(&r->windows);
    free(r->name);
    free(r->link);
    free(r->sending);
    free(r->records);
    *r = (struct recognising){
        .comm = r->comm, .rank = r->rank, .n_ranks = r->n_ranks, .failed = true};
}

/* Without memory the rank goes on without notes, and has failed. */
static void begin(struct recognising *r, const struct cpl_note *notes, int64_t n)
{
    const bool cut = cpl_windows_cut(&r->windows, notes, n);
    const size_t n_windows = (size_t)r->windows.n + 1, n_ends = (size_t)n + 1;
    r->name = calloc(3 * n_windows, sizeof *r->name);
    r->link = calloc(n_ends, sizeof *r->link);
    r->sending = calloc(n_windows, sizeof *r->sending);
    r->records = calloc(GROUP_RECORD * n_ends + LIST_RECORD, sizeof *r->records);
    if (!cut || !r->name || !r->link || !r->sending || !r->records) {
        end(r);
        return;
    }
    r->label = r->name + n_windows;
    r->lowest = r->label + n_windows;
    for (int32_t w = 0; w < r->windows.n; w++)
        r->name[w] = cpl_window_hash(r->rank, w) | COMPLETE;
}

int cpl_recognise(MPI_Comm comm, const struct cpl_note *notes, int64_t n, int64_t least_times,
                  struct cpl_recurring *found, int32_t *exchange)
{
    struct recognising r = {.comm = comm};
    int n_found = -1;
    PMPI_Comm_rank(comm, &r.rank);
    PMPI_Comm_size(comm, &r.n_ranks);
    begin(&r, notes, n);
    r.failed |= !exchange;
    find_links(&r);
    for (int32_t w = 0; w < r.windows.n; w++)
        r.label[w] = r.name[w];
    while (any_differ(&r, look_at_neighbours(&r)))
        relabel(&r);
    if (!r.failed) {
        group(&r);
        choose(&r, least_times);
        if (cpl_agree_all(comm, !r.failed))
            n_found = tell(&r, n, found, exchange);
    }
    end(&r);
    return n_found;
}
