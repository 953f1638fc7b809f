/* The state of a search over routes (improve.h): which message rides where, and the loads. Not for
 * use outside improve*.c. */
#ifndef CARPOOL_IMPROVE_STATE_H
#define CARPOOL_IMPROVE_STATE_H

#include "planner/pattern.h"
#include "planner/routes.h"
#include "planner/search/layers.h"
#include "planner/search/time_loads.h"
#include "planner/strategy.h"

#include <stdbool.h>
#include <stdint.h>

/* The riders of an edge: a list through next/previous, by message and wave. */
struct cpl_riders {
    int32_t n;
    int32_t first;     /* message; -1: none */
    uint32_t free_for; /* the last marking of free rides that it was in */
};

struct cpl_improve_state {
    const struct cpl_pattern *pattern;
    double unit_bytes;
    int32_t n_waves;
    int32_t *stops;  /* as in struct cpl_routes */
    int32_t *source; /* per message */
    struct cpl_layers layers;
    struct cpl_riders *riders; /* per edge number */
    int32_t max_riders;
    int32_t *next; /* n_messages x n_waves: the next rider of the edge that a message takes */
    int32_t *previous;
    int32_t *edge; /* n_messages x n_waves: the number of the edge that it takes; 0: none */
    struct cpl_time_loads loads;
    int32_t *leader;             /* NULL: every message has a payload of its own; else the first
                                    message of the same rank and payload class, itself if alone */
    int32_t *next_of_class;      /* ring of the messages with the same leader; NULL as leader */
    uint32_t marking;            /* number of the present marking of free rides */
    struct cpl_pair_map classes; /* (edge, leader) -> riders with that leader */
    struct cpl_arena *arena;
    bool failed; /* memory ran out */
};

/* The state of routes. Memory from the arena. Returns
 * CPL_OK or CPL_ERR_NOMEM. */
enum cpl_status cpl_improve_init(struct cpl_improve_state *state,
                                 const struct cpl_strategy_input *input,
                                 const struct cpl_routes *routes, struct cpl_arena *arena);

/* Puts message m, which rides nowhere, on the way that its stops say; takes it off. O(waves). */
void cpl_improve_put(struct cpl_improve_state *state, int32_t m);
void cpl_improve_take(struct cpl_improve_state *state, int32_t m);

/* Marks the edges on which a message of m's payload class rides: m would ride there for nothing.
 * Holds until the next put, take or marking. O(messages of the class x waves), which is returned.
 */
int64_t cpl_improve_mark_free(struct cpl_improve_state *state, int32_t m);

/* Whether an edge is marked. */
static inline bool cpl_improve_rides_free(const struct cpl_improve_state *state, int32_t edge)
{
    return state->leader && state->riders[edge].free_for == state->marking;
}

/* The bytes of m's payload: of a class, as in plans, those of its first message. */
static inline double cpl_improve_bytes(const struct cpl_improve_state *state, int32_t m)
{
    int32_t first = state->leader ? state->leader[m] : m;
    return (double)state->pattern->volume[first] * state->unit_bytes;
}

static inline int32_t *cpl_improve_stops(const struct cpl_improve_state *state, int32_t m)
{
    return state->stops + (size_t)m * (size_t)state->n_waves;
}

#endif
