/* The pace of a program: how long it takes from one blocking collective to the next for each
 * exchange that it makes in between. Times without rerouting are kept apart from times with it.
 * They tell what single messages cannot: whether the program as a whole has become slower. Leaf
 * module. */
#ifndef CARPOOL_PACE_H
#define CARPOOL_PACE_H

#include "shim/base/samples.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#define CPL_PACE_SLOWER       1.05
#define CPL_PACE_SHORT        200e-6 /* seconds an exchange: the clock is looked at after */
#define CPL_PACE_STEP         8      /* so many of these */
#define CPL_PACE_FEWEST       3      /* times that say something; */
#define CPL_PACE_FEWEST_SHORT 12     /* of short ones the first are those of cold memory */

struct cpl_pace {
    double at;                 /* begin of the time being taken, in seconds; 0: none is */
    int64_t n;                 /* exchanges until then */
    struct cpl_samples before; /* this rank's seconds an exchange without rerouting */
    struct cpl_samples since;  /* this rank's seconds an exchange with rerouting */
    bool is_short;             /* the latest of these: looking at the clock would add to it */
};

/* What has happened since the last note was the shim's own doing, and is left out. */
static inline void cpl_pace_resume(struct cpl_pace *pace, int64_t n)
{
    pace->n = n;
    pace->at = PMPI_Wtime();
}

/* A blocking collective is entered after n exchanges in all; `rerouted` says how the latest of them
 * went. */
static inline void cpl_pace_note(struct cpl_pace *pace, int64_t n, bool rerouted)
{
    const double at = pace->at;
    const int64_t before = pace->n;
    if (rerouted && pace->is_short && n > before && n < before + CPL_PACE_STEP)
        return;
    cpl_pace_resume(pace, n);
    if (at <= 0 || n <= before)
        return;
    double seconds = (pace->at - at) / (double)(n - before);
    cpl_samples_add(rerouted ? &pace->since : &pace->before, seconds);
    pace->is_short = rerouted && seconds < CPL_PACE_SHORT;
}

/* What a rank says of its pace in a vote, in seconds an exchange: the lower quartile of
 * `before`, which has few times, the first of them long, and the median of `since`, 0 while there
 * are too few. */
static inline double cpl_pace_before(const struct cpl_pace *pace)
{
    return cpl_samples_quartile(&pace->before);
}

static inline double cpl_pace_since(const struct cpl_pace *pace)
{
    int fewest = pace->is_short ? CPL_PACE_FEWEST_SHORT : CPL_PACE_FEWEST;
    return pace->since.n < fewest ? 0 : cpl_samples_median(&pace->since);
}

/* Whether a program has become slower, by the sums of these over all ranks. */
static inline bool cpl_pace_is_slower(double since, double before)
{
    return before > 0 && since > CPL_PACE_SLOWER * before;
}

#endif
