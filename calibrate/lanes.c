/* Measuring lanes (lanes.h). All slots of a turn are in the lead's part of the memory. A round,
 * from the lead's side: it says to each peer that there is one; fills a burst of slots, which the
 * peers empty; empties a burst that they have filled; and sends messages of several lengths to and
 * fro with the peer in the middle. */
#include "lanes.h"

#include "planner/machine/memory_domain.h"
#include "robust.h"
#include "shim/base/shared_memory.h"

#include <limits.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define CACHE_LINE  64
#define SPINS       200 /* looks at a slot before the processor is given away */
#define TRIPS       10  /* of a sample */
#define MOST_ROUNDS CPL_PROBE_SAMPLES
#define WARM_UP     2 /* rounds that are not counted, if there is time */

/* Lengths of the messages that go to and fro: a short one, then those of a flow. */
#define N_LENGTHS (1 + CPL_PROBE_LENGTHS)

/* A slot for a message that lies beside its flag in one cache line. */
struct slot {
    alignas(CACHE_LINE) atomic_int full;
    char bytes[CPL_PROBE_MESSAGE];
};

struct large_slot {
    alignas(CACHE_LINE) atomic_int full;
    char bytes[CPL_PROBE_BYTES];
};

/* The lead's part of the memory. Of each burst a peer has the slots k, k + peers, and so on. */
struct room {
    struct slot go[CPL_LANES_PEERS];    /* lead to peer: whether there is another round */
    struct slot ready[CPL_LANES_PEERS]; /* peer to lead */
    struct slot out[CPL_PROBE_BURST], in[CPL_PROBE_BURST];
    struct large_slot there, back;
};

int64_t cpl_lanes_node(void)
{
    MPI_Comm node;
    int rank, first, n, most = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
    first = rank;
    MPI_Bcast(&first, 1, MPI_INT, 0, node);
    MPI_Comm_size(node, &n);
    MPI_Comm_free(&node);
    MPI_Allreduce(&n, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return cpl_memory_node(first, most > 1);
}

/* The memory of the ranks of lanes->comm, a room for each; NULL: this rank has none. Collective. */
static unsigned char *share_memory(struct cpl_lanes *lanes, int rank)
{
    struct cpl_shared_name name = {.name = ""};
    unsigned char *memory = NULL;
    char why[CPL_SHARED_WHY];
    int n, mine, all = 0;
    MPI_Comm_size(lanes->comm, &n);
    lanes->bytes = CPL_SHARED_HEAD + n * (int64_t)sizeof(struct room);
    if (rank == 0)
        memory = cpl_shared_make(lanes->bytes, &name, why);
    MPI_Bcast(&name, sizeof name, MPI_BYTE, 0, lanes->comm);
    if (rank > 0 && name.name[0])
        memory = cpl_shared_attach(&name, why);
    mine = memory != NULL;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, lanes->comm);
    if (rank == 0 && name.name[0])
        cpl_shared_unname(&name);
    return memory;
}

int cpl_lanes_open(const struct cpl_probe *probe, struct cpl_lanes *lanes)
{
    int first = probe->rank, rank;
    *lanes = (struct cpl_lanes){.memory = NULL};
    MPI_Comm_split(probe->comm, (int)(cpl_lanes_node() & INT_MAX), probe->rank, &lanes->comm);
    MPI_Comm_rank(lanes->comm, &rank);
    lanes->memory = share_memory(lanes, rank);
    lanes->group = calloc((size_t)probe->n_ranks, sizeof *lanes->group);
    int mine = lanes->memory && lanes->group, all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, probe->comm);
    if (!all) {
        cpl_lanes_close(lanes);
        return -1;
    }
    MPI_Bcast(&first, 1, MPI_INT, 0, lanes->comm);
    MPI_Allgather(&first, 1, MPI_INT, lanes->group, 1, MPI_INT, probe->comm);
    return 0;
}

void cpl_lanes_close(struct cpl_lanes *lanes)
{
    if (lanes->memory)
        cpl_shared_free(lanes->memory, lanes->bytes);
    MPI_Comm_free(&lanes->comm);
    free(lanes->group);
}

/* The room of a rank of MPI_COMM_WORLD. */
static struct room *room_of(const struct cpl_lanes *lanes, int world_rank)
{
    MPI_Group world, mine;
    int rank;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Comm_group(lanes->comm, &mine);
    MPI_Group_translate_ranks(world, 1, &world_rank, mine, &rank);
    MPI_Group_free(&world);
    MPI_Group_free(&mine);
    return (struct room *)(void *)(lanes->memory + CPL_SHARED_HEAD) + rank;
}

static void await(atomic_int *full, int value)
{
    for (int k = 0; atomic_load_explicit(full, memory_order_acquire) != value; k++)
        if (k >= SPINS)
            sched_yield();
}

/* Puts a message into a slot when it is empty. */
static void fill(atomic_int *full, char *slot, const char *bytes, size_t n)
{
    await(full, false);
    memcpy(slot, bytes, n);
    atomic_store_explicit(full, true, memory_order_release);
}

/* Takes the message out of a slot when it is full. */
static void empty(atomic_int *full, const char *slot, char *bytes, size_t n)
{
    await(full, true);
    memcpy(bytes, slot, n);
    atomic_store_explicit(full, false, memory_order_release);
}

static void fill_short(struct slot *slot, const char *bytes)
{
    fill(&slot->full, slot->bytes, bytes, CPL_PROBE_MESSAGE);
}

static void empty_short(struct slot *slot, char *bytes)
{
    empty(&slot->full, slot->bytes, bytes, CPL_PROBE_MESSAGE);
}

static size_t length_of(int l)
{
    return l == 0 ? CPL_PROBE_MESSAGE : (size_t)CPL_PROBE_BYTES >> 2 * (CPL_PROBE_LENGTHS - l);
}

/* The samples of all rounds. */
struct samples {
    double send_us[MOST_ROUNDS], recv_us[MOST_ROUNDS];
    double half_us[N_LENGTHS][MOST_ROUNDS];
};

/* One round on the lead; sample number k. */
static void lead_round(struct room *room, int n_peers, char *bytes, struct samples *samples, int k)
{
    int n = CPL_PROBE_BURST / n_peers * n_peers;
    for (int p = 0; p < n_peers; p++)
        empty_short(&room->ready[p], bytes);
    double start = MPI_Wtime();
    for (int s = 0; s < n; s++)
        fill_short(&room->out[s], bytes);
    samples->send_us[k] = (MPI_Wtime() - start) * 1e6 / n;
    for (int p = 0; p < n_peers; p++)
        empty_short(&room->ready[p], bytes); /* its slots are full */
    start = MPI_Wtime();
    for (int s = 0; s < n; s++)
        empty_short(&room->in[s], bytes);
    samples->recv_us[k] = (MPI_Wtime() - start) * 1e6 / n;
    for (int l = 0; l < N_LENGTHS; l++) {
        start = MPI_Wtime();
        for (int trip = 0; trip < TRIPS; trip++) {
            fill(&room->there.full, room->there.bytes, bytes, length_of(l));
            empty(&room->back.full, room->back.bytes, bytes, length_of(l));
        }
        samples->half_us[l][k] = (MPI_Wtime() - start) * 1e6 / (2 * TRIPS);
    }
}

static void follow_round(struct room *room, int k, int n_peers, char *bytes)
{
    int n = CPL_PROBE_BURST / n_peers * n_peers;
    fill_short(&room->ready[k], bytes);
    for (int s = k; s < n; s += n_peers)
        empty_short(&room->out[s], bytes);
    for (int s = k; s < n; s += n_peers)
        fill_short(&room->in[s], bytes);
    fill_short(&room->ready[k], bytes);
    for (int l = 0; l < N_LENGTHS && k == n_peers / 2; l++)
        for (int trip = 0; trip < TRIPS; trip++) {
            empty(&room->there.full, room->there.bytes, bytes, length_of(l));
            fill(&room->back.full, room->back.bytes, bytes, length_of(l));
        }
}

static struct cpl_lane_figures figures_of(struct samples *samples, int n)
{
    double bytes[CPL_PROBE_LENGTHS], ns[CPL_PROBE_LENGTHS];
    struct cpl_lane_figures figures = {.half_us = cpl_robust_median(samples->half_us[0], n),
                                       .send_us = cpl_robust_median(samples->send_us, n),
                                       .recv_us = cpl_robust_median(samples->recv_us, n)};
    for (int l = 0; l < CPL_PROBE_LENGTHS; l++) { /* half a trip copies at two ends */
        bytes[l] = (double)length_of(1 + l);
        ns[l] = cpl_robust_median(samples->half_us[1 + l], n) * 1e3 / 2;
    }
    figures.ns_per_byte = cpl_robust_slope(bytes, ns, CPL_PROBE_LENGTHS);
    return figures;
}

struct cpl_lane_figures cpl_lanes_lead(const struct cpl_lanes *lanes, int n_peers, double seconds)
{
    static struct samples samples;
    static char bytes[CPL_PROBE_BYTES];
    int rank, n = 0, warm_up = WARM_UP;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    struct room *room = room_of(lanes, rank);
    double start = MPI_Wtime();
    for (bool goes_on = true; goes_on;) {
        bytes[0] = true;
        for (int p = 0; p < n_peers; p++)
            fill_short(&room->go[p], bytes);
        lead_round(room, n_peers, bytes, &samples, n);
        goes_on = n + 1 < MOST_ROUNDS && MPI_Wtime() - start < seconds;
        if (warm_up > 0 && goes_on)
            warm_up--;
        else
            n++;
    }
    bytes[0] = false;
    for (int p = 0; p < n_peers; p++)
        fill_short(&room->go[p], bytes);
    return figures_of(&samples, n);
}

void cpl_lanes_follow(const struct cpl_lanes *lanes, int lead, int k, int n_peers)
{
    static char bytes[CPL_PROBE_BYTES];
    struct room *room = room_of(lanes, lead);
    for (empty_short(&room->go[k], bytes); bytes[0]; empty_short(&room->go[k], bytes))
        follow_round(room, k, n_peers, bytes);
}
