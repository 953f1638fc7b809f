/* Calls that wait inside MPI (away.h). */
#include "shim/wait/away.h"
#include "shim/wait/progress.h"

#include "shim/state/context.h"

/* Tags of its messages. */
enum cpl_away_kind { CPL_AWAY_GATHER, CPL_AWAY_LEADER };

/* Whether anything is managed or served: alike on all ranks between two collectives over them. In a
 * program with several threads the helper thread serves while the program waits inside MPI, but not
 * while the lock is kept. */
bool cpl_away_gathers(void)
{
    const struct cpl_service *s = &cpl_context.service;
    bool any = s->shared ? cpl_context.lock.kept
                         : cpl_context.busy.n_managed + cpl_context.busy.n_served > 0;
    return any && cpl_context.comms.away != MPI_COMM_NULL;
}

void cpl_away_end(void)
{
    if (cpl_context.comms.away != MPI_COMM_NULL)
        PMPI_Comm_free(&cpl_context.comms.away);
}

/* Sends an empty message. Messages between two ranks keep their order, and the ranks enter their
 * common calls in the same order, so one tag is enough. */
static void tell(int rank, enum cpl_away_kind kind)
{
    MPI_Request request;
    if (PMPI_Isend(NULL, 0, MPI_BYTE, rank, kind, cpl_context.comms.away, &request) == MPI_SUCCESS)
        cpl_progress_wait(&request, MPI_STATUS_IGNORE);
}

static void hear(int rank, enum cpl_away_kind kind)
{
    MPI_Request request;
    if (PMPI_Irecv(NULL, 0, MPI_BYTE, rank, kind, cpl_context.comms.away, &request) == MPI_SUCCESS)
        cpl_progress_wait(&request, MPI_STATUS_IGNORE);
}

/* The rank in MPI_COMM_WORLD of a group's k-th; MPI_UNDEFINED: it is of another one. */
int cpl_away_world_rank(MPI_Group group, int k)
{
    MPI_Group world;
    int rank = MPI_UNDEFINED;
    PMPI_Comm_group(cpl_context.comms.away, &world);
    PMPI_Group_translate_ranks(group, 1, &k, world, &rank);
    PMPI_Group_free(&world);
    return rank;
}

bool cpl_away_is_of_this_world(MPI_Group group)
{
    MPI_Group world, others;
    int n_others = 1;
    if (!cpl_context.met_others)
        return true;
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    if (PMPI_Group_difference(group, world, &others) == MPI_SUCCESS) {
        PMPI_Group_size(others, &n_others);
        PMPI_Group_free(&others);
    }
    PMPI_Group_free(&world);
    return n_others == 0;
}

/* A barrier by dissemination. It needs no memory: a rank that stayed away would leave others
 * waiting. */
static void gather(MPI_Group group)
{
    int n = 0, me = MPI_UNDEFINED;
    PMPI_Group_size(group, &n);
    PMPI_Group_rank(group, &me);
    if (me == MPI_UNDEFINED || !cpl_away_is_of_this_world(group))
        return;
    for (int distance = 1; distance < n; distance *= 2) {
        tell(cpl_away_world_rank(group, (me + distance) % n), CPL_AWAY_GATHER);
        hear(cpl_away_world_rank(group, (me + n - distance) % n), CPL_AWAY_GATHER);
    }
}

void cpl_away_group(MPI_Group group)
{
    cpl_progress_before_wait();
    if (cpl_away_gathers() && group != MPI_GROUP_NULL)
        gather(group);
}

/* `got`: what MPI returned that gave the group. */
static void gather_got(int got, MPI_Group *group)
{
    if (got != MPI_SUCCESS)
        return;
    gather(*group);
    PMPI_Group_free(group);
}

void cpl_away_window(MPI_Win win)
{
    MPI_Group group;
    cpl_progress_before_wait();
    if (cpl_away_gathers() && win != MPI_WIN_NULL)
        gather_got(PMPI_Win_get_group(win, &group), &group);
}

void cpl_away_file(MPI_File file)
{
    MPI_Group group;
    cpl_progress_before_wait();
    if (cpl_away_gathers() && file != MPI_FILE_NULL)
        gather_got(PMPI_File_get_group(file, &group), &group);
}

void cpl_away_leaders(MPI_Comm local, int local_leader, MPI_Comm peers, int remote_leader)
{
    int rank = MPI_UNDEFINED, n = 0;
    MPI_Group group;
    PMPI_Comm_rank(local, &rank);
    if (!cpl_away_gathers() || rank != local_leader || peers == MPI_COMM_NULL ||
        PMPI_Comm_group(peers, &group) != MPI_SUCCESS)
        return;
    PMPI_Group_size(group, &n);
    int other = remote_leader < 0 || remote_leader >= n ? MPI_UNDEFINED
                                                        : cpl_away_world_rank(group, remote_leader);
    PMPI_Group_free(&group);
    if (other == MPI_UNDEFINED)
        return;
    tell(other, CPL_AWAY_LEADER);
    hear(other, CPL_AWAY_LEADER);
}
