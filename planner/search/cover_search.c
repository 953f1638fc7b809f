/* The search over covers (cover_search.h). */
#include "planner/search/cover_search.h"

#include "planner/base/hash.h"

#include <string.h>

#define MAX_STRANDED 32  /* messages that one removal may leave without a way */
#define MAX_LOG      512 /* edges changed in one move */
#define N_FRESH      3   /* ranks tried as new intermediates, for each message */
#define N_RIVALS     4   /* edges among which the one with fewest needing messages goes */

/* A change that can be taken back. */
struct entry {
    int32_t stage, from, to, by;
};

struct search {
    struct cpl_cover *cover;
    struct cpl_cover_price *price;
    const struct cpl_cover_schedule *schedule;
    uint64_t random;
    double heat;  /* from 1 down to 0 */
    double least; /* about the least that a new edge costs */
    struct entry log[MAX_LOG];
    int32_t n_log;
    struct entry banned; /* the edge that was taken away */
    int32_t stranded[MAX_STRANDED];
    int32_t n_stranded;
};

/* An edge (or two) that gives a message a way, and what it costs per message that it helps. */
struct candidate {
    struct entry edge;
    int32_t fresh; /* >= 0: the edge and another one meet at this new intermediate */
    double score;
};

static int32_t random_below(struct search *s, int32_t n)
{
    return (int32_t)((cpl_random_next(&s->random) >> 32) * (uint64_t)n >> 32);
}

/* In [0, 1). */
static double random_fraction(struct search *s)
{
    return (double)(cpl_random_next(&s->random) >> 11) * 0x1p-53;
}

static void change(struct search *s, struct entry e)
{
    if (s->n_log == MAX_LOG || s->cover->failed)
        return;
    s->log[s->n_log++] = e;
    cpl_cover_price_apply(s->price, e.stage, e.from, e.to, e.by);
    if (e.by > 0)
        cpl_cover_add(s->cover, e.stage, e.from, e.to);
    else
        cpl_cover_remove(s->cover, cpl_layers_find(&s->cover->layers, e.stage, e.from, e.to));
}

static void take_back(struct search *s)
{
    while (s->n_log > 0 && !s->cover->failed) {
        struct entry e = s->log[--s->n_log];
        cpl_cover_price_apply(s->price, e.stage, e.from, e.to, -e.by);
        if (e.by < 0)
            cpl_cover_add(s->cover, e.stage, e.from, e.to);
        else
            cpl_cover_remove(s->cover, cpl_layers_find(&s->cover->layers, e.stage, e.from, e.to));
    }
}

static struct entry entry_of(const struct cpl_cover *cover, int32_t edge, int32_t by)
{
    const struct cpl_layer_edge *e = &cover->layers.edge[edge];
    return (struct entry){e->wave, e->from, e->to, by};
}

static bool is_banned(const struct search *s, int32_t stage, int32_t from, int32_t to)
{
    return stage == s->banned.stage && from == s->banned.from && to == s->banned.to;
}

/* Whether an edge would give stranded message m a way. */
static bool would_help(const struct cpl_cover *cover, const struct entry *e, int32_t m)
{
    int32_t source = cover->choices[m].source, dest = cover->pattern->dst[m];
    switch (e->stage) {
    case CPL_COVER_FIRST:
        return e->from == source && cpl_cover_reaches(cover, e->to, dest);
    case CPL_COVER_LAST:
        return e->to == dest && cpl_cover_reached(cover, source, e->from);
    default:
        return (e->from == source ||
                cpl_layers_find(&cover->layers, CPL_COVER_FIRST, source, e->from)) &&
               (e->to == dest || cpl_layers_find(&cover->layers, CPL_COVER_LAST, e->to, dest));
    }
}

static int32_t count_helped(const struct search *s, const struct entry *e)
{
    int32_t n = 0;
    for (int32_t k = 0; k < s->n_stranded; k++)
        n += would_help(s->cover, e, s->stranded[k]);
    return n;
}

static void consider(struct search *s, int32_t stage, int32_t from, int32_t to,
                     struct candidate *best)
{
    if (from == to || is_banned(s, stage, from, to))
        return;
    struct entry e = {stage, from, to, 1};
    double price = cpl_cover_price_add(s->price, stage, from, to);
    s->cover->work++;
    if (price >= best->score * s->n_stranded)
        return;
    int32_t n = s->n_stranded > 1 ? count_helped(s, &e) : 1;
    s->cover->work += s->n_stranded;
    if (n > 0 && price / n < best->score)
        *best = (struct candidate){e, -1, price / n};
}

/* First edges from the source to ranks that reach dest. */
static void consider_first(struct search *s, int32_t source, int32_t dest, struct candidate *best)
{
    const struct cpl_cover *cover = s->cover;
    const struct cpl_layer_links *last = &cover->layers.in[CPL_COVER_LAST][dest];
    consider(s, CPL_COVER_FIRST, source, dest, best);
    for (int32_t k = -1; k < last->n; k++) {
        int32_t y = k < 0 ? dest : last->link[k].peer;
        const struct cpl_layer_links *middle = &cover->layers.in[CPL_COVER_MIDDLE][y];
        if (k >= 0)
            consider(s, CPL_COVER_FIRST, source, y, best);
        for (int32_t j = 0; j < middle->n; j++)
            consider(s, CPL_COVER_FIRST, source, middle->link[j].peer, best);
    }
}

/* Last edges to dest from ranks that the source reaches. */
static void consider_last(struct search *s, int32_t source, int32_t dest, struct candidate *best)
{
    const struct cpl_cover *cover = s->cover;
    const struct cpl_layer_links *first = &cover->layers.out[CPL_COVER_FIRST][source];
    for (int32_t k = -1; k < first->n; k++) {
        int32_t x = k < 0 ? source : first->link[k].peer;
        const struct cpl_layer_links *middle = &cover->layers.out[CPL_COVER_MIDDLE][x];
        consider(s, CPL_COVER_LAST, x, dest, best);
        for (int32_t j = 0; j < middle->n; j++)
            consider(s, CPL_COVER_LAST, middle->link[j].peer, dest, best);
    }
}

/* Middle edges from ranks that the source has first edges to, to ranks that have last edges to
 * dest. */
static void consider_middle(struct search *s, int32_t source, int32_t dest, struct candidate *best)
{
    const struct cpl_cover *cover = s->cover;
    const struct cpl_layer_links *first = &cover->layers.out[CPL_COVER_FIRST][source];
    const struct cpl_layer_links *last = &cover->layers.in[CPL_COVER_LAST][dest];
    for (int32_t k = -1; k < first->n; k++)
        for (int32_t j = -1; j < last->n; j++)
            consider(s, CPL_COVER_MIDDLE, k < 0 ? source : first->link[k].peer,
                     j < 0 ? dest : last->link[j].peer, best);
}

/* Two new edges over a rank that is taken at random. */
static void consider_fresh(struct search *s, int32_t source, int32_t dest, struct candidate *best)
{
    for (int32_t k = 0; k < N_FRESH; k++) {
        int32_t z = random_below(s, s->cover->n_ranks);
        if (z == source || z == dest || is_banned(s, CPL_COVER_FIRST, source, z) ||
            is_banned(s, CPL_COVER_LAST, z, dest))
            continue;
        if (cpl_layers_find(&s->cover->layers, CPL_COVER_FIRST, source, z) ||
            cpl_layers_find(&s->cover->layers, CPL_COVER_LAST, z, dest))
            continue; /* one edge would do: it has been considered */
        double score = cpl_cover_price_add(s->price, CPL_COVER_FIRST, source, z) / s->n_stranded +
                       cpl_cover_price_add(s->price, CPL_COVER_LAST, z, dest);
        s->cover->work += 2;
        if (score < best->score)
            *best = (struct candidate){{CPL_COVER_FIRST, source, z, 1}, z, score};
    }
}

/* Gives message m a way by the cheapest edge. Returns false when there is none. */
static bool give_way(struct search *s, int32_t m)
{
    int32_t source = s->cover->choices[m].source, dest = s->cover->pattern->dst[m];
    struct candidate best = {.score = 1e300};
    consider_first(s, source, dest, &best);
    consider_last(s, source, dest, &best);
    if (s->cover->n_hops == 3)
        consider_middle(s, source, dest, &best);
    consider_fresh(s, source, dest, &best);
    if (best.score >= 1e300)
        return false;
    change(s, best.edge);
    if (best.fresh >= 0)
        change(s, (struct entry){CPL_COVER_LAST, best.fresh, dest, 1});
    return true;
}

static void forget_helped(struct search *s)
{
    int32_t n = 0;
    for (int32_t k = 0; k < s->n_stranded; k++)
        if (!cpl_cover_has_way(s->cover, s->stranded[k]))
            s->stranded[n++] = s->stranded[k];
    s->n_stranded = n;
}

static void list_stranded(struct search *s)
{
    const struct cpl_cover *cover = s->cover;
    s->n_stranded = 0;
    for (int32_t k = 0; k < cover->n_touched; k++)
        if (!cpl_cover_has_way(cover, cover->touched[k]))
            s->stranded[s->n_stranded++] = cover->touched[k];
}

/* Removes what no message needs. */
static void remove_unneeded(struct search *s)
{
    int32_t edge;
    while (s->n_log < MAX_LOG && !s->cover->failed &&
           (edge = cpl_cover_take_unneeded(s->cover)) > 0)
        change(s, entry_of(s->cover, edge, -1));
}

/* Tries to do without an edge; the objective may rise by at most `allowed`. */
static void try_without(struct search *s, int32_t edge, double allowed)
{
    s->n_log = 0;
    cpl_cover_price_mark(s->price);
    s->banned = entry_of(s->cover, edge, -1);
    change(s, s->banned);
    list_stranded(s);
    bool good = true;
    while (s->n_stranded > 0 && good && !s->cover->failed && s->n_log < MAX_LOG - MAX_STRANDED) {
        good = give_way(s, s->stranded[0]) && cpl_cover_price_rise(s->price) <= allowed;
        forget_helped(s);
    }
    if (good && s->n_stranded == 0) {
        remove_unneeded(s);
        good = cpl_cover_price_rise(s->price) <= allowed;
    }
    if (!good || s->n_stranded > 0)
        take_back(s);
}

/* Whether an edge's removal may pay: what its messages need at least against what it costs. */
static bool promises(struct search *s, int32_t edge, double gain)
{
    int32_t n = s->cover->need[edge].n_messages;
    if (n > MAX_STRANDED)
        return false;
    /* One new edge may serve them all: worth a look now and then. */
    int32_t n_new = random_below(s, 8) ? n : n > 0;
    return n_new * s->least <= gain * (1 + s->heat);
}

/* A loaded end of edges: of some taken at random the one with the largest load. */
static void choose_end(struct search *s, int32_t *stage, int32_t *rank, bool *sends)
{
    const struct cpl_cover_price *price = s->price;
    int32_t most = -1;
    int32_t group = random_below(s, price->n_groups);
    int32_t n_tries = random_below(s, 2) ? 4 : 16;
    bool send_side = random_below(s, 2);
    for (int32_t k = 0; k < n_tries; k++) {
        int32_t r = random_below(s, s->cover->n_ranks);
        int32_t load = cpl_cover_slot_load(cpl_cover_slot_of(price, group, r, send_side));
        if (load > most) {
            most = load;
            *rank = r;
        }
    }
    *stage = price->goal == CPL_COVER_TIME ? group : -1;
    *sends = send_side;
    s->cover->work += n_tries;
}

/* One of the end's edges; 0: it has none. Of all stages when stage is -1. */
static int32_t choose_edge(struct search *s, int32_t stage, int32_t rank, bool sends)
{
    const struct cpl_cover *cover = s->cover;
    struct cpl_layer_links *const *lists = sends ? cover->layers.out : cover->layers.in;
    int32_t n = 0, chosen = 0;
    for (int32_t k = 0; k < CPL_COVER_STAGES; k++)
        n += stage < 0 || stage == k ? lists[k][rank].n : 0;
    for (int32_t rival = 0; rival < N_RIVALS && n > 0; rival++) {
        int32_t at = random_below(s, n), k = stage < 0 ? 0 : stage;
        while (stage < 0 && at >= lists[k][rank].n)
            at -= lists[k++][rank].n;
        int32_t edge = lists[k][rank].link[at].edge;
        if (!chosen || cover->need[edge].n_messages < cover->need[chosen].n_messages)
            chosen = edge;
    }
    return chosen;
}

static void move(struct search *s)
{
    int32_t stage = 0, rank = 0, edge;
    bool sends = false;
    choose_end(s, &stage, &rank, &sends);
    edge = choose_edge(s, stage, rank, sends);
    s->cover->work += 8;
    if (!edge)
        return;
    struct entry e = entry_of(s->cover, edge, -1);
    double gain = cpl_cover_price_gain(s->price, e.stage, e.from, e.to);
    if (promises(s, edge, gain))
        try_without(s, edge, s->heat * random_fraction(s) * gain - 1e-12 * gain);
}

/* About what the cheapest new edges cost now: the price of the cheapest of some random ones. */
static double sample_least(struct search *s)
{
    double least = 1e300;
    for (int32_t k = 0; k < 64; k++) {
        int32_t stage = random_below(s, s->cover->n_hops == 3 ? 3 : 2);
        int32_t from = random_below(s, s->cover->n_ranks);
        int32_t to = random_below(s, s->cover->n_ranks);
        stage = s->cover->n_hops == 2 && stage == 1 ? CPL_COVER_LAST : stage;
        double price = cpl_cover_price_add(s->price, stage, from, to);
        least = price < least ? price : least;
    }
    return least;
}

#define SHARPENINGS 64

void cpl_cover_schedule_for(const struct cpl_cover_price *price, int32_t n_hops,
                            struct cpl_cover_schedule *schedule)
{
    if (price->goal == CPL_COVER_TIME) {
        schedule->first_sharpness = 1 * price->unit_us;
        schedule->last_sharpness = 6 * price->unit_us;
        schedule->temperature = 4;
    } else {
        schedule->first_sharpness = n_hops == 2 ? 0.5 : 0.8;
        schedule->last_sharpness = n_hops == 2 ? 1.5 : 2.4;
        schedule->temperature = n_hops == 2 ? 4 : 8;
    }
    schedule->seed = 1;
}

static void load_prices(const struct cpl_cover *cover, struct cpl_cover_price *price)
{
    for (int32_t edge = 1; edge <= cover->layers.n_numbers; edge++) {
        const struct cpl_layer_edge *e = &cover->layers.edge[edge];
        if (e->from >= 0)
            cpl_cover_price_load(price, e->wave, e->from, e->to);
    }
}

enum cpl_status cpl_cover_search(struct cpl_cover *cover, struct cpl_cover_price *price,
                                 const struct cpl_cover_schedule *schedule)
{
    struct search s = {
        .cover = cover, .price = price, .schedule = schedule, .random = schedule->seed};
    int64_t begin = cover->work;
    load_prices(cover, price);
    for (int32_t step = 0; step < SHARPENINGS && !cover->failed; step++) {
        double done = (double)step / (SHARPENINGS - 1);
        s.heat = schedule->temperature * (1 - done);
        if (cpl_cover_price_sharpen(
                price, schedule->first_sharpness +
                           done * (schedule->last_sharpness - schedule->first_sharpness)))
            return CPL_ERR_NOMEM;
        s.least = sample_least(&s);
        int64_t end = begin + schedule->work / SHARPENINGS * (step + 1);
        while (cover->work < end && !cover->failed)
            move(&s);
    }
    do {
        s.n_log = 0;
        remove_unneeded(&s);
    } while (s.n_log > 0);
    return cover->failed ? CPL_ERR_NOMEM : CPL_OK;
}
