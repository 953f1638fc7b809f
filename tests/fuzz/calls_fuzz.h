/* What the parts of calls_fuzz.c share: random numbers, layouts of buffers in memory, operations
 * under way, and the kinds of events. calls_fuzz.c says what the program is. */
#ifndef CALLS_FUZZ_H
#define CALLS_FUZZ_H

#include "../mpi3.h"

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Kinds of events and of their variations, each with a name on the command line. */
#define CALLS_KINDS(X)                                                                             \
    X(blocking)                                                                                    \
    X(sync)                                                                                        \
    X(buffered)                                                                                    \
    X(ready)                                                                                       \
    X(persistent)                                                                                  \
    X(free)                                                                                        \
    X(freepersistent)                                                                              \
    X(late)                                                                                        \
    X(probe)                                                                                       \
    X(types)                                                                                       \
    X(bottom)                                                                                      \
    X(large)                                                                                       \
    X(wildcard)                                                                                    \
    X(carry)                                                                                       \
    X(cross)                                                                                       \
    X(skip)                                                                                        \
    X(extra)                                                                                       \
    X(order)                                                                                       \
    X(sizes)                                                                                       \
    X(completions)                                                                                 \
    X(middle)                                                                                      \
    X(messages)                                                                                    \
    X(sendrecv)                                                                                    \
    X(isendrecv)                                                                                   \
    X(cancel)                                                                                      \
    X(procnull)                                                                                    \
    X(truncate)                                                                                    \
    X(badargs)                                                                                     \
    X(collective)                                                                                  \
    X(subcollective)                                                                               \
    X(icollective)                                                                                 \
    X(neighbor)                                                                                    \
    X(neighborw)                                                                                   \
    X(ineighbor)                                                                                   \
    X(alltoallv)                                                                                   \
    X(dup)                                                                                         \
    X(freepending)                                                                                 \
    X(reversed)                                                                                    \
    X(split)                                                                                       \
    X(group)                                                                                       \
    X(intercomm)                                                                                   \
    X(window)                                                                                      \
    X(file)                                                                                        \
    X(grequest)                                                                                    \
    X(attribute)                                                                                   \
    X(compute)                                                                                     \
    X(last)

#define CALLS_ENUM(name) KIND_##name,
enum kind { CALLS_KINDS(CALLS_ENUM) N_KINDS };

/* --- random numbers: the same on all ranks where the seed is */
struct draw {
    uint64_t state;
};

uint64_t mix(uint64_t value);
uint64_t mix3(uint64_t a, uint64_t b, uint64_t c);
uint64_t hash_bytes(const void *bytes, size_t n);
int below(struct draw *draw, int n); /* 0 .. n - 1 */
bool chance(struct draw *draw, int percent);
void fill_bytes(uint64_t key, uint8_t *bytes, size_t n); /* the payload of a message */

/* --- layouts: where the bytes of a message lie in memory, in the order of the type map */
#define MAX_BLOCKS 16

struct layout {
    uint8_t *memory; /* owned */
    size_t n_memory;
    int n_blocks;
    size_t offset[MAX_BLOCKS], length[MAX_BLOCKS]; /* of the bytes, from memory */
    MPI_Datatype type, base;
    int count;
    void *buffer;
    bool owns_type;
};

enum base { BASE_BYTE, BASE_INT, BASE_DOUBLE, N_BASES };
int base_size(enum base base);

/* A layout of size bytes (a multiple of the base's), all memory filled with LAYOUT_FILL. */
#define LAYOUT_FILL 0xa5
extern bool layout_has_bottom;
void layout_make(struct layout *layout, int size, enum base base, struct draw *draw);
void layout_put(struct layout *layout, const uint8_t *bytes, size_t n);
void layout_get(const struct layout *layout, uint8_t *bytes, size_t n);
/* Whether nothing was written but the first n bytes of the layout. */
bool layout_is_intact(const struct layout *layout, size_t n);
void layout_free_type(struct layout *layout);
void layout_free(struct layout *layout);

/* --- messages */
enum send_kind { SEND_I, SEND_IS, SEND_IB, SEND_IR, SEND_PLAIN, SEND_S, SEND_B, SEND_R, N_SENDS };
enum recv_kind {
    RECV_EARLY, /* posted before anything of the event is sent; the others after all was sent */
    RECV_PLAIN,
    RECV_LATE_I,
    RECV_PROBE,
    RECV_IPROBE,
    RECV_MPROBE,
    RECV_IMRECV,
    RECV_IMPROBE,
    N_RECVS
};

struct message {
    int src, dst, tag, size; /* ranks of the event's communicator; or MPI_PROC_NULL */
    enum base base;
    enum send_kind send;
    enum recv_kind recv;
    int capacity; /* bytes the receiver has room for; less than size: truncated */
    bool any_source, any_tag;
    bool has_no_status; /* not set by MPICH 4.0.2: MPI_Isendrecv, MPI_Irecv of MPI_PROC_NULL */
    int number;         /* of the exchange's messages, -1: not one of them */
    uint64_t key;       /* of the payload */
};

/* --- operations under way */
enum op_kind { OP_SEND, OP_RECV, OP_COLLECTIVE, OP_GREQUEST, OP_CANCELLED };

struct op {
    MPI_Request request;
    enum op_kind kind;
    bool is_persistent, is_active, is_needed, is_in_pool;
    struct message message;
    int iteration;
    uint32_t event;
    uint32_t ready;               /* the event after which waiting for it is safe */
    struct layout layout, second; /* second: what a sendrecv sends */
    void *in, *out, *more;        /* of collectives, owned */
    size_t n_out;
    struct op *next; /* of those that were freed */
};

#define MAX_POOL        2048
#define MAX_COMMS       4
#define MAX_GRAPHS      2
#define MAX_CROSS       32
#define MAX_ITERATIONS  1000
#define MAX_EXCHANGES   4
#define FIRST_NOISE_TAG 1000
#define BSEND_BYTES     (4 << 20)

struct graph {
    MPI_Comm comm;
    int n_in, n_out, *in, *out;
};

/* A message that is sent in one event and received in another. */
struct cross {
    struct message message;
    uint32_t due;
    bool is_sent_first;
};

struct exchange {
    int comm;
    int n;
    struct message *messages;
    bool wild;
    struct op **persistent_send, **persistent_recv; /* by message */
    uint64_t persistent_ranks;
    bool waits_for_sends_first;
    int reduces_inside; /* the collective between sending and waiting; 0: none */
};

struct run {
    uint64_t seed;
    int rank, n_ranks;
    int iteration, n_iterations;
    uint32_t event;
    const char *where; /* for the alarm */
    uint64_t kinds;
    struct draw loose; /* decisions that nothing observable depends on; not alike on the ranks */
    uint64_t *hash;    /* of each iteration */
    int n_wrong;
    MPI_Comm comm[MAX_COMMS]; /* of all ranks; [1]: messages between events, no MPI_ANY_TAG */
    bool is_own[MAX_COMMS];
    MPI_Comm sub[2]; /* parts of the world that the rank is in */
    int sub_color[2];
    struct graph graph[MAX_GRAPHS];
    struct exchange exchange[MAX_EXCHANGES];
    int n_exchanges;
    int usual_collective, usual_count;
    bool has_neighbors;  /* a neighborhood collective in each iteration */
    bool is_synchronous; /* the collective of each iteration is a barrier */
    int wildcards_from;  /* iteration */
    int noise_percent, quiet_until;
    struct op *pool[MAX_POOL];
    int n_pool;
    struct op *graveyard; /* freed while active: their buffers live on */
    struct cross cross[MAX_CROSS];
    int n_cross;
    size_t n_buffered; /* bytes of buffered sends since the buffer was attached */
    void *bsend_buffer;
    int n_attributes; /* callbacks so far */
    int keyval;
};

/* The event's messages on a communicator, and how it goes. */
struct event {
    MPI_Comm comm;
    int me, n_ranks;
    int n;
    struct message *messages;
    struct exchange *exchange;                          /* NULL: none that recurs */
    bool has_barrier;                                   /* between posting receives and sending */
    void (*middle)(struct run *run, struct draw *draw); /* after sending; or NULL */
    struct draw draw;                                   /* alike on all ranks */
};

bool is_on(const struct run *run, enum kind kind);
/* Draws, whether or not the kind is switched off. */
bool chance_of(const struct run *run, enum kind kind, struct draw *draw, int percent);
struct draw event_draw(const struct run *run, uint64_t what);
void *get_memory(size_t n); /* zeroed, never NULL */
/* Takes part in the iteration's hash; the order does not matter. */
void note(struct run *run, int iteration, uint64_t value);
void wrong(struct run *run, const struct op *op, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void must(struct run *run, int code, const char *call);
#define MUST(run, call) must(run, call, #call)
int class_of(int code);

/* calls_complete.c */
struct op *op_new(struct run *run, enum op_kind kind);
void op_add(struct run *run, struct op *op);
void op_finish(struct run *run, struct op *op, const MPI_Status *status, int code);
void op_bury(struct run *run, struct op *op); /* its request was freed while active */
void op_release(struct op *op);
void check_received(struct run *run, struct op *op, const MPI_Status *status, int code);
void complete_needed(struct run *run); /* until no operation of the pool is needed */
void complete_all(struct run *run);    /* all that may be waited for */
void complete_some(struct run *run);   /* perhaps some of them */
bool needs_status(const struct op *op);

/* calls_exchange.c */
void exchange_make(struct run *run, int number);
void exchange_run(struct run *run, int number, struct draw *draw);
void exchange_free(struct run *run, struct exchange *exchange);
void run_messages(struct run *run, struct event *event);
void send_one(struct run *run, struct event *e, const struct message *m);
void post_receive(struct run *run, struct event *e, const struct message *m);
void receive_late(struct run *run, struct event *e, const struct message *m);
void free_persistent(struct run *run, struct exchange *exchange);

/* calls_messages.c */
void random_messages(struct run *run, struct draw *draw, int n, int comm, int tag);
void sendrecv_event(struct run *run, struct draw *draw);
void cancel_event(struct run *run, struct draw *draw);
void procnull_event(struct run *run, struct draw *draw);
void badargs_event(struct run *run, struct draw *draw);
void cross_event(struct run *run, struct draw *draw);
void cross_due(struct run *run, bool all);
void messages_event(struct run *run, struct draw *draw);
void truncate_event(struct run *run, struct draw *draw);

/* calls_collectives.c */
void collective_on(struct run *run, MPI_Comm comm, int which, int count, uint64_t key);
void iteration_collective(struct run *run);
void collective_event(struct run *run, struct draw *draw);
void subcollective_event(struct run *run, struct draw *draw);
void icollective_event(struct run *run, struct draw *draw);
void neighbor_event(struct run *run, struct draw *draw);
void ineighbor_event(struct run *run, struct draw *draw);
void alltoallv_event(struct run *run, struct draw *draw);
void make_graphs(struct run *run);
void free_graphs(struct run *run);

/* calls_others.c */
void compute_event(struct run *run, struct draw *draw);
void window_event(struct run *run, struct draw *draw);
void file_event(struct run *run, struct draw *draw);
void group_event(struct run *run, struct draw *draw);
void intercomm_event(struct run *run, struct draw *draw);
void grequest_event(struct run *run, struct draw *draw);
void attribute_event(struct run *run, struct draw *draw);
void dup_event(struct run *run, struct draw *draw);
void split_event(struct run *run, struct draw *draw);
void make_comms(struct run *run);
void free_comms(struct run *run);
void (*some_ranks_action(struct run *run, struct draw *draw))(struct run *, struct draw *);

#endif
