/*
 * The distributed array: erroneous calls between good ones change nothing and give clear texts
 * through the communicator's error handler; the counts of requests in each stage; how method auto
 * chooses.
 *
 *   array_errors
 */
#include "carpool_array.h"
#include "common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_OWN 32 /* elements of a rank */

static int n_handled;
static char said[MPI_MAX_ERROR_STRING];

static void on_error(MPI_Comm *comm, int *code, ...)
{
    int length;
    (void)comm;
    MPI_Error_string(*code, said, &length);
    n_handled++;
}

/* The call before this failed, its handler was called once, and the text has the words. */
static void expect(int code, const char *words)
{
    if (code == MPI_SUCCESS || n_handled != 1 || !strstr(said, words))
        test_fail("code %d, handler called %d times, said '%s', not '%s'", code, n_handled, said,
                  words);
    n_handled = 0;
    said[0] = 0;
}

/* A good step: every rank writes its number to its successor's first element and reads it back
 * from there. */
static void good_step(MPI_Comm comm, carpool_array *array, int64_t wrong_index)
{
    int rank = test_rank(), next = (rank + 1) % test_size(), got = -1;
    int64_t index = (int64_t)next * N_OWN;
    int codes[3];
    (void)comm;
    codes[0] = carpool_array_write(array, index, &rank);
    if (wrong_index != INT64_MAX) {
        expect(carpool_array_write(array, wrong_index, &rank), "is not one of an array of length");
        expect(carpool_array_read(array, wrong_index, &got), "is not one of an array of length");
        expect(carpool_array_read(array, index, NULL), "the address is NULL");
        expect(carpool_array_write(array, index, NULL), "the address of the value is NULL");
    }
    codes[1] = carpool_array_read(array, index, &got);
    codes[2] = carpool_array_step(array);
    if (codes[0] || codes[1] || codes[2] || n_handled || got != rank)
        test_fail("a good step gives codes %d %d %d, %d errors, reads %d", codes[0], codes[1],
                  codes[2], n_handled, got);
}

static void bad_arguments(MPI_Comm comm)
{
    struct carpool_array_options options = CARPOOL_ARRAY_OPTIONS;
    carpool_array *array = NULL;
    int64_t length = test_rank() == 0 ? 5 : 6;
    expect(carpool_array_create(comm, -1, 4, NULL, &array), "the length is -1");
    expect(carpool_array_create(comm, 10, 0, NULL, &array), "an element has 0 bytes");
    expect(carpool_array_create(comm, 10, (size_t)1 << 30, NULL, &array), "an element has");
    if (test_size() > 1) {
        expect(carpool_array_create(comm, length, 4, NULL, &array),
               "the length is not the same on all ranks");
        expect(carpool_array_create(comm, 5, test_rank() == 0 ? 0 : 4, NULL, &array),
               test_rank() == 0 ? "an element has 0 bytes" : "another rank passed arguments");
    }
    options.method = "sort:octahedron";
    expect(carpool_array_create(comm, 10, 4, &options, &array), "route 'octahedron' is not known");
    options.method = "fold";
    expect(carpool_array_create(comm, 10, 4, &options, &array), "method 'fold' is not known");
    options.method = "sort:1x1";
    if (test_size() > 1)
        expect(carpool_array_create(comm, 10, 4, &options, &array), "does not hold");
    options = (struct carpool_array_options)CARPOOL_ARRAY_OPTIONS;
    options.policy = CARPOOL_ARRAY_SUM;
    expect(carpool_array_create(comm, 10, 4, &options, &array), "need the datatype");
    options.type = MPI_DOUBLE;
    expect(carpool_array_create(comm, 10, 12, &options, &array), "are not made of the type");
    options.policy = CARPOOL_ARRAY_USER;
    expect(carpool_array_create(comm, 10, 8, &options, &array), "needs options.function");
    options.policy = CARPOOL_ARRAY_LAST;
    options.machine = "/nowhere/machine";
    expect(carpool_array_create(comm, 10, 8, &options, &array), "options.machine: ");
    if (array)
        test_fail("an erroneous creation set the array");
}

static void after_free(carpool_array *freed)
{
    int value = 0;
    int64_t first, n;
    void *elements;
    MPI_Errhandler handler, before;
    MPI_Comm_create_errhandler(on_error, &handler);
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    expect(carpool_array_read(freed, 0, &value), "the array is NULL or was freed");
    expect(carpool_array_write(freed, 0, &value), "the array is NULL or was freed");
    expect(carpool_array_step(freed), "carpool_array_step: the array is NULL or was freed");
    expect(carpool_array_block(freed, &first, &n, &elements), "the array is NULL or was freed");
    expect(carpool_array_free(&freed), "the array is NULL or was freed");
    expect(carpool_array_read(NULL, 0, &value), "the array is NULL or was freed");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, before);
    MPI_Errhandler_free(&before);
    MPI_Errhandler_free(&handler);
}

/* All ranks ask for all elements of the last rank: with a hypercube one request for each element
 * arrives there in the last stage, with plain messages one of each rank. */
static void count_overload(MPI_Comm comm, const char *method, int n_expected)
{
    struct carpool_array_options options = CARPOOL_ARRAY_OPTIONS;
    struct carpool_array_counts counts;
    int owner = test_size() - 1, got[N_OWN];
    carpool_array *array;
    options.method = method;
    carpool_array_create(comm, (int64_t)test_size() * N_OWN, sizeof(int), &options, &array);
    for (int k = 0; k < N_OWN; k++) {
        carpool_array_read(array, (int64_t)owner * N_OWN + k, &got[k]);
        carpool_array_read(array, (int64_t)owner * N_OWN + k, &got[k]); /* folded here */
    }
    carpool_array_step(array);
    carpool_array_count(array, &counts);
    int64_t received = counts.reads_received[counts.n_stages - 1];
    if (counts.reads != 2 * N_OWN || counts.writes != 0 || counts.rounds != 1)
        test_fail("%s: %lld reads, %lld writes, %lld rounds", method, (long long)counts.reads,
                  (long long)counts.writes, (long long)counts.rounds);
    if (test_rank() == owner && received != (int64_t)n_expected * N_OWN)
        test_fail("%s: the owner got %lld requests in the last stage, not %d", method,
                  (long long)received, n_expected * N_OWN);
    for (int s = 0; s < counts.n_stages && strcmp(method, "plain") != 0; s++)
        if (counts.reads_sent[s] > N_OWN)
            test_fail("%s: %lld requests sent in stage %d", method, (long long)counts.reads_sent[s],
                      s);
    carpool_array_free(&array);
}

/* Method auto: the same steps again and again, of two sizes in turns, with results that are known;
 * all ranks have the same method in each step, several are tried, and one is kept. */
static void choose_ways(MPI_Comm comm, enum carpool_array_policy policy, int may_measure)
{
    enum { N_STEPS = 90, N_TEXT = 100 };
    struct carpool_array_options options = CARPOOL_ARRAY_OPTIONS;
    char seen[N_STEPS][N_TEXT], of_root[N_TEXT], kept[N_TEXT] = "";
    int n_seen = 0, n_ranks = test_size(), n_changes = 0;
    carpool_array *array;
    options.policy = policy;
    options.type = policy == CARPOOL_ARRAY_SUM ? MPI_DOUBLE : MPI_INT64_T;
    options.machine = "edr";
    carpool_array_create(comm, 5 * n_ranks, 8, &options, &array);
    for (int step = 0; step < N_STEPS; step++) {
        int n = step % 2 ? 300 : 1, k;
        int64_t value = test_rank() + step, read[300];
        double real = 1, got[300];
        const char *text;
        for (k = 0; k < n; k++) {
            carpool_array_write(array, 7 % (5 * n_ranks),
                                policy == CARPOOL_ARRAY_SUM ? (void *)&real : (void *)&value);
            carpool_array_read(array, 7 % (5 * n_ranks),
                               policy == CARPOOL_ARRAY_SUM ? (void *)&got[k] : (void *)&read[k]);
        }
        carpool_array_step(array);
        for (k = 0; k < n; k++)
            if (policy == CARPOOL_ARRAY_SUM ? got[k] != (double)n * n_ranks
                                            : read[k] != step + n_ranks - 1)
                test_fail("auto: read %d of step %d is wrong", k, step);
        carpool_array_method(array, &text);
        snprintf(of_root, sizeof of_root, "%s", text);
        MPI_Bcast(of_root, N_TEXT, MPI_CHAR, 0, comm);
        if (strcmp(of_root, text) != 0)
            test_fail("auto: step %d is %s on rank 0, %s here", step, of_root, text);
        for (k = 0; k < n_seen && strcmp(seen[k], text) != 0; k++)
            continue;
        if (k == n_seen)
            snprintf(seen[n_seen++], N_TEXT, "%s", text);
        if (step % 2 == 0 && step > 62) { /* after the trial of this size */
            n_changes += *kept && strcmp(kept, text) != 0;
            snprintf(kept, sizeof kept, "%s", text);
        }
    }
    if (n_seen < (may_measure && n_ranks > 1 ? 2 : 1) || (!may_measure && n_seen > 2) || n_changes)
        test_fail("auto: %d methods were used, %d changes at the end", n_seen, n_changes);
    carpool_array_free(&array);
}

int main(int argc, char **argv)
{
    static const char *const known[] = {NULL};
    MPI_Comm comm;
    MPI_Errhandler handler;
    carpool_array *array, *freed;
    test_start(&argc, &argv, known);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_create_errhandler(on_error, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    bad_arguments(comm);
    int64_t length = (int64_t)test_size() * N_OWN;
    if (carpool_array_create(comm, length, sizeof(int), NULL, &array))
        test_fail("an array cannot be made");
    good_step(comm, array, INT64_MAX);
    good_step(comm, array, -1);
    good_step(comm, array, length);
    good_step(comm, array, INT64_MIN);
    freed = array;
    carpool_array_free(&array);
    if (array)
        test_fail("free leaves the handle");
    after_free(freed);
    choose_ways(comm, CARPOOL_ARRAY_MAX, 1);
    choose_ways(comm, CARPOOL_ARRAY_SUM, 0);
    count_overload(comm, "plain", test_size() - 1);
    if (test_size() > 1 && (test_size() & (test_size() - 1)) == 0) {
        count_overload(comm, "sort:hypercube", 1);
        count_overload(comm, "hash:hypercube", 1);
        count_overload(comm, "tree:hypercube", 1);
        count_overload(comm, "envelope-sort:hypercube", 1);
        count_overload(comm, "envelope-hash:hypercube", 1);
    }
    if (test_size() == 16)
        count_overload(comm, "sort:4x4", 3);
    MPI_Errhandler_free(&handler);
    MPI_Comm_free(&comm);
    return test_finish();
}
