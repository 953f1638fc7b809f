/* The pieces of which ways carry a call (neighbor_internal.h). */
#include "shim/exchange/neighbor_internal.h"

#include "shim/wait/collective.h"

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

static void start_span(struct cpl_carrying *c, bool sends, const struct cpl_span *span, int peer)
{
    cpl_carrying_move(c, sends, span, peer, c->x->first_tag + CPL_EXECUTOR_TAGS,
                      &c->data->requests[c->data->n_requests++]);
}

void cpl_carrying_receive(struct cpl_carrying *c, int m)
{
    const struct cpl_neighbors *in = &c->x->adjacency->in;
    for (int p = in->first_part[m]; p < in->first_part[m + 1]; p++)
        start_span(c, false, &c->data->in_span[c->x->ends.in_part[p]], in->rank[m]);
}

void cpl_carrying_send(struct cpl_carrying *c, int m)
{
    const struct cpl_neighbors *out = &c->x->adjacency->out;
    for (int p = out->first_part[m]; p < out->first_part[m + 1]; p++)
        start_span(c, true, &c->data->out_span[out->part[p]], out->rank[m]);
}

void cpl_carrying_extras(struct cpl_carrying *c)
{
    for (int k = 0; k < c->data->n_extra; k++) {
        const struct cpl_extra *extra = &c->data->extra[k];
        start_span(c, extra->sent, &extra->span, extra->rank);
    }
}

void cpl_carrying_selves(struct cpl_carrying *c)
{
    const struct cpl_adjacency *a = c->x->adjacency;
    for (int k = 0; k < a->in.n_self; k++)
        cpl_carrying_note(c, cpl_span_copy(&c->data->out_span[c->x->ends.self_from[k]],
                                           &c->data->in_span[a->in.self[k]]));
}

bool cpl_carrying_progress(struct cpl_carrying *c)
{
    struct cpl_neighbor_data *data = c->data;
    while (data->n_requests > 0) {
        int done = 1;
        int code = PMPI_Test(&data->requests[data->n_requests - 1], &done, MPI_STATUS_IGNORE);
        if (code == MPI_SUCCESS && !done)
            return false;
        cpl_carrying_note(c, code);
        data->n_requests--;
    }
    return true;
}

void cpl_carrying_wait_for(struct cpl_carrying *c, int n, MPI_Request *requests,
                           MPI_Status *statuses)
{
    int code = cpl_collective_waitall(n, requests, statuses);
    for (int k = 0; k < n && code == MPI_ERR_IN_STATUS; k++)
        if (statuses[k].MPI_ERROR != MPI_SUCCESS)
            code = statuses[k].MPI_ERROR;
    cpl_carrying_note(c, code);
}

void cpl_carrying_wait(struct cpl_carrying *c)
{
    cpl_carrying_wait_for(c, c->data->n_requests, c->data->requests, c->data->statuses);
}
