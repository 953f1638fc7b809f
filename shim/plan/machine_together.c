/* The machine that ranks plan for together (machine_together.h). */
#include "shim/plan/machine_together.h"

#include "shim/meet/agree.h"
#include "shim/plan/plan_root.h"
#include "shim/state/context.h"
#include "shim/wait/collective.h"

#include <stdlib.h>
#include <string.h>

/* The ranks of each node where nodes are blocks of as many consecutive ranks, the last one maybe of
 * fewer; else 0. A block begins where a rank's node has a higher number than all nodes of the ranks
 * before; so no node has two blocks. */
static int32_t block_size(MPI_Comm comm, const struct cpl_seat *seat, int rank, int n_ranks,
                          bool *in_world)
{
    int64_t highest = -1, size = n_ranks;
    cpl_collective_Exscan(&seat->node, &highest, 1, MPI_INT64_T, MPI_MAX, comm);
    if (rank == 0)
        highest = -1; /* MPI does not say */
    bool begins = seat->node > highest;
    int64_t second = begins && rank > 0 ? rank : n_ranks; /* where the second block may begin */
    cpl_collective_Allreduce(&second, &size, 1, MPI_INT64_T, MPI_MIN, comm);
    bool fits = seat->node >= highest && begins == (rank % size == 0);
    int64_t mine[] = {fits, seat->world_rank == rank}, all[] = {0, 0};
    cpl_collective_Allreduce(mine, all, 2, MPI_INT64_T, MPI_MIN, comm);
    *in_world = all[1] && !cpl_context.met_others && n_ranks == cpl_context.size;
    return all[0] ? (int32_t)size : 0;
}

static bool machine_of_blocks(int32_t n_ranks, int32_t size, const struct cpl_planning_costs *costs,
                              struct cpl_machine *machine)
{
    struct cpl_error error;
    if (cpl_machine_blocks(n_ranks, size, costs->shape_known ? &costs->shape : NULL, machine,
                           &error))
        return false;
    machine->cores_per_node = 0; /* as cpl_plan_machine */
    machine->costs = costs->costs;
    return true;
}

static bool machine_of_seats(MPI_Comm comm, int32_t n_ranks, const struct cpl_seat *seat,
                             const struct cpl_planning_costs *costs, struct cpl_machine *machine)
{
    struct cpl_error error;
    unsigned char *seats = calloc((size_t)n_ranks, sizeof *seat);
    if (!cpl_agree_all(comm, seats)) {
        free(seats);
        return false;
    }
    cpl_collective_Allgather(seat, (int)sizeof *seat, MPI_BYTE, seats, (int)sizeof *seat, MPI_BYTE,
                             comm);
    bool made = !cpl_plan_machine(n_ranks, seats, sizeof *seat, costs, machine, &error);
    free(seats);
    if (cpl_agree_all(comm, made))
        return true;
    if (made)
        cpl_machine_free(machine);
    return false;
}

bool cpl_machine_together(MPI_Comm comm, int root, struct cpl_machine *machine, bool *in_world)
{
    struct cpl_planning_costs costs;
    struct cpl_seat seat = cpl_agree_seat(comm);
    int rank, n_ranks;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &n_ranks);
    memset(&costs, 0, sizeof costs);
    if (rank == root)
        cpl_plan_root_costs(&costs);
    cpl_collective_Bcast(&costs, (int)sizeof costs, MPI_BYTE, root, comm);
    int32_t size = block_size(comm, &seat, rank, n_ranks, in_world);
    bool made = size > 0 ? machine_of_blocks(n_ranks, size, &costs, machine)
                         : machine_of_seats(comm, n_ranks, &seat, &costs, machine);
    if (made)
        machine->lanes = cpl_context.settings.lanes;
    return made;
}
