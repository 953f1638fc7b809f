/* Communicators of fewer ranks than MPI_COMM_WORLD, their messages and nonblocking collectives.
 *
 * While one is carried its ranks must serve each other wherever they wait. Whether a collective
 * polls must be known alike to all its ranks, who may know nothing of that communicator
 * (collective.h). So all ranks of MPI_COMM_WORLD settle at their meetings that they poll, as soon
 * as the ranks of some communicator have found that it could be carried; these agree at their next
 * meeting. When no rank has such a communicator any more they settle that they do not poll.
 * cpl_context.busy.parts says which. */
#ifndef CARPOOL_PT2PT_PARTS_H
#define CARPOOL_PT2PT_PARTS_H

#include "shim/state/hooks.h"

#include <stdbool.h>

struct cpl_comm_state;

/* Whether the ranks of a communicator may agree to manage it now. Local; alike on its ranks. */
bool cpl_parts_are_served(const struct cpl_comm_state *state);

/* For the table of hooks of messages (state/hooks.h). */
enum cpl_part_need cpl_pt2pt_part_need(const struct cpl_comm_state *state);
void cpl_pt2pt_part_hasten(struct cpl_comm_state *state);

/* At the end of MPI, when nothing is managed any more on any rank. */
void cpl_parts_end(void);

extern const struct cpl_hooks cpl_parts_hooks;

#endif
