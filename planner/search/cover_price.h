/* Prices of the edges of a cover (cover.h), under an objective that falls when the most loaded
 * ranks do less.
 *
 * Every edge loads a slot of its sender and one of its receiver. The objective is the sum, over
 * groups of slots, of a soft maximum of the group's loads: log(sum of e^(sharpness x load)) /
 * sharpness. For counts there is one group: a slot for the sends and one for the receives of each
 * rank, each edge one unit. For time there is a group for each stage, a slot for each rank:
 * overheads, and the latency of the farthest link in use (plan_cost.c without bytes). The change
 * that one edge makes is the difference of two table entries at each end, over the group's sum.
 *
 * Deterministic: loads are whole units, tables are made by multiplication. Thread rule: one
 * thread. */
#ifndef CARPOOL_COVER_PRICE_H
#define CARPOOL_COVER_PRICE_H

#include "planner/arena.h"
#include "planner/machine.h"
#include "planner/search/cover.h"
#include "planner/status.h"

#include <stdint.h>

enum cpl_cover_goal { CPL_COVER_COUNTS, CPL_COVER_TIME };

struct cpl_cover_slot {
    int32_t load;    /* overheads (or messages), in units */
    int32_t latency; /* latency of the farthest link in use, in units */
    int32_t n_edges[CPL_N_LINKS];
};

struct cpl_cover_price {
    enum cpl_cover_goal goal;
    const struct cpl_machine *machine;
    int32_t n_ranks;
    int32_t n_groups;
    double unit_us; /* a unit of load when the goal is time */
    int32_t send_units[CPL_N_LINKS];
    int32_t recv_units[CPL_N_LINKS];
    int32_t latency_units[CPL_N_LINKS];
    struct cpl_cover_slot *slot; /* counts: sends of all ranks, then receives; time: by stage */
    double sharpness;            /* per unit */
    int32_t top;                 /* the load whose power is 1 */
    int32_t n_powers;
    int32_t max_powers;
    double *power; /* e^(sharpness x (load - top)); the last entry stands for all larger loads */
    double sum[CPL_COVER_STAGES];    /* sums of the powers of each group's loads */
    double marked[CPL_COVER_STAGES]; /* the sums at the last mark */
    struct cpl_arena *arena;
};

/* Prices of a cover without edges. Memory from the arena. Returns CPL_OK, CPL_ERR_NOMEM. */
enum cpl_status cpl_cover_price_init(struct cpl_cover_price *price, enum cpl_cover_goal goal,
                                     const struct cpl_machine *machine, struct cpl_arena *arena,
                                     struct cpl_error *error);

/* Sets the sharpness and makes the tables anew around the largest present load. Returns CPL_OK,
 * CPL_ERR_NOMEM. O(ranks + largest load). */
enum cpl_status cpl_cover_price_sharpen(struct cpl_cover_price *price, double sharpness);

static inline int32_t cpl_cover_slot_load(const struct cpl_cover_slot *slot)
{
    return slot->load + slot->latency;
}

static inline struct cpl_cover_slot *cpl_cover_slot_of(const struct cpl_cover_price *price,
                                                       int32_t stage, int32_t rank, bool sends)
{
    size_t row = price->goal == CPL_COVER_COUNTS ? (sends ? 0 : 1) : (size_t)stage;
    return &price->slot[row * (size_t)price->n_ranks + (size_t)rank];
}

/* The largest load of a group, and the sum over all groups, in units. Searches minimise the sum. */
int32_t cpl_cover_price_peak(const struct cpl_cover_price *price, int32_t group);
int64_t cpl_cover_price_peaks(const struct cpl_cover_price *price);

/* The fraction by which its group's sum would rise if an edge of a stage were added. */
double cpl_cover_price_add(const struct cpl_cover_price *price, int32_t stage, int32_t from,
                           int32_t to);

/* The fraction by which the sum would fall if an edge were removed. */
double cpl_cover_price_gain(const struct cpl_cover_price *price, int32_t stage, int32_t from,
                            int32_t to);

/* Records an edge before the first sharpening. */
void cpl_cover_price_load(struct cpl_cover_price *price, int32_t stage, int32_t from, int32_t to);

/* Records that an edge was added (by 1) or removed (by -1). */
void cpl_cover_price_apply(struct cpl_cover_price *price, int32_t stage, int32_t from, int32_t to,
                           int32_t by);

/* Marks the present state. cpl_cover_price_rise returns the rise since the mark: the factor by
 * which the product of the groups' sums has grown, less one. */
void cpl_cover_price_mark(struct cpl_cover_price *price);
double cpl_cover_price_rise(const struct cpl_cover_price *price);

#endif
