/* Planning on a thread (plan_aside.h).
 *
 * The thread ends when nothing is left to plan. Nobody waits for it: what it has been working at
 * when the program ends MPI, it throws away itself. */
#include "shim/plan/plan_aside.h"

#include "shim/base/work.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* Plans to be made, and made ones that nobody has come for. */
#define MOST_TASKS 8

enum stage { TO_DO, UNDER_WAY, DONE, FAILED };

struct task {
    struct task *next;
    enum stage stage; /* under the lock */
    bool forgotten;   /* under the lock: the thread is to free it */
    struct cpl_bytes key;
    struct cpl_pattern pattern;
    struct cpl_machine machine;
    struct cpl_strategy_input input;
    struct cpl_strategy_choice choice;
    int most;
    double over; /* when it is over in a simulation, in seconds */
    cpl_aside_planner *planner;
    struct cpl_plan_set set;
};

static struct {
    pthread_mutex_t lock;
    struct task *first; /* in the order in which they came */
    int n;
    bool has_thread;
} aside = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void free_task(struct task *t)
{
    if (t->stage == DONE)
        cpl_plan_set_free(&t->set);
    cpl_bytes_free(&t->key);
    cpl_pattern_free(&t->pattern);
    cpl_machine_free(&t->machine);
    free(t);
}

/* Takes a task out of the list; under the lock. */
static void unlink_task(struct task **at)
{
    *at = (*at)->next;
    aside.n--;
}

/* The next task to work at, which is under way from now on; NULL: none, and the thread ends. */
static struct task *next_task(void)
{
    pthread_mutex_lock(&aside.lock);
    struct task *t = aside.first;
    while (t && t->stage != TO_DO)
        t = t->next;
    if (t)
        t->stage = UNDER_WAY;
    aside.has_thread = t != NULL;
    pthread_mutex_unlock(&aside.lock);
    return t;
}

static void *run(void *unused)
{
    (void)unused;
    for (struct task *t; (t = next_task());) {
        struct cpl_error error;
        bool planned = !t->planner(&t->input, &t->choice, t->most, &t->set, &error);
        pthread_mutex_lock(&aside.lock);
        t->stage = planned ? DONE : FAILED;
        bool forgotten = t->forgotten;
        pthread_mutex_unlock(&aside.lock);
        if (forgotten)
            free_task(t);
    }
    return NULL;
}

/* The thread is scheduled as the program's: next to a real-time one any other would starve. */
static void set_scheduling(pthread_attr_t *attributes)
{
    struct sched_param priority;
    sched_getparam(0, &priority);
    pthread_attr_setinheritsched(attributes, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(attributes, sched_getscheduler(0) & ~SCHED_RESET_ON_FORK);
    pthread_attr_setschedparam(attributes, &priority);
}

/* Starts the thread with all signals blocked: they are the program's. */
static bool start_thread(void)
{
#ifdef CPL_SIMULATED
    return true;
#endif
    pthread_t thread;
    pthread_attr_t attributes;
    sigset_t all, before;
    if (pthread_attr_init(&attributes))
        return false;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    set_scheduling(&attributes);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&thread, &attributes, run, NULL);
    if (error == EPERM) {
        pthread_attr_setinheritsched(&attributes, PTHREAD_INHERIT_SCHED);
        error = pthread_create(&thread, &attributes, run, NULL);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return error == 0;
}

/* Where the list points to the task with this key; to NULL: there is none. Under the lock. */
static struct task **find(const struct cpl_bytes *key)
{
    struct task **at = &aside.first;
    while (*at && ((*at)->key.n != key->n || memcmp((*at)->key.at, key->at, key->n) != 0))
        at = &(*at)->next;
    return at;
}

/* Writes a key for messages of any size. Look at bytes->failed afterwards. */
static void put_key(const struct cpl_plan_key *key, struct cpl_bytes *bytes)
{
    struct cpl_strategy_input input = *key->input;
    struct cpl_plan_key sizeless = *key;
    struct cpl_pattern pattern = *input.pattern;
    pattern.volume = calloc((size_t)pattern.n_messages + 1, sizeof *pattern.volume);
    if (!pattern.volume) {
        bytes->failed = true;
        return;
    }
    input.pattern = &pattern;
    sizeless.input = &input;
    cpl_plan_key_put(&sizeless, bytes);
    free(pattern.volume);
}

static struct task *make_task(const struct cpl_plan_key *key, const struct cpl_aside_task *given)
{
    struct task *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    put_key(key, &t->key);
    if (t->key.failed) {
        cpl_bytes_free(&t->key);
        free(t);
        return NULL;
    }
    t->input = *key->input;
    t->input.pattern = &t->pattern;
    t->input.machine = &t->machine;
    t->choice = *given->choice;
    t->most = key->most;
    t->planner = given->planner;
    return t;
}

/* Makes room for one more task, if need be in the place of the oldest that is over. Returns whether
 * there is some. Under the lock. */
static bool make_room(void)
{
    struct task **at = &aside.first;
    if (aside.n < MOST_TASKS)
        return true;
    while (*at && (*at)->stage != DONE && (*at)->stage != FAILED)
        at = &(*at)->next;
    struct task *oldest = *at;
    if (!oldest)
        return false;
    unlink_task(at);
    free_task(oldest);
    return true;
}

/* Adds a task behind the others, and starts the thread unless there is one. Under the lock. */
static bool add(struct task *t)
{
    struct task **at = find(&t->key), *same = *at;
    if (same && same->stage != FAILED)
        return false;
    if (same) {
        unlink_task(at);
        free_task(same);
    }
    if (!make_room())
        return false;
    for (at = &aside.first; *at;)
        at = &(*at)->next;
    *at = t;
    aside.n++;
    aside.has_thread = aside.has_thread || start_thread();
    if (!aside.has_thread)
        unlink_task(at);
    return aside.has_thread;
}

bool cpl_aside_begin(const struct cpl_plan_key *key, const struct cpl_aside_task *given)
{
    struct task *t = make_task(key, given);
    if (!t)
        return false;
    pthread_mutex_lock(&aside.lock);
    bool added = add(t);
    if (added) { /* the thread waits for the lock */
        t->pattern = *given->pattern;
        t->machine = *given->machine;
        t->over = cpl_work_planned_aside(given->ms);
    }
    pthread_mutex_unlock(&aside.lock);
#ifdef CPL_SIMULATED
    if (added)
        run(NULL); /* simulated ranks have no threads */
#endif
    if (added)
        return true;
    cpl_bytes_free(&t->key);
    free(t);
    return false;
}

bool cpl_aside_is_busy(void)
{
    bool busy = false;
    pthread_mutex_lock(&aside.lock);
    for (const struct task *t = aside.first; t; t = t->next)
        busy |= t->stage == TO_DO || t->stage == UNDER_WAY || !cpl_work_is_over(t->over);
    pthread_mutex_unlock(&aside.lock);
    return busy;
}

bool cpl_aside_take(const struct cpl_plan_key *key, struct cpl_pattern *pattern,
                    struct cpl_plan_set *set)
{
    struct cpl_bytes bytes = {.n = 0};
    bool found = false;
    if (!aside.first) /* only this thread adds to the list */
        return false;
    put_key(key, &bytes);
    if (!bytes.failed) {
        pthread_mutex_lock(&aside.lock);
        struct task **at = find(&bytes), *t = *at;
        found = t && t->stage == DONE && cpl_work_is_over(t->over);
        if (found) {
            unlink_task(at);
            *set = t->set;
            struct cpl_pattern given = *pattern;
            *pattern = t->pattern;
            t->pattern = given;
            t->stage = FAILED; /* it has no plans any more */
            free_task(t);
        }
        pthread_mutex_unlock(&aside.lock);
    }
    cpl_bytes_free(&bytes);
    return found;
}

void cpl_aside_end(void)
{
    pthread_mutex_lock(&aside.lock);
    while (aside.first) {
        struct task *t = aside.first;
        unlink_task(&aside.first);
        if (t->stage == UNDER_WAY)
            t->forgotten = true;
        else
            free_task(t);
    }
    pthread_mutex_unlock(&aside.lock);
}
