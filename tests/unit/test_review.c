/* Tests of looking whether managing a communicator still pays (shim/pt2pt/pt2pt_agree.c, the
 * review), by ranks as in test_agree.c. */
#include "mock_mpi.h"
#include "pt2pt_program.h"
#include "pt2pt_ranks.h"
#include "shim/base/names.h"
#include "shim/report/report.h"

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

/* A window of eight collectives, each of so many seconds. */
static void pass_window(double pace)
{
    for (int r = 0; r < N; r++)
        pt2pt.rank[r].pace = pace;
    run(8);
}

/* The plans and MPI carry a window each. */
static void take_turns(double by_plans, double by_mpi)
{
    assert_true(pt2pt_all_are(CPL_PT2PT_MANAGED) && pt2pt_of(0)->plans.turn.compares);
    pass_window(by_plans);
    assert_true(pt2pt_all_are(CPL_PT2PT_RESTING) && pt2pt_of(0)->line->kept);
    pass_window(by_mpi);
}

/* In the first window of the plans memory is cold. */
static void begin_compared(uint64_t seed)
{
    begin_managed(seed);
    pass_window(9);
}

static bool is_mpis(void)
{
    return pt2pt_all_are(CPL_PT2PT_RESTING) && !pt2pt_of(0)->plans.turn.compares;
}

static bool is_the_plans(void)
{
    return pt2pt_all_are(CPL_PT2PT_MANAGED) && !pt2pt_of(0)->plans.turn.compares;
}

static bool is_about(double us, double seconds)
{
    return us * 1e-6 > seconds - 0.01 && us * 1e-6 < seconds + 0.01;
}

/* What the report says of a collective by MPI and by the plans. */
static void windows_are(int n_pairs, double mpi, double plans)
{
    struct cpl_record_windows told = cpl_profile_windows(&pt2pt.rank[0].state);
    assert_int_equal(told.pairs, n_pairs);
    assert_true(is_about(told.mpi_us, mpi));
    assert_true(is_about(told.plan_us, plans));
}

/* MPI and the plans, which take a second a collective, have turns; three windows of each tell what
 * is clear, and two what is obvious. */
static void test_turns(void **state)
{
    (void)state;
    static const struct {
        double mpi[3];
        int n_pairs, reason;
    } cases[] = {{{1, 1, 1}, 3, CPL_LEFT_EVEN},
                 {{1.1, 1.11, 1.1}, 3, CPL_LEFT_NOT},
                 {{1.01, 1.01, 1.01}, 3, CPL_LEFT_EVEN},
                 {{0.8, 0.8, 0.8}, 3, CPL_LEFT_SLOWED},
                 {{0.6, 0.6}, 2, CPL_LEFT_SLOWED}};
    for (int k = 0; k < 5; k++) {
        begin_compared(65);
        for (int pair = 0; pair < cases[k].n_pairs; pair++)
            take_turns(1, cases[k].mpi[pair]);
        bool left = cases[k].reason != CPL_LEFT_NOT;
        assert_true(left ? is_mpis() : is_the_plans());
        windows_are(cases[k].n_pairs, cases[k].mpi[0], 1);
        int64_t n = 4 + 8 + 16 * cases[k].n_pairs;
        if (left)
            assert_int_equal(pt2pt_of(0)->date.next, n + 256);
        else
            assert_int_equal(pt2pt_of(0)->plans.turn.next, 16 * n);
        for (int r = 0; r < N; r++)
            assert_int_equal(pt2pt_of(r)->reason, cases[k].reason);
        assert_int_equal(pt2pt.n_planned, 1);
        pt2pt_ranks_end();
    }
}

/* What cannot be told apart stays MPI's, after as many windows as there may be. */
static void test_scatter(void **state)
{
    (void)state;
    begin_compared(66);
    for (int pair = 0; pair < CPL_MOST_PAIRS; pair++)
        take_turns(1, pair % 2 ? 0.8 : 1.5);
    assert_true(is_mpis());
    pt2pt_ranks_end();
}

/* The plans that MPI was faster than are tried again, with the same plans, after a pause and after
 * a longer one, but only when something may be spent. */
static void test_compared_again(void **state)
{
    (void)state;
    begin_compared(67);
    take_turns(1, 0.5);
    take_turns(1, 0.5);
    assert_true(is_mpis());
    run(255);
    assert_true(is_mpis());
    run(1);
    pass_window(2); /* cold */
    for (int pair = 0; pair < 3; pair++)
        take_turns(1, 1.3);
    assert_true(is_the_plans());
    assert_int_equal(pt2pt.n_planned, 1);
    int64_t n = pt2pt_of(0)->plans.turn.next - pt2pt.rank[0].state.meeting.n;
    run((int)n);
    pass_window(2);
    take_turns(1, 0.5);
    take_turns(1, 0.5);
    assert_true(is_mpis());
    for (int r = 0; r < N; r++)
        fibers_context(r)->account.spent[CPL_COST_TRIALS] = 1e9;
    run(256);
    assert_true(is_mpis());
    assert_int_equal(pt2pt_of(0)->date.next, pt2pt.rank[0].state.meeting.n + 1024);
    pt2pt_ranks_end();
}

/* A window that would cost more than may be spent is not begun; nor is the one in which that turns
 * out gone on with. */
static void test_dear_windows(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        begin_compared(68);
        for (int r = 0; r < N; r++)
            fibers_context(r)->settings.cost = k;
        take_turns(1.2, 1);
        assert_true(is_mpis());
        assert_true(fibers_context(0)->account.spent[CPL_COST_TRIALS] > 1.59 &&
                    fibers_context(0)->account.spent[CPL_COST_TRIALS] < 1.61);
        pt2pt_ranks_end();
    }
}

/* What the plans gain is earned, in windows and later. */
static void test_gains(void **state)
{
    (void)state;
    begin_compared(69);
    for (int pair = 0; pair < 3; pair++)
        take_turns(1, 1.5);
    assert_true(is_the_plans());
    assert_float_equal(fibers_context(1)->account.gained, 12, 1e-6);
    run(60);
    assert_float_equal(fibers_context(1)->account.gained, 12 + 30, 1e-6);
    assert_true(is_the_plans());
    pt2pt_ranks_end();
}

/* Plans of a short search that are faster are made anew by a full one, when both would be compared
 * again; those of a full search are compared. */
static void test_searched_on(void **state)
{
    (void)state;
    for (int is_short = 0; is_short < 2; is_short++) {
        begin(73);
        pt2pt.answers.is_short = is_short;
        run(4);
        pass_window(9);
        for (int pair = 0; pair < 3; pair++)
            take_turns(1, 1.5);
        assert_true(is_the_plans());
        run((int)(pt2pt_of(0)->plans.turn.next - pt2pt.rank[0].state.meeting.n));
        if (is_short) {
            assert_true(pt2pt_all_are(CPL_PT2PT_LEARNING));
            pt2pt.answers.is_short = false;
            run(4);
            assert_int_equal(pt2pt.n_planned, 2);
        }
        assert_true(pt2pt_all_are(CPL_PT2PT_MANAGED) && pt2pt_of(0)->plans.turn.compares);
        pt2pt_ranks_end();
    }
}

/* No turns: forced, or while a rank has something in hand; then they are later. */
static void test_no_turn(void **state)
{
    (void)state;
    struct cpl_receive receive = {.source = 0, .tag = 1, .inner = MPI_REQUEST_NULL};
    for (int k = 0; k < 2; k++) {
        begin(71);
        for (int r = 0; r < N && k == 0; r++)
            fibers_context(r)->settings.mode = CPL_MODE_FORCE;
        run(4);
        if (k == 1) {
            receive.span = mock_span(NULL, 0);
            cpl_match_post(&pt2pt_of(2)->line->match, &receive);
        }
        run(60);
        assert_true(pt2pt_all_are(CPL_PT2PT_MANAGED));
        if (k == 1) {
            assert_true(cpl_match_cancel(&receive));
            for (int more = 0; more < 8 && pt2pt_all_are(CPL_PT2PT_MANAGED); more++)
                run(1);
            assert_true(pt2pt_all_are(CPL_PT2PT_RESTING));
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

/* In MPI's turn a message is sent, or a receive posted, that has no counterpart before the turn is
 * over: MPI would finish neither if the communicator were managed then. */
static void test_under_way_over_a_turn(void **state)
{
    (void)state;
    void (*first[])(int) = {send_late, receive_late};
    for (int k = 0; k < 2; k++) {
        begin_compared(72);
        pass_window(1);
        assert_true(pt2pt_all_are(CPL_PT2PT_RESTING));
        fibers_run(first[k]);
        run(12);
        assert_true(pt2pt_all_are(CPL_PT2PT_RESTING));
        fibers_run(first[1 - k]);
        run(8);
        assert_true(pt2pt_all_are(CPL_PT2PT_MANAGED));
        pt2pt_ranks_end();
    }
}

/* Plans that were faster, and have become slower than MPI was: both are compared again at once. */
static void test_becomes_slower(void **state)
{
    (void)state;
    begin_compared(74);
    for (int pair = 0; pair < 3; pair++)
        take_turns(1, 1.5);
    assert_true(is_the_plans());
    for (int r = 0; r < N; r++)
        pt2pt.rank[r].pace = 2;
    for (int n = 0; n < 120 && is_the_plans(); n++)
        run(1);
    assert_true(pt2pt_all_are(CPL_PT2PT_MANAGED) && pt2pt_of(0)->plans.turn.compares);
    assert_true(pt2pt.rank[0].state.meeting.n < pt2pt_of(0)->plans.turn.next);
    pt2pt_ranks_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_turns),          cmocka_unit_test(test_scatter),
        cmocka_unit_test(test_compared_again), cmocka_unit_test(test_dear_windows),
        cmocka_unit_test(test_gains),          cmocka_unit_test(test_searched_on),
        cmocka_unit_test(test_no_turn),        cmocka_unit_test(test_under_way_over_a_turn),
        cmocka_unit_test(test_becomes_slower),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
