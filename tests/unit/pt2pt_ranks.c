/* Ranks that learn of their messages (pt2pt_ranks.h). */
#include "pt2pt_ranks.h"

#include "../failing_heap.h"
#include "mock_collectives.h"
#include "mock_mpi.h"
#include "shim/base/log.h"
#include "shim/meet/agree.h"
#include "shim/meet/meeting.h"
#include "shim/plan/plan_root.h"
#include "shim/report/report.h"
#include "shim/state/hooks.h"
#include "shim/state/service.h"
#include "shim/wait/collective.h"
#include "shim/wait/progress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct pt2pt_world pt2pt;

static int64_t n_live; /* blocks of memory before the ranks began */

/* ---- what is not under test ---- */

bool cpl_plan_is_early(MPI_Comm comm, const struct cpl_agree_input *input, double ms_so_far,
                       int64_t n_calls, bool full)
{
    const struct pt2pt_answers *a = &pt2pt.answers;
    struct cpl_plan_turn *turn = input->turn;
    turn->search = a->is_short ? CPL_SEARCH_SHORT : CPL_SEARCH_FULL;
    turn->pause = CPL_NEVER;
    assert_true(input->n_messages >= 0 && ms_so_far >= 0 && n_calls > 0 && !full);
    return !cpl_agree_all(comm, !a->early);
}

MPI_Comm cpl_agree_own(struct cpl_comm_state *state)
{
    if (state->private_comm == MPI_COMM_NULL)
        cpl_agree_split(state->comm, state->rank, &state->private_comm);
    return state->private_comm;
}

bool cpl_plan_agree(MPI_Comm comm, const struct cpl_agree_input *input,
                    struct cpl_agree_output *output)
{
    const struct pt2pt_answers *a = &pt2pt.answers;
    int r = fibers_rank();
    int64_t reduced = input->n_messages > 0 ? (int64_t)input->reduced : CPL_EMBED_ANY_ORDER;
    int64_t n_sent = input->n_messages, least = 0;
    pt2pt.n_planned += r == 0;
    assert_int_equal(input->turn->search, a->is_short ? CPL_SEARCH_SHORT : CPL_SEARCH_FULL);
    if (!cpl_agree_all(comm, input->able && a->no_plan != r))
        return false;
    cpl_collective_Allreduce(&reduced, &least, 1, MPI_INT64_T, MPI_MIN, comm);
    *output = (struct cpl_agree_output){.n = 0};
    output->n = 1;
    struct cpl_plan_summary *s = &output->summary[0];
    s->known = 1;
    cpl_collective_Allreduce(&n_sent, &s->direct.sends_max, 1, MPI_INT64_T, MPI_MAX, comm);
    s->decided = a->gains;
    s->reason = a->gains ? CPL_LEFT_NOT : CPL_LEFT_NO_GAIN;
    s->plan_fingerprint = 1234;
    s->direct.modelled_us = a->direct_us;
    s->planned.modelled_us = a->planned_us;
    s->embedded_us = a->embedded_us;
    s->reduced = (int32_t)least;
    if (!a->gains)
        return true;
    output->words[0] = malloc(sizeof(int32_t));
    output->n_words[0] = 1;
    if (cpl_agree_all(comm, output->words[0]))
        return true;
    cpl_agree_output_free(output);
    return false;
}

bool cpl_plan_carried_promises(const struct cpl_plan_summary *summary)
{
    return summary->planned.modelled_us < summary->direct.modelled_us;
}

bool cpl_plan_embedded_promises(const struct cpl_plan_summary *summary)
{
    return summary->reduced != CPL_EMBED_REFUSED &&
           summary->embedded_us < summary->direct.modelled_us;
}

int cpl_combined_add_plan(struct cpl_combined *combined, int32_t *words, int32_t n_words)
{
    assert_int_equal(n_words, 1);
    free(words);
    return pt2pt.answers.no_rides == fibers_rank() ? CPL_NO_PLAN : combined->n_plans++;
}

struct cpl_combined_counts cpl_combined_counts(const struct cpl_combined *combined, int plan)
{
    assert_in_range(plan, 0, combined->n_plans - 1);
    return (struct cpl_combined_counts){.forwarded = 0};
}

void cpl_combined_open_lanes(struct cpl_combined *combined, MPI_Comm comm, bool able)
{
    (void)combined, (void)comm, (void)able;
    fibers_compare("lanes of combined messages", 0);
}

void cpl_combined_align(struct cpl_combined *combined)
{
    combined->n_aligned++;
}

void cpl_combined_begin(struct cpl_combined *combined, int plan)
{
    (void)combined, (void)plan;
}

void cpl_combined_end(struct cpl_combined *combined, int plan)
{
    (void)combined, (void)plan;
}

void cpl_combined_abandon(struct cpl_combined *combined, int plan)
{
    (void)combined, (void)plan;
}

int cpl_combined_put(struct cpl_combined *combined, int plan, int32_t k,
                     const struct cpl_segment *segment, const unsigned char *payload,
                     const struct cpl_span *span, bool only)
{
    (void)combined, (void)plan, (void)k, (void)segment, (void)payload, (void)span, (void)only;
    return MPI_SUCCESS;
}

void cpl_combined_send(struct cpl_combined *combined, const unsigned char *segments, size_t bytes)
{
    (void)combined, (void)segments, (void)bytes;
}

bool cpl_line_open(struct cpl_comm_state *state)
{
    struct cpl_line *line = state->line;
    line->combined.rank = state->rank;
    if (pt2pt.answers.no_line == fibers_rank() ||
        !cpl_match_init(&line->match, state->size, state->private_comm))
        return false;
    line->next_number = calloc((size_t)state->size, sizeof *line->next_number);
    return line->next_number;
}

void cpl_line_manage(struct cpl_comm_state *state)
{
    assert_false(state->line->managed);
    state->line->managed = true;
    state->line->kept = false;
    state->line->next_managed = cpl_context.comms.first_managed;
    cpl_context.comms.first_managed = state;
    cpl_context.busy.n_managed++;
}

static void unlink_managed(struct cpl_comm_state *state)
{
    if (state->line->managed) {
        cpl_context.busy.n_managed--;
        cpl_context.comms.first_managed = NULL; /* there is one communicator */
    }
    state->line->managed = false;
}

void cpl_line_keep(struct cpl_comm_state *state)
{
    unlink_managed(state);
    state->line->kept = true;
}

void cpl_line_close(struct cpl_comm_state *state)
{
    unlink_managed(state);
    state->line->kept = false;
    state->line->combined.n_plans = 0;
}

void cpl_line_drain(struct cpl_comm_state *state)
{
    fibers_meet(&(struct fibers_call){.name = "drain", .comm = 1}, NULL, NULL);
    pt2pt.n_drained += fibers_rank() == 0;
    assert_int_equal(state->pt2pt->batch.n, 0);
}

bool cpl_embed_init(struct cpl_comm_state *state)
{
    (void)state;
    return true;
}

void cpl_embed_decide(struct cpl_comm_state *state)
{
    (void)state;
    fibers_meet(&(struct fibers_call){.name = "decide about reductions"}, NULL, NULL);
}

void cpl_embed_map(struct cpl_comm_state *state, int n, const struct cpl_pattern_entry *messages)
{
    (void)state, (void)n, (void)messages;
    fibers_meet(&(struct fibers_call){.name = "map"}, NULL, NULL);
}

size_t cpl_embed_take(struct cpl_line *line, const unsigned char *segment)
{
    (void)line, (void)segment;
    return 0;
}

enum cpl_embed_verdict cpl_embed_judge(int64_t count, MPI_Datatype type, MPI_Op op)
{
    (void)count, (void)type, (void)op;
    return CPL_EMBED_ANY_ORDER;
}

struct cpl_embed_kind *cpl_embed_takes(struct cpl_comm_state *state, int64_t count,
                                       MPI_Datatype type, MPI_Op op, bool blocking)
{
    (void)state, (void)count, (void)type, (void)op, (void)blocking;
    return NULL;
}

int cpl_embed_allreduce(struct cpl_comm_state *state, struct cpl_embed_kind *kind, const void *send,
                        void *recv)
{
    (void)state, (void)kind, (void)send, (void)recv;
    return MPI_ERR_INTERN;
}

int cpl_embed_iallreduce(struct cpl_comm_state *state, struct cpl_embed_kind *kind,
                         const void *send, void *recv, MPI_Request *request)
{
    (void)state, (void)kind, (void)send, (void)recv, (void)request;
    return MPI_ERR_INTERN;
}

void cpl_report_add(const struct cpl_record *record)
{
    (void)record;
}

const struct cpl_line cpl_line_blank;

void cpl_comm_state_begin(struct cpl_comm_state *state)
{
    (void)state; /* none is blank */
}

struct cpl_comm_state *cpl_comm_state_find(MPI_Comm comm)
{
    (void)comm;
    return NULL;
}

bool cpl_collective_of_this_world(MPI_Comm comm)
{
    (void)comm;
    return !pt2pt.answers.of_another_world;
}

bool cpl_service_prepare(bool (*serve)(void))
{
    (void)serve;
    return pt2pt.answers.no_service != fibers_rank();
}

void cpl_comm_state_forget_recent(void)
{
}

void cpl_progress_poll(void)
{
}

void cpl_progress_pause(int n)
{
    (void)n;
    fibers_yield();
}

int cpl_progress_wait(MPI_Request *request, MPI_Status *status)
{
    for (int flag = 0;;) {
        int result = PMPI_Test(request, &flag, status);
        if (flag || result != MPI_SUCCESS)
            return result;
        fibers_yield();
    }
}

int cpl_progress_wait_each(int n, MPI_Request *requests, MPI_Status *statuses)
{
    int result = MPI_SUCCESS;
    assert_true(statuses == MPI_STATUSES_IGNORE);
    for (int k = 0; k < n; k++)
        if (cpl_progress_wait(&requests[k], MPI_STATUS_IGNORE) != MPI_SUCCESS)
            result = MPI_ERR_IN_STATUS;
    return result;
}

bool cpl_buffered_any(MPI_Comm comm)
{
    (void)comm;
    return false;
}

bool cpl_parts_are_served(const struct cpl_comm_state *state)
{
    (void)state;
    return !pt2pt.answers.unserved;
}

enum cpl_part_need cpl_pt2pt_part_need(const struct cpl_comm_state *state)
{
    (void)state;
    return CPL_PART_NOTHING;
}

void cpl_pt2pt_part_hasten(struct cpl_comm_state *state)
{
    (void)state;
}

void cpl_assembly_gather(MPI_Comm comm)
{
    (void)comm;
}

bool cpl_progress_serve(void)
{
    return false;
}

void cpl_progress_send_batches(void)
{
    cpl_pt2pt_hooks.leave();
}

/* ---- ranks ---- */

static const struct cpl_hooks *const hooks[] = {&cpl_pt2pt_hooks, NULL};

static void turn(int rank)
{
    heap.counts = rank >= 0 && rank == pt2pt.victim;
    if (rank >= 0)
        mock_set_time(pt2pt.rank[rank].time);
}

/* The network's memory is nobody's. */
static void spare_network(bool takes)
{
    heap.counts = !takes && fibers_rank() == pt2pt.victim;
}

struct cpl_pt2pt *pt2pt_of(int rank)
{
    return pt2pt.rank[rank].state.pt2pt;
}

static void begin_rank(int r)
{
    struct pt2pt_rank *me = &pt2pt.rank[r];
    me->time = me->pace = 1;
    me->state = (struct cpl_comm_state){.comm = collectives_comm(0, r),
                                        .private_comm = MPI_COMM_NULL,
                                        .rank = r,
                                        .size = cpl_context.size};
    me->state.line = calloc(1, sizeof *me->state.line);
    assert_non_null(me->state.line);
    cpl_context.hooks = hooks;
    cpl_context.settings.mode = CPL_MODE_AUTO;
    cpl_context.settings.cost = 100;
    cpl_context.settings.embed = CPL_EMBED_EXACT;
    cpl_context.comms.first = &me->state;
    cpl_context.comms.away = MPI_COMM_NULL;
    cpl_pt2pt_hooks.begin(&me->state);
    assert_true(cpl_meeting_start());
}

void pt2pt_ranks_begin(int n, uint64_t seed)
{
    heap = (struct failing_heap){.n_live = heap.n_live};
    n_live = heap.n_live;
    memset(&pt2pt, 0, sizeof pt2pt);
    pt2pt.victim = -1;
    pt2pt.answers = (struct pt2pt_answers){.direct_us = 20,
                                           .planned_us = 10,
                                           .embedded_us = 30,
                                           .gains = true,
                                           .no_service = -1,
                                           .no_rides = -1,
                                           .no_line = -1,
                                           .no_plan = -1};
    collectives_begin();
    mock_begin(n, seed);
    fibers_turn = turn;
    mock_takes_memory = spare_network;
    fibers_begin(n, seed);
    fibers_run(begin_rank);
}

static void end_rank(int r)
{
    struct pt2pt_rank *me = &pt2pt.rank[r];
    cpl_pt2pt_hooks.end(&me->state);
    cpl_meeting_stop();
    assert_int_equal(cpl_context.busy.n_managed, 0);
    assert_int_equal(cpl_context.busy.n_open_batches, 0);
    if (me->state.private_comm != MPI_COMM_NULL)
        PMPI_Comm_free(&me->state.private_comm);
    if (cpl_context.comms.away != MPI_COMM_NULL)
        PMPI_Comm_free(&cpl_context.comms.away);
    if (me->state.line->match.sources)
        cpl_match_free(&me->state.line->match);
    free(me->state.pt2pt);
    free(me->state.line);
}

void pt2pt_ranks_end(void)
{
    pt2pt.victim = -1;
    fibers_run(end_rank);
    fibers_turn = NULL;
    mock_takes_memory = NULL;
    collectives_end();
    mock_end();
    assert_int_equal(heap.n_live, n_live);
}

void pt2pt_send(int to, int tag)
{
    struct cpl_comm_state *state = &pt2pt.rank[fibers_rank()].state;
    if (cpl_pt2pt_counts(state->pt2pt))
        cpl_pt2pt_learn_send(state, to, tag, 8);
}

void pt2pt_receive(int from, int tag)
{
    struct cpl_comm_state *state = &pt2pt.rank[fibers_rank()].state;
    if (cpl_pt2pt_counts(state->pt2pt))
        cpl_pt2pt_learn_receive(state, from, tag, false);
}

void pt2pt_exchange(void)
{
    int r = fibers_rank(), n = fibers_n();
    for (int k = 1; k <= 2; k++)
        pt2pt_receive((r + n - k) % n, 5);
    for (int k = 1; k <= 2; k++)
        pt2pt_send((r + k) % n, 5);
}

/* The ranks meet at blocking collectives only. */
bool cpl_appointment_are_possible(const struct cpl_comm_state *state)
{
    (void)state;
    return false;
}

void pt2pt_collective(void)
{
    struct pt2pt_rank *me = &pt2pt.rank[fibers_rank()];
    struct cpl_alike alike = {CPL_HASH_START};
    me->time += me->pace;
    mock_set_time(me->time);
    cpl_progress_leave();
    cpl_pt2pt_note_collective(&me->state);
    cpl_meeting_count(&me->state, 1);
    cpl_pt2pt_hooks.alike(&me->state, &alike);
    const struct cpl_pt2pt *p = me->state.pt2pt;
    fibers_compare("what is alike", (int64_t)alike.hash);
    fibers_compare("the number of meetings", me->state.meeting.n);
    fibers_compare("the next meeting", p->date.next);
    fibers_compare("the reason", p->reason);
    fibers_compare("the retries", p->date.n_retries);
    fibers_compare("managed communicators", cpl_context.busy.n_managed);
    fibers_compare("private communicators", (me->state.private_comm != MPI_COMM_NULL) +
                                                2 * (cpl_context.comms.away != MPI_COMM_NULL));
    assert_int_equal(me->state.line->managed, p->phase == CPL_PT2PT_MANAGED);
}

bool pt2pt_all_are(enum cpl_pt2pt_phase phase)
{
    for (int r = 0; r < fibers_n(); r++)
        if (pt2pt_of(r)->phase != phase)
            return false;
    return true;
}
