/* Testing and barriers for SimGrid's MPI (standin.h).
 *
 * SMPI's MPI_Testsome makes a test for each request, which takes as long as `smpi/test` says, or no
 * time at all, so that a loop of tests never ends. Here one look at all takes POLL_NS when it finds
 * nothing; when it is the second one in a row, and nothing else that could change was looked at in
 * between but a barrier, it lasts until a message comes: a loop would go on until then, too, and
 * the simulator has one event instead of many. SMPI's MPI_Ibarrier and MPI_Iallreduce
 * have all ranks report to the first one; here a barrier is, as MPICH's, one of log2(ranks) rounds
 * (dissemination) that the calls which test it carry on, and the reduction follows such a barrier.
 */
#include "standin.h"

#include <simgrid/engine.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#undef PMPI_Test
#undef PMPI_Testall
#undef PMPI_Testany
#undef PMPI_Testsome
#undef PMPI_Wait
#undef PMPI_Waitall
#undef PMPI_Wtime

#define POLL_NS 100
#define TAG     0x6b /* of barriers, on the communicator itself */

/* A barrier that is under way, maybe before a reduction. The handle is its address. */
struct barrier {
    struct barrier *next;
    MPI_Comm comm;
    int rank, size, distance; /* of the round: a power of two */
    MPI_Request heard;        /* from the rank that far before this one */
    /* The reduction that follows; none: MPI_OP_NULL. */
    const void *sent;
    void *received;
    int count;
    MPI_Datatype type;
    MPI_Op op;
};

static struct barrier *barriers;

/* The last look that found nothing, and what was looked at since. */
static struct {
    const MPI_Request *requests;
    double end;              /* when it ended; seconds */
    struct barrier *barrier; /* tested since, and not over */
    bool others;             /* others were tested, or the time was asked for */
} last;

#define MOST_WAITED 16

/* Waits for one of the requests, or for the barrier. */
static int wait_for_any(int n, MPI_Request *requests, struct barrier *barrier, int *n_done,
                        int *indices, MPI_Status *statuses)
{
    MPI_Request all[MOST_WAITED + 1];
    MPI_Status status;
    int index = MPI_UNDEFINED;
    memcpy(all, requests, (size_t)n * sizeof *all);
    all[n] = barrier ? barrier->heard : MPI_REQUEST_NULL;
    int result = PMPI_Waitany(n + 1, all, &index, &status);
    memcpy(requests, all, (size_t)n * sizeof *all);
    if (barrier)
        barrier->heard = all[n];
    *n_done = index >= 0 && index < n;
    if (*n_done)
        *indices = index;
    if (*n_done && statuses != MPI_STATUSES_IGNORE)
        *statuses = status;
    return result;
}

/* Nothing was found. */
static int idle(int n, MPI_Request *requests, int *n_done, int *indices, MPI_Status *statuses)
{
    const struct timespec time = {0, POLL_NS};
    bool again = last.requests == requests && last.end >= simgrid_get_clock() && !last.others;
    int result = MPI_SUCCESS;
    if (again && n <= MOST_WAITED)
        result = wait_for_any(n, requests, last.barrier, n_done, indices, statuses);
    else
        nanosleep(&time, NULL);
    last.requests = requests;
    last.end = simgrid_get_clock();
    last.barrier = NULL;
    last.others = false;
    return result;
}

/* Sends that SMPI completes where they are made: MPI_Testany does not see them. */
static int find_sent(int n, MPI_Request *requests, int *index, MPI_Status *status)
{
    int flag = 0, result = MPI_SUCCESS;
    for (int k = 0; k < n && !flag && result == MPI_SUCCESS; k++) {
        *index = k;
        if (requests[k] != MPI_REQUEST_NULL)
            result = PMPI_Test(&requests[k], &flag, status);
    }
    if (!flag)
        *index = MPI_UNDEFINED;
    return result;
}

int cpl_sim_testsome(int n, MPI_Request *requests, int *n_done, int *indices, MPI_Status *statuses)
{
    int found = 0, flag = 0, index = 0;
    do {
        MPI_Status status;
        int result = PMPI_Testany(n, requests, &index, &flag, &status);
        if (result == MPI_SUCCESS && flag && index == MPI_UNDEFINED)
            result = find_sent(n, requests, &index, &status);
        if (result != MPI_SUCCESS)
            return result;
        if (!flag || index == MPI_UNDEFINED)
            break;
        if (statuses != MPI_STATUSES_IGNORE)
            statuses[found] = status;
        indices[found++] = index;
    } while (found < n);
    *n_done = flag && found == 0 ? MPI_UNDEFINED : found;
    return *n_done == 0 ? idle(n, requests, n_done, indices, statuses) : MPI_SUCCESS;
}

/* ---- barriers ---- */

static struct barrier **find_barrier(MPI_Request handle)
{
    struct barrier **at = &barriers;
    while (*at && (MPI_Request)*at != handle)
        at = &(*at)->next;
    return at;
}

static int begin_round(struct barrier *b)
{
    MPI_Request told = MPI_REQUEST_NULL;
    int to = (b->rank + b->distance) % b->size, from = (b->rank + b->size - b->distance) % b->size;
    int result = PMPI_Irecv(NULL, 0, MPI_BYTE, from, TAG, b->comm, &b->heard);
    if (result == MPI_SUCCESS)
        result = PMPI_Isend(NULL, 0, MPI_BYTE, to, TAG, b->comm, &told);
    if (result == MPI_SUCCESS)
        result = PMPI_Wait(&told, MPI_STATUS_IGNORE); /* at once: no message needs its receive */
    return result;
}

/* Goes on as far as other ranks have come; waits for them when flag is NULL. */
static int carry_on(MPI_Request *handle, int *flag)
{
    struct barrier **at = find_barrier(*handle), *b = *at;
    int result = MPI_SUCCESS, came = 1;
    while (b->distance < b->size && result == MPI_SUCCESS && came) {
        result = flag ? PMPI_Test(&b->heard, &came, MPI_STATUS_IGNORE)
                      : PMPI_Wait(&b->heard, MPI_STATUS_IGNORE);
        if (result == MPI_SUCCESS && came && (b->distance *= 2) < b->size)
            result = begin_round(b);
    }
    if (flag)
        *flag = came;
    last.others |= last.barrier && last.barrier != b;
    last.barrier = b;
    if (came && result == MPI_SUCCESS && b->op != MPI_OP_NULL)
        result = PMPI_Allreduce(b->sent, b->received, b->count, b->type, b->op, b->comm);
    if (came) {
        last.others = true;
        *at = b->next;
        free(b);
        *handle = MPI_REQUEST_NULL;
    }
    return result;
}

static int begin(struct barrier given, MPI_Request *request)
{
    struct barrier *b = calloc(1, sizeof *b);
    if (!b)
        return MPI_ERR_NO_MEM;
    *b = given;
    b->next = barriers;
    b->distance = 1;
    b->heard = MPI_REQUEST_NULL;
    PMPI_Comm_rank(b->comm, &b->rank);
    PMPI_Comm_size(b->comm, &b->size);
    barriers = b;
    *request = (MPI_Request)b;
    return b->size > 1 ? begin_round(b) : MPI_SUCCESS;
}

int cpl_sim_ibarrier(MPI_Comm comm, MPI_Request *request)
{
    return begin((struct barrier){.comm = comm, .op = MPI_OP_NULL}, request);
}

/* Once all ranks have come, nobody whom the blocking call waits for is waiting for this one. */
int cpl_sim_iallreduce(const void *sent, void *received, int count, MPI_Datatype type, MPI_Op op,
                       MPI_Comm comm, MPI_Request *request)
{
    struct barrier given = {
        .comm = comm, .sent = sent, .received = received, .count = count, .type = type, .op = op};
    return begin(given, request);
}

int cpl_sim_test(MPI_Request *request, int *flag, MPI_Status *status)
{
    if (*find_barrier(*request))
        return carry_on(request, flag);
    last.others = true;
    if (cpl_sim_is_neighbor(*request))
        return cpl_sim_end_neighbor(request, flag);
    return PMPI_Test(request, flag, status);
}

int cpl_sim_testall(int n, MPI_Request *requests, int *flag, MPI_Status *statuses)
{
    last.others = true;
    return PMPI_Testall(n, requests, flag, statuses);
}

int cpl_sim_testany(int n, MPI_Request *requests, int *index, int *flag, MPI_Status *status)
{
    last.others = true;
    return PMPI_Testany(n, requests, index, flag, status);
}

void cpl_sim_looked(void)
{
    last.others = true;
}

double cpl_sim_wtime(void)
{
    last.others = true;
    return PMPI_Wtime();
}

int cpl_sim_wait(MPI_Request *request, MPI_Status *status)
{
    if (*find_barrier(*request))
        return carry_on(request, NULL);
    return cpl_sim_is_neighbor(*request) ? cpl_sim_end_neighbor(request, NULL)
                                         : PMPI_Wait(request, status);
}

int cpl_sim_waitall(int n, MPI_Request *requests, MPI_Status *statuses)
{
    int result = MPI_SUCCESS;
    for (int k = 0; k < n && result == MPI_SUCCESS; k++)
        if (cpl_sim_is_neighbor(requests[k]))
            result = cpl_sim_end_neighbor(&requests[k], NULL);
    return result == MPI_SUCCESS ? PMPI_Waitall(n, requests, statuses) : result;
}
