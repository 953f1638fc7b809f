/* The executor (executor.h). */
#include "shim/carry/executor.h"

#include "shim/base/log.h"
#include "shim/base/work.h"
#include "shim/carry/lanes.h"
#include "shim/state/context.h"
#include "shim/state/memory.h"
#include "shim/wait/collective.h"
#include "shim/wait/progress.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Words before the payloads. */
struct header {
    uint32_t flags;
    uint32_t exchange; /* number of the exchange, as a check */
};

enum {
    FLAG_LENGTHS = 1, /* the table of lengths follows the payloads */
    FLAG_LATER = 2    /* the payloads follow in a message of their own */
};

#define SMALLEST_ROOM 64 /* bytes of payload that an edge has room for at least */

/* Either end of an edge: where its messages lie, and how long they may be. What MPI carries lies in
 * a buffer, what a lane carries in the lane. The room is the same at both ends. Payloads beyond it
 * travel in a message of their own, always by MPI; where MPI carries the edge, both ends then
 * enlarge the room alike. */
struct end {
    struct cpl_lane *lane; /* NULL: MPI carries the edge */
    unsigned char *buffer;
    int32_t n_segments;
    int64_t room;                 /* bytes of payload that fit */
    int64_t buffered;             /* bytes of payload that fit in the buffer */
    int64_t bytes;                /* of payload in the present message */
    const unsigned char *payload; /* in-edge: the payloads that have come */
    bool used;                    /* a table of lengths has passed */
    bool awaits_payload; /* in-edge: the first message came, the payloads are still to come */
};

/* One run. */
struct run {
    struct cpl_payloads payloads;
    int32_t n_open; /* in-edges that are not complete */
    int result;     /* first error */
    int n_receives; /* posted */
    int n_sends;
    int n_sent;      /* of these, found complete */
    int32_t n_lanes; /* in-edges in lanes on which nothing has come */
    int32_t n_full;  /* out-edges that wait for a slot of their lanes */
};

/* The requests of a run, and lists of edges that are looked at. */
struct wires {
    MPI_Request *receive; /* per in-edge */
    MPI_Request *send;    /* 2 * n_out */
    int *arrived;         /* for Waitsome, as the next */
    MPI_Status *status;
    int32_t *lane; /* n_in: in-edges in lanes on which nothing has come */
    int32_t *full; /* n_out: out-edges that wait for a slot */
};

struct cpl_executor {
    struct cpl_relay relay;
    MPI_Comm comm;
    int first_tag;
    uint32_t exchange;
    struct end *in, *out;
    int32_t *in_edge;    /* per in-segment, as the next two */
    int32_t *in_length;  /* or CPL_STRAIGHT, as in tables of lengths */
    int64_t *in_offset;  /* from the start of the payloads */
    int32_t *out_length; /* per out-segment */
    int32_t *missing;    /* per out-edge (relay.h) */
    struct cpl_lanes lanes;
    struct wires wires;
    struct run run; /* the present one */
};

static int64_t table_bytes(const struct end *end)
{
    return (int64_t)sizeof(int32_t) * end->n_segments;
}

/* Bytes of the longest message with so many of payload. */
static int64_t message_bytes(const struct end *end, int64_t room)
{
    return (int64_t)sizeof(struct header) + room + table_bytes(end);
}

/* Room for payloads of about `bytes`, with space to grow. */
static int64_t room_for(int64_t bytes)
{
    return bytes < SMALLEST_ROOM / 2 ? SMALLEST_ROOM : 2 * bytes;
}

static bool set_buffer(struct end *end, int64_t room)
{
    int64_t bytes = message_bytes(end, room);
    unsigned char *buffer = bytes <= INT_MAX ? realloc(end->buffer, (size_t)bytes) : NULL;
    if (!buffer)
        return false;
    end->buffer = buffer;
    end->buffered = room;
    return true;
}

/* Makes an end, with a buffer, of an edge that will carry about `volume` bytes of payload, and the
 * lane's that it may get. Returns false when memory ran out. */
static bool make_end(struct end *end, struct cpl_lane_end *lane, int32_t rank, int32_t wave,
                     int64_t volume, int32_t n_segments)
{
    *end = (struct end){.n_segments = n_segments, .room = room_for(volume)};
    *lane = (struct cpl_lane_end){rank, wave, {.room = message_bytes(end, end->room)}};
    return set_buffer(end, end->room);
}

/* Makes the buffer large enough for payloads that exceed the room, and for the table before them;
 * waits for memory, since others wait for the message. Returns false when it is larger than MPI can
 * count, which the log tells. */
static bool enlarge(struct end *end, int64_t bytes)
{
    int64_t room = room_for(bytes);
    int tries = 0;
    if (message_bytes(end, room) > INT_MAX) {
        cpl_log(CPL_LOG_ERROR, "execute", "a combined message of %lld bytes is too large",
                (long long)bytes);
        return false;
    }
    while (end->buffered < room && !set_buffer(end, room))
        cpl_memory_wait(&tries, "a combined message");
    if (!end->lane)
        end->room = room;
    return true;
}

static void free_buffer(struct end *end)
{
    free(end->buffer);
    end->buffer = NULL;
    end->buffered = 0;
}

/* What a lane carries needs no buffer. */
static void use_lanes(struct end *ends, const struct cpl_lane_ends *lanes)
{
    for (int32_t e = 0; e < lanes->n; e++)
        if (lanes->end[e].lane.shared) {
            ends[e].lane = &lanes->end[e].lane;
            free_buffer(&ends[e]);
        }
}

#define MAKE(at, n) ((at = cpl_arena_alloc(arena, (size_t)(n), sizeof *(at))) != NULL)
static bool allocate(struct cpl_executor *x)
{
    struct cpl_arena *arena = &x->relay.arena;
    const struct cpl_rank_plan *p = &x->relay.slice;
    struct wires *w = &x->wires;
    if (!MAKE(x->in, p->n_in) || !MAKE(x->out, p->n_out) || !MAKE(x->missing, p->n_out) ||
        !MAKE(x->in_length, p->n_in_segments) || !MAKE(x->in_edge, p->n_in_segments) ||
        !MAKE(x->in_offset, p->n_in_segments) || !MAKE(x->out_length, p->n_out_segments) ||
        !MAKE(w->receive, p->n_in) || !MAKE(w->send, 2 * (size_t)p->n_out) ||
        !MAKE(w->arrived, p->n_in) || !MAKE(w->status, p->n_in) || !MAKE(w->lane, p->n_in) ||
        !MAKE(w->full, p->n_out) || !MAKE(x->lanes.in.end, p->n_in) ||
        !MAKE(x->lanes.out.end, p->n_out))
        return false;
    x->lanes.in.n = p->n_in;
    x->lanes.out.n = p->n_out;
    for (int32_t e = 0; e < p->n_in; e++) {
        int32_t first = p->in_first[e], end = p->in_first[e + 1];
        if (!make_end(&x->in[e], &x->lanes.in.end[e], p->in_from[e], p->in_wave[e],
                      cpl_rank_plan_in_volume(p, e), end - first))
            return false;
        for (int32_t s = first; s < end; s++)
            x->in_edge[s] = e;
    }
    for (int32_t e = 0; e < p->n_out; e++)
        if (!make_end(&x->out[e], &x->lanes.out.end[e], p->out_to[e], p->out_wave[e],
                      cpl_rank_plan_out_volume(p, e), p->out_first[e + 1] - p->out_first[e]))
            return false;
    return true;
}
#undef MAKE

struct cpl_executor *cpl_executor_create(int32_t *words, int32_t n_words, MPI_Comm comm,
                                         int first_tag)
{
    struct cpl_executor *x = calloc(1, sizeof *x);
    if (!x) {
        free(words);
        return NULL;
    }
    x->comm = comm;
    x->first_tag = first_tag;
    if (cpl_relay_init(&x->relay, words, n_words) &&
        x->relay.slice.n_waves < CPL_EXECUTOR_TAGS / 2 && allocate(x))
        return x;
    cpl_executor_destroy(x);
    return NULL;
}

void cpl_executor_destroy(struct cpl_executor *executor)
{
    if (!executor)
        return;
    for (int32_t e = 0; e < executor->lanes.in.n; e++)
        free_buffer(&executor->in[e]);
    for (int32_t e = 0; e < executor->lanes.out.n; e++)
        free_buffer(&executor->out[e]);
    cpl_lanes_close(&executor->lanes);
    cpl_relay_free(&executor->relay);
    free(executor);
}

struct cpl_relay *cpl_executor_relay(struct cpl_executor *executor)
{
    return &executor->relay;
}

static void note_error(struct cpl_executor *x, int code)
{
    if (x->run.result == MPI_SUCCESS)
        x->run.result = code;
}

/* A call has returned `code` that was to start a request: MPI does not say what is in a request
 * that was not started. */
static void note_start(struct cpl_executor *x, int code, MPI_Request *request)
{
    if (code != MPI_SUCCESS)
        *request = MPI_REQUEST_NULL;
    note_error(x, code);
}

/* Of the second message of an edge; that of the first is the wave alone. */
static int later_tag(const struct cpl_executor *x, int32_t wave)
{
    return x->first_tag + CPL_EXECUTOR_TAGS / 2 + wave;
}

/* Posts a receive on in-edge e. */
static void receive(struct cpl_executor *x, int32_t e, unsigned char *to, int64_t bytes, int tag)
{
    MPI_Request *request = &x->wires.receive[e];
    x->run.n_receives++;
    note_start(
        x, PMPI_Irecv(to, (int)bytes, MPI_BYTE, x->relay.slice.in_from[e], tag, x->comm, request),
        request);
}

static void post_receives(struct cpl_executor *x)
{
    for (int32_t e = 0; e < x->relay.slice.n_in; e++) {
        x->wires.receive[e] = MPI_REQUEST_NULL;
        if (x->in[e].lane)
            x->wires.lane[x->run.n_lanes++] = e;
        else
            receive(x, e, x->in[e].buffer, message_bytes(&x->in[e], x->in[e].room),
                    x->first_tag + x->relay.slice.in_wave[e]);
    }
}

static int64_t riding_bytes(int32_t length)
{
    return length == CPL_STRAIGHT ? 0 : length;
}

/* Finds the lengths of out-edge e's segments and their sum. Returns whether any differs from the
 * last message. */
static bool update_lengths(struct cpl_executor *x, int32_t e)
{
    const struct cpl_rank_plan *p = &x->relay.slice;
    bool changed = !x->out[e].used;
    int64_t bytes = 0;
    for (int32_t s = p->out_first[e]; s < p->out_first[e + 1]; s++) {
        int32_t source = p->out_source[s];
        int32_t length = source >= 0
                             ? x->in_length[source]
                             : (int32_t)x->run.payloads.size(x->run.payloads.context, -1 - source);
        changed |= length != x->out_length[s];
        x->out_length[s] = length;
        bytes += riding_bytes(length);
    }
    x->out[e].bytes = bytes;
    x->out[e].used = true;
    return changed;
}

static void copy_payloads(struct cpl_executor *x, int32_t e, unsigned char *to)
{
    const struct cpl_rank_plan *p = &x->relay.slice;
    for (int32_t s = p->out_first[e]; s < p->out_first[e + 1]; s++) {
        int32_t source = p->out_source[s];
        int64_t bytes = riding_bytes(x->out_length[s]);
        if (bytes == 0)
            continue;
        if (source >= 0) {
            const struct end *in = &x->in[x->in_edge[source]];
            memcpy(to, in->payload + x->in_offset[source], (size_t)bytes);
            if (x->relay.next[source] == s)
                x->relay.forwarded += bytes;
        } else {
            note_error(x, x->run.payloads.pack(x->run.payloads.context, -1 - source, to));
        }
        to += bytes;
    }
    cpl_work_combined(x->out[e].n_segments, x->out[e].bytes);
}

static void send_by_mpi(struct cpl_executor *x, const void *buffer, int64_t bytes, int32_t to,
                        int tag)
{
    MPI_Request *request = &x->wires.send[x->run.n_sends++];
    note_start(x, PMPI_Isend(buffer, (int)bytes, MPI_BYTE, to, tag, x->comm, request), request);
}

/* Sends the first, mostly the only message of out-edge e, which begins at `message`: header, table
 * of lengths if it has changed, payloads. Payloads beyond the room follow in a message of their
 * own, always by MPI, after a table that tells the receiver what comes. */
static void send_message(struct cpl_executor *x, int32_t e, unsigned char *message, bool changed)
{
    const struct cpl_rank_plan *p = &x->relay.slice;
    struct end *out = &x->out[e];
    const bool later = out->bytes > out->room, in_lane = out->lane;
    const int64_t table = changed || later ? table_bytes(out) : 0;
    const int64_t first = (int64_t)sizeof(struct header) + table;
    const struct header header = {(table ? FLAG_LENGTHS : 0) | (later ? FLAG_LATER : 0),
                                  x->exchange};
    if (later && !enlarge(out, out->bytes)) {
        note_error(x, MPI_ERR_NO_MEM);
        return;
    }
    message = in_lane ? message : out->buffer;
    unsigned char *payloads = (later ? out->buffer : message) + first;
    memcpy(message, &header, sizeof header);
    memcpy(message + sizeof header, x->out_length + p->out_first[e], (size_t)table);
    copy_payloads(x, e, payloads);
    int64_t bytes = first + (later ? 0 : out->bytes);
    if (in_lane)
        cpl_lane_send(out->lane, bytes);
    else
        send_by_mpi(x, message, bytes, p->out_to[e], x->first_tag + p->out_wave[e]);
    if (later)
        send_by_mpi(x, payloads, out->bytes, p->out_to[e], later_tag(x, p->out_wave[e]));
}

/* Sends out-edge e; false: its lane has no slot for it yet. */
static bool try_send(struct cpl_executor *x, int32_t e)
{
    struct end *out = &x->out[e];
    unsigned char *slot = out->lane ? cpl_lane_next(out->lane) : NULL;
    if (out->lane && !slot)
        return false;
    if (x->relay.slice.out_waits[e] > 0)
        cpl_relay_delay();
    send_message(x, e, slot, update_lengths(x, e));
    return true;
}

/* Sends what waited for slots and has one now. Returns whether there was anything. */
static bool send_full(struct cpl_executor *x)
{
    int32_t *full = x->wires.full, n = 0, n_before = x->run.n_full;
    for (int32_t k = 0; k < n_before; k++)
        if (!try_send(x, full[k]))
            full[n++] = full[k];
    x->run.n_full = n;
    return n < n_before;
}

/* Takes over a table of lengths. */
static void read_lengths(struct cpl_executor *x, int32_t e, const unsigned char *table)
{
    int32_t first = x->relay.slice.in_first[e], end = x->relay.slice.in_first[e + 1];
    int64_t bytes = 0;
    memcpy(x->in_length + first, table, (size_t)table_bytes(&x->in[e]));
    for (int32_t s = first; s < end; s++) {
        x->in_offset[s] = bytes;
        bytes += riding_bytes(x->in_length[s]);
    }
    x->in[e].bytes = bytes;
    x->in[e].used = true;
}

/* Posts the receive of payloads that follow in a message of their own. */
static void await_payload(struct cpl_executor *x, int32_t e)
{
    struct end *in = &x->in[e];
    if (!enlarge(in, in->bytes)) {
        note_error(x, MPI_ERR_NO_MEM);
        return;
    }
    in->awaits_payload = true;
    receive(x, e, in->buffer + sizeof(struct header), in->bytes,
            later_tag(x, x->relay.slice.in_wave[e]));
}

/* Reads the first (mostly the only) message of in-edge e, which lies at `message`. Returns whether
 * its payloads are there. */
static bool read_message(struct cpl_executor *x, int32_t e, const unsigned char *message,
                         int64_t received)
{
    struct end *in = &x->in[e];
    struct header header;
    memcpy(&header, message, sizeof header);
    const int64_t table = header.flags & FLAG_LENGTHS ? table_bytes(in) : 0;
    const int64_t first = (int64_t)sizeof header + table;
    bool sound = received >= first && header.exchange == x->exchange && (table || in->used);
    if (sound && table)
        read_lengths(x, e, message + sizeof header);
    if (sound && header.flags & FLAG_LATER) {
        await_payload(x, e);
        return false;
    }
    in->payload = message + first;
    if (sound && received == first + in->bytes)
        return true;
    cpl_log(CPL_LOG_ERROR, "execute", "a combined message from rank %d is damaged",
            x->relay.slice.in_from[e]);
    note_error(x, MPI_ERR_INTERN);
    return false;
}

static void deliver(struct cpl_executor *x, int32_t e)
{
    const struct cpl_rank_plan *p = &x->relay.slice;
    const unsigned char *payload = x->in[e].payload;
    int64_t n_delivered = 0, delivered = 0;
    for (int32_t s = p->in_first[e]; s < p->in_first[e + 1]; s++) {
        if (p->in_owner[s] < 0)
            continue;
        note_error(x, x->run.payloads.deliver(x->run.payloads.context, p->in_owner[s],
                                              payload + x->in_offset[s], x->in_length[s]));
        n_delivered++;
        delivered += riding_bytes(x->in_length[s]);
    }
    cpl_work_combined(n_delivered, delivered);
}

/* A source has come: what waited for it alone leaves. */
static void note_source(struct cpl_executor *x, int32_t source)
{
    const int32_t *waiting;
    int32_t n = cpl_relay_waiting(&x->relay, source, &waiting);
    for (int32_t k = 0; k < n; k++)
        if (--x->missing[waiting[k]] == 0 && !try_send(x, waiting[k]))
            x->wires.full[x->run.n_full++] = waiting[k];
}

/* All of in-edge e is here: what waited for it leaves first, then this rank takes its own. */
static void complete_edge(struct cpl_executor *x, int32_t e)
{
    note_source(x, e);
    deliver(x, e);
    x->run.n_open--;
}

/* Takes what has come in lanes. Returns whether anything has. The slots are kept until the exchange
 * is over: what goes on may still be read there. */
static bool look_at_lanes(struct cpl_executor *x)
{
    int32_t *open = x->wires.lane, n = 0, n_before = x->run.n_lanes;
    cpl_work_looked(0);
    for (int32_t k = 0; k < n_before; k++) {
        int64_t bytes = 0;
        const unsigned char *message = cpl_lane_look(x->in[open[k]].lane, &bytes);
        if (!message)
            open[n++] = open[k];
        else if (read_message(x, open[k], message, bytes))
            complete_edge(x, open[k]);
    }
    x->run.n_lanes = n;
    return n < n_before;
}

/* Deals with n in-edges that something has arrived on; `code`: what the completion call returned.
 */
static void take_arrivals(struct cpl_executor *x, int n, int code)
{
    if (n == MPI_UNDEFINED || (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS)) {
        note_error(x, code == MPI_SUCCESS ? MPI_ERR_INTERN : code);
        x->run.n_open = 0; /* nothing is left that could arrive */
        return;
    }
    for (int k = 0; k < n; k++) {
        int32_t e = x->wires.arrived[k];
        struct end *in = &x->in[e];
        int received = 0;
        if (code == MPI_ERR_IN_STATUS && x->wires.status[k].MPI_ERROR != MPI_SUCCESS) {
            note_error(x, x->wires.status[k].MPI_ERROR);
            continue;
        }
        PMPI_Get_count(&x->wires.status[k], MPI_BYTE, &received);
        if (in->awaits_payload)
            in->payload = in->buffer + sizeof(struct header);
        else if (!read_message(x, e, in->buffer, received))
            continue;
        in->awaits_payload = false;
        complete_edge(x, e);
    }
}

void cpl_executor_start(struct cpl_executor *x, const struct cpl_payloads *payloads)
{
    x->run =
        (struct run){.payloads = *payloads, .n_open = x->relay.slice.n_in, .result = MPI_SUCCESS};
    x->exchange++;
    post_receives(x);
    cpl_relay_begin(&x->relay, x->missing);
    note_source(x, CPL_RELAY_OWN);
}

/* All has come and is sent: the lanes' slots are the writers' again. */
static void give_back_slots(struct cpl_executor *x)
{
    for (int32_t e = 0; x->lanes.memory && e < x->relay.slice.n_in; e++)
        if (x->in[e].lane)
            cpl_lane_take(x->in[e].lane);
}

/* Takes what MPI has received. Returns whether anything has come. */
static bool look_at_mpi(struct cpl_executor *x)
{
    const struct wires *w = &x->wires;
    int n = 0, code = PMPI_Testsome(x->relay.slice.n_in, w->receive, &n, w->arrived, w->status);
    if (n == 0 || (n == MPI_UNDEFINED && x->run.n_lanes > 0))
        return false;
    take_arrivals(x, n, code);
    return true;
}

/* Takes what has come and sends what can leave. Returns whether there was anything. */
static bool look(struct cpl_executor *x)
{
    int32_t n_full = x->run.n_full;
    bool any = x->run.n_lanes > 0 && look_at_lanes(x);
    if (x->run.n_open > 0 && (x->run.n_receives > 0 || x->run.n_lanes == 0))
        any |= look_at_mpi(x);
    return any | (n_full > 0 && send_full(x));
}

bool cpl_executor_progress(struct cpl_executor *x, int *result)
{
    while (x->run.n_open > 0 || x->run.n_full > 0)
        if (!look(x))
            return false;
    for (; x->run.n_sent < x->run.n_sends; x->run.n_sent++) {
        int done = 1;
        int code = PMPI_Test(&x->wires.send[x->run.n_sent], &done, MPI_STATUS_IGNORE);
        if (code == MPI_SUCCESS && !done)
            return false;
        note_error(x, code);
    }
    give_back_slots(x);
    *result = x->run.result;
    return true;
}

int cpl_executor_wait(struct cpl_executor *x)
{
    const struct wires *w = &x->wires;
    int n_idle = 0, n = 0;
    while (x->run.n_open > 0 || x->run.n_full > 0) {
        if (cpl_progress_needed() || x->run.n_lanes > 0 || x->run.n_full > 0) {
            n_idle = look(x) ? 0 : n_idle + 1;
            if (n_idle > 0)
                cpl_progress_pause(n_idle);
        } else {
            int code =
                cpl_collective_waitsome(x->relay.slice.n_in, w->receive, &n, w->arrived, w->status);
            take_arrivals(x, n, code);
        }
    }
    if (x->run.n_sends > 0)
        note_error(x, cpl_collective_waitall(x->run.n_sends, x->wires.send, MPI_STATUSES_IGNORE));
    give_back_slots(x);
    return x->run.result;
}

void cpl_executor_open_lanes(struct cpl_executor *x, MPI_Comm comm)
{
    struct cpl_lanes none = {.memory = NULL};
    cpl_lanes_open(x ? &x->lanes : &none, comm, x != NULL);
    if (!x)
        return;
    use_lanes(x->in, &x->lanes.in);
    use_lanes(x->out, &x->lanes.out);
}
