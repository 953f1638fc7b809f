/* The cheapest way of one message over the present edges and at most one new one: a search through
 * the layers from both ends. Not for use outside improve*.c. */
#ifndef CARPOOL_IMPROVE_PATHS_H
#define CARPOOL_IMPROVE_PATHS_H

#include "planner/strategies/improve_state.h"

/* A rank that a way may be at after some wave. */
struct cpl_path_node {
    int32_t rank;
    int32_t towards; /* place of the node before it (from the source) or after it (to the
                        destination) in the neighbouring wave's list */
    double price;    /* from (or to) there */
};

struct cpl_path_nodes {
    int32_t n;
    struct cpl_path_node *node; /* room for MAX_PATH_NODES */
};

struct cpl_path_finder {
    struct cpl_improve_state *state;
    /* Reached from the source after w waves, and reaching the destination after w waves. */
    struct cpl_path_nodes forward[CPL_MAX_LAYERS + 1];
    struct cpl_path_nodes backward[CPL_MAX_LAYERS + 1];
    uint32_t search;                 /* number of the present list */
    uint32_t *seen;                  /* per rank: the list that it was last put into */
    int32_t *place;                  /* per rank: where in that list */
    double *end_price;               /* scratch for the ends of new edges, by class of link */
    struct cpl_payload_cost payload; /* of the message at hand */
    int64_t work;
};

/* An edge that must not be taken: wave -1 for none. */
struct cpl_banned_edge {
    int32_t wave, from, to;
};

/* Memory from the arena. Returns CPL_OK or CPL_ERR_NOMEM. */
enum cpl_status cpl_path_finder_init(struct cpl_path_finder *finder,
                                     struct cpl_improve_state *state, struct cpl_arena *arena);

/* Finds the cheapest way of message m, which must ride nowhere at the moment, as if it had so many
 * bytes, and writes its stops.
 * The source and destination are always reached: at worst by a new edge between them. O(edges of
 * the ranks on its ways + pairs of them). */
void cpl_path_find(struct cpl_path_finder *finder, int32_t m, double bytes,
                   const struct cpl_banned_edge *banned, int32_t *stops);

#endif
