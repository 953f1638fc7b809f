/* Rides (rides.h). */
#include "shim/carry/rides.h"

#include "shim/base/log.h"
#include "shim/base/work.h"
#include "shim/state/context.h"

#include <stdlib.h>
#include <string.h>

#define RIDE_TAG      1000
#define REDUCTION     (-2) /* plan of a reduction's message: instance is number, wave step */
#define N_RECEIVES    8
#define MOST_SHARED   31 /* rounds of looks at lanes between two at MPI, where ranks share cores */
#define MOST_OWN      3  /* and where they do not */
#define MOST_LOOKS    64 /* at single lanes, where they do not and all planned rides go by lanes */
#define MOST_BUSY     8  /* rounds in which lanes have brought something */
#define LOOKS_PER_ALL 16 /* at the receive that was posted first, for one at all */
#define N_INSTANCES   8  /* of a plan that can be under way at once, a power of two */
#define ALIGN_BITS    16 /* of a number, for instances after an alignment */

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
    bool late;    /* something left before all had come */
    int32_t n_left;
    int32_t *missing;         /* per out-edge (relay.h) */
    struct cpl_flight **held; /* per out-edge: what it holds; NULL: nothing */
    bool *came;               /* per source, from CPL_RELAY_OWN */
};

struct cpl_ride_plan {
    struct cpl_relay relay;
    struct cpl_ride_counts count;
    uint32_t mine;          /* instances that this rank has begun */
    struct cpl_lane **lane; /* per out-edge; NULL: MPI carries it */
    struct instance instance[N_INSTANCES];
};

/* A ride with room for so many bytes of segments. */
static struct cpl_flight *take_flight(struct cpl_rides *rides, size_t bytes)
{
    return cpl_flights_take(&rides->flights, sizeof(struct header), bytes);
}

/* Sends a ride: by a lane that has room for it, else by MPI. */
static void take_off(struct cpl_rides *rides, struct cpl_flight *flight, int dest,
                     struct cpl_lane *lane, struct header header)
{
    bool fits = lane && (int64_t)flight->used <= lane->room;
    unsigned char *slot = fits ? cpl_lane_next(lane) : NULL;
    header.n_segments = flight->n_segments;
    cpl_work_combined(flight->n_segments, (int64_t)flight->used);
    memcpy(flight->bytes, &header, sizeof header);
    if (slot) {
        memcpy(slot, flight->bytes, flight->used);
        cpl_lane_send(lane, (int64_t)flight->used);
        rides->sent++;
        cpl_flights_spare(&rides->flights, flight);
    } else if (cpl_flights_send(&rides->flights, flight, dest, RIDE_TAG, rides->comm)) {
        rides->sent++;
    }
}

/* Sends a ride that goes by no plan. */
static void send_unplanned(struct cpl_rides *rides, struct cpl_flight *flight, int dest)
{
    take_off(rides, flight, dest, cpl_ride_lanes_to(&rides->lanes, dest),
             (struct header){.plan = CPL_NO_PLAN});
}

/* Segments in memory, as many at a time as a ride carries. */
void cpl_rides_send(struct cpl_rides *rides, int dest, const unsigned char *segments, size_t bytes,
                    uint32_t n)
{
    while (n > 0) {
        size_t part = 0;
        uint32_t n_part = 0;
        while (n_part < n) {
            struct cpl_segment segment;
            memcpy(&segment, segments + part, sizeof segment);
            size_t more = cpl_segment_bytes(&segment);
            if (n_part > 0 && sizeof(struct header) + part + more > CPL_RIDE_BYTES)
                break;
            part += more;
            n_part++;
        }
        struct cpl_flight *flight = take_flight(rides, part);
        memcpy(flight->bytes + flight->used, segments, part);
        flight->used += part;
        flight->n_segments = n_part;
        send_unplanned(rides, flight, dest);
        segments += part;
        bytes -= part;
        n -= n_part;
    }
}

struct cpl_flight *cpl_rides_open(struct cpl_rides *rides, size_t bytes)
{
    return take_flight(rides, bytes);
}

void cpl_rides_send_reduction(struct cpl_rides *rides, struct cpl_flight *flight, int dest,
                              uint32_t number, int32_t step)
{
    take_off(rides, flight, dest, cpl_ride_lanes_to(&rides->lanes, dest),
             (struct header){REDUCTION, number, step, 0});
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
static int send_alone(struct cpl_rides *rides, const struct cpl_segment *segment,
                      const unsigned char *payload, const struct cpl_span *span)
{
    struct cpl_segment alone = *segment;
    struct cpl_flight *flight = take_flight(rides, cpl_segment_bytes(segment));
    alone.slot = CPL_NO_SLOT;
    int result = copy_payload(cpl_flight_append(flight, &alone), &alone, payload, span);
    if (result == MPI_SUCCESS)
        send_unplanned(rides, flight, alone.dest);
    else
        cpl_flights_spare(&rides->flights, flight);
    return result;
}

/* Lets an out-edge go with what it holds. */
static void leave(struct cpl_rides *rides, int p, struct instance *instance, int32_t e)
{
    const struct cpl_rank_plan *slice = &rides->plan[p]->relay.slice;
    struct cpl_flight *held = instance->held[e];
    struct cpl_flight *flight = held ? held : take_flight(rides, 0);
    rides->n_holding -= held != NULL;
    instance->held[e] = NULL;
    take_off(rides, flight, slice->out_to[e], rides->plan[p]->lane[e],
             (struct header){p, instance->number, slice->out_wave[e], 0});
    rides->plan[p]->count.rides++;
    if (++instance->n_left == slice->n_out)
        instance->used = false;
}

/* A source of an instance has come: what waited for it leaves. */
static void note_source(struct cpl_rides *rides, int p, struct instance *instance, int32_t source)
{
    bool *came = &instance->came[source - CPL_RELAY_OWN];
    if (!instance->used || *came)
        return;
    *came = true;
    const int32_t *edges;
    int32_t n = cpl_relay_waiting(&rides->plan[p]->relay, source, &edges);
    for (int32_t k = 0; k < n; k++)
        if (--instance->missing[edges[k]] == 0) {
            rides->in_time++;
            leave(rides, p, instance, edges[k]);
        }
}

/* Lets everything go that an instance holds, and ends it. */
static void release(struct cpl_rides *rides, int p, struct instance *instance)
{
    for (int32_t e = 0; e < rides->plan[p]->relay.slice.n_out; e++)
        if (instance->held[e]) {
            rides->late++;
            rides->plan[p]->count.late++;
            instance->late = true;
            leave(rides, p, instance, e);
        }
    instance->used = false;
}

/* Begins the instance of a number in its place; NULL when it is over. */
static struct instance *begin_instance(struct cpl_rides *rides, int p, struct instance *instance,
                                       uint32_t number, bool ends)
{
    struct cpl_ride_plan *plan = rides->plan[p];
    if ((int32_t)(number - instance->number) <= 0) {
        rides->tardy += ends && number == instance->number && instance->late;
        return NULL; /* it has been here; numbers begin with 1 */
    }
    if (instance->used)
        release(rides, p, instance);
    instance->used = plan->relay.slice.n_out > 0;
    instance->number = number;
    instance->since = 0;
    instance->late = false;
    instance->n_left = 0;
    cpl_relay_begin(&plan->relay, instance->missing);
    memset(instance->came, 0, ((size_t)plan->relay.slice.n_in + 1) * sizeof *instance->came);
    return instance->used ? instance : NULL;
}

/* The instance of a number; NULL when it is over. `ends`: a source of it has come. */
static inline struct instance *find_instance(struct cpl_rides *rides, int p, uint32_t number,
                                             bool ends)
{
    struct instance *instance =
        &rides->plan[p]->instance[(number + (number >> ALIGN_BITS)) % N_INSTANCES];
    return instance->used && instance->number == number
               ? instance
               : begin_instance(rides, p, instance, number, ends);
}

/* Whether an out-edge can still take a segment. */
static bool has_place(const struct instance *instance, int32_t e, const struct cpl_segment *segment)
{
    const struct cpl_flight *held = instance->held[e];
    return instance->missing[e] > 0 &&
           (!held || held->used + cpl_segment_bytes(segment) <= CPL_RIDE_BYTES);
}

/* Puts a segment into its place of an instance, an out-segment (-1: none); straight to its
 * destination when that has left. Returns the error of packing it: then it is not sent. */
static int put(struct cpl_rides *rides, const struct cpl_relay *relay, struct instance *instance,
               int32_t place, const struct cpl_segment *segment, const unsigned char *payload,
               const struct cpl_span *span)
{
    int32_t e = place >= 0 ? relay->out_edge[place] : -1;
    if (e < 0 || !instance || !has_place(instance, e, segment))
        return send_alone(rides, segment, payload, span);
    struct cpl_flight *held = instance->held[e];
    struct cpl_flight *flight = held ? held : take_flight(rides, cpl_segment_bytes(segment));
    struct cpl_segment riding = *segment;
    riding.slot = place - relay->slice.out_first[e];
    size_t used = flight->used;
    int result = copy_payload(cpl_flight_append(flight, &riding), segment, payload, span);
    if (result != MPI_SUCCESS) {
        flight->used = used;
        flight->n_segments--;
        if (!held)
            cpl_flights_spare(&rides->flights, flight);
        return result;
    }
    rides->n_holding += !held;
    instance->held[e] = flight;
    if (instance->since <= 0)
        instance->since = PMPI_Wtime();
    return MPI_SUCCESS;
}

void cpl_rides_begin(struct cpl_rides *rides, int plan)
{
    rides->plan[plan]->mine++;
}

void cpl_rides_align(struct cpl_rides *rides)
{
    rides->n_aligned++;
    for (int p = 0; p < rides->n_plans; p++)
        rides->plan[p]->mine = rides->n_aligned << ALIGN_BITS;
}

static int put_own(struct cpl_rides *rides, int plan, int32_t k, const struct cpl_segment *segment,
                   const unsigned char *payload, const struct cpl_span *span)
{
    const struct cpl_relay *relay = &rides->plan[plan]->relay;
    int32_t place = k >= 0 && k < relay->slice.n_payloads ? relay->next[-1 - k] : -1;
    struct instance *instance = find_instance(rides, plan, rides->plan[plan]->mine, false);
    return put(rides, relay, instance, place, segment, payload, span);
}

void cpl_rides_put(struct cpl_rides *rides, int plan, int32_t k, const struct cpl_segment *segment,
                   const unsigned char *payload)
{
    put_own(rides, plan, k, segment, payload, NULL);
}

int cpl_rides_put_span(struct cpl_rides *rides, int plan, int32_t k,
                       const struct cpl_segment *segment, const struct cpl_span *span)
{
    return put_own(rides, plan, k, segment, NULL, span);
}

void cpl_rides_end(struct cpl_rides *rides, int plan)
{
    struct instance *instance = find_instance(rides, plan, rides->plan[plan]->mine, true);
    if (instance)
        note_source(rides, plan, instance, CPL_RELAY_OWN);
}

/* The next instance has the same number: what others hold for this one is late once, not from now
 * on. */
void cpl_rides_abandon(struct cpl_rides *rides, int plan)
{
    cpl_rides_end(rides, plan);
    rides->plan[plan]->mine--;
}

static bool is_in_edge(const struct cpl_rank_plan *slice, int32_t e, int32_t from, int32_t wave)
{
    return e < slice->n_in && slice->in_wave[e] == wave && slice->in_from[e] == from;
}

/* In-edges are in the order of waves, then senders. `guess` may be the one. */
static int32_t find_in_edge(const struct cpl_rank_plan *slice, int32_t from, int32_t wave,
                            int32_t guess)
{
    int32_t low = 0, high = slice->n_in;
    if (is_in_edge(slice, guess, from, wave))
        return guess;
    while (low < high) {
        int32_t e = (low + high) / 2;
        if (slice->in_wave[e] < wave || (slice->in_wave[e] == wave && slice->in_from[e] < from))
            low = e + 1;
        else
            high = e;
    }
    return is_in_edge(slice, low, from, wave) ? low : -1;
}

/* A segment of a ride: delivered, forwarded by the plan, or sent straight to its destination. */
static void handle_segment(struct cpl_rides *rides, const struct header *header,
                           struct instance *instance, int32_t in_edge,
                           const struct cpl_segment *segment, const unsigned char *payload)
{
    if (segment->dest == rides->rank) {
        rides->deliver(rides->context, segment, payload);
        return;
    }
    if (in_edge >= 0)
        rides->plan[header->plan]->count.forwarded += segment->payload_bytes;
    for (double end = rides->delay_seconds > 0 ? PMPI_Wtime() + rides->delay_seconds : 0;
         end > 0 && PMPI_Wtime() < end;)
        ;
    const struct cpl_relay *relay = in_edge >= 0 ? &rides->plan[header->plan]->relay : NULL;
    const int32_t *first = relay ? relay->slice.in_first + in_edge : NULL;
    bool known = first && segment->slot >= 0 && segment->slot < first[1] - first[0];
    put(rides, relay, instance, known ? relay->next[first[0] + segment->slot] : -1, segment,
        payload, NULL);
}

/* A ride that has come, perhaps by the in-edge `guess`. */
static void handle_ride(struct cpl_rides *rides, int from, const unsigned char *bytes, size_t n,
                        int32_t guess)
{
    struct header header;
    struct instance *instance = NULL;
    int32_t in_edge = -1;
    memcpy(&header, bytes, sizeof header);
    cpl_work_combined(header.n_segments, (int64_t)n);
    if (header.plan == REDUCTION) {
        rides->reduction(rides->context, header.instance, header.wave, bytes + sizeof header,
                         n - sizeof header);
        return;
    }
    if (header.plan >= 0 && header.plan < rides->n_plans) {
        in_edge = find_in_edge(&rides->plan[header.plan]->relay.slice, from, header.wave, guess);
        if (in_edge >= 0)
            instance = find_instance(rides, header.plan, header.instance, true);
    }
    size_t at = sizeof header;
    for (uint32_t k = 0; k < header.n_segments && at + sizeof(struct cpl_segment) <= n; k++) {
        struct cpl_segment segment;
        memcpy(&segment, bytes + at, sizeof segment);
        handle_segment(rides, &header, instance, in_edge, &segment, bytes + at + sizeof segment);
        at += cpl_segment_bytes(&segment);
    }
    if (instance)
        note_source(rides, header.plan, instance, in_edge);
}

static void post_receive(struct cpl_rides *rides, int k)
{
    PMPI_Irecv(rides->receives.buffer + (size_t)k * CPL_RIDE_BYTES, CPL_RIDE_BYTES, MPI_BYTE,
               MPI_ANY_SOURCE, RIDE_TAG, rides->comm, &rides->receives.request[k]);
}

static void release_old(struct cpl_rides *rides)
{
    double now = PMPI_Wtime();
    for (int p = 0; p < rides->n_plans; p++)
        for (int k = 0; k < N_INSTANCES; k++) {
            struct instance *instance = &rides->plan[p]->instance[k];
            if (instance->used && instance->since > 0 &&
                now - instance->since > rides->hold_seconds)
                release(rides, p, instance);
        }
}

/* Takes what has come in lanes, from each rank one ride at a time. Returns whether any has. */
static bool poll_lanes(struct cpl_rides *rides)
{
    const struct cpl_ride_side *in = &rides->lanes.in;
    bool any = false;
    if (in->n > 0)
        cpl_work_looked(0);
    for (int32_t k = 0; k < in->n; k++) {
        int64_t bytes = 0;
        const unsigned char *ride = cpl_lane_look(&in->lane[k], &bytes);
        if (!ride)
            continue;
        any = true;
        rides->received++;
        handle_ride(rides, in->rank[k], ride, (size_t)bytes, k);
        cpl_lane_take(&in->lane[k]);
    }
    return any;
}

/* Takes a ride that MPI has received. It looks at the receive that was posted first, mostly: for
 * one request MPI goes on once, for several twice; a long ride may come later than those behind it.
 */
static bool poll_mpi(struct cpl_rides *rides)
{
    struct cpl_ride_receives *receives = &rides->receives;
    int k = receives->next, came = 0, bytes = 0;
    MPI_Status status;
    if (++receives->n_looks % LOOKS_PER_ALL == 0)
        PMPI_Testany(N_RECEIVES, receives->request, &k, &came, &status);
    else
        PMPI_Test(&receives->request[k], &came, &status);
    if (!came || status.MPI_SOURCE < 0)
        return false;
    rides->received++;
    receives->next = (k + 1) % N_RECEIVES;
    PMPI_Get_count(&status, MPI_BYTE, &bytes);
    handle_ride(rides, status.MPI_SOURCE, receives->buffer + (size_t)k * CPL_RIDE_BYTES,
                (size_t)bytes, 0);
    post_receive(rides, k);
    return true;
}

/* Whether MPI is to be looked at: mostly not where lanes have brought something, else always where
 * planned rides come by it. Where all come by lanes a look at MPI takes longer than all of those,
 * and may give the core away; so ranks look at it ever more rarely while it has nothing. */
static bool is_turn_of_mpi(struct cpl_rides *rides, bool any)
{
    struct cpl_ride_lanes *lanes = &rides->lanes;
    if (any && ++lanes->n_busy < MOST_BUSY)
        return false;
    lanes->n_busy = 0;
    return !lanes->take_all || lanes->looks == 0 || --lanes->looks == 0;
}

static void note_mpi(struct cpl_rides *rides, bool any)
{
    int most = cpl_context.machine.shares_cores ? MOST_SHARED : MOST_OWN;
    if (!cpl_context.machine.shares_cores && rides->lanes.in.n > 0)
        most += MOST_LOOKS / rides->lanes.in.n;
    int longer = 2 * rides->lanes.pause + 1;
    rides->lanes.pause = any ? 0 : longer < most ? longer : most;
    rides->lanes.looks = rides->lanes.pause;
}

bool cpl_rides_poll(struct cpl_rides *rides)
{
    bool any = poll_lanes(rides);
    if (is_turn_of_mpi(rides, any)) {
        bool came = poll_mpi(rides);
        note_mpi(rides, came);
        any |= came;
    }
    if (!any && rides->n_holding > 0)
        release_old(rides);
    return any;
}

void cpl_rides_hold(struct cpl_rides *rides, double seconds)
{
    rides->hold_seconds = seconds;
    rides->late = rides->in_time = rides->tardy = 0;
}

void cpl_rides_release(struct cpl_rides *rides)
{
    for (int p = 0; p < rides->n_plans; p++)
        for (int k = 0; k < N_INSTANCES; k++)
            if (rides->plan[p]->instance[k].used)
                release(rides, p, &rides->plan[p]->instance[k]);
}

bool cpl_rides_init(struct cpl_rides *rides, MPI_Comm comm, double hold_seconds)
{
    rides->comm = comm;
    rides->hold_seconds = hold_seconds;
    PMPI_Comm_rank(comm, &rides->rank);
    rides->receives.request = calloc(N_RECEIVES, sizeof(MPI_Request));
    rides->receives.buffer = malloc((size_t)N_RECEIVES * CPL_RIDE_BYTES);
    if (!rides->receives.request || !rides->receives.buffer) {
        free(rides->receives.request);
        free(rides->receives.buffer);
        rides->receives.request = NULL;
        rides->receives.buffer = NULL;
        return false;
    }
    for (int k = 0; k < N_RECEIVES; k++)
        post_receive(rides, k);
    return true;
}

static void free_plan(struct cpl_rides *rides, struct cpl_ride_plan *plan)
{
    for (int k = 0; k < N_INSTANCES; k++)
        for (int32_t e = 0; plan->instance[k].held && e < plan->relay.slice.n_out; e++)
            if (plan->instance[k].held[e])
                cpl_flights_spare(&rides->flights, plan->instance[k].held[e]);
    cpl_relay_free(&plan->relay);
    free(plan);
}

static bool allocate_plan(struct cpl_ride_plan *plan)
{
    struct cpl_arena *arena = &plan->relay.arena;
    const struct cpl_rank_plan *slice = &plan->relay.slice;
    plan->lane = CPL_ARENA_ARRAY(arena, struct cpl_lane *, slice->n_out);
    bool done = plan->lane;
    for (int k = 0; k < N_INSTANCES && done; k++) {
        struct instance *instance = &plan->instance[k];
        instance->missing = CPL_ARENA_ARRAY(arena, int32_t, slice->n_out);
        instance->held = CPL_ARENA_ARRAY(arena, struct cpl_flight *, slice->n_out);
        instance->came = CPL_ARENA_ARRAY(arena, bool, slice->n_in + 1);
        done = instance->missing && instance->held && instance->came;
    }
    return done;
}

struct cpl_ride_counts cpl_rides_counts(const struct cpl_rides *rides, int plan)
{
    return rides->plan[plan]->count;
}

struct cpl_relay *cpl_rides_relay(struct cpl_rides *rides, int plan)
{
    return &rides->plan[plan]->relay;
}

int cpl_rides_add_plan(struct cpl_rides *rides, int32_t *words, int32_t n_words)
{
    struct cpl_ride_plan *plan =
        rides->n_plans < CPL_MAX_RIDE_PLANS ? calloc(1, sizeof *plan) : NULL;
    if (!plan) {
        free(words);
        return CPL_NO_PLAN;
    }
    if (!cpl_relay_init(&plan->relay, words, n_words) || !allocate_plan(plan)) {
        free_plan(rides, plan);
        return CPL_NO_PLAN;
    }
    rides->plan[rides->n_plans] = plan;
    return rides->n_plans++;
}

void cpl_rides_open_lanes(struct cpl_rides *rides, MPI_Comm comm, bool able)
{
    const struct cpl_rank_plan *slices[CPL_MAX_RIDE_PLANS];
    for (int p = 0; p < rides->n_plans; p++)
        slices[p] = &rides->plan[p]->relay.slice;
    cpl_ride_lanes_open(&rides->lanes, comm, able, slices, rides->n_plans);
    for (int p = 0; p < rides->n_plans; p++)
        for (int32_t e = 0; e < slices[p]->n_out; e++)
            rides->plan[p]->lane[e] = cpl_ride_lanes_to(&rides->lanes, slices[p]->out_to[e]);
}

void cpl_rides_free(struct cpl_rides *rides)
{
    for (int k = 0; rides->receives.request && k < N_RECEIVES; k++) {
        PMPI_Cancel(&rides->receives.request[k]);
        PMPI_Wait(&rides->receives.request[k], MPI_STATUS_IGNORE);
    }
    for (int p = 0; p < rides->n_plans; p++)
        free_plan(rides, rides->plan[p]);
    cpl_flights_free(&rides->flights);
    cpl_ride_lanes_free(&rides->lanes);
    free(rides->receives.request);
    free(rides->receives.buffer);
    *rides = (struct cpl_rides){.comm = MPI_COMM_NULL};
}
