/* Communicators on which the shim's messages travel (line.h). */
#include "shim/carry/line.h"

#include "shim/carry/requests.h"
#include "shim/state/comm_state.h"
#include "shim/state/hooks.h"
#include "shim/state/memory.h"
#include "shim/wait/progress.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#define TAKEN_TAG 2002 /* of the messages that are handles */

const struct cpl_line cpl_line_blank;

static void meet(struct cpl_comm_state *state)
{
    state->line = (struct cpl_line *)&cpl_line_blank;
}

static void begin(struct cpl_comm_state *state)
{
    state->line = cpl_memory_need(sizeof *state->line, "a communicator");
}

static void deliver(void *context, const struct cpl_segment *segment, const unsigned char *payload)
{
    cpl_match_deliver(&((struct cpl_comm_state *)context)->line->match, segment, payload);
}

bool cpl_line_open(struct cpl_comm_state *state)
{
    struct cpl_line *line = state->line;
    if (state->private_comm == MPI_COMM_NULL)
        return false;
    line->combined.deliver = deliver;
    line->combined.reduction = cpl_embed_arrived;
    line->combined.context = state;
    if (!cpl_combined_init(&line->combined, state->private_comm,
                           (double)cpl_context.settings.hold * 1e-6) ||
        !cpl_match_init(&line->match, state->size, state->private_comm))
        return false;
    line->match.drop = cpl_request_drop;
    line->next_number = calloc((size_t)state->size, sizeof *line->next_number);
    return line->next_number;
}

/* Of others only their own ranks know that they are managed. */
static bool is_of_all_ranks(const struct cpl_comm_state *state)
{
    return state->size == cpl_context.size;
}

void cpl_line_manage(struct cpl_comm_state *state)
{
    struct cpl_line *line = state->line;
    line->managed = true;
    line->kept = false;
    line->next_managed = cpl_context.comms.first_managed;
    cpl_context.comms.first_managed = state;
    cpl_context.busy.n_managed += is_of_all_ranks(state);
    cpl_comm_state_forget_recent();
    cpl_progress_update();
}

static void unlink_managed(struct cpl_comm_state *state)
{
    if (!state->line->managed)
        return;
    LL_DELETE2(cpl_context.comms.first_managed, state, line->next_managed);
    state->line->managed = false;
    cpl_context.busy.n_managed -= is_of_all_ranks(state);
    cpl_progress_update();
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
    cpl_combined_free(&state->line->combined);
    cpl_embed_free(&state->line->embed);
}

/* Waits until no combined message is under way any more: two counts in a row over all ranks have
 * found as many received as sent, and nothing new ([Mattern]; in a single count a combined message
 * that one rank has sent on could balance one that another has not received). Collective. */
void cpl_line_drain(struct cpl_comm_state *state)
{
    struct cpl_line *line = state->line;
    int64_t before[2] = {-1, -1}, all[2] = {0, 0};
    bool quiet = false;
    cpl_embed_finish(state);
    CPL_CALL_HOOKS(flush, (state));
    while (!quiet) {
        MPI_Request request;
        do {
            cpl_combined_release(&line->combined, true);
            cpl_embed_release(state, true);
        } while (cpl_combined_poll(&line->combined));
        int64_t mine[2] = {line->combined.sent, line->combined.received};
        if (PMPI_Iallreduce(mine, all, 2, MPI_INT64_T, MPI_SUM, state->private_comm, &request) !=
            MPI_SUCCESS)
            return;
        cpl_progress_wait(&request, MPI_STATUS_IGNORE);
        quiet = all[0] == all[1] && all[0] == before[0] && all[1] == before[1];
        memcpy(before, all, sizeof before);
    }
    while (cpl_match_has_straight(&line->match)) /* nobody polls for them afterwards */
        cpl_progress_poll();
}

static bool poll(void)
{
    bool any = false;
    for (struct cpl_comm_state *s = cpl_context.comms.first_managed; s; s = s->line->next_managed) {
        struct cpl_line *line = s->line;
        any |= cpl_combined_poll(&line->combined);
        if (line->embed.pending)
            any |= cpl_embed_progress(s);
        if (line->embed.piggyback.used > 0)
            cpl_embed_release(s, false);
        if (cpl_match_has_straight(&line->match)) {
            cpl_progress_looked();
            any |= cpl_match_poll(&line->match) > 0;
        }
    }
    return any;
}

/* ---- matched probes */

/* Makes a handle by an empty message, which MPI frees when it is received. */
static int make_handle(const struct cpl_comm_state *state, MPI_Message *handle)
{
    MPI_Request request;
    int flag = 0, result = PMPI_Isend(NULL, 0, MPI_BYTE, state->rank, TAKEN_TAG,
                                      state->private_comm, &request);
    if (result == MPI_SUCCESS)
        result = PMPI_Request_free(&request);
    while (result == MPI_SUCCESS && !flag) {
        result = PMPI_Improbe(state->rank, TAKEN_TAG, state->private_comm, &flag, handle,
                              MPI_STATUS_IGNORE);
        if (!flag)
            cpl_progress_poll();
    }
    return result;
}

int cpl_line_take_message(struct cpl_comm_state *state, struct cpl_arrival *arrival,
                          MPI_Message *message)
{
    int result = MPI_SUCCESS;
    cpl_match_take(&state->line->match, arrival);
    while (arrival->awaited)
        cpl_progress_poll();
    if (!(arrival->segment.flags & CPL_SEGMENT_STRAIGHT))
        result = make_handle(state, &arrival->message);
    *message = arrival->message;
    return result;
}

static struct cpl_arrival *find(MPI_Message handle, struct cpl_comm_state **of)
{
    for (struct cpl_comm_state *s = cpl_context.comms.first_managed; s; s = s->line->next_managed)
        for (struct cpl_arrival *taken = s->line->match.taken; taken; taken = taken->next_of)
            if (taken->message == handle) {
                *of = s;
                return taken;
            }
    return NULL;
}

bool cpl_line_has_message(MPI_Message message)
{
    struct cpl_comm_state *state;
    return find(message, &state);
}

MPI_Comm cpl_line_receive_message(MPI_Message *message, struct cpl_receive *receive)
{
    struct cpl_comm_state *state;
    struct cpl_arrival *arrival = find(*message, &state);
    if (!(arrival->segment.flags & CPL_SEGMENT_STRAIGHT))
        PMPI_Mrecv(NULL, 0, MPI_BYTE, message, MPI_STATUS_IGNORE);
    *message = MPI_MESSAGE_NULL;
    cpl_match_receive_taken(&state->line->match, receive, arrival);
    return state->comm;
}

const struct cpl_hooks cpl_line_hooks = {.meet = meet, .begin = begin, .poll = poll};
