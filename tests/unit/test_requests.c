/* Requests that MPI carries out for the shim (shim/carry/requests.c, shim/calls/pt2pt_complete.c):
 * what a call that tests makes of MPI's answers, and how often it asks. MPI is a list of receives
 * here. */
#include "shim/calls/pt2pt_calls.h"
#include "shim/carry/requests.h"
#include "shim/wait/progress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 200, FIRST_INNER = 100000 };

struct cpl_context cpl_context;

static struct {
    int n_asked, n_polled, n_came, n_raised;
    bool over[MOST];
    int error[MOST];
} mpi;

static int n_made; /* handles of the shim */

static int number_of(MPI_Request inner)
{
    return (int)inner - FIRST_INNER;
}

static void fill(MPI_Status *status, int k)
{
    status->MPI_SOURCE = k;
    status->MPI_TAG = 10 * k;
}

void *cpl_memory_need(size_t bytes, const char *what)
{
    (void)what;
    return calloc(1, bytes);
}

void cpl_memory_wait(int *tries, const char *what)
{
    (void)tries;
    fail_msg("no memory for %s", what);
}

int PMPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    int k = number_of(*request);
    mpi.n_asked++;
    *flag = mpi.over[k];
    if (!*flag)
        return MPI_SUCCESS;
    fill(status, k);
    *request = MPI_REQUEST_NULL;
    return mpi.error[k];
}

int PMPI_Irecv(void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
               MPI_Request *request)
{
    (void)buffer, (void)count, (void)type, (void)source, (void)tag, (void)comm, (void)request;
    fail_msg("nothing is received from MPI_PROC_NULL here");
    return MPI_ERR_OTHER;
}

int PMPI_Testany(int n, MPI_Request requests[], int *index, int *flag, MPI_Status *status)
{
    mpi.n_asked++;
    *flag = 0;
    *index = MPI_UNDEFINED;
    for (int i = 0; i < n && !*flag; i++) {
        int k = number_of(requests[i]);
        if (!mpi.over[k])
            continue;
        fill(status, k);
        requests[i] = MPI_REQUEST_NULL;
        *flag = 1;
        *index = i;
        return mpi.error[k];
    }
    return MPI_SUCCESS;
}

int PMPI_Testall(int n, MPI_Request requests[], int *flag, MPI_Status statuses[])
{
    (void)n, (void)requests, (void)flag, (void)statuses;
    fail();
    return MPI_SUCCESS;
}

int PMPI_Testsome(int n, MPI_Request requests[], int *n_done, int indices[], MPI_Status statuses[])
{
    (void)n, (void)requests, (void)n_done, (void)indices, (void)statuses;
    fail();
    return MPI_SUCCESS;
}

/* As MPI's, of receives that only MPI knows; MPI_REQUEST_NULL is none. */
int PMPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
    (void)request, (void)flag, (void)status;
    fail();
    return MPI_SUCCESS;
}

int PMPI_Request_get_status_some(int n, const MPI_Request requests[], int *n_done, int indices[],
                                 MPI_Status statuses[])
{
    int n_active = 0;
    *n_done = 0;
    for (int i = 0; i < n; i++) {
        n_active += requests[i] != MPI_REQUEST_NULL;
        if (requests[i] == MPI_REQUEST_NULL || !mpi.over[number_of(requests[i])])
            continue;
        fill(&statuses[*n_done], number_of(requests[i]));
        indices[(*n_done)++] = i;
    }
    if (n_active == 0)
        *n_done = MPI_UNDEFINED;
    return MPI_SUCCESS;
}

int PMPI_Request_get_status_any(int n, const MPI_Request requests[], int *index, int *flag,
                                MPI_Status *status)
{
    int n_done, indices[MOST];
    MPI_Status statuses[MOST];
    PMPI_Request_get_status_some(n, requests, &n_done, indices, statuses);
    *flag = n_done != 0;
    *index = n_done > 0 ? indices[0] : MPI_UNDEFINED;
    if (n_done > 0 && status != MPI_STATUS_IGNORE)
        *status = statuses[0];
    return MPI_SUCCESS;
}

int PMPI_Request_get_status_all(int n, const MPI_Request requests[], int *flag,
                                MPI_Status statuses[])
{
    *flag = 1;
    for (int i = 0; i < n; i++) {
        if (requests[i] == MPI_REQUEST_NULL)
            fill(&statuses[i], -1);
        else if (mpi.over[number_of(requests[i])])
            fill(&statuses[i], number_of(requests[i]));
        else
            *flag = 0;
    }
    return MPI_SUCCESS;
}

int PMPI_Test_cancelled(const MPI_Status *status, int *flag)
{
    (void)status;
    *flag = 0;
    return MPI_SUCCESS;
}

int PMPI_Get_elements_x(const MPI_Status *status, MPI_Datatype type, MPI_Count *n)
{
    (void)type;
    *n = 1000 + status->MPI_SOURCE;
    return MPI_SUCCESS;
}

int PMPI_Recv_init(void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
                   MPI_Request *request)
{
    (void)buffer, (void)count, (void)type, (void)source, (void)tag, (void)comm;
    *request = (MPI_Request)++n_made;
    return MPI_SUCCESS;
}

int PMPI_Request_free(MPI_Request *request)
{
    (void)request;
    return MPI_SUCCESS;
}

int PMPI_Comm_call_errhandler(MPI_Comm comm, int error)
{
    (void)comm, (void)error;
    mpi.n_raised++;
    return MPI_SUCCESS;
}

void cpl_progress_poll(void)
{
    mpi.n_polled++;
}

void cpl_progress_await(void)
{
    cpl_progress_poll();
}

void cpl_progress_send_batches(void)
{
}

void cpl_progress_no_wait(void)
{
}

int cpl_progress_wait_each(int n, MPI_Request *requests, MPI_Status *statuses)
{
    (void)n, (void)requests, (void)statuses;
    fail();
    return MPI_SUCCESS;
}

int PMPI_Start(MPI_Request *request)
{
    (void)request;
    fail();
    return MPI_SUCCESS;
}

void cpl_match_status(MPI_Status *status, int source, int tag, int64_t bytes, bool cancelled)
{
    (void)bytes, (void)cancelled;
    if (status == MPI_STATUS_IGNORE)
        return;
    status->MPI_SOURCE = source;
    status->MPI_TAG = tag;
}

void cpl_match_receive_status(const struct cpl_receive *receive, MPI_Status *status)
{
    cpl_match_status(status, receive->from, receive->from_tag, receive->bytes, receive->cancelled);
}

static void came(struct cpl_request *request)
{
    assert_int_equal(request->receive.bytes, 1000 + request->receive.from);
    mpi.n_came++;
}

static MPI_Request handle[MOST];

/* n receives of MPI's that are watched. */
static void post(int n)
{
    memset(&mpi, 0, sizeof mpi);
    for (int k = 0; k < n; k++) {
        struct cpl_request *request = cpl_request_make(MPI_COMM_WORLD, true);
        assert_non_null(request);
        cpl_request_watch(request, (MPI_Request)(FIRST_INNER + k), came);
        handle[k] = request->handle;
    }
}

/* A rest that is open is completed, so that no request is left. */
static void complete_rest(int n)
{
    int index, flag;
    MPI_Status status;
    memset(mpi.over, true, sizeof mpi.over);
    while (cpl_context.busy.n_active_requests > 0)
        assert_int_equal(cpl_complete_any(n, handle, &index, &flag, &status, CPL_TESTS),
                         MPI_SUCCESS);
}

/* A call that tests asks MPI once, however many receives are open, and does not poll while nothing
 * is managed; where something is, it looks once more after a poll. */
static void test_one_question(void **state)
{
    (void)state;
    int index, flag;
    MPI_Status status;
    post(40);
    cpl_complete_any(40, handle, &index, &flag, &status, CPL_TESTS);
    assert_false(flag);
    assert_int_equal(mpi.n_asked, 1);
    assert_int_equal(mpi.n_polled, 0);
    cpl_context.service.on = true;
    cpl_complete_any(40, handle, &index, &flag, &status, CPL_TESTS);
    assert_false(flag);
    assert_int_equal(mpi.n_asked, 3);
    assert_int_equal(mpi.n_polled, 1);
    cpl_context.service.on = false;
    cpl_complete_all(40, handle, &flag, MPI_STATUSES_IGNORE, CPL_TESTS);
    assert_false(flag);
    assert_int_equal(mpi.n_asked, 4);
    cpl_complete_one(&handle[7], &flag, &status, CPL_TESTS);
    assert_false(flag);
    assert_int_equal(mpi.n_asked, 5);
    complete_rest(40);
}

/* All that are over are found, with their sources and tags, in the order of the array. */
static void test_what_is_over(void **state)
{
    (void)state;
    int n_done, indices[MOST];
    MPI_Status statuses[MOST];
    post(150); /* more than MPI is asked about at once */
    mpi.over[3] = mpi.over[64] = mpi.over[149] = true;
    assert_int_equal(cpl_complete_some(150, handle, &n_done, indices, statuses, CPL_TESTS), 0);
    assert_int_equal(n_done, 3);
    assert_int_equal(mpi.n_came, 3);
    const int expected[] = {3, 64, 149};
    for (int k = 0; k < 3; k++) {
        assert_int_equal(indices[k], expected[k]);
        assert_int_equal(statuses[k].MPI_SOURCE, expected[k]);
        assert_int_equal(statuses[k].MPI_TAG, 10 * expected[k]);
        assert_true(handle[expected[k]] == MPI_REQUEST_NULL);
    }
    assert_int_equal(cpl_context.busy.n_active_requests, 147);
    complete_rest(150);
    assert_int_equal(mpi.n_came, 150);
}

/* An error is that of its receive. MPI has called the handler, so the shim does not. */
static void test_errors(void **state)
{
    (void)state;
    int index, flag;
    MPI_Status status;
    post(5);
    mpi.over[1] = mpi.over[4] = true;
    mpi.error[4] = MPI_ERR_TRUNCATE;
    assert_int_equal(cpl_complete_any(5, handle, &index, &flag, &status, CPL_TESTS), MPI_SUCCESS);
    assert_true(flag && index == 1);
    assert_int_equal(cpl_complete_any(5, handle, &index, &flag, &status, CPL_TESTS),
                     MPI_ERR_TRUNCATE);
    assert_true(flag && index == 4);
    assert_int_equal(mpi.n_raised, 0);
    complete_rest(5);
}

/* Statuses of requests of which some are the shim's and the others MPI's, in any state: the same as
 * of an MPI that knows them all; no request changes. */
static void test_statuses(void **state)
{
    (void)state;
    enum { N = 5 };
    for (int mix = 0; mix < 1 << (2 * N); mix++) { /* who has it, whether it is over */
        MPI_Request requests[N], before[N], all[N];
        MPI_Status statuses[N], expected[N];
        int flag, index, n_done, indices[N], flag2, index2, n_done2, indices2[N];
        post(N);
        for (int k = 0; k < N; k++) {
            bool ours = mix >> k & 1;
            all[k] = (MPI_Request)(FIRST_INNER + k);
            requests[k] = before[k] = ours ? handle[k] : all[k];
            mpi.over[k] = mix >> (N + k) & 1;
        }
        assert_int_equal(cpl_complete_all(N, requests, &flag, statuses, CPL_PEEKS), MPI_SUCCESS);
        PMPI_Request_get_status_all(N, all, &flag2, expected);
        assert_int_equal(flag, flag2);
        for (int k = 0; k < N && flag; k++)
            assert_int_equal(statuses[k].MPI_TAG, expected[k].MPI_TAG);
        assert_int_equal(cpl_complete_any(N, requests, &index, &flag, &statuses[0], CPL_PEEKS),
                         MPI_SUCCESS);
        PMPI_Request_get_status_any(N, all, &index2, &flag2, &expected[0]);
        assert_int_equal(flag, flag2);
        assert_int_equal(index == MPI_UNDEFINED, index2 == MPI_UNDEFINED);
        assert_true(!flag || (mpi.over[index] && statuses[0].MPI_TAG == 10 * index));
        assert_int_equal(cpl_complete_some(N, requests, &n_done, indices, statuses, CPL_PEEKS),
                         MPI_SUCCESS);
        PMPI_Request_get_status_some(N, all, &n_done2, indices2, expected);
        assert_int_equal(n_done, n_done2);
        for (int k = 0; k < n_done; k++)
            assert_true(mpi.over[indices[k]] && statuses[k].MPI_TAG == 10 * indices[k]);
        assert_memory_equal(requests, before, sizeof requests);
        assert_int_equal(cpl_context.busy.n_active_requests, N);
        complete_rest(N);
    }
}

/* Without an active request an array is complete; null ones count as no request. */
static void test_no_statuses(void **state)
{
    (void)state;
    MPI_Request none[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    int flag, index, n_done, indices[2];
    MPI_Status status;
    for (int n = 0; n <= 2; n++) {
        assert_int_equal(cpl_complete_any(n, none, &index, &flag, &status, CPL_PEEKS), MPI_SUCCESS);
        assert_true(flag && index == MPI_UNDEFINED);
        cpl_complete_some(n, none, &n_done, indices, MPI_STATUSES_IGNORE, CPL_PEEKS);
        assert_int_equal(n_done, MPI_UNDEFINED);
    }
    post(2);
    none[1] = handle[1];
    cpl_complete_any(2, none, &index, &flag, &status, CPL_PEEKS);
    assert_true(!flag && index == MPI_UNDEFINED);
    cpl_complete_some(2, none, &n_done, indices, MPI_STATUSES_IGNORE, CPL_PEEKS);
    assert_int_equal(n_done, 0);
    complete_rest(2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_question), cmocka_unit_test(test_what_is_over),
        cmocka_unit_test(test_errors),       cmocka_unit_test(test_statuses),
        cmocka_unit_test(test_no_statuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
