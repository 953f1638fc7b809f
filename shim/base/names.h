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
    CPL_N_NEIGHBOR_KINDS,
    CPL_KIND_PT2PT = CPL_N_NEIGHBOR_KINDS, /* further kinds of records */
    CPL_KIND_ALLGATHER,
    CPL_KIND_ALLGATHERV
};

/* "Neighbor_alltoallv" and so on. */
const char *cpl_exchange_kind_name(int kind);

/* Why an exchange is left to MPI, as a clause of a sentence; NOT: it is not, PROFILED: only because
 * this is a profile run. */
#define CPL_LEFT_REASONS(ROW)                                                                      \
    ROW(NOT, "")                                                                                   \
    ROW(TOO_FEW_COLLECTIVES,                                                                       \
        "fewer than four blocking collectives were called on the communicator")                    \
    ROW(UNABLE, "no memory, too many communicators, or processes of several MPI_COMM_WORLDs")      \
    ROW(WILDCARD,                                                                                  \
        "a rank posts nonblocking receives with wildcards again and again, or frees their "        \
        "requests")                                                                                \
    ROW(NOTHING_RECURS, "no rank sends to two or more others again and again")                     \
    ROW(UNMATCHED,                                                                                 \
        "at every agreement some message had no receive yet, or a receive with wildcards "         \
        "was open")                                                                                \
    ROW(NO_GAIN, "no plan is modelled 5 % faster than direct (without trials: 10 %)")              \
    ROW(PROFILED, "a profile run changes nothing; mode auto would carry or try it")                \
    ROW(UNFIT, "CARPOOL_STRATEGY cannot be used with so many ranks")                               \
    ROW(EMPTY, "no rank has a message for another that is below CARPOOL_SIZE_LIMIT")               \
    ROW(DEAR, "the plan would save less than matching the messages costs")                         \
    ROW(FEW_CALLS, "it was not called often enough to be planned")                                 \
    ROW(SHORT, "it was over before planning could pay")                                            \
    ROW(NO_PLAN, "it could not be planned: too many communicators, or no memory")                  \
    ROW(NO_MEETING,                                                                                \
        "no blocking collective of all ranks came in which to agree on it, and no wait of "        \
        "all for a nonblocking one")                                                               \
    ROW(DENSE, "ranks send to more than half of the others, and most messages are above "          \
               "CARPOOL_SIZE_LIMIT or there are too many to plan")                                 \
    ROW(ELSEWHERE, "ranks send to other ones each time")                                           \
    ROW(SLOWER, "no plan was measured faster than MPI by 3 %")                                     \
    ROW(SLOWED, "rerouted at first; the program was slower than before")                           \
    ROW(EVEN, "rerouted at first; the program was not 2 % faster, beyond chance")                  \
    ROW(THREADS, "several threads of a rank called MPI at the same time")                          \
    ROW(ALLOCATOR, "the program has a malloc of its own, which one thread calls")

enum cpl_left_alone {
#define CPL_LEFT_ROW(NAME, text) CPL_LEFT_##NAME,
    CPL_LEFT_REASONS(CPL_LEFT_ROW)
#undef CPL_LEFT_ROW
};

const char *cpl_left_alone_text(enum cpl_left_alone reason);

#endif
