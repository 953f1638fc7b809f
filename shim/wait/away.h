/* Calls that wait inside MPI, where this rank cannot poll. Before such a call a barrier that polls
 * waits until all ranks that the call would wait for have come. So inside the call a rank waits
 * only for ranks that are inside, too, and for none that might need it to forward, to match or to
 * acknowledge something first. Where nothing is managed or served the calls go straight to MPI.
 *
 * All ranks of the call must choose alike whether there is a barrier; collective.h has the rule.
 * Groups with processes of another MPI_COMM_WORLD have no barrier.
 *
 * Windows: MPI_Win_start waits for the posts of its group, and MPI_Win_lock until other ranks
 * unlock. Both sides do not enter these calls together, so calls/wrappers_windows.c finds out by
 * messages of its own when they can be entered. */
#ifndef CARPOOL_AWAY_H
#define CARPOOL_AWAY_H

#include <mpi.h>
#include <stdbool.h>

/* At the end of MPI. */
void cpl_away_end(void);

/* Before a call that waits for the ranks of a group, of a window, or of the communicator that
 * opened a file. Handles may be invalid: MPI then refuses the call. */
void cpl_away_group(MPI_Group group);
void cpl_away_window(MPI_Win win);
void cpl_away_file(MPI_File file);

/* Before a call in which the leaders of two groups wait for each other. */
void cpl_away_leaders(MPI_Comm local, int local_leader, MPI_Comm peers, int remote_leader);

/* Whether a group has only processes of this MPI_COMM_WORLD. Local. */
bool cpl_away_is_of_this_world(MPI_Group group);

/* cpl_away_gathers: whether such calls need a barrier, because something is managed or served.
 * Alike on all ranks between two collectives over them. cpl_away_world_rank: the rank in
 * MPI_COMM_WORLD of a group's k-th process; MPI_UNDEFINED when it belongs to another world. */
bool cpl_away_gathers(void);
int cpl_away_world_rank(MPI_Group group, int k);

#endif
