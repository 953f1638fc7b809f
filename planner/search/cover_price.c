/* Prices of a cover's edges (cover_price.h). */
#include "planner/search/cover_price.h"

#include "planner/search/exponential.h"

/* Microseconds in units, rounded. */
static int32_t units(double us, double unit_us)
{
    return (int32_t)(us / unit_us + 0.5);
}

/* Overheads differ by link class; a unit is a tenth of the smallest that is not zero. */
static double choose_unit(const struct cpl_machine *machine)
{
    double smallest = 0;
    for (int32_t k = 0; k < CPL_N_LINKS; k++) {
        const struct cpl_link_cost *edge = cpl_machine_edge_cost(machine, k);
        double us = edge->send_us + edge->recv_us;
        if (us > 0 && (smallest <= 0 || us < smallest))
            smallest = us;
    }
    return smallest > 0 ? smallest / 20 : 1;
}

enum cpl_status cpl_cover_price_init(struct cpl_cover_price *price, enum cpl_cover_goal goal,
                                     const struct cpl_machine *machine, struct cpl_arena *arena,
                                     struct cpl_error *error)
{
    *price = (struct cpl_cover_price){.goal = goal,
                                      .machine = machine,
                                      .n_ranks = machine->n_ranks,
                                      .n_groups = goal == CPL_COVER_TIME ? CPL_COVER_STAGES : 1,
                                      .unit_us = choose_unit(machine),
                                      .arena = arena};
    for (int32_t k = 0; k < CPL_N_LINKS; k++) {
        const struct cpl_link_cost *link = cpl_machine_edge_cost(machine, k);
        bool time = goal == CPL_COVER_TIME;
        price->send_units[k] = time ? units(link->send_us, price->unit_us) : 1;
        price->recv_units[k] = time ? units(link->recv_us, price->unit_us) : 1;
        price->latency_units[k] = time ? units(link->latency_us, price->unit_us) : 0;
    }
    size_t n_slots = (size_t)machine->n_ranks * CPL_COVER_STAGES;
    price->slot = CPL_ARENA_ARRAY(arena, struct cpl_cover_slot, n_slots);
    return price->slot ? CPL_OK : cpl_fail_memory(error, "the search");
}

static size_t group_slots(const struct cpl_cover_price *price)
{
    return (size_t)price->n_ranks * (price->goal == CPL_COVER_COUNTS ? 2 : 1);
}

int32_t cpl_cover_price_peak(const struct cpl_cover_price *price, int32_t group)
{
    int32_t peak = 0;
    const struct cpl_cover_slot *slot = price->slot + (size_t)group * group_slots(price);
    for (size_t k = 0; k < group_slots(price); k++)
        if (cpl_cover_slot_load(&slot[k]) > peak)
            peak = cpl_cover_slot_load(&slot[k]);
    return peak;
}

int64_t cpl_cover_price_peaks(const struct cpl_cover_price *price)
{
    int64_t sum = 0;
    for (int32_t group = 0; group < price->n_groups; group++)
        sum += cpl_cover_price_peak(price, group);
    return sum;
}

static double power_of(const struct cpl_cover_price *price, int32_t load)
{
    return price->power[load < price->n_powers ? load : price->n_powers - 1];
}

/* The sums of the groups; a group without load counts as one with an idle slot. */
static void sum_groups(struct cpl_cover_price *price)
{
    for (int32_t group = 0; group < price->n_groups; group++) {
        const struct cpl_cover_slot *slot = price->slot + (size_t)group * group_slots(price);
        price->sum[group] = 0;
        for (size_t k = 0; k < group_slots(price); k++)
            price->sum[group] += power_of(price, cpl_cover_slot_load(&slot[k]));
    }
}

enum cpl_status cpl_cover_price_sharpen(struct cpl_cover_price *price, double sharpness)
{
    price->sharpness = sharpness;
    price->top = 0;
    for (int32_t group = 0; group < price->n_groups; group++) {
        int32_t peak = cpl_cover_price_peak(price, group);
        price->top = peak > price->top ? peak : price->top;
    }
    int32_t headroom = (int32_t)(30 / sharpness) + 1; /* up to e^30 above the top */
    price->n_powers = price->top + headroom + 1;
    if (price->n_powers > price->max_powers) {
        price->max_powers = 2 * price->n_powers;
        price->power = CPL_ARENA_ARRAY(price->arena, double, price->max_powers);
        if (!price->power)
            return CPL_ERR_NOMEM;
    }
    double factor = cpl_exponential(-sharpness);
    price->power[price->top] = 1;
    for (int32_t load = price->top; load-- > 0;)
        price->power[load] = price->power[load + 1] * factor;
    for (int32_t load = price->top + 1; load < price->n_powers; load++)
        price->power[load] = price->power[load - 1] / factor;
    sum_groups(price);
    return CPL_OK;
}

/* The latency of a slot after its edges of one class became n. */
static int32_t latency_with(const struct cpl_cover_price *price, const struct cpl_cover_slot *slot,
                            int32_t class_, int32_t n)
{
    int32_t latency = 0;
    for (int32_t k = 0; k < CPL_N_LINKS; k++)
        if ((k == class_ ? n : slot->n_edges[k]) > 0 && price->latency_units[k] > latency)
            latency = price->latency_units[k];
    return latency;
}

/* The rise of a slot's power when an edge of a class with `units` units is added (by 1) or
 * removed. */
static double rise(const struct cpl_cover_price *price, const struct cpl_cover_slot *slot,
                   int32_t class_, int32_t units_, int32_t by)
{
    int32_t latency = slot->latency;
    if (price->goal == CPL_COVER_TIME && slot->n_edges[class_] == (by > 0 ? 0 : 1))
        latency = latency_with(price, slot, class_, slot->n_edges[class_] + by);
    return power_of(price, slot->load + by * units_ + latency) -
           power_of(price, cpl_cover_slot_load(slot));
}

static int32_t group_of(const struct cpl_cover_price *price, int32_t stage)
{
    return price->goal == CPL_COVER_TIME ? stage : 0;
}

/* The fraction of the group's sum that an edge adds (by 1) or takes away (by -1). */
static double fraction(const struct cpl_cover_price *price, int32_t stage, int32_t from, int32_t to,
                       int32_t by)
{
    int32_t class_ = (int32_t)cpl_machine_link(price->machine, from, to);
    const struct cpl_cover_slot *sends = cpl_cover_slot_of(price, stage, from, true);
    const struct cpl_cover_slot *receives = cpl_cover_slot_of(price, stage, to, false);
    double by_power = rise(price, sends, class_, price->send_units[class_], by) +
                      rise(price, receives, class_, price->recv_units[class_], by);
    return by_power / price->sum[group_of(price, stage)];
}

double cpl_cover_price_add(const struct cpl_cover_price *price, int32_t stage, int32_t from,
                           int32_t to)
{
    return fraction(price, stage, from, to, 1);
}

double cpl_cover_price_gain(const struct cpl_cover_price *price, int32_t stage, int32_t from,
                            int32_t to)
{
    return -fraction(price, stage, from, to, -1);
}

static void load_end(struct cpl_cover_price *price, struct cpl_cover_slot *slot, int32_t class_,
                     int32_t units_, int32_t by)
{
    slot->load += by * units_;
    slot->n_edges[class_] += by;
    if (price->goal == CPL_COVER_TIME)
        slot->latency = latency_with(price, slot, class_, slot->n_edges[class_]);
}

static void load_ends(struct cpl_cover_price *price, int32_t stage, int32_t from, int32_t to,
                      int32_t by)
{
    int32_t class_ = (int32_t)cpl_machine_link(price->machine, from, to);
    load_end(price, cpl_cover_slot_of(price, stage, from, true), class_, price->send_units[class_],
             by);
    load_end(price, cpl_cover_slot_of(price, stage, to, false), class_, price->recv_units[class_],
             by);
}

void cpl_cover_price_load(struct cpl_cover_price *price, int32_t stage, int32_t from, int32_t to)
{
    load_ends(price, stage, from, to, 1);
}

void cpl_cover_price_apply(struct cpl_cover_price *price, int32_t stage, int32_t from, int32_t to,
                           int32_t by)
{
    int32_t group = group_of(price, stage);
    price->sum[group] += fraction(price, stage, from, to, by) * price->sum[group];
    load_ends(price, stage, from, to, by);
}

void cpl_cover_price_mark(struct cpl_cover_price *price)
{
    for (int32_t group = 0; group < price->n_groups; group++)
        price->marked[group] = price->sum[group];
}

double cpl_cover_price_rise(const struct cpl_cover_price *price)
{
    double product = 1;
    for (int32_t group = 0; group < price->n_groups; group++)
        product *= price->sum[group] / price->marked[group];
    return product - 1;
}
