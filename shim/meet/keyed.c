/* Joining values by keys (keyed.h). */
#include "shim/meet/keyed.h"

#include "planner/base/hash.h"

#include <stdlib.h>
#include <string.h>

#define MOST_STAGES 31

/* What was received in a stage, as entries of the table. */
struct heard {
    int64_t n;
    int64_t *entry;
};

/* Different keys that this rank knows of, with what their values come to so far. */
struct table {
    struct cpl_census *census;
    const struct cpl_keyed *keyed;
    int rank, n_ranks;
    int64_t n, room;
    uint64_t *key, *value;
    int64_t n_slots; /* a power of two above room; 0: none yet */
    int64_t *slot;   /* entry + 1; 0: empty */
    struct heard heard[MOST_STAGES];
    size_t n_bytes;
    bool failed;
};

static bool rehash(struct table *t)
{
    int64_t n_slots = 2 * t->room;
    int64_t *slot = calloc((size_t)n_slots, sizeof *slot);
    if (!slot)
        return false;
    for (int64_t e = 0; e < t->n; e++) {
        uint64_t at = cpl_hash_mix(t->key[e]) & (uint64_t)(n_slots - 1);
        while (slot[at])
            at = (at + 1) & (uint64_t)(n_slots - 1);
        slot[at] = e + 1;
    }
    free(t->slot);
    t->slot = slot;
    t->n_slots = n_slots;
    return true;
}

static bool grow(struct table *t)
{
    int64_t room = t->room ? 2 * t->room : 64;
    size_t entry_bytes = (size_t)(1 + t->keyed->words) * sizeof(uint64_t) + 2 * sizeof(int64_t);
    if ((size_t)room * entry_bytes > t->keyed->most_bytes)
        return false;
    uint64_t *key = realloc(t->key, (size_t)room * sizeof *key);
    if (key)
        t->key = key;
    uint64_t *value = realloc(t->value, (size_t)(room * t->keyed->words) * sizeof *value);
    if (value)
        t->value = value;
    if (!key || !value)
        return false;
    t->room = room;
    return rehash(t);
}

/* The entry of a key, which gets this value, too; -1: no memory. */
static int64_t enter(struct table *t, uint64_t key, const uint64_t *value)
{
    int words = t->keyed->words;
    if (t->n == t->room && !grow(t))
        return -1;
    uint64_t mask = (uint64_t)(t->n_slots - 1), at = cpl_hash_mix(key) & mask;
    while (t->slot[at] && t->key[t->slot[at] - 1] != key)
        at = (at + 1) & mask;
    if (t->slot[at]) {
        int64_t e = t->slot[at] - 1;
        t->keyed->join(t->value + e * words, value);
        return e;
    }
    t->slot[at] = t->n + 1;
    t->key[t->n] = key;
    memcpy(t->value + t->n * words, value, (size_t)words * sizeof *value);
    return t->n++;
}

/* How far the key's owner is from this rank. */
static uint32_t distance(const struct table *t, uint64_t key)
{
    uint64_t n = (uint64_t)t->n_ranks, owner = cpl_hash_mix(key) % n;
    return (uint32_t)((owner + n - (uint64_t)t->rank) % n);
}

/* The next entry, from one on, that leaves this rank in a stage: the lowest bit of its distance is
 * the stage's. */
static int64_t next_leaving(const struct table *t, int64_t from, int stage)
{
    while (from < t->n &&
           (distance(t, t->key[from]) & ((UINT32_C(2) << stage) - 1)) != UINT32_C(1) << stage)
        from++;
    return from;
}

static int64_t count_leaving(const struct table *t, int stage)
{
    int64_t n = 0;
    for (int64_t e = next_leaving(t, 0, stage); e < t->n; e = next_leaving(t, e + 1, stage))
        n++;
    return n;
}

static size_t record_bytes(const struct table *t)
{
    return (size_t)(1 + t->keyed->words) * sizeof(uint64_t);
}

/* Sends records to the rank at a distance; NULL: there was no memory. Returns how many came, and
 * has failed when that, or MPI, failed here. */
static int64_t post(struct table *t, int64_t distance, const uint64_t *records, int64_t n,
                    size_t bytes)
{
    const int to = (int)((t->rank + distance + t->n_ranks) % t->n_ranks);
    const int64_t first[2] = {0, n};
    t->failed |= !records;
    int64_t came = cpl_census_round(
        t->census, &(struct cpl_census_out){records ? 1 : 0, &to, first, records}, bytes);
    t->failed |= t->census->failed;
    return t->failed ? 0 : came;
}

/* Towards the owners. */
static void go(struct table *t, int stage)
{
    struct heard *heard = &t->heard[stage];
    const int words = t->keyed->words;
    uint64_t *records = malloc((size_t)(count_leaving(t, stage) + 1) * record_bytes(t)), *to;
    int64_t n = 0;
    for (int64_t e = next_leaving(t, 0, stage); e < t->n && records;
         e = next_leaving(t, e + 1, stage)) {
        to = records + n++ * (1 + words);
        to[0] = t->key[e];
        memcpy(to + 1, t->value + e * words, (size_t)words * sizeof *to);
    }
    int64_t came = post(t, INT64_C(1) << stage, records, n, record_bytes(t));
    free(records);
    t->n_bytes += (size_t)came * sizeof *heard->entry;
    if (t->n_bytes <= t->keyed->most_bytes)
        heard->entry = calloc((size_t)came + 1, sizeof *heard->entry);
    t->failed |= !heard->entry;
    for (int64_t k = 0; k < came && !t->failed; k++) {
        uint64_t word[1 + CPL_KEYED_WORDS];
        memcpy(word, t->census->records + (size_t)k * record_bytes(t), record_bytes(t));
        heard->entry[k] = enter(t, word[0], word + 1);
        t->failed |= heard->entry[k] < 0;
    }
    heard->n = t->failed ? 0 : came;
}

/* Back from the owners: the entries are the same as on the way there, and in the same order. */
static void come_back(struct table *t, int stage)
{
    const struct heard *heard = &t->heard[stage];
    const int words = t->keyed->words;
    const size_t bytes = (size_t)words * sizeof(uint64_t);
    uint64_t *values = malloc((size_t)(heard->n + 1) * bytes);
    for (int64_t k = 0; k < heard->n && values; k++)
        memcpy(values + k * words, t->value + heard->entry[k] * words, bytes);
    int64_t came = post(t, -(INT64_C(1) << stage), values, heard->n, bytes);
    free(values);
    t->failed |= came != count_leaving(t, stage);
    const unsigned char *from = t->census->records;
    for (int64_t e = next_leaving(t, 0, stage); e < t->n && !t->failed;
         e = next_leaving(t, e + 1, stage)) {
        memcpy(t->value + e * words, from, bytes);
        from += bytes;
    }
}

bool cpl_keyed_join(struct cpl_census *census, const struct cpl_keyed *keyed)
{
    struct table t = {.census = census, .keyed = keyed};
    int n_stages = 0, words = keyed->words;
    PMPI_Comm_rank(census->comm, &t.rank);
    PMPI_Comm_size(census->comm, &t.n_ranks);
    for (int64_t k = 0; k < keyed->n && !t.failed; k++)
        t.failed = enter(&t, keyed->key[k], keyed->value + k * words) < 0;
    while (INT64_C(1) << n_stages < t.n_ranks)
        n_stages++;
    for (int stage = 0; stage < n_stages; stage++)
        go(&t, stage);
    for (int stage = n_stages - 1; stage >= 0; stage--)
        come_back(&t, stage);
    for (int64_t k = 0; k < keyed->n && !t.failed; k++) {
        uint64_t mask = (uint64_t)(t.n_slots - 1), at = cpl_hash_mix(keyed->key[k]) & mask;
        while (t.key[t.slot[at] - 1] != keyed->key[k])
            at = (at + 1) & mask;
        memcpy(keyed->value + k * words, t.value + (t.slot[at] - 1) * words,
               (size_t)words * sizeof *keyed->value);
    }
    for (int stage = 0; stage < n_stages; stage++)
        free(t.heard[stage].entry);
    free(t.key);
    free(t.value);
    free(t.slot);
    return !t.failed;
}
