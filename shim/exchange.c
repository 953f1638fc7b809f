/* The end of an exchange (exchange.h). */
#include "exchange.h"

#include "collective.h"
#include "comm_state.h"
#include "context.h"
#include "report.h"

const char *cpl_exchange_kind_name(enum cpl_neighbor_kind kind)
{
    static const char *const names[CPL_N_NEIGHBOR_KINDS + 1] = {
        [CPL_NEIGHBOR_ALLTOALL] = "Neighbor_alltoall",
        [CPL_NEIGHBOR_ALLTOALLV] = "Neighbor_alltoallv",
        [CPL_NEIGHBOR_ALLTOALLW] = "Neighbor_alltoallw",
        [CPL_NEIGHBOR_ALLGATHER] = "Neighbor_allgather",
        [CPL_NEIGHBOR_ALLGATHERV] = "Neighbor_allgatherv",
        [CPL_KIND_PT2PT] = "pt2pt",
    };
    return names[kind];
}

/* Brings the ranks' figures together on the first rank; where there is no private communicator (the
 * exchange was never planned) the first rank's own have to do. */
static void record(const struct cpl_exchange *x, const struct cpl_comm_state *state)
{
    double seconds[2] = {cpl_samples_median(&x->direct), cpl_samples_median(&x->planned)};
    double slowest[2];
    int64_t forwarded = x->executor ? cpl_executor_forwarded(x->executor) : 0, all_forwarded = 0;
    slowest[0] = seconds[0];
    slowest[1] = seconds[1];
    if (state->private_comm != MPI_COMM_NULL) {
        cpl_collective_Reduce(seconds, slowest, 2, MPI_DOUBLE, MPI_MAX, 0, state->private_comm);
        cpl_collective_Reduce(&forwarded, &all_forwarded, 1, MPI_INT64_T, MPI_SUM, 0,
                              state->private_comm);
    }
    if (state->rank != 0)
        return;
    struct cpl_record r = {.kind = x->kind,
                           .n_ranks = state->size,
                           .n_communicators = 1,
                           .calls = x->calls,
                           .calls_planned = x->calls_planned,
                           .direct_seconds = slowest[0] * (double)(x->calls - x->calls_planned),
                           .planned_seconds = slowest[1] * (double)x->calls_planned,
                           .forwarded_bytes = all_forwarded,
                           .summary = x->summary,
                           .reason = x->summary.known ? x->summary.reason : CPL_LEFT_FEW_CALLS};
    if (x->phase == CPL_PHASE_DIRECT && !x->summary.known)
        r.reason = CPL_LEFT_NO_PLAN;
    cpl_report_add(&r);
}

void cpl_exchange_end(struct cpl_exchange *exchange, struct cpl_comm_state *state)
{
    if (exchange->calls > 0 && cpl_report_is_wanted())
        record(exchange, state);
    cpl_exchange_release(exchange);
}
