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
    struct cpl_executor *x;
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
    int64_t carried, forwarded;
    struct cpl_end *in, *out;
    struct segments segments;
    int32_t *missing; /* per out-edge (relay.h) */
    struct cpl_lanes lanes;
    struct wires wires;
    struct run run; /* the present one */
};

static bool allocate_wires(struct wires *w, struct cpl_arena *arena, const struct cpl_rank_plan *p)
{
    size_t n_receives = 2 * (size_t)p->n_in, n_sends = 2 * (size_t)p->n_out;
    w->receive = CPL_ARENA_ARRAY(arena, MPI_Request, n_receives);
    w->received = CPL_ARENA_ARRAY(arena, int32_t, n_receives);
    w->send = CPL_ARENA_ARRAY(arena, MPI_Request, n_sends);
    w->arrived = CPL_ARENA_ARRAY(arena, int, n_receives);
    w->status = CPL_ARENA_ARRAY(arena, MPI_Status, n_receives);
    w->lane = CPL_ARENA_ARRAY(arena, int32_t, p->n_in);
    w->full = CPL_ARENA_ARRAY(arena, int32_t, p->n_out);
    return w->receive && w->received && w->send && w->arrived && w->status && w->lane && w->full;
}

static bool allocate(struct cpl_executor *x)
{
    struct cpl_arena *arena = &x->relay.arena;
    const struct cpl_rank_plan *p = &x->relay.slice;
    x->in = CPL_ARENA_ARRAY(arena, struct cpl_end, p->n_in);
    x->out = CPL_ARENA_ARRAY(arena, struct cpl_end, p->n_out);
    x->segments.in_length = CPL_ARENA_ARRAY(arena, uint32_t, p->n_in_segments);
    x->segments.in_edge = CPL_ARENA_ARRAY(arena, int32_t, p->n_in_segments);
    x->segments.in_offset = CPL_ARENA_ARRAY(arena, int64_t, p->n_in_segments);
    x->segments.out_length = CPL_ARENA_ARRAY(arena, uint32_t, p->n_out_segments);
    x->missing = CPL_ARENA_ARRAY(arena, int32_t, p->n_out);
    if (!x->in || !x->out || !x->segments.in_length || !x->segments.in_edge ||
        !x->segments.in_offset || !x->segments.out_length || !x->missing ||
        !allocate_wires(&x->wires, arena, p))
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

struct cpl_executor_work cpl_executor_work(const struct cpl_executor *executor)
{
    return (struct cpl_executor_work){executor->exchange, executor->carried, executor->forwarded};
}

struct cpl_relay *cpl_executor_relay(struct cpl_executor *executor)
{
    return &executor->relay;
}

static void note_error(struct run *run, int code)
{
    if (run->result == MPI_SUCCESS)
        run->result = code;
}

/* A call has returned `code` that was to start a request: MPI does not say what is in a request
 * that was not started. */
static void note_start(struct run *run, int code, MPI_Request *request)
{
    if (code != MPI_SUCCESS)
        *request = MPI_REQUEST_NULL;
    note_error(run, code);
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
static void receive(struct run *run, int32_t e, unsigned char *to, int64_t bytes, int tag)
{
    struct cpl_executor *x = run->x;
    int k = run->n_receives++;
    x->wires.received[k] = e;
    note_start(run,
               PMPI_Irecv(to, (int)bytes, MPI_BYTE, x->relay.slice.in_from[e], tag, x->comm,
                          &x->wires.receive[k]),
               &x->wires.receive[k]);
}

static void post_receives(struct run *run)
{
    struct cpl_executor *x = run->x;
    for (int32_t e = 0; e < x->relay.slice.n_in; e++) {
        if (x->in[e].lane.shared)
            x->wires.lane[run->n_lanes++] = e;
        else
            receive(run, e, x->in[e].buffer, cpl_end_message_bytes(&x->in[e]),
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
static bool update_lengths(struct run *run, int32_t e)
{
    struct cpl_executor *x = run->x;
    const struct cpl_rank_plan *p = &x->relay.slice;
    bool changed = !x->out[e].used;
    int64_t bytes = 0;
    for (int32_t s = p->out_first[e]; s < p->out_first[e + 1]; s++) {
        int32_t source = p->out_source[s];
        uint32_t length = source >= 0
                              ? x->segments.in_length[source]
                              : length_word(run->payloads.size(run->payloads.context, -1 - source));
        changed |= length != x->segments.out_length[s];
        x->segments.out_length[s] = length;
        bytes += riding_bytes(length);
    }
    x->carried += bytes;
    x->out[e].bytes = bytes;
    x->out[e].used = true;
    return changed;
}

static const unsigned char *forwarded_payload(const struct cpl_executor *x, int32_t segment)
{
    return x->in[x->segments.in_edge[segment]].payload + x->segments.in_offset[segment];
}

static void copy_payloads(struct run *run, int32_t e, unsigned char *to)
{
    struct cpl_executor *x = run->x;
    const struct cpl_rank_plan *p = &x->relay.slice;
    for (int32_t s = p->out_first[e]; s < p->out_first[e + 1]; s++) {
        int32_t source = p->out_source[s];
        int64_t bytes = riding_bytes(x->segments.out_length[s]);
        if (bytes == 0)
            continue;
        if (source >= 0) {
            memcpy(to, forwarded_payload(x, source), (size_t)bytes);
            if (x->relay.next[source] == s)
                x->forwarded += bytes;
        } else {
            note_error(run, run->payloads.pack(run->payloads.context, -1 - source, to));
        }
        to += bytes;
    }
    cpl_work_combined(x->out[e].n_segments, x->out[e].bytes);
}

static void send_by_mpi(struct run *run, const void *buffer, int64_t bytes, int32_t to, int tag)
{
    struct cpl_executor *x = run->x;
    MPI_Request *request = &x->wires.send[run->n_sends++];
    note_start(run, PMPI_Isend(buffer, (int)bytes, MPI_BYTE, to, tag, x->comm, request), request);
}

/* Sends the message of out-edge e that was written to where it begins. */
static void send_first(struct run *run, int32_t e, const unsigned char *message, int64_t bytes)
{
    struct cpl_executor *x = run->x;
    if (x->out[e].lane.shared)
        cpl_lane_send(&x->out[e].lane, bytes);
    else
        send_by_mpi(run, message, bytes, x->relay.slice.out_to[e],
                    wave_tag(x, x->relay.slice.out_wave[e]));
}

/* The ordinary message, written to `message`: header, payloads, perhaps the table. */
static void send_together(struct run *run, int32_t e, unsigned char *message, bool changed)
{
    struct cpl_executor *x = run->x;
    struct cpl_end *out = &x->out[e];
    struct header header = {changed ? FLAG_LENGTHS : 0, x->exchange};
    int64_t bytes = (int64_t)sizeof header + out->bytes;
    memcpy(message, &header, sizeof header);
    copy_payloads(run, e, message + sizeof header);
    if (changed) {
        int64_t table = cpl_end_table_bytes(out);
        bytes = (int64_t)sizeof header + cpl_end_padded(out->bytes);
        memcpy(message + bytes, x->segments.out_length + x->relay.slice.out_first[e],
               (size_t)table);
        bytes += table;
    }
    send_first(run, e, message, bytes);
}

/* Payloads beyond the room: first the header and the table, which tell the receiver what comes,
 * then the payloads, always by MPI. */
static void send_apart(struct run *run, int32_t e, unsigned char *slot)
{
    struct cpl_executor *x = run->x;
    const struct cpl_rank_plan *p = &x->relay.slice;
    struct cpl_end *out = &x->out[e];
    if (!cpl_end_enlarge(out, out->bytes)) {
        note_error(run, MPI_ERR_NO_MEM);
        return;
    }
    unsigned char *message = slot ? slot : out->buffer;
    struct header header = {FLAG_LENGTHS | FLAG_LATER, x->exchange};
    int64_t first = (int64_t)sizeof header + cpl_end_table_bytes(out);
    memcpy(message, &header, sizeof header);
    memcpy(message + sizeof header, x->segments.out_length + p->out_first[e],
           (size_t)cpl_end_table_bytes(out));
    copy_payloads(run, e, out->buffer + first);
    send_first(run, e, message, first);
    send_by_mpi(run, out->buffer + first, out->bytes, p->out_to[e], later_tag(x, p->out_wave[e]));
}

/* The setting for tests: a forwarding rank that is slow. */
static void delay(double us)
{
    double end = PMPI_Wtime() + us * 1e-6;
    while (PMPI_Wtime() < end)
        ;
}

/* Sends out-edge e; false: its lane has no slot for it yet. */
static bool try_send(struct run *run, int32_t e)
{
    struct cpl_end *out = &run->x->out[e];
    unsigned char *slot = out->lane.shared ? cpl_lane_next(&out->lane) : NULL;
    if (out->lane.shared && !slot)
        return false;
    if (cpl_context.settings.delay > 0 && run->x->relay.slice.out_waits[e] > 0)
        delay((double)cpl_context.settings.delay);
    bool changed = update_lengths(run, e);
    if (out->bytes <= out->room)
        send_together(run, e, slot ? slot : out->buffer, changed);
    else
        send_apart(run, e, slot);
    return true;
}

static void send_edge(struct run *run, int32_t e)
{
    if (!try_send(run, e))
        run->x->wires.full[run->n_full++] = e;
}

/* Sends what waited for slots and has one now. Returns whether there was anything. */
static bool send_full(struct run *run)
{
    int32_t *full = run->x->wires.full, n = 0, n_before = run->n_full;
    for (int32_t k = 0; k < n_before; k++)
        if (!try_send(run, full[k]))
            full[n++] = full[k];
    run->n_full = n;
    return n < n_before;
}

static void broken_message(struct run *run, int32_t e, const char *what)
{
    cpl_log(CPL_LOG_ERROR, "execute", "a combined message from rank %d is damaged: %s",
            run->x->relay.slice.in_from[e], what);
    note_error(run, MPI_ERR_INTERN);
}

/* Takes over a table of lengths. Returns the bytes of payload. */
static int64_t read_lengths(struct run *run, int32_t e, const unsigned char *table)
{
    struct cpl_executor *x = run->x;
    int32_t first = x->relay.slice.in_first[e], end = x->relay.slice.in_first[e + 1];
    int64_t bytes = 0;
    memcpy(x->segments.in_length + first, table, (size_t)cpl_end_table_bytes(&x->in[e]));
    for (int32_t s = first; s < end; s++) {
        x->segments.in_offset[s] = bytes;
        bytes += riding_bytes(x->segments.in_length[s]);
    }
    x->in[e].bytes = bytes;
    x->in[e].used = true;
    return bytes;
}

/* Posts the receive of payloads that follow in a message of their own. */
static void await_payload(struct run *run, int32_t e, int64_t bytes)
{
    struct cpl_executor *x = run->x;
    if (!cpl_end_enlarge(&x->in[e], bytes)) {
        note_error(run, MPI_ERR_NO_MEM);
        return;
    }
    x->in[e].awaits_payload = true;
    receive(run, e, x->in[e].buffer + sizeof(struct header), bytes,
            later_tag(x, x->relay.slice.in_wave[e]));
}

/* Reads the first (mostly the only) message of in-edge e, which lies at `message`. Returns whether
 * its payloads are there. */
static bool read_message(struct run *run, int32_t e, const unsigned char *message, int64_t received)
{
    struct cpl_executor *x = run->x;
    struct cpl_end *in = &x->in[e];
    struct header header;
    memcpy(&header, message, sizeof header);
    int64_t table = header.flags & FLAG_LENGTHS ? cpl_end_table_bytes(in) : 0;
    if (received < (int64_t)sizeof header + table || header.exchange != x->exchange ||
        (!table && !in->used)) {
        broken_message(run, e, "wrong length or exchange");
        return false;
    }
    if (header.flags & FLAG_LATER) {
        await_payload(run, e, read_lengths(run, e, message + sizeof header));
        return false;
    }
    in->payload = message + sizeof header;
    if (table)
        read_lengths(run, e, message + received - table);
    int64_t expected =
        (int64_t)sizeof header + (table ? cpl_end_padded(in->bytes) + table : in->bytes);
    if (received != expected)
        broken_message(run, e, "its lengths do not add up");
    return received == expected;
}

static void deliver(struct run *run, int32_t e)
{
    struct cpl_executor *x = run->x;
    const struct cpl_rank_plan *p = &x->relay.slice;
    const unsigned char *payload = x->in[e].payload;
    int64_t n_delivered = 0, delivered = 0;
    for (int32_t s = p->in_first[e]; s < p->in_first[e + 1]; s++) {
        if (p->in_owner[s] < 0)
            continue;
        int64_t bytes =
            x->segments.in_length[s] == LENGTH_STRAIGHT ? CPL_STRAIGHT : x->segments.in_length[s];
        note_error(run, run->payloads.deliver(run->payloads.context, p->in_owner[s],
                                              payload + x->segments.in_offset[s], bytes));
        n_delivered++;
        delivered += riding_bytes(x->segments.in_length[s]);
    }
    cpl_work_combined(n_delivered, delivered);
}

/* All of in-edge e is here: what waited for it leaves first, then this rank takes its own. */
static void complete_edge(struct run *run, int32_t e)
{
    struct cpl_executor *x = run->x;
    const int32_t *waiting;
    int32_t n = cpl_relay_waiting(&x->relay, e, &waiting);
    for (int32_t k = 0; k < n; k++)
        if (--x->missing[waiting[k]] == 0)
            send_edge(run, waiting[k]);
    deliver(run, e);
    run->n_open--;
}

/* Takes what has come in lanes. Returns whether anything has. The slots are kept until the exchange
 * is over: what goes on may still be read there. */
static bool look_at_lanes(struct run *run)
{
    struct cpl_executor *x = run->x;
    int32_t *open = x->wires.lane, n = 0, n_before = run->n_lanes;
    cpl_work_looked(0);
    for (int32_t k = 0; k < n_before; k++) {
        int64_t bytes = 0;
        const unsigned char *message = cpl_lane_look(&x->in[open[k]].lane, &bytes);
        if (!message)
            open[n++] = open[k];
        else if (read_message(run, open[k], message, bytes))
            complete_edge(run, open[k]);
    }
    run->n_lanes = n;
    return n < n_before;
}

/* Deals with n in-edges that something has arrived on; `code` is what the completion call returned.
 */
static void take_arrivals(struct run *run, int n, int code)
{
    struct cpl_executor *x = run->x;
    if (n == MPI_UNDEFINED || (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS)) {
        note_error(run, code == MPI_SUCCESS ? MPI_ERR_INTERN : code);
        run->n_open = 0; /* nothing is left that could arrive */
        return;
    }
    for (int k = 0; k < n; k++) {
        int32_t e = x->wires.received[x->wires.arrived[k]];
        struct cpl_end *in = &x->in[e];
        int received = 0;
        if (code == MPI_ERR_IN_STATUS && x->wires.status[k].MPI_ERROR != MPI_SUCCESS) {
            note_error(run, x->wires.status[k].MPI_ERROR);
            continue;
        }
        PMPI_Get_count(&x->wires.status[k], MPI_BYTE, &received);
        if (in->awaits_payload)
            in->payload = in->buffer + sizeof(struct header);
        else if (!read_message(run, e, in->buffer, received))
            continue;
        in->awaits_payload = false;
        complete_edge(run, e);
    }
}

void cpl_executor_start(struct cpl_executor *executor, const struct cpl_payloads *payloads)
{
    struct cpl_executor *x = executor;
    x->run = (struct run){
        .x = x, .payloads = *payloads, .n_open = x->relay.slice.n_in, .result = MPI_SUCCESS};
    x->exchange++;
    post_receives(&x->run);
    cpl_relay_begin(&x->relay, x->missing);
    const int32_t *own;
    int32_t n_own = cpl_relay_waiting(&x->relay, CPL_RELAY_OWN, &own);
    for (int32_t k = 0; k < n_own; k++)
        if (--x->missing[own[k]] == 0)
            send_edge(&x->run, own[k]);
}

/* All has come and is sent: the lanes' slots are the writers' again. */
static void give_back_slots(struct cpl_executor *x)
{
    for (int32_t e = 0; x->lanes.memory && e < x->relay.slice.n_in; e++)
        if (x->in[e].lane.shared)
            cpl_lane_take(&x->in[e].lane);
}

/* Takes what MPI has received. Returns whether anything has come. */
static bool look_at_mpi(struct run *run)
{
    const struct wires *w = &run->x->wires;
    int n = 0;
    int code = PMPI_Testsome(run->n_receives, w->receive, &n, w->arrived, w->status);
    if (n == 0 || (n == MPI_UNDEFINED && run->n_lanes > 0))
        return false;
    take_arrivals(run, n, code);
    return true;
}

/* Takes what has come and sends what can leave. Returns whether there was anything. */
static bool look(struct run *run)
{
    int32_t n_full = run->n_full;
    bool any = run->n_lanes > 0 && look_at_lanes(run);
    if (run->n_open > 0 && (run->n_receives > 0 || run->n_lanes == 0))
        any |= look_at_mpi(run);
    return any | (n_full > 0 && send_full(run));
}

bool cpl_executor_progress(struct cpl_executor *executor, int *result)
{
    struct cpl_executor *x = executor;
    struct run *run = &x->run;
    while (run->n_open > 0 || run->n_full > 0)
        if (!look(run))
            return false;
    for (; run->n_sent < run->n_sends; run->n_sent++) {
        int done = 1;
        int code = PMPI_Test(&x->wires.send[run->n_sent], &done, MPI_STATUS_IGNORE);
        if (code == MPI_SUCCESS && !done)
            return false;
        note_error(run, code);
    }
    give_back_slots(x);
    *result = run->result;
    return true;
}

int cpl_executor_wait(struct cpl_executor *executor)
{
    struct cpl_executor *x = executor;
    struct run *run = &x->run;
    int n_idle = 0;
    while (run->n_open > 0 || run->n_full > 0) {
        if (run->n_lanes > 0 || run->n_full > 0) {
            n_idle = look(run) ? 0 : n_idle + 1;
            if (n_idle > 0)
                cpl_progress_pause(n_idle);
            continue;
        }
        int n = 0;
        int code = cpl_collective_waitsome(run->n_receives, x->wires.receive, &n, x->wires.arrived,
                                           x->wires.status);
        take_arrivals(run, n, code);
    }
    note_error(run, cpl_collective_waitall(run->n_sends, x->wires.send, MPI_STATUSES_IGNORE));
    give_back_slots(x);
    return run->result;
}

void cpl_executor_open_lanes(struct cpl_executor *x, MPI_Comm comm)
{
    cpl_ends_open_lanes(x ? &x->relay.slice : NULL, x ? x->out : NULL, x ? x->in : NULL, comm,
                        x ? &x->lanes : NULL);
}
