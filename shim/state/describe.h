/* Arguments of a message as the shim sees them, and where its buffers are (datatype.c). */
#ifndef CARPOOL_DESCRIBE_H
#define CARPOOL_DESCRIBE_H

#include "shim/state/context.h"
#include "shim/state/datatype.h"

#include <mpi.h>
#include <stdbool.h>

/* cpl_describe for arguments of which it is not clear at a glance that MPI takes them. */
bool cpl_describe_with_care(const void *buffer, MPI_Count count, MPI_Datatype type, int tag,
                            bool receives, struct cpl_span *span);

/* Describes a buffer. Returns false when MPI would refuse the buffer or the tag: unless the
 * arguments are clearly valid, it asks MPI by a message to or from MPI_PROC_NULL. Local. */
static inline bool cpl_describe(const void *buffer, MPI_Count count, MPI_Datatype type, int tag,
                                bool receives, struct cpl_span *span)
{
    const struct cpl_type *known = cpl_type_named(type);
    if (!known || tag < 0 || tag > cpl_context.tag_ub || !buffer || count < 0)
        return cpl_describe_with_care(buffer, count, type, tag, receives, span);
    span->address = (char *)(uintptr_t)buffer;
    span->count = count;
    span->type = *known;
    return true;
}

/* cpl_is_rank: whether a peer is a rank below size, or MPI_ANY_SOURCE of a receive. cpl_is_peer:
 * whether it is a rank of comm, MPI_ANY_SOURCE of a receive, or MPI_PROC_NULL. Local. */
static inline bool cpl_is_rank(int peer, int size, bool receives)
{
    return (peer >= 0 && peer < size) || (receives && peer == MPI_ANY_SOURCE);
}

bool cpl_is_peer(MPI_Comm comm, int peer, bool receives);

/* ---- memory of devices. Where a GPU's runtime is in the process, each buffer is looked at before
 * it is copied, and MPI copies what the processor cannot read. ---- */

/* Looks whether a GPU's runtime is in the process, which the loader may bring in later, and there
 * is a GPU: Debian 13's UCX brings Level Zero's anywhere. Local. */
void cpl_device_look(void);

/* Whether the processor cannot read at an address. Costs a system call. Local. */
bool cpl_device_is_unreadable(const void *address);

/* Whether a buffer is on a device. Costs a branch where there is no runtime. Local. */
static inline bool cpl_device_has(const void *address)
{
    return __builtin_expect(cpl_context.machine.has_device, 0) && cpl_device_is_unreadable(address);
}

#endif
