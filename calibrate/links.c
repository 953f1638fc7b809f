/* Which ranks measure what (links.h). All ranks go through the same turns; a turn's lead measures,
 * the others serve it, and rank 0 gets the figures. */
#include "links.h"

#include "lanes.h"
#include "robust.h"

#include <stdlib.h>

#define MOST_LEADS   4
#define MOST_PEERS   16
#define LINK_STEPS   4 /* measurements of a lead */
#define TAG_FIGURES  100
#define MOST_SLICE_S 0.25

/* What a lead measures, and how many figures that are. */
enum { FIGURE_HALF, FIGURE_DISTURBANCE, FIGURE_SEND, FIGURE_RECV, FIGURE_BYTE, N_FIGURES };

/* One lead's turn. */
struct turn {
    int lead;
    int n_peers;
    int peers[MOST_PEERS];
};

/* All turns of a class. */
struct turns {
    int n;
    struct turn turn[MOST_LEADS];
};

/* The number of the k-th of `most` things (at most) that are spread evenly over n. */
static int spread(int k, int n, int most)
{
    return n <= most ? k : (int)((int64_t)k * n / most);
}

static bool is_peer(const struct cpl_machine *machine, int a, int b, enum cpl_link_class class_)
{
    return a != b && cpl_machine_link(machine, a, b) == class_;
}

/* The peers that a lead has by links of a class, from its next rank on. list has room for all. */
static int list_peers(const struct cpl_machine *machine, int lead, enum cpl_link_class class_,
                      int *list)
{
    int n = 0;
    for (int k = 1; k < machine->n_ranks; k++) {
        int rank = (int)(((int64_t)lead + k) % machine->n_ranks);
        if (is_peer(machine, lead, rank, class_))
            list[n++] = rank;
    }
    return n;
}

static bool has_peer(const struct cpl_machine *machine, int lead, enum cpl_link_class class_)
{
    for (int rank = 0; rank < machine->n_ranks; rank++)
        if (is_peer(machine, lead, rank, class_))
            return true;
    return false;
}

/* Candidates are a few ranks of the whole run; when none of them has such a link, the first rank
 * that has one. scratch has room for all ranks. */
static void choose_turns(const struct cpl_machine *machine, enum cpl_link_class class_,
                         int most_peers, int *scratch, struct turns *turns)
{
    int most = most_peers < MOST_PEERS ? most_peers : MOST_PEERS;
    int leads[MOST_LEADS], n_leads = 0;
    for (int k = 0; k < MOST_LEADS && k < machine->n_ranks; k++) {
        int rank = spread(k, machine->n_ranks, MOST_LEADS);
        if (has_peer(machine, rank, class_))
            leads[n_leads++] = rank;
    }
    for (int rank = 0; rank < machine->n_ranks && !n_leads; rank++)
        if (has_peer(machine, rank, class_))
            leads[n_leads++] = rank;
    turns->n = n_leads;
    for (int t = 0; t < n_leads; t++) {
        struct turn *turn = &turns->turn[t];
        int n = list_peers(machine, leads[t], class_, scratch);
        turn->lead = leads[t];
        turn->n_peers = n < most ? n : most;
        for (int k = 0; k < turn->n_peers; k++)
            turn->peers[k] = scratch[spread(k, n, most)];
    }
}

/* Brings the lead's figures to rank 0. */
static void hand_in(const struct cpl_probe *probe, int lead, double *figures, int n)
{
    if (lead == 0)
        return;
    if (probe->rank == lead)
        MPI_Send(figures, n, MPI_DOUBLE, 0, TAG_FIGURES, probe->comm);
    else if (probe->rank == 0)
        MPI_Recv(figures, n, MPI_DOUBLE, lead, TAG_FIGURES, probe->comm, MPI_STATUS_IGNORE);
}

static void take_turn(const struct cpl_probe *probe, const struct turn *turn,
                      double figures[N_FIGURES])
{
    if (probe->rank == turn->lead) {
        int peer = turn->peers[turn->n_peers / 2];
        struct cpl_flow flow = {turn->lead, peer};
        figures[FIGURE_HALF] = cpl_probe_half_trip(probe, peer, &figures[FIGURE_DISTURBANCE]);
        figures[FIGURE_SEND] = cpl_probe_send_us(probe, turn->peers, turn->n_peers);
        figures[FIGURE_RECV] =
            cpl_probe_recv_us(probe, turn->peers, turn->n_peers, figures[FIGURE_HALF]);
        figures[FIGURE_BYTE] = cpl_probe_ns_per_byte(probe, &flow, 1);
        cpl_probe_release(probe);
    } else {
        cpl_probe_serve(probe, turn->lead);
    }
    hand_in(probe, turn->lead, figures, N_FIGURES);
}

static double median_of(double figures[MOST_LEADS][N_FIGURES], int n, int which)
{
    double values[MOST_LEADS];
    for (int t = 0; t < n; t++)
        values[t] = figures[t][which];
    return cpl_robust_median(values, n);
}

/* The medians of all turns, if there were any. */
static void conclude(const struct turns *turns, double figures[MOST_LEADS][N_FIGURES],
                     struct cpl_link_result *result)
{
    *result = (struct cpl_link_result){.n_leads = turns->n};
    if (!turns->n)
        return;
    for (int t = 0; t < turns->n; t++)
        if (turns->turn[t].n_peers > result->n_peers)
            result->n_peers = turns->turn[t].n_peers;
    result->cost = (struct cpl_link_cost){.send_us = median_of(figures, turns->n, FIGURE_SEND),
                                          .recv_us = median_of(figures, turns->n, FIGURE_RECV),
                                          .ns_per_byte = median_of(figures, turns->n, FIGURE_BYTE)};
    result->disturbance = median_of(figures, turns->n, FIGURE_DISTURBANCE);
    double way_us =
        median_of(figures, turns->n, FIGURE_HALF) - result->cost.send_us - result->cost.recv_us;
    result->cost.latency_us = way_us > 0 ? way_us : 0;
}

static void measure_class(const struct cpl_probe *probe, const struct turns *turns,
                          struct cpl_link_result *result)
{
    double figures[MOST_LEADS][N_FIGURES] = {{0}};
    for (int t = 0; t < turns->n; t++)
        take_turn(probe, &turns->turn[t], figures[t]);
    conclude(turns, figures, result);
}

/* The turns with those peers that share memory with their leads. */
static struct turns share_memory(const struct turns *turns, const int *group)
{
    struct turns sharing = {0};
    for (int t = 0; t < turns->n; t++) {
        const struct turn *all = &turns->turn[t];
        struct turn *turn = &sharing.turn[sharing.n];
        *turn = (struct turn){.lead = all->lead};
        for (int k = 0; k < all->n_peers; k++)
            if (group[all->peers[k]] == group[all->lead])
                turn->peers[turn->n_peers++] = all->peers[k];
        sharing.n += turn->n_peers > 0;
    }
    return sharing;
}

/* The lanes of a class, by the turns of its link; the ranks that are not needed sleep. */
static void measure_lanes(const struct cpl_probe *probe, const struct cpl_lanes *lanes,
                          const struct turns *of_link, struct cpl_link_result *result)
{
    const struct turns turns = share_memory(of_link, lanes->group);
    double figures[MOST_LEADS][N_FIGURES] = {{0}};
    for (int t = 0; t < turns.n; t++) {
        const struct turn *turn = &turns.turn[t];
        cpl_probe_barrier(probe);
        if (probe->rank == turn->lead) {
            struct cpl_lane_figures lane =
                cpl_lanes_lead(lanes, turn->n_peers, LINK_STEPS * probe->slice_s);
            figures[t][FIGURE_HALF] = lane.half_us;
            figures[t][FIGURE_SEND] = lane.send_us;
            figures[t][FIGURE_RECV] = lane.recv_us;
            figures[t][FIGURE_BYTE] = lane.ns_per_byte;
        }
        for (int k = 0; k < turn->n_peers; k++)
            if (probe->rank == turn->peers[k])
                cpl_lanes_follow(lanes, turn->lead, k, turn->n_peers);
        cpl_probe_barrier(probe);
        hand_in(probe, turn->lead, figures[t], N_FIGURES);
    }
    conclude(&turns, figures, result);
}

/* Where no memory can be shared, no lanes are measured. */
static void measure_all_lanes(const struct cpl_probe *probe, const struct turns *turns,
                              struct cpl_links_result *result)
{
    struct cpl_lanes lanes;
    if (cpl_lanes_open(probe, &lanes))
        return;
    for (int c = 0; c < CPL_LINK_NETWORK; c++)
        measure_lanes(probe, &lanes, &turns[c], &result->lane[c]);
    cpl_lanes_close(&lanes);
}

/* Flows from all ranks of a node to the ranks of another one, one for each as long as there are
 * receivers. flows has room for all ranks. */
static int list_flows(const struct cpl_machine *machine, int from, int to, struct cpl_flow *flows)
{
    int n_from = 0, n_to = 0;
    for (int rank = 0; rank < machine->n_ranks; rank++) {
        if (machine->node[rank] == from)
            flows[n_from++].from = rank;
        if (machine->node[rank] == to)
            flows[n_to++].to = rank;
    }
    return n_from < n_to ? n_from : n_to;
}

/* Two pairs of neighbouring nodes at most: the first ones and those in the middle. */
static void measure_interfaces(const struct cpl_probe *probe, const struct cpl_machine *machine,
                               struct cpl_flow *flows, struct cpl_links_result *result)
{
    double figures[2];
    int n_pairs = machine->n_nodes < 2 ? 0 : machine->n_nodes < 4 ? 1 : 2;
    for (int k = 0; k < n_pairs; k++) {
        int from = k * (machine->n_nodes / 2), to = from + 1;
        int n = list_flows(machine, from, to, flows);
        if (n < 2)
            continue;
        double *figure = &figures[result->n_node_pairs++];
        if (n > result->n_flows)
            result->n_flows = n;
        if (probe->rank == flows[0].from) {
            *figure = cpl_probe_ns_per_byte(probe, flows, n);
            cpl_probe_release(probe);
        } else {
            cpl_probe_serve(probe, flows[0].from);
        }
        hand_in(probe, flows[0].from, figure, 1);
    }
    if (result->n_node_pairs)
        result->node_ns_per_byte = cpl_robust_median(figures, result->n_node_pairs);
    else
        result->node_ns_per_byte = result->link[CPL_LINK_NETWORK].cost.ns_per_byte;
}

int cpl_links_measure(struct cpl_probe *probe, const struct cpl_machine *machine, double seconds,
                      int most_peers, struct cpl_links_result *result)
{
    size_t n = (size_t)machine->n_ranks;
    int *scratch = calloc(n, sizeof *scratch);
    struct cpl_flow *flows = calloc(n, sizeof *flows);
    int mine = scratch && flows, all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, probe->comm);
    if (all) {
        struct turns turns[CPL_N_LINKS];
        int n_steps = 2; /* the interfaces */
        for (int c = 0; c < CPL_N_LINKS; c++) {
            choose_turns(machine, (enum cpl_link_class)c, most_peers, scratch, &turns[c]);
            n_steps += LINK_STEPS * turns[c].n * (c < CPL_LINK_NETWORK ? 2 : 1); /* and its lanes */
        }
        probe->slice_s = seconds / n_steps < MOST_SLICE_S ? seconds / n_steps : MOST_SLICE_S;
        *result = (struct cpl_links_result){0};
        for (int c = 0; c < CPL_N_LINKS; c++)
            measure_class(probe, &turns[c], &result->link[c]);
        measure_interfaces(probe, machine, flows, result);
        measure_all_lanes(probe, turns, result);
    }
    free(scratch);
    free(flows);
    return all ? 0 : -1;
}
