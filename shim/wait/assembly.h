/* Where ranks wait for each other while they poll.
 *
 * Ranks of one node have a barrier in memory: each tells the others that it has come, by numbers in
 * memory that all ranks of the node share, and polls until they have. MPI's barrier that polls
 * (MPI_Ibarrier) goes by steps of messages, each of which waits until a rank gets its core.
 *
 * For each two ranks of the node there is a number of barriers, of whatever communicators, to which
 * the one has come for the other. Both enter those that they have in common in the same order, so
 * communicators need no memory of their own. Where all ranks are on several nodes the first one of
 * each waits for the others of its node, then for the first ones of other nodes.
 *
 * Where all ranks are on one node they can also show each other vectors, in rounds: in each round a
 * rank shows a vector at each step, and what it shows at one step of one round can be read until
 * it begins the next round but one. So nobody may begin that before all have read it: each round
 * has to end on no rank before all have begun it. Thread rule: one thread. */
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

/* What the caller needs to take part. node: the ranks of the node; leaders: the first ranks of all
 * nodes, MPI_COMM_NULL on others; memory: the node's, zeros, or NULL. All become the assembly's.
 * NULL: there is no memory for it, or MPI fails; they are freed. */
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

#endif
