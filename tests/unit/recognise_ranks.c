/* Ranks that recognise together in one process (recognise_ranks.h). */
#include "recognise_ranks.h"

#include "shim/meet/agree.h"
#include "shim/wait/collective.h"
#include "shim/wait/progress.h"

#include <mpi.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <cmocka.h>

#define STACK (96 << 10)

struct message {
    struct message *next;
    int from, bytes;
    char content[];
};

struct rank {
    ucontext_t machine;
    char *stack;
    bool ended;
    int n_reductions;
    struct message *first; /* for this rank, in the order of sending */
    int n_found;
    struct cpl_recurring found[CPL_MOST_RECURRING];
};

static struct {
    int n, running;
    ucontext_t test;
    struct rank *rank;
    const int64_t *first;
    const struct cpl_note *notes;
    int64_t least_times;
    int32_t *exchange;
    int n_come; /* to reductions so far */
    int64_t sum[2], result[2];
} all;

static void yield(void)
{
    swapcontext(&all.rank[all.running].machine, &all.test);
}

int PMPI_Comm_rank(MPI_Comm comm, int *rank)
{
    (void)comm;
    *rank = all.running;
    return MPI_SUCCESS;
}

int PMPI_Comm_size(MPI_Comm comm, int *size)
{
    (void)comm;
    *size = all.n;
    return MPI_SUCCESS;
}

int PMPI_Isend(const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
               MPI_Request *request)
{
    struct message *message = malloc(sizeof *message + (size_t)count), **at = &all.rank[dest].first;
    (void)type, (void)tag, (void)comm;
    assert_non_null(message);
    *message = (struct message){NULL, all.running, count};
    if (count > 0)
        memcpy(message->content, buf, (size_t)count);
    while (*at)
        at = &(*at)->next;
    *at = message;
    *request = MPI_REQUEST_NULL;
    return MPI_SUCCESS;
}

static struct message **find(int source)
{
    struct message **at = &all.rank[all.running].first;
    while (*at && (*at)->from != source)
        at = &(*at)->next;
    return at;
}

int PMPI_Iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
    const struct message *message = *find(source);
    (void)tag, (void)comm;
    *flag = message != NULL;
    status->count_lo = message ? message->bytes : 0;
    return MPI_SUCCESS;
}

int PMPI_Get_count(const MPI_Status *status, MPI_Datatype type, int *count)
{
    (void)type;
    *count = status->count_lo;
    return MPI_SUCCESS;
}

int PMPI_Irecv(void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
               MPI_Request *request)
{
    struct message **at = find(source), *message = *at;
    (void)type, (void)tag, (void)comm;
    assert_int_equal(message->bytes, count);
    if (count > 0)
        memcpy(buf, message->content, (size_t)count);
    *at = message->next;
    free(message);
    *request = MPI_REQUEST_NULL;
    return MPI_SUCCESS;
}

int cpl_progress_wait(MPI_Request *request, MPI_Status *status)
{
    (void)request, (void)status;
    return MPI_SUCCESS;
}

void cpl_progress_pause(int n)
{
    assert_true(n > 0);
    yield();
}

int PMPI_Recv(void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
              MPI_Status *status)
{
    (void)buf, (void)count, (void)type, (void)source, (void)tag, (void)comm, (void)status;
    fail_msg("there is memory");
    return MPI_ERR_INTERN;
}

/* The highest of each of two words. */
int cpl_collective_Allreduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
                             MPI_Comm comm)
{
    const int64_t *mine = send;
    const int all_come = (all.rank[all.running].n_reductions++ + 1) * all.n;
    (void)type, (void)comm;
    assert_true(count == 2 && op == MPI_MAX);
    for (int k = 0; k < 2; k++)
        all.sum[k] = all.n_come % all.n == 0 || mine[k] > all.sum[k] ? mine[k] : all.sum[k];
    if (++all.n_come == all_come)
        memcpy(all.result, all.sum, sizeof all.sum);
    while (all.n_come < all_come)
        yield();
    memcpy(recv, all.result, sizeof all.result);
    return MPI_SUCCESS;
}

bool cpl_agree_all(MPI_Comm comm, bool mine)
{
    (void)comm;
    assert_true(mine);
    return true;
}

static void run(void)
{
    const int i = all.running;
    struct rank *r = &all.rank[i];
    r->n_found =
        cpl_recognise(MPI_COMM_WORLD, all.notes + all.first[i], all.first[i + 1] - all.first[i],
                      all.least_times, r->found, all.exchange + all.first[i]);
    r->ended = true;
}

static void start(struct rank *r)
{
    r->stack = malloc(STACK);
    assert_non_null(r->stack);
    getcontext(&r->machine);
    r->machine.uc_stack.ss_sp = r->stack;
    r->machine.uc_stack.ss_size = STACK;
    r->machine.uc_link = &all.test;
    makecontext(&r->machine, run, 0);
}

int recognise_ranks(int n_ranks, const int64_t *first, const struct cpl_note *notes, int most,
                    int64_t least_times, struct cpl_recurring *found, int32_t *exchange,
                    int *n_rounds)
{
    all.n = n_ranks;
    all.rank = calloc((size_t)n_ranks, sizeof *all.rank);
    all.first = first;
    all.notes = notes;
    all.least_times = least_times;
    all.exchange = exchange;
    all.n_come = 0;
    assert_non_null(all.rank);
    for (int i = 0; i < n_ranks; i++)
        start(&all.rank[i]);
    for (bool any = true; any;) {
        any = false;
        for (all.running = n_ranks - 1; all.running >= 0; all.running--)
            if (!all.rank[all.running].ended) {
                swapcontext(&all.test, &all.rank[all.running].machine);
                any = true;
            }
    }
    int n = all.rank[0].n_found;
    *n_rounds = all.rank[0].n_reductions - 1;
    for (int i = 0; i < n_ranks; i++) {
        assert_int_equal(all.rank[i].n_found, n);
        assert_memory_equal(all.rank[i].found, all.rank[0].found, (size_t)n * sizeof *found);
        assert_null(all.rank[i].first);
        free(all.rank[i].stack);
    }
    n = n < most ? n : most;
    memcpy(found, all.rank[0].found, (size_t)n * sizeof *found);
    for (int64_t k = 0; k < first[n_ranks]; k++)
        exchange[k] = exchange[k] < n ? exchange[k] : -1;
    free(all.rank);
    return n;
}
