/* Memory that the ranks of a node share, opened by all of them together. Whether ranks share memory
 * is tried, not believed. */
#ifndef CARPOOL_NODE_MEMORY_H
#define CARPOOL_NODE_MEMORY_H

#include "shim/base/shared_memory.h"

#include <mpi.h>
#include <stdint.h>

extern const struct cpl_hooks cpl_node_hooks; /* assembling.c */

/* Memory for the ranks of `node`: bytes, which are alike on all, of which the first CPL_SHARED_HEAD
 * are taken; the others are zeros. It has no name any more, so nothing stays when a process dies;
 * the caller frees it by cpl_shared_free. NULL on all of them when one cannot open it: why says
 * what went wrong on this rank, if anything did. Collective over node, whose errors return. */
unsigned char *cpl_node_memory_open(MPI_Comm node, int64_t bytes, char why[CPL_SHARED_WHY]);

#endif
