/* All hand in, one decides, all get an answer (desk.h). */
#include "shim/meet/desk.h"

#include "shim/meet/agree.h"
#include "shim/wait/collective.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

void cpl_desk_open(struct cpl_desk *desk, MPI_Comm comm, int root)
{
    *desk = (struct cpl_desk){.comm = comm, .root = root};
    PMPI_Comm_rank(comm, &desk->rank);
    PMPI_Comm_size(comm, &desk->n_ranks);
}

void cpl_desk_close(struct cpl_desk *desk)
{
    free(desk->headers);
    free(desk->first);
    free(desk->records);
    free(desk->counts);
    free(desk->displs);
    *desk = (struct cpl_desk){
        .comm = desk->comm, .rank = desk->rank, .n_ranks = desk->n_ranks, .root = desk->root};
}

static bool make_room(struct cpl_desk *desk, const struct cpl_handed_in *mine)
{
    size_t n = (size_t)desk->n_ranks;
    desk->headers = calloc(n, mine->header_bytes + 1);
    desk->first = calloc(n + 1, sizeof *desk->first);
    desk->counts = calloc(n, sizeof *desk->counts);
    desk->displs = calloc(n, sizeof *desk->displs);
    return desk->headers && desk->first && desk->counts && desk->displs;
}

/* Turns counts into displacements; false when they exceed what MPI can count. */
static bool lay_out(struct cpl_desk *desk)
{
    int64_t total = 0;
    for (int i = 0; i < desk->n_ranks; i++) {
        desk->displs[i] = (int)total;
        total += desk->counts[i];
        if (total > INT_MAX)
            return false;
    }
    return true;
}

/* The root makes room for what is to come. */
static bool expect_records(struct cpl_desk *desk, size_t record_bytes)
{
    for (int i = 0; i < desk->n_ranks; i++)
        desk->first[i + 1] = desk->first[i] + desk->counts[i];
    desk->records = calloc((size_t)desk->first[desk->n_ranks] + 1, record_bytes ? record_bytes : 1);
    return desk->records && lay_out(desk);
}

/* Records count as one, whatever their bytes. */
static bool make_type(size_t bytes, MPI_Datatype *type)
{
    return PMPI_Type_contiguous((int)bytes, MPI_BYTE, type) == MPI_SUCCESS &&
           PMPI_Type_commit(type) == MPI_SUCCESS;
}

bool cpl_desk_hand_in(struct cpl_desk *desk, const struct cpl_handed_in *mine)
{
    MPI_Datatype type;
    int bytes = (int)mine->header_bytes;
    cpl_desk_close(desk);
    if (!cpl_agree_all(desk->comm,
                       mine->able && (!cpl_desk_is_root(desk) || make_room(desk, mine))))
        return false;
    cpl_collective_Gather(&mine->n, 1, MPI_INT, desk->counts, 1, MPI_INT, desk->root, desk->comm);
    cpl_collective_Gather(mine->header, bytes, MPI_BYTE, desk->headers, bytes, MPI_BYTE, desk->root,
                          desk->comm);
    bool expected = !cpl_desk_is_root(desk) || expect_records(desk, mine->record_bytes);
    if (mine->record_bytes == 0)
        return cpl_agree_all(desk->comm, expected);
    bool typed = make_type(mine->record_bytes, &type);
    bool all = cpl_agree_all(desk->comm, expected && typed);
    if (all)
        cpl_collective_Gatherv(mine->records, mine->n, type, desk->records, desk->counts,
                               desk->displs, type, desk->root, desk->comm);
    if (typed)
        PMPI_Type_free(&type);
    return all;
}

void cpl_desk_answer(struct cpl_desk *desk, void *answer, size_t bytes)
{
    cpl_collective_Bcast(answer, (int)bytes, MPI_BYTE, desk->root, desk->comm);
}

bool cpl_desk_spread(struct cpl_desk *desk, bool able, const void *items, size_t item_bytes,
                     void **mine, int *n)
{
    MPI_Datatype type;
    *mine = NULL;
    *n = 0;
    if (!cpl_agree_all(desk->comm, !cpl_desk_is_root(desk) || (able && lay_out(desk))))
        return false;
    cpl_collective_Scatter(desk->counts, 1, MPI_INT, n, 1, MPI_INT, desk->root, desk->comm);
    *mine = calloc((size_t)*n + 1, item_bytes);
    bool typed = make_type(item_bytes, &type);
    bool all = cpl_agree_all(desk->comm, *mine && typed);
    if (all)
        cpl_collective_Scatterv(items, desk->counts, desk->displs, type, *mine, *n, type,
                                desk->root, desk->comm);
    if (typed)
        PMPI_Type_free(&type);
    if (!all) {
        free(*mine);
        *mine = NULL;
    }
    return all;
}
