/*
 * Reductions keep their bits: the result of MPI_Allreduce and MPI_Iallreduce on every rank is the
 * one that MPI gives, whatever was reduced before.
 *
 *   bits OPERATION[,OPERATION...] [EXACT] [nonblocking|inplace|three]
 *
 * MPI leaves the order of a reduction open, but a library under the program has no say in it: what
 * MPI gave it must give. The first EXACT reductions (60) are such that any order gives the same
 * bits: ones and zeros. The later ones round, have -0.0 and 0.0 side by side, and ties of them at
 * several ranks. Around each reduction there is a recurring exchange, its messages under way during
 * the reduction, so that they may ride in it. Printed is a hash of all results' bits by rank.
 */
#include "promise.h"

#include <complex.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_COUNT 3
#define ROUNDING  40 /* reductions after the exact ones */

struct operation {
    const char *name;
    MPI_Op op;
    MPI_Datatype type;
    size_t bytes, stride; /* that mean something, and from one element to the next */
    void (*put)(void *element, int round, bool exact, int i);
};

struct double_int {
    double value;
    int index;
};

struct float_int {
    float value;
    int index;
};

/* Sizes that differ much from rank to rank and with digits everywhere. */
static double rounding(int round, int i)
{
    static const double scale[] = {1e3, 1.0, -1e-3, 7e8, -7e8};
    return scale[(me + round) % 5] / (3.0 + me * 7.0 + round + i);
}

static void put_double(void *element, int round, bool exact, int i)
{
    *(double *)element = exact ? (double)(round % 2) : rounding(round, i);
}

static void put_float(void *element, int round, bool exact, int i)
{
    *(float *)element = exact ? (float)(round % 2) : (float)rounding(round, i);
}

static void put_long_double(void *element, int round, bool exact, int i)
{
    *(long double *)element = exact ? 1.0L : (long double)rounding(round, i) / 3.0L;
}

static void put_complex(void *element, int round, bool exact, int i)
{
    double x = exact ? 1.0 : rounding(round, i), y = exact ? 0.0 : rounding(round + 2, i + 1);
    *(double complex *)element = x + y * I;
}

static void put_factor(void *element, int round, bool exact, int i)
{
    *(double *)element = exact ? 1.0 : 1.0 + 1.0 / (3.0 + me + round + i);
}

/* Zeros of both signs: which of them comes out depends on the order. */
static double zero(int round, bool exact)
{
    return !exact && (me + round) % 3 == 0 ? -0.0 : 0.0;
}

static void put_zero(void *element, int round, bool exact, int i)
{
    *(double *)element = zero(round + i, exact);
}

static void put_double_int(void *element, int round, bool exact, int i)
{
    struct double_int pair = {zero(round + i, exact), exact ? me : (me * 5 + round) % n_ranks};
    *(struct double_int *)element = pair;
}

static void put_float_int(void *element, int round, bool exact, int i)
{
    struct float_int pair = {(float)zero(round + i, exact), exact ? me : (me + round) % 3};
    *(struct float_int *)element = pair;
}

static int find(const char *name, struct operation *found)
{
    const size_t d = sizeof(double), f = sizeof(float), ld = sizeof(long double);
    const size_t c = sizeof(double complex), di = sizeof(struct double_int);
    const size_t fi = sizeof(struct float_int);
    const struct operation all[] = {
        {"sum", MPI_SUM, MPI_DOUBLE, d, d, put_double},
        {"sumf", MPI_SUM, MPI_FLOAT, f, f, put_float},
        {"suml", MPI_SUM, MPI_LONG_DOUBLE, 10, ld, put_long_double}, /* 10 bytes of x87 */
        {"sumc", MPI_SUM, MPI_C_DOUBLE_COMPLEX, c, c, put_complex},
        {"prod", MPI_PROD, MPI_DOUBLE, d, d, put_factor},
        {"prodc", MPI_PROD, MPI_C_DOUBLE_COMPLEX, c, c, put_complex},
        {"max", MPI_MAX, MPI_DOUBLE, d, d, put_zero},
        {"min", MPI_MIN, MPI_DOUBLE, d, d, put_zero},
        {"maxloc", MPI_MAXLOC, MPI_DOUBLE_INT, 12, di, put_double_int},
        {"minloc", MPI_MINLOC, MPI_DOUBLE_INT, 12, di, put_double_int},
        {"maxlocf", MPI_MAXLOC, MPI_FLOAT_INT, fi, fi, put_float_int},
        {"minlocf", MPI_MINLOC, MPI_FLOAT_INT, fi, fi, put_float_int},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (strcmp(all[i].name, name) == 0) {
            *found = all[i];
            return 1;
        }
    }
    return 0;
}

static void reduce(const void *in, void *out, int count, const struct operation *what,
                   const char *way)
{
    if (strcmp(way, "nonblocking") == 0) {
        MPI_Request request;
        MPI_Iallreduce(in, out, count, what->type, what->op, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else if (strcmp(way, "inplace") == 0) {
        memcpy(out, in, (size_t)count * what->stride);
        MPI_Allreduce(MPI_IN_PLACE, out, count, what->type, what->op, MPI_COMM_WORLD);
    } else {
        MPI_Allreduce(in, out, count, what->type, what->op, MPI_COMM_WORLD);
    }
}

static void series(const struct operation *what, int n_exact, const char *way)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    int count = strcmp(way, "three") == 0 ? MAX_COUNT : 1;
    for (int round = 0; round < n_exact + ROUNDING; round++) {
        _Alignas(16) unsigned char in[MAX_COUNT * 32] = {0}, out[MAX_COUNT * 32] = {0};
        struct batch batch;
        batch_begin(&batch, MPI_COMM_WORLD, round);
        for (int i = 0; i < count; i++)
            what->put(in + (size_t)i * what->stride, round, round < n_exact, i);
        reduce(in, out, count, what, way);
        batch_end(&batch);
        for (int i = 0; i < count; i++) {
            for (size_t k = 0; k < what->bytes; k++)
                hash = (hash ^ out[(size_t)i * what->stride + k]) * UINT64_C(0x100000001b3);
        }
    }
    say_all("%s %016llx", what->name, (unsigned long long)hash);
}

int main(int argc, char **argv)
{
    struct operation what;
    char names[200];
    promise_start(&argc, &argv);
    snprintf(names, sizeof names, "%s", argc > 1 ? argv[1] : "sum");
    for (char *name = strtok(names, ","); name; name = strtok(NULL, ",")) {
        if (!find(name, &what)) {
            say("no such operation: %s\n", name);
            MPI_Finalize();
            return 2;
        }
        series(&what, argc > 2 ? atoi(argv[2]) : 60, argc > 3 ? argv[3] : "");
    }
    return promise_finish();
}
