/* Rounds of sparse exchanges, and joining values by keys (sparse_exchange.h). */
#include "shim/meet/sparse_exchange.h"

#include "planner/base/hash.h"
#include "shim/wait/progress.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Two tags in turn: a rank may be one round ahead of another, not two. No other messages of the
 * shim's communicators have them. */
#define FIRST_TAG 2003

void cpl_sparse_open(struct cpl_sparse *sparse, MPI_Comm comm, size_t most_bytes)
{
    *sparse = (struct cpl_sparse){.comm = comm, .most_bytes = most_bytes};
}

void cpl_sparse_close(struct cpl_sparse *sparse)
{
    free(sparse->records);
    *sparse = (struct cpl_sparse){.comm = MPI_COMM_NULL};
}

static bool make_room(struct cpl_sparse *sparse, size_t more)
{
    if (more <= sparse->room - sparse->n_bytes)
        return true;
    size_t room = sparse->room + sparse->room / 2 + more;
    if (room > sparse->most_bytes)
        return false;
    unsigned char *records = realloc(sparse->records, room);
    if (!records)
        return false;
    sparse->records = records;
    sparse->room = room;
    return true;
}

/* Receives a message, if there is one. A message for which there is no memory is cut off: its
 * sender must not wait for ever. */
static bool receive(struct cpl_sparse *sparse, int tag)
{
    MPI_Request request;
    MPI_Status status;
    int flag = 0, bytes = 0;
    PMPI_Iprobe(MPI_ANY_SOURCE, tag, sparse->comm, &flag, &status);
    if (!flag)
        return false;
    PMPI_Get_count(&status, MPI_BYTE, &bytes);
    if (!make_room(sparse, (size_t)bytes)) {
        sparse->failed = true;
        /* It is there. Of an error in PMPI_Test MPI tells MPI_COMM_WORLD's handler, which ends the
         * program; of one here, the communicator's, which returns. */
        PMPI_Recv(NULL, 0, MPI_BYTE, status.MPI_SOURCE, tag, sparse->comm, MPI_STATUS_IGNORE);
        return true;
    }
    if (PMPI_Irecv(sparse->records ? sparse->records + sparse->n_bytes : NULL, bytes, MPI_BYTE,
                   status.MPI_SOURCE, tag, sparse->comm, &request) == MPI_SUCCESS &&
        cpl_progress_wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS)
        sparse->n_bytes += (size_t)bytes;
    else
        sparse->failed = true;
    return true;
}

/* Starts the sends. Returns how many. */
static int send_all(struct cpl_sparse *sparse, const struct cpl_sparse_out *out,
                    size_t record_bytes, int tag, MPI_Request *requests)
{
    int n = 0;
    for (int k = 0; k < out->n; k++) {
        size_t bytes = (size_t)(out->first[k + 1] - out->first[k]) * record_bytes;
        const unsigned char *records =
            (const unsigned char *)out->records + (size_t)out->first[k] * record_bytes;
        if (bytes > INT_MAX || PMPI_Issend(records, (int)bytes, MPI_BYTE, out->to[k], tag,
                                           sparse->comm, &requests[n]) != MPI_SUCCESS)
            sparse->failed = true;
        else
            n++;
    }
    return n;
}

int64_t cpl_sparse_round(struct cpl_sparse *sparse, const struct cpl_sparse_out *out,
                         size_t record_bytes)
{
    MPI_Request barrier = MPI_REQUEST_NULL;
    MPI_Request *requests = calloc((size_t)out->n + 1, sizeof *requests);
    int tag = FIRST_TAG + sparse->round++ % 2, n_idle = 0;
    bool entered = false, done = false;
    sparse->n_bytes = 0;
    sparse->failed |= !requests;
    int n = requests ? send_all(sparse, out, record_bytes, tag, requests) : 0;
    while (!done) {
        int flag = 0;
        n_idle = receive(sparse, tag) ? 0 : n_idle + 1;
        if (entered) {
            PMPI_Test(&barrier, &flag, MPI_STATUS_IGNORE);
            done = flag;
        } else {
            PMPI_Testall(n, requests, &flag, MPI_STATUSES_IGNORE);
            entered = flag;
            done = flag && PMPI_Ibarrier(sparse->comm, &barrier) != MPI_SUCCESS;
        }
        if (n_idle > 0 && !done)
            cpl_progress_pause(n_idle);
    }
    free(requests);
    return (int64_t)(sparse->n_bytes / record_bytes);
}

/* ---- joining values by keys */

#define MOST_STAGES 31

/* The keys of what was received in a stage. */
struct heard {
    int64_t n;
    uint64_t *key;
};

/* Records that this rank knows of, one for each key, in the order of keys: each is the key, then
 * what its values come to so far. */
struct table {
    struct cpl_sparse *sparse;
    const struct cpl_keyed *keyed;
    int rank, n_ranks;
    size_t words; /* of a record */
    int64_t n;
    uint64_t *records;
    struct heard heard[MOST_STAGES];
    bool failed;
};

static int compare(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static uint64_t *record(const struct table *t, int64_t k)
{
    return t->records + (size_t)k * t->words;
}

static uint64_t *find(const struct table *t, uint64_t key)
{
    return bsearch(&key, t->records, (size_t)t->n, t->words * sizeof key, compare);
}

/* Adds n records. Returns false when there is no memory. */
static bool enter(struct table *t, const void *records, int64_t n)
{
    const size_t bytes = t->words * sizeof *t->records;
    const int64_t n_all = t->n + n;
    uint64_t *grown = (size_t)n_all * bytes > t->keyed->most_bytes
                          ? NULL
                          : realloc(t->records, (size_t)(n_all + 1) * bytes);
    if (!grown)
        return false;
    t->records = grown;
    if (n > 0)
        memcpy(record(t, t->n), records, (size_t)n * bytes);
    qsort(t->records, (size_t)n_all, bytes, compare);
    t->n = 0;
    for (int64_t k = 0; k < n_all; k++) {
        uint64_t *next = record(t, k), *last = t->n > 0 ? record(t, t->n - 1) : NULL;
        if (last && *last == *next)
            t->keyed->join(last + 1, next + 1);
        else
            memmove(record(t, t->n++), next, bytes);
    }
    return true;
}

static bool enter_own(struct table *t)
{
    const struct cpl_keyed *keyed = t->keyed;
    const size_t n_values = t->words - 1;
    uint64_t *own = malloc((size_t)(keyed->n + 1) * t->words * sizeof *own), *to = own;
    for (int64_t k = 0; own && k < keyed->n; k++, to += t->words) {
        *to = keyed->key[k];
        memcpy(to + 1, keyed->value + (size_t)k * n_values, n_values * sizeof *to);
    }
    bool done = own && enter(t, own, keyed->n);
    free(own);
    return done;
}

/* The next record, from one on, that leaves this rank in a stage: the lowest bit of how far the
 * key's owner is from here is the stage's. */
static int64_t next_leaving(const struct table *t, int64_t from, int stage)
{
    const uint64_t n = (uint64_t)t->n_ranks, bits = (UINT64_C(2) << stage) - 1;
    for (; from < t->n; from++) {
        uint64_t owner = cpl_hash_mix(*record(t, from)) % n;
        if (((owner + n - (uint64_t)t->rank) % n & bits) == UINT64_C(1) << stage)
            break;
    }
    return from;
}

/* Sends n pieces of so many words to the rank at a distance; NULL: there was no memory. Returns how
 * many came, and has failed when that, or MPI, failed here. */
static int64_t post(struct table *t, int64_t distance, const uint64_t *pieces, int64_t n,
                    size_t words)
{
    const int to = (int)((t->rank + distance + t->n_ranks) % t->n_ranks);
    const int64_t first[2] = {0, n};
    t->failed |= !pieces;
    int64_t came =
        cpl_sparse_round(t->sparse, &(struct cpl_sparse_out){pieces ? 1 : 0, &to, first, pieces},
                         words * sizeof *pieces);
    t->failed |= t->sparse->failed;
    return t->failed ? 0 : came;
}

/* Towards the owners. */
static void go(struct table *t, int stage)
{
    struct heard *heard = &t->heard[stage];
    uint64_t *leaving = malloc((size_t)(t->n + 1) * t->words * sizeof *leaving);
    int64_t n = 0;
    for (int64_t e = next_leaving(t, 0, stage); leaving && e < t->n;
         e = next_leaving(t, e + 1, stage))
        memcpy(leaving + (size_t)n++ * t->words, record(t, e), t->words * sizeof *leaving);
    heard->n = post(t, INT64_C(1) << stage, leaving, n, t->words);
    free(leaving);
    heard->key = malloc((size_t)(heard->n + 1) * sizeof *heard->key);
    for (int64_t k = 0; heard->key && k < heard->n; k++)
        memcpy(&heard->key[k], t->sparse->records + (size_t)k * t->words * sizeof *heard->key,
               sizeof *heard->key);
    t->failed = t->failed || !heard->key || !enter(t, t->sparse->records, heard->n);
}

/* Back from the owners: the records are the same as on the way there, and in the same order. */
static void come_back(struct table *t, int stage)
{
    const struct heard *heard = &t->heard[stage];
    const size_t n_values = t->words - 1, bytes = n_values * sizeof(uint64_t);
    uint64_t *values = t->failed ? NULL : malloc((size_t)heard->n * bytes + 1);
    for (int64_t k = 0; values && k < heard->n; k++)
        memcpy(values + (size_t)k * n_values, find(t, heard->key[k]) + 1, bytes);
    int64_t came = post(t, -(INT64_C(1) << stage), values, heard->n, n_values), n = 0;
    free(values);
    for (int64_t e = next_leaving(t, 0, stage); e < t->n; e = next_leaving(t, e + 1, stage), n++)
        if (n < came)
            memcpy(record(t, e) + 1, t->sparse->records + (size_t)n * bytes, bytes);
    t->failed |= n != came;
}

bool cpl_keyed_join(struct cpl_sparse *sparse, const struct cpl_keyed *keyed)
{
    struct table t = {.sparse = sparse, .keyed = keyed, .words = 1 + (size_t)keyed->words};
    const size_t n_values = (size_t)keyed->words;
    int n_stages = 0;
    PMPI_Comm_rank(sparse->comm, &t.rank);
    PMPI_Comm_size(sparse->comm, &t.n_ranks);
    t.failed = !enter_own(&t);
    while (INT64_C(1) << n_stages < t.n_ranks)
        n_stages++;
    for (int stage = 0; stage < n_stages; stage++)
        go(&t, stage);
    for (int stage = n_stages - 1; stage >= 0; stage--)
        come_back(&t, stage);
    for (int64_t k = 0; k < keyed->n && !t.failed; k++)
        memcpy(keyed->value + (size_t)k * n_values, find(&t, keyed->key[k]) + 1,
               n_values * sizeof *keyed->value);
    for (int stage = 0; stage < n_stages; stage++)
        free(t.heard[stage].key);
    free(t.records);
    return !t.failed;
}
