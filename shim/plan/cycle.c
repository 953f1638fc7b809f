/* Cycles of batches (cycle.h). */
#include "shim/plan/cycle.h"

#include <stdlib.h>
#include <string.h>

/* The length of the end of the steps that repeats with a period. */
static int repeated(const struct cpl_step *step, int n, int period)
{
    int k = n - 1;
    while (k >= period && step[k].signature == step[k - period].signature &&
           step[k].plan == step[k - period].plan)
        k--;
    return n - 1 - k + period;
}

void cpl_cycle_set(struct cpl_cycle *cycle, struct cpl_step *step, int n)
{
    int period = 1, length;
    while (period <= n / 2 && ((length = repeated(step, n, period)) < 2 * period || length < n / 2))
        period++;
    period = period <= n / 2 ? period : n;
    memmove(step, step + n - period, (size_t)period * sizeof *step);
    free(cycle->step);
    *cycle = (struct cpl_cycle){.n = period, .step = step};
}

int cpl_cycle_find(const struct cpl_cycle *cycle, int signature)
{
    for (int k = 0; k < cycle->n; k++) {
        int at = cycle->at + k < cycle->n ? cycle->at + k : cycle->at + k - cycle->n;
        if (cycle->step[at].signature == signature)
            return at;
    }
    return -1;
}

void cpl_cycle_take(struct cpl_cycle *cycle, int at)
{
    cycle->at = at + 1 < cycle->n ? at + 1 : 0;
}

/* Collectives without batches between them are one step. */
void cpl_cycle_collective(struct cpl_cycle *cycle)
{
    if (cycle->n == 0 ||
        cycle->step[(cycle->at + cycle->n - 1) % cycle->n].signature == CPL_STEP_COLLECTIVE)
        return;
    int at = cpl_cycle_find(cycle, CPL_STEP_COLLECTIVE);
    if (at >= 0)
        cpl_cycle_take(cycle, at);
}

void cpl_cycle_end(struct cpl_cycle *cycle)
{
    free(cycle->step);
    *cycle = (struct cpl_cycle){.n = 0};
}
