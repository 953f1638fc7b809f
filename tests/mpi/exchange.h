/*
 * The parts of the program `exchange`: patterns and the messages of an iteration
 * (exchange_pattern.c), buffers with one message end each (exchange_op.c), ways to complete
 * requests (exchange_complete.c), one exchange in one iteration (exchange_run.c), what does not
 * belong to a pattern (exchange_extra.c), sums between exchanges (exchange_sums.c), options and the
 * sequence of iterations (exchange.c).
 *
 * Every rank computes the whole list of an iteration's messages from keys, so both ends know what a
 * message is; what concerns one end only (types, spare room, orders) is drawn by that end.
 */
#ifndef TESTS_MPI_EXCHANGE_H
#define TESTS_MPI_EXCHANGE_H

#include "layout.h"

enum mode { MODE_STANDARD, MODE_SYNCHRONOUS, MODE_BUFFERED, MODE_READY, N_MODES };

enum how {
    HOW_REQUESTS, /* receives posted, sends started, all completed */
    HOW_SENDRECV, /* a chain of MPI_Sendrecv, one peer at a time */
    HOW_REPLACE,  /* the same by MPI_Sendrecv_replace */
    HOW_BLOCKING, /* MPI_Send and MPI_Recv in one order of all messages */
};

enum roles {
    ROLES_ALL,  /* every rank sends and receives */
    ROLES_ONE,  /* some ranks only send, some only receive */
    ROLES_SOME, /* in every second pattern some ranks do neither */
};

enum reduces {
    NO_REDUCTION,
    BEFORE_COMPLETION, /* an MPI_Allreduce between start and completion */
    AROUND_COMPLETION, /* on some ranks after the completion, as each draws */
    STARTED,           /* one or more MPI_Iallreduce, perhaps an MPI_Allreduce behind them */
};

enum persistence { NOT_PERSISTENT, STARTALL, START_EACH };

enum deviation {
    DEV_SILENT,   /* one pair of ranks does not exchange */
    DEV_DOUBLE,   /* one message is sent twice */
    DEV_LARGER,   /* one message is much larger */
    DEV_REORDER,  /* the messages go in another order */
    DEV_NEWPEER,  /* messages to ranks outside the pattern */
    DEV_SELF,     /* messages to the rank itself */
    DEV_PROCNULL, /* messages to and from MPI_PROC_NULL */
    DEV_WILDCARD, /* receives with MPI_ANY_SOURCE, MPI_ANY_TAG, or both */
    DEV_PROBE,    /* receives by probing */
    DEV_FREED,    /* MPI_Request_free on active sends */
    DEV_SLOW,     /* one rank is away for 200 ms */
    DEV_BARRIER,  /* an MPI_Barrier between start and completion */
    DEV_CANCEL,   /* a receive that matches nothing is cancelled */
    DEV_TRUNCATE, /* a receive is too small */
    DEV_COMMFREE, /* the communicator is freed and made again */
    DEV_DIE,      /* another pattern from now on */
    N_DEVIATIONS
};

extern const char *const deviation_names[N_DEVIATIONS + 1];

/* Completes n requests of which the first n_recvs are receives; fills all statuses. */
typedef void complete_fn(int n_recvs, int n, MPI_Request requests[], MPI_Status statuses[]);

complete_fn complete_waits, complete_waitall, complete_sends_first, complete_waitany,
    complete_waitsome, complete_test, complete_testall, complete_testany, complete_testsome,
    complete_mixed;

/* A way to exchange. */
struct shape {
    const char *name;
    enum how how;
    complete_fn *complete;
    int blocking_sends; /* 0: none, 1: all, 2: some */
    enum persistence persistence;
    enum roles roles;
    int n_patterns; /* interleaved; the last on a communicator of its own when there are four */
    bool sizes;     /* sizes change every time */
    bool types;     /* derived types, packed data */
    enum reduces reduces;
    bool exact;     /* only reductions whose result does not depend on the order */
    unsigned modes; /* of sends besides the standard one: bits 1 << MODE_... */
};

/* --- messages ---------------------------------------------------------------------------- */

struct message {
    int src, dst, tag; /* ranks of the communicator */
    int slot;          /* its number in the pattern, or -1 */
    struct base base;
    int unit;
    int n; /* instances of `unit` elements */
    enum mode mode;
    uint64_t key; /* of its content */
};

/* Messages in the order in which they are sent: those of a rank are in the order of the list. */
struct list {
    int n, n_allocated;
    struct message *items;
};

int message_size(const struct message *msg); /* bytes of data */

/* The pattern of a shape: a random directed graph, every rank the same. `number` tells apart the
 * patterns of one communicator: tags do not overlap. */
struct list pattern_make(const struct shape *shape, int n_ranks, int number, uint64_t key);
/* The messages of one iteration. `key` is the iteration's, `deviations` a set of 1 << DEV_... */
struct list pattern_messages(const struct list *pattern, const struct shape *shape, int n_ranks,
                             unsigned deviations, uint64_t key);
void list_free(struct list *list);

/* --- ends of messages -------------------------------------------------------------------- */

struct op {
    const struct message *msg; /* NULL: MPI_PROC_NULL, or a wildcard's before it is known */
    int peer, tag;             /* as given to MPI */
    bool packed;               /* count is in bytes, of MPI_PACKED */
    struct layout layout;
    int count;
    struct test_area area;
    unsigned char *origin;
    MPI_Request kept; /* persistent; or MPI_REQUEST_NULL */
};

/* `types` allows derived types and packed data. */
void op_make_send(struct op *op, const struct message *msg, bool types, struct test_rng *rng);
void op_make_recv(struct op *op, const struct message *msg, bool types, struct test_rng *rng);
/* A packed receive of at most `n_bytes`. */
void op_make_wild(struct op *op, int peer, int tag, int n_bytes);
void op_make_null(struct op *op);
void op_free(struct op *op);
/* Fills the buffer of a send with the message, of a receive with the area's pattern. */
void op_fill_send(struct op *op, MPI_Comm comm);
void op_fill_recv(struct op *op);
MPI_Datatype op_type(const struct op *op);
/* Makes op->kept. */
void op_init_send(struct op *op, enum mode mode, MPI_Comm comm);
void op_init_recv(struct op *op, MPI_Comm comm);
MPI_Request op_isend(const struct op *op, enum mode mode, MPI_Comm comm);
void op_send(const struct op *op, enum mode mode, MPI_Comm comm);
/* Checks a receive of op->msg; returns a hash of what came. */
uint64_t op_check(struct op *op, const MPI_Status *status, MPI_Comm comm);

/* --- exchanges --------------------------------------------------------------------------- */

struct exchange {
    const struct shape *shape;
    MPI_Comm comm;
    int rank, n_ranks;
    struct list pattern;
    struct op *kept; /* of the pattern's message i: [2i] its receive, [2i+1] its send */
};

/* One exchange in one iteration. */
struct round {
    struct exchange *ex;
    unsigned deviations;
    uint64_t key;
    struct test_rng own; /* differs from rank to rank */
    struct list list;
    int n_recvs, n; /* receives come first */
    struct op **ops;
    MPI_Request *requests;
    MPI_Status *statuses;
    bool *taken;      /* by message of the list: received */
    uint64_t reduced; /* hash of the result of a reduction in the midst */
};

void exchange_start(struct exchange *ex, const struct shape *shape, MPI_Comm comm, int number,
                    uint64_t key);
void exchange_end(struct exchange *ex);
/* Collective on ex->comm; returns a hash of what this rank received, whatever the order. */
uint64_t exchange_round(struct exchange *ex, unsigned deviations, uint64_t key);

/* The first message from `source` to this rank that is not taken and that a receive with `tag` (or
 * MPI_ANY_TAG) matches; marks it taken. NULL when there is none. */
const struct message *round_take(struct round *round, int source, int tag);
/* Receives everything by probes, completes the sends. */
uint64_t round_by_probes(struct round *round);
/* An MPI_Irecv that nothing will match, and its cancellation. */
MPI_Request extra_irecv(struct round *round, int *buffer);
void extra_cancel(MPI_Request *request);
/* A message too large for its receive; collective on the communicator. */
void extra_truncate(struct round *round);

/* Reductions of doubles, whose values depend on `hash`; in all iterations together of each kind and
 * size. Collective; nobody goes on before all have come. Returns `hash` with the sums' bits. */
uint64_t exchange_sums(MPI_Comm comm, int iteration, uint64_t hash);

/* A small reduction. */
struct reduction {
    uint64_t key;
    MPI_Op op, own; /* own: made for it, or MPI_OP_NULL */
    MPI_Datatype type;
    int n;
    size_t bytes;
    bool in_place;
    union {
        int integers[5];
        double doubles[40];
        struct {
            double value;
            int rank;
        } place;
    } mine, result;
    MPI_Request request;
};

/* An MPI_Allreduce, or when it does not wait an MPI_Iallreduce, of a kind and on values that depend
 * on `key`; exact: one whose result does not depend on the order. Collective. */
void exchange_reduction_start(struct reduction *reduction, MPI_Comm comm, uint64_t key, bool exact,
                              bool waits);
/* Completes it, by tests or waiting. Returns a hash of its bits. */
uint64_t exchange_reduction_end(struct reduction *reduction, bool tests);

#endif
