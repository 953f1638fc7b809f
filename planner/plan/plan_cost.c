/* The linear cost model (plan.h, cpl_plan_cost; machine.h has the parameters).
 *
 * A wave costs what its busiest rank needs: the latency of the farthest link it uses, the overheads
 * of its sends and receives, its segments and its bytes inside the node at each end, or, where that
 * takes longer, the latency of the network and the bytes of a rank, or of a node, on their way out
 * of it or into it, whichever are more: a network carries what has been sent while the processor
 * prepares the next message. Where the ranks of a node share fewer cores, they together need the
 * sum of their overheads and a switch for each of them, divided by the cores, so that many waves
 * are expensive. Waves add up, as if there were a barrier after each; the chain model has no
 * barriers (plan_chain.c). O(edges + segments + ranks x waves).
 */
#include "planner/plan/plan_internal.h"

struct node_load {
    double busy_us; /* sum over all ranks of the node, with a switch for each rank that has
                       something to do */
    double net_out;
    double net_in;
};

struct wave_loads {
    const struct cpl_machine *machine;
    struct cpl_rank_load *rank;
    struct node_load *node;
};

/* The time to pack or unpack an edge's segments. */
static double segments_us(const struct cpl_plan *plan, const struct cpl_edge *edge,
                          const struct cpl_costs *costs)
{
    double us = 0;
    if (!plan->has_parts)
        return edge->n_segments * costs->segment_ns * 1e-3;
    for (int64_t s = edge->first_segment; s < edge->first_segment + edge->n_segments; s++)
        us += cpl_segment_us(costs, true, (double)plan->bundles[plan->segments[s]].volume);
    return us;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

void cpl_rank_load_add(struct cpl_rank_load *load, const struct cpl_machine *machine,
                       enum cpl_link_class class_, bool sends, double bytes, double segments_us)
{
    const struct cpl_link_cost *link = cpl_machine_edge_cost(machine, class_);
    double ends_us = segments_us;
    if (class_ == CPL_LINK_NETWORK)
        *(sends ? &load->net_out : &load->net_in) += bytes;
    else
        ends_us += bytes * link->ns_per_byte * 1e-3;
    load->busy_us += (sends ? link->send_us : link->recv_us) + ends_us;
    load->recv_us += sends ? 0 : link->recv_us + ends_us;
    load->latency_us = larger(load->latency_us, link->latency_us);
}

static void add_edge(struct wave_loads *loads, const struct cpl_plan *plan,
                     const struct cpl_edge *edge, double unit_bytes)
{
    const struct cpl_machine *machine = loads->machine;
    enum cpl_link_class class_ = cpl_machine_link(machine, edge->from, edge->to);
    double bytes = (double)edge->volume * unit_bytes;
    double ends_us = segments_us(plan, edge, &machine->costs);
    cpl_rank_load_add(&loads->rank[edge->from], machine, class_, true, bytes, ends_us);
    cpl_rank_load_add(&loads->rank[edge->to], machine, class_, false, bytes, ends_us);
    if (class_ == CPL_LINK_NETWORK) {
        loads->node[machine->node[edge->from]].net_out += bytes;
        loads->node[machine->node[edge->to]].net_in += bytes;
    }
}

/* The time of the larger of two loads on a wire; 0 when there are none. */
static double wire_time(const struct cpl_costs *costs, double out, double in, double ns_per_byte)
{
    double bytes = larger(out, in);
    return bytes > 0 ? costs->link[CPL_LINK_NETWORK].latency_us + bytes * ns_per_byte * 1e-3 : 0;
}

double cpl_rank_load_time(const struct cpl_costs *costs, const struct cpl_rank_load *load)
{
    return larger(
        load->latency_us + load->busy_us,
        wire_time(costs, load->net_out, load->net_in, costs->link[CPL_LINK_NETWORK].ns_per_byte));
}

void cpl_port_load_add(struct cpl_port_load *port, const struct cpl_rank_load *load)
{
    port->net_out += load->net_out;
    port->net_in += load->net_in;
    if (load->net_in > 0)
        port->recv_us = larger(port->recv_us, load->recv_us);
}

double cpl_port_load_time(const struct cpl_costs *costs, const struct cpl_port_load *port)
{
    double node_ns = cpl_wave_node_ns(costs);
    return larger(wire_time(costs, port->net_out, 0, node_ns),
                  wire_time(costs, 0, port->net_in, node_ns) + port->recv_us);
}

/* The time of the wave whose edges have been added; clears the loads. */
static double finish_wave(struct wave_loads *loads)
{
    const struct cpl_machine *machine = loads->machine;
    double slowest = 0;
    for (int32_t i = 0; i < machine->n_ranks; i++) {
        slowest = larger(slowest, cpl_rank_load_time(&machine->costs, &loads->rank[i]));
        if (loads->rank[i].busy_us > 0)
            loads->node[machine->node[i]].busy_us +=
                loads->rank[i].busy_us + machine->costs.switch_us;
    }
    for (int32_t k = 0; k < machine->n_nodes; k++) {
        const struct node_load *node = &loads->node[k];
        slowest = larger(
            slowest, cpl_port_load_time(&machine->costs,
                                        &(struct cpl_port_load){node->net_out, node->net_in, 0}));
        if (machine->cores_per_node > 0)
            slowest = larger(slowest, node->busy_us / machine->cores_per_node);
    }
    for (int32_t i = 0; i < machine->n_ranks; i++)
        loads->rank[i] = (struct cpl_rank_load){0};
    for (int32_t k = 0; k < machine->n_nodes; k++)
        loads->node[k] = (struct node_load){0};
    return slowest;
}

enum cpl_status cpl_plan_cost(const struct cpl_plan *plan, const struct cpl_machine *machine,
                              double unit_bytes, double *microseconds, struct cpl_error *error)
{
    if (machine->n_ranks != plan->n_ranks)
        return cpl_fail(error, CPL_ERR_ARG, "a machine of %d ranks for a plan of %d",
                        machine->n_ranks, plan->n_ranks);
    struct cpl_arena scratch = CPL_ARENA_EMPTY;
    struct wave_loads loads = {
        .machine = machine,
        .rank = CPL_ARENA_ARRAY(&scratch, struct cpl_rank_load, machine->n_ranks),
        .node = CPL_ARENA_ARRAY(&scratch, struct node_load, machine->n_nodes)};
    if (!loads.rank || !loads.node) {
        cpl_arena_free(&scratch);
        return cpl_fail_memory(error, "the cost model");
    }
    double total = 0;
    for (int64_t e = 0; e < plan->n_edges; e++) {
        if (e > 0 && plan->edges[e].wave != plan->edges[e - 1].wave)
            total += finish_wave(&loads);
        add_edge(&loads, plan, &plan->edges[e], unit_bytes);
    }
    if (plan->n_edges)
        total += finish_wave(&loads);
    cpl_arena_free(&scratch);
    *microseconds = total;
    return CPL_OK;
}
