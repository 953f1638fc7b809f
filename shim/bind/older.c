/* Functions of MPI 4 by those of MPI 3 (find.h). */
#include "shim/bind/find.h"

#include <mpi.h>

#include <limits.h>
#include <stdbool.h>
#include <string.h>

static bool fits(MPI_Count count)
{
    return count <= INT_MAX;
}

/* A function by the one whose counts are ints, where they fit. */
#define NARROWED(name, parameters, fit, call)                                                      \
    static int name parameters                                                                     \
    {                                                                                              \
        return (fit) ? call : MPI_ERR_COUNT;                                                       \
    }
NARROWED(isend,
         (const void *buf, MPI_Count count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
          MPI_Request *request),
         fits(count), PMPI_Isend(buf, (int)count, type, dest, tag, comm, request))
NARROWED(irecv,
         (void *buf, MPI_Count count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
          MPI_Request *request),
         fits(count), PMPI_Irecv(buf, (int)count, type, source, tag, comm, request))
NARROWED(imrecv,
         (void *buf, MPI_Count count, MPI_Datatype type, MPI_Message *message,
          MPI_Request *request),
         fits(count), PMPI_Imrecv(buf, (int)count, type, message, request))
NARROWED(recv,
         (void *buf, MPI_Count count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
          MPI_Status *status),
         fits(count), PMPI_Recv(buf, (int)count, type, source, tag, comm, status))
NARROWED(reduce_local,
         (const void *inbuf, void *inoutbuf, MPI_Count count, MPI_Datatype type, MPI_Op op),
         fits(count), PMPI_Reduce_local(inbuf, inoutbuf, (int)count, type, op))
NARROWED(sendrecv,
         (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest, int sendtag,
          void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int source, int recvtag,
          MPI_Comm comm, MPI_Status *status),
         fits(sendcount) && fits(recvcount),
         PMPI_Sendrecv(sendbuf, (int)sendcount, sendtype, dest, sendtag, recvbuf, (int)recvcount,
                       recvtype, source, recvtag, comm, status))

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
    };
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++)
        if (strcmp(name, functions[k].name) == 0)
            return functions[k].function;
    return NULL;
}
