/* Allgather over placed ranks: the ring and recursive doubling of Bhowmik and Bodele (topology-
 * aware collectives, 3.2 and 3.3), and what they cost beside MPI's own.
 *
 * Ring: in each of n - 1 steps point p sends one rank's data on to point p + 1. Doubling: in step k
 * the corners whose numbers differ in bit k exchange all they have. When the number of ranks is no
 * power of two, ranks fold (hypercube.h): the even rank of a corner sends its data to the odd one,
 * and gets everything at the end. Bruck's form needs no power of two either, but its steps wrap
 * around, so that no placement keeps the large ones inside nodes.
 *
 * The model: steps add up, and a step takes as long as its slowest rank; but in a ring, where a
 * rank waits for one neighbour only, the longest chain of messages counts, not the slowest message
 * at every step. So a ring that rarely crosses between distant ranks is faster. Bytes inside a node
 * are charged at each end; bytes between nodes at the rank's rate or, if that takes longer, all of
 * its node's at the interface's rate. A measured distance replaces the part of a message's cost
 * that does not depend on its size, a measured time per byte the rank's rate. MPI's own is what
 * MPICH 4.0 does by default: doubling below 512 KiB in all with a power of two, else Bruck's form
 * below 80 KiB, above that the ring, in the order of the ranks. Sizes are divided into classes by
 * factors of two. */
#ifndef CARPOOL_ALLGATHER_H
#define CARPOOL_ALLGATHER_H

#include "planner/machine.h"
#include "planner/status.h"

#include <stdbool.h>
#include <stdint.h>

/* The algorithms, ROW(NAME, name): from these rows come the enum, the names, the words of
 * CARPOOL_ALLGATHER, the model's rules (`name` in allgather.c) and what carries a call (`name` in
 * shim/exchange/carrier_gather.c). */
#define CPL_ALLGATHER_ALGORITHMS(ROW)                                                              \
    ROW(RING, ring)                                                                                \
    ROW(DOUBLING, doubling)

enum cpl_allgather_algorithm {
#define ROW(NAME, name) CPL_ALLGATHER_##NAME,
    CPL_ALLGATHER_ALGORITHMS(ROW)
#undef ROW
        CPL_N_ALLGATHER_ALGORITHMS,
    CPL_ALLGATHER_BRUCK = CPL_N_ALLGATHER_ALGORITHMS /* MPI's only */
};

/* Class k holds calls in which the data of all ranks together is less than 2^(k + 10) bytes and
 * fits no lower class. The last class also holds all larger calls. */
#define CPL_ALLGATHER_CLASSES     23
#define CPL_ALLGATHER_FIRST_CLASS 10

/* Modelled times of the calls of one class. Plain data. */
struct cpl_allgather_class {
    int32_t mpi_algorithm; /* enum cpl_allgather_algorithm */
    double mpi_us;
    double us[CPL_N_ALLGATHER_ALGORITHMS];
    int32_t placed[CPL_N_ALLGATHER_ALGORITHMS]; /* 0: the ranks stay as they are, because placing
                                             them is not faster */
};

/* "ring", "doubling", "bruck". */
const char *cpl_allgather_name(enum cpl_allgather_algorithm way);

/* The class of a call with so many bytes in all, and the largest number of bytes of a class
 * (INT64_MAX: the last one). */
int32_t cpl_allgather_class_of(int64_t bytes);
int64_t cpl_allgather_class_most(int32_t class_);

/* The way that MPICH takes for `bytes` bytes in all. */
enum cpl_allgather_algorithm cpl_allgather_mpi_algorithm(int32_t n_ranks, double bytes);

/* Whether each message is received where the program wants it: else a call by placed ranks gathers
 * in a buffer of its own and copies at the end. */
bool cpl_allgather_is_in_place(enum cpl_allgather_algorithm way);

/* Messages that a rank sends one after the other. */
int32_t cpl_allgather_steps(enum cpl_allgather_algorithm way, int32_t n_ranks);

/* Places the ranks by a way's heuristic: rank_at (n_ranks entries) gets the rank of each point.
 * Returns CPL_OK, CPL_ERR_ARG (Bruck's form has no placement), CPL_ERR_NOMEM. */
enum cpl_status cpl_allgather_place(enum cpl_allgather_algorithm way,
                                    const struct cpl_machine *machine, int32_t *rank_at,
                                    struct cpl_error *error);

/* The modelled time of a call in which every rank has `bytes` bytes; rank_at NULL: rank i plays
 * point i. in_order: the data is received where the program wants it, so nothing is copied
 * afterwards. Returns CPL_OK, CPL_ERR_NOMEM. */
enum cpl_status cpl_allgather_cost(enum cpl_allgather_algorithm way,
                                   const struct cpl_machine *machine, const int32_t *rank_at,
                                   double bytes, bool in_order, double *microseconds,
                                   struct cpl_error *error);

/* Places the ranks for all ways and fills the table of classes (CPL_ALLGATHER_CLASSES entries): in
 * each a way goes by the placed ranks only where that is modelled faster. The data of all ranks is
 * taken to lie one after the other: then only what is not in place copies, by placed ranks. rank_at
 * has n_ranks entries for each way. O(classes x ranks x log ranks), with measured distances
 * O(ranks^2). Returns what the others return. */
enum cpl_status cpl_allgather_plan(const struct cpl_machine *machine, int32_t *rank_at,
                                   struct cpl_allgather_class *classes, struct cpl_error *error);

#endif
