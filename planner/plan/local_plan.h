/* A rank's own slice of a plan, made by the rank itself from the messages that pass through it: no
 * rank needs to know all messages. The plan's routes are computed (router.h). The result is, word
 * for word, the slice that cpl_slicer_extract cuts from the whole plan (rank_plan.h).
 *
 * A rank learns the messages that pass through it from the ranks before it on their ways: each
 * starts with its own messages, and hands on every message that it has to the next rank
 * (cpl_passing_here), a hop at a time. Until a router is chosen its edges are enough (struct
 * cpl_local_edge), and of messages whose ways are the same from the next rank on, one and their
 * number. Payload classes are not served: the tree of copies of one payload hangs on all its
 * destinations.
 *
 * Order of calls: for each router that is considered cpl_local_count_own, cpl_local_join_edges and
 * cpl_local_loads; then for those that are used cpl_local_plan_make; tell in_later to the senders
 * and set out_later from the receivers; join `waves` over all ranks by OR; cpl_local_plan_order;
 * add up row_hash and edges_hash over all ranks; cpl_local_plan_words; cpl_local_plan_free. Cost:
 * O(messages x waves), plus sorting; no arrays of all ranks. Thread rule: one thread at a time. */
#ifndef CARPOOL_LOCAL_PLAN_H
#define CARPOOL_LOCAL_PLAN_H

#include "planner/arena.h"
#include "planner/machine.h"
#include "planner/pattern.h"
#include "planner/plan.h"
#include "planner/plan/plan_internal.h"
#include "planner/plan/router.h"
#include "planner/status.h"

#include <stdbool.h>
#include <stdint.h>

/* The most waves of a router: waves are bits of a word. */
#define CPL_LOCAL_WAVES 64

/* A message that a rank sends, forwards or receives; volume in the pattern's units. */
struct cpl_passing {
    int32_t src, dst;
    int64_t volume;
};

/* Messages that a rank sends to another in one wave, or gets from it. */
struct cpl_local_edge {
    int32_t peer;
    int16_t wave;
    bool sends;
    int64_t n, volume; /* volume: of all of them */
};

/* Edges are the same when their keys are; they are sorted by them. */
static inline uint64_t cpl_local_edge_key(const struct cpl_local_edge *edge)
{
    return (uint64_t)edge->sends << 48 | (uint64_t)(uint16_t)edge->wave << 32 |
           (uint32_t)edge->peer;
}

/* All messages that end at a rank, by the class of link that joins it with the ranks where they
 * begin. */
struct cpl_endings {
    int64_t n[CPL_N_LINKS], volume[CPL_N_LINKS];
};

/* Room for one message's way. */
struct cpl_route_room {
    int32_t stops[CPL_LOCAL_WAVES + 1], path[CPL_LOCAL_WAVES + 1], wave[CPL_LOCAL_WAVES + 1];
};

/* Where a message comes from and goes to at a rank; -1: it begins, or ends, there. */
struct cpl_passing_here {
    int32_t from, from_wave, to, to_wave;
    int32_t n_hops; /* of its whole way */
    uint64_t rest;  /* of messages for one rank equal where their ways are from here on, and no
                       others but by a chance of 2^-64 */
};

/* The rank must be on the message's way. */
struct cpl_passing_here cpl_passing_here(const struct cpl_router *router, int32_t rank,
                                         const struct cpl_passing *passing,
                                         struct cpl_route_room *room);

/* What a rank does in a plan. Sums and maxima over ranks give the figures of the plan (struct
 * cpl_metrics). */
struct cpl_local_counts {
    int64_t sends, recvs;     /* edges */
    int64_t lanes;            /* edges that it sends by lanes */
    int64_t mpi;              /* messages by MPI that it sends or receives, the larger */
    int64_t set;              /* different ranks that it sends to */
    int64_t carried;          /* volume of the edges that it sends */
    int64_t messages, volume; /* of its own */
    int64_t hops, most_hops;  /* of its own messages: sum, largest */
};

/* Counts a message of the rank's own. */
void cpl_local_count_own(struct cpl_local_counts *counts, const struct cpl_passing_here *here,
                         int64_t volume);

/* Sorts edges and joins those of one peer, wave and direction. Returns how many are left. */
int64_t cpl_local_join_edges(struct cpl_local_edge *edges, int64_t n);

/* The rank's load in each wave of the router (router->n_waves entries, set), and what its counts
 * have of edges, from these, which are joined. Returns CPL_OK, CPL_ERR_NOMEM. */
enum cpl_status cpl_local_loads(const struct cpl_router *router, const struct cpl_machine *machine,
                                int32_t rank, const struct cpl_local_edge *edges, int64_t n_edges,
                                double unit_bytes, struct cpl_rank_load *load,
                                struct cpl_local_counts *counts, struct cpl_error *error);

/* Adds to what cpl_local_loads found for a router of one wave, in which every message goes
 * straight, the messages that end at the rank, if they were not among its edges. */
void cpl_local_add_endings(const struct cpl_machine *machine, const struct cpl_endings *endings,
                           double unit_bytes, struct cpl_rank_load *load,
                           struct cpl_local_counts *counts);

/* An edge, and how many its receiver sends later. */
struct cpl_waiting_edge {
    struct cpl_edge edge;
    int64_t later;
};

struct cpl_local_plan {
    uint64_t waves; /* bit w - 1: something travels in the router's wave w */
    int32_t n_in, n_out;
    int32_t *in_from, *in_wave; /* edges that the rank receives; the router's waves */
    int64_t *in_later;          /* n_in: edges that the rank sends in later waves, for in_from */
    int32_t *out_to, *out_wave; /* edges that it sends, by wave and receiver */
    int64_t *out_later;         /* n_out: what the receivers told; the caller sets it */
    uint64_t row_hash;          /* of the rank's row of the pattern (cpl_pattern_join_hashes) */
    uint64_t edges_hash;        /* of the edges that it sends (cpl_plan_join_hashes) */
    /* Private: a pattern and plan of those ranks only that occur on the ways. */
    int32_t me, n_ranks; /* n_ranks: of the real pattern */
    int32_t *rank_of;    /* the real ranks, ascending */
    struct cpl_waiting_edge *waiting;
    struct cpl_pattern pattern;
    struct cpl_plan plan;
    struct cpl_arena arena;
};

/* Returns CPL_OK, CPL_ERR_NOMEM, CPL_ERR_ARG (more messages than a plan may have). The caller frees
 * *local with cpl_local_plan_free; on failure there is nothing to free. */
enum cpl_status cpl_local_plan_make(const struct cpl_router *router, int32_t n_ranks, int32_t rank,
                                    const struct cpl_passing *passing, int64_t n,
                                    struct cpl_local_plan *local, struct cpl_error *error);

/* Puts the edges into the order of sending. waves: those of all ranks. */
void cpl_local_plan_order(struct cpl_local_plan *local, uint64_t waves);

/* The slice: *n_words words, which the caller frees. Fingerprints as of the whole plan. Returns
 * CPL_OK, CPL_ERR_NOMEM, CPL_ERR_ARG (a slice of more than INT32_MAX words). */
enum cpl_status cpl_local_plan_words(struct cpl_local_plan *local, uint64_t pattern_fingerprint,
                                     uint64_t fingerprint, int32_t **words, int32_t *n_words,
                                     struct cpl_error *error);

void cpl_local_plan_free(struct cpl_local_plan *local);

#endif
