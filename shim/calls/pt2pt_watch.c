/* Messages of MPI while the shim learns (pt2pt_calls.h). */
#include "shim/calls/pt2pt_calls.h"

#include "shim/base/names.h"
#include "shim/state/comm_state.h"

/* A program that has posted so many does it always. */
#define MOST_WATCHED 4096

/* The state of a communicator whose messages are noted or counted; NULL: there is nothing to do. */
static struct cpl_comm_state *learning(MPI_Comm comm)
{
    struct cpl_comm_state *state = cpl_context.active ? cpl_comm_state_get(comm) : NULL;
    const struct cpl_service *s = &cpl_context.service;
    if (state && cpl_pt2pt_counts(state->pt2pt)) {
        if (!s->on && !s->shared && cpl_pt2pt_counts_only(state->pt2pt))
            *cpl_context_recent(comm) = (struct cpl_recent){.comm = comm,
                                                            .rank = state->rank,
                                                            .size = state->size,
                                                            .state = state,
                                                            .balance = &state->balance};
        return state;
    }
    if (state && !s->on) {
        cpl_context_recent(comm)->alone = !s->shared;
        cpl_context.busy.alone = comm;
    }
    return NULL;
}

static bool is_wild(int source, int tag)
{
    return source == MPI_ANY_SOURCE || (source != MPI_PROC_NULL && tag == MPI_ANY_TAG);
}

/* Whether one more receive is watched; else nothing more is learned. */
static bool may_watch(struct cpl_comm_state *state)
{
    if (!cpl_pt2pt_start(state))
        return false;
    struct cpl_pt2pt *p = state->pt2pt;
    if (p->learned.n_watched++ < MOST_WATCHED)
        return true;
    p->blind = CPL_LEFT_WILDCARD;
    return false;
}

static void came(struct cpl_request *request)
{
    const struct cpl_receive *receive = &request->receive;
    struct cpl_comm_state *state = cpl_comm_state_get(request->comm);
    if (!state)
        return;
    struct cpl_pt2pt *p = state->pt2pt;
    p->learned.n_wild--;
    if (receive->abandoned)
        p->blind = CPL_LEFT_WILDCARD; /* nobody will know whose message it takes */
    else if (!receive->cancelled && cpl_pt2pt_counts(p))
        cpl_pt2pt_learn_receive(state, receive->from, receive->from_tag, true);
}

static void watch(struct cpl_comm_state *state, struct cpl_request *request, MPI_Request inner)
{
    state->pt2pt->learned.n_wild++;
    cpl_request_watch(request, inner, came);
}

void cpl_watch_send(MPI_Comm comm, MPI_Count count, MPI_Datatype type, int dest, int tag)
{
    struct cpl_comm_state *state = learning(comm);
    if (state)
        cpl_pt2pt_learn_send(state, dest, tag, cpl_type_size(type) * (int64_t)count);
}

int cpl_watch_posted(MPI_Comm comm, int source, int tag, int result, MPI_Request *request)
{
    struct cpl_comm_state *state = result == MPI_SUCCESS ? learning(comm) : NULL;
    if (!state)
        return result;
    if (!is_wild(source, tag)) {
        cpl_pt2pt_learn_receive(state, source, tag, false);
        return result;
    }
    struct cpl_request *made = may_watch(state) ? cpl_request_try(state->comm, true) : NULL;
    if (made) {
        watch(state, made, *request);
        *request = made->handle;
    } else if (!state->pt2pt->blind) {
        state->pt2pt->blind = CPL_LEFT_UNABLE;
    }
    return result;
}

void cpl_watch_starting(MPI_Comm comm, int source, int tag, struct cpl_request *request)
{
    struct cpl_comm_state *state = learning(comm);
    if (state && !is_wild(source, tag)) {
        cpl_pt2pt_learn_receive(state, source, tag, false);
    } else if (state && may_watch(state)) {
        cpl_request_activate(request, state->comm, true);
        watch(state, request, request->handle);
    }
}

void cpl_watch_received(MPI_Comm comm, int source, int tag, int result, const MPI_Status *status)
{
    struct cpl_comm_state *state = learning(comm);
    bool known = result == MPI_SUCCESS && source != MPI_PROC_NULL;
    if (state)
        cpl_pt2pt_learn_receive(state, known ? status->MPI_SOURCE : source,
                                known ? status->MPI_TAG : tag, true);
}
