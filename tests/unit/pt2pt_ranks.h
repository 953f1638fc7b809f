/* Ranks that learn of their messages, for tests of agreeing to manage them (shim/pt2pt/
 * pt2pt_agree.c): each is a fiber with one communicator, and makes the calls that the wrappers
 * make. Meetings, what is learned, and reviews are the library's. Planning is told what to answer,
 * combined messages and reductions are not there.
 *
 * Order of calls: pt2pt_ranks_begin, fibers_run as often as wanted, pt2pt_ranks_end. */
#ifndef CARPOOL_TESTS_PT2PT_RANKS_H
#define CARPOOL_TESTS_PT2PT_RANKS_H

#include "fibers.h"
#include "shim/pt2pt/pt2pt_internal.h"
#include "shim/state/comm_state.h"

#include <stdbool.h>
#include <stdint.h>

struct pt2pt_rank {
    struct cpl_comm_state state;
    double time, pace; /* now; seconds from one collective to the next */
};

/* What planning and others answer. */
struct pt2pt_answers {
    double direct_us, planned_us, embedded_us;
    bool gains;                                 /* the planner decides for a plan */
    bool of_another_world;                      /* the communicator has others' processes */
    bool unserved;                              /* all ranks do not poll for it yet */
    bool early;                                 /* planning does not pay yet */
    bool is_short;                              /* only a short search does */
    int no_service, no_rides, no_line, no_plan; /* the rank where that fails; -1: none */
};

struct pt2pt_world {
    struct pt2pt_rank rank[FIBERS_MOST];
    struct pt2pt_answers answers;
    int n_planned, n_drained; /* on the first rank */
    int victim;               /* whose memory fails (failing_heap.h); -1: nobody's */
};

extern struct pt2pt_world pt2pt;

void pt2pt_ranks_begin(int n, uint64_t seed);
void pt2pt_ranks_end(void);

/* This rank sends a message, or posts a receive; until the communicator is managed or MPI's. */
void pt2pt_send(int to, int tag);
void pt2pt_receive(int from, int tag);

/* One batch: of each rank to the next two, all matched. */
void pt2pt_exchange(void);

/* A blocking collective; compares afterwards what must be alike. */
void pt2pt_collective(void);

/* While no program runs: the ranks are in this phase. */
bool pt2pt_all_are(enum cpl_pt2pt_phase phase);

struct cpl_pt2pt *pt2pt_of(int rank);

#endif
