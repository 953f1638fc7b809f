/*
 * Minima, maxima and sums of the distributed array by datatype, against a serial program: types
 * that the array combines itself and others, several in an element. (MPI_Reduce_local would not do:
 * MPICH 4.0.2 compares unsigned numbers as if they were signed.)
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

/* A basic element as a number; those of 8 bytes have few bits, unless they are unsigned. */
static long double number(const struct type *type, const char *at)
{
    union {
        uint64_t u64;
        int64_t i64;
        uint32_t u32;
        int32_t i32;
        uint16_t u16;
        uint8_t u8;
        signed char i8;
        float f32;
        double f64;
    } x = {0};
    memcpy(&x, at, (size_t)type->size);
    if (type->kind == REAL)
        return type->size == 4 ? x.f32 : (long double)x.f64;
    if (type->kind == SIGNED)
        return type->size == 1 ? x.i8 : type->size == 4 ? x.i32 : (long double)x.i64;
    return type->size == 1   ? x.u8
           : type->size == 2 ? x.u16
           : type->size == 4 ? x.u32
                             : (long double)x.u64;
}

static void add(const struct type *type, char *to, const char *value)
{
    long double sum = number(type, to) + number(type, value);
    uint64_t a = 0, b = 0;
    if (type->kind == REAL && type->size == 4) {
        memcpy(to, &(float){(float)sum}, 4);
    } else if (type->kind == REAL) {
        memcpy(to, &(double){(double)sum}, 8);
    } else { /* the lower bytes of a sum of integers, little end first */
        memcpy(&a, to, (size_t)type->size);
        memcpy(&b, value, (size_t)type->size);
        a += b;
        memcpy(to, &a, (size_t)type->size);
    }
}

static void combine(const struct type *type, enum carpool_array_policy policy, char *to,
                    const char *value)
{
    for (int k = 0; k < N_BASIC; k++, to += type->size, value += type->size) {
        bool is_less = number(type, value) < number(type, to);
        bool is_more = number(type, value) > number(type, to);
        if (policy == CARPOOL_ARRAY_SUM)
            add(type, to, value);
        else if (policy == CARPOOL_ARRAY_MIN ? is_less : is_more)
            memcpy(to, value, (size_t)type->size);
    }
}

/* The elements that all ranks' writes of a trial make; is_written says which there are. */
static void expect(const struct type *type, enum carpool_array_policy policy, uint64_t key,
                   char *element, bool *is_written)
{
    for (int who = 0; who < test_size(); who++) {
        struct test_rng rng = {test_key(key, who)};
        for (int k = 0; k < N_WRITES; k++) {
            int index = test_below(&rng, N_ELEMENTS);
            char value[MOST_BYTES], *to = element + index * MOST_BYTES;
            draw(&rng, type, value);
            if (is_written[index])
                combine(type, policy, to, value);
            else
                memcpy(to, value, sizeof value);
            is_written[index] = true;
        }
    }
}

static void run(const struct type *type, enum carpool_array_policy policy, const char *method,
                uint64_t key)
{
    static char element[N_ELEMENTS * MOST_BYTES], got[N_ELEMENTS * MOST_BYTES];
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
    expect(type, policy, key, element, is_written);
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
        {"MPI_UINT8_T", MPI_UINT8_T, UNSIGNED, 1},
        {"MPI_UNSIGNED_CHAR", MPI_UNSIGNED_CHAR, UNSIGNED, 1},
        {"MPI_UINT16_T", MPI_UINT16_T, UNSIGNED, 2},
        {"MPI_UNSIGNED_SHORT", MPI_UNSIGNED_SHORT, UNSIGNED, 2},
        {"MPI_FLOAT", MPI_FLOAT, REAL, 4},
        {"MPI_DOUBLE", MPI_DOUBLE, REAL, 8}};
    enum { N_TYPES = sizeof types / sizeof *types };
    for (int t = 0; t < N_TYPES; t++)
        for (int o = 0; o < 3; o++)
            run(&types[t], (enum carpool_array_policy)(CARPOOL_ARRAY_MIN + o), methods[(t + o) % 3],
                test_key(1, 3 * t + o));
    test_print("%d types\n", (int)N_TYPES);
    return test_finish();
}
