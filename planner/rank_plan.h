/* A rank plan: one rank's slice of a plan, the only part of a plan that is kept at run time. It is
 * one block of 32-bit words without pointers, which can be sent or stored as it is.
 *
 * Order of calls: on the rank that planned, cpl_slicer_init, then per rank cpl_slicer_words and
 * cpl_slicer_extract, then cpl_slicer_free; on the receiving rank cpl_rank_plan_view. Cost: O(edges
 * + segments) for all slices together. */
#ifndef CARPOOL_RANK_PLAN_H
#define CARPOOL_RANK_PLAN_H

#include "arena.h"
#include "pattern.h"
#include "plan.h"
#include "status.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The slice of one rank, as pointers into its block. Edges are in the plan's canonical order: those
 * to send in the order of sending, those to receive by wave and sender. */
struct cpl_rank_plan {
    int32_t rank;
    int32_t n_ranks;
    int32_t n_waves;
    int32_t n_payloads; /* messages in the rank's row of the pattern, counting every part */
    uint64_t pattern_fingerprint;
    uint64_t fingerprint; /* fingerprint of the whole plan */

    int32_t n_in; /* edges to receive */
    int32_t n_in_segments;
    const int32_t *in_from; /* n_in ranks */
    const int32_t *in_wave; /* n_in wave numbers */
    const int32_t
        *in_first; /* n_in + 1: segments of in-edge e are in_first[e] .. in_first[e + 1] - 1 */
    const int32_t *in_owner; /* n_in_segments: the rank whose payload it is when this rank is one of
                              * its destinations, else -1 (the segment only passes through) */
    const int32_t *in_part;  /* n_in_segments: which part of the owner's message for this rank, from
                              * 0 in the pattern's order; 0 for a message without parts */
    const int32_t *in_feed_first; /* n_in + 1 indices into in_feed */
    const int32_t *in_feed; /* out-edges that wait for in-edge e: in_feed[in_feed_first[e]] .. */
    const uint32_t
        *in_volume_low; /* n_in: volume of the edge in the pattern's units, as two words */
    const uint32_t *in_volume_high;

    int32_t n_out; /* edges to send */
    int32_t n_out_segments;
    const int32_t *out_to; /* n_out ranks */
    const int32_t *out_wave;
    const int32_t *out_first;  /* n_out + 1 */
    const int32_t *out_source; /* n_out_segments: the number of an in-segment, or -1 - k for payload
                                  k of this rank, the k-th message in its row of the pattern */
    const int32_t *out_waits;  /* n_out: number of in-edges that the out-edge waits for */
    const uint32_t *out_volume_low;
    const uint32_t *out_volume_high;
};

/* Cuts a plan into slices. The plan and pattern must outlive the slicer. All members are
 * private. */
struct cpl_slicer {
    const struct cpl_plan *plan;
    const struct cpl_pattern *pattern;
    int64_t *in_first; /* rank -> its in-edges in in_edge */
    int64_t *in_edge;
    int64_t *out_first;
    int64_t *out_edge;
    int32_t *in_segment; /* bundle -> number of its in-segment at the current rank, -1: none */
    int32_t *edge_of;    /* in-segment -> in-edge, at the current rank */
    int32_t *fed;        /* in-edge -> 1 + the last out-edge found to wait for it */
    struct cpl_arena arena;
};

/* Returns CPL_OK, CPL_ERR_ARG (a plan of another pattern), CPL_ERR_NOMEM. */
enum cpl_status cpl_slicer_init(struct cpl_slicer *slicer, const struct cpl_plan *plan,
                                const struct cpl_pattern *pattern, struct cpl_error *error);

/* Number of words of rank's slice. Returns CPL_OK, CPL_ERR_ARG (more than INT32_MAX). */
enum cpl_status cpl_slicer_words(struct cpl_slicer *slicer, int32_t rank, int32_t *n_words,
                                 struct cpl_error *error);

/* Writes rank's slice into words, which has room for cpl_slicer_words of them. */
void cpl_slicer_extract(struct cpl_slicer *slicer, int32_t rank, int32_t *words);

void cpl_slicer_free(struct cpl_slicer *slicer);

/* Sets pointers into a block of n_words words, which the caller keeps alive. Returns CPL_OK, or
 * CPL_ERR_FORMAT when the block is not a rank plan of this version or its indices do not fit. */
enum cpl_status cpl_rank_plan_view(const int32_t *words, int64_t n_words,
                                   struct cpl_rank_plan *rank_plan, struct cpl_error *error);

/* Volume of in-edge e or out-edge e, in the pattern's units. */
static inline int64_t cpl_rank_plan_in_volume(const struct cpl_rank_plan *p, int32_t e)
{
    return (int64_t)((uint64_t)p->in_volume_high[e] << 32 | p->in_volume_low[e]);
}

static inline int64_t cpl_rank_plan_out_volume(const struct cpl_rank_plan *p, int32_t e)
{
    return (int64_t)((uint64_t)p->out_volume_high[e] << 32 | p->out_volume_low[e]);
}

#ifdef __cplusplus
}
#endif

#endif
