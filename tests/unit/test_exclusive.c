/* Tests of entering the exclusive section (shim/meet/agree.h): on all ranks or on none, alone,
 * and with the lock kept until it is given back. */
#include "shim/meet/agree.h"

#include "shim/base/log.h"
#include "shim/state/context.h"
#include "shim/wait/collective.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define COMM MPI_COMM_WORLD

struct cpl_context cpl_context;
enum cpl_log_level cpl_log_threshold = CPL_LOG_WARN;

void cpl_log_write(enum cpl_log_level level, const char *component, const char *format, ...)
{
    (void)level, (void)component, (void)format;
}

static bool of_this_world, others_say[2]; /* what the other ranks answer in each round */
static bool mine[2], kept[2];
static int n_rounds;

bool cpl_collective_of_this_world(MPI_Comm comm)
{
    (void)comm;
    return of_this_world;
}

bool cpl_agree_all(MPI_Comm comm, bool yes)
{
    (void)comm;
    assert_true(n_rounds < 2);
    mine[n_rounds] = yes;
    kept[n_rounds] = cpl_context.lock.kept;
    return yes && others_say[n_rounds++];
}

static int begin(void **state)
{
    (void)state;
    cpl_context = (struct cpl_context){.active = true};
    of_this_world = others_say[0] = others_say[1] = true;
    n_rounds = 0;
    return 0;
}

static void share(void)
{
    CPL_INSIDE;
    cpl_service_share();
}

static void one_thread_needs_none(void **state)
{
    (void)state;
    CPL_INSIDE;
    assert_true(cpl_exclusive_take(COMM));
    cpl_exclusive_leave();
    assert_int_equal(n_rounds, 0);
}

static void kept_until_given_back(void **state)
{
    (void)state;
    share();
    CPL_INSIDE;
    assert_true(cpl_exclusive_take(COMM));
    assert_int_equal(n_rounds, 2);
    assert_true(!kept[0] && kept[1]);
    {
        CPL_OUTSIDE;
        assert_non_null(cpl_context.lock.owner);
    }
    cpl_exclusive_leave();
    assert_null(cpl_context.thread.exclusive);
    CPL_OUTSIDE;
    assert_null(cpl_context.lock.owner);
}

static void refused(int round)
{
    others_say[round] = false;
    n_rounds = 0;
    assert_false(cpl_exclusive_take(COMM));
    assert_int_equal(n_rounds, round + 1);
    assert_false(cpl_context.lock.kept);
    assert_null(cpl_context.thread.exclusive);
}

static void on_all_ranks_or_on_none(void **state)
{
    (void)state;
    share();
    CPL_INSIDE;
    refused(1);
    refused(0);
}

static void *take(void *unused)
{
    CPL_INSIDE;
    n_rounds = 0;
    assert_false(cpl_exclusive_take(COMM));
    assert_false(mine[0]);
    return unused;
}

static void not_beside_another_thread(void **state)
{
    pthread_t thread;
    (void)state;
    share();
    CPL_INSIDE;
    CPL_OUTSIDE; /* this one waits */
    pthread_create(&thread, NULL, take, NULL);
    pthread_join(thread, NULL);
    assert_null(cpl_context.thread.exclusive);
}

static void other_worlds_have_other_levels(void **state)
{
    (void)state;
    share();
    CPL_INSIDE;
    cpl_context.met_others = true;
    of_this_world = false;
    assert_true(cpl_exclusive_take(COMM));
    assert_false(cpl_context.lock.kept);
    cpl_exclusive_leave();
    assert_int_equal(n_rounds, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(one_thread_needs_none, begin),
        cmocka_unit_test_setup(kept_until_given_back, begin),
        cmocka_unit_test_setup(on_all_ranks_or_on_none, begin),
        cmocka_unit_test_setup(not_beside_another_thread, begin),
        cmocka_unit_test_setup(other_worlds_have_other_levels, begin),
    };
    return cmocka_run_group_tests_name("floor", tests, NULL, NULL);
}
