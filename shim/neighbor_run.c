/* Carrying a planned neighborhood collective: between the program's buffers and the executor. */
#include "collective.h"
#include "context.h"
#include "neighbor_internal.h"

#include <string.h>

/* What the executor's callbacks need. */
struct ride {
    const struct cpl_comm_state *state;
    struct cpl_exchange *x;
    int tag; /* of messages that go straight */
};

static int send_straight(const struct ride *ride, int m)
{
    const struct cpl_neighbors *out = &ride->state->adjacency.out;
    struct cpl_exchange *x = ride->x;
    int result = MPI_SUCCESS;
    int first = out->first_part[m], end = out->first_part[m + 1];
    for (int p = first; p < end && result == MPI_SUCCESS; p++) {
        const struct cpl_span *span = &x->out_span[out->part[p]];
        result = PMPI_Isend(span->address, span->count, span->type.handle, out->rank[m], ride->tag,
                            ride->state->private_comm, &x->requests[x->n_requests++]);
    }
    return result;
}

static int receive_straight(const struct ride *ride, int m)
{
    const struct cpl_neighbors *in = &ride->state->adjacency.in;
    struct cpl_exchange *x = ride->x;
    int result = MPI_SUCCESS;
    int first = in->first_part[m], end = in->first_part[m + 1];
    for (int p = first; p < end && result == MPI_SUCCESS; p++) {
        const struct cpl_span *span = &x->in_span[x->in_part[p]];
        result = PMPI_Irecv(span->address, span->count, span->type.handle, in->rank[m], ride->tag,
                            ride->state->private_comm, &x->requests[x->n_requests++]);
    }
    return result;
}

/* Copies between two spans of this rank; a message to itself converts any type. */
static int copy_self(const struct cpl_span *from, const struct cpl_span *to)
{
    return PMPI_Sendrecv(from->address, from->count, from->type.handle, 0, 0, to->address,
                         to->count, to->type.handle, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
}

static int copy_selves(const struct ride *ride)
{
    const struct cpl_adjacency *a = &ride->state->adjacency;
    int result = MPI_SUCCESS;
    for (int k = 0; k < a->in.n_self && result == MPI_SUCCESS; k++)
        result =
            copy_self(&ride->x->out_span[ride->x->self_from[k]], &ride->x->in_span[a->in.self[k]]);
    return result;
}

static void note(int *result, int code)
{
    if (*result == MPI_SUCCESS)
        *result = code;
}

/* Posts the receives of messages that never ride, sizes every out-message and sends those that do
 * not ride this time. Goes on after an error: the others wait for what they are owed. */
static int start_straight(const struct ride *ride)
{
    const struct cpl_adjacency *a = &ride->state->adjacency;
    struct cpl_exchange *x = ride->x;
    int result = MPI_SUCCESS;
    x->n_requests = 0;
    for (int m = 0; m < a->in.n_messages; m++)
        if (x->in_straight[m])
            note(&result, receive_straight(ride, m));
    for (int m = 0; m < a->out.n_messages; m++) {
        x->out_bytes[m] = cpl_neighbor_payload_bytes(x, ride->state, m);
        if (x->out_straight[m] || x->out_bytes[m] > cpl_context.settings.size_limit) {
            x->out_bytes[m] = CPL_STRAIGHT;
            note(&result, send_straight(ride, m));
        }
    }
    return result;
}

static int64_t payload_size(void *context, int32_t k)
{
    const struct ride *ride = context;
    return ride->x->out_bytes[ride->x->payload[k]];
}

static int pack_payload(void *context, int32_t k, unsigned char *to)
{
    const struct ride *ride = context;
    const struct cpl_neighbors *out = &ride->state->adjacency.out;
    const struct cpl_span *spans = ride->x->out_span;
    int m = ride->x->payload[k], first = out->first_part[m], end = out->first_part[m + 1];
    if (ride->x->same_payload || end - first == 1)
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
static int unpack_parts(const struct ride *ride, int first, int n_parts, const unsigned char *data,
                        int64_t bytes)
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
            cpl_span_unpack(&ride->x->in_span[ride->x->in_part[first + p]], data + at, length);
        result = result == MPI_SUCCESS ? code : result;
        at += length;
    }
    return result;
}

static int deliver_payload(void *context, int32_t owner, const unsigned char *data, int64_t bytes)
{
    const struct ride *ride = context;
    const struct cpl_neighbors *in = &ride->state->adjacency.in;
    int m = find_message(in, owner);
    int first = in->first_part[m], n_parts = in->first_part[m + 1] - first;
    if (bytes == CPL_STRAIGHT)
        return receive_straight(ride, m);
    if (!ride->x->same_payload && n_parts > 1)
        return unpack_parts(ride, first, n_parts, data, bytes);
    int result = MPI_SUCCESS;
    for (int p = first; p < first + n_parts; p++) {
        int code = cpl_span_unpack(&ride->x->in_span[ride->x->in_part[p]], data, bytes);
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

/* Waits for the straight messages. */
static int finish_straight(const struct ride *ride)
{
    struct cpl_exchange *x = ride->x;
    return first_error(cpl_collective_waitall(x->n_requests, x->requests, x->statuses), x->statuses,
                       x->n_requests);
}

int cpl_neighbor_run(const struct cpl_neighbor_call *call, struct cpl_comm_state *state,
                     struct cpl_exchange *exchange)
{
    struct ride ride = {state, exchange, cpl_neighbor_straight_tag(call->kind)};
    const struct cpl_payloads payloads = {&ride, payload_size, pack_payload, deliver_payload};
    int results[4];
    results[0] = start_straight(&ride);
    results[1] = copy_selves(&ride);
    results[2] = cpl_executor_run(exchange->executor, &payloads);
    results[3] = finish_straight(&ride);
    for (int k = 0; k < 4; k++)
        if (results[k] != MPI_SUCCESS) {
            PMPI_Comm_call_errhandler(call->comm, results[k]);
            return results[k];
        }
    return MPI_SUCCESS;
}
