/* Loads and prices under the full cost model (time_loads.h). */
#include "planner/search/time_loads.h"

#include "planner/search/exponential.h"

/* A sum that has been larger by this factor is not exact enough any more. */
#define LOST_DIGITS 1e8

#define NO_BYTES 1e-6

enum cpl_status cpl_time_loads_init(struct cpl_time_loads *loads, const struct cpl_machine *machine,
                                    int32_t n_waves, struct cpl_arena *arena)
{
    const struct cpl_costs *costs = &machine->costs;
    *loads = (struct cpl_time_loads){
        .machine = machine,
        .n_waves = n_waves,
        .node_us_per_byte = cpl_wave_node_ns(costs) * 1e-3,
        .net_us_per_byte = costs->link[CPL_LINK_NETWORK].ns_per_byte * 1e-3,
        .rank = CPL_ARENA_ARRAY(arena, struct cpl_rank_load,
                                (size_t)machine->n_ranks * (size_t)n_waves),
        .node = CPL_ARENA_ARRAY(arena, struct cpl_wire_load,
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

static struct cpl_wire_load *node_of(const struct cpl_time_loads *loads, int32_t wave, int32_t rank)
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
            us = larger(us, cpl_machine_edge_cost(loads->machine, k)->latency_us);
    return us;
}

static double processor_us(const struct cpl_time_loads *loads, const struct cpl_rank_load *load)
{
    return latency_us(loads, load->classes) + load->busy_us;
}

static double power_of(const struct cpl_time_loads *loads, int32_t wave, double us)
{
    return cpl_exponential(loads->sharpness * (us - loads->wave[wave].peak_us));
}

static double wire_us(const struct cpl_time_loads *loads, const struct cpl_wire_load *wire,
                      double us_per_byte)
{
    return loads->machine->costs.link[CPL_LINK_NETWORK].latency_us +
           larger(wire->out, wire->in) * us_per_byte;
}

/* Whether a wire is used. Rounding errors of bytes that were added and removed count as nothing. */
static bool is_used(const struct cpl_wire_load *wire)
{
    return larger(wire->out, wire->in) > NO_BYTES;
}

double cpl_time_loads_rank_us(const struct cpl_time_loads *loads, int32_t wave, int32_t rank)
{
    const struct cpl_rank_load *load = rank_of(loads, wave, rank);
    const struct cpl_wire_load *node = node_of(loads, wave, rank);
    double us = processor_us(loads, load);
    if (is_used(&load->wire)) {
        us = larger(us, wire_us(loads, &load->wire, loads->net_us_per_byte));
        us = larger(us, wire_us(loads, node, loads->node_us_per_byte));
    }
    return us;
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

static void add_to_sum(struct cpl_wave_load *wave, double rise)
{
    wave->sum += rise;
    wave->largest = larger(wave->largest, wave->sum);
}

/* Brings a rank's power up to date after its load changed. */
static void refresh(struct cpl_time_loads *loads, int32_t wave, struct cpl_rank_load *load)
{
    double before = load->power;
    load->power = power_of(loads, wave, processor_us(loads, load));
    add_to_sum(&loads->wave[wave], load->power - before);
}

/* The same for a wire; an unused one has no power. */
static void refresh_wire(struct cpl_time_loads *loads, int32_t wave, struct cpl_wire_load *wire,
                         double us_per_byte)
{
    double before = wire->power;
    wire->power = is_used(wire) ? power_of(loads, wave, wire_us(loads, wire, us_per_byte)) : 0;
    add_to_sum(&loads->wave[wave], wire->power - before);
}

static void sharpen_wave(struct cpl_time_loads *loads, int32_t wave)
{
    const struct cpl_machine *machine = loads->machine;
    struct cpl_wire_load *node = loads->node + (size_t)wave * (size_t)machine->n_nodes;
    loads->wave[wave] = (struct cpl_wave_load){.peak_us = slowest_us(loads, wave)};
    for (int32_t k = 0; k < machine->n_nodes; k++) {
        node[k].power = 0;
        refresh_wire(loads, wave, &node[k], loads->node_us_per_byte);
    }
    for (int32_t r = 0; r < machine->n_ranks; r++) {
        struct cpl_rank_load *load = rank_of(loads, wave, r);
        load->power = load->wire.power = 0;
        refresh(loads, wave, load);
        refresh_wire(loads, wave, &load->wire, loads->net_us_per_byte);
    }
    loads->wave[wave].price_factor = loads->sharpness / loads->wave[wave].sum;
}

static void make_open_factors(struct cpl_time_loads *loads)
{
    for (uint32_t classes = 0; classes < 1 << CPL_N_LINKS; classes++)
        for (uint32_t k = 0; k < CPL_N_LINKS; k++) {
            const struct cpl_link_cost *link = cpl_machine_edge_cost(loads->machine, k);
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

int32_t cpl_time_loads_mark(struct cpl_time_loads *loads)
{
    int32_t n_lost = 0;
    for (int32_t k = 0; k < loads->n_waves; k++) {
        struct cpl_wave_load *wave = &loads->wave[k];
        /* A NaN has lost its digits, too. */
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
    const struct cpl_link_cost *link = cpl_machine_edge_cost(loads->machine, class_);
    struct cpl_rank_load *sender = rank_of(loads, wave, from), *receiver = rank_of(loads, wave, to);
    sender->busy_us += by * link->send_us;
    count_edge(sender, class_, by);
    refresh(loads, wave, sender);
    receiver->busy_us += by * link->recv_us;
    count_edge(receiver, class_, by);
    refresh(loads, wave, receiver);
}

void cpl_time_loads_segment(struct cpl_time_loads *loads, int32_t wave, int32_t from, int32_t to,
                            double bytes, int32_t by)
{
    enum cpl_link_class class_ = cpl_machine_link(loads->machine, from, to);
    struct cpl_rank_load *sender = rank_of(loads, wave, from), *receiver = rank_of(loads, wave, to);
    double ends_us = segment_us(loads, bytes);
    if (class_ != CPL_LINK_NETWORK)
        ends_us += bytes * cpl_machine_edge_cost(loads->machine, class_)->ns_per_byte * 1e-3;
    sender->busy_us += by * ends_us;
    receiver->busy_us += by * ends_us;
    refresh(loads, wave, sender);
    refresh(loads, wave, receiver);
    if (class_ == CPL_LINK_NETWORK) {
        struct cpl_wire_load *source = node_of(loads, wave, from), *dest = node_of(loads, wave, to);
        sender->wire.out += by * bytes;
        receiver->wire.in += by * bytes;
        source->out += by * bytes;
        dest->in += by * bytes;
        refresh_wire(loads, wave, &sender->wire, loads->net_us_per_byte);
        refresh_wire(loads, wave, &receiver->wire, loads->net_us_per_byte);
        refresh_wire(loads, wave, source, loads->node_us_per_byte);
        refresh_wire(loads, wave, dest, loads->node_us_per_byte);
    }
}

struct cpl_payload_cost cpl_time_loads_payload(const struct cpl_time_loads *loads, double bytes)
{
    struct cpl_payload_cost payload = {.net_us = bytes * loads->net_us_per_byte,
                                       .node_us = bytes * loads->node_us_per_byte};
    for (int32_t k = 0; k < CPL_N_LINKS; k++) {
        double us_per_byte = cpl_machine_edge_cost(loads->machine, k)->ns_per_byte * 1e-3;
        payload.end_us[k] =
            segment_us(loads, bytes) + (k == CPL_LINK_NETWORK ? 0 : bytes * us_per_byte);
    }
    return payload;
}
