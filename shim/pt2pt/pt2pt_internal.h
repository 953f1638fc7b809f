/* What the files that implement point-to-point management share (doc/point-to-point.md). */
#ifndef CARPOOL_PT2PT_INTERNAL_H
#define CARPOOL_PT2PT_INTERNAL_H

#include "shim/base/samples.h"
#include "shim/carry/line.h"
#include "shim/meet/date.h"
#include "shim/meet/meeting.h"
#include "shim/meet/pace.h"
#include "shim/meet/send_order.h"
#include "shim/plan/plan_agree.h"
#include "shim/pt2pt/pt2pt.h"
#include "shim/pt2pt/pt2pt_exchanges.h"
#include "shim/pt2pt/pt2pt_profile.h"

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cpl_comm_state;

#define CPL_MAX_SIGNATURES 128 /* that a rank keeps of a communicator */

/* What a rank started with one peer while learning. */
struct cpl_pair_count {
    uint64_t n;
    uint64_t hash; /* sum over its messages */
};

/* A message of a signature. */
struct cpl_signature_message {
    int dest, tag;
    int32_t payload; /* place of the destination in the plan; not of the rank itself */
};

/* A batch's destinations, which recur. */
struct cpl_signature {
    uint64_t hash; /* sum over (destination, tag): the order does not matter */
    int n;         /* messages */
    int64_t times;
    int n_dests; /* different destinations, ascending */
    int *dest;
    int64_t *bytes;                        /* to each, the first time */
    bool planned;                          /* some exchange in which this rank sends it is */
    struct cpl_samples *durations;         /* in a profile run; NULL: none were taken */
    struct cpl_signature_message *message; /* n, in the order in which they were sent first */
    bool follows;                          /* managed: mostly all of its messages come */
    bool alone;                            /* its first message is no other planned one's */
    int64_t n_followed, n_abandoned;
    int64_t n_reduced;      /* times that a small reduction came next, while learning, */
    int64_t n_in_any_order; /* and of these, that its result did not hang on the order */
    bool waits;             /* managed: when complete it waits for the reduction that comes next */
    int64_t n_embedded, n_missed; /* how often it came, and something else did */
};

/* The messages that have not left. While learning only who they go to is kept; managed, segments as
 * they will travel. */
struct cpl_batch {
    int n, capacity;
    int *dest, *tag;
    int64_t *bytes;
    uint64_t hash;
    enum cpl_embed_verdict reduced; /* of a reduction that was started after its last message */
    unsigned char *segments;        /* managed */
    size_t used, room;
};

enum cpl_pt2pt_phase {
    CPL_PT2PT_LEARNING,
    CPL_PT2PT_MANAGED,
    CPL_PT2PT_ALONE,
    CPL_PT2PT_PAUSED /* of a profile run: between the times at which it is looked at */
};

/* The order in which a plan's combined messages leave (pt2pt_order.c). */
struct cpl_pt2pt_order {
    bool found; /* one that is better than the plan's */
    int next;   /* the plan that mostly follows */
    struct cpl_order_units units;
};

/* What is learned of messages that MPI carries. */
struct cpl_pt2pt_learned {
    struct cpl_pair_count *sent;     /* per rank */
    struct cpl_pair_count *received; /* per rank */
    int n_signatures;
    struct cpl_signature *signature; /* CPL_MAX_SIGNATURES, once started; kept when managed */
    struct cpl_notes notes;
    struct cpl_exchange_names names;
    bool counts_only;  /* batches do not recur here: they are no longer looked at */
    int64_t n_counted; /* messages sent since */
    int64_t n_batches;
};

/* The plans of a managed communicator; alike on all ranks but for the last two. */
struct cpl_pt2pt_plans {
    int n;
    struct cpl_plan_summary *summary;     /* per plan */
    bool embeds[CPL_MAX_RIDE_PLANS];      /* per plan: its batches may ride in reductions */
    bool only_embeds[CPL_MAX_RIDE_PLANS]; /* and it would not pay without them */
    struct cpl_pt2pt_order order[CPL_MAX_RIDE_PLANS];
    int64_t n_rode, n_walked; /* batches of these that did and did not; lately */
};

/* The batch whose messages go into its rides as they are sent. */
struct cpl_pt2pt_following {
    struct cpl_signature *signature; /* NULL: none */
    int n;                           /* so many have */
    int step;                        /* of the cycle */
    int plan;
};

/* Point-to-point messages of a communicator. */
struct cpl_pt2pt {
    struct cpl_line *line; /* the communicator's */
    enum cpl_pt2pt_phase phase;
    bool started;         /* there has been a message: the arrays of `learned` are there */
    bool given_up;        /* managed, but nothing is rerouted any more */
    bool open;            /* learning: something was sent or posted since the last leave point */
    bool sampled;         /* a profile run looks at it from time to time only; alike on all ranks */
    int blind;            /* enum cpl_left_alone: why this rank is never able */
    int reason;           /* enum cpl_left_alone: why it is not managed */
    struct cpl_date date; /* when the ranks agree on the messages, or review that */
    int n_vain;           /* agreements that came to nothing; alike on all ranks */
    struct cpl_pt2pt_learned learned;
    struct cpl_batch batch;
    int64_t n_batches, n_batches_planned; /* since managed */
    struct cpl_left_exchanges left;       /* to MPI */
    struct cpl_pace pace;                 /* by batches, until the plans are given up */
    enum cpl_embed_verdict reducing;      /* of a small reduction that is being entered */
    struct cpl_cycle cycle;               /* of this rank's batches, when managed */
    struct cpl_pt2pt_plans plans;
    struct cpl_pt2pt_following following;
};

/* pt2pt_learn.c */
bool cpl_pt2pt_start(struct cpl_comm_state *state);
void cpl_pt2pt_learn_send(struct cpl_comm_state *state, int dest, int tag, int64_t bytes);
/* Blocking: the receive is over, else it is posted. */
void cpl_pt2pt_learn_receive(struct cpl_comm_state *state, int source, int tag, bool blocking);
void cpl_pt2pt_close_batch(struct cpl_pt2pt *p);
bool cpl_pt2pt_batch_reserve(struct cpl_batch *batch); /* for one more; false: no memory */
bool cpl_pt2pt_batch_add(struct cpl_batch *batch, int dest, int tag, int64_t bytes);
struct cpl_signature *cpl_pt2pt_find_signature(struct cpl_pt2pt *p, uint64_t hash, int n);
int cpl_pt2pt_place_of(const struct cpl_signature *s, int dest); /* among its dests; -1: not */
uint64_t cpl_pt2pt_hash(int a, int b);
bool cpl_pt2pt_recurs(const struct cpl_signature *s);
bool cpl_pt2pt_exhausted(const struct cpl_pt2pt *p);
void cpl_pt2pt_free(struct cpl_comm_state *state);

/* pt2pt_agree.c: messages at meetings (meet/meeting.h). While learning the ranks agree to manage
 * the communicator, unless messages are under way; managed, they look whether it still pays, and
 * give it back to MPI when not. */
#define CPL_PT2PT_N_LEAST 5
#define CPL_PT2PT_N_SUMS  6
void cpl_pt2pt_vote(struct cpl_comm_state *state, int64_t *words);
enum cpl_settled cpl_pt2pt_settle(struct cpl_comm_state *state, bool regular, const int64_t *words);
/* Some reductions stay MPI's: the ranks look soon whether it still pays. Alike on all ranks. */
void cpl_pt2pt_review_soon(struct cpl_comm_state *state);
/* Plans are no longer used, for a reason of enum cpl_left_alone; alike on all ranks. */
void cpl_pt2pt_give_up(struct cpl_pt2pt *p, int reason);

/* pt2pt_order.c: what leaves first of each plan; after the plans and the cycle. Collective. */
void cpl_pt2pt_order_sends(struct cpl_comm_state *state);

/* pt2pt_manage.c */
void cpl_pt2pt_flush(struct cpl_comm_state *state);

/* Following: while a batch is as learned its segments are put into the plan's rides as they are
 * sent, without being kept. cpl_pt2pt_follows tells for the next message whether it is; then
 * cpl_pt2pt_follow puts it (a message to the rank itself only counts) and returns the error of
 * packing it. */
void cpl_pt2pt_learn_order(struct cpl_comm_state *state);
bool cpl_pt2pt_follows(struct cpl_pt2pt *p, int dest, int tag);
int cpl_pt2pt_follow(struct cpl_pt2pt *p, const struct cpl_segment *segment,
                     const struct cpl_span *span);
void cpl_pt2pt_abandon(struct cpl_pt2pt *p); /* what is being followed ends before its end */
/* For the part's table (state/hooks.h). */
bool cpl_pt2pt_begin(struct cpl_comm_state *state);
void cpl_pt2pt_end(struct cpl_comm_state *state);
void cpl_pt2pt_board(struct cpl_comm_state *state, bool blocking);

void cpl_pt2pt_unmanage(struct cpl_comm_state *state); /* nothing may be under way */

#endif
