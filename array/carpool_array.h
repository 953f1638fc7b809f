/* The distributed array: many scattered elements read and written by the ranks of a communicator,
 * with requests for the same element aggregated on their way (G. Peters, BSc thesis, KIT 2024).
 *
 * An array of `length` elements of `element_size` bytes is distributed in blocks of ceil(length /
 * ranks) consecutive elements, rank 0 first; new elements are zero bytes. Reads and writes are
 * queued locally; carpool_array_step, which is collective, carries out all writes of all ranks and
 * then all reads. Requests travel over a virtual grid of the ranks in as many stages as it has
 * dimensions; at each stage requests for the same element are merged into one, and on the way back
 * every asker gets the answer.
 *
 * Order of calls: carpool_array_create, then any number of carpool_array_read and _write and
 * _step, then carpool_array_free, all between MPI_Init and MPI_Finalize.
 *
 * Errors: functions return MPI_SUCCESS or an error code after calling the error handler of the
 * communicator (MPI_COMM_WORLD's for an array that is NULL or freed) with it; MPI_Error_string
 * gives the text, which names what is wrong and is valid until the array's next error. A failed
 * call changes nothing, unless its description says otherwise. Errors of MPI itself are passed on.
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

/* What an element becomes when it is written more than once in a step. The result replaces the
 * element; the value from before the step is not used. */
enum carpool_array_policy {
    CARPOOL_ARRAY_LAST,  /* the last write that the highest writing rank queued */
    CARPOOL_ARRAY_FIRST, /* the first write that the lowest writing rank queued */
    CARPOOL_ARRAY_MIN,   /* MPI_MIN of the written values, by the datatype of the options */
    CARPOOL_ARRAY_MAX,   /* MPI_MAX of the written values */
    CARPOOL_ARRAY_SUM,   /* MPI_SUM of them; the rounding of floating-point sums may depend on the
                            route */
    CARPOOL_ARRAY_USER   /* the written values, combined by the options' function */
};

/* Combines two values of size bytes and stores the result in *inout. Must be associative and
 * commutative. Both values are aligned for any type. */
typedef void carpool_array_function(void *inout, const void *in, size_t size, void *context);

/* Which requests for the same element are merged into one. */
enum carpool_array_aggregation {
    CARPOOL_ARRAY_GLOBAL, /* requests of one rank, and at every stage those of different ranks */
    CARPOOL_ARRAY_LOCAL,  /* only requests of one rank, before they are sent */
    CARPOOL_ARRAY_NONE    /* no requests; for comparisons */
};

/* How an array works; must be the same on all ranks. CARPOOL_ARRAY_OPTIONS initialises it. */
struct carpool_array_options {
    enum carpool_array_policy policy;
    MPI_Datatype type; /* for MIN, MAX, SUM: a predefined datatype; an element consists of one or
                          more of them */
    carpool_array_function *function; /* for USER: combines two values */
    void *context;                    /* handed to `function` */
    const char *method; /* "VARIANT", "VARIANT:ROUTE" or "plain"; see carpool_array(3) */
    enum carpool_array_aggregation aggregation;
    int64_t memory; /* limit for the bytes of requests that a rank receives in a stage, with room
                       for their answers; 0: 256 MiB. A step that needs more is done in rounds. A
                       step uses up to three times the limit for each stage. Queues come on top: 16
                       bytes for a read, 8 bytes and a value for a write. */
    int ranks_per_node;  /* number of consecutive ranks on a node, for the route `locality` and for
                            "auto"; 0: ask MPI */
    const char *machine; /* costs of messages, for "auto": a machine file (carpool(1)) that rank 0
                          * reads, or a built-in machine; NULL: "edr" */
};

#define CARPOOL_ARRAY_OPTIONS                                                                      \
    {                                                                                              \
        CARPOOL_ARRAY_LAST, MPI_DATATYPE_NULL, NULL, NULL, "auto", CARPOOL_ARRAY_GLOBAL, 0, 0,     \
            NULL                                                                                   \
    }

typedef struct carpool_array carpool_array;

/* Makes an array over the ranks of an intracommunicator. Collective. All arguments except addresses
 * must be the same on all ranks, otherwise all ranks get an error. length >= 0, element_size from 1
 * to 1 MiB. options NULL: CARPOOL_ARRAY_OPTIONS. comm must live as long as the array. */
int carpool_array_create(MPI_Comm comm, int64_t length, size_t element_size,
                         const struct carpool_array_options *options, carpool_array **array);

/* Queues a read: the next step copies the element, element_size bytes, to address. Local. 0 <=
 * index < length. */
int carpool_array_read(carpool_array *array, int64_t index, void *address);

/* Queues a write of element_size bytes, which are copied at once. Local. 0 <= index < length. */
int carpool_array_write(carpool_array *array, int64_t index, const void *value);

/* Carries out all writes queued on any rank, then all reads, and empties the queues. Collective.
 * When a rank runs out of memory, all ranks get the error. The queues are then empty, written
 * elements may have their old or new values, and the contents at the read addresses are
 * undefined. */
int carpool_array_step(carpool_array *array);

/* This rank's block: the index of its first element, its number of elements, and the elements. They
 * belong to the array and may be read and changed between steps. Local. */
int carpool_array_block(carpool_array *array, int64_t *first, int64_t *n, void **elements);

#define CARPOOL_ARRAY_MAX_STAGES 32

/* What this rank did in its last step. Requests that stay on the rank count as neither sent nor
 * received. */
struct carpool_array_counts {
    int n_stages;
    int64_t reads, writes; /* requests that were queued */
    int64_t rounds;        /* rounds of reads and of writes, added up */
    int64_t reads_sent[CARPOOL_ARRAY_MAX_STAGES], reads_received[CARPOOL_ARRAY_MAX_STAGES];
    int64_t writes_sent[CARPOOL_ARRAY_MAX_STAGES], writes_received[CARPOOL_ARRAY_MAX_STAGES];
    int64_t messages_sent; /* messages to other ranks: reads, writes and answers */
};

/* The counts of the last step. Local. */
int carpool_array_count(carpool_array *array, struct carpool_array_counts *counts);

/* The method of the last step, with the sizes of the stages ("sort:4x4x2"); with "auto" it may
 * change from step to step. text belongs to the array. Local. */
int carpool_array_method(carpool_array *array, const char **text);

/* Frees the array and its queues, and sets *array to NULL. Collective. */
int carpool_array_free(carpool_array **array);

#ifdef __cplusplus
}
#endif
#endif
