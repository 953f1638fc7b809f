/* What the shim knows of a communicator, an attribute of it. Programs have many communicators on
 * which nothing recurs. So a state is small until something is to be kept: until then the parts
 * have what all such communicators share and nobody writes to; at cpl_comm_state_own they make
 * their own. */
#ifndef CARPOOL_COMM_STATE_H
#define CARPOOL_COMM_STATE_H

#include "shim/state/adjacency.h"
#include "shim/state/context.h"

#include <mpi.h>
#include <stdbool.h>

/* Communicators that may hold a private communicator at the same time, of the 2,048 that MPICH has
 * to give. */
#define CPL_MAX_PLANNED 256

/* A program that has so many has none to spare (calls/reclaim.c). */
#define CPL_MANY_STATES 1024

/* Calls that pass without a look (meet/meeting.h). */
struct cpl_pass {
    int64_t remaining, granted;
};

/* A communicator that all ranks of MPI_COMM_WORLD made together, among the others
 * (pt2pt/pt2pt_parts.h). */
struct cpl_family {
    int64_t number; /* in the order in which the ranks made them, alike on all; 0: it has none */
    int n_made;     /* communicators made of it, of fewer ranks than all; alike on its ranks */
    bool joined;    /* its ranks meet where they meet for another one, too; alike on them */
    bool barred;    /* it has been tried, and some rank had freed it; alike on them */
    int64_t seen;   /* the communicator's collectives that the others know of */
};

/* Its nonblocking collectives at whose waits the ranks may meet (meet/appointment.h); alike on all
 * ranks. */
struct cpl_awaited {
    int64_t number; /* of them so far */
    int64_t since;  /* blocking collectives before the ones counted next */
    int64_t n;      /* since then, or since the ranks have met */
    int64_t next;   /* number of these before which there is no appointment */
    bool alone;     /* there are hardly any blocking ones */
};

/* The communicator's blocking collectives, at some of which the ranks meet (meet/meeting.h). */
struct cpl_meeting {
    struct cpl_pass pass;
    int64_t n; /* so far, without those passed of the present grant; with them alike on all ranks */
    bool polls;  /* with several threads: its collectives poll (wait/collective.h); alike */
    bool denied; /* the last meeting came to nothing: other threads were in calls; alike */
    struct cpl_family family;
    struct cpl_awaited awaited;
    int n_made; /* communicators made of it in calls of all its ranks; alike on them */
    int late;   /* its first dates come so many doublings later; alike on its ranks */
};

/* Persistent neighborhood requests of a communicator. */
struct cpl_comm_persistent {
    int64_t n_asked, next; /* by the program, and at which the ranks ask whether to carry it; alike
                              on all ranks, as is the next */
    int n;                 /* made so far, to be carried */
    int n_left;            /* of these, not freed */
    bool kept;             /* the communicator was freed with some left */
};

/* Allgathers of a communicator. */
struct cpl_comm_allgathers {
    int64_t least;              /* smaller ones, in bytes, are MPI's */
    struct cpl_allgather *kept; /* NULL: there was none that may be carried */
};

struct cpl_comm_state {
    struct cpl_meeting meeting;
    struct cpl_balance balance; /* of its messages, while it learns or rests (pt2pt_internal.h) */
    MPI_Comm comm;              /* the program's; not to be used once it is being freed */
    MPI_Comm private_comm;      /* same ranks; MPI_COMM_NULL until they settle something */
    int64_t planned_number; /* counts communicators as they get a private one, in one order on all
                               ranks that two share; 0: none yet, -1: there is none to be had */
    int rank, size;
    bool has_topology;
    bool watched; /* has several ranks, all with neighbours: those below are known */
    struct cpl_adjacency adjacency;
    bool inter; /* an intercommunicator: left alone, alike on all its ranks */
    struct cpl_comm_persistent persistent;
    bool blank; /* nothing is kept: the next three are shared, and only read */
    /* What the parts keep of it (hooks.h): */
    struct cpl_line *line;
    struct cpl_pt2pt *pt2pt;
    struct cpl_serve *serve;
    struct cpl_exchange *exchanges; /* CPL_N_NEIGHBOR_KINDS; NULL: there was no call of these */
    struct cpl_comm_allgathers allgathers;
    struct cpl_comm_state *previous, *next; /* in cpl_context */
};

/* The state of a communicator, made at its first use; NULL when there is none to be had (no memory,
 * an invalid handle). Local. */
struct cpl_comm_state *cpl_comm_state_find(MPI_Comm comm);

/* Something is to be kept of the communicator: the parts get their own, which is to be read again.
 * Waits for memory. Local. */
void cpl_comm_state_begin(struct cpl_comm_state *state);
static inline void cpl_comm_state_own(struct cpl_comm_state *state)
{
    if (state->blank)
        cpl_comm_state_begin(state);
}

/* A communicator has begun to be managed or has gone: all are looked up again. Local. */
void cpl_comm_state_forget_recent(void);
static inline struct cpl_comm_state *cpl_comm_state_get(MPI_Comm comm)
{
    const struct cpl_recent *recent = cpl_context_recent(comm);
    if (comm == recent->comm && recent->state)
        return recent->state;
    return cpl_comm_state_find(comm);
}

/* Keeps the private communicator; MPI_COMM_NULL: there is none to be had, for good. Local. */
void cpl_comm_state_keep_own(struct cpl_comm_state *state, MPI_Comm own);

/* MPI's callback for the attribute: the communicator is being freed. Collective. */
int cpl_comm_state_deleted(MPI_Comm comm, int keyval, void *state, void *extra);

/* Before the program frees a communicator: ends its state, and sets it aside until it is taken
 * back: in MPI's call callbacks may use it and find it MPI's alone. Collective over the
 * communicator. */
void cpl_comm_state_before_free(MPI_Comm comm);

/* Frees the inner communicator of a graph (below), if there is one. */
void cpl_comm_state_free_inner(MPI_Comm comm);

/* From here on a communicator has no state, until it is freed or taken back. On all its ranks,
 * before any other function of this header. Local. */
void cpl_comm_state_set_aside(MPI_Comm comm);
void cpl_comm_state_take_back(MPI_Comm comm);

/* At the end of MPI: frees what is left of communicators freed before their persistent requests. */
void cpl_comm_state_free_orphaned(void);

/* Frees a state and takes its attribute off the communicator. Collective over the communicator. */
void cpl_comm_state_release(struct cpl_comm_state *state);

/* ---- graph communicators. MPICH lets ranks without neighbours skip a neighborhood collective, and
 * PETSc does. So where there are any, these collectives are made, by MPI too, on an inner
 * communicator of the others, with the same graph; a rank without has one of its own. It is made
 * when the graph is (meet/agree.h). ---- */

/* What is known of a graph communicator; an attribute. */
struct cpl_graph {
    MPI_Comm comm, inner; /* inner: MPI_COMM_NULL: all ranks have neighbours */
    int number;           /* of one of all ranks, from 1, alike on them; 0: another one */
    struct cpl_graph *next;
};

/* The attribute's key, for the process. Returns false when MPI has none to give. Local. The second
 * frees all inner communicators, too. */
bool cpl_graph_start(void);
void cpl_graph_stop(void);

/* Takes over the inner communicator; MPI_COMM_NULL: all ranks have neighbours. Waits for memory.
 * Local. */
void cpl_graph_keep(MPI_Comm comm, MPI_Comm inner);

/* NULL: nothing is known of the communicator. A grid's ranks all have neighbours. Local. */
const struct cpl_graph *cpl_graph_of(MPI_Comm comm);

/* The communicator on which a neighborhood collective is made: the inner one, with the error
 * handler of the given one, else that, any handle. Local. */
MPI_Comm cpl_graph_find_inner(MPI_Comm comm);
static inline MPI_Comm cpl_graph_inner(MPI_Comm comm)
{
    return cpl_context.comms.first_graph ? cpl_graph_find_inner(comm) : comm;
}

#endif
