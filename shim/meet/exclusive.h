/* Exclusive sections: settling something while other threads of the program may call MPI. In a
 * program with MPI_THREAD_MULTIPLE the ranks may meet on several communicators at the same time, in
 * another order on each rank, and other threads send, receive and start calls meanwhile. So nothing
 * is settled but by who is in the exclusive section on all ranks of a communicator: there, no other
 * thread is in a call, and none enters one until it is over. What ranks settle is then what they
 * would settle in a program with one thread, and any two floors that have a rank in common come in
 * the same order on all ranks.
 *
 * It is asked for, not waited for. In a first round each rank gives it to who asks first, if
 * no other thread is in a call; meanwhile others may come and go, since the ranks that have not
 * come yet may wait for them. Once all ranks have given it, all have come: in a second round, with
 * the lock kept, they see whether each is still alone. Where a communicator does not get it,
 * none of its ranks settles anything, and they try again at a later call, or leave the matter to
 * MPI.
 *
 * In other programs all this costs a branch. */
#ifndef CARPOOL_EXCLUSIVE_H
#define CARPOOL_EXCLUSIVE_H

#include <mpi.h>
#include <stdbool.h>

/* Enters the exclusive section, on all ranks of comm or on none; always in a program without
 * several threads. Returns whether they have it; alike on all. Until cpl_exclusive_leave,
 * collectives of all communicators poll (wait/collective.h). Collective. */
bool cpl_exclusive_take(MPI_Comm comm);

/* Gives it back. Local. */
void cpl_exclusive_leave(void);

#endif
