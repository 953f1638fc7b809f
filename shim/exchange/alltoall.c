/* MPI_Alltoallv and MPI_Alltoallw (neighbor.h).
 *
 * Both ends of a message know of it by their arguments: the sender's count and the receiver's are
 * zero together. So a plan made for the messages of one call serves all: a planned message that has
 * become empty rides as zero bytes, and one that is not in the plan goes straight, expected by its
 * receiver. No rank ever has to tell another that its pattern has changed; whether the plan still
 * fits is only a matter of speed, and is looked at when the calls are twice as many as the last
 * time.
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

/* Bytes for or from a rank; -1: MPI would refuse an argument. */
static int64_t bytes_of(const struct cpl_neighbor_side *side, int rank)
{
    struct cpl_span span;
    return cpl_neighbor_resolve_rank(side, rank, &span) ? cpl_span_bytes(&span) : -1;
}

/* Lists the other ranks that there is data for or from. Returns their number, or -1. */
static int list_peers(const struct cpl_neighbor_side *side, const struct cpl_comm_state *state,
                      int *peers)
{
    int n = 0;
    for (int r = 0; r < state->size; r++) {
        int64_t bytes = bytes_of(side, r);
        if (bytes < 0)
            return -1;
        if (bytes > 0 && r != state->rank)
            peers[n++] = r;
    }
    return n;
}

bool cpl_alltoall_note(const struct cpl_neighbor_call *call, const struct cpl_comm_state *state,
                       struct cpl_neighbor_notes *notes)
{
    int *out = calloc((size_t)state->size, sizeof *out);
    int *in = calloc((size_t)state->size, sizeof *in);
    bool done = false;
    cpl_adjacency_free(&notes->own);
    if (out && in) {
        int n_out = list_peers(&call->send, state, out), n_in = list_peers(&call->recv, state, in);
        done = n_out >= 0 && n_in >= 0 &&
               cpl_adjacency_make(state->rank, n_in, in, n_out, out, &notes->own);
    }
    free(out);
    free(in);
    notes->list.n = 0;
    notes->list.n_straight = notes->list.straight_bytes = 0;
    for (int m = 0; done && m < notes->own.out.n_messages; m++)
        cpl_neighbor_list_add(&notes->list, m, notes->own.out.rank[m],
                              bytes_of(&call->send, notes->own.out.rank[m]));
    return done;
}

enum { TELLS_NONE, TELLS_RIDES, TELLS_STRAIGHT };

/* Takes over what the senders say of their messages. Returns false when they have others than this
 * rank expects: the program's counts do not fit. */
static bool read_told(struct cpl_exchange *x, int size, const int *token)
{
    const struct cpl_neighbors *in = &x->learned.own.in;
    int n_sent = 0;
    for (int r = 0; r < size; r++)
        n_sent += token[r] != TELLS_NONE;
    for (int m = 0; m < in->n_messages; m++) {
        if (token[in->rank[m]] == TELLS_NONE)
            return false;
        x->ends.in_straight[m] = token[in->rank[m]] == TELLS_STRAIGHT;
        x->ends.in_part[m] = in->part[m];
    }
    return n_sent == in->n_messages;
}

bool cpl_alltoall_tell(const struct cpl_comm_state *state, struct cpl_exchange *x, int *token_out,
                       int *token_in)
{
    const struct cpl_neighbors *out = &x->learned.own.out;
    for (int m = 0; m < out->n_messages; m++)
        token_out[out->rank[m]] = x->ends.out_straight[m] ? TELLS_STRAIGHT : TELLS_RIDES;
    return cpl_collective_Alltoall(token_out, 1, MPI_INT, token_in, 1, MPI_INT,
                                   state->private_comm) == MPI_SUCCESS &&
           read_told(x, state->size, token_in);
}

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
    const int64_t words[N_WORDS] = {
        [MESSAGES] = notes->list.n + notes->list.n_straight, [SMALL] = notes->list.n};
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
        learned->sent[r] = bytes_of(&call->send, r) > 0;
}

/* Counts the messages of this call, those as new that go where none went before; sent: NULL, all
 * went there. */
static void count_messages(const struct cpl_neighbor_call *call, const struct cpl_comm_state *state,
                           const unsigned char *sent, int64_t *words)
{
    words[UNABLE] += cpl_neighbor_is_far(call);
    for (int r = 0; r < state->size; r++) {
        int64_t bytes = bytes_of(&call->send, r);
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
