/*
 * The distributed array without memory: on one rank after the other each allocation fails, alone or
 * with all that follow. Creation and steps then succeed on all ranks or give all of them an error;
 * a request that could not be queued can be queued again; a failed step leaves an array that does
 * the next step right; nothing is lost.
 *
 *   array_memory
 *
 * Its heap is failing_heap.h's: the array's and the planner's, not MPI's and hwloc's.
 */
#include "carpool_array.h"
#include "common.h"
#include "failing_heap.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    N_OWN = 40,      /* elements of a rank */
    N_REQUESTS = 90, /* of a kind */
    EACH_UP_TO = 40, /* allocations that fail one by one; of the later ones ... */
    STEP = 5         /* ... every so many */
};

/* Whether the call failed; all ranks must agree on that. */
static bool all_failed(int code, const char *what, const char *method)
{
    int mine[2] = {code != MPI_SUCCESS, code == MPI_SUCCESS};
    MPI_Allreduce(MPI_IN_PLACE, mine, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (mine[0] && mine[1])
        test_fail("%s: %s failed on some ranks only", method, what);
    return mine[0];
}

static int64_t index_of(int who, int k)
{
    return (int64_t)((who * 7 + k * k * 3) % (test_size() * N_OWN));
}

/* Queues a step's requests, again what could not be queued at first: nothing was then. */
static void queue(carpool_array *array, int step, int64_t *got)
{
    bool was_counting = heap.counts;
    for (int k = 0; k < N_REQUESTS; k++) {
        int64_t index = index_of(test_rank(), k), value = index * 100 + step;
        for (int try = 0; try < 2; try++) {
            heap.counts = was_counting && try == 0;
            if (carpool_array_write(array, index, &value) == MPI_SUCCESS)
                break;
        }
        got[k] = -1;
        for (int try = 0; try < 2; try++) {
            heap.counts = was_counting && try == 0;
            if (carpool_array_read(array, index, &got[k]) == MPI_SUCCESS)
                break;
        }
        heap.counts = was_counting;
    }
}

static void check_read(const int64_t *got, int step, const char *method)
{
    for (int k = 0; k < N_REQUESTS; k++)
        if (got[k] != index_of(test_rank(), k) * 100 + step)
            test_fail("%s: read %d of step %d is %lld", method, k, step, (long long)got[k]);
}

/* One array, with allocation fail_at of a rank failing; returns whether any has failed. */
static bool run(MPI_Comm comm, const struct carpool_array_options *options, int victim,
                int64_t fail_at, bool goes_on)
{
    int64_t got[N_REQUESTS], live = heap.n_live;
    carpool_array *array = NULL;
    heap.fail_at = test_rank() == victim ? fail_at : -1;
    heap.goes_on = goes_on && test_rank() == victim;
    heap.n_calls = heap.n_failed = 0;
    heap.counts = true;
    int code =
        carpool_array_create(comm, (int64_t)test_size() * N_OWN, sizeof *got, options, &array);
    if (!all_failed(code, "creation", options->method)) {
        queue(array, 1, got);
        if (!all_failed(carpool_array_step(array), "a step", options->method))
            check_read(got, 1, options->method);
        heap.counts = false;
        queue(array, 2, got);
        if (all_failed(carpool_array_step(array), "the step after", options->method))
            test_fail("%s: the step after fails, too", options->method);
        check_read(got, 2, options->method);
        carpool_array_free(&array);
        live++; /* the handle, until MPI_Finalize */
    }
    heap.counts = false;
    if (heap.n_live > live + (code != MPI_SUCCESS) || heap.n_live < live)
        test_fail("%s: allocation %lld fails: %lld are not freed", options->method,
                  (long long)fail_at, (long long)(heap.n_live - live));
    int has_failed = heap.n_failed > 0;
    MPI_Allreduce(MPI_IN_PLACE, &has_failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return has_failed;
}

static int sweep(MPI_Comm comm, const char *method, enum carpool_array_policy policy,
                 int64_t memory)
{
    struct carpool_array_options options = CARPOOL_ARRAY_OPTIONS;
    int n = 0;
    options.method = method;
    options.policy = policy;
    options.type = MPI_INT64_T;
    options.memory = memory;
    options.ranks_per_node = 2;
    for (int goes_on = 0; goes_on < 2; goes_on++)
        for (int64_t at = 1;; at += at < EACH_UP_TO ? 1 : STEP) {
            if (!run(comm, &options, (int)(at % test_size()), at, goes_on))
                break;
            n++;
        }
    return n;
}

int main(int argc, char **argv)
{
    static const char *const known[] = {NULL};
    MPI_Comm comm;
    int n = 0;
    test_start(&argc, &argv, known);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    n += sweep(comm, "sort:equal", CARPOOL_ARRAY_LAST, 0);
    n += sweep(comm, "sort:hypercube", CARPOOL_ARRAY_MAX, 2000); /* rounds */
    n += sweep(comm, "hash:hypercube", CARPOOL_ARRAY_MAX, 0);
    n += sweep(comm, "tree:equal:1", CARPOOL_ARRAY_FIRST, 0);
    n += sweep(comm, "envelope-sort:locality", CARPOOL_ARRAY_LAST, 0);
    n += sweep(comm, "envelope-hash:hypercube", CARPOOL_ARRAY_LAST, 2000);
    n += sweep(comm, "plain", CARPOOL_ARRAY_LAST, 0);
    n += sweep(comm, "plain", CARPOOL_ARRAY_MAX, 1000);
    n += sweep(comm, "auto", CARPOOL_ARRAY_MAX, 0);
    if (n < 9 * 20)
        test_fail("only %d allocations failed", n);
    MPI_Comm_free(&comm);
    return test_finish();
}
