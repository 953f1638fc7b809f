/* Choosing ways (choice.h). */
#include "choice.h"

#include "fold.h"
#include "work.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A way that is modelled this many times slower than the fastest is not tried. A smaller factor
 * would be wrong: the model ignores what requests for the same element save, which may be as
 * much. */
#define HOPELESS_MODEL 16.0
#define HOPELESS                                                                                   \
    3.0 /* measured time over the fastest way's: such a way is out after the first round */
#define BEATEN 1.3 /* the same for a way's best time, after a later round */
#define WORTH_A_LOOK                                                                               \
    2.0 /* typical time over that of the way in use: slower ways stay out of later trials */

#define MOST_TWINS 2 /* tried after a trial */

/* Steps between the first trial and the second; the interval doubles from trial to trial. */
#define FIRST_INTERVAL 64
#define LAST_INTERVAL  (INT64_C(1) << 40)

/* ---- the model ---- */

struct model {
    const struct cpl_costs *costs;
    double ranks_per_node;
    double n[2];    /* writes and reads of a rank */
    double kept[2]; /* requests that remain after it has folded its own */
    double element_bytes;
    bool hashes;
};

/* The time of a pass of messages to peers on the same node and on other nodes. */
static double messages_us(const struct model *m, double n_near, double n_far)
{
    const struct cpl_link_cost *near = &m->costs->link[CPL_LINK_NODE];
    const struct cpl_link_cost *far = &m->costs->link[CPL_LINK_NETWORK];
    return n_near * (near->send_us + near->recv_us) + n_far * (far->send_us + far->recv_us) +
           (n_far > 0    ? far->latency_us
            : n_near > 0 ? near->latency_us
                         : 0);
}

/* The time of the bytes that a rank sends, of which far_part go to other nodes. */
static double bytes_us(const struct model *m, double bytes, double far_part)
{
    double far_ns = m->costs->link[CPL_LINK_NETWORK].ns_per_byte;
    double node_ns = cpl_wave_node_ns(m->costs) * m->ranks_per_node;
    far_ns = node_ns > far_ns ? node_ns : far_ns;
    return bytes *
           (far_part * far_ns + (1 - far_part) * m->costs->link[CPL_LINK_NODE].ns_per_byte) * 1e-3;
}

/* The time of folding n requests, of which `kept` remain: a rank's own requests, whose indices have
 * two or three digits, or n_segments sorted runs. */
static double fold_ns(const struct model *m, double n, double kept, int n_segments)
{
    double digits = cpl_work_digits_ns(n, 2), merging;
    if (m->hashes)
        return cpl_work_hash_ns(n, kept) + kept * CPL_WORK_OWNER;
    merging = cpl_work_merge_ns(n, cpl_fold_matches(n_segments));
    return n_segments > 1 && merging < digits ? merging : digits;
}

/* The time of a rank's own work in a stage: it folds requests, and those that remain go on.
 * n_segments 0: the rank's own requests. */
static double work_us(const struct model *m, int kind, int n_segments, double bytes)
{
    double kept = m->kept[kind], n = n_segments ? kept : m->n[kind];
    double ns = fold_ns(m, n, kept, n_segments);
    ns += n * (kind == 0 ? CPL_WORK_COMBINE : 2 * CPL_WORK_MOVE);
    return (ns + kept * (2 * CPL_WORK_MOVE + bytes * CPL_WORK_BYTE)) * 1e-3;
}

/* The time of a stage in which requests, which came in n_segments runs, go to peers in equal parts;
 * one part stays. */
static double stage_us(const struct model *m, double n_near, double n_far, int n_segments)
{
    double n_peers = n_near + n_far, moving = n_peers / (n_peers + 1);
    double far_part = n_peers > 0 ? n_far / n_peers : 0, us = 0;
    double bytes[2] = {m->element_bytes + sizeof(int64_t) + sizeof(int32_t),
                       m->element_bytes + sizeof(int64_t)}; /* reads: there and back */
    for (int kind = 0; kind < 2; kind++)
        if (m->n[kind] > 0)
            us += (1 + kind) * messages_us(m, n_near, n_far) +
                  bytes_us(m, m->kept[kind] * bytes[kind] * moving, far_part) +
                  work_us(m, kind, n_segments, bytes[kind]);
    return us;
}

/* The time of a plain step. Counts by MPI_Alltoall (in doubling steps, as MPICH does for short
 * messages) and an agreement come first; MPI_Alltoallv sends no empty messages. */
static double plain_us(const struct model *m, double n_ranks)
{
    double n_others = n_ranks - 1, n_steps = ceil(log2(n_ranks));
    double per_node = m->ranks_per_node < n_ranks ? m->ranks_per_node : n_ranks;
    double far_part = n_others > 0 ? (n_ranks - per_node) / n_others : 0;
    double requests = m->kept[0] > m->kept[1] ? m->kept[0] : m->kept[1];
    double n_met = n_others > 0 ? n_others * (1 - exp(-requests / n_others)) : 0;
    double before = 3 * n_steps * messages_us(m, far_part > 0 ? 0 : 1, far_part > 0 ? 1 : 0) +
                    bytes_us(m, n_steps * n_ranks * sizeof(int64_t) / 2, far_part);
    int n_passes = (m->n[0] > 0) + (m->n[1] > 0);
    return n_passes * before + stage_us(m, n_met * (1 - far_part), n_met * far_part, 0);
}

double cpl_choice_model_us(const struct cpl_costs *costs, const struct cpl_way_model *way,
                           int32_t n_ranks, int32_t ranks_per_node,
                           const struct cpl_step_load *load)
{
    const struct cpl_grid *grid = way->grid;
    struct model m = {.costs = costs,
                      .ranks_per_node = ranks_per_node,
                      .element_bytes = (double)load->element_bytes,
                      .hashes = way->hashes};
    double us = 0;
    for (int kind = 0; kind < 2; kind++) {
        m.n[kind] = (double)load->n[kind] / n_ranks;
        m.kept[kind] = m.n[kind] * load->distinct[kind];
    }
    if (!grid)
        return plain_us(&m, n_ranks);
    for (int32_t d = 0; d < grid->n_dims; d++) {
        int n_segments = d > 0 ? grid->size[d - 1] : 0;
        double near = floor((double)ranks_per_node / grid->stride[d]);
        near = near < 1 ? 1 : near > grid->size[d] ? grid->size[d] : near;
        us += stage_us(&m, near - 1, grid->size[d] - near, n_segments);
    }
    return us;
}

/* ---- the trials ---- */

void cpl_choice_begin(struct cpl_choice *choice, int n, const int *twin, bool measures)
{
    *choice = (struct cpl_choice){.n = n < CPL_MOST_WAYS ? n : CPL_MOST_WAYS, .measures = measures};
    for (int k = 0; k < choice->n; k++)
        choice->twin[k] = twin ? twin[k] : -1;
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

/* The size of a load, or NULL. */
static const struct cpl_choice_size *known_size(const struct cpl_choice *choice,
                                                const struct cpl_step_load *load)
{
    for (int k = 0; k < CPL_CHOICE_SIZES; k++) {
        const struct cpl_choice_size *size = &choice->sizes[k];
        if (size->last > 0 && size->n_bits[0] == count_bits(load->n[0]) &&
            size->n_bits[1] == count_bits(load->n[1]))
            return size;
    }
    return NULL;
}

void cpl_choice_recall(const struct cpl_choice *choice, struct cpl_step_load *load)
{
    const struct cpl_choice_size *size = known_size(choice, load);
    for (int kind = 0; kind < 2; kind++)
        load->distinct[kind] = size ? size->distinct[kind] : 1;
}

/* Starts a size in place of the one that was not seen for longest. */
static struct cpl_choice_size *new_size(struct cpl_choice *choice, const struct cpl_step_load *load,
                                        const double *modelled_us)
{
    int oldest = 0;
    for (int k = 1; k < CPL_CHOICE_SIZES; k++)
        if (choice->sizes[k].last < choice->sizes[oldest].last)
            oldest = k;
    struct cpl_choice_size *size = &choice->sizes[oldest];
    *size = (struct cpl_choice_size){.n_bits = {count_bits(load->n[0]), count_bits(load->n[1])},
                                     .distinct = {1, 1},
                                     .interval = FIRST_INTERVAL / 2};
    sort_ways(choice, modelled_us, size->order);
    size->chosen = size->order[0];
    for (int k = 0; k < choice->n; k++) {
        int twin = choice->twin[k];
        size->in[k] = modelled_us[k] <= HOPELESS_MODEL * modelled_us[size->chosen] &&
                      (twin < 0 || modelled_us[k] < modelled_us[twin] ||
                       (modelled_us[k] == modelled_us[twin] && k < twin));
    }
    start_trial(choice, size);
    return size;
}

/* Starts a later trial: the way in use against those that came near it, at least one. */
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
    choice->is_open = false;
    const struct cpl_choice_size *known = known_size(choice, load);
    struct cpl_choice_size *size =
        known ? &choice->sizes[known - choice->sizes] : new_size(choice, load, modelled_us);
    memcpy(size->modelled_us, modelled_us, (size_t)choice->n * sizeof *modelled_us);
    size->last = ++choice->n_steps;
    if (choice->measures && !size->running && ++size->steps > size->interval)
        start_again(choice, size);
    choice->size = (int)(size - choice->sizes);
    if (!choice->measures) { /* by this step's model alone */
        sort_ways(choice, modelled_us, size->order);
        size->chosen = size->order[0];
    }
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

/* The way nearest to the chosen one, or that itself, that has a twin which is modelled faster and
 * has had no turn, and whose twin is not in the trial already. -1: none. */
static int find_twin(const struct cpl_choice *choice, const struct cpl_choice_size *size)
{
    int found = -1;
    for (int k = 0; k < choice->n; k++) {
        double us = size->typical_us[k];
        int twin = choice->twin[k];
        if (us > 0 && us <= BEATEN * size->typical_us[size->chosen] && twin >= 0 &&
            !size->in[twin] && size->typical_us[twin] == 0 &&
            size->modelled_us[twin] < size->modelled_us[k] &&
            (found < 0 || us < size->typical_us[found]))
            found = k;
    }
    return found;
}

/* Starts a trial of the chosen way and the twins of the best ones, if there are any to be tried. */
static bool try_twins(const struct cpl_choice *choice, struct cpl_choice_size *size)
{
    memset(size->in, 0, sizeof size->in);
    for (int k = 0; k < MOST_TWINS; k++) {
        int way = find_twin(choice, size);
        if (way >= 0)
            size->in[choice->twin[way]] = true;
    }
    size->of_twins = count_in(choice, size) > 0;
    size->in[size->chosen] = true;
    if (size->of_twins)
        start_trial(choice, size);
    return size->of_twins;
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
    if (!size->of_twins && try_twins(choice, size))
        return;
    size->of_twins = false;
    size->running = false;
    size->steps = 0;
    if (size->interval < LAST_INTERVAL)
        size->interval *= 2;
}

void cpl_choice_note(struct cpl_choice *choice, double us, const double *distinct)
{
    struct cpl_choice_size *size = &choice->sizes[choice->size];
    memcpy(size->distinct, distinct, sizeof size->distinct);
    bool is_wanted = choice->is_open && us > 0;
    choice->is_open = false;
    if (!is_wanted)
        return;
    size->us[choice->way][size->round] = us;
    find_turn(choice, size, size->turn + 1);
    if (size->turn == choice->n)
        judge(choice, size);
}
