/* Mapping ranks to points of the reductions of a communicator, so that ranks that exchange much
 * data are near each other ([Selvitopi-embed], section 4). */
#ifndef CARPOOL_EMBED_MAP_H
#define CARPOOL_EMBED_MAP_H

struct cpl_comm_state;
struct cpl_handed_message;

/* Chooses the points of ranks for the messages that reductions are to carry: this rank hands in n
 * of them; destinations may recur; NULL: it had no memory for them. One rank of the private
 * communicator decides for all. If a map costs less, the state's reductions get points. When memory
 * runs out on a rank, all ranks stay their own points. Collective. */
void cpl_embed_map(struct cpl_comm_state *state, int n, const struct cpl_handed_message *messages);

#endif
