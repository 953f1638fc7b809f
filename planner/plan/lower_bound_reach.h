/* How soon something can be at many ranks (lower_bound.h). Leaf module.
 *
 * A rank that knows sends messages one after the other; whoever gets one knows, too. The best is
 * that every rank always sends to one that does not know yet (Karp et al. 1993, for LogP). Two
 * kinds of messages: inside nodes, of which each has at most so many ranks, and between nodes, of
 * which there are as many as one likes. A rank sends both kinds at the same time, which makes the
 * times smaller than they can be. */
#ifndef CARPOOL_LOWER_BOUND_REACH_H
#define CARPOOL_LOWER_BOUND_REACH_H

#include "planner/arena.h"
#include "planner/status.h"

#include <stdint.h>

/* Messages of one kind, in microseconds. */
struct cpl_reach_messages {
    double first_us; /* from one message of the first rank to its next */
    double next_us;  /* of any other rank */
    double way_us;   /* from the end of that until another rank knows */
};

struct cpl_reach {
    struct cpl_reach_messages inside, between;
    int32_t ranks_of_node; /* >= 1, of the largest node */
    int32_t n_nodes;       /* 1: nothing goes between nodes */
};

/* The least time until n_all other ranks know, and that until n_far ranks of other nodes know,
 * which are at most n_all. 0 for none. O(n_all log n_all) time and memory. Returns CPL_OK,
 * CPL_ERR_NOMEM. */
enum cpl_status cpl_reach_times(const struct cpl_reach *reach, int64_t n_all, int64_t n_far,
                                double *all_us, double *far_us);

#endif
