/* Opens where the ranks of each node assemble (wait/assembly.h) before anything is managed, if they
 * can share memory on all nodes; else they go on by MPI. */
#ifndef CARPOOL_ASSEMBLING_H
#define CARPOOL_ASSEMBLING_H

struct cpl_hooks;

extern const struct cpl_hooks cpl_node_hooks;

#endif
