/* Arguments of a message as the shim sees them. */
#ifndef CARPOOL_DESCRIBE_H
#define CARPOOL_DESCRIBE_H

#include "shim/state/datatype.h"

#include <mpi.h>
#include <stdbool.h>

/* Describes a buffer. Returns false when MPI would refuse the buffer or the tag: unless the
 * arguments are clearly valid, it asks MPI by a message to or from MPI_PROC_NULL. Local. */
bool cpl_describe(const void *buffer, MPI_Count count, MPI_Datatype type, int tag, bool receives,
                  struct cpl_span *span);

/* cpl_is_rank: whether a peer is a rank below size, or MPI_ANY_SOURCE of a receive. cpl_is_peer:
 * whether it is a rank of comm, MPI_ANY_SOURCE of a receive, or MPI_PROC_NULL. Local. */
bool cpl_is_rank(int peer, int size, bool receives);
bool cpl_is_peer(MPI_Comm comm, int peer, bool receives);

#endif
