/* Where ranks assemble (assembly.h).
 *
 * The memory has a row for each rank of the node, which it alone writes: to how many barriers it
 * has come for each of the others, then slots for its vectors, those of two rounds by turns. */
#include "shim/wait/assembly.h"

#include "shim/base/shared_memory.h"
#include "shim/state/context.h"
#include "shim/state/memory.h"
#include "shim/wait/progress.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define LINE 128 /* bytes: two cache lines, which processors fetch together */

struct cpl_assembly {
    MPI_Comm node;
    MPI_Comm leaders; /* of the first rank of each node; MPI_COMM_NULL on others, or there is one
                         node */
    int n, rank;      /* of node */
    int keyval;       /* key of a communicator's seats */
    unsigned char *memory;
    int64_t bytes;
    uint32_t n_rounds;
    uint32_t n_barriers[]; /* with each rank of the node, that this one has entered */
};

/* Where the ranks of a communicator sit, by their ranks in `node`; kept with the communicator. */
struct seats {
    int n;      /* 0: they are not all on one node */
    bool whole; /* they are all ranks of MPI_COMM_WORLD */
    int seat[];
};

int cpl_assembly_steps(int n)
{
    int n_doublings = 0;
    while (n >> n_doublings > 1)
        n_doublings++;
    return (n_doublings + 2) / 3 + 2;
}

/* A vector that others see. */
struct slot {
    _Alignas(LINE) _Atomic uint32_t round; /* whose vector it is; written last */
    _Alignas(16) unsigned char vector[CPL_ASSEMBLY_VECTOR];
};

static int64_t numbers_bytes(int n)
{
    return ((int64_t)sizeof(uint32_t) * n + LINE - 1) / LINE * LINE;
}

static int64_t row_bytes(int n)
{
    return numbers_bytes(n) + 2 * cpl_assembly_steps(n) * (int64_t)sizeof(struct slot);
}

int64_t cpl_assembly_bytes(int n)
{
    return n * row_bytes(n);
}

/* MPI's callback: the communicator is being freed. */
static int free_seats(MPI_Comm comm, int keyval, void *seats, void *extra)
{
    (void)comm, (void)keyval, (void)extra;
    free(seats);
    return MPI_SUCCESS;
}

struct cpl_assembly *cpl_assembly_make(MPI_Comm node, MPI_Comm leaders, unsigned char *memory,
                                       int64_t bytes)
{
    int n = 0;
    PMPI_Comm_size(node, &n);
    struct cpl_assembly *a =
        cpl_memory_need(sizeof *a + (size_t)n * sizeof *a->n_barriers, "the ranks of a node");
    a->node = node;
    a->leaders = leaders;
    a->memory = memory;
    a->bytes = bytes;
    a->n = n;
    PMPI_Comm_rank(node, &a->rank);
    if (PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, free_seats, &a->keyval, NULL) == MPI_SUCCESS)
        return a;
    a->keyval = MPI_KEYVAL_INVALID;
    cpl_assembly_free(a);
    return NULL;
}

void cpl_assembly_free(struct cpl_assembly *a)
{
    if (!a)
        return;
    if (a->memory)
        cpl_shared_free(a->memory, a->bytes);
    PMPI_Comm_free(&a->node);
    if (a->leaders != MPI_COMM_NULL)
        PMPI_Comm_free(&a->leaders);
    if (a->keyval != MPI_KEYVAL_INVALID)
        PMPI_Comm_free_keyval(&a->keyval);
    free(a);
}

/* Waits for memory: the other ranks of the communicator wait in memory, too. */
static const struct seats *seats_of(const struct cpl_assembly *a, MPI_Comm comm)
{
    struct seats *kept;
    MPI_Group all, node;
    int found = 0, tries = 0, n;
    if (PMPI_Comm_get_attr(comm, a->keyval, &kept, &found) == MPI_SUCCESS && found)
        return kept;
    PMPI_Comm_size(comm, &n);
    kept = cpl_memory_need(sizeof *kept + (size_t)n * sizeof *kept->seat, "a communicator");
    PMPI_Comm_group(comm, &all);
    PMPI_Comm_group(a->node, &node);
    kept->n = n;
    kept->whole = n == cpl_context.size && cpl_away_is_of_this_world(all);
    for (int k = 0; k < n; k++) {
        PMPI_Group_translate_ranks(all, 1, &k, node, &kept->seat[k]);
        if (kept->seat[k] == MPI_UNDEFINED)
            kept->n = 0;
    }
    PMPI_Group_free(&all);
    PMPI_Group_free(&node);
    while (PMPI_Comm_set_attr(comm, a->keyval, kept) != MPI_SUCCESS)
        cpl_memory_wait(&tries, "a communicator");
    cpl_memory_put_by();
    return kept;
}

/* ---- the barrier */

static unsigned char *row_of(const struct cpl_assembly *a, int seat)
{
    return a->memory + CPL_SHARED_HEAD + seat * row_bytes(a->n);
}

/* How many barriers the rank at a seat has entered with another. */
static _Atomic uint32_t *number_of(const struct cpl_assembly *a, int seat, int with)
{
    return (_Atomic uint32_t *)(void *)row_of(a, seat) + with;
}

/* While nothing is managed yet, others may prepare, and ask this rank. */
static void await(const struct cpl_assembly *a, int seat, int *n_idle)
{
    const _Atomic uint32_t *come = number_of(a, seat, a->rank);
    while ((int32_t)(atomic_load_explicit(come, memory_order_acquire) - a->n_barriers[seat]) < 0)
        if (cpl_progress_needed())
            cpl_progress_pause(++*n_idle);
        else
            cpl_progress_poll();
}

/* Tells the rank at a seat that this one has come. */
static void tell(struct cpl_assembly *a, int seat)
{
    atomic_store_explicit(number_of(a, a->rank, seat), a->n_barriers[seat], memory_order_release);
}

static void gather_in_memory(struct cpl_assembly *a, const struct seats *seats)
{
    int n_idle = 0;
    for (int k = 0; k < seats->n; k++) {
        a->n_barriers[seats->seat[k]]++;
        tell(a, seats->seat[k]);
    }
    for (int k = 0; k < seats->n; k++)
        await(a, seats->seat[k], &n_idle);
}

static void gather_by_mpi(MPI_Comm comm)
{
    MPI_Request request;
    if (PMPI_Ibarrier(comm, &request) == MPI_SUCCESS)
        cpl_progress_wait(&request, MPI_STATUS_IGNORE);
}

/* All ranks of MPI_COMM_WORLD, of several nodes: those of a node tell the first of them, which
 * tells them when the first ones of all nodes have come. So few messages go between nodes. */
static void gather_over_nodes(struct cpl_assembly *a)
{
    int n_idle = 0, first = a->rank == 0 ? 1 : 0, end = a->rank == 0 ? a->n : 1;
    for (int seat = first; seat < end; seat++) {
        a->n_barriers[seat]++;
        if (a->rank > 0)
            tell(a, seat);
    }
    for (int seat = first; seat < end; seat++)
        await(a, seat, &n_idle);
    if (a->rank > 0)
        return;
    gather_by_mpi(a->leaders);
    for (int seat = first; seat < end; seat++)
        tell(a, seat);
}

/* A barrier between two groups tells only that the other group has come. The second one tells that
 * the other group has left the first, so that all of this group have come. */
void cpl_assembly_gather(MPI_Comm comm)
{
    struct cpl_assembly *a = cpl_context.comms.assembly;
    int inter = 0;
    PMPI_Comm_test_inter(comm, &inter);
    const struct seats *seats = a && !inter ? seats_of(a, comm) : NULL;
    if (seats && seats->n > 0) {
        gather_in_memory(a, seats);
        return;
    }
    if (seats && seats->whole) {
        gather_over_nodes(a);
        return;
    }
    gather_by_mpi(comm);
    if (inter)
        gather_by_mpi(comm);
}

/* ---- vectors */

static struct slot *slot_of(const struct cpl_assembly *a, int seat, int step)
{
    int64_t number = (int64_t)(a->n_rounds % 2) * cpl_assembly_steps(a->n) + step;
    return (struct slot *)(void *)(row_of(a, seat) + numbers_bytes(a->n)) + number;
}

bool cpl_assembly_is_whole(void)
{
    const struct cpl_assembly *a = cpl_context.comms.assembly;
    return a && a->n == cpl_context.size;
}

void cpl_assembly_begin_round(void)
{
    cpl_context.comms.assembly->n_rounds++;
}

void cpl_assembly_show(int step, const void *vector, size_t bytes)
{
    const struct cpl_assembly *a = cpl_context.comms.assembly;
    struct slot *slot = slot_of(a, a->rank, step);
    if (bytes > 0)
        memcpy(slot->vector, vector, bytes);
    atomic_store_explicit(&slot->round, a->n_rounds, memory_order_release);
}

const unsigned char *cpl_assembly_see(MPI_Comm comm, int rank, int step)
{
    const struct cpl_assembly *a = cpl_context.comms.assembly;
    struct slot *slot = slot_of(a, seats_of(a, comm)->seat[rank], step);
    int n_idle = 0;
    while (atomic_load_explicit(&slot->round, memory_order_acquire) != a->n_rounds)
        cpl_progress_pause(++n_idle);
    return slot->vector;
}

/* ---- calls that wait inside MPI */

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

/* Sends a rank an empty message, then waits for one of another. Messages between two ranks keep
 * their order, and the ranks enter their common calls in the same order, so one tag is enough. */
static void trade(int to, int from, enum cpl_away_kind kind)
{
    MPI_Comm comm = cpl_context.comms.away;
    MPI_Request request;
    if (PMPI_Isend(NULL, 0, MPI_BYTE, to, kind, comm, &request) == MPI_SUCCESS)
        cpl_progress_wait(&request, MPI_STATUS_IGNORE);
    if (PMPI_Irecv(NULL, 0, MPI_BYTE, from, kind, comm, &request) == MPI_SUCCESS)
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

/* By dissemination. It needs no memory: a rank that stayed away would leave others waiting. */
void cpl_away_group(MPI_Group group)
{
    int n = 0, me = MPI_UNDEFINED;
    cpl_progress_before_wait();
    if (!cpl_away_gathers() || group == MPI_GROUP_NULL)
        return;
    PMPI_Group_size(group, &n);
    PMPI_Group_rank(group, &me);
    if (me == MPI_UNDEFINED || !cpl_away_is_of_this_world(group))
        return;
    for (int distance = 1; distance < n; distance *= 2)
        trade(cpl_away_world_rank(group, (me + distance) % n),
              cpl_away_world_rank(group, (me + n - distance) % n), CPL_AWAY_GATHER);
}

void cpl_away_window(MPI_Win win)
{
    MPI_Group group = MPI_GROUP_NULL;
    if (cpl_away_gathers() && win != MPI_WIN_NULL)
        PMPI_Win_get_group(win, &group);
    cpl_away_group(group);
    if (group != MPI_GROUP_NULL)
        PMPI_Group_free(&group);
}

void cpl_away_file(MPI_File file)
{
    MPI_Group group = MPI_GROUP_NULL;
    if (cpl_away_gathers() && file != MPI_FILE_NULL)
        PMPI_File_get_group(file, &group);
    cpl_away_group(group);
    if (group != MPI_GROUP_NULL)
        PMPI_Group_free(&group);
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
    if (other != MPI_UNDEFINED)
        trade(other, other, CPL_AWAY_LEADER);
}
