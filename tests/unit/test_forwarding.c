/* The wrappers of shim/tables/others.def: every row passes all its arguments on to MPI's function
 * of the same name, in their order, and its result back; while the helper thread may be at work,
 * the program counts as inside MPI; a call that may wait for a file announces it before.
 *
 * Functions that note their arguments replace MPI's. The tests call wrappers by a common type: all
 * arguments are integers or pointers, which the ABIs of 64-bit Linux pass alike. */
#include "shim/calls/meets.h"
#include "shim/pt2pt/pt2pt.h"
#include "shim/state/comm_state.h"
#include "shim/state/context.h"
#include "shim/wait/away.h"
#include "shim/wait/progress.h"

#include <mpi.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define MOST   14  /* arguments of a function */
#define FIRST  101 /* the first argument's value; each has one more than the one before */
#define RESULT 29  /* what MPI's functions return */

struct cpl_context cpl_context;

/* What came to MPI's function and to the rest of the library. */
static struct {
    const char *name;
    int n_calls;
    int argument[MOST];
    bool inside;
    int n_polls, n_left, n_alone, n_started;
} seen;

static int note(const char *name, const long *arguments)
{
    seen.name = name;
    seen.n_calls++;
    for (int k = 0; k < MOST; k++)
        seen.argument[k] = (int)arguments[k]; /* the other half of an int is anything */
    seen.inside = cpl_context.service.inside;
    return RESULT;
}

void cpl_service_wait(void)
{
}

void cpl_progress_poll(void)
{
    seen.n_polls++;
}

void cpl_progress_leave(void)
{
    seen.n_left++;
}

void cpl_away_alone(void)
{
    assert_int_equal(seen.n_calls, 0); /* before MPI's call, not after it */
    seen.n_alone++;
}

int cpl_meets_started(MPI_Comm comm, int result, const MPI_Request *request, bool by_all)
{
    assert_int_equal((uintptr_t)comm, FIRST);
    assert_int_equal((uintptr_t)request, FIRST + 1);
    assert_true(by_all);
    seen.n_started++;
    return result;
}

/* MPI's functions by other names in C: their parameters come in the order in which they are passed,
 * whatever the row calls them. */
#define LONGS                                                                                      \
    long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k,        \
        long l, long m, long n
#define BEGINS(name, via, parameters, arguments)                                                   \
    int mock_##name(LONGS) __asm__("PMPI_" #name);                                                 \
    int mock_##name(LONGS)                                                                         \
    {                                                                                              \
        const long values[MOST] = {a, b, c, d, e, f, g, h, i, j, k, l, m, n};                      \
        return note(#name, values);                                                                \
    }
#define HANDLES BEGINS
#define TESTS   BEGINS
#define STAYS   BEGINS
#include "shim/tables/others.def"

typedef int wrapper(LONGS);

enum kind { IS_BEGINS, IS_PERSISTS, IS_COMES, IS_HANDLES, IS_TESTS, IS_STAYS };

/* How many arguments there are: pointers and integers, of which none is longer than a long. */
#define COUNT(...)                                                    COUNTED(__VA_ARGS__, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define COUNTED(a, b, c, d, e, f, g, h, i, j, k, l, m, n, count, ...) count

#define ROW(name, kind, arguments)                                                                 \
    {#name, (wrapper *)(void (*)(void))MPI_##name, kind, COUNT arguments},
static const struct row {
    const char *name;
    wrapper *call;
    enum kind kind;
    int n;
} rows[] = {
#define BEGINS(name, via, parameters, arguments)   ROW(name, IS_BEGINS, arguments)
#define PERSISTS(name, via, parameters, arguments) ROW(name, IS_PERSISTS, arguments)
#define COMES(name, via, parameters, arguments)    ROW(name, IS_COMES, arguments)
#define HANDLES(name, via, parameters, arguments)  ROW(name, IS_HANDLES, arguments)
#define TESTS(name, via, parameters, arguments)    ROW(name, IS_TESTS, arguments)
#define STAYS(name, via, parameters, arguments)    ROW(name, IS_STAYS, arguments)
#include "shim/tables/others.def"
};

enum { N_ROWS = sizeof rows / sizeof *rows };

static void call(const struct row *row)
{
    memset(&seen, 0, sizeof seen);
    int result =
        row->call(FIRST, FIRST + 1, FIRST + 2, FIRST + 3, FIRST + 4, FIRST + 5, FIRST + 6,
                  FIRST + 7, FIRST + 8, FIRST + 9, FIRST + 10, FIRST + 11, FIRST + 12, FIRST + 13);
    assert_int_equal(seen.n_calls, 1);
    assert_string_equal(seen.name, row->name);
    assert_int_equal(result, RESULT);
    for (int k = 0; k < row->n; k++)
        if (seen.argument[k] != FIRST + k)
            fail_msg("MPI_%s: argument %d is %d", row->name, k + 1, seen.argument[k]);
}

static void set(bool active, bool thread)
{
    memset(&cpl_context, 0, sizeof cpl_context);
    cpl_context.active = active;
    cpl_context.service.on = thread;
}

/* Before MPI_Init, after MPI_Finalize and with the library off nothing else is done. */
static void test_not_active(void **state)
{
    (void)state;
    for (int k = 0; k < N_ROWS; k++) {
        set(false, false);
        call(&rows[k]);
        assert_false(seen.inside);
        assert_int_equal(seen.n_alone + seen.n_polls + seen.n_left, 0);
    }
}

static void test_with_thread(void **state)
{
    (void)state;
    for (int k = 0; k < N_ROWS; k++) {
        set(true, true);
        call(&rows[k]);
        if (!seen.inside || cpl_context.service.inside || cpl_context.service.depth != 0)
            fail_msg("MPI_%s is not bracketed", rows[k].name);
    }
}

/* Only what stays in MPI leaves the others to themselves, only what is called again and again for
 * something that comes lets batches go. Whatever may be collective ends an appointment. */
static void test_kinds(void **state)
{
    (void)state;
    struct cpl_comm_state any;
    int n_of[IS_STAYS + 1] = {0};
    for (int k = 0; k < N_ROWS; k++) {
        set(true, false);
        cpl_context.busy.n_open_batches = 1;
        cpl_context.busy.appointment.with = &any;
        call(&rows[k]);
        const struct cpl_appointment *a = &cpl_context.busy.appointment;
        assert_int_equal(a->with != NULL, rows[k].kind == IS_HANDLES || rows[k].kind == IS_TESTS);
        assert_int_equal(a->barred, rows[k].kind == IS_PERSISTS);
        assert_int_equal(seen.n_started, rows[k].kind == IS_COMES);
        assert_int_equal(seen.n_alone, rows[k].kind == IS_STAYS);
        assert_int_equal(seen.n_left, rows[k].kind == IS_TESTS);
        n_of[rows[k].kind]++;
    }
    for (int kind = 0; kind <= IS_STAYS; kind++)
        assert_true(n_of[kind] > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_not_active),
        cmocka_unit_test(test_with_thread),
        cmocka_unit_test(test_kinds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
