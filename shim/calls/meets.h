/* Calls of the program at which the ranks may meet (meet/meeting.h, meet/appointment.h). */
#ifndef CARPOOL_MEETS_H
#define CARPOOL_MEETS_H

#include <mpi.h>
#include <stdbool.h>

/* A blocking collective on comm, any handle, is entered: notes it, counts it, and meets if it is
 * time. Collective. */
void cpl_meets_at_collective(MPI_Comm comm);

/* A nonblocking collective was started on comm, any handle, with this result, which is returned,
 * and if it was started, this request. `by_all`: it ends when all ranks have started it. Local. */
int cpl_meets_started(MPI_Comm comm, int result, const MPI_Request *request, bool by_all);

/* A call that waits has ended with this result, which is returned. `appointed`: there was an
 * appointment for what it has waited for; then meets, if all ranks come. */
int cpl_meets_waited(bool appointed, int result);

#endif
