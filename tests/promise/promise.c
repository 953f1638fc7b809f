/* Functions for all programs of the promise; see promise.h. */
#include "promise.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define N_FLAGS    1024
#define LINE       200
#define FLAGS_FILE "promise.flags"

int me = -1, n_ranks;
static int n_wrong;
static int n_options;
static char **options;
static atomic_int *flags;

void promise_alarm(void)
{
    const char *seconds = getenv("PROMISE_ALARM");
    alarm(seconds ? (unsigned)atoi(seconds) : 50);
    setvbuf(stdout, NULL, _IOLBF, 0);
}

void promise_started(void)
{
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    if (n_ranks > MAX_RANKS) {
        fprintf(stderr, "at most %d ranks\n", MAX_RANKS);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
}

void promise_start(int *argc, char ***argv)
{
    promise_alarm();
    MPI_Init(argc, argv);
    promise_started();
}

int promise_finish(void)
{
    int all = 0;
    MPI_Allreduce(&n_wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    say("%s\n", all ? "WRONG" : "right");
    MPI_Finalize();
    return all != 0;
}

int promise_main(int argc, char **argv, const struct promise_case *cases, size_t n_cases)
{
    promise_start(&argc, &argv);
    options = argv + 2;
    n_options = argc - 2;
    for (size_t i = 0; i < n_cases && argc > 1; i++) {
        if (strcmp(argv[1], cases[i].name) == 0) {
            cases[i].run();
            return promise_finish();
        }
    }
    say("no such case: %s\n", argc > 1 ? argv[1] : "");
    MPI_Finalize();
    return 2;
}

const char *word(int i, const char *otherwise)
{
    return i < n_options ? options[i] : otherwise;
}

long option(int i, long otherwise)
{
    return i < n_options ? atol(options[i]) : otherwise;
}

void wrong(const char *format, ...)
{
    va_list list;
    if (n_wrong++ >= 4)
        return;
    char text[LINE];
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    printf("WRONG, rank %d: %s\n", me, text);
}

void say(const char *format, ...)
{
    va_list list;
    if (me != 0)
        return;
    va_start(list, format);
    vprintf(format, list);
    va_end(list);
    fflush(stdout);
}

void say_all(const char *format, ...)
{
    char line[LINE] = "", all[MAX_RANKS][LINE];
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    MPI_Gather(line, LINE, MPI_CHAR, all, LINE, MPI_CHAR, 0, MPI_COMM_WORLD);
    for (int i = 0; i < n_ranks && me == 0; i++)
        printf("%d: %s\n", i, all[i]);
    fflush(stdout);
}

int class_of(int error)
{
    int class = 0;
    if (error != MPI_SUCCESS)
        MPI_Error_class(error, &class);
    return class;
}

void batch_begin(struct batch *batch, MPI_Comm comm, int round)
{
    int n = 0;
    batch->comm = comm;
    batch->round = round;
    MPI_Comm_rank(comm, &batch->rank);
    MPI_Comm_size(comm, &batch->size);
    for (int i = 0; i < batch->size; i++) {
        batch->in[i] = -1;
        if (i != batch->rank)
            MPI_Irecv(&batch->in[i], 1, MPI_INT, i, BATCH_TAG, comm, &batch->requests[n++]);
    }
    for (int i = 0; i < batch->size; i++) {
        batch->out[i] = batch->rank * 100000 + i * 1000 + round;
        if (i != batch->rank)
            MPI_Isend(&batch->out[i], 1, MPI_INT, i, BATCH_TAG, comm, &batch->requests[n++]);
    }
    batch->n_requests = n;
}

void batch_end(struct batch *batch)
{
    MPI_Waitall(batch->n_requests, batch->requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < batch->size; i++) {
        int wanted = i * 100000 + batch->rank * 1000 + batch->round;
        if (i != batch->rank && batch->in[i] != wanted)
            wrong("round %d from %d: %d, not %d", batch->round, i, batch->in[i], wanted);
    }
}

void warm_rounds(MPI_Comm comm, int rounds)
{
    for (int round = 0; round < rounds; round++) {
        struct batch batch;
        int one = 1, sum = 0;
        batch_begin(&batch, comm, round);
        batch_end(&batch);
        if (round % 2 == 0) {
            MPI_Barrier(comm);
        } else {
            MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
            expect_int(sum, batch.size, "sum of the warm-up");
        }
    }
}

void warm_up(MPI_Comm comm)
{
    warm_rounds(comm, WARM_ROUNDS);
}

int beside(int by)
{
    return ((me + by) % n_ranks + n_ranks) % n_ranks;
}

int partner_of_me(void)
{
    return (me ^ 1) < n_ranks ? me ^ 1 : -1;
}

static unsigned char byte_of(size_t i, int key)
{
    return (unsigned char)((i * 7 + (size_t)key * 31 + (i >> 8)) & 0xff);
}

void fill(void *buffer, size_t n, int key)
{
    unsigned char *bytes = buffer;
    for (size_t i = 0; i < n; i++)
        bytes[i] = byte_of(i, key);
}

void expect(const void *buffer, size_t n, int key, const char *what)
{
    const unsigned char *bytes = buffer;
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] != byte_of(i, key)) {
            wrong("%s: byte %zu of %zu is %d, not %d", what, i, n, bytes[i], byte_of(i, key));
            return;
        }
    }
}

void expect_int(int got, int wanted, const char *what)
{
    if (got != wanted)
        wrong("%s: %d, not %d", what, got, wanted);
}

void flags_open(void)
{
    size_t n = N_FLAGS * sizeof *flags;
    int fd = -1;
    for (int turn = 0; turn < 2; turn++) { /* rank 0 makes the file, then the others open it */
        if ((me == 0) == (turn == 0)) {
            fd = open(FLAGS_FILE, O_RDWR | (me == 0 ? O_CREAT | O_TRUNC : 0), 0600);
            if (fd < 0 || (me == 0 && ftruncate(fd, (off_t)n) != 0))
                MPI_Abort(MPI_COMM_WORLD, 2);
            flags = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
            if (flags == MAP_FAILED)
                MPI_Abort(MPI_COMM_WORLD, 2);
            close(fd);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (me == 0)
        unlink(FLAGS_FILE);
}

void flag_set(int flag, int value)
{
    atomic_store(&flags[flag], value);
}

int flag_get(int flag)
{
    return atomic_load(&flags[flag]);
}

void flag_await(int flag, int value)
{
    while (flag_get(flag) < value)
        nap(0.0002); /* ranks may have real-time priority: do not spin */
}

void nap(double seconds)
{
    struct timespec time = {.tv_sec = (time_t)seconds};
    time.tv_nsec = (long)((seconds - (double)time.tv_sec) * 1e9);
    nanosleep(&time, NULL);
}
