/* Tests of agreeing to manage a communicator's messages (shim/pt2pt/pt2pt_agree.c): whatever the
 * ranks know, all come to the same outcome by the same collectives. What must be alike is compared
 * after every collective of the program (pt2pt_ranks.c). */
#include "../failing_heap.h"
#include "mock_mpi.h"
#include "pt2pt_program.h"
#include "pt2pt_ranks.h"
#include "random_pattern.h"
#include "shim/base/names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* ---- the agreement ---- */

static void test_agrees(void **state)
{
    (void)state;
    begin(1);
    run(3);
    assert_true(pt2pt_all_are(CPL_PT2PT_LEARNING));
    run(1);
    assert_true(pt2pt_all_are(CPL_PT2PT_MANAGED));
    assert_int_equal(plan.managed_at, 4);
    for (int r = 0; r < N; r++) {
        assert_int_equal(pt2pt_of(r)->plans.n, 1);
        assert_int_equal(pt2pt_of(r)->reason, CPL_LEFT_NOT);
        assert_true(pt2pt_of(r)->learned.signature[0].planned);
        assert_int_equal(pt2pt_of(r)->date.next, 4 + 8); /* test_review.c */
        assert_int_equal(pt2pt_of(r)->cycle.n, 2);       /* a batch and a collective */
    }
    run(15); /* then MPI has a turn */
    assert_true(pt2pt_all_are(CPL_PT2PT_MANAGED));
    pt2pt_ranks_end();
}

/* Batches to two others, or with a third one. */
static void exchange_late(int r)
{
    for (int k = 0; k < 4; k++) {
        pt2pt_exchange();
        if (plan.late) { /* a third neighbour */
            pt2pt_receive((r + fibers_n() - 3) % fibers_n(), LATE_TAG);
            pt2pt_send((r + 3) % fibers_n(), LATE_TAG);
        }
        cpl_pt2pt_close_batch(pt2pt_of(r));
        pt2pt_collective();
    }
}

/* A plan by lanes that saves nothing by the model is tried where a rank sends to more than two
 * others. */
static void test_three_by_lanes(void **state)
{
    (void)state;
    for (int n = 0; n < 2; n++) {
        begin(12);
        plan.late = n == 0;
        pt2pt.answers.planned_us = pt2pt.answers.embedded_us = pt2pt.answers.direct_us;
        fibers_run(exchange_late);
        assert_true(pt2pt_all_are(plan.late ? CPL_PT2PT_MANAGED : CPL_PT2PT_RESTING));
        pt2pt_ranks_end();
    }
}

/* The batches are too few at the 4th collective, and enough at the 8th. */
static void idle_then_exchange(int r)
{
    for (int k = 1; k <= 8; k++) {
        if (k > 2)
            pt2pt_exchange();
        pt2pt_collective();
        if (r == 0)
            note_phase(r);
    }
}

static void test_recurs_later(void **state)
{
    (void)state;
    begin(2);
    fibers_run(idle_then_exchange);
    assert_int_equal(plan.managed_at, 8);
    pt2pt_ranks_end();
}

/* A rank is not able, of all that may hinder it; the reasons of several ranks come to one. */
static void test_unable(void **state)
{
    (void)state;
    for (int who = 0; who < N; who++)
        for (int what = 1; what < 4; what++) {
            static const int reasons[] = {0, CPL_LEFT_UNABLE, CPL_LEFT_WILDCARD, CPL_LEFT_WILDCARD};
            begin(3);
            run(3);
            fibers_context(who)->met_others = what == 1;
            pt2pt_of(who)->blind = what >= 2 ? CPL_LEFT_WILDCARD : CPL_LEFT_NOT;
            if (what == 3)
                fibers_context((who + 1) % N)->met_others = true;
            run(1);
            assert_true(pt2pt_all_are(CPL_PT2PT_ALONE));
            for (int r = 0; r < N; r++)
                assert_int_equal(pt2pt_of(r)->reason, reasons[what]);
            assert_int_equal(pt2pt.n_planned, 0);
            pt2pt_ranks_end();
        }
}

/* A receive with wildcards is open at an agreement: the ranks try again, and agree when it is not.
 */
static void test_wildcards(void **state)
{
    (void)state;
    begin(4);
    run(3);
    pt2pt_of(2)->learned.n_wild = 1;
    run(1);
    assert_true(pt2pt_all_are(CPL_PT2PT_LEARNING));
    assert_int_equal(pt2pt_of(0)->reason, CPL_LEFT_UNMATCHED);
    pt2pt_of(2)->learned.n_wild = 0;
    run(1);
    assert_true(pt2pt_all_are(CPL_PT2PT_MANAGED));
    pt2pt_ranks_end();
}

/* A rank has no room for another private communicator, or the communicator has processes of another
 * world, or planning does not pay yet: they go on learning, and manage it when that is over. */
static void test_not_now(void **state)
{
    (void)state;
    for (int what = 1; what < 3; what++) {
        begin(5);
        pt2pt.answers.of_another_world = what == 1;
        pt2pt.answers.early = what == 2;
        run(7);
        assert_true(pt2pt_all_are(what == 2 ? CPL_PT2PT_RESTING : CPL_PT2PT_LEARNING));
        assert_int_equal(pt2pt_of(0)->reason, what == 2 ? CPL_LEFT_SHORT : CPL_LEFT_UNABLE);
        assert_int_equal(pt2pt_of(0)->n_vain, 0);
        pt2pt.answers.of_another_world = pt2pt.answers.early = false;
        run(1);
        if (what == 2) { /* they look again, for four times as long as it took at first */
            assert_true(pt2pt_all_are(CPL_PT2PT_LEARNING));
            run(16);
        }
        assert_int_equal(plan.managed_at, what == 2 ? 24 : 8);
        pt2pt_ranks_end();
    }
}

/* A communicator of fewer ranks whose plan pays waits until all ranks poll: it is planned once, and
 * once more when they do. */
static void test_parts(void **state)
{
    (void)state;
    begin(6);
    pt2pt.answers.unserved = true;
    run(16);
    assert_true(pt2pt_all_are(CPL_PT2PT_LEARNING));
    for (int r = 0; r < N; r++)
        assert_true(pt2pt_of(r)->ripe);
    assert_int_equal(pt2pt_of(0)->reason, CPL_LEFT_NO_MEETING);
    assert_int_equal(pt2pt.n_planned, 1);
    pt2pt.answers.unserved = false;
    run(16);
    assert_int_equal(plan.managed_at, 32);
    assert_int_equal(pt2pt.n_planned, 2);
    assert_false(pt2pt_of(0)->ripe);
    pt2pt_ranks_end();
}

/* Nothing to combine: they go on learning until every rank has seen enough. */
static void test_nothing_recurs(void **state)
{
    (void)state;
    begin(7);
    plan.plain = true;
    run(15);
    for (int r = 0; r < N; r++) /* all but one have seen enough */
        if (r != 2)
            pt2pt_of(r)->learned.n_batches = 5000;
    run(1);
    assert_true(pt2pt_all_are(CPL_PT2PT_LEARNING));
    assert_int_equal(pt2pt_of(1)->reason, CPL_LEFT_NOTHING_RECURS);
    assert_int_equal(pt2pt.n_planned, 0);
    pt2pt_of(2)->learned.n_batches = 5000;
    run(15);
    assert_true(pt2pt_all_are(CPL_PT2PT_LEARNING));
    run(1);
    assert_int_equal(plan.alone_at, 32);
    pt2pt_ranks_end();
}

/* Ranks that send nothing do not keep one that has seen enough from stopping. */
static void silent(int r)
{
    pt2pt_of(r)->learned.n_batches = r == 1 ? 5000 : 0;
    for (int k = 0; k < 4; k++)
        pt2pt_collective();
}

static void test_silent_ranks(void **state)
{
    (void)state;
    begin(8);
    fibers_run(silent);
    assert_true(pt2pt_all_are(CPL_PT2PT_ALONE));
    pt2pt_ranks_end();
}

/* ---- under way ---- */

/* Messages under way are no reason to give up: three times they try again at once, then they learn
 * again from the next regular date on. */
static void test_under_way(void **state)
{
    (void)state;
    static const struct {
        int late, managed_at, n_vain;
    } cases[] = {{1, 5, 1},   {3, 7, 1},   {4, 24, 2}, {7, 24, 2},
                 {20, 24, 2}, {22, 26, 2}, {24, 64, 3}};
    for (int k = 0; k < 7; k++) {
        begin(10 + (uint64_t)k);
        plan.from = 4;
        plan.late = cases[k].late;
        run(64);
        assert_int_equal(plan.managed_at, cases[k].managed_at);
        assert_int_equal(pt2pt_of(0)->n_vain, cases[k].n_vain);
        pt2pt_ranks_end();
    }
}

/* At 4, 24, 64, 144, 304, and three times after each; from 608 on they learn once more. */
static void test_unmatched_for_ever(void **state)
{
    (void)state;
    begin(20);
    plan.from = 2;
    plan.late = 1000;
    run(623);
    assert_true(pt2pt_all_are(CPL_PT2PT_LEARNING));
    assert_int_equal(pt2pt_of(3)->n_vain, 5);
    assert_int_equal(pt2pt_of(3)->reason, CPL_LEFT_UNMATCHED);
    run(1);
    assert_int_equal(plan.alone_at, 7); /* they rest */
    assert_true(pt2pt_all_are(CPL_PT2PT_ALONE));
    assert_int_equal(pt2pt.n_planned, 0);
    run(20);
    pt2pt_ranks_end();
}

/* A plan that does not pay is made once; after six agreements nobody learns any more. */
static void test_no_gain_for_ever(void **state)
{
    (void)state;
    for (int dear = 0; dear < 2; dear++) {
        begin(21);
        pt2pt.answers.gains = dear;
        pt2pt.answers.planned_us = dear ? 30 : 10;
        run(4);
        assert_true(pt2pt_all_are(CPL_PT2PT_RESTING));
        run(619);
        assert_true(pt2pt_all_are(CPL_PT2PT_LEARNING));
        assert_int_equal(pt2pt_of(1)->reason, CPL_LEFT_NO_GAIN);
        assert_int_equal(pt2pt.n_planned, 1);
        run(1);
        assert_true(pt2pt_all_are(CPL_PT2PT_ALONE));
        pt2pt_ranks_end();
    }
}

/* What a short search finds too dear is planned again by a full one, and then not any more. */
static void test_searched_twice(void **state)
{
    (void)state;
    begin(21);
    pt2pt.answers.gains = pt2pt.answers.is_short = true;
    pt2pt.answers.planned_us = 30;
    run(23);
    assert_int_equal(pt2pt.n_planned, 1);
    pt2pt.answers.is_short = false;
    run(1);
    assert_int_equal(pt2pt.n_planned, 2);
    run(200);
    assert_int_equal(pt2pt.n_planned, 2);
    assert_true(pt2pt_all_are(CPL_PT2PT_RESTING));
    pt2pt_ranks_end();
}

/* ---- faults on one rank ---- */

static void test_one_rank_cannot(void **state)
{
    (void)state;
    for (int who = 0; who < N; who++)
        for (int what = 0; what < 4; what++) {
            begin(30);
            pt2pt.answers.no_service = what == 0 ? who : -1;
            pt2pt.answers.no_rides = what == 1 ? who : -1;
            pt2pt.answers.no_line = what == 2 ? who : -1;
            pt2pt.answers.no_plan = what == 3 ? who : -1;
            run(4);
            assert_true(pt2pt_all_are(what < 3 ? CPL_PT2PT_ALONE : CPL_PT2PT_RESTING));
            for (int r = 0; r < N; r++)
                assert_false(pt2pt_of(r)->learned.signature[0].planned);
            run(10);
            pt2pt_ranks_end();
        }
}

/* Every allocation of one rank fails in turn, alone or with all that follow. */
static void without_memory(int who, bool goes_on)
{
    int n_managed = 0, n_not = 0;
    for (int64_t at = 1, n_failed = 1; n_failed > 0; at++) {
        begin(40);
        run(3);
        heap = (struct failing_heap){.fail_at = at, .goes_on = goes_on, .n_live = heap.n_live};
        pt2pt.victim = who;
        run(1);
        n_failed = heap.n_failed;
        pt2pt.victim = -1;
        n_managed += pt2pt_all_are(CPL_PT2PT_MANAGED);
        n_not += !pt2pt_all_are(CPL_PT2PT_MANAGED);
        heap.fail_at = 0;
        heap.goes_on = false;
        run(12);
        assert_true(n_failed > 0 || pt2pt_all_are(CPL_PT2PT_MANAGED));
        pt2pt_ranks_end();
    }
    assert_true(n_managed >= 1 && n_not >= 6);
}

static void test_without_memory(void **state)
{
    (void)state;
    for (int who = 0; who < N; who += N - 1) {
        without_memory(who, false);
        without_memory(who, true);
    }
}

/* ---- anything ---- */

/* What happens to a rank while nothing runs. */
static void disturb(int r, uint64_t *random)
{
    struct cpl_pt2pt *p = pt2pt_of(r);
    struct cpl_context *c = fibers_context(r);
    switch (random_below(random, 40)) {
    case 0:
        c->comms.n_planned = random_below(random, 2) * CPL_MAX_PLANNED;
        break;
    case 1:
        p->learned.n_batches += p->phase == CPL_PT2PT_LEARNING ? 5000 : 0;
        break;
    case 2:
        if (random_below(random, 6) == 0)
            c->met_others = true;
        break;
    default:
        pt2pt.rank[r].pace = 1 + 0.02 * random_below(random, 10);
    }
}

static uint64_t of_rank[FIBERS_MOST]; /* random numbers that do not hang on who runs when */
static int owed[FIBERS_MOST]; /* messages from the rank before that have not been received */

static void anything(int r)
{
    int n = fibers_n(), next = (r + 1) % n;
    for (int k = 0; k < 5; k++) {
        int what = random_below(&of_rank[r], 40);
        if (what > 0)
            pt2pt_exchange();
        if (what == 1 && pt2pt_of(r)->phase == CPL_PT2PT_LEARNING) {
            owed[next]++;
            pt2pt_send(next, LATE_TAG);
        }
        for (; what > 2 && owed[r] > 0; owed[r]--)
            pt2pt_receive((r + n - 1) % n, LATE_TAG);
        pt2pt_collective();
    }
}

static void test_anything(void **state)
{
    (void)state;
    int n_managed = 0, n_given_up = 0, n_alone = 0;
    const uint64_t n_seeds = 400;
    for (uint64_t seed = 1; seed <= n_seeds; seed++) {
        uint64_t random = seed;
        memset(&plan, 0, sizeof plan);
        memset(owed, 0, sizeof owed);
        pt2pt_ranks_begin(3 + random_below(&random, FIBERS_MOST - 2), seed);
        pt2pt.answers.gains = random_below(&random, 8) > 0;
        pt2pt.answers.embedded_us = random_below(&random, 40);
        for (int r = 0; r < fibers_n(); r++)
            of_rank[r] = seed * 100 + (uint64_t)r;
        bool managed = false;
        for (int step = 0; step < 30; step++) {
            heap = (struct failing_heap){.fail_at = 1 + random_below(&random, 30),
                                         .goes_on = random_below(&random, 4) == 0,
                                         .n_live = heap.n_live};
            bool calm = step == 0 && seed % 2;
            pt2pt.victim =
                calm || random_below(&random, 6) ? -1 : random_below(&random, fibers_n());
            fibers_run(anything);
            managed |= pt2pt_all_are(CPL_PT2PT_MANAGED);
            for (int r = 0; r < fibers_n(); r++)
                if (!calm && random_below(&random, 4) == 0)
                    disturb(r, &random);
        }
        n_managed += managed;
        n_given_up += pt2pt_of(0)->line->kept;
        n_alone += pt2pt_all_are(CPL_PT2PT_ALONE);
        pt2pt_ranks_end();
    }
    int n = (int)n_seeds;
    assert_true(5 * n_managed > n && 10 * n_given_up > n && 10 * n_alone > n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agrees),
        cmocka_unit_test(test_three_by_lanes),
        cmocka_unit_test(test_recurs_later),
        cmocka_unit_test(test_unable),
        cmocka_unit_test(test_wildcards),
        cmocka_unit_test(test_not_now),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_nothing_recurs),
        cmocka_unit_test(test_silent_ranks),
        cmocka_unit_test(test_under_way),
        cmocka_unit_test(test_unmatched_for_ever),
        cmocka_unit_test(test_no_gain_for_ever),
        cmocka_unit_test(test_searched_twice),
        cmocka_unit_test(test_one_rank_cannot),
        cmocka_unit_test(test_without_memory),
        cmocka_unit_test(test_anything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
