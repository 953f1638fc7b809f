/* Deciding what becomes of a neighborhood collective (neighbor.h); neighbor_run.c carries the
 * planned ones. */
#include "neighbor.h"

#include "collective.h"
#include "context.h"
#include "log.h"
#include "neighbor_internal.h"
#include "report.h"

#include <stdlib.h>
#include <string.h>

/* Describes the type of neighbour k; that of the neighbour before is kept where it is the same. */
static bool describe(const struct cpl_neighbor_side *side, int k, struct cpl_type *type)
{
    MPI_Datatype handle = side->types ? side->types[k] : side->type;
    return (k > 0 && handle == type->handle) || cpl_type_describe(handle, type);
}

static int64_t offset_of(const struct cpl_neighbor_side *side, int k, int count, int64_t extent)
{
    if (side->byte_displs)
        return side->byte_displs[k];
    if (side->displs)
        return side->displs[k] * extent;
    return side->same ? 0 : (int64_t)k * count * extent;
}

/* Fills the spans of one side's n neighbours. */
static bool resolve_side(const struct cpl_neighbor_side *side, int n, struct cpl_span *spans)
{
    struct cpl_type type = {.size = 0};
    if (n > 0 && side->counts && !side->displs && !side->byte_displs)
        return false;
    for (int k = 0; k < n; k++) {
        int count = side->counts ? side->counts[k] : side->count;
        if (count < 0 || !describe(side, k, &type))
            return false;
        /* As integers: MPI_BOTTOM is no pointer to compute with. */
        uintptr_t address =
            (uintptr_t)side->buffer + (uintptr_t)offset_of(side, k, count, type.extent);
        spans[k] = (struct cpl_span){(char *)address, count, type};
        if (!address && type.dense && cpl_span_bytes(&spans[k]) > 0)
            return false;
    }
    return true;
}

bool cpl_neighbor_resolve(const struct cpl_neighbor_call *call, const struct cpl_comm_state *state,
                          struct cpl_exchange *exchange)
{
    exchange->same_payload = call->send.same;
    return resolve_side(&call->send, state->adjacency.out.n, exchange->out_span) &&
           resolve_side(&call->recv, state->adjacency.in.n, exchange->in_span);
}

int64_t cpl_neighbor_payload_bytes(const struct cpl_exchange *exchange,
                                   const struct cpl_comm_state *state, int m)
{
    const struct cpl_neighbors *out = &state->adjacency.out;
    int first = out->first_part[m], n_parts = out->first_part[m + 1] - first;
    if (exchange->same_payload)
        return cpl_span_bytes(&exchange->out_span[out->part[first]]);
    int64_t bytes = n_parts > 1 ? n_parts * (int64_t)sizeof(uint32_t) : 0;
    for (int p = first; p < first + n_parts; p++)
        bytes += cpl_span_bytes(&exchange->out_span[out->part[p]]);
    return bytes;
}

/* Whether the exchange has been seen often enough; the same answer on all ranks. MPICH's alltoallw
 * (4.0.2) is wrong and damages memory on ranks whose in- and out-degree differ: where there are
 * such ranks it is not called even once. */
static bool must_plan(const struct cpl_neighbor_call *call, const struct cpl_comm_state *state,
                      struct cpl_exchange *exchange)
{
    if (call->kind == CPL_NEIGHBOR_ALLTOALLW && exchange->calls == 1 &&
        cpl_context.settings.mode != CPL_MODE_PROFILE)
        exchange->mpi_distrusted =
            !cpl_agree_all(call->comm, state->adjacency.in.n == state->adjacency.out.n);
    return exchange->mpi_distrusted || exchange->calls > cpl_context.settings.learn;
}

/* What a trial that has ended came to. */
static void log_choice(const struct cpl_comm_state *state, const struct cpl_exchange *exchange,
                       int32_t before)
{
    const struct cpl_trial *trial = &exchange->trial;
    const char *name = trial->chosen > 0 ? exchange->summary[trial->chosen - 1].strategy : "MPI";
    if (state->rank != 0 || (trial->chosen == before && trial->n_trials > 1))
        return;
    cpl_log(CPL_LOG_INFO, "trial", "%s, %d ranks: %s from now on (%.1f us a call, MPI %.1f)",
            cpl_exchange_kind_name(exchange->kind), state->size, name,
            trial->median_us[trial->chosen], trial->median_us[0]);
}

/* Notes what a call took. At the end of a round the ranks put their times together: collective
 * then. */
static void note_call(const struct cpl_comm_state *state, struct cpl_exchange *exchange,
                      double seconds)
{
    struct cpl_trial *trial = &exchange->trial;
    double slowest_us[CPL_MAX_TRIED];
    int32_t before = trial->chosen;
    if (!cpl_trial_note(trial, seconds * 1e6))
        return;
    memcpy(slowest_us, trial->own_us, sizeof slowest_us);
    cpl_collective_Allreduce(trial->own_us, slowest_us, trial->n, MPI_DOUBLE, MPI_MAX,
                             state->private_comm);
    cpl_trial_judge(trial, slowest_us);
    if (!trial->running)
        log_choice(state, exchange, before);
}

bool cpl_neighbor_carry(struct cpl_neighbor_call *call, int *result)
{
    struct cpl_comm_state *state = cpl_comm_state_get(call->comm);
    if (!state || !state->watched)
        return false;
    struct cpl_exchange *exchange = &state->exchanges[call->kind];
    exchange->calls++;
    if (exchange->phase == CPL_PHASE_LEARNING && must_plan(call, state, exchange))
        cpl_neighbor_plan(call, state, exchange);
    int32_t candidate = 0;
    if (exchange->phase == CPL_PHASE_PLANNED) {
        candidate = cpl_trial_candidate(&exchange->trial);
        /* Else a late rank is timed, not the exchange. */
        if (exchange->trial.running)
            cpl_collective_Barrier(state->private_comm);
    }
    bool timed = exchange->trial.running || cpl_report_is_wanted();
    if (candidate == 0 && !timed) {
        cpl_trial_note(&exchange->trial, 0);
        return false;
    }
    double start = PMPI_Wtime();
    if (candidate > 0 && cpl_neighbor_resolve(call, state, exchange)) {
        exchange->executor = exchange->executors[candidate - 1];
        *result = cpl_neighbor_run(call, state, exchange);
        double seconds = PMPI_Wtime() - start;
        exchange->calls_planned++;
        cpl_samples_add(&exchange->planned, seconds);
        note_call(state, exchange, seconds);
        return true;
    }
    call->state = state;
    call->watched = exchange;
    call->start = start;
    return false;
}

void cpl_neighbor_passed(struct cpl_neighbor_call *call)
{
    if (!call->watched)
        return;
    double seconds = PMPI_Wtime() - call->start;
    cpl_samples_add(&call->watched->direct, seconds);
    if (call->watched->phase == CPL_PHASE_PLANNED)
        note_call(call->state, call->watched, seconds);
}
