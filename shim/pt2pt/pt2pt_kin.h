/* Communicators whose collectives are another's: a program sends on its Cartesian communicator, or
 * on those of its rows, and reduces on MPI_COMM_WORLD. Where all ranks meet for one communicator
 * they may as well meet for others. So one on which messages or nonblocking collectives are learned
 * of, but on which hardly any blocking collective is called, joins: blocking collectives of
 * communicators of all ranks count as its own from then on.
 *
 * Ranks tell such communicators apart by numbers, which those get that were made by all ranks
 * together; those that one call makes of fewer ranks each (MPI_Comm_split) have the same. What is
 * made of these (a copy of a row's) has a number, too, made of theirs and of how many were made of
 * it before. Thread
 * rule: one thread; where several may call MPI, they could make communicators in different orders,
 * and none joins. */
#ifndef CARPOOL_PT2PT_KIN_H
#define CARPOOL_PT2PT_KIN_H

#include <mpi.h>

struct cpl_comm_state;
struct cpl_hooks;

extern const struct cpl_hooks cpl_kin_hooks;

/* A communicator was made, by a call that is collective over `over`; any handle. Waits for memory.
 */
void cpl_kin_made(MPI_Comm over, MPI_Comm comm);

/* Notes a blocking collective of the communicator for what is learned of messages on the others.
 * Local. */
void cpl_kin_note_collective(const struct cpl_comm_state *state);

#endif
