/* Choosing by measurement: the candidates for carrying an exchange take turns for a few calls, and
 * the one whose slowest rank is fastest carries the next ones. Candidate 0 is MPI's own way.
 *
 * A trial goes in rounds; in each, every candidate that is still in it has a turn: one call that
 * counts (some where ranks share cores), after one that only leads in to it because it begins on
 * all ranks at once, as no call in use does. The first rounds warm up: they only drop what takes
 * far longer, by a millisecond at least. Later ones drop a candidate whose best time is clearly
 * beaten by what another usually takes. A plan in use gives way to MPI as soon as that is not
 * slower, and to another plan, as MPI does to any, when that is faster by a margin. Later trials,
 * at growing intervals, compare MPI with the best plan only.
 *
 * Leaf module: no MPI calls. Everything in a trial but own_us is alike on all ranks as long as all
 * count the same calls and judge by the same times. */
#ifndef CARPOOL_TRIAL_H
#define CARPOOL_TRIAL_H

#include "shim/base/samples.h"

#include <stdbool.h>
#include <stdint.h>

#define CPL_MAX_TRIED    4  /* candidates */
#define CPL_TRIAL_ROUNDS 31 /* at most, without the first */

struct cpl_trial {
    int32_t n;      /* candidates */
    int32_t rounds; /* after the first one; 0: never a trial */
    int32_t chosen;
    bool running;
    int32_t round;        /* 0: the one that warms up */
    int32_t turn;         /* candidate of the next call, while running */
    int32_t calls_a_turn; /* 1, or as many as who begins the trial says */
    int32_t lead_in;      /* calls before them in a turn that do not count; 0, or likewise */
    int32_t n_in_turn;    /* calls of this turn that have been carried */
    bool in[CPL_MAX_TRIED];
    double own_us[CPL_MAX_TRIED];              /* this rank's of a call, in this round */
    struct cpl_samples slowest[CPL_MAX_TRIED]; /* us, of all ranks, in the rounds before */
    double least_us[CPL_MAX_TRIED];            /* the least of these and of the first round */
    double median_us[CPL_MAX_TRIED]; /* when last tried; 0: not known, or dropped at once */
    int64_t calls;                   /* since the last trial ended */
    int64_t interval;                /* calls from its end to the next trial */
    int32_t n_trials;                /* ended */
    int32_t versus;                  /* the only plan in the last trial; 0: all were in it */
    int64_t tried;                   /* calls that were part of trials */
};

/* Starts the first trial. Two candidates at least; with rounds 0 candidate 1 is chosen, untried. */
void cpl_trial_begin(struct cpl_trial *trial, int32_t n, int32_t rounds);

/* Whether the next call begins a turn: ranks meet before it. */
static inline bool cpl_trial_begins_turn(const struct cpl_trial *trial)
{
    return trial->running && trial->n_in_turn == 0;
}

/* The candidate that carries the next call. */
static inline int32_t cpl_trial_candidate(const struct cpl_trial *trial)
{
    return trial->running ? trial->turn : trial->chosen;
}

/* A call has been carried, in so many microseconds on this rank (which count while running only).
 * Returns whether a round has ended with it: then the largest own_us of all ranks, of every
 * candidate, must be handed to cpl_trial_judge before the next call. */
bool cpl_trial_note(struct cpl_trial *trial, double us);

/* Calls that the one in use may carry before anything is to be done; they may be noted together. */
static inline int64_t cpl_trial_passing(const struct cpl_trial *trial)
{
    if (trial->running)
        return 0;
    return trial->rounds > 0 ? trial->interval - trial->calls - 1 : INT64_MAX;
}

static inline void cpl_trial_pass(struct cpl_trial *trial, int64_t n)
{
    if (trial->rounds > 0)
        trial->calls += n;
}

/* What a call takes by a candidate of the last trial: the median, or the best of a candidate that
 * was dropped at once. Microseconds; 0: it was not in it. */
static inline double cpl_trial_us(const struct cpl_trial *trial, int32_t candidate)
{
    double median_us = trial->median_us[candidate];
    if (trial->versus > 0 && candidate > 0 && candidate != trial->versus)
        return 0;
    return median_us > 0 ? median_us : trial->least_us[candidate];
}

/* Judges a round by what the slowest rank took (n entries). */
void cpl_trial_judge(struct cpl_trial *trial, const double *slowest_us);

/* Which of two ways takes less time, by times that were taken in turns: of each pair of
 * neighbouring times the relative difference counts, and a paired t test tells if there is one. In
 * the end the lowest and the highest difference do not count: a process that is kept from its core
 * for once makes one pair tell anything. */
#define CPL_MOST_PAIRS  8
#define CPL_LEAST_GAIN  0.02
#define CPL_LEAST_PAIRS 3
#define CPL_MUCH_SLOWER -0.5 /* for two pairs to tell */

enum cpl_verdict { CPL_UNDECIDED, CPL_FASTER, CPL_NOT_FASTER };

struct cpl_pairs {
    int n;
    double sum, squares; /* of (usual - other) / usual */
    double least, most;  /* the same */
    double usual, other; /* sums */
};

static inline void cpl_pairs_add(struct cpl_pairs *pairs, double usual, double other)
{
    double d = (usual - other) / usual;
    pairs->least = pairs->n == 0 || d < pairs->least ? d : pairs->least;
    pairs->most = pairs->n == 0 || d > pairs->most ? d : pairs->most;
    pairs->n++;
    pairs->sum += d;
    pairs->squares += d * d;
    pairs->usual += usual;
    pairs->other += other;
}

/* Whether the other way is faster than the usual one, by two hundredths at least. After
 * CPL_MOST_PAIRS it is decided: what cannot be told apart is not faster. */
static inline enum cpl_verdict cpl_pairs_judge(const struct cpl_pairs *pairs)
{
    /* Student's t for two pairs and more, exceeded by chance in one of twenty cases */
    static const double student[] = {12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36};
    const double low = pairs->least, high = pairs->most;
    const bool trimmed = pairs->n >= CPL_MOST_PAIRS;
    const int n = trimmed ? pairs->n - 2 : pairs->n;
    if (n >= 2 && high < CPL_MUCH_SLOWER)
        return CPL_NOT_FASTER;
    if (n < CPL_LEAST_PAIRS)
        return CPL_UNDECIDED;
    double mean = (pairs->sum - (trimmed ? low + high : 0)) / n;
    double squares = (pairs->squares - (trimmed ? low * low + high * high : 0)) / n;
    /* comparing squares needs no square root */
    double margin = mean - CPL_LEAST_GAIN;
    double t = student[n - 2], error = t * t * (squares - mean * mean) / (n - 1);
    if (margin * margin <= error && pairs->n < CPL_MOST_PAIRS)
        return CPL_UNDECIDED;
    return margin > 0 && margin * margin > error ? CPL_FASTER : CPL_NOT_FASTER;
}

#endif
