/* Planning without a root (plan_distributed.h).
 *
 * In each round every rank hands the messages that it has got to the next rank on their ways, for
 * all candidates at once: a sparse exchange of as many rounds as the longest way has hops. Messages
 * whose ways are the same from there on go as one record with their number, and where they end they
 * are a number, too: else a rank that many send to, and those around it, would hear of each as
 * often as there are candidates. Where all messages go straight nothing is told, since that number
 * is known then. Then each rank knows its edges by every candidate. Three reductions join what the
 * parts take; the ranks of a node add up the bytes on its port at the node's first rank. The
 * messages themselves are told for the fastest candidates only, and each rank makes its slices
 * after its receivers have told what they send later. */
#include "shim/plan/plan_distributed.h"

#include "planner/strategies/rows.h"
#include "shim/base/log.h"
#include "shim/base/work.h"
#include "shim/meet/agree.h"
#include "shim/plan/plan_root.h"
#include "shim/state/context.h"
#include "shim/wait/collective.h"

#include <stdlib.h>
#include <string.h>

/* What one rank takes for a message, roughly: collecting it, trying the first few candidates,
 * cutting slices (bench/results/planning.md). Further candidates and searches come on top. */
#define ROOT_MS_PER_MESSAGE 0.004

static const struct cpl_strategy *asked_for(struct cpl_strategy_choice *choice)
{
    *choice = (struct cpl_strategy_choice){NULL};
    cpl_strategy_parse(cpl_context.settings.strategy, choice, NULL);
    return choice->strategy;
}

/* With fewer ranks one of them takes no longer. */
#define LEAST_RANKS_FOR_SHORT 64

/* Whether planning together is the better short search of strategy auto: it finds what that finds
 * mostly, in milliseconds, unless ranks wait for a core in each round. What it does without
 * (doc/architecture.md) is left to the full search. */
static bool replaces_short(const struct cpl_agree_input *input, enum cpl_search search,
                           const struct cpl_plan_size *size)
{
    return search == CPL_SEARCH_SHORT && input->most_plans > 1 &&
           size->n_ranks >= LEAST_RANKS_FOR_SHORT && size->ranks_a_core < 1.5 &&
           cpl_plan_root_ms(size->n_messages, CPL_SEARCH_SHORT, 1, false) > CPL_DISTRIBUTED_MS;
}

bool cpl_plan_is_distributed(const struct cpl_agree_input *input, enum cpl_search search,
                             const struct cpl_plan_size *size)
{
    struct cpl_strategy_choice choice;
    const struct cpl_strategy *asked = asked_for(&choice);
    int planning = cpl_context.settings.planning;
    if (planning == CPL_PLANNING_ROOT || input->same_payload || !size->n_messages)
        return false;
    if (asked && !asked->router)
        return false;
    return planning == CPL_PLANNING_DISTRIBUTED ||
           (!asked && replaces_short(input, search, size)) ||
           ROOT_MS_PER_MESSAGE * (double)size->n_messages > (double)cpl_context.settings.budget;
}

/* --- the machine and the candidates, alike on all ranks */

/* Where all ranks sit, which every rank gets. Costs and the shape of a node are the first rank's.
 * Returns the same on all ranks; false: one had no memory. Collective. */
static bool find_machine(struct cpl_distributed *p)
{
    struct cpl_planning_costs costs;
    struct cpl_error error;
    const struct cpl_seat seat = cpl_agree_seat(p->comm);
    const int bytes = sizeof seat;
    struct cpl_seat *seats = calloc((size_t)p->n_ranks, sizeof seat);
    memset(&costs, 0, sizeof costs);
    if (p->rank == 0)
        costs = *cpl_plan_root_costs();
    cpl_collective_Bcast(&costs, (int)sizeof costs, MPI_BYTE, 0, p->comm);
    bool made = cpl_agree_all(p->comm, seats);
    if (made) {
        cpl_collective_Allgather(&seat, bytes, MPI_BYTE, seats, bytes, MPI_BYTE, p->comm);
        made = cpl_agree_all(p->comm,
                             !cpl_plan_machine(p->n_ranks, seats, &costs, &p->machine, &error));
        p->machine.lanes = cpl_context.settings.lanes;
    }
    free(seats);
    return made;
}

/* Adds a candidate if its routes are arithmetic. Returns false when memory ran out. */
static bool add(struct cpl_distributed *p, const struct cpl_strategy_input *input,
                const struct cpl_strategy_choice *choice)
{
    struct cpl_distributed_candidate *c = &p->candidate[p->n];
    struct cpl_error error;
    *c = (struct cpl_distributed_candidate){.choice = *choice,
                                            .machine = input->machine,
                                            .sum = &p->sum[p->n],
                                            .most = &p->sum[CPL_MAX_CANDIDATES + 1 + p->n]};
    enum cpl_status status = cpl_strategy_router(input, choice, &c->router, &error);
    if (!status && c->router.n_waves > CPL_LOCAL_WAVES) {
        cpl_router_free(&c->router);
        return true;
    }
    if (!status) {
        c->first_wave = p->n_waves;
        p->n_waves += c->router.n_waves;
        p->n++;
    }
    return status != CPL_ERR_NOMEM;
}

/* What MPI does first; then the strategy that is asked for, or all. */
static bool list_candidates(struct cpl_distributed *p)
{
    const struct cpl_pattern empty = {.n_ranks = p->n_ranks};
    const struct cpl_strategy_choice direct = {.strategy = &cpl_strategy_direct};
    struct cpl_strategy_input input = {&empty, &p->by_mpi, 1, (double)cpl_context.settings.budget};
    struct cpl_strategy_list list = {.n = 1};
    p->candidate = calloc(CPL_MAX_CANDIDATES + 1, sizeof *p->candidate);
    p->sum = calloc(2 * (CPL_MAX_CANDIDATES + 1), sizeof *p->sum);
    bool listed = p->candidate && p->sum && add(p, &input, &direct);
    input.machine = &p->machine;
    if (!asked_for(&list.choice[0])) {
        list.n = 0;
        cpl_strategy_candidates(&input, &list);
    }
    for (size_t k = 0; k < list.n && listed; k++)
        listed = add(p, &input, &list.choice[k]);
    p->tally = -1;
    for (int k = 0; k < p->n && p->tally < 0; k++)
        if (p->candidate[k].router.n_waves > 1)
            p->tally = k;
    if (listed) {
        p->port = calloc((size_t)p->n_waves, sizeof *p->port);
        p->us = calloc((size_t)p->n_waves, sizeof *p->us);
    }
    return cpl_agree_all(p->comm, listed && p->port && p->us);
}

/* --- what the candidates take */

static void find_loads(struct cpl_distributed *p)
{
    struct cpl_rank_load load[CPL_LOCAL_WAVES];
    for (int k = 0; k < p->n; k++) {
        struct cpl_distributed_candidate *c = &p->candidate[k];
        if (cpl_local_loads(&c->router, c->machine, p->rank, c->edges.at, c->edges.n, 1, load,
                            c->sum, NULL)) {
            p->failed = true;
            return;
        }
        if (cpl_distributed_is_tallied(p, c))
            cpl_local_add_endings(c->machine, &p->endings, 1, load, c->sum);
        *c->most = *c->sum;
        for (int32_t w = 0; w < c->router.n_waves; w++) {
            p->us[c->first_wave + w] = cpl_rank_load_time(&c->machine->costs, &load[w]);
            cpl_port_load_add(&p->port[c->first_wave + w], &load[w]);
        }
    }
}

/* A node's first rank adds up what its ranks load their port with: in the place of records travel
 * the waves of all candidates. */
static void add_ports(struct cpl_distributed *p)
{
    int32_t node = cpl_machine_node(&p->machine, p->rank), first = 0;
    int *to = calloc((size_t)p->n_waves, sizeof *to);
    while (cpl_machine_node(&p->machine, first) != node)
        first++;
    for (int w = 0; w < p->n_waves && to; w++)
        to[w] = first;
    int64_t came = cpl_distributed_round(p, to, p->port, to && first != p->rank ? p->n_waves : 0,
                                         sizeof *p->port);
    p->failed |= !to;
    for (int64_t k = 0; k < came; k++) {
        struct cpl_port_load port;
        memcpy(&port, (unsigned char *)p->came.at + (size_t)k * sizeof port, sizeof port);
        cpl_port_load_add(&p->port[k % p->n_waves],
                          &(struct cpl_rank_load){.net_out = port.net_out,
                                                  .net_in = port.net_in,
                                                  .recv_us = port.recv_us});
    }
    for (int w = 0; w < p->n_waves && first == p->rank; w++) {
        double us = cpl_port_load_time(&p->machine.costs, &p->port[w]);
        p->us[w] = us > p->us[w] ? us : p->us[w];
    }
    free(to);
}

_Static_assert(sizeof(struct cpl_local_counts) % sizeof(int64_t) == 0, "counts are words");

/* Joins the times, sums and maxima of all ranks. Returns false on all ranks when one failed. */
static bool join(struct cpl_distributed *p)
{
    const int n_words = p->n * (int)(sizeof *p->sum / sizeof(int64_t));
    if (!cpl_agree_all(p->comm, !p->failed))
        return false;
    cpl_collective_Allreduce(MPI_IN_PLACE, p->sum, n_words, MPI_INT64_T, MPI_SUM, p->comm);
    cpl_collective_Allreduce(MPI_IN_PLACE, p->candidate->most, n_words, MPI_INT64_T, MPI_MAX,
                             p->comm);
    cpl_collective_Allreduce(MPI_IN_PLACE, p->us, p->n_waves, MPI_DOUBLE, MPI_MAX, p->comm);
    for (int k = 0; k < p->n; k++)
        for (int32_t w = 0; w < p->candidate[k].router.n_waves; w++)
            p->candidate[k].us += p->us[p->candidate[k].first_wave + w];
    return true;
}

static struct cpl_metrics metrics_of(const struct cpl_distributed *p,
                                     const struct cpl_distributed_candidate *c)
{
    double n = (double)p->n_ranks;
    return (struct cpl_metrics){
        .n_waves = c->router.n_waves,
        .sends_max = c->most->sends,
        .sends_avg = (double)c->sum->sends / n,
        .recvs_max = c->most->recvs,
        .recvs_avg = (double)c->sum->recvs / n,
        .hops_max = (int32_t)c->most->most_hops,
        .hops_avg = c->sum->messages ? (double)c->sum->hops / (double)c->sum->messages : 0,
        .volume_factor = c->sum->volume ? (double)c->sum->carried / (double)c->sum->volume : 1,
        .modelled_us = c->us,
        .waves_us = c->us,
        .set_max = c->most->set,
        .set_avg = (double)c->sum->set / n,
        .lanes_avg = (double)c->sum->lanes / n,
        .mpi_max = c->most->mpi};
}

/* --- the slices */

/* Makes this rank's slice of a candidate's plan. Collective; the same on all ranks. */
static bool make_slice(struct cpl_distributed *p, const struct cpl_distributed_candidate *c,
                       struct cpl_plan_summary *summary, int32_t **words, int32_t *n_words)
{
    MPI_Comm comm = p->comm;
    struct cpl_local_plan local = {.n_in = 0};
    struct cpl_error error;
    uint64_t waves, hashes[2];
    bool made = !p->failed && !cpl_local_plan_make(&c->router, p->n_ranks, p->rank, c->passing.at,
                                                   c->passing.n, &local, &error);
    if (!cpl_agree_all(comm, made)) {
        if (made)
            cpl_local_plan_free(&local);
        return false;
    }
    cpl_distributed_tell_later(p, &local);
    waves = local.waves;
    cpl_collective_Allreduce(MPI_IN_PLACE, &waves, 1, MPI_UINT64_T, MPI_BOR, comm);
    cpl_local_plan_order(&local, waves);
    hashes[0] = local.row_hash;
    hashes[1] = local.edges_hash;
    cpl_collective_Allreduce(MPI_IN_PLACE, hashes, 2, MPI_UINT64_T, MPI_SUM, comm);
    summary->planned.n_waves = local.plan.n_waves;
    summary->pattern_fingerprint = cpl_pattern_join_hashes(p->n_ranks, hashes[0]);
    summary->plan_fingerprint = cpl_plan_join_hashes(summary->pattern_fingerprint, p->n_ranks,
                                                     local.plan.n_waves, hashes[1]);
    made = !p->failed && !cpl_local_plan_words(&local, summary->pattern_fingerprint,
                                               summary->plan_fingerprint, words, n_words, &error);
    cpl_local_plan_free(&local);
    return cpl_agree_all(comm, made);
}

/* Whether another one is there with as many waves. */
static bool has_waves(struct cpl_distributed_candidate *const *chosen, int n,
                      const struct cpl_distributed_candidate *c)
{
    for (int k = 0; k < n; k++)
        if (chosen[k]->router.n_waves == c->router.n_waves)
            return true;
    return false;
}

/* The fastest, then the fastest of each other number of waves if it is faster than MPI. */
static int choose(const struct cpl_distributed *p, struct cpl_distributed_candidate **chosen)
{
    int n = 0;
    for (bool more = true; more && n < p->input->most_plans;) {
        struct cpl_distributed_candidate *best = NULL;
        for (int k = 1; k < p->n; k++)
            if (!has_waves(chosen, n, &p->candidate[k]) && (!best || p->candidate[k].us < best->us))
                best = &p->candidate[k];
        more = best && (n == 0 || best->us < p->candidate[0].us);
        if (more)
            chosen[n++] = best;
    }
    return n;
}

static void summarise(const struct cpl_distributed *p, const struct cpl_distributed_candidate *c,
                      struct cpl_plan_summary *s)
{
    *s = (struct cpl_plan_summary){.known = 1,
                                   .cost = {.together = 1},
                                   .n_messages = c->sum->messages,
                                   .bytes = c->sum->volume,
                                   .direct = metrics_of(p, &p->candidate[0]),
                                   .planned = metrics_of(p, c),
                                   .reduced = CPL_EMBED_REFUSED};
    s->direct_us = s->direct.modelled_us;
    for (int k = 1; k < p->n; k++)
        if (p->candidate[k].choice.strategy == &cpl_strategy_direct)
            s->direct_us = p->candidate[k].us;
    cpl_strategy_label(&c->choice, &p->machine, s->strategy);
}

static bool plan(struct cpl_distributed *p, struct cpl_agree_output *output)
{
    struct cpl_distributed_candidate *chosen[CPL_MAX_PLANS];
    cpl_distributed_count(p);
    find_loads(p);
    add_ports(p);
    if (!join(p))
        return false;
    int n = choose(p, chosen);
    cpl_distributed_tell(p, chosen, n);
    for (int k = 0; k < n; k++) {
        struct cpl_plan_summary *s = &output->summary[k];
        summarise(p, chosen[k], s);
        output->n = k + 1;
        if (!make_slice(p, chosen[k], s, &output->words[k], &output->n_words[k]))
            return false;
        cpl_plan_decide(s, true, p->input->needed);
        if (!s->decided) {
            free(output->words[k]);
            output->words[k] = NULL;
        }
    }
    return n > 0;
}

/* What a record takes that this rank makes or gets. */
#define RECORD_MS 2e-4

static void free_all(struct cpl_distributed *p)
{
    for (int k = 0; k < p->n; k++) {
        free(p->candidate[k].passing.at);
        free(p->candidate[k].edges.at);
        cpl_router_free(&p->candidate[k].router);
    }
    free(p->candidate);
    free(p->sum);
    free(p->port);
    free(p->us);
    free(p->came.at);
    free(p->leaving.at);
    cpl_machine_free(&p->machine);
}

bool cpl_plan_distributed(MPI_Comm comm, const struct cpl_agree_input *input,
                          struct cpl_agree_output *output)
{
    double start = cpl_plan_now_ms();
    bool fits = true;
    struct cpl_distributed p = {.comm = comm, .input = input};
    PMPI_Comm_rank(comm, &p.rank);
    PMPI_Comm_size(comm, &p.n_ranks);
    memset(output, 0, sizeof *output);
    bool done = find_machine(&p);
    if (done) {
        p.by_mpi = cpl_machine_without_lanes(&p.machine);
        done = list_candidates(&p);
        fits = !done || p.n > 1; /* there are others than MPI */
        done = done && fits && plan(&p, output);
        cpl_work_planned(RECORD_MS * (double)p.n_handled);
    }
    double ms = cpl_plan_now_ms() - start;
    cpl_collective_Bcast(&ms, 1, MPI_DOUBLE, 0, comm);
    for (int k = 0; k < output->n && done; k++) {
        output->summary[k].cost.ms = ms;
        if (p.rank == 0)
            cpl_plan_log(&output->summary[k], input->most_plans > 1);
    }
    if (!done && p.rank == 0)
        cpl_log(CPL_LOG_WARN, "plan", "no plan: %s; the exchange is left to MPI",
                fits ? "a rank had no memory for the messages that pass through it"
                     : "CARPOOL_STRATEGY does not fit so many ranks and nodes");
    if (!done)
        cpl_agree_output_free(output);
    free_all(&p);
    return done;
}
