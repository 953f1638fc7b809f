/* Tests of looking whether managing a communicator still pays (shim/pt2pt/pt2pt_agree.c, the
 * review, and pt2pt_turn.c), by ranks as in test_agree.c. */
#include "mock_mpi.h"
#include "pt2pt_program.h"
#include "pt2pt_ranks.h"
#include "shim/base/names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void begin_managed(uint64_t seed)
{
    begin(seed);
    run(4);
    assert_true(pt2pt_all_are(CPL_PT2PT_MANAGED));
}

static void assert_given_up(enum cpl_left_alone reason)
{
    bool is_auto = fibers_context(0)->settings.mode == CPL_MODE_AUTO;
    assert_true(pt2pt_all_are(is_auto ? CPL_PT2PT_RESTING : CPL_PT2PT_ALONE));
    for (int r = 0; r < N; r++) {
        assert_true(pt2pt_of(r)->given_up);
        assert_int_equal(pt2pt_of(r)->reason, reason);
        assert_false(pt2pt_of(r)->learned.signature[0].planned);
    }
    assert_true(pt2pt.n_drained > 0);
}

/* One of eight out-edges may leave late, of all ranks together. */
static void test_review_late(void **state)
{
    (void)state;
    for (int more = 0; more < 2; more++) {
        begin_managed(50);
        for (int r = 0; r < N; r++)
            pt2pt_of(r)->line->rides.in_time = 20;
        pt2pt_of(3)->line->rides.late = 10 + more;
        run(3);
        assert_true(pt2pt_all_are(CPL_PT2PT_MANAGED));
        run(1);
        if (more)
            assert_given_up(CPL_LEFT_GIVEN_UP);
        else
            assert_true(pt2pt_all_are(CPL_PT2PT_MANAGED));
        pt2pt_ranks_end();
    }
}

/* Ranks are late, but what rides did not wait for comes after all: they wait longer, several times,
 * and are given up when that does not help. */
static void test_holds_longer(void **state)
{
    (void)state;
    begin_managed(55);
    double hold = 0.001;
    for (int r = 0; r < N; r++)
        pt2pt_of(r)->line->rides.hold_seconds = hold;
    for (int times = 0; times < 3; times++) {
        pt2pt_of(3)->line->rides.late = 10;
        pt2pt_of(1)->line->rides.tardy = 5;
        run(times == 0 ? 4 : 16);
        if (times == 2)
            break;
        assert_true(pt2pt_all_are(CPL_PT2PT_MANAGED));
        hold *= 4;
        for (int r = 0; r < N; r++)
            assert_true(pt2pt_of(r)->line->rides.hold_seconds == hold &&
                        pt2pt_of(r)->line->rides.late + pt2pt_of(r)->line->rides.tardy == 0);
    }
    assert_given_up(CPL_LEFT_GIVEN_UP);
    pt2pt_ranks_end();
}

/* Given up in mode auto, the plans are tried again after a pause, and after a longer one. */
static void test_tried_again(void **state)
{
    (void)state;
    begin_managed(56);
    for (int r = 0; r < N; r++)
        fibers_context(r)->settings.mode = CPL_MODE_AUTO;
    for (int times = 0; times < 2; times++) {
        int n = pt2pt.n_planned;
        pt2pt_of(3)->line->rides.late = 10;
        run(times == 0 ? 4 : 16);
        assert_given_up(CPL_LEFT_GIVEN_UP);
        run((times == 0 ? 256 : 1024) - 1);
        assert_true(pt2pt_all_are(CPL_PT2PT_RESTING));
        run(1);
        assert_true(pt2pt_all_are(CPL_PT2PT_LEARNING));
        run(4);
        assert_true(pt2pt_all_are(CPL_PT2PT_MANAGED));
        assert_int_equal(pt2pt.n_planned, n + 1);
    }
    pt2pt_ranks_end();
}

/* The sum over all ranks tells whether the program has become much slower, in auto mode. */
static void test_review_pace(void **state)
{
    (void)state;
    static const struct {
        double first, others; /* seconds, once it is managed; 1 before */
        bool slower;
    } cases[] = {{3.1, 1, true}, {2.9, 1, false}, {2, 0.7, false}, {1.51, 1.51, true}};
    for (int k = 0; k < 4; k++)
        for (int mode = CPL_MODE_AUTO; mode <= CPL_MODE_FORCE; mode++) {
            begin_managed(60);
            for (int r = 0; r < N; r++) {
                fibers_context(r)->settings.mode = mode;
                pt2pt.rank[r].pace = r == 0 ? cases[k].first : cases[k].others;
                for (int n = 0; n < 2; n++) /* two alone say nothing */
                    cpl_samples_add(&pt2pt_of(r)->pace.since, pt2pt.rank[r].pace);
            }
            run(4);
            if (cases[k].slower && mode == CPL_MODE_AUTO)
                assert_given_up(CPL_LEFT_SLOWED);
            else
                assert_true(pt2pt_all_are(CPL_PT2PT_MANAGED));
            pt2pt_ranks_end();
        }
}

/* A rank of MPI's turn, in seconds a collective: the first stretch, then the others. */
static void take_turn(double cold, double others)
{
    for (int stretch = 0; stretch < 4; stretch++) {
        assert_true(pt2pt_all_are(CPL_PT2PT_RESTING) && pt2pt_of(0)->plans.turn.on);
        for (int r = 0; r < N; r++)
            pt2pt.rank[r].pace = stretch == 0 ? cold : others;
        run(8);
    }
    for (int r = 0; r < N; r++)
        pt2pt.rank[r].pace = 1;
}

/* MPI has a turn at the 64th collective, which takes a second while rerouted; the first stretch
 * says nothing. */
static void test_turn(void **state)
{
    (void)state;
    static const struct {
        double cold, others;
        bool is_mpis;
    } cases[] = {{9, 1, true}, {0.1, 1.1, false}, {9, 1.04, true}, {1, 0.5, true}, {9, 2, false}};
    for (int k = 0; k < 5; k++) {
        begin_managed(65);
        run(59);
        assert_true(pt2pt_all_are(CPL_PT2PT_MANAGED));
        run(1);
        take_turn(cases[k].cold, cases[k].others);
        if (cases[k].is_mpis) {
            assert_given_up(CPL_LEFT_SLOWED);
            assert_int_equal(pt2pt_of(0)->date.next, 96 + 256);
        } else {
            assert_true(pt2pt_all_are(CPL_PT2PT_LEARNING));
            run(4);
            assert_true(pt2pt_all_are(CPL_PT2PT_MANAGED));
            assert_int_equal(pt2pt_of(0)->plans.turn.next, 64 * 16);
        }
        assert_int_equal(pt2pt.n_revised, cases[k].is_mpis);
        pt2pt_ranks_end();
    }
}

/* After a turn the program becomes slower than MPI was, which the pace before does not show. */
static void test_slower_than_its_turn(void **state)
{
    (void)state;
    for (int slower = 0; slower < 2; slower++) {
        begin_managed(66);
        run(60);
        take_turn(3, 1.2);
        run(4);
        assert_true(pt2pt_all_are(CPL_PT2PT_MANAGED));
        for (int r = 0; r < N; r++)
            pt2pt.rank[r].pace = slower ? 1.3 : 1.25;
        run(100); /* the review at 200 */
        if (slower)
            assert_given_up(CPL_LEFT_SLOWED);
        else
            assert_true(pt2pt_all_are(CPL_PT2PT_MANAGED));
        pt2pt_ranks_end();
    }
}

/* No turn: forced, before planning would be paid for, while a rank has something in hand. */
static void test_no_turn(void **state)
{
    (void)state;
    struct cpl_receive receive = {.source = 0, .tag = 1, .inner = MPI_REQUEST_NULL};
    for (int k = 0; k < 3; k++) {
        begin_managed(67);
        for (int r = 0; r < N; r++) {
            if (k == 0)
                fibers_context(r)->settings.mode = CPL_MODE_FORCE;
            if (k == 1)
                pt2pt_of(r)->plans.summary[0].cost.ms = 6401; /* 64 seconds, a tenth */
        }
        if (k == 2) {
            receive.span = mock_span(NULL, 0);
            cpl_match_post(&pt2pt_of(2)->line->match, &receive);
        }
        run(60);
        assert_true(pt2pt_all_are(CPL_PT2PT_MANAGED));
        if (k == 2) { /* the plans stay, and the turn comes later */
            assert_true(!pt2pt_of(0)->given_up && cpl_match_cancel(&receive));
            run(64);
            take_turn(1, 2);
            assert_true(pt2pt_all_are(CPL_PT2PT_LEARNING));
        }
        pt2pt_ranks_end();
    }
}

static void send_late(int r)
{
    if (r == 1)
        pt2pt_send(2, LATE_TAG);
}

static void receive_late(int r)
{
    if (r == 2)
        pt2pt_receive(1, LATE_TAG);
}

/* In MPI's turn a message is sent, or a receive posted, that has no counterpart before the ranks
 * have learned again: MPI would finish neither if the communicator were managed then. */
static void test_under_way_over_a_turn(void **state)
{
    (void)state;
    void (*first[])(int) = {send_late, receive_late};
    for (int k = 0; k < 2; k++) {
        begin_managed(68);
        run(60);
        fibers_run(first[k]);
        take_turn(3, 2);
        run(4);
        assert_true(pt2pt_all_are(CPL_PT2PT_LEARNING));
        fibers_run(first[1 - k]);
        run(200);
        assert_true(plan.managed_at > 0 && !pt2pt_all_are(CPL_PT2PT_LEARNING));
        pt2pt_ranks_end();
    }
}

/* Plans that pay by reductions only, and reductions that do not come. */
static void test_review_reductions(void **state)
{
    (void)state;
    static const struct {
        int64_t rode, walked; /* of the last rank; others have 8 of each */
        bool only, fault;
    } cases[] = {{8, 8, true, false},  {8, 9, true, true},    {9, 8, true, false},
                 {8, 9, false, false}, {-24, 8, true, false}, {0, 40, true, true}};
    for (int k = 0; k < 6; k++) {
        begin_managed(70);
        for (int r = 0; r < N; r++) {
            pt2pt_of(r)->plans.only_embeds[0] = cases[k].only;
            pt2pt_of(r)->plans.n_carried = r == N - 1 ? cases[k].rode : 8;
            pt2pt_of(r)->plans.n_walked = r == N - 1 ? cases[k].walked : 8;
        }
        run(4);
        if (cases[k].fault)
            assert_given_up(CPL_LEFT_UNREDUCED);
        else
            assert_true(pt2pt_all_are(CPL_PT2PT_MANAGED));
        pt2pt_ranks_end();
    }
}

/* A rank has something in hand: the plans go at once, the communicator when it is free. */
static void test_given_up_while_busy(void **state)
{
    (void)state;
    struct cpl_receive receive = {.source = 0, .tag = 1, .inner = MPI_REQUEST_NULL};
    begin_managed(80);
    receive.span = mock_span(NULL, 0);
    cpl_match_post(&pt2pt_of(2)->line->match, &receive);
    pt2pt_of(1)->line->rides.late = 5;
    run(4);
    assert_true(pt2pt_all_are(CPL_PT2PT_MANAGED));
    for (int r = 0; r < N; r++) {
        assert_true(pt2pt_of(r)->given_up);
        assert_false(pt2pt_of(r)->learned.signature[0].planned);
        pt2pt_of(r)->line->rides.late = 0;
        pt2pt.rank[r].pace = 5; /* another reason, that comes too late */
    }
    run(7);
    assert_true(cpl_match_cancel(&receive));
    assert_true(pt2pt_all_are(CPL_PT2PT_MANAGED));
    run(1);
    assert_given_up(CPL_LEFT_GIVEN_UP);
    assert_int_equal(plan.alone_at, 16);
    pt2pt_ranks_end();
}

static void review_soon(int r)
{
    pt2pt_of(r)->line->embed.distrusted = true;
}

/* A review that cannot wait comes sixteen collectives later, not at the next power of two. */
static void test_review_soon(void **state)
{
    (void)state;
    begin_managed(90);
    for (int r = 0; r < N; r++)
        fibers_context(r)->settings.mode = CPL_MODE_FORCE; /* no turn of MPI's comes between */
    run(30);                                               /* 34 */
    fibers_run(review_soon);
    run(1);
    assert_int_equal(pt2pt_of(0)->date.next, 34 + 16);
    pt2pt_of(1)->line->rides.late = 5;
    run(15);
    assert_given_up(CPL_LEFT_GIVEN_UP);
    assert_int_equal(plan.alone_at, 50);
    pt2pt_ranks_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_review_late),
        cmocka_unit_test(test_holds_longer),
        cmocka_unit_test(test_tried_again),
        cmocka_unit_test(test_review_pace),
        cmocka_unit_test(test_turn),
        cmocka_unit_test(test_slower_than_its_turn),
        cmocka_unit_test(test_no_turn),
        cmocka_unit_test(test_under_way_over_a_turn),
        cmocka_unit_test(test_review_reductions),
        cmocka_unit_test(test_given_up_while_busy),
        cmocka_unit_test(test_review_soon),
    };
    return run_both_ways(tests, sizeof tests / sizeof *tests);
}
