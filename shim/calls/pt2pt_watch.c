/* Receives with wildcards while the shim learns (pt2pt_watch.h). */
#include "shim/calls/pt2pt_watch.h"

#include "shim/base/names.h"
#include "shim/state/comm_state.h"

/* A program that has posted so many does it always. */
#define MOST_WATCHED 4096

struct cpl_comm_state *cpl_watch_learning(MPI_Comm comm)
{
    struct cpl_comm_state *state = cpl_context.active ? cpl_comm_state_get(comm) : NULL;
    if (state && cpl_pt2pt_counts(state->pt2pt)) {
        if (cpl_pt2pt_counts_only(state->pt2pt))
            cpl_context_recent(comm)->balance = &state->pt2pt->learned.balance;
        return state;
    }
    if (state && !cpl_context.service.on) {
        cpl_context_recent(comm)->alone = true;
        cpl_context.comms.alone = comm;
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

bool cpl_watch_receive(struct cpl_comm_state *state, int source, int tag, MPI_Request *request)
{
    if (!is_wild(source, tag))
        return false;
    struct cpl_request *made = may_watch(state) ? cpl_request_make(state->comm, true) : NULL;
    if (made) {
        watch(state, made, *request);
        *request = made->handle;
    } else if (!state->pt2pt->blind) {
        state->pt2pt->blind = CPL_LEFT_UNABLE;
    }
    return true;
}

bool cpl_watch_persistent(struct cpl_comm_state *state, int source, int tag,
                          struct cpl_request *request)
{
    if (!is_wild(source, tag))
        return false;
    if (may_watch(state)) {
        cpl_request_activate(request, state->comm, true);
        watch(state, request, request->handle);
    }
    return true;
}
