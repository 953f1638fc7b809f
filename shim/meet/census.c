/* Rounds of sparse exchanges (census.h). */
#include "shim/meet/census.h"

#include "shim/wait/progress.h"

#include <limits.h>
#include <stdlib.h>

/* Two tags in turn: a rank may be one round ahead of another, not two. No other messages of the
 * shim's communicators have them. */
#define FIRST_TAG 2003

void cpl_census_open(struct cpl_census *census, MPI_Comm comm, size_t most_bytes)
{
    *census = (struct cpl_census){.comm = comm, .most_bytes = most_bytes};
}

void cpl_census_close(struct cpl_census *census)
{
    free(census->records);
    *census = (struct cpl_census){.comm = MPI_COMM_NULL};
}

static bool make_room(struct cpl_census *census, size_t more)
{
    if (more <= census->room - census->n_bytes)
        return true;
    size_t room = census->room + census->room / 2 + more;
    if (room > census->most_bytes)
        return false;
    unsigned char *records = realloc(census->records, room);
    if (!records)
        return false;
    census->records = records;
    census->room = room;
    return true;
}

/* Receives a message, if there is one. A message for which there is no memory is cut off: its
 * sender must not wait for ever. */
static bool receive(struct cpl_census *census, int tag)
{
    MPI_Request request;
    MPI_Status status;
    int flag = 0, bytes = 0;
    PMPI_Iprobe(MPI_ANY_SOURCE, tag, census->comm, &flag, &status);
    if (!flag)
        return false;
    PMPI_Get_count(&status, MPI_BYTE, &bytes);
    if (!make_room(census, (size_t)bytes)) {
        census->failed = true;
        /* It is there. Of an error in PMPI_Test MPI tells MPI_COMM_WORLD's handler, which ends the
         * program; of one here, the communicator's, which returns. */
        PMPI_Recv(NULL, 0, MPI_BYTE, status.MPI_SOURCE, tag, census->comm, MPI_STATUS_IGNORE);
        return true;
    }
    if (PMPI_Irecv(census->records ? census->records + census->n_bytes : NULL, bytes, MPI_BYTE,
                   status.MPI_SOURCE, tag, census->comm, &request) == MPI_SUCCESS &&
        cpl_progress_wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS)
        census->n_bytes += (size_t)bytes;
    else
        census->failed = true;
    return true;
}

/* Starts the sends. Returns how many. */
static int send_all(struct cpl_census *census, const struct cpl_census_out *out,
                    size_t record_bytes, int tag, MPI_Request *requests)
{
    int n = 0;
    for (int k = 0; k < out->n; k++) {
        size_t bytes = (size_t)(out->first[k + 1] - out->first[k]) * record_bytes;
        const unsigned char *records =
            (const unsigned char *)out->records + (size_t)out->first[k] * record_bytes;
        if (bytes > INT_MAX || PMPI_Issend(records, (int)bytes, MPI_BYTE, out->to[k], tag,
                                           census->comm, &requests[n]) != MPI_SUCCESS)
            census->failed = true;
        else
            n++;
    }
    return n;
}

int64_t cpl_census_round(struct cpl_census *census, const struct cpl_census_out *out,
                         size_t record_bytes)
{
    MPI_Request barrier = MPI_REQUEST_NULL;
    MPI_Request *requests = calloc((size_t)out->n + 1, sizeof *requests);
    int tag = FIRST_TAG + census->round++ % 2, n_idle = 0;
    bool entered = false, done = false;
    census->n_bytes = 0;
    census->failed |= !requests;
    int n = requests ? send_all(census, out, record_bytes, tag, requests) : 0;
    while (!done) {
        int flag = 0;
        n_idle = receive(census, tag) ? 0 : n_idle + 1;
        if (entered) {
            PMPI_Test(&barrier, &flag, MPI_STATUS_IGNORE);
            done = flag;
        } else {
            PMPI_Testall(n, requests, &flag, MPI_STATUSES_IGNORE);
            entered = flag;
            done = flag && PMPI_Ibarrier(census->comm, &barrier) != MPI_SUCCESS;
        }
        if (n_idle > 0 && !done)
            cpl_progress_pause(n_idle);
    }
    free(requests);
    return (int64_t)(census->n_bytes / record_bytes);
}
