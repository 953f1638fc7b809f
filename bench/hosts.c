/*
 * libhosts.so: MPICH 4.0.2 over UCX and TCP waits for ever in MPI_Finalize now and then, with no
 * other library, too: a rank that closes its connections waits for one that has done so already
 * and waits for the launcher. With this preloaded connections are not closed one by one but with
 * UCX's worker, after all ranks have come and what they had sent has gone. For runs on
 * bench/cluster.sh only.
 */
#include <mpi.h>
#include <stddef.h>

#define SECONDS 0.02

void *ucp_disconnect_nb(void *endpoint);

/* As in UCX, where NULL says that it is done. */
void *ucp_disconnect_nb(void *endpoint)
{
    (void)endpoint;
    return NULL;
}

int MPI_Finalize(void)
{
    int flag;
    PMPI_Barrier(MPI_COMM_WORLD);
    for (double begin = PMPI_Wtime(); PMPI_Wtime() - begin < SECONDS;)
        PMPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
    PMPI_Barrier(MPI_COMM_WORLD);
    return PMPI_Finalize();
}
