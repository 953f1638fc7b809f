/* Small reductions in memory that the ranks of a node share (wait/assembly.h): without messages,
 * with the bits of embed.h's exchange. Where that doubles the ranks three times, here a rank sees
 * the vectors of eight and combines them itself, in the same order. */
#ifndef CARPOOL_EMBED_MEMORY_H
#define CARPOOL_EMBED_MEMORY_H

#include "shim/carry/embed_kind.h"

#include <stdbool.h>

struct cpl_comm_state;

/* Whether all ranks of the communicator, which are all of MPI_COMM_WORLD, share memory. The same
 * answer on all of them. Local. */
bool cpl_embed_in_memory(const struct cpl_comm_state *state);

/* Combines the ranks' vectors of a kind in the order of ranks; `vector` is this rank's, then the
 * result. Polls. Collective. */
void cpl_embed_reduce_in_memory(const struct cpl_comm_state *state,
                                const struct cpl_embed_kind *kind, void *vector);

#endif
