/* Making, asking and freeing arrays. All ranks must pass the same arguments; they compare these
 * before anything is made, so that all get an error or none. */
#include "policy.h"

#include "planner/base/hash.h"

#include <stdlib.h>
#include <string.h>

#define DEFAULT_MEMORY (INT64_C(256) << 20)
#define MOST_MEMORY    (INT64_C(1) << 40)
#define MOST_ELEMENT   ((size_t)1 << 20)
#define MOST_LENGTH    (INT64_MAX / 2)

static const char create[] = "carpool_array_create";

/* The arguments of a rank, checked. */
struct arguments {
    int64_t length;
    size_t size;
    struct carpool_array_options options;
    struct cpl_method method;
    int n_basic;
};

/* Whether the type is predefined, fits the element and has the operation. */
static enum cpl_status check_type(struct arguments *arguments, struct cpl_error *error)
{
    const struct carpool_array_options *options = &arguments->options;
    int n_integers, n_addresses, n_types, combiner, type_size = 0;
    MPI_Op op = options->policy == CARPOOL_ARRAY_MIN   ? MPI_MIN
                : options->policy == CARPOOL_ARRAY_MAX ? MPI_MAX
                                                       : MPI_SUM;
    if (options->type == MPI_DATATYPE_NULL)
        return cpl_fail(error, CPL_ERR_ARG,
                        "policies MIN, MAX and SUM need the datatype of the elements in "
                        "options.type");
    MPI_Type_get_envelope(options->type, &n_integers, &n_addresses, &n_types, &combiner);
    MPI_Type_size(options->type, &type_size);
    if (combiner != MPI_COMBINER_NAMED || type_size < 1 || arguments->size % (size_t)type_size != 0)
        return cpl_fail(error, CPL_ERR_ARG,
                        "elements of %zu bytes are not made of the type of %d bytes in "
                        "options.type, or that is not a predefined datatype",
                        arguments->size, type_size);
    _Alignas(16) char zero[2][64] = {{0}};
    struct cpl_quiet quiet = cpl_quiet_begin();
    int code =
        type_size <= 64 ? MPI_Reduce_local(zero[0], zero[1], 1, options->type, op) : MPI_ERR_TYPE;
    cpl_quiet_end(&quiet);
    arguments->n_basic = (int)(arguments->size / (size_t)type_size);
    return code == MPI_SUCCESS
               ? CPL_OK
               : cpl_fail(error, CPL_ERR_ARG,
                          "the policy's operation is not defined for the type in options.type");
}

static enum cpl_status check_arguments(struct arguments *arguments, struct cpl_error *error)
{
    struct carpool_array_options *options = &arguments->options;
    if (arguments->length < 0 || arguments->length > MOST_LENGTH)
        return cpl_fail(error, CPL_ERR_ARG, "the length is %lld, not 0 to %lld",
                        (long long)arguments->length, (long long)MOST_LENGTH);
    if (arguments->size < 1 || arguments->size > MOST_ELEMENT)
        return cpl_fail(error, CPL_ERR_ARG, "an element has %zu bytes, not 1 to %zu",
                        arguments->size, MOST_ELEMENT);
    if ((int)options->policy < 0 || options->policy > CARPOOL_ARRAY_USER)
        return cpl_fail(error, CPL_ERR_ARG, "there is no policy %d", (int)options->policy);
    if ((int)options->aggregation < 0 || options->aggregation > CARPOOL_ARRAY_NONE)
        return cpl_fail(error, CPL_ERR_ARG, "there is no aggregation %d",
                        (int)options->aggregation);
    if (options->policy == CARPOOL_ARRAY_USER && !options->function)
        return cpl_fail(error, CPL_ERR_ARG, "policy USER needs options.function");
    if (options->memory < 0 || options->memory > MOST_MEMORY || options->ranks_per_node < 0)
        return cpl_fail(error, CPL_ERR_ARG,
                        "options.memory is %lld, not 0 to %lld, or options.ranks_per_node is "
                        "negative",
                        (long long)options->memory, (long long)MOST_MEMORY);
    if (options->memory == 0)
        options->memory = DEFAULT_MEMORY;
    if (cpl_method_parse(options->method ? options->method : "auto", &arguments->method, error))
        return CPL_ERR_ARG;
    return options->policy >= CARPOOL_ARRAY_MIN && options->policy <= CARPOOL_ARRAY_SUM
               ? check_type(arguments, error)
               : CPL_OK;
}

static int64_t hash_text(const char *text)
{
    uint64_t hash = CPL_HASH_START;
    for (const char *at = text; *at; at++)
        hash = cpl_hash_word(hash, (unsigned char)*at);
    return (int64_t)(hash >> 2);
}

/* Whether all ranks passed the same, and acceptable, arguments. Collective. */
static enum cpl_status compare(MPI_Comm comm, const struct arguments *arguments,
                               enum cpl_status mine, int *code, struct cpl_error *error)
{
    static const char *const names[] = {"",
                                        "length",
                                        "element size",
                                        "policy",
                                        "aggregation",
                                        "memory",
                                        "number of ranks per node",
                                        "method",
                                        "machine"};
    const struct carpool_array_options *options = &arguments->options;
    enum { N = sizeof names / sizeof *names };
    int64_t value[2 * N] = {mine != CPL_OK,
                            arguments->length,
                            (int64_t)arguments->size,
                            (int64_t)options->policy,
                            (int64_t)options->aggregation,
                            options->memory,
                            options->ranks_per_node,
                            hash_text(options->method ? options->method : "auto"),
                            hash_text(options->machine ? options->machine : "")};
    for (int k = 0; k < N; k++)
        value[N + k] = -value[k];
    *code = MPI_Allreduce(MPI_IN_PLACE, value, 2 * N, MPI_INT64_T, MPI_MAX, comm);
    if (*code || mine)
        return mine;
    if (value[0])
        return cpl_fail(error, CPL_ERR_ARG, "another rank passed arguments that cannot be used");
    for (int k = 1; k < N; k++)
        if (value[k] != -value[N + k])
            return cpl_fail(error, CPL_ERR_ARG, "the %s is not the same on all ranks%s", names[k],
                            k < 3 ? "" : " (options)");
    return CPL_OK;
}

static enum cpl_status make_room(struct cpl_array *array, struct cpl_error *error)
{
    int n = array->n_ranks;
    array->elements = calloc((size_t)array->n + 1, array->size);
    array->send_count = cpl_array_alloc(n, sizeof *array->send_count);
    array->recv_count = cpl_array_alloc(n, sizeof *array->recv_count);
    array->requests = cpl_array_alloc(2 * (int64_t)n, sizeof *array->requests);
    array->aligned = cpl_array_alloc(2, (array->size + 15) / 16 * 16);
    bool is_made = array->elements && array->send_count && array->recv_count && array->requests &&
                   array->aligned;
    for (int k = 0; k < 4; k++) {
        array->bytes[k] = cpl_array_alloc(n, sizeof *array->bytes[k]);
        is_made = is_made && array->bytes[k];
    }
    return is_made ? CPL_OK : cpl_fail_memory(error, "the elements");
}

static void free_body(struct cpl_array *array)
{
    cpl_ways_free(array);
    free(array->elements);
    free(array->send_count);
    free(array->recv_count);
    free(array->requests);
    free(array->aligned);
    for (int k = 0; k < 4; k++)
        free(array->bytes[k]);
    free(array->reads.index);
    free(array->reads.address);
    free(array->writes.index);
    free(array->writes.value);
    if (array->comm != MPI_COMM_NULL)
        MPI_Comm_free(&array->comm);
    free(array);
}

static void set_block(struct cpl_array *array, int64_t length)
{
    array->length = length;
    array->block = length / array->n_ranks + (length % array->n_ranks != 0);
    array->block += array->block == 0;
    array->first = array->rank < length / array->block + (length % array->block != 0)
                       ? array->rank * array->block
                       : length;
    array->n = length - array->first < array->block ? length - array->first : array->block;
}

/* Fills an array that has its communicator. Collective; the status may differ between ranks. */
static enum cpl_status fill(struct cpl_array *array, const struct arguments *arguments,
                            struct cpl_error *error)
{
    array->size = arguments->size;
    array->n_basic = arguments->n_basic;
    array->basic = cpl_policy_basic(arguments->options.type);
    array->options = arguments->options;
    set_block(array, arguments->length);
    enum cpl_status status = cpl_ways_make(array, &arguments->method, error);
    return status ? status : make_room(array, error);
}

static int free_handle(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm;
    (void)key;
    (void)extra;
    free(value);
    return MPI_SUCCESS;
}

/* A handle that lives until MPI_Finalize, which deletes the attributes of MPI_COMM_SELF. */
static carpool_array *make_handle(void)
{
    carpool_array *handle = calloc(1, sizeof *handle);
    int key = MPI_KEYVAL_INVALID;
    if (!handle)
        return NULL;
    if (MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, free_handle, &key, NULL) == MPI_SUCCESS) {
        MPI_Comm_set_attr(MPI_COMM_SELF, key, handle);
        MPI_Comm_free_keyval(&key);
    }
    return handle;
}

/* Collective: all ranks come to the same result. */
static int make_array(MPI_Comm comm, const struct arguments *arguments, carpool_array *handle,
                      struct cpl_error *error)
{
    struct cpl_array *array = calloc(1, sizeof *array);
    int worst, mine = array && handle ? CPL_OK : (int)cpl_fail_memory(error, "the array");
    int code = MPI_Allreduce(&mine, &worst, 1, MPI_INT, MPI_MAX, comm);
    if (code || worst) {
        free(array);
        return code;
    }
    MPI_Comm_rank(comm, &array->rank);
    MPI_Comm_size(comm, &array->n_ranks);
    code = MPI_Comm_split(comm, 0, array->rank, &array->comm);
    if (code) {
        free(array);
        return code;
    }
    MPI_Comm_set_errhandler(array->comm, MPI_ERRORS_RETURN);
    mine = (int)fill(array, arguments, error);
    code = MPI_Allreduce(&mine, &worst, 1, MPI_INT, MPI_MAX, array->comm);
    if (code || worst) {
        free_body(array);
        return code;
    }
    handle->body = array;
    return MPI_SUCCESS;
}

int carpool_array_create(MPI_Comm comm, int64_t length, size_t element_size,
                         const struct carpool_array_options *options, carpool_array **array)
{
    static const struct carpool_array_options defaults = CARPOOL_ARRAY_OPTIONS;
    struct arguments arguments = {
        .length = length, .size = element_size, .options = options ? *options : defaults};
    struct cpl_error error = {"another rank has no memory"};
    int is_inter = 0, code;
    if (comm == MPI_COMM_NULL)
        return cpl_array_error(NULL, MPI_COMM_WORLD, create, "the communicator is MPI_COMM_NULL");
    MPI_Comm_test_inter(comm, &is_inter);
    if (is_inter)
        return cpl_array_error(NULL, comm, create, "an intercommunicator cannot hold an array");
    enum cpl_status status = check_arguments(&arguments, &error);
    if (!status && !array)
        status = cpl_fail(&error, CPL_ERR_ARG, "the address of the array is NULL");
    status = compare(comm, &arguments, status, &code, &error);
    if (code)
        return code; /* MPI has called the handler */
    if (status)
        return cpl_array_error(NULL, comm, create, "%s", error.text);
    carpool_array *handle = make_handle();
    code = make_array(comm, &arguments, handle, &error);
    if (code)
        return code;
    if (!handle || !handle->body)
        return cpl_array_error(NULL, comm, create, "%s", error.text);
    handle->user_comm = comm;
    *array = handle;
    return MPI_SUCCESS;
}

static int check_handle(carpool_array *array, const char *function, const void *output)
{
    if (!array || !array->body)
        return cpl_array_error(array, MPI_COMM_WORLD, function, "the array is NULL or was freed");
    if (!output)
        return cpl_array_error(array, MPI_COMM_NULL, function, "an output's address is NULL");
    return MPI_SUCCESS;
}

int carpool_array_block(carpool_array *array, int64_t *first, int64_t *n, void **elements)
{
    int code = check_handle(array, __func__, first && n ? elements : NULL);
    if (code)
        return code;
    *first = array->body->first;
    *n = array->body->n;
    *elements = array->body->elements;
    return MPI_SUCCESS;
}

int carpool_array_count(carpool_array *array, struct carpool_array_counts *counts)
{
    int code = check_handle(array, __func__, counts);
    if (!code)
        *counts = array->body->counts;
    return code;
}

int carpool_array_method(carpool_array *array, const char **text)
{
    int code = check_handle(array, __func__, text);
    if (!code)
        *text = array->body->method;
    return code;
}

int carpool_array_free(carpool_array **array)
{
    int code = check_handle(array ? *array : NULL, __func__, array);
    if (code)
        return code;
    free_body((*array)->body);
    (*array)->body = NULL;
    *array = NULL;
    return MPI_SUCCESS;
}
