/*
 * Minima, maxima and sums of the distributed array by datatype, against MPI_Reduce_local in the
 * order of the ranks: types that the array combines itself, others, several in an element.
 *
 *   array_types
 *
 * Values are such that sums do not depend on the order: whole numbers, or quarters of some.
 */
#include "carpool_array.h"
#include "common.h"

#include <stdlib.h>
#include <string.h>

enum { N_ELEMENTS = 12, N_WRITES = 40, N_BASIC = 3, MOST_BYTES = 8 * N_BASIC };

enum kind { SIGNED, UNSIGNED, REAL };

struct type {
    const char *name;
    MPI_Datatype type;
    enum kind kind;
    int size;
};

/* Numbers near zero of both signs; unsigned ones up to the greatest. */
static void draw(struct test_rng *rng, const struct type *type, char *value)
{
    for (int k = 0; k < N_BASIC; k++) {
        uint64_t bits = test_next(rng);
        int64_t small = (int64_t)(bits >> 44) - (1 << 19);
        char *to = value + k * type->size;
        if (type->kind == UNSIGNED)
            memcpy(to, &bits, (size_t)type->size);
        else if (type->kind == REAL && type->size == 4)
            memcpy(to, &(float){(float)small / 4}, 4);
        else if (type->kind == REAL)
            memcpy(to, &(double){(double)small / 4}, 8);
        else if (type->size == 1)
            memcpy(to, &(signed char){(signed char)(small % 3)}, 1);
        else if (type->size == 4)
            memcpy(to, &(int32_t){(int32_t)small}, 4);
        else
            memcpy(to, &(int64_t){small * (INT64_C(1) << 30)}, 8);
    }
}

/* The elements that all ranks' writes of a trial make; is_written says which there are. */
static void expect(const struct type *type, MPI_Op op, uint64_t key, char *element,
                   bool *is_written)
{
    for (int who = 0; who < test_size(); who++) {
        struct test_rng rng = {test_key(key, who)};
        for (int k = 0; k < N_WRITES; k++) {
            int index = test_below(&rng, N_ELEMENTS);
            _Alignas(16) char value[MOST_BYTES];
            char *to = element + index * MOST_BYTES;
            draw(&rng, type, value);
            if (is_written[index])
                MPI_Reduce_local(value, to, N_BASIC, type->type, op);
            else
                memcpy(to, value, sizeof value);
            is_written[index] = true;
        }
    }
}

static void run(const struct type *type, enum carpool_array_policy policy, MPI_Op op,
                const char *method, uint64_t key)
{
    _Alignas(16) static char element[N_ELEMENTS * MOST_BYTES], got[N_ELEMENTS * MOST_BYTES];
    bool is_written[N_ELEMENTS] = {false};
    struct carpool_array_options options = CARPOOL_ARRAY_OPTIONS;
    carpool_array *array;
    size_t size = (size_t)type->size * N_BASIC;
    struct test_rng rng = {test_key(key, test_rank())};

    options.policy = policy;
    options.type = type->type;
    options.method = method;
    carpool_array_create(MPI_COMM_WORLD, N_ELEMENTS, size, &options, &array);
    for (int k = 0; k < N_WRITES; k++) {
        char value[MOST_BYTES];
        int index = test_below(&rng, N_ELEMENTS);
        draw(&rng, type, value);
        carpool_array_write(array, index, value);
    }
    for (int k = 0; k < N_ELEMENTS; k++)
        carpool_array_read(array, k, got + k * MOST_BYTES);
    carpool_array_step(array);
    carpool_array_free(&array);
    expect(type, op, key, element, is_written);
    for (int k = 0; k < N_ELEMENTS; k++)
        if (is_written[k] && memcmp(element + k * MOST_BYTES, got + k * MOST_BYTES, size) != 0)
            test_fail("%s, policy %d, method %s: element %d is wrong", type->name, (int)policy,
                      method, k);
}

int main(int argc, char **argv)
{
    static const char *const known[] = {NULL};
    static const char *const methods[] = {"plain", "sort", "hash"};
    test_start(&argc, &argv, known);
    const struct type types[] = {
        {"MPI_INT", MPI_INT, SIGNED, 4},
        {"MPI_INT32_T", MPI_INT32_T, SIGNED, 4},
        {"MPI_INT64_T", MPI_INT64_T, SIGNED, 8},
        {"MPI_LONG", MPI_LONG, SIGNED, (int)sizeof(long)},
        {"MPI_LONG_LONG", MPI_LONG_LONG, SIGNED, 8},
        {"MPI_SIGNED_CHAR", MPI_SIGNED_CHAR, SIGNED, 1},
        {"MPI_UNSIGNED", MPI_UNSIGNED, UNSIGNED, 4},
        {"MPI_UINT32_T", MPI_UINT32_T, UNSIGNED, 4},
        {"MPI_UINT64_T", MPI_UINT64_T, UNSIGNED, 8},
        {"MPI_UNSIGNED_LONG", MPI_UNSIGNED_LONG, UNSIGNED, (int)sizeof(long)},
        {"MPI_UNSIGNED_LONG_LONG", MPI_UNSIGNED_LONG_LONG, UNSIGNED, 8},
        {"MPI_UINT16_T", MPI_UINT16_T, UNSIGNED, 2},
        {"MPI_FLOAT", MPI_FLOAT, REAL, 4},
        {"MPI_DOUBLE", MPI_DOUBLE, REAL, 8}};
    enum { N_TYPES = sizeof types / sizeof *types };
    const MPI_Op ops[] = {MPI_MIN, MPI_MAX, MPI_SUM};
    for (int t = 0; t < N_TYPES; t++)
        for (int o = 0; o < 3; o++)
            run(&types[t], (enum carpool_array_policy)(CARPOOL_ARRAY_MIN + o), ops[o],
                methods[(t + o) % 3], test_key(1, 3 * t + o));
    test_print("%d types\n", (int)N_TYPES);
    return test_finish();
}
