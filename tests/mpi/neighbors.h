/*
 * The parts of the program `neighbors`: graphs (neighbors_graph.c), datatypes with their layout in
 * memory (layout.h, neighbors_type.c), one call's buffers (neighbors_call.c) and the call itself
 * (neighbors_form.c), the sequence of calls (neighbors.c); also used by pending.c.
 *
 * Whatever two ranks must agree on is drawn from generators seeded by keys that both can compute;
 * what concerns one rank only (types, displacements, orders) from generators keyed by the rank.
 */
#ifndef TESTS_MPI_NEIGHBORS_H
#define TESTS_MPI_NEIGHBORS_H

#include "layout.h"

enum op { OP_ALLTOALL, OP_ALLTOALLV, OP_ALLTOALLW, OP_ALLGATHER, OP_ALLGATHERV, N_OPS };

enum kind {
    KIND_RANDOM,
    KIND_CART,
    KIND_CARTODD,
    KIND_GRAPH,
    KIND_HUB,
    KIND_ALL,
    KIND_RING,
    KIND_EMPTY,
    KIND_SPARSE,
    KIND_SIMPLE,
    N_KINDS
};

enum types { TYPES_BASIC, TYPES_DERIVED, TYPES_ALL, N_TYPES };

extern const char *const kind_names[N_KINDS + 1]; /* the last is NULL, as in all name lists */
extern const char *const op_names[N_OPS + 1];

/* --- graphs ------------------------------------------------------------------------------ */

/* An edge's number among those between the two in this direction: its place at the sender. Which of
 * them are the receiver's, MPI has told: it is not the same for all calls, topologies and versions.
 */
struct edge {
    int peer; /* or MPI_PROC_NULL */
    int k;
    int k_alltoall; /* the same for MPI_Neighbor_alltoall */
};

struct graph {
    MPI_Comm comm; /* MPI_COMM_NULL on ranks outside */
    enum kind kind;
    int rank;
    int n_in, n_out;
    struct edge *in, *out;
    bool
        equal; /* every rank has as many sources as destinations: same answer on all, as the next */
    bool whole; /* every rank has neighbors */
};

/* Collective on MPI_COMM_WORLD. `equal` asks for a graph of equal degrees where the kind leaves
 * the choice; `variant` selects shapes. */
struct graph graph_make(enum kind kind, int variant, bool equal, uint64_t key);
/* The same graph on a duplicate of its communicator. */
struct graph graph_dup(const struct graph *graph);
void graph_free(struct graph *graph);

/* --- calls ------------------------------------------------------------------------------- */

/* What all ranks know of one call. */
struct step {
    enum op op;
    enum types types;
    int max_count;
    bool large;      /* big messages may appear */
    bool same;       /* all destinations are sent the same content */
    bool repeat;     /* counts, types and op are those of the graph's call before */
    uint64_t layout; /* key of counts and types, kept while calls repeat */
    uint64_t call;   /* key of this call's contents */
};

/* One side of a call: blocks in a buffer. */
struct side {
    int n; /* blocks */
    bool sending;
    const struct edge *edges; /* one per block; NULL for an allgather's only block */
    bool each;                /* a layout per block (alltoallw), else one for all */
    struct layout *layouts;   /* 1 or n */
    int *counts;
    MPI_Aint *at; /* of each block's origin, in bytes from area.data */
    struct test_area area;
    /* as given to MPI */
    void *buffer;
    int *displs;
    MPI_Aint *byte_displs;
    MPI_Datatype *types;
    MPI_Count *large_counts; /* the same as counts and displs */
    MPI_Aint *large_displs;
};

/* Which of MPI's calls for an operation; the last three with large counts. */
enum form {
    FORM_BLOCKING,
    FORM_NONBLOCKING,
    FORM_PERSISTENT,
    FORM_BLOCKING_C,
    FORM_NONBLOCKING_C,
    FORM_PERSISTENT_C,
    N_FORMS
};

extern const char *const form_names[N_FORMS + 1];

struct exchange {
    bool made;
    struct side send, recv;
};

/* Buffers, types and displacements for a step; to be filled before every call. */
void exchange_make(struct exchange *ex, const struct graph *graph, const struct step *step);
void exchange_free(struct exchange *ex);
/* Fills the buffers, makes the call, checks everything. Returns the hash of what was received,
 * which does not depend on the order of the neighbors. */
uint64_t exchange_run(struct exchange *ex, const struct graph *graph, const struct step *step);

/* The same in parts: fill; call, which starts nonblocking forms and makes persistent requests (to
 * be started); once the request is complete, check. */
void exchange_fill(struct exchange *ex, const struct graph *graph, const struct step *step);
void exchange_call(const struct exchange *ex, const struct graph *graph, const struct step *step,
                   enum form form, MPI_Request *request);
uint64_t exchange_check(const struct exchange *ex, const struct graph *graph,
                        const struct step *step);
/* Frees the datatypes, which MPI allows while a call is under way. */
void exchange_free_types(struct exchange *ex);

/* MPI's call (neighbors_form.c). */
void form_call(const struct side *send, const struct side *recv, enum op op, enum form form,
               MPI_Comm comm, MPI_Request *request);

#endif
