/*
 * A model of a cluster that runs all ranks of a program in one process, without threads and without
 * a network simulator: for thousands of ranks. What the program does is real, to the last byte; the
 * clock of each rank is modelled. It has the functions of MPI that the distributed array,
 * bench/graph and planning without a root (shim/plan/plan_distributed.h) use, for communicators of
 * all ranks.
 *
 * Messages cost what bench/sim/platform.cpp makes SimGrid charge: the ends processor time, inside a
 * node bytes at both ends, between nodes bytes on the port of each node. But ports serve messages
 * one after the other, in the order in which they are sent, and the network between the ports has a
 * latency and no links. Collectives take the steps of the algorithms that simulate.sh asks for,
 * from the last rank's arrival on. bench/results/array.md holds the model against simulations.
 *
 * Files: rank_model.c has ranks, clocks and messages, rank_model_collectives.c the rest. One
 * thread; every rank has a stack of its own, and the rank with the least clock runs.
 */
#ifndef BENCH_RANK_MODEL_H
#define BENCH_RANK_MODEL_H

#include "planner/machine.h"

#include <mpi.h>
#include <stdint.h>

/* A cluster. */
struct rank_model {
    int n_ranks, n_nodes, ranks_per_node;
    struct cpl_costs costs;
    int running;                /* the rank that runs */
    double *clock;              /* of each rank, in seconds */
    int64_t *sent;              /* bytes of its messages, without collectives */
    double *port_out, *port_in; /* of each node: when it is free */
};

extern struct rank_model rank_model;

/* Bytes of a type: MPI's own, or a contiguous one of these. */
int rank_model_type_bytes(MPI_Datatype type);

/* The running rank stops; rank_model_resume makes it go on. */
void rank_model_stop(void);
void rank_model_resume(int rank);

/* The running rank has looked for something in vain: goes on at the time of the next message,
 * receipt or barrier that concerns it. Before it looks, ranks whose clocks are behind must run. */
void rank_model_pause(void);
void rank_model_give_way(void);

/* A rank that pauses looks anew at what there is. */
void rank_model_wake(int rank);

/* The time at which the barrier that the running rank has entered ends; infinite: not all have
 * entered it. */
double rank_model_barrier_ends(void);

#define RANK_MODEL_BARRIER ((MPI_Request)-2) /* the request of MPI_Ibarrier */

/* Ends the program with a message. */
_Noreturn void rank_model_fail(const char *what);

#endif
