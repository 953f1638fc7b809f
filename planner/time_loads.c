/* Loads and prices under the full cost model (time_loads.h). */
#include "time_loads.h"

#include "exponential.h"

/* A sum that has been larger by this factor is not exact enough any more. */
#define LOST_DIGITS 1e8

enum cpl_status cpl_time_loads_init(struct cpl_time_loads *loads, const struct cpl_machine *machine,
                                    int32_t n_waves, struct cpl_arena *arena)
{
    const struct cpl_costs *costs = &machine->costs;
    *loads = (struct cpl_time_loads){
        .machine = machine,
        .n_waves = n_waves,
        .node_us_per_byte = costs->node_ns_per_byte * 1e-3,
        .net_us_per_byte = costs->link[CPL_LINK_NETWORK].ns_per_byte * 1e-3,
        .rank = CPL_ARENA_ARRAY(arena, struct cpl_rank_load,
                                (size_t)machine->n_ranks * (size_t)n_waves),
        .node = CPL_ARENA_ARRAY(arena, struct cpl_node_load,
                                (size_t)machine->n_nodes * (size_t)n_waves)};
    loads->class_used[CPL_LINK_SOCKET] = machine->n_nodes < machine->n_ranks;
    loads->class_used[CPL_LINK_NETWORK] = machine->n_nodes > 1;
    for (int32_t r = 0; r < machine->n_ranks; r++)
        loads->class_used[CPL_LINK_NODE] |= machine->socket[r] > 0;
    return loads->rank && loads->node ? CPL_OK : CPL_ERR_NOMEM;
}

void cpl_time_loads_list_items(struct cpl_time_loads *loads, double bytes)
{
    loads->item_bytes = bytes;
}

static double segment_us(const struct cpl_time_loads *loads, double bytes)
{
    bool of_items = loads->item_bytes > 0;
    return cpl_segment_us(&loads->machine->costs, of_items,
                          of_items ? bytes / loads->item_bytes : 0);
}

static struct cpl_rank_load *rank_of(const struct cpl_time_loads *loads, int32_t wave, int32_t rank)
{
    return &loads->rank[(size_t)wave * (size_t)loads->machine->n_ranks + (size_t)rank];
}

static struct cpl_node_load *node_of(const struct cpl_time_loads *loads, int32_t wave, int32_t rank)
{
    size_t node = (size_t)loads->machine->node[rank];
    return &loads->node[(size_t)wave * (size_t)loads->machine->n_nodes + node];
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* The latency of a rank with edges of some classes. */
static double latency_us(const struct cpl_time_loads *loads, uint32_t classes)
{
    double us = 0;
    for (int32_t k = 0; k < CPL_N_LINKS; k++)
        if (classes >> k & 1)
            us = larger(us, loads->machine->costs.link[k].latency_us);
    return us;
}

/* Without the node's wire. */
static double own_us(const struct cpl_time_loads *loads, const struct cpl_rank_load *load)
{
    return latency_us(loads, load->classes) + load->busy_us + load->beyond_us;
}

static double power_of(const struct cpl_time_loads *loads, int32_t wave, double us)
{
    return cpl_exponential(loads->sharpness * (us - loads->wave[wave].peak_us));
}

static double node_wire_us(const struct cpl_time_loads *loads, const struct cpl_node_load *node)
{
    return larger(node->net_out, node->net_in) * loads->node_us_per_byte;
}

static bool is_on_network(const struct cpl_rank_load *load)
{
    return load->n_edges[CPL_LINK_NETWORK] > 0;
}

double cpl_time_loads_rank_us(const struct cpl_time_loads *loads, int32_t wave, int32_t rank)
{
    const struct cpl_rank_load *load = rank_of(loads, wave, rank);
    double us = latency_us(loads, load->classes) + load->busy_us;
    double bytes = larger(load->net_out, load->net_in);
    if (!is_on_network(load) || bytes <= 0)
        return us;
    return us +
           larger(bytes * loads->net_us_per_byte, node_wire_us(loads, node_of(loads, wave, rank)));
}

static double slowest_us(const struct cpl_time_loads *loads, int32_t wave)
{
    double us = 0;
    for (int32_t r = 0; r < loads->machine->n_ranks; r++)
        us = larger(us, cpl_time_loads_rank_us(loads, wave, r));
    return us;
}

double cpl_time_loads_us(const struct cpl_time_loads *loads)
{
    double us = 0;
    for (int32_t wave = 0; wave < loads->n_waves; wave++)
        us += slowest_us(loads, wave);
    return us;
}

/* What a rank's wire takes beyond its node's, and which of its bytes count for it. */
static void settle_wire(struct cpl_time_loads *loads, struct cpl_rank_load *load,
                        const struct cpl_node_load *node)
{
    double beyond =
        larger(load->net_out, load->net_in) * loads->net_us_per_byte - node_wire_us(loads, node);
    load->beyond_us = is_on_network(load) && beyond > 0 ? beyond : 0;
    load->out_counts = load->beyond_us > 0 && load->net_out >= load->net_in;
    load->in_counts = load->beyond_us > 0 && load->net_in >= load->net_out;
}

static void sharpen_wave(struct cpl_time_loads *loads, int32_t wave)
{
    loads->wave[wave] = (struct cpl_wave_load){.peak_us = slowest_us(loads, wave)};
    struct cpl_node_load *node = loads->node + (size_t)wave * (size_t)loads->machine->n_nodes;
    for (int32_t k = 0; k < loads->machine->n_nodes; k++) {
        node[k].wire = cpl_exponential(loads->sharpness * node_wire_us(loads, &node[k]));
        node[k].power = 0;
    }
    for (int32_t r = 0; r < loads->machine->n_ranks; r++) {
        struct cpl_rank_load *load = rank_of(loads, wave, r);
        struct cpl_node_load *mine = node_of(loads, wave, r);
        settle_wire(loads, load, mine);
        load->power = power_of(loads, wave, own_us(loads, load));
        if (is_on_network(load))
            mine->power += load->power;
        else
            loads->wave[wave].sum += load->power;
    }
    for (int32_t k = 0; k < loads->machine->n_nodes; k++)
        loads->wave[wave].sum += node[k].power * node[k].wire;
    loads->wave[wave].largest = loads->wave[wave].sum;
    loads->wave[wave].price_factor = loads->sharpness / loads->wave[wave].sum;
}

static void make_open_factors(struct cpl_time_loads *loads)
{
    for (uint32_t classes = 0; classes < 1 << CPL_N_LINKS; classes++)
        for (uint32_t k = 0; k < CPL_N_LINKS; k++) {
            const struct cpl_link_cost *link = &loads->machine->costs.link[k];
            double latency = latency_us(loads, classes | 1U << k) - latency_us(loads, classes);
            double *factor = loads->open_factor[classes][k];
            factor[false] = cpl_exponential(loads->sharpness * (latency + link->recv_us));
            factor[true] = cpl_exponential(loads->sharpness * (latency + link->send_us));
        }
}

void cpl_time_loads_sharpen(struct cpl_time_loads *loads, double sharpness)
{
    loads->sharpness = sharpness;
    make_open_factors(loads);
    for (int32_t wave = 0; wave < loads->n_waves; wave++)
        sharpen_wave(loads, wave);
}

static void add_to_sum(struct cpl_wave_load *wave, double rise)
{
    wave->sum += rise;
    wave->largest = larger(wave->largest, wave->sum);
}

/* Brings a rank's power up to date after its load changed; it was on the network before or not. */
static void refresh(struct cpl_time_loads *loads, int32_t wave, int32_t rank, bool was_on_network)
{
    struct cpl_rank_load *load = rank_of(loads, wave, rank);
    struct cpl_node_load *node = node_of(loads, wave, rank);
    double before = load->power;
    load->power = power_of(loads, wave, own_us(loads, load));
    if (was_on_network)
        node->power -= before;
    if (is_on_network(load))
        node->power += load->power;
    add_to_sum(&loads->wave[wave], load->power * (is_on_network(load) ? node->wire : 1) -
                                       before * (was_on_network ? node->wire : 1));
}

/* After a node's bytes changed. */
static void refresh_wire(struct cpl_time_loads *loads, int32_t wave, struct cpl_node_load *node)
{
    double before = node->wire;
    node->wire = cpl_exponential(loads->sharpness * node_wire_us(loads, node));
    add_to_sum(&loads->wave[wave], node->power * (node->wire - before));
}

int32_t cpl_time_loads_mark(struct cpl_time_loads *loads)
{
    int32_t n_lost = 0;
    for (int32_t k = 0; k < loads->n_waves; k++) {
        struct cpl_wave_load *wave = &loads->wave[k];
        /* Not a number is lost too. */
        if (!(wave->sum * LOST_DIGITS > wave->largest)) {
            sharpen_wave(loads, k);
            n_lost++;
        }
        wave->marked = wave->sum;
    }
    return n_lost;
}

double cpl_time_loads_rise(const struct cpl_time_loads *loads)
{
    double product = 1;
    for (int32_t wave = 0; wave < loads->n_waves; wave++)
        product *= loads->wave[wave].sum / loads->wave[wave].marked;
    return product - 1;
}

static void count_edge(struct cpl_rank_load *load, enum cpl_link_class class_, int32_t by)
{
    load->n_edges[class_] += by;
    if (load->n_edges[class_] > 0)
        load->classes |= (uint8_t)(1U << class_);
    else
        load->classes &= (uint8_t) ~(1U << class_);
}

void cpl_time_loads_edge(struct cpl_time_loads *loads, int32_t wave, int32_t from, int32_t to,
                         int32_t by)
{
    enum cpl_link_class class_ = cpl_machine_link(loads->machine, from, to);
    const struct cpl_link_cost *link = &loads->machine->costs.link[class_];
    struct cpl_rank_load *sender = rank_of(loads, wave, from), *receiver = rank_of(loads, wave, to);
    bool was = is_on_network(sender);
    sender->busy_us += by * link->send_us;
    count_edge(sender, class_, by);
    refresh(loads, wave, from, was);
    was = is_on_network(receiver);
    receiver->busy_us += by * link->recv_us;
    count_edge(receiver, class_, by);
    refresh(loads, wave, to, was);
}

void cpl_time_loads_segment(struct cpl_time_loads *loads, int32_t wave, int32_t from, int32_t to,
                            double bytes, int32_t by)
{
    enum cpl_link_class class_ = cpl_machine_link(loads->machine, from, to);
    struct cpl_rank_load *sender = rank_of(loads, wave, from), *receiver = rank_of(loads, wave, to);
    double ends_us = segment_us(loads, bytes);
    if (class_ != CPL_LINK_NETWORK)
        ends_us += bytes * loads->machine->costs.link[class_].ns_per_byte * 1e-3;
    sender->busy_us += by * ends_us;
    receiver->busy_us += by * ends_us;
    if (class_ == CPL_LINK_NETWORK) {
        struct cpl_node_load *source = node_of(loads, wave, from), *dest = node_of(loads, wave, to);
        sender->net_out += by * bytes;
        receiver->net_in += by * bytes;
        sender->beyond_us += sender->out_counts ? by * bytes * loads->net_us_per_byte : 0;
        receiver->beyond_us += receiver->in_counts ? by * bytes * loads->net_us_per_byte : 0;
        source->net_out += by * bytes;
        dest->net_in += by * bytes;
        refresh_wire(loads, wave, source);
        refresh_wire(loads, wave, dest);
    }
    refresh(loads, wave, from, is_on_network(sender));
    refresh(loads, wave, to, is_on_network(receiver));
}

struct cpl_cargo cpl_time_loads_cargo(const struct cpl_time_loads *loads, double bytes)
{
    struct cpl_cargo cargo = {.net_us = bytes * loads->net_us_per_byte,
                              .node_us = bytes * loads->node_us_per_byte};
    for (int32_t k = 0; k < CPL_N_LINKS; k++) {
        double us_per_byte = loads->machine->costs.link[k].ns_per_byte * 1e-3;
        cargo.end_us[k] =
            segment_us(loads, bytes) + (k == CPL_LINK_NETWORK ? 0 : bytes * us_per_byte);
    }
    return cargo;
}
