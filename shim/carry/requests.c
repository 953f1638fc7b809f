/* The requests that the shim completes itself (requests.h). */
#include "shim/carry/requests.h"
#include "shim/state/comm_state.h"
#include "shim/state/hooks.h"
#include "shim/state/memory.h"
#include "shim/wait/progress.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <utlist.h>

#define N_BUCKETS 2048 /* a power of two */

static struct cpl_request *buckets[N_BUCKETS]; /* by handle; usually of one request each */

/* ---- sends on managed communicators ---- */

bool cpl_sending_is_done(struct cpl_sending *sending)
{
    int sent = 1, matched = 1;
    if (sending->inner != MPI_REQUEST_NULL)
        PMPI_Test(&sending->inner, &sent, MPI_STATUS_IGNORE);
    if (sending->matched != MPI_REQUEST_NULL)
        PMPI_Test(&sending->matched, &matched, MPI_STATUS_IGNORE);
    return sent && matched;
}

/* Nobody waits for a send any more, complete or not. */
static void forget(struct cpl_sending *sending)
{
    if (sending->inner != MPI_REQUEST_NULL)
        PMPI_Request_free(&sending->inner);
    if (sending->matched != MPI_REQUEST_NULL)
        PMPI_Request_free(&sending->matched);
}

/* ---- requests ---- */

/* Bucket of a handle. Handles are consecutive numbers, whose buckets are neighbours then, or
 * addresses. */
static struct cpl_request **bucket_of(MPI_Request handle)
{
    uint32_t number = (uint32_t)(uintptr_t)handle;
    return &buckets[(number + (number >> 6)) % N_BUCKETS];
}

struct cpl_request *cpl_request_find(MPI_Request handle)
{
    struct cpl_request *request = cpl_context.requests.n > 0 ? *bucket_of(handle) : NULL;
    while (request && request->handle != handle)
        request = request->next;
    return request;
}

static void add(struct cpl_request *request)
{
    struct cpl_request **bucket = bucket_of(request->handle);
    request->next = *bucket;
    *bucket = request;
    cpl_context.requests.n++;
}

/* A request with a handle that nobody has: of a persistent receive, which is never started. NULL:
 * no memory. */
static struct cpl_request *new_request(void)
{
    struct cpl_request *request = calloc(1, sizeof *request);
    if (request && PMPI_Recv_init(NULL, 0, MPI_BYTE, 0, 0, cpl_context.comms.self,
                                  &request->handle) == MPI_SUCCESS) {
        add(request);
        return request;
    }
    free(request);
    return NULL;
}

void cpl_request_activate(struct cpl_request *request, MPI_Comm comm, bool receives)
{
    request->active = true;
    request->comm = comm;
    request->receives = receives;
    request->sends = !receives;
    request->collective = request->by_mpi = false;
    request->came = NULL;
    cpl_context.busy.n_active_requests++;
}

/* As MPI does: MPICH 4.0.2's status is not the standard's. */
void cpl_request_end_null(struct cpl_request *request)
{
    struct cpl_open_requests *all = &cpl_context.requests;
    MPI_Request null;
    int done = 0;
    if (!all->knows_null &&
        PMPI_Irecv(&done, 0, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_SELF, &null) == MPI_SUCCESS)
        PMPI_Test(&null, &done, &all->null_status);
    all->knows_null |= done;
    request->sending = CPL_SENT;
    request->receive = (struct cpl_receive){.from = all->null_status.MPI_SOURCE,
                                            .from_tag = all->null_status.MPI_TAG,
                                            .inner = MPI_REQUEST_NULL,
                                            .done = true};
}

struct cpl_request *cpl_request_try(MPI_Comm comm, bool receives)
{
    struct cpl_request *request = cpl_context.requests.spare;
    if (request)
        cpl_context.requests.spare = request->next_spare;
    else if (!(request = new_request()))
        return NULL;
    cpl_request_activate(request, comm, receives);
    return request;
}

struct cpl_request *cpl_request_make(MPI_Comm comm, bool receives)
{
    struct cpl_request *request;
    int tries = 0;
    while (!(request = cpl_request_try(comm, receives)))
        cpl_memory_wait(&tries, "a request");
    return request;
}

struct cpl_request *cpl_request_make_complete_send(void)
{
    struct cpl_request *request = cpl_request_make(MPI_COMM_WORLD, false);
    cpl_context.busy.n_active_requests--; /* each send that it stands for counts */
    request->shared = true;
    request->sending = CPL_SENT;
    cpl_context.requests.complete_send = request;
    return request;
}

static inline void deactivate(struct cpl_request *request)
{
    cpl_context.busy.n_active_requests--;
    if (request->shared)
        return;
    request->active = false;
    if (request->freed) {
        struct cpl_persistent *p = (struct cpl_persistent *)(void *)request;
        p->kind->free(p);
        return;
    }
    if (request->persistent)
        return;
    request->next_spare = cpl_context.requests.spare;
    cpl_context.requests.spare = request;
}

void cpl_request_open_collective(struct cpl_request *request)
{
    request->collective = true;
    request->receive = (struct cpl_receive){.from = MPI_ANY_SOURCE, .from_tag = MPI_ANY_TAG};
}

void cpl_request_close_collective(struct cpl_request *request, int error)
{
    request->receive.error = error;
    request->receive.done = true;
}

void cpl_request_watch(struct cpl_request *request, MPI_Request inner,
                       void (*came)(struct cpl_request *request))
{
    request->by_mpi = true;
    cpl_context.requests.n_by_mpi++;
    request->came = came;
    request->receive = (struct cpl_receive){.inner = inner};
}

/* MPI has received it, or failed to. */
static void end_by_mpi(struct cpl_request *request, const MPI_Status *status)
{
    struct cpl_receive *receive = &request->receive;
    MPI_Count bytes = 0;
    int cancelled = 0;
    PMPI_Test_cancelled(status, &cancelled);
    PMPI_Get_elements_x(status, MPI_BYTE, &bytes);
    receive->from = status->MPI_SOURCE;
    receive->from_tag = status->MPI_TAG;
    receive->bytes = bytes;
    receive->cancelled = cancelled;
    receive->done = true;
    cpl_context.requests.n_by_mpi--;
    if (request->came)
        request->came(request);
    request->comm = MPI_COMM_NULL;
}

static bool is_open_by_mpi(const struct cpl_request *request)
{
    return !request->shared && request->by_mpi && !request->receive.done;
}

#define MOST_LOOKED 64 /* requests about which MPI is asked at once */

/* Looks which of n requests MPI has received, until none is left that it has. After an error MPI
 * has called the error handler. */
static void look_at_mpi(int n, struct cpl_request **open)
{
    MPI_Request inner[MOST_LOOKED];
    MPI_Status status;
    while (n > 0) {
        for (int k = 0; k < n; k++)
            inner[k] = open[k]->receive.inner;
        int at = MPI_UNDEFINED, done = 0, error = PMPI_Testany(n, inner, &at, &done, &status);
        if ((!done && error == MPI_SUCCESS) || at == MPI_UNDEFINED)
            return;
        open[at]->receive.inner = inner[at];
        open[at]->receive.error = error;
        end_by_mpi(open[at], &status);
        open[at] = open[--n];
    }
}

void cpl_request_look(int n, const MPI_Request *handles)
{
    struct cpl_request *open[MOST_LOOKED];
    int n_open = 0;
    for (int k = 0; k < n && cpl_context.requests.n_by_mpi > 0; k++) {
        struct cpl_request *request = cpl_request_active(handles[k]);
        if (!request || !is_open_by_mpi(request))
            continue;
        open[n_open++] = request;
        if (n_open == MOST_LOOKED) {
            look_at_mpi(n_open, open);
            n_open = 0;
        }
    }
    look_at_mpi(n_open, open);
}

bool cpl_request_is_known_done(struct cpl_request *request)
{
    if (request->shared)
        return true;
    bool sent = !request->sends || cpl_sending_is_done(&request->sending);
    return sent && (!request->receives || request->receive.done);
}

bool cpl_request_find_done(struct cpl_request *request)
{
    if (is_open_by_mpi(request))
        look_at_mpi(1, &request);
    return cpl_request_is_known_done(request);
}

void cpl_request_status(const struct cpl_request *request, MPI_Status *status)
{
    if (request->receives)
        cpl_match_receive_status(&request->receive, status);
    else
        cpl_match_status(status, MPI_UNDEFINED, MPI_UNDEFINED, 0, false);
}

int cpl_request_settle(struct cpl_request *request, MPI_Request *handle, MPI_Status *status)
{
    int error = request->receives ? request->receive.error : MPI_SUCCESS;
    if (status != MPI_STATUS_IGNORE)
        cpl_request_status(request, status);
    if (!request->persistent)
        *handle = MPI_REQUEST_NULL;
    if (request->sends)
        forget(&request->sending);
    deactivate(request);
    return error;
}

/* What has been started goes on; nobody waits for it any more. */
void cpl_request_abandon(struct cpl_request *request)
{
    if (request->by_mpi && !request->receive.done) { /* MPI goes on; nobody hears of its end */
        if (!request->persistent)
            PMPI_Request_free(&request->receive.inner);
        request->receive.abandoned = request->receive.done = true;
        cpl_context.requests.n_by_mpi--;
        if (request->came)
            request->came(request);
    }
    if (request->sends)
        forget(&request->sending);
    if (request->receives && !request->receive.done)
        request->receive.abandoned = true; /* it comes back when it is done */
    else
        deactivate(request);
}

void cpl_request_free(struct cpl_request *request, MPI_Request *handle)
{
    if (request->collective)
        cpl_progress_leave();
    while (request->collective && !cpl_request_is_done(request))
        cpl_progress_poll();
    *handle = MPI_REQUEST_NULL;
    if (request->shared)
        cpl_context.busy.n_active_requests--;
    else
        cpl_request_abandon(request);
}

void cpl_request_drop(struct cpl_receive *receive)
{
    deactivate(
        (struct cpl_request *)(void *)((char *)receive - offsetof(struct cpl_request, receive)));
}

/* A communicator ends: its requests raise errors on another one from now on. */
static void forget_comm(struct cpl_comm_state *state)
{
    for (int k = 0; k < N_BUCKETS && cpl_context.requests.n > 0; k++)
        for (struct cpl_request *r = buckets[k]; r; r = r->next)
            if (r->comm == state->comm) {
                r->comm = MPI_COMM_WORLD;
                r->came = NULL;
            }
}

const struct cpl_hooks cpl_request_hooks = {.end = forget_comm};

void cpl_request_end(void)
{
    for (int k = 0; k < N_BUCKETS; k++)
        for (struct cpl_request *request; (request = buckets[k]);) {
            buckets[k] = request->next;
            PMPI_Request_free(&request->handle);
            free(request);
        }
    cpl_context.requests.n = 0;
    cpl_context.requests.spare = cpl_context.requests.complete_send = NULL;
}

/* ---- persistent requests ---- */

void cpl_persistent_add(struct cpl_persistent *p, const struct cpl_persistent_kind *kind,
                        MPI_Request handle)
{
    p->kind = kind;
    p->request.handle = handle;
    p->request.persistent = true;
    add(&p->request);
    DL_APPEND(cpl_context.requests.persistent, p);
}

struct cpl_persistent *cpl_persistent_find(MPI_Request handle)
{
    struct cpl_request *request = cpl_request_find(handle);
    return request && request->persistent ? (struct cpl_persistent *)(void *)request : NULL;
}

static void take_out(struct cpl_persistent *p)
{
    struct cpl_request **at = bucket_of(p->request.handle);
    while (*at != &p->request)
        at = &(*at)->next;
    *at = p->request.next;
    cpl_context.requests.n--;
    cpl_context.requests.n_forgotten++;
    DL_DELETE(cpl_context.requests.persistent, p);
}

static void forget_persistent(struct cpl_persistent *p)
{
    take_out(p);
    p->kind->free(p);
}

int cpl_persistent_start(MPI_Request *request)
{
    struct cpl_request *found = cpl_request_find(*request);
    if (found && found->active) { /* it is active already, or not persistent */
        PMPI_Comm_call_errhandler(found->comm, MPI_ERR_REQUEST);
        return MPI_ERR_REQUEST;
    }
    struct cpl_persistent *p = (struct cpl_persistent *)(void *)found;
    return found && found->persistent ? p->kind->start(p, request) : PMPI_Start(request);
}

void cpl_persistent_free(MPI_Request handle)
{
    struct cpl_persistent *p = cpl_persistent_find(handle);
    if (!p)
        return;
    if (p->kind->is_waited_for) {
        while (p->request.active && !cpl_request_is_done(&p->request))
            cpl_progress_poll();
        if (p->request.active)
            cpl_request_settle(&p->request, &handle, MPI_STATUS_IGNORE);
    }
    if (!p->request.active) {
        forget_persistent(p);
        return;
    }
    take_out(p);
    p->request.freed = true;
    cpl_request_abandon(&p->request);
}

void cpl_persistent_end(void)
{
    while (cpl_context.requests.persistent)
        forget_persistent(cpl_context.requests.persistent);
}
