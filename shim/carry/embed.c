/* Reductions that carry messages (embed.h). */
#include "shim/carry/embed.h"
#include "shim/meet/agree.h"

#include "planner/grid/hypercube.h"
#include "shim/base/aside.h"
#include "shim/base/log.h"
#include "shim/carry/line.h"
#include "shim/carry/requests.h"
#include "shim/state/comm_state.h"
#include "shim/state/hooks.h"
#include "shim/state/memory.h"
#include "shim/wait/assembly.h"
#include "shim/wait/collective.h"
#include "shim/wait/progress.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* Steps: before and after the exchanges of corners, for ranks that fold; then one for each bit. */
enum { NO_STEP = -1, FOLD, UNFOLD, FIRST_STEP };

/* A reduction from its start to its end on this rank. */
struct cpl_reduction {
    struct cpl_reduction *next;
    struct cpl_comm_state *state;
    struct cpl_embed_kind *kind;
    struct cpl_hypercube cube;
    void *vector;   /* the program's, or below */
    size_t bytes;   /* of it */
    bool runs;      /* it is the first one pending, and its messages are being exchanged */
    int32_t awaits; /* the step whose message is to come; NO_STEP: the reduction is over */
    bool over;      /* tells the blocking call that made it that it is over */
    struct cpl_request *request; /* request of a nonblocking reduction; NULL: it blocks */
};

bool cpl_embed_init(struct cpl_comm_state *state)
{
    struct cpl_embed *embed = &state->line->embed;
    embed->n_slots = FIRST_STEP + cpl_hypercube_of(state->size).n_steps;
    embed->slot = calloc(2 * (size_t)embed->n_slots, sizeof *embed->slot);
    return embed->slot;
}

void cpl_embed_free(struct cpl_embed *embed)
{
    free(embed->points);
    free(embed->slot);
    free(embed->piggyback.bytes);
    *embed = (struct cpl_embed){.on = false};
}

/* --- segments that are piggybacked */

/* Returns the segment's bytes. */
static size_t send_alone(struct cpl_line *line, const unsigned char *segment)
{
    struct cpl_segment head;
    memcpy(&head, segment, sizeof head);
    cpl_combined_send(&line->combined, segment, cpl_segment_bytes(&head));
    line->embed.n_late++;
    return cpl_segment_bytes(&head);
}

size_t cpl_embed_take(struct cpl_line *line, const unsigned char *segment)
{
    struct cpl_send_buffer *held = &line->embed.piggyback;
    struct cpl_segment head;
    memcpy(&head, segment, sizeof head);
    size_t bytes = cpl_segment_bytes(&head);
    if (head.dest == line->combined.rank) {
        line->combined.deliver(line->combined.context, &head, segment + sizeof head);
        return bytes;
    }
    if (held->used == 0)
        line->embed.since = PMPI_Wtime();
    cpl_send_buffer_make_room(held, bytes);
    memcpy(held->bytes + held->used, segment, bytes);
    held->used += bytes;
    if (head.source != line->combined.rank)
        line->embed.forwarded += head.payload_bytes;
    return bytes;
}

void cpl_embed_release(struct cpl_comm_state *state, bool all)
{
    struct cpl_line *line = state->line;
    struct cpl_send_buffer *held = &line->embed.piggyback;
    if (held->used == 0 || (!all && PMPI_Wtime() - line->embed.since < line->combined.hold_seconds))
        return;
    for (size_t at = 0; at < held->used;)
        at += send_alone(line, held->bytes + at);
    held->used = 0;
}

static struct cpl_embed_slot *slot_of(struct cpl_embed *embed, uint32_t number, int32_t step)
{
    return &embed->slot[(number % 2) * (uint32_t)embed->n_slots + (uint32_t)step];
}

static size_t padded(size_t bytes)
{
    return (bytes + 7) / 8 * 8;
}

/* A message on the wire: the number of the vector's bytes, the vector, padded, the segments. */
void cpl_embed_arrived(void *state, uint32_t number, int32_t step, const unsigned char *bytes,
                       size_t n)
{
    struct cpl_line *line = ((struct cpl_comm_state *)state)->line;
    struct cpl_embed_slot *slot = slot_of(&line->embed, number, step);
    uint64_t vector = 0;
    memcpy(&vector, bytes, sizeof vector);
    memcpy(slot->vector, bytes + sizeof vector, vector);
    slot->came = true;
    for (size_t at = sizeof vector + padded(vector); at < n;)
        at += cpl_embed_take(line, bytes + at);
}

/* --- one reduction */

/* Sends the vector to a rank, and the segments whose corner has `value` in the bits of `mask`.
 * Segments that do not fit go on alone. */
static void send(struct cpl_reduction *r, int to, int32_t step, int mask, int value)
{
    struct cpl_line *line = r->state->line;
    struct cpl_embed *embed = &line->embed;
    struct cpl_send_buffer *held = &embed->piggyback;
    uint64_t bytes = r->bytes;
    struct cpl_send_buffer *buffer =
        cpl_combined_open(&line->combined, sizeof bytes + padded(r->bytes));
    size_t kept = 0;
    memcpy(buffer->bytes + buffer->used, &bytes, sizeof bytes);
    if (r->bytes > 0)
        memcpy(buffer->bytes + buffer->used + sizeof bytes, r->vector, r->bytes);
    buffer->used += sizeof bytes + padded(r->bytes);
    for (size_t at = 0; at < held->used;) {
        struct cpl_segment head;
        unsigned char *segment = held->bytes + at;
        memcpy(&head, segment, sizeof head);
        size_t more = cpl_segment_bytes(&head);
        at += more;
        if ((cpl_hypercube_corner(&r->cube, head.dest) & mask) != value) {
            memmove(held->bytes + kept, segment, more);
            kept += more;
            continue;
        }
        if (buffer->used + more <= CPL_COMBINED_BYTES)
            memcpy(cpl_send_buffer_append(buffer, &head), segment + sizeof head,
                   head.payload_bytes);
        else
            send_alone(line, segment);
    }
    held->used = kept;
    embed->n_sends++;
    cpl_combined_send_reduction(&line->combined, buffer, to, embed->number, step);
}

/* *second becomes the two together. Another rank's vector comes first, as in MPICH, whatever the
 * points: of two NaNs a sum keeps one by the place. */
static void combine(const struct cpl_reduction *r, const void *first, void *second)
{
    const struct cpl_embed_kind *kind = r->kind;
    if (r->bytes == 0)
        return;
    CPL_AS_PROGRAM(kind->verdict != CPL_EMBED_COMPARING);
    PMPI_Reduce_local_c(first, second, kind->count, kind->type, kind->op);
}

/* Enters one of the steps in which all corners exchange, or ends them. */
static void enter(struct cpl_reduction *r, int32_t k)
{
    int rank = r->state->rank, all = (1 << r->cube.n_steps) - 1, bit = 1 << (k - FIRST_STEP);
    int corner = cpl_hypercube_corner(&r->cube, rank);
    r->awaits = k < FIRST_STEP + r->cube.n_steps ? k : NO_STEP;
    if (r->awaits != NO_STEP)
        send(r, cpl_hypercube_rank(&r->cube, corner ^ bit), k, bit, (corner ^ bit) & bit);
    else if (cpl_hypercube_folds(&r->cube, rank))
        send(r, cpl_hypercube_companion(&r->cube, rank), UNFOLD, all, corner);
}

static void begin(struct cpl_reduction *r)
{
    int rank = r->state->rank;
    r->runs = true;
    r->awaits = cpl_hypercube_is_guest(&r->cube, rank) ? UNFOLD : FOLD;
    if (!cpl_hypercube_folds(&r->cube, rank))
        enter(r, FIRST_STEP);
    else if (cpl_hypercube_is_guest(&r->cube, rank))
        send(r, cpl_hypercube_companion(&r->cube, rank), FOLD, 0, 0);
}

/* Takes the message of the step that the reduction awaits. */
static void step(struct cpl_reduction *r, const unsigned char *vector)
{
    if (r->awaits == UNFOLD) {
        if (r->bytes > 0)
            memcpy(r->vector, vector, r->bytes);
        r->awaits = NO_STEP;
    } else {
        combine(r, vector, r->vector);
        enter(r, r->awaits == FOLD ? FIRST_STEP : r->awaits + 1);
    }
}

/* Advances a reduction as far as messages have come. Returns whether it is over. The helper thread
 * adds nothing up: how that rounds is a setting of the program's thread. */
static bool advance(struct cpl_reduction *r, bool *any)
{
    struct cpl_embed *embed = &r->state->line->embed;
    while (r->awaits != NO_STEP) {
        struct cpl_embed_slot *slot = slot_of(embed, embed->number, r->awaits);
        if (!slot->came || (cpl_context.service.by_thread && r->bytes > 0))
            return false;
        slot->came = false;
        *any = true;
        step(r, slot->vector);
    }
    return true;
}

/* Ends a reduction: it is no longer pending. */
static void end(struct cpl_reduction *r)
{
    struct cpl_embed *embed = &r->state->line->embed;
    embed->number++;
    embed->n_reductions++;
    r->over = true;
    if (!r->request)
        return;
    cpl_request_close_collective(r->request, MPI_SUCCESS);
    free(r);
}

bool cpl_embed_progress(struct cpl_comm_state *state)
{
    struct cpl_embed *embed = &state->line->embed;
    bool any = false;
    for (struct cpl_reduction *r; (r = embed->pending); any = true) {
        if (!r->runs)
            begin(r);
        if (!advance(r, &any))
            break;
        LL_DELETE(embed->pending, r);
        end(r);
    }
    return any;
}

void cpl_embed_finish(struct cpl_comm_state *state)
{
    while (state->line->embed.pending)
        cpl_progress_poll();
}

/* Prepares a reduction of the values in vector. IN_ORDER kinds, and kinds being compared, use the
 * ranks' own order, on which their bits depend. */
static void prepare(struct cpl_reduction *r, struct cpl_comm_state *state,
                    struct cpl_embed_kind *kind, const void *input, void *vector)
{
    const struct cpl_embed *embed = &state->line->embed;
    *r = (struct cpl_reduction){.state = state,
                                .kind = kind,
                                .cube = cpl_hypercube_of(state->size),
                                .vector = vector,
                                .bytes = (size_t)(kind->count * kind->extent)};
    if (embed->points && kind->verdict == CPL_EMBED_ANY_ORDER) {
        r->cube.point_of = embed->points;
        r->cube.rank_at = embed->points + state->size;
    }
    if (r->bytes > 0 && input != vector)
        memcpy(vector, input, r->bytes);
}

/* Starts a reduction behind those that are pending, with the messages that wait for it. */
static void enqueue(struct cpl_reduction *r, bool blocking)
{
    struct cpl_embed *embed = &r->state->line->embed;
    CPL_CALL_HOOKS(piggyback, (r->state, blocking));
    LL_APPEND(embed->pending, r);
    cpl_embed_progress(r->state);
}

/* --- in memory that the ranks of a node share (wait/assembly.h), without messages, with the same
 * bits. Where the exchange doubles the ranks three times, here a rank sees the vectors of eight and
 * combines them itself, in the same order. */

#define DOUBLINGS 3 /* in one step; one more comes before them, and one after */

_Static_assert(CPL_EMBED_VECTOR <= CPL_ASSEMBLY_VECTOR, "a slot has room for a vector");

/* Combines the vectors of the corners that differ from this rank's in some of n bits from `bit` on,
 * as these ranks would: to each its own vector comes last. */
static void double_ranks(const struct cpl_reduction *r, int step, int bit, int n)
{
    static _Alignas(16) unsigned char seen[1 << DOUBLINGS][CPL_EMBED_VECTOR]; /* stacks are small */
    int corner = cpl_hypercube_corner(&r->cube, r->state->rank);
    cpl_assembly_show(step, r->vector, r->bytes);
    for (int k = 0; k < 1 << n; k++) {
        int rank = cpl_hypercube_rank(&r->cube, corner ^ k << bit);
        memcpy(seen[k], cpl_assembly_see(r->state->comm, rank, step), r->bytes);
    }
    for (int width = 1; width < 1 << n; width *= 2)
        for (int k = 0; k < 1 << n; k += 2 * width)
            combine(r, seen[k + width], seen[k]);
    memcpy(r->vector, seen[0], r->bytes);
}

static void reduce_in_memory(const struct cpl_reduction *r)
{
    const int rank = r->state->rank, fold = 0, unfold = cpl_assembly_steps(r->state->size) - 1;
    const bool folds = cpl_hypercube_folds(&r->cube, rank);
    const int companion = folds ? cpl_hypercube_companion(&r->cube, rank) : rank;
    cpl_assembly_begin_round();
    if (cpl_hypercube_is_guest(&r->cube, rank)) {
        cpl_assembly_show(fold, r->vector, r->bytes);
        memcpy(r->vector, cpl_assembly_see(r->state->comm, companion, unfold), r->bytes);
        return;
    }
    if (folds)
        combine(r, cpl_assembly_see(r->state->comm, companion, fold), r->vector);
    for (int bit = 0; bit < r->cube.n_steps; bit += DOUBLINGS) {
        int left = r->cube.n_steps - bit;
        double_ranks(r, 1 + bit / DOUBLINGS, bit, left < DOUBLINGS ? left : DOUBLINGS);
    }
    if (folds)
        cpl_assembly_show(unfold, r->vector, r->bytes);
}

/* --- blocking */

static void carry_out(struct cpl_comm_state *state, struct cpl_embed_kind *kind, const void *input,
                      void *vector)
{
    struct cpl_reduction r;
    prepare(&r, state, kind, input, vector);
    if (!state->line->embed.on) {
        reduce_in_memory(&r);
        return;
    }
    enqueue(&r, true);
    while (!r.over)
        cpl_progress_poll();
}

/* request: NULL, it blocks. */
static int by_mpi(const struct cpl_comm_state *state, const struct cpl_embed_kind *kind,
                  const void *send, void *recv, MPI_Request *request)
{
    int count = (int)kind->count;
    return request ? PMPI_Iallreduce(send, recv, count, kind->type, kind->op, state->comm, request)
                   : cpl_collective_Allreduce(send, recv, count, kind->type, kind->op, state->comm);
}

/* Whether the shim's results have MPI's bits on this rank, for test vectors from first to end.
 * Collective. */
static bool probe(struct cpl_comm_state *state, struct cpl_embed_kind *kind, int first, int end)
{
    unsigned char input[CPL_EMBED_VECTOR] __attribute__((aligned(16)));
    unsigned char ours[CPL_EMBED_VECTOR] __attribute__((aligned(16)));
    unsigned char theirs[CPL_EMBED_VECTOR] __attribute__((aligned(16)));
    CPL_ASIDE; /* vectors with NaNs, on which the program may trap */
    size_t bytes = (size_t)(kind->count * kind->extent);
    bool equal = true;
    for (int k = first; k < end; k++) {
        MPI_Request request;
        cpl_embed_probe_fill(input, kind->count, kind->type, kind->op, k, state->rank, state->size);
        memcpy(theirs, input, bytes); /* including the bytes between elements */
        carry_out(state, kind, input, ours);
        int result = by_mpi(state, kind, input, theirs, kind->blocking ? NULL : &request);
        if (result == MPI_SUCCESS && !kind->blocking)
            result = cpl_progress_wait(&request, MPI_STATUS_IGNORE);
        equal &= result == MPI_SUCCESS && memcmp(ours, theirs, bytes) == 0;
    }
    return equal;
}

#define FIRST_PROBES 4 /* mostly tell already: each is a reduction by MPI, and one by the shim */

/* Decides on all ranks alike whether the shim's results count as MPI's. Collective. */
static void decide(struct cpl_comm_state *state, struct cpl_embed_kind *kind)
{
    kind->verdict = CPL_EMBED_COMPARING; /* in the order of ranks */
    bool trusted =
        cpl_agree_all(state->private_comm, probe(state, kind, 0, FIRST_PROBES)) &&
        cpl_agree_all(state->private_comm, probe(state, kind, FIRST_PROBES, CPL_EMBED_PROBES));
    kind->verdict = trusted ? CPL_EMBED_IN_ORDER : CPL_EMBED_REFUSED;
    if (state->rank == 0)
        cpl_log(CPL_LOG_INFO, "embed", "%d ranks, %s reductions of %lld elements: %s", state->size,
                kind->blocking ? "blocking" : "nonblocking", (long long)kind->count,
                trusted ? "the bits are MPI's; they carry messages from now on"
                        : "MPI adds up in another order; left to MPI (CARPOOL_EMBED=all does not)");
}

int cpl_embed_allreduce(struct cpl_comm_state *state, struct cpl_embed_kind *kind, const void *send,
                        void *recv)
{
    if (kind->verdict == CPL_EMBED_COMPARING) {
        state->line->embed.tried = true;
        decide(state, kind);
    }
    if (kind->verdict == CPL_EMBED_REFUSED)
        return by_mpi(state, kind, send, recv, NULL);
    carry_out(state, kind, send == MPI_IN_PLACE ? recv : send, recv);
    return MPI_SUCCESS;
}

/* --- nonblocking */

int cpl_embed_iallreduce(struct cpl_comm_state *state, struct cpl_embed_kind *kind,
                         const void *send, void *recv, MPI_Request *request)
{
    const void *input = send == MPI_IN_PLACE ? recv : send;
    struct cpl_reduction *r = cpl_memory_need(sizeof *r, "a reduction");
    prepare(r, state, kind, input, recv);
    r->request = cpl_request_make(state->comm, true);
    cpl_request_open_collective(r->request);
    *request = r->request->handle;
    enqueue(r, false);
    return MPI_SUCCESS;
}

void cpl_embed_decide(struct cpl_comm_state *state)
{
    struct cpl_embed_kinds *kinds = &state->line->embed.kinds;
    for (int k = 0; k < kinds->n; k++) {
        if (kinds->kind[k].verdict != CPL_EMBED_UNDECIDED)
            continue;
        cpl_embed_finish(state);
        decide(state, &kinds->kind[k]);
    }
}
