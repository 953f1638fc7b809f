/* Carries by a plan: between the program's buffers and the executor. Messages that are too large to
 * share go straight, from the program's buffers into them: what one end sends so the other must
 * expect. */
#include "shim/exchange/neighbor_internal.h"

#include "shim/meet/agree.h"
#include "shim/state/context.h"

#include <string.h>

/* Starts to send or receive a message that goes straight. */
static void start_span(struct cpl_carrying *c, bool sends, const struct cpl_span *span, int peer)
{
    cpl_carrying_move(c, sends, span, peer, c->x->first_tag + CPL_EXECUTOR_TAGS,
                      &c->data->requests[c->data->n_requests++]);
}

/* Starts to send or receive message m with all its parts, from or into the program's buffer. */
static void start_message(struct cpl_carrying *c, bool sends, int m)
{
    const struct cpl_adjacency *a = c->x->adjacency;
    const struct cpl_neighbors *side = sends ? &a->out : &a->in;
    for (int p = side->first_part[m]; p < side->first_part[m + 1]; p++)
        start_span(c, sends,
                   sends ? &c->data->out_span[side->part[p]]
                         : &c->data->in_span[c->x->notes->in_part[p]],
                   side->rank[m]);
}

static int64_t payload_size(void *context, int32_t k)
{
    const struct cpl_carrying *c = context;
    return c->data->out_bytes[c->x->notes->payload[k]];
}

static int pack_payload(void *context, int32_t k, unsigned char *to)
{
    const struct cpl_carrying *c = context;
    const struct cpl_neighbors *out = &c->x->adjacency->out;
    const struct cpl_span *spans = c->data->out_span;
    int m = c->x->notes->payload[k], first = out->first_part[m], end = out->first_part[m + 1];
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
static int unpack_parts(struct cpl_carrying *c, int first, int n_parts, const unsigned char *data,
                        int64_t bytes)
{
    int64_t at = n_parts * (int64_t)sizeof(uint32_t);
    for (int p = 0; p < n_parts; p++) {
        uint32_t length;
        if (at > bytes)
            return MPI_ERR_INTERN;
        memcpy(&length, data + (size_t)p * sizeof length, sizeof length);
        if (length > bytes - at)
            return MPI_ERR_INTERN;
        cpl_carrying_note(c, cpl_span_unpack(&c->data->in_span[c->x->notes->in_part[first + p]],
                                             data + at, length));
        at += length;
    }
    return MPI_SUCCESS;
}

static int deliver_payload(void *context, int32_t owner, const unsigned char *data, int64_t bytes)
{
    struct cpl_carrying *c = context;
    const struct cpl_neighbors *in = &c->x->adjacency->in;
    int m = find_message(in, owner);
    int first = in->first_part[m], n_parts = in->first_part[m + 1] - first;
    if (bytes == CPL_STRAIGHT) {
        start_message(c, false, m);
        return MPI_SUCCESS;
    }
    if (!c->data->same_payload && n_parts > 1)
        return unpack_parts(c, first, n_parts, data, bytes);
    for (int p = first; p < first + n_parts; p++)
        cpl_carrying_note(c,
                          cpl_span_unpack(&c->data->in_span[c->x->notes->in_part[p]], data, bytes));
    return MPI_SUCCESS;
}

/* Receives are started before sends; then the messages of the rank to itself are copied. */
static void start(struct cpl_carrying *c)
{
    const struct cpl_payloads payloads = {c, payload_size, pack_payload, deliver_payload};
    const struct cpl_adjacency *a = c->x->adjacency;
    const struct cpl_neighbor_notes *notes = c->x->notes;
    struct cpl_neighbor_data *data = c->data;
    c->carried = false;
    data->n_requests = 0;
    for (int m = 0; m < a->in.n_messages; m++)
        if (notes->in_straight[m])
            start_message(c, false, m);
    for (int k = 0; k < data->n_extra; k++)
        start_span(c, data->extra[k].sent, &data->extra[k].span, data->extra[k].rank);
    for (int m = 0; m < a->out.n_messages; m++) {
        int64_t bytes = cpl_neighbor_payload_bytes(data, a, m);
        bool rides = !notes->straight[m] && bytes <= cpl_context.settings.size_limit;
        data->out_bytes[m] = rides ? bytes : CPL_STRAIGHT;
        if (!rides)
            start_message(c, true, m);
    }
    for (int k = 0; k < a->in.n_self; k++)
        cpl_carrying_note(
            c, cpl_span_copy(&data->out_span[notes->self_from[k]], &data->in_span[a->in.self[k]]));
    cpl_executor_start(c->by->made, &payloads);
}

static bool progress(struct cpl_carrying *c)
{
    struct cpl_neighbor_data *data = c->data;
    int result = MPI_SUCCESS;
    if (!c->carried && !cpl_executor_progress(c->by->made, &result))
        return false;
    c->carried = true;
    cpl_carrying_note(c, result);
    while (data->n_requests > 0) {
        int done = 1;
        result = PMPI_Test(&data->requests[data->n_requests - 1], &done, MPI_STATUS_IGNORE);
        if (result == MPI_SUCCESS && !done)
            return false;
        cpl_carrying_note(c, result);
        data->n_requests--;
    }
    return true;
}

static void wait(struct cpl_carrying *c)
{
    cpl_carrying_note(c, cpl_executor_wait(c->by->made));
    cpl_carrying_wait_for(c, c->data->n_requests, c->data->requests);
}

static void end(struct cpl_candidate *candidate)
{
    cpl_executor_destroy(candidate->made);
}

const struct cpl_carrier cpl_carrier_plan = {.name = "plan",
                                             .end = end,
                                             .resolve = cpl_neighbor_resolve_all,
                                             .start = start,
                                             .progress = progress,
                                             .wait = wait};

bool cpl_carriers_offer(const struct cpl_comm_state *state, struct cpl_exchange *x,
                        struct cpl_agree_output *agreed)
{
    struct cpl_exchange_plans *plans = &x->plans;
    const struct cpl_plan_summary *s = plans->summary;
    bool decided = false, made = true;
    for (int k = 0; k < agreed->n; k++) {
        if (!s[k].decided) /* profile runs, nothing to gain: MPI's */
            continue;
        decided = true;
        struct cpl_executor *executor = cpl_executor_create(agreed->words[k], agreed->n_words[k],
                                                            state->private_comm, x->first_tag);
        agreed->words[k] = NULL;
        cpl_executor_open_lanes(executor, state->private_comm);
        plans->candidate[plans->n_candidates++] =
            (struct cpl_candidate){&cpl_carrier_plan, executor, &s[k]};
        made &= executor != NULL;
    }
    return decided && cpl_agree_all(state->private_comm, made);
}

struct cpl_executor *cpl_exchange_executor(const struct cpl_exchange *x, int32_t candidate)
{
    const struct cpl_candidate *c = candidate > 0 ? &x->plans.candidate[candidate - 1] : NULL;
    return c && c->carrier == &cpl_carrier_plan ? c->made : NULL;
}
