/*
 * The distributed array against a serial program: every rank knows all requests of all ranks (they
 * come from one seed), carries them out in an array of its own, and compares what it read and, at
 * the end of each step, its block.
 *
 *   array [--steps N] [--seed N] [--method TEXT] [--quick]
 *
 * Without --method all variants, routes, policies and aggregations take turns. Prints one line.
 */
#include "carpool_array.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const methods[] = {"plain",
                                      "auto",
                                      "sort",
                                      "sort:hypercube",
                                      "hash:hypercube",
                                      "tree:equal",
                                      "envelope-sort:increase",
                                      "envelope-hash:hypercube",
                                      "sort:decrease",
                                      "hash:hourglass",
                                      "tree:inverse-hourglass",
                                      "sort:locality",
                                      "envelope-hash:locality",
                                      "envelope-sort:decrease",
                                      "sort:1x32",
                                      "hash:plain",
                                      "tree:plain",
                                      "hash:equal:1",
                                      "sort:far:equal",
                                      "hash:far:hypercube",
                                      "tree:far:hourglass",
                                      "envelope-sort:far:increase",
                                      "sort:far:locality"};
enum { N_METHODS = sizeof methods / sizeof *methods, N_SIZES = 6, MOST_SIZE = 1000 };
static const size_t sizes[N_SIZES] = {8, 1, 4, 24, 16, MOST_SIZE};

static int rank, n_ranks, n_wrong;
static uint64_t seed = 1;

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t x = a * UINT64_C(0x9e3779b97f4a7c15) + b;
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

struct trial {
    uint64_t seed;
    int64_t length;
    size_t size;
    int most; /* requests of a kind and rank */
    int kind; /* where indices lie */
    struct carpool_array_options options;
};

static int n_requests(const struct trial *t, int step, int kind, int who)
{
    uint64_t r = mix(t->seed + (uint64_t)(step * 2 + kind), (uint64_t)who);
    if (t->length == 0 || r % 8 == 0)
        return 0;
    return (int)(mix(r, 1) % (uint64_t)(t->most + 1));
}

static int64_t index_of(const struct trial *t, int step, int kind, int who, int k)
{
    uint64_t r = mix(mix(t->seed + (uint64_t)(step * 2 + kind), (uint64_t)who), (uint64_t)k + 7);
    uint64_t n = (uint64_t)t->length, few = n < 5 ? n : 5;
    switch (t->kind) {
    case 0: /* anywhere */
        return (int64_t)(r % n);
    case 1: /* few */
        return (int64_t)((r % few) * (n / few));
    case 2: /* skewed */
        return (int64_t)(mix(r, 2) % (1 + r % n));
    default: /* one block */
        return (int64_t)(r % ((n + (uint64_t)n_ranks - 1) / (uint64_t)n_ranks));
    }
}

static void value_of(const struct trial *t, int step, int who, int k, char *value)
{
    for (size_t b = 0; b < t->size; b += 8) {
        uint64_t word =
            mix(mix(t->seed, (uint64_t)step * 1000 + (uint64_t)who), (uint64_t)k * 200 + b / 8);
        memcpy(value + b, &word, t->size - b < 8 ? t->size - b : 8);
    }
}

static void add_bytes(void *inout, const void *in, size_t size, void *context)
{
    unsigned char *to = inout;
    const unsigned char *from = in;
    for (size_t k = 0; k < size; k++)
        to[k] = (unsigned char)(to[k] + from[k] + *(const unsigned char *)context);
}

static unsigned char one = 1;

/* As the policy says, but by hand. */
static void combine(const struct trial *t, char *value, const char *written, int is_first)
{
    enum carpool_array_policy policy = t->options.policy;
    int is_less = 0;
    if (is_first || policy == CARPOOL_ARRAY_LAST) {
        memcpy(value, written, t->size);
        return;
    }
    if (policy == CARPOOL_ARRAY_USER)
        add_bytes(value, written, t->size, &one);
    for (size_t b = 0; b < t->size && policy >= CARPOOL_ARRAY_MIN && policy <= CARPOOL_ARRAY_SUM;
         b++) {
        signed char old = (signed char)value[b], now = (signed char)written[b];
        is_less = policy == CARPOOL_ARRAY_SUM ? 0 : now < old;
        if (policy == CARPOOL_ARRAY_SUM)
            value[b] = (char)(old + now);
        else
            value[b] = (char)(is_less == (policy == CARPOOL_ARRAY_MIN) ? now : old);
    }
}

static void serial_writes(const struct trial *t, int step, char *model, char *is_written)
{
    char value[MOST_SIZE];
    memset(is_written, 0, (size_t)t->length + 1);
    for (int who = 0; who < n_ranks; who++)
        for (int k = 0; k < n_requests(t, step, 0, who); k++) {
            int64_t index = index_of(t, step, 0, who, k);
            value_of(t, step, who, k, value);
            combine(t, model + (size_t)index * t->size, value, !is_written[index]);
            is_written[index] = 1;
        }
}

static void wrong(const struct trial *t, const char *what, int step, int64_t index)
{
    if (n_wrong++ % 50 == 0)
        printf("FAIL rank %d: %s of element %lld in step %d: method %s, policy %d, aggregation %d, "
               "length %lld, size %zu, indices %d\n",
               rank, what, (long long)index, step, t->options.method, (int)t->options.policy,
               (int)t->options.aggregation, (long long)t->length, t->size, t->kind);
}

static void run_step(const struct trial *t, int step, carpool_array *array, char *model,
                     char *is_written)
{
    int n_writes = n_requests(t, step, 0, rank), n_reads = n_requests(t, step, 1, rank);
    char *got = malloc((size_t)n_reads * t->size + 1), value[MOST_SIZE], *block;
    int64_t first, n;
    for (int k = 0; k < n_writes || k < n_reads; k++) {
        if (k < n_writes) {
            value_of(t, step, rank, k, value);
            carpool_array_write(array, index_of(t, step, 0, rank, k), value);
        }
        if (k < n_reads)
            carpool_array_read(array, index_of(t, step, 1, rank, k), got + (size_t)k * t->size);
    }
    carpool_array_step(array);
    serial_writes(t, step, model, is_written);
    for (int k = 0; k < n_reads; k++) {
        int64_t index = index_of(t, step, 1, rank, k);
        if (memcmp(got + (size_t)k * t->size, model + (size_t)index * t->size, t->size) != 0)
            wrong(t, "read", step, index);
    }
    carpool_array_block(array, &first, &n, (void **)&block);
    if (memcmp(block, model + (size_t)first * t->size, (size_t)n * t->size) != 0)
        wrong(t, "block", step, first);
    free(got);
}

static void run_trial(const struct trial *t, int n_steps)
{
    carpool_array *array = NULL;
    char *model = calloc((size_t)t->length + 1, t->size);
    char *is_written = malloc((size_t)t->length + 1);
    int code = carpool_array_create(MPI_COMM_WORLD, t->length, t->size, &t->options, &array);
    if (code == MPI_SUCCESS) {
        for (int step = 0; step < n_steps; step++)
            run_step(t, step, array, model, is_written);
        carpool_array_free(&array);
    } else {
        wrong(t, "creation", -1, 0);
    }
    free(model);
    free(is_written);
}

/* "sort:1x32" and the like, for as many ranks as there are. */
static const char *fitting(const char *method, char *text, size_t bytes)
{
    if (strcmp(method, "sort:1x32") != 0)
        return method;
    int half = 1;
    while (half * half < n_ranks)
        half++;
    snprintf(text, bytes, "sort:%dx%d", (n_ranks + half - 1) / half, half);
    return text;
}

static struct trial make_trial(int number, const char *method, char *text, size_t bytes)
{
    static const int64_t lengths[] = {0, 1, 7, 64, 1000, 5000};
    struct trial t = {.seed = mix(seed, (uint64_t)number), .options = CARPOOL_ARRAY_OPTIONS};
    uint64_t r = mix(t.seed, 99);
    t.size = sizes[r % N_SIZES];
    t.length = lengths[r / 8 % 6];
    t.kind = (int)(r / 64 % 4);
    t.most = t.size == MOST_SIZE ? 40 : (int)(r / 256 % 3) * 150 + 20;
    t.options.policy = (enum carpool_array_policy)(r / 1024 % 6);
    t.options.type = MPI_SIGNED_CHAR; /* MPICH 4.0.2 takes unsigned ones for signed */
    t.options.function = add_bytes;
    t.options.context = &one;
    t.options.aggregation = (enum carpool_array_aggregation)(r / 8192 % 3);
    if (r / 32768 % 3 == 0)
        t.options.memory = 1 + (int64_t)(r / 131072 % 20000);
    t.options.ranks_per_node = (int)(r / 262144 % 4);
    t.options.method = fitting(method ? method : methods[number % N_METHODS], text, bytes);
    return t;
}

/* Method auto sorts as long as it knows of no requests for the same elements, then hashes. Policy
 * USER has the model decide, not the clock. */
static void check_auto(void)
{
    enum { N_READS = 5000, N_ELEMENTS = 8 };
    struct carpool_array_options options = CARPOOL_ARRAY_OPTIONS;
    carpool_array *array;
    const char *method;
    char got[8];
    options.policy = CARPOOL_ARRAY_USER;
    options.function = add_bytes;
    options.context = &one;
    carpool_array_create(MPI_COMM_WORLD, N_READS, sizeof got, &options, &array);
    for (int step = 0; step < 4; step++) {
        for (int k = 0; k < N_READS; k++)
            carpool_array_read(array, step < 3 ? k % N_ELEMENTS : k, got);
        carpool_array_step(array);
        carpool_array_method(array, &method);
        /* the last step's indices are all different, but nobody knows that before */
        if ((strncmp(method, "hash:", 5) == 0) != (step > 0)) {
            printf("FAIL rank %d: method %s in step %d of auto\n", rank, method, step);
            n_wrong++;
        }
    }
    carpool_array_free(&array);
}

int main(int argc, char **argv)
{
    int n_trials = 48, all_wrong = 0;
    const char *method = NULL;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    for (int k = 1; k + 1 < argc; k += 2) {
        if (strcmp(argv[k], "--trials") == 0)
            n_trials = atoi(argv[k + 1]);
        else if (strcmp(argv[k], "--seed") == 0)
            seed = strtoull(argv[k + 1], NULL, 10);
        else if (strcmp(argv[k], "--method") == 0)
            method = argv[k + 1];
    }
    for (int k = 0; k < n_trials; k++) {
        char text[40];
        struct trial t = make_trial(k, method, text, sizeof text);
        run_trial(&t, 2);
    }
    check_auto();
    MPI_Reduce(&n_wrong, &all_wrong, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d arrays, %d wrong\n", n_trials, all_wrong);
    MPI_Finalize();
    return all_wrong != 0;
}
