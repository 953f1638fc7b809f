/* Polling, waiting, and where managing begins and ends (pt2pt.h). */
#include "shim/pt2pt/pt2pt.h"

#include "shim/calls/away_window.h"
#include "shim/exchange/neighbor.h"
#include "shim/meet/quiet.h"
#include "shim/pt2pt/pt2pt_internal.h"
#include "shim/report/report.h"
#include "shim/state/comm_state.h"
#include "shim/wait/pt2pt_requests.h"

#include <sched.h>

#define FIRST_AGREEMENT 4
#define MOST_RETRIES    3  /* at the next collectives, when messages were under way at one */
#define IDLE_POLLS      64 /* in a row before the processor is given to others */

static bool poll_once(void)
{
    bool any = false;
    atomic_fetch_add_explicit(&cpl_context.service.n_polls, 1, memory_order_relaxed);
    for (struct cpl_comm_state *s = cpl_context.first_managed; s; s = s->pt2pt.next_managed) {
        any |= cpl_rides_poll(&s->pt2pt.rides);
        if (s->pt2pt.embed.pending)
            any |= cpl_embed_progress(s);
        if (s->pt2pt.embed.used > 0)
            cpl_embed_release(s, false);
        if (cpl_match_has_straight(&s->pt2pt.match))
            any |= cpl_match_poll(&s->pt2pt.match) > 0;
        if (cpl_match_has_straight(&s->pt2pt.riders.match))
            any |= cpl_match_poll(&s->pt2pt.riders.match) > 0;
    }
    if (cpl_context.first_pending)
        any |= cpl_neighbor_poll();
    if (cpl_context.buffered.first)
        any |= cpl_buffered_poll();
    any |= cpl_window_poll();
    return any;
}

void cpl_pt2pt_poll(void)
{
    static int n_idle;
    n_idle = poll_once() ? 0 : n_idle + 1;
    if (!cpl_context.first_pending)
        cpl_context_update_service();
    if (n_idle >= IDLE_POLLS) {
        n_idle = 0;
        sched_yield();
    }
}

bool cpl_pt2pt_serve(void)
{
    bool any = false;
    if (cpl_context.first_open)
        cpl_neighbor_embed_leave_late();
    for (struct cpl_comm_state *s = cpl_context.first_managed; s; s = s->pt2pt.next_managed) {
        if (s->pt2pt.phase != CPL_PT2PT_MANAGED || (s->pt2pt.batch.n == 0 && !s->pt2pt.following))
            continue;
        cpl_pt2pt_flush(s);
        any = true;
    }
    return poll_once() || any;
}

/* Whether its batch goes aboard the reduction that is being entered. */
static bool boards(const struct cpl_pt2pt *p)
{
    return p->embed.waiting && p->phase == CPL_PT2PT_MANAGED;
}

void cpl_pt2pt_leave(void)
{
    if (cpl_context.first_open)
        cpl_neighbor_embed_leave();
    for (struct cpl_comm_state *s = cpl_context.first_state; s && cpl_context.n_open_batches > 0;
         s = s->next) {
        if ((s->pt2pt.batch.n == 0 && !s->pt2pt.following && !s->pt2pt.open) || boards(&s->pt2pt))
            continue;
        if (s->pt2pt.phase == CPL_PT2PT_MANAGED)
            cpl_pt2pt_flush(s);
        else
            cpl_pt2pt_close_batch(&s->pt2pt);
    }
}

int cpl_pt2pt_wait(MPI_Request *request, MPI_Status *status)
{
    int flag = 0;
    if (cpl_context.n_open_batches > 0)
        cpl_pt2pt_leave();
    for (;;) {
        int result = PMPI_Test(request, &flag, status);
        if (result != MPI_SUCCESS || flag)
            return result;
        cpl_pt2pt_poll();
    }
}

int cpl_pt2pt_wait_each(int n, MPI_Request *requests, MPI_Status *statuses)
{
    int result = MPI_SUCCESS;
    for (int k = 0; k < n; k++) {
        MPI_Status status;
        if (cpl_request_active(requests[k]))
            continue;
        bool is_null = requests[k] == MPI_REQUEST_NULL;
        int code = cpl_pt2pt_wait(&requests[k], &status);
        if (code != MPI_SUCCESS)
            result = MPI_ERR_IN_STATUS;
        if (statuses != MPI_STATUSES_IGNORE) {
            int error = is_null ? statuses[k].MPI_ERROR : code;
            statuses[k] = status;
            statuses[k].MPI_ERROR = error;
        }
    }
    return result;
}

void cpl_pt2pt_gather_ranks(MPI_Comm comm)
{
    MPI_Request request;
    if (PMPI_Ibarrier(comm, &request) == MPI_SUCCESS)
        cpl_pt2pt_wait(&request, MPI_STATUS_IGNORE);
}

/* The ranks agree, or review what they agreed on. Collective. */
static void meet(struct cpl_comm_state *state)
{
    struct cpl_pt2pt *p = &state->pt2pt;
    if (p->n_collectives == p->next_power) {
        p->next_power *= 2;
        p->n_retries = 0;
    }
    p->next_agreement = p->next_power;
    if (p->phase == CPL_PT2PT_MANAGED)
        cpl_pt2pt_review(state);
    else if (!cpl_pt2pt_agree(state) && p->n_retries++ < MOST_RETRIES)
        p->next_agreement = p->n_collectives + 1;
}

/* A blocking collective is entered: batches leave, and the pace is taken. */
static void arrive(struct cpl_comm_state *state)
{
    if (state)
        cpl_quiet_settle_collectives(state);
    if (cpl_context.n_open_batches > 0)
        cpl_pt2pt_leave();
    if (cpl_context.timed.of)
        cpl_profile_finish(NULL);
    if (!state || state->pt2pt.phase == CPL_PT2PT_ALONE || state->pt2pt.sampled)
        return;
    struct cpl_pt2pt *p = &state->pt2pt;
    if (p->next_agreement == 0)
        p->next_agreement = p->next_power = p->n_collectives + FIRST_AGREEMENT;
    if (p->started && !p->given_up)
        cpl_pace_note(&p->pace, p->n_learned + p->n_batches, p->phase == CPL_PT2PT_MANAGED,
                      PMPI_Wtime());
}

/* The ranks meet when it is time. */
static void go_on(struct cpl_comm_state *state)
{
    if (state && state->pt2pt.embed.on)
        cpl_embed_decide(state);
    if (!state || state->pt2pt.phase == CPL_PT2PT_ALONE)
        return;
    struct cpl_pt2pt *p = &state->pt2pt;
    p->reducing = CPL_EMBED_REFUSED;
    if (p->sampled) {
        cpl_profile_sample(p);
        return;
    }
    if (p->phase == CPL_PT2PT_MANAGED)
        cpl_cycle_collective(&p->cycle);
    else if (p->started && !p->counts_only)
        cpl_notes_add(&p->notes, CPL_NOTE_COLLECTIVE, 0, 0);
    if (++p->n_collectives < p->next_agreement)
        return;
    meet(state);
    if (p->started)
        p->pace.at = PMPI_Wtime();
}

void cpl_pt2pt_before_collective(MPI_Comm comm)
{
    struct cpl_comm_state *state = cpl_comm_state_get(comm);
    arrive(state);
    go_on(state);
}

/* Whether reductions may be carried out here; alike on all ranks. */
static bool may_embed(const struct cpl_pt2pt *p)
{
    return p->embed.on && ((p->phase == CPL_PT2PT_MANAGED && !p->given_up) ||
                           (p->riders.open && !p->riders.closed));
}

/* Whether there is nothing to be learned or done about a communicator's reductions. */
static bool is_idle(const struct cpl_comm_state *state)
{
    return !state || state->inter ||
           (state->pt2pt.phase == CPL_PT2PT_ALONE && !state->pt2pt.riders.open);
}

/* What a neighborhood collective that is open knows of a reduction that comes next. */
static void note_reduction(struct cpl_comm_state *state, int64_t count, MPI_Datatype type,
                           MPI_Op op, bool blocking)
{
    if (state && cpl_context.first_open)
        cpl_neighbor_embed_note(state, cpl_embed_judge(count, type, op, blocking));
}

bool cpl_pt2pt_allreduce(MPI_Comm comm, const void *send, void *recv, int64_t count,
                         MPI_Datatype type, MPI_Op op, int *result)
{
    struct cpl_comm_state *state = cpl_comm_state_get(comm);
    note_reduction(state, count, type, op, true);
    if (is_idle(state))
        return false;
    struct cpl_pt2pt *p = &state->pt2pt;
    struct cpl_embed_kind *kind = NULL;
    p->reducing = cpl_embed_judge(count, type, op, true);
    if (may_embed(p))
        kind = cpl_embed_takes(state, send, recv, count, type, op, true);
    if (!kind)
        return false;
    p->embed.waiting = true;
    arrive(state);
    p->embed.waiting = false;
    *result = cpl_embed_allreduce(state, kind, send, recv);
    if (p->phase == CPL_PT2PT_MANAGED)
        p->pace.at = PMPI_Wtime();
    go_on(state);
    return true;
}

bool cpl_pt2pt_iallreduce(MPI_Comm comm, const void *send, void *recv, int64_t count,
                          MPI_Datatype type, MPI_Op op, MPI_Request *request, int *result)
{
    struct cpl_comm_state *state = cpl_comm_state_get(comm);
    note_reduction(state, count, type, op, false);
    if (is_idle(state))
        return false;
    struct cpl_pt2pt *p = &state->pt2pt;
    struct cpl_embed_kind *kind = NULL;
    p->batch.reduced = cpl_embed_judge(count, type, op, false);
    if (may_embed(p))
        kind = cpl_embed_takes(state, send, recv, count, type, op, false);
    if (kind)
        *result = cpl_embed_iallreduce(state, kind, send, recv, request);
    return kind;
}

void cpl_pt2pt_before_open(MPI_Comm comm)
{
    int size = 0, inter = 1;
    cpl_pt2pt_before_collective(comm);
    cpl_context.waits_elsewhere = true;
    if (cpl_context.n_managed == 0 || comm == MPI_COMM_NULL ||
        PMPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS || inter ||
        PMPI_Comm_size(comm, &size) != MPI_SUCCESS || size != cpl_context.size)
        return;
    for (struct cpl_comm_state *s = cpl_context.first_managed; s; s = s->pt2pt.next_managed) {
        if (s->pt2pt.phase == CPL_PT2PT_MANAGED)
            cpl_pt2pt_give_up(&s->pt2pt, CPL_LEFT_OPENED);
        s->pt2pt.riders.closed = true;
        cpl_pt2pt_drain(s);
    }
}
