/* Ranking the strategies that do not search (strategy_rank.h).
 *
 * Where the budget is enough for it, all whose routes are routers are priced. Since that has to be
 * quick, a price is given up as soon as it is certain that it is above what matters, and the
 * candidates that may be the best by a sample of their messages (router_sample.h) come first: most
 * of the others are not even made. Where it is not enough, the model with barriers (router_cost.h)
 * says which ones are priced, and it looks at few messages of all candidates and at more of the
 * better ones. Those that look at all messages follow as far as the budget reaches. */
#include "planner/strategies/strategy_rank.h"

#include "planner/plan/plan_internal.h"
#include "planner/strategies/ranking_times.h"
#include "planner/strategies/router_cost.h"
#include "planner/strategies/router_sample.h"
#include "planner/strategies/rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Most prices are given up before all events are played: one is begun if all would take less than
 * ENDS_EARLY times what is left; and the last one if it is expected to end before LAST_MAY_END
 * times what there is. */
#define ENDS_EARLY   1.25
#define LAST_MAY_END 1.1

/* Ranking may take so long, whatever the budget. And what pricing all may take by price_ms, of
 * which it takes some quarter, since most prices are given up. */
#define LEAST_MS     100
#define ALL_LEAST_MS 500

/* Of what ranking may take: what each round of looking takes, after which one candidate in KEPT
 * stays, but FEWEST, and is looked at KEPT times as closely. */
#define LOOK_SHARE 0.1
#define KEPT       4
#define FEWEST     3
#define MOST_EVERY 1024 /* fewer messages say nothing */

/* A price corrects the looks at candidates that have none: by what it is to its own look, with
 * these weights for those of the same strategy and of others. A price that is given up counts as so
 * many times what it is above. A candidate of which no price says much is expected to take up to
 * UNKNOWN less; one that is expected to take EXPECTED_SLOWER times as long as the best is not
 * priced. */
#define OWN_WEIGHT      4
#define OTHER_WEIGHT    0.2
#define GIVEN_UP        1.05
#define UNKNOWN         0.1
#define EXPECTED_SLOWER 1.2

/* Looks of what makes the same plan, or almost, differ by no more than this part. */
#define SAME_LOOK 1e-6

void cpl_ranking_insert(struct cpl_ranking *ranking, const struct cpl_ranked_choice *ranked)
{
    size_t k = ranking->n++;
    for (; k > 0 && ranking->ranked[k - 1].us > ranked->us; k--)
        ranking->ranked[k] = ranking->ranked[k - 1];
    ranking->ranked[k] = *ranked;
}

#define ROUTES(name) &cpl_strategy_##name,
#define SEARCHES(name)
static const struct cpl_strategy *const rows[] = {
#include "planner/strategies/strategies.def"
};

/* Every candidate that does not search. */
static void list_candidates(const struct cpl_strategy_input *input, struct cpl_strategy_list *list)
{
    list->n = 0;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (rows[k]->candidates)
            rows[k]->candidates(rows[k], input, list);
}

int32_t cpl_strategy_rank_most_hops(const struct cpl_strategy_input *input)
{
    struct cpl_strategy_list list;
    int32_t most = 0;
    list_candidates(input, &list);
    for (size_t k = 0; k < list.n; k++) {
        int32_t hops = list.choice[k].strategy->most_hops(input, &list.choice[k].numbers);
        most = hops > most ? hops : most;
    }
    return most;
}

/* Deals the choices: the first of every strategy, the second of every one, and
 * so on, so that few of them are of all kinds. */
static void deal(const struct cpl_strategy_list *list, struct cpl_strategy_list *dealt)
{
    size_t place[CPL_MAX_CANDIDATES], last = 0;
    for (size_t k = 0; k < list->n; k++) {
        bool same = k > 0 && list->choice[k].strategy == list->choice[k - 1].strategy;
        place[k] = same ? place[k - 1] + 1 : 0;
        last = place[k] > last ? place[k] : last;
    }
    dealt->n = 0;
    for (size_t round = 0; round <= last; round++)
        for (size_t k = 0; k < list->n; k++)
            if (place[k] == round)
                dealt->choice[dealt->n++] = list->choice[k];
}

/* A candidate. */
struct runner {
    bool is_computed;
    double least_us; /* what it takes at least */
    double look_us;  /* its time by the model with barriers, if that was looked at */
    double us;       /* its price; INFINITY: it has none */
    double told_us;  /* what pricing it has told: its price, or what it is above; 0: nothing */
    int32_t n_waves; /* of its routes */
};

struct race {
    const struct cpl_strategy_input *input;
    struct cpl_strategy_list list; /* direct is the first */
    struct runner runner[CPL_MAX_CANDIDATES];
    bool hurries;          /* not all can be priced */
    bool searches;         /* a search follows, which needs starts */
    size_t first;          /* the best so far */
    double mpi_us;         /* where all ranks share a node that has lanes: direct by MPI; else 0 */
    struct cpl_plan *plan; /* its plan; NULL: nobody wants it */
    struct cpl_ranking_size size;
    double ms;                        /* of the budget, nominally spent */
    double expected_ms;               /* what the prices so far of routers were expected to take */
    double priced_ms;                 /* and what they took */
    double may_take_ms;               /* and what may be */
    double applied_ms;                /* and besides, on what applies to few patterns */
    const struct cpl_strategy *asked; /* the last row that was asked whether it applies */
    struct cpl_router_sample sample;
};

/* A price above this does not matter: that of the best with the same number of waves where all are
 * priced and it is faster than direct, or what is worth to start a search from. On a node with
 * lanes all that are faster than MPI may be tried (strategy.h), not only those faster than direct
 * by lanes. */
static double limit_us(const struct race *race, int32_t n_waves)
{
    double worth_us = race->runner[race->first].us * (race->searches ? CPL_WORTH_A_START : 1);
    double us = race->mpi_us > 0 ? race->mpi_us : race->runner[0].us;
    for (size_t k = 0; k < race->list.n; k++)
        if (race->runner[k].n_waves == n_waves && race->runner[k].us < us)
            us = race->runner[k].us;
    return race->hurries || us < worth_us ? worth_us : us;
}

/* Whether candidate k beats the best one: of equal ones the first in the list does. */
static bool leads(const struct race *race, size_t k)
{
    double us = race->runner[k].us, best_us = race->runner[race->first].us;
    return us < best_us || (!(us > best_us) && k < race->first);
}

static void keep_if_best(struct race *race, size_t k, struct cpl_plan *plan)
{
    bool is_best = k == race->first || leads(race, k);
    if (is_best)
        race->first = k;
    if (is_best && race->plan) {
        cpl_plan_free(race->plan);
        *race->plan = *plan;
    } else {
        cpl_plan_free(plan);
    }
}

/* Prices candidate k by its routes. */
static enum cpl_status price_routes(struct race *race, size_t k, const struct cpl_routes *routes,
                                    struct cpl_error *error)
{
    const struct cpl_strategy_input *input = race->input;
    struct runner *runner = &race->runner[k];
    double us;
    int64_t n_events = 0;
    struct cpl_plan plan;
    enum cpl_status status = cpl_plan_build_unmarked(input->pattern, routes, &plan, error);
    if (status)
        return status;
    double limit = limit_us(race, routes->n_waves);
    race->ms += cpl_build_ms(&race->size, &plan);
    bool is_only = !isfinite(race->runner[race->first].us);
    double most_ms =
        race->ms + cpl_events_ms(&race->size, &plan, CPL_RANKING_EVENTS * plan.n_edges);
    if (race->hurries && most_ms > (is_only ? 1 : ENDS_EARLY) * race->may_take_ms)
        us = is_only && runner->is_computed ? runner->look_us : INFINITY;
    else
        status = cpl_plan_chain_below(&plan, input->machine, input->unit_bytes, limit, &us,
                                      &n_events, error);
    if (status) {
        cpl_plan_free(&plan);
        return status;
    }
    race->ms += cpl_events_ms(&race->size, &plan, n_events);
    runner->us = us;
    if (n_events > 0)
        runner->told_us = isfinite(us) ? us : GIVEN_UP * limit;
    runner->n_waves = routes->n_waves;
    if (isfinite(runner->us))
        keep_if_best(race, k, &plan);
    else
        cpl_plan_free(&plan);
    return CPL_OK;
}

/* Prices candidate k, unless some of its ranks alone show that it is too slow. */
static enum cpl_status price(struct race *race, size_t k, struct cpl_error *error)
{
    struct cpl_routes routes;
    double busy_us = 0;
    enum cpl_status status = cpl_strategy_route(race->input, &race->list.choice[k], &routes, error);
    if (status)
        return status == CPL_ERR_UNFIT ? CPL_OK : status;
    if (!race->hurries)
        status = cpl_router_sample_busy(&race->sample, &routes, &busy_us);
    if (status)
        cpl_fail_memory(error, "ranking the strategies");
    else if (busy_us <= limit_us(race, routes.n_waves))
        status = price_routes(race, k, &routes, error);
    cpl_routes_free(&routes);
    return status;
}

static int32_t most_hops(const struct race *race, size_t k)
{
    const struct cpl_strategy_choice *choice = &race->list.choice[k];
    return choice->strategy->most_hops(race->input, &choice->numbers);
}

static double price_ms(const struct race *race, size_t k)
{
    return cpl_price_ms(&race->size, most_hops(race, k));
}

/* Looks at samples of all candidates. */
static enum cpl_status look_at_all(struct race *race, struct cpl_arena *arena,
                                   struct cpl_error *error)
{
    enum cpl_status status = cpl_router_sample_init(&race->sample, race->input, arena);
    if (status)
        cpl_fail_memory(error, "ranking the strategies");
    for (size_t k = 0; k < race->list.n && !status; k++) {
        struct runner *runner = &race->runner[k];
        struct cpl_router router;
        *runner = (struct runner){.us = INFINITY};
        status = cpl_strategy_router(race->input, &race->list.choice[k], &router, error);
        runner->is_computed = !status;
        if (!status) {
            runner->n_waves = router.n_waves;
            runner->least_us = cpl_router_sample_bound(&race->sample, &router);
            cpl_router_free(&router);
        } else if (status == CPL_ERR_UNFIT) {
            status = CPL_OK;
        }
    }
    return status;
}

/* The next router to price: of those that have not been, the one that may be best. n: there is
 * none.
 */
static size_t next_router(const struct race *race, const bool *done)
{
    size_t next = race->list.n;
    for (size_t k = 0; k < race->list.n; k++)
        if (race->runner[k].is_computed && !done[k] &&
            (next == race->list.n || race->runner[k].least_us < race->runner[next].least_us))
            next = k;
    return next;
}

static enum cpl_status price_all(struct race *race, struct cpl_error *error)
{
    bool done[CPL_MAX_CANDIDATES] = {true};
    enum cpl_status status = price(race, 0, error);
    for (size_t k = next_router(race, done); k < race->list.n && !status;
         k = next_router(race, done)) {
        done[k] = true;
        if (race->runner[k].least_us <= limit_us(race, race->runner[k].n_waves))
            status = price(race, k, error);
    }
    return status;
}

static double look_ms(const struct race *race, size_t k, int32_t every)
{
    return cpl_look_ms(&race->size, most_hops(race, k), every);
}

static enum cpl_status look(struct race *race, const struct cpl_router_looks *looks, size_t k,
                            struct cpl_error *error)
{
    struct cpl_router router;
    enum cpl_status status =
        cpl_strategy_router(race->input, &race->list.choice[k], &router, error);
    if (status)
        return status;
    status = cpl_router_look(looks, &router, &race->runner[k].look_us);
    cpl_router_free(&router);
    race->ms += look_ms(race, k, looks->every);
    return status ? cpl_fail_memory(error, "ranking the strategies") : CPL_OK;
}

/* Puts candidates in the order of their times, of which one more comes. */
static void put_in_order(const struct race *race, size_t *order, size_t n, size_t candidate)
{
    for (; n > 0 && race->runner[order[n - 1]].look_us > race->runner[candidate].look_us; n--)
        order[n] = order[n - 1];
    order[n] = candidate;
}

/* A round: looks at one message in `every` of each of n candidates, and puts them in order. */
static enum cpl_status look_at_some(struct race *race, int32_t every, size_t *order, size_t n,
                                    struct cpl_error *error)
{
    struct cpl_arena arena = CPL_ARENA_EMPTY;
    struct cpl_router_looks looks;
    enum cpl_status status = cpl_router_looks_init(&looks, race->input, every, &arena);
    if (status)
        cpl_fail_memory(error, "ranking the strategies");
    for (size_t k = 0; k < n && !status; k++) {
        size_t candidate = order[k];
        status = look(race, &looks, candidate, error);
        put_in_order(race, order, k, candidate);
    }
    cpl_arena_free(&arena);
    return status;
}

/* What a round takes about. */
static double round_ms(const struct race *race, int32_t every, const size_t *order, size_t n)
{
    double ms = 0;
    for (size_t k = 0; k < n; k++)
        ms += look_ms(race, order[k], every);
    return ms;
}

static double sum_looks(const struct race *race, const size_t *order, size_t n)
{
    double sum = 0;
    for (size_t k = 0; k < n; k++)
        sum += race->runner[order[k]].look_us;
    return sum;
}

/* Looks at all candidates in rounds, each of which looks at more messages of fewer candidates:
 * those that may be the fastest. Closer looks are other times than less close ones; those at
 * candidates that are not looked at again change with the others. */
static enum cpl_status look_closer(struct race *race, struct cpl_error *error)
{
    double most_ms = LOOK_SHARE * race->may_take_ms;
    int32_t every = 1;
    size_t order[CPL_MAX_CANDIDATES], n_all = 0;
    enum cpl_status status = CPL_OK;
    for (size_t k = 0; k < race->list.n; k++)
        if (race->runner[k].is_computed)
            order[n_all++] = k;
    size_t n = n_all;
    while (round_ms(race, every, order, n) > most_ms && every < MOST_EVERY)
        every *= KEPT;
    for (bool goes_on = true; goes_on && !status;) {
        double before_us = sum_looks(race, order, n);
        status = look_at_some(race, every, order, n, error);
        double times = before_us > 0 ? sum_looks(race, order, n) / before_us : 1;
        for (size_t k = n; k < n_all; k++)
            race->runner[order[k]].look_us *= times;
        if (n > FEWEST)
            n = n / KEPT > FEWEST ? n / KEPT : FEWEST;
        every /= KEPT;
        goes_on = every > 0 && round_ms(race, every, order, n) <= 2 * most_ms;
    }
    return status;
}

/* What candidate `at` is expected to take, by the look at it and what prices were to looks. */
static double expected_us(const struct race *race, size_t at)
{
    double weights = 0, ratios = 0;
    for (size_t k = 0; k < race->list.n; k++) {
        bool is_own = race->list.choice[k].strategy == race->list.choice[at].strategy &&
                      race->runner[k].n_waves == race->runner[at].n_waves;
        double weight = OTHER_WEIGHT + (is_own ? OWN_WEIGHT : 0);
        if (!race->runner[k].is_computed || !(race->runner[k].told_us > 0))
            continue;
        weights += weight;
        ratios += weight * race->runner[k].told_us / race->runner[k].look_us;
    }
    double ratio = weights > 0 ? ratios / weights : 1;
    return race->runner[at].look_us * ratio * (1 - UNKNOWN / (1 + weights));
}

/* Whether some candidate that has been priced makes the same plan, by the looks at both. */
static bool is_known(const struct race *race, const bool *priced, size_t at)
{
    const struct runner *runner = &race->runner[at];
    for (size_t k = 0; k < race->list.n; k++) {
        double differs = fabs(race->runner[k].look_us - runner->look_us);
        if (priced[k] && race->runner[k].n_waves == runner->n_waves &&
            differs <= SAME_LOOK * runner->look_us)
            return true;
    }
    return false;
}

/* The router to price next: the one that is expected to take least, of those that there is time for
 * and that may be the best. Direct may be unless its bound is above that, since all else is
 * measured against it. list.n: there is none. */
static size_t next_price(const struct race *race, const bool *priced)
{
    double best_us = race->runner[race->first].us, least_us = INFINITY;
    double times = race->expected_ms > 0 ? race->priced_ms / race->expected_ms : 1;
    size_t next = race->list.n;
    for (size_t k = 0; k < race->list.n; k++) {
        double us = race->runner[k].is_computed && !priced[k] ? expected_us(race, k) : INFINITY;
        double ms = race->ms + times * price_ms(race, k);
        bool fits = !isfinite(best_us) || ms <= LAST_MAY_END * race->may_take_ms;
        bool may_be_best =
            k == 0 ? race->runner[k].least_us <= best_us : us <= EXPECTED_SLOWER * best_us;
        if (us < least_us && fits && may_be_best && !is_known(race, priced, k)) {
            least_us = us;
            next = k;
        }
    }
    return next;
}

/* Prices as many of the routers as the budget allows, and at least one. */
static enum cpl_status price_best(struct race *race, struct cpl_error *error)
{
    bool priced[CPL_MAX_CANDIDATES] = {false};
    enum cpl_status status = look_closer(race, error);
    for (size_t k = next_price(race, priced); k < race->list.n && !status;
         k = next_price(race, priced)) {
        double before_ms = race->ms;
        priced[k] = true;
        status = price(race, k, error);
        race->expected_ms += price_ms(race, k);
        race->priced_ms += race->ms - before_ms;
    }
    return status;
}

/* Of what ranking may take, where not all routers are priced: what may go to what applies to few
 * patterns, which comes first then. */
#define APPLYING_SHARE 0.5

/* Whether candidate k, which looks at all messages and applies to few patterns, is priced. Where
 * all routers are, there is as much again for these. */
static enum cpl_status ask(struct race *race, size_t k, bool *is_priced, struct cpl_error *error)
{
    const struct cpl_strategy_choice *choice = &race->list.choice[k];
    double ms = price_ms(race, k), *spent_ms = race->hurries ? &race->ms : &race->applied_ms;
    double most_ms = race->may_take_ms * (race->hurries ? APPLYING_SHARE : 1);
    double ask_ms = cpl_ask_ms(&race->size);
    bool applies = false, asked = race->asked == choice->strategy;
    *is_priced = false;
    if (!asked && *spent_ms + ask_ms > most_ms)
        return CPL_OK;
    race->asked = choice->strategy; /* the first of a row takes longest */
    *spent_ms += asked ? 0 : ask_ms;
    enum cpl_status status =
        choice->strategy->applies(race->input, &choice->numbers, &applies, error);
    *is_priced = applies && *spent_ms + ms <= most_ms;
    race->applied_ms += *is_priced && !race->hurries ? ms : 0; /* else price() counts it */
    return status;
}

/* What it takes to route a candidate that is no router, where its strategy has routers: it looks
 * for a map. */
static double map_ms(const struct race *race, size_t k)
{
    bool has_map = race->hurries && race->list.choice[k].strategy->router;
    return has_map ? cpl_map_ms(&race->size) : 0;
}

/* Prices what is no router, as far as the budget reaches: what applies to few patterns, or the
 * others. */
static enum cpl_status price_others(struct race *race, bool applying, struct cpl_error *error)
{
    enum cpl_status status = CPL_OK;
    for (size_t k = 0; k < race->list.n && !status; k++) {
        bool is_priced = race->ms + map_ms(race, k) + price_ms(race, k) <= race->may_take_ms;
        if (race->runner[k].is_computed || !race->list.choice[k].strategy->applies == applying)
            continue;
        if (applying)
            status = ask(race, k, &is_priced, error);
        race->ms += is_priced ? map_ms(race, k) : 0;
        if (!status && is_priced)
            status = price(race, k, error);
    }
    return status;
}

static enum cpl_status price_everything(struct race *race, struct cpl_error *error)
{
    double all_ms = 0;
    for (size_t k = 0; k < race->list.n; k++)
        all_ms += race->runner[k].is_computed ? price_ms(race, k) : 0;
    race->hurries = all_ms > race->input->budget_ms && all_ms > ALL_LEAST_MS;
    if (race->hurries)
        race->size.far = cpl_part_far(race->input->pattern);
    enum cpl_status status = race->hurries ? price_others(race, true, error) : CPL_OK;
    if (!status)
        status = race->hurries ? price_best(race, error) : price_all(race, error);
    if (!status && !race->hurries)
        status = price_others(race, true, error);
    return status ? status : price_others(race, false, error);
}

static enum cpl_status price_mpi(struct race *race, struct cpl_error *error)
{
    struct cpl_metrics mpi;
    if (!race->input->machine->lanes || race->input->machine->n_nodes > 1)
        return CPL_OK;
    enum cpl_status status = cpl_strategy_measure_mpi(race->input, &mpi, error);
    if (!status)
        race->mpi_us = mpi.modelled_us;
    return status;
}

/* On the heap: programs call MPI on small stacks, too. NULL when memory ran out. */
static struct race *make_race(const struct cpl_strategy_input *input, bool searches)
{
    double ms = (searches ? CPL_RANKING_SHARE : 1) * input->budget_ms;
    struct cpl_strategy_list *all = malloc(sizeof *all);
    struct race *race = calloc(1, sizeof *race);
    if (all && race) {
        race->input = input;
        race->searches = searches;
        race->size = (struct cpl_ranking_size){(double)input->pattern->n_messages,
                                               input->pattern->n_ranks, 1};
        race->may_take_ms = ms > LEAST_MS ? ms : LEAST_MS;
        list_candidates(input, all);
        deal(all, &race->list);
    } else {
        free(race);
        race = NULL;
    }
    free(all);
    return race;
}

static enum cpl_status run_race(struct race *race, struct cpl_error *error)
{
    struct cpl_arena arena = CPL_ARENA_EMPTY;
    enum cpl_status status = price_mpi(race, error);
    if (!status)
        status = look_at_all(race, &arena, error);
    if (!status)
        status = price_everything(race, error);
    cpl_arena_free(&arena);
    return status;
}

static void rank_runners(const struct race *race, struct cpl_ranking *ranking)
{
    *ranking = (struct cpl_ranking){.ms = race->ms};
    for (size_t k = 0; k < race->list.n; k++)
        if (isfinite(race->runner[k].us))
            cpl_ranking_insert(ranking, &(struct cpl_ranked_choice){race->list.choice[k],
                                                                    race->runner[k].n_waves,
                                                                    race->runner[k].us});
}

enum cpl_status cpl_strategy_rank(const struct cpl_strategy_input *input, bool searches,
                                  struct cpl_ranking *ranking, struct cpl_plan *best,
                                  struct cpl_error *error)
{
    struct cpl_plan fastest = {.arena = CPL_ARENA_EMPTY};
    struct race *race = make_race(input, searches);
    if (!race)
        return cpl_fail_memory(error, "the strategies that are compared");
    race->plan = best ? &fastest : NULL;
    enum cpl_status status = run_race(race, error);
    if (status)
        cpl_plan_free(&fastest);
    else
        rank_runners(race, ranking);
    free(race);
    if (!status && best) {
        cpl_plan_mark(input->pattern, &fastest);
        *best = fastest;
    }
    return status;
}
