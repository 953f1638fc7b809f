/* The end of an exchange (exchange.h). */
#include "exchange.h"

#include "collective.h"
#include "comm_state.h"
#include "context.h"
#include "neighbor_internal.h"
#include "report.h"

#include <string.h>

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

static int64_t forwarded_bytes(const struct cpl_exchange *x)
{
    int64_t bytes = 0;
    for (int k = 0; k < CPL_MAX_PLANS; k++)
        bytes += x->executors[k] ? cpl_executor_forwarded(x->executors[k]) : 0;
    return bytes;
}

static enum cpl_left_alone why_not_planned(const struct cpl_exchange *x)
{
    if (x->learned.n_vain > 0)
        return CPL_LEFT_DENSE;
    if (x->summary[0].known)
        return (enum cpl_left_alone)x->summary[0].reason;
    if (x->phase == CPL_PHASE_DIRECT)
        return CPL_LEFT_NO_PLAN;
    bool enough = x->started > 0 && x->started >= cpl_context.settings.learn;
    return enough ? CPL_LEFT_NO_MEETING : CPL_LEFT_FEW_CALLS;
}

/* The plan in use, or the one that was considered, and what trials found. */
static void tell_choice(const struct cpl_exchange *x, struct cpl_record *r)
{
    const struct cpl_trial *trial = &x->trial;
    r->summary = x->summary[0];
    if (x->phase != CPL_PHASE_PLANNED) {
        r->summary.decided = 0;
        r->reason = why_not_planned(x);
        return;
    }
    bool carried = trial->chosen > 0 || x->served;
    if (trial->chosen > 0)
        r->summary = x->summary[trial->chosen - 1];
    else if (!carried && x->given_back)
        r->reason = CPL_LEFT_SLOWED;
    else if (!carried && x->calls == 0) /* nonblocking calls alone: not tried */
        r->reason = CPL_LEFT_NO_GAIN;
    else if (!carried && !trial->running)
        r->reason = CPL_LEFT_SLOWER;
    r->summary.decided = carried;
    r->n_trials = trial->n_trials;
    r->trial_calls = trial->tried;
    const char direct[CPL_STRATEGY_TEXT] = "direct";
    r->n_tried = trial->rounds > 0 ? trial->n : 0;
    for (int32_t k = 0; k < r->n_tried; k++) {
        r->tried_us[k] = cpl_trial_us(trial, k);
        r->tried_modelled_us[k] =
            k > 0 ? x->summary[k - 1].planned.modelled_us : x->summary[0].direct.modelled_us;
        memcpy(r->tried[k], k > 0 ? x->summary[k - 1].strategy : direct, sizeof direct);
    }
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
        .forwarded = forwarded_bytes(x)};
}

static void add_record(const struct cpl_exchange *x, int rank, int n_ranks,
                       const struct figures *figures)
{
    if (rank != 0 || !cpl_report_is_wanted())
        return;
    struct cpl_record r = {.kind = x->kind,
                           .n_ranks = n_ranks,
                           .n_communicators = 1,
                           .calls = x->calls + x->started,
                           .calls_planned = x->calls_planned + x->started_planned,
                           .forwarded_bytes = figures->forwarded};
    /* Nonblocking calls are not timed: they are taken to be like the blocking ones, if any. */
    r.direct_seconds = figures->seconds[0] * (double)(r.calls - r.calls_planned);
    r.planned_seconds = figures->seconds[1] * (double)r.calls_planned;
    tell_choice(x, &r);
    cpl_report_add(&r);
}

void cpl_exchange_record(const struct cpl_exchange *exchange, int rank, int n_ranks)
{
    struct figures own = own_figures(exchange);
    add_record(exchange, rank, n_ranks, &own);
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
    add_record(x, state->rank, state->size, &all);
}

void cpl_exchange_end(struct cpl_exchange *exchange, struct cpl_comm_state *state)
{
    cpl_neighbor_drain(exchange);
    if (exchange->calls + exchange->started > 0 && cpl_report_is_wanted())
        record(exchange, state);
    cpl_exchange_release(exchange);
}
