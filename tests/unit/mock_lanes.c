/* Lanes between ranks of one process (mock_lanes.h). */
#include "mock_lanes.h"

#include "mock_mpi.h"
#include "shim/carry/lanes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { MOST_LANES = 4096 };

static struct {
    int ranks_per_node, n;
    struct made {
        int from, to, key, n_ends;
        int64_t room;
        unsigned char *shared;
    } lane[MOST_LANES];
} made;

void mock_lanes_begin(int ranks_per_node)
{
    made.ranks_per_node = ranks_per_node;
    made.n = 0;
}

int mock_lanes_end(void)
{
    for (int k = 0; k < made.n; k++) {
        assert_int_equal(made.lane[k].n_ends, 2);
        free(made.lane[k].shared);
    }
    return made.n;
}

static struct cpl_lane open_end(int from, int to, int key, int64_t room)
{
    int k = 0;
    while (k < made.n &&
           (made.lane[k].from != from || made.lane[k].to != to || made.lane[k].key != key))
        k++;
    if (k == made.n) {
        assert_true(made.n < MOST_LANES);
        size_t bytes = (size_t)cpl_lane_bytes(room);
        made.lane[made.n++] =
            (struct made){from, to, key, 0, room, aligned_alloc(CPL_LANE_LINE, bytes)};
        assert_non_null(made.lane[k].shared);
        for (size_t b = 0; b < bytes; b++)
            made.lane[k].shared[b] = 0;
    }
    made.lane[k].n_ends++;
    assert_int_equal(made.lane[k].room, room);
    return (struct cpl_lane){.shared = made.lane[k].shared, .room = room};
}

bool cpl_lanes_open(struct cpl_lanes *lanes, MPI_Comm comm, bool able)
{
    int rank;
    assert_true(able);
    PMPI_Comm_rank(comm, &rank);
    lanes->memory = made.ranks_per_node > 1 ? &made : NULL;
    for (int side = 0; side < 2; side++) {
        struct cpl_lane_ends *ends = side ? &lanes->in : &lanes->out;
        for (int32_t e = 0; e < ends->n; e++) {
            struct cpl_lane_end *end = &ends->end[e];
            int other = end->rank, per = made.ranks_per_node;
            bool near = per > 1 && rank / per == other / per && end->lane.room > 0 &&
                        end->lane.room <= CPL_LANE_MOST;
            end->lane =
                near ? open_end(side ? other : rank, side ? rank : other, end->key, end->lane.room)
                     : (struct cpl_lane){.room = end->lane.room};
        }
    }
    return true;
}

void cpl_lanes_close(struct cpl_lanes *lanes)
{
    lanes->memory = NULL;
}
