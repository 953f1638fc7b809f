/* What a rank notes of nonblocking calls (neighbor_notes.h). */
#include "shim/exchange/neighbor_notes.h"

#include <stdlib.h>

void cpl_neighbor_notes_free(struct cpl_neighbor_notes *notes)
{
    if (!notes)
        return;
    free(notes->list.straight);
    free(notes->list.payload);
    free(notes->list.dst);
    free(notes->list.bytes);
    free(notes->token_out);
    free(notes->token_in);
    free(notes->ones);
    free(notes->displs);
    cpl_adjacency_free(&notes->adjacency);
    free(notes);
}

struct cpl_neighbor_notes *cpl_neighbor_notes_make(const struct cpl_adjacency *a)
{
    struct cpl_neighbor_notes *notes = calloc(1, sizeof *notes);
    int n = a->out.n_messages, most = a->in.n > a->out.n ? a->in.n : a->out.n;
    if (!notes)
        return NULL;
    notes->request = MPI_REQUEST_NULL;
    notes->usable = true;
    notes->list.straight = cpl_neighbor_zeroed(n, sizeof *notes->list.straight);
    notes->list.payload = cpl_neighbor_zeroed(n, sizeof *notes->list.payload);
    notes->list.dst = cpl_neighbor_zeroed(n, sizeof *notes->list.dst);
    notes->list.bytes = cpl_neighbor_zeroed(n, sizeof *notes->list.bytes);
    notes->token_out = cpl_neighbor_zeroed(a->out.n, sizeof *notes->token_out);
    notes->token_in = cpl_neighbor_zeroed(a->in.n, sizeof *notes->token_in);
    notes->ones = cpl_neighbor_zeroed(most, sizeof *notes->ones);
    notes->displs = cpl_neighbor_zeroed(most, sizeof *notes->displs);
    if (notes->list.straight && notes->list.payload && notes->list.dst && notes->list.bytes &&
        notes->token_out && notes->token_in && notes->ones && notes->displs)
        return notes;
    cpl_neighbor_notes_free(notes);
    return NULL;
}

/* Sizes and lists the call's messages. */
static bool list_messages(const struct cpl_neighbor_call *call, const struct cpl_adjacency *a,
                          struct cpl_neighbor_notes *notes)
{
    struct cpl_neighbor_data data = {.out_span = NULL};
    bool done = cpl_neighbor_data_make(&data, a, 0) && cpl_neighbor_resolve(call, a, &data);
    if (done)
        cpl_neighbor_plan_list(a, &data, &notes->list);
    cpl_neighbor_data_free(&data);
    return done;
}

/* Starts the exchange of tokens: as MPI matches parallel edges in the call that is to be replaced.
 */
static void send_tokens(const struct cpl_neighbor_call *call, const struct cpl_adjacency *a,
                        struct cpl_neighbor_notes *notes)
{
    int n = a->in.n > a->out.n ? a->in.n : a->out.n;
    cpl_neighbor_plan_tokens(a, notes->list.straight, notes->token_out);
    for (int k = 0; k < n; k++) {
        notes->ones[k] = 1;
        notes->displs[k] = k;
    }
    if (call->kind == CPL_NEIGHBOR_ALLTOALL)
        PMPI_Ineighbor_alltoall(notes->token_out, 1, MPI_INT, notes->token_in, 1, MPI_INT,
                                call->comm, &notes->request);
    else
        PMPI_Ineighbor_alltoallv(notes->token_out, notes->ones, notes->displs, MPI_INT,
                                 notes->token_in, notes->ones, notes->displs, MPI_INT, call->comm,
                                 &notes->request);
}

void cpl_neighbor_notes_fill(struct cpl_neighbor_notes *notes, const struct cpl_neighbor_call *call,
                             const struct cpl_adjacency *a)
{
    notes->usable = list_messages(call, a, notes) && !cpl_neighbor_is_far(call);
    send_tokens(call, a, notes);
}
