/* Types and functions that the files of point-to-point management share (doc/point-to-point.md). */
#ifndef CARPOOL_PT2PT_INTERNAL_H
#define CARPOOL_PT2PT_INTERNAL_H

#include "shim/base/names.h"
#include "shim/carry/line.h"
#include "shim/meet/meeting.h"
#include "shim/meet/trial.h"
#include "shim/plan/cycle.h"
#include "shim/plan/plan_agree.h"
#include "shim/plan/recognise.h"
#include "shim/pt2pt/pt2pt.h"

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cpl_comm_state;

#define CPL_MAX_SIGNATURES 128 /* of a rank on a communicator */
#define CPL_MOST_NAMES     64  /* exchanges of a communicator */
#define CPL_RECURS_TIMES   3   /* a batch or exchange that was seen this often recurs */
#define CPL_MOST_VAIN      6   /* agreements that come to nothing before learning stops for good */

struct cpl_notes {
    int n;
    struct cpl_note *note; /* NULL: there was none yet */
};

/* An exchange that was recognised. signature and fraction are this rank's own, and so is `earlier`;
 * the rest is alike on all ranks. */
struct cpl_known_exchange {
    uint64_t hash; /* over its ranks and their signatures, so over its pattern (recognise.h) */
    int32_t tag, ordinal;           /* ordinal: number among exchanges with that tag */
    bool left;                      /* it was planned and left to MPI */
    enum cpl_embed_verdict reduced; /* the lowest among ranks that send, when it was planned */
    enum cpl_search search;         /* for its plan */
    int signature;                  /* signature that this rank sends; -1: it sends nothing */
    double fraction;                /* fraction of that signature's batches in this exchange */
    double earlier;                 /* calls of this rank before its messages were learned anew */
};

/* In the order in which they were recognised first; later ones are MPI's. summary: of those that
 * are left, for the report, on the first rank; NULL: none. */
struct cpl_known_exchanges {
    int n, n_left;
    struct cpl_known_exchange exchange[CPL_MOST_NAMES];
    struct cpl_plan_summary *summary;
};

/* A message of a batch or a signature. */
struct cpl_batch_message {
    int dest, tag;
    int64_t bytes;
    int32_t payload; /* of a signature: the destination's position in the plan, if not the rank */
};

/* The destinations and tags of a batch that recurs. */
struct cpl_signature {
    uint64_t hash;                /* sum over (destination, tag): the order does not matter */
    int n;                        /* number of messages */
    int64_t times;                /* how often the batch came */
    int n_dests;                  /* number of different destinations */
    struct cpl_batch_message *to; /* these, ascending, with the bytes to each the first time */
    bool planned;                 /* some exchange in which this rank sends the batch is planned */
    int plan;                     /* while managed: plan of the exchange that it is first in, or
                                     CPL_NO_PLAN */
    struct cpl_batch_message *message; /* n, in the order in which they were first sent */
    bool follows;                      /* while managed: mostly all of its messages come */
    int64_t n_followed, n_abandoned;
    int64_t n_reduced;      /* how often a small reduction came next while learning */
    int64_t n_in_any_order; /* how often the result of that reduction did not depend on the order */
    bool waits; /* while managed: the complete batch waits for the reduction that comes next */
};

static inline bool cpl_pt2pt_recurs(const struct cpl_signature *s)
{
    return s->times >= CPL_RECURS_TIMES;
}

/* The messages that have not been sent. While learning only their destinations are kept; while
 * managed, the segments as they will travel. */
struct cpl_batch {
    int n, capacity;
    struct cpl_batch_message *message;
    uint64_t hash;
    enum cpl_embed_verdict reduced; /* on a small reduction since the batch's last message */
    unsigned char *segments;        /* while managed */
    size_t used, room;
};

enum cpl_pt2pt_phase {
    CPL_PT2PT_LEARNING,
    CPL_PT2PT_MANAGED,
    CPL_PT2PT_RESTING, /* MPI's for a while, and counted; plans are kept (line->kept) */
    CPL_PT2PT_ALONE
};

/* What is learned of messages that MPI carries. */
struct cpl_pt2pt_learned {
    int64_t recurred_at; /* collectives until exchanges recurred, alike on all ranks; or 0 */
    int n_signatures;
    struct cpl_signature *signature; /* CPL_MAX_SIGNATURES, once started; kept while managed */
    struct cpl_notes notes;
    bool counts_only;            /* batches do not recur here, so they are no longer examined */
    int64_t n_batches, n_before; /* of these, when the ranks last voted */
    int n_watched, n_wild;       /* receives with wildcards so far, and those that are open */
};

/* How often this rank has sent its batch of an exchange: all times, and by the plan. */
struct cpl_exchange_count {
    int64_t all, planned;
};

/* MPI and the plans in turns (pt2pt_review.c). Times are of a collective, in nanoseconds summed up
 * over the ranks. Alike on all ranks but for `at`. */
struct cpl_pt2pt_turn {
    bool compares; /* both have turns, until it is known which is faster */
    bool warm;     /* the plans have carried a window since MPI had the communicator for long */
    int length;    /* collectives in a window */
    int64_t began; /* the collective at which the present one began */
    double at;     /* when that was, in seconds; 0: none has begun */
    int64_t ns_mpi, ns_rerouted; /* in the last windows; 0: there was none */
    int64_t n_rerouted;          /* collectives in the last one of the plans; 0: it is noted */
    struct cpl_pairs pairs;
    int64_t next; /* the collective from which on both are compared again */
    double setup; /* seconds that beginning to manage took: comparing may cost as if it had not */
};

/* The plans of a managed communicator; alike on all ranks except for the counts. */
struct cpl_pt2pt_plans {
    int n;
    struct cpl_plan_summary *summary;    /* per plan */
    bool embeds[CPL_MAX_COMBINED_PLANS]; /* per plan: reductions may carry its batches */
    struct cpl_exchange_count count[CPL_MAX_COMBINED_PLANS];
    int64_t pause; /* collectives until MPI, which was faster, is compared again; 0: it was not */
    struct cpl_pt2pt_turn turn;
    struct cpl_plan_turn planning; /* of all exchanges */
};

/* The batch that is being followed: its messages go into combined messages as they are sent. */
struct cpl_pt2pt_following {
    struct cpl_signature *signature; /* NULL: none */
    int n;                           /* number of messages that have gone into combined messages */
    int plan;
};

/* Point-to-point messages of a communicator. */
struct cpl_pt2pt {
    struct cpl_line *line; /* the communicator's */
    enum cpl_pt2pt_phase phase;
    bool started;   /* there has been a message, so the arrays of `learned` exist */
    bool open;      /* while learning: something was sent or posted since the last leave point */
    int blind;      /* enum cpl_left_alone: why this rank is never able */
    int reason;     /* enum cpl_left_alone: why it is not managed */
    int64_t lesson; /* learned.recurred_at, once the ranks have looked away; else 0 */
    struct cpl_date date;  /* when the ranks agree on the messages, or review that */
    int n_vain;            /* agreements that came to nothing; alike on all ranks */
    bool ripe;             /* of fewer ranks: it could be managed; alike on its ranks */
    struct cpl_date parts; /* of all ranks: when they settle what others need (pt2pt_parts.h) */
    struct cpl_pt2pt_learned learned;
    struct cpl_batch batch;
    struct cpl_known_exchanges known;
    struct cpl_cycle cycle; /* cycle of this rank's batches, while managed */
    struct cpl_pt2pt_plans plans;
    struct cpl_pt2pt_following following;
};

/* pt2pt_learn.c */
/* Adds a note; drops old ones when there are too many. */
void cpl_notes_add(struct cpl_notes *notes, enum cpl_note_kind kind, int peer, int tag);
void cpl_notes_free(struct cpl_notes *notes);
/* Drops old notes that recognising can do without: what it costs goes by their number. Collective
 * over comm. */
void cpl_notes_shorten(struct cpl_pt2pt_learned *learned, MPI_Comm comm);
/* Before the first message is noted; makes the communicator's own struct cpl_pt2pt. */
bool cpl_pt2pt_start(struct cpl_comm_state *state);
void cpl_pt2pt_learn_send(struct cpl_comm_state *state, int dest, int tag, int64_t bytes);
/* blocking: the receive is over; else it was posted. */
void cpl_pt2pt_learn_receive(struct cpl_comm_state *state, int source, int tag, bool blocking);
void cpl_pt2pt_close_batch(struct cpl_pt2pt *p);
bool cpl_pt2pt_batch_reserve(struct cpl_batch *batch); /* room for a message; false: no memory */
bool cpl_pt2pt_batch_add(struct cpl_batch *batch, int dest, int tag, int64_t bytes);
struct cpl_signature *cpl_pt2pt_find_signature(struct cpl_pt2pt *p, uint64_t hash, int n);
/* Its position among the destinations; -1: none. */
int cpl_pt2pt_place_of(const struct cpl_signature *s, int dest);
bool cpl_pt2pt_exhausted(const struct cpl_pt2pt *p);
void cpl_pt2pt_free(struct cpl_comm_state *state);
/* The communicator is MPI's for a while, on all its ranks. Messages and receives are only counted:
 * those that are under way or open when it is to be managed must be known. */
void cpl_pt2pt_rest(struct cpl_comm_state *state);
/* The same where it has been learned that exchanges recur, and it is too early to plan them. */
void cpl_pt2pt_look_away(struct cpl_comm_state *state);

/* Whether messages and receives are to be counted. */
static inline bool cpl_pt2pt_counts(const struct cpl_pt2pt *p)
{
    return (p->phase == CPL_PT2PT_LEARNING || p->phase == CPL_PT2PT_RESTING) && !p->blind;
}

/* Whether counting is all there is to do about them (base/balance.h). */
static inline bool cpl_pt2pt_counts_only(const struct cpl_pt2pt *p)
{
    return p->phase == CPL_PT2PT_RESTING || p->learned.counts_only;
}

/* An exchange by its number, which is the same at all agreements; NULL: there are too many. */
struct cpl_known_exchange *cpl_profile_name(struct cpl_pt2pt *p, const struct cpl_recurring *found);
/* Calls of this rank, with the signatures learned so far. */
double cpl_profile_calls(const struct cpl_known_exchange *x,
                         const struct cpl_signature *signatures);
/* Notes that an exchange was planned, and whether that left it to MPI: then the report tells how
 * often it occurred. What planning it took before is added to the summary. On all ranks. */
void cpl_profile_planned(struct cpl_comm_state *state, struct cpl_known_exchange *x,
                         struct cpl_plan_summary *summary);
/* The end of the communicator, and of its being managed: adds records of what was left to MPI, and
 * of the plans. Collective when there are any. */
void cpl_profile_report(struct cpl_comm_state *state);
void cpl_profile_report_plans(struct cpl_comm_state *state);
/* What MPI and the plans were measured to take, for a record. Local. */
struct cpl_record_windows cpl_profile_windows(const struct cpl_comm_state *state);

/* pt2pt_agree.c: the item of messages at meetings (meet/meeting.h): the agreement, the review. */
#define CPL_PT2PT_N_LEAST 6
#define CPL_PT2PT_N_SUMS  3
void cpl_pt2pt_vote(struct cpl_comm_state *state, int64_t *words);
enum cpl_settled cpl_pt2pt_settle(struct cpl_comm_state *state, bool regular, const int64_t *words);

/* pt2pt_review.c: the words are those that are summed up. */
void cpl_pt2pt_review_vote(const struct cpl_comm_state *state, int64_t *words);
void cpl_pt2pt_turn_begin(struct cpl_comm_state *state);  /* it has become managed */
void cpl_pt2pt_turn_window(struct cpl_comm_state *state); /* begins to be timed */
/* What a collective took since the window began, in nanoseconds summed up over the ranks; 0: some
 * rank does not know. */
int64_t cpl_pt2pt_ns_a_collective(const struct cpl_comm_state *state, const int64_t *words);
/* Gives the communicator to MPI for a turn, or where its turn or rest is over ends that.
 * Collective. */
enum cpl_settled cpl_pt2pt_review(struct cpl_comm_state *state, const int64_t *words);

/* pt2pt_manage.c */
void cpl_pt2pt_flush(struct cpl_comm_state *state);
/* Whether every message that was started has its receive; whether, after draining, nothing is left
 * in the shim's hands, so that messages are counted anew. Collective, the same on all ranks. */
bool cpl_pt2pt_fits(struct cpl_comm_state *state);
bool cpl_pt2pt_drain(struct cpl_comm_state *state);

/* Following: cpl_pt2pt_follows says whether the next message comes as learned; then
 * cpl_pt2pt_follow puts it into its combined message (a message to the rank itself only counts) and
 * returns the error of packing it. */
void cpl_pt2pt_learn_order(struct cpl_comm_state *state);
bool cpl_pt2pt_follows(struct cpl_pt2pt *p, int dest, int tag);
int cpl_pt2pt_follow(struct cpl_pt2pt *p, const struct cpl_segment *segment,
                     const struct cpl_span *span);
void cpl_pt2pt_abandon(struct cpl_pt2pt *p); /* stops following a batch before its end */
void cpl_pt2pt_piggyback(struct cpl_comm_state *state, bool blocking);

void cpl_pt2pt_unmanage(struct cpl_comm_state *state); /* nothing may be under way */

#endif
