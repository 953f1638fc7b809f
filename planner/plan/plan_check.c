/* The invariants of a plan (plan.h, cpl_plan_check). The check does not depend on how plans are
 * built: it replays every bundle. */
#include "planner/plan/plan_internal.h"

#include <string.h>

struct checker {
    const struct cpl_plan *plan;
    const struct cpl_pattern *pattern;
    struct cpl_arena scratch;
    struct cpl_error *error;
    int32_t *arrival;  /* rank -> wave in which the bundle at hand arrived, 0: not */
    uint8_t *forwards; /* rank -> whether it sends the bundle at hand */
};

enum cpl_status cpl_plan_bundle_edges(const struct cpl_plan *plan, struct cpl_arena *arena,
                                      struct cpl_bundle_edges *edges)
{
    edges->first = CPL_ARENA_ARRAY(arena, int64_t, (size_t)plan->n_bundles + 2);
    edges->edge = CPL_ARENA_ARRAY(arena, int64_t, plan->n_segments);
    if (!edges->first || !edges->edge)
        return CPL_ERR_NOMEM;
    int64_t *next =
        edges->first + 1; /* shifted by one while filling, so that first ends up right */
    for (int64_t s = 0; s < plan->n_segments; s++)
        next[plan->segments[s] + 1]++;
    for (int64_t k = 0; k < plan->n_bundles; k++)
        next[k + 1] += next[k];
    for (int64_t e = 0; e < plan->n_edges; e++)
        for (int32_t s = 0; s < plan->edges[e].n_segments; s++)
            edges->edge[next[plan->segments[plan->edges[e].first_segment + s]]++] = e;
    return CPL_OK;
}

static enum cpl_status broken_edge(struct checker *c, const struct cpl_edge *edge, const char *what)
{
    return cpl_fail(c->error, CPL_ERR_BROKEN, "%s: edge %d -> %d in wave %d", what, edge->from,
                    edge->to, edge->wave);
}

static enum cpl_status broken_bundle(struct checker *c, const struct cpl_bundle *bundle,
                                     const char *what, int32_t rank)
{
    return cpl_fail(c->error, CPL_ERR_BROKEN, "%s: bundle of rank %d (message %lld) at rank %d",
                    what, bundle->owner, (long long)bundle->message, rank);
}

/* Whether the two edges are in this order by wave and sender; of the same ones, whether they
 * differ. The order of a rank's sends is checked last (check_sends), for it depends on all that
 * follows. */
static bool in_order(const struct cpl_edge *a, const struct cpl_edge *b)
{
    if (a->wave != b->wave)
        return a->wave < b->wave;
    return a->from < b->from || (a->from == b->from && a->to != b->to);
}

static enum cpl_status check_segments(struct checker *c, const struct cpl_edge *edge)
{
    const struct cpl_plan *plan = c->plan;
    int64_t volume = 0;
    for (int64_t s = edge->first_segment; s < edge->first_segment + edge->n_segments; s++) {
        int32_t bundle = plan->segments[s];
        if (bundle < 0 || bundle >= plan->n_bundles)
            return broken_edge(c, edge, "canonical: a segment is no bundle");
        if (s > edge->first_segment && plan->segments[s - 1] >= bundle)
            return broken_edge(c, edge, "canonical: segments out of order");
        volume += plan->bundles[bundle].volume;
    }
    return volume == edge->volume ? CPL_OK : broken_edge(c, edge, "canonical: wrong volume");
}

static enum cpl_status check_edges(struct checker *c)
{
    const struct cpl_plan *plan = c->plan;
    int64_t n_segments = 0;
    for (int64_t e = 0; e < plan->n_edges; e++) {
        const struct cpl_edge *edge = &plan->edges[e];
        if (edge->from == edge->to || edge->from < 0 || edge->from >= plan->n_ranks ||
            edge->to < 0 || edge->to >= plan->n_ranks || edge->wave < 1 ||
            edge->wave > plan->n_waves || edge->n_segments < 1)
            return broken_edge(c, edge, "combined: not a combined message between two ranks");
        if (e > 0 && !in_order(edge - 1, edge))
            return broken_edge(c, edge, "combined: doubled or out of order");
        if (edge->first_segment != n_segments || edge->n_segments > plan->n_segments - n_segments)
            return broken_edge(c, edge, "canonical: segments do not follow each other");
        n_segments += edge->n_segments;
        enum cpl_status status = check_segments(c, edge);
        if (status)
            return status;
    }
    if (n_segments != plan->n_segments)
        return cpl_fail(c->error, CPL_ERR_BROKEN, "canonical: segments without an edge");
    return CPL_OK;
}

/* Whether a sender sends a before b: first to the rank that sends more combined messages later. */
static bool sent_before(const struct cpl_edge *a, const struct cpl_edge *b, const int64_t *later)
{
    return later[a->to] != later[b->to] ? later[a->to] > later[b->to] : a->to < b->to;
}

/* The order of sending (order.h), of edges that passed check_edges. later: what each rank has to
 * send in later waves. */
static enum cpl_status check_sends(struct checker *c)
{
    const struct cpl_plan *plan = c->plan;
    const struct cpl_edge *edges = plan->edges;
    int64_t *later = CPL_ARENA_ARRAY(&c->scratch, int64_t, plan->n_ranks);
    if (!later)
        return cpl_fail_memory(c->error, "checking the plan");
    for (int64_t e = 0; e < plan->n_edges; e++)
        later[edges[e].from]++;
    for (int64_t e = 0, counted = 0; e < plan->n_edges; e++) {
        for (; counted < plan->n_edges && edges[counted].wave == edges[e].wave; counted++)
            later[edges[counted].from]--;
        bool same_sender =
            e > 0 && edges[e - 1].wave == edges[e].wave && edges[e - 1].from == edges[e].from;
        if (same_sender && !sent_before(&edges[e - 1], &edges[e], later))
            return broken_edge(c, &edges[e], "canonical: not in the order of sending");
    }
    return CPL_OK;
}

static int32_t class_of(const struct cpl_pattern *pattern, int64_t m)
{
    return pattern->payload_class ? pattern->payload_class[m] : -1;
}

/* Whether message m comes before what goes to dest with a class. */
static bool comes_before(const struct cpl_pattern *pattern, int64_t m, int32_t dest, int32_t class_)
{
    return pattern->dst[m] < dest || (pattern->dst[m] == dest && class_of(pattern, m) < class_);
}

/* The message from owner to dest with a class, -1 when there is none: bisection in the pattern's
 * row. *stranger tells whether there is none of any class. */
static int64_t find_message(const struct cpl_pattern *pattern, int32_t owner, int32_t dest,
                            int32_t class_, bool *stranger)
{
    int64_t first = pattern->first[owner], end = pattern->first[owner + 1];
    int64_t low = first, high = end;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (comes_before(pattern, middle, dest, class_))
            low = middle + 1;
        else
            high = middle;
    }
    bool here = low < end && pattern->dst[low] == dest;
    *stranger = !here && (low == first || pattern->dst[low - 1] != dest);
    return here && class_of(pattern, low) == class_ ? low : -1;
}

/* The class of the message that a bundle names; -1 when it is none of its owner's. */
static int32_t class_of_bundle(const struct cpl_pattern *pattern, const struct cpl_bundle *bundle)
{
    bool known = bundle->message >= pattern->first[bundle->owner] &&
                 bundle->message < pattern->first[bundle->owner + 1];
    return known ? class_of(pattern, bundle->message) : -1;
}

static enum cpl_status check_dests(struct checker *c, const struct cpl_bundle *bundle,
                                   uint8_t *seen)
{
    const struct cpl_pattern *p = c->pattern;
    if (bundle->n_dests < 1 || bundle->owner < 0 || bundle->owner >= p->n_ranks)
        return broken_bundle(c, bundle, "complete: a bundle without destination or owner", -1);
    int32_t class_ = class_of_bundle(p, bundle);
    for (int32_t k = 0; k < bundle->n_dests; k++) {
        int32_t dest = c->plan->dests[bundle->first_dest + k];
        if (k > 0 && c->plan->dests[bundle->first_dest + k - 1] >= dest)
            return broken_bundle(c, bundle, "canonical: destinations out of order", dest);
        bool stranger;
        int64_t m = find_message(p, bundle->owner, dest, class_, &stranger);
        if (stranger || (m >= 0 && seen[m]))
            return broken_bundle(c, bundle, "complete: no message, or one in two bundles", dest);
        if (k == 0 && (m < 0 || m != bundle->message || p->volume[m] != bundle->volume))
            return broken_bundle(c, bundle, "canonical: wrong message or volume", dest);
        if (m < 0 || (k > 0 && class_ < 0))
            return broken_bundle(c, bundle, "complete: messages of different payload", dest);
        seen[m] = 1;
    }
    return CPL_OK;
}

static enum cpl_status check_bundles(struct checker *c)
{
    const struct cpl_plan *plan = c->plan;
    uint8_t *seen = CPL_ARENA_ARRAY(&c->scratch, uint8_t, c->pattern->n_messages);
    if (!seen)
        return cpl_fail_memory(c->error, "checking the plan");
    int64_t n_dests = 0;
    for (int64_t k = 0; k < plan->n_bundles; k++) {
        const struct cpl_bundle *bundle = &plan->bundles[k];
        if (bundle->first_dest != n_dests || bundle->n_dests > plan->n_dests - n_dests)
            return broken_bundle(c, bundle, "canonical: destinations do not follow each other", -1);
        if (k > 0 && bundle[-1].message >= bundle->message)
            return broken_bundle(c, bundle, "canonical: bundles out of order", -1);
        n_dests += bundle->n_dests;
        enum cpl_status status = check_dests(c, bundle, seen);
        if (status)
            return status;
    }
    if (n_dests != plan->n_dests || n_dests != c->pattern->n_messages)
        return cpl_fail(c->error, CPL_ERR_BROKEN, "complete: %lld of %lld messages are in bundles",
                        (long long)n_dests, (long long)c->pattern->n_messages);
    return CPL_OK;
}

/* Replays one bundle along its edges, which come in order of waves. */
static enum cpl_status replay(struct checker *c, const struct cpl_bundle *bundle,
                              const int64_t *edges, int64_t n_edges)
{
    for (int64_t k = 0; k < n_edges; k++) {
        const struct cpl_edge *edge = &c->plan->edges[edges[k]];
        bool held = edge->from == bundle->owner ||
                    (c->arrival[edge->from] && c->arrival[edge->from] < edge->wave);
        if (!held)
            return broken_edge(c, edge, "causal: a bundle is sent on before it arrived");
        if (edge->to == bundle->owner || c->arrival[edge->to])
            return broken_bundle(c, bundle, "tree: arrives twice or at its owner", edge->to);
        c->arrival[edge->to] = edge->wave;
        c->forwards[edge->from] = 1;
    }
    return CPL_OK;
}

static enum cpl_status check_reached(struct checker *c, const struct cpl_bundle *bundle,
                                     const int64_t *edges, int64_t n_edges)
{
    for (int32_t k = 0; k < bundle->n_dests; k++) {
        int32_t dest = c->plan->dests[bundle->first_dest + k];
        if (!c->arrival[dest])
            return broken_bundle(c, bundle, "complete: a destination is not reached", dest);
        c->forwards[dest] = 1; /* for the next loop: being a destination is reason enough */
    }
    for (int64_t k = 0; k < n_edges; k++) {
        int32_t to = c->plan->edges[edges[k]].to;
        if (!c->forwards[to])
            return broken_bundle(c, bundle, "complete: carried in vain", to);
    }
    return CPL_OK;
}

static enum cpl_status check_rides(struct checker *c)
{
    struct cpl_bundle_edges carried;
    c->arrival = CPL_ARENA_ARRAY(&c->scratch, int32_t, c->plan->n_ranks);
    c->forwards = CPL_ARENA_ARRAY(&c->scratch, uint8_t, c->plan->n_ranks);
    if (!c->arrival || !c->forwards || cpl_plan_bundle_edges(c->plan, &c->scratch, &carried))
        return cpl_fail_memory(c->error, "checking the plan");
    for (int64_t b = 0; b < c->plan->n_bundles; b++) {
        const struct cpl_bundle *bundle = &c->plan->bundles[b];
        const int64_t *edges = carried.edge + carried.first[b];
        int64_t n_edges = carried.first[b + 1] - carried.first[b];
        enum cpl_status status = replay(c, bundle, edges, n_edges);
        if (!status)
            status = check_reached(c, bundle, edges, n_edges);
        if (status)
            return status;
        c->forwards[bundle->owner] = 0;
        for (int64_t k = 0; k < n_edges; k++) {
            c->arrival[c->plan->edges[edges[k]].to] = 0;
            c->forwards[c->plan->edges[edges[k]].to] = 0;
        }
    }
    return CPL_OK;
}

static enum cpl_status check_fingerprints(struct checker *c)
{
    if (c->plan->pattern_fingerprint != cpl_pattern_fingerprint(c->pattern))
        return cpl_fail(c->error, CPL_ERR_BROKEN, "canonical: the plan is of another pattern");
    if (c->plan->fingerprint != cpl_plan_compute_fingerprint(c->plan))
        return cpl_fail(c->error, CPL_ERR_BROKEN, "canonical: wrong plan fingerprint");
    return CPL_OK;
}

enum cpl_status cpl_plan_check(const struct cpl_plan *plan, const struct cpl_pattern *pattern,
                               struct cpl_error *error)
{
    struct checker c = {
        .plan = plan, .pattern = pattern, .scratch = CPL_ARENA_EMPTY, .error = error};
    enum cpl_status status = CPL_OK;
    if (plan->n_ranks != pattern->n_ranks)
        status = cpl_fail(error, CPL_ERR_BROKEN, "a plan of %d ranks for a pattern of %d",
                          plan->n_ranks, pattern->n_ranks);
    if (!status && plan->has_parts != (pattern->pairs != NULL))
        status = cpl_fail(error, CPL_ERR_BROKEN, "canonical: parts are mistaken for messages");
    if (!status)
        status = check_edges(&c);
    if (!status)
        status = check_bundles(&c);
    if (!status)
        status = check_rides(&c);
    if (!status)
        status = check_sends(&c);
    if (!status)
        status = check_fingerprints(&c);
    cpl_arena_free(&c.scratch);
    return status;
}
