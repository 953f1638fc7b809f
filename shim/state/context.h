/* The shim's state of one process. What is not kept in attributes of communicators is here, so that
 * a process can simulate several ranks. */
#ifndef CARPOOL_CONTEXT_H
#define CARPOOL_CONTEXT_H

#include "planner/machine.h"
#include "shim/base/account.h"
#include "shim/base/balance.h"
#include "shim/base/settings.h"
#include "shim/state/datatype.h"
#include "shim/state/service.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#define CPL_N_NAMED_TYPES 32

#define CPL_MOST_PICTURES      16
#define CPL_MOST_PATTERN_FILES 256

/* Pictures in the report of the exchanges that this process planned (picture.h). */
struct cpl_pictures {
    int n, n_written;
    char *texts; /* one after another */
    int64_t n_bytes;
    bool output_failed;                       /* CARPOOL_OUTPUT cannot be written to */
    uint64_t written[CPL_MOST_PATTERN_FILES]; /* patterns in files, by fingerprint */
};

/* The program's buffers for MPI_Bsend, and sends from copies (requests.h). */
struct cpl_buffered {
    int64_t size, used; /* of the buffer and how much of it is used, bytes; 0: there is none */
    int n_of_comms;     /* buffers that are attached to communicators */
    int64_t n_sent;     /* copies so far */
    struct cpl_copied *first;  /* sends under way */
    struct cpl_flush *flushes; /* started, and not complete */
};

/* What plans are made with besides ranks' seats, which one rank reads. Plain data. */
struct cpl_planning_costs {
    struct cpl_costs costs;
    struct cpl_node_shape shape;
    int32_t shape_known;
};

/* What a process knows of the machine. It looks once, when it first plans. */
struct cpl_shim_machine {
    bool looked;
    struct cpl_planning_costs costs;
    struct cpl_distances distances; /* between the ranks of MPI_COMM_WORLD; n_ranks 0: none */
    int64_t node;       /* 1 more than the number of this rank's node, once all ranks have found
                           theirs (meet/agree.h); 0: they have not */
    bool unfit_warned;  /* CARPOOL_STRATEGY has been warned about */
    bool cache_warned;  /* CARPOOL_PLAN_CACHE has been warned about */
    bool cache_closed;  /* plans cannot be kept in CARPOOL_PLAN_CACHE */
    bool shares_cores;  /* a node has fewer processors than ranks */
    bool has_device;    /* a GPU's runtime is in the process (device.h) */
    bool lanes_warned;  /* that ranks of a node cannot share memory */
    int64_t lane_bytes; /* of the lanes that this rank has open, with those of its node */
};

#define CPL_N_RECENT 64 /* a power of two */

/* A communicator that was looked up. `alone` and `balance` count only while nothing is served and
 * no other thread may call. */
struct cpl_recent {
    _Alignas(32) MPI_Comm comm; /* the entry is in one line of memory */
    bool alone;     /* its messages are MPI's alone: not managed, and not learned about */
    int rank, size; /* with `balance`: of the communicator */
    struct cpl_comm_state *state; /* NULL: the communicator has no state */
    struct cpl_balance *balance;  /* its messages are only counted, here; NULL: they are not */
};

/* A nonblocking collective for which this rank is about to wait, and where the ranks may meet
 * (meet/appointment.h). */
struct cpl_appointment {
    struct cpl_comm_state *with; /* its communicator; NULL: there is none */
    MPI_Request request;
    double in_vain; /* seconds that this rank has waited for others who did not come */
    bool barred;    /* this rank comes to none */
    bool others;    /* it has called collectives of fewer ranks, of windows or of files */
};

/* Looks at what is polled that found nothing (wait/progress.c). */
struct cpl_idle {
    int n;       /* in a row */
    int n_polls; /* all together */
    int n_kept;  /* in a row since MPI last gave the core away */
    double last; /* when the last of these was */
};

/* What is managed, served or under way. Calls that pass look at it. */
struct cpl_busy {
    MPI_Comm alone;     /* the one found last whose messages are MPI's alone; MPI_COMM_NULL: none,
                           or something is pending */
    int n_open_batches; /* communicators with messages that have not been sent */
    int n_active_requests; /* managed requests that the program has not completed */
    struct cpl_appointment appointment;
    int n_managed; /* communicators of all ranks that are managed, and one more while `parts`. Alike
                      on all ranks between two collectives of all, as are the next two */
    bool parts;    /* all ranks poll for communicators of fewer ranks (pt2pt_parts.h) */
    int n_served;  /* communicators of all ranks whose nonblocking collectives are carried */
    unsigned n_looks_at_mpi;            /* by polls: MPI may have given the core away meanwhile */
    struct cpl_exchange *first_pending; /* neighborhood exchanges with calls under way */
    struct cpl_idle idle;
};

/* Communicators that all ranks of MPI_COMM_WORLD made together (pt2pt/pt2pt_parts.h). */
#define CPL_MOST_FAMILY 4096 /* that get numbers, besides those made of others of fewer ranks */
#define CPL_MOST_NONE   4160
#define CPL_MOST_JOINED 16

struct cpl_families {
    int64_t n; /* made so far, with MPI_COMM_WORLD; 0: no other was; alike on all ranks */
    int64_t joined[CPL_MOST_JOINED];               /* their numbers, 0: free; alike on all ranks */
    struct cpl_comm_state *state[CPL_MOST_JOINED]; /* NULL: this rank is in none, or freed it */
    int64_t none[CPL_MOST_NONE];                   /* numbers of which this rank was never in one */
    int n_none;
};

/* What the last reduction had: MPI's own, which fit each other (wait/collective.c). */
struct cpl_reduced {
    MPI_Op op;
    MPI_Datatype type;
};

/* Communicators. */
struct cpl_comms {
    struct cpl_recent recent[CPL_N_RECENT]; /* communicators that were looked up last, by handle */
    MPI_Comm self; /* private one of this rank alone: MPI_COMM_SELF is the program's */
    MPI_Comm away; /* for the barriers of assembly.h; MPI_COMM_NULL: nothing was managed */
    struct cpl_assembly *assembly; /* of the node's ranks (assembly.h); NULL: none, or no `away` */
    int keyval, graph; /* keys of the attributes that hold a communicator's state and graph */
    int n_graphs;      /* ones of all ranks that ever had an inner one */
    struct cpl_graph *first_graph; /* those that have an inner one */
    MPI_Datatype vote;             /* type of a word of a vote (meet/meeting.h) */
    MPI_Op votes;                  /* operation that puts the ranks' votes together */
    struct cpl_reduced reduced;
    /* Communicators with state, in the order in which they got it. */
    struct cpl_comm_state *first;
    struct cpl_comm_state *first_managed;
    struct cpl_comm_state *first_orphaned; /* freed before their persistent requests */
    struct cpl_dying *dying;               /* communicators that are set aside (comm_state.h) */
    struct cpl_families family;
    int64_t n_ever_planned; /* communicators that ever got a private communicator */
    int n_states;           /* communicators of which something is known */
    int n_planned;          /* communicators that have a private communicator now */
};

/* Neighborhood collectives. */
struct cpl_exchange_calls {
    struct cpl_exchange *last; /* the last blocking one (neighbor_order.h) */
    int64_t n_started;         /* nonblocking calls */
    int64_t n_carried;         /* nonblocking calls that were carried */
    int32_t n_serve_ids;
};

/* Requests and messages of the program. */
struct cpl_open_requests {
    struct cpl_persistent *persistent;
    int64_t n_forgotten; /* persistent ones */
    int n;               /* that have a handle of their own (carry/requests.h) */
    bool knows_null;
    MPI_Status null_status; /* of a receive from MPI_PROC_NULL, once it is known */
    int n_by_mpi;           /* receives that MPI carries out for the shim, open */
    struct cpl_request *spare, *complete_send;
    struct cpl_buffered buffered;
};

/* Contents of the report (report.h). */
struct cpl_told {
    const char *all_left; /* why all calls of the run are left to MPI, a clause, which this rank
                             alone tells; NULL: they are not */
    struct cpl_record *records;
    int n_records;
    struct cpl_pictures pictures;
};

/* The level of threads. */
struct cpl_thread_level {
    int level;       /* the level that the program was told */
    bool raised;     /* MPI was asked for a higher level than the program asked for */
    void *exclusive; /* the thread that settles something, or has asked to (meet/agree.h); NULL:
                        none */
};

struct cpl_context {
    bool active; /* MPI is initialised and the mode is not off: calls are looked at */
    struct cpl_service service;
    struct cpl_busy busy;
    struct cpl_comms comms;
    struct cpl_exchange_calls exchanges;
    struct cpl_open_requests requests;
    const struct cpl_hooks *const *hooks; /* list that ends with NULL (hooks.h) */
    int rank;                             /* this rank in MPI_COMM_WORLD */
    int size;
    int tag_ub;   /* MPI's highest tag */
    int n_epochs; /* of this rank on windows, begun by MPI_Win_post or MPI_Win_start and not over */
    bool met_others; /* communicators may have processes of another MPI_COMM_WORLD */
    struct cpl_thread_level thread;
    struct cpl_settings settings;
    struct cpl_shim_machine machine;
    int64_t n_placed; /* communicators whose ranks were placed (reorder.h) */
    struct cpl_told told;
    struct cpl_account account;
    struct cpl_service_lock lock;
    struct cpl_type named_types[CPL_N_NAMED_TYPES]; /* MPI's own that were described, by handle */
};

extern struct cpl_context cpl_context;

/* The entry of `recent` for a handle; those of one kind are consecutive numbers. */
static inline struct cpl_recent *cpl_context_recent(MPI_Comm comm)
{
    unsigned handle = (unsigned)(uintptr_t)comm;
    return &cpl_context.comms.recent[(handle + (handle >> 26)) % CPL_N_RECENT];
}

/* The entry for a datatype of MPI's own. */
static inline struct cpl_type *cpl_context_type(MPI_Datatype handle)
{
    return &cpl_context.named_types[(size_t)handle % CPL_N_NAMED_TYPES];
}

/* One of MPI's own datatypes that has been described before; NULL: it is not. */
static inline const struct cpl_type *cpl_type_named(MPI_Datatype handle)
{
    const struct cpl_type *known = cpl_context_type(handle);
    return known->handle == handle && known->extent > 0 ? known : NULL;
}

/* Calls the communicator's error handler for an error; MPI_COMM_NULL: MPI has done so. Returns the
 * error, which may be MPI_SUCCESS. */
static inline int cpl_raise(MPI_Comm comm, int error)
{
    if (error != MPI_SUCCESS && comm != MPI_COMM_NULL)
        PMPI_Comm_call_errhandler(comm, error);
    return error;
}

/* Seconds that this rank may spend now, by its account. */
static inline double cpl_context_balance(void)
{
    return cpl_account_balance(&cpl_context.account, PMPI_Wtime(),
                               (double)cpl_context.settings.cost / 100);
}

#endif
