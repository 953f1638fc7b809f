/* Policies (policy.h). */
#include "policy.h"
#include "work.h"

#include <string.h>

enum cpl_basic cpl_policy_basic(MPI_Datatype type)
{
    const struct {
        MPI_Datatype type;
        enum cpl_basic basic;
    } known[] = {
        {MPI_UNSIGNED_CHAR, CPL_BASIC_UINT8},
        {MPI_UINT8_T, CPL_BASIC_UINT8},
        {MPI_UNSIGNED_SHORT, CPL_BASIC_UINT16},
        {MPI_UINT16_T, CPL_BASIC_UINT16},
        {MPI_INT, CPL_BASIC_INT32},
        {MPI_INT32_T, CPL_BASIC_INT32},
        {MPI_INT64_T, CPL_BASIC_INT64},
        {MPI_LONG_LONG, CPL_BASIC_INT64},
        {MPI_UNSIGNED, CPL_BASIC_UINT32},
        {MPI_UINT32_T, CPL_BASIC_UINT32},
        {MPI_UINT64_T, CPL_BASIC_UINT64},
        {MPI_UNSIGNED_LONG_LONG, CPL_BASIC_UINT64},
        {MPI_FLOAT, CPL_BASIC_FLOAT},
        {MPI_DOUBLE, CPL_BASIC_DOUBLE},
    };
    if (type == MPI_LONG)
        return sizeof(long) == 8 ? CPL_BASIC_INT64 : CPL_BASIC_INT32;
    if (type == MPI_UNSIGNED_LONG)
        return sizeof(long) == 8 ? CPL_BASIC_UINT64 : CPL_BASIC_UINT32;
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (known[k].type == type)
            return known[k].basic;
    return CPL_BASIC_BY_MPI;
}

static bool is_computed(const struct cpl_array *array)
{
    return array->options.policy >= CARPOOL_ARRAY_MIN && array->options.policy <= CARPOOL_ARRAY_SUM;
}

double cpl_policy_work_ns(const struct cpl_array *array)
{
    return is_computed(array) && array->basic == CPL_BASIC_BY_MPI ? CPL_WORK_REDUCE
                                                                  : CPL_WORK_COMBINE;
}

bool cpl_policy_needs_rank(const struct cpl_array *array)
{
    return array->options.policy == CARPOOL_ARRAY_LAST ||
           array->options.policy == CARPOOL_ARRAY_FIRST;
}

static MPI_Op operation(enum carpool_array_policy policy)
{
    return policy == CARPOOL_ARRAY_MIN ? MPI_MIN : policy == CARPOOL_ARRAY_MAX ? MPI_MAX : MPI_SUM;
}

/* Combines the basic elements of a value, which are at any address; SUM is a type whose sums equal
 * MPI's, even where they wrap around. */
#define DEFINE_COMBINE(NAME, TYPE, SUM)                                                            \
    static void NAME(char *value, const char *written, int n, enum carpool_array_policy policy)    \
    {                                                                                              \
        for (int k = 0; k < n; k++) {                                                              \
            TYPE a, b;                                                                             \
            memcpy(&a, value + (size_t)k * sizeof a, sizeof a);                                    \
            memcpy(&b, written + (size_t)k * sizeof b, sizeof b);                                  \
            if (policy == CARPOOL_ARRAY_SUM)                                                       \
                a = (TYPE)((SUM)a + (SUM)b);                                                       \
            else if (policy == CARPOOL_ARRAY_MIN ? b < a : b > a)                                  \
                a = b;                                                                             \
            memcpy(value + (size_t)k * sizeof a, &a, sizeof a);                                    \
        }                                                                                          \
    }
DEFINE_COMBINE(combine_uint8, uint8_t, uint32_t)
DEFINE_COMBINE(combine_uint16, uint16_t, uint32_t)
DEFINE_COMBINE(combine_int32, int32_t, uint32_t)
DEFINE_COMBINE(combine_int64, int64_t, uint64_t)
DEFINE_COMBINE(combine_uint32, uint32_t, uint32_t)
DEFINE_COMBINE(combine_uint64, uint64_t, uint64_t)
DEFINE_COMBINE(combine_float, float, float)
DEFINE_COMBINE(combine_double, double, double)

/* Whether the type is one of those. */
static bool combine_basic(const struct cpl_array *array, char *value, const char *written)
{
    typedef void combine(char *value, const char *written, int n, enum carpool_array_policy policy);
    static combine *const combines[] = {NULL,           combine_uint8, combine_uint16,
                                        combine_int32,  combine_int64, combine_uint32,
                                        combine_uint64, combine_float, combine_double};
    if (!combines[array->basic])
        return false;
    combines[array->basic](value, written, array->n_basic, array->options.policy);
    return true;
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
    else if (!is_computed(array) || !combine_basic(array, value, written))
        compute(array, value, written);
    *writer = rank;
}
