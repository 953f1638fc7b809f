/* Which processes can share memory: those of one host, of one start of its kernel, with the same
 * /dev/shm. */
#ifndef CARPOOL_MEMORY_DOMAIN_H
#define CARPOOL_MEMORY_DOMAIN_H

#include <stdbool.h>
#include <stdint.h>

/* A number of the node of the calling process, from 0; processes of other nodes have others. MPI's
 * word is a hint: leader is the first rank of those of which MPI says that they share memory with
 * this one. Where it says so of any ranks (is_grouped), ranks of two leaders are on two nodes.
 * Where it calls every rank alone, as MPICH 5 over UCX does on one host, that says nothing. Whether
 * memory can be shared is known when it was tried. Local; reads files of the system. */
int64_t cpl_memory_node(int64_t leader, bool is_grouped);

#ifdef CPL_SIMULATED /* ranks of all simulated nodes are in one process */
#define cpl_memory_node(leader, is_grouped) ((void)(is_grouped), (int64_t)(leader))
#endif

#endif
