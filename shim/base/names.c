/* Kinds of exchanges and reasons (names.h). */
#include "shim/base/names.h"

const char *cpl_exchange_kind_name(int kind)
{
    static const char *const names[] = {
        [CPL_NEIGHBOR_ALLTOALL] = "Neighbor_alltoall",
        [CPL_NEIGHBOR_ALLTOALLV] = "Neighbor_alltoallv",
        [CPL_NEIGHBOR_ALLTOALLW] = "Neighbor_alltoallw",
        [CPL_NEIGHBOR_ALLGATHER] = "Neighbor_allgather",
        [CPL_NEIGHBOR_ALLGATHERV] = "Neighbor_allgatherv",
        [CPL_ALLTOALLV] = "Alltoallv",
        [CPL_ALLTOALLW] = "Alltoallw",
        [CPL_KIND_PT2PT] = "pt2pt",
        [CPL_KIND_ALLGATHER] = "Allgather",
        [CPL_KIND_ALLGATHERV] = "Allgatherv",
    };
    return names[kind];
}

const char *cpl_left_alone_text(enum cpl_left_alone reason)
{
    static const char *const texts[CPL_N_LEFT] = {
        [CPL_LEFT_NOT] = "",
        [CPL_LEFT_TOO_FEW_COLLECTIVES] = "fewer than four blocking collectives were called on the "
                                         "communicator",
        [CPL_LEFT_UNABLE] = "no memory, too many communicators, or processes of several "
                            "MPI_COMM_WORLDs",
        [CPL_LEFT_WILDCARD] =
            "a rank posts nonblocking receives with wildcards again and again, or "
            "frees their requests",
        [CPL_LEFT_NOTHING_RECURS] = "no rank sends to two or more others again and again",
        [CPL_LEFT_UNMATCHED] = "at every agreement some message had no receive yet, or a receive "
                               "with wildcards was open",
        [CPL_LEFT_NO_GAIN] = "no plan is modelled 5 % faster than direct (without trials: 10 %)",
        [CPL_LEFT_SLOWED] = "rerouted at first; the program was slower than before",
        [CPL_LEFT_UNREDUCED] =
            "rerouted at first; the reductions that were to carry messages are MPI's",
        [CPL_LEFT_EVEN] = "rerouted at first; the program was not 2 % faster, beyond chance",
        [CPL_LEFT_SLOWER] = "no plan was measured faster than MPI by 3 %",
        [CPL_LEFT_GIVEN_UP] = "rerouted at first; too many combined messages were late",
        [CPL_LEFT_PROFILED] = "a profile run changes nothing; mode auto would carry or try it",
        [CPL_LEFT_UNFIT] = "CARPOOL_STRATEGY cannot be used with so many ranks",
        [CPL_LEFT_EMPTY] = "no rank has a message for another that is below CARPOOL_SIZE_LIMIT",
        [CPL_LEFT_DEAR] = "the plan would save less than matching the messages costs",
        [CPL_LEFT_FEW_CALLS] = "it was not called often enough to be planned",
        [CPL_LEFT_SHORT] = "it was over before planning could pay",
        [CPL_LEFT_NO_PLAN] = "it could not be planned: too many communicators, or no memory",
        [CPL_LEFT_NO_MEETING] =
            "no blocking collective of all ranks came in which to agree on it, and no wait of "
            "all for a nonblocking one",
        [CPL_LEFT_DENSE] =
            "ranks send to more than half of the others, and most messages are above "
            "CARPOOL_SIZE_LIMIT or there are too many to plan",
        [CPL_LEFT_ELSEWHERE] = "ranks send to other ones each time",
        [CPL_LEFT_ALLOCATOR] = "the program has a malloc of its own, which one thread calls",
        [CPL_LEFT_THREADS] = "several threads of a rank called MPI at the same time",
    };
    return texts[reason];
}
