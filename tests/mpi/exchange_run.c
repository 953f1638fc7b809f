/*
 * One exchange in one iteration.
 *
 * Requests: receives are posted in an order that changes every time (but for messages of one source
 * and tag, which match in order), sends go in the order of the list, so that the pattern recurs.
 * Checks come after all is complete.
 */
#define _POSIX_C_SOURCE 200809L /* nanosleep */
#include "exchange.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

void exchange_start(struct exchange *ex, const struct shape *shape, MPI_Comm comm, int number,
                    uint64_t key)
{
    *ex = (struct exchange){.shape = shape, .comm = comm};
    MPI_Comm_rank(comm, &ex->rank);
    MPI_Comm_size(comm, &ex->n_ranks);
    ex->pattern = pattern_make(shape, ex->n_ranks, number, key);
    ex->kept = test_alloc(2 * (size_t)ex->pattern.n * sizeof *ex->kept);
    for (int i = 0; i < 2 * ex->pattern.n; i++)
        ex->kept[i] = (struct op){.kept = MPI_REQUEST_NULL};
}

void exchange_end(struct exchange *ex)
{
    for (int i = 0; i < 2 * ex->pattern.n; i++) {
        if (ex->kept[i].kept != MPI_REQUEST_NULL)
            op_free(&ex->kept[i]);
    }
    free(ex->kept);
    list_free(&ex->pattern);
}

static bool has(const struct round *round, enum deviation deviation)
{
    return (round->deviations & 1u << deviation) != 0;
}

const struct message *round_take(struct round *round, int source, int tag)
{
    for (int i = 0; i < round->list.n; i++) {
        const struct message *msg = &round->list.items[i];
        if (msg->dst == round->ex->rank && !round->taken[i] && msg->src == source &&
            (tag == MPI_ANY_TAG || msg->tag == tag)) {
            round->taken[i] = true;
            return msg;
        }
    }
    return NULL;
}

/* --- the ends of messages at this rank ---------------------------------------------------- */

/* The pattern's persistent request for this end of a message; NULL when there can be none. */
static struct op *kept_op(struct round *round, const struct message *msg, bool sending)
{
    struct exchange *ex = round->ex;
    struct op *op;

    if (ex->shape->persistence == NOT_PERSISTENT || msg->slot < 0 ||
        msg->n != ex->pattern.items[msg->slot].n ||
        (sending && msg->mode == MODE_READY && has(round, DEV_PROBE)))
        return NULL;
    op = &ex->kept[2 * msg->slot + sending];
    if (op->kept != MPI_REQUEST_NULL) {
        op->msg = msg;
        return op;
    }
    if (sending) {
        op_make_send(op, msg, ex->shape->types, &round->own);
        op_init_send(op, msg->mode, ex->comm);
    } else {
        op_make_recv(op, msg, ex->shape->types, &round->own);
        op_init_recv(op, ex->comm);
    }
    return op;
}

static struct op *make_op(struct round *round, const struct message *msg, bool sending)
{
    struct op *op = kept_op(round, msg, sending);

    if (op != NULL)
        return op;
    op = test_alloc(sizeof *op);
    if (sending)
        op_make_send(op, msg, round->ex->shape->types, &round->own);
    else
        op_make_recv(op, msg, round->ex->shape->types, &round->own);
    return op;
}

/* Swaps receives of one source and tag until they are in the order of the list. */
static void keep_order(int n, struct op *ops[])
{
    for (int i = 0; i < n; i++) {
        for (int j = i + 1; j < n; j++) {
            const struct message *a = ops[i]->msg, *b = ops[j]->msg;
            struct op *op = ops[i];
            if (a->src == b->src && a->tag == b->tag && a > b) {
                ops[i] = ops[j];
                ops[j] = op;
            }
        }
    }
}

static void shuffle_recvs(struct round *round)
{
    for (int i = round->n_recvs - 1; i > 0; i--) {
        int other = test_below(&round->own, i + 1);
        struct op *op = round->ops[i];
        round->ops[i] = round->ops[other];
        round->ops[other] = op;
    }
    keep_order(round->n_recvs, round->ops);
}

static void add_null(struct round *round)
{
    struct op *op = test_alloc(sizeof *op);
    op_make_null(op);
    round->ops[round->n++] = op;
}

/* The size of the largest message of this iteration, in bytes. */
static int largest(const struct list *list)
{
    int size = 0;
    for (int i = 0; i < list->n; i++) {
        if (message_size(&list->items[i]) > size)
            size = message_size(&list->items[i]);
    }
    return size;
}

/* Makes some receives wild, so that none takes what another needs: all of both, of all tags or of
 * some the source, or of all sources or of some the tag. */
static void make_wild(struct round *round)
{
    int kind = test_below(&round->own, 5), size = largest(&round->list);

    for (int i = 0; i < round->n_recvs; i++) {
        struct op *op = round->ops[i];
        int peer = op->peer, tag = op->tag;
        if (op->msg == NULL)
            continue;
        if (kind == 0 || kind == 1 || (kind == 2 && tag % 2 == 0))
            peer = MPI_ANY_SOURCE;
        if (kind == 0 || kind == 3 || (kind == 4 && peer % 2 == 0))
            tag = MPI_ANY_TAG;
        if (peer == op->peer && tag == op->tag)
            continue;
        if (op->kept == MPI_REQUEST_NULL) {
            op_free(op);
            free(op);
        }
        op = test_alloc(sizeof *op);
        op_make_wild(op, peer, tag, size);
        round->ops[i] = op;
    }
}

static void gather_ops(struct round *round)
{
    int rank = round->ex->rank;
    size_t n = 2 * (size_t)round->list.n + 4;

    round->ops = test_alloc(n * sizeof(struct op *));
    round->requests = test_alloc(n * sizeof(MPI_Request));
    round->statuses = test_alloc(n * sizeof(MPI_Status));
    for (int i = 0; i < round->list.n; i++) {
        if (round->list.items[i].dst == rank)
            round->ops[round->n++] = make_op(round, &round->list.items[i], false);
    }
    round->n_recvs = round->n;
    shuffle_recvs(round);
    if (has(round, DEV_PROCNULL))
        add_null(round);
    round->n_recvs = round->n;
    if (has(round, DEV_WILDCARD))
        make_wild(round);
    for (int i = 0; i < round->list.n; i++) {
        if (round->list.items[i].src == rank)
            round->ops[round->n++] = make_op(round, &round->list.items[i], true);
    }
    if (has(round, DEV_PROCNULL))
        add_null(round);
    for (int i = 0; i < round->n; i++)
        round->requests[i] = MPI_REQUEST_NULL;
}

/* --- receives and sends by requests -------------------------------------------------------- */

static void start_recv(struct round *round, int i)
{
    struct op *op = round->ops[i];

    op_fill_recv(op);
    if (op->kept != MPI_REQUEST_NULL) {
        round->requests[i] = op->kept;
        if (round->ex->shape->persistence == START_EACH)
            MPI_Start(&round->requests[i]);
        return;
    }
    MPI_Irecv(op->origin, op->count, op_type(op), op->peer, op->tag, round->ex->comm,
              &round->requests[i]);
}

static enum mode mode_of(const struct round *round, const struct op *op)
{
    if (op->msg == NULL || (op->msg->mode == MODE_READY && has(round, DEV_PROBE)))
        return MODE_STANDARD;
    return op->msg->mode;
}

/* A blocking send to the rank itself is one as well: its receive is posted. */
static bool blocks(struct round *round)
{
    int blocking = has(round, DEV_PROBE) ? 0 : round->ex->shape->blocking_sends;
    return blocking == 1 || (blocking == 2 && test_chance(&round->own, 2));
}

static void start_send(struct round *round, int i)
{
    struct op *op = round->ops[i];
    MPI_Comm comm = round->ex->comm;

    op_fill_send(op, comm);
    if (op->kept != MPI_REQUEST_NULL) {
        round->requests[i] = op->kept;
        if (round->ex->shape->persistence == START_EACH)
            MPI_Start(&round->requests[i]);
        return;
    }
    if (blocks(round)) {
        op_send(op, mode_of(round, op), comm);
        return;
    }
    round->requests[i] = op_isend(op, mode_of(round, op), comm);
    if (has(round, DEV_FREED) && test_chance(&round->own, 2))
        MPI_Request_free(&round->requests[i]);
}

/* Whether a persistent request can be started by one call with those of [begin, i): not after a
 * message of the same peer and tag, since the order within the call is MPI's to choose. */
static bool joins(const struct round *round, int begin, int i)
{
    const struct op *op = round->ops[i];

    for (int k = begin; k < i; k++) {
        const struct op *other = round->ops[k];
        if (other->kept == MPI_REQUEST_NULL || (other->peer == op->peer && other->tag == op->tag))
            return false;
    }
    return op->kept != MPI_REQUEST_NULL;
}

static void startall(struct round *round, int begin, int end)
{
    if (begin < end && round->ops[begin]->kept != MPI_REQUEST_NULL &&
        round->ex->shape->persistence == STARTALL)
        MPI_Startall(end - begin, &round->requests[begin]);
}

/* Starts [begin, end) in their order, persistent ones as many at a time as can be. */
static void start(struct round *round, int begin, int end, void (*start_one)(struct round *, int))
{
    int first = begin;

    for (int i = begin; i < end; i++) {
        if (!joins(round, first, i)) {
            startall(round, first, i);
            first = i;
        }
        start_one(round, i);
    }
    startall(round, first, end);
}

static void away(struct round *round, int at)
{
    const struct timespec time = {.tv_nsec = 200000000};
    struct test_rng rng = {test_key(round->key, 3)};
    int rank = test_below(&rng, round->ex->n_ranks), where = test_below(&rng, 3);

    if (has(round, DEV_SLOW) && rank == round->ex->rank && where == at)
        nanosleep(&time, NULL);
}

/* Some work, so that messages may come before it is done. */
static double compute(int n)
{
    volatile double sum = 0;
    for (int i = 1; i < n; i++)
        sum = sum + 1.0 / i;
    return sum;
}

static bool any_ready(const struct list *list)
{
    for (int i = 0; i < list->n; i++) {
        if (list->items[i].mode == MODE_READY)
            return true;
    }
    return false;
}

static void post_recvs(struct round *round)
{
    start(round, 0, round->n_recvs, start_recv);
    if (any_ready(&round->list))
        MPI_Barrier(round->ex->comm);
}

static void start_sends(struct round *round)
{
    start(round, round->n_recvs, round->n, start_send);
}

static void start_reduction(struct round *round, int number, bool waits, struct reduction *made)
{
    exchange_reduction_start(made, round->ex->comm, test_key(round->key, 2000 + number),
                             round->ex->shape->exact, waits);
}

static void reduce(struct round *round)
{
    struct reduction reduction;
    start_reduction(round, 0, true, &reduction);
    round->reduced += exchange_reduction_end(&reduction, false);
}

struct started {
    int n;
    struct reduction reductions[2];
};

/* All ranks start the same. */
static void start_reductions(struct round *round, struct started *started)
{
    uint64_t key = test_key(round->key, 3000);

    started->n = key % 4 == 0 ? 2 : 1;
    for (int i = 0; i < started->n; i++)
        start_reduction(round, 1 + i, false, &started->reductions[i]);
    if (key % 5 == 0)
        reduce(round);
}

static void end_reductions(struct round *round, struct started *started)
{
    int first = test_below(&round->own, started->n);

    for (int i = 0; i < started->n; i++)
        round->reduced +=
            exchange_reduction_end(&started->reductions[(first + i) % started->n], i == first);
    started->n = 0;
}

static void by_requests(struct round *round)
{
    MPI_Request extra = MPI_REQUEST_NULL;
    enum reduces reduces = round->ex->shape->reduces;
    bool late = reduces == AROUND_COMPLETION && test_chance(&round->own, 2);
    struct started started = {.n = 0};
    int buffer;

    away(round, 0);
    if (has(round, DEV_CANCEL))
        extra = extra_irecv(round, &buffer);
    post_recvs(round);
    compute(round->ex->shape->complete == complete_sends_first ? 20000 : 10);
    away(round, 1);
    start_sends(round);
    if (has(round, DEV_BARRIER))
        MPI_Barrier(round->ex->comm);
    if (has(round, DEV_CANCEL) && test_chance(&round->own, 2))
        extra_cancel(&extra);
    away(round, 2);
    if (reduces == STARTED)
        start_reductions(round, &started);
    else if (reduces != NO_REDUCTION && !late)
        reduce(round);
    if (started.n > 0 && test_chance(&round->own, 3))
        end_reductions(round, &started);
    round->ex->shape->complete(round->n_recvs, round->n, round->requests, round->statuses);
    if (late)
        reduce(round);
    if (started.n > 0)
        end_reductions(round, &started);
    if (extra != MPI_REQUEST_NULL)
        extra_cancel(&extra);
}

/* In the order of posting, since that is how messages of one source match. */
static uint64_t check_recvs(struct round *round)
{
    uint64_t hash = 0;

    for (int i = 0; i < round->n_recvs; i++) {
        struct op *op = round->ops[i];
        const MPI_Status *status = &round->statuses[i];
        if (op->peer != MPI_PROC_NULL) {
            const struct message *msg = round_take(round, status->MPI_SOURCE, op->tag);
            if (op->msg == NULL)
                op->msg = msg;
            if (msg == NULL || op->msg != msg)
                test_fail("a message of source %d tag %d was not sent or overtook",
                          status->MPI_SOURCE, status->MPI_TAG);
            if (op->msg == NULL)
                continue;
        }
        hash += op_check(op, status, round->ex->comm);
    }
    return hash;
}

/* --- one peer at a time -------------------------------------------------------------------- */

/* The number-th message from src to dst, or NULL. */
static const struct message *find(const struct list *list, int src, int dst, int number)
{
    for (int i = 0; i < list->n; i++) {
        if (list->items[i].src == src && list->items[i].dst == dst && number-- == 0)
            return &list->items[i];
    }
    return NULL;
}

static uint64_t sendrecv(struct round *round, const struct message *to, const struct message *from)
{
    MPI_Comm comm = round->ex->comm;
    bool types = round->ex->shape->types;
    struct op send, recv;
    MPI_Status status;
    uint64_t hash;

    op_make_null(&send);
    op_make_null(&recv);
    if (to != NULL) {
        op_free(&send);
        op_make_send(&send, to, types, &round->own);
    }
    if (from != NULL) {
        op_free(&recv);
        op_make_recv(&recv, from, types, &round->own);
    }
    op_fill_send(&send, comm);
    MPI_Sendrecv(send.origin, send.count, op_type(&send), send.peer, send.tag, recv.origin,
                 recv.count, op_type(&recv), recv.peer, recv.tag, comm, &status);
    hash = op_check(&recv, &status, comm);
    op_free(&send);
    op_free(&recv);
    return hash;
}

/* The buffer is the send's, and is checked as a receive's. */
static uint64_t replace(struct round *round, const struct message *to, const struct message *from)
{
    MPI_Comm comm = round->ex->comm;
    struct op op;
    MPI_Status status;
    uint64_t hash = 0;

    op_make_send(&op, to != NULL ? to : from, false, &round->own);
    op_fill_send(&op, comm);
    MPI_Sendrecv_replace(op.origin, op.count, op_type(&op), to ? to->dst : MPI_PROC_NULL,
                         to ? to->tag : 0, from ? from->src : MPI_PROC_NULL, from ? from->tag : 0,
                         comm, &status);
    if (from != NULL) {
        op.msg = from;
        hash = op_check(&op, &status, comm);
    }
    op_free(&op);
    return hash;
}

static int most_of_a_pair(const struct list *list)
{
    int n = 0;
    for (int i = 0; i < list->n; i++) {
        while (find(list, list->items[i].src, list->items[i].dst, n) != NULL)
            n++;
    }
    return n;
}

static uint64_t by_sendrecv(struct round *round)
{
    int rank = round->ex->rank, n_ranks = round->ex->n_ranks;
    int n_numbers = most_of_a_pair(&round->list);
    uint64_t hash = 0;

    for (int number = 0; number < n_numbers; number++) {
        for (int shift = 0; shift < n_ranks; shift++) {
            int dst = (rank + shift) % n_ranks, src = (rank - shift + n_ranks) % n_ranks;
            const struct message *to = find(&round->list, rank, dst, number);
            const struct message *from = find(&round->list, src, rank, number);
            if (to == NULL && from == NULL)
                continue;
            if (round->ex->shape->how == HOW_REPLACE)
                hash += replace(round, to, from);
            else
                hash += sendrecv(round, to, from);
        }
    }
    return hash;
}

/* All ranks go through the list in its order, so no cycle can form. */
static uint64_t by_blocking(struct round *round)
{
    struct exchange *ex = round->ex;
    uint64_t hash = 0;

    for (int i = 0; i < round->list.n; i++) {
        const struct message *msg = &round->list.items[i];
        struct op op;
        MPI_Status status;
        if (msg->src == ex->rank && msg->dst == ex->rank) {
            hash += sendrecv(round, msg, msg);
        } else if (msg->src == ex->rank) {
            op_make_send(&op, msg, ex->shape->types, &round->own);
            op_fill_send(&op, ex->comm);
            op_send(&op, msg->mode, ex->comm);
            op_free(&op);
        } else if (msg->dst == ex->rank) {
            op_make_recv(&op, msg, ex->shape->types, &round->own);
            MPI_Recv(op.origin, op.count, op_type(&op), op.peer, op.tag, ex->comm, &status);
            hash += op_check(&op, &status, ex->comm);
            op_free(&op);
        }
    }
    return hash;
}

/* --- all together -------------------------------------------------------------------------- */

static void free_ops(struct round *round)
{
    for (int i = 0; i < round->n; i++) {
        if (round->ops[i]->kept == MPI_REQUEST_NULL) {
            op_free(round->ops[i]);
            free(round->ops[i]);
        }
    }
    free(round->ops);
    free(round->requests);
    free(round->statuses);
}

static uint64_t run(struct round *round)
{
    const unsigned by_requests_only = 1u << DEV_WILDCARD | 1u << DEV_PROBE | 1u << DEV_PROCNULL |
                                      1u << DEV_FREED | 1u << DEV_CANCEL | 1u << DEV_BARRIER;
    enum how how = round->ex->shape->how;
    uint64_t hash;

    if (how != HOW_REQUESTS && (round->deviations & by_requests_only) == 0) {
        away(round, 0);
        return how == HOW_BLOCKING ? by_blocking(round) : by_sendrecv(round);
    }
    gather_ops(round);
    if (has(round, DEV_PROBE)) {
        start_sends(round);
        away(round, 1);
        hash = round_by_probes(round);
    } else {
        by_requests(round);
        hash = check_recvs(round);
    }
    return hash + round->reduced;
}

uint64_t exchange_round(struct exchange *ex, unsigned deviations, uint64_t key)
{
    struct round round = {.ex = ex, .deviations = deviations, .key = key};
    uint64_t hash;

    round.own.state = test_key(key, 1000 + ex->rank);
    round.list = pattern_messages(&ex->pattern, ex->shape, ex->n_ranks, deviations, key);
    round.taken = test_alloc((size_t)round.list.n * sizeof *round.taken);
    memset(round.taken, 0, (size_t)round.list.n * sizeof *round.taken);
    hash = run(&round);
    /* wildcards must not take what comes next; freed sends must have arrived */
    if (has(&round, DEV_WILDCARD) || has(&round, DEV_PROBE) || has(&round, DEV_FREED))
        MPI_Barrier(ex->comm);
    if (has(&round, DEV_TRUNCATE))
        extra_truncate(&round);
    if (round.ops != NULL)
        free_ops(&round);
    free(round.taken);
    list_free(&round.list);
    return hash;
}
