/* Where the data of a call is (neighbor_internal.h). */
#include "shim/exchange/neighbor_internal.h"
#include "shim/wait/collective.h"

#include <stdlib.h>

static int64_t offset_of(const struct cpl_neighbor_side *side, int k, int64_t count, int64_t extent)
{
    const int64_t unit = side->types ? 1 : extent;
    if (side->displs)
        return side->displs[k] * unit;
    if (side->large_displs)
        return side->large_displs[k] * unit;
    return side->same ? 0 : k * count * extent;
}

static bool lacks_displs(const struct cpl_neighbor_side *side)
{
    return (side->counts || side->large_counts) && !side->displs && !side->large_displs;
}

static const struct cpl_span empty = {
    .type = {.handle = MPI_BYTE, .size = 1, .extent = 1, .dense = true}};

/* The span of argument k; *type is the type of the previous argument, and becomes this one's. */
static bool resolve_span(const struct cpl_neighbor_side *side, int k, struct cpl_type *type,
                         struct cpl_span *span)
{
    int64_t count = cpl_neighbor_count(side, k);
    if (count == 0 && side->types && side->types[k] == MPI_DATATYPE_NULL) {
        *span = empty;
        return true;
    }
    MPI_Datatype handle = side->types ? side->types[k] : side->type;
    bool known = handle == type->handle && handle != MPI_DATATYPE_NULL;
    if (count < 0 || !(known || cpl_type_describe(handle, type)))
        return false;
    /* As integers: MPI_BOTTOM is no pointer to compute with. */
    uintptr_t address =
        (uintptr_t)side->buffer + (uintptr_t)offset_of(side, k, count, type->extent);
    *span = (struct cpl_span){(char *)address, count, *type};
    return address || !type->dense || cpl_span_bytes(span) == 0;
}

bool cpl_neighbor_resolve_side(const struct cpl_neighbor_side *side, int n, const int *argument,
                               struct cpl_span *spans)
{
    struct cpl_type type = {.handle = MPI_DATATYPE_NULL};
    bool known = n == 0 || !lacks_displs(side);
    for (int k = 0; k < n && known; k++)
        known = resolve_span(side, argument ? argument[k] : k, &type, &spans[k]);
    return known;
}

bool cpl_neighbor_resolve_rank(const struct cpl_neighbor_side *side, int rank,
                               struct cpl_span *span)
{
    struct cpl_type type = {.handle = MPI_DATATYPE_NULL};
    if (cpl_neighbor_count(side, rank) == 0) { /* most are empty: skip their types */
        *span = empty;
        return true;
    }
    return !lacks_displs(side) && resolve_span(side, rank, &type, span);
}

int64_t cpl_neighbor_rank_bytes(const struct cpl_neighbor_side *side, int rank)
{
    struct cpl_span span;
    return cpl_neighbor_resolve_rank(side, rank, &span) ? cpl_span_bytes(&span) : -1;
}

#define MAKE(member, n)                                                                            \
    ((data->member = cpl_arena_alloc(&data->arena, n, sizeof *data->member)) != NULL)
bool cpl_neighbor_data_make(struct cpl_neighbor_data *data, const struct cpl_adjacency *a,
                            int n_extra)
{
    const size_t n_out = (size_t)a->out.n, n_in = (size_t)a->in.n, n_more = (size_t)n_extra;
    return MAKE(out_span, n_out) && MAKE(in_span, n_in) && MAKE(out_bytes, n_out) &&
           MAKE(requests, n_in + n_out + n_more) && MAKE(extra, n_more);
}
#undef MAKE

void cpl_neighbor_data_free(struct cpl_neighbor_data *data)
{
    cpl_arena_free(&data->arena);
    *data = (struct cpl_neighbor_data){.out_span = NULL};
}

bool cpl_neighbor_resolve(const struct cpl_neighbor_call *call,
                          const struct cpl_adjacency *adjacency, struct cpl_neighbor_data *data)
{
    data->same_payload = call->send.same;
    const struct cpl_neighbors *out = &adjacency->out, *in = &adjacency->in;
    const bool by_rank = call->kind >= CPL_ALLTOALLV; /* arguments are for all ranks */
    return cpl_neighbor_resolve_side(&call->send, out->n, by_rank ? out->peer : NULL,
                                     data->out_span) &&
           cpl_neighbor_resolve_side(&call->recv, in->n, by_rank ? in->peer : NULL, data->in_span);
}

/* Adds the messages of one side that are not in the plan. */
static bool add_extra(const struct cpl_neighbor_call *call, const struct cpl_comm_state *state,
                      const struct cpl_neighbors *planned, bool sent,
                      struct cpl_neighbor_data *data)
{
    const struct cpl_neighbor_side *side = sent ? &call->send : &call->recv;
    int m = 0;
    for (int r = 0; r < state->size; r++) {
        struct cpl_extra *extra = &data->extra[data->n_extra];
        if (m < planned->n_messages && planned->rank[m] == r) {
            m++;
            continue;
        }
        if (!cpl_neighbor_resolve_rank(side, r, &extra->span))
            return false;
        extra->rank = r;
        extra->sent = sent;
        data->n_extra += cpl_span_bytes(&extra->span) > 0;
    }
    return true;
}

bool cpl_neighbor_resolve_all(const struct cpl_neighbor_call *call, struct cpl_carrying *c)
{
    struct cpl_neighbor_data *data = c->data;
    const struct cpl_comm_state *state = c->state;
    const struct cpl_adjacency *planned = c->x->adjacency;
    data->n_extra = 0;
    if (!cpl_neighbor_resolve(call, planned, data))
        return false;
    if (call->kind < CPL_ALLTOALLV)
        return true;
    if (!add_extra(call, state, &planned->in, false, data))
        return false;
    int n_received = data->n_extra;
    if (!add_extra(call, state, &planned->out, true, data))
        return false;
    for (int k = n_received; k < data->n_extra; k++) /* no plan has what a rank sends itself */
        c->x->learned.n_extra += data->extra[k].rank != state->rank;
    c->x->learned.n_messages += planned->out.n_messages + data->n_extra - n_received;
    return true;
}

int64_t cpl_neighbor_payload_bytes(const struct cpl_neighbor_data *data,
                                   const struct cpl_adjacency *adjacency, int m)
{
    const struct cpl_neighbors *out = &adjacency->out;
    int first = out->first_part[m], n_parts = out->first_part[m + 1] - first;
    if (data->same_payload)
        return cpl_span_bytes(&data->out_span[out->part[first]]);
    int64_t bytes = n_parts > 1 ? n_parts * (int64_t)sizeof(uint32_t) : 0;
    for (int p = first; p < first + n_parts; p++)
        bytes += cpl_span_bytes(&data->out_span[out->part[p]]);
    return bytes;
}

void cpl_carrying_move(struct cpl_carrying *c, bool sends, const struct cpl_span *span, int peer,
                       int tag, MPI_Request *request)
{
    int code = sends ? PMPI_Isend_c(span->address, span->count, span->type.handle, peer, tag,
                                    c->state->private_comm, request)
                     : PMPI_Irecv_c(span->address, span->count, span->type.handle, peer, tag,
                                    c->state->private_comm, request);
    if (code != MPI_SUCCESS)
        *request = MPI_REQUEST_NULL; /* MPI does not say what is in one that was not started */
    cpl_carrying_note(c, code);
}

void cpl_carrying_wait_for(struct cpl_carrying *c, int n, MPI_Request *requests)
{
    MPI_Status status;
    for (int k = 0; k < n; k++) {
        int code = cpl_collective_waitall(1, &requests[k], &status);
        cpl_carrying_note(c, code == MPI_ERR_IN_STATUS ? status.MPI_ERROR : code);
    }
}

struct cpl_comm_state *cpl_neighbor_describe(const struct cpl_neighbor_call *call)
{
    struct cpl_comm_state *state = cpl_comm_state_get(call->comm);
    if (!state || call->kind < CPL_ALLTOALLV)
        return state && state->watched ? state : NULL;
    return state->inter || state->size < 2 || call->send.buffer == MPI_IN_PLACE ? NULL : state;
}
