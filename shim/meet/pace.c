/* The pace of a program (pace.h). */
#include "shim/meet/pace.h"

#include <mpi.h>

#define SLOWER       1.05
#define SHORT        200e-6 /* seconds an exchange; of such ones the clock is looked at after */
#define STEP         8      /* so many */
#define FEWEST       3      /* times that say something; */
#define FEWEST_SHORT 12     /* of short ones the first are those of cold memory */

void cpl_pace_note(struct cpl_pace *pace, int64_t n, bool rerouted)
{
    if (rerouted && pace->is_short && n > pace->n && n < pace->n + STEP)
        return;
    double now = PMPI_Wtime();
    if (pace->at > 0 && n > pace->n) {
        double seconds = (now - pace->at) / (double)(n - pace->n);
        cpl_samples_add(rerouted ? &pace->since : &pace->before, seconds);
        pace->is_short = rerouted && seconds < SHORT;
    }
    pace->n = n;
    pace->at = now;
}

void cpl_pace_resume(struct cpl_pace *pace, int64_t n)
{
    pace->n = n;
    pace->at = PMPI_Wtime();
}

double cpl_pace_before(const struct cpl_pace *pace)
{
    return cpl_samples_quartile(&pace->before);
}

double cpl_pace_since(const struct cpl_pace *pace)
{
    if (pace->since.n < (pace->is_short ? FEWEST_SHORT : FEWEST))
        return 0;
    return cpl_samples_median(&pace->since);
}

bool cpl_pace_is_slower(double since, double before)
{
    return before > 0 && since > SLOWER * before;
}
