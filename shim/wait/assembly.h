/* Where ranks wait for each other while they poll.
 *
 * Ranks of one node have a barrier in memory: for each two ranks there is a number of barriers, of
 * whatever communicators, to which the one has come for the other, and each polls until the others
 * have come. Both enter those that they have in common in the same order, so communicators need no
 * memory of their own. Where all ranks are on several nodes the first one of each waits for the
 * others of its node, then for the first ones of other nodes.
 *
 * Where all ranks are on one node they can also show each other vectors, in rounds: in each round a
 * rank shows a vector at each step, which can be read until it begins the next round but one. So
 * each round has to end on no rank before all have begun it. Thread rule: one thread. */
#ifndef CARPOOL_ASSEMBLY_H
#define CARPOOL_ASSEMBLY_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In cpl_context.comms. */
struct cpl_assembly;

#define CPL_ASSEMBLY_VECTOR 1024 /* the most bytes of a vector */

/* Steps of a round, on a node of n ranks: one for three doublings of ranks, and two more. */
int cpl_assembly_steps(int n);

/* Bytes that a node of n ranks needs, behind the head of the memory (shared_memory.h). */
int64_t cpl_assembly_bytes(int n);

/* node: the ranks of the node; leaders: the first ranks of all nodes, MPI_COMM_NULL on others;
 * memory: the node's, zeros, or NULL. All become the assembly's. NULL: MPI fails; they are freed.
 * Waits for memory. */
struct cpl_assembly *cpl_assembly_make(MPI_Comm node, MPI_Comm leaders, unsigned char *memory,
                                       int64_t bytes);

/* Ends it; NULL is fine. Local but for the communicators, which are freed. */
void cpl_assembly_free(struct cpl_assembly *assembly);

/* Polls until all ranks of a communicator of this MPI_COMM_WORLD, of both groups if it has two,
 * have come here: in memory if they are on one node whose ranks share it; if they are all ranks of
 * MPI_COMM_WORLD, in the memory of each node, and the first ranks of the nodes by MPI; else by MPI.
 * Waits for memory. */
void cpl_assembly_gather(MPI_Comm comm);

/* Whether all ranks of MPI_COMM_WORLD are on one node, and assemble. Alike on all of them. */
bool cpl_assembly_is_whole(void);

/* Begins the next round. All ranks of MPI_COMM_WORLD begin the same rounds. */
void cpl_assembly_begin_round(void);

/* Shows this rank's vector of a step to the others. */
void cpl_assembly_show(int step, const void *vector, size_t bytes);

/* Polls until a rank of comm, which has the ranks of MPI_COMM_WORLD in any order, shows its vector
 * of a step of this round; aligned to 16 bytes. */
const unsigned char *cpl_assembly_see(MPI_Comm comm, int rank, int step);

/* ---- calls that wait inside MPI, where this rank cannot poll. Before such a call a barrier that
 * polls waits until all ranks that the call would wait for have come, if something is managed or
 * served. All ranks of the call must choose alike; collective.h has the rule. Groups with processes
 * of another MPI_COMM_WORLD have no barrier. For MPI_Win_start and MPI_Win_lock, which both sides
 * do not enter together, calls/wrappers_windows.c has messages of its own. ---- */

/* At the end of MPI. */
void cpl_away_end(void);

/* Before a call that waits for the ranks of a group, of a window, or of the communicator that
 * opened a file. Handles may be invalid: MPI then refuses the call. */
void cpl_away_group(MPI_Group group);
void cpl_away_window(MPI_Win win);
void cpl_away_file(MPI_File file);

/* Before a call in which the leaders of two groups wait for each other. */
void cpl_away_leaders(MPI_Comm local, int local_leader, MPI_Comm peers, int remote_leader);

/* Whether such calls need a barrier, because something is managed or served. Alike on all ranks
 * between two collectives over them. */
bool cpl_away_gathers(void);

/* Whether a group has only processes of this MPI_COMM_WORLD; the rank there of its k-th process,
 * MPI_UNDEFINED when it is of another one. Local. */
bool cpl_away_is_of_this_world(MPI_Group group);
int cpl_away_world_rank(MPI_Group group, int k);

#endif
