/* Choosing the way of each step (method "auto") among several: by a model of their times and, where
 * steps of one size recur, by measurement. The ways take turns for some steps, and the way whose
 * slowest rank is fastest does the following steps. Two steps are of one size when their numbers of
 * writes have the same number of bits, and their numbers of reads as well.
 *
 * Two ways are twins when they differ only in the variant. The twin that is modelled faster takes
 * turns. At the end the twins of the best two ways are tried against the best, if they are modelled
 * faster with the number of distinct elements that is known by then.
 *
 * Leaf module: no MPI calls. All ranks make the same calls with the same numbers, and so come to
 * the same choices. */
#ifndef CARPOOL_ARRAY_CHOICE_H
#define CARPOOL_ARRAY_CHOICE_H

#include "planner/grid/grid.h"
#include "planner/machine.h"

#include <stdbool.h>
#include <stdint.h>

#define CPL_MOST_WAYS     16
#define CPL_CHOICE_SIZES  12 /* sizes of steps that are remembered */
#define CPL_CHOICE_ROUNDS 3  /* the most steps by each way in a trial */

/* What a step does, on all ranks together. */
struct cpl_step_load {
    int64_t n[2];       /* number of writes; of reads */
    double distinct[2]; /* part of them that remain after each rank has folded its own */
    int64_t element_bytes;
};

/* A way, as the model sees it. */
struct cpl_way_model {
    const struct cpl_grid *grid; /* walked from near to far; NULL: by MPI_Alltoallv */
    bool hashes;                 /* folds by hashing, not by sorting */
};

/* The time of a step on an average rank, in microseconds, if no two ranks have requests for the
 * same element. */
double cpl_choice_model_us(const struct cpl_costs *costs, const struct cpl_way_model *way,
                           int32_t n_ranks, int32_t ranks_per_node,
                           const struct cpl_step_load *load);

/* What is known of the steps of one size. */
struct cpl_choice_size {
    int n_bits[2]; /* bits of the numbers of writes and of reads; both 0: this entry is free */
    double distinct[2];
    int64_t last; /* number of the last step of this size */
    bool running; /* a trial is running */
    int round, turn;
    int chosen;
    int order[CPL_MOST_WAYS]; /* ways in the order of their turns: by modelled time */
    bool in[CPL_MOST_WAYS];   /* the way is still in the trial */
    bool of_twins;            /* the trial is of the chosen way and of twins */
    double modelled_us[CPL_MOST_WAYS];
    double us[CPL_MOST_WAYS][CPL_CHOICE_ROUNDS];
    double typical_us[CPL_MOST_WAYS]; /* time of each way when it was last tried; 0: never */
    int64_t steps, interval; /* steps since the last trial; steps from one trial to the next */
};

struct cpl_choice {
    int n;                   /* number of ways */
    int twin[CPL_MOST_WAYS]; /* the twin of each way; -1: none */
    bool measures;           /* false: the model alone decides, so that equal steps go equal ways */
    int64_t n_steps;
    int size, way; /* size (in `sizes`) and way of the last step */
    bool is_open;  /* the last step's time is still to be noted */
    struct cpl_choice_size sizes[CPL_CHOICE_SIZES];
};

/* Starts choosing among n ways. twin: the twin of each way, -1: none; NULL: no way has one. */
void cpl_choice_begin(struct cpl_choice *choice, int n, const int *twin, bool measures);

/* Fills load->distinct with the values of the last step of that size; 1 where they are not
 * known. */
void cpl_choice_recall(const struct cpl_choice *choice, struct cpl_step_load *load);

/* Chooses the way of a step with this load; modelled_us has an entry for each way. */
int cpl_choice_next(struct cpl_choice *choice, const struct cpl_step_load *load,
                    const double *modelled_us);

/* Notes the time of the last step on its slowest rank (0: not known), and the parts of its writes
 * and reads that remained after folding. */
void cpl_choice_note(struct cpl_choice *choice, double us, const double *distinct);

#endif
