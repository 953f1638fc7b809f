/* Types and functions that the files of the distributed array share.
 *
 * A step is a pass of the writes and one of the reads. A pass takes requests through the stages of
 * the route. In each stage: fold.h merges requests for the same element; route.h sorts them by
 * their next ranks; transfer.h carries them there. */
#ifndef CARPOOL_ARRAY_INTERNAL_H
#define CARPOOL_ARRAY_INTERNAL_H

#include "carpool_array.h"
#include "choice.h"
#include "fold.h"
#include "route.h"

#include <stdbool.h>

#define CPL_ARRAY_METHOD_TEXT 200

/* Basic types that Carpool combines itself: MPI takes several times as long, and MPICH 4.0.2
 * compares unsigned values as if they were signed. */
enum cpl_basic {
    CPL_BASIC_BY_MPI, /* all other types */
    CPL_BASIC_UINT8,
    CPL_BASIC_UINT16,
    CPL_BASIC_INT32,
    CPL_BASIC_INT64,
    CPL_BASIC_UINT32,
    CPL_BASIC_UINT64,
    CPL_BASIC_FLOAT,
    CPL_BASIC_DOUBLE
};

/* Requests queued on this rank. */
struct cpl_queue {
    int32_t n, room;
    int64_t *index;
    void **address; /* reads */
    char *value;    /* writes: n x element_size bytes */
};

/* How a pass ended. Greater numbers matter more where ranks differ. */
enum cpl_outcome {
    CPL_DONE,
    CPL_TOO_MUCH,  /* more than the memory limit: the same on all ranks, nothing has been changed */
    CPL_NO_MEMORY, /* or a message would be too long; other ranks may not know */
    CPL_MPI_ERROR  /* the code is in struct cpl_array.mpi_error */
};

/* A way in which steps can be done. */
struct cpl_way {
    enum cpl_variant variant;
    struct cpl_route *route; /* one of the array's routes; twins (choice.h) share it */
    char method[CPL_ARRAY_METHOD_TEXT];
};

struct cpl_array {
    MPI_Comm comm; /* own */
    int rank, n_ranks;
    int64_t length, block; /* elements in all; elements in a rank's block */
    int64_t first, n;      /* this rank's elements */
    size_t size;           /* bytes of an element */
    char *elements;
    struct carpool_array_options options;
    int n_routes;
    struct cpl_route routes[CPL_MOST_WAYS];
    int n_ways; /* more than one: method "auto" */
    struct cpl_way way[CPL_MOST_WAYS];
    enum cpl_variant variant; /* variant, route and method of the way in use */
    struct cpl_route *route;
    const char *method;
    struct cpl_choice choice; /* used by method "auto" only */
    struct cpl_costs costs;
    int32_t ranks_per_node;
    int64_t last_ns;   /* time of the last step; 0: not known */
    int64_t last_n[2]; /* writes and reads of the last step on all ranks */
    int64_t
        kept[2]; /* writes and reads of the last step that this rank had after it folded its own */
    struct cpl_queue reads, writes;
    struct carpool_array_counts counts;
    int mpi_error;       /* the first code that an MPI function returned in this step */
    bool checks_memory;  /* stages compare what they would receive with the limit first */
    int64_t *send_count; /* n_ranks entries each, scratch of transfers and places */
    int64_t *recv_count;
    int *bytes[4];         /* n_ranks entries each, scratch of MPI_Alltoallv */
    MPI_Request *requests; /* 2 n_ranks entries */
    int n_basic;           /* basic elements in one element, for min, max, sum */
    enum cpl_basic basic;  /* type of the basic elements */
    char *aligned;         /* room for two elements, each aligned for any type */
};

/* The user's handle. It outlives the array until MPI_Finalize, so that use after free is
 * detected. */
struct carpool_array {
    struct cpl_array *body; /* NULL: freed */
    MPI_Comm user_comm;
    int error_class, error_code; /* 0: none yet */
};

/* Makes the ways of a method, and selects the first. Collective; the status may differ between
 * ranks.
 */
enum cpl_status cpl_ways_make(struct cpl_array *array, const struct cpl_method *method,
                              struct cpl_error *error);
void cpl_ways_free(struct cpl_array *array);

/* Sums over all ranks. n: writes and reads of the next step. last_ns: time of the last step. kept:
 * writes and reads of the last step after each rank had folded its own.
 */
struct cpl_step_sums {
    int64_t n[2], last_ns, kept[2];
};

/* Selects the way for the next step, the same on all ranks. */
void cpl_ways_choose(struct cpl_array *array, const struct cpl_step_sums *sums);

/* Calls the error handler with an error whose text is "FUNCTION: " and the formatted text. array
 * may be NULL; then comm's handler is called. Returns the code. */
int cpl_array_error(carpool_array *array, MPI_Comm comm, const char *function, const char *format,
                    ...) __attribute__((format(printf, 4, 5)));

/* Calls the error handler with an error code of MPI and returns the code. */
int cpl_array_mpi_error(carpool_array *array, int code);

/* Between begin and end, MPI returns errors that belong to no communicator instead of aborting. */
struct cpl_quiet {
    MPI_Errhandler self, world;
};
struct cpl_quiet cpl_quiet_begin(void);
void cpl_quiet_end(struct cpl_quiet *quiet);

/* malloc of n x size bytes, never NULL for 0 bytes; NULL on overflow. */
void *cpl_array_alloc(int64_t n, size_t size);

static inline int cpl_array_owner(const struct cpl_array *array, int64_t index)
{
    return (int)(index / array->block);
}

/* The requests of a queue that a round carries out. */
struct cpl_slice {
    int32_t n;
    const int64_t *index;    /* element index of each request */
    const int32_t *position; /* position of each request in the queue; NULL: 0 .. n-1 */
};

static inline int32_t cpl_slice_position(const struct cpl_slice *slice, int32_t k)
{
    return slice->position ? slice->position[k] : k;
}

/* Carry out the writes or reads of a slice. Collective. Outcomes other than CPL_TOO_MUCH may differ
 * between ranks. */
enum cpl_outcome cpl_pass_writes(struct cpl_array *array, const struct cpl_slice *slice);
enum cpl_outcome cpl_pass_reads(struct cpl_array *array, const struct cpl_slice *slice);
enum cpl_outcome cpl_pass_enveloped(struct cpl_array *array, const struct cpl_slice *slice);

#endif
