/* The pace of a program (pace.h). */
#include "shim/meet/pace.h"

#define SLOWER 1.05

void cpl_pace_note(struct cpl_pace *pace, int64_t n, bool rerouted, double now)
{
    if (pace->at > 0 && n > pace->n)
        cpl_samples_add(rerouted ? &pace->since : &pace->before, now - pace->at);
    pace->n = n;
    pace->at = now;
}

bool cpl_pace_is_slower(double since, double before)
{
    return before > 0 && since > SLOWER * before;
}
