/* Choosing the way of each step (method "auto") among several: by a model of what the ways take,
 * and, where steps of a size recur, by measurement: the ways take turns for some steps, and the one
 * whose slowest rank is fastest does the next ones. Steps are of a size when their numbers of
 * writes and of reads have as many bits each.
 *
 * Two ways can be twins: the same route by another variant. The one that is modelled faster takes
 * turns; at the end the twins of the best two are tried against the best if, with what is known
 * by then of requests for the same element, they are modelled faster.
 *
 * Leaf module: no MPI calls. All ranks call alike, with the same numbers, and come to the same
 * choices. */
#ifndef CARPOOL_ARRAY_CHOICE_H
#define CARPOOL_ARRAY_CHOICE_H

#include "planner/grid/grid.h"
#include "planner/machine.h"

#include <stdbool.h>
#include <stdint.h>

#define CPL_MOST_WAYS     16
#define CPL_CHOICE_SIZES  12 /* sizes of steps that are remembered */
#define CPL_CHOICE_ROUNDS 3  /* steps by each way in a trial, at most */

/* What a step does, on all ranks together. */
struct cpl_step_load {
    int64_t n[2];       /* writes; reads */
    double distinct[2]; /* part of them that are left after each rank has put its own together */
    int64_t element_bytes;
};

/* A way, as the model sees it. */
struct cpl_way_model {
    const struct cpl_grid *grid; /* walked from far to near; NULL: by MPI_Alltoallv */
    bool hashes;                 /* folds by hashing, not by sorting */
};

/* What a step of that load takes on an average rank, in microseconds, if no requests of different
 * ranks are for the same element. */
double cpl_choice_model_us(const struct cpl_costs *costs, const struct cpl_way_model *way,
                           int32_t n_ranks, int32_t ranks_per_node,
                           const struct cpl_step_load *load);

/* Steps of a size. */
struct cpl_choice_size {
    int n_bits[2]; /* of the numbers of writes and reads; both 0: free */
    double distinct[2];
    int64_t last; /* number of its last step */
    bool running; /* a trial */
    int round, turn;
    int chosen;
    int order[CPL_MOST_WAYS]; /* turns: ways by modelled time */
    bool in[CPL_MOST_WAYS];   /* still in the trial */
    bool of_twins;            /* the trial is of the chosen way and of twins */
    double modelled_us[CPL_MOST_WAYS];
    double us[CPL_MOST_WAYS][CPL_CHOICE_ROUNDS];
    double typical_us[CPL_MOST_WAYS]; /* when last tried; 0: never */
    int64_t steps, interval;          /* since the last trial; to the next one */
};

struct cpl_choice {
    int n;                   /* ways */
    int twin[CPL_MOST_WAYS]; /* of each way; -1: none */
    bool measures;           /* false: the model alone decides, so that equal steps go equal ways */
    int64_t n_steps;
    int size, way; /* of the last step */
    bool is_open;  /* its time is wanted */
    struct cpl_choice_size sizes[CPL_CHOICE_SIZES];
};

/* Starts choosing among n ways. twin: of each way, -1: none; NULL: of all none. */
void cpl_choice_begin(struct cpl_choice *choice, int n, const int *twin, bool measures);

/* Fills load->distinct by what the last step of that size had; 1 where that is not known. */
void cpl_choice_recall(const struct cpl_choice *choice, struct cpl_step_load *load);

/* The way of a step of that load; modelled_us has an entry for each way. */
int cpl_choice_next(struct cpl_choice *choice, const struct cpl_step_load *load,
                    const double *modelled_us);

/* What the last step took on its slowest rank; 0: not known; and the part of its writes and reads
 * that were left. */
void cpl_choice_note(struct cpl_choice *choice, double us, const double *distinct);

#endif
