/*
 * Nonblocking neighborhood collectives beside small reductions, every byte checked.
 *
 *   beside [--graph KIND] [--graphs N] [--op OP|all] [--types basic|derived|all] [--large]
 *          [--on world|graph|dup] [--exact] [--calls N] [--stray N] [--open] [--again] [--messages]
 *          [--seed S]
 *
 * Each step starts a call on every graph, reduces something on all ranks, blocking or not, and
 * completes what it has started. One step in --stray (default none) is another one: calls are
 * completed before the reduction, on all ranks or some; other calls come between; there is no
 * reduction; a rank is late. With --messages each rank also sends some to the next three. --open
 * makes and frees a window after half of the steps, --again the graphs.
 */
#include "neighbors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_GRAPHS = 3, MOST_STARTED = 2, MOST_NUMBERS = 40, N_MESSAGES = 3 };

/* A call under way. */
struct call {
    const struct graph *graph;
    struct exchange ex;
    struct step step;
    MPI_Request request;
};

struct program {
    int kind, op, n_graphs, n_calls, stray;
    enum types types;
    bool large, exact, open, again, messages;
    const char *on;
    uint64_t seed;
    MPI_Comm dup, comm; /* comm: where reductions are made */
    struct graph graphs[MOST_GRAPHS];
    int n_started;
    struct call started[MOST_GRAPHS * MOST_STARTED];
    uint64_t sent[N_MESSAGES], got[N_MESSAGES];
    MPI_Request requests[2 * N_MESSAGES];
    uint64_t hash; /* of all that this rank has received */
};

/* A reduction of numbers that all ranks could compute, but do not. */
struct sum {
    MPI_Op op;
    MPI_Datatype type;
    int n;
    size_t bytes;
    bool in_place;
    double mine[MOST_NUMBERS], result[MOST_NUMBERS]; /* or as many int */
    MPI_Request request;
};

enum stray {
    NO_STRAY,
    BEFORE_ALL,
    BEFORE_SOME,
    MESSAGES,
    BARRIER,
    OTHER_COMM,
    LATE,
    TESTS,
    NO_SUM,
    BLOCKING_CALL,
    TWICE,
    N_STRAYS
};

static struct program read_options(int argc, char **argv)
{
    static const char *const types_names[] = {"basic", "derived", "all", NULL};
    return (struct program){
        .kind =
            test_find_name(test_option_text(argc, argv, "--graph", "simple"), kind_names, "simple"),
        .op = test_find_name(test_option_text(argc, argv, "--op", "alltoallv"), op_names, "all"),
        .types = (enum types)test_find_name(test_option_text(argc, argv, "--types", "all"),
                                            types_names, "all"),
        .n_graphs = (int)test_option(argc, argv, "--graphs", 1),
        .n_calls = (int)test_option(argc, argv, "--calls", 60),
        .stray = (int)test_option(argc, argv, "--stray", 0),
        .large = test_flag(argc, argv, "--large"),
        .exact = test_flag(argc, argv, "--exact"),
        .open = test_flag(argc, argv, "--open"),
        .again = test_flag(argc, argv, "--again"),
        .messages = test_flag(argc, argv, "--messages"),
        .on = test_option_text(argc, argv, "--on", "world"),
        .seed = test_key((uint64_t)test_option(argc, argv, "--seed", 1), 0),
    };
}

/* Variants 0 and 1 have the ranks in the world's order. MPICH's alltoallw wants equal degrees. */
static void make_graphs(struct program *p)
{
    bool equal = p->op == OP_ALLTOALLW || p->op == N_OPS;

    for (int i = 0; i < p->n_graphs; i++)
        p->graphs[i] = graph_make((enum kind)p->kind, i, equal, test_key(p->seed, i));
    p->comm = strcmp(p->on, "graph") == 0 ? p->graphs[0].comm
              : strcmp(p->on, "dup") == 0 ? p->dup
                                          : MPI_COMM_WORLD;
}

static void free_graphs(struct program *p)
{
    for (int i = 0; i < p->n_graphs; i++)
        graph_free(&p->graphs[i]);
}

/* --- calls ------------------------------------------------------------------------------- */

static struct step make_step(const struct program *p, uint64_t key)
{
    struct test_rng rng = {key};
    struct step step = {.types = p->types, .max_count = 20};

    step.op = (enum op)(p->op < N_OPS ? p->op : test_below(&rng, N_OPS));
    step.large = p->large && test_chance(&rng, 3);
    step.same = step.op != OP_ALLTOALLW && test_chance(&rng, 4);
    step.call = test_key(key, 1);
    step.layout = test_key(key, 2);
    return step;
}

static void start(struct program *p, int graph, uint64_t key)
{
    struct call *call = &p->started[p->n_started++];
    struct test_rng own = {test_key(key, test_rank())};

    *call = (struct call){.graph = &p->graphs[graph], .request = MPI_REQUEST_NULL};
    if (call->graph->comm == MPI_COMM_NULL)
        return;
    call->step = make_step(p, key);
    exchange_make(&call->ex, call->graph, &call->step);
    exchange_fill(&call->ex, call->graph, &call->step);
    exchange_call(&call->ex, call->graph, &call->step,
                  HAS_MPI4 && key % 4 == 0 ? FORM_NONBLOCKING_C : FORM_NONBLOCKING, &call->request);
    if (test_chance(&own, 2))
        exchange_free_types(&call->ex);
}

static void check(struct program *p, struct call *call)
{
    if (call->graph->comm != MPI_COMM_NULL) {
        p->hash = test_key(p->hash, (int64_t)exchange_check(&call->ex, call->graph, &call->step));
        exchange_free(&call->ex);
    }
}

/* Completes all calls and a reduction, as this rank likes: together, or the last one first. */
static void complete(struct program *p, MPI_Request *reduction, struct test_rng *own)
{
    MPI_Request requests[MOST_GRAPHS * MOST_STARTED + 1] = {*reduction};
    int n = p->n_started;

    for (int i = 0; i < n; i++)
        requests[i + 1] = p->started[i].request;
    if (test_chance(own, 2)) {
        MPI_Waitall(n + 1, requests, MPI_STATUSES_IGNORE);
    } else {
        for (int i = n, done = 0; i >= 0; i--, done = 0) {
            while (!done && test_chance(own, 2))
                MPI_Test(&requests[i], &done, MPI_STATUS_IGNORE);
            MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        }
    }
    *reduction = requests[0];
    for (int i = 0; i < n; i++)
        check(p, &p->started[i]);
    p->n_started = 0;
}

/* --- reductions -------------------------------------------------------------------------- */

static void fill_integers(struct sum *sum, MPI_Op op, uint64_t key)
{
    int *mine = (int *)sum->mine;

    sum->op = op;
    sum->type = MPI_INT;
    sum->bytes = (size_t)sum->n * sizeof(int);
    for (int k = 0; k < sum->n; k++)
        mine[k] = (int)(test_key(test_key(key, test_rank()), k) % 100003);
}

/* Numbers of very different size: the bits of their sums depend on the order. */
static void fill_doubles(struct sum *sum, uint64_t key)
{
    sum->op = MPI_SUM;
    sum->type = MPI_DOUBLE;
    sum->bytes = (size_t)sum->n * sizeof(double);
    for (int k = 0; k < sum->n; k++) {
        uint64_t bits = test_key(test_key(key, test_rank()), k);
        double number = (double)(bits >> 20) / 1e12 - 8.0;
        sum->mine[k] = bits % 7 == 0 ? number * 1e12 : number;
    }
}

static void start_sum(struct sum *sum, const struct program *p, MPI_Comm comm, bool waits,
                      uint64_t key)
{
    static const int numbers[] = {1, MOST_NUMBERS}; /* few, that not all are the first of a kind */
    int what = (int)(key % (p->exact ? 2 : 4));
    const void *sent;

    memset(sum, 0, sizeof *sum);
    sum->request = MPI_REQUEST_NULL;
    sum->n = numbers[key / 8 % 2];
    if (what == 0)
        fill_integers(sum, MPI_MAX, key);
    else if (what == 1)
        fill_integers(sum, MPI_SUM, key);
    else
        fill_doubles(sum, key);
    sum->in_place = key / 32 % 2;
    if (sum->in_place)
        memcpy(sum->result, sum->mine, sizeof sum->mine);
    sent = sum->in_place ? MPI_IN_PLACE : (void *)sum->mine;
    if (waits)
        MPI_Allreduce(sent, sum->result, sum->n, sum->type, sum->op, comm);
    else
        MPI_Iallreduce(sent, sum->result, sum->n, sum->type, sum->op, comm, &sum->request);
}

static void end_sum(struct program *p, const struct sum *sum)
{
    p->hash = test_key(p->hash, (int64_t)test_hash(TEST_HASH_START, sum->result, sum->bytes));
}

/* --- steps ------------------------------------------------------------------------------- */

/* Each rank to the next ones. */
static void start_messages(struct program *p, uint64_t key)
{
    int n = test_size();

    for (int k = 0; k < N_MESSAGES; k++)
        MPI_Irecv(&p->got[k], 1, MPI_UINT64_T, (test_rank() + n * k + n - k - 1) % n, 5 + k,
                  MPI_COMM_WORLD, &p->requests[k]);
    for (int k = 0; k < N_MESSAGES; k++) {
        p->sent[k] = test_key(test_key(key, test_rank()), k);
        MPI_Isend(&p->sent[k], 1, MPI_UINT64_T, (test_rank() + k + 1) % n, 5 + k, MPI_COMM_WORLD,
                  &p->requests[N_MESSAGES + k]);
    }
}

static void end_messages(struct program *p, uint64_t key)
{
    int n = test_size();

    MPI_Waitall(2 * N_MESSAGES, p->requests, MPI_STATUSES_IGNORE);
    for (int k = 0; k < N_MESSAGES; k++)
        if (p->got[k] != test_key(test_key(key, (test_rank() + n * k + n - k - 1) % n), k))
            test_fail("message %d is wrong", k);
}

static void be_late(double seconds)
{
    double end = MPI_Wtime() + seconds;
    while (MPI_Wtime() < end)
        ;
}

static void pass_around(void)
{
    int next = (test_rank() + 1) % test_size();
    int before = (test_rank() + test_size() - 1) % test_size(), got = -1;
    MPI_Request request;

    MPI_Irecv(&got, 1, MPI_INT, before, 7, MPI_COMM_WORLD, &request);
    MPI_Send(&next, 1, MPI_INT, next, 7, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (got != test_rank())
        test_fail("got %d", got);
}

static void blocking_call(struct program *p, uint64_t key)
{
    struct exchange ex = {.made = false};
    struct step step = make_step(p, key);

    if (p->graphs[0].comm == MPI_COMM_NULL)
        return;
    exchange_make(&ex, &p->graphs[0], &step);
    p->hash = test_key(p->hash, (int64_t)exchange_run(&ex, &p->graphs[0], &step));
    exchange_free(&ex);
}

/* What comes between the start of the calls and the reduction. */
static void go_astray(struct program *p, enum stray stray, uint64_t key)
{
    struct test_rng own = {test_key(key, 100 + test_rank())};
    MPI_Request none = MPI_REQUEST_NULL;
    struct sum other;
    int flag;

    if (stray == BEFORE_ALL || (stray == BEFORE_SOME && test_chance(&own, 2)))
        complete(p, &none, &own);
    if (stray == MESSAGES)
        pass_around();
    if (stray == BARRIER)
        MPI_Barrier(MPI_COMM_WORLD);
    if (stray == OTHER_COMM) {
        start_sum(&other, p, p->comm == p->dup ? MPI_COMM_WORLD : p->dup, true, test_key(key, 3));
        end_sum(p, &other);
    }
    if (stray == LATE && (int)(key / 64 % (uint64_t)test_size()) == test_rank())
        be_late(5e-3);
    for (int i = 0; i < p->n_started && stray == TESTS; i++)
        if (test_chance(&own, 2) && p->started[i].request != MPI_REQUEST_NULL)
            MPI_Request_get_status(p->started[i].request, &flag, MPI_STATUS_IGNORE);
    if (stray == BLOCKING_CALL)
        blocking_call(p, test_key(key, 4));
}

static void step(struct program *p, int number)
{
    uint64_t key = test_key(p->seed, 10000 + number);
    struct test_rng rng = {key}, own = {test_key(key, 1000 + test_rank())};
    enum stray stray = NO_STRAY;
    struct sum sum = {.request = MPI_REQUEST_NULL};

    if (p->stray > 0 && test_chance(&rng, p->stray))
        stray = (enum stray)(1 + test_below(&rng, N_STRAYS - 1));
    for (int i = 0; i < p->n_graphs; i++)
        for (int k = 0; k < (stray == TWICE ? 2 : 1); k++)
            start(p, i, test_key(key, 20 + 2 * i + k));
    if (p->messages)
        start_messages(p, key);
    go_astray(p, stray, test_key(key, 1));
    if (stray != NO_SUM && p->comm != MPI_COMM_NULL)
        start_sum(&sum, p, p->comm, test_chance(&rng, 2), test_key(key, 2));
    if (p->messages && test_chance(&own, 2))
        MPI_Waitall(2 * N_MESSAGES, p->requests, MPI_STATUSES_IGNORE);
    complete(p, &sum.request, &own);
    end_sum(p, &sum);
    if (p->messages)
        end_messages(p, key);
}

static void open_window(void)
{
    int memory = test_rank();
    MPI_Win window;

    MPI_Win_create(&memory, sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
}

int main(int argc, char **argv)
{
    static const char *const known[] = {"--graph", "--graphs",   "--op",    "--types", "--large",
                                        "--on",    "--exact",    "--calls", "--stray", "--open",
                                        "--again", "--messages", "--seed",  NULL};
    struct program p;
    uint64_t *all;

    test_start(&argc, &argv, known);
    p = read_options(argc, argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &p.dup);
    make_graphs(&p);
    for (int i = 0; i < p.n_calls; i++) {
        step(&p, i);
        if (p.open && i == p.n_calls / 2)
            open_window();
        if (p.again && i == p.n_calls / 2) {
            free_graphs(&p);
            make_graphs(&p);
        }
    }
    free_graphs(&p);
    MPI_Comm_free(&p.dup);
    all = test_hash_ranks(1, &p.hash);
    test_print("received %016llx\n", (unsigned long long)(test_rank() == 0 ? all[0] : 0));
    free(all);
    return test_finish();
}
