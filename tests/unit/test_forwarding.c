/* The wrappers of shim/tables/others.def: every row passes all its arguments on, with all their
 * bits, to MPI's function of the same name, in their order, and its result back; while the helper
 * thread may be at work, the program counts as inside MPI; a call that may wait for a file
 * announces it before.
 *
 * Functions that note their arguments replace MPI's. */
#include "shim/calls/wrappers.h"
#include "shim/carry/requests.h"
#include "shim/pt2pt/pt2pt.h"
#include "shim/state/comm_state.h"
#include "shim/state/context.h"
#include "shim/tables/words.h"
#include "shim/wait/assembly.h"
#include "shim/wait/progress.h"

#include <mpi.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define MOST   14                 /* arguments of a function */
#define FIRST  0x123456789abcdef0 /* the first argument; each has one more than the one before */
#define RESULT 29                 /* what MPI's functions return */

struct cpl_context cpl_context;

/* What came to MPI's function and to the rest of the library. */
static struct {
    const char *name;
    int n_calls;
    cpl_word argument[MOST];
    bool inside;
    int n_polls, n_left, n_alone, n_gathered, n_started;
} seen;

static cpl_word note(const char *name, int n, const cpl_word *arguments)
{
    seen.name = name;
    seen.n_calls++;
    memcpy(seen.argument, arguments, (size_t)n * sizeof *arguments);
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

void cpl_progress_send_batches(void)
{
    seen.n_left++;
}

void cpl_progress_before_wait(void)
{
    assert_int_equal(seen.n_calls, 0); /* before MPI's call, not after it */
    seen.n_alone++;
}

int cpl_meets_started(MPI_Comm comm, int result, const MPI_Request *request, bool by_all)
{
    assert_int_equal((uintptr_t)comm, (uintptr_t)(MPI_Comm)FIRST);
    assert_int_equal((uintptr_t)request, FIRST + 1);
    assert_true(by_all);
    seen.n_started++;
    return result;
}

int PMPI_Comm_group(MPI_Comm comm, MPI_Group *group)
{
    assert_int_equal((uintptr_t)comm, (uintptr_t)(MPI_Comm)FIRST);
    *group = MPI_GROUP_EMPTY;
    return MPI_SUCCESS;
}

int PMPI_Group_free(MPI_Group *group)
{
    *group = MPI_GROUP_NULL;
    return MPI_SUCCESS;
}

void cpl_away_group(MPI_Group group)
{
    assert_int_equal((uintptr_t)group, (uintptr_t)MPI_GROUP_EMPTY);
    assert_int_equal(seen.n_calls, 0);
    seen.n_gathered++;
}

void cpl_comm_state_set_aside(MPI_Comm comm)
{
    (void)comm; /* MPI has failed in these tests */
    fail();
}

void cpl_comm_state_take_back(MPI_Comm comm)
{
    (void)comm;
    fail();
}

struct cpl_request *cpl_request_find(MPI_Request handle)
{
    (void)handle;
    return NULL;
}

bool cpl_request_is_known_done(struct cpl_request *request)
{
    (void)request;
    return false;
}

enum kind { IS_BEGINS, IS_PERSISTS, IS_COMES, IS_HANDLES, IS_TESTS, IS_STAYS, IS_WAITS };

typedef cpl_word wrapper(CPL_TAKES(14));

/* For each row MPI's function, and how the tests call the wrapper: with more words than it takes.
 */
#define ROW(prefix, name, n, kind)                                                                 \
    cpl_word cpl_own_##prefix##_##name(CPL_TAKES(n));                                              \
    cpl_word cpl_real_##prefix##_##name(CPL_TAKES(n));                                             \
    cpl_word cpl_real_##prefix##_##name(CPL_TAKES(n))                                              \
    {                                                                                              \
        const cpl_word words[] = {CPL_GIVES(n)};                                                   \
        return note(#prefix "_" #name, n, words);                                                  \
    }
#define BEGINS(prefix, name, n)  ROW(prefix, name, n, IS_BEGINS)
#define PERSISTS(name, n)        ROW(MPI, name, n, IS_PERSISTS)
#define COMES(name, n)           ROW(MPI, name, n, IS_COMES)
#define HANDLES(prefix, name, n) ROW(prefix, name, n, IS_HANDLES)
#define TESTS(prefix, name, n)   ROW(prefix, name, n, IS_TESTS)
#define STAYS(prefix, name, n)   ROW(prefix, name, n, IS_STAYS)
#define WAITS_X(name, n)         ROW(MPIX, name, n, IS_WAITS)
#define MAKES_X                  WAITS_X
#define BY_HAND_X(name, n)       ROW(MPIX, name, n, IS_WAITS)
#include "shim/tables/others.def"

#undef ROW
#define ROW(prefix, name, n, kind)                                                                 \
    {#prefix "_" #name, (wrapper *)(void (*)(void))cpl_own_##prefix##_##name, kind, n},
static const struct row {
    const char *name;
    wrapper *call;
    enum kind kind;
    int n;
} rows[] = {
#define BEGINS(prefix, name, n)  ROW(prefix, name, n, IS_BEGINS)
#define PERSISTS(name, n)        ROW(MPI, name, n, IS_PERSISTS)
#define COMES(name, n)           ROW(MPI, name, n, IS_COMES)
#define HANDLES(prefix, name, n) ROW(prefix, name, n, IS_HANDLES)
#define TESTS(prefix, name, n)   ROW(prefix, name, n, IS_TESTS)
#define STAYS(prefix, name, n)   ROW(prefix, name, n, IS_STAYS)
#define WAITS_X(name, n)         ROW(MPIX, name, n, IS_WAITS)
#define MAKES_X                  WAITS_X
#include "shim/tables/others.def"
};

enum { N_ROWS = sizeof rows / sizeof *rows };

static void call(const struct row *row)
{
    memset(&seen, 0, sizeof seen);
    cpl_word result =
        row->call(FIRST, FIRST + 1, FIRST + 2, FIRST + 3, FIRST + 4, FIRST + 5, FIRST + 6,
                  FIRST + 7, FIRST + 8, FIRST + 9, FIRST + 10, FIRST + 11, FIRST + 12, FIRST + 13);
    assert_int_equal(seen.n_calls, 1);
    assert_string_equal(seen.name, row->name);
    assert_int_equal(result, RESULT);
    for (int k = 0; k < row->n; k++)
        if (seen.argument[k] != FIRST + k)
            fail_msg("%s: argument %d is %lx", row->name, k + 1, (long)seen.argument[k]);
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
            fail_msg("%s is not bracketed", rows[k].name);
    }
}

/* Only what stays in MPI leaves the others to themselves, only what is called again and again for
 * something that comes lets batches go. Whatever may be collective ends an appointment. */
static void test_kinds(void **state)
{
    (void)state;
    struct cpl_comm_state any;
    int n_of[IS_WAITS + 1] = {0};
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
        assert_int_equal(seen.n_gathered, rows[k].kind == IS_WAITS);
        n_of[rows[k].kind]++;
    }
    for (int kind = 0; kind <= IS_WAITS; kind++)
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
