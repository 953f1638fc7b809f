/* Friends in the order of common destinations (share_friend.h).
 *
 * Counting: for each destination d of the rank, one is added to every sender to d, from the
 * transposed pattern. Where more than an eighth of all ranks send to d, a column of bytes is kept
 * and added eight ranks at a time in 64-bit words, which is cheaper than following the list (and
 * than counting the bits of P intersections, which must look at all P send sets in full). Such a
 * column takes P bytes for more than P / 8 messages: less than 8 bytes a message.
 *
 * Batches: sorted lists of all candidates could need P^2 entries; few ranks ever use more than a
 * handful. So the BATCH best after the last one used are kept, and counted anew when they are used
 * up. Batches of 8 to 16 were the fastest on the patterns tried. */
#include "planner/share/share_friend.h"

#include "planner/base/heap.h"

#include <stdbool.h>
#include <string.h>

#define BATCH         16
#define BLOCK_WORDS   8   /* columns are padded to whole blocks, so that loops over them unroll */
#define MOST_ADDED    255 /* columns whose sum fits a byte */
#define DENSE_PART    8   /* a column is dense when more than 1/8 of the ranks send */
#define KEY_UNLIMITED UINT64_MAX

struct cpl_share_friend_batch {
    int32_t n;
    int32_t next;         /* keys[next .. n - 1] are left */
    uint64_t keys[BATCH]; /* descending */
};

/* Orders candidates: the larger key is the better friend. No two are equal. */
static uint64_t key_of(int32_t n_common, int32_t rank)
{
    return (uint64_t)(uint32_t)n_common << 32 | (UINT32_MAX - (uint32_t)rank);
}

static struct cpl_share_friend friend_of(uint64_t key)
{
    return (struct cpl_share_friend){.rank = (int32_t)(UINT32_MAX - (uint32_t)key),
                                     .n_common = (int32_t)(key >> 32)};
}

static enum cpl_status transpose(struct cpl_share_friend_finder *finder)
{
    const struct cpl_pattern *pattern = finder->pattern;
    int64_t *first = CPL_ARENA_ARRAY(finder->arena, int64_t, (size_t)pattern->n_ranks + 2);
    finder->senders = CPL_ARENA_ARRAY(finder->arena, int32_t, pattern->n_messages);
    if (!first || !finder->senders)
        return CPL_ERR_NOMEM;
    for (int64_t m = 0; m < pattern->n_messages; m++)
        first[pattern->dst[m] + 2]++;
    for (int32_t d = 0; d < pattern->n_ranks; d++)
        first[d + 2] += first[d + 1];
    /* first[d + 1] is where d's senders begin, and moves to where those of d + 1 begin. */
    for (int32_t rank = 0; rank < pattern->n_ranks; rank++) {
        for (int64_t m = pattern->first[rank]; m < pattern->first[rank + 1]; m++)
            finder->senders[first[pattern->dst[m] + 1]++] = rank;
    }
    finder->sender_first = first;
    return CPL_OK;
}

static bool is_dense(const struct cpl_share_friend_finder *finder, int32_t destination)
{
    int64_t n_senders = finder->sender_first[destination + 1] - finder->sender_first[destination];
    return n_senders > finder->pattern->n_ranks / DENSE_PART;
}

static enum cpl_status fill_columns(struct cpl_share_friend_finder *finder)
{
    int32_t n_ranks = finder->pattern->n_ranks;
    size_t block_bytes = BLOCK_WORDS * sizeof(uint64_t);
    finder->column_words = ((size_t)n_ranks + block_bytes - 1) / block_bytes * BLOCK_WORDS;
    size_t column_bytes = finder->column_words * sizeof(uint64_t);
    int64_t n_columns = 0;
    for (int32_t d = 0; d < n_ranks; d++)
        finder->column_of[d] = is_dense(finder, d) ? n_columns++ : -1;
    finder->columns = cpl_arena_alloc(finder->arena, (size_t)n_columns, column_bytes);
    finder->sum = cpl_arena_alloc(finder->arena, 1, column_bytes);
    if (!finder->columns || !finder->sum)
        return CPL_ERR_NOMEM;
    unsigned char *bytes = (unsigned char *)finder->columns;
    for (int32_t d = 0; d < n_ranks; d++) {
        if (finder->column_of[d] < 0)
            continue;
        for (int64_t k = finder->sender_first[d]; k < finder->sender_first[d + 1]; k++)
            bytes[(size_t)finder->column_of[d] * column_bytes + (size_t)finder->senders[k]] = 1;
    }
    return CPL_OK;
}

enum cpl_status cpl_share_friend_init(struct cpl_share_friend_finder *finder,
                                      const struct cpl_pattern *pattern, struct cpl_arena *arena)
{
    *finder = (struct cpl_share_friend_finder){
        .pattern = pattern,
        .arena = arena,
        .column_of = CPL_ARENA_ARRAY(arena, int64_t, pattern->n_ranks),
        .n_common = CPL_ARENA_ARRAY(arena, int32_t, pattern->n_ranks),
        .candidate = CPL_ARENA_ARRAY(arena, int32_t, (size_t)pattern->n_ranks + 1),
        .best = CPL_ARENA_ARRAY(arena, uint64_t, BATCH),
        .batch = CPL_ARENA_ARRAY(arena, struct cpl_share_friend_batch *, pattern->n_ranks),
    };
    if (!finder->column_of || !finder->n_common || !finder->candidate || !finder->best ||
        !finder->batch)
        return CPL_ERR_NOMEM;
    enum cpl_status status = cpl_pair_map_init(&finder->used, arena);
    if (!status)
        status = transpose(finder);
    return status ? status : fill_columns(finder);
}

static void add_column(uint64_t *restrict sum, const uint64_t *restrict column, size_t n_words)
{
    for (size_t w = 0; w < n_words; w += BLOCK_WORDS) {
        for (size_t k = 0; k < BLOCK_WORDS; k++)
            sum[w + k] += column[w + k];
    }
}

/* Moves the byte sums to n_common. */
static void flush_sum(struct cpl_share_friend_finder *finder)
{
    const unsigned char *bytes = (const unsigned char *)finder->sum;
    for (int32_t rank = 0; rank < finder->pattern->n_ranks; rank++)
        finder->n_common[rank] += bytes[rank];
    memset(finder->sum, 0, finder->column_words * sizeof *finder->sum);
}

/* Adds one for each sender to destination; returns how many candidates are listed now. */
static int32_t add_senders(struct cpl_share_friend_finder *finder, int32_t destination,
                           int32_t n_candidates)
{
    int32_t *n_common = finder->n_common;
    for (int64_t k = finder->sender_first[destination]; k < finder->sender_first[destination + 1];
         k++) {
        int32_t sender = finder->senders[k];
        /* Written in any case, so that there is no branch to mispredict; one entry to spare. */
        finder->candidate[n_candidates] = sender;
        n_candidates += n_common[sender] == 0;
        n_common[sender]++;
    }
    return n_candidates;
}

/* Counts the destinations that each other rank has in common with rank into n_common, and lists in
 * candidate who has any (and rank itself). Returns their number. */
static int32_t count_common(struct cpl_share_friend_finder *finder, int32_t rank)
{
    const struct cpl_pattern *pattern = finder->pattern;
    int32_t n_candidates = 0;
    int64_t n_added = 0;
    for (int64_t m = pattern->first[rank]; m < pattern->first[rank + 1]; m++) {
        int64_t column = finder->column_of[pattern->dst[m]];
        if (column < 0) {
            n_candidates = add_senders(finder, pattern->dst[m], n_candidates);
            continue;
        }
        add_column(finder->sum, finder->columns + (size_t)column * finder->column_words,
                   finder->column_words);
        if (++n_added % MOST_ADDED == 0)
            flush_sum(finder);
    }
    if (n_added == 0)
        return n_candidates;
    flush_sum(finder);
    n_candidates = 0;
    for (int32_t other = 0; other < pattern->n_ranks; other++) {
        finder->candidate[n_candidates] = other;
        n_candidates += finder->n_common[other] != 0;
    }
    return n_candidates;
}

static bool is_smaller(const uint64_t *a, const uint64_t *b)
{
    return *a < *b;
}

CPL_HEAP(keys, uint64_t, is_smaller)

static void make_heap(uint64_t *heap, int32_t n)
{
    for (int32_t at = n / 2 - 1; at >= 0; at--)
        keys_sink(heap, n, at);
}

/* Leaves the BATCH largest keys below limit among the candidates in finder->best, as a heap, and
 * resets the counts. Returns how many there are. */
static int32_t select_best(struct cpl_share_friend_finder *finder, int32_t rank,
                           int32_t n_candidates, uint64_t limit)
{
    uint64_t *best = finder->best;
    int32_t n = 0;
    for (int32_t i = 0; i < n_candidates; i++) {
        int32_t other = finder->candidate[i];
        uint64_t key = key_of(finder->n_common[other], other);
        finder->n_common[other] = 0;
        if (other == rank || key >= limit)
            continue;
        if (n < BATCH) {
            best[n++] = key;
            if (n == BATCH)
                make_heap(best, n);
        } else if (key > best[0]) {
            best[0] = key;
            keys_sink(best, n, 0);
        }
    }
    if (n < BATCH)
        make_heap(best, n);
    return n;
}

/* Fills the batch of rank with the friends that come after the key `last`. */
static void fill_batch(struct cpl_share_friend_finder *finder, int32_t rank, uint64_t last)
{
    struct cpl_share_friend_batch *batch = finder->batch[rank];
    int32_t n_candidates = count_common(finder, rank);
    int32_t n = select_best(finder, rank, n_candidates, last);
    batch->n = n;
    batch->next = 0;
    for (; n > 0; n--)
        batch->keys[n - 1] = keys_pop(finder->best, n);
}

/* The best candidate of rank that it has not looked at, of whatever pair; rank -1 when there is
 * none. */
static struct cpl_share_friend next_candidate(struct cpl_share_friend_finder *finder, int32_t rank)
{
    struct cpl_share_friend_batch *batch = finder->batch[rank];
    /* A batch that was not full was the last one. */
    if (batch->next == batch->n && batch->n == BATCH)
        fill_batch(finder, rank, batch->keys[BATCH - 1]);
    if (batch->next == batch->n)
        return (struct cpl_share_friend){.rank = -1};
    return friend_of(batch->keys[batch->next++]);
}

enum cpl_status cpl_share_friend_take(struct cpl_share_friend_finder *finder, int32_t rank,
                                      struct cpl_share_friend *mate)
{
    if (cpl_pair_map_reserve(&finder->used, 1))
        return CPL_ERR_NOMEM;
    if (!finder->batch[rank]) {
        finder->batch[rank] = CPL_ARENA_ARRAY(finder->arena, struct cpl_share_friend_batch, 1);
        if (!finder->batch[rank])
            return CPL_ERR_NOMEM;
        fill_batch(finder, rank, KEY_UNLIMITED);
    }
    struct cpl_share_friend next;
    uint64_t *used = NULL;
    do {
        next = next_candidate(finder, rank);
        if (next.rank >= 0)
            used = cpl_pair_map_at(&finder->used, next.rank < rank ? next.rank : rank,
                                   next.rank < rank ? rank : next.rank);
    } while (next.rank >= 0 && *used);
    if (next.rank >= 0)
        *used = 1;
    *mate = next;
    return CPL_OK;
}
