/* A program of ranks (pt2pt_program.h). */
#include "pt2pt_program.h"

#include "pt2pt_ranks.h"

#include <string.h>

struct pt2pt_program plan;

void note_phase(int r)
{
    const struct cpl_pt2pt *p = pt2pt_of(r);
    int64_t n = pt2pt.rank[r].state.meeting.n;
    if (p->phase == CPL_PT2PT_MANAGED && plan.managed_at == 0)
        plan.managed_at = n;
    if ((p->phase == CPL_PT2PT_ALONE || p->phase == CPL_PT2PT_RESTING) && plan.alone_at == 0)
        plan.alone_at = n;
}

static void program(int r)
{
    for (int k = 0; k < plan.n_collectives; k++) {
        int64_t n = pt2pt.rank[r].state.meeting.n + 1; /* of the collective that comes next */
        if (plan.plain) {
            pt2pt_receive((r + fibers_n() - 1) % fibers_n(), 5);
            pt2pt_send((r + 1) % fibers_n(), 5);
        } else {
            pt2pt_exchange();
        }
        if (plan.late > 0 && n == plan.from && r == 1)
            pt2pt_send(2, LATE_TAG);
        if (plan.late > 0 && n == plan.from + plan.late && r == 2)
            pt2pt_receive(1, LATE_TAG);
        pt2pt_collective();
        if (r == 0)
            note_phase(r);
    }
}

void run(int n_collectives)
{
    plan.n_collectives = n_collectives;
    fibers_run(program);
}

void begin(uint64_t seed)
{
    memset(&plan, 0, sizeof plan);
    pt2pt_ranks_begin(N, seed);
}
