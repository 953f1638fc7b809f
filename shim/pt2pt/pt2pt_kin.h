/* Communicators of all ranks whose collectives are another's: a program sends on its Cartesian
 * communicator, say, and reduces on MPI_COMM_WORLD. Where all ranks meet for one of them they may
 * as well meet for another. So a communicator of all ranks on which messages are learned of, but on
 * which hardly any blocking collective is called, joins: the others' blocking collectives count as
 * its own from then on.
 *
 * Ranks tell such communicators apart by numbers, which they get as they are made. Thread rule: one
 * thread; where several may call MPI, they could make communicators in different orders, and none
 * joins. */
#ifndef CARPOOL_PT2PT_KIN_H
#define CARPOOL_PT2PT_KIN_H

#include <mpi.h>

struct cpl_comm_state;
struct cpl_hooks;

extern const struct cpl_hooks cpl_kin_hooks;

/* A communicator was made, by a call that is collective over the old one; any handle. Waits for
 * memory. */
void cpl_kin_made(MPI_Comm comm);

/* Notes a blocking collective of the communicator for what is learned of messages on the others.
 * Local. */
void cpl_kin_note_collective(const struct cpl_comm_state *state);

#endif
