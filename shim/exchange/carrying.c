/* The pieces of which ways carry a call (carrying.h). */
#include "shim/exchange/carrying.h"

#include "shim/wait/collective.h"

void cpl_carrying_open(struct cpl_carrying *c)
{
    c->data->n_requests = 0;
    c->result = MPI_SUCCESS;
}

MPI_Request *cpl_carrying_request(struct cpl_carrying *c)
{
    MPI_Request *request = &c->data->requests[c->data->n_requests++];
    *request = MPI_REQUEST_NULL;
    return request;
}

/* A call has returned `code` that was to start a request: MPI does not say what is in a request
 * that was not started. */
static void note_start(struct cpl_carrying *c, int code, MPI_Request *request)
{
    if (code != MPI_SUCCESS)
        *request = MPI_REQUEST_NULL;
    cpl_carrying_note(c, code);
}

static void receive_span(struct cpl_carrying *c, const struct cpl_span *span, int from)
{
    MPI_Request *request = cpl_carrying_request(c);
    note_start(c,
               PMPI_Irecv_c(span->address, span->count, span->type.handle, from,
                            cpl_neighbor_straight_tag(c->x), c->state->private_comm, request),
               request);
}

static void send_span(struct cpl_carrying *c, const struct cpl_span *span, int to)
{
    MPI_Request *request = cpl_carrying_request(c);
    note_start(c,
               PMPI_Isend_c(span->address, span->count, span->type.handle, to,
                            cpl_neighbor_straight_tag(c->x), c->state->private_comm, request),
               request);
}

void cpl_carrying_receive(struct cpl_carrying *c, int m)
{
    const struct cpl_neighbors *in = &c->x->adjacency->in;
    for (int p = in->first_part[m]; p < in->first_part[m + 1]; p++)
        receive_span(c, &c->data->in_span[c->x->ends.in_part[p]], in->rank[m]);
}

void cpl_carrying_send(struct cpl_carrying *c, int m)
{
    const struct cpl_neighbors *out = &c->x->adjacency->out;
    for (int p = out->first_part[m]; p < out->first_part[m + 1]; p++)
        send_span(c, &c->data->out_span[out->part[p]], out->rank[m]);
}

void cpl_carrying_extras(struct cpl_carrying *c)
{
    for (int k = 0; k < c->data->n_extra; k++) {
        const struct cpl_extra *extra = &c->data->extra[k];
        if (extra->sent)
            send_span(c, &extra->span, extra->rank);
        else
            receive_span(c, &extra->span, extra->rank);
    }
}

void cpl_carrying_selves(struct cpl_carrying *c)
{
    const struct cpl_adjacency *a = c->x->adjacency;
    for (int k = 0; k < a->in.n_self; k++)
        cpl_carrying_note(c, cpl_span_copy(&c->data->out_span[c->x->ends.self_from[k]],
                                           &c->data->in_span[a->in.self[k]]));
}

bool cpl_carrying_progress_to(struct cpl_carrying *c, int n)
{
    struct cpl_neighbor_data *data = c->data;
    while (data->n_requests > n) {
        int done = 1;
        int code = PMPI_Test(&data->requests[data->n_requests - 1], &done, MPI_STATUS_IGNORE);
        if (code == MPI_SUCCESS && !done)
            return false;
        cpl_carrying_note(c, code);
        data->n_requests--;
    }
    return true;
}

bool cpl_carrying_progress(struct cpl_carrying *c)
{
    return cpl_carrying_progress_to(c, 0);
}

/* The first error of requests that were waited for together. */
static int first_error(int code, const MPI_Status *statuses, int n)
{
    for (int k = 0; k < n && code == MPI_ERR_IN_STATUS; k++)
        if (statuses[k].MPI_ERROR != MPI_SUCCESS)
            return statuses[k].MPI_ERROR;
    return code;
}

void cpl_carrying_wait(struct cpl_carrying *c)
{
    const struct cpl_neighbor_data *data = c->data;
    int code = cpl_collective_waitall(data->n_requests, data->requests, data->statuses);
    cpl_carrying_note(c, first_error(code, data->statuses, data->n_requests));
}

struct cpl_candidate cpl_carrying_candidate(const struct cpl_way *way, void *made,
                                            const struct cpl_exchange *x)
{
    return (struct cpl_candidate){
        .way = way,
        .made = made,
        .name = way->name,
        .modelled_us = x->plans.summary[0].direct.modelled_us,
    };
}
