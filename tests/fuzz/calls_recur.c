/* The exchanges of calls_fuzz.c that recur: made once, and repeated with deviations. */
#include "calls_fuzz.h"

#include <stdlib.h>
#include <string.h>

static int draw_size(struct run *run, struct draw *draw)
{
    int large = below(draw, 100), small = below(draw, 8), size = below(draw, 600);
    if (large < 2 && is_on(run, KIND_large))
        return 20000 + size * 8;
    if (large < 6 && is_on(run, KIND_large))
        return 4000 + size;
    return small == 0 ? 0 : small < 5 ? size / 8 : size;
}

static enum send_kind draw_send(struct run *run, struct draw *draw, bool is_early)
{
    int k = below(draw, 100);
    if (k < 6 && is_on(run, KIND_sync))
        return SEND_IS;
    if (k >= 6 && k < 10 && is_on(run, KIND_buffered))
        return SEND_IB;
    if (k >= 10 && k < 14 && is_on(run, KIND_buffered))
        return SEND_B;
    if (k >= 14 && k < 20 && is_early && is_on(run, KIND_blocking))
        return SEND_PLAIN;
    if (k >= 20 && k < 24 && is_early && is_on(run, KIND_blocking) && is_on(run, KIND_sync))
        return SEND_S;
    return SEND_I;
}

static enum recv_kind draw_recv(struct run *run, struct draw *draw)
{
    enum recv_kind kind = RECV_PLAIN + below(draw, N_RECVS - 1);
    if (kind >= RECV_PROBE && !is_on(run, KIND_probe))
        return RECV_PLAIN;
    return kind;
}

/* All that is the same for the messages of one pair: whether their receives are posted early. */
static bool is_pair_late(const struct run *run, uint64_t what, int src, int dst, int percent)
{
    return is_on(run, KIND_late) && (int)(mix3(what, (uint64_t)src, (uint64_t)dst) % 100) < percent;
}

static void draw_message(struct run *run, struct draw *draw, uint64_t what, int late_percent,
                         struct message *m)
{
    bool is_late = is_pair_late(run, what, m->src, m->dst, late_percent);
    enum recv_kind late = draw_recv(run, draw);
    int more = below(draw, 200), base = below(draw, 6);
    m->base = base < 4 ? BASE_BYTE : base == 4 ? BASE_INT : BASE_DOUBLE;
    m->size = draw_size(run, draw) / base_size(m->base) * base_size(m->base);
    m->capacity = m->size + (more < 50 ? more * base_size(m->base) : 0);
    m->send = draw_send(run, draw, !is_late);
    m->recv = is_late ? late : RECV_EARLY;
    m->any_tag = m->any_source = false;
}

static int late_percent_of(uint64_t what)
{
    static const int percents[] = {0, 0, 15, 50, 100};
    return percents[mix(what) % 5];
}

/* The destinations of an exchange: a few ranks with many, neighbours, or chance. */
static int draw_degree(struct draw *draw, int shape, int n_ranks, int rank)
{
    int most = n_ranks - 1;
    if (shape == 0 && rank % 3 == 0)
        return most;
    if (shape == 1)
        return most < 3 ? most : 3;
    return below(draw, (most < 6 ? most : 6) + 1);
}

void exchange_make(struct run *run, int number)
{
    struct exchange *x = &run->exchange[number];
    uint64_t what = mix3(run->seed, 100, (uint64_t)number);
    struct draw draw = {what};
    int n = run->n_ranks, shape = below(&draw, 3), late_percent = late_percent_of(what);
    memset(x, 0, sizeof *x);
    x->comm = chance(&draw, 50) ? 0 : below(&draw, MAX_COMMS);
    x->wild = chance(&draw, 25) && run->is_synchronous && is_on(run, KIND_wildcard);
    x->persistent_ranks = chance(&draw, 30) ? mix(what + 1) : 0;
    x->waits_for_sends_first = chance(&draw, 30);
    x->reduces_inside = chance(&draw, 25) && is_on(run, KIND_collective) ? 1 + below(&draw, 2) : 0;
    x->messages = calloc((size_t)n * (size_t)n * 2 + 1, sizeof *x->messages);
    if (!x->messages)
        abort();
    for (int src = 0; src < n; src++) {
        int degree = draw_degree(&draw, shape, n, src), first = below(&draw, n);
        for (int k = 0; k < degree; k++) {
            int dst = shape == 1 ? (src + 1 + k) % n : (first + k) % n;
            int twins = chance(&draw, 6) ? 2 : 1, tag = 10 * (number + 1) + below(&draw, 3);
            if (dst == src && !chance(&draw, 20))
                continue;
            for (; twins > 0; twins--) {
                struct message *m = &x->messages[x->n];
                *m = (struct message){.src = src, .dst = dst, .tag = tag, .number = x->n++};
                draw_message(run, &draw, what, late_percent, m);
            }
        }
    }
    x->persistent_send = calloc((size_t)x->n + 1, sizeof(struct op *));
    x->persistent_recv = calloc((size_t)x->n + 1, sizeof(struct op *));
    if (!x->persistent_send || !x->persistent_recv)
        abort();
}

void exchange_free(struct run *run, struct exchange *exchange)
{
    free_persistent(run, exchange);
    free(exchange->messages);
    free(exchange->persistent_send);
    free(exchange->persistent_recv);
}

/* --- an occurrence and how it deviates */
static void change_order(struct event *e)
{
    for (int k = e->n - 1; k > 0; k--) {
        int other = below(&e->draw, k + 1);
        struct message m = e->messages[k];
        e->messages[k] = e->messages[other];
        e->messages[other] = m;
    }
}

static void change_sizes(struct run *run, struct event *e)
{
    for (int k = 0; k < e->n; k++) {
        struct message *m = &e->messages[k];
        int size = draw_size(run, &e->draw) / base_size(m->base) * base_size(m->base);
        if (chance(&e->draw, 40))
            m->size = m->capacity = size;
    }
}

static void add_messages(struct run *run, struct event *e, uint64_t what, int tag)
{
    for (int n = 1 + below(&e->draw, 4); n > 0; n--) {
        struct message *m = &e->messages[e->n++];
        *m = (struct message){.number = -1, .tag = tag + below(&e->draw, 2)};
        m->src = below(&e->draw, run->n_ranks);
        m->dst = below(&e->draw, run->n_ranks);
        draw_message(run, &e->draw, what, late_percent_of(what), m);
    }
}

/* Wildcards. From anybody: all messages of the exchange to a rank, with one tag and room for the
 * largest, where a barrier keeps the next occurrence away. Any tag: of pairs whose receives are all
 * of one step, so that the order of sending decides. */
static void make_wild(struct run *run, struct event *e, int tag)
{
    bool is_drawn = chance_of(run, KIND_wildcard, &e->draw, 15);
    bool from_anybody = e->exchange ? e->exchange->wild : is_drawn;
    bool is_any_tag = below(&e->draw, 100) < 20 && is_on(run, KIND_wildcard);
    if (run->iteration < run->wildcards_from)
        return;
    for (int k = 0; k < e->n; k++) {
        struct message *m = &e->messages[k];
        if (from_anybody) {
            m->base = BASE_BYTE;
            m->any_source = mix3(run->seed, 5, (uint64_t)m->dst) % 2;
            m->tag = tag;
        }
        if (m->any_source) {
            m->capacity = 25000;
            m->send = m->send <= SEND_IB || m->send == SEND_B ? m->send : SEND_I;
            m->recv = m->recv == RECV_EARLY ? RECV_EARLY : RECV_PLAIN + m->recv % 4;
        } else {
            m->any_tag = is_any_tag && e->comm != run->comm[1] && m->recv <= RECV_PLAIN &&
                         mix3(run->event, (uint64_t)m->src, (uint64_t)m->dst) % 2;
        }
    }
}

/* Receives of one pair that are posted late are taken in order: those that go to the pool before
 * blocking ones match first, as they are posted first, so any order is well. Ready sends need the
 * barrier. */
static void make_ready(struct run *run, struct event *e)
{
    e->has_barrier = chance_of(run, KIND_ready, &e->draw, 4);
    if (!e->has_barrier)
        return;
    for (int k = 0; k < e->n; k++)
        if (e->messages[k].recv == RECV_EARLY && !e->messages[k].any_source && chance(&e->draw, 50))
            e->messages[k].send = chance(&e->draw, 50) ? SEND_IR : SEND_R;
}

static void finish_event(struct run *run, struct event *e, int tag)
{
    make_wild(run, e, tag);
    make_ready(run, e);
    for (int k = 0; k < e->n; k++)
        e->messages[k].key = mix3(run->seed ^ 9, run->event, (uint64_t)k);
    if (chance_of(run, KIND_middle, &e->draw, run->iteration < run->quiet_until ? 0 : 12))
        e->middle = some_ranks_action(run, &e->draw);
    MUST(run, MPI_Comm_rank(e->comm, &e->me));
    run_messages(run, e);
}

void exchange_run(struct run *run, int number, struct draw *draw)
{
    struct exchange *x = &run->exchange[number];
    struct event e = {.comm = run->comm[x->comm], .n_ranks = run->n_ranks, .exchange = x};
    uint64_t what = mix3(run->seed, 100, (uint64_t)number);
    bool is_quiet = run->iteration < run->quiet_until;
    int often = is_quiet ? 0 : 1;
    if (chance_of(run, KIND_skip, draw, 4 * often))
        return;
    e.draw = *draw;
    e.n = x->n;
    e.messages = malloc(((size_t)x->n + 8) * sizeof *e.messages);
    if (!e.messages)
        abort();
    memcpy(e.messages, x->messages, (size_t)x->n * sizeof *e.messages);
    if (chance_of(run, KIND_sizes, &e.draw, 8 * often))
        change_sizes(run, &e);
    if (chance_of(run, KIND_extra, &e.draw, 6 * often))
        add_messages(run, &e, what, 10 * (number + 1));
    if (chance_of(run, KIND_order, &e.draw, 6 * often))
        change_order(&e);
    finish_event(run, &e, 10 * (number + 1) + 5);
    if (chance(&e.draw, 2))
        free_persistent(run, x);
    free(e.messages);
}

/* Messages that do not recur, with tags of their own. */
void random_messages(struct run *run, struct draw *draw, int n, int comm, int tag)
{
    struct event e = {.comm = run->comm[comm], .n_ranks = run->n_ranks, .draw = *draw};
    uint64_t what = mix3(run->seed, 200, run->event);
    e.messages = calloc((size_t)n + 8, sizeof *e.messages);
    if (!e.messages)
        abort();
    for (; e.n < n; e.n++) {
        struct message *m = &e.messages[e.n];
        *m = (struct message){.number = -1, .tag = tag + below(&e.draw, 3)};
        m->src = below(&e.draw, run->n_ranks);
        m->dst = below(&e.draw, run->n_ranks);
        draw_message(run, &e.draw, what, late_percent_of(what), m);
    }
    finish_event(run, &e, tag);
    free(e.messages);
}
