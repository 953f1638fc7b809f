/* Recognising exchanges (recognise.h). Every step that may fail on one rank is followed by one in
 * which all learn of it; until then the rank goes through the same calls as the others. */
#include "shim/plan/recognise.h"

#include "shim/meet/agree.h"
#include "shim/meet/sparse_exchange.h"
#include "shim/wait/collective.h"

#include <stdlib.h>

#define MOST_BYTES (64 << 20)

/* The label of a link, for the peer: number counts the links of both, which have the same order. */
struct told {
    int32_t from, number;
    uint64_t label;
};

struct recognising {
    MPI_Comm comm;
    int rank;
    struct cpl_local_recognising local;
    uint64_t *labels; /* of the links, here or at the peer */
    struct cpl_sparse sparse;
    bool failed; /* on this rank; the others do not know yet */
};

static int64_t send_round(struct recognising *t, const struct cpl_records *records, size_t bytes)
{
    const struct cpl_sparse_out out = {records->n, records->to, records->first, records->records};
    int64_t came = cpl_sparse_round(&t->sparse, &out, bytes);
    t->failed |= t->sparse.failed;
    return t->failed ? 0 : came;
}

/* The ranks tell each other in which windows they sent and received what. Returns false on all
 * ranks when that failed on one. */
static bool find_links(struct recognising *t)
{
    struct cpl_records told = {.n = 0}, answers = {.n = 0};
    t->failed = t->failed || !cpl_local_tell(&t->local, &told);
    int64_t came = send_round(t, &told, sizeof(struct cpl_message_end));
    t->failed =
        t->failed ||
        !cpl_local_answer(&t->local, (struct cpl_message_end *)t->sparse.records, came, &answers);
    came = send_round(t, &answers, sizeof(struct cpl_answer));
    t->failed =
        t->failed || !cpl_local_link(&t->local, (struct cpl_answer *)t->sparse.records, came);
    cpl_records_free(&told);
    cpl_records_free(&answers);
    t->labels = calloc((size_t)t->local.n_links + 1, sizeof *t->labels);
    return cpl_agree_all(t->comm, !t->failed && t->labels);
}

/* Each link gets one label, and links are in the order of peers. */
static int by_link(const void *a, const void *b)
{
    const struct told *x = a, *y = b;
    return x->from != y->from ? (x->from > y->from) - (x->from < y->from) : x->number - y->number;
}

/* Returns whether labels of this rank's links differ. */
static bool exchange_labels(struct recognising *t)
{
    const struct cpl_link *link = t->local.link;
    const int64_t n = t->local.n_links;
    struct cpl_records mine = {.n = 0};
    t->failed = t->failed || !cpl_records_make(&mine, n, sizeof(struct told));
    cpl_local_labels(&t->local, t->labels);
    for (int64_t k = 0; k < n && mine.records; k++) {
        cpl_records_address(&mine, k, link[k].peer);
        ((struct told *)mine.records)[k] =
            (struct told){t->rank, (int32_t)(k - mine.first[mine.n - 1]), t->labels[k]};
    }
    t->failed |= send_round(t, &mine, sizeof(struct told)) != n;
    cpl_records_free(&mine);
    struct told *theirs = (struct told *)t->sparse.records;
    if (!t->failed && n > 0)
        qsort(theirs, (size_t)n, sizeof *theirs, by_link);
    for (int64_t k = 0; k < n && !t->failed; k++)
        t->labels[k] = theirs[k].label;
    return cpl_local_compare(&t->local, t->labels);
}

static void join(struct recognising *t)
{
    const struct cpl_keys *keys = &t->local.keys;
    t->failed |=
        !cpl_keyed_join(&t->sparse, &(struct cpl_keyed){keys->n, keys->key, keys->words,
                                                        keys->value, keys->join, MOST_BYTES});
}

/* Whether labels differ anywhere; false on all ranks, too, when one has failed. */
static bool any_differ(struct recognising *t, bool differ)
{
    int64_t mine[2] = {t->failed, differ}, all[2] = {1, 0};
    if (cpl_collective_Allreduce(mine, all, 2, MPI_INT64_T, MPI_MAX, t->comm) != MPI_SUCCESS)
        all[0] = 1;
    t->failed |= all[0] != 0;
    return !t->failed && all[1];
}

static bool find_labels(struct recognising *t)
{
    cpl_local_names(&t->local, t->labels);
    cpl_local_compare(&t->local, t->labels);
    do {
        join(t);
        cpl_local_relabel(&t->local);
    } while (any_differ(t, exchange_labels(t)));
    return !t->failed;
}

int cpl_recognise(MPI_Comm comm, const struct cpl_note *notes, int64_t n, int64_t least_times,
                  struct cpl_recurring *found, int32_t *exchange)
{
    struct recognising t = {.comm = comm};
    int n_found = -1;
    PMPI_Comm_rank(comm, &t.rank);
    cpl_sparse_open(&t.sparse, comm, MOST_BYTES);
    t.failed = !cpl_local_open(&t.local, t.rank, notes, n) || !exchange;
    if (find_links(&t) && find_labels(&t)) {
        cpl_local_group(&t.local);
        join(&t);
        cpl_local_count(&t.local, least_times);
        join(&t);
        if (cpl_agree_all(comm, !t.failed)) {
            n_found = cpl_local_found(&t.local, CPL_MOST_RECURRING, found);
            cpl_local_label(&t.local, found, n_found, n, exchange);
        }
    }
    free(t.labels);
    cpl_local_close(&t.local);
    cpl_sparse_close(&t.sparse);
    return n_found;
}
