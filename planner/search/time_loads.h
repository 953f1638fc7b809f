/* The loads of ranks and nodes in each wave, and the price of adding to them: the full cost model
 * (plan_cost.c), updated after every change and smoothed so that every move has a price.
 *
 * The objective is the sum over waves of a soft maximum of the ranks' times: log(sum of
 * e^(sharpness x time)) / sharpness, over the ranks' processors (latency, overheads, segments,
 * bytes inside the node) and over the wires of ranks and of nodes (the network's latency, bytes out
 * or in, whichever are more). A change touches two ranks and two nodes only.
 *
 * Prices are fractions of a wave's sum: to first order the change of the objective, times
 * sharpness. No libm, the same bits everywhere. Cost of each call O(1) unless said otherwise. */
#ifndef CARPOOL_TIME_LOADS_H
#define CARPOOL_TIME_LOADS_H

#include "planner/arena.h"
#include "planner/machine.h"
#include "planner/search/layers.h"
#include "planner/status.h"

#include <stdbool.h>
#include <stdint.h>

/* The load of a rank's or a node's wire to other nodes in one wave. */
struct cpl_wire_load {
    double out, in; /* bytes */
    double power;   /* e^(sharpness x (latency + time of the larger - the wave's peak)) */
};

/* One rank in one wave. */
struct cpl_rank_load {
    double busy_us; /* overheads, segments, bytes inside the node */
    double power;   /* e^(sharpness x (latency + busy - the wave's peak)) */
    struct cpl_wire_load wire;
    int32_t n_edges[CPL_N_LINKS];
    uint8_t classes; /* bit k: it has edges of class k */
};

struct cpl_wave_load {
    double sum;          /* sum of all powers */
    double price_factor; /* sharpness / sum */
    double marked;       /* the sum at the last mark */
    double largest; /* the largest sum since it was last computed anew: shows whether digits were
                       lost */
    double peak_us; /* the time whose power is 1 */
};

struct cpl_time_loads {
    const struct cpl_machine *machine;
    int32_t n_waves;
    double sharpness; /* per microsecond */
    double node_us_per_byte;
    double net_us_per_byte;
    double item_bytes;            /* 0: segments are not lists of items */
    bool class_used[CPL_N_LINKS]; /* some pair of ranks is joined by such a link */
    /* Factor by which a rank's power grows with another edge: indexed by the classes it has, the
     * edge's class, and whether the rank sends. */
    double open_factor[1 << CPL_N_LINKS][CPL_N_LINKS][2];
    struct cpl_rank_load *rank; /* n_waves x n_ranks */
    struct cpl_wire_load *node; /* n_waves x n_nodes */
    struct cpl_wave_load wave[CPL_MAX_LAYERS];
};

/* Loads of waves in which nothing is sent. Memory from the arena. Returns CPL_OK or
 * CPL_ERR_NOMEM. */
enum cpl_status cpl_time_loads_init(struct cpl_time_loads *loads, const struct cpl_machine *machine,
                                    int32_t n_waves, struct cpl_arena *arena);

/* From now on segments are lists of items of `bytes` bytes (machine.h, item_ns). */
void cpl_time_loads_list_items(struct cpl_time_loads *loads, double bytes);

/* Sets the sharpness and computes everything that is derived anew. O(ranks x waves). */
void cpl_time_loads_sharpen(struct cpl_time_loads *loads, double sharpness);

/* Adds (by 1) or removes (by -1) an edge without segments. */
void cpl_time_loads_edge(struct cpl_time_loads *loads, int32_t wave, int32_t from, int32_t to,
                         int32_t by);

/* Adds (by 1) or removes (by -1) a segment of `bytes` bytes. */
void cpl_time_loads_segment(struct cpl_time_loads *loads, int32_t wave, int32_t from, int32_t to,
                            double bytes, int32_t by);

/* Marks the present state. cpl_time_loads_rise returns the rise since the mark: the factor by which
 * the product of the waves' sums has grown, less one. Sums that were much larger in between have
 * lost digits: their waves are sharpened first, O(ranks) each. Returns the number of such waves. */
int32_t cpl_time_loads_mark(struct cpl_time_loads *loads);
double cpl_time_loads_rise(const struct cpl_time_loads *loads);

/* The time of a rank in a wave; the times of the waves' slowest ranks, added up, O(ranks x
 * waves). */
double cpl_time_loads_rank_us(const struct cpl_time_loads *loads, int32_t wave, int32_t rank);
double cpl_time_loads_us(const struct cpl_time_loads *loads);

/* What carrying a message takes at one end, whatever the ranks' loads. */
struct cpl_payload_cost {
    double end_us[CPL_N_LINKS]; /* segment and, inside a node, bytes */
    double net_us;              /* bytes on the rank's own wire */
    double node_us;             /* bytes on the node's wire */
};

struct cpl_payload_cost cpl_time_loads_payload(const struct cpl_time_loads *loads, double bytes);

/* The power that more bytes sent (or received) would raise: 0 while the wire receives (or sends)
 * more. */
static inline double cpl_wire_slope(const struct cpl_wire_load *wire, bool sends)
{
    return (sends ? wire->out >= wire->in : wire->in >= wire->out) ? wire->power : 0;
}

/* Price, at one end, of a segment on an edge over a class of link. */
static inline double cpl_time_loads_ride_price(const struct cpl_time_loads *loads, int32_t wave,
                                               int32_t rank, enum cpl_link_class class_, bool sends,
                                               const struct cpl_payload_cost *payload)
{
    const struct cpl_machine *machine = loads->machine;
    const struct cpl_rank_load *load =
        &loads->rank[(size_t)wave * (size_t)machine->n_ranks + (size_t)rank];
    double price = load->power * payload->end_us[class_];
    if (class_ == CPL_LINK_NETWORK) {
        const struct cpl_wire_load *node =
            &loads->node[(size_t)wave * (size_t)machine->n_nodes + (size_t)machine->node[rank]];
        price += cpl_wire_slope(&load->wire, sends) * payload->net_us +
                 cpl_wire_slope(node, sends) * payload->node_us;
    }
    return price * loads->wave[wave].price_factor;
}

/* Price, at one end, of a new edge over a class of link. */
static inline double cpl_time_loads_open_price(const struct cpl_time_loads *loads, int32_t wave,
                                               int32_t rank, enum cpl_link_class class_, bool sends)
{
    const struct cpl_machine *machine = loads->machine;
    const struct cpl_rank_load *load =
        &loads->rank[(size_t)wave * (size_t)machine->n_ranks + (size_t)rank];
    double factor = loads->open_factor[load->classes][class_][sends];
    return load->power * (factor - 1) / loads->wave[wave].sum;
}

#endif
