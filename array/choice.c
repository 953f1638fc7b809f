/* Choosing ways (choice.h). */
#include "choice.h"

#include "work.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What a request takes on its rank before a stage and, a read, on the way back. */
#define WRITE_NS (2 * CPL_WORK_DIGIT + CPL_WORK_COMBINE + 3 * CPL_WORK_MOVE)
#define READ_NS  (2 * CPL_WORK_DIGIT + CPL_WORK_OWNER + 4 * CPL_WORK_MOVE)

/* A way that is modelled so many times slower than the fastest is not tried: what requests for the
 * same element save is not modelled, and may be that much. */
#define HOPELESS_MODEL 16.0
#define HOPELESS       3.0 /* measured, times the fastest: out after the first round */
#define BEATEN         1.3 /* the same after another round, by one's best time */
#define WORTH_A_LOOK   2.0 /* typical time, times that of the way in use: in later trials */

/* Steps between the first trial and the second; the interval doubles from trial to trial. */
#define FIRST_INTERVAL 64
#define LAST_INTERVAL  (INT64_C(1) << 40)

/* ---- the model ---- */

struct model {
    const struct cpl_costs *costs;
    double ranks_per_node;
    double n_writes, n_reads; /* of a rank */
    double element_bytes;
};

/* One pass of messages to peers, of which so many are on other nodes. */
static double messages_us(const struct model *m, double n_near, double n_far)
{
    const struct cpl_link_cost *near = &m->costs->link[CPL_LINK_NODE];
    const struct cpl_link_cost *far = &m->costs->link[CPL_LINK_NETWORK];
    return n_near * (near->send_us + near->recv_us) + n_far * (far->send_us + far->recv_us) +
           (n_far > 0    ? far->latency_us
            : n_near > 0 ? near->latency_us
                         : 0);
}

/* Bytes that a rank sends, so large a part of them to other nodes. */
static double bytes_us(const struct model *m, double bytes, double far_part)
{
    double far_ns = m->costs->link[CPL_LINK_NETWORK].ns_per_byte;
    double node_ns = m->costs->node_ns_per_byte * m->ranks_per_node;
    far_ns = node_ns > far_ns ? node_ns : far_ns;
    return bytes *
           (far_part * far_ns + (1 - far_part) * m->costs->link[CPL_LINK_NODE].ns_per_byte) * 1e-3;
}

/* A stage in which requests go to n_peers others with equal parts, one part stays. */
static double stage_us(const struct model *m, double n_near, double n_far)
{
    double n_peers = n_near + n_far, moving = n_peers / (n_peers + 1);
    double far_part = n_peers > 0 ? n_far / n_peers : 0, us = 0;
    double write_bytes = m->element_bytes + sizeof(int64_t) + sizeof(int32_t);
    double read_bytes = m->element_bytes + sizeof(int64_t); /* there and back */
    if (m->n_writes > 0)
        us += messages_us(m, n_near, n_far) +
              bytes_us(m, m->n_writes * write_bytes * moving, far_part) +
              m->n_writes * (WRITE_NS + write_bytes * CPL_WORK_BYTE) * 1e-3;
    if (m->n_reads > 0)
        us += 2 * messages_us(m, n_near, n_far) +
              bytes_us(m, m->n_reads * read_bytes * moving, far_part) +
              m->n_reads * (READ_NS + read_bytes * CPL_WORK_BYTE) * 1e-3;
    return us;
}

/* Counts by MPI_Alltoall (in steps that double, as MPICH does it for short ones) and an agreement
 * come first; MPI_Alltoallv leaves out those for whom there is nothing. */
static double plain_us(const struct model *m, double n_ranks)
{
    double n_others = n_ranks - 1, n_steps = ceil(log2(n_ranks));
    double per_node = m->ranks_per_node < n_ranks ? m->ranks_per_node : n_ranks;
    double far_part = n_others > 0 ? (n_ranks - per_node) / n_others : 0;
    double requests = m->n_writes > m->n_reads ? m->n_writes : m->n_reads;
    double n_met = n_others > 0 ? n_others * (1 - exp(-requests / n_others)) : 0;
    double before = 3 * n_steps * messages_us(m, far_part > 0 ? 0 : 1, far_part > 0 ? 1 : 0) +
                    bytes_us(m, n_steps * n_ranks * sizeof(int64_t) / 2, far_part);
    int n_passes = (m->n_writes > 0) + (m->n_reads > 0);
    return n_passes * before + stage_us(m, n_met * (1 - far_part), n_met * far_part);
}

double cpl_choice_model_us(const struct cpl_costs *costs, const struct cpl_grid *grid,
                           int32_t n_ranks, int32_t ranks_per_node,
                           const struct cpl_step_load *load)
{
    struct model m = {costs, ranks_per_node, (double)load->n_writes / n_ranks,
                      (double)load->n_reads / n_ranks, (double)load->element_bytes};
    double us = 0;
    if (!grid)
        return plain_us(&m, n_ranks);
    for (int32_t d = 0; d < grid->n_dims; d++) {
        double near = floor((double)ranks_per_node / grid->stride[d]);
        near = near < 1 ? 1 : near > grid->size[d] ? grid->size[d] : near;
        us += stage_us(&m, near - 1, grid->size[d] - near);
    }
    if (cpl_grid_n_steps(grid, CPL_GRID_FAR_FIRST) > grid->n_dims)
        us += 2 * messages_us(&m, 0, 1); /* into the layer with holes */
    return us;
}

/* ---- the trials ---- */

void cpl_choice_begin(struct cpl_choice *choice, int n, bool measures)
{
    *choice = (struct cpl_choice){.n = n < CPL_MOST_WAYS ? n : CPL_MOST_WAYS, .measures = measures};
}

static int count_bits(int64_t n)
{
    int n_bits = 0;
    for (; n > 0; n >>= 1)
        n_bits++;
    return n_bits;
}

static int count_in(const struct cpl_choice *choice, const struct cpl_choice_size *size)
{
    int n = 0;
    for (int k = 0; k < choice->n; k++)
        n += size->in[k];
    return n;
}

/* Moves on to the next way in the trial, from that turn on. */
static void find_turn(const struct cpl_choice *choice, struct cpl_choice_size *size, int from)
{
    size->turn = from;
    while (size->turn < choice->n && !size->in[size->order[size->turn]])
        size->turn++;
}

static void start_trial(const struct cpl_choice *choice, struct cpl_choice_size *size)
{
    size->running = choice->measures && count_in(choice, size) > 1;
    size->round = 0;
    size->steps = 0;
    find_turn(choice, size, 0);
}

/* The ways by modelled time; the first of equal ones first. */
static void sort_ways(const struct cpl_choice *choice, const double *modelled_us, int *order)
{
    for (int k = 0; k < choice->n; k++) {
        int at = k;
        for (; at > 0 && modelled_us[order[at - 1]] > modelled_us[k]; at--)
            order[at] = order[at - 1];
        order[at] = k;
    }
}

/* The size of a load: the one that is remembered, else in the place of the one longest not seen. */
static struct cpl_choice_size *
find_size(struct cpl_choice *choice, const struct cpl_step_load *load, const double *modelled_us)
{
    int n_bits[2] = {count_bits(load->n_writes), count_bits(load->n_reads)}, oldest = 0;
    for (int k = 0; k < CPL_CHOICE_SIZES; k++) {
        struct cpl_choice_size *size = &choice->sizes[k];
        if (size->last > 0 && size->n_bits[0] == n_bits[0] && size->n_bits[1] == n_bits[1])
            return size;
        if (size->last < choice->sizes[oldest].last)
            oldest = k;
    }
    struct cpl_choice_size *size = &choice->sizes[oldest];
    *size =
        (struct cpl_choice_size){.n_bits = {n_bits[0], n_bits[1]}, .interval = FIRST_INTERVAL / 2};
    sort_ways(choice, modelled_us, size->order);
    size->chosen = size->order[0];
    for (int k = 0; k < choice->n; k++)
        size->in[k] = modelled_us[k] <= HOPELESS_MODEL * modelled_us[size->chosen];
    start_trial(choice, size);
    return size;
}

/* A later trial: the way in use against those that came near it, at least one. */
static void start_again(const struct cpl_choice *choice, struct cpl_choice_size *size)
{
    int second = -1;
    for (int k = 0; k < choice->n; k++) {
        double us = size->typical_us[k];
        size->in[k] = us > 0 && us <= WORTH_A_LOOK * size->typical_us[size->chosen];
        if (k != size->chosen && us > 0 && (second < 0 || us < size->typical_us[second]))
            second = k;
    }
    if (second >= 0)
        size->in[second] = true;
    start_trial(choice, size);
}

int cpl_choice_next(struct cpl_choice *choice, const struct cpl_step_load *load,
                    const double *modelled_us)
{
    int order[CPL_MOST_WAYS];
    choice->is_open = false;
    if (!choice->measures) {
        sort_ways(choice, modelled_us, order);
        choice->way = order[0];
        return choice->way;
    }
    struct cpl_choice_size *size = find_size(choice, load, modelled_us);
    size->last = ++choice->n_steps;
    if (!size->running && ++size->steps > size->interval)
        start_again(choice, size);
    choice->size = (int)(size - choice->sizes);
    choice->way = size->running ? size->order[size->turn] : size->chosen;
    choice->is_open = size->running;
    return choice->way;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const double *values, int n)
{
    double sorted[CPL_CHOICE_ROUNDS];
    memcpy(sorted, values, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, compare);
    return (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
}

static double least(const double *values, int n)
{
    double best = values[0];
    for (int k = 1; k < n; k++)
        best = values[k] < best ? values[k] : best;
    return best;
}

static void judge(const struct cpl_choice *choice, struct cpl_choice_size *size)
{
    int n_rounds = size->round + 1, best = -1;
    for (int k = 0; k < choice->n; k++) {
        if (!size->in[k])
            continue;
        size->typical_us[k] = median(size->us[k], n_rounds);
        if (best < 0 || size->typical_us[k] < size->typical_us[best])
            best = k;
    }
    double most = (size->round ? BEATEN : HOPELESS) * size->typical_us[best];
    for (int k = 0; k < choice->n; k++)
        size->in[k] = size->in[k] && least(size->us[k], n_rounds) <= most;
    size->chosen = best;
    if (count_in(choice, size) > 1 && n_rounds < CPL_CHOICE_ROUNDS) {
        size->round++;
        find_turn(choice, size, 0);
        return;
    }
    size->running = false;
    size->steps = 0;
    if (size->interval < LAST_INTERVAL)
        size->interval *= 2;
}

void cpl_choice_note(struct cpl_choice *choice, double us)
{
    struct cpl_choice_size *size = &choice->sizes[choice->size];
    bool is_wanted = choice->is_open && us > 0;
    choice->is_open = false;
    if (!is_wanted)
        return;
    size->us[choice->way][size->round] = us;
    find_turn(choice, size, size->turn + 1);
    if (size->turn == choice->n)
        judge(choice, size);
}
