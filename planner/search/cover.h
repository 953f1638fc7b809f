/* A cover: a changing set of combined messages on which every message of a pattern finds a way.
 *
 * Messages take two or three hops: from the source s over a first edge (s -> x), a middle edge (x
 * -> y, with three hops) and a last edge (y -> d) to the destination; any of them may be a rest (s
 * = x, x = y, y = d). Which of its ways a message takes is not decided: the cover counts each
 * message's choices of x and of y, so it always knows how many messages the loss of an edge would
 * strand. The search (cover_search.h) reads from that in O(1) what removing an edge costs.
 *
 * Order of calls: init, add edges, then add and remove at will; read the routes at the end. Cost of
 * a change: two hops O(edges of the middle rank), three hops O(its edges squared + messages of a
 * rank). Memory: O(messages + ranks^2 / 5 bytes), with three hops + 4 ranks^2 bytes. Thread rule:
 * one thread at a time. */
#ifndef CARPOOL_COVER_H
#define CARPOOL_COVER_H

#include "planner/arena.h"
#include "planner/pattern.h"
#include "planner/routes.h"
#include "planner/search/layers.h"
#include "planner/status.h"

#include <stdbool.h>
#include <stdint.h>

/* The most ranks for covers with two and with three hops: the tables then take some hundred MB. */
#define CPL_COVER_MOST_RANKS_2 32768
#define CPL_COVER_MOST_RANKS_3 8192

enum cpl_cover_stage { CPL_COVER_FIRST, CPL_COVER_MIDDLE, CPL_COVER_LAST, CPL_COVER_STAGES };

/* How many messages need an edge. */
struct cpl_cover_need {
    int32_t n_messages; /* messages that would have no way without the edge */
    bool listed;        /* the edge is in the list of unneeded edges */
};

/* The choices of one message. An edge number of 0 stands for a rest. */
struct cpl_cover_choices {
    int32_t n_first; /* ranks that it may be at after the first hop */
    int32_t n_last;  /* ranks that it may be at before the last hop */
    int32_t first;   /* exclusive or of the first edges to those ranks: with one choice, the edge */
    int32_t last;    /* the same of the last edges */
    uint32_t touched; /* number of the change that last touched the message */
    int32_t source;
};

struct cpl_cover {
    const struct cpl_pattern *pattern;
    int32_t n_ranks;
    int32_t n_hops; /* 2 or 3 */
    /* The pattern as bits: which rank has a message for which, and its number. */
    size_t n_words;
    uint64_t *row;     /* n_ranks x n_words */
    int32_t *row_base; /* the same shape: number of the word's first message */
    /* Pattern by destination. */
    int64_t *column_first;             /* n_ranks + 1 */
    int32_t *column;                   /* messages, ascending sources */
    struct cpl_layers layers;          /* the edges; waves are stages */
    struct cpl_cover_need *need;       /* per edge number, room for layers.max_numbers */
    struct cpl_cover_choices *choices; /* per message */
    /* With three hops: number of ranks y by which rank x reaches destination d, and of ranks x by
     * which source s reaches y; n_ranks x n_ranks each. */
    uint16_t *to_last;    /* [x * n_ranks + d] */
    uint16_t *from_first; /* [s * n_ranks + y] */
    /* What the current change has touched. */
    uint32_t change;
    int32_t n_touched;
    int32_t *touched; /* messages; room for all */
    /* Edges that no message needs, each once; checked again when taken. */
    int32_t n_unneeded;
    int32_t *unneeded;       /* room for layers.max_numbers */
    int32_t max_needs;       /* room of need and unneeded */
    int64_t work;            /* steps done: a measure of time that is the same on every machine */
    bool failed;             /* memory ran out: the cover is useless from then on */
    struct cpl_arena *arena; /* not owned */
};

/* A cover without edges: no message has a way. Memory from the arena. Returns CPL_OK,
 * CPL_ERR_UNFIT (too many ranks or messages for the tables), CPL_ERR_NOMEM. */
enum cpl_status cpl_cover_init(struct cpl_cover *cover, const struct cpl_pattern *pattern,
                               int32_t n_hops, struct cpl_arena *arena, struct cpl_error *error);

/* Adds the edges of routes with at most n_hops waves: wave w becomes stage w (with two hops: first,
 * last). Every message then has a way. Returns CPL_OK, CPL_ERR_NOMEM. */
enum cpl_status cpl_cover_add_routes(struct cpl_cover *cover, const struct cpl_routes *routes,
                                     struct cpl_error *error);

/* Adds an edge that is not there, from != to, and returns its number; 0 with cover->failed when
 * memory ran out. */
int32_t cpl_cover_add(struct cpl_cover *cover, int32_t stage, int32_t from, int32_t to);

/* Removes an edge. Messages may lose their last way: they are among those in cover->touched. */
void cpl_cover_remove(struct cpl_cover *cover, int32_t edge);

/* Takes an edge that no message needs off the list and returns it; 0: there is none. */
int32_t cpl_cover_take_unneeded(struct cpl_cover *cover);

/* Whether a message has a way. */
static inline bool cpl_cover_has_way(const struct cpl_cover *cover, int64_t message)
{
    return cover->choices[message].n_first > 0;
}

/* The message from s to d, -1: there is none. */
static inline int64_t cpl_cover_message(const struct cpl_cover *cover, int32_t s, int32_t d)
{
    size_t word = (size_t)s * cover->n_words + (size_t)d / 64;
    uint64_t bit = UINT64_C(1) << (d % 64);
    if (!(cover->row[word] & bit))
        return -1;
    return cover->row_base[word] + __builtin_popcountll(cover->row[word] & (bit - 1));
}

/* Whether x reaches d by at most a middle and a last edge; whether s reaches y by at most a first
 * and a middle edge. */
bool cpl_cover_reaches(const struct cpl_cover *cover, int32_t x, int32_t d);
bool cpl_cover_reached(const struct cpl_cover *cover, int32_t s, int32_t y);

/* Writes a way of every message, one with the fewest hops, into routes of n_hops waves. Every
 * message must have a way. The caller frees *routes. Returns CPL_OK, CPL_ERR_NOMEM. */
enum cpl_status cpl_cover_routes(const struct cpl_cover *cover, struct cpl_routes *routes,
                                 struct cpl_error *error);

#endif
