/* Calls that pass without a look. While MPI carries an exchange, most of its calls need no
 * decision, no measurement and no note. Such calls are granted in advance, and a granted call only
 * counts down. Collectives of a communicator are granted in the same way until the next meeting
 * (meeting.h). Where many ranks share a core, the cost of a call is the memory that it looks at: a
 * granted one looks at two cache lines of the communicator's state and one of cpl_context.
 *
 * Granted calls leave most counters as they are; these are brought up to date when the grant ends,
 * and only then looked at. A grant ends before the next call at which all ranks do something
 * together. So each rank grants by itself, and may lose its grant at any time.
 * Thread rule: one thread. */
#ifndef CARPOOL_PASS_H
#define CARPOOL_PASS_H

#include "shim/state/comm_state.h"

/* The state of a communicator when calls on it may pass; else NULL. Local. */
static inline struct cpl_comm_state *cpl_pass_state(MPI_Comm comm)
{
    const struct cpl_recent *recent = cpl_context_recent(comm);
    const struct cpl_context *c = &cpl_context;
    if (c->service.on || /* the helper thread may be in MPI: what passes is not bracketed */
        c->busy.n_managed + c->busy.n_served + c->busy.n_open_batches > 0 || comm != recent->comm)
        return NULL;
    /* one that passes has MPI's form, on all ranks or on none */
    return recent->state && recent->state->meeting.polls ? NULL : recent->state;
}

/* Grants: take ends one and returns how many calls have passed; give grants anew. */
static inline int64_t cpl_pass_take(struct cpl_pass *pass)
{
    int64_t n = pass->granted - pass->remaining;
    pass->granted = pass->remaining = 0;
    return n;
}

static inline void cpl_pass_give(struct cpl_pass *pass, int64_t n)
{
    pass->granted = pass->remaining = n > 0 ? n : 0;
}

#define CPL_PASS_MOST (1 << 20)

/* The grant under which a collective on comm may pass; NULL: it may not. The caller counts it down
 * when the call has come to something. Local. */
static inline struct cpl_pass *cpl_pass_of(MPI_Comm comm)
{
    struct cpl_comm_state *state = cpl_pass_state(comm);
    return state && state->meeting.pass.remaining > 0 ? &state->meeting.pass : NULL;
}

/* Whether a collective on comm passes; counts it. Local. */
static inline bool cpl_pass_collective(MPI_Comm comm)
{
    struct cpl_pass *pass = cpl_pass_of(comm);
    if (pass)
        pass->remaining--;
    return pass;
}

/* The same of one that is a neighborhood collective: there is a topology, in which all ranks have
 * neighbours. Others may skip the call, and it is made elsewhere (state/graph.h). Local. */
static inline bool cpl_pass_neighborhood(MPI_Comm comm)
{
    struct cpl_comm_state *state = cpl_pass_state(comm);
    bool all_come = state && (state->watched || (state->has_topology && state->size == 1));
    if (!all_come || state->meeting.pass.remaining == 0)
        return false;
    state->meeting.pass.remaining--;
    return true;
}

#endif
