/*
 * The process is the program's: its floating-point environment, its signals, its limits, the names
 * of its functions.
 *
 *   process traps          floating-point traps, as gfortran -ffpe-trap=invalid,zero,overflow sets
 * them process flags          what was done raises no flag that the program did not raise process
 * rounding       the rounding of sums is the program's process nans           of several NaNs a sum
 * keeps the one that MPI's keeps process protected      receive buffers are write-protected until a
 * handler of SIGSEGV lifts that process stack KB       all of MPI on a thread with a small stack
 *   process files BYTES    RLIMIT_FSIZE
 *   process names          functions of the program have names of jansson's and zlib's
 *   process order [sum]    one rank starts a nonblocking collective before a blocking one, the
 * others after it: MPI forbids that, MPICH does it
 */
#include "promise.h"

#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define ROUNDS 150
#define PAGE   4096

static MPI_Comm ring;

static void make_ring(void)
{
    int from[3] = {beside(-1), beside(1), beside(-2)}, to[3] = {beside(1), beside(-1), beside(2)};
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 3, from, MPI_UNWEIGHTED, 3, to, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &ring);
}

/* An exchange of every kind, then sums of each kind. Returns them, added up. */
static double everything(void)
{
    struct batch batch;
    double total = 0;
    int out[MAX_RANKS] = {0}, in[MAX_RANKS], one[MAX_RANKS], at[MAX_RANKS];
    for (int r = 0; r < n_ranks; r++) {
        one[r] = 1;
        at[r] = r;
    }
    for (int round = 0; round < ROUNDS; round++) {
        double mine[2] = {me * 0.1 + round / 3.0, round - me / 7.0}, all[2];
        float small = (float)me / 3 + (float)round, most;
        int whole = round, sum;
        batch_begin(&batch, MPI_COMM_WORLD, round);
        batch_end(&batch);
        MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, ring);
        MPI_Alltoallv(out, one, at, MPI_INT, in, one, at, MPI_INT, MPI_COMM_WORLD);
        MPI_Allgather(&whole, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD);
        MPI_Allreduce(mine, all, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        total += all[0] + all[1];
        MPI_Allreduce(mine, all, 2, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
        total += all[0] + all[1];
        MPI_Allreduce(&small, &most, 1, MPI_FLOAT, MPI_MAX, MPI_COMM_WORLD);
        total += (double)most;
        MPI_Allreduce(&whole, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        total += sum;
    }
    return total;
}

static void tell_bits(const char *what, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    say("%s %016llx\n", what, (unsigned long long)bits);
}

static void traps(void)
{
    make_ring();
    feenableexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW);
    double total = everything();
    if (fegetexcept() != (FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW))
        wrong("other traps");
    fedisableexcept(FE_ALL_EXCEPT);
    tell_bits("total", total);
    MPI_Comm_free(&ring);
}

static void flags(void)
{
    make_ring();
    feclearexcept(FE_ALL_EXCEPT);
    double total = everything();
    MPI_Comm_free(&ring);
    int raised = fetestexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW);
    if (raised)
        wrong("flags %x", raised);
    tell_bits("total", total);
}

/* While a sum is under way the program computes, so that others may do what there is to do. */
static double sum_slowly(double mine)
{
    double sum = 0;
    MPI_Request request;
    MPI_Iallreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
    if (me % 3 == 1)
        nap(0.0003);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return sum;
}

static void rounding(void)
{
    static const int modes[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    struct batch batch;
    for (int k = 0; k < 3; k++) {
        double total = 0;
        fesetround(modes[k]);
        for (int round = 0; round < ROUNDS; round++) {
            double mine = (me + 1) / 3.0 + round / 7.0, sum;
            batch_begin(&batch, MPI_COMM_WORLD, round);
            batch_end(&batch);
            MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
            total += sum + sum_slowly(mine);
        }
        if (fegetround() != modes[k])
            wrong("another rounding");
        fesetround(FE_TONEAREST);
        tell_bits("total", total);
    }
}

static double nan_of(int rank)
{
    uint64_t bits = UINT64_C(0x7ff8) << 48 | (uint64_t)(rank & 1) << 63 | (uint64_t)(rank + 1) << 8;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void nans(void)
{
    struct batch batch;
    uint64_t seen = 0;
    for (int round = 0; round < ROUNDS; round++) {
        double mine[4] = {round, nan_of(me), me % 2 ? nan_of(me) : me, me == 1 ? nan_of(me) : 1.5};
        double sum[4];
        uint64_t bits[4];
        batch_begin(&batch, MPI_COMM_WORLD, round);
        batch_end(&batch);
        MPI_Allreduce(mine, sum, 4, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        memcpy(bits, sum, sizeof bits);
        for (int k = 0; k < 4; k++)
            seen = seen * 31 + bits[k];
    }
    say_all("%016llx", (unsigned long long)seen);
}

static char *pages;
static volatile sig_atomic_t n_faults;

static void lift(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)context;
    char *at = info->si_addr;
    if (at < pages || at >= pages + MAX_RANKS * PAGE)
        _exit(9);
    mprotect((void *)((uintptr_t)at & ~(uintptr_t)(PAGE - 1)), PAGE, PROT_READ | PROT_WRITE);
    n_faults++;
}

static void protected(void)
{
    struct sigaction action = {.sa_sigaction = lift, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    pages =
        mmap(NULL, MAX_RANKS * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    warm_up(MPI_COMM_WORLD);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request requests[2 * MAX_RANKS];
        int n = 0, out[MAX_RANKS];
        mprotect(pages, MAX_RANKS * PAGE, PROT_READ);
        for (int r = 0; r < n_ranks; r++)
            if (r != me)
                MPI_Irecv(pages + r * PAGE, 1, MPI_INT, r, BATCH_TAG, MPI_COMM_WORLD,
                          &requests[n++]);
        for (int r = 0; r < n_ranks; r++) {
            out[r] = me * 1000 + round;
            if (r != me)
                MPI_Isend(&out[r], 1, MPI_INT, r, BATCH_TAG, MPI_COMM_WORLD, &requests[n++]);
        }
        if (round % 8 == 7)
            nap(0.01);
        MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
        for (int r = 0; r < n_ranks; r++)
            if (r != me)
                expect_int(*(int *)(void *)(pages + r * PAGE), r * 1000 + round, "in a page");
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (n_faults < ROUNDS)
        wrong("only %d faults", (int)n_faults);
}

static void *on_small_stack(void *unused)
{
    make_ring();
    everything();
    MPI_Comm_free(&ring);
    return unused;
}

static void stack(void)
{
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, (size_t)option(0, 160) << 10);
    if (pthread_create(&thread, &attributes, on_small_stack, NULL))
        wrong("no thread");
    else
        pthread_join(thread, NULL);
}

static void files(void)
{
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = (rlim_t)option(0, 4096);
    setrlimit(RLIMIT_FSIZE, &limit);
    make_ring();
    tell_bits("total", everything());
    MPI_Comm_free(&ring);
}

/* Found by every library that looks for them in the program's scope first. */
#define OWN(name)                                                                                  \
    long name(void);                                                                               \
    long name(void)                                                                                \
    {                                                                                              \
        wrong("%s was called by a stranger", #name);                                               \
        return 5;                                                                                  \
    }
OWN(crc32)
OWN(json_object)
OWN(json_dumps)
OWN(json_integer)
OWN(json_loads)
OWN(cpl_log_write)
OWN(cpl_plan_build)

static void names(void)
{
    make_ring();
    tell_bits("total", everything());
    MPI_Comm_free(&ring);
}

static void start_one(MPI_Request *request, int *sum)
{
    static const int one = 1;
    if (strcmp(word(0, ""), "sum") == 0)
        MPI_Iallreduce(&one, sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, request);
    else
        MPI_Ibarrier(MPI_COMM_WORLD, request);
}

static void order(void)
{
    for (int round = 0; round < 4 * n_ranks; round++) {
        MPI_Request request;
        int sum = n_ranks, done;
        bool starts_first = me == round % n_ranks;
        MPI_Barrier(MPI_COMM_WORLD);
        if (!starts_first)
            MPI_Barrier(MPI_COMM_WORLD);
        start_one(&request, &sum);
        if (starts_first) {
            MPI_Test(&request, &done, MPI_STATUS_IGNORE);
            MPI_Barrier(MPI_COMM_WORLD);
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        expect_int(sum, n_ranks, "sum");
    }
}

int main(int argc, char **argv)
{
    const struct promise_case cases[] = {
        {"traps", traps},         {"flags", flags}, {"rounding", rounding},
        {"nans", nans},           {"files", files}, {"names", names},
        {"protected", protected}, {"stack", stack}, {"order", order}};
    return promise_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
