/* Several ranks in one process (fibers.h). */
#include "fibers.h"

#include "random_pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <ucontext.h>

#include <cmocka.h>

enum { STACK_BYTES = 256 << 10, MOST_TURNS = 3000000 };

struct cpl_context cpl_context;
void (*fibers_turn)(int rank);

struct fiber {
    ucontext_t machine;
    struct cpl_context context;
    bool ended, waits;
    struct fibers_call call; /* that it waits in */
    void *mine;
};

static struct {
    int n, running;
    uint64_t random;
    int64_t n_meetings;
    int n_waiting;
    void (*program)(int rank);
    ucontext_t test;
    struct fiber fiber[FIBERS_MOST];
} all;

static char stacks[FIBERS_MOST][STACK_BYTES] __attribute__((aligned(64)));

void fibers_begin(int n, uint64_t seed)
{
    assert_in_range(n, 1, FIBERS_MOST);
    memset(&all, 0, sizeof all);
    all.n = n;
    all.random = seed;
    for (int r = 0; r < n; r++) {
        all.fiber[r].context.rank = r;
        all.fiber[r].context.size = n;
    }
}

struct cpl_context *fibers_context(int rank)
{
    return &all.fiber[rank].context;
}

int fibers_rank(void)
{
    return all.running;
}

int fibers_n(void)
{
    return all.n;
}

int64_t fibers_n_meetings(void)
{
    return all.n_meetings;
}

int fibers_draw(int n)
{
    return random_below(&all.random, n);
}

/* The first thing on a fiber's stack. */
static void begin(void)
{
    struct fiber *me = &all.fiber[all.running];
    all.program(all.running);
    me->ended = true;
}

static void switch_to(int rank)
{
    struct fiber *next = &all.fiber[rank];
    all.running = rank;
    cpl_context = next->context;
    if (fibers_turn)
        fibers_turn(rank);
    swapcontext(&all.test, &next->machine);
    if (fibers_turn)
        fibers_turn(-1);
    next->context = cpl_context;
}

/* A rank that can run; -1: all have ended. */
static int choose(void)
{
    int able[FIBERS_MOST], n = 0, n_ended = 0;
    for (int r = 0; r < all.n; r++) {
        n_ended += all.fiber[r].ended;
        if (!all.fiber[r].ended && !all.fiber[r].waits)
            able[n++] = r;
    }
    for (int r = 0; r < all.n && n == 0 && n_ended < all.n; r++)
        if (all.fiber[r].waits)
            print_error("rank %d waits in %s\n", r, all.fiber[r].call.name);
    assert_true(n > 0 || n_ended == all.n);
    return n > 0 ? able[random_below(&all.random, n)] : -1;
}

void fibers_run(void (*program)(int rank))
{
    all.program = program;
    all.n_waiting = 0;
    for (int r = 0; r < all.n; r++) {
        struct fiber *f = &all.fiber[r];
        f->ended = f->waits = false;
        getcontext(&f->machine);
        f->machine.uc_stack.ss_sp = stacks[r];
        f->machine.uc_stack.ss_size = sizeof stacks[r];
        f->machine.uc_link = &all.test;
        makecontext(&f->machine, begin, 0);
    }
    int n_turns = 0;
    for (int next; (next = choose()) >= 0; n_turns++) {
        assert_in_range(n_turns, 0, MOST_TURNS); /* nobody waits for ever */
        switch_to(next);
    }
}

void fibers_yield(void)
{
    struct fiber *me = &all.fiber[all.running];
    swapcontext(&me->machine, &all.test);
}

static void assert_same(const struct fiber *one, const struct fiber *other)
{
    if (strcmp(one->call.name, other->call.name) != 0)
        fail_msg("rank %d calls %s, rank %d calls %s", (int)(one - all.fiber), one->call.name,
                 (int)(other - all.fiber), other->call.name);
    assert_int_equal(one->call.comm, other->call.comm);
    assert_int_equal(one->call.count, other->call.count);
    assert_int_equal(one->call.type, other->call.type);
    assert_int_equal(one->call.op, other->call.op);
    assert_int_equal(one->call.root, other->call.root);
}

void fibers_meet(const struct fibers_call *call, void *mine, void (*together)(void *const *all))
{
    struct fiber *me = &all.fiber[all.running];
    me->call = *call;
    me->mine = mine;
    me->waits = true;
    for (int r = 0; r < all.n; r++)
        if (all.fiber[r].waits)
            assert_same(&all.fiber[r], me);
    if (++all.n_waiting < all.n) {
        fibers_yield();
        return;
    }
    void *given[FIBERS_MOST];
    for (int r = 0; r < all.n; r++)
        given[r] = all.fiber[r].mine;
    if (together)
        together(given);
    for (int r = 0; r < all.n; r++)
        all.fiber[r].waits = false;
    all.n_waiting = 0;
    all.n_meetings++;
}

static void compare(void *const *values)
{
    for (int r = 1; r < all.n; r++) {
        if (*(int64_t *)values[r] != *(int64_t *)values[0])
            print_error("ranks 0 and %d differ in %s\n", r, all.fiber[r].call.name);
        assert_int_equal(*(int64_t *)values[r], *(int64_t *)values[0]);
    }
    all.n_meetings--; /* it is the test's */
}

void fibers_compare(const char *what, int64_t value)
{
    fibers_meet(&(struct fibers_call){.name = what}, &value, compare);
}
