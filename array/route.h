/* Routes of requests: for each stage the ranks that this rank sends to and receives from, and which
 * of them leads to each owner. Grids are the planner's (planner/grid/grid.h), walked from near to
 * far: requests for the elements of a few ranks, which are often on one node, are merged all over
 * the machine before they go to that node. Peters 2024 walks from far to near ("far:"), so that
 * each stage divides the ranks that a request can still reach into consecutive ranges. */
#ifndef CARPOOL_ARRAY_ROUTE_H
#define CARPOOL_ARRAY_ROUTE_H

#include "fold.h"
#include "planner/grid/grid.h"
#include "planner/machine.h"
#include "planner/status.h"

#include <stdbool.h>
#include <stddef.h>

/* Ranks are ascending. Requests that rest on this rank count as sent to itself. */
struct cpl_stage {
    int n_to, n_from;
    int *to, *from;
    int64_t *out_first,
        *in_first;    /* n_to + 1 and n_from + 1 entries: where the requests of each peer begin */
    int32_t *peer_of; /* for each owner whose requests can be on this rank: the number of the next
                         peer in `to` */
};

struct cpl_route {
    bool is_plain;        /* one stage of all ranks, by MPI_Alltoallv */
    struct cpl_grid grid; /* of points */
    enum cpl_grid_order order;
    int32_t *point_of; /* point that a rank plays; NULL: its own number */
    int32_t *rank_at;  /* the inverse of point_of */
    int n_stages;
    struct cpl_stage *stage;
    struct cpl_arena arena; /* owns the arrays */
};

/* A parsed method: "plain", "auto", "VARIANT" or "VARIANT:ROUTE". ROUTE is SIZExSIZE..., a shape of
 * planner/grid/grid_shape.h with or without ":DIMENSIONS", or "locality"; before it "far:" or
 * nothing. */
struct cpl_method {
    bool is_plain, is_auto;
    enum cpl_variant variant;
    enum cpl_grid_order order;
    char route[100]; /* without the order; "": the text names no route */
};

/* Returns CPL_OK, or CPL_ERR_ARG with a text that names what is accepted. */
enum cpl_status cpl_method_parse(const char *text, struct cpl_method *method,
                                 struct cpl_error *error);

/* The route of rank among the machine's ranks. Returns CPL_OK, CPL_ERR_UNFIT, CPL_ERR_ARG,
 * CPL_ERR_NOMEM; text (text_bytes bytes) gets the sizes of the stages. The caller frees *route. */
enum cpl_status cpl_route_make(const struct cpl_method *method, const struct cpl_machine *machine,
                               int rank, struct cpl_route *route, char *text, size_t text_bytes,
                               struct cpl_error *error);

void cpl_route_free(struct cpl_route *route);

/* The rank that a request at rank `at` for owner goes to in a stage. */
int cpl_route_next(const struct cpl_route *route, int stage, int at, int owner);

/* The number of a rank among a stage's n peers `to` or `from`. It must be one of them. */
int cpl_stage_number(int n, const int *ranks, int rank);

/* Exchanges the directions of a stage, for answers that go back in the form of requests. */
void cpl_turn_stage(struct cpl_stage *stage);

/* Puts n folded requests in the order of their next ranks: fills the stage's out_first, and
 * target[k] with the new place of request k. Requests for the same next rank keep their order.
 * block is the number of elements of an owner; target has n entries. Returns whether all requests
 * stay where they are.
 */
bool cpl_route_place(const struct cpl_route *route, int stage, int64_t block, int32_t n,
                     const int64_t *index, int32_t *target);

#endif
