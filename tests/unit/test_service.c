/* Tests of the lock of programs with MPI_THREAD_MULTIPLE (shim/state/service.h): one thread at a
 * time is inside, however often it takes the lock; a thread that waits outside leaves it to others
 * and finds it as it was; a wait that gives way lets all others in; and the helper thread works
 * while nobody is inside. */
#include "shim/base/log.h"
#include "shim/state/context.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <time.h>

#include <cmocka.h>

#define N_THREADS 4
#define N_TIMES   2000

struct cpl_context cpl_context;
static int n_inside, n_clashes; /* under the lock */
static int64_t n_entered;
static atomic_int n_served, turn;

enum cpl_log_level cpl_log_threshold = CPL_LOG_WARN;

void cpl_log_write(enum cpl_log_level level, const char *component, const char *format, ...)
{
    (void)level, (void)component, (void)format;
}

static void enter(void)
{
    n_clashes += n_inside++ > 0;
    n_entered++;
}

static void leave(void)
{
    n_inside--;
}

static void inner(void)
{
    CPL_INSIDE;
    n_entered++;
}

static void *come_and_go(void *unused)
{
    for (int k = 0; k < N_TIMES; k++) {
        CPL_INSIDE;
        enter();
        inner();
        if (k % 3 == 0) {
            leave();
            {
                CPL_OUTSIDE;
                sched_yield();
            }
            enter();
        }
        leave();
    }
    return unused;
}

static void start(void)
{
    cpl_context = (struct cpl_context){.active = true};
    n_inside = n_clashes = 0;
    n_entered = 0;
    CPL_INSIDE;
    cpl_service_share();
}

static void one_is_inside(void **state)
{
    pthread_t threads[N_THREADS];
    (void)state;
    start();
    for (int k = 0; k < N_THREADS; k++)
        pthread_create(&threads[k], NULL, come_and_go, NULL);
    for (int k = 0; k < N_THREADS; k++)
        pthread_join(threads[k], NULL);
    assert_int_equal(n_clashes, 0);
    assert_int_equal(n_entered, N_THREADS * (2 * N_TIMES + (N_TIMES + 2) / 3));
    assert_int_equal(cpl_context.service.depth, 0);
    assert_null(cpl_context.lock.owner);
}

static void outside_is_as_deep_as_before(void **state)
{
    (void)state;
    start();
    {
        CPL_INSIDE;
        cpl_service_lock();
        assert_int_equal(cpl_context.service.depth, 2);
        {
            CPL_OUTSIDE;
            assert_null(cpl_context.lock.owner);
            inner();
        }
        assert_int_equal(cpl_context.service.depth, 2);
        cpl_service_unlock();
        assert_ptr_equal(cpl_context.lock.owner, cpl_service_me());
    }
    assert_null(cpl_context.lock.owner);
    CPL_OUTSIDE; /* not inside: nothing to give back */
    assert_int_equal(cpl_context.lock.n_outside, 0);
}

static void *take_a_turn(void *unused)
{
    CPL_INSIDE;
    atomic_fetch_add(&turn, 1);
    return unused;
}

static void waits_give_way(void **state)
{
    pthread_t threads[N_THREADS];
    (void)state;
    start();
    CPL_INSIDE;
    for (int k = 0; k < N_THREADS; k++)
        pthread_create(&threads[k], NULL, take_a_turn, NULL);
    while (atomic_load(&turn) < N_THREADS)
        cpl_service_give_way();
    for (int k = 0; k < N_THREADS; k++)
        pthread_join(threads[k], NULL);
    assert_int_equal(cpl_context.service.depth, 1);
}

static bool work(void)
{
    n_clashes += n_inside > 0;
    atomic_fetch_add(&n_served, 1);
    return true;
}

static void nap(void)
{
    nanosleep(&(struct timespec){0, 20000000}, NULL);
}

static void the_helper_works_outside(void **state)
{
    (void)state;
    start();
    {
        CPL_INSIDE;
        assert_true(cpl_service_prepare(work));
        cpl_service_switch(true);
        enter();
        nap();
        assert_int_equal(n_served, 0);
        leave();
        CPL_OUTSIDE;
        for (int k = 0; k < 100 && n_served == 0; k++)
            nap();
        assert_true(n_served > 0);
    }
    cpl_service_end();
    assert_int_equal(n_clashes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_is_inside),
        cmocka_unit_test(outside_is_as_deep_as_before),
        cmocka_unit_test(waits_give_way),
        cmocka_unit_test(the_helper_works_outside),
    };
    return cmocka_run_group_tests_name("service", tests, NULL, NULL);
}
