/* Sends from memory of the shim's: payloads above the size limit that are complete for the program
 * as soon as they are copied, which is what MPI_Bsend and its relatives promise, and
 * MPI_Isendrecv_replace needs. They are MPI's Isend from the copy.
 *
 * The program's attached buffer only counts: a buffered send for which it has no room is refused,
 * as MPI does. Thread rule: as the shim's. */
#ifndef CARPOOL_BUFFERED_H
#define CARPOOL_BUFFERED_H

#include "shim/state/datatype.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

/* The program has attached a buffer of so many bytes; it is about to detach it: waits, while
 * polling, until what was buffered has left. */
void cpl_buffered_attach(int64_t size);
void cpl_buffered_detach(void);

/* Whether the attached buffer has room for a buffered send of so many bytes. */
bool cpl_buffered_has_room(int64_t bytes);

/* Copies the data and sends it; counts against the attached buffer when `buffered`. Returns
 * MPI_SUCCESS or MPI's error. */
int cpl_buffered_send(const struct cpl_span *span, int dest, int tag, MPI_Comm comm, bool buffered);

/* A buffered send on a communicator that is not managed: makes its request, which is complete.
 * Returns false when MPI is to have the call, and refuses it. */
bool cpl_buffered_isend(const void *buffer, MPI_Count count, MPI_Datatype type, int dest, int tag,
                        MPI_Comm comm, MPI_Request *request, int *result);

extern const struct cpl_hooks cpl_buffered_hooks;

#endif
