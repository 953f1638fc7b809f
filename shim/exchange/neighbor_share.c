/* Learned duplicates (neighbor_share.h). */
#include "shim/exchange/neighbor_share.h"
#include "shim/meet/agree.h"

#include "shim/base/log.h"
#include "shim/exchange/neighbor_internal.h"
#include "shim/state/comm_state.h"
#include "shim/state/context.h"
#include "shim/wait/collective.h"

#include <stdlib.h>
#include <string.h>

#define N_NOTED      4  /* calls that are looked at before a review */
#define MOST_REVIEWS 3  /* while nothing changes, or sizes do */
#define NEXT_REVIEW  8  /* times as late as the one before */
#define WORTH_PLANS  20 /* a plan is made when at least one part in so many could be saved */
#define FIRST_CHECK  16 /* calls by parts before what they save is compared with what breaks */
#define LAST_CHECK   1024
#define MOST_SHARED  3
#define MOST_LOST    4    /* of what is saved, one part in so many may be lost */
#define WHOLE_RECORD 12   /* bytes beside a message that is not divided */
#define COMPARE_NS   0.15 /* a byte */

/* --- observing ---------------------------------------------------------------------------- */

static bool is_wanted(const struct cpl_exchange *x)
{
    return cpl_context.settings.duplicates != CPL_DUPLICATES_OFF &&
           x->kind != CPL_NEIGHBOR_ALLGATHER && x->kind != CPL_NEIGHBOR_ALLGATHERV;
}

void cpl_neighbor_share_begin(struct cpl_exchange *x)
{
    x->sharing = (struct cpl_sharing){.active = is_wanted(x), .next_review = N_NOTED + 1};
}

static int32_t count_messages(const struct cpl_exchange *x)
{
    int32_t n = 0;
    for (int m = 0; m < x->adjacency->out.n_messages; m++)
        n += !x->ends.out_straight[m];
    return n;
}

/* Message k of the plan as it is in a call. */
static struct cpl_piece piece_of(const struct cpl_exchange *x, const struct cpl_neighbor_data *data,
                                 int32_t k)
{
    const struct cpl_neighbors *out = &x->adjacency->out;
    int m = x->ends.payload[k], first = out->first_part[m];
    const struct cpl_span *span = &data->out_span[out->part[first]];
    bool in_one_piece = out->first_part[m + 1] - first == 1 && span->type.dense;
    int64_t bytes = cpl_neighbor_payload_bytes(data, x->adjacency, m);
    return (struct cpl_piece){
        .data = in_one_piece ? (const unsigned char *)span->address : NULL,
        .bytes = bytes,
        .unit = in_one_piece && span->type.size <= INT32_MAX ? (int32_t)span->type.size : 0,
        .straight = bytes > cpl_context.settings.size_limit};
}

/* Finds the messages of a call. Returns false when there are none to be had. Local. */
static bool look(const struct cpl_neighbor_call *call, struct cpl_exchange *x)
{
    struct cpl_sharing *s = &x->sharing;
    if (!s->pieces) {
        s->n_messages = count_messages(x);
        s->pieces = calloc((size_t)s->n_messages + 1, sizeof *s->pieces);
    }
    if (!s->pieces || !cpl_neighbor_resolve(call, x->adjacency, &x->data))
        return false;
    for (int32_t k = 0; k < s->n_messages; k++)
        s->pieces[k] = piece_of(x, &x->data, k);
    return true;
}

static void note(const struct cpl_neighbor_call *call, struct cpl_exchange *x)
{
    struct cpl_sharing *s = &x->sharing;
    if (!look(call, x))
        return;
    if (s->calls == s->next_review - N_NOTED) {
        cpl_duplicates_free(s->duplicates);
        s->duplicates = cpl_duplicates_create(s->n_messages, s->pieces);
    }
    if (s->duplicates)
        cpl_duplicates_note(s->duplicates, s->pieces);
}

/* --- agreeing on parts -------------------------------------------------------------------- */

/* Divides this rank's messages; without duplicates they stay whole. */
static bool divide(struct cpl_sharing *s, struct cpl_duplicates_found *found)
{
    *found = (struct cpl_duplicates_found){0, 0};
    if (s->duplicates)
        return cpl_duplicates_divide(s->duplicates, s->pieces, &s->parts, found);
    int64_t *bytes = calloc((size_t)s->n_messages + 1, sizeof *bytes);
    for (int32_t k = 0; bytes && k < s->n_messages; k++) {
        bytes[k] = -1;
        found->bytes += s->pieces[k].bytes;
    }
    bool done = bytes && cpl_parts_build(s->n_messages, bytes, 1, NULL, 0, &s->parts);
    free(bytes);
    return done;
}

/* This rank's rows of the pattern of parts. */
struct rows {
    int *dst;
    int64_t *bytes;
    int32_t *class_;
};

static bool list_rows(const struct cpl_exchange *x, struct rows *rows)
{
    const struct cpl_parts *p = &x->sharing.parts;
    size_t n = (size_t)p->n_rows + 1;
    *rows = (struct rows){calloc(n, sizeof *rows->dst), calloc(n, sizeof *rows->bytes),
                          calloc(n, sizeof *rows->class_)};
    if (!rows->dst || !rows->bytes || !rows->class_)
        return false;
    for (int32_t k = 0; k < p->n_messages; k++)
        for (int32_t r = p->first_row[k]; r < p->first_row[k + 1]; r++) {
            bool divided = p->message_bytes[k] >= 0;
            rows->dst[r] = x->adjacency->out.rank[x->ends.payload[k]];
            rows->class_[r] = cpl_parts_class(p, r);
            rows->bytes[r] = divided ? cpl_parts_volume(p, p->row_part[r])
                                     : WHOLE_RECORD + x->sharing.pieces[k].bytes;
        }
    return true;
}

static void free_rows(struct rows *rows)
{
    free(rows->dst);
    free(rows->bytes);
    free(rows->class_);
}

/* Whether a plan of parts is to be used, or tried; the same answer on all ranks. */
static bool pays(const struct cpl_comm_state *state, const struct cpl_exchange *x,
                 const struct cpl_plan_summary *shared, bool measured)
{
    int64_t compared = x->sharing.parts.saved, most = 0;
    int32_t plain = x->sharing.executor ? 0 : x->plans.trial.chosen - 1;
    if (measured || cpl_context.settings.duplicates == CPL_DUPLICATES_ALWAYS)
        return true;
    cpl_collective_Allreduce(&compared, &most, 1, MPI_INT64_T, MPI_MAX, state->private_comm);
    double us = shared->planned.modelled_us + COMPARE_NS * 1e-3 * (double)most;
    bool less = us < x->plans.summary[plain].planned.modelled_us;
    if (!less && state->rank == 0)
        cpl_log(CPL_LOG_INFO, "share",
                "duplicates are not left out: modelled %.1f us with comparing, %.1f without", us,
                x->plans.summary[plain].planned.modelled_us);
    return less;
}

/* --- telling the receivers ---------------------------------------------------------------- */

/* Requests of one round, and the sizes that go first. */
struct handover {
    MPI_Request *requests;
    MPI_Status *statuses;
    int n;
    int32_t *out_size, *in_size; /* per message of the plan, per in-message */
    int32_t **out_words;
};

static bool open_handover(const struct cpl_exchange *x, struct handover *h)
{
    size_t n_out = (size_t)x->sharing.n_messages + 1,
           n_in = (size_t)x->adjacency->in.n_messages + 1;
    *h = (struct handover){.requests = calloc(n_out + n_in, sizeof *h->requests),
                           .statuses = calloc(n_out + n_in, sizeof *h->statuses),
                           .out_size = calloc(n_out, sizeof *h->out_size),
                           .in_size = calloc(n_in, sizeof *h->in_size),
                           .out_words = calloc(n_out, sizeof *h->out_words)};
    bool done = h->requests && h->statuses && h->out_size && h->in_size && h->out_words;
    for (int32_t k = 0; done && k < x->sharing.n_messages; k++) {
        h->out_size[k] = cpl_parts_n_words(&x->sharing.parts, k);
        if (h->out_size[k] >= 0)
            h->out_words[k] = calloc((size_t)h->out_size[k] + 1, sizeof **h->out_words);
        done = h->out_words[k];
        if (done)
            cpl_parts_write(&x->sharing.parts, k, h->out_words[k]);
    }
    return done;
}

static void close_handover(const struct cpl_exchange *x, struct handover *h)
{
    for (int32_t k = 0; h->out_words && k < x->sharing.n_messages; k++)
        free(h->out_words[k]);
    free(h->requests);
    free(h->statuses);
    free(h->out_size);
    free(h->in_size);
    free(h->out_words);
}

/* Sends every destination the sizes (round 0) or the words of its message. */
static bool hand_over(const struct cpl_comm_state *state, struct cpl_exchange *x,
                      struct handover *h, int round)
{
    const struct cpl_adjacency *a = x->adjacency;
    struct cpl_sharing *s = &x->sharing;
    int tag = cpl_neighbor_straight_tag(x), result = MPI_SUCCESS;
    h->n = 0;
    for (int m = 0; m < a->in.n_messages && result == MPI_SUCCESS; m++)
        if (!x->ends.in_straight[m])
            result = PMPI_Irecv(round == 0 ? &h->in_size[m] : s->words[m],
                                round == 0 ? 1 : h->in_size[m], MPI_INT32_T, a->in.rank[m], tag,
                                state->private_comm, &h->requests[h->n++]);
    for (int32_t k = 0; k < s->n_messages && result == MPI_SUCCESS; k++)
        result = PMPI_Isend(round == 0 ? &h->out_size[k] : h->out_words[k],
                            round == 0 ? 1 : h->out_size[k], MPI_INT32_T,
                            a->out.rank[x->ends.payload[k]], tag, state->private_comm,
                            &h->requests[h->n++]);
    return cpl_collective_waitall(h->n, h->requests, h->statuses) == MPI_SUCCESS &&
           result == MPI_SUCCESS;
}

static bool expect_words(struct cpl_exchange *x, const struct handover *h)
{
    struct cpl_sharing *s = &x->sharing;
    for (int32_t m = 0; m < s->n_in; m++)
        if (!x->ends.in_straight[m]) {
            s->words[m] = calloc((size_t)h->in_size[m] + 1, sizeof **s->words);
            if (!s->words[m])
                return false;
        }
    return true;
}

static bool view_words(struct cpl_exchange *x, const struct handover *h)
{
    struct cpl_sharing *s = &x->sharing;
    bool done = true;
    for (int32_t m = 0; m < s->n_in && done; m++)
        done =
            x->ends.in_straight[m] || cpl_divided_view(s->words[m], h->in_size[m], &s->divided[m]);
    if (!done)
        cpl_log(CPL_LOG_ERROR, "share", "what a rank says of its messages makes no sense");
    return done;
}

/* Tells all receivers how their messages are divided. Collective, the same result on all ranks. */
static bool tell(const struct cpl_comm_state *state, struct cpl_exchange *x)
{
    struct cpl_sharing *s = &x->sharing;
    struct handover h;
    MPI_Comm comm = state->private_comm;
    size_t n = (size_t)x->adjacency->in.n_messages + 1;
    s->words = calloc(n, sizeof *s->words);
    s->divided = calloc(n, sizeof *s->divided);
    s->scratch = calloc(n, sizeof *s->scratch);
    s->n_in = x->adjacency->in.n_messages;
    bool ready = open_handover(x, &h) && s->words && s->divided && s->scratch;
    bool done = cpl_agree_all(comm, ready) && cpl_agree_all(comm, hand_over(state, x, &h, 0)) &&
                cpl_agree_all(comm, expect_words(x, &h)) &&
                cpl_agree_all(comm, hand_over(state, x, &h, 1) && view_words(x, &h));
    close_handover(x, &h);
    return done;
}

/* --- using parts -------------------------------------------------------------------------- */

static void add_work(struct cpl_executor_work *to, const struct cpl_executor *executor)
{
    struct cpl_executor_work work = cpl_executor_work(executor);
    to->exchanges += work.exchanges;
    to->carried += work.carried;
    to->forwarded += work.forwarded;
}

/* Drops the second executor. */
static void drop_second(struct cpl_exchange *x)
{
    struct cpl_sharing *s = &x->sharing;
    if (x->plans.executors[1] && x->plans.executors[1] == s->executor)
        add_work(&s->after, x->plans.executors[1]);
    else if (x->plans.executors[1])
        x->plans.forwarded_dropped += cpl_executor_work(x->plans.executors[1]).forwarded;
    cpl_executor_destroy(x->plans.executors[1]);
    x->plans.executors[1] = NULL;
    s->executor = NULL;
}

/* Makes the executor the second one, behind the plan of messages in use; to be tried against it and
 * MPI, or to be used. */
static void use(struct cpl_exchange *x, struct cpl_executor *executor,
                const struct cpl_plan_summary *summary, bool measured)
{
    struct cpl_sharing *s = &x->sharing;
    int64_t tried = x->plans.trial.tried;
    if (!s->executor && x->plans.trial.chosen == 2) {
        struct cpl_executor *plain = x->plans.executors[1];
        x->plans.executors[1] = x->plans.executors[0];
        x->plans.executors[0] = plain;
        x->plans.summary[0] = x->plans.summary[1];
    }
    drop_second(x);
    x->plans.executors[1] = s->executor = executor;
    x->plans.summary[1] = *summary;
    x->plans.n = 2;
    cpl_trial_begin(&x->plans.trial, 3, measured ? (int32_t)cpl_context.settings.trial : 0);
    if (!x->plans.trial.running)
        x->plans.trial.chosen = 2;
    x->plans.trial.tried = tried;
    s->next_review = FIRST_CHECK;
    s->lost = s->lost_broken = 0;
    s->saved = s->parts.saved;
    s->n_elements = s->parts.n_shared;
    s->n_shared++;
}

/* The plan of messages carries the exchange for good. */
static void give_up(struct cpl_exchange *x)
{
    if (x->sharing.executor) {
        drop_second(x);
        x->plans.trial.n = 2;
        x->plans.trial.chosen = x->plans.trial.chosen > 0 ? 1 : 0;
        x->plans.n = 1;
    }
    cpl_neighbor_share_free(&x->sharing);
}

static void log_parts(const struct cpl_exchange *x, const struct cpl_plan_summary *summary,
                      int64_t saved, int64_t bytes)
{
    cpl_log(CPL_LOG_INFO, "share",
            "%s: %lld of %lld bytes of a call are duplicates; %s carries %.0f bytes instead of "
            "%.0f",
            cpl_exchange_kind_name(x->kind), (long long)saved, (long long)bytes, summary->strategy,
            summary->planned.volume_factor * (double)summary->bytes,
            x->plans.summary[0].planned.volume_factor * (double)x->plans.summary[0].bytes);
}

/* Plans the parts, tells the receivers, and puts the plan to use. Collective; false on all ranks
 * when the exchange stays as it was. */
static bool share(const struct cpl_neighbor_call *call, struct cpl_comm_state *state,
                  struct cpl_exchange *x, bool divided, int64_t saved, int64_t bytes)
{
    bool measured = cpl_context.settings.mode == CPL_MODE_AUTO && cpl_context.settings.trial > 0 &&
                    !x->mpi_distrusted;
    struct rows rows = {NULL, NULL, NULL};
    struct cpl_agree_output agreed;
    struct cpl_agree_input input = {
        .able = divided && list_rows(x, &rows),
        .needed = x->mpi_distrusted || cpl_context.settings.duplicates == CPL_DUPLICATES_ALWAYS,
        .most_plans = 1,
        .n_messages = x->sharing.parts.n_rows,
        .dst = rows.dst,
        .bytes = rows.bytes,
        .payload_class = rows.class_};
    bool done = cpl_plan_agree(call->comm, &state->private_comm, &input, &agreed);
    free_rows(&rows);
    if (!done)
        return false;
    done = agreed.summary[0].decided && pays(state, x, &agreed.summary[0], measured);
    struct cpl_executor *executor = NULL;
    if (done) {
        executor = cpl_executor_create(agreed.words[0], agreed.n_words[0], state->private_comm,
                                       x->first_tag);
        agreed.words[0] = NULL;
        done = cpl_agree_all(state->private_comm, executor) && tell(state, x);
    }
    if (done) {
        use(x, executor, &agreed.summary[0], measured);
        if (state->rank == 0)
            log_parts(x, &agreed.summary[0], saved, bytes);
    } else {
        cpl_executor_destroy(executor);
    }
    cpl_agree_output_free(&agreed);
    return done;
}

/* The end of observing, or more of it. Collective. */
static void review(const struct cpl_neighbor_call *call, struct cpl_comm_state *state,
                   struct cpl_exchange *x)
{
    enum { SAVED, UNDECIDED, BYTES, N_WORDS };
    struct cpl_sharing *s = &x->sharing;
    struct cpl_duplicates_found found = {0, 0};
    bool divided = look(call, x) && divide(s, &found);
    int64_t mine[N_WORDS] = {divided ? s->parts.saved : 0, found.undecided, found.bytes};
    int64_t all[N_WORDS] = {0};
    cpl_collective_Allreduce(mine, all, N_WORDS, MPI_INT64_T, MPI_SUM, state->private_comm);
    bool always = cpl_context.settings.duplicates == CPL_DUPLICATES_ALWAYS;
    if (all[SAVED] > 0 && (always || all[SAVED] * WORTH_PLANS >= all[BYTES])) {
        if (!share(call, state, x, divided, all[SAVED], all[BYTES]))
            give_up(x);
        return;
    }
    cpl_parts_free(&s->parts);
    bool goes_on = all[UNDECIDED] * WORTH_PLANS >= all[BYTES] && all[UNDECIDED] > 0;
    if (!goes_on || ++s->n_reviews == MOST_REVIEWS)
        give_up(x);
    else
        s->next_review *= NEXT_REVIEW;
}

/* Whether the parts still save more than breaking equalities cost. Collective. */
static void check(const struct cpl_neighbor_call *call, struct cpl_comm_state *state,
                  struct cpl_exchange *x)
{
    enum { SAVED, LOST, LOST_BROKEN, N_WORDS };
    struct cpl_sharing *s = &x->sharing;
    int64_t calls = cpl_executor_work(s->executor).exchanges;
    if (calls < s->next_review)
        return;
    int64_t mine[N_WORDS] = {s->parts.saved * calls, s->lost, s->lost_broken}, all[N_WORDS] = {0};
    cpl_collective_Allreduce(mine, all, N_WORDS, MPI_INT64_T, MPI_SUM, state->private_comm);
    s->next_review += calls < LAST_CHECK ? calls : LAST_CHECK;
    if (MOST_LOST * all[LOST] <= all[SAVED])
        return;
    struct cpl_duplicates_found found;
    bool helps = 2 * all[LOST_BROKEN] >= all[LOST] && s->n_shared < MOST_SHARED;
    if (helps) {
        cpl_neighbor_share_free_parts(s);
        bool divided = look(call, x) && divide(s, &found);
        int64_t saved = divided ? s->parts.saved : 0, all_saved = 0;
        cpl_collective_Allreduce(&saved, &all_saved, 1, MPI_INT64_T, MPI_SUM, state->private_comm);
        helps =
            all_saved > 0 && share(call, state, x, divided, all_saved, x->plans.summary[0].bytes);
    }
    if (!helps)
        give_up(x);
}

void cpl_neighbor_share(const struct cpl_neighbor_call *call, struct cpl_comm_state *state,
                        struct cpl_exchange *x)
{
    struct cpl_sharing *s = &x->sharing;
    if (!s->active)
        return;
    if (s->executor) {
        if (!x->plans.trial.running)
            check(call, state, x);
        return;
    }
    s->calls++;
    if (s->calls < s->next_review && s->calls >= s->next_review - N_NOTED)
        note(call, x);
    if (s->calls < s->next_review || x->plans.trial.running)
        return;
    if (x->plans.trial.chosen > 0)
        review(call, state, x);
    else
        give_up(x); /* MPI carries it */
}

static void forget(void *context, int32_t message, int32_t position)
{
    struct cpl_sharing *s = context;
    cpl_duplicates_forget(s->duplicates, message, position);
}

void cpl_neighbor_share_prepare(struct cpl_exchange *x, const struct cpl_neighbor_data *data)
{
    struct cpl_sharing *s = &x->sharing;
    struct cpl_parts_tally tally;
    for (int32_t k = 0; k < s->n_messages; k++)
        s->pieces[k] = piece_of(x, data, k);
    cpl_parts_measure(&s->parts, s->pieces, &tally, forget, s);
    s->n_broken += tally.broken;
    s->lost += tally.lost;
    s->lost_broken += tally.lost_broken;
}

struct cpl_executor_work cpl_neighbor_share_work(const struct cpl_exchange *x)
{
    struct cpl_executor_work work = x->sharing.after;
    if (x->sharing.executor)
        add_work(&work, x->sharing.executor);
    return work;
}
