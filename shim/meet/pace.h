/* The pace of a program: how long it takes from one blocking collective to the next when there are
 * exchanges between the two; before any of them was rerouted, and since. It tells what measuring
 * single messages cannot: whether the program as a whole has become slower. Leaf module. */
#ifndef CARPOOL_PACE_H
#define CARPOOL_PACE_H

#include "shim/base/samples.h"

#include <stdbool.h>
#include <stdint.h>

struct cpl_pace {
    double at; /* when the last collective was left to the program; seconds; 0: none yet */
    int64_t n; /* exchanges until then */
    struct cpl_samples before; /* this rank's times without rerouting */
    struct cpl_samples since;  /* and with it */
};

/* A blocking collective is entered at `now`, after n exchanges in all, the latest of them rerouted
 * or not; and left to the program at once, unless `at` is set later. */
void cpl_pace_note(struct cpl_pace *pace, int64_t n, bool rerouted, double now);

/* Whether the sums over all ranks of the medians of `since` and `before` are of a program that has
 * become slower. */
bool cpl_pace_is_slower(double since, double before);

#endif
