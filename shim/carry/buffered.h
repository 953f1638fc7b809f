/* Sends from copies in the shim's memory: payloads above the size limit that are complete for the
 * program as soon as they are copied, as MPI_Bsend and its relatives promise and
 * MPI_Isendrecv_replace needs. MPI_Isend sends the copy.
 *
 * The program's attached buffer is not used, but its size counts: a buffered send for which it has
 * no room is refused, as MPI does. Thread rule: as the shim's. */
#ifndef CARPOOL_BUFFERED_H
#define CARPOOL_BUFFERED_H

#include "shim/state/datatype.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

/* Attach: the program has attached a buffer of size bytes. Detach: before the program detaches it,
 * waits, while polling, until all buffered messages have been sent. */
void cpl_buffered_attach(int64_t size);
void cpl_buffered_detach(void);

/* Whether the attached buffer has room for a buffered send of `bytes` bytes. */
bool cpl_buffered_has_room(int64_t bytes);

/* Copies the data and sends it; counts against the attached buffer when `buffered`. Returns
 * MPI_SUCCESS or MPI's error. */
int cpl_buffered_send(const struct cpl_span *span, int dest, int tag, MPI_Comm comm, bool buffered);

/* Whether sends from copies are under way on a communicator. Local. */
bool cpl_buffered_any(MPI_Comm comm);

/* A buffered send on a communicator that is not managed: makes its request, which is complete, with
 * MPI's result in *result. Returns false when the call is to go to MPI, which refuses it. */
bool cpl_buffered_isend(const void *buffer, MPI_Count count, MPI_Datatype type, int dest, int tag,
                        MPI_Comm comm, MPI_Request *request, int *result);

extern const struct cpl_hooks cpl_buffered_hooks;

#endif
