/* Policies (policy.h). */
#include "policy.h"

#include <string.h>

bool cpl_policy_needs_rank(const struct cpl_array *array)
{
    return array->options.policy == CARPOOL_ARRAY_LAST ||
           array->options.policy == CARPOOL_ARRAY_FIRST;
}

static MPI_Op operation(enum carpool_array_policy policy)
{
    return policy == CARPOOL_ARRAY_MIN ? MPI_MIN : policy == CARPOOL_ARRAY_MAX ? MPI_MAX : MPI_SUM;
}

/* Through copies, since values in messages are not aligned. */
static void compute(struct cpl_array *array, char *value, const char *written)
{
    const struct carpool_array_options *options = &array->options;
    size_t size = array->size;
    char *inout = array->aligned, *in = array->aligned + (size + 15) / 16 * 16;
    memcpy(inout, value, size);
    memcpy(in, written, size);
    if (options->policy == CARPOOL_ARRAY_USER)
        options->function(inout, in, size, options->context);
    else if (array->mpi_error == MPI_SUCCESS)
        array->mpi_error =
            MPI_Reduce_local(in, inout, array->n_basic, options->type, operation(options->policy));
    memcpy(value, inout, size);
}

void cpl_policy_combine(struct cpl_array *array, char *value, int32_t *writer, const char *written,
                        int32_t rank)
{
    enum carpool_array_policy policy = array->options.policy;
    bool is_first = *writer < 0;
    if (!is_first && policy == CARPOOL_ARRAY_LAST && rank < *writer)
        return;
    if (!is_first && policy == CARPOOL_ARRAY_FIRST && rank >= *writer)
        return;
    if (is_first || policy == CARPOOL_ARRAY_LAST || policy == CARPOOL_ARRAY_FIRST)
        memcpy(value, written, array->size);
    else
        compute(array, value, written);
    *writer = rank;
}
