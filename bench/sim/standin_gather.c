/* MPI_Allgather as MPICH does it (standin.h). Up to its thresholds recursive doubling and Bruck's
 * form are SMPI's (simulate.sh has it choose as MPICH does); but what SMPI calls a ring has every
 * rank send its data to all others itself, where MPICH's hands on to the next rank what came from
 * the one before. */
#include "standin.h"

#undef PMPI_Allgather

#define TAG       770
#define LONG_DATA 524288 /* bytes in all: the ring from here on, */
#define MUCH_DATA 81920  /* from here on where the ranks are no power of two */

static int ring(void *recvbuf, int count, MPI_Datatype type, MPI_Comm comm, int rank, int size)
{
    MPI_Aint lower, extent;
    int before = (rank + size - 1) % size, after = (rank + 1) % size, result = MPI_SUCCESS;
    PMPI_Type_get_extent(type, &lower, &extent);
    for (int step = 0; step < size - 1 && result == MPI_SUCCESS; step++) {
        int sent = (rank + size - step) % size, received = (rank + 2 * size - step - 1) % size;
        result = PMPI_Sendrecv((char *)recvbuf + sent * count * extent, count, type, after, TAG,
                               (char *)recvbuf + received * count * extent, count, type, before,
                               TAG, comm, MPI_STATUS_IGNORE);
    }
    return result;
}

int cpl_sim_allgather(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                      int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    MPI_Aint lower, extent;
    int rank, size, bytes, result = MPI_SUCCESS;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &size);
    PMPI_Type_size(recvtype, &bytes);
    int64_t all = (int64_t)bytes * recvcount * size;
    if (all < ((size & (size - 1)) == 0 ? LONG_DATA : MUCH_DATA))
        return PMPI_Allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
    PMPI_Type_get_extent(recvtype, &lower, &extent);
    if (sendbuf != MPI_IN_PLACE)
        result = PMPI_Sendrecv(sendbuf, sendcount, sendtype, rank, TAG,
                               (char *)recvbuf + rank * recvcount * extent, recvcount, recvtype,
                               rank, TAG, comm, MPI_STATUS_IGNORE);
    return result == MPI_SUCCESS ? ring(recvbuf, recvcount, recvtype, comm, rank, size) : result;
}
