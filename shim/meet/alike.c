/* What must be alike on all ranks (alike.h). */
#include "shim/meet/alike.h"

#include "config.h"
#include "shim/base/log.h"
#include "shim/state/comm_state.h"
#include "shim/state/hooks.h"
#include "shim/wait/collective.h"

#if defined NDEBUG || defined CPL_SIMULATED
void cpl_alike_check(const struct cpl_comm_state *state)
{
    (void)state;
}
#else
void cpl_alike_check(const struct cpl_comm_state *state)
{
    const struct cpl_busy *busy = &cpl_context.busy;
    struct cpl_alike alike = {CPL_HASH_START};
    cpl_alike_add(&alike, busy->n_managed);
    cpl_alike_add(&alike, busy->n_hosts);
    cpl_alike_add(&alike, busy->n_served);
    CPL_EACH_HOOKS(hooks)
    {
        if (hooks->alike)
            hooks->alike(state, &alike);
    }
    uint64_t mine[2] = {alike.hash, ~alike.hash}, least[2];
    if (cpl_collective_Allreduce(mine, least, 2, MPI_UINT64_T, MPI_MIN, state->comm) ==
            MPI_SUCCESS &&
        least[0] != ~least[1] && state->rank == 0)
        cpl_log(CPL_LOG_ERROR, "alike",
                "what ranks know of a communicator differs: a fault of the library");
}
#endif
