/* Queueing reads and writes. */
#include "array_internal.h"

#include <stdlib.h>
#include <string.h>

/* Makes room for one request more, value_size bytes for its value. */
static bool grow(struct cpl_queue *queue, size_t value_size)
{
    if (queue->n < queue->room)
        return true;
    if (queue->room > INT32_MAX / 2)
        return false;
    int32_t room = queue->room ? 2 * queue->room : 64;
    if (value_size && (size_t)room > PTRDIFF_MAX / value_size)
        return false;
    int64_t *index = realloc(queue->index, (size_t)room * sizeof *index);
    if (!index)
        return false;
    queue->index = index;
    if (value_size) {
        char *value = realloc(queue->value, (size_t)room * value_size);
        if (!value)
            return false;
        queue->value = value;
    } else {
        void **address = realloc(queue->address, (size_t)room * sizeof *address);
        if (!address)
            return false;
        queue->address = address;
    }
    queue->room = room;
    return true;
}

static int check_index(carpool_array *array, const char *function, int64_t index)
{
    if (!array || !array->body)
        return cpl_array_error(array, MPI_COMM_WORLD, function, "the array is NULL or was freed");
    if (index < 0 || index >= array->body->length)
        return cpl_array_error(array, MPI_COMM_NULL, function,
                               "index %lld is not one of an array of length %lld: indices are 0 "
                               "to length - 1",
                               (long long)index, (long long)array->body->length);
    return MPI_SUCCESS;
}

static int fail_queue(carpool_array *array, const char *function, const struct cpl_queue *queue)
{
    return cpl_array_error(array, MPI_COMM_NULL, function,
                           "no memory for more than %ld queued requests: call carpool_array_step "
                           "more often",
                           (long)queue->n);
}

int carpool_array_read(carpool_array *array, int64_t index, void *address)
{
    int code = check_index(array, __func__, index);
    if (code)
        return code;
    struct cpl_queue *queue = &array->body->reads;
    if (!address)
        return cpl_array_error(array, MPI_COMM_NULL, __func__, "the address is NULL");
    if (!grow(queue, 0))
        return fail_queue(array, __func__, queue);
    queue->index[queue->n] = index;
    queue->address[queue->n++] = address;
    return MPI_SUCCESS;
}

int carpool_array_write(carpool_array *array, int64_t index, const void *value)
{
    int code = check_index(array, __func__, index);
    if (code)
        return code;
    struct cpl_queue *queue = &array->body->writes;
    size_t size = array->body->size;
    if (!value)
        return cpl_array_error(array, MPI_COMM_NULL, __func__, "the address of the value is NULL");
    if (!grow(queue, size))
        return fail_queue(array, __func__, queue);
    queue->index[queue->n] = index;
    memcpy(queue->value + (size_t)queue->n++ * size, value, size);
    return MPI_SUCCESS;
}
