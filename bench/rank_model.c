/* Ranks, their clocks and messages between them (rank_model.h).
 *
 *     PROGRAM RANKS MACHINE [the program's own arguments]
 *
 * MACHINE is a machine file or a built-in machine's name. Exit status: the highest of the ranks'.
 */
#undef main
#include "rank_model.h"

#include "array/work.h"
#include "planner/base/heap.h"
#include "planner/pattern.h"

#include <getopt.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#ifndef STACK_BYTES
#define STACK_BYTES (256 * 1024)
#endif
#define PROBE_NS  100.0 /* as bench/sim/standin_probe.c */
#define N_BUCKETS 64    /* of a rank's messages, by sender */

int program_main(int n_words, char **words);

struct rank_model rank_model;

/* A message that has been sent and not received. */
struct message {
    struct message *next;
    MPI_Comm comm;
    int source, tag, bytes;
    int synchronous; /* the sender's request, which its receipt completes; -1: none */
    double arrival;  /* its first byte can be looked at, in seconds */
    char data[];
};

/* A message that a rank waits for. */
struct expected {
    MPI_Comm comm;
    int source, tag;
};

struct request {
    bool is_receive;
    struct expected expected;
    void *buffer;
    int bytes;
    struct message *message; /* while it is completed */
    double done;             /* of a synchronous send: when its sender knows that it was received */
};

struct rank {
    ucontext_t context;
    char *stack;
    int n_words;
    char **words;
    bool is_stopped;
    struct message *bucket[N_BUCKETS], **end[N_BUCKETS];
    const struct expected *awaits; /* NULL: no message */
    bool awaits_any;               /* it pauses */
    int n_requests, n_open, room;  /* open: not completed yet */
    struct request *request;
};

/* A rank that can run. */
struct turn {
    double clock;
    int rank;
};

static inline bool comes_before(const struct turn *a, const struct turn *b)
{
    return a->clock < b->clock || (a->clock <= b->clock && a->rank < b->rank);
}

CPL_HEAP(turns, struct turn, comes_before)

static struct rank *ranks;
static struct turn *heap;
static int64_t n_turns;
static ucontext_t scheduler;
static int n_ended, worst;

_Noreturn void rank_model_fail(const char *what)
{
    fprintf(stderr, "rank_model: %s\n", what);
    exit(1);
}

static void *need(size_t n, size_t size)
{
    void *memory = calloc(n ? n : 1, size);
    if (!memory)
        rank_model_fail("no memory; ask for fewer ranks or a smaller graph");
    return memory;
}

/* ---- turns ---- */

static double *my_clock(void)
{
    return &rank_model.clock[rank_model.running];
}

static void queue(int rank)
{
    turns_push(heap, n_turns++, (struct turn){rank_model.clock[rank], rank});
}

static void leave(void)
{
    swapcontext(&ranks[rank_model.running].context, &scheduler);
}

void rank_model_stop(void)
{
    ranks[rank_model.running].is_stopped = true;
    leave();
}

void rank_model_resume(int rank)
{
    if (!ranks[rank].is_stopped)
        return;
    ranks[rank].is_stopped = false;
    queue(rank);
}

void rank_model_wake(int rank)
{
    if (ranks[rank].awaits_any)
        rank_model_resume(rank);
}

void rank_model_give_way(void)
{
    if (n_turns == 0 || heap[0].clock >= *my_clock())
        return;
    queue(rank_model.running);
    leave();
}

static void run_rank(void)
{
    struct rank *r = &ranks[rank_model.running];
    optind = 0; /* the next rank reads its arguments anew */
    int status = program_main(r->n_words, r->words);
    worst = status > worst ? status : worst;
    n_ended++;
    rank_model_stop();
}

static void make_rank(int number, int n_words, char **words)
{
    struct rank *r = &ranks[number];
    r->n_words = n_words;
    r->words = need((size_t)n_words + 1, sizeof *r->words);
    for (int k = 0; k < n_words; k++) /* programs write into them */
        if (!(r->words[k] = strdup(words[k])))
            rank_model_fail("no memory for arguments");
    for (int k = 0; k < N_BUCKETS; k++)
        r->end[k] = &r->bucket[k];
    r->stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (r->stack == MAP_FAILED || getcontext(&r->context))
        rank_model_fail("no memory for stacks; ask for fewer ranks");
    r->context.uc_stack.ss_sp = r->stack;
    r->context.uc_stack.ss_size = STACK_BYTES;
    makecontext(&r->context, run_rank, 0);
    queue(number);
}

static void read_cluster(const char *n_ranks, const char *machine)
{
    struct cpl_machine_file file = cpl_machine_file_default();
    struct cpl_error error;
    rank_model.n_ranks = atoi(n_ranks);
    if (rank_model.n_ranks < 1 || rank_model.n_ranks > CPL_MAX_RANKS)
        rank_model_fail("expected a number of ranks, a machine, and the program's arguments");
    if (cpl_machine_file_load(machine, &file, &error))
        rank_model_fail(error.text);
    int n = rank_model.n_ranks;
    bool is_named = file.ranks_per_node > 0 && file.ranks_per_node < n;
    rank_model.ranks_per_node = is_named ? file.ranks_per_node : n;
    rank_model.n_nodes = (n + rank_model.ranks_per_node - 1) / rank_model.ranks_per_node;
    rank_model.costs = file.costs;
    rank_model.clock = need((size_t)n, sizeof(double));
    rank_model.sent = need((size_t)n, sizeof(int64_t));
    rank_model.port_out = need((size_t)rank_model.n_nodes, sizeof(double));
    rank_model.port_in = need((size_t)rank_model.n_nodes, sizeof(double));
}

int main(int n_words, char **words)
{
    if (n_words < 3)
        rank_model_fail("expected a number of ranks, a machine, and the program's arguments");
    read_cluster(words[1], words[2]);
    ranks = need((size_t)rank_model.n_ranks, sizeof *ranks);
    heap = need((size_t)rank_model.n_ranks, sizeof *heap);
    words[2] = words[0];
    for (int i = 0; i < rank_model.n_ranks; i++)
        make_rank(i, n_words - 2, words + 2);
    while (n_turns > 0) {
        rank_model.running = turns_pop(heap, n_turns--).rank;
        swapcontext(&scheduler, &ranks[rank_model.running].context);
    }
    if (n_ended < rank_model.n_ranks)
        rank_model_fail("ranks wait for each other for ever");
    return worst;
}

/* ---- work and messages ---- */

void cpl_array_work(double ns)
{
    *my_clock() += ns * 1e-9;
}

double MPI_Wtime(void)
{
    return *my_clock();
}

static int node_of(int rank)
{
    return rank / rank_model.ranks_per_node;
}

static double end_seconds(double overhead_us, int bytes, bool is_near)
{
    double ns = is_near ? rank_model.costs.link[CPL_LINK_NODE].ns_per_byte * bytes : 0;
    return overhead_us * 1e-6 + ns * 1e-9;
}

/* When a message whose sender is done with it now has arrived. Between nodes its bytes go through
 * both ports, at the same time unless one is busy. */
static double arrive(int from, int to, int bytes)
{
    double now = rank_model.clock[from];
    if (node_of(from) == node_of(to))
        return now + rank_model.costs.link[CPL_LINK_NODE].latency_us * 1e-6;
    double takes = rank_model.costs.node_ns_per_byte * 1e-9 * bytes;
    double *out = &rank_model.port_out[node_of(from)], *in = &rank_model.port_in[node_of(to)];
    double begin = now > *out ? now : *out;
    *out = begin + takes;
    double comes = begin + rank_model.costs.link[CPL_LINK_NETWORK].latency_us * 1e-6;
    *in = (comes > *in ? comes : *in) + takes;
    return *in;
}

static bool is_expected(const struct message *m, const struct expected *e)
{
    return m->source == e->source && m->tag == e->tag && m->comm == e->comm;
}

static void deliver(int to, struct message *m)
{
    struct rank *r = &ranks[to];
    int b = m->source % N_BUCKETS;
    *r->end[b] = m;
    r->end[b] = &m->next;
    if (r->awaits_any || (r->awaits && is_expected(m, r->awaits))) {
        r->awaits = NULL;
        rank_model_resume(to);
    }
}

/* The link to the first such message. */
static struct message **find(struct rank *r, const struct expected *e)
{
    struct message **m = &r->bucket[e->source % N_BUCKETS];
    while (*m && !is_expected(*m, e))
        m = &(*m)->next;
    return m;
}

/* Waits until such a message has been sent. */
static struct message **await(const struct expected *e)
{
    struct rank *r = &ranks[rank_model.running];
    struct message **m = find(r, e);
    while (!*m) {
        r->awaits = e;
        rank_model_stop();
        m = find(r, e);
    }
    return m;
}

static struct message *take(const struct expected *e)
{
    struct rank *r = &ranks[rank_model.running];
    struct message **link = await(e), *m = *link;
    *link = m->next;
    if (!*link)
        r->end[e->source % N_BUCKETS] = link;
    return m;
}

/* The running rank has a message: its time passes, its bytes are there. */
static int receive(struct message *m, void *buffer, int bytes)
{
    bool is_near = node_of(m->source) == node_of(rank_model.running);
    const struct cpl_link_cost *link =
        &rank_model.costs.link[is_near ? CPL_LINK_NODE : CPL_LINK_NETWORK];
    double *clock = my_clock();
    int result = m->bytes > bytes ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
    *clock = (*clock > m->arrival ? *clock : m->arrival);
    *clock += end_seconds(link->recv_us, m->bytes, is_near);
    if (m->synchronous >= 0) {
        ranks[m->source].request[m->synchronous].done = *clock + link->latency_us * 1e-6;
        rank_model_wake(m->source);
    }
    memcpy(buffer, m->data, result == MPI_SUCCESS ? (size_t)m->bytes : 0);
    free(m);
    return result;
}

/* ---- MPI ---- */

static MPI_Request add_request(struct request request)
{
    struct rank *r = &ranks[rank_model.running];
    if (r->n_requests == r->room) {
        r->room = 2 * r->room + 64;
        r->request = realloc(r->request, (size_t)r->room * sizeof *r->request);
        if (!r->request)
            rank_model_fail("no memory for requests");
    }
    r->request[r->n_requests] = request;
    r->n_open++;
    return (MPI_Request)r->n_requests++;
}

static void close_requests(int n)
{
    struct rank *r = &ranks[rank_model.running];
    r->n_open -= n;
    r->n_requests = r->n_open > 0 ? r->n_requests : 0;
}

static MPI_Request send(const void *buffer, int count, MPI_Datatype type, int dest, int tag,
                        MPI_Comm comm, bool is_synchronous)
{
    int from = rank_model.running, bytes = count * rank_model_type_bytes(type);
    bool is_near = node_of(from) == node_of(dest);
    const struct cpl_link_cost *link =
        &rank_model.costs.link[is_near ? CPL_LINK_NODE : CPL_LINK_NETWORK];
    struct message *m = malloc(sizeof *m + (size_t)bytes);
    if (!m)
        rank_model_fail("no memory for messages");
    MPI_Request request =
        add_request((struct request){.is_receive = false, .done = is_synchronous ? INFINITY : 0});
    *m = (struct message){.comm = comm,
                          .source = from,
                          .tag = tag,
                          .bytes = bytes,
                          .synchronous = is_synchronous ? (int)request : -1};
    memcpy(m->data, buffer, (size_t)bytes);
    rank_model.sent[from] += bytes;
    *my_clock() += end_seconds(link->send_us, bytes, is_near);
    rank_model_give_way(); /* ports serve messages in the order of clocks */
    m->arrival = arrive(from, dest, bytes);
    deliver(dest, m);
    return request;
}

int MPI_Isend(const void *buffer, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    *request = send(buffer, count, type, dest, tag, comm, false);
    return MPI_SUCCESS;
}

int MPI_Issend(const void *buffer, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
               MPI_Request *request)
{
    *request = send(buffer, count, type, dest, tag, comm, true);
    return MPI_SUCCESS;
}

int MPI_Irecv(void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    *request = add_request((struct request){.is_receive = true,
                                            .expected = {comm, source, tag},
                                            .buffer = buffer,
                                            .bytes = count * rank_model_type_bytes(type)});
    return MPI_SUCCESS;
}

static int compare_arrivals(const void *a, const void *b)
{
    const struct request *x = *(struct request *const *)a, *y = *(struct request *const *)b;
    return (x->message->arrival > y->message->arrival) -
           (x->message->arrival < y->message->arrival);
}

/* Messages are received in the order of their arrival. Nobody waits for synchronous sends here. */
int MPI_Waitall(int n, MPI_Request *requests, MPI_Status *statuses)
{
    struct rank *r = &ranks[rank_model.running];
    struct request **receives = need((size_t)n, sizeof *receives);
    int n_receives = 0, result = MPI_SUCCESS;
    (void)statuses;
    for (int k = 0; k < n; k++) {
        struct request *request = &r->request[requests[k]];
        if (request->is_receive) {
            request->message = take(&request->expected);
            receives[n_receives++] = request;
        }
    }
    qsort(receives, (size_t)n_receives, sizeof(struct request *), compare_arrivals);
    for (int k = 0; k < n_receives; k++) {
        int code = receive(receives[k]->message, receives[k]->buffer, receives[k]->bytes);
        result = code != MPI_SUCCESS ? code : result;
    }
    free(receives);
    close_requests(n);
    return result;
}

int MPI_Probe(int source, int tag, MPI_Comm comm, MPI_Status *status)
{
    const struct expected e = {comm, source, tag};
    const struct message *m = *await(&e);
    double *clock = my_clock();
    *clock = (*clock > m->arrival ? *clock : m->arrival) + PROBE_NS * 1e-9;
    memset(status, 0, sizeof *status);
    status->MPI_SOURCE = source;
    status->MPI_TAG = tag;
    status->count_lo = m->bytes;
    return MPI_SUCCESS;
}

int MPI_Get_count(const MPI_Status *status, MPI_Datatype type, int *count)
{
    *count = status->count_lo / rank_model_type_bytes(type);
    return MPI_SUCCESS;
}

int MPI_Recv(void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
             MPI_Status *status)
{
    const struct expected e = {comm, source, tag};
    (void)status;
    return receive(take(&e), buffer, count * rank_model_type_bytes(type));
}

/* ---- looking without waiting ---- */

/* The earliest time after the present one at which something that concerns the running rank
 * happens, as far as it is known. */
static double next_event(void)
{
    const struct rank *r = &ranks[rank_model.running];
    double now = *my_clock(), next = INFINITY, ends = rank_model_barrier_ends();
    for (int b = 0; b < N_BUCKETS; b++)
        for (const struct message *m = r->bucket[b]; m; m = m->next)
            next = m->arrival > now && m->arrival < next ? m->arrival : next;
    for (int k = 0; k < r->n_requests; k++)
        next = r->request[k].done > now && r->request[k].done < next ? r->request[k].done : next;
    return ends > now && ends < next ? ends : next;
}

void rank_model_pause(void)
{
    struct rank *r = &ranks[rank_model.running];
    double next;
    while (isinf(next = next_event())) {
        r->awaits_any = true;
        rank_model_stop();
        r->awaits_any = false;
    }
    *my_clock() = next;
    rank_model_give_way();
}

int MPI_Iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
    const struct rank *r = &ranks[rank_model.running];
    const struct message *first = NULL;
    if (source != MPI_ANY_SOURCE)
        rank_model_fail("MPI_Iprobe of one source is not modelled");
    rank_model_give_way();
    for (int b = 0; b < N_BUCKETS; b++)
        for (const struct message *m = r->bucket[b]; m; m = m->next)
            if (m->tag == tag && m->comm == comm && m->arrival <= *my_clock() &&
                (!first || m->arrival < first->arrival))
                first = m;
    *flag = first != NULL;
    if (first) {
        *my_clock() += PROBE_NS * 1e-9;
        status->MPI_SOURCE = first->source;
        status->MPI_TAG = tag;
        status->count_lo = first->bytes;
    }
    return MPI_SUCCESS;
}

int MPI_Testall(int n, MPI_Request *requests, int *flag, MPI_Status *statuses)
{
    const struct rank *r = &ranks[rank_model.running];
    (void)statuses;
    rank_model_give_way();
    *flag = 1;
    for (int k = 0; k < n; k++)
        *flag &= !r->request[requests[k]].is_receive && r->request[requests[k]].done <= *my_clock();
    if (*flag)
        close_requests(n);
    return MPI_SUCCESS;
}

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    if (*request != RANK_MODEL_BARRIER)
        return MPI_Testall(1, request, flag, status);
    rank_model_give_way();
    *flag = rank_model_barrier_ends() <= *my_clock();
    return MPI_SUCCESS;
}
