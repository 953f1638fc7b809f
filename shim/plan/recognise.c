/* Recognising exchanges (recognise.h). Every step that may fail on one rank is followed by one in
 * which all learn of it; until then the rank goes through the same calls as the others. */
#include "shim/plan/recognise.h"

#include "shim/meet/agree.h"
#include "shim/meet/census.h"
#include "shim/meet/keyed.h"
#include "shim/wait/collective.h"
#include "shim/wait/progress.h"

#include <stdlib.h>

#define TAG        2006 /* of labels, on the shim's communicator */
#define MOST_BYTES (64 << 20)

/* What a rank tells its neighbours: the labels of the links to each of them. */
struct neighbours {
    int n;
    int *peer;
    int64_t *first;          /* links first[k] .. first[k + 1] - 1 are to peer[k] */
    uint64_t *mine, *theirs; /* labels of links */
    MPI_Request *requests;   /* 2 * n */
};

struct recognising {
    MPI_Comm comm;
    int rank;
    struct cpl_local_recognising local;
    struct neighbours neighbours;
    struct cpl_census census;
    bool failed; /* on this rank; the others do not know yet */
};

static int64_t send_round(struct recognising *t, const struct cpl_records *records, size_t bytes)
{
    const struct cpl_census_out out = {records->n, records->to, records->first, records->records};
    int64_t came = cpl_census_round(&t->census, &out, bytes);
    t->failed |= t->census.failed;
    return t->failed ? 0 : came;
}

static bool list_neighbours(struct recognising *t)
{
    struct neighbours *of = &t->neighbours;
    size_t n = (size_t)t->local.n_links + 1;
    of->peer = calloc(n, sizeof *of->peer);
    of->first = calloc(n, sizeof *of->first);
    of->mine = calloc(n, sizeof *of->mine);
    of->theirs = calloc(n, sizeof *of->theirs);
    of->requests = calloc(2 * n, sizeof *of->requests);
    if (!of->peer || !of->first || !of->mine || !of->theirs || !of->requests)
        return false;
    for (int64_t k = 0; k < t->local.n_links; k++) {
        if (of->n == 0 || of->peer[of->n - 1] != t->local.link[k].peer)
            of->peer[of->n++] = t->local.link[k].peer;
        of->first[of->n] = k + 1;
    }
    return true;
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
        !cpl_local_answer(&t->local, (struct cpl_message_end *)t->census.records, came, &answers);
    came = send_round(t, &answers, sizeof(struct cpl_answer));
    t->failed =
        t->failed || !cpl_local_link(&t->local, (struct cpl_answer *)t->census.records, came);
    cpl_records_free(&told);
    cpl_records_free(&answers);
    t->failed = t->failed || !list_neighbours(t);
    return cpl_agree_all(t->comm, !t->failed);
}

static void free_neighbours(struct neighbours *of)
{
    free(of->peer);
    free(of->first);
    free(of->mine);
    free(of->theirs);
    free(of->requests);
}

/* Returns whether labels of this rank's links differ. */
static bool exchange_labels(struct recognising *t)
{
    struct neighbours *of = &t->neighbours;
    int n = 0;
    cpl_local_labels(&t->local, of->mine);
    for (int out = 0; out < 2; out++)
        for (int k = 0; k < of->n; k++) {
            int64_t first = of->first[k];
            int bytes = (int)((of->first[k + 1] - first) * (int64_t)sizeof *of->mine);
            if (of->peer[k] == t->rank)
                continue;
            int result = out ? PMPI_Isend(of->mine + first, bytes, MPI_BYTE, of->peer[k], TAG,
                                          t->comm, &of->requests[n])
                             : PMPI_Irecv(of->theirs + first, bytes, MPI_BYTE, of->peer[k], TAG,
                                          t->comm, &of->requests[n]);
            if (result == MPI_SUCCESS)
                n++;
            else
                t->failed = true;
        }
    t->failed |= cpl_progress_wait_each(n, of->requests, MPI_STATUSES_IGNORE) != MPI_SUCCESS;
    return cpl_local_compare(&t->local, of->theirs);
}

static void join(struct recognising *t)
{
    const struct cpl_keys *keys = &t->local.keys;
    t->failed |=
        !cpl_keyed_join(&t->census, &(struct cpl_keyed){keys->n, keys->key, keys->words,
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
    cpl_local_names(&t->local, t->neighbours.theirs);
    cpl_local_compare(&t->local, t->neighbours.theirs);
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
    cpl_census_open(&t.census, comm, MOST_BYTES);
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
    free_neighbours(&t.neighbours);
    cpl_local_close(&t.local);
    cpl_census_close(&t.census);
    return n_found;
}
