/* Arguments of a message as the shim sees them. */
#ifndef CARPOOL_DESCRIBE_H
#define CARPOOL_DESCRIBE_H

#include "shim/state/datatype.h"

#include <mpi.h>
#include <stdbool.h>

/* Describes a buffer; false: MPI would refuse it or the tag. MPI itself is asked, by a message to
 * or from MPI_PROC_NULL, unless the arguments are of the usual kind. Local. */
bool cpl_describe(const void *buffer, MPI_Count count, MPI_Datatype type, int tag, bool receives,
                  struct cpl_span *span);

/* Whether a peer is a rank of size, or MPI_ANY_SOURCE of a receive; the same of a communicator, or
 * MPI_PROC_NULL. Local. */
bool cpl_is_rank(int peer, int size, bool receives);
bool cpl_is_peer(MPI_Comm comm, int peer, bool receives);

#endif
