/* Allgather over placed ranks (allgather.h). */
#include "planner/place/allgather.h"

#include "planner/grid/hypercube.h"
#include "planner/grid/map.h"

#include <stdbool.h>
#include <string.h>

/* MPICH's thresholds (MPIR_CVAR_ALLGATHER_LONG_MSG_SIZE, _SHORT_MSG_SIZE): bytes in all. */
#define MPI_LONG  524288
#define MPI_SHORT 81920

/* The load of a rank in one step. */
struct load {
    double fixed_us; /* fixed cost of the most expensive of its messages */
    double inside_us;
    double out_us, in_us; /* bytes to and from other nodes, at the rates of their pairs */
};

struct node_load {
    double net_out, net_in; /* bytes */
};

struct steps {
    const struct cpl_machine *machine;
    const int32_t *rank_at; /* NULL: rank i plays point i */
    struct load *rank;
    struct node_load *node;
    double us; /* of the steps that are finished */
};

int32_t cpl_allgather_class_of(int64_t bytes)
{
    int32_t class_ = 0;
    while (class_ < CPL_ALLGATHER_CLASSES - 1 && bytes > cpl_allgather_class_most(class_))
        class_++;
    return class_;
}

int64_t cpl_allgather_class_most(int32_t class_)
{
    if (class_ >= CPL_ALLGATHER_CLASSES - 1)
        return INT64_MAX;
    return (INT64_C(1) << (class_ + CPL_ALLGATHER_FIRST_CLASS)) - 1;
}

enum cpl_allgather_algorithm cpl_allgather_mpi_algorithm(int32_t n_ranks, double bytes)
{
    bool is_power = (n_ranks & (n_ranks - 1)) == 0;
    if (is_power && bytes < MPI_LONG)
        return CPL_ALLGATHER_DOUBLING;
    return bytes < MPI_SHORT ? CPL_ALLGATHER_BRUCK : CPL_ALLGATHER_RING;
}

/* What is to be known of a way. */
struct rule {
    int32_t (*steps)(int32_t n_ranks);                /* messages of a rank */
    void (*model)(struct steps *steps, double bytes); /* adds and finishes all steps */
    enum cpl_status (*map)(const struct cpl_machine *machine,
                           int32_t *position); /* places ranks; NULL: it is MPI's only */
    bool in_place;                             /* cpl_allgather_is_in_place */
};

/* ---- the model ---- */

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static int32_t rank_of(const struct steps *steps, int32_t point)
{
    return steps->rank_at ? steps->rank_at[point] : point;
}

/* What a message without bytes takes, as measured or by its class. */
static double fixed_cost(const struct cpl_machine *machine, int32_t from, int32_t to)
{
    const struct cpl_link_cost *link = &machine->costs.link[cpl_machine_link(machine, from, to)];
    return machine->distance_us
               ? (double)machine->distance_us[(int64_t)from * machine->n_ranks + to]
               : link->send_us + link->latency_us + link->recv_us;
}

/* What its bytes take, as measured or by its class. */
static double bytes_cost(const struct cpl_machine *machine, int32_t from, int32_t to, double bytes)
{
    const struct cpl_link_cost *link = &machine->costs.link[cpl_machine_link(machine, from, to)];
    double ns = machine->distance_ns_per_byte
                    ? (double)machine->distance_ns_per_byte[(int64_t)from * machine->n_ranks + to]
                    : link->ns_per_byte;
    return bytes * ns * 1e-3;
}

/* Adds a message between two points to the step. */
static void add(struct steps *steps, int32_t from_point, int32_t to_point, double bytes)
{
    const struct cpl_machine *machine = steps->machine;
    int32_t from = rank_of(steps, from_point);
    int32_t to = rank_of(steps, to_point);
    enum cpl_link_class class_ = cpl_machine_link(machine, from, to);
    double fixed_us = fixed_cost(machine, from, to);
    double bytes_us = bytes_cost(machine, from, to, bytes);
    struct load *sender = &steps->rank[from], *receiver = &steps->rank[to];
    sender->fixed_us = larger(sender->fixed_us, fixed_us);
    receiver->fixed_us = larger(receiver->fixed_us, fixed_us);
    if (class_ != CPL_LINK_NETWORK) {
        sender->inside_us += bytes_us;
        receiver->inside_us += bytes_us;
        return;
    }
    sender->out_us += bytes_us;
    receiver->in_us += bytes_us;
    steps->node[machine->node[from]].net_out += bytes;
    steps->node[machine->node[to]].net_in += bytes;
}

/* The time of a rank's bytes in the step. */
static double bytes_us(const struct steps *steps, int32_t rank)
{
    const struct cpl_machine *machine = steps->machine;
    const struct load *load = &steps->rank[rank];
    const struct node_load *node = &steps->node[machine->node[rank]];
    double wire_us = larger(load->out_us, load->in_us);
    if (wire_us > 0)
        wire_us = larger(wire_us, larger(node->net_out, node->net_in) *
                                      cpl_wave_node_ns(&machine->costs) * 1e-3);
    return load->inside_us + wire_us;
}

static void clear(struct steps *steps)
{
    memset(steps->rank, 0, (size_t)steps->machine->n_ranks * sizeof *steps->rank);
    memset(steps->node, 0, (size_t)steps->machine->n_nodes * sizeof *steps->node);
}

/* Ends the step, which takes as long as its busiest rank. */
static void finish(struct steps *steps)
{
    double slowest_us = 0;
    for (int32_t i = 0; i < steps->machine->n_ranks; i++)
        slowest_us = larger(slowest_us, steps->rank[i].fixed_us + bytes_us(steps, i));
    steps->us += slowest_us;
    clear(steps);
}

static int32_t steps_of_ring(int32_t n_ranks)
{
    return n_ranks - 1;
}

/* The least that a message keeps its rank from the next one: bytes excepted, the larger overhead.
 */
static double occupied_us(const struct cpl_machine *machine, int32_t from, int32_t to)
{
    const struct cpl_link_cost *link = &machine->costs.link[cpl_machine_link(machine, from, to)];
    double fixed_us = fixed_cost(machine, from, to);
    double overhead_us = larger(link->send_us, link->recv_us);
    return overhead_us < fixed_us ? overhead_us : fixed_us;
}

/* Step k of a rank begins when its step k-1 has ended and its neighbour's message of that step has
 * come. So a chain of n-1 steps goes around the ring, or stays with one rank and waits for what a
 * message occupies only. The longest is taken of: all but the cheapest message one after the other;
 * the slowest message, then the busiest rank for the other steps. */
static void model_ring(struct steps *steps, double bytes)
{
    int32_t n = steps->machine->n_ranks;
    double around_us = 0, least_us = 0, most_us = 0, busiest_us = 0;
    for (int32_t point = 0; point < n; point++)
        add(steps, point, point + 1 < n ? point + 1 : 0, bytes);
    for (int32_t point = 0; point < n; point++) {
        int32_t next = point + 1 < n ? point + 1 : 0;
        int32_t from = rank_of(steps, point), to = rank_of(steps, next);
        double occupies_us = larger(bytes_us(steps, from), bytes_us(steps, to));
        double us = fixed_cost(steps->machine, from, to) + occupies_us;
        busiest_us = larger(busiest_us, occupied_us(steps->machine, from, to) + occupies_us);
        around_us += us;
        most_us = larger(most_us, us);
        least_us = point == 0 || us < least_us ? us : least_us;
    }
    double stay_us = most_us + (n - 2) * busiest_us;
    steps->us += n > 1 ? larger(around_us - least_us, stay_us) : 0;
    clear(steps);
}

static const struct rule ring = {steps_of_ring, model_ring, cpl_map_near, true};

static int32_t steps_of_cube(int32_t n_ranks)
{
    struct cpl_hypercube cube = cpl_hypercube_of(n_ranks);
    return cube.n_steps + (cube.n_folded > 0);
}

static void model_doubling(struct steps *steps, double bytes)
{
    int32_t n = steps->machine->n_ranks;
    struct cpl_hypercube cube = cpl_hypercube_of(n);
    for (int32_t v = 0; v < cube.n_folded; v++)
        add(steps, 2 * v, 2 * v + 1, bytes);
    if (cube.n_folded > 0)
        finish(steps);
    for (int32_t bit = 1; bit < 1 << cube.n_steps; bit *= 2) {
        for (int32_t corner = 0; corner < 1 << cube.n_steps; corner++) {
            int32_t from = cpl_hypercube_rank(&cube, corner);
            int32_t first = corner & ~(bit - 1), end = first + bit;
            int32_t n_folded = cube.n_folded < end ? cube.n_folded - first : bit;
            add(steps, from, cpl_hypercube_rank(&cube, corner ^ bit),
                bytes * (bit + (n_folded > 0 ? n_folded : 0)));
        }
        finish(steps);
    }
    for (int32_t v = 0; v < cube.n_folded; v++)
        add(steps, 2 * v + 1, 2 * v, bytes * n);
    if (cube.n_folded > 0)
        finish(steps);
}

static const struct rule doubling = {steps_of_cube, model_doubling, cpl_map_hypercube, false};

static void model_bruck(struct steps *steps, double bytes)
{
    int32_t n = steps->machine->n_ranks;
    for (int64_t distance = 1; distance < n; distance *= 2) {
        double n_blocks = (double)(2 * distance <= n ? distance : n - distance);
        for (int32_t point = 0; point < n; point++)
            add(steps, point, (int32_t)((point - distance + n) % n), bytes * n_blocks);
        finish(steps);
    }
}

static const struct rule bruck = {steps_of_cube, model_bruck, NULL, false};

/* ---- the table ---- */

struct row {
    const char *name;
    const struct rule *rule;
};

#define ROW(NAME, name) [CPL_ALLGATHER_##NAME] = {#name, &name},
static const struct row rows[] = {CPL_ALLGATHER_ALGORITHMS(ROW) ROW(BRUCK, bruck)};
#undef ROW

const char *cpl_allgather_name(enum cpl_allgather_algorithm way)
{
    return rows[way].name;
}

bool cpl_allgather_is_in_place(enum cpl_allgather_algorithm way)
{
    return rows[way].rule->in_place;
}

int32_t cpl_allgather_steps(enum cpl_allgather_algorithm way, int32_t n_ranks)
{
    return rows[way].rule->steps(n_ranks);
}

enum cpl_status cpl_allgather_place(enum cpl_allgather_algorithm way,
                                    const struct cpl_machine *machine, int32_t *rank_at,
                                    struct cpl_error *error)
{
    const struct rule *rule = rows[way].rule;
    if (!rule->map)
        return cpl_fail(error, CPL_ERR_ARG, "ranks are not placed for %s", cpl_allgather_name(way));
    struct cpl_arena scratch = CPL_ARENA_EMPTY;
    int32_t *position = CPL_ARENA_ARRAY(&scratch, int32_t, machine->n_ranks);
    enum cpl_status status = position ? rule->map(machine, position) : CPL_ERR_NOMEM;
    for (int32_t i = 0; i < machine->n_ranks && !status; i++)
        rank_at[position[i]] = i;
    cpl_arena_free(&scratch);
    return status ? cpl_fail_memory(error, "placing the ranks") : CPL_OK;
}

enum cpl_status cpl_allgather_cost(enum cpl_allgather_algorithm way,
                                   const struct cpl_machine *machine, const int32_t *rank_at,
                                   double bytes, bool in_order, double *microseconds,
                                   struct cpl_error *error)
{
    struct cpl_arena scratch = CPL_ARENA_EMPTY;
    struct steps steps = {.machine = machine,
                          .rank_at = rank_at,
                          .rank = CPL_ARENA_ARRAY(&scratch, struct load, machine->n_ranks),
                          .node = CPL_ARENA_ARRAY(&scratch, struct node_load, machine->n_nodes)};
    if (!steps.rank || !steps.node) {
        cpl_arena_free(&scratch);
        return cpl_fail_memory(error, "the cost model");
    }
    rows[way].rule->model(&steps, bytes);
    if (!in_order)
        steps.us +=
            machine->n_ranks *
            (machine->costs.segment_ns + bytes * machine->costs.link[CPL_LINK_SOCKET].ns_per_byte) *
            1e-3;
    cpl_arena_free(&scratch);
    *microseconds = steps.us;
    return CPL_OK;
}

/* A size in the middle of a class, for all ranks together. */
static double typical_bytes(int32_t class_)
{
    return (class_ > 0 ? 1.5 : 1) *
           (double)(INT64_C(1) << (class_ + CPL_ALLGATHER_FIRST_CLASS - 1));
}

/* One way in one class: placed or not. */
static enum cpl_status weigh(const struct cpl_machine *machine, enum cpl_allgather_algorithm way,
                             const int32_t *rank_at, double bytes,
                             struct cpl_allgather_class *class_, struct cpl_error *error)
{
    double plain_us = 0, placed_us = 0;
    enum cpl_status status = cpl_allgather_cost(way, machine, NULL, bytes, true, &plain_us, error);
    if (!status)
        status = cpl_allgather_cost(way, machine, rank_at, bytes, cpl_allgather_is_in_place(way),
                                    &placed_us, error);
    class_->placed[way] = placed_us < plain_us;
    class_->us[way] = class_->placed[way] ? placed_us : plain_us;
    return status;
}

enum cpl_status cpl_allgather_plan(const struct cpl_machine *machine, int32_t *rank_at,
                                   struct cpl_allgather_class *classes, struct cpl_error *error)
{
    int32_t n = machine->n_ranks;
    enum cpl_status status = CPL_OK;
    memset(classes, 0, CPL_ALLGATHER_CLASSES * sizeof *classes);
    for (int way = 0; way < CPL_N_ALLGATHER_ALGORITHMS && !status; way++)
        status = cpl_allgather_place((enum cpl_allgather_algorithm)way, machine,
                                     rank_at + (int64_t)way * n, error);
    for (int32_t k = 0; k < CPL_ALLGATHER_CLASSES && !status; k++) {
        double all = typical_bytes(k), bytes = all / n;
        enum cpl_allgather_algorithm mpi_algorithm = cpl_allgather_mpi_algorithm(n, all);
        classes[k].mpi_algorithm = (int32_t)mpi_algorithm;
        status =
            cpl_allgather_cost(mpi_algorithm, machine, NULL, bytes,
                               mpi_algorithm != CPL_ALLGATHER_BRUCK, &classes[k].mpi_us, error);
        for (int way = 0; way < CPL_N_ALLGATHER_ALGORITHMS && !status; way++)
            status = weigh(machine, (enum cpl_allgather_algorithm)way, rank_at + (int64_t)way * n,
                           bytes, &classes[k], error);
    }
    return status;
}
