/* What a rank notes of a call, and planning from that (neighbor_internal.h). */
#include "shim/exchange/neighbor_internal.h"
#include "shim/meet/agree.h"
#include "shim/wait/collective.h"

#include <stdlib.h>
#include <string.h>

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
    cpl_adjacency_free(&notes->own);
    free(notes);
}

struct cpl_neighbor_notes *cpl_neighbor_notes_make(const struct cpl_comm_state *state,
                                                   const struct cpl_exchange *x)
{
    struct cpl_neighbor_notes *notes = calloc(1, sizeof *notes);
    bool by_rank = x->kind >= CPL_ALLTOALLV;
    int n_in = by_rank ? state->size : x->adjacency->in.n;
    int n_out = by_rank ? state->size : x->adjacency->out.n, most = n_in > n_out ? n_in : n_out;
    if (!notes)
        return NULL;
    notes->request = MPI_REQUEST_NULL;
    notes->usable = true;
    notes->list.straight = cpl_neighbor_zeroed(n_out, sizeof *notes->list.straight);
    notes->list.payload = cpl_neighbor_zeroed(n_out, sizeof *notes->list.payload);
    notes->list.dst = cpl_neighbor_zeroed(n_out, sizeof *notes->list.dst);
    notes->list.bytes = cpl_neighbor_zeroed(n_out, sizeof *notes->list.bytes);
    notes->token_out = cpl_neighbor_zeroed(n_out, sizeof *notes->token_out);
    notes->token_in = cpl_neighbor_zeroed(n_in, sizeof *notes->token_in);
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
        for (int m = 0; m < a->out.n_messages; m++)
            cpl_neighbor_list_add(&notes->list, m, a->out.rank[m],
                                  cpl_neighbor_payload_bytes(&data, a, m));
    cpl_neighbor_data_free(&data);
    return done;
}

/* Starts the exchange of tokens, one along every edge: its number among its parallel edges, and
 * whether its message goes straight. They go as MPI matches parallel edges in the call that is to
 * be replaced; by alltoallv where the order does not matter (allgather) or where MPI's call is
 * wrong (MPICH 4.0's alltoallw on ranks whose in- and out-degree differ). Returns whether it has.
 */
static bool send_tokens(struct cpl_neighbor_notes *notes, enum cpl_neighbor_kind kind,
                        MPI_Comm comm, const struct cpl_adjacency *a)
{
    int n = a->in.n > a->out.n ? a->in.n : a->out.n;
    for (int k = 0; k < a->out.n; k++) {
        int m = a->out.message[k];
        notes->token_out[k] = 2 * a->out.ordinal[k] + (m >= 0 && notes->list.straight[m]);
    }
    if (kind == CPL_NEIGHBOR_ALLTOALL)
        return PMPI_Ineighbor_alltoall(notes->token_out, 1, MPI_INT, notes->token_in, 1, MPI_INT,
                                       comm, &notes->request) == MPI_SUCCESS;
    for (int k = 0; k < n; k++) {
        notes->ones[k] = 1;
        notes->displs[k] = k;
    }
    return PMPI_Ineighbor_alltoallv(notes->token_out, notes->ones, notes->displs, MPI_INT,
                                    notes->token_in, notes->ones, notes->displs, MPI_INT, comm,
                                    &notes->request) == MPI_SUCCESS;
}

void cpl_neighbor_notes_fill(struct cpl_neighbor_notes *notes, const struct cpl_neighbor_call *call,
                             const struct cpl_comm_state *state, const struct cpl_exchange *x)
{
    bool far = cpl_neighbor_is_far(call);
    if (x->kind >= CPL_ALLTOALLV) {
        notes->usable = !far && cpl_alltoall_note(call, state, notes);
        return;
    }
    notes->usable = list_messages(call, x->adjacency, notes) && !far;
    notes->usable &= send_tokens(notes, call->kind, call->comm, x->adjacency);
}

bool cpl_neighbor_plan_noted(const struct cpl_comm_state *state, struct cpl_exchange *x,
                             struct cpl_neighbor_notes *notes)
{
    bool by_rank = x->kind >= CPL_ALLTOALLV;
    if (by_rank) {
        x->learned.own = notes->own;
        notes->own = (struct cpl_adjacency){.in = {.n = 0}};
        x->learned.n_extra_most = 2 * state->size;
    }
    if (!cpl_agree_all(state->private_comm, cpl_neighbor_plan_allocate(x)))
        return false;
    memcpy(x->ends.out_straight, notes->list.straight,
           (size_t)x->adjacency->out.n_messages * sizeof *x->ends.out_straight);
    memcpy(x->ends.payload, notes->list.payload, (size_t)notes->list.n * sizeof *x->ends.payload);
    bool same_payload = x->kind == CPL_NEIGHBOR_ALLGATHER || x->kind == CPL_NEIGHBOR_ALLGATHERV;
    return cpl_neighbor_plan_agree(state, x, &notes->list, notes->usable, same_payload) &&
           cpl_agree_all(state->private_comm,
                         by_rank ? cpl_alltoall_tell(state, x, notes->token_out, notes->token_in)
                                 : cpl_neighbor_plan_read(x, notes->token_in));
}

void cpl_neighbor_plan(const struct cpl_neighbor_call *call, const struct cpl_comm_state *state,
                       struct cpl_exchange *x)
{
    if (x->phase == CPL_PHASE_PLANNED)
        cpl_exchange_release(x);
    struct cpl_neighbor_notes *notes = cpl_neighbor_notes_make(state, x);
    bool planned = cpl_agree_all(state->private_comm, notes);
    if (planned) {
        cpl_neighbor_notes_fill(notes, call, state, x);
        cpl_collective_waitall(1, &notes->request, MPI_STATUSES_IGNORE);
        planned = cpl_neighbor_plan_noted(state, x, notes);
    }
    cpl_neighbor_notes_free(notes);
    x->phase = planned                 ? CPL_PHASE_PLANNED
               : x->plans.search.again ? CPL_PHASE_LEARNING
                                       : CPL_PHASE_DIRECT;
    if (!planned)
        cpl_exchange_release(x);
}

bool cpl_neighbor_match(const struct cpl_comm_state *state, struct cpl_exchange *x)
{
    struct cpl_neighbor_notes *notes = cpl_neighbor_notes_make(state, x);
    bool able = cpl_neighbor_plan_allocate(x) && notes;
    bool matched = cpl_agree_all(state->private_comm, able);
    if (matched) {
        bool sent = send_tokens(notes, x->kind, state->comm, x->adjacency);
        cpl_collective_waitall(1, &notes->request, MPI_STATUSES_IGNORE);
        matched =
            cpl_agree_all(state->private_comm, sent && cpl_neighbor_plan_read(x, notes->token_in));
    }
    cpl_neighbor_notes_free(notes);
    return matched;
}
