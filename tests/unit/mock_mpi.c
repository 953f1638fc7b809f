/* A network of ranks in one process (mock_mpi.h). */
#include "mock_mpi.h"

#include "random_pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_REQUESTS = 8192, FIRST_COMM = 1000, COMM_STEP = 100 }; /* mock_collectives.h */

struct message {
    struct message *next;
    int source, tag, n_bytes;
    MPI_Request sender; /* that waits for its receive; 0: none does */
    char bytes[];
};

struct request {
    bool used, receives, done, cancelled, truncated;
    bool freed;
    bool waits;  /* a send that is over when its message is received, or a barrier */
    int barrier; /* its number; 0: it is none */
    int rank, source, tag, room;
    uint64_t order; /* of posting */
    char *buffer;
    struct message *message; /* that it received */
};

static struct {
    int n_ranks;
    uint64_t random, n_posted;
    int64_t n_sent, n_tests;
    int n_entered[MOCK_MOST_RANKS]; /* barriers */
    double time;
    struct message *first[MOCK_MOST_RANKS][MOCK_MOST_RANKS]; /* by source, destination */
    struct request request[MOST_REQUESTS];                   /* handle - 1; 0 is not used */
    int until_failure[MOCK_N_CALLS][MOCK_MOST_RANKS];        /* calls; 0: none is to fail */
} mock;

void (*mock_takes_memory)(bool takes);

void mock_begin(int n_ranks, uint64_t seed)
{
    assert_in_range(n_ranks, 1, MOCK_MOST_RANKS);
    memset(&mock, 0, sizeof mock);
    mock.n_ranks = n_ranks;
    mock.random = seed;
    mock.time = 1;
}

void mock_end(void)
{
    for (int i = 0; i < mock.n_ranks; i++)
        for (int j = 0; j < mock.n_ranks; j++)
            assert_null(mock.first[i][j]);
    for (int k = 0; k < MOST_REQUESTS; k++)
        assert_false(mock.request[k].used);
}

void mock_fail(enum mock_call call, int rank, int after)
{
    mock.until_failure[call][rank] = after + 1;
}

static bool fails(enum mock_call call, int rank)
{
    int *n = &mock.until_failure[call][rank];
    return *n > 0 && --*n == 0;
}

void mock_discard(void)
{
    for (int i = 0; i < mock.n_ranks; i++)
        for (int j = 0; j < mock.n_ranks; j++)
            for (struct message *m; (m = mock.first[i][j]);) {
                mock.first[i][j] = m->next;
                free(m);
            }
}

MPI_Comm mock_comm(int rank)
{
    return FIRST_COMM + rank;
}

void mock_set_time(double seconds)
{
    mock.time = seconds;
}

int64_t mock_n_sent(void)
{
    return mock.n_sent;
}

int64_t mock_n_tests(void)
{
    return mock.n_tests;
}

struct cpl_span mock_span(void *address, int count)
{
    return (struct cpl_span){address, count, {MPI_BYTE, 1, 1, true, false}};
}

static MPI_Request new_request(struct request request)
{
    for (int k = 1; k < MOST_REQUESTS; k++) {
        if (mock.request[k].used)
            continue;
        mock.request[k] = request;
        mock.request[k].used = true;
        mock.request[k].order = mock.n_posted++;
        return k;
    }
    fail_msg("too many requests");
    return MPI_REQUEST_NULL;
}

static struct request *find(MPI_Request handle)
{
    assert_in_range(handle, 1, MOST_REQUESTS - 1);
    assert_true(mock.request[handle].used);
    return &mock.request[handle];
}

static int rank_in(MPI_Comm comm)
{
    return (comm - FIRST_COMM) % COMM_STEP;
}

int PMPI_Comm_rank(MPI_Comm comm, int *rank)
{
    *rank = rank_in(comm);
    return MPI_SUCCESS;
}

int PMPI_Comm_size(MPI_Comm comm, int *size)
{
    (void)comm;
    *size = mock.n_ranks;
    return MPI_SUCCESS;
}

double PMPI_Wtime(void)
{
    return mock.time;
}

static int send(const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
                bool waits, MPI_Request *request)
{
    int source = rank_in(comm);
    struct message *message = NULL;
    if (fails(MOCK_ISEND, source))
        return MOCK_ERROR;
    if (mock_takes_memory)
        mock_takes_memory(true);
    while (!message) /* a test's heap may fail, the network does not */
        message = malloc(sizeof *message + (size_t)count);
    if (mock_takes_memory)
        mock_takes_memory(false);
    assert_true(type == MPI_BYTE && dest >= 0 && dest < mock.n_ranks);
    *request = new_request((struct request){.rank = source, .waits = waits});
    *message = (struct message){
        .source = source, .tag = tag, .n_bytes = count, .sender = waits ? *request : 0};
    if (count > 0)
        memcpy(message->bytes, buf, (size_t)count);
    struct message **at = &mock.first[source][dest];
    while (*at)
        at = &(*at)->next;
    *at = message;
    mock.n_sent++;
    return MPI_SUCCESS;
}

int PMPI_Isend(const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
               MPI_Request *request)
{
    return send(buf, count, type, dest, tag, comm, false, request);
}

int PMPI_Issend(const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
                MPI_Request *request)
{
    return send(buf, count, type, dest, tag, comm, true, request);
}

int PMPI_Isend_c(const void *buf, MPI_Count count, MPI_Datatype type, int dest, int tag,
                 MPI_Comm comm, MPI_Request *request)
{
    return PMPI_Isend(buf, (int)count, type, dest, tag, comm, request);
}

int PMPI_Irecv(void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
               MPI_Request *request)
{
    assert_true(type == MPI_BYTE);
    if (fails(MOCK_IRECV, rank_in(comm)))
        return MOCK_ERROR;
    *request = new_request((struct request){.receives = true,
                                            .rank = rank_in(comm),
                                            .source = source,
                                            .tag = tag,
                                            .room = count,
                                            .buffer = buf});
    return MPI_SUCCESS;
}

int PMPI_Irecv_c(void *buf, MPI_Count count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
                 MPI_Request *request)
{
    return PMPI_Irecv(buf, (int)count, type, source, tag, comm, request);
}

/* The receive of a rank that was posted first of those that fit a message. */
static struct request *find_receive(int rank, const struct message *message)
{
    struct request *found = NULL;
    for (int k = 1; k < MOST_REQUESTS; k++) {
        struct request *r = &mock.request[k];
        if (r->used && r->receives && !r->done && r->rank == rank && r->tag == message->tag &&
            (r->source == MPI_ANY_SOURCE || r->source == message->source) &&
            (!found || r->order < found->order))
            found = r;
    }
    return found;
}

static void take(MPI_Request *handle, MPI_Status *status)
{
    struct request *r = find(*handle);
    if (r->message && status != MPI_STATUS_IGNORE) {
        status->MPI_SOURCE = r->message->source;
        status->MPI_TAG = r->message->tag;
        status->count_lo = r->message->n_bytes;
    }
    free(r->message);
    r->message = NULL;
    r->used = false;
    *handle = MPI_REQUEST_NULL;
}

/* Some of what is under way to a rank comes. */
static void progress(int rank)
{
    for (int n = random_below(&mock.random, 4); n > 0; n--) {
        int source = random_below(&mock.random, mock.n_ranks);
        struct message **at = &mock.first[source][rank];
        while (*at && !find_receive(rank, *at))
            at = &(*at)->next;
        struct message *message = *at;
        struct request *receive = message ? find_receive(rank, message) : NULL;
        if (!receive)
            continue;
        *at = message->next;
        receive->truncated = message->n_bytes > 0 && receive->room == 0; /* it was given up */
        assert_true(receive->truncated || message->n_bytes <= receive->room);
        if (message->n_bytes > 0 && !receive->truncated)
            memcpy(receive->buffer, message->bytes, (size_t)message->n_bytes);
        if (message->sender)
            find(message->sender)->done = true;
        receive->message = message;
        receive->done = true;
        MPI_Request handle = (MPI_Request)(receive - mock.request);
        if (receive->freed)
            take(&handle, MPI_STATUS_IGNORE);
    }
}

/* A message that no receive waits for, from any rank or one. */
int PMPI_Iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
    int rank = rank_in(comm), from = random_below(&mock.random, mock.n_ranks);
    *flag = 0;
    for (int k = 0; k < mock.n_ranks && !*flag; k++) {
        int i = (from + k) % mock.n_ranks;
        struct message *message = mock.first[i][rank];
        if (source != MPI_ANY_SOURCE && source != i)
            continue;
        while (message && tag != MPI_ANY_TAG && message->tag != tag)
            message = message->next;
        *flag = message && random_below(&mock.random, 3) == 0;
        if (!*flag)
            continue;
        status->MPI_SOURCE = i;
        status->MPI_TAG = message->tag;
        status->count_lo = message->n_bytes;
    }
    return MPI_SUCCESS;
}

/* Of all ranks; they enter the same ones. */
int PMPI_Ibarrier(MPI_Comm comm, MPI_Request *request)
{
    int rank = rank_in(comm);
    *request = new_request(
        (struct request){.rank = rank, .waits = true, .barrier = ++mock.n_entered[rank]});
    return MPI_SUCCESS;
}

static void look_at_barrier(struct request *r)
{
    r->done = true;
    for (int i = 0; i < mock.n_ranks; i++)
        r->done &= mock.n_entered[i] >= r->barrier;
}

/* A message that no receive waits for; the handle is a request's that is done. */
int PMPI_Improbe(int source, int tag, MPI_Comm comm, int *flag, MPI_Message *handle,
                 MPI_Status *status)
{
    int rank = rank_in(comm);
    struct message **at = &mock.first[source][rank];
    (void)status;
    progress(rank);
    while (*at && ((*at)->tag != tag || find_receive(rank, *at)))
        at = &(*at)->next;
    *flag = *at && random_below(&mock.random, 3) == 0;
    if (!*flag)
        return MPI_SUCCESS;
    struct message *message = *at;
    *at = message->next;
    *handle = new_request((struct request){.rank = rank, .done = true, .message = message});
    return MPI_SUCCESS;
}

int PMPI_Imrecv_c(void *buf, MPI_Count count, MPI_Datatype type, MPI_Message *handle,
                  MPI_Request *request)
{
    const struct message *message = find(*handle)->message;
    assert_true(type == MPI_BYTE && message->n_bytes <= count);
    memcpy(buf, message->bytes, (size_t)message->n_bytes);
    *request = *handle;
    *handle = MPI_MESSAGE_NULL;
    return MPI_SUCCESS;
}

int PMPI_Testsome(int n, MPI_Request requests[], int *n_done, int indices[], MPI_Status statuses[])
{
    int n_active = 0, code = MPI_SUCCESS;
    mock.n_tests++;
    *n_done = 0;
    for (int k = 0; k < n; k++) {
        if (requests[k] == MPI_REQUEST_NULL)
            continue;
        struct request *r = find(requests[k]);
        if (n_active++ == 0)
            progress(r->rank);
        if (!r->receives && !r->waits && random_below(&mock.random, 3) == 0)
            r->done = true;
        if (!r->done)
            continue;
        bool fail = r->receives && fails(MOCK_TESTSOME, r->rank);
        MPI_Status *status =
            statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[*n_done];
        take(&requests[k], status);
        if (status != MPI_STATUS_IGNORE)
            status->MPI_ERROR = fail ? MOCK_ERROR : MPI_SUCCESS;
        code = fail ? MPI_ERR_IN_STATUS : code;
        indices[(*n_done)++] = k;
    }
    if (n_active == 0)
        *n_done = MPI_UNDEFINED;
    return code;
}

int PMPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    *flag = 1;
    if (*request == MPI_REQUEST_NULL)
        return MPI_SUCCESS;
    struct request *r = find(*request);
    bool sends = !r->receives, truncated;
    int rank = r->rank;
    mock.n_tests++;
    progress(rank);
    if (r->barrier)
        look_at_barrier(r);
    if (sends && !r->waits && random_below(&mock.random, 3) == 0)
        r->done = true;
    truncated = r->truncated;
    *flag = r->done;
    if (*flag)
        take(request, status);
    if (*flag && truncated)
        return MPI_ERR_TRUNCATE;
    return *flag && sends && fails(MOCK_TEST, rank) ? MOCK_ERROR : MPI_SUCCESS;
}

int PMPI_Testany(int n, MPI_Request requests[], int *index, int *flag, MPI_Status *status)
{
    bool any = false;
    *flag = 0;
    for (int k = 0; k < n && !*flag; k++) {
        if (requests[k] == MPI_REQUEST_NULL)
            continue;
        any = true;
        *index = k;
        int code = PMPI_Test(&requests[k], flag, status);
        if (code != MPI_SUCCESS)
            return code;
    }
    if (!*flag)
        *index = MPI_UNDEFINED;
    if (!any)
        *flag = 1;
    return MPI_SUCCESS;
}

/* Of a message that is there, as the library calls it. */
int PMPI_Recv(void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
              MPI_Status *status)
{
    MPI_Request request;
    int done = 0, result = PMPI_Irecv(buf, count, type, source, tag, comm, &request);
    while (result == MPI_SUCCESS && !done)
        result = PMPI_Test(&request, &done, status);
    return result;
}

int PMPI_Testall(int n, MPI_Request requests[], int *flag, MPI_Status statuses[])
{
    assert_true(statuses == MPI_STATUSES_IGNORE);
    *flag = 1;
    for (int k = 0; k < n; k++)
        *flag &= requests[k] == MPI_REQUEST_NULL || find(requests[k])->done;
    for (int k = 0; k < n && *flag; k++)
        if (requests[k] != MPI_REQUEST_NULL)
            take(&requests[k], MPI_STATUS_IGNORE);
    return MPI_SUCCESS;
}

MPI_Request mock_synchronous(int source, int dest, int tag)
{
    MPI_Request request;
    int result = PMPI_Issend(NULL, 0, MPI_BYTE, dest, tag, mock_comm(source), &request);
    assert_int_equal(result, MPI_SUCCESS);
    return request;
}

void mock_progress(int rank)
{
    for (int k = 0; k < 100; k++) /* messages take some time */
        progress(rank);
}

/* Of a receive under way. */
int PMPI_Request_free(MPI_Request *request)
{
    assert_true(find(*request)->receives && !find(*request)->done);
    find(*request)->freed = true;
    *request = MPI_REQUEST_NULL;
    return MPI_SUCCESS;
}

int PMPI_Cancel(MPI_Request *request)
{
    find(*request)->done = true;
    return MPI_SUCCESS;
}

int PMPI_Wait(MPI_Request *request, MPI_Status *status)
{
    assert_true(find(*request)->done);
    take(request, status);
    return MPI_SUCCESS;
}

int PMPI_Get_count(const MPI_Status *status, MPI_Datatype type, int *count)
{
    (void)type;
    *count = status->count_lo;
    return MPI_SUCCESS;
}

int PMPI_Status_set_elements_x(MPI_Status *status, MPI_Datatype type, MPI_Count count)
{
    (void)type;
    status->count_lo = (int)count;
    return MPI_SUCCESS;
}

int PMPI_Status_set_cancelled(MPI_Status *status, int flag)
{
    status->count_hi_and_cancelled = flag;
    return MPI_SUCCESS;
}

/* ---- datatype.h, for bytes ---- */

bool cpl_type_keep(struct cpl_type *type)
{
    type->kept = true;
    return true;
}

void cpl_type_release(struct cpl_type *type)
{
    type->kept = false;
}

int cpl_span_pack(const struct cpl_span *span, unsigned char *to)
{
    memcpy(to, span->address, (size_t)span->count);
    return MPI_SUCCESS;
}

int cpl_span_unpack(const struct cpl_span *span, const unsigned char *from, int64_t bytes)
{
    memcpy(span->address, from, (size_t)(bytes < span->count ? bytes : span->count));
    return bytes > span->count ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
}

int64_t cpl_truncated_bytes(void)
{
    return MOCK_TRUNCATED;
}

int PMPI_Abort(MPI_Comm comm, int code)
{
    (void)comm;
    exit(code);
}
