/* Calls that SimGrid's MPI lacks or has otherwise (standin.h): large-count forms that the shim
 * makes, attributes of MPI_COMM_WORLD, counting of messages. */
#include "standin.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#undef PMPI_Isend
#undef PMPI_Irecv
#undef PMPI_Comm_get_attr
#undef PMPI_Comm_set_attr
#undef PMPI_Comm_delete_attr

static struct cpl_sim_count counted;

struct cpl_sim_count cpl_sim_counted(void)
{
    return counted;
}

int cpl_sim_isend(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                  MPI_Request *request)
{
    int size = 0;
    PMPI_Type_size(type, &size);
    counted.n_sends++;
    counted.bytes += (int64_t)count * size;
    return PMPI_Isend(buffer, count, type, to, tag, comm, request);
}

int cpl_sim_irecv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                  MPI_Request *request)
{
    counted.n_recvs++;
    return PMPI_Irecv(buffer, count, type, from, tag, comm, request);
}

/* ---- attributes ---- */

/* SMPI keeps those of MPI_COMM_WORLD once for all ranks. */
static MPI_Comm own(MPI_Comm comm)
{
    return comm == MPI_COMM_WORLD ? MPI_COMM_SELF : comm;
}

int cpl_sim_comm_get_attr(MPI_Comm comm, int keyval, void *value, int *found)
{
    return PMPI_Comm_get_attr(own(comm), keyval, value, found);
}

int cpl_sim_comm_set_attr(MPI_Comm comm, int keyval, void *value)
{
    return PMPI_Comm_set_attr(own(comm), keyval, value);
}

int cpl_sim_comm_delete_attr(MPI_Comm comm, int keyval)
{
    return PMPI_Comm_delete_attr(own(comm), keyval);
}

/* Simulated programs are not spawned. */
int PMPI_Comm_get_parent(MPI_Comm *parent)
{
    *parent = MPI_COMM_NULL;
    return MPI_SUCCESS;
}

/* ---- large counts ---- */

static bool too_many(MPI_Count count)
{
    return count < 0 || count > INT_MAX;
}

int PMPI_Isend_c(const void *buffer, MPI_Count count, MPI_Datatype type, int to, int tag,
                 MPI_Comm comm, MPI_Request *request)
{
    if (too_many(count))
        return MPI_ERR_COUNT;
    return cpl_sim_isend(buffer, (int)count, type, to, tag, comm, request);
}

int PMPI_Irecv_c(void *buffer, MPI_Count count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                 MPI_Request *request)
{
    if (too_many(count))
        return MPI_ERR_COUNT;
    return cpl_sim_irecv(buffer, (int)count, type, from, tag, comm, request);
}

int PMPI_Sendrecv_c(const void *sent, MPI_Count n_sent, MPI_Datatype sent_type, int to,
                    int sent_tag, void *received, MPI_Count n_received, MPI_Datatype received_type,
                    int from, int tag, MPI_Comm comm, MPI_Status *status)
{
    if (too_many(n_sent) || too_many(n_received))
        return MPI_ERR_COUNT;
    return PMPI_Sendrecv(sent, (int)n_sent, sent_type, to, sent_tag, received, (int)n_received,
                         received_type, from, tag, comm, status);
}

int PMPI_Imrecv_c(void *buffer, MPI_Count count, MPI_Datatype type, MPI_Message *message,
                  MPI_Request *request)
{
    if (too_many(count))
        return MPI_ERR_COUNT;
    return PMPI_Imrecv(buffer, (int)count, type, message, request);
}

int PMPI_Pack_c(const void *from, MPI_Count count, MPI_Datatype type, void *to, MPI_Count size,
                MPI_Count *position, MPI_Comm comm)
{
    if (too_many(count) || too_many(size) || too_many(*position))
        return MPI_ERR_COUNT;
    int at = (int)*position;
    int result = PMPI_Pack(from, (int)count, type, to, (int)size, &at, comm);
    *position = at;
    return result;
}

int PMPI_Unpack_c(const void *from, MPI_Count size, MPI_Count *position, void *to, MPI_Count count,
                  MPI_Datatype type, MPI_Comm comm)
{
    if (too_many(count) || too_many(size) || too_many(*position))
        return MPI_ERR_COUNT;
    int at = (int)*position;
    int result = PMPI_Unpack(from, (int)size, &at, to, (int)count, type, comm);
    *position = at;
    return result;
}

int PMPI_Allreduce_c(const void *sent, void *received, MPI_Count count, MPI_Datatype type,
                     MPI_Op op, MPI_Comm comm)
{
    return too_many(count) ? MPI_ERR_COUNT
                           : PMPI_Allreduce(sent, received, (int)count, type, op, comm);
}

int PMPI_Reduce_local_c(const void *in, void *inout, MPI_Count count, MPI_Datatype type, MPI_Op op)
{
    return too_many(count) ? MPI_ERR_COUNT : PMPI_Reduce_local(in, inout, (int)count, type, op);
}

/* ---- calls that are missing ---- */

static int lacks(const char *name)
{
    fprintf(stderr, "SimGrid's MPI has no MPI_%s, and the stand-in (bench/sim) neither\n", name);
    PMPI_Abort(MPI_COMM_WORLD, 1);
    return MPI_ERR_OTHER;
}

/* Under the symbol of the call, whatever its parameters: none is used. */
#define LACKS(name, symbol)                                                                        \
    int cpl_sim_lacks_##name(void) __asm__(symbol);                                                \
    int cpl_sim_lacks_##name(void)                                                                 \
    {                                                                                              \
        return lacks(#name);                                                                       \
    }
#define LACKING(name) LACKS(name, "PMPI_" #name)
#include "standin.def"
LACKS(Comm_spawn_multiple, "cpl_sim_pcomm_spawn_multiple")
