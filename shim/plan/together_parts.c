/* The search in parts (together_parts.h). */
#include "shim/plan/together_parts.h"

#include "planner/plan/detours.h"
#include "planner/strategies/part_search.h"
#include "shim/base/work.h"
#include "shim/meet/agree.h"
#include "shim/wait/collective.h"

#include <stdlib.h>
#include <string.h>

/* About so many ranks are a part, of whole nodes. */
#define PART_RANKS 512

/* The most messages that pass through a part that is searched. */
#define MOST_PASSING (1 << 15)

/* Of all messages, those that lie inside parts must be so many at least. */
#define LEAST_INSIDE 0.1

/* What parts take must fall to this, that of the slowest, to be taken: a part knows only what the
 * ranks around it do with it. */
#define WORTH_TAKING 0.99

struct part {
    struct cpl_together *p;
    struct cpl_together_candidate *c;
    int32_t n_nodes;                  /* of each part */
    int32_t me;                       /* this rank's part */
    int32_t first;                    /* its lowest rank, which searches */
    struct cpl_together_array handed; /* struct cpl_passing: at that rank, all that passes */
    struct cpl_part_found found;
    struct cpl_detour *detours; /* of messages that pass, or passed, through this rank */
    int64_t n_detours;
    bool failed;
};

static int32_t part_of(const struct part *part, int32_t rank)
{
    return cpl_machine_node(&part->p->machine, rank) / part->n_nodes;
}

static struct part part_for(struct cpl_together *p, struct cpl_together_candidate *c)
{
    const struct cpl_machine *machine = &p->machine;
    int64_t n_nodes = (int64_t)PART_RANKS * machine->n_nodes / machine->n_ranks;
    struct part part = {.p = p, .c = c, .n_nodes = n_nodes > 1 ? (int32_t)n_nodes : 1};
    part.me = part_of(&part, p->rank);
    part.first = machine->block > 0 ? part.me * part.n_nodes * machine->block : 0;
    while (part_of(&part, part.first) != part.me)
        part.first++;
    return part;
}

/* Whether all of a message's way lies inside one part. */
static bool is_inside(const struct part *part, int32_t src, int32_t dst)
{
    struct cpl_way_room room;
    int32_t n = cpl_walk_path(&part->c->walk, src, dst, room.stops, room.path, room.wave);
    for (int32_t k = 1; k < n; k++)
        if (part_of(part, room.path[k]) != part_of(part, src))
            return false;
    return true;
}

/* Whether enough messages lie inside parts. Collective. */
static bool is_worth_it(const struct part *part)
{
    const struct cpl_agree_input *input = part->p->input;
    int64_t mine[] = {0, input->n_messages}, all[2];
    for (int m = 0; m < input->n_messages; m++)
        mine[0] += is_inside(part, part->p->rank, input->dst[m]);
    cpl_collective_Allreduce(mine, all, 2, MPI_INT64_T, MPI_SUM, part->p->comm);
    return (double)all[0] >= LEAST_INSIDE * (double)all[1];
}

/* Whether a message comes to the part at this rank: it is the first one of the part on its way. */
static bool enters_here(const struct part *part, const struct cpl_passing *m)
{
    struct cpl_way_room room;
    int32_t n = cpl_walk_path(&part->c->walk, m->src, m->dst, room.stops, room.path, room.wave);
    int32_t k = 0;
    while (k < n - 1 && part_of(part, room.path[k]) != part->me)
        k++;
    return room.path[k] == part->p->rank;
}

/* Hands the messages that enter the part here to the rank that searches. Collective. */
static void hand_in(struct part *part)
{
    struct cpl_together *p = part->p;
    const struct cpl_passing *passing = part->c->passing.at;
    struct cpl_together_array entering = {NULL};
    for (int64_t k = 0; k < part->c->passing.n; k++)
        if (enters_here(part, &passing[k]))
            cpl_together_keep(p, &entering, passing[k]);
    bool sends = p->rank != part->first;
    const int64_t first[] = {0, entering.n};
    int64_t came = cpl_census_round(
        &p->census,
        &(struct cpl_census_out){sends && entering.n > 0, &part->first, first, entering.at},
        sizeof *passing);
    part->failed |= p->census.failed;
    p->n_handled += came + entering.n;
    for (int64_t k = 0; k < came; k++) {
        struct cpl_passing m;
        memcpy(&m, p->census.records + (size_t)k * sizeof m, sizeof m);
        cpl_together_keep(p, &entering, m);
    }
    if (sends)
        cpl_together_drop(p, &entering);
    else
        part->handed = entering;
}

/* Searches. Local, on the part's first rank. */
static void search(struct part *part, double budget_ms)
{
    struct cpl_together *p = part->p;
    struct cpl_error error;
    int32_t n = 0, end = part->first;
    for (int32_t rank = part->first; rank < p->n_ranks; rank++)
        n += part_of(part, rank) == part->me;
    int32_t *inside = calloc((size_t)n, sizeof *inside);
    for (int32_t k = 0; k < n && inside; end++)
        if (part_of(part, end) == part->me)
            inside[k++] = end;
    const struct cpl_part of = {&part->c->walk, part->c->machine, n, inside};
    part->failed |= !inside || cpl_part_search(&of, part->handed.at, part->handed.n, 1, budget_ms,
                                               &part->found, &error);
    cpl_work_planned(budget_ms);
    free(inside);
}

/* A detour and a rank that has to know it. */
struct notice {
    int32_t rank;
    int32_t detour;
};

static int by_rank(const void *a, const void *b)
{
    const struct notice *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return (x->detour > y->detour) - (x->detour < y->detour);
}

/* The ranks that the messages pass through, and those that they passed through before. Returns how
 * many notices there are; NULL in *notices: no memory. */
static int64_t list_notices(const struct part *part, const struct cpl_walk *walk,
                            struct notice **notices)
{
    struct cpl_way_room room;
    const struct cpl_walk *walks[] = {&part->c->walk, walk};
    int64_t n = 0, kept = 0;
    struct notice *list =
        calloc((size_t)part->found.n * 2 * (CPL_DETOUR_WAVES + 1) + 1, sizeof *list);
    *notices = list;
    for (int64_t k = 0; k < part->found.n && list; k++)
        for (int w = 0; w < 2; w++) {
            const struct cpl_passing *m = &part->found.detours[k].message;
            int32_t on_way =
                cpl_walk_path(walks[w], m->src, m->dst, room.stops, room.path, room.wave);
            for (int32_t i = 0; i < on_way; i++)
                list[n++] = (struct notice){room.path[i], (int32_t)k};
        }
    if (n > 0)
        qsort(list, (size_t)n, sizeof *list, by_rank);
    for (int64_t k = 0; k < n; k++)
        if (kept == 0 || by_rank(&list[kept - 1], &list[k]) != 0)
            list[kept++] = list[k];
    return kept;
}

/* What the part's first rank tells the others. */
struct notes {
    struct cpl_census_out out;
    int *to;
    int64_t *first;
    struct cpl_detour *records;
};

/* Writes down who is told which detours; those that this rank itself has to know become
 * part->detours. */
static void write_notes(struct part *part, struct notes *notes)
{
    struct cpl_walk walk = {.arena = CPL_ARENA_EMPTY};
    struct notice *list = NULL;
    int64_t n = 0, n_told = 0;
    part->failed |= cpl_detours_walk(&part->c->walk, cpl_part_waves(&part->c->walk),
                                     part->found.detours, part->found.n, &walk, NULL) != CPL_OK;
    if (!part->failed)
        n = list_notices(part, &walk, &list);
    cpl_walk_free(&walk);
    notes->to = calloc((size_t)n + 1, sizeof *notes->to);
    notes->first = calloc((size_t)n + 2, sizeof *notes->first);
    notes->records = calloc((size_t)n + 1, sizeof *notes->records);
    part->detours = calloc((size_t)part->found.n + 1, sizeof *part->detours);
    part->failed |= !list || !notes->to || !notes->first || !notes->records || !part->detours;
    for (int64_t k = 0; k < n && !part->failed; k++) {
        const struct cpl_detour *detour = &part->found.detours[list[k].detour];
        if (list[k].rank == part->p->rank) {
            part->detours[part->n_detours++] = *detour;
            continue;
        }
        if (notes->out.n == 0 || notes->to[notes->out.n - 1] != list[k].rank)
            notes->to[notes->out.n++] = list[k].rank;
        notes->records[n_told++] = *detour;
        notes->first[notes->out.n] = n_told;
    }
    free(list);
    notes->out.to = notes->to;
    notes->out.first = notes->first;
    notes->out.records = notes->records;
}

static int by_message(const void *a, const void *b)
{
    return cpl_detour_compare(a, b);
}

/* Tells all ranks of the part the detours that they have to know. Collective. */
static void spread(struct part *part)
{
    struct cpl_together *p = part->p;
    struct notes notes = {.to = NULL};
    bool searches = p->rank == part->first;
    if (searches)
        write_notes(part, &notes);
    int64_t came = cpl_census_round(&p->census, &notes.out, sizeof(struct cpl_detour));
    part->failed |= p->census.failed;
    p->n_handled += came;
    if (!searches) {
        part->detours = calloc((size_t)came + 1, sizeof *part->detours);
        part->failed |= !part->detours;
        if (part->detours && came > 0)
            memcpy(part->detours, p->census.records, (size_t)came * sizeof *part->detours);
        part->n_detours = part->detours ? came : 0;
    }
    if (part->n_detours > 0)
        qsort(part->detours, (size_t)part->n_detours, sizeof *part->detours, by_message);
    free(notes.to);
    free(notes.first);
    free(notes.records);
}

static bool has_detour(const struct part *part, const struct cpl_passing *m)
{
    const struct cpl_detour key = {.message = *m};
    return part->n_detours > 0 &&
           bsearch(&key, part->detours, (size_t)part->n_detours, sizeof key, by_message);
}

static bool passes_here(const struct cpl_walk *walk, int32_t rank, const struct cpl_passing *m)
{
    struct cpl_way_room room;
    int32_t n = cpl_walk_path(walk, m->src, m->dst, room.stops, room.path, room.wave);
    for (int32_t k = 0; k < n; k++)
        if (room.path[k] == rank)
            return true;
    return false;
}

/* The walk with detours, and what passes here by it. */
struct improved {
    struct cpl_walk walk;
    struct cpl_together_array passing;
};

static void make_improved(struct part *part, struct improved *improved)
{
    struct cpl_together *p = part->p;
    const struct cpl_passing *before = part->c->passing.at;
    if (part->failed)
        return;
    part->failed |= cpl_detours_walk(&part->c->base, cpl_part_waves(&part->c->base), part->detours,
                                     part->n_detours, &improved->walk, NULL) != CPL_OK;
    for (int64_t k = 0; k < part->c->passing.n && !part->failed; k++)
        if (!has_detour(part, &before[k]))
            cpl_together_keep(p, &improved->passing, before[k]);
    for (int64_t k = 0; k < part->n_detours && !part->failed; k++)
        if (passes_here(&improved->walk, p->rank, &part->detours[k].message))
            cpl_together_keep(p, &improved->passing, part->detours[k].message);
}

/* What the slowest part takes now, of what it took; 1 if that is not enough. Collective. */
static double gain(const struct part *part)
{
    double mine[] = {part->failed, part->found.before_us, part->found.us}, all[3];
    cpl_collective_Allreduce(mine, all, 3, MPI_DOUBLE, MPI_MAX, part->p->comm);
    return !(all[0] > 0) && all[2] < WORTH_TAKING * all[1] ? all[2] / all[1] : 1;
}

/* Puts the improved one in the candidate's place. */
static void take(struct part *part, struct improved *improved)
{
    struct cpl_together_candidate *c = part->c;
    c->walk = improved->walk;
    cpl_together_drop(part->p, &c->passing);
    c->passing = improved->passing;
    cpl_strategy_parse("balance", &c->choice, NULL);
    cpl_together_count_again(part->p, c);
}

double cpl_together_improve(struct cpl_together *p, struct cpl_together_candidate *c,
                            double budget_ms)
{
    struct part part = part_for(p, c);
    struct improved improved = {.walk = {.arena = CPL_ARENA_EMPTY}};
    if (c->walk.n_waves > CPL_DETOUR_WAVES || !is_worth_it(&part))
        return 1;
    bool failed = p->failed, census_failed = p->census.failed;
    c->base = c->walk; /* the walk with detours looks at it */
    hand_in(&part);
    part.failed |= part.handed.n > MOST_PASSING;
    if (part.handed.n > 0 && !part.failed)
        search(&part, budget_ms);
    cpl_together_drop(p, &part.handed);
    /* Where the others wait, which costs less than in a census. */
    part.failed |= !cpl_agree_all(p->comm, !part.failed);
    if (!part.failed)
        spread(&part);
    make_improved(&part, &improved);
    part.failed |= p->failed;
    double now = gain(&part);
    if (now < 1) {
        take(&part, &improved);
    } else {
        cpl_together_drop(p, &improved.passing);
        cpl_walk_free(&improved.walk);
        c->base = (struct cpl_walk){.arena = CPL_ARENA_EMPTY};
        p->failed = failed; /* the plan is there without it */
        p->census.failed = census_failed;
    }
    cpl_part_found_free(&part.found);
    free(part.detours);
    return now;
}
