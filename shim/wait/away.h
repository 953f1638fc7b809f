/* Calls that wait inside MPI, where this rank cannot poll: before one is entered, all ranks that it
 * would wait for have come to it, by a barrier that polls. So inside it a rank waits only for ranks
 * that are inside, too, and for none that might need it to forward, to match or to acknowledge
 * something first. Where nothing is managed or served the calls go straight to MPI.
 *
 * All ranks of the call must choose alike whether there is a barrier; see collective.h, whose rule
 * this is. Groups with processes of another MPI_COMM_WORLD have none.
 *
 * Windows: MPI_Win_start waits for the posts of its group, and MPI_Win_lock for other ranks'
 * unlocking, neither of which is a call that both sides enter together. away_window.c tells by
 * messages of its own when they can be entered. */
#ifndef CARPOOL_AWAY_H
#define CARPOOL_AWAY_H

#include <mpi.h>
#include <stdbool.h>

/* At the end of MPI. */
void cpl_away_end(void);

/* The call waits for the ranks of a group, of a window, or of those that opened a file. Handles may
 * be invalid: MPI refuses the call. */
void cpl_away_group(MPI_Group group);
void cpl_away_window(MPI_Win win);
void cpl_away_file(MPI_File file);

/* It waits for the leaders of two groups to have found each other. */
void cpl_away_leaders(MPI_Comm local, int local_leader, MPI_Comm peers, int remote_leader);

/* Whether calls have to be gathered for: anything is managed or served. Alike on all ranks between
 * two collectives over them. And the rank in MPI_COMM_WORLD of a group's k-th; MPI_UNDEFINED: it is
 * of another one. */
bool cpl_away_gathers(void);
int cpl_away_world_rank(MPI_Group group, int k);

/* It waits for nobody who is not in MPI already: batches leave, calls that are under way go on. */
void cpl_away_alone(void);

#endif
