/* The executor (executor.h). */
#include "shim/carry/executor.h"

#include "shim/base/log.h"
#include "shim/base/work.h"
#include "shim/carry/ends.h"
#include "shim/state/context.h"
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

_Static_assert(sizeof(struct header) == CPL_END_HEADER, "ends have room for the header");

enum {
    FLAG_LENGTHS = 1, /* the table of lengths follows the payloads */
    FLAG_LATER = 2    /* the payloads follow in a message of their own */
};

#define LENGTH_STRAIGHT UINT32_MAX /* in a table of lengths: sent straight by its owner */

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
    MPI_Request *receive; /* 2 * n_in */
    int32_t *received;    /* 2 * n_in: in-edge of each receive */
    MPI_Request *send;    /* 2 * n_out */
    int *arrived;         /* for Waitsome */
    MPI_Status *status;
    int32_t *lane; /* n_in: in-edges in lanes on which nothing has come */
    int32_t *full; /* n_out: out-edges that wait for a slot */
};

/* The segments of the plan. */
struct segments {
    int32_t *in_edge;     /* per in-segment */
    uint32_t *in_length;  /* per in-segment */
    int64_t *in_offset;   /* per in-segment, from the start of the payloads */
    uint32_t *out_length; /* per out-segment */
};

struct cpl_executor {
    struct cpl_relay relay;
    MPI_Comm comm;
    int first_tag;
    uint32_t exchange;
    int64_t forwarded;
    struct cpl_end *in, *out;
    struct segments segments;
    int32_t *missing; /* per out-edge (relay.h) */
    struct cpl_lanes lanes;
    struct wires wires;
    struct run run; /* the present one */
};

#define MAKE(at, n) ((at = cpl_arena_alloc(arena, (size_t)(n), sizeof *(at))) != NULL)
static bool allocate(struct cpl_executor *x)
{
    struct cpl_arena *arena = &x->relay.arena;
    const struct cpl_rank_plan *p = &x->relay.slice;
    struct wires *w = &x->wires;
    struct segments *segments = &x->segments;
    const size_t n_receives = 2 * (size_t)p->n_in, n_sends = 2 * (size_t)p->n_out;
    if (!MAKE(x->in, p->n_in) || !MAKE(x->out, p->n_out) || !MAKE(x->missing, p->n_out) ||
        !MAKE(segments->in_length, p->n_in_segments) ||
        !MAKE(segments->in_edge, p->n_in_segments) ||
        !MAKE(segments->in_offset, p->n_in_segments) ||
        !MAKE(segments->out_length, p->n_out_segments) || !MAKE(w->receive, n_receives) ||
        !MAKE(w->received, n_receives) || !MAKE(w->send, n_sends) ||
        !MAKE(w->arrived, n_receives) || !MAKE(w->status, n_receives) || !MAKE(w->lane, p->n_in) ||
        !MAKE(w->full, p->n_out))
        return false;
    for (int32_t e = 0; e < p->n_in; e++)
        for (int32_t s = p->in_first[e]; s < p->in_first[e + 1]; s++)
            x->segments.in_edge[s] = e;
    bool done = true;
    for (int32_t e = 0; e < p->n_in && done; e++)
        done = cpl_end_make(&x->in[e], cpl_rank_plan_in_volume(p, e),
                            p->in_first[e + 1] - p->in_first[e]);
    for (int32_t e = 0; e < p->n_out && done; e++)
        done = cpl_end_make(&x->out[e], cpl_rank_plan_out_volume(p, e),
                            p->out_first[e + 1] - p->out_first[e]);
    return done;
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
    for (int32_t e = 0; executor->in && e < executor->relay.slice.n_in; e++)
        cpl_end_free(&executor->in[e]);
    for (int32_t e = 0; executor->out && e < executor->relay.slice.n_out; e++)
        cpl_end_free(&executor->out[e]);
    cpl_lanes_close(&executor->lanes);
    cpl_relay_free(&executor->relay);
    free(executor);
}

int64_t cpl_executor_forwarded(const struct cpl_executor *executor)
{
    return executor->forwarded;
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

static int wave_tag(const struct cpl_executor *x, int32_t wave)
{
    return x->first_tag + wave;
}

static int later_tag(const struct cpl_executor *x, int32_t wave)
{
    return x->first_tag + CPL_EXECUTOR_TAGS / 2 + wave;
}

/* Posts a receive on in-edge e. */
static void receive(struct cpl_executor *x, int32_t e, unsigned char *to, int64_t bytes, int tag)
{
    int k = x->run.n_receives++;
    x->wires.received[k] = e;
    note_start(x,
               PMPI_Irecv(to, (int)bytes, MPI_BYTE, x->relay.slice.in_from[e], tag, x->comm,
                          &x->wires.receive[k]),
               &x->wires.receive[k]);
}

static void post_receives(struct cpl_executor *x)
{
    for (int32_t e = 0; e < x->relay.slice.n_in; e++) {
        if (x->in[e].lane.shared)
            x->wires.lane[x->run.n_lanes++] = e;
        else
            receive(x, e, x->in[e].buffer, cpl_end_message_bytes(&x->in[e], x->in[e].room),
                    wave_tag(x, x->relay.slice.in_wave[e]));
    }
}

static uint32_t length_word(int64_t size)
{
    return size == CPL_STRAIGHT ? LENGTH_STRAIGHT : (uint32_t)size;
}

static int64_t riding_bytes(uint32_t length)
{
    return length == LENGTH_STRAIGHT ? 0 : length;
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
        uint32_t length =
            source >= 0 ? x->segments.in_length[source]
                        : length_word(x->run.payloads.size(x->run.payloads.context, -1 - source));
        changed |= length != x->segments.out_length[s];
        x->segments.out_length[s] = length;
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
        int64_t bytes = riding_bytes(x->segments.out_length[s]);
        if (bytes == 0)
            continue;
        if (source >= 0) {
            const struct cpl_end *in = &x->in[x->segments.in_edge[source]];
            memcpy(to, in->payload + x->segments.in_offset[source], (size_t)bytes);
            if (x->relay.next[source] == s)
                x->forwarded += bytes;
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
    struct cpl_end *out = &x->out[e];
    const bool later = out->bytes > out->room, in_lane = out->lane.shared;
    const int64_t table = changed || later ? cpl_end_table_bytes(out) : 0;
    const int64_t first = (int64_t)sizeof(struct header) + table;
    const struct header header = {(table ? FLAG_LENGTHS : 0) | (later ? FLAG_LATER : 0),
                                  x->exchange};
    if (later && !cpl_end_enlarge(out, out->bytes)) {
        note_error(x, MPI_ERR_NO_MEM);
        return;
    }
    message = in_lane ? message : out->buffer;
    unsigned char *payloads = (later ? out->buffer : message) + first;
    memcpy(message, &header, sizeof header);
    memcpy(message + sizeof header, x->segments.out_length + p->out_first[e], (size_t)table);
    copy_payloads(x, e, payloads);
    int64_t bytes = first + (later ? 0 : out->bytes);
    if (in_lane)
        cpl_lane_send(&out->lane, bytes);
    else
        send_by_mpi(x, message, bytes, p->out_to[e], wave_tag(x, p->out_wave[e]));
    if (later)
        send_by_mpi(x, payloads, out->bytes, p->out_to[e], later_tag(x, p->out_wave[e]));
}

/* Sends out-edge e; false: its lane has no slot for it yet. */
static bool try_send(struct cpl_executor *x, int32_t e)
{
    struct cpl_end *out = &x->out[e];
    unsigned char *slot = out->lane.shared ? cpl_lane_next(&out->lane) : NULL;
    if (out->lane.shared && !slot)
        return false;
    if (x->relay.slice.out_waits[e] > 0)
        cpl_relay_delay();
    send_message(x, e, slot, update_lengths(x, e));
    return true;
}

static void send_edge(struct cpl_executor *x, int32_t e)
{
    if (!try_send(x, e))
        x->wires.full[x->run.n_full++] = e;
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

static void broken_message(struct cpl_executor *x, int32_t e, const char *what)
{
    cpl_log(CPL_LOG_ERROR, "execute", "a combined message from rank %d is damaged: %s",
            x->relay.slice.in_from[e], what);
    note_error(x, MPI_ERR_INTERN);
}

/* Takes over a table of lengths. */
static void read_lengths(struct cpl_executor *x, int32_t e, const unsigned char *table)
{
    int32_t first = x->relay.slice.in_first[e], end = x->relay.slice.in_first[e + 1];
    int64_t bytes = 0;
    memcpy(x->segments.in_length + first, table, (size_t)cpl_end_table_bytes(&x->in[e]));
    for (int32_t s = first; s < end; s++) {
        x->segments.in_offset[s] = bytes;
        bytes += riding_bytes(x->segments.in_length[s]);
    }
    x->in[e].bytes = bytes;
    x->in[e].used = true;
}

/* Posts the receive of payloads that follow in a message of their own. */
static void await_payload(struct cpl_executor *x, int32_t e)
{
    struct cpl_end *in = &x->in[e];
    if (!cpl_end_enlarge(in, in->bytes)) {
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
    struct cpl_end *in = &x->in[e];
    struct header header;
    memcpy(&header, message, sizeof header);
    int64_t table = header.flags & FLAG_LENGTHS ? cpl_end_table_bytes(in) : 0;
    if (received < (int64_t)sizeof header + table || header.exchange != x->exchange ||
        (!table && !in->used)) {
        broken_message(x, e, "wrong length or exchange");
        return false;
    }
    if (table)
        read_lengths(x, e, message + sizeof header);
    if (header.flags & FLAG_LATER) {
        await_payload(x, e);
        return false;
    }
    in->payload = message + sizeof header + table;
    bool fits = received == (int64_t)sizeof header + table + in->bytes;
    if (!fits)
        broken_message(x, e, "its lengths do not add up");
    return fits;
}

static void deliver(struct cpl_executor *x, int32_t e)
{
    const struct cpl_rank_plan *p = &x->relay.slice;
    const unsigned char *payload = x->in[e].payload;
    int64_t n_delivered = 0, delivered = 0;
    for (int32_t s = p->in_first[e]; s < p->in_first[e + 1]; s++) {
        if (p->in_owner[s] < 0)
            continue;
        int64_t bytes =
            x->segments.in_length[s] == LENGTH_STRAIGHT ? CPL_STRAIGHT : x->segments.in_length[s];
        note_error(x, x->run.payloads.deliver(x->run.payloads.context, p->in_owner[s],
                                              payload + x->segments.in_offset[s], bytes));
        n_delivered++;
        delivered += riding_bytes(x->segments.in_length[s]);
    }
    cpl_work_combined(n_delivered, delivered);
}

/* All of in-edge e is here: what waited for it leaves first, then this rank takes its own. */
static void complete_edge(struct cpl_executor *x, int32_t e)
{
    const int32_t *waiting;
    int32_t n = cpl_relay_waiting(&x->relay, e, &waiting);
    for (int32_t k = 0; k < n; k++)
        if (--x->missing[waiting[k]] == 0)
            send_edge(x, waiting[k]);
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
        const unsigned char *message = cpl_lane_look(&x->in[open[k]].lane, &bytes);
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
        int32_t e = x->wires.received[x->wires.arrived[k]];
        struct cpl_end *in = &x->in[e];
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
    const int32_t *own;
    int32_t n_own = cpl_relay_waiting(&x->relay, CPL_RELAY_OWN, &own);
    for (int32_t k = 0; k < n_own; k++)
        if (--x->missing[own[k]] == 0)
            send_edge(x, own[k]);
}

/* All has come and is sent: the lanes' slots are the writers' again. */
static void give_back_slots(struct cpl_executor *x)
{
    for (int32_t e = 0; x->lanes.memory && e < x->relay.slice.n_in; e++)
        if (x->in[e].lane.shared)
            cpl_lane_take(&x->in[e].lane);
}

/* Takes what MPI has received. Returns whether anything has come. */
static bool look_at_mpi(struct cpl_executor *x)
{
    const struct wires *w = &x->wires;
    int n = 0;
    int code = PMPI_Testsome(x->run.n_receives, w->receive, &n, w->arrived, w->status);
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
    int n_idle = 0;
    while (x->run.n_open > 0 || x->run.n_full > 0) {
        if (cpl_progress_needed() || x->run.n_lanes > 0 || x->run.n_full > 0) {
            n_idle = look(x) ? 0 : n_idle + 1;
            if (n_idle > 0)
                cpl_progress_pause(n_idle);
        } else {
            int n = 0, code = cpl_collective_waitsome(x->run.n_receives, w->receive, &n, w->arrived,
                                                      w->status);
            take_arrivals(x, n, code);
        }
    }
    note_error(x, cpl_collective_waitall(x->run.n_sends, x->wires.send, MPI_STATUSES_IGNORE));
    give_back_slots(x);
    return x->run.result;
}

void cpl_executor_open_lanes(struct cpl_executor *x, MPI_Comm comm)
{
    struct cpl_lanes none;
    struct cpl_lane_ends no_ends = {.n = 0};
    if (x)
        cpl_ends_open_lanes(&x->relay.slice, x->out, x->in, comm, &x->lanes);
    else
        cpl_lanes_open(&none, comm, false, &no_ends, &no_ends);
}
