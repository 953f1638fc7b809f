/* Tests of planning on a thread (plan_aside.h): the thread makes what would be made without it,
 * each plan is had once, and nothing is lost or waited for. */
#include "random_machine.h"
#include "random_pattern.h"
#include "shim/plan/plan_aside.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define MOST_RANKS 16
#define N_SEEDS    60

static sem_t gate; /* planners that wait for it */
static atomic_int n_planned;
static pthread_t program;

static enum cpl_status make(const struct cpl_strategy_input *input,
                            const struct cpl_strategy_choice *choice, int most,
                            struct cpl_plan_set *set, struct cpl_error *error)
{
    *set = (struct cpl_plan_set){.n = 0};
    atomic_fetch_add(&n_planned, 1);
    if (choice->strategy) {
        set->n = 1;
        return cpl_strategy_plan(input, choice, set->plan, error);
    }
    return cpl_strategy_plan_ranked(input, most, set->choice, set->plan, &set->n, &set->ranking,
                                    error);
}

/* Fails where it should not be: in the program's thread, or where signals come. */
static enum cpl_status make_aside(const struct cpl_strategy_input *input,
                                  const struct cpl_strategy_choice *choice, int most,
                                  struct cpl_plan_set *set, struct cpl_error *error)
{
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    if (!sigismember(&blocked, SIGALRM) || !sigismember(&blocked, SIGPROF) ||
        pthread_equal(pthread_self(), program))
        return cpl_fail_memory(error, "the test");
    return make(input, choice, most, set, error);
}

static enum cpl_status make_gated(const struct cpl_strategy_input *input,
                                  const struct cpl_strategy_choice *choice, int most,
                                  struct cpl_plan_set *set, struct cpl_error *error)
{
    sem_wait(&gate);
    return make(input, choice, most, set, error);
}

static enum cpl_status make_nothing(const struct cpl_strategy_input *input,
                                    const struct cpl_strategy_choice *choice, int most,
                                    struct cpl_plan_set *set, struct cpl_error *error)
{
    (void)input, (void)choice, (void)most, (void)set;
    return cpl_fail_memory(error, "the test");
}

struct trial {
    struct cpl_pattern pattern;
    struct cpl_machine machine;
    struct cpl_strategy_input input;
    struct cpl_strategy_choice choice;
    struct cpl_plan_key key;
};

static void describe(struct trial *t, uint64_t seed)
{
    uint64_t random = seed;
    *t = (struct trial){.choice = {NULL}};
    t->pattern = random_pattern(seed, MOST_RANKS);
    t->machine = random_machine(&random, t->pattern.n_ranks);
    t->input = (struct cpl_strategy_input){&t->pattern, &t->machine, 8, 0.3};
    t->key = (struct cpl_plan_key){"1.2", "auto", 2, &t->input};
}

static bool begin(struct trial *t, cpl_aside_planner *planner)
{
    return cpl_aside_begin(
        &t->key, &(struct cpl_aside_task){&t->pattern, &t->machine, &t->choice, planner, 1});
}

static void forget(struct trial *t)
{
    cpl_pattern_free(&t->pattern);
    cpl_machine_free(&t->machine);
}

static void wait_for_thread(void)
{
    while (cpl_aside_is_busy())
        sched_yield();
}

static void assert_same(const struct cpl_plan_set *a, const struct cpl_plan_set *b)
{
    assert_int_equal(a->n, b->n);
    assert_int_equal(a->ranking.n, b->ranking.n);
    for (int k = 0; k < a->n; k++)
        assert_true(a->plan[k].fingerprint == b->plan[k].fingerprint);
}

/* What the thread makes is what is made without it, and is had once, by whoever has the key,
 * whatever sizes the messages have by then. */
static void test_same_plans(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < N_SEEDS; seed++) {
        struct trial given, again;
        struct cpl_plan_set aside, here;
        struct cpl_error error;
        describe(&given, seed);
        describe(&again, seed);
        uint64_t fingerprint = cpl_pattern_fingerprint(&again.pattern);
        for (int64_t m = 0; m < again.pattern.n_messages && seed % 2; m++)
            again.pattern.volume[m] /= 2;
        assert_false(cpl_aside_take(&again.key, &again.pattern, &aside));
        assert_true(begin(&given, make_aside));
        wait_for_thread();
        assert_true(cpl_aside_take(&again.key, &again.pattern, &aside));
        assert_true(cpl_pattern_fingerprint(&again.pattern) == fingerprint);
        assert_int_equal(make(&again.input, &again.choice, 2, &here, &error), CPL_OK);
        assert_same(&aside, &here);
        cpl_plan_set_free(&aside);
        cpl_plan_set_free(&here);
        assert_false(cpl_aside_take(&again.key, &again.pattern, &aside));
        forget(&again);
    }
}

/* Several wait for the thread; another key gets none of them. */
static void test_several(void **state)
{
    (void)state;
    enum { N = 5 };
    struct trial given[N], again, other;
    struct cpl_plan_set set;
    for (int k = 0; k < N; k++) {
        describe(&given[k], 100 + (uint64_t)k);
        assert_true(begin(&given[k], make_gated));
    }
    describe(&again, 100);
    assert_false(begin(&again, make_gated)); /* they are being made */
    assert_false(cpl_aside_take(&again.key, &again.pattern, &set));
    for (int k = 0; k < N; k++) {
        assert_true(cpl_aside_is_busy());
        sem_post(&gate);
    }
    wait_for_thread();
    describe(&other, 100);
    other.input.budget_ms = 0.4;
    assert_false(cpl_aside_take(&other.key, &other.pattern, &set));
    assert_false(begin(&again, make_gated)); /* they are there */
    forget(&again);
    forget(&other);
    for (int k = 0; k < N; k++) {
        describe(&again, 100 + (uint64_t)k);
        assert_true(cpl_aside_take(&again.key, &again.pattern, &set));
        cpl_plan_set_free(&set);
        forget(&again);
    }
}

/* Plans that could not be made are not there, and may be asked for once more. */
static void test_failed(void **state)
{
    (void)state;
    struct trial given, again;
    struct cpl_plan_set set;
    describe(&given, 7);
    assert_true(begin(&given, make_nothing));
    wait_for_thread();
    describe(&again, 7);
    assert_false(cpl_aside_take(&again.key, &again.pattern, &set));
    assert_true(begin(&again, make));
    wait_for_thread();
    describe(&again, 7);
    assert_true(cpl_aside_take(&again.key, &again.pattern, &set));
    cpl_plan_set_free(&set);
    forget(&again);
}

/* Plans that nobody comes for are not kept for ever: the oldest go. */
static void test_not_fetched(void **state)
{
    (void)state;
    enum { N = 30 };
    struct trial t;
    struct cpl_plan_set set;
    int n_kept = 0;
    for (int k = 0; k < N; k++) {
        describe(&t, 200 + (uint64_t)k);
        assert_true(begin(&t, make));
        wait_for_thread();
    }
    for (int k = 0; k < N; k++) {
        describe(&t, 200 + (uint64_t)k);
        bool is_kept = cpl_aside_take(&t.key, &t.pattern, &set);
        assert_true(is_kept || n_kept == 0);
        n_kept += is_kept;
        if (is_kept)
            cpl_plan_set_free(&set);
        forget(&t);
    }
    assert_in_range(n_kept, 2, N / 2);
}

/* The thread takes so much and no more. */
static void test_too_many(void **state)
{
    (void)state;
    enum { N = 12 };
    struct trial t;
    struct cpl_plan_set set;
    int n_taken = 0;
    for (int k = 0; k < N; k++) {
        describe(&t, 500);
        t.input.budget_ms = 0.1 * (k + 1);
        bool is_taken = begin(&t, make_gated);
        assert_true(!is_taken || n_taken == k); /* none after one that is refused */
        n_taken += is_taken;
        if (!is_taken)
            forget(&t);
    }
    assert_in_range(n_taken, 2, N - 1);
    for (int k = 0; k < n_taken; k++)
        sem_post(&gate);
    wait_for_thread();
    for (int k = 0; k < n_taken; k++) {
        describe(&t, 500);
        t.input.budget_ms = 0.1 * (k + 1);
        assert_true(cpl_aside_take(&t.key, &t.pattern, &set));
        cpl_plan_set_free(&set);
        forget(&t);
    }
}

/* The end does not wait for the thread, which goes on with what is asked for later. */
static void test_end(void **state)
{
    (void)state;
    struct trial t;
    struct cpl_plan_set set;
    for (uint64_t seed = 300; seed < 320; seed++) {
        int before = atomic_load(&n_planned);
        for (uint64_t k = 0; k < 2; k++) { /* the second one is never begun */
            describe(&t, seed + 1000 * k);
            assert_true(begin(&t, make_gated));
        }
        if (seed % 2)
            sched_yield();
        cpl_aside_end();
        assert_false(cpl_aside_is_busy());
        describe(&t, seed);
        assert_false(cpl_aside_take(&t.key, &t.pattern, &set));
        sem_post(&gate);
        assert_true(begin(&t, make));
        wait_for_thread();
        describe(&t, seed);
        assert_true(cpl_aside_take(&t.key, &t.pattern, &set));
        cpl_plan_set_free(&set);
        forget(&t);
        sem_trywait(&gate); /* the thread had not come to it before the end */
        assert_in_range(atomic_load(&n_planned) - before, 1, 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_plans), cmocka_unit_test(test_several),
        cmocka_unit_test(test_failed),     cmocka_unit_test(test_not_fetched),
        cmocka_unit_test(test_too_many),   cmocka_unit_test(test_end),
    };
    program = pthread_self();
    sem_init(&gate, 0, 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
