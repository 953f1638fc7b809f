/* The end of an exchange (exchange.h). */
#include "exchange.h"

#include "collective.h"
#include "comm_state.h"
#include "context.h"
#include "neighbor_internal.h"
#include "report.h"

const char *cpl_exchange_kind_name(enum cpl_neighbor_kind kind)
{
    static const char *const names[CPL_N_NEIGHBOR_KINDS + 1] = {
        [CPL_NEIGHBOR_ALLTOALL] = "Neighbor_alltoall",
        [CPL_NEIGHBOR_ALLTOALLV] = "Neighbor_alltoallv",
        [CPL_NEIGHBOR_ALLTOALLW] = "Neighbor_alltoallw",
        [CPL_NEIGHBOR_ALLGATHER] = "Neighbor_allgather",
        [CPL_NEIGHBOR_ALLGATHERV] = "Neighbor_allgatherv",
        [CPL_ALLTOALLV] = "Alltoallv",
        [CPL_ALLTOALLW] = "Alltoallw",
        [CPL_KIND_PT2PT] = "pt2pt",
    };
    return names[kind];
}

/* The figures of all ranks together: the slowest one's medians (direct, planned), the sum of bytes.
 */
struct figures {
    double seconds[2];
    int64_t forwarded;
};

static struct figures own_figures(const struct cpl_exchange *x)
{
    return (struct figures){
        .seconds = {cpl_samples_median(&x->direct), cpl_samples_median(&x->planned)},
        .forwarded = x->executor ? cpl_executor_forwarded(x->executor) : 0};
}

static void add_record(const struct cpl_exchange *x, const struct cpl_comm_state *state,
                       const struct figures *figures)
{
    struct cpl_record r = {.kind = x->kind,
                           .n_ranks = state->size,
                           .n_communicators = 1,
                           .calls = x->calls + x->started,
                           .calls_planned = x->calls_planned + x->started_planned,
                           .direct_seconds =
                               figures->seconds[0] * (double)(x->calls - x->calls_planned),
                           .planned_seconds = figures->seconds[1] * (double)x->calls_planned,
                           .forwarded_bytes = figures->forwarded,
                           .summary = x->summary};
    if (state->rank == 0 && cpl_context.settings.report[0])
        cpl_report_add(&r);
}

void cpl_exchange_record(const struct cpl_exchange *exchange, const struct cpl_comm_state *state)
{
    struct figures own = own_figures(exchange);
    add_record(exchange, state, &own);
}

/* Brings the ranks' figures together on the first rank; where there is no private communicator (the
 * exchange was never planned) the first rank's own have to do. */
static void record(const struct cpl_exchange *x, const struct cpl_comm_state *state)
{
    struct figures own = own_figures(x), all = own;
    if (state->private_comm != MPI_COMM_NULL) {
        cpl_collective_Reduce(own.seconds, all.seconds, 2, MPI_DOUBLE, MPI_MAX, 0,
                              state->private_comm);
        cpl_collective_Reduce(&own.forwarded, &all.forwarded, 1, MPI_INT64_T, MPI_SUM, 0,
                              state->private_comm);
    }
    add_record(x, state, &all);
}

void cpl_exchange_end(struct cpl_exchange *exchange, struct cpl_comm_state *state)
{
    cpl_neighbor_drain(exchange);
    if (exchange->calls + exchange->started > 0 && cpl_context.settings.report[0])
        record(exchange, state);
    cpl_exchange_release(exchange);
}
