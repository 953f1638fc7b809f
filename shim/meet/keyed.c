/* Joining values by keys (keyed.h). */
#include "shim/meet/keyed.h"

#include "planner/base/hash.h"
#include "shim/wait/progress.h"

#include <stdlib.h>
#include <string.h>

#define TAG         2005 /* of the shim's communicators: the census has those before it */
#define CHUNK       (4 << 10)
#define MOST_STAGES 31

/* What was received in a stage, as entries of the table. */
struct heard {
    int64_t n;
    int64_t *entry;
};

/* Different keys that this rank knows of, with what their values come to so far. */
struct table {
    MPI_Comm comm;
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

/* Bytes of one stage, which follow a word with their number. */
struct letter {
    unsigned char *bytes;
    int64_t n;
};

/* --- the table */

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

/* --- a stage's messages */

static int64_t part(int64_t all, int64_t from)
{
    return all - from < CHUNK ? all - from : CHUNK;
}

/* Makes a letter of n bytes; its word says so. When there is no memory it says that. */
static bool make_letter(struct table *t, int64_t n, struct letter *letter)
{
    letter->n = n + (int64_t)sizeof n;
    letter->bytes = t->failed ? NULL : malloc((size_t)letter->n);
    if (letter->bytes)
        memcpy(letter->bytes, &n, sizeof n);
    else
        t->failed = true;
    return letter->bytes;
}

/* Keeps a piece of what comes; the first piece says how much that will be. */
static void take_piece(struct table *t, struct letter *in, int64_t at, const unsigned char *piece)
{
    if (at == 0) {
        int64_t n;
        memcpy(&n, piece, sizeof n);
        t->failed |= n < 0;
        in->n = (n < 0 ? 0 : n) + (int64_t)sizeof n;
        if (!t->failed)
            in->bytes = (size_t)in->n > t->keyed->most_bytes ? NULL : malloc((size_t)in->n);
        t->failed |= !in->bytes;
    }
    if (in->bytes)
        memcpy(in->bytes + at, piece, (size_t)part(in->n, at));
}

/* Sends a letter to one rank and gets one from another, by pieces that both have memory for. The
 * caller frees in->bytes; NULL when something failed. */
static void post(struct table *t, int to, const struct letter *given, int from, struct letter *in)
{
    static const int64_t lost = -1;
    unsigned char piece[CHUNK];
    const unsigned char *bytes = given->bytes ? given->bytes : (const unsigned char *)&lost;
    int64_t n = given->bytes ? given->n : (int64_t)sizeof lost;
    *in = (struct letter){NULL, sizeof(int64_t)};
    for (int64_t at = 0; at < n || at < in->n; at += CHUNK) {
        MPI_Request request[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
        bool comes = at < in->n, done = true;
        if (comes)
            done =
                PMPI_Irecv(piece, CHUNK, MPI_BYTE, from, TAG, t->comm, &request[0]) == MPI_SUCCESS;
        if (at < n)
            done &= PMPI_Isend(bytes + at, (int)part(n, at), MPI_BYTE, to, TAG, t->comm,
                               &request[1]) == MPI_SUCCESS;
        done &= cpl_progress_wait_each(2, request, MPI_STATUSES_IGNORE) == MPI_SUCCESS;
        t->failed |= !done;
        if (comes && done)
            take_piece(t, in, at, piece);
    }
    if (t->failed) {
        free(in->bytes);
        in->bytes = NULL;
    }
}

static int at_distance(const struct table *t, int64_t distance)
{
    return (int)((t->rank + distance + t->n_ranks) % t->n_ranks);
}

static size_t record_bytes(const struct table *t)
{
    return (size_t)(1 + t->keyed->words) * sizeof(uint64_t);
}

/* Takes the records of a stage into the table. */
static void take_records(struct table *t, const struct letter *in, struct heard *heard)
{
    uint64_t word[1 + CPL_KEYED_WORDS];
    size_t bytes = record_bytes(t);
    int64_t n = (in->n - (int64_t)sizeof(int64_t)) / (int64_t)bytes;
    t->n_bytes += (size_t)n * sizeof *heard->entry;
    heard->entry =
        t->n_bytes > t->keyed->most_bytes ? NULL : calloc((size_t)n + 1, sizeof *heard->entry);
    t->failed |= !heard->entry;
    for (int64_t k = 0; k < n && !t->failed; k++) {
        memcpy(word, in->bytes + sizeof(int64_t) + (size_t)k * bytes, bytes);
        heard->entry[k] = enter(t, word[0], word + 1);
        t->failed |= heard->entry[k] < 0;
    }
    heard->n = t->failed ? 0 : n;
}

/* Towards the owners. */
static void go(struct table *t, int stage)
{
    struct letter out, in;
    size_t value_bytes = (size_t)t->keyed->words * sizeof(uint64_t);
    if (make_letter(t, count_leaving(t, stage) * (int64_t)record_bytes(t), &out)) {
        unsigned char *to = out.bytes + sizeof(int64_t);
        for (int64_t e = next_leaving(t, 0, stage); e < t->n; e = next_leaving(t, e + 1, stage)) {
            memcpy(to, &t->key[e], sizeof *t->key);
            memcpy(to + sizeof *t->key, t->value + e * t->keyed->words, value_bytes);
            to += record_bytes(t);
        }
    }
    post(t, at_distance(t, INT64_C(1) << stage), &out, at_distance(t, -(INT64_C(1) << stage)), &in);
    free(out.bytes);
    if (in.bytes)
        take_records(t, &in, &t->heard[stage]);
    free(in.bytes);
}

/* Back from the owners: the entries are the same as on the way there, and in the same order. */
static void come_back(struct table *t, int stage)
{
    struct letter out, in;
    struct heard *heard = &t->heard[stage];
    size_t bytes = (size_t)t->keyed->words * sizeof(uint64_t);
    if (make_letter(t, heard->n * (int64_t)bytes, &out))
        for (int64_t k = 0; k < heard->n; k++)
            memcpy(out.bytes + sizeof(int64_t) + (size_t)k * bytes,
                   t->value + heard->entry[k] * t->keyed->words, bytes);
    post(t, at_distance(t, -(INT64_C(1) << stage)), &out, at_distance(t, INT64_C(1) << stage), &in);
    free(out.bytes);
    if (in.bytes && in.n == (int64_t)sizeof in.n + count_leaving(t, stage) * (int64_t)bytes) {
        const unsigned char *from = in.bytes + sizeof(int64_t);
        for (int64_t e = next_leaving(t, 0, stage); e < t->n; e = next_leaving(t, e + 1, stage)) {
            memcpy(t->value + e * t->keyed->words, from, bytes);
            from += bytes;
        }
    } else {
        t->failed = true;
    }
    free(in.bytes);
}

bool cpl_keyed_join(MPI_Comm comm, const struct cpl_keyed *keyed)
{
    struct table t = {.comm = comm, .keyed = keyed};
    int n_stages = 0, words = keyed->words;
    PMPI_Comm_rank(comm, &t.rank);
    PMPI_Comm_size(comm, &t.n_ranks);
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
