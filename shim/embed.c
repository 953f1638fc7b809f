/* Reductions that carry messages (embed.h). */
#include "embed.h"

#include "collective.h"
#include "comm_state.h"
#include "log.h"
#include "planner/hypercube.h"
#include "pt2pt_internal.h"

#include <stdlib.h>
#include <string.h>

#define EMBED_TAG      1001 /* beside those of rides and straight payloads */
#define MOST_VECTOR    1024 /* bytes of a small reduction */
#define MESSAGE_BYTES  (48 << 10)
#define TIMES_COMPARED 8 /* with MPI's own result before ours is taken for it */

enum verdict {
    REFUSED,  /* MPI's */
    NEW,      /* MPI's for once: it checks the arguments */
    EXACT,    /* the same result in any order */
    TRUSTED,  /* the user says so, or the bits were the same each time */
    COMPARING /* carried out by both, and compared */
};

bool cpl_embed_is_small(int64_t count, MPI_Datatype type)
{
    struct cpl_type described = {.handle = type};
    return count >= 0 && count <= MOST_VECTOR && cpl_type_describe(type, &described) &&
           count * described.extent <= MOST_VECTOR;
}

static bool is_integer(MPI_Datatype type)
{
    const MPI_Datatype integers[] = {
        MPI_INT,           MPI_LONG,           MPI_SHORT,     MPI_UNSIGNED,
        MPI_UNSIGNED_LONG, MPI_UNSIGNED_SHORT, MPI_LONG_LONG, MPI_UNSIGNED_LONG_LONG,
        MPI_SIGNED_CHAR,   MPI_UNSIGNED_CHAR,  MPI_BYTE,      MPI_INT8_T,
        MPI_INT16_T,       MPI_INT32_T,        MPI_INT64_T,   MPI_UINT8_T,
        MPI_UINT16_T,      MPI_UINT32_T,       MPI_UINT64_T,  MPI_C_BOOL,
        MPI_AINT,          MPI_OFFSET,         MPI_COUNT,     MPI_INTEGER,
        MPI_LOGICAL};
    for (size_t k = 0; k < sizeof integers / sizeof *integers; k++)
        if (type == integers[k])
            return true;
    return false;
}

static bool is_exact(MPI_Op op, MPI_Datatype type)
{
    const MPI_Op always[] = {MPI_MAX,  MPI_MIN, MPI_LAND, MPI_LOR,    MPI_LXOR,
                             MPI_BAND, MPI_BOR, MPI_BXOR, MPI_MAXLOC, MPI_MINLOC};
    for (size_t k = 0; k < sizeof always / sizeof *always; k++)
        if (op == always[k])
            return true;
    return (op == MPI_SUM || op == MPI_PROD) && is_integer(type);
}

static bool is_predefined(MPI_Op op)
{
    return op == MPI_SUM || op == MPI_PROD || is_exact(op, MPI_INT);
}

static bool is_commutative(MPI_Op op)
{
    int flag = 0;
    return PMPI_Op_commutative(op, &flag) == MPI_SUCCESS && flag;
}

static bool is_named(MPI_Datatype type)
{
    int n_integers, n_addresses, n_types, combiner = MPI_COMBINER_DUP;
    return PMPI_Type_get_envelope(type, &n_integers, &n_addresses, &n_types, &combiner) ==
               MPI_SUCCESS &&
           combiner == MPI_COMBINER_NAMED;
}

/* How a kind of reduction that was not met before is to be treated: alike on all ranks. A function
 * of the user's may be another one the next time, under the same handle: it is not compared. */
static enum verdict judge(MPI_Op op, MPI_Datatype type)
{
    bool all = cpl_context.settings.embed == CPL_EMBED_ALL;
    if (!is_named(type))
        return REFUSED;
    if (!is_predefined(op))
        return all && is_commutative(op) ? TRUSTED : REFUSED;
    if (is_exact(op, type))
        return EXACT;
    return all ? TRUSTED : COMPARING;
}

/* What is known of a kind of reduction; NULL: too many kinds. The same on all ranks, which make the
 * same reductions. */
static struct cpl_embed_key *find_key(struct cpl_embed *embed, MPI_Op op, MPI_Datatype type,
                                      int64_t count)
{
    struct cpl_type described;
    for (int k = 0; k < embed->n_keys; k++)
        if (embed->key[k].op == op && embed->key[k].type == type && embed->key[k].count == count)
            return &embed->key[k];
    if (embed->n_keys == CPL_EMBED_KEYS || !cpl_type_describe(type, &described))
        return NULL;
    struct cpl_embed_key *key = &embed->key[embed->n_keys++];
    *key = (struct cpl_embed_key){.op = op,
                                  .type = type,
                                  .count = count,
                                  .extent = described.extent,
                                  .verdict = cpl_embed_is_small(count, type) ? NEW : REFUSED};
    return key;
}

bool cpl_embed_init(struct cpl_embed *embed)
{
    embed->out = malloc(MESSAGE_BYTES);
    embed->in = malloc(MESSAGE_BYTES);
    return embed->out && embed->in;
}

void cpl_embed_free(struct cpl_embed *embed)
{
    free(embed->out);
    free(embed->in);
    free(embed->cargo);
    embed->out = embed->in = embed->cargo = NULL;
    embed->on = false;
    embed->used = embed->room = 0;
}

/* --- cargo */

static bool reserve(struct cpl_embed *embed, size_t bytes)
{
    if (embed->used + bytes <= embed->room)
        return true;
    size_t room = 2 * (embed->used + bytes) + 4096;
    unsigned char *cargo = realloc(embed->cargo, room);
    if (!cargo)
        return false;
    embed->cargo = cargo;
    embed->room = room;
    return true;
}

static void send_alone(struct cpl_pt2pt *p, const unsigned char *segment)
{
    struct cpl_segment head;
    memcpy(&head, segment, sizeof head);
    cpl_rides_send(&p->rides, head.dest, segment, cpl_segment_bytes(&head), 1);
    p->embed.n_late++;
}

/* A segment has come, or begins here. */
static void take_in(struct cpl_pt2pt *p, const unsigned char *segment)
{
    struct cpl_segment head;
    memcpy(&head, segment, sizeof head);
    size_t bytes = cpl_segment_bytes(&head);
    if (head.dest == p->rides.rank)
        p->rides.deliver(p->rides.context, &head, segment + sizeof head);
    else if (reserve(&p->embed, bytes)) {
        memcpy(p->embed.cargo + p->embed.used, segment, bytes);
        p->embed.used += bytes;
    } else
        send_alone(p, segment);
    if (head.source != p->rides.rank && head.dest != p->rides.rank)
        p->rides.forwarded += head.ride_bytes;
}

/* What a rank keeps too long may be what others wait for before they come. */
static void give_up_cargo(struct cpl_pt2pt *p)
{
    for (size_t at = 0; at < p->embed.used;) {
        struct cpl_segment head;
        memcpy(&head, p->embed.cargo + at, sizeof head);
        send_alone(p, p->embed.cargo + at);
        at += cpl_segment_bytes(&head);
    }
    p->embed.used = 0;
}

/* --- one reduction */

struct reduction {
    struct cpl_comm_state *state;
    struct cpl_hypercube cube;
    int64_t count;
    MPI_Datatype type;
    MPI_Op op;
    size_t vector;   /* bytes */
    double hold_end; /* when cargo has been held long enough; seconds */
    int result;
};

static size_t padded(size_t bytes)
{
    return (bytes + 7) / 8 * 8;
}

/* Fills the message to a rank: the vector, and the cargo that `goes` by its virtual rank. Returns
 * its bytes. What there is no room for goes on alone. */
static size_t load(struct reduction *r, const void *vector, int mask, int value)
{
    struct cpl_pt2pt *p = &r->state->pt2pt;
    struct cpl_embed *embed = &p->embed;
    size_t used = padded(r->vector), kept = 0;
    if (r->vector > 0)
        memcpy(embed->out, vector, r->vector);
    for (size_t at = 0; at < embed->used;) {
        struct cpl_segment head;
        memcpy(&head, embed->cargo + at, sizeof head);
        size_t bytes = cpl_segment_bytes(&head);
        unsigned char *segment = embed->cargo + at;
        at += bytes;
        if ((cpl_hypercube_corner(&r->cube, head.dest) & mask) != value) {
            memmove(embed->cargo + kept, segment, bytes);
            kept += bytes;
        } else if (used + bytes > MESSAGE_BYTES) {
            send_alone(p, segment);
        } else {
            memcpy(embed->out + used, segment, bytes);
            used += bytes;
        }
    }
    embed->used = kept;
    return used;
}

/* Waits while polling; cargo that has been held too long goes on alone. */
static void wait(struct reduction *r, MPI_Request *request, MPI_Status *status)
{
    struct cpl_pt2pt *p = &r->state->pt2pt;
    for (;;) {
        int flag = 0, code = PMPI_Test(request, &flag, status);
        if (code != MPI_SUCCESS)
            r->result = code;
        if (code != MPI_SUCCESS || flag)
            return;
        cpl_pt2pt_poll();
        if (p->embed.used > 0 && PMPI_Wtime() > r->hold_end)
            give_up_cargo(p);
    }
}

static void start_send(struct reduction *r, size_t bytes, int to, MPI_Request *request)
{
    r->state->pt2pt.embed.n_sends++;
    PMPI_Isend(r->state->pt2pt.embed.out, (int)bytes, MPI_BYTE, to, EMBED_TAG,
               r->state->private_comm, request);
}

static void start_receive(struct reduction *r, int from, MPI_Request *request)
{
    PMPI_Irecv(r->state->pt2pt.embed.in, MESSAGE_BYTES, MPI_BYTE, from, EMBED_TAG,
               r->state->private_comm, request);
}

/* Takes in the cargo of the message that has come. */
static void unload(struct reduction *r, const MPI_Status *status)
{
    struct cpl_pt2pt *p = &r->state->pt2pt;
    int n = 0;
    PMPI_Get_count(status, MPI_BYTE, &n);
    for (size_t at = padded(r->vector); at < (size_t)n;) {
        struct cpl_segment head;
        memcpy(&head, p->embed.in + at, sizeof head);
        take_in(p, p->embed.in + at);
        at += cpl_segment_bytes(&head);
    }
}

/* Combines the vector that has come with this rank's, in the order of ranks. */
static void combine(struct reduction *r, void *vector, bool theirs_first)
{
    unsigned char *theirs = r->state->pt2pt.embed.in;
    if (r->count == 0)
        return;
    if (theirs_first) {
        PMPI_Reduce_local_c(theirs, vector, r->count, r->type, r->op);
        return;
    }
    PMPI_Reduce_local_c(vector, theirs, r->count, r->type, r->op);
    memcpy(vector, theirs, r->vector);
}

static void send_to(struct reduction *r, const void *vector, int to, int mask, int value)
{
    MPI_Request request;
    MPI_Status status;
    start_send(r, load(r, vector, mask, value), to, &request);
    wait(r, &request, &status);
}

static void receive_from(struct reduction *r, int from)
{
    MPI_Request request;
    MPI_Status status;
    start_receive(r, from, &request);
    wait(r, &request, &status);
    unload(r, &status);
}

/* All but the even ones of the ranks that fold. */
static void exchange(struct reduction *r, void *vector)
{
    int rank = r->state->rank, mine = cpl_hypercube_corner(&r->cube, rank);
    for (int k = 0; k < r->cube.n_steps; k++) {
        MPI_Request sending, receiving;
        MPI_Status status, ignored;
        int bit = 1 << k, partner = cpl_hypercube_rank(&r->cube, mine ^ bit);
        start_receive(r, partner, &receiving);
        start_send(r, load(r, vector, bit, (mine ^ bit) & bit), partner, &sending);
        wait(r, &receiving, &status);
        unload(r, &status);
        wait(r, &sending, &ignored);
        combine(r, vector, partner < rank);
    }
}

static void reduce(struct reduction *r, void *vector)
{
    int rank = r->state->rank, all = (1 << r->cube.n_steps) - 1;
    bool folds = rank < 2 * r->cube.n_folded;
    if (folds && rank % 2 == 0) {
        send_to(r, vector, rank + 1, 0, 0);
        receive_from(r, rank + 1);
        if (r->vector > 0)
            memcpy(vector, r->state->pt2pt.embed.in, r->vector);
        return;
    }
    if (folds) {
        receive_from(r, rank - 1);
        combine(r, vector, true);
    }
    exchange(r, vector);
    if (folds)
        send_to(r, vector, rank - 1, all, cpl_hypercube_corner(&r->cube, rank));
}

/* The batch becomes the cargo. */
static void take_batch(struct cpl_pt2pt *p)
{
    for (size_t at = 0; at < p->batch.used;) {
        struct cpl_segment head;
        memcpy(&head, p->batch.segments + at, sizeof head);
        take_in(p, p->batch.segments + at);
        at += cpl_segment_bytes(&head);
        p->embed.n_segments++;
    }
}

/* Returns MPI's error. */
static int carry_out(struct cpl_comm_state *state, const struct cpl_embed_key *key,
                     const void *input, void *vector)
{
    struct cpl_pt2pt *p = &state->pt2pt;
    struct reduction r = {.state = state,
                          .cube = cpl_hypercube_of(state->size),
                          .count = key->count,
                          .type = key->type,
                          .op = key->op,
                          .vector = (size_t)(key->count * key->extent),
                          .hold_end = PMPI_Wtime() + p->rides.hold_seconds};
    if (r.vector > 0 && input != vector)
        memcpy(vector, input, r.vector);
    take_batch(p);
    cpl_pt2pt_batch_embedded(p);
    reduce(&r, vector);
    p->embed.n_reductions++;
    if (r.result != MPI_SUCCESS)
        PMPI_Comm_call_errhandler(state->comm, r.result);
    return r.result;
}

static int by_mpi(const struct cpl_comm_state *state, const struct cpl_embed_key *key,
                  const void *send, void *recv)
{
    return cpl_collective_Allreduce_c(send, recv, key->count, key->type, key->op, state->comm);
}

/* Ours beside MPI's, whose result it is. After so many with the same bits on all ranks ours are
 * taken for MPI's. */
static int compare(struct cpl_comm_state *state, struct cpl_embed_key *key, const void *send,
                   void *recv)
{
    unsigned char vector[MOST_VECTOR] __attribute__((aligned(16)));
    size_t bytes = (size_t)(key->count * key->extent);
    int mine = carry_out(state, key, send == MPI_IN_PLACE ? recv : send, vector);
    int result = by_mpi(state, key, send, recv);
    key->n_equal += mine == MPI_SUCCESS && result == MPI_SUCCESS &&
                    (bytes == 0 || memcmp(vector, recv, bytes) == 0);
    if (++key->n_compared < TIMES_COMPARED)
        return result;
    bool trusted = cpl_agree_all(state->private_comm, key->n_equal == TIMES_COMPARED);
    key->verdict = trusted ? TRUSTED : REFUSED;
    if (state->rank == 0)
        cpl_log(CPL_LOG_INFO, "embed", "%d ranks, reductions of %lld elements: %s", state->size,
                (long long)key->count,
                trusted ? "the bits are MPI's; they carry messages from now on"
                        : "MPI adds up in another order; left to MPI (CARPOOL_EMBED=all does not)");
    return result;
}

bool cpl_embed_takes(struct cpl_comm_state *state, const void *send, const void *recv,
                     int64_t count, MPI_Datatype type, MPI_Op op)
{
    if (count > 0 && (!send || !recv || send == recv))
        return false; /* MPI refuses it */
    const struct cpl_embed_key *key = find_key(&state->pt2pt.embed, op, type, count);
    return key && key->verdict != REFUSED;
}

int cpl_embed_allreduce(struct cpl_comm_state *state, const void *send, void *recv, int64_t count,
                        MPI_Datatype type, MPI_Op op)
{
    struct cpl_embed_key *key = find_key(&state->pt2pt.embed, op, type, count);
    if (key->verdict == COMPARING)
        return compare(state, key, send, recv);
    if (key->verdict != NEW)
        return carry_out(state, key, send == MPI_IN_PLACE ? recv : send, recv);
    int result = by_mpi(state, key, send, recv);
    key->verdict = result == MPI_SUCCESS ? (int)judge(op, type) : REFUSED;
    return result;
}
