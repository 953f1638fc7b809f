/* The pace of a program: how long it takes from one blocking collective to the next when it makes
 * exchanges in between. Times without rerouting are kept apart from times with it. They tell what
 * single messages cannot: whether the program as a whole has become slower. Leaf module. */
#ifndef CARPOOL_PACE_H
#define CARPOOL_PACE_H

#include "shim/base/samples.h"

#include <stdbool.h>
#include <stdint.h>

struct cpl_pace {
    double at;                 /* end of the last collective, in seconds; 0: there has been none */
    int64_t n;                 /* exchanges until then */
    struct cpl_samples before; /* this rank's times without rerouting */
    struct cpl_samples since;  /* this rank's times with rerouting */
};

/* A blocking collective is entered at `now`, after n exchanges in all; `rerouted` says how the
 * latest of them went. The collective counts as ended at `now`, too, unless the caller sets `at`
 * later. */
void cpl_pace_note(struct cpl_pace *pace, int64_t n, bool rerouted, double now);

/* Whether a program has become slower, by the median of `since` and the lower quartile of `before`,
 * each summed up over all ranks: `before` has few times, the first of them long. */
bool cpl_pace_is_slower(double since, double before);

#endif
