/* Tests of nonblocking neighborhood collectives that travel in reductions
 * (shim/exchange/neighbor_embed.h): what the ranks agree on, then random calls over a network with
 * random delays. There are no reductions: segments that would travel in one are sent at random
 * times, in any order. */
#include "mock_mpi.h"
#include "neighbor_ranks.h"
#include "random_pattern.h"
#include "shim/carry/line.h"
#include "shim/meet/meeting.h"
#include "shim/state/hooks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <utlist.h>

/* ---- what the ranks agree on ---- */

/* A call that nobody carries, and the reduction that follows. */
static void call_and_reduce(int r, int x, int n_times, enum cpl_embed_verdict verdict)
{
    struct rank *me = &world.ranks[r];
    act_as(r);
    for (int k = 0; k < n_times; k++) {
        exchange_of(me, x)->nonblocking.n++;
        cpl_neighbor_embed_started(&me->state[x], exchange_of(me, x));
        cpl_neighbor_embed_note(&me->state[x], verdict);
        cpl_neighbor_embed_leave();
    }
}

/* All ranks meet on the first communicator; returns whether something was settled. */
static bool meet(void)
{
    struct cpl_embed_ballot all = {.id = INT64_MAX};
    int64_t *least = (int64_t *)&all;
    int n_settled = 0;
    for (int r = 0; r < world.n_ranks; r++) {
        act_as(r);
        struct cpl_embed_ballot mine = cpl_neighbor_embed_ballot(&world.ranks[r].state[0]);
        for (size_t k = 0; k < sizeof mine / sizeof *least; k++)
            if (r == 0 || ((int64_t *)&mine)[k] < least[k])
                least[k] = ((int64_t *)&mine)[k];
    }
    for (int r = 0; r < world.n_ranks; r++) {
        act_as(r);
        n_settled += cpl_neighbor_embed_settle(&world.ranks[r].state[0], &all);
    }
    assert_true(n_settled == 0 || n_settled == world.n_ranks);
    return n_settled > 0;
}

/* They look whether what rides on it still does. */
static void review(void)
{
    const struct cpl_item *item = cpl_hosted_hooks.item;
    int64_t all[CPL_MOST_WORDS];
    for (int r = 0; r < world.n_ranks; r++) {
        int64_t mine[CPL_MOST_WORDS] = {0};
        act_as(r);
        if (!item->date(&world.ranks[r].state[0]))
            return;
        item->vote(&world.ranks[r].state[0], mine);
        for (int k = 0; k < item->n_least; k++)
            if (r == 0 || mine[k] < all[k])
                all[k] = mine[k];
    }
    for (int r = 0; r < world.n_ranks; r++) {
        act_as(r);
        assert_int_equal(item->settle(&world.ranks[r].state[0], true, all), CPL_SETTLED);
    }
}

static void all_call_and_reduce(int x, int n_times, enum cpl_embed_verdict verdict)
{
    for (int r = 0; r < world.n_ranks; r++)
        call_and_reduce(r, x, n_times, verdict);
}

/* Whether an exchange rides; the same on all ranks. */
static bool rides(int x)
{
    const struct cpl_comm_state *on = exchange_of(&world.ranks[0], x)->embedding.on;
    for (int r = 0; r < world.n_ranks; r++) {
        const struct cpl_embedding *e = &exchange_of(&world.ranks[r], x)->embedding;
        assert_true(!e->on == !on);
        assert_true(!on || (e->on == &world.ranks[r].state[0] &&
                            e->tag == exchange_of(&world.ranks[0], x)->embedding.tag));
    }
    return on;
}

static void test_settles_when_reductions_follow(void **state)
{
    (void)state;
    neighbor_ranks_begin(3, 1);
    all_call_and_reduce(0, 3, CPL_EMBED_ANY_ORDER);
    assert_false(meet()); /* too few */
    all_call_and_reduce(0, 1, CPL_EMBED_ANY_ORDER);
    assert_true(meet());
    assert_true(rides(0));
    assert_false(rides(1));
    assert_false(meet());
    neighbor_ranks_end();
}

static void test_others_than_small_reductions(void **state)
{
    (void)state;
    neighbor_ranks_begin(3, 2);
    all_call_and_reduce(0, 9, CPL_EMBED_REFUSED);
    assert_false(meet());
    all_call_and_reduce(0, 8, CPL_EMBED_ANY_ORDER); /* not yet mostly */
    assert_false(meet());
    all_call_and_reduce(0, 2, CPL_EMBED_ANY_ORDER);
    assert_true(meet());
    neighbor_ranks_end();
}

static void test_different_counts(void **state)
{
    (void)state;
    neighbor_ranks_begin(3, 3);
    all_call_and_reduce(0, 6, CPL_EMBED_ANY_ORDER);
    call_and_reduce(1, 0, 1, CPL_EMBED_ANY_ORDER); /* a rank is ahead */
    assert_false(meet());
    assert_false(rides(0));
    call_and_reduce(0, 0, 1, CPL_EMBED_ANY_ORDER);
    call_and_reduce(2, 0, 1, CPL_EMBED_ANY_ORDER);
    assert_true(meet());
    assert_true(rides(0));
    neighbor_ranks_end();
}

static void test_different_exchanges(void **state)
{
    (void)state;
    neighbor_ranks_begin(3, 4);
    all_call_and_reduce(1, 5, CPL_EMBED_ANY_ORDER);
    for (int r = 0; r < 3; r++) /* on the second communicator, whose ranks are those of the world */
        world.ranks[r].state[0].comm = MPI_COMM_WORLD;
    call_and_reduce(0, 0, 5, CPL_EMBED_ANY_ORDER); /* for one rank the first is in question */
    for (int r = 0; r < 3; r++)
        exchange_of(&world.ranks[r], 1)->embedding.n_reduced[CPL_HOST_WORLD] = 5;
    assert_false(meet());
    call_and_reduce(1, 0, 5, CPL_EMBED_ANY_ORDER);
    call_and_reduce(2, 0, 5, CPL_EMBED_ANY_ORDER);
    assert_true(meet());
    assert_true(rides(0) && !rides(1));
    assert_true(meet());
    assert_true(rides(1));
    assert_true(exchange_of(&world.ranks[0], 0)->embedding.tag !=
                exchange_of(&world.ranks[0], 1)->embedding.tag);
    neighbor_ranks_end();
}

static void test_unable_and_dear(void **state)
{
    (void)state;
    neighbor_ranks_begin(3, 5);
    all_call_and_reduce(0, 4, CPL_EMBED_ANY_ORDER);
    all_call_and_reduce(1, 4, CPL_EMBED_ANY_ORDER);
    world.ranks[2].context.met_others = true;
    act_as(0);
    world.ranks[2].context.met_others = true;
    assert_true(meet());
    assert_false(rides(0));
    for (int r = 0; r < 3; r++)
        assert_int_equal(exchange_of(&world.ranks[r], 0)->embedding.left, CPL_EMBED_LEFT_EDGES);
    neighbor_ranks_end();
    neighbor_ranks_begin(3, 6);
    all_call_and_reduce(0, 4, CPL_EMBED_ANY_ORDER);
    for (int r = 0; r < 3; r++)
        exchange_of(&world.ranks[r], 0)->plans.summary[0].embedded_us = 30;
    assert_true(meet());
    assert_false(rides(0));
    assert_int_equal(exchange_of(&world.ranks[1], 0)->embedding.left, CPL_EMBED_LEFT_NO_GAIN);
    neighbor_ranks_end();
}

static void test_review(void **state)
{
    (void)state;
    neighbor_ranks_begin(3, 7);
    all_call_and_reduce(0, 4, CPL_EMBED_ANY_ORDER);
    assert_true(meet());
    exchange_of(&world.ranks[1], 0)->embedding.n_missed = 8; /* are forgiven */
    review();
    assert_true(rides(0));
    exchange_of(&world.ranks[1], 0)->embedding.n_missed = 9;
    exchange_of(&world.ranks[2], 0)
        ->nonblocking.n++; /* this rank's next call rides: so must all others' */
    review();
    assert_true(rides(0));
    exchange_of(&world.ranks[0], 0)->nonblocking.n++;
    exchange_of(&world.ranks[1], 0)->nonblocking.n++;
    review();
    assert_false(rides(0));
    assert_int_equal(exchange_of(&world.ranks[0], 0)->embedding.left, CPL_EMBED_LEFT_MISSED);
    assert_false(world.ranks[2].state[0].line->linked); /* nothing is left to ride */
    assert_false(meet());
    neighbor_ranks_end();
}

/* ---- calls ---- */

/* Bytes of a message and what they are. */
static int size_of(int x, int call, int source, int dest)
{
    return (x * 31 + call * 17 + source * 7 + dest * 3) % MOST_BYTES;
}

static unsigned char value_of(int x, int call, int source, int dest)
{
    return (unsigned char)(1 + x * 101 + call * 29 + source * 11 + dest * 5);
}

static void deliver(void *context, const struct cpl_segment *segment, const unsigned char *payload)
{
    struct rank *me = context;
    assert_true(segment->flags & CPL_SEGMENT_NEIGHBOR);
    cpl_match_deliver(&me->state[0].line->hosted_match, segment, payload);
}

static void fill(struct rank *me, int x, int c)
{
    const struct cpl_adjacency *a = &me->state[x].adjacency;
    struct cpl_neighbor_op *op = &me->op[x][c];
    int r = me->state[x].rank;
    for (int k = 0; k < a->out.n; k++) {
        int dest = a->out.rank[k], bytes = size_of(x, c, r, dest);
        memset(me->sent[x][c][k], value_of(x, c, r, dest), (size_t)bytes);
        me->out[x][c][k] = mock_span(me->sent[x][c][k], bytes);
    }
    for (int k = 0; k < a->in.n; k++)
        me->in[x][c][k] = mock_span(me->received[x][c][k], size_of(x, c, a->in.rank[k], r));
    op->carrying = (struct cpl_carrying){
        .x = exchange_of(me, x), .way = &cpl_way_reduction, .data = &op->data};
    op->data.out_span = me->out[x][c];
    op->data.in_span = me->in[x][c];
    op->data.requests = me->requests[x][c];
}

static void start_call(struct rank *me, int x)
{
    struct cpl_exchange *exchange = exchange_of(me, x);
    struct cpl_neighbor_op *op = &me->op[x][me->n_started[x]];
    fill(me, x, me->n_started[x]++);
    assert_int_equal(op->carrying.way->begin(op), MPI_SUCCESS);
    LL_APPEND(exchange->nonblocking.pending, op);
    exchange->nonblocking.n++;
    cpl_neighbor_embed_started(&me->state[x], exchange);
}

static void check_received(const struct rank *me, int x, int c)
{
    const struct cpl_neighbors *in = &me->state[x].adjacency.in;
    int r = me->state[x].rank;
    for (int k = 0; k < in->n; k++)
        for (int b = 0; b < MOST_BYTES; b++)
            assert_int_equal(me->received[x][c][k][b], b < size_of(x, c, in->rank[k], r)
                                                           ? value_of(x, c, in->rank[k], r)
                                                           : 0);
}

static void progress(struct rank *me, int x)
{
    struct cpl_exchange *exchange = exchange_of(me, x);
    for (struct cpl_neighbor_op *op; (op = exchange->nonblocking.pending);) {
        if (!op->carrying.way->progress(&op->carrying))
            return;
        assert_true(op == &me->op[x][me->n_complete[x]]);
        assert_int_equal(op->carrying.result, MPI_SUCCESS);
        LL_DELETE(exchange->nonblocking.pending, op);
        check_received(me, x, me->n_complete[x]++);
    }
}

/* One of what is aboard comes off. */
static void send_cargo(struct rank *me)
{
    struct aboard *one = &me->cargo[random_below(&world.random, me->n_cargo)];
    cpl_rides_send(&me->state[0].line->rides, one->segment.dest,
                   (const unsigned char *)&one->segment, cpl_segment_bytes(&one->segment), 1);
    *one = me->cargo[--me->n_cargo];
}

/* Something that this rank may do next. */
static void act(struct rank *me)
{
    struct cpl_line *line = me->state[0].line;
    int x = random_below(&world.random, N_EXCHANGES);
    switch (random_below(&world.random, 6)) {
    case 0:
        if (me->n_started[x] < CALLS)
            start_call(me, x);
        break;
    case 1: /* a reduction is entered: what waits for it does not leave, and goes aboard */
        line->embed.waiting = true;
        cpl_neighbor_embed_leave();
        line->embed.waiting = false;
        cpl_neighbor_embed_board(&me->state[0], true);
        break;
    case 2:
        if (random_below(&world.random, 3) == 0)
            cpl_neighbor_embed_leave();
        break;
    case 3:
        if (me->n_cargo > 0)
            send_cargo(me);
        break;
    default:
        cpl_rides_poll(&line->rides);
        cpl_match_poll(&line->hosted_match);
        progress(me, x);
    }
}

static bool all_complete(void)
{
    for (int r = 0; r < world.n_ranks; r++)
        for (int x = 0; x < N_EXCHANGES; x++)
            if (world.ranks[r].n_complete[x] < CALLS)
                return false;
    return true;
}

static void begin_riding(int r)
{
    struct rank *me = &world.ranks[r];
    struct cpl_line *line = me->state[0].line;
    line->rides.deliver = deliver;
    line->rides.context = me;
    assert_true(cpl_rides_init(&line->rides, mock_comm(r), 1));
    for (int x = 0; x < N_EXCHANGES; x++)
        exchange_of(me, x)->embedding.same_ranks = true;
}

static void check_counts(const struct rank *me)
{
    for (int x = 0; x < N_EXCHANGES; x++) {
        const struct cpl_embedding *e = &me->state[x].exchanges[CPL_NEIGHBOR_ALLTOALLV].embedding;
        assert_int_equal(e->n_carried + e->n_missed, CALLS);
        assert_int_equal(e->n_segments, e->n_carried * me->state[x].adjacency.out.n);
    }
    assert_int_equal(me->n_cargo, 0);
    assert_true(cpl_match_is_idle(&me->state[0].line->hosted_match));
}

/* Ranks start calls of two exchanges, in an order of their own, leave and go aboard as they like.
 */
static void exchange_at_random(uint64_t seed)
{
    uint64_t random = seed;
    neighbor_ranks_begin(2 + random_below(&random, MOST_RANKS - 1), seed);
    for (int x = 0; x < N_EXCHANGES; x++) {
        for (int r = 0; r < world.n_ranks; r++)
            exchange_of(&world.ranks[r], x)->embedding.n_reduced[x] = 4;
        for (int r = 0; r < world.n_ranks; r++) {
            exchange_of(&world.ranks[r], x)->embedding.n_seen = 4;
            exchange_of(&world.ranks[r], x)->embedding.state = &world.ranks[r].state[x];
            world.ranks[r].state[0].comm = MPI_COMM_WORLD;
        }
        assert_true(meet() && rides(x));
    }
    for (int r = 0; r < world.n_ranks; r++)
        begin_riding(r);
    for (int64_t n = 0; !all_complete(); n++) {
        assert_in_range(n, 0, 10000000); /* nobody waits for ever */
        int r = random_below(&world.random, world.n_ranks);
        act_as(r);
        act(&world.ranks[r]);
    }
    for (int r = 0; r < world.n_ranks; r++) {
        act_as(r);
        check_counts(&world.ranks[r]);
        cpl_rides_free(&world.ranks[r].state[0].line->rides);
        for (int x = 0; x < N_EXCHANGES; x++)
            cpl_neighbor_embed_forget(exchange_of(&world.ranks[r], x));
    }
    neighbor_ranks_end();
}

static void test_random_exchanges(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 100; seed++)
        exchange_at_random(seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_settles_when_reductions_follow),
        cmocka_unit_test(test_others_than_small_reductions),
        cmocka_unit_test(test_different_counts),
        cmocka_unit_test(test_different_exchanges),
        cmocka_unit_test(test_unable_and_dear),
        cmocka_unit_test(test_review),
        cmocka_unit_test(test_random_exchanges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
