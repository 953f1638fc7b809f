/* The shim's state of one process, and its start and end. All other modules' state hangs on
 * communicators (attributes) or in here, so that simulated ranks in one process can be kept apart
 * by keeping this struct apart. */
#ifndef CARPOOL_CONTEXT_H
#define CARPOOL_CONTEXT_H

#include "planner/machine.h"
#include "shim/base/settings.h"
#include "shim/state/datatype.h"
#include "shim/state/service.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#define CPL_N_NAMED_TYPES 32

struct cpl_comm_state;
struct cpl_dying;
struct cpl_exchange;
struct cpl_persistent;
struct cpl_taken_message;
struct cpl_record_node;
struct cpl_picture;

#define CPL_MOST_PICTURES      16
#define CPL_MOST_PATTERN_FILES 256

/* What the report shows of the exchanges that this process has planned (picture.h). */
struct cpl_pictures {
    int n, n_written;
    bool output_failed; /* CARPOOL_OUTPUT cannot be written to */
    struct cpl_picture *picture[CPL_MOST_PICTURES];
    uint64_t written[CPL_MOST_PATTERN_FILES]; /* fingerprints of patterns */
};
struct cpl_request;
struct cpl_copied;
struct cpl_hooks;
struct cpl_pt2pt;
struct cpl_signature;

/* The program's buffer for MPI_Bsend, and sends from copies (buffered.h). */
struct cpl_buffered {
    bool attached;
    int64_t size, used;       /* bytes */
    struct cpl_copied *first; /* sends under way */
};

/* A batch whose time is taken: from its first message to the end of the last call that waited
 * before something else was sent. */
struct cpl_timed_batch {
    struct cpl_pt2pt *of;            /* NULL: none */
    struct cpl_signature *signature; /* NULL: it has not left */
    double start, end;
};

/* The machine as far as one process finds it out, once, when it first plans. */
struct cpl_shim_machine {
    bool shape_tried, shape_known;
    struct cpl_node_shape shape;
    bool file_tried;
    struct cpl_machine_file file;   /* what CARPOOL_MACHINE says, else the default */
    struct cpl_distances distances; /* between the ranks of MPI_COMM_WORLD; n_ranks 0: none */
    bool unfit_warned;              /* CARPOOL_STRATEGY has been warned about */
    bool cache_warned;              /* CARPOOL_PLAN_CACHE has been warned about */
    bool cache_closed;              /* plans cannot be kept there */
};

#define CPL_N_RECENT 64 /* a power of two */

/* A communicator that was asked for. */
struct cpl_recent {
    MPI_Comm comm;
    bool alone; /* nothing is managed and this one is not learned about: MPI's alone */
    struct cpl_comm_state *state; /* NULL: none */
};

/* What is managed, served or under way: calls that pass look at it. */
struct cpl_busy {
    int n_managed;      /* communicators that are managed now (pt2pt.h): alike on all ranks of
                         * MPI_COMM_WORLD between two collective calls, see collective.h */
    int n_hosts;        /* communicators in whose reductions neighborhood collectives ride, and */
    int n_served;       /* communicators whose nonblocking ones are carried: alike as n_managed */
    int n_open_batches; /* communicators with messages that have not left */
    int n_active_requests;              /* managed ones that the program has not completed */
    struct cpl_exchange *first_pending; /* neighborhood exchanges with calls under way */
    struct cpl_exchange *first_open;    /* those of calls that nothing which may wait has followed;
                                         * each counts as an open batch */
};

/* Communicators. */
struct cpl_comms {
    MPI_Comm alone; /* one whose messages are MPI's alone, found last; MPI_COMM_NULL while there is
                     * none, or while something is pending */
    MPI_Comm self;  /* of this rank alone: the program's MPI_COMM_SELF may have receives open */
    MPI_Comm away;  /* for the barriers of away.h; MPI_COMM_NULL until something is managed */
    int keyval;     /* of the attribute that holds a communicator's state */
    MPI_Datatype vote;                   /* of meetings (meet/meeting.h), */
    MPI_Op votes;                        /* and the operation that puts them together */
    struct cpl_comm_state *first, *last; /* with state, in the order in which they got it */
    struct cpl_comm_state *first_managed;
    struct cpl_comm_state *first_left; /* freed by the program, with persistent requests left */
    struct cpl_dying *dying;           /* that MPI is freeing (comm_state.h) */
    int64_t n_ever_planned;            /* that have got a private communicator so far */
    int n_planned;                     /* that hold one now */
    struct cpl_recent recent[CPL_N_RECENT]; /* asked for last, by handle */
};

/* Neighborhood collectives. */
struct cpl_exchange_calls {
    struct cpl_exchange *last;  /* the last exchange (neighbor_order.h) */
    struct cpl_exchange *timed; /* waits for the end of the next one */
    int64_t n;                  /* exchanges that have been called */
    int64_t n_started;          /* nonblocking calls, and */
    int64_t n_carried;          /* those of them that were carried */
    int32_t n_serve_ids;
};

/* Requests and messages of the program. */
struct cpl_open_requests {
    struct cpl_persistent *persistent;
    int n, n_buckets;
    struct cpl_request **buckets; /* by handle (requests.h) */
    struct cpl_request *spare, *complete_send;
    struct cpl_taken_message *taken_messages;
    struct cpl_buffered buffered;
};

/* Communicators whose ranks were placed (reorder.h). */
struct cpl_placed {
    int64_t n;
    int64_t n_possible;         /* that would have been, had the settings let them; on the rank */
    double before_us, after_us; /* that maps, as the modelled times of what gains most */
};

/* What the report will tell (report.h). */
struct cpl_told {
    struct cpl_record_node *records;
    struct cpl_pictures pictures;
};

/* The level of threads. */
struct cpl_thread_level {
    int level;   /* that the program has been told of, */
    bool raised; /* because MPI was asked for more */
};

struct cpl_context {
    bool active; /* MPI is initialised and the mode is not off: calls are looked at */
    struct cpl_service service;
    struct cpl_busy busy;
    struct cpl_comms comms;
    struct cpl_exchange_calls exchanges;
    struct cpl_open_requests requests;
    const struct cpl_hooks *const *hooks; /* up to NULL (hooks.h) */
    int rank;                             /* in MPI_COMM_WORLD */
    int size;
    int tag_ub;           /* MPI's highest tag */
    bool waits_elsewhere; /* a window or file was opened: its calls wait without polling */
    bool met_others;      /* communicators may have processes of another MPI_COMM_WORLD */
    struct cpl_thread_level thread;
    struct cpl_settings settings;
    struct cpl_shim_machine machine;
    struct cpl_placed placed;
    struct cpl_told told;
    struct cpl_timed_batch timed;                   /* in a profile run */
    struct cpl_type named_types[CPL_N_NAMED_TYPES]; /* MPI's own, met before, by handle */
    double start;                                   /* PMPI_Wtime after MPI_Init */
};

extern struct cpl_context cpl_context;

/* The place of a communicator's handle among the recent ones: handles of a kind count up. */
static inline struct cpl_recent *cpl_context_recent(MPI_Comm comm)
{
    unsigned handle = (unsigned)(uintptr_t)comm;
    return &cpl_context.comms.recent[(handle + (handle >> 26)) % CPL_N_RECENT];
}

#endif
