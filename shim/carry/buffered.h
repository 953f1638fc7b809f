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

/* The program has attached a buffer of size bytes (INT64_MAX: any number), or has detached it; or
 * one of a communicator, whose size does not count. Local. */
void cpl_buffered_attach(int64_t size);
void cpl_buffered_detach(void);
void cpl_buffered_attach_to_comm(bool yes);

/* Waits, while polling, until all buffered messages on a communicator have been sent;
 * MPI_COMM_NULL: on all. */
void cpl_buffered_flush(MPI_Comm of);

/* The same without waiting: makes a request that is complete then, and when MPI has completed
 * `inner`. Returns MPI_SUCCESS or MPI_ERR_NO_MEM. Local. */
int cpl_buffered_iflush(MPI_Comm of, MPI_Request inner, MPI_Request *request);

/* Whether the attached buffers have room for a buffered send of `bytes` bytes. */
bool cpl_buffered_has_room(int64_t bytes);

/* Copies the data and sends it on comm. `of`: it is a buffered send of the program on that
 * communicator, and counts against the attached buffer; MPI_COMM_NULL: it is none. Returns
 * MPI_SUCCESS or MPI's error. */
int cpl_buffered_send(const struct cpl_span *span, int dest, int tag, MPI_Comm comm, MPI_Comm of);

/* Whether sends from copies are under way on a communicator. Local. */
bool cpl_buffered_any(MPI_Comm comm);

/* A buffered send on a communicator that is not managed: makes its request, which is complete, with
 * MPI's result in *result. Returns false when the call is to go to MPI, which refuses it. */
bool cpl_buffered_isend(const void *buffer, MPI_Count count, MPI_Datatype type, int dest, int tag,
                        MPI_Comm comm, MPI_Request *request, int *result);

extern const struct cpl_hooks cpl_buffered_hooks;

#endif
