/* The pace of a program: how long it takes from one blocking collective to the next for each
 * exchange that it makes in between. Times without rerouting are kept apart from times with it.
 * They tell what single messages cannot: whether the program as a whole has become slower. Leaf
 * module. */
#ifndef CARPOOL_PACE_H
#define CARPOOL_PACE_H

#include "shim/base/samples.h"

#include <stdbool.h>
#include <stdint.h>

struct cpl_pace {
    double at;                 /* begin of the time being taken, in seconds; 0: none is */
    int64_t n;                 /* exchanges until then */
    struct cpl_samples before; /* this rank's seconds an exchange without rerouting */
    struct cpl_samples since;  /* this rank's seconds an exchange with rerouting */
    bool is_short;             /* the latest of these: looking at the clock would add to it */
};

/* note: a blocking collective is entered after n exchanges in all; `rerouted` says how the latest
 * of them went. resume: what has happened since the last note was the shim's own doing, and is left
 * out. */
void cpl_pace_note(struct cpl_pace *pace, int64_t n, bool rerouted);
void cpl_pace_resume(struct cpl_pace *pace, int64_t n);

/* What a rank says of its pace in a vote, in seconds an exchange: the lower quartile of
 * `before`, which has few times, the first of them long, and the median of `since`, 0 while there
 * are too few. */
double cpl_pace_before(const struct cpl_pace *pace);
double cpl_pace_since(const struct cpl_pace *pace);

/* Whether a program has become slower, by the sums of these over all ranks. */
bool cpl_pace_is_slower(double since, double before);

#endif
