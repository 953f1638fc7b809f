/* Sparse exchanges: of records, and by these of messages (plan_distributed.h). */
#include "shim/plan/plan_distributed.h"

#include "shim/wait/progress.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Two tags in turn: a rank may be one round ahead of another, not two. No other messages of the
 * shim's communicators have them. */
#define FIRST_TAG 2003

/* Room for so many elements. */
static bool resize(struct cpl_distributed *p, struct cpl_distributed_array *array, int64_t room,
                   size_t size)
{
    int64_t more = (room - array->room) * (int64_t)size;
    void *at = p->n_bytes + more <= CPL_DISTRIBUTED_MOST_BYTES
                   ? realloc(array->at, (size_t)(room > 0 ? room : 1) * size)
                   : NULL;
    p->failed |= !at;
    if (!at)
        return false;
    array->at = at;
    array->room = room;
    p->n_bytes += more;
    return true;
}

/* Adds n elements, to be filled in; NULL: there is no room for them. */
static void *add(struct cpl_distributed *p, struct cpl_distributed_array *array, int64_t n,
                 size_t size)
{
    int64_t before = array->n;
    if (before + n > array->room && !resize(p, array, before + before / 2 + n, size))
        return NULL;
    array->n += n;
    return (unsigned char *)array->at + (size_t)before * size;
}

/* Receives a message, if there is one. A message for which there is no memory is cut off: its
 * sender must not wait for ever. */
static bool receive(struct cpl_distributed *p, int tag)
{
    MPI_Request request;
    MPI_Status status;
    int flag = 0, bytes = 0;
    PMPI_Iprobe(MPI_ANY_SOURCE, tag, p->comm, &flag, &status);
    if (!flag)
        return false;
    PMPI_Get_count(&status, MPI_BYTE, &bytes);
    void *room = add(p, &p->came, bytes, 1);
    if (!room) {
        /* It is there. Of an error in PMPI_Test MPI tells MPI_COMM_WORLD's handler, which ends the
         * program; of one here, the communicator's, which returns. */
        PMPI_Recv(NULL, 0, MPI_BYTE, status.MPI_SOURCE, tag, p->comm, MPI_STATUS_IGNORE);
        return true;
    }
    if (PMPI_Irecv(room, bytes, MPI_BYTE, status.MPI_SOURCE, tag, p->comm, &request) !=
            MPI_SUCCESS ||
        cpl_progress_wait(&request, MPI_STATUS_IGNORE) != MPI_SUCCESS) {
        p->came.n -= bytes;
        p->failed = true;
    }
    return true;
}

/* Starts the sends, of the records for each rank. Returns how many. */
static int send_all(struct cpl_distributed *p, const int *to, const unsigned char *records,
                    int64_t n, size_t record_bytes, int tag, MPI_Request *requests)
{
    int n_sent = 0;
    for (int64_t k = 0, last; k < n; k = last) {
        for (last = k + 1; last < n && to[last] == to[k]; last++)
            continue;
        size_t bytes = (size_t)(last - k) * record_bytes;
        if (bytes > INT_MAX || PMPI_Issend(records + (size_t)k * record_bytes, (int)bytes, MPI_BYTE,
                                           to[k], tag, p->comm, &requests[n_sent]) != MPI_SUCCESS)
            p->failed = true;
        else
            n_sent++;
    }
    return n_sent;
}

int64_t cpl_distributed_round(struct cpl_distributed *p, const int *to, const void *records,
                              int64_t n, size_t record_bytes)
{
    MPI_Request barrier = MPI_REQUEST_NULL;
    MPI_Request *requests = calloc((size_t)n + 1, sizeof *requests);
    int tag = FIRST_TAG + p->n_rounds++ % 2, n_idle = 0;
    bool entered = false, done = false;
    p->came.n = 0;
    p->failed |= !requests;
    int n_sent = requests ? send_all(p, to, records, n, record_bytes, tag, requests) : 0;
    while (!done) {
        int flag = 0;
        n_idle = receive(p, tag) ? 0 : n_idle + 1;
        if (entered) {
            PMPI_Test(&barrier, &flag, MPI_STATUS_IGNORE);
            done = flag;
        } else {
            PMPI_Testall(n_sent, requests, &flag, MPI_STATUSES_IGNORE);
            entered = flag;
            done = flag && PMPI_Ibarrier(p->comm, &barrier) != MPI_SUCCESS;
        }
        if (n_idle > 0 && !done)
            cpl_progress_pause(n_idle);
    }
    free(requests);
    return p->came.n / (int64_t)record_bytes;
}

/* --- messages */

/* n messages under way, whose ways are the same from here on; src and dst are those of one of them.
 * Or, with a wave, n messages that end where they go in that wave: src is then the rank that sends
 * them. link: if they are tallied, the class of link that joins where they begin and where they
 * end. volume: of all. */
struct record {
    int16_t candidate;
    int8_t wave, link;
    int32_t src, dst, n;
    int64_t volume;
};

/* A record and the rank that it goes to next. */
struct leaving {
    struct record record;
    int32_t to;
    uint64_t rest; /* struct cpl_passing_here */
};

static void leave(struct cpl_distributed *p, struct leaving leaving)
{
    struct leaving *at = add(p, &p->leaving, 1, sizeof leaving);
    if (at)
        *at = leaving;
}

static void keep_passing(struct cpl_distributed *p, struct cpl_distributed_candidate *c,
                         int32_t src, int32_t dst, int64_t volume)
{
    struct cpl_passing *at = add(p, &c->passing, 1, sizeof *at);
    if (at)
        *at = (struct cpl_passing){src, dst, volume};
}

/* Room for one edge more at least, if that is wanted; else for as many as there are. */
static bool join_edges(struct cpl_distributed *p, struct cpl_distributed_array *edges, bool more)
{
    if (edges->n > 0)
        edges->n = cpl_local_join_edges(edges->at, edges->n);
    if (more && 2 * edges->n < edges->room)
        return true;
    return resize(p, edges, more ? 2 * edges->n + 16 : edges->n, sizeof(struct cpl_local_edge));
}

/* Adds messages, one at least, to an edge. The same edge may be there twice. */
static void keep_edge(struct cpl_distributed *p, struct cpl_distributed_array *edges,
                      struct cpl_local_edge edge)
{
    if (edges->n < edges->room || join_edges(p, edges, true))
        ((struct cpl_local_edge *)edges->at)[edges->n++] = edge;
}

/* Equal for records that can be joined, but for the ways (rest). */
static uint64_t key_of(const struct leaving *x)
{
    return (uint64_t)x->to << 32 | (uint64_t)(uint16_t)x->record.candidate << 16 |
           (uint64_t)(uint8_t)x->record.wave << 8 | (uint8_t)x->record.link;
}

/* Those that can be joined come together; the order of the others is that of their sources. */
static int by_next(const void *a, const void *b)
{
    const struct leaving *x = a, *y = b;
    uint64_t k = key_of(x), l = key_of(y);
    if (k != l)
        return k < l ? -1 : 1;
    if (x->rest != y->rest)
        return x->rest < y->rest ? -1 : 1;
    return (x->record.src > y->record.src) - (x->record.src < y->record.src);
}

/* Returns how many records are left. */
static int64_t join_leaving(struct leaving *leaving, int64_t n)
{
    int64_t kept = 0;
    for (int64_t k = 0; k < n; k++) {
        struct leaving *last = kept > 0 ? &leaving[kept - 1] : NULL, *next = &leaving[k];
        if (last && last->rest == next->rest && key_of(last) == key_of(next)) {
            last->record.n += next->record.n;
            last->record.volume += next->record.volume;
        } else {
            leaving[kept++] = *next;
        }
    }
    return kept;
}

/* Sends what leaves. Returns how many records came. */
static int64_t send_round(struct cpl_distributed *p, bool join)
{
    struct leaving *leaving = p->leaving.at;
    int64_t n = p->leaving.n;
    p->n_handled += n;
    p->leaving.n = 0;
    if (n > 0)
        qsort(leaving, (size_t)n, sizeof *leaving, by_next);
    if (join)
        n = join_leaving(leaving, n);
    int *to = calloc((size_t)n + 1, sizeof *to);
    struct record *records = calloc((size_t)n + 1, sizeof *records);
    bool ready = to && records;
    for (int64_t k = 0; k < n && ready; k++) {
        to[k] = leaving[k].to;
        records[k] = leaving[k].record;
    }
    int64_t came = cpl_distributed_round(p, to, records, ready ? n : 0, sizeof *records);
    p->failed |= !ready;
    p->n_handled += came;
    free(to);
    free(records);
    return came;
}

static struct record came_at(const struct cpl_distributed *p, int64_t k)
{
    struct record record;
    memcpy(&record, (unsigned char *)p->came.at + (size_t)k * sizeof record, sizeof record);
    return record;
}

/* Counts n messages whose ways are the same from this rank on; volume: of all. */
static struct cpl_passing_here count(struct cpl_distributed *p, struct cpl_distributed_candidate *c,
                                     const struct cpl_passing *message, int64_t n)
{
    struct cpl_route_room room;
    struct cpl_passing_here here = cpl_passing_here(&c->router, p->rank, message, &room);
    if (here.from >= 0)
        keep_edge(
            p, &c->edges,
            (struct cpl_local_edge){here.from, (int16_t)here.from_wave, false, n, message->volume});
    else
        cpl_local_count_own(c->sum, &here, message->volume);
    if (here.to >= 0)
        keep_edge(
            p, &c->edges,
            (struct cpl_local_edge){here.to, (int16_t)here.to_wave, true, n, message->volume});
    return here;
}

/* Counts messages that are at this rank, and lets them leave unless they end here. */
static void pass(struct cpl_distributed *p, const struct record *r)
{
    struct cpl_distributed_candidate *c = &p->candidate[r->candidate];
    const struct cpl_passing message = {r->src, r->dst, r->volume};
    struct cpl_passing_here here = count(p, c, &message, r->n);
    struct leaving leaving = {*r, here.to, here.rest};
    if (here.to < 0 || cpl_distributed_is_tallied(p, c))
        return;
    if (here.to == r->dst) {
        leaving.record.wave = (int8_t)here.to_wave;
        leaving.record.src = p->rank;
    }
    leave(p, leaving);
}

/* Counts messages that end here. */
static void end(struct cpl_distributed *p, const struct record *r)
{
    keep_edge(p, &p->candidate[r->candidate].edges,
              (struct cpl_local_edge){r->src, r->wave, false, r->n, r->volume});
    if (r->candidate == p->tally) {
        p->endings.n[r->link] += r->n;
        p->endings.volume[r->link] += r->volume;
    }
}

static void pass_own(struct cpl_distributed *p)
{
    const struct cpl_agree_input *input = p->input;
    for (int k = 0; k < p->n; k++)
        for (int m = 0; m < input->n_messages; m++) {
            const struct cpl_pattern_entry *e = &input->messages[m];
            struct record r = {(int16_t)k, 0, 0, p->rank, e->dst, 1, e->volume};
            if (k == p->tally)
                r.link = (int8_t)cpl_machine_link(&p->machine, r.src, r.dst);
            pass(p, &r);
        }
}

void cpl_distributed_count(struct cpl_distributed *p)
{
    int32_t n_rounds = 0;
    for (int k = 0; k < p->n; k++)
        n_rounds =
            p->candidate[k].router.n_waves > n_rounds ? p->candidate[k].router.n_waves : n_rounds;
    pass_own(p);
    for (int32_t round = 0; round < n_rounds; round++) {
        const int64_t came = send_round(p, true);
        for (int64_t k = 0; k < came; k++) {
            struct record r = came_at(p, k);
            if (r.wave > 0)
                end(p, &r);
            else
                pass(p, &r);
        }
    }
    for (int k = 0; k < p->n; k++)
        join_edges(p, &p->candidate[k].edges, false);
}

/* Lets messages leave that have come since it was last called. */
static void hand_on(struct cpl_distributed *p, struct cpl_distributed_candidate *c)
{
    struct cpl_route_room room;
    for (; c->handed_on < c->passing.n; c->handed_on++) {
        const struct cpl_passing *m = (const struct cpl_passing *)c->passing.at + c->handed_on;
        struct cpl_passing_here here = cpl_passing_here(&c->router, p->rank, m, &room);
        if (here.to >= 0)
            leave(
                p,
                (struct leaving){
                    {(int16_t)(c - p->candidate), 0, 0, m->src, m->dst, 1, m->volume}, here.to, 0});
    }
}

void cpl_distributed_tell(struct cpl_distributed *p,
                          struct cpl_distributed_candidate *const *chosen, int n)
{
    int32_t n_rounds = 0;
    for (int k = 0; k < n; k++) {
        n_rounds = chosen[k]->router.n_waves > n_rounds ? chosen[k]->router.n_waves : n_rounds;
        for (int m = 0; m < p->input->n_messages; m++) {
            const struct cpl_pattern_entry *e = &p->input->messages[m];
            keep_passing(p, chosen[k], p->rank, e->dst, e->volume);
        }
    }
    for (int32_t r = 0; r < n_rounds; r++) {
        for (int k = 0; k < n; k++)
            hand_on(p, chosen[k]);
        int64_t came = send_round(p, false);
        for (int64_t k = 0; k < came; k++) {
            struct record record = came_at(p, k);
            keep_passing(p, &p->candidate[record.candidate], record.src, record.dst, record.volume);
        }
    }
}

/* In the place of records: src is this rank, volume the number. */
void cpl_distributed_tell_later(struct cpl_distributed *p, struct cpl_local_plan *local)
{
    for (int32_t e = 0; e < local->n_in; e++)
        leave(p,
              (struct leaving){{0, (int8_t)local->in_wave[e], 0, p->rank, 0, 0, local->in_later[e]},
                               local->in_from[e],
                               0});
    int64_t came = send_round(p, false);
    for (int64_t k = 0; k < came; k++) {
        struct record record = came_at(p, k);
        for (int32_t e = 0; e < local->n_out; e++)
            if (local->out_to[e] == record.src && local->out_wave[e] == record.wave)
                local->out_later[e] = record.volume;
    }
}
