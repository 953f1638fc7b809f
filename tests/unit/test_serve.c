/* Tests of when nonblocking neighborhood collectives are carried (shim/exchange/neighbor_serve.c):
 * ranks that are apart by calls, by candidates or by what has come, ranks that cannot, a program
 * that becomes slower. Whatever they know, all decide alike, by the same collectives; what must be
 * alike is compared after every collective, and which calls were carried at the end
 * (serve_ranks.c). */
#include "../failing_heap.h"
#include "random_pattern.h"
#include "serve_ranks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { N = 4 };

#define KIND CPL_NEIGHBOR_ALLTOALLV

/* What the program of each test goes by: calls of each rank on each communicator, then blocking
 * collectives on one. */
static struct {
    int calls[FIBERS_MOST][SERVE_COMMS];
    enum cpl_neighbor_kind kind;
    int n_collectives, host;
} plan;

static void program(int r)
{
    for (int c = 0; c < SERVE_COMMS; c++)
        for (int k = 0; k < plan.calls[r][c]; k++)
            serve_start(c, plan.kind);
    for (int k = 0; k < plan.n_collectives; k++)
        serve_collective(plan.host);
}

/* A rank, or all (-1), start so many calls. */
static void start(int r, int comm, int n)
{
    memset(plan.calls, 0, sizeof plan.calls);
    for (int k = 0; k < fibers_n(); k++)
        plan.calls[k][comm] = r < 0 || r == k ? n : 0;
    plan.n_collectives = 0;
    fibers_run(program);
}

static void meet_on(int host, int n)
{
    memset(plan.calls, 0, sizeof plan.calls);
    plan.n_collectives = n;
    plan.host = host;
    fibers_run(program);
}

static void begin(uint64_t seed)
{
    plan.kind = KIND;
    serve_ranks_begin(N, seed);
}

static int64_t next_meeting(int comm)
{
    return serve.rank[0].state[comm].serve->date.next;
}

/* ---- all goes well ---- */

static void test_serves(void **state)
{
    (void)state;
    static const enum cpl_neighbor_kind kinds[] = {CPL_NEIGHBOR_ALLTOALL, CPL_NEIGHBOR_ALLTOALLV,
                                                   CPL_NEIGHBOR_ALLGATHER, CPL_ALLTOALLV};
    for (int k = 0; k < 4; k++) {
        begin(1);
        plan.kind = kinds[k];
        start(-1, 0, 2);
        meet_on(1, 1);
        assert_false(serve_is_settled(0, plan.kind));
        meet_on(1, 1); /* the second one is a meeting, of whichever communicator */
        assert_true(serve_is_served(0, plan.kind));
        assert_int_equal(fibers_context(2)->busy.n_served, 1);
        start(-1, 0, 3);
        for (int r = 0; r < N; r++)
            for (int n = 0; n < 5; n++)
                assert_int_equal(serve.rank[r].carried[0][plan.kind][n], n >= 2);
        assert_int_equal(serve_exchange(3, 0, plan.kind)->nonblocking.n_planned, 3);
        assert_int_equal(fibers_context(3)->exchanges.n_carried, 3);
        serve_ranks_end();
    }
}

/* Fewer calls than it takes to learn. */
static void test_too_few(void **state)
{
    (void)state;
    begin(2);
    start(-1, 0, SERVE_LEARN - 1);
    meet_on(0, 4);
    assert_false(serve_is_settled(0, KIND));
    start(-1, 0, 1);
    meet_on(0, 4);
    assert_true(serve_is_served(0, KIND));
    serve_ranks_end();
}

/* Several communicators and kinds are decided about at one meeting, of lowest names first. */
static void test_all_at_one_meeting(void **state)
{
    (void)state;
    begin(3);
    for (int c = SERVE_COMMS - 1; c >= 0; c--)
        start(-1, c, 2);
    plan.kind = CPL_ALLTOALLW;
    start(-1, 1, 2);
    meet_on(2, 2);
    for (int c = 0; c < SERVE_COMMS; c++)
        assert_true(serve_is_served(c, KIND));
    assert_true(serve_is_served(1, CPL_ALLTOALLW));
    assert_int_equal(serve.n_planned, SERVE_COMMS + 1);
    assert_int_equal(fibers_context(0)->busy.n_served, SERVE_COMMS);
    serve_ranks_end();
}

/* ---- ranks that are apart ---- */

/* One rank is ahead by a call: they try again at the next three collectives, then at the next
 * regular date. */
static void test_different_numbers(void **state)
{
    (void)state;
    static const struct {
        int more, decided_at; /* collectives after the second one, before the others catch up */
    } cases[] = {{0, 3}, {1, 4}, {2, 5}, {3, 6}, {6, 9}, {5, 8}};
    for (int k = 0; k < 6; k++)
        for (int who = 0; who < N; who += N - 1) {
            begin(10);
            start(-1, 0, 2);
            start(who, 0, 1);
            meet_on(1, 2 + cases[k].more);
            assert_false(serve_is_settled(0, KIND));
            for (int r = 0; r < N; r++)
                if (r != who)
                    start(r, 0, 1);
            while (!serve_is_settled(0, KIND))
                meet_on(1, 1);
            assert_int_equal(serve.rank[0].state[1].meeting.n, cases[k].decided_at);
            assert_true(serve_is_served(0, KIND));
            serve_ranks_end();
        }
}

/* Three retries, and no more, until the next regular date. */
static void test_retries_end(void **state)
{
    (void)state;
    begin(11);
    start(-1, 0, 2);
    start(2, 0, 1);
    meet_on(0, 16); /* meetings: 2, 3, 4 (regular), 5, 6, 7, 8 (regular), 9, 10, 11, 16 */
    assert_int_equal(serve.rank[0].state[0].serve->date.next, 17);
    meet_on(0, 3); /* 17, 18, 19 */
    assert_int_equal(next_meeting(0), 32);
    meet_on(0, 2);
    for (int r = 0; r < N; r++)
        if (r != 2)
            start(r, 0, 1);
    meet_on(0, 10); /* up to 31 */
    assert_false(serve_is_settled(0, KIND));
    meet_on(0, 1);
    assert_true(serve_is_served(0, KIND));
    serve_ranks_end();
}

/* For one rank another communicator is in question. */
static void test_different_candidates(void **state)
{
    (void)state;
    for (int who = 0; who < N; who++) {
        begin(12);
        for (int r = 0; r < N; r++)
            start(r, r == who ? 1 : 0, 2);
        meet_on(2, 2);
        assert_false(serve_is_settled(0, KIND) || serve_is_settled(1, KIND));
        start(who, 0, 2);
        meet_on(2, 1); /* the first one named is the same one now: two ranks are not there */
        for (int r = 0; r < N; r++)
            if (r != who)
                start(r, 1, 2);
        meet_on(2, 1);
        assert_true(serve_is_served(0, KIND) && serve_is_served(1, KIND));
        serve_ranks_end();
    }
}

/* A name or tokens have not come to a rank, or the program has not run for long. */
static void test_not_come(void **state)
{
    (void)state;
    enum { EARLY = SERVE_TOKENS + 1 };
    const int left[] = {[EARLY] = CPL_LEFT_SHORT};
    for (int what = SERVE_NAMES; what <= EARLY; what++)
        for (int who = 0; who < N; who++) {
            begin(13);
            plan.kind = what >= EARLY && who % 2 ? CPL_ALLTOALLV : KIND;
            start(-1, 0, 2);
            serve.answers.early = what == EARLY;
            if (what < EARLY)
                serve.rank[who].held[what] = true;
            meet_on(0, 3);
            assert_false(serve_is_settled(0, plan.kind));
            assert_int_equal(serve.n_planned, 0);
            assert_int_equal(serve_exchange(1, 0, plan.kind)->learned.left, left[what]);
            serve.answers.early = false;
            if (what < EARLY)
                serve.rank[who].held[what] = false;
            meet_on(0, 1);
            assert_true(serve_is_served(0, plan.kind));
            serve_ranks_end();
        }
}

/* It never comes: freeing the communicator waits for it. */
static void test_never_decided(void **state)
{
    (void)state;
    begin(14);
    start(-1, 0, 2);
    start(-1, 2, 1);
    for (int r = 0; r < N; r++)
        serve.rank[r].held[SERVE_TOKENS] = true;
    meet_on(1, 9);
    assert_false(serve_is_settled(0, KIND));
    serve_ranks_end();
}

/* ---- ranks that cannot ---- */

static void test_hopeless(void **state)
{
    (void)state;
    for (int what = 1; what < 3; what++)
        for (int who = 0; who < N; who++) {
            begin(20);
            serve.rank[who].unusable = what == 2;
            start(-1, 0, 2);
            fibers_context(who)->met_others = what == 1;
            serve.rank[(who + 1) % N].held[SERVE_TOKENS] = true; /* it is hopeless all the same */
            meet_on(0, 2);
            assert_true(serve_is_settled(0, KIND));
            assert_false(serve_is_served(0, KIND));
            assert_int_equal(serve.n_planned, 0);
            start(-1, 0, 2);
            assert_false(serve.rank[who].carried[0][KIND][3]);
            serve_ranks_end();
        }
}

/* Planning fails on one rank, or does not promise enough. */
static void test_not_planned(void **state)
{
    (void)state;
    for (int what = 0; what < 5; what++)
        for (int who = 0; who < N; who++) {
            begin(21);
            serve.answers = (struct serve_answers){.promises = what != 0,
                                                   .no_plan = what == 1 ? who : -1,
                                                   .no_match = what == 2 ? who : -1,
                                                   .no_service = what == 3 ? who : -1};
            start(-1, 0, 2);
            fibers_context(who)->comms.n_planned = what == 4 ? CPL_MAX_PLANNED - 1 : 0;
            meet_on(0, 2);
            assert_true(serve_is_settled(0, KIND));
            assert_int_equal(serve_is_served(0, KIND), what == 4);
            assert_int_equal(serve_exchange(who, 0, KIND)->phase,
                             what == 1 || what == 2 ? CPL_PHASE_DIRECT : CPL_PHASE_PLANNED);
            meet_on(0, 10);
            serve_ranks_end();
        }
}

/* Every allocation of a rank fails in turn while they decide. */
static void test_without_memory(void **state)
{
    (void)state;
    for (int goes_on = 0; goes_on < 2; goes_on++) {
        int n_served = 0, n_not = 0;
        for (int64_t at = 1, n_failed = 1; n_failed > 0; at++) {
            begin(22);
            start(-1, 0, 2);
            plan.kind = CPL_ALLTOALLV;
            start(-1, 1, 2);
            heap = (struct failing_heap){.fail_at = at, .goes_on = goes_on, .n_live = heap.n_live};
            serve.victim = 1;
            meet_on(0, 2);
            n_failed = heap.n_failed;
            serve.victim = -1;
            n_served += serve_is_served(0, KIND);
            n_not += !serve_is_served(0, KIND);
            assert_true(serve_is_settled(0, KIND));
            plan.kind = KIND;
            start(-1, 0, 2);
            meet_on(1, 4);
            serve_ranks_end();
        }
        assert_true(n_served >= 1 && n_not >= 1);
    }
}

/* The same while the first calls are noted: what is needed for the others is there in the end. */
static void test_notes_without_memory(void **state)
{
    (void)state;
    int n_served = 0, n_not = 0;
    for (int64_t at = 1, n_failed = 1; n_failed > 0; at++) {
        begin(23);
        heap = (struct failing_heap){.fail_at = at, .n_live = heap.n_live};
        serve.victim = 2;
        start(-1, 0, 2);
        plan.kind = CPL_ALLTOALLW;
        start(-1, 0, 2);
        n_failed = heap.n_failed;
        serve.victim = -1;
        meet_on(0, 2);
        assert_true(serve_is_settled(0, KIND) && serve_is_settled(0, CPL_ALLTOALLW));
        n_served += serve_is_served(0, KIND);
        n_not += !serve_is_served(0, KIND);
        serve_ranks_end();
    }
    assert_true(n_served >= 6 && n_not >= 1);
}

/* ---- giving back ---- */

/* Three collectives of another pace with calls between them, of all ranks. */
static void change_pace(double first, double others)
{
    for (int r = 0; r < fibers_n(); r++) {
        serve.rank[r].pace = r == 0 ? first : others;
        for (int k = 0; k < 2 * SERVE_COMMS; k++) /* two alone say nothing */
            cpl_samples_add(&serve.rank[r].state[k / 2].serve->pace.since, serve.rank[r].pace);
    }
}

/* Served by the first communicator's meetings, paced before at a second. */
static void begin_served(uint64_t seed)
{
    begin(seed);
    start(-1, 0, 2);
    meet_on(0, 1);
    start(-1, 0, 1);
    meet_on(0, 1);
    assert_true(serve_is_served(0, KIND));
    assert_int_equal(next_meeting(0), 4);
}

static void test_doubt(void **state)
{
    (void)state;
    static const struct {
        double first, others;
        int mode;
        bool slower;
    } cases[] = {{1.1, 1.1, CPL_MODE_AUTO, true}, {1.04, 1.04, CPL_MODE_AUTO, false},
                 {1.3, 1, CPL_MODE_AUTO, true},   {1.15, 1, CPL_MODE_AUTO, false},
                 {2, 0.7, CPL_MODE_AUTO, false},  {3, 3, CPL_MODE_FORCE, false},
                 {0.5, 0.5, CPL_MODE_AUTO, false}};
    for (int k = 0; k < 7; k++) {
        begin_served(30);
        change_pace(cases[k].first, cases[k].others);
        for (int r = 0; r < N; r++)
            fibers_context(r)->settings.mode = cases[k].mode;
        for (int n = 3; n <= 4; n++) {
            start(-1, 0, 1);
            meet_on(0, 1);
        }
        const struct cpl_exchange *x = serve_exchange(1, 0, KIND);
        assert_int_equal(serve_is_served(0, KIND), !cases[k].slower);
        assert_int_equal(x->nonblocking.phase == CPL_STARTED_GIVEN_BACK, cases[k].slower);
        assert_int_equal(fibers_context(3)->busy.n_served, !cases[k].slower);
        start(-1, 0, 2);
        assert_int_equal(serve.rank[2].carried[0][KIND][5], !cases[k].slower);
        meet_on(0, 20); /* never again */
        assert_int_equal(serve_is_served(0, KIND), !cases[k].slower);
        serve_ranks_end();
    }
}

/* A rank is ahead: they give back when all have started the same calls, and not before. */
static void test_doubt_while_apart(void **state)
{
    (void)state;
    for (int who = 0; who < N; who += N - 1) {
        begin_served(31);
        change_pace(2, 2);
        start(-1, 0, 1);
        meet_on(0, 1);
        start(who, 0, 1);
        for (int r = 0; r < N; r++) /* so that there is a pace */
            start(r, 1, 1);
        meet_on(0, 1);
        assert_true(serve_exchange(who, 0, KIND)->nonblocking.phase == CPL_STARTED_DOUBTED);
        assert_true(serve_is_served(0, KIND));
        for (int r = 0; r < N; r++)
            start(r, 0, r != who);
        meet_on(0, 1); /* a retry */
        assert_false(serve_is_served(0, KIND));
        assert_true(serve.rank[who].carried[0][KIND][4]);
        start(-1, 0, 1);
        assert_false(serve.rank[who].carried[0][KIND][5]);
        serve_ranks_end();
    }
}

/* An early meeting decides what is left over; it does not doubt. */
static void test_doubt_at_regular_dates(void **state)
{
    (void)state;
    begin_served(34);
    meet_on(0, 1);
    start(-1, 1, 2);
    start(0, 1, 1); /* apart: they try again after the fourth collective */
    meet_on(0, 1);
    assert_int_equal(next_meeting(0), 5);
    change_pace(3, 3);
    for (int n = 5; n <= 8; n++) {
        assert_true(serve_is_served(0, KIND));
        start(-1, 0, 1);
        meet_on(0, 1);
    }
    assert_false(serve_is_served(0, KIND));
    assert_true(serve_exchange(1, 0, KIND)->nonblocking.phase == CPL_STARTED_GIVEN_BACK);
    serve_ranks_end();
}

/* All that are carried are doubted, and nothing else. */
static void test_doubt_all(void **state)
{
    (void)state;
    begin(32);
    start(-1, 0, 2);
    start(-1, 2, 2);
    meet_on(0, 1);
    start(-1, 0, 1);
    meet_on(0, 1);
    assert_true(serve_is_served(0, KIND) && serve_is_served(2, KIND));
    start(-1, 1, 1); /* too few to decide about */
    change_pace(2, 2);
    for (int n = 3; n <= 4; n++) {
        start(-1, 2, 1);
        meet_on(0, 1);
    }
    assert_false(serve_is_served(0, KIND) || serve_is_served(2, KIND));
    assert_false(serve_exchange(3, 1, KIND)->nonblocking.phase == CPL_STARTED_GIVEN_BACK);
    assert_int_equal(fibers_context(1)->busy.n_served, 0);
    serve_ranks_end();
}

/* A persistent request of the communicator keeps it served. */
static void test_doubt_with_persistent_requests(void **state)
{
    (void)state;
    begin_served(33);
    for (int r = 0; r < N; r++)
        serve.rank[r].state[0].persistent.n = 1;
    change_pace(2, 2);
    for (int n = 3; n <= 4; n++) {
        start(-1, 0, 1);
        meet_on(0, 1);
    }
    assert_false(serve_is_served(0, KIND));
    assert_int_equal(fibers_context(1)->busy.n_served, 1);
    serve_ranks_end();
}

/* ---- dates ---- */

static void test_pauses(void **state)
{
    (void)state;
    begin(40);
    meet_on(1, 4096); /* as long as there is nothing to decide */
    assert_int_equal(next_meeting(1), 8192);
    start(-1, 0, 2);
    meet_on(0, 64);
    assert_int_equal(next_meeting(0), 128);
    meet_on(0, 64);
    assert_int_equal(next_meeting(0), 192);
    serve_ranks_end();
    begin(41); /* nothing is served, but there was something to decide */
    fibers_context(2)->met_others = true;
    start(-1, 0, 2);
    meet_on(0, 128);
    assert_int_equal(next_meeting(0), 192);
    serve_ranks_end();
}

/* ---- anything ---- */

static uint64_t of_rank[FIBERS_MOST]; /* random numbers that do not hang on who runs when */
static uint64_t of_all;
static int step, target[SERVE_COMMS]; /* calls that all ranks have made at most */

static enum cpl_neighbor_kind kind_of(int comm, int k)
{
    uint64_t random = (uint64_t)(comm * 1000 + k);
    return (enum cpl_neighbor_kind)(random_below(&random, 2) ? KIND : CPL_ALLTOALLV);
}

/* On the host all ranks make the same calls before its collective; on the others any up to what
 * they may. */
static void anything(int r)
{
    static int n_started[FIBERS_MOST][SERVE_COMMS];
    struct serve_rank *me = &serve.rank[r];
    int host = plan.host;
    if (step == 0)
        memset(n_started[r], 0, sizeof n_started[r]);
    for (int c = 0; c < SERVE_COMMS; c++) {
        int n = c == host || random_below(&of_rank[r], 3) ? target[c] - n_started[r][c]
                                                          : random_below(&of_rank[r], 2);
        for (; n > 0 && n_started[r][c] < target[c]; n--) {
            serve_start(c, kind_of(c, n_started[r][c]++));
            if (random_below(&of_rank[r], 3) == 0)
                fibers_yield();
        }
    }
    me->held[SERVE_NAMES] = random_below(&of_rank[r], 8) == 0;
    me->held[SERVE_TOKENS] = random_below(&of_rank[r], 8) == 0;
    serve_collective(host);
}

static void test_anything(void **state)
{
    (void)state;
    int n_served = 0, n_given_back = 0, n_hopeless = 0;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        of_all = seed;
        serve_ranks_begin(2 + random_below(&of_all, 7), seed);
        memset(target, 0, sizeof target);
        serve.answers.promises = random_below(&of_all, 8) > 0;
        for (int r = 0; r < fibers_n(); r++)
            of_rank[r] = seed * 100 + (uint64_t)r;
        bool served = false;
        for (step = 0; step < 80; step++) {
            plan.host = random_below(&of_all, SERVE_COMMS);
            for (int c = 0; c < SERVE_COMMS; c++)
                target[c] += random_below(&of_all, 3);
            int who = random_below(&of_all, fibers_n());
            heap = (struct failing_heap){.fail_at = 1 + random_below(&of_all, 30),
                                         .n_live = heap.n_live};
            serve.victim = random_below(&of_all, 10) ? -1 : who;
            serve.rank[who].pace = 1 + 0.05 * random_below(&of_all, 5);
            if (random_below(&of_all, 300) == 0)
                fibers_context(who)->met_others = true;
            fibers_run(anything);
            for (int c = 0; c < SERVE_COMMS; c++)
                served |= serve_is_served(c, KIND);
        }
        n_served += served;
        n_given_back += serve_exchange(0, 0, KIND)->nonblocking.phase == CPL_STARTED_GIVEN_BACK;
        n_hopeless += serve_is_settled(0, KIND) && !served;
        serve_ranks_end();
    }
    assert_true(n_served > 100 && n_given_back > 20 && n_hopeless > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_serves),
        cmocka_unit_test(test_too_few),
        cmocka_unit_test(test_all_at_one_meeting),
        cmocka_unit_test(test_different_numbers),
        cmocka_unit_test(test_retries_end),
        cmocka_unit_test(test_different_candidates),
        cmocka_unit_test(test_not_come),
        cmocka_unit_test(test_never_decided),
        cmocka_unit_test(test_hopeless),
        cmocka_unit_test(test_not_planned),
        cmocka_unit_test(test_without_memory),
        cmocka_unit_test(test_notes_without_memory),
        cmocka_unit_test(test_doubt),
        cmocka_unit_test(test_doubt_while_apart),
        cmocka_unit_test(test_doubt_at_regular_dates),
        cmocka_unit_test(test_doubt_all),
        cmocka_unit_test(test_doubt_with_persistent_requests),
        cmocka_unit_test(test_pauses),
        cmocka_unit_test(test_anything),
    };
    return cmocka_run_group_tests_name("serving", tests, NULL, NULL);
}
