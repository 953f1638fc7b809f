/* Communicators of fewer ranks than MPI_COMM_WORLD, their messages and nonblocking collectives.
 *
 * Whether a collective polls must be known alike to all its ranks, who may know nothing of a
 * communicator that is carried (collective.h). So all ranks of MPI_COMM_WORLD settle at their
 * meetings that they poll (cpl_context.busy.parts), as soon as the ranks of some communicator have
 * found that it could be carried, until no rank has such a communicator any more. */
#ifndef CARPOOL_PT2PT_PARTS_H
#define CARPOOL_PT2PT_PARTS_H

#include "shim/state/hooks.h"

#include <mpi.h>
#include <stdbool.h>

struct cpl_comm_state;

/* Whether the ranks of a communicator may agree to manage it now. Local; alike on its ranks. */
bool cpl_parts_are_served(const struct cpl_comm_state *state);

/* For the table of hooks of messages (state/hooks.h). */
enum cpl_part_need cpl_pt2pt_part_need(const struct cpl_comm_state *state);

/* At the end of MPI, when nothing is managed any more on any rank. */
void cpl_parts_end(void);

extern const struct cpl_hooks cpl_parts_hooks;

/* Communicators whose collectives are another's: a program sends on its Cartesian communicator, or
 * on those of its rows, and reduces on MPI_COMM_WORLD. One on which messages or nonblocking
 * collectives are learned of, but on which hardly any blocking collective is called, joins:
 * blocking collectives of communicators of all ranks count as its own from then on.
 *
 * Ranks tell such communicators apart by numbers, which those get that were made by all ranks
 * together; those that one call makes of fewer ranks each (MPI_Comm_split) have the same. What is
 * made of these (a copy of a row's) has a number made of theirs. Where several threads may call MPI
 * none joins: they could make communicators in different orders. */

/* A communicator was made, by a call that is collective over `over`; any handle. Waits for memory.
 */
void cpl_family_made(MPI_Comm over, MPI_Comm comm);

#endif
