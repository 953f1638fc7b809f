/* Combined messages (combined.h). */
#include "shim/carry/combined.h"

#include "shim/base/log.h"
#include "shim/base/work.h"
#include "shim/wait/progress.h"

#include <stdlib.h>
#include <string.h>

#define COMBINED_TAG  1000
#define REDUCTION     (-2) /* plan of a reduction's message: instance is number, wave step */
#define MOST_SHARED   31 /* rounds of looks at lanes between two at MPI, where ranks share cores */
#define MOST_OWN      3  /* and where they do not */
#define MOST_LOOKS    64 /* at single lanes, where they do not and all planned ones go by lanes */
#define MOST_BUSY     8  /* rounds in which lanes have brought something */
#define LOOKS_PER_ALL 16 /* at the receive that was posted first, for one at all */
#define N_INSTANCES   8  /* of a plan that can be under way at once, a power of two */
#define ALIGN_BITS    16 /* of a number, for instances after an alignment */
#define MOST_MESSAGES 16 /* from one rank to another; with more, combined messages go by MPI */

struct header {
    int32_t plan;
    uint32_t instance;
    int32_t wave;
    uint32_t n_segments;
};

struct instance {
    bool used;
    uint32_t number;
    double since; /* when it began to hold; 0: it holds nothing */
    int32_t n_left;
    int32_t *missing;              /* per out-edge (relay.h) */
    struct cpl_send_buffer **held; /* per out-edge: what it holds; NULL: nothing */
    bool *came;                    /* per source, from CPL_RELAY_OWN */
};

struct cpl_combined_plan {
    struct cpl_relay relay;
    struct cpl_combined_counts count;
    uint32_t mine; /* instances that this rank has begun */
    struct instance instance[N_INSTANCES];
};

struct cpl_send_buffer *cpl_combined_open(struct cpl_combined *combined, size_t bytes)
{
    return cpl_send_buffers_take(&combined->buffers, sizeof(struct header), bytes);
}

static struct cpl_lane *lane_to(const struct cpl_combined *combined, int32_t dest)
{
    const struct cpl_lane_ends *out = &combined->lanes.out;
    return dest < out->n && out->end[dest].lane.shared ? &out->end[dest].lane : NULL;
}

/* Sends a combined message: by a lane that has room for it, else by MPI. */
static void send_by(struct cpl_combined *combined, struct cpl_send_buffer *buffer, int dest,
                    struct header header)
{
    struct cpl_lane *lane = lane_to(combined, dest);
    bool fits = lane && (int64_t)buffer->used <= lane->room;
    unsigned char *slot = fits ? cpl_lane_next(lane) : NULL;
    header.n_segments = buffer->n_segments;
    cpl_work_combined(buffer->n_segments, (int64_t)buffer->used);
    memcpy(buffer->bytes, &header, sizeof header);
    if (slot) {
        memcpy(slot, buffer->bytes, buffer->used);
        cpl_lane_send(lane, (int64_t)buffer->used);
        combined->sent++;
        cpl_send_buffers_spare(&combined->buffers, buffer);
    } else if (cpl_send_buffers_send(&combined->buffers, buffer, dest, COMBINED_TAG,
                                     combined->comm)) {
        combined->sent++;
    }
}

void cpl_combined_send_reduction(struct cpl_combined *combined, struct cpl_send_buffer *buffer,
                                 int dest, uint32_t number, int32_t step)
{
    send_by(combined, buffer, dest, (struct header){REDUCTION, number, step, 0});
}

/* Copies a payload from memory, or when there is a span from the program's buffer. */
static int copy_payload(unsigned char *to, const struct cpl_segment *segment,
                        const unsigned char *payload, const struct cpl_span *span)
{
    if (segment->payload_bytes == 0)
        return MPI_SUCCESS;
    if (span)
        return cpl_span_pack(span, to);
    memcpy(to, payload, segment->payload_bytes);
    return MPI_SUCCESS;
}

/* One segment straight to its destination. Returns the error of packing it: then nothing is sent.
 */
static int send_alone(struct cpl_combined *combined, const struct cpl_segment *segment,
                      const unsigned char *payload, const struct cpl_span *span)
{
    struct cpl_segment alone = *segment;
    struct cpl_send_buffer *buffer = cpl_combined_open(combined, cpl_segment_bytes(segment));
    alone.slot = CPL_NO_SLOT;
    int result = copy_payload(cpl_send_buffer_append(buffer, &alone), &alone, payload, span);
    if (result == MPI_SUCCESS)
        send_by(combined, buffer, alone.dest, (struct header){.plan = CPL_NO_PLAN});
    else
        cpl_send_buffers_spare(&combined->buffers, buffer);
    return result;
}

void cpl_combined_send(struct cpl_combined *combined, const unsigned char *segments, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        struct cpl_segment segment;
        memcpy(&segment, segments + at, sizeof segment);
        send_alone(combined, &segment, segments + at + sizeof segment, NULL);
        at += cpl_segment_bytes(&segment);
    }
}

/* An out-edge has left; after the last one the instance is over. */
static void note_left(struct cpl_combined_plan *plan, struct instance *instance)
{
    plan->count.sent++;
    if (++instance->n_left == plan->relay.slice.n_out)
        instance->used = false;
}

/* Lets an out-edge go with what it holds. */
static void leave(struct cpl_combined *combined, int p, struct instance *instance, int32_t e)
{
    const struct cpl_rank_plan *slice = &combined->plan[p]->relay.slice;
    struct cpl_send_buffer *held = instance->held[e];
    struct cpl_send_buffer *buffer = held ? held : cpl_combined_open(combined, 0);
    combined->n_holding -= held != NULL;
    instance->held[e] = NULL;
    send_by(combined, buffer, slice->out_to[e],
            (struct header){p, instance->number, slice->out_wave[e], 0});
    note_left(combined->plan[p], instance);
}

/* A source of an instance has come: what waited for it leaves. */
static void note_source(struct cpl_combined *combined, int p, struct instance *instance,
                        int32_t source)
{
    bool *came = &instance->came[source - CPL_RELAY_OWN];
    if (!instance->used || *came)
        return;
    *came = true;
    const int32_t *edges;
    int32_t n = cpl_relay_waiting(&combined->plan[p]->relay, source, &edges);
    for (int32_t k = 0; k < n; k++)
        if (--instance->missing[edges[k]] == 0)
            leave(combined, p, instance, edges[k]);
}

/* Lets everything go that an instance holds, and ends it. */
static void release(struct cpl_combined *combined, int p, struct instance *instance)
{
    for (int32_t e = 0; e < combined->plan[p]->relay.slice.n_out; e++)
        if (instance->held[e]) {
            combined->plan[p]->count.late++;
            leave(combined, p, instance, e);
        }
    instance->used = false;
}

/* Begins the instance of a number in its place; NULL when it is over. */
static struct instance *begin_instance(struct cpl_combined *combined, int p,
                                       struct instance *instance, uint32_t number)
{
    struct cpl_combined_plan *plan = combined->plan[p];
    if ((int32_t)(number - instance->number) <= 0)
        return NULL; /* it has been here; numbers begin with 1 */
    if (instance->used)
        release(combined, p, instance);
    instance->used = plan->relay.slice.n_out > 0;
    instance->number = number;
    instance->since = 0;
    instance->n_left = 0;
    cpl_relay_begin(&plan->relay, instance->missing);
    memset(instance->came, 0, ((size_t)plan->relay.slice.n_in + 1) * sizeof *instance->came);
    return instance->used ? instance : NULL;
}

/* The instance of a number; NULL when it is over. */
static inline struct instance *find_instance(struct cpl_combined *combined, int p, uint32_t number)
{
    struct instance *instance =
        &combined->plan[p]->instance[(number + (number >> ALIGN_BITS)) % N_INSTANCES];
    return instance->used && instance->number == number
               ? instance
               : begin_instance(combined, p, instance, number);
}

/* Whether an out-edge can still take a segment. */
static bool has_place(const struct instance *instance, int32_t e, const struct cpl_segment *segment)
{
    const struct cpl_send_buffer *held = instance->held[e];
    return instance->missing[e] > 0 &&
           (!held || held->used + cpl_segment_bytes(segment) <= CPL_COMBINED_BYTES);
}

/* Puts a segment into its place of an instance, an out-segment (-1: none); straight to its
 * destination when that has left. Returns the error of packing it: then it is not sent. */
static int put(struct cpl_combined *combined, const struct cpl_relay *relay,
               struct instance *instance, int32_t place, const struct cpl_segment *segment,
               const unsigned char *payload, const struct cpl_span *span)
{
    int32_t e = place >= 0 ? relay->out_edge[place] : -1;
    if (e < 0 || !instance || !has_place(instance, e, segment))
        return send_alone(combined, segment, payload, span);
    struct cpl_send_buffer *held = instance->held[e];
    struct cpl_send_buffer *buffer =
        held ? held : cpl_combined_open(combined, cpl_segment_bytes(segment));
    struct cpl_segment placed = *segment;
    placed.slot = place - relay->slice.out_first[e];
    size_t used = buffer->used;
    int result = copy_payload(cpl_send_buffer_append(buffer, &placed), segment, payload, span);
    if (result != MPI_SUCCESS) {
        buffer->used = used;
        buffer->n_segments--;
        if (!held)
            cpl_send_buffers_spare(&combined->buffers, buffer);
        return result;
    }
    combined->n_holding += !held;
    instance->held[e] = buffer;
    if (instance->since <= 0)
        instance->since = PMPI_Wtime();
    return MPI_SUCCESS;
}

void cpl_combined_begin(struct cpl_combined *combined, int plan)
{
    combined->plan[plan]->mine++;
}

void cpl_combined_align(struct cpl_combined *combined)
{
    combined->n_aligned++;
    for (int p = 0; p < combined->n_plans; p++)
        combined->plan[p]->mine = combined->n_aligned << ALIGN_BITS;
}

/* Whether an out-edge, which has not left, carries one payload only, to its destination, and waits
 * for that only. */
static bool is_alone(const struct cpl_rank_plan *slice, const struct instance *instance, int32_t e,
                     int32_t dest)
{
    return slice->out_to[e] == dest && slice->out_first[e + 1] - slice->out_first[e] == 1 &&
           instance->missing[e] == 1 && !instance->held[e];
}

/* Writes a segment straight into a lane, for its reader a combined message that goes by no plan.
 * Returns whether the lane has room for it. *result: MPI_SUCCESS, or the error of packing it: then
 * it is not sent. */
static bool write_alone(struct cpl_lane *lane, const struct cpl_segment *segment,
                        const unsigned char *payload, const struct cpl_span *span, int *result)
{
    const struct header header = {.plan = CPL_NO_PLAN, .n_segments = 1};
    int64_t bytes = (int64_t)(sizeof header + cpl_segment_bytes(segment));
    unsigned char *slot = bytes <= lane->room ? cpl_lane_next(lane) : NULL;
    if (!slot)
        return false;
    cpl_work_combined(1, bytes);
    memcpy(slot, &header, sizeof header);
    memset(slot + bytes - 8, 0, 8); /* nothing that was here before travels in the padding */
    memcpy(slot + sizeof header, segment, sizeof *segment);
    *result = copy_payload(slot + sizeof header + sizeof *segment, segment, payload, span);
    if (*result == MPI_SUCCESS)
        cpl_lane_send(lane, bytes);
    return true;
}

int cpl_combined_put(struct cpl_combined *combined, int p, int32_t k,
                     const struct cpl_segment *segment, const unsigned char *payload,
                     const struct cpl_span *span, bool only)
{
    struct cpl_combined_plan *plan = combined->plan[p];
    const struct cpl_relay *relay = &plan->relay;
    int32_t place = k >= 0 && k < relay->slice.n_payloads ? relay->next[-1 - k] : -1;
    int32_t e = place >= 0 ? relay->out_edge[place] : -1;
    struct instance *instance = find_instance(combined, p, plan->mine);
    bool alone = only && e >= 0 && instance && is_alone(&relay->slice, instance, e, segment->dest);
    struct cpl_lane *lane = alone ? lane_to(combined, segment->dest) : NULL;
    int result;
    if (!lane || !write_alone(lane, segment, payload, span, &result))
        return put(combined, relay, instance, place, segment, payload, span);
    if (result != MPI_SUCCESS)
        return result;
    combined->sent++;
    instance->missing[e] = 0;
    note_left(plan, instance);
    return MPI_SUCCESS;
}

void cpl_combined_end(struct cpl_combined *combined, int plan)
{
    struct instance *instance = find_instance(combined, plan, combined->plan[plan]->mine);
    if (instance)
        note_source(combined, plan, instance, CPL_RELAY_OWN);
}

/* The next instance has the same number: what others hold for this one is late once, not from now
 * on. */
void cpl_combined_abandon(struct cpl_combined *combined, int plan)
{
    cpl_combined_end(combined, plan);
    combined->plan[plan]->mine--;
}

/* A segment of a combined message: delivered, forwarded by the plan, or sent straight to its
 * destination. */
static void handle_segment(struct cpl_combined *combined, const struct header *header,
                           struct instance *instance, int32_t in_edge,
                           const struct cpl_segment *segment, const unsigned char *payload)
{
    if (segment->dest == combined->rank) {
        combined->deliver(combined->context, segment, payload);
        return;
    }
    if (in_edge >= 0)
        combined->plan[header->plan]->count.forwarded += segment->payload_bytes;
    cpl_relay_delay();
    const struct cpl_relay *relay = in_edge >= 0 ? &combined->plan[header->plan]->relay : NULL;
    const int32_t *first = relay ? relay->slice.in_first + in_edge : NULL;
    bool known = first && segment->slot >= 0 && segment->slot < first[1] - first[0];
    put(combined, relay, instance, known ? relay->next[first[0] + segment->slot] : -1, segment,
        payload, NULL);
}

/* A combined message that has come, perhaps by the in-edge `guess`. */
static void handle(struct cpl_combined *combined, int from, const unsigned char *bytes, size_t n,
                   int32_t guess)
{
    struct header header;
    struct instance *instance = NULL;
    int32_t in_edge = -1;
    memcpy(&header, bytes, sizeof header);
    cpl_work_combined(header.n_segments, (int64_t)n);
    if (header.plan == REDUCTION) {
        combined->reduction(combined->context, header.instance, header.wave, bytes + sizeof header,
                            n - sizeof header);
        return;
    }
    if (header.plan >= 0 && header.plan < combined->n_plans) {
        in_edge = cpl_relay_in_edge(&combined->plan[header.plan]->relay, from, header.wave, guess);
        if (in_edge >= 0)
            instance = find_instance(combined, header.plan, header.instance);
    }
    size_t at = sizeof header;
    for (uint32_t k = 0; k < header.n_segments && at + sizeof(struct cpl_segment) <= n; k++) {
        struct cpl_segment segment;
        memcpy(&segment, bytes + at, sizeof segment);
        handle_segment(combined, &header, instance, in_edge, &segment, bytes + at + sizeof segment);
        at += cpl_segment_bytes(&segment);
    }
    if (instance)
        note_source(combined, header.plan, instance, in_edge);
}

static void post_receive(struct cpl_combined *combined, int k)
{
    PMPI_Irecv(combined->receives.buffer + (size_t)k * CPL_COMBINED_BYTES, CPL_COMBINED_BYTES,
               MPI_BYTE, MPI_ANY_SOURCE, COMBINED_TAG, combined->comm,
               &combined->receives.request[k]);
}

void cpl_combined_release(struct cpl_combined *combined, bool all)
{
    double now = PMPI_Wtime();
    for (int p = 0; p < combined->n_plans; p++)
        for (int k = 0; k < N_INSTANCES; k++) {
            struct instance *instance = &combined->plan[p]->instance[k];
            bool old = instance->since > 0 && now - instance->since > combined->hold_seconds;
            if (instance->used && (all || old))
                release(combined, p, instance);
        }
}

/* Takes what has come in lanes, from each rank one combined message at a time. Returns whether any
 * has. */
static bool poll_lanes(struct cpl_combined *combined)
{
    const struct cpl_lane_ends *in = &combined->lanes.in;
    bool any = false;
    if (in->n > 0)
        cpl_work_looked(0);
    for (int32_t k = 0; k < in->n; k++) {
        int64_t bytes = 0;
        const unsigned char *message = cpl_lane_look(&in->end[k].lane, &bytes);
        if (!message)
            continue;
        any = true;
        combined->received++;
        handle(combined, in->end[k].rank, message, (size_t)bytes, k);
        cpl_lane_take(&in->end[k].lane);
    }
    return any;
}

/* Takes a message that MPI has received. Mostly it asks about the receive that was posted first:
 * for one request MPI goes on once, for several twice. Now and then it asks about all, since a long
 * message may come later than those behind it. */
static bool poll_mpi(struct cpl_combined *combined)
{
    struct cpl_combined_receives *receives = &combined->receives;
    int k = receives->next, came = 0, bytes = 0;
    MPI_Status status;
    cpl_progress_looked();
    if (++receives->n_looks % LOOKS_PER_ALL == 0)
        PMPI_Testany(CPL_COMBINED_RECEIVES, receives->request, &k, &came, &status);
    else
        PMPI_Test(&receives->request[k], &came, &status);
    if (!came || status.MPI_SOURCE < 0)
        return false;
    combined->received++;
    receives->next = (k + 1) % CPL_COMBINED_RECEIVES;
    PMPI_Get_count(&status, MPI_BYTE, &bytes);
    handle(combined, status.MPI_SOURCE, receives->buffer + (size_t)k * CPL_COMBINED_BYTES,
           (size_t)bytes, 0);
    post_receive(combined, k);
    return true;
}

/* Whether MPI is to be looked at: mostly not where lanes have brought something, else always where
 * planned messages come by it. Where all come by lanes a look at MPI takes longer than all of
 * those, and may give the core away; so ranks look at it ever more rarely while it has nothing. */
static bool is_turn_of_mpi(struct cpl_combined_receives *receives, bool any)
{
    if (any && ++receives->n_busy < MOST_BUSY)
        return false;
    receives->n_busy = 0;
    return !receives->rare || receives->looks == 0 || --receives->looks == 0;
}

static void note_mpi(struct cpl_combined *combined, bool any)
{
    struct cpl_combined_receives *receives = &combined->receives;
    int most = cpl_context.machine.shares_cores ? MOST_SHARED : MOST_OWN;
    if (!cpl_context.machine.shares_cores && combined->lanes.in.n > 0)
        most += MOST_LOOKS / combined->lanes.in.n;
    int longer = 2 * receives->pause + 1;
    receives->pause = any ? 0 : longer < most ? longer : most;
    receives->looks = receives->pause;
}

bool cpl_combined_poll(struct cpl_combined *combined)
{
    bool any = poll_lanes(combined);
    if (is_turn_of_mpi(&combined->receives, any)) {
        bool came = poll_mpi(combined);
        note_mpi(combined, came);
        any |= came;
    }
    if (!any && combined->n_holding > 0)
        cpl_combined_release(combined, false);
    return any;
}

bool cpl_combined_init(struct cpl_combined *combined, MPI_Comm comm, double hold_seconds)
{
    combined->comm = comm;
    combined->hold_seconds = hold_seconds;
    PMPI_Comm_rank(comm, &combined->rank);
    combined->receives.buffer = malloc((size_t)CPL_COMBINED_RECEIVES * CPL_COMBINED_BYTES);
    for (int k = 0; combined->receives.buffer && k < CPL_COMBINED_RECEIVES; k++)
        post_receive(combined, k);
    return combined->receives.buffer;
}

static void free_plan(struct cpl_combined *combined, struct cpl_combined_plan *plan)
{
    for (int k = 0; k < N_INSTANCES; k++)
        for (int32_t e = 0; plan->instance[k].held && e < plan->relay.slice.n_out; e++)
            if (plan->instance[k].held[e])
                cpl_send_buffers_spare(&combined->buffers, plan->instance[k].held[e]);
    cpl_relay_free(&plan->relay);
    free(plan);
}

static bool allocate_plan(struct cpl_combined_plan *plan)
{
    struct cpl_arena *arena = &plan->relay.arena;
    const struct cpl_rank_plan *slice = &plan->relay.slice;
    for (int k = 0; k < N_INSTANCES; k++) {
        struct instance *instance = &plan->instance[k];
        instance->missing = CPL_ARENA_ARRAY(arena, int32_t, slice->n_out);
        instance->held = CPL_ARENA_ARRAY(arena, struct cpl_send_buffer *, slice->n_out);
        instance->came = CPL_ARENA_ARRAY(arena, bool, slice->n_in + 1);
        if (!instance->missing || !instance->held || !instance->came)
            return false;
    }
    return true;
}

struct cpl_combined_counts cpl_combined_counts(const struct cpl_combined *combined, int plan)
{
    return combined->plan[plan]->count;
}

int cpl_combined_add_plan(struct cpl_combined *combined, int32_t *words, int32_t n_words)
{
    struct cpl_combined_plan *plan =
        combined->n_plans < CPL_MAX_COMBINED_PLANS ? calloc(1, sizeof *plan) : NULL;
    if (!plan) {
        free(words);
        return CPL_NO_PLAN;
    }
    if (!cpl_relay_init(&plan->relay, words, n_words) || !allocate_plan(plan)) {
        free_plan(combined, plan);
        return CPL_NO_PLAN;
    }
    combined->plan[combined->n_plans] = plan;
    return combined->n_plans++;
}

/* ---- lanes */

/* What an edge's combined message may take: its header, payloads of twice the size, and heads. The
 * plan has one payload for all messages from one rank to another, each of which has a head, and few
 * of which are shorter than a number. */
static int64_t bytes_of(int64_t volume, int32_t n_payloads)
{
    const int64_t padding = 7, number = 8;
    int64_t n = n_payloads + volume / number, most = (int64_t)n_payloads * MOST_MESSAGES;
    int64_t heads = (n < most ? n : most) * ((int64_t)sizeof(struct cpl_segment) + padding);
    int64_t bytes = (int64_t)sizeof(struct header) + 2 * volume + heads;
    return bytes < CPL_LANE_MOST ? bytes : CPL_LANE_MOST;
}

/* Lists all ranks, with the room of one lane for all edges that lead there, or come from there.
 * Returns false when memory ran out. */
static bool list_side(const struct cpl_combined *combined, struct cpl_lane_ends *side, bool out,
                      int n_ranks)
{
    side->end = calloc((size_t)n_ranks, sizeof *side->end);
    side->n = side->end ? n_ranks : 0;
    for (int32_t r = 0; r < side->n; r++)
        side->end[r].rank = r;
    for (int k = 0; k < combined->n_plans && side->end; k++) {
        const struct cpl_rank_plan *p = &combined->plan[k]->relay.slice;
        const int32_t *rank = out ? p->out_to : p->in_from;
        const int32_t *first = out ? p->out_first : p->in_first;
        for (int32_t e = 0; e < (out ? p->n_out : p->n_in); e++) {
            int64_t volume = out ? cpl_rank_plan_out_volume(p, e) : cpl_rank_plan_in_volume(p, e);
            int64_t bytes = bytes_of(volume, first[e + 1] - first[e]);
            int64_t *room = &side->end[rank[e]].lane.room;
            *room = bytes > *room ? bytes : *room;
        }
    }
    return side->end;
}

static void free_lanes(struct cpl_lanes *lanes)
{
    cpl_lanes_close(lanes);
    free(lanes->out.end);
    free(lanes->in.end);
    *lanes = (struct cpl_lanes){.memory = NULL};
}

void cpl_combined_open_lanes(struct cpl_combined *combined, MPI_Comm comm, bool able)
{
    struct cpl_lanes *lanes = &combined->lanes;
    int size = 0;
    PMPI_Comm_size(comm, &size);
    bool ready = able && list_side(combined, &lanes->out, true, size) &&
                 list_side(combined, &lanes->in, false, size);
    if (!cpl_lanes_open(lanes, comm, ready))
        free_lanes(lanes);
    const struct cpl_lane_ends all = lanes->in;
    combined->receives.rare = lanes->in.end;
    lanes->in.n = 0; /* those that were opened */
    for (int32_t k = 0; k < all.n; k++)
        if (all.end[k].lane.shared)
            lanes->in.end[lanes->in.n++] = all.end[k];
        else
            combined->receives.rare &= all.end[k].lane.room == 0;
}

void cpl_combined_free(struct cpl_combined *combined)
{
    for (int k = 0; combined->receives.buffer && k < CPL_COMBINED_RECEIVES; k++) {
        PMPI_Cancel(&combined->receives.request[k]);
        PMPI_Wait(&combined->receives.request[k], MPI_STATUS_IGNORE);
    }
    for (int p = 0; p < combined->n_plans; p++)
        free_plan(combined, combined->plan[p]);
    cpl_send_buffers_free(&combined->buffers);
    free_lanes(&combined->lanes);
    free(combined->receives.buffer);
    *combined = (struct cpl_combined){.comm = MPI_COMM_NULL};
}
