/* The messages of an event of calls_fuzz.c, and the exchanges that recur.
 *
 * An event has four steps: receives are posted, messages are sent, some ranks do something else,
 * what was not posted is received; then requests are completed. A blocking send is of a message
 * whose receive is posted in the first step, so no rank waits for one that waits for it. The order
 * of the messages in the array is the order of the sends, and that of the receives of each step. */
#include "calls_fuzz.h"

#include <stdlib.h>
#include <string.h>

/* --- sending */
static bool is_nonblocking(enum send_kind kind)
{
    return kind <= SEND_IR;
}

static void start_send(struct run *run, const struct event *e, const struct message *m,
                       struct op *op)
{
    struct layout *l = &op->layout;
    int code;
    if (m->send == SEND_IS)
        code = MPI_Issend(l->buffer, l->count, l->type, m->dst, m->tag, e->comm, &op->request);
    else if (m->send == SEND_IB)
        code = MPI_Ibsend(l->buffer, l->count, l->type, m->dst, m->tag, e->comm, &op->request);
    else if (m->send == SEND_IR)
        code = MPI_Irsend(l->buffer, l->count, l->type, m->dst, m->tag, e->comm, &op->request);
    else
        code = MPI_Isend(l->buffer, l->count, l->type, m->dst, m->tag, e->comm, &op->request);
    must(run, code, "a nonblocking send");
}

static void send_now(struct run *run, const struct event *e, const struct message *m,
                     struct layout *l)
{
    int code;
    if (m->send == SEND_S)
        code = MPI_Ssend(l->buffer, l->count, l->type, m->dst, m->tag, e->comm);
    else if (m->send == SEND_B)
        code = MPI_Bsend(l->buffer, l->count, l->type, m->dst, m->tag, e->comm);
    else if (m->send == SEND_R)
        code = MPI_Rsend(l->buffer, l->count, l->type, m->dst, m->tag, e->comm);
    else
        code = MPI_Send(l->buffer, l->count, l->type, m->dst, m->tag, e->comm);
    must(run, code, "a blocking send");
}

static void write_payload(struct layout *layout, const struct message *m)
{
    uint8_t *bytes = malloc((size_t)m->size + 1);
    if (!bytes)
        abort();
    fill_bytes(m->key, bytes, (size_t)m->size);
    layout_put(layout, bytes, (size_t)m->size);
    free(bytes);
}

static struct draw *type_draw(const struct run *run, struct draw *own)
{
    return is_on(run, KIND_types) ? own : NULL;
}

void send_one(struct run *run, struct event *e, const struct message *m)
{
    struct op *op = op_new(run, OP_SEND);
    struct draw own = {mix3(m->key, 1, (uint64_t)run->rank)};
    op->message = *m;
    layout_make(&op->layout, m->size, m->base, m->any_source ? NULL : type_draw(run, &own));
    write_payload(&op->layout, m);
    if (m->send == SEND_B || m->send == SEND_IB)
        run->n_buffered += (size_t)m->size + 256;
    if (!is_nonblocking(m->send)) {
        send_now(run, e, m, &op->layout);
        op_release(op);
        return;
    }
    start_send(run, e, m, op);
    if (chance(&own, 50))
        layout_free_type(&op->layout);
    if (chance_of(run, KIND_free, &own, 3)) {
        MUST(run, MPI_Request_free(&op->request));
        op_bury(run, op);
    } else {
        op_add(run, op);
    }
}

/* --- receiving */
static struct op *new_receive(struct run *run, const struct message *m)
{
    struct op *op = op_new(run, OP_RECV);
    struct draw own = {mix3(m->key, 2, (uint64_t)run->rank)};
    op->message = *m;
    layout_make(&op->layout, m->capacity, m->base, m->any_source ? NULL : type_draw(run, &own));
    return op;
}

static int source_of(const struct message *m)
{
    return m->any_source ? MPI_ANY_SOURCE : m->src;
}

static int tag_of(const struct message *m)
{
    return m->any_tag ? MPI_ANY_TAG : m->tag;
}

void post_receive(struct run *run, struct event *e, const struct message *m)
{
    struct op *op = new_receive(run, m);
    struct layout *l = &op->layout;
    MUST(run,
         MPI_Irecv(l->buffer, l->count, l->type, source_of(m), tag_of(m), e->comm, &op->request));
    if (op->layout.owns_type && m->key % 2)
        layout_free_type(&op->layout);
    op_add(run, op);
}

/* The message that a matched probe took; by MPI_Imrecv it goes to the pool. */
static void receive_matched(struct run *run, struct event *e, struct op *op, MPI_Message *matched)
{
    struct layout *l = &op->layout;
    MPI_Status status;
    (void)e;
    if (op->message.recv == RECV_IMRECV) {
        must(run, MPI_Imrecv(l->buffer, l->count, l->type, matched, &op->request), "MPI_Imrecv");
        op_add(run, op);
        return;
    }
    int code = MPI_Mrecv(l->buffer, l->count, l->type, matched, &status);
    check_received(run, op, &status, code);
    op_release(op);
}

static void receive_probed(struct run *run, struct event *e, struct op *op)
{
    const struct message *m = &op->message;
    struct layout *l = &op->layout;
    MPI_Status probed, status;
    MPI_Message matched = MPI_MESSAGE_NULL;
    int flag = 1, source = source_of(m), tag = tag_of(m), n_probed = -1;
    if (m->recv == RECV_PROBE)
        MUST(run, MPI_Probe(source, tag, e->comm, &probed));
    else if (m->recv == RECV_IPROBE)
        for (flag = 0; !flag;)
            MUST(run, MPI_Iprobe(source, tag, e->comm, &flag, &probed));
    else if (m->recv == RECV_IMPROBE)
        for (flag = 0; !flag;)
            MUST(run, MPI_Improbe(source, tag, e->comm, &flag, &matched, &probed));
    else
        MUST(run, MPI_Mprobe(source, tag, e->comm, &matched, &probed));
    MPI_Get_elements(&probed, op->layout.base, &n_probed);
    if (!m->any_source && (n_probed != m->size / base_size(m->base) ||
                           probed.MPI_SOURCE != m->src || probed.MPI_TAG != m->tag))
        wrong(run, op, "the probe tells of %d elements from %d with tag %d", n_probed,
              probed.MPI_SOURCE, probed.MPI_TAG);
    if (m->recv != RECV_PROBE && m->recv != RECV_IPROBE) {
        receive_matched(run, e, op, &matched);
        return;
    }
    int code =
        MPI_Recv(l->buffer, l->count, l->type, probed.MPI_SOURCE, probed.MPI_TAG, e->comm, &status);
    if (m->any_source && status.MPI_SOURCE != probed.MPI_SOURCE)
        wrong(run, op, "received from another rank than probed");
    check_received(run, op, &status, code);
    op_release(op);
}

void receive_late(struct run *run, struct event *e, const struct message *m)
{
    struct op *op;
    MPI_Status status;
    if (m->recv == RECV_LATE_I) {
        post_receive(run, e, m);
        return;
    }
    op = new_receive(run, m);
    if (m->recv != RECV_PLAIN) {
        receive_probed(run, e, op);
        return;
    }
    bool ignores = !needs_status(op) && m->key % 3 == 0;
    int code = MPI_Recv(op->layout.buffer, op->layout.count, op->layout.type, source_of(m),
                        tag_of(m), e->comm, ignores ? MPI_STATUS_IGNORE : &status);
    check_received(run, op, ignores ? NULL : &status, code);
    op_release(op);
}

/* --- persistent requests of an exchange */
static bool is_persistent_here(const struct run *run, const struct event *e,
                               const struct message *m)
{
    const struct exchange *x = e->exchange;
    if (!x || x->wild || m->number < 0 || !is_on(run, KIND_persistent) || m->any_source ||
        m->any_tag)
        return false;
    const struct message *usual = &x->messages[m->number];
    return (x->persistent_ranks >> run->rank & 1) && m->size == usual->size &&
           m->capacity == usual->capacity && m->base == usual->base && m->size > 0;
}

static struct op *new_persistent(struct run *run, struct event *e, const struct message *m,
                                 bool sends)
{
    struct op *op = op_new(run, sends ? OP_SEND : OP_RECV);
    struct draw own = {mix3(m->key, 3, (uint64_t)run->rank)};
    struct layout *l = &op->layout;
    op->is_persistent = true;
    layout_make(l, sends ? m->size : m->capacity, m->base, type_draw(run, &own));
    if (!sends)
        MUST(run,
             MPI_Recv_init(l->buffer, l->count, l->type, m->src, m->tag, e->comm, &op->request));
    else if (m->number % 5 == 1 && is_on(run, KIND_sync))
        MUST(run,
             MPI_Ssend_init(l->buffer, l->count, l->type, m->dst, m->tag, e->comm, &op->request));
    else if (m->number % 5 == 2 && is_on(run, KIND_buffered))
        MUST(run,
             MPI_Bsend_init(l->buffer, l->count, l->type, m->dst, m->tag, e->comm, &op->request));
    else
        MUST(run,
             MPI_Send_init(l->buffer, l->count, l->type, m->dst, m->tag, e->comm, &op->request));
    return op;
}

struct starting {
    int n;
    struct op *op[64];
    MPI_Request request[64];
};

static void flush_starts(struct run *run, struct starting *s)
{
    if (s->n == 1 && chance(&run->loose, 50))
        MUST(run, MPI_Start(s->request));
    else if (s->n > 0)
        MUST(run, MPI_Startall(s->n, s->request));
    for (int k = 0; k < s->n; k++) {
        struct op *op = s->op[k];
        op->request = s->request[k];
        op_add(run, op);
    }
    s->n = 0;
}

/* Frees a persistent send that is under way, or forgets one that is not. */
static void drop(struct run *run, struct op **place)
{
    struct op *op = *place;
    if (!op)
        return;
    bool was_active = op->is_active;
    MUST(run, MPI_Request_free(&op->request));
    op_bury(run, op);
    if (was_active && op->kind == OP_RECV)
        wrong(run, op, "the program frees an active receive");
    *place = NULL;
}

static void start_persistent(struct run *run, struct event *e, const struct message *m, bool sends,
                             struct starting *s)
{
    struct op **place =
        sends ? &e->exchange->persistent_send[m->number] : &e->exchange->persistent_recv[m->number];
    if (!*place)
        *place = new_persistent(run, e, m, sends);
    struct op *op = *place;
    op->message = *m;
    op->iteration = run->iteration;
    op->event = op->ready = run->event;
    if (sends) {
        write_payload(&op->layout, m);
        run->n_buffered += (size_t)m->size + 256;
    } else {
        memset(op->layout.memory, LAYOUT_FILL, op->layout.n_memory);
    }
    if (s->n == 64)
        flush_starts(run, s);
    s->op[s->n] = op;
    s->request[s->n++] = op->request;
}

void free_persistent(struct run *run, struct exchange *exchange)
{
    for (int k = 0; k < exchange->n; k++) {
        drop(run, &exchange->persistent_send[k]);
        drop(run, &exchange->persistent_recv[k]);
    }
}

/* --- the steps */
static void receive_early(struct run *run, struct event *e)
{
    struct starting s = {.n = 0};
    run->where = "posting receives";
    for (int k = 0; k < e->n; k++) {
        const struct message *m = &e->messages[k];
        if (m->dst != e->me || m->recv != RECV_EARLY)
            continue;
        if (is_persistent_here(run, e, m)) {
            start_persistent(run, e, m, false, &s);
            continue;
        }
        flush_starts(run, &s);
        post_receive(run, e, m);
    }
    flush_starts(run, &s);
}

static void send_all(struct run *run, struct event *e)
{
    struct starting s = {.n = 0};
    run->where = "sending";
    for (int k = 0; k < e->n; k++) {
        const struct message *m = &e->messages[k];
        if (m->src != e->me)
            continue;
        if (is_persistent_here(run, e, m)) {
            start_persistent(run, e, m, true, &s);
            continue;
        }
        flush_starts(run, &s);
        send_one(run, e, m);
    }
    flush_starts(run, &s);
}

static void free_some_active(struct run *run, struct event *e)
{
    struct exchange *x = e->exchange;
    struct draw own = {mix3(run->seed, run->event, (uint64_t)run->rank)};
    for (int k = 0; x && k < x->n; k++)
        if (x->persistent_send[k] && chance_of(run, KIND_freepersistent, &own, 2))
            drop(run, &x->persistent_send[k]);
}

/* What the rank waits for now. Persistent requests must be inactive before they start again. */
static void need_some(struct run *run, const struct event *e, bool may_carry)
{
    bool carries = may_carry && e->draw.state % 5 == 0;
    for (int k = 0; k < run->n_pool; k++) {
        struct op *op = run->pool[k];
        if (!op->is_active || op->event != run->event || op->ready > run->event)
            continue;
        op->is_needed =
            op->is_persistent || op->message.any_source || !carries || chance(&run->loose, 40);
    }
}

void run_messages(struct run *run, struct event *e)
{
    receive_early(run, e);
    if (e->has_barrier) {
        run->where = "the barrier inside an exchange";
        MUST(run, MPI_Barrier(e->comm));
    }
    send_all(run, e);
    free_some_active(run, e);
    if (e->exchange && e->exchange->reduces_inside)
        collective_on(run, e->comm, e->exchange->reduces_inside, 2,
                      mix3(run->seed, 31, run->event));
    if (e->middle) {
        run->where = "the middle of an exchange";
        e->middle(run, &e->draw);
    }
    if (e->exchange && e->exchange->waits_for_sends_first && e->n > 0 &&
        e->messages[0].recv == RECV_EARLY && chance(&run->loose, 90))
        for (int k = 0; k < run->n_pool; k++)
            if (run->pool[k]->is_active && run->pool[k]->event == run->event &&
                run->pool[k]->kind == OP_SEND && !run->pool[k]->message.any_source &&
                run->pool[k]->message.recv == RECV_EARLY)
                run->pool[k]->is_needed = true;
    complete_needed(run);
    run->where = "receiving";
    for (int k = 0; k < e->n; k++)
        if (e->messages[k].dst == e->me && e->messages[k].recv != RECV_EARLY)
            receive_late(run, e, &e->messages[k]);
    need_some(run, e, is_on(run, KIND_carry));
    complete_needed(run);
}
