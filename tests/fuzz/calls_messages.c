/* Single calls of calls_fuzz.c: exchanges by sendrecv, messages that are sent in one event and
 * received in another, receives that are cancelled, MPI_PROC_NULL, truncated messages, and
 * arguments that MPI must refuse. */
#include "calls_fuzz.h"

#include <stdlib.h>
#include <string.h>

static int own_tag(const struct run *run)
{
    return FIRST_NOISE_TAG + (int)run->event * 4;
}

void messages_event(struct run *run, struct draw *draw)
{
    int n = 1 + below(draw, 2 * run->n_ranks), comm = below(draw, MAX_COMMS);
    random_messages(run, draw, n, comm, own_tag(run));
}

/* --- sendrecv along a permutation */
struct turn {
    MPI_Comm comm;
    int to, from, size, tag, form;
    uint64_t key, other_key; /* of what is sent, and received */
};

static void isendrecv(struct run *run, const struct turn *t, struct op *op)
{
    struct layout *in = &op->layout, *out = &op->second;
    op->message.has_no_status = true;
    if (t->form == 3)
        MUST(run, MPI_Isendrecv_replace(in->buffer, in->count, in->type, t->to, t->tag, t->from,
                                        t->tag, t->comm, &op->request));
    else
        MUST(run, MPI_Isendrecv(out->buffer, out->count, out->type, t->to, t->tag, in->buffer,
                                in->count, in->type, t->from, t->tag, t->comm, &op->request));
    op_add(run, op);
}

static void sendrecv(struct run *run, const struct turn *t, struct op *op)
{
    struct layout *in = &op->layout, *out = &op->second;
    MPI_Status status;
    int code;
    if (t->form == 1)
        code = MPI_Sendrecv_replace(in->buffer, in->count, in->type, t->to, t->tag, t->from, t->tag,
                                    t->comm, &status);
    else
        code = MPI_Sendrecv(out->buffer, out->count, out->type, t->to, t->tag, in->buffer,
                            in->count, in->type, t->from, t->tag, t->comm, &status);
    check_received(run, op, &status, code);
    op_release(op);
}

static void turn(struct run *run, const struct turn *t, struct draw *own)
{
    struct op *op = op_new(run, OP_RECV);
    uint8_t *bytes = get_memory((size_t)t->size + 1);
    /* MPICH 4.0.2's MPI_Isendrecv and MPI_Isendrecv_replace free types that are not their own */
    struct draw *types = is_on(run, KIND_types) && t->form < 2 ? own : NULL;
    op->message = (struct message){.src = t->from, .dst = run->rank, .size = t->size};
    op->message.tag = t->from == MPI_PROC_NULL ? MPI_ANY_TAG : t->tag;
    op->message.key = t->other_key;
    op->message.capacity = t->size;
    layout_make(&op->layout, t->size, BASE_BYTE, types);
    layout_make(&op->second, t->size, BASE_BYTE, types);
    fill_bytes(t->key, bytes, (size_t)t->size);
    layout_put(t->form % 2 ? &op->layout : &op->second, bytes, (size_t)t->size);
    free(bytes);
    if (t->form < 2)
        sendrecv(run, t, op);
    else
        isendrecv(run, t, op);
}

void sendrecv_event(struct run *run, struct draw *draw)
{
    int n = run->n_ranks, to[64], from[64], comm = below(draw, MAX_COMMS), me;
    int size = below(draw, 20) ? below(draw, 500) : 9000;
    for (int k = 0; k < n; k++) {
        int other = below(draw, k + 1);
        to[k] = to[other];
        to[other] = k;
    }
    for (int k = 0; k < n; k++)
        from[to[k]] = k;
    for (int k = below(draw, 3) == 0 ? 2 : 0; k > 0; k--) { /* a pair less */
        int src = below(draw, n);
        if (to[src] == MPI_PROC_NULL)
            continue;
        from[to[src]] = MPI_PROC_NULL;
        to[src] = MPI_PROC_NULL;
    }
    MPI_Comm_rank(run->comm[comm], &me);
    struct draw own = {mix3(run->seed, run->event, (uint64_t)me)};
    struct turn t = {run->comm[comm], to[me], from[me], size, own_tag(run), 0, 0, 0};
    t.key = mix3(run->seed, run->event, (uint64_t)(uint32_t)me << 8);
    t.other_key = mix3(run->seed, run->event, (uint64_t)(uint32_t)from[me] << 8);
    t.form = below(&own, 4);
    /* with MPI_PROC_NULL MPICH 4.0.2's MPI_Isendrecv_replace crashes */
    if (t.form >= 2 && (!HAS_MPI4 || !is_on(run, KIND_isendrecv) || t.to == MPI_PROC_NULL ||
                        t.from == MPI_PROC_NULL))
        t.form %= 2;
    if (t.from == MPI_PROC_NULL)
        t.form = 0;
    run->where = "sendrecv";
    turn(run, &t, &own);
    if (chance(&run->loose, 70))
        complete_all(run);
}

/* --- from one event to another */
static struct event cross_role(struct run *run, const struct cross *c)
{
    struct event e = {.comm = run->comm[1], .n_ranks = run->n_ranks};
    (void)c;
    MPI_Comm_rank(e.comm, &e.me);
    return e;
}

/* The sender's or the receiver's part; what goes to the pool may be waited for when it is ready. */
static void cross_part(struct run *run, struct cross *c, bool sends, uint32_t ready)
{
    struct event e = cross_role(run, c);
    int n = run->n_pool;
    bool is_first = sends == c->is_sent_first;
    if (e.me != (sends ? c->message.src : c->message.dst))
        return;
    if (sends)
        send_one(run, &e, &c->message);
    else if (is_first)
        post_receive(run, &e, &c->message);
    else
        receive_late(run, &e, &c->message);
    for (int k = n; k < run->n_pool; k++)
        run->pool[k]->ready = ready;
}

void cross_event(struct run *run, struct draw *draw)
{
    for (int k = 1 + below(draw, 3); k > 0 && run->n_cross < MAX_CROSS; k--) {
        struct cross *c = &run->cross[run->n_cross++];
        static const enum send_kind sends[] = {SEND_I, SEND_IS, SEND_PLAIN, SEND_S};
        memset(c, 0, sizeof *c);
        c->is_sent_first = chance(draw, 50);
        c->due = run->event + 1 + (uint32_t)below(draw, 40);
        c->message.src = below(draw, run->n_ranks);
        c->message.dst = below(draw, run->n_ranks);
        c->message.tag = own_tag(run) + k;
        c->message.size = below(draw, 8) ? below(draw, 300) : 12000 * is_on(run, KIND_large);
        c->message.capacity = c->message.size;
        c->message.send = sends[below(draw, c->is_sent_first ? 2 : 4)];
        c->message.recv = RECV_PLAIN + below(draw, is_on(run, KIND_probe) ? N_RECVS - 1 : 2);
        c->message.key = mix3(run->seed, run->event, (uint64_t)k);
        c->message.number = -1;
        cross_part(run, c, c->is_sent_first, c->due);
    }
}

void cross_due(struct run *run, bool all)
{
    int n = 0;
    run->where = "messages from an earlier event";
    for (int k = 0; k < run->n_cross; k++) {
        struct cross c = run->cross[k];
        if (c.due <= run->event || all)
            cross_part(run, &c, !c.is_sent_first, run->event);
        else
            run->cross[n++] = c;
    }
    run->n_cross = n;
    for (int k = 0; all && k < run->n_pool; k++)
        if (run->pool[k]->kind != OP_CANCELLED)
            run->pool[k]->ready = run->event;
}

/* --- cancelled receives */
static void cancel_posted(struct run *run)
{
    for (int k = 0; k < run->n_pool; k++) {
        struct op *op = run->pool[k];
        if (op->kind != OP_CANCELLED)
            continue;
        if (op->ready > run->event)
            MUST(run, MPI_Cancel(&op->request));
        op->ready = run->event;
        op->is_needed = true;
    }
    complete_needed(run);
}

void cancel_event(struct run *run, struct draw *draw)
{
    bool keeps = chance(draw, 40);
    int comm = below(draw, MAX_COMMS);
    uint64_t ranks = mix(draw->state);
    run->where = "cancelling";
    cancel_posted(run);
    if (run->iteration + 1 >= run->n_iterations || !(ranks >> run->rank & 1))
        return;
    for (int k = 1 + (int)(ranks % 2); k > 0; k--) {
        struct op *op = op_new(run, OP_CANCELLED);
        layout_make(&op->layout, 64, BASE_BYTE, NULL);
        op->ready = UINT32_MAX;
        MUST(run, MPI_Irecv(op->layout.buffer, 64, MPI_BYTE, (int)(ranks % 97) % run->n_ranks,
                            900000 + (int)run->event, run->comm[comm], &op->request));
        op_add(run, op);
    }
    if (!keeps)
        cancel_posted(run);
}

/* --- nobody */
static void check_nobody(struct run *run, const MPI_Status *status, const char *what)
{
    int n = -1;
    MPI_Get_count(status, MPI_BYTE, &n);
    if (status->MPI_SOURCE != MPI_PROC_NULL || status->MPI_TAG != MPI_ANY_TAG || n != 0)
        wrong(run, NULL, "%s: source %d, tag %d, %d bytes from MPI_PROC_NULL", what,
              status->MPI_SOURCE, status->MPI_TAG, n);
}

void procnull_event(struct run *run, struct draw *draw)
{
    MPI_Comm comm = run->comm[below(draw, MAX_COMMS)];
    char byte[8] = "";
    MPI_Status status;
    MPI_Message matched;
    int flag = 0;
    run->where = "MPI_PROC_NULL";
    for (int k = 0; k < 2; k++) {
        struct op *op = op_new(run, k ? OP_RECV : OP_SEND);
        op->message = (struct message){.src = MPI_PROC_NULL, .tag = MPI_ANY_TAG};
        op->message.has_no_status = true;
        layout_make(&op->layout, 0, BASE_BYTE, NULL);
        if (k)
            MUST(run, MPI_Irecv(byte, 8, MPI_BYTE, MPI_PROC_NULL, 3, comm, &op->request));
        else
            MUST(run, MPI_Isend(byte, 8, MPI_BYTE, MPI_PROC_NULL, 3, comm, &op->request));
        op_add(run, op);
    }
    MUST(run, MPI_Send(byte, 8, MPI_BYTE, MPI_PROC_NULL, 3, comm));
    MUST(run, MPI_Recv(byte, 8, MPI_BYTE, MPI_PROC_NULL, MPI_ANY_TAG, comm, &status));
    check_nobody(run, &status, "MPI_Recv");
    MUST(run, MPI_Probe(MPI_PROC_NULL, 4, comm, &status));
    check_nobody(run, &status, "MPI_Probe");
    MUST(run, MPI_Iprobe(MPI_PROC_NULL, 4, comm, &flag, &status));
    if (!flag)
        wrong(run, NULL, "MPI_Iprobe finds no message of MPI_PROC_NULL");
    check_nobody(run, &status, "MPI_Iprobe");
    MUST(run, MPI_Mprobe(MPI_PROC_NULL, 4, comm, &matched, &status));
    check_nobody(run, &status, "MPI_Mprobe");
    if (matched != MPI_MESSAGE_NO_PROC)
        wrong(run, NULL, "MPI_Mprobe gives a message of MPI_PROC_NULL");
    else
        MUST(run, MPI_Mrecv(byte, 8, MPI_BYTE, &matched, &status));
    check_nobody(run, &status, "MPI_Mrecv");
    complete_all(run);
}

/* --- truncated */
void truncate_event(struct run *run, struct draw *draw)
{
    struct message m = {.number = -1, .tag = own_tag(run), .send = SEND_I};
    struct event e = {.comm = run->comm[below(draw, MAX_COMMS)], .n_ranks = run->n_ranks, .n = 1};
    m.src = below(draw, run->n_ranks);
    m.dst = below(draw, run->n_ranks);
    m.size = 1 + below(draw, below(draw, 4) ? 600 : 20000);
    m.capacity = below(draw, m.size);
    m.recv = below(draw, is_on(run, KIND_probe) ? N_RECVS : RECV_PROBE);
    m.key = mix3(run->seed, run->event, 1);
    if (m.src == m.dst)
        return;
    e.messages = &m;
    e.draw = *draw;
    MPI_Comm_rank(e.comm, &e.me);
    run_messages(run, &e);
}

/* --- what MPI must refuse */
static int *tag_bound(void)
{
    int *bound, flag;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &bound, &flag);
    return bound;
}

void badargs_event(struct run *run, struct draw *draw)
{
    MPI_Comm comm = run->comm[below(draw, MAX_COMMS)];
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Status status;
    char byte[8] = "";
    int code[10], n = run->n_ranks, flag, big = *tag_bound();
    run->where = "bad arguments";
    code[0] = MPI_Send(byte, -1, MPI_BYTE, 0, 3, comm);
    code[1] = MPI_Isend(byte, 1, MPI_BYTE, n + 3, 3, comm, &request);
    code[2] = big < INT32_MAX ? MPI_Isend(byte, 1, MPI_BYTE, 0, big + 1, comm, &request) : 0;
    code[3] = MPI_Irecv(byte, 1, MPI_BYTE, n, 3, comm, &request);
    code[4] = MPI_Recv(byte, 1, MPI_BYTE, 0, -5, comm, &status);
    code[5] = MPI_Irecv(byte, -1, MPI_BYTE, 0, 3, comm, &request);
    code[6] = MPI_Isend(byte, 1, MPI_DATATYPE_NULL, 0, 3, comm, &request);
    code[7] = MPI_Iprobe(n + 7, 3, comm, &flag, &status);
    code[8] = MPI_Sendrecv(byte, 1, MPI_BYTE, -9, 3, byte + 4, 1, MPI_BYTE, 0, 3, comm, &status);
    code[9] = MPI_Isend(byte, 1, MPI_BYTE, 0, 3, MPI_COMM_NULL, &request);
    for (int k = 0; k < 10; k++) {
        note(run, run->iteration, mix3(run->event, (uint64_t)k, (uint64_t)class_of(code[k])));
        if (code[k] == MPI_SUCCESS && k != 2)
            wrong(run, NULL, "bad call %d succeeds", k);
    }
}
