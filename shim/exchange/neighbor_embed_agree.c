/* Nonblocking neighborhood collectives that ride in reductions (neighbor_embed.h): what the ranks
 * agree on, and the end. */
#include "shim/base/log.h"
#include "shim/carry/embed.h"
#include "shim/carry/line.h"
#include "shim/exchange/neighbor_embed.h"
#include "shim/exchange/neighbor_internal.h"
#include "shim/meet/agree.h"
#include "shim/meet/meeting.h"
#include "shim/plan/embed_map.h"
#include "shim/plan/plan_agree.h"
#include "shim/plan/plan_root.h"
#include "shim/state/comm_state.h"
#include "shim/state/context.h"
#include "shim/state/hooks.h"
#include "shim/wait/away.h"
#include "shim/wait/collective.h"
#include "shim/wait/progress.h"

#include <stdlib.h>
#include <utlist.h>

#define NONE               INT64_MAX
#define LEAST_CALLS        4  /* that reductions must have followed */
#define MOST_HOSTED        16 /* exchanges of a communicator */
#define LONGEST_PAUSE      64 /* between reviews of what rides, in blocking collectives */
#define CARRIED_PER_MISSED 8  /* of so many calls that were to ride, one may have left alone, */
#define FORGIVEN           8  /* and so many more */

/* Whether one message goes along each edge of this rank. */
static bool is_simple(const struct cpl_adjacency *a)
{
    bool simple = a->in.n_self <= 1 && a->out.n_self == a->in.n_self;
    for (int m = 0; m < a->in.n_messages; m++)
        simple &= a->in.first_part[m + 1] - a->in.first_part[m] == 1;
    for (int m = 0; m < a->out.n_messages; m++)
        simple &= a->out.first_part[m + 1] - a->out.first_part[m] == 1;
    return simple;
}

static bool is_able(const struct cpl_exchange *x)
{
    return x->embedding.state->watched && is_simple(x->adjacency) && cpl_context.n_epochs == 0 &&
           !cpl_context.met_others && !cpl_context.service.barred;
}

static enum cpl_embed_host host_of(const struct cpl_comm_state *host,
                                   const struct cpl_comm_state *state)
{
    return host == state ? CPL_HOST_SELF : CPL_HOST_WORLD;
}

/* Whether it is time to settle about an exchange: reductions of this communicator mostly follow. */
static bool is_ripe(const struct cpl_comm_state *host, const struct cpl_comm_state *state,
                    const struct cpl_exchange *x)
{
    const struct cpl_embedding *e = &x->embedding;
    if (!x->nonblocking.settled || e->settled || (state != host && host->comm != MPI_COMM_WORLD))
        return false;
    int64_t n = e->n_reduced[host_of(host, state)];
    return n >= LEAST_CALLS && 2 * n > e->n_seen;
}

static int64_t id_of(const struct cpl_comm_state *state, const struct cpl_exchange *x)
{
    return state->serve->id * CPL_N_NEIGHBOR_KINDS + (int64_t)x->kind;
}

/* The ripe exchange with the lowest number; NULL: none. */
static struct cpl_exchange *find_ripe(const struct cpl_comm_state *host)
{
    struct cpl_exchange *found = NULL;
    for (struct cpl_comm_state *s = cpl_context.comms.first; s; s = s->next)
        for (int k = 0; s->serve->named && k < CPL_ALLTOALLV; k++) {
            struct cpl_exchange *x = &s->exchanges[k];
            if (is_ripe(host, s, x) &&
                (!found || id_of(s, x) < id_of(found->embedding.state, found)))
                found = x;
        }
    return found;
}

struct cpl_embed_ballot cpl_neighbor_embed_ballot(const struct cpl_comm_state *host)
{
    struct cpl_embed_ballot b = {.id = NONE, .id_negated = -NONE};
    const struct cpl_exchange *x = find_ripe(host);
    if (!x)
        return b;
    const struct cpl_embedding *e = &x->embedding;
    enum cpl_embed_host of = host_of(host, e->state);
    b.id = id_of(e->state, x);
    b.id_negated = -b.id;
    b.started = x->nonblocking.n;
    b.started_negated = -b.started;
    if (is_able(x))
        b.verdict =
            2 * e->n_in_any_order[of] > e->n_seen ? CPL_EMBED_ANY_ORDER : CPL_EMBED_COMPARING;
    return b;
}

/* Whether it is modelled to pay: beside MPI, and beside the plan that carries the calls. The same
 * answer on all ranks. */
static bool pays(const struct cpl_exchange *x)
{
    const struct cpl_plan_summary *s = &x->plans.summary[0];
    if (cpl_context.settings.mode == CPL_MODE_FORCE)
        return true;
    return s->known && cpl_plan_managed_promises(s, s->embedded_us, s->direct.modelled_us) &&
           (!x->nonblocking.served || s->embedded_us < s->planned.modelled_us);
}

/* The communicator is no longer polled for what reductions carry: nothing may be under way. Local,
 * on all ranks alike. */
static void close_host(struct cpl_comm_state *host)
{
    struct cpl_hosted *r = host->hosted;
    if (!host->line->hosts)
        return;
    if (host->line->hosted_match.sources)
        cpl_match_free(&host->line->hosted_match);
    free(host->line->hosted_number);
    host->line->hosted_number = NULL;
    host->line->hosts = false;
    *r = (struct cpl_hosted){.n = 0};
    cpl_context.busy.n_hosts--;
    cpl_progress_update();
    cpl_line_close(host);
}

/* Makes a communicator ready to carry calls in its reductions. Collective, the same answer on all
 * ranks. */
static bool open_host(struct cpl_comm_state *host)
{
    struct cpl_hosted *r = host->hosted;
    if (host->line->hosts)
        return r->n < MOST_HOSTED;
    bool prepared = cpl_agree_service(host->private_comm);
    bool ready =
        cpl_match_init(&host->line->hosted_match, host->size, host->private_comm, CPL_HOSTED_TAG) &&
        prepared;
    host->line->hosted_number = calloc((size_t)host->size, sizeof *host->line->hosted_number);
    ready = ready && host->line->hosted_number && cpl_line_open(host) && cpl_embed_init(host);
    ready = cpl_agree_all(host->private_comm, ready);
    host->line->hosts = true;
    cpl_context.busy.n_hosts++;
    cpl_progress_update();
    if (!ready) {
        close_host(host);
        return false;
    }
    host->line->embed.on = true;
    cpl_line_link(host);
    return true;
}

/* Places the ranks for what rides, unless they have been. Collective. */
static void map_ranks(struct cpl_comm_state *host, const struct cpl_exchange *x)
{
    const struct cpl_neighbors *out = &x->adjacency->out;
    const struct cpl_plan_summary *s = &x->plans.summary[0];
    if (host->line->embed.points)
        return;
    int64_t *messages =
        calloc((size_t)out->n_messages + 1, CPL_EMBED_MESSAGE_WORDS * sizeof *messages);
    for (int m = 0; messages && m < out->n_messages; m++) {
        int64_t *words = messages + (size_t)m * CPL_EMBED_MESSAGE_WORDS;
        words[CPL_EMBED_MESSAGE_DST] = out->rank[m];
        words[CPL_EMBED_MESSAGE_BYTES] = s->n_messages > 0 ? s->bytes / s->n_messages : 0;
    }
    cpl_embed_map(host, out->n_messages, messages);
    free(messages);
}

static void add_hosted(struct cpl_comm_state *host, struct cpl_exchange *x)
{
    struct cpl_hosted *r = host->hosted;
    struct cpl_embedding *e = &x->embedding;
    const struct cpl_embed *embed = &host->line->embed;
    e->reductions = -embed->n_reductions;
    e->sends = -embed->n_sends;
    e->late = -embed->n_late;
    e->on = host;
    e->tag = r->next_tag++;
    r->n++;
    LL_APPEND2(r->first, x, embedding.next);
    if (host->rank == 0)
        cpl_log(CPL_LOG_INFO, "embed",
                "nonblocking %s, %d ranks: its messages ride in the reductions that follow",
                cpl_exchange_kind_name(x->kind), host->size);
}

bool cpl_neighbor_embed_settle(struct cpl_comm_state *host, const struct cpl_embed_ballot *all)
{
    if (all->id == NONE || all->id != -all->id_negated || all->started != -all->started_negated)
        return false;
    struct cpl_exchange *x = find_ripe(host);
    struct cpl_embedding *e = &x->embedding;
    e->settled = true;
    if (all->verdict == CPL_EMBED_REFUSED)
        e->left = CPL_EMBED_LEFT_EDGES;
    else if (!pays(x))
        e->left = CPL_EMBED_LEFT_NO_GAIN;
    else if (!open_host(host))
        e->left = CPL_EMBED_LEFT_FULL;
    if (e->left != CPL_EMBED_LEFT_NOT)
        return true;
    if (all->verdict == CPL_EMBED_ANY_ORDER)
        map_ranks(host, x);
    add_hosted(host, x);
    return true;
}

void cpl_neighbor_embed_end(struct cpl_exchange *x, enum cpl_embed_left reason)
{
    struct cpl_embedding *e = &x->embedding;
    struct cpl_comm_state *host = e->on;
    if (!host)
        return;
    const struct cpl_embed *embed = &host->line->embed;
    e->reductions += embed->n_reductions;
    e->sends += embed->n_sends;
    e->late += embed->n_late;
    e->mapped = embed->points;
    e->left = reason;
    e->on = NULL;
    LL_DELETE2(host->hosted->first, x, embedding.next);
    host->hosted->n--;
}

void cpl_neighbor_embed_forget(struct cpl_exchange *x)
{
    cpl_neighbor_embed_unopen(x);
    cpl_neighbor_embed_end(x, CPL_EMBED_LEFT_NOT);
}

static bool misses(const struct cpl_embedding *e)
{
    return (e->n_missed - FORGIVEN) * CARRIED_PER_MISSED > e->n_carried;
}

/* The words of a vote: how many ride, and of each, in order, whether all ranks are as far and it
 * stays. The least counts. */
enum { N_HOSTED, N_HOSTED_NEGATED, FIRST_HOSTED };
enum { STARTED, STARTED_NEGATED, STAYS, HOSTED_WORDS };

static void vote(struct cpl_comm_state *host, int64_t *words)
{
    struct cpl_hosted *r = host->hosted;
    struct cpl_exchange *x;
    words[N_HOSTED] = r->n;
    words[N_HOSTED_NEGATED] = -r->n;
    words += FIRST_HOSTED;
    LL_FOREACH2(r->first, x, embedding.next)
    {
        words[STARTED] = x->nonblocking.n;
        words[STARTED_NEGATED] = -x->nonblocking.n;
        words[STAYS] = !misses(&x->embedding);
        words += HOSTED_WORDS;
    }
}

/* Ends what does not ride often enough. */
static enum cpl_settled review(struct cpl_comm_state *host, bool regular, const int64_t *words)
{
    struct cpl_hosted *r = host->hosted;
    struct cpl_exchange *x, *next;
    if (!regular || words[N_HOSTED] != -words[N_HOSTED_NEGATED])
        return CPL_SETTLED;
    words += FIRST_HOSTED;
    LL_FOREACH_SAFE2(r->first, x, next, embedding.next)
    {
        if (words[STARTED] == -words[STARTED_NEGATED] && !words[STAYS])
            cpl_neighbor_embed_end(x, CPL_EMBED_LEFT_MISSED);
        words += HOSTED_WORDS;
    }
    if (r->n > 0)
        return CPL_SETTLED;
    cpl_line_drain(host);
    close_host(host);
    return CPL_SETTLED;
}

static struct cpl_date *date(struct cpl_comm_state *host)
{
    return host->line->hosts ? &host->hosted->review : NULL;
}

static int64_t longest(const struct cpl_comm_state *host)
{
    (void)host;
    return LONGEST_PAUSE;
}

static const struct cpl_item item = {.name = "collectives in reductions",
                                     .first = 2,
                                     .n_least = FIRST_HOSTED + MOST_HOSTED * HOSTED_WORDS,
                                     .date = date,
                                     .longest = longest,
                                     .vote = vote,
                                     .settle = review};

/* What rides in the communicator's reductions is completed. */
static void end_all(struct cpl_comm_state *host)
{
    struct cpl_exchange *x;
    while ((x = host->hosted->first)) {
        cpl_neighbor_drain(x);
        cpl_neighbor_embed_end(x, CPL_EMBED_LEFT_NOT);
    }
}

static void meet(struct cpl_comm_state *state)
{
    static const struct cpl_hosted blank;
    state->hosted = (struct cpl_hosted *)&blank;
}

static bool begin(struct cpl_comm_state *state)
{
    state->hosted = calloc(1, sizeof *state->hosted);
    return state->hosted;
}

static void end(struct cpl_comm_state *state)
{
    if (!state->line->hosts)
        return;
    end_all(state);
    cpl_line_drain(state);
    close_host(state);
}

const struct cpl_hooks cpl_hosted_hooks = {.name = "hosted collectives",
                                           .meet = meet,
                                           .begin = begin,
                                           .end = end,
                                           .leave = cpl_neighbor_embed_leave,
                                           .serve = cpl_neighbor_embed_leave_late,
                                           .board = cpl_neighbor_embed_board,
                                           .item = &item};
