/* The relay (relay.h). */
#include "shim/carry/relay.h"

#include "shim/base/log.h"

#include <stdlib.h>

/* Where payloads leave. Out-edges with own ones, or with nothing to wait for, have a source more.
 */
static void find_ways(struct cpl_relay *relay)
{
    const struct cpl_rank_plan *slice = &relay->slice;
    for (int32_t source = -slice->n_payloads; source < slice->n_in_segments; source++)
        relay->next[source] = -1;
    for (int32_t e = 0; e < slice->n_out; e++) {
        bool has_own = slice->out_waits[e] == 0;
        for (int32_t s = slice->out_first[e]; s < slice->out_first[e + 1]; s++) {
            int32_t source = slice->out_source[s];
            relay->out_edge[s] = e;
            relay->next[source] = relay->next[source] < 0 ? s : relay->next[source];
            has_own |= source < 0;
        }
        relay->waits[e] = slice->out_waits[e] + has_own;
    }
}

/* Out-edges with own payloads: first those that wait for no in-edge. */
static void list_own(struct cpl_relay *relay)
{
    const struct cpl_rank_plan *slice = &relay->slice;
    for (int later = 0; later < 2; later++) {
        for (int32_t e = 0; e < slice->n_out; e++)
            if ((slice->out_waits[e] > 0) == later && relay->waits[e] > slice->out_waits[e])
                relay->own[relay->n_own++] = e;
        relay->n_first = later ? relay->n_first : relay->n_own;
    }
}

bool cpl_relay_init(struct cpl_relay *relay, int32_t *words, int32_t n_words)
{
    struct cpl_error error = {""};
    relay->words = words;
    if (cpl_rank_plan_view(words, n_words, &relay->slice, &error)) {
        cpl_log(CPL_LOG_ERROR, "relay", "%s", error.text);
        return false;
    }
    const struct cpl_rank_plan *slice = &relay->slice;
    size_t n_sources = (size_t)slice->n_payloads + (size_t)slice->n_in_segments;
    relay->next = CPL_ARENA_ARRAY(&relay->arena, int32_t, n_sources);
    relay->out_edge = CPL_ARENA_ARRAY(&relay->arena, int32_t, slice->n_out_segments);
    relay->waits = CPL_ARENA_ARRAY(&relay->arena, int32_t, slice->n_out);
    relay->own = CPL_ARENA_ARRAY(&relay->arena, int32_t, slice->n_out);
    if (!relay->next || !relay->out_edge || !relay->waits || !relay->own)
        return false;
    relay->next += slice->n_payloads;
    find_ways(relay);
    list_own(relay);
    return true;
}

static bool is_in_edge(const struct cpl_rank_plan *slice, int32_t e, int32_t from, int32_t wave)
{
    return e < slice->n_in && slice->in_wave[e] == wave && slice->in_from[e] == from;
}

/* In-edges are in the order of waves, then senders. */
int32_t cpl_relay_in_edge(const struct cpl_relay *relay, int32_t from, int32_t wave, int32_t guess)
{
    const struct cpl_rank_plan *slice = &relay->slice;
    int32_t low = 0, high = slice->n_in;
    if (is_in_edge(slice, guess, from, wave))
        return guess;
    while (low < high) {
        int32_t e = (low + high) / 2;
        if (slice->in_wave[e] < wave || (slice->in_wave[e] == wave && slice->in_from[e] < from))
            low = e + 1;
        else
            high = e;
    }
    return is_in_edge(slice, low, from, wave) ? low : -1;
}

void cpl_relay_free(struct cpl_relay *relay)
{
    cpl_arena_free(&relay->arena);
    free(relay->words);
    *relay = (struct cpl_relay){.words = NULL};
}
