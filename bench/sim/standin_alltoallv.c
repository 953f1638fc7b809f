/* MPI_Alltoallv as MPICH does it, for the distributed array in a simulation: messages that have
 * data only, each rank's partners from itself onwards, THROTTLE sends and receives at a time. All
 * of SMPI's forms send empty messages, too.
 *
 * On MPI_COMM_WORLD itself, which only the making of graphs uses (the array has a duplicate), no
 * messages are simulated: it is not timed, and a million messages of different sizes take long. All
 * ranks are in one process, and copy what is for them from the others' memory. */
#include <mpi.h>

#include <stdlib.h>
#include <string.h>

#define TAG      771
#define THROTTLE 32 /* MPIR_CVAR_ALLTOALL_THROTTLE */

/* What a rank has for the others. */
struct offer {
    const char *sent;
    const int *starts;
    MPI_Aint extent;
};

static int take_from_memory(const struct offer *mine, char *received, const int *recv_counts,
                            const int *recv_starts, int rank, int size, MPI_Comm comm)
{
    const struct offer **all = malloc((size_t)size * sizeof *all);
    if (!all)
        return MPI_ERR_NO_MEM;
    int result = PMPI_Allgather(&mine, sizeof mine, MPI_BYTE, all, sizeof mine, MPI_BYTE, comm);
    for (int from = 0; from < size && result == MPI_SUCCESS; from++)
        memcpy(received + recv_starts[from] * mine->extent,
               all[from]->sent + all[from]->starts[rank] * mine->extent,
               (size_t)(recv_counts[from] * mine->extent));
    free(all);
    return result == MPI_SUCCESS ? PMPI_Barrier(comm) : result; /* nobody's memory goes before */
}

int MPI_Alltoallv(const void *sent, const int *send_counts, const int *send_starts,
                  MPI_Datatype send_type, void *received, const int *recv_counts,
                  const int *recv_starts, MPI_Datatype recv_type, MPI_Comm comm)
{
    MPI_Request requests[2 * THROTTLE];
    MPI_Aint lower, send_extent, recv_extent;
    int rank, size, result = MPI_SUCCESS;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &size);
    PMPI_Type_get_extent(send_type, &lower, &send_extent);
    PMPI_Type_get_extent(recv_type, &lower, &recv_extent);
    if (comm == MPI_COMM_WORLD) {
        struct offer mine = {sent, send_starts, send_extent};
        return take_from_memory(&mine, received, recv_counts, recv_starts, rank, size, comm);
    }
    for (int first = 0; first < size && result == MPI_SUCCESS; first += THROTTLE) {
        int after = first + THROTTLE < size ? first + THROTTLE : size, n = 0;
        for (int k = first; k < after && result == MPI_SUCCESS; k++) {
            int from = (rank + k) % size;
            if (recv_counts[from] > 0)
                result = PMPI_Irecv((char *)received + recv_starts[from] * recv_extent,
                                    recv_counts[from], recv_type, from, TAG, comm, &requests[n++]);
        }
        for (int k = first; k < after && result == MPI_SUCCESS; k++) {
            int to = (rank + size - k) % size;
            if (send_counts[to] > 0)
                result = PMPI_Isend((const char *)sent + send_starts[to] * send_extent,
                                    send_counts[to], send_type, to, TAG, comm, &requests[n++]);
        }
        if (result == MPI_SUCCESS)
            result = PMPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    }
    return result;
}
