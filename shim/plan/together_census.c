/* The census of messages (together_census.h). */
#include "shim/plan/together_census.h"

#include <stdlib.h>
#include <string.h>

/* A message under way; or, with a wave, messages that end where they go in that wave: src is then
 * the rank that sends them, dst how many they are, volume that of all, and link, if they are
 * tallied, the class of link from where they begin. */
struct record {
    int16_t candidate;
    int8_t wave, link;
    int32_t src, dst, to; /* to: the next rank */
    int64_t volume;
};

/* Adds an element to an array. */
static void keep(struct cpl_together *p, struct cpl_together_array *to, const void *element,
                 size_t size)
{
    if (to->n == to->room) {
        int64_t room = to->room + to->room / 2 + 16;
        int64_t more = (room - to->room) * (int64_t)size;
        void *at = p->n_bytes + more <= CPL_TOGETHER_MOST_BYTES
                       ? realloc(to->at, (size_t)room * size)
                       : NULL;
        if (!at) {
            p->failed = true;
            return;
        }
        to->at = at;
        to->room = room;
        p->n_bytes += more;
    }
    memcpy((char *)to->at + (size_t)to->n++ * size, element, size);
}

static void keep_passing(struct cpl_together *p, struct cpl_together_candidate *c,
                         struct cpl_passing passing)
{
    keep(p, &c->passing, &passing, sizeof passing);
}

static const struct cpl_passing *passing_at(const struct cpl_together_candidate *c, int64_t k)
{
    return (const struct cpl_passing *)c->passing.at + k;
}

static int by_next(const void *a, const void *b)
{
    const struct record *x = a, *y = b;
    if (x->to != y->to)
        return (x->to > y->to) - (x->to < y->to);
    if (x->candidate != y->candidate)
        return x->candidate - y->candidate;
    return x->wave != y->wave ? x->wave - y->wave : x->link - y->link;
}

/* Joins neighbouring records of messages that end. Returns how many are left. */
static int64_t join_ending(struct record *records, int64_t n)
{
    int64_t kept = 0;
    for (int64_t k = 0; k < n; k++) {
        struct record *last = &records[kept - (kept > 0)];
        if (kept > 0 && records[k].wave > 0 && by_next(last, &records[k]) == 0) {
            last->dst += records[k].dst;
            last->volume += records[k].volume;
        } else {
            records[kept++] = records[k];
        }
    }
    return kept;
}

/* The record for a message's next hop; whole: also where it ends. */
static struct record record_of(const struct cpl_together *p, int candidate,
                               const struct cpl_passing *m, const struct cpl_passing_here *here,
                               bool whole)
{
    if (here->to != m->dst || whole)
        return (struct record){(int16_t)candidate, 0, 0, m->src, m->dst, here->to, m->volume};
    int link = candidate == p->tally ? (int)cpl_machine_link(&p->machine, m->src, m->dst) : 0;
    return (struct record){
        (int16_t)candidate, (int8_t)here->to_wave, (int8_t)link, p->rank, 1, here->to, m->volume};
}

/* What this rank has got and must hand on. Returns the number of records, which the caller frees.
 */
static int64_t hand_on(struct cpl_together *p, struct record **records)
{
    struct cpl_way_room room;
    int64_t n = 0, most = 0;
    for (int k = 0; k < p->n; k++)
        most += p->candidate[k].passing.n - p->candidate[k].handed_on;
    *records = calloc((size_t)most + 1, sizeof **records);
    p->failed |= !*records;
    for (int k = 0; k < p->n; k++) {
        struct cpl_together_candidate *c = &p->candidate[k];
        if (cpl_together_is_tallied(p, c))
            continue;
        for (; c->handed_on < c->passing.n; c->handed_on++) {
            const struct cpl_passing *m = passing_at(c, c->handed_on);
            struct cpl_passing_here here = cpl_passing_here(&c->walk, p->rank, m, &room);
            if (here.to >= 0 && *records)
                (*records)[n++] = record_of(p, k, m, &here, false);
        }
    }
    if (!*records)
        return n;
    qsort(*records, (size_t)n, sizeof **records, by_next);
    return join_ending(*records, n);
}

/* A round in which records go to the ranks that they name, which they are sorted by. */
static int64_t send_round(struct cpl_together *p, const struct record *records, int64_t n)
{
    int *to = calloc((size_t)n + 1, sizeof *to);
    int64_t *first = calloc((size_t)n + 2, sizeof *first);
    struct cpl_census_out out = {0, to, first, records};
    p->failed |= !to || !first;
    for (int64_t k = 0; k < n && to && first; k++) {
        if (k == 0 || records[k].to != records[k - 1].to)
            to[out.n++] = records[k].to;
        first[out.n] = k + 1;
    }
    int64_t came = cpl_census_round(&p->census, &out, sizeof *records);
    p->failed |= p->census.failed;
    free(to);
    free(first);
    return came;
}

static struct record came_at(const struct cpl_together *p, int64_t k)
{
    struct record record;
    memcpy(&record, p->census.records + (size_t)k * sizeof record, sizeof record);
    return record;
}

/* Keeps what has come in a round. */
static void keep_what_came(struct cpl_together *p, int64_t came)
{
    for (int64_t k = 0; k < came; k++) {
        struct record r = came_at(p, k);
        struct cpl_together_candidate *c = &p->candidate[r.candidate];
        const struct cpl_arrival arrival = {r.src, r.wave, r.dst, r.volume};
        if (r.wave > 0)
            keep(p, &c->arrival, &arrival, sizeof arrival);
        else
            keep_passing(p, c, (struct cpl_passing){r.src, r.dst, r.volume});
        if (r.wave > 0 && r.candidate == p->tally) {
            p->endings.n[r.link] += r.dst;
            p->endings.volume[r.link] += r.volume;
        }
    }
}

void cpl_together_count(struct cpl_together *p)
{
    int32_t n_rounds = 0;
    for (int k = 0; k < p->n; k++) {
        struct cpl_together_candidate *c = &p->candidate[k];
        n_rounds = c->walk.n_waves > n_rounds ? c->walk.n_waves : n_rounds;
        for (int m = 0; m < p->input->n_messages; m++)
            keep_passing(p, c, (struct cpl_passing){p->rank, p->input->dst[m], p->input->bytes[m]});
    }
    for (int32_t r = 0; r < n_rounds; r++) {
        struct record *records;
        int64_t n = hand_on(p, &records);
        keep_what_came(p, send_round(p, records, records ? n : 0));
        free(records);
    }
}

void cpl_together_tell_ending(struct cpl_together *p, const struct cpl_together_candidate *c)
{
    struct cpl_way_room room;
    int64_t n = 0;
    struct record *records = calloc((size_t)c->passing.n + 1, sizeof *records);
    p->failed |= !records;
    for (int64_t k = 0; k < c->passing.n && records; k++) {
        const struct cpl_passing *m = passing_at(c, k);
        struct cpl_passing_here here = cpl_passing_here(&c->walk, p->rank, m, &room);
        if (here.to == m->dst)
            records[n++] = record_of(p, (int)(c - p->candidate), m, &here, true);
    }
    if (records)
        qsort(records, (size_t)n, sizeof *records, by_next);
    keep_what_came(p, send_round(p, records, n));
    free(records);
}

/* In the place of records: src is this rank, volume the number. */
void cpl_together_tell_later(struct cpl_together *p, struct cpl_local_plan *local)
{
    struct record *records = calloc((size_t)local->n_in + 1, sizeof *records);
    p->failed |= !records;
    for (int32_t e = 0; e < local->n_in && records; e++)
        records[e] = (struct record){
            0, (int8_t)local->in_wave[e], 0, p->rank, 0, local->in_from[e], local->in_later[e]};
    if (records)
        qsort(records, (size_t)local->n_in, sizeof *records, by_next);
    int64_t came = send_round(p, records, records ? local->n_in : 0);
    for (int64_t k = 0; k < came; k++) {
        struct record record = came_at(p, k);
        for (int32_t e = 0; e < local->n_out; e++)
            if (local->out_to[e] == record.src && local->out_wave[e] == record.wave)
                local->out_later[e] = record.volume;
    }
    free(records);
}
