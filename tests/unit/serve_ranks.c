/* Ranks that start nonblocking neighborhood collectives (serve_ranks.h). */
#include "serve_ranks.h"

#include "../failing_heap.h"
#include "mock_collectives.h"
#include "shim/base/log.h"
#include "shim/carry/line.h"
#include "shim/carry/requests.h"
#include "shim/meet/agree.h"
#include "shim/meet/meeting.h"
#include "shim/plan/plan_root.h"
#include "shim/report/report.h"
#include "shim/state/hooks.h"
#include "shim/state/memory.h"
#include "shim/wait/collective.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct serve_world serve;

static int64_t n_live; /* blocks of memory before the ranks began */

/* ---- MPI's nonblocking calls ---- */

enum { MOST_REQUESTS = 400, ENOUGH_PACES = 6 };

/* A call of one rank; the k-th of a sort on a communicator is the same on all ranks. */
static struct request {
    bool used, done;
    int rank, comm, number, sort; /* SERVE_NAMES, SERVE_TOKENS */
    int64_t *name;
    int *token, n_tokens;
} requests[MOST_REQUESTS];

static int n_made[FIBERS_MOST][SERVE_COMMS][2];
static int64_t names[SERVE_COMMS]; /* that the first rank has given */

static void make(MPI_Request *handle, struct request request, MPI_Comm comm)
{
    int k = 1, r = fibers_rank();
    while (k < MOST_REQUESTS && requests[k].used)
        k++;
    assert_in_range(k, 1, MOST_REQUESTS - 1);
    request.used = true;
    request.rank = r;
    request.comm = (comm - COLLECTIVES_FIRST) / COLLECTIVES_STEP;
    request.number = n_made[r][request.comm][request.sort]++;
    requests[k] = request;
    *handle = k;
}

int PMPI_Ibcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm,
                MPI_Request *request)
{
    assert_true(count == 1 && type == MPI_INT64_T && root == 0);
    make(request, (struct request){.sort = SERVE_NAMES, .name = buffer}, comm);
    struct request *r = &requests[*request];
    assert_int_equal(r->number, 0); /* a communicator is named once */
    if (fibers_rank() == 0)
        names[r->comm] = *r->name;
    return MPI_SUCCESS;
}

int PMPI_Ineighbor_alltoall(const void *send, int count, MPI_Datatype type, void *recv,
                            int recvcount, MPI_Datatype recvtype, MPI_Comm comm,
                            MPI_Request *request)
{
    (void)send;
    assert_true(count == 1 && recvcount == 1 && type == MPI_INT && recvtype == MPI_INT);
    make(request, (struct request){.sort = SERVE_TOKENS, .token = recv, .n_tokens = 2}, comm);
    return MPI_SUCCESS;
}

int PMPI_Ineighbor_alltoallv(const void *send, const int counts[], const int displs[],
                             MPI_Datatype type, void *recv, const int recvcounts[],
                             const int recvdispls[], MPI_Datatype recvtype, MPI_Comm comm,
                             MPI_Request *request)
{
    assert_true(counts[1] == 1 && displs[1] == 1 && recvcounts[1] == 1 && recvdispls[1] == 1);
    return PMPI_Ineighbor_alltoall(send, 1, type, recv, 1, recvtype, comm, request);
}

/* Whether all ranks that it waits for have started it. */
static bool may_complete(const struct request *mine)
{
    if (serve.rank[mine->rank].held[mine->sort])
        return false;
    int n_needed = mine->sort == SERVE_NAMES ? 1 : fibers_n();
    for (int r = 0; r < n_needed; r++)
        if (n_made[r][mine->comm][mine->sort] <= mine->number)
            return false;
    return true;
}

int PMPI_Test(MPI_Request *handle, int *done, MPI_Status *status)
{
    (void)status;
    assert_in_range(*handle, 1, MOST_REQUESTS - 1);
    struct request *r = &requests[*handle];
    assert_true(r->used && r->rank == fibers_rank());
    *done = may_complete(r);
    if (!*done)
        return MPI_SUCCESS;
    if (r->sort == SERVE_NAMES)
        *r->name = names[r->comm];
    for (int k = 0; k < r->n_tokens; k++)
        r->token[k] = serve.answers.no_match == r->rank ? 2 : k; /* 2: a second edge's */
    r->used = false;
    *handle = MPI_REQUEST_NULL;
    return MPI_SUCCESS;
}

int cpl_collective_waitall(int n, MPI_Request handles[], MPI_Status statuses[])
{
    (void)statuses;
    for (int k = 0; k < n; k++)
        for (int done = handles[k] == MPI_REQUEST_NULL; !done;) {
            PMPI_Test(&handles[k], &done, MPI_STATUS_IGNORE);
            if (!done)
                fibers_yield();
        }
    return MPI_SUCCESS;
}

double PMPI_Wtime(void)
{
    return serve.rank[fibers_rank()].time;
}

int PMPI_Comm_rank(MPI_Comm comm, int *rank)
{
    (void)comm;
    *rank = fibers_rank();
    return MPI_SUCCESS;
}

int PMPI_Comm_size(MPI_Comm comm, int *size)
{
    (void)comm, (void)size;
    fail(); /* nobody asks who shares memory */
    return MPI_ERR_OTHER;
}

int PMPI_Comm_call_errhandler(MPI_Comm comm, int code)
{
    (void)comm, (void)code;
    return MPI_SUCCESS;
}

/* ---- planning ---- */

static const struct cpl_carrier carrier = {.name = "carrier"};

bool cpl_neighbor_data_make(struct cpl_neighbor_data *data, const struct cpl_adjacency *adjacency,
                            int n_extra)
{
    (void)adjacency, (void)n_extra;
    free(data->requests);
    data->requests = malloc(8);
    return data->requests;
}

void cpl_neighbor_data_free(struct cpl_neighbor_data *data)
{
    free(data->requests);
    data->requests = NULL;
}

bool cpl_neighbor_resolve(const struct cpl_neighbor_call *call,
                          const struct cpl_adjacency *adjacency, struct cpl_neighbor_data *data)
{
    (void)call, (void)adjacency, (void)data;
    return !serve.rank[fibers_rank()].unusable;
}

int64_t cpl_neighbor_payload_bytes(const struct cpl_neighbor_data *data,
                                   const struct cpl_adjacency *adjacency, int m)
{
    (void)data, (void)adjacency, (void)m;
    return 1;
}

MPI_Comm cpl_agree_own(struct cpl_comm_state *state)
{
    if (state->private_comm == MPI_COMM_NULL)
        cpl_agree_split(state->comm, state->rank, &state->private_comm);
    return state->private_comm;
}

static bool find_plan(MPI_Comm comm, bool able)
{
    serve.n_planned += fibers_rank() == 0;
    return cpl_agree_all(comm, able && serve.answers.no_plan != fibers_rank());
}

bool cpl_plan_agree(MPI_Comm comm, const struct cpl_agree_input *input,
                    struct cpl_agree_output *output)
{
    *output = (struct cpl_agree_output){.n = 1};
    assert_int_equal(input->messages[input->n_messages - 1].volume, 1);
    return find_plan(comm, input->able);
}

bool cpl_carriers_offer(const struct cpl_comm_state *state, struct cpl_exchange *x,
                        struct cpl_agree_output *agreed)
{
    (void)state, (void)agreed;
    x->plans.n_candidates = 1;
    x->plans.candidate[0] =
        (struct cpl_candidate){.carrier = &carrier, .summary = x->plans.summary};
    return true;
}

bool cpl_plan_is_early(MPI_Comm comm, const struct cpl_agree_input *input, double ms_so_far,
                       int64_t n_calls, bool full)
{
    input->turn->pause = 2;
    assert_true(input->n_messages >= 0 && ms_so_far >= 0 && n_calls > 0 && full);
    return !cpl_agree_all(comm, !serve.answers.early);
}

bool cpl_plan_promises(const struct cpl_plan_summary *summary)
{
    (void)summary;
    return serve.answers.promises;
}

/* Whether its neighbours' tokens make sense. */
static bool matches(void)
{
    return serve.answers.no_match != fibers_rank();
}

int64_t cpl_neighbor_rank_bytes(const struct cpl_neighbor_side *side, int rank)
{
    (void)side, (void)rank;
    return serve.rank[fibers_rank()].unusable ? -1 : 1;
}

bool cpl_adjacency_make(int rank, int n_in, const int *in, int n_out, const int *out,
                        struct cpl_adjacency *adjacency)
{
    static int peers[FIBERS_MOST][FIBERS_MOST], firsts[FIBERS_MOST + 1];
    assert_int_equal(n_in, fibers_n() - 1);
    assert_int_equal(n_out, n_in);
    for (int k = 0; k <= n_in; k++)
        firsts[k] = k;
    for (int k = 0; k < n_in; k++) {
        assert_int_equal(in[k], out[k]);
        peers[rank][k] = in[k];
    }
    adjacency->in = (struct cpl_neighbors){.n = n_in,
                                           .n_messages = n_in,
                                           .peer = peers[rank],
                                           .rank = peers[rank],
                                           .first_part = firsts,
                                           .part = firsts};
    adjacency->out = adjacency->in;
    adjacency->in.n -= !matches();
    return true;
}

void cpl_adjacency_free(struct cpl_adjacency *adjacency)
{
    (void)adjacency;
}

bool cpl_service_prepare(bool (*its_serve)(void))
{
    (void)its_serve;
    return serve.answers.no_service != fibers_rank();
}

void cpl_assembly_gather(MPI_Comm comm)
{
    (void)comm;
}

bool cpl_progress_serve(void)
{
    return false;
}

/* ---- carrying ---- */

struct cpl_comm_state *cpl_neighbor_describe(const struct cpl_neighbor_call *call)
{
    return cpl_comm_state_get(call->comm);
}

struct cpl_neighbor_op *cpl_neighbor_op_make(const struct cpl_neighbor_call *call,
                                             struct cpl_comm_state *state,
                                             struct cpl_exchange *exchange)
{
    (void)call, (void)state;
    assert_ptr_equal(exchange->plans.candidate[0].carrier, &carrier);
    return cpl_memory_need(sizeof(struct cpl_neighbor_op), "an operation");
}

void cpl_neighbor_op_start(struct cpl_neighbor_op *op)
{
    cpl_neighbor_op_free(op);
}

void cpl_neighbor_op_free(struct cpl_neighbor_op *op)
{
    free(op->request);
    free(op);
}

struct cpl_request *cpl_request_make(MPI_Comm comm, bool collective)
{
    (void)comm;
    assert_true(collective);
    return cpl_memory_need(sizeof(struct cpl_request), "a request");
}

void cpl_request_open_collective(struct cpl_request *request)
{
    assert_non_null(request);
}

void cpl_request_close_collective(struct cpl_request *request, int error)
{
    (void)request, (void)error;
}

void cpl_neighbor_drain(struct cpl_exchange *exchange)
{
    assert_null(exchange->nonblocking.pending);
}

bool cpl_neighbor_poll(void)
{
    return false;
}

/* ---- ranks ---- */

static const struct cpl_hooks *const hooks[] = {&cpl_exchange_hooks, NULL};

static void turn(int rank)
{
    heap.counts = rank >= 0 && rank == serve.victim;
}

struct cpl_exchange *serve_exchange(int rank, int comm, enum cpl_neighbor_kind kind)
{
    return &serve.rank[rank].state[comm].exchanges[kind];
}

static void begin_rank(int r)
{
    struct serve_rank *me = &serve.rank[r];
    me->time = me->pace = 1;
    cpl_context.hooks = hooks;
    cpl_context.settings.mode = CPL_MODE_AUTO;
    cpl_context.settings.learn = SERVE_LEARN;
    cpl_context.settings.size_limit = 4096;
    cpl_context.comms.away = MPI_COMM_NULL;
    cpl_context.exchanges.n_serve_ids = 10 - r; /* of others than these */
    for (int k = 0; k < SERVE_COMMS; k++) {
        int c = (k + r) % SERVE_COMMS;
        struct cpl_comm_state *state = &me->state[c];
        static int ranks[2] = {0, 1}, firsts[5] = {0, 1, 2};
        *state = (struct cpl_comm_state){.comm = collectives_comm(c, r),
                                         .private_comm = MPI_COMM_NULL,
                                         .rank = r,
                                         .size = cpl_context.size,
                                         .has_topology = true,
                                         .watched = true,
                                         .next = cpl_context.comms.first};
        state->adjacency.in = (struct cpl_neighbors){.n = 2,
                                                     .n_messages = 2,
                                                     .peer = ranks,
                                                     .rank = ranks,
                                                     .first_part = firsts,
                                                     .part = ranks,
                                                     .ordinal = firsts + 3,
                                                     .message = ranks};
        state->adjacency.out = state->adjacency.in;
        state->line = calloc(1, sizeof *state->line);
        assert_non_null(state->line);
        cpl_exchange_hooks.begin(state);
        cpl_exchange_make(state);
        for (int n = 0; n < ENOUGH_PACES; n++) /* that are known of before */
            cpl_samples_add(&state->serve->pace.before, 1);
        state->serve->date.next = 0; /* so the ranks need not wait for them */
        cpl_context.comms.first = state;
    }
    assert_true(cpl_meeting_start());
}

void serve_ranks_begin(int n, uint64_t seed)
{
    heap = (struct failing_heap){.n_live = heap.n_live};
    n_live = heap.n_live;
    memset(&serve, 0, sizeof serve);
    memset(requests, 0, sizeof requests);
    memset(n_made, 0, sizeof n_made);
    serve.victim = -1;
    serve.answers =
        (struct serve_answers){.promises = true, .no_plan = -1, .no_match = -1, .no_service = -1};
    collectives_begin();
    fibers_turn = turn;
    fibers_begin(n, seed);
    fibers_run(begin_rank);
}

static void end_rank(int r)
{
    for (int c = 0; c < SERVE_COMMS; c++) {
        struct cpl_comm_state *state = &serve.rank[r].state[c];
        cpl_exchange_hooks.before_free(state);
        cpl_exchange_hooks.end(state);
        if (state->private_comm != MPI_COMM_NULL)
            PMPI_Comm_free(&state->private_comm);
        free(state->line);
        free(state->serve);
        free(state->exchanges);
    }
    assert_int_equal(cpl_context.busy.n_served, 0);
    cpl_meeting_stop();
    if (cpl_context.comms.away != MPI_COMM_NULL)
        PMPI_Comm_free(&cpl_context.comms.away);
}

void serve_ranks_end(void)
{
    serve.victim = -1;
    for (int r = 0; r < fibers_n(); r++)
        memset(serve.rank[r].held, 0, sizeof serve.rank[r].held);
    for (int r = 1; r < fibers_n(); r++)
        for (int c = 0; c < SERVE_COMMS; c++)
            for (int k = 0; k < CPL_N_NEIGHBOR_KINDS; k++)
                for (int n = 0; n < serve.rank[r].n[c][k] && n < serve.rank[0].n[c][k]; n++)
                    assert_int_equal(serve.rank[r].carried[c][k][n],
                                     serve.rank[0].carried[c][k][n]);
    fibers_run(end_rank);
    fibers_turn = NULL;
    collectives_end();
    for (int k = 0; k < MOST_REQUESTS; k++)
        assert_false(requests[k].used);
    assert_int_equal(heap.n_live, n_live);
}

bool serve_start(int comm, enum cpl_neighbor_kind kind)
{
    struct serve_rank *me = &serve.rank[fibers_rank()];
    struct cpl_neighbor_call call = {.kind = kind, .comm = me->state[comm].comm};
    MPI_Request request;
    int n = me->n[comm][kind]++;
    assert_in_range(n, 0, SERVE_CALLS - 1);
    bool carried = cpl_neighbor_start(&call, &request);
    me->carried[comm][kind][n] = carried;
    return carried;
}

void serve_collective(int comm)
{
    struct serve_rank *me = &serve.rank[fibers_rank()];
    struct cpl_comm_state *state = &me->state[comm];
    struct cpl_alike alike = {CPL_HASH_START};
    me->time += me->pace;
    cpl_neighbor_note_collective(state);
    cpl_meeting_count(state, 1);
    cpl_exchange_hooks.alike(state, &alike);
    fibers_compare("what is alike", (int64_t)alike.hash);
    fibers_compare("the next meeting", state->serve->date.next);
    fibers_compare("the retries", state->serve->date.n_retries);
    fibers_compare("served communicators", cpl_context.busy.n_served);
    for (int c = 0; c < SERVE_COMMS; c++) {
        fibers_compare("who is counted", me->state[c].serve->counted);
        fibers_compare("private communicators", me->state[c].private_comm != MPI_COMM_NULL);
        for (int k = 0; k < CPL_N_NEIGHBOR_KINDS; k++) {
            const struct cpl_exchange *x = &me->state[c].exchanges[k];
            fibers_compare("the phase", x->phase);
            fibers_compare("what is decided", x->nonblocking.phase);
        }
    }
}

bool serve_is_settled(int comm, enum cpl_neighbor_kind kind)
{
    return serve_exchange(0, comm, kind)->nonblocking.phase != CPL_STARTED_OPEN;
}

bool serve_is_served(int comm, enum cpl_neighbor_kind kind)
{
    return cpl_exchange_is_served(serve_exchange(0, comm, kind));
}
