/* Which ranks are near each other in the reductions of a communicator ([Selvitopi-embed], section
 * 4). */
#ifndef CARPOOL_EMBED_MAP_H
#define CARPOOL_EMBED_MAP_H

#include <stdbool.h>
#include <stdint.h>

struct cpl_comm_state;

/* Words of a message. */
enum { CPL_EMBED_MESSAGE_DST, CPL_EMBED_MESSAGE_BYTES, CPL_EMBED_MESSAGE_WORDS };

/* Chooses the points of ranks for what they have to carry: n messages of this rank's,
 * CPL_EMBED_MESSAGE_WORDS words each; destinations may recur. NULL: no memory for them. One rank of
 * the private communicator decides for all. Where that costs less the state's reductions get
 * points. Collective; without memory the ranks stay their own points, on all ranks alike. */
void cpl_embed_map(struct cpl_comm_state *state, int n, const int64_t *messages);

#endif
