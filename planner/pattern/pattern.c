/* Building patterns (pattern.h): two stable counting sorts, by destination, then by source, bring
 * the entries into rows whose destinations ascend; equal neighbours are then merged in place. Where
 * classes differ the entries are sorted by class before.
 *
 * Cost: O(entries + ranks) time; besides the pattern itself 8 bytes per entry and per rank while it
 * is being built. Sorting by class: O(entries log entries) and 16 bytes per entry more. */
#include "planner/pattern.h"

#include "planner/base/hash.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

/* What one pass over the entries finds out before anything is allocated. */
struct survey {
    int64_t n_self;
    int32_t least_class; /* of the entries that are messages; largest < least when there are none */
    int32_t largest_class;
};

/* An entry by its class. */
struct keyed {
    int32_t class_;
    int64_t entry;
};

/* The entries in the order in which they are to be sorted. */
struct sequence {
    const struct cpl_pattern_entry *entries;
    const struct keyed *by_class; /* NULL: as they come */
    int64_t n;
};

static bool is_rank(int32_t rank, int32_t n_ranks)
{
    return rank >= 0 && rank < n_ranks;
}

static enum cpl_status check_entry(const struct cpl_pattern_entry *entry, int64_t number,
                                   int32_t n_ranks, struct cpl_error *error)
{
    if (!is_rank(entry->src, n_ranks) || !is_rank(entry->dst, n_ranks))
        return cpl_fail(error, CPL_ERR_ARG,
                        "entry %" PRId64 " goes from rank %" PRId32 " to rank %" PRId32
                        "; ranks are 0 to %" PRId32,
                        number, entry->src, entry->dst, n_ranks - 1);
    if (entry->volume < 0)
        return cpl_fail(error, CPL_ERR_ARG,
                        "entry %" PRId64 " has the volume %" PRId64 "; volumes are at least 0",
                        number, entry->volume);
    if (entry->payload_class < -1)
        return cpl_fail(error, CPL_ERR_ARG,
                        "entry %" PRId64 " has the payload class %" PRId32
                        "; classes are at least 0, or -1 for none",
                        number, entry->payload_class);
    return CPL_OK;
}

/* Checks all entries. The sum of all volumes must fit, too, so that no sum over messages in a plan
 * or metric can overflow. */
static enum cpl_status survey_entries(int32_t n_ranks, const struct cpl_pattern_entry *entries,
                                      int64_t n_entries, struct survey *survey,
                                      struct cpl_error *error)
{
    int64_t total = 0;
    *survey = (struct survey){.least_class = INT32_MAX, .largest_class = -1};
    for (int64_t e = 0; e < n_entries; e++) {
        enum cpl_status status = check_entry(&entries[e], e, n_ranks, error);
        if (status)
            return status;
        if (entries[e].src == entries[e].dst) {
            survey->n_self++;
            continue;
        }
        if (entries[e].volume > INT64_MAX - total)
            return cpl_fail(error, CPL_ERR_ARG,
                            "the volumes up to entry %" PRId64 " add up to more than %" PRId64, e,
                            INT64_MAX);
        total += entries[e].volume;
        if (entries[e].payload_class < survey->least_class)
            survey->least_class = entries[e].payload_class;
        if (entries[e].payload_class > survey->largest_class)
            survey->largest_class = entries[e].payload_class;
    }
    return CPL_OK;
}

static enum cpl_status allocate(struct cpl_pattern *pattern, bool has_classes,
                                struct cpl_error *error)
{
    struct cpl_arena *arena = &pattern->arena;
    size_t n = (size_t)pattern->n_messages;
    pattern->first = CPL_ARENA_ARRAY(arena, int64_t, (size_t)pattern->n_ranks + 1);
    pattern->dst = CPL_ARENA_ARRAY(arena, int32_t, n);
    pattern->volume = CPL_ARENA_ARRAY(arena, int64_t, n);
    if (has_classes)
        pattern->payload_class = CPL_ARENA_ARRAY(arena, int32_t, n);
    if (!pattern->first || !pattern->dst || !pattern->volume ||
        (has_classes && !pattern->payload_class))
        return cpl_fail_memory(error, "the pattern");
    return CPL_OK;
}

/* Turns counts (of value v in at[v]) into the first position of every value. */
static void counts_to_starts(int64_t *at, int32_t n)
{
    int64_t sum = 0;
    for (int32_t v = 0; v < n; v++) {
        int64_t count = at[v];
        at[v] = sum;
        sum += count;
    }
}

static int compare_keyed(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;
    if (x->class_ != y->class_)
        return x->class_ < y->class_ ? -1 : 1;
    return (x->entry > y->entry) - (x->entry < y->entry);
}

static enum cpl_status sort_by_class(struct sequence *sequence, struct cpl_arena *arena)
{
    struct keyed *keyed = CPL_ARENA_ARRAY(arena, struct keyed, sequence->n);
    if (!keyed)
        return CPL_ERR_NOMEM;
    for (int64_t e = 0; e < sequence->n; e++)
        keyed[e] = (struct keyed){sequence->entries[e].payload_class, e};
    qsort(keyed, (size_t)sequence->n, sizeof *keyed, compare_keyed);
    sequence->by_class = keyed;
    return CPL_OK;
}

/* Sets order to the numbers of the entries that are not from a rank to itself, sorted by
 * destination and then in the sequence's order. at has n_ranks zeros and is overwritten. */
static void order_by_destination(int32_t n_ranks, const struct sequence *sequence, int64_t *at,
                                 int64_t *order)
{
    const struct cpl_pattern_entry *entries = sequence->entries;
    for (int64_t e = 0; e < sequence->n; e++)
        at[entries[e].dst] += entries[e].src != entries[e].dst;
    counts_to_starts(at, n_ranks);
    for (int64_t k = 0; k < sequence->n; k++) {
        int64_t e = sequence->by_class ? sequence->by_class[k].entry : k;
        if (entries[e].src != entries[e].dst)
            order[at[entries[e].dst]++] = e;
    }
}

/* Fills the pattern's rows from the entries in the given order, keeping that order inside a row.
 * While it runs first[i] is where rank i's next message goes; at the end that is where rank i + 1
 * starts, so one shift gives the rows. */
static void place_by_source(struct cpl_pattern *pattern, const struct cpl_pattern_entry *entries,
                            const int64_t *order)
{
    int64_t *first = pattern->first;
    for (int64_t k = 0; k < pattern->n_messages; k++)
        first[entries[order[k]].src]++;
    counts_to_starts(first, pattern->n_ranks);
    for (int64_t k = 0; k < pattern->n_messages; k++) {
        const struct cpl_pattern_entry *entry = &entries[order[k]];
        int64_t m = first[entry->src]++;
        pattern->dst[m] = entry->dst;
        pattern->volume[m] = entry->volume;
        if (pattern->payload_class)
            pattern->payload_class[m] = entry->payload_class;
    }
    for (int32_t i = pattern->n_ranks; i > 0; i--)
        first[i] = first[i - 1];
    first[0] = 0;
}

static enum cpl_status fill_rows(struct cpl_pattern *pattern,
                                 const struct cpl_pattern_entry *entries, int64_t n_entries,
                                 bool classes_differ, struct cpl_error *error)
{
    struct cpl_arena scratch = CPL_ARENA_EMPTY;
    struct sequence sequence = {.entries = entries, .n = n_entries};
    int64_t *at = CPL_ARENA_ARRAY(&scratch, int64_t, pattern->n_ranks);
    int64_t *order = CPL_ARENA_ARRAY(&scratch, int64_t, pattern->n_messages);
    enum cpl_status status = CPL_OK;
    if (at && order && (!classes_differ || !sort_by_class(&sequence, &scratch))) {
        order_by_destination(pattern->n_ranks, &sequence, at, order);
        place_by_source(pattern, entries, order);
    } else {
        status = cpl_fail_memory(error, "sorting the pattern");
    }
    cpl_arena_free(&scratch);
    return status;
}

static int32_t class_of(const struct cpl_pattern *pattern, int64_t m)
{
    return pattern->payload_class ? pattern->payload_class[m] : -1;
}

/* Adds message `from` to the message `into` of the same source, destination and class. */
static void merge_message(struct cpl_pattern *pattern, int64_t into, int64_t from)
{
    pattern->volume[into] += pattern->volume[from];
    pattern->n_merged++;
}

static void move_message(struct cpl_pattern *pattern, int64_t into, int64_t from)
{
    pattern->dst[into] = pattern->dst[from];
    pattern->volume[into] = pattern->volume[from];
    if (pattern->payload_class)
        pattern->payload_class[into] = pattern->payload_class[from];
}

/* Closes the gaps that merging leaves; rows only move towards the front. */
static void merge_rows(struct cpl_pattern *pattern)
{
    int64_t n_kept = 0;
    int64_t begin = 0;
    for (int32_t i = 0; i < pattern->n_ranks; i++) {
        int64_t end = pattern->first[i + 1];
        int64_t row = n_kept;
        for (int64_t m = begin; m < end; m++) {
            if (n_kept > row && pattern->dst[n_kept - 1] == pattern->dst[m] &&
                class_of(pattern, n_kept - 1) == class_of(pattern, m))
                merge_message(pattern, n_kept - 1, m);
            else
                move_message(pattern, n_kept++, m);
        }
        pattern->first[i + 1] = n_kept;
        begin = end;
    }
    pattern->n_messages = n_kept;
}

/* Whether message m is a part of what its source sends to the destination of the message before. */
static bool continues_pair(const struct cpl_pattern *pattern, int32_t src, int64_t m)
{
    return m > pattern->first[src] && pattern->dst[m - 1] == pattern->dst[m];
}

static int64_t count_pairs(const struct cpl_pattern *pattern)
{
    int64_t n = 0;
    for (int32_t i = 0; i < pattern->n_ranks; i++)
        for (int64_t m = pattern->first[i]; m < pattern->first[i + 1]; m++)
            n += !continues_pair(pattern, i, m);
    return n;
}

/* Adds the pattern of pairs if there are parts. */
static enum cpl_status add_pairs(struct cpl_pattern *pattern, struct cpl_error *error)
{
    struct cpl_pattern built = {.n_ranks = pattern->n_ranks, .n_messages = count_pairs(pattern)};
    if (built.n_messages == pattern->n_messages)
        return CPL_OK;
    struct cpl_arena *arena = &pattern->arena;
    struct cpl_pattern *pairs = CPL_ARENA_ARRAY(arena, struct cpl_pattern, 1);
    built.first = CPL_ARENA_ARRAY(arena, int64_t, (size_t)built.n_ranks + 1);
    built.dst = CPL_ARENA_ARRAY(arena, int32_t, built.n_messages);
    built.volume = CPL_ARENA_ARRAY(arena, int64_t, built.n_messages);
    if (!pairs || !built.first || !built.dst || !built.volume)
        return cpl_fail_memory(error, "the pattern");
    int64_t n = 0;
    for (int32_t i = 0; i < pattern->n_ranks; i++) {
        for (int64_t m = pattern->first[i]; m < pattern->first[i + 1]; m++) {
            n += !continues_pair(pattern, i, m);
            built.dst[n - 1] = pattern->dst[m];
            built.volume[n - 1] += pattern->volume[m];
        }
        built.first[i + 1] = n;
    }
    *pairs = built;
    pattern->pairs = pairs;
    return CPL_OK;
}

int64_t cpl_pattern_most_sends(const struct cpl_pattern *pattern)
{
    int64_t most = 0;
    for (int32_t i = 0; i < pattern->n_ranks; i++)
        most = cpl_pattern_sends(pattern, i) > most ? cpl_pattern_sends(pattern, i) : most;
    return most;
}

enum cpl_status cpl_pattern_build(int32_t n_ranks, const struct cpl_pattern_entry *entries,
                                  int64_t n_entries, struct cpl_pattern *pattern,
                                  struct cpl_error *error)
{
    if (n_ranks < 1 || n_ranks > CPL_MAX_RANKS)
        return cpl_fail(error, CPL_ERR_ARG,
                        "a pattern of %" PRId32 " ranks; 1 to %d ranks are possible", n_ranks,
                        CPL_MAX_RANKS);
    if (n_entries < 0)
        return cpl_fail(error, CPL_ERR_ARG, "a pattern of %" PRId64 " entries", n_entries);
    struct survey survey;
    enum cpl_status status = survey_entries(n_ranks, entries, n_entries, &survey, error);
    if (status)
        return status;
    struct cpl_pattern built = {.n_ranks = n_ranks,
                                .n_messages = n_entries - survey.n_self,
                                .n_self = survey.n_self,
                                .arena = CPL_ARENA_EMPTY};
    /* A pattern without classes has no array of classes, so that equal patterns have one form. */
    status = allocate(&built, survey.largest_class >= 0, error);
    if (!status)
        status =
            fill_rows(&built, entries, n_entries, survey.least_class < survey.largest_class, error);
    if (!status) {
        merge_rows(&built);
        status = built.payload_class ? add_pairs(&built, error) : CPL_OK;
    }
    if (status) {
        cpl_pattern_free(&built);
        return status;
    }
    *pattern = built;
    return CPL_OK;
}

uint64_t cpl_pattern_row_hash(const struct cpl_pattern *pattern, int32_t i, int32_t rank,
                              const int32_t *rank_of)
{
    uint64_t hash = cpl_hash_word(CPL_HASH_START, (uint64_t)rank);
    hash = cpl_hash_word(hash, (uint64_t)cpl_pattern_sends(pattern, i));
    for (int64_t m = pattern->first[i]; m < pattern->first[i + 1]; m++) {
        int32_t dst = pattern->dst[m];
        hash = cpl_hash_word(hash, (uint64_t)(rank_of ? rank_of[dst] : dst));
        hash = cpl_hash_word(hash, (uint64_t)pattern->volume[m]);
        hash = cpl_hash_word(hash, (uint64_t)(int64_t)class_of(pattern, m));
    }
    return cpl_hash_mix(hash);
}

uint64_t cpl_pattern_join_hashes(int32_t n_ranks, uint64_t rows)
{
    return cpl_hash_mix(cpl_hash_word(cpl_hash_word(CPL_HASH_START, (uint64_t)n_ranks), rows));
}

uint64_t cpl_pattern_fingerprint(const struct cpl_pattern *pattern)
{
    uint64_t rows = 0;
    for (int32_t i = 0; i < pattern->n_ranks; i++)
        rows += cpl_pattern_row_hash(pattern, i, i, NULL);
    return cpl_pattern_join_hashes(pattern->n_ranks, rows);
}

void cpl_pattern_free(struct cpl_pattern *pattern)
{
    cpl_arena_free(&pattern->arena);
    *pattern = (struct cpl_pattern){.arena = CPL_ARENA_EMPTY};
}
