/* Carrying an allgather (allgather.h). The ring sends from and receives into the program's buffer,
 * by its datatypes; doubling gathers in the order of the points, since one message holds the data
 * of many: in the program's buffer, if it lies there so on this rank, else in a buffer of its own,
 * from which it is copied to its places at the end. Messages of no bytes are not sent by the ring:
 * both ends know. */
#include "planner/grid/hypercube.h"
#include "shim/base/work.h"
#include "shim/exchange/allgather.h"
#include "shim/wait/collective.h"

#include <stdlib.h>

#define ALLGATHER_TAG 999 /* on the private communicator */

struct gathering {
    struct cpl_comm_state *state;
    const int32_t *rank_at;
    int32_t n, point;
    unsigned char *room; /* where doubling gathers */
    int result;          /* MPI's, of the first error */
};

static void note(struct gathering *g, int code)
{
    if (g->result == MPI_SUCCESS)
        g->result = code;
}

static int rank_of(const struct gathering *g, int32_t point)
{
    return g->rank_at ? g->rank_at[point] : point;
}

static void wait_both(struct gathering *g, MPI_Request requests[2])
{
    MPI_Status statuses[2] = {{.MPI_ERROR = MPI_SUCCESS}, {.MPI_ERROR = MPI_SUCCESS}};
    int code = cpl_collective_waitall(2, requests, statuses);
    for (int k = 0; k < 2 && code == MPI_ERR_IN_STATUS; k++)
        if (statuses[k].MPI_ERROR != MPI_SUCCESS)
            code = statuses[k].MPI_ERROR;
    note(g, code);
}

/* ---- ring ---- */

static const struct cpl_span *span_of(const struct gathering *g, int32_t point)
{
    return &g->state->allgathers.kept->span[rank_of(g, point)];
}

static void send_span(struct gathering *g, const struct cpl_span *span, int to,
                      MPI_Request *request)
{
    *request = MPI_REQUEST_NULL;
    if (cpl_span_bytes(span) > 0)
        note(g, PMPI_Isend_c(span->address, span->count, span->type.handle, to, ALLGATHER_TAG,
                             g->state->private_comm, request));
}

static void receive_span(struct gathering *g, const struct cpl_span *span, int from,
                         MPI_Request *request)
{
    *request = MPI_REQUEST_NULL;
    if (cpl_span_bytes(span) > 0)
        note(g, PMPI_Irecv_c(span->address, span->count, span->type.handle, from, ALLGATHER_TAG,
                             g->state->private_comm, request));
}

/* In step k the data of the point k before travels on; the receive of the step after it is posted
 * already. */
static void ring(struct gathering *g)
{
    int32_t n = g->n, mine = g->point;
    int before = rank_of(g, (mine + n - 1) % n), after = rank_of(g, (mine + 1) % n);
    MPI_Request next, pair[2];
    receive_span(g, span_of(g, (mine + n - 1) % n), before, &next);
    for (int32_t step = 0; step < n - 1; step++) {
        pair[0] = next;
        if (step + 2 < n)
            receive_span(g, span_of(g, (mine + 2 * n - step - 2) % n), before, &next);
        send_span(g, span_of(g, (mine + n - step) % n), after, &pair[1]);
        wait_both(g, pair);
    }
}

/* ---- doubling ---- */

/* Where the points' data begins in the program's buffer when it lies there one after the other;
 * else, or when there is none, NULL. */
static unsigned char *find_in_order(const struct gathering *g)
{
    const int64_t *at = g->state->allgathers.kept->at;
    char *first = NULL;
    for (int32_t point = 0; point < g->n; point++) {
        const struct cpl_span *span = span_of(g, point);
        if (cpl_span_bytes(span) == 0)
            continue;
        first = first ? first : span->address;
        if (!span->type.dense || span->address != first + at[point])
            return NULL;
    }
    return (unsigned char *)first;
}

/* Lays the points' data out, and packs this rank's unless it is there. */
static void lay_out(struct gathering *g)
{
    struct cpl_allgather *a = g->state->allgathers.kept;
    a->at[0] = 0;
    for (int32_t point = 0; point < g->n; point++)
        a->at[point + 1] = a->at[point] + cpl_span_bytes(span_of(g, point));
    g->room = find_in_order(g);
    if (g->room)
        return;
    g->room = a->room;
    note(g, cpl_span_pack(span_of(g, g->point), g->room + a->at[g->point]));
}

/* Exchanges with a point: sends the data of points from first to end, and receives that of others;
 * empty ranges are not sent. */
static void exchange(struct gathering *g, int32_t with, const int32_t sent[2],
                     const int32_t received[2])
{
    const struct cpl_allgather *a = g->state->allgathers.kept;
    MPI_Request pair[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    int rank = rank_of(g, with);
    if (received[1] > received[0])
        note(g, PMPI_Irecv_c(g->room + a->at[received[0]], a->at[received[1]] - a->at[received[0]],
                             MPI_BYTE, rank, ALLGATHER_TAG, g->state->private_comm, &pair[0]));
    if (sent[1] > sent[0])
        note(g, PMPI_Isend_c(g->room + a->at[sent[0]], a->at[sent[1]] - a->at[sent[0]], MPI_BYTE,
                             rank, ALLGATHER_TAG, g->state->private_comm, &pair[1]));
    wait_both(g, pair);
}

/* The first point of a corner; that of the corner behind the last one is the number of points. */
static int32_t first_point(const struct cpl_hypercube *cube, int32_t corner)
{
    return corner < cube->n_folded ? 2 * corner : corner + cube->n_folded;
}

static void climb(struct gathering *g, const struct cpl_hypercube *cube)
{
    int32_t corner = cpl_hypercube_corner(cube, g->point);
    for (int32_t bit = 1; bit < 1 << cube->n_steps; bit *= 2) {
        int32_t mine = corner & ~(bit - 1), theirs = mine ^ bit;
        exchange(g, cpl_hypercube_rank(cube, corner ^ bit),
                 (const int32_t[]){first_point(cube, mine), first_point(cube, mine + bit)},
                 (const int32_t[]){first_point(cube, theirs), first_point(cube, theirs + bit)});
    }
}

static void unpack(struct gathering *g)
{
    const struct cpl_allgather *a = g->state->allgathers.kept;
    if (g->room != a->room)
        return;
    for (int32_t point = 0; point < g->n; point++)
        if (point != g->point)
            note(g, cpl_span_unpack(span_of(g, point), g->room + a->at[point],
                                    a->at[point + 1] - a->at[point]));
    cpl_work_combined(g->n, a->at[g->n]);
}

static void doubling(struct gathering *g)
{
    struct cpl_hypercube cube = cpl_hypercube_of(g->n);
    const int32_t none[2] = {0, 0}, all[2] = {0, g->n};
    const int32_t own[2] = {g->point, g->point + 1};
    bool folds = g->point < 2 * cube.n_folded;
    lay_out(g);
    if (folds && g->point % 2 == 0) {
        exchange(g, g->point + 1, own, none);
        exchange(g, g->point + 1, none, all);
    } else {
        if (folds)
            exchange(g, g->point - 1, none, (const int32_t[]){g->point - 1, g->point});
        climb(g, &cube);
        if (folds)
            exchange(g, g->point - 1, all, none);
    }
    unpack(g);
}

/* ---- the table ---- */

#define WAY(NAME, name) [CPL_ALLGATHER_##NAME] = name,
static void (*const carry[])(struct gathering *) = {CPL_ALLGATHER_WAYS(WAY)};
#undef WAY

int cpl_allgather_run(struct cpl_comm_state *state, const struct cpl_span *own,
                      enum cpl_allgather_way way, const int32_t *rank_at, int32_t point)
{
    struct gathering g = {.state = state,
                          .rank_at = rank_at,
                          .n = state->size,
                          .point = point,
                          .result = MPI_SUCCESS};
    if (own)
        note(&g, cpl_span_copy(own, span_of(&g, point)));
    carry[way](&g);
    return g.result;
}
