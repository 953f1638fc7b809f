/* The distributed array: many scattered elements read and written by the ranks of a communicator,
 * with requests for the same element aggregated on their way (G. Peters, BSc thesis, KIT 2024).
 *
 * An array of `length` elements of `element_size` bytes is distributed in blocks of
 * ceil(length / ranks) consecutive elements, rank 0 first; new elements are zero bytes. Reads and
 * writes are queued locally; carpool_array_step, which is collective, carries out all writes of all
 * ranks and then all reads. Requests travel over a virtual grid of the ranks in as many stages as
 * it has dimensions; at each stage requests for the same element become one, and on the way back
 * their answers are given to all who asked.
 *
 * Order of calls: carpool_array_create, then any number of carpool_array_read and _write and
 * _step, then carpool_array_free, all between MPI_Init and MPI_Finalize.
 *
 * Errors: functions return MPI_SUCCESS or an error code after calling the error handler of the
 * communicator (MPI_COMM_WORLD's for an array that is NULL or freed) with it; MPI_Error_string
 * gives the text, which names what is wrong and holds until the array's next error. Nothing has
 * been changed then, except where said. Errors of MPI itself are passed on.
 *
 * Thread rule: an array is used by one thread at a time. */
#ifndef CARPOOL_ARRAY_H
#define CARPOOL_ARRAY_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What becomes of an element that is written more than once in a step. The result replaces the
 * element, whose value before the step takes no part. */
enum carpool_array_policy {
    CARPOOL_ARRAY_LAST,  /* the write of the highest rank that wrote it, its last one queued */
    CARPOOL_ARRAY_FIRST, /* the write of the lowest rank, its first one queued */
    CARPOOL_ARRAY_MIN,   /* MPI_MIN of the written values, by the datatype of the options */
    CARPOOL_ARRAY_MAX,   /* MPI_MAX */
    CARPOOL_ARRAY_SUM,   /* MPI_SUM; floating-point sums may differ in rounding between routes */
    CARPOOL_ARRAY_USER   /* what the options' function makes of them */
};

/* Combines two values of size bytes: *inout becomes the value of both. Must be associative and
 * commutative. Both are aligned for any type. */
typedef void carpool_array_function(void *inout, const void *in, size_t size, void *context);

/* Which requests for the same element become one. */
enum carpool_array_aggregation {
    CARPOOL_ARRAY_GLOBAL, /* those of one rank, and at every stage those of different ranks */
    CARPOOL_ARRAY_LOCAL,  /* those of one rank, before they are sent */
    CARPOOL_ARRAY_NONE    /* none: for comparison */
};

/* How an array works; must be the same on all ranks. CARPOOL_ARRAY_OPTIONS initialises it. */
struct carpool_array_options {
    enum carpool_array_policy policy;
    MPI_Datatype type; /* for MIN, MAX, SUM: a predefined datatype; an element is one or more */
    carpool_array_function *function; /* for USER */
    void *context;                    /* handed to function */
    const char *method; /* "VARIANT", "VARIANT:ROUTE" or "plain"; see carpool_array(3) */
    enum carpool_array_aggregation aggregation;
    int64_t memory;      /* bytes of the requests that a rank receives in a stage, with room for
                          * their answers; 0: 256 MiB. A step that needs more is done in rounds. It
                          * takes up to three times as much for each stage, and the queues: 16
                          * bytes a read, 8 and a value's a write. */
    int ranks_per_node;  /* consecutive ranks on a node, for the route locality and for "auto"; 0:
                          * ask MPI */
    const char *machine; /* costs of messages, for "auto": a machine file (carpool(1)) that rank 0
                          * reads, or a built-in machine; NULL: "edr" */
};

#define CARPOOL_ARRAY_OPTIONS                                                                      \
    {                                                                                              \
        CARPOOL_ARRAY_LAST, MPI_DATATYPE_NULL, NULL, NULL, "auto", CARPOOL_ARRAY_GLOBAL, 0, 0,     \
            NULL                                                                                   \
    }

typedef struct carpool_array carpool_array;

/* Makes an array over the ranks of an intracommunicator. Collective; all arguments but the
 * addresses must be the same on all ranks, or all get an error. length >= 0, element_size from 1 to
 * 1 MiB. options NULL: CARPOOL_ARRAY_OPTIONS. comm must live as long as the array. */
int carpool_array_create(MPI_Comm comm, int64_t length, size_t element_size,
                         const struct carpool_array_options *options, carpool_array **array);

/* Queues a read: at the end of the next step address gets element_size bytes of the element. Local.
 * 0 <= index < length. */
int carpool_array_read(carpool_array *array, int64_t index, void *address);

/* Queues a write of element_size bytes, which are copied. Local. 0 <= index < length. */
int carpool_array_write(carpool_array *array, int64_t index, const void *value);

/* Carries out all writes queued on any rank, then all reads, and empties the queues. Collective.
 * When a rank lacks memory all ranks get the error: the queues are empty then, the elements
 * written may or may not have their new values, and what is at the addresses is undefined. */
int carpool_array_step(carpool_array *array);

/* The own block: the index of its first element, its number of elements, and the elements
 * themselves, which belong to the array and may be read and changed between steps. Local. */
int carpool_array_block(carpool_array *array, int64_t *first, int64_t *n, void **elements);

#define CARPOOL_ARRAY_MAX_STAGES 32

/* What this rank did in its last step. Requests that stay on the rank count as neither sent nor
 * received. */
struct carpool_array_counts {
    int n_stages;
    int64_t reads, writes; /* queued */
    int64_t rounds;        /* of both kinds together */
    int64_t reads_sent[CARPOOL_ARRAY_MAX_STAGES], reads_received[CARPOOL_ARRAY_MAX_STAGES];
    int64_t writes_sent[CARPOOL_ARRAY_MAX_STAGES], writes_received[CARPOOL_ARRAY_MAX_STAGES];
    int64_t messages_sent; /* to other ranks, both kinds and the answers */
};

/* The counts of the last step. Local. */
int carpool_array_count(carpool_array *array, struct carpool_array_counts *counts);

/* The method of the last step, with the sizes of the stages ("sort:4x4x2"); with "auto" it may be
 * another one in each step. text belongs to the array. Local. */
int carpool_array_method(carpool_array *array, const char **text);

/* Frees the array and what is queued, and sets *array to NULL. Collective. */
int carpool_array_free(carpool_array **array);

#ifdef __cplusplus
}
#endif
#endif
