/* Tests of appointments (shim/meet/appointment.h): ranks in one process come to them or go by, late
 * or in time, over a network that delays what it likes. Of each appointment all ranks say that they
 * have met, or none does; nobody waits for who has gone, and ranks that come in time do meet. */
#include "shim/meet/appointment.h"

#include "fibers.h"
#include "mock_mpi.h"
#include "shim/meet/meeting.h"
#include "shim/state/comm_state.h"
#include "shim/wait/progress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = FIBERS_MOST, N_CALLS = 12, SEEDS = 40 };

#define POLL 1e-5 /* seconds that a look takes; the shortest patience is 1e-3 */

enum conduct {
    PUNCTUAL, /* all come at once */
    MIXED,    /* some are late, some go by */
    AHEAD     /* the same, and nobody waits for others between two appointments */
};

static struct {
    enum conduct conduct;
    struct cpl_comm_state state[MOST];
    double time;
    int n_started[N_CALLS + 1];
    int n_met[N_CALLS + 1];
    int64_t counted[N_CALLS + 1];
} world;

/* ---- what appointments call ---- */

struct cpl_comm_state *cpl_comm_state_find(MPI_Comm comm)
{
    (void)comm;
    return &world.state[fibers_rank()];
}

int64_t cpl_meeting_distance(struct cpl_comm_state *state)
{
    (void)state;
    return 0;
}

void cpl_meeting_end_grants(void)
{
}

void cpl_progress_send_batches(void)
{
}

void cpl_progress_poll(void)
{
    world.time += POLL / fibers_n();
    mock_set_time(world.time);
    fibers_yield();
}

int cpl_progress_wait(MPI_Request *request, MPI_Status *status)
{
    int flag = 0, result = MPI_SUCCESS;
    while (result == MPI_SUCCESS && !flag) {
        result = PMPI_Test(request, &flag, status);
        if (!flag)
            fibers_yield();
    }
    return result;
}

/* ---- */

static MPI_Request request_of(int call)
{
    return (MPI_Request)(uintptr_t)(1000 + call);
}

static void begin(int n, uint64_t seed, enum conduct conduct)
{
    memset(&world, 0, sizeof world);
    world.conduct = conduct;
    world.time = 1;
    mock_begin(n, seed);
    mock_set_time(world.time);
    fibers_begin(n, seed);
    for (int r = 0; r < n; r++) {
        struct cpl_context *context = fibers_context(r);
        context->active = true;
        context->account.start = 1;
        context->comms.away = mock_comm(r);
        context->comms.first = &world.state[r];
        world.state[r].size = n;
        world.state[r].rank = r;
        world.state[r].meeting.family.number = 1;
    }
}

/* MPI's collective: it ends when all have started it. */
static void await_all(int call)
{
    while (world.conduct != AHEAD && world.n_started[call] < fibers_n())
        fibers_yield();
}

static bool goes_by(void)
{
    return world.conduct != PUNCTUAL && fibers_draw(40) == 0;
}

/* Whether the ranks meet is seen at the next one's begin: each call is tried, whatever became of
 * those before. */
static void call_once(int rank, int call)
{
    struct cpl_awaited *awaited = &world.state[rank].meeting.awaited;
    MPI_Request request = request_of(call);
    int64_t n;
    awaited->next = 0;
    cpl_context.busy.appointment.in_vain = 0;
    cpl_appointment_make(mock_comm(rank), request, true);
    world.n_started[call]++;
    await_all(call);
    for (int k = world.conduct != PUNCTUAL && fibers_draw(8) == 0 ? fibers_draw(300) : 0; k > 0;
         k--)
        cpl_progress_poll();
    assert_true(cpl_appointment_is_for(1, &request));
    if (goes_by()) {
        cpl_appointment_cancel();
        assert_false(cpl_appointment_is_for(1, &request));
        return;
    }
    if (!cpl_appointment_come(&n))
        return;
    world.state[rank].meeting.n += n;
    world.n_met[call]++;
    assert_true(world.counted[call] == 0 || world.counted[call] == n);
    world.counted[call] = n;
}

static void program(int rank)
{
    for (int call = 1; call <= N_CALLS; call++)
        call_once(rank, call);
}

static void end(int rank)
{
    (void)rank;
    for (int k = 0; k < 200; k++) {
        cpl_appointment_end();
        fibers_yield();
    }
}

/* Returns in how many of them the ranks met. */
static int run(int n, uint64_t seed, enum conduct conduct)
{
    int n_met = 0;
    begin(n, seed, conduct);
    fibers_run(program);
    for (int call = 1; call <= N_CALLS; call++) {
        assert_true(world.n_met[call] == 0 || world.n_met[call] == n);
        n_met += world.n_met[call] == n;
    }
    fibers_run(end);
    mock_end();
    return n_met;
}

/* The same for all seeds, with N_CALLS appointments each. */
static int run_all(enum conduct conduct)
{
    int n_met = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        n_met += run(2 + (int)(seed % (MOST - 1)), seed, conduct);
    return n_met;
}

static void test_ranks_that_come_meet(void **state)
{
    (void)state; /* else the network is slower than their patience */
    assert_in_range(run_all(PUNCTUAL), SEEDS * N_CALLS / 2, SEEDS * N_CALLS);
}

static void test_all_meet_or_none(void **state)
{
    (void)state;
    assert_in_range(run_all(MIXED), 1, SEEDS * N_CALLS - 1);
}

static void test_ranks_at_different_ones(void **state)
{
    (void)state;
    run_all(AHEAD);
}

/* Ranks that have counted differently do not find each other, and go on. */
static void differ(int rank)
{
    int64_t n;
    world.state[rank].meeting.n += rank == 1;
    cpl_appointment_make(mock_comm(rank), request_of(1), true);
    assert_null(cpl_appointment_come(&n));
}

static void test_different_counts(void **state)
{
    (void)state;
    begin(3, 5, PUNCTUAL);
    fibers_run(differ);
    fibers_run(end);
    mock_end();
}

/* Who is barred comes to none; after collectives of fewer ranks only to one that waits for all. */
static void bar(int rank)
{
    MPI_Request request = request_of(1);
    cpl_appointment_note_other();
    cpl_appointment_make(mock_comm(rank), request, false);
    assert_false(cpl_appointment_is_for(1, &request));
    world.state[rank].meeting.awaited.next = 0;
    cpl_appointment_make(mock_comm(rank), request, true);
    assert_true(cpl_appointment_is_for(1, &request));
    cpl_appointment_bar();
    assert_false(cpl_appointment_is_for(1, &request));
    world.state[rank].meeting.awaited.next = 0;
    cpl_appointment_make(mock_comm(rank), request, true);
    assert_false(cpl_appointment_is_for(1, &request));
}

/* Each comes after twice as many collectives, until a blocking one comes. */
static void miss(int rank)
{
    int n_due = 0;
    for (int call = 1; call <= 1000; call++) {
        MPI_Request request = request_of(call);
        cpl_appointment_make(mock_comm(rank), request, true);
        n_due += cpl_appointment_is_for(1, &request);
    }
    assert_int_equal(n_due, 10);
    world.state[rank].meeting.n++;
    MPI_Request request = request_of(1);
    cpl_appointment_make(mock_comm(rank), request, true);
    assert_true(cpl_appointment_is_for(1, &request));
}

/* The other rank never comes: this one waits for a part of its time, and no more. */
static void wait_in_vain(int rank)
{
    int64_t n;
    cpl_context.busy.appointment.in_vain = 0;
    for (int call = 1; call <= 400 && rank == 0; call++) {
        world.time += 1e-3; /* the program's own */
        mock_set_time(world.time);
        world.state[rank].meeting.awaited.next = 0;
        cpl_appointment_make(mock_comm(rank), request_of(call), true);
        assert_null(cpl_appointment_come(&n));
    }
    const double waited = cpl_context.busy.appointment.in_vain, elapsed = world.time - 1;
    if (rank == 0) /* the last time may go beyond it */
        assert_true(waited > 0 && waited < elapsed / 32 + elapsed / 64 + 1e-3);
}

static void test_who_does_not_come(void **state)
{
    (void)state;
    begin(2, 6, PUNCTUAL);
    fibers_run(miss);
    fibers_run(wait_in_vain);
    fibers_run(bar);
    mock_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_that_come_meet),    cmocka_unit_test(test_all_meet_or_none),
        cmocka_unit_test(test_ranks_at_different_ones), cmocka_unit_test(test_different_counts),
        cmocka_unit_test(test_who_does_not_come),
    };
    return cmocka_run_group_tests_name("appointment", tests, NULL, NULL);
}
