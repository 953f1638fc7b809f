/* Reductions that carry messages (embed.h). */
#include "embed.h"

#include "collective.h"
#include "comm_state.h"
#include "log.h"
#include "planner/hypercube.h"
#include "pt2pt_internal.h"

#include <stdlib.h>
#include <string.h>

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
    return count >= 0 && count <= CPL_EMBED_VECTOR && cpl_type_describe(type, &described) &&
           count * described.extent <= CPL_EMBED_VECTOR;
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

static bool is_among(MPI_Op op, const MPI_Op *ops, size_t n)
{
    for (size_t k = 0; k < n; k++)
        if (op == ops[k])
            return true;
    return false;
}

/* Of floating-point numbers even the larger of two may be either of two zeros. */
static bool is_exact(MPI_Op op, MPI_Datatype type)
{
    const MPI_Op always[] = {MPI_LAND, MPI_LOR,  MPI_LXOR,   MPI_BAND,
                             MPI_BOR,  MPI_BXOR, MPI_MAXLOC, MPI_MINLOC};
    const MPI_Op of_integers[] = {MPI_MAX, MPI_MIN, MPI_SUM, MPI_PROD};
    return is_among(op, always, sizeof always / sizeof *always) ||
           (is_among(op, of_integers, sizeof of_integers / sizeof *of_integers) &&
            is_integer(type));
}

static bool is_predefined(MPI_Op op)
{
    return is_exact(op, MPI_INT);
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

/* The steps, then two of the ranks that fold. */
static int n_slots(int size)
{
    return cpl_hypercube_of(size).n_steps + 2;
}

bool cpl_embed_init(struct cpl_comm_state *state)
{
    struct cpl_embed *embed = &state->pt2pt.embed;
    embed->n_slots = n_slots(state->size);
    embed->slot = calloc(2 * (size_t)embed->n_slots, sizeof *embed->slot);
    return embed->slot;
}

void cpl_embed_free(struct cpl_embed *embed)
{
    free(embed->slot);
    free(embed->cargo);
    *embed = (struct cpl_embed){.on = false};
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
        if (p->embed.used == 0)
            p->embed.since = PMPI_Wtime();
        memcpy(p->embed.cargo + p->embed.used, segment, bytes);
        p->embed.used += bytes;
    } else
        send_alone(p, segment);
    if (head.source != p->rides.rank && head.dest != p->rides.rank)
        p->rides.forwarded += head.ride_bytes;
}

void cpl_embed_release(struct cpl_comm_state *state, bool all)
{
    struct cpl_pt2pt *p = &state->pt2pt;
    struct cpl_embed *embed = &p->embed;
    if (embed->used == 0 || (!all && PMPI_Wtime() - embed->since < p->rides.hold_seconds))
        return;
    for (size_t at = 0; at < embed->used;) {
        struct cpl_segment head;
        memcpy(&head, embed->cargo + at, sizeof head);
        send_alone(p, embed->cargo + at);
        at += cpl_segment_bytes(&head);
    }
    embed->used = 0;
}

static struct cpl_embed_slot *slot_of(struct cpl_embed *embed, uint32_t number, int32_t step)
{
    return &embed->slot[(number % 2) * (uint32_t)embed->n_slots + (uint32_t)step];
}

static size_t padded(size_t bytes)
{
    return (bytes + 7) / 8 * 8;
}

/* On the way: the vector's bytes, padded, then the segments. In front of both: how many these are.
 */
void cpl_embed_arrived(struct cpl_comm_state *state, uint32_t number, int32_t step,
                       const unsigned char *bytes, size_t n)
{
    struct cpl_pt2pt *p = &state->pt2pt;
    struct cpl_embed_slot *slot = slot_of(&p->embed, number, step);
    uint64_t vector = 0;
    memcpy(&vector, bytes, sizeof vector);
    memcpy(slot->vector, bytes + sizeof vector, vector);
    slot->came = true;
    for (size_t at = sizeof vector + padded(vector); at < n;) {
        struct cpl_segment head;
        memcpy(&head, bytes + at, sizeof head);
        take_in(p, bytes + at);
        at += cpl_segment_bytes(&head);
    }
}

/* --- one reduction */

struct reduction {
    struct cpl_comm_state *state;
    const struct cpl_embed_key *key;
    struct cpl_hypercube cube;
    void *vector;
    size_t bytes; /* of it */
    bool failed;  /* no memory for a message */
};

/* The numbers of the two steps before and after the others, which come behind them. */
static int32_t fold_step(const struct reduction *r)
{
    return r->cube.n_steps;
}

static int32_t unfold_step(const struct reduction *r)
{
    return r->cube.n_steps + 1;
}

/* Sends the vector to a rank, and the cargo whose corner has `value` in the bits of `mask`. What
 * there is no room for goes on alone. */
static void send(struct reduction *r, int to, int32_t step, int mask, int value)
{
    struct cpl_pt2pt *p = &r->state->pt2pt;
    struct cpl_embed *embed = &p->embed;
    struct cpl_flight *flight = cpl_rides_open(&p->rides);
    uint64_t bytes = r->bytes;
    size_t kept = 0;
    if (!flight || !cpl_flight_make_room(flight, sizeof bytes + padded(r->bytes))) {
        if (flight)
            cpl_flights_spare(&p->rides.flights, flight);
        r->failed = true;
        return;
    }
    memcpy(flight->bytes + flight->used, &bytes, sizeof bytes);
    if (r->bytes > 0)
        memcpy(flight->bytes + flight->used + sizeof bytes, r->vector, r->bytes);
    flight->used += sizeof bytes + padded(r->bytes);
    for (size_t at = 0; at < embed->used;) {
        struct cpl_segment head;
        unsigned char *segment = embed->cargo + at, *place = NULL;
        memcpy(&head, segment, sizeof head);
        size_t more = cpl_segment_bytes(&head);
        at += more;
        if ((cpl_hypercube_corner(&r->cube, head.dest) & mask) != value) {
            memmove(embed->cargo + kept, segment, more);
            kept += more;
            continue;
        }
        if (flight->used + more <= CPL_RIDE_BYTES)
            place = cpl_flight_append(flight, &head);
        if (place)
            memcpy(place, segment + sizeof head, head.ride_bytes);
        else
            send_alone(p, segment);
    }
    embed->used = kept;
    embed->n_sends++;
    cpl_rides_send_reduction(&p->rides, flight, to, embed->number, step);
}

/* Waits, while polling, for the message of a step. Returns its vector. */
static unsigned char *receive(struct reduction *r, int32_t step)
{
    struct cpl_embed *embed = &r->state->pt2pt.embed;
    struct cpl_embed_slot *slot = slot_of(embed, embed->number, step);
    while (!slot->came)
        cpl_pt2pt_poll();
    slot->came = false;
    return slot->vector;
}

/* Combines another rank's vector with this one's, in the order of ranks. */
static void combine(struct reduction *r, unsigned char *theirs, bool theirs_first)
{
    const struct cpl_embed_key *key = r->key;
    if (r->bytes == 0)
        return;
    if (theirs_first) {
        PMPI_Reduce_local_c(theirs, r->vector, key->count, key->type, key->op);
        return;
    }
    PMPI_Reduce_local_c(r->vector, theirs, key->count, key->type, key->op);
    memcpy(r->vector, theirs, r->bytes);
}

/* All but the even ones of the ranks that fold. */
static void exchange(struct reduction *r)
{
    int rank = r->state->rank, mine = cpl_hypercube_corner(&r->cube, rank);
    for (int k = 0; k < r->cube.n_steps; k++) {
        int bit = 1 << k, partner = cpl_hypercube_rank(&r->cube, mine ^ bit);
        send(r, partner, k, bit, (mine ^ bit) & bit);
        combine(r, receive(r, k), partner < rank);
    }
}

static void reduce(struct reduction *r)
{
    int rank = r->state->rank, all = (1 << r->cube.n_steps) - 1;
    bool folds = rank < 2 * r->cube.n_folded;
    if (folds && rank % 2 == 0) {
        send(r, rank + 1, fold_step(r), 0, 0);
        unsigned char *result = receive(r, unfold_step(r));
        if (r->bytes > 0)
            memcpy(r->vector, result, r->bytes);
        return;
    }
    if (folds)
        combine(r, receive(r, fold_step(r)), true);
    exchange(r);
    if (folds)
        send(r, rank - 1, unfold_step(r), all, cpl_hypercube_corner(&r->cube, rank));
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
                          .key = key,
                          .cube = cpl_hypercube_of(state->size),
                          .vector = vector,
                          .bytes = (size_t)(key->count * key->extent)};
    if (r.bytes > 0 && input != vector)
        memcpy(vector, input, r.bytes);
    take_batch(p);
    cpl_pt2pt_batch_embedded(p);
    reduce(&r);
    p->embed.number++;
    p->embed.n_reductions++;
    if (r.failed)
        PMPI_Comm_call_errhandler(state->comm, MPI_ERR_NO_MEM);
    return r.failed ? MPI_ERR_NO_MEM : MPI_SUCCESS;
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
    unsigned char vector[CPL_EMBED_VECTOR] __attribute__((aligned(16)));
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
