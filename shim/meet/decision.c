/* All hand in, one decides, all get an answer (decision.h). */
#include "shim/meet/decision.h"

#include "shim/meet/agree.h"
#include "shim/wait/collective.h"

#include <limits.h>
#include <stdlib.h>

struct cpl_decision cpl_decision_open(MPI_Comm comm)
{
    struct cpl_decision decision = {.comm = comm};
    PMPI_Comm_rank(comm, &decision.rank);
    PMPI_Comm_size(comm, &decision.n_ranks);
    return decision;
}

void cpl_decision_close(struct cpl_decision *decision)
{
    free(decision->seats);
    free(decision->first);
    free(decision->records);
    free(decision->counts);
    decision->seats = NULL;
    decision->records = decision->first = decision->counts = NULL;
}

static bool make_room(struct cpl_decision *decision)
{
    size_t n = (size_t)decision->n_ranks;
    decision->seats = calloc(n, sizeof *decision->seats);
    decision->first = calloc(n + 1, sizeof *decision->first);
    decision->counts = calloc(n, sizeof *decision->counts);
    return decision->seats && decision->first && decision->counts;
}

/* Turns counts into places; false when they exceed what MPI can count. */
static bool lay_out(struct cpl_decision *decision)
{
    int64_t total = 0;
    for (int i = 0; i < decision->n_ranks && total <= INT_MAX; i++) {
        decision->first[i] = (int)total;
        total += decision->counts[i];
    }
    decision->first[decision->n_ranks] = (int)total;
    return total <= INT_MAX;
}

/* Whether all ranks are able, and have a type of so many bytes: records count as one, whatever
 * their bytes. */
static bool make_type(MPI_Comm comm, bool able, size_t bytes, MPI_Datatype *type)
{
    bool made = PMPI_Type_contiguous((int)bytes, MPI_BYTE, type) == MPI_SUCCESS;
    bool all = cpl_agree_all(comm, able && made && PMPI_Type_commit(type) == MPI_SUCCESS);
    if (made && !all)
        PMPI_Type_free(type);
    return all;
}

bool cpl_decision_hand_in(struct cpl_decision *decision, const struct cpl_handed_in *mine)
{
    MPI_Datatype type;
    const int seat_bytes = sizeof(struct cpl_seat);
    cpl_decision_close(decision);
    if (!cpl_agree_all(decision->comm,
                       mine->able && (!cpl_decision_is_root(decision) || make_room(decision))))
        return false;
    if (mine->seated) {
        struct cpl_seat seat = cpl_agree_seat(decision->comm);
        seat.word = mine->word;
        cpl_collective_Gather(&seat, seat_bytes, MPI_BYTE, decision->seats, seat_bytes, MPI_BYTE, 0,
                              decision->comm);
    }
    cpl_collective_Gather(&mine->n, 1, MPI_INT, decision->counts, 1, MPI_INT, 0, decision->comm);
    if (cpl_decision_is_root(decision) && lay_out(decision))
        decision->records =
            calloc((size_t)decision->first[decision->n_ranks] + 1, mine->record_bytes + 1);
    bool expected = !cpl_decision_is_root(decision) || decision->records;
    if (!make_type(decision->comm, expected, mine->record_bytes, &type))
        return false;
    cpl_collective_Gatherv(mine->records, mine->n, type, decision->records, decision->counts,
                           decision->first, type, 0, decision->comm);
    PMPI_Type_free(&type);
    return true;
}

void cpl_decision_answer(struct cpl_decision *decision, void *answer, size_t bytes)
{
    cpl_collective_Bcast(answer, (int)bytes, MPI_BYTE, 0, decision->comm);
}

bool cpl_decision_spread(struct cpl_decision *decision, bool able, const void *items,
                         size_t item_bytes, void **mine, int *n)
{
    MPI_Datatype type;
    *mine = NULL;
    *n = 0;
    if (!cpl_agree_all(decision->comm,
                       !cpl_decision_is_root(decision) || (able && lay_out(decision))))
        return false;
    cpl_collective_Scatter(decision->counts, 1, MPI_INT, n, 1, MPI_INT, 0, decision->comm);
    *mine = calloc((size_t)*n + 1, item_bytes);
    if (!make_type(decision->comm, *mine, item_bytes, &type)) {
        free(*mine);
        *mine = NULL;
        return false;
    }
    cpl_collective_Scatterv(items, decision->counts, decision->first, type, *mine, *n, type, 0,
                            decision->comm);
    PMPI_Type_free(&type);
    return true;
}
