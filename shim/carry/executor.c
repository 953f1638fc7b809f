/* The executor (executor.h). */
#include "shim/carry/executor.h"

#include "shim/base/log.h"
#include "shim/base/work.h"
#include "shim/state/context.h"
#include "shim/state/memory.h"
#include "shim/wait/collective.h"

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

#define LENGTH_STRAIGHT UINT32_MAX /* in a table of lengths: sent straight by its owner */
#define SMALLEST_ROOM   64         /* bytes of payload that an edge has room for at least */

/* Either end of an edge. */
struct end {
    unsigned char *buffer;
    int64_t room;        /* bytes of payload that fit; equal at both ends */
    int64_t bytes;       /* of payload in the present message */
    bool used;           /* a table of lengths has passed */
    bool awaits_payload; /* in-edge: the first message came, the payloads are still to come */
};

/* One run. */
struct run {
    struct cpl_executor *x;
    struct cpl_payloads payloads;
    int32_t n_open; /* in-edges that are not complete */
    int result;     /* first error */
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
    struct end *in, *out;
    struct segments segments;
    int32_t *missing;          /* per out-edge (relay.h) */
    MPI_Request *recv_request; /* n_in */
    MPI_Request *send_request; /* 2 * n_out */
    int n_sends;
    int n_sent;   /* of these, found complete */
    int *arrived; /* for Waitsome */
    MPI_Status *status;
    struct run run; /* the present one */
};

static int64_t padded(int64_t bytes)
{
    return (bytes + 3) / 4 * 4;
}

/* Room for payloads of about `bytes`, with space to grow. */
static int64_t room_for(int64_t bytes)
{
    return bytes < SMALLEST_ROOM / 2 ? SMALLEST_ROOM : padded(2 * bytes);
}

static int64_t table_bytes(int32_t n_segments)
{
    return (int64_t)sizeof(uint32_t) * n_segments;
}

/* Bytes of an end's buffer: header, payloads, table. */
static int64_t buffer_bytes(int64_t room, int32_t n_segments)
{
    return (int64_t)sizeof(struct header) + room + table_bytes(n_segments);
}

static bool set_room(struct end *end, int64_t room, int32_t n_segments)
{
    int64_t bytes = buffer_bytes(room, n_segments);
    unsigned char *buffer = bytes <= INT_MAX ? realloc(end->buffer, (size_t)bytes) : NULL;
    if (!buffer)
        return false;
    end->buffer = buffer;
    end->room = room;
    return true;
}

/* The same where others wait for the message. False: it is larger than MPI can count. */
static bool insist_on_room(struct end *end, int64_t room, int32_t n_segments)
{
    int tries = 0;
    if (buffer_bytes(room, n_segments) > INT_MAX)
        return false;
    while (!set_room(end, room, n_segments))
        cpl_memory_wait(&tries, "a combined message");
    return true;
}

static int32_t n_in_segments(const struct cpl_executor *x, int32_t e)
{
    return x->relay.slice.in_first[e + 1] - x->relay.slice.in_first[e];
}

static int32_t n_out_segments(const struct cpl_executor *x, int32_t e)
{
    return x->relay.slice.out_first[e + 1] - x->relay.slice.out_first[e];
}

static bool allocate(struct cpl_executor *x)
{
    struct cpl_arena *arena = &x->relay.arena;
    const struct cpl_rank_plan *p = &x->relay.slice;
    x->in = CPL_ARENA_ARRAY(arena, struct end, p->n_in);
    x->out = CPL_ARENA_ARRAY(arena, struct end, p->n_out);
    x->segments.in_length = CPL_ARENA_ARRAY(arena, uint32_t, p->n_in_segments);
    x->segments.in_edge = CPL_ARENA_ARRAY(arena, int32_t, p->n_in_segments);
    x->segments.in_offset = CPL_ARENA_ARRAY(arena, int64_t, p->n_in_segments);
    x->segments.out_length = CPL_ARENA_ARRAY(arena, uint32_t, p->n_out_segments);
    x->missing = CPL_ARENA_ARRAY(arena, int32_t, p->n_out);
    x->recv_request = CPL_ARENA_ARRAY(arena, MPI_Request, p->n_in);
    x->send_request = CPL_ARENA_ARRAY(arena, MPI_Request, 2 * (size_t)p->n_out);
    x->arrived = CPL_ARENA_ARRAY(arena, int, p->n_in);
    x->status = CPL_ARENA_ARRAY(arena, MPI_Status, p->n_in);
    if (!x->in || !x->out || !x->segments.in_length || !x->segments.in_edge ||
        !x->segments.in_offset || !x->segments.out_length || !x->missing || !x->recv_request ||
        !x->send_request || !x->arrived || !x->status)
        return false;
    for (int32_t e = 0; e < p->n_in; e++)
        for (int32_t s = p->in_first[e]; s < p->in_first[e + 1]; s++)
            x->segments.in_edge[s] = e;
    bool done = true;
    for (int32_t e = 0; e < p->n_in && done; e++)
        done = set_room(&x->in[e], room_for(cpl_rank_plan_in_volume(p, e)), n_in_segments(x, e));
    for (int32_t e = 0; e < p->n_out && done; e++)
        done = set_room(&x->out[e], room_for(cpl_rank_plan_out_volume(p, e)), n_out_segments(x, e));
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
        free(executor->in[e].buffer);
    for (int32_t e = 0; executor->out && e < executor->relay.slice.n_out; e++)
        free(executor->out[e].buffer);
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

static void post_receives(struct run *run)
{
    struct cpl_executor *x = run->x;
    const struct cpl_rank_plan *p = &x->relay.slice;
    for (int32_t e = 0; e < p->n_in; e++) {
        int bytes = (int)buffer_bytes(x->in[e].room, n_in_segments(x, e));
        note_start(run,
                   PMPI_Irecv(x->in[e].buffer, bytes, MPI_BYTE, x->relay.slice.in_from[e],
                              wave_tag(x, x->relay.slice.in_wave[e]), x->comm, &x->recv_request[e]),
                   &x->recv_request[e]);
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
    return x->in[x->segments.in_edge[segment]].buffer + sizeof(struct header) +
           x->segments.in_offset[segment];
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
    cpl_work_combined(n_out_segments(x, e), x->out[e].bytes);
}

static void send(struct run *run, const void *buffer, int64_t bytes, int32_t to, int tag)
{
    struct cpl_executor *x = run->x;
    MPI_Request *request = &x->send_request[x->n_sends++];
    note_start(run, PMPI_Isend(buffer, (int)bytes, MPI_BYTE, to, tag, x->comm, request), request);
}

/* The ordinary message: header, payloads, perhaps the table. */
static void send_together(struct run *run, int32_t e, bool changed)
{
    struct cpl_executor *x = run->x;
    struct end *out = &x->out[e];
    struct header header = {changed ? FLAG_LENGTHS : 0, x->exchange};
    int64_t bytes = (int64_t)sizeof header + out->bytes;
    memcpy(out->buffer, &header, sizeof header);
    copy_payloads(run, e, out->buffer + sizeof header);
    if (changed) {
        int64_t table = table_bytes(n_out_segments(x, e));
        bytes = (int64_t)sizeof header + padded(out->bytes);
        memcpy(out->buffer + bytes, x->segments.out_length + x->relay.slice.out_first[e],
               (size_t)table);
        bytes += table;
    }
    send(run, out->buffer, bytes, x->relay.slice.out_to[e],
         wave_tag(x, x->relay.slice.out_wave[e]));
}

/* Payloads beyond the room: first the header and the table, which tell the receiver what comes,
 * then the payloads. */
static void send_apart(struct run *run, int32_t e)
{
    struct cpl_executor *x = run->x;
    const struct cpl_rank_plan *p = &x->relay.slice;
    struct end *out = &x->out[e];
    int32_t n = n_out_segments(x, e);
    if (!insist_on_room(out, room_for(out->bytes), n)) {
        cpl_log(CPL_LOG_ERROR, "execute", "a combined message of %lld bytes is too large",
                (long long)out->bytes);
        note_error(run, MPI_ERR_NO_MEM);
        return;
    }
    struct header header = {FLAG_LENGTHS | FLAG_LATER, x->exchange};
    int64_t first = (int64_t)sizeof header + table_bytes(n);
    memcpy(out->buffer, &header, sizeof header);
    memcpy(out->buffer + sizeof header, x->segments.out_length + p->out_first[e],
           (size_t)table_bytes(n));
    copy_payloads(run, e, out->buffer + first);
    send(run, out->buffer, first, p->out_to[e], wave_tag(x, p->out_wave[e]));
    send(run, out->buffer + first, out->bytes, p->out_to[e], later_tag(x, p->out_wave[e]));
}

/* The setting for tests: a forwarding rank that is slow. */
static void delay(double us)
{
    double end = PMPI_Wtime() + us * 1e-6;
    while (PMPI_Wtime() < end)
        ;
}

static void send_edge(struct run *run, int32_t e)
{
    if (cpl_context.settings.delay > 0 && run->x->relay.slice.out_waits[e] > 0)
        delay((double)cpl_context.settings.delay);
    bool changed = update_lengths(run, e);
    if (run->x->out[e].bytes <= run->x->out[e].room)
        send_together(run, e, changed);
    else
        send_apart(run, e);
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
    memcpy(x->segments.in_length + first, table, (size_t)table_bytes(end - first));
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
    if (!insist_on_room(&x->in[e], room_for(bytes), n_in_segments(x, e))) {
        cpl_log(CPL_LOG_ERROR, "execute", "a combined message of %lld bytes is too large",
                (long long)bytes);
        note_error(run, MPI_ERR_NO_MEM);
        return;
    }
    x->in[e].awaits_payload = true;
    note_start(run,
               PMPI_Irecv(x->in[e].buffer + sizeof(struct header), (int)bytes, MPI_BYTE,
                          x->relay.slice.in_from[e], later_tag(x, x->relay.slice.in_wave[e]),
                          x->comm, &x->recv_request[e]),
               &x->recv_request[e]);
}

/* Reads the first (mostly the only) message of in-edge e. Returns whether its payloads are there.
 */
static bool read_message(struct run *run, int32_t e, const MPI_Status *status)
{
    struct cpl_executor *x = run->x;
    struct end *in = &x->in[e];
    struct header header;
    int received = 0;
    PMPI_Get_count(status, MPI_BYTE, &received);
    memcpy(&header, in->buffer, sizeof header);
    int64_t table = header.flags & FLAG_LENGTHS ? table_bytes(n_in_segments(x, e)) : 0;
    if (received < (int64_t)sizeof header + table || header.exchange != x->exchange ||
        (!table && !in->used)) {
        broken_message(run, e, "wrong length or exchange");
        return false;
    }
    if (header.flags & FLAG_LATER) {
        await_payload(run, e, read_lengths(run, e, in->buffer + sizeof header));
        return false;
    }
    if (table)
        read_lengths(run, e, in->buffer + received - table);
    int64_t expected = (int64_t)sizeof header + (table ? padded(in->bytes) + table : in->bytes);
    if (received != expected)
        broken_message(run, e, "its lengths do not add up");
    return received == expected;
}

static void deliver(struct run *run, int32_t e)
{
    struct cpl_executor *x = run->x;
    const struct cpl_rank_plan *p = &x->relay.slice;
    const unsigned char *payload = x->in[e].buffer + sizeof(struct header);
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
        int32_t e = x->arrived[k];
        if (code == MPI_ERR_IN_STATUS && x->status[k].MPI_ERROR != MPI_SUCCESS) {
            note_error(run, x->status[k].MPI_ERROR);
            continue;
        }
        bool whole = x->in[e].awaits_payload || read_message(run, e, &x->status[k]);
        if (!whole)
            continue;
        x->in[e].awaits_payload = false;
        complete_edge(run, e);
        run->n_open--;
    }
}

void cpl_executor_start(struct cpl_executor *executor, const struct cpl_payloads *payloads)
{
    struct cpl_executor *x = executor;
    x->run = (struct run){x, *payloads, x->relay.slice.n_in, MPI_SUCCESS};
    x->n_sends = x->n_sent = 0;
    x->exchange++;
    post_receives(&x->run);
    cpl_relay_begin(&x->relay, x->missing);
    const int32_t *own;
    int32_t n_own = cpl_relay_waiting(&x->relay, CPL_RELAY_OWN, &own);
    for (int32_t k = 0; k < n_own; k++)
        if (--x->missing[own[k]] == 0)
            send_edge(&x->run, own[k]);
}

bool cpl_executor_progress(struct cpl_executor *executor, int *result)
{
    struct cpl_executor *x = executor;
    struct run *run = &x->run;
    while (run->n_open > 0) {
        int n = 0;
        int code = PMPI_Testsome(x->relay.slice.n_in, x->recv_request, &n, x->arrived, x->status);
        if (n == 0)
            return false;
        take_arrivals(run, n, code);
    }
    for (; x->n_sent < x->n_sends; x->n_sent++) {
        int done = 1;
        int code = PMPI_Test(&x->send_request[x->n_sent], &done, MPI_STATUS_IGNORE);
        if (code == MPI_SUCCESS && !done)
            return false;
        note_error(run, code);
    }
    *result = run->result;
    return true;
}

int cpl_executor_wait(struct cpl_executor *executor)
{
    struct cpl_executor *x = executor;
    struct run *run = &x->run;
    while (run->n_open > 0) {
        int n = 0;
        int code = cpl_collective_waitsome(x->relay.slice.n_in, x->recv_request, &n, x->arrived,
                                           x->status);
        take_arrivals(run, n, code);
    }
    note_error(run, cpl_collective_waitall(x->n_sends, x->send_request, MPI_STATUSES_IGNORE));
    return run->result;
}
