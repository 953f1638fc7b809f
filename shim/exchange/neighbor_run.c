/* Carrying a planned neighborhood collective: between the program's buffers and the executor. */
#include "shim/base/log.h"
#include "shim/exchange/neighbor_internal.h"
#include "shim/state/context.h"
#include "shim/wait/collective.h"

#include <stdlib.h>
#include <string.h>

static int send_straight(const struct cpl_carrying *c, int m)
{
    const struct cpl_neighbors *out = &c->x->adjacency->out;
    struct cpl_neighbor_data *data = c->data;
    int result = MPI_SUCCESS;
    int first = out->first_part[m], end = out->first_part[m + 1];
    for (int p = first; p < end && result == MPI_SUCCESS; p++) {
        const struct cpl_span *span = &data->out_span[out->part[p]];
        result = PMPI_Isend_c(span->address, span->count, span->type.handle, out->rank[m],
                              cpl_neighbor_straight_tag(c->x), c->state->private_comm,
                              &data->requests[data->n_requests++]);
    }
    return result;
}

static int receive_straight(const struct cpl_carrying *c, int m)
{
    const struct cpl_neighbors *in = &c->x->adjacency->in;
    struct cpl_neighbor_data *data = c->data;
    int result = MPI_SUCCESS;
    int first = in->first_part[m], end = in->first_part[m + 1];
    for (int p = first; p < end && result == MPI_SUCCESS; p++) {
        const struct cpl_span *span = &data->in_span[c->x->ends.in_part[p]];
        result = PMPI_Irecv_c(span->address, span->count, span->type.handle, in->rank[m],
                              cpl_neighbor_straight_tag(c->x), c->state->private_comm,
                              &data->requests[data->n_requests++]);
    }
    return result;
}

static int copy_selves(const struct cpl_carrying *c)
{
    const struct cpl_adjacency *a = c->x->adjacency;
    int result = MPI_SUCCESS;
    for (int k = 0; k < a->in.n_self && result == MPI_SUCCESS; k++)
        result = cpl_span_copy(&c->data->out_span[c->x->ends.self_from[k]],
                               &c->data->in_span[a->in.self[k]]);
    return result;
}

/* Messages outside the plan: both ends know of them by their arguments. */
static int start_extra(const struct cpl_carrying *c, const struct cpl_extra *extra)
{
    const struct cpl_span *span = &extra->span;
    MPI_Request *request = &c->data->requests[c->data->n_requests++];
    int tag = cpl_neighbor_straight_tag(c->x);
    MPI_Comm comm = c->state->private_comm;
    if (extra->sent)
        return PMPI_Isend_c(span->address, span->count, span->type.handle, extra->rank, tag, comm,
                            request);
    return PMPI_Irecv_c(span->address, span->count, span->type.handle, extra->rank, tag, comm,
                        request);
}

static void note(int *result, int code)
{
    if (*result == MPI_SUCCESS)
        *result = code;
}

/* Posts the receives of messages that never ride, sizes every out-message and sends those that do
 * not ride this time: all, in the exchange's order, when that is the way. Goes on after an error:
 * the others wait for what they are owed. */
static int start_straight(const struct cpl_carrying *c)
{
    const struct cpl_adjacency *a = c->x->adjacency;
    const struct cpl_exchange *x = c->x;
    bool is_all = c->way == &cpl_way_straight;
    struct cpl_neighbor_data *data = c->data;
    int result = MPI_SUCCESS;
    data->n_requests = 0;
    for (int m = 0; m < a->in.n_messages; m++)
        if (is_all || x->ends.in_straight[m])
            note(&result, receive_straight(c, m));
    for (int k = 0; k < data->n_extra; k++)
        note(&result, start_extra(c, &data->extra[k]));
    for (int k = 0; k < a->out.n_messages; k++) {
        int m = is_all ? x->order.message[k] : k;
        data->out_bytes[m] = cpl_neighbor_payload_bytes(data, a, m);
        if (is_all || x->ends.out_straight[m] ||
            data->out_bytes[m] > cpl_context.settings.size_limit) {
            data->out_bytes[m] = CPL_STRAIGHT;
            note(&result, send_straight(c, m));
        }
    }
    return result;
}

static int64_t payload_size(void *context, int32_t k)
{
    const struct cpl_carrying *c = context;
    return c->data->out_bytes[c->x->ends.payload[k]];
}

static int pack_payload(void *context, int32_t k, unsigned char *to)
{
    const struct cpl_carrying *c = context;
    const struct cpl_neighbors *out = &c->x->adjacency->out;
    const struct cpl_span *spans = c->data->out_span;
    int m = c->x->ends.payload[k], first = out->first_part[m], end = out->first_part[m + 1];
    if (c->data->same_payload || end - first == 1)
        return cpl_span_pack(&spans[out->part[first]], to);
    unsigned char *data = to + (size_t)(end - first) * sizeof(uint32_t);
    int result = MPI_SUCCESS;
    for (int p = first; p < end && result == MPI_SUCCESS; p++) {
        uint32_t bytes = (uint32_t)cpl_span_bytes(&spans[out->part[p]]);
        memcpy(to + (size_t)(p - first) * sizeof bytes, &bytes, sizeof bytes);
        result = cpl_span_pack(&spans[out->part[p]], data);
        data += bytes;
    }
    return result;
}

/* The in-message from a rank: bisection in the ascending list of ranks. */
static int find_message(const struct cpl_neighbors *in, int rank)
{
    int low = 0, high = in->n_messages - 1;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (in->rank[middle] < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* A payload with the lengths of its parts in front. */
static int unpack_parts(const struct cpl_carrying *c, int first, int n_parts,
                        const unsigned char *data, int64_t bytes)
{
    int64_t at = n_parts * (int64_t)sizeof(uint32_t);
    int result = MPI_SUCCESS;
    for (int p = 0; p < n_parts; p++) {
        uint32_t length;
        if (at > bytes)
            return MPI_ERR_INTERN;
        memcpy(&length, data + (size_t)p * sizeof length, sizeof length);
        if (length > bytes - at)
            return MPI_ERR_INTERN;
        int code =
            cpl_span_unpack(&c->data->in_span[c->x->ends.in_part[first + p]], data + at, length);
        result = result == MPI_SUCCESS ? code : result;
        at += length;
    }
    return result;
}

static int deliver_payload(void *context, int32_t owner, const unsigned char *data, int64_t bytes)
{
    const struct cpl_carrying *c = context;
    const struct cpl_neighbors *in = &c->x->adjacency->in;
    int m = find_message(in, owner);
    int first = in->first_part[m], n_parts = in->first_part[m + 1] - first;
    if (bytes == CPL_STRAIGHT)
        return receive_straight(c, m);
    if (!c->data->same_payload && n_parts > 1)
        return unpack_parts(c, first, n_parts, data, bytes);
    int result = MPI_SUCCESS;
    for (int p = first; p < first + n_parts; p++) {
        int code = cpl_span_unpack(&c->data->in_span[c->x->ends.in_part[p]], data, bytes);
        result = result == MPI_SUCCESS ? code : result;
    }
    return result;
}

/* The first error of requests that were waited for together. */
static int first_error(int code, const MPI_Status *statuses, int n)
{
    for (int k = 0; k < n && code == MPI_ERR_IN_STATUS; k++)
        if (statuses[k].MPI_ERROR != MPI_SUCCESS)
            return statuses[k].MPI_ERROR;
    return code;
}

/* Starts all that does not go by an executor. */
static void start_straight_way(struct cpl_carrying *c)
{
    c->result = start_straight(c);
    note(&c->result, copy_selves(c));
}

static bool progress_straight(struct cpl_carrying *c)
{
    struct cpl_neighbor_data *data = c->data;
    while (data->n_requests > 0) {
        int done = 1;
        int code = PMPI_Test(&data->requests[data->n_requests - 1], &done, MPI_STATUS_IGNORE);
        if (code == MPI_SUCCESS && !done)
            return false;
        note(&c->result, code);
        data->n_requests--;
    }
    return true;
}

static void wait_straight(struct cpl_carrying *c)
{
    const struct cpl_neighbor_data *data = c->data;
    int code = cpl_collective_waitall(data->n_requests, data->requests, data->statuses);
    note(&c->result, first_error(code, data->statuses, data->n_requests));
}

static void start_plan(struct cpl_carrying *c)
{
    const struct cpl_payloads payloads = {c, payload_size, pack_payload, deliver_payload};
    c->carried = false;
    start_straight_way(c);
    cpl_executor_start(c->made, &payloads);
}

static bool progress_plan(struct cpl_carrying *c)
{
    int result = MPI_SUCCESS;
    if (!c->carried && !cpl_executor_progress(c->made, &result))
        return false;
    c->carried = true;
    note(&c->result, result);
    return progress_straight(c);
}

static void wait_plan(struct cpl_carrying *c)
{
    note(&c->result, cpl_executor_wait(c->made));
    wait_straight(c);
}

/* The executors of the plans that were decided on. */
static int offer_plans(const struct cpl_comm_state *state, struct cpl_exchange *x,
                       struct cpl_agree_output *agreed, struct cpl_candidate *candidate, int most,
                       bool *made)
{
    int n = 0;
    for (int k = 0; k < agreed->n && n < most; k++) {
        if (!agreed->summary[k].decided)
            continue;
        candidate[n] =
            (struct cpl_candidate){&cpl_way_plan,
                                   cpl_executor_create(agreed->words[k], agreed->n_words[k],
                                                       state->private_comm, x->first_tag),
                                   x->plans.summary[k].strategy,
                                   x->plans.summary[k].planned.modelled_us, &x->plans.summary[k]};
        agreed->words[k] = NULL;
        *made = *made && candidate[n++].made;
    }
    return n;
}

static void end_plan(struct cpl_candidate *candidate)
{
    cpl_executor_destroy(candidate->made);
}

const struct cpl_way cpl_way_plan = {.name = "plan",
                                     .offer = offer_plans,
                                     .end = end_plan,
                                     .start = start_plan,
                                     .progress = progress_plan,
                                     .wait = wait_plan};

/* Every message alone, from the program's buffers, in the exchange's order. */
const struct cpl_way cpl_way_straight = {.name = "straight",
                                         .start = start_straight_way,
                                         .progress = progress_straight,
                                         .wait = wait_straight};

struct cpl_executor *cpl_exchange_executor(const struct cpl_exchange *x, int32_t candidate)
{
    const struct cpl_candidate *c = candidate > 0 ? &x->plans.candidate[candidate - 1] : NULL;
    return c && c->way == &cpl_way_plan ? c->made : NULL;
}

int cpl_neighbor_run(const struct cpl_neighbor_call *call, struct cpl_comm_state *state,
                     struct cpl_exchange *exchange)
{
    const struct cpl_candidate *carries = exchange->plans.carries;
    struct cpl_carrying c = {.state = state,
                             .x = exchange,
                             .way = carries ? carries->way : &cpl_way_straight,
                             .made = carries ? carries->made : NULL,
                             .data = &exchange->data};
    c.way->start(&c);
    c.way->wait(&c);
    if (c.result != MPI_SUCCESS)
        PMPI_Comm_call_errhandler(call->comm, c.result);
    return c.result;
}
