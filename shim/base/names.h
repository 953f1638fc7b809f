/* Names that a report uses: kinds of exchanges, and reasons why an exchange is left to MPI. Leaf
 * module. */
#ifndef CARPOOL_NAMES_H
#define CARPOOL_NAMES_H

enum cpl_neighbor_kind {
    CPL_NEIGHBOR_ALLTOALL,
    CPL_NEIGHBOR_ALLTOALLV,
    CPL_NEIGHBOR_ALLTOALLW,
    CPL_NEIGHBOR_ALLGATHER,
    CPL_NEIGHBOR_ALLGATHERV,
    CPL_ALLTOALLV,
    CPL_ALLTOALLW,
    CPL_N_NEIGHBOR_KINDS
};

/* The kinds of records of point-to-point messages, MPI_Allgather and MPI_Allgatherv. */
#define CPL_KIND_PT2PT      CPL_N_NEIGHBOR_KINDS
#define CPL_KIND_ALLGATHER  (CPL_N_NEIGHBOR_KINDS + 1)
#define CPL_KIND_ALLGATHERV (CPL_N_NEIGHBOR_KINDS + 2)

/* "Neighbor_alltoallv" and so on. */
const char *cpl_exchange_kind_name(int kind);

/* Why an exchange is left to MPI. */
enum cpl_left_alone {
    CPL_LEFT_NOT, /* it is not left to MPI */
    CPL_LEFT_TOO_FEW_COLLECTIVES,
    CPL_LEFT_UNABLE,
    CPL_LEFT_WILDCARD,
    CPL_LEFT_NOTHING_RECURS,
    CPL_LEFT_UNMATCHED,
    CPL_LEFT_NO_GAIN,
    CPL_LEFT_GIVEN_UP,
    CPL_LEFT_PROFILED, /* only because this is a profile run: auto would carry it */
    CPL_LEFT_UNFIT,
    CPL_LEFT_EMPTY,
    CPL_LEFT_DEAR,
    CPL_LEFT_FEW_CALLS,
    CPL_LEFT_SHORT,
    CPL_LEFT_NO_PLAN,
    CPL_LEFT_NO_MEETING,
    CPL_LEFT_DENSE,
    CPL_LEFT_ELSEWHERE,
    CPL_LEFT_SLOWER,
    CPL_LEFT_SLOWED,
    CPL_LEFT_EVEN,
    CPL_LEFT_UNREDUCED,
    CPL_LEFT_THREADS,
    CPL_LEFT_ALLOCATOR,
    CPL_N_LEFT
};

/* The reason as a clause of a sentence. */
const char *cpl_left_alone_text(enum cpl_left_alone reason);

#endif
