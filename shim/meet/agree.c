/* What all ranks settle together (agree.h). */
#include "shim/meet/agree.h"
#include "shim/wait/progress.h"

#include "planner/machine/memory_domain.h"
#include "shim/state/context.h"
#include "shim/state/hooks.h"
#include "shim/wait/assembly.h"
#include "shim/wait/collective.h"

#include <limits.h>
#include <string.h>

bool cpl_agree_all(MPI_Comm comm, bool yes)
{
    int mine = yes, all = 0;
    return cpl_collective_settle(&mine, &all, 1, MPI_INT, MPI_MIN, comm) == MPI_SUCCESS && all;
}

int64_t cpl_agree_ns(double seconds)
{
    const double most = 1e15; /* eleven days, and a sum over many ranks fits */
    double ns = seconds * 1e9;
    return (int64_t)(ns > most ? most : ns > -most ? ns : 0);
}

/* What a call by a plan has gained, or cost while it was tried: beside MPI's, once these are known.
 */
static void settle_account(const struct cpl_trial *trial, double us)
{
    struct cpl_account *account = &cpl_context.account;
    const double mpi_us = cpl_trial_us(trial, 0);
    const int32_t candidate = cpl_trial_candidate(trial);
    if (candidate == 0 || mpi_us <= 0)
        return;
    double gain = 1e-6 * (mpi_us - (trial->running ? us : cpl_trial_us(trial, candidate)));
    if (gain > 0)
        account->gained += gain;
    else if (trial->running)
        account->spent[CPL_COST_TRIALS] -= gain;
}

bool cpl_agree_trial(MPI_Comm private_comm, struct cpl_trial *trial, double us)
{
    int64_t mine[CPL_MAX_TRIED], most[CPL_MAX_TRIED];
    double slowest_us[CPL_MAX_TRIED];
    settle_account(trial, us);
    if (!cpl_trial_note(trial, us))
        return false;
    for (int32_t k = 0; k < trial->n; k++)
        mine[k] = most[k] = cpl_agree_ns(trial->own_us[k] * 1e-6);
    cpl_collective_Allreduce(mine, most, trial->n, MPI_INT64_T, MPI_MAX, private_comm);
    for (int32_t k = 0; k < trial->n; k++)
        slowest_us[k] = (double)most[k] * 1e-3;
    cpl_trial_judge(trial, slowest_us);
    return !trial->running;
}

/* Makes one of all ranks in the order of key, or of the group's. */
static bool make(MPI_Comm comm, int key, MPI_Group group, MPI_Comm *made)
{
    MPI_Errhandler handler;
    /* Communicators may run out: that is ours to know, not the program's error handler's. */
    PMPI_Comm_get_errhandler(comm, &handler);
    PMPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    int result = group == MPI_GROUP_NULL ? cpl_collective_Comm_split(comm, 0, key, made)
                                         : cpl_collective_Comm_create(comm, group, made);
    bool all = cpl_agree_all(comm, result == MPI_SUCCESS);
    PMPI_Comm_set_errhandler(comm, handler);
    PMPI_Errhandler_free(&handler);
    if (!all && result == MPI_SUCCESS)
        PMPI_Comm_free(made);
    if (!all)
        *made = MPI_COMM_NULL;
    else
        PMPI_Comm_set_errhandler(*made, MPI_ERRORS_RETURN);
    return all;
}

bool cpl_agree_split(MPI_Comm comm, int key, MPI_Comm *made)
{
    return make(comm, key, MPI_GROUP_NULL, made);
}

static bool is_of_this_world(MPI_Comm comm)
{
    return !cpl_context.met_others || cpl_collective_of_this_world(comm);
}

/* Which ranks share a node: what the user has set, or was found out over all ranks; -1: nothing. */
static int64_t known_node(MPI_Comm comm)
{
    int64_t n = cpl_context.settings.ranks_per_node;
    if (n > 0)
        return cpl_context.rank / n;
    return is_of_this_world(comm) ? cpl_context.machine.node - 1 : -1;
}

/* The same for later, when all ranks have found it. */
static void remember_node(MPI_Comm comm, int number)
{
    int size;
    PMPI_Comm_size(comm, &size);
    if (size == cpl_context.size && is_of_this_world(comm))
        cpl_context.machine.node = (int64_t)number + 1;
}

/* The number of this rank's node: MPI's word, and what was found out here
 * (planner/machine/memory_domain.h). False on all ranks when MPI fails on one. Collective. */
static bool find_node(MPI_Comm comm, int *number)
{
    MPI_Comm node;
    int n = 0, most = 0, first;
    int64_t known = known_node(comm);
    *number = (int)known;
    if (known >= 0)
        return true;
    PMPI_Comm_rank(comm, &first);
    int result =
        cpl_collective_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, first, MPI_INFO_NULL, &node);
    if (!cpl_agree_all(comm, result == MPI_SUCCESS)) {
        if (result == MPI_SUCCESS)
            PMPI_Comm_free(&node);
        return false;
    }
    PMPI_Comm_size(node, &n);
    cpl_collective_Bcast(&first, 1, MPI_INT, 0, node);
    PMPI_Comm_free(&node);
    result = cpl_collective_Allreduce(&n, &most, 1, MPI_INT, MPI_MAX, comm);
    if (!cpl_agree_all(comm, result == MPI_SUCCESS))
        return false;
    *number = (int)(cpl_memory_node(first, most > 1) & INT_MAX);
    remember_node(comm, *number);
    return true;
}

bool cpl_agree_split_node(MPI_Comm comm, MPI_Comm *node)
{
    int rank, number;
    if (!find_node(comm, &number))
        return false;
    PMPI_Comm_rank(comm, &rank);
    int result = cpl_collective_Comm_split(comm, number, rank, node);
    if (!cpl_agree_all(comm, result == MPI_SUCCESS)) {
        if (result == MPI_SUCCESS)
            PMPI_Comm_free(node);
        return false;
    }
    PMPI_Comm_set_errhandler(*node, MPI_ERRORS_RETURN);
    return true;
}

int64_t cpl_agree_node(MPI_Comm comm)
{
    int rank, number;
    PMPI_Comm_rank(comm, &rank);
    return find_node(comm, &number) ? number : rank;
}

struct cpl_seat cpl_agree_seat(MPI_Comm comm)
{
    return (struct cpl_seat){cpl_agree_node(comm), cpl_context.rank};
}

int cpl_agree_root(MPI_Comm comm, int rank)
{
    struct {
        int world_rank, rank;
    } mine = {cpl_context.rank, rank}, first = mine;
    cpl_collective_Allreduce(&mine, &first, 1, MPI_2INT, MPI_MINLOC, comm);
    return first.rank;
}

/* The parts prepare; no rank goes on before all are ready. */
static void prepare_parts(MPI_Comm over)
{
    CPL_EACH_HOOKS(hooks)
    {
        if (hooks->prepare)
            hooks->prepare();
    }
    cpl_assembly_gather(over);
}

bool cpl_agree_world(MPI_Comm over)
{
    MPI_Group world;
    if (cpl_context.comms.away != MPI_COMM_NULL)
        return true;
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    bool made = make(over, 0, world, &cpl_context.comms.away);
    PMPI_Group_free(&world);
    return made;
}

bool cpl_agree_service(MPI_Comm over)
{
    bool ready =
        cpl_agree_all(over, cpl_service_prepare(cpl_progress_serve)) && cpl_agree_world(over);
    if (ready && cpl_context.busy.n_managed + cpl_context.busy.n_served == 0)
        prepare_parts(over);
    return ready;
}
