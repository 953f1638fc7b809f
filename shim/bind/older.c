/* Functions of MPI 4 and 4.1 by those of MPI 3 (find.h). */
#include "shim/bind/find.h"

#include <mpi.h>

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool fits(MPI_Count count)
{
    return count <= INT_MAX;
}

/* A function with one count, by the one whose count is an int. */
#define NARROWED(name, parameters, call)                                                           \
    static int name parameters                                                                     \
    {                                                                                              \
        return fits(count) ? call : MPI_ERR_COUNT;                                                 \
    }
NARROWED(isend,
         (const void *buf, MPI_Count count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
          MPI_Request *request),
         PMPI_Isend(buf, (int)count, type, dest, tag, comm, request))
NARROWED(irecv,
         (void *buf, MPI_Count count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
          MPI_Request *request),
         PMPI_Irecv(buf, (int)count, type, source, tag, comm, request))
NARROWED(imrecv,
         (void *buf, MPI_Count count, MPI_Datatype type, MPI_Message *message,
          MPI_Request *request),
         PMPI_Imrecv(buf, (int)count, type, message, request))
NARROWED(recv,
         (void *buf, MPI_Count count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
          MPI_Status *status),
         PMPI_Recv(buf, (int)count, type, source, tag, comm, status))
NARROWED(reduce_local,
         (const void *inbuf, void *inoutbuf, MPI_Count count, MPI_Datatype type, MPI_Op op),
         PMPI_Reduce_local(inbuf, inoutbuf, (int)count, type, op))

static int sendrecv(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest,
                    int sendtag, void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
                    int source, int recvtag, MPI_Comm comm, MPI_Status *status)
{
    if (!fits(sendcount) || !fits(recvcount))
        return MPI_ERR_COUNT;
    return PMPI_Sendrecv(sendbuf, (int)sendcount, sendtype, dest, sendtag, recvbuf, (int)recvcount,
                         recvtype, source, recvtag, comm, status);
}

static int pack(const void *inbuf, MPI_Count incount, MPI_Datatype type, void *outbuf,
                MPI_Count outsize, MPI_Count *position, MPI_Comm comm)
{
    if (!fits(incount) || !fits(outsize))
        return MPI_ERR_COUNT;
    int at = (int)*position;
    int result = PMPI_Pack(inbuf, (int)incount, type, outbuf, (int)outsize, &at, comm);
    *position = at;
    return result;
}

static int unpack(const void *inbuf, MPI_Count insize, MPI_Count *position, void *outbuf,
                  MPI_Count outcount, MPI_Datatype type, MPI_Comm comm)
{
    if (!fits(insize) || !fits(outcount))
        return MPI_ERR_COUNT;
    int at = (int)*position;
    int result = PMPI_Unpack(inbuf, (int)insize, &at, outbuf, (int)outcount, type, comm);
    *position = at;
    return result;
}

/* How many neighbours a rank has on one side of its communicator. */
static int degree(MPI_Comm comm, bool out)
{
    int topology = MPI_UNDEFINED, n[2] = {0, 0}, rank, weighted;
    PMPI_Topo_test(comm, &topology);
    if (topology == MPI_DIST_GRAPH) {
        PMPI_Dist_graph_neighbors_count(comm, &n[0], &n[1], &weighted);
    } else if (topology == MPI_CART) {
        PMPI_Cartdim_get(comm, &n[0]);
        n[0] = n[1] = 2 * n[0];
    } else if (topology == MPI_GRAPH) {
        PMPI_Comm_rank(comm, &rank);
        PMPI_Graph_neighbors_count(comm, rank, &n[0]);
        n[1] = n[0];
    }
    return n[out];
}

/* Counts, then displacements, as ints; NULL: no memory, or they do not fit. The caller frees it. */
static int *narrowed(const MPI_Count *counts, const MPI_Aint *displs, int n)
{
    int *ints = malloc(2 * (size_t)n * sizeof *ints + 1);
    for (int k = 0; ints && k < n; k++) {
        if (!fits(counts[k]) || !fits(displs[k])) {
            free(ints);
            return NULL;
        }
        ints[k] = (int)counts[k];
        ints[n + k] = (int)displs[k];
    }
    return ints;
}

/* MPICH reads the arrays within the call. */
static int ineighbor_alltoallv(const void *sendbuf, const MPI_Count *sendcounts,
                               const MPI_Aint *sdispls, MPI_Datatype sendtype, void *recvbuf,
                               const MPI_Count *recvcounts, const MPI_Aint *rdispls,
                               MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request)
{
    int n_in = degree(comm, false), n_out = degree(comm, true), result = MPI_ERR_COUNT;
    int *out = narrowed(sendcounts, sdispls, n_out), *in = narrowed(recvcounts, rdispls, n_in);
    if (out && in)
        result = PMPI_Ineighbor_alltoallv(sendbuf, out, out + n_out, sendtype, recvbuf, in,
                                          in + n_in, recvtype, comm, request);
    free(out);
    free(in);
    return result;
}

/* The three of MPI 4.1. A status alone does not tell a request that is not active from one that is
 * complete; one of the former that is not MPI_REQUEST_NULL counts as complete. */
static int get_status_some(int n, const MPI_Request requests[], int *n_done, int indices[],
                           MPI_Status statuses[])
{
    int n_active = 0, flag, result = MPI_SUCCESS;
    *n_done = 0;
    for (int k = 0; k < n && result == MPI_SUCCESS; k++) {
        MPI_Status status;
        if (requests[k] == MPI_REQUEST_NULL)
            continue;
        n_active++;
        result = PMPI_Request_get_status(requests[k], &flag, &status);
        if (result != MPI_SUCCESS || !flag)
            continue;
        if (statuses != MPI_STATUSES_IGNORE)
            statuses[*n_done] = status;
        indices[(*n_done)++] = k;
    }
    if (n_active == 0)
        *n_done = MPI_UNDEFINED;
    return result;
}

static int get_status_any(int n, const MPI_Request requests[], int *index, int *flag,
                          MPI_Status *status)
{
    int n_active = 0, result = MPI_SUCCESS;
    *index = MPI_UNDEFINED;
    *flag = 0;
    for (int k = 0; k < n && result == MPI_SUCCESS && !*flag; k++) {
        if (requests[k] == MPI_REQUEST_NULL)
            continue;
        n_active++;
        result = PMPI_Request_get_status(requests[k], flag, status);
        if (*flag)
            *index = k;
    }
    if (n_active == 0 && result == MPI_SUCCESS) /* an empty status */
        result = PMPI_Request_get_status(MPI_REQUEST_NULL, flag, status);
    return result;
}

static int get_status_all(int n, const MPI_Request requests[], int *flag, MPI_Status statuses[])
{
    int result = MPI_SUCCESS;
    *flag = 1;
    for (int k = 0; k < n && result == MPI_SUCCESS && *flag; k++)
        result = PMPI_Request_get_status(
            requests[k], flag, statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[k]);
    return result;
}

cpl_function *cpl_older(const char *name)
{
    static const struct {
        const char *name;
        cpl_function *function;
    } functions[] = {
        {"PMPI_Isend_c", (cpl_function *)isend},
        {"PMPI_Irecv_c", (cpl_function *)irecv},
        {"PMPI_Imrecv_c", (cpl_function *)imrecv},
        {"PMPI_Recv_c", (cpl_function *)recv},
        {"PMPI_Sendrecv_c", (cpl_function *)sendrecv},
        {"PMPI_Reduce_local_c", (cpl_function *)reduce_local},
        {"PMPI_Pack_c", (cpl_function *)pack},
        {"PMPI_Unpack_c", (cpl_function *)unpack},
        {"PMPI_Request_get_status_all", (cpl_function *)get_status_all},
        {"PMPI_Request_get_status_any", (cpl_function *)get_status_any},
        {"PMPI_Request_get_status_some", (cpl_function *)get_status_some},
        {"PMPI_Ineighbor_alltoallv_c", (cpl_function *)ineighbor_alltoallv},
    };
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++)
        if (strcmp(name, functions[k].name) == 0)
            return functions[k].function;
    return NULL;
}
