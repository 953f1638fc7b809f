/* Allgathers that are nonblocking or persistent (allgather.h): operations of an exchange of their
 * kind (neighbor_pending.c), each carried by a gathering of its own (gathering.h). They are not
 * tried: the model says which way carries them. Nonblocking ones are planned when nonblocking
 * neighborhood collectives are (neighbor_serve.c); which of them are carried follows from their
 * bytes, so all ranks know it alike. */
#include "shim/exchange/allgather.h"
#include "shim/exchange/neighbor_internal.h"
#include "shim/state/context.h"
#include "shim/state/memory.h"

#include <stdlib.h>

struct gathering {
    struct cpl_gathering g; /* span, at, room: allocated */
    struct cpl_span own, *span;
};

static void forget(struct cpl_carrying *c)
{
    struct gathering *made = c->made;
    cpl_type_release(&made->own.type);
    if (made->span)
        cpl_type_release(&made->span[0].type);
    free(made->span);
    free(made->g.at);
    free(made->g.room);
    free(made);
}

static void start(struct cpl_carrying *c)
{
    cpl_gathering_begin(&((struct gathering *)c->made)->g);
}

static bool progress(struct cpl_carrying *c)
{
    struct gathering *made = c->made;
    if (!cpl_gathering_progress(&made->g))
        return false;
    c->result = made->g.result;
    return true;
}

#define WAY(NAME, text)                                                                            \
    [CPL_ALLGATHER_##                                                                              \
        NAME] = {.name = #text, .start = start, .progress = progress, .forget = forget},
static const struct cpl_way ways[] = {CPL_ALLGATHER_WAYS(WAY)};
#undef WAY

/* The types of all ranks' data are one, of which the first span has the duplicate. */
static bool keep_types(struct gathering *made, int n)
{
    if (!cpl_type_keep(&made->own.type) || !cpl_type_keep(&made->span[0].type))
        return false;
    for (int r = 1; r < n; r++)
        made->span[r].type.handle = made->span[0].type.handle;
    return true;
}

/* Finds the data, and makes room for all of it where the way needs any: the others wait for it. */
static bool fill(struct gathering *made, const struct cpl_allgather_call *call,
                 const struct cpl_comm_state *state, int64_t bytes)
{
    struct cpl_gathering *g = &made->g;
    bool in_place = call->send.buffer == MPI_IN_PLACE;
    made->own.type.handle = MPI_BYTE;
    if (!cpl_allgather_resolve(call, state, made->span, &made->own) ||
        !keep_types(made, state->size))
        return false;
    g->span = made->span;
    g->own = in_place ? NULL : &made->own;
    if (!cpl_allgather_is_in_place(g->way))
        g->room = cpl_memory_need((size_t)bytes + 1, "an allgather");
    return true;
}

/* What describes the call: a neighborhood collective's has the same members. */
static struct cpl_allgather_call call_of(const struct cpl_neighbor_call *call)
{
    return (struct cpl_allgather_call){.kind = call->kind == CPL_UNTRIED_ALLGATHER ? CPL_ALLGATHER
                                                                                   : CPL_ALLGATHERV,
                                       .comm = call->comm,
                                       .send = call->send,
                                       .recv = call->recv};
}

struct cpl_neighbor_call cpl_allgather_persistent(const struct cpl_allgather_call *call)
{
    return (struct cpl_neighbor_call){.kind = call->kind == CPL_ALLGATHER ? CPL_UNTRIED_ALLGATHER
                                                                          : CPL_UNTRIED_ALLGATHERV,
                                      .comm = call->comm,
                                      .send = call->send,
                                      .recv = call->recv};
}

struct cpl_comm_state *cpl_allgather_describe(const struct cpl_neighbor_call *call)
{
    struct cpl_comm_state *state = cpl_comm_state_get(call->comm);
    bool off = cpl_context.settings.allgather == CPL_ALLGATHER_CHOICE_OFF;
    return state && !state->inter && state->size > 1 && !off ? state : NULL;
}

/* Makes an operation, not started; NULL: no memory or, with *refused set, MPI refuses the call. */
static struct cpl_neighbor_op *make(const struct cpl_allgather_call *call,
                                    struct cpl_comm_state *state, struct cpl_exchange *x,
                                    enum cpl_allgather_way way, bool *refused)
{
    struct cpl_neighbor_op *op = calloc(1, sizeof *op);
    struct gathering *made = calloc(1, sizeof *made);
    int64_t bytes = cpl_allgather_bytes(call, state->size);
    int32_t class_ = cpl_allgather_class_of(bytes > 0 ? bytes : 0);
    *refused = false;
    if (!op || !made) {
        free(op);
        free(made);
        return NULL;
    }
    op->carrying = (struct cpl_carrying){
        .state = state, .x = x, .way = &ways[way], .made = made, .data = &op->data};
    made->span = calloc((size_t)state->size, sizeof *made->span);
    made->g.at = calloc((size_t)state->size + 1, sizeof *made->g.at);
    made->g.tag = cpl_neighbor_straight_tag(x);
    cpl_gathering_place(state, way, class_, &made->g);
    if (made->span && made->g.at) {
        *refused = bytes < 0 || !fill(made, call, state, bytes);
        if (!*refused)
            return op;
    }
    cpl_neighbor_op_free(op);
    return NULL;
}

/* The report says by which way calls are carried. */
static void note_way(struct cpl_exchange *x, enum cpl_allgather_way way)
{
    x->plans.n_candidates = 1;
    x->plans.candidate[0] =
        (struct cpl_candidate){.way = &ways[way], .name = cpl_allgather_name(way)};
}

struct cpl_neighbor_op *cpl_gathering_make(const struct cpl_neighbor_call *call,
                                           struct cpl_comm_state *state, struct cpl_exchange *x)
{
    struct cpl_allgather_call own = call_of(call);
    bool refused;
    return make(&own, state, x,
                cpl_allgather_way_persistent(state, cpl_allgather_bytes(&own, state->size)),
                &refused);
}

void cpl_gathering_plan(const struct cpl_neighbor_call *call, struct cpl_comm_state *state,
                        struct cpl_exchange *x)
{
    struct cpl_allgather_call own = call_of(call);
    x->learned.left = cpl_allgather_plan_untried(state);
    x->phase = CPL_PHASE_DIRECT;
    enum cpl_allgather_way way =
        cpl_allgather_way_persistent(state, cpl_allgather_bytes(&own, state->size));
    if (x->learned.left == CPL_LEFT_NO_GAIN && cpl_context.settings.mode != CPL_MODE_PROFILE &&
        way < CPL_N_ALLGATHER_WAYS)
        x->learned.left = CPL_LEFT_NOT;
    if (x->learned.left != CPL_LEFT_NOT)
        return;
    if (way == CPL_N_ALLGATHER_WAYS) {
        x->learned.left = CPL_LEFT_NO_GAIN;
        return;
    }
    note_way(x, way);
    cpl_trial_begin(&x->plans.trial, 2, 0);
    x->phase = CPL_PHASE_PLANNED;
}

bool cpl_allgather_start(const struct cpl_allgather_call *call, MPI_Request *request, int *result)
{
    struct cpl_comm_state *state = cpl_comm_state_get(call->comm);
    struct cpl_exchange *x = cpl_exchange_of(state, cpl_allgather_persistent(call).kind);
    if (!cpl_neighbor_count_untried(state, x))
        return false;
    enum cpl_allgather_way way =
        cpl_allgather_way_untried(state, cpl_allgather_bytes(call, state->size));
    bool refused;
    if (way == CPL_N_ALLGATHER_WAYS)
        return false;
    struct cpl_neighbor_op *op = make(call, state, x, way, &refused);
    if (refused)
        return false;
    note_way(x, way);
    *result = cpl_neighbor_start_made(op, call->comm, x, request);
    return true;
}
