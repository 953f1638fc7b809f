/* MPI_Alltoallv and MPI_Alltoallw (neighbor.h).
 *
 * Both ends of a message know of it by their arguments: the sender's count and the receiver's are
 * zero together. So a plan made for the messages of one call serves all: a planned message that has
 * become empty combined messages as zero bytes, and one that is not in the plan goes straight,
 * expected by its receiver. No rank ever has to tell another that its pattern has changed; whether
 * the plan still fits is only a matter of speed, and is looked at when the calls are twice as many
 * as the last time.
 *
 * At the 4th, 8th, 16th, ... call the ranks add up how many messages there are and how many go
 * where none went the call before. When most go where one went, the exchange is planned. Dense
 * patterns, in which more than half of all pairs of ranks have messages, are planned when most
 * messages are small enough to travel with others, and there are at most MOST_DENSE of them. */
#include "shim/exchange/neighbor_internal.h"
#include "shim/meet/agree.h"
#include "shim/meet/meeting.h"
#include "shim/state/context.h"
#include "shim/wait/collective.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_AGREEMENT 4
#define MOST_DENSE      (1 << 17) /* messages of a dense pattern that are planned */
#define MOST_VAIN       6 /* agreements or plans that came to nothing: then MPI has it for good */

/* What is added up over the ranks before they plan. */
enum { MESSAGES, SMALL, NEW, UNABLE, N_WORDS };

/* Why messages are not planned. Collective; alike on all ranks. */
static enum cpl_left_alone why_not(MPI_Comm comm, int size, const int64_t *mine)
{
    int64_t all[N_WORDS], pairs = (int64_t)size * (size - 1);
    if (cpl_collective_Allreduce(mine, all, N_WORDS, MPI_INT64_T, MPI_SUM, comm) != MPI_SUCCESS ||
        all[UNABLE] > 0)
        return CPL_LEFT_NO_PLAN;
    if (all[MESSAGES] == 0)
        return CPL_LEFT_EMPTY;
    if (8 * all[NEW] > all[MESSAGES])
        return CPL_LEFT_ELSEWHERE;
    if (2 * all[MESSAGES] <= pairs)
        return CPL_LEFT_NOT;
    if (all[MESSAGES] > MOST_DENSE || 2 * all[SMALL] < all[MESSAGES])
        return CPL_LEFT_DENSE;
    return CPL_LEFT_NOT;
}

bool cpl_alltoall_plan_noted(const struct cpl_comm_state *state, struct cpl_exchange *x,
                             struct cpl_neighbor_notes *notes)
{
    const int64_t words[N_WORDS] = {[MESSAGES] = notes->n + notes->n_straight, [SMALL] = notes->n};
    x->learned.left = why_not(state->private_comm, state->size, words);
    return x->learned.left == CPL_LEFT_NOT && cpl_neighbor_plan_noted(state, x, notes);
}

/* Notes where this call sends to. */
static void note_pattern(const struct cpl_neighbor_call *call, const struct cpl_comm_state *state,
                         struct cpl_learned *learned)
{
    if (!learned->sent)
        learned->sent = calloc((size_t)state->size, 1);
    for (int r = 0; learned->sent && r < state->size; r++)
        learned->sent[r] = cpl_neighbor_rank_bytes(&call->send, r) > 0;
}

/* Counts the messages of this call, those as new that go where none went before; sent: NULL, all
 * went there. */
static void count_messages(const struct cpl_neighbor_call *call, const struct cpl_comm_state *state,
                           const unsigned char *sent, int64_t *words)
{
    words[UNABLE] += cpl_neighbor_is_far(call);
    for (int r = 0; r < state->size; r++) {
        int64_t bytes = cpl_neighbor_rank_bytes(&call->send, r);
        bool counts = bytes > 0 && r != state->rank;
        words[MESSAGES] += counts;
        words[SMALL] += counts && bytes <= cpl_context.settings.size_limit;
        words[NEW] += counts && sent && !sent[r];
        words[UNABLE] += bytes < 0;
    }
}

void cpl_alltoall_plan(const struct cpl_neighbor_call *call, const struct cpl_comm_state *state,
                       struct cpl_exchange *x)
{
    int64_t words[N_WORDS] = {0};
    count_messages(call, state, NULL, words);
    x->learned.left = why_not(state->private_comm, state->size, words);
    if (x->learned.left == CPL_LEFT_EMPTY) /* it is carried all the same */
        x->learned.left = CPL_LEFT_NOT;
    x->phase = CPL_PHASE_DIRECT;
    if (x->learned.left == CPL_LEFT_NOT)
        cpl_neighbor_plan(call, state, x);
}

/* The ranks agree once more, or not any more. */
static void go_on_learning(struct cpl_exchange *x)
{
    x->phase = ++x->learned.n_vain < MOST_VAIN ? CPL_PHASE_LEARNING : CPL_PHASE_DIRECT;
}

/* The date of an agreement has come. */
static void agree(const struct cpl_neighbor_call *call, struct cpl_comm_state *state,
                  struct cpl_exchange *x)
{
    struct cpl_learned *learned = &x->learned;
    int64_t words[N_WORDS] = {[UNABLE] = !learned->sent};
    count_messages(call, state, learned->sent, words);
    learned->left = why_not(state->private_comm, state->size, words);
    if (learned->left == CPL_LEFT_EMPTY) /* says nothing of later calls */
        return;
    if (learned->left != CPL_LEFT_NOT) {
        go_on_learning(x);
        return;
    }
    if (cpl_neighbor_is_early(call, state, x, (int)words[MESSAGES]))
        learned->left = CPL_LEFT_SHORT;
    else
        cpl_neighbor_plan(call, state, x);
}

static void learn(const struct cpl_neighbor_call *call, struct cpl_comm_state *state,
                  struct cpl_exchange *x)
{
    struct cpl_learned *learned = &x->learned;
    if (x->calls == learned->date.next - 1)
        note_pattern(call, state, learned);
    if (!cpl_date_has_come(&learned->date, cpl_meeting_first(state, FIRST_AGREEMENT), x->calls))
        return;
    cpl_date_keep(&learned->date, x->calls, CPL_NEVER);
    cpl_neighbor_settle(call, state, x, agree);
}

/* Plans again, by a full search, if that pays by now. Collective. */
static void plan_again(const struct cpl_neighbor_call *call, struct cpl_comm_state *state,
                       struct cpl_exchange *x)
{
    int64_t words[N_WORDS] = {0};
    count_messages(call, state, NULL, words);
    if (!cpl_neighbor_is_early(call, state, x, (int)words[MESSAGES]))
        cpl_neighbor_plan(call, state, x);
}

/* Whether the plan still fits; when more than a quarter of the messages are not in it, the exchange
 * is learned anew. Collective. */
static void review(const struct cpl_neighbor_call *call, struct cpl_comm_state *state,
                   struct cpl_exchange *x)
{
    struct cpl_learned *learned = &x->learned;
    int64_t mine[2] = {learned->n_extra, learned->n_messages}, all[2] = {0, 0};
    if (!cpl_date_has_come(&learned->date, FIRST_AGREEMENT, x->calls) || cpl_exchange_is_served(x))
        return;
    cpl_date_keep(&learned->date, x->calls, CPL_NEVER);
    cpl_collective_Allreduce(mine, all, 2, MPI_INT64_T, MPI_SUM, state->private_comm);
    learned->n_extra = learned->n_messages = 0;
    if (4 * all[0] <= all[1]) {
        if (cpl_neighbor_plans_again(x) && !x->plans.trial.running)
            cpl_neighbor_settle(call, state, x, plan_again);
        return;
    }
    cpl_exchange_release(x);
    x->plans.search.again = false; /* other messages are another search */
    learned->left = CPL_LEFT_ELSEWHERE;
    go_on_learning(x);
    cpl_date_hasten(&learned->date, x->calls, 2);
}

struct cpl_comm_state *cpl_alltoall_describe(struct cpl_neighbor_call *call)
{
    struct cpl_comm_state *state = cpl_comm_state_get(call->comm);
    if (!state || state->inter || state->size < 2)
        return NULL;
    call->in_place = call->send.buffer == MPI_IN_PLACE;
    if (call->in_place)
        call->send = call->recv;
    return state;
}

void cpl_alltoall_look(const struct cpl_neighbor_call *call, struct cpl_comm_state *state,
                       struct cpl_exchange *x)
{
    if (x->phase == CPL_PHASE_PLANNED)
        review(call, state, x);
    if (x->phase == CPL_PHASE_LEARNING)
        learn(call, state, x);
}
