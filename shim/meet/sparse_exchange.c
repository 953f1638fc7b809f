/* Rounds of sparse exchanges (sparse_exchange.h). */
#include "shim/meet/sparse_exchange.h"

#include "shim/wait/progress.h"

#include <limits.h>
#include <stdlib.h>

/* Two tags in turn: a rank may be one round ahead of another, not two. No other messages of the
 * shim's communicators have them. */
#define FIRST_TAG 2003

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

/* Starts the sends, of the records for each rank. Returns how many. */
static int send_all(struct cpl_sparse *sparse, const int *to, const unsigned char *records,
                    int64_t n, size_t record_bytes, int tag, MPI_Request *requests)
{
    int n_sent = 0;
    for (int64_t k = 0, last; k < n; k = last) {
        for (last = k + 1; last < n && to[last] == to[k]; last++)
            continue;
        size_t bytes = (size_t)(last - k) * record_bytes;
        if (bytes > INT_MAX ||
            PMPI_Issend(records + (size_t)k * record_bytes, (int)bytes, MPI_BYTE, to[k], tag,
                        sparse->comm, &requests[n_sent]) != MPI_SUCCESS)
            sparse->failed = true;
        else
            n_sent++;
    }
    return n_sent;
}

int64_t cpl_sparse_round(struct cpl_sparse *sparse, const int *to, const void *records, int64_t n,
                         size_t record_bytes)
{
    MPI_Request barrier = MPI_REQUEST_NULL;
    MPI_Request *requests = calloc((size_t)n + 1, sizeof *requests);
    int tag = FIRST_TAG + sparse->round++ % 2, n_idle = 0;
    bool entered = false, done = false;
    sparse->n_bytes = 0;
    sparse->failed |= !requests;
    int n_sent = requests ? send_all(sparse, to, records, n, record_bytes, tag, requests) : 0;
    while (!done) {
        int flag = 0;
        n_idle = receive(sparse, tag) ? 0 : n_idle + 1;
        if (entered) {
            PMPI_Test(&barrier, &flag, MPI_STATUS_IGNORE);
            done = flag;
        } else {
            PMPI_Testall(n_sent, requests, &flag, MPI_STATUSES_IGNORE);
            entered = flag;
            done = flag && PMPI_Ibarrier(sparse->comm, &barrier) != MPI_SUCCESS;
        }
        if (n_idle > 0 && !done)
            cpl_progress_pause(n_idle);
    }
    free(requests);
    return (int64_t)(sparse->n_bytes / record_bytes);
}
