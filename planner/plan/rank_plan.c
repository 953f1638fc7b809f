/* Cutting plans into rank plans, and reading these (rank_plan.h). */
#include "planner/rank_plan.h"

#include "planner/plan/plan_internal.h"

#include <stdbool.h>
#include <string.h>

#define MAGIC INT32_C(0x32525043) /* "CPR2": a block of this layout */

/* Words of the header, in order. */
enum header {
    H_MAGIC,
    H_WORDS,
    H_RANK,
    H_RANKS,
    H_WAVES,
    H_PATTERN_LOW,
    H_PATTERN_HIGH,
    H_PLAN_LOW,
    H_PLAN_HIGH,
    H_PAYLOADS,
    H_IN,
    H_IN_SEGMENTS,
    H_FEEDS,
    H_OUT,
    H_OUT_SEGMENTS,
    HEADER_WORDS
};

/* Where each array begins in a block; follows from the counts in the header. */
struct offsets {
    int64_t in_from, in_wave, in_first, in_owner, in_part, in_feed_first, in_feed, in_low, in_high;
    int64_t out_to, out_wave, out_first, out_source, out_waits, out_low, out_high;
    int64_t end;
};

static int64_t take(int64_t *next, int64_t count)
{
    int64_t at = *next;
    *next += count;
    return at;
}

static struct offsets lay_out(int64_t n_in, int64_t n_in_segments, int64_t n_feeds, int64_t n_out,
                              int64_t n_out_segments)
{
    int64_t next = HEADER_WORDS;
    struct offsets o;
    o.in_from = take(&next, n_in);
    o.in_wave = take(&next, n_in);
    o.in_first = take(&next, n_in + 1);
    o.in_owner = take(&next, n_in_segments);
    o.in_part = take(&next, n_in_segments);
    o.in_feed_first = take(&next, n_in + 1);
    o.in_feed = take(&next, n_feeds);
    o.in_low = take(&next, n_in);
    o.in_high = take(&next, n_in);
    o.out_to = take(&next, n_out);
    o.out_wave = take(&next, n_out);
    o.out_first = take(&next, n_out + 1);
    o.out_source = take(&next, n_out_segments);
    o.out_waits = take(&next, n_out);
    o.out_low = take(&next, n_out);
    o.out_high = take(&next, n_out);
    o.end = next;
    return o;
}

/* Groups edge numbers by one end: first[i] .. first[i + 1] - 1 of grouped are rank i's, in
 * canonical order. */
static void group_edges(const struct cpl_plan *plan, bool by_receiver, int64_t *first,
                        int64_t *grouped)
{
    int64_t *next = first + 1; /* shifted by one while filling, so that first ends up right */
    for (int64_t e = 0; e < plan->n_edges; e++)
        next[(by_receiver ? plan->edges[e].to : plan->edges[e].from) + 1]++;
    for (int32_t i = 0; i < plan->n_ranks; i++)
        next[i + 1] += next[i];
    for (int64_t e = 0; e < plan->n_edges; e++)
        grouped[next[by_receiver ? plan->edges[e].to : plan->edges[e].from]++] = e;
}

/* The most in-segments and the most in-edges of any rank. */
static void largest_slice(const struct cpl_slicer *s, int64_t *n_segments, int64_t *n_in)
{
    *n_segments = *n_in = 0;
    for (int32_t i = 0; i < s->plan->n_ranks; i++) {
        int64_t sum = 0;
        for (int64_t k = s->in_first[i]; k < s->in_first[i + 1]; k++)
            sum += s->plan->edges[s->in_edge[k]].n_segments;
        if (sum > *n_segments)
            *n_segments = sum;
        if (s->in_first[i + 1] - s->in_first[i] > *n_in)
            *n_in = s->in_first[i + 1] - s->in_first[i];
    }
}

enum cpl_status cpl_slicer_init(struct cpl_slicer *slicer, const struct cpl_plan *plan,
                                const struct cpl_pattern *pattern, struct cpl_error *error)
{
    if (plan->n_ranks != pattern->n_ranks || plan->n_dests != pattern->n_messages)
        return cpl_fail(error, CPL_ERR_ARG, "slices of a plan need the pattern it was made for");
    struct cpl_slicer s = {.plan = plan, .pattern = pattern, .arena = CPL_ARENA_EMPTY};
    s.in_first = CPL_ARENA_ARRAY(&s.arena, int64_t, (size_t)plan->n_ranks + 2);
    s.out_first = CPL_ARENA_ARRAY(&s.arena, int64_t, (size_t)plan->n_ranks + 2);
    s.in_edge = CPL_ARENA_ARRAY(&s.arena, int64_t, plan->n_edges);
    s.out_edge = CPL_ARENA_ARRAY(&s.arena, int64_t, plan->n_edges);
    s.in_segment = CPL_ARENA_ARRAY(&s.arena, int32_t, plan->n_bundles);
    if (s.in_first && s.out_first && s.in_edge && s.out_edge && s.in_segment) {
        int64_t n_segments, n_in;
        group_edges(plan, true, s.in_first, s.in_edge);
        group_edges(plan, false, s.out_first, s.out_edge);
        memset(s.in_segment, -1, (size_t)plan->n_bundles * sizeof *s.in_segment);
        largest_slice(&s, &n_segments, &n_in);
        s.edge_of = CPL_ARENA_ARRAY(&s.arena, int32_t, n_segments);
        s.fed = CPL_ARENA_ARRAY(&s.arena, int32_t, n_in);
    }
    if (!s.edge_of || !s.fed) {
        cpl_arena_free(&s.arena);
        return cpl_fail_memory(error, "cutting the plan in slices");
    }
    *slicer = s;
    return CPL_OK;
}

static const struct cpl_edge *in_edge(const struct cpl_slicer *s, int32_t rank, int64_t e)
{
    return &s->plan->edges[s->in_edge[s->in_first[rank] + e]];
}

static const struct cpl_edge *out_edge(const struct cpl_slicer *s, int32_t rank, int64_t e)
{
    return &s->plan->edges[s->out_edge[s->out_first[rank] + e]];
}

static int64_t count_in(const struct cpl_slicer *s, int32_t rank)
{
    return s->in_first[rank + 1] - s->in_first[rank];
}

static int64_t count_out(const struct cpl_slicer *s, int32_t rank)
{
    return s->out_first[rank + 1] - s->out_first[rank];
}

/* Numbers the rank's in-segments; returns how many there are. unmark takes the marks away again. */
static int64_t mark_segments(struct cpl_slicer *s, int32_t rank)
{
    int32_t n = 0;
    for (int64_t e = 0; e < count_in(s, rank); e++) {
        const struct cpl_edge *edge = in_edge(s, rank, e);
        for (int32_t k = 0; k < edge->n_segments; k++) {
            s->in_segment[s->plan->segments[edge->first_segment + k]] = n;
            s->edge_of[n++] = (int32_t)e;
        }
        s->fed[e] = 0;
    }
    return n;
}

static void unmark_segments(struct cpl_slicer *s, int32_t rank)
{
    for (int64_t e = 0; e < count_in(s, rank); e++) {
        const struct cpl_edge *edge = in_edge(s, rank, e);
        for (int32_t k = 0; k < edge->n_segments; k++)
            s->in_segment[s->plan->segments[edge->first_segment + k]] = -1;
    }
}

/* Stores the distinct in-edges that out-edge e of the rank waits for in waits_for (which has room
 * for all in-edges) and returns their number. Segments must be marked. */
static int32_t find_waits(struct cpl_slicer *s, int32_t rank, int64_t e, int32_t *waits_for)
{
    const struct cpl_edge *edge = out_edge(s, rank, e);
    int32_t n = 0;
    for (int32_t k = 0; k < edge->n_segments; k++) {
        int32_t segment = s->in_segment[s->plan->segments[edge->first_segment + k]];
        if (segment < 0 || s->fed[s->edge_of[segment]] == e + 1)
            continue;
        s->fed[s->edge_of[segment]] = (int32_t)(e + 1);
        if (waits_for)
            waits_for[n] = s->edge_of[segment];
        n++;
    }
    return n;
}

static struct offsets survey(struct cpl_slicer *s, int32_t rank, int64_t counts[5])
{
    counts[0] = count_in(s, rank);
    counts[1] = mark_segments(s, rank);
    counts[2] = 0;
    counts[3] = count_out(s, rank);
    counts[4] = 0;
    for (int64_t e = 0; e < counts[3]; e++) {
        counts[2] += find_waits(s, rank, e, NULL);
        counts[4] += out_edge(s, rank, e)->n_segments;
    }
    return lay_out(counts[0], counts[1], counts[2], counts[3], counts[4]);
}

enum cpl_status cpl_slicer_words(struct cpl_slicer *slicer, int32_t rank, int32_t *n_words,
                                 struct cpl_error *error)
{
    int64_t counts[5];
    struct offsets o = survey(slicer, rank, counts);
    unmark_segments(slicer, rank);
    if (o.end > INT32_MAX)
        return cpl_fail(error, CPL_ERR_ARG, "the slice of rank %d exceeds 8 GiB", rank);
    *n_words = (int32_t)o.end;
    return CPL_OK;
}

/* The first of the owner's messages to a rank whose class is not below class_. */
static int64_t find_part(const struct cpl_pattern *p, int32_t owner, int32_t rank, int32_t class_)
{
    int64_t low = p->first[owner], high = p->first[owner + 1];
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (p->dst[middle] < rank || (p->dst[middle] == rank && p->payload_class[middle] < class_))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Which part of its owner's message a bundle is, for a rank that is one of its destinations. */
static int32_t part_of(const struct cpl_slicer *s, const struct cpl_bundle *bundle, int32_t rank)
{
    const struct cpl_pattern *p = s->pattern;
    if (!p->pairs)
        return 0;
    int32_t class_ = p->payload_class[bundle->message];
    return (int32_t)(find_part(p, bundle->owner, rank, class_) -
                     find_part(p, bundle->owner, rank, -1));
}

static void put_volume(int32_t *words, int64_t low_at, int64_t high_at, int64_t volume)
{
    words[low_at] = (int32_t)(uint32_t)((uint64_t)volume & 0xffffffffu);
    words[high_at] = (int32_t)(uint32_t)((uint64_t)volume >> 32);
}

static void extract_in(const struct cpl_slicer *s, int32_t rank, const struct offsets *o,
                       int32_t *words)
{
    int32_t n = 0;
    for (int64_t e = 0; e < count_in(s, rank); e++) {
        const struct cpl_edge *edge = in_edge(s, rank, e);
        words[o->in_from + e] = edge->from;
        words[o->in_wave + e] = edge->wave;
        words[o->in_first + e] = n;
        put_volume(words, o->in_low + e, o->in_high + e, edge->volume);
        for (int32_t k = 0; k < edge->n_segments; k++, n++) {
            const struct cpl_bundle *bundle =
                &s->plan->bundles[s->plan->segments[edge->first_segment + k]];
            bool mine = cpl_plan_is_dest(s->plan, bundle, rank);
            words[o->in_owner + n] = mine ? bundle->owner : -1;
            words[o->in_part + n] = mine ? part_of(s, bundle, rank) : 0;
        }
    }
    words[o->in_first + count_in(s, rank)] = n;
}

static int32_t source_of(const struct cpl_slicer *s, int32_t rank, int32_t bundle)
{
    if (s->in_segment[bundle] >= 0)
        return s->in_segment[bundle];
    return -1 - (int32_t)(s->plan->bundles[bundle].message - s->pattern->first[rank]);
}

static void extract_out(const struct cpl_slicer *s, int32_t rank, const struct offsets *o,
                        int32_t *words)
{
    int32_t n = 0;
    for (int64_t e = 0; e < count_out(s, rank); e++) {
        const struct cpl_edge *edge = out_edge(s, rank, e);
        words[o->out_to + e] = edge->to;
        words[o->out_wave + e] = edge->wave;
        words[o->out_first + e] = n;
        put_volume(words, o->out_low + e, o->out_high + e, edge->volume);
        for (int32_t k = 0; k < edge->n_segments; k++)
            words[o->out_source + n++] =
                source_of(s, rank, s->plan->segments[edge->first_segment + k]);
    }
    words[o->out_first + count_out(s, rank)] = n;
}

/* Inverts "out-edge waits for in-edge" into "in-edge feeds out-edges". in_feed itself serves as the
 * list of waits while counting: it has one word for each pair. */
static void extract_feeds(struct cpl_slicer *s, int32_t rank, const struct offsets *o,
                          int32_t *words)
{
    int64_t n_in = count_in(s, rank), n_out = count_out(s, rank);
    int32_t *feed_first = words + o->in_feed_first, *feed = words + o->in_feed;
    memset(feed_first, 0, ((size_t)n_in + 1) * sizeof *feed_first);
    for (int64_t e = 0; e < n_in; e++)
        s->fed[e] = 0;
    for (int64_t e = 0; e < n_out; e++) {
        int32_t n = find_waits(s, rank, e, feed);
        words[o->out_waits + e] = n;
        for (int32_t k = 0; k < n; k++)
            feed_first[feed[k] + 1]++;
    }
    for (int64_t e = 0; e < n_in; e++) {
        feed_first[e + 1] += feed_first[e];
        s->fed[e] = 0;
    }
    /* Fill: out-edges in order, each at the next free place of the in-edges it waits for. */
    for (int64_t e = 0; e < n_out; e++) {
        const struct cpl_edge *edge = out_edge(s, rank, e);
        for (int32_t k = 0; k < edge->n_segments; k++) {
            int32_t segment = s->in_segment[s->plan->segments[edge->first_segment + k]];
            if (segment < 0 || s->fed[s->edge_of[segment]] == e + 1)
                continue;
            s->fed[s->edge_of[segment]] = (int32_t)(e + 1);
            feed[feed_first[s->edge_of[segment]]++] = (int32_t)e;
        }
    }
    for (int64_t e = n_in; e > 0; e--)
        feed_first[e] = feed_first[e - 1]; /* filling moved every start to the next one's */
    feed_first[0] = 0;
}

void cpl_slicer_extract(struct cpl_slicer *slicer, int32_t rank, int32_t *words)
{
    int64_t counts[5];
    struct offsets o = survey(slicer, rank, counts);
    const struct cpl_plan *plan = slicer->plan;
    words[H_MAGIC] = MAGIC;
    words[H_WORDS] = (int32_t)o.end;
    words[H_RANK] = rank;
    words[H_RANKS] = plan->n_ranks;
    words[H_WAVES] = plan->n_waves;
    put_volume(words, H_PATTERN_LOW, H_PATTERN_HIGH, (int64_t)plan->pattern_fingerprint);
    put_volume(words, H_PLAN_LOW, H_PLAN_HIGH, (int64_t)plan->fingerprint);
    words[H_PAYLOADS] = (int32_t)cpl_pattern_sends(slicer->pattern, rank);
    words[H_IN] = (int32_t)counts[0];
    words[H_IN_SEGMENTS] = (int32_t)counts[1];
    words[H_FEEDS] = (int32_t)counts[2];
    words[H_OUT] = (int32_t)counts[3];
    words[H_OUT_SEGMENTS] = (int32_t)counts[4];
    extract_in(slicer, rank, &o, words);
    extract_out(slicer, rank, &o, words);
    extract_feeds(slicer, rank, &o, words);
    unmark_segments(slicer, rank);
}

void cpl_rank_plan_rename(int32_t *words, int32_t n_ranks, const int32_t *rank_of)
{
    struct offsets o = lay_out(words[H_IN], words[H_IN_SEGMENTS], words[H_FEEDS], words[H_OUT],
                               words[H_OUT_SEGMENTS]);
    words[H_RANK] = rank_of[words[H_RANK]];
    words[H_RANKS] = n_ranks;
    for (int32_t e = 0; e < words[H_IN]; e++)
        words[o.in_from + e] = rank_of[words[o.in_from + e]];
    for (int32_t s = 0; s < words[H_IN_SEGMENTS]; s++)
        if (words[o.in_owner + s] >= 0)
            words[o.in_owner + s] = rank_of[words[o.in_owner + s]];
    for (int32_t e = 0; e < words[H_OUT]; e++)
        words[o.out_to + e] = rank_of[words[o.out_to + e]];
}

void cpl_slicer_free(struct cpl_slicer *slicer)
{
    cpl_arena_free(&slicer->arena);
}

/* Whether first is an ascending list of n + 1 offsets from 0 to total. */
static bool valid_offsets(const int32_t *first, int32_t n, int32_t total)
{
    for (int32_t k = 0; k < n; k++)
        if (first[k] > first[k + 1])
            return false;
    return first[0] == 0 && first[n] == total;
}

static bool in_range(const int32_t *values, int32_t n, int32_t low, int32_t high)
{
    for (int32_t k = 0; k < n; k++)
        if (values[k] < low || values[k] > high)
            return false;
    return true;
}

static bool valid(const struct cpl_rank_plan *p, int32_t n_feeds)
{
    return p->n_ranks > 0 && p->rank >= 0 && p->rank < p->n_ranks &&
           valid_offsets(p->in_first, p->n_in, p->n_in_segments) &&
           valid_offsets(p->in_feed_first, p->n_in, n_feeds) &&
           valid_offsets(p->out_first, p->n_out, p->n_out_segments) &&
           in_range(p->in_from, p->n_in, 0, p->n_ranks - 1) &&
           in_range(p->out_to, p->n_out, 0, p->n_ranks - 1) &&
           in_range(p->in_wave, p->n_in, 1, p->n_waves) &&
           in_range(p->out_wave, p->n_out, 1, p->n_waves) &&
           in_range(p->in_owner, p->n_in_segments, -1, p->n_ranks - 1) &&
           in_range(p->in_part, p->n_in_segments, 0, INT32_MAX) &&
           in_range(p->in_feed, n_feeds, 0, p->n_out - 1) &&
           in_range(p->out_source, p->n_out_segments, -p->n_payloads, p->n_in_segments - 1) &&
           in_range(p->out_waits, p->n_out, 0, p->n_in);
}

static void set_pointers(struct cpl_rank_plan *p, const int32_t *words, const struct offsets *o)
{
    p->in_from = words + o->in_from;
    p->in_wave = words + o->in_wave;
    p->in_first = words + o->in_first;
    p->in_owner = words + o->in_owner;
    p->in_part = words + o->in_part;
    p->in_feed_first = words + o->in_feed_first;
    p->in_feed = words + o->in_feed;
    p->in_volume_low = (const uint32_t *)(words + o->in_low);
    p->in_volume_high = (const uint32_t *)(words + o->in_high);
    p->out_to = words + o->out_to;
    p->out_wave = words + o->out_wave;
    p->out_first = words + o->out_first;
    p->out_source = words + o->out_source;
    p->out_waits = words + o->out_waits;
    p->out_volume_low = (const uint32_t *)(words + o->out_low);
    p->out_volume_high = (const uint32_t *)(words + o->out_high);
}

static uint64_t get_fingerprint(const int32_t *words, int low_at, int high_at)
{
    return (uint64_t)(uint32_t)words[high_at] << 32 | (uint32_t)words[low_at];
}

enum cpl_status cpl_rank_plan_view(const int32_t *words, int64_t n_words,
                                   struct cpl_rank_plan *rank_plan, struct cpl_error *error)
{
    if (n_words < HEADER_WORDS || words[H_MAGIC] != MAGIC || words[H_WORDS] != n_words)
        return cpl_fail(error, CPL_ERR_FORMAT, "a block of %lld words is no rank plan",
                        (long long)n_words);
    for (int k = H_PAYLOADS; k < HEADER_WORDS; k++)
        if (words[k] < 0)
            return cpl_fail(error, CPL_ERR_FORMAT, "a rank plan has a negative count");
    struct offsets o = lay_out(words[H_IN], words[H_IN_SEGMENTS], words[H_FEEDS], words[H_OUT],
                               words[H_OUT_SEGMENTS]);
    if (o.end != n_words)
        return cpl_fail(error, CPL_ERR_FORMAT, "a rank plan's counts do not fit its length");
    struct cpl_rank_plan p = {.rank = words[H_RANK],
                              .n_ranks = words[H_RANKS],
                              .n_waves = words[H_WAVES],
                              .n_payloads = words[H_PAYLOADS],
                              .n_in = words[H_IN],
                              .n_in_segments = words[H_IN_SEGMENTS],
                              .n_out = words[H_OUT],
                              .n_out_segments = words[H_OUT_SEGMENTS]};
    p.pattern_fingerprint = get_fingerprint(words, H_PATTERN_LOW, H_PATTERN_HIGH);
    p.fingerprint = get_fingerprint(words, H_PLAN_LOW, H_PLAN_HIGH);
    set_pointers(&p, words, &o);
    if (!valid(&p, words[H_FEEDS]))
        return cpl_fail(error, CPL_ERR_FORMAT, "a rank plan's indices are out of range");
    *rank_plan = p;
    return CPL_OK;
}
