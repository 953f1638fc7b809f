/*
 * MPI's calls for the neighborhood collectives of the program `neighbors`, in all their forms.
 */
#include "neighbors.h"

const char *const form_names[N_FORMS + 1] = {
    "blocking", "nonblocking", "persistent", "blocking_c", "nonblocking_c", "persistent_c", NULL,
};

static int first_count(const struct side *side)
{
    return side->n > 0 ? side->counts[0] : 0;
}

/* One form: CALL(alltoall) and so on name its calls, ENDS are the arguments behind the others. */
#define FORM(form, CALL, counts, displs, ...)                                                      \
    static void form(const struct side *s, const struct side *r, enum op op, MPI_Comm comm,        \
                     MPI_Request *request)                                                         \
    {                                                                                              \
        MPI_Datatype sent = s->layouts[0].type, received = r->layouts[0].type;                     \
        int n_sent = first_count(s), n_received = first_count(r);                                  \
        (void)request;                                                                             \
        if (op == OP_ALLTOALL)                                                                     \
            CALL(alltoall)(s->buffer, n_sent, sent, r->buffer, n_received, received, __VA_ARGS__); \
        else if (op == OP_ALLTOALLV)                                                               \
            CALL(alltoallv)                                                                        \
        (s->buffer, s->counts, s->displs, sent, r->buffer, r->counts, r->displs, received,         \
         __VA_ARGS__);                                                                             \
        else if (op == OP_ALLTOALLW)                                                               \
            CALL(alltoallw)(s->buffer, s->counts, s->byte_displs, s->types, r->buffer, r->counts,  \
                            r->byte_displs, r->types, __VA_ARGS__);                                \
        else if (op == OP_ALLGATHER) CALL(allgather)(s->buffer, n_sent, sent, r->buffer,           \
                                                     n_received, received, __VA_ARGS__);           \
        else CALL(allgatherv)(s->buffer, n_sent, sent, r->buffer, r->counts, r->displs, received,  \
                              __VA_ARGS__);                                                        \
    }

#define BLOCKING(name)      MPI_Neighbor_##name
#define NONBLOCKING(name)   MPI_Ineighbor_##name
#define PERSISTENT(name)    MPI_Neighbor_##name##_init
#define BLOCKING_C(name)    MPI_Neighbor_##name##_c
#define NONBLOCKING_C(name) MPI_Ineighbor_##name##_c
#define PERSISTENT_C(name)  MPI_Neighbor_##name##_init_c

FORM(blocking, BLOCKING, counts, displs, comm)
FORM(nonblocking, NONBLOCKING, counts, displs, comm, request)
FORM(persistent, PERSISTENT, counts, displs, comm, MPI_INFO_NULL, request)
FORM(blocking_c, BLOCKING_C, large_counts, large_displs, comm)
FORM(nonblocking_c, NONBLOCKING_C, large_counts, large_displs, comm, request)
FORM(persistent_c, PERSISTENT_C, large_counts, large_displs, comm, MPI_INFO_NULL, request)

void form_call(const struct side *send, const struct side *recv, enum op op, enum form form,
               MPI_Comm comm, MPI_Request *request)
{
    static void (*const calls[N_FORMS])(const struct side *, const struct side *, enum op, MPI_Comm,
                                        MPI_Request *) = {
        blocking, nonblocking, persistent, blocking_c, nonblocking_c, persistent_c,
    };

    calls[form](send, recv, op, comm, request);
}
