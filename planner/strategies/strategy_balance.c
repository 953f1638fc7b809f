/* balance: searches for the plan with the smallest modelled time, or (hops=N) for the one whose
 * busiest rank sends and receives the fewest combined messages with at most N hops. Our own.
 *
 * For time: the best plans of the other strategies with up to five waves, and what a cover search
 * (cover_search.h) makes of the best one with three, are improved under the full model
 * (improve.h) with a share of the budget each; the best one is improved again and again with the
 * rest. For counts: the cover search alone, from the virtual process topology of as many
 * dimensions. Never worse than what it starts from. */
#include "planner/search/cover.h"
#include "planner/search/cover_price.h"
#include "planner/search/cover_search.h"
#include "planner/strategies/improve.h"
#include "planner/strategies/rows.h"
#include "planner/strategies/strategy_rank.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Steps of the searches in a nominal millisecond; those of a cover with more messages than these
 * take longer, twice as long with twice as many. */
#define COVER_STEPS_PER_MS   110000
#define IMPROVE_STEPS_PER_MS 115000
#define COVER_MESSAGES       50000

/* Nominal milliseconds to make a start, and to begin an attempt to improve one, per message and
 * wave; how many times as long an attempt must take, and how many there are for each start. */
#define BEGIN_MS_PER_RIDE  2.5e-4
#define WORTH_BEGINNING    4
#define ATTEMPTS_PER_START 3

/* More effort than this many steps for each message has not been seen to help. */
#define MOST_STEPS_PER_MESSAGE 20000

#define MOST_STARTS 5 /* routes that are improved before one is chosen */
#define MOST_WAVES  5 /* of a start */
/* Starts with fewer get empty waves, for the search to use. */
#define FEWEST_WAVES 3

enum { GOAL_TIME = 0, FEWEST_HOPS = 2, MOST_HOPS = 3 };

/* The time to search, when so much has been spent already. */
static double effort_ms(const struct cpl_strategy_input *input, double spent_ms)
{
    double most =
        (double)input->pattern->n_messages * MOST_STEPS_PER_MESSAGE / IMPROVE_STEPS_PER_MS;
    double left = input->budget_ms > spent_ms ? input->budget_ms - spent_ms : 0;
    return left < most ? left : most;
}

struct cover_task {
    int32_t n_hops;
    enum cpl_cover_goal goal;
    double ms;
};

/* The steps of a cover search in so many milliseconds. */
static int64_t cover_steps(const struct cpl_strategy_input *input, double ms)
{
    double times = (double)input->pattern->n_messages / COVER_MESSAGES;
    return (int64_t)(ms * COVER_STEPS_PER_MS / (times > 1 ? times : 1));
}

/* Searches a cover of the routes for fewer or cheaper combined messages and replaces them. The
 * pattern must have no parts. */
static enum cpl_status search_cover(const struct cpl_strategy_input *input, const void *how,
                                    struct cpl_routes *routes, struct cpl_error *error)
{
    const struct cover_task *task = how;
    struct cpl_arena arena = CPL_ARENA_EMPTY;
    struct cpl_cover cover;
    struct cpl_cover_price price;
    struct cpl_routes found;
    enum cpl_status status = cpl_cover_init(&cover, input->pattern, task->n_hops, &arena, error);
    if (!status)
        status = cpl_cover_price_init(&price, task->goal, input->machine, &arena, error);
    if (!status)
        status = cpl_cover_add_routes(&cover, routes, error);
    if (!status) {
        struct cpl_cover_schedule schedule = {.work = cover_steps(input, task->ms)};
        cpl_cover_schedule_for(&price, task->n_hops, &schedule);
        status = cpl_cover_search(&cover, &price, &schedule);
        if (status)
            cpl_fail_memory(error, "the search");
    }
    if (!status)
        status = cpl_cover_routes(&cover, &found, error);
    cpl_arena_free(&arena);
    if (status)
        return status;
    cpl_routes_free(routes);
    *routes = found;
    return CPL_OK;
}

/* A search that replaces or changes routes of a pattern without parts. */
typedef enum cpl_status search(const struct cpl_strategy_input *input, const void *how,
                               struct cpl_routes *routes, struct cpl_error *error);

/* Makes a search for a pattern that may have parts, where those of a pair keep together: as if
 * nothing could be shared. The parts of a pair must have the same route. */
static enum cpl_status by_pairs(const struct cpl_strategy_input *input, search *search_pairs,
                                const void *how, struct cpl_routes *routes, struct cpl_error *error)
{
    struct cpl_strategy_input undivided = *input;
    struct cpl_routes of_pairs, of_parts;
    if (!input->pattern->pairs)
        return search_pairs(input, how, routes, error);
    undivided.pattern = input->pattern->pairs;
    enum cpl_status status = cpl_routes_of_pairs(input->pattern, routes, &of_pairs, error);
    if (status)
        return status;
    status = search_pairs(&undivided, how, &of_pairs, error);
    if (!status)
        status = cpl_routes_of_parts(input->pattern, &of_pairs, &of_parts, error);
    cpl_routes_free(&of_pairs);
    if (status)
        return status;
    cpl_routes_free(routes);
    *routes = of_parts;
    return CPL_OK;
}

/* The most that a rank sends or receives by routes, and in all. */
struct counts {
    int64_t most;
    int64_t all;
};

static enum cpl_status count(const struct cpl_strategy_input *input,
                             const struct cpl_routes *routes, struct counts *counts,
                             struct cpl_error *error)
{
    struct cpl_plan plan;
    struct cpl_metrics metrics;
    enum cpl_status status = cpl_plan_build(input->pattern, routes, &plan, error);
    if (status)
        return status;
    status = cpl_plan_measure(&plan, input->machine, input->unit_bytes, &metrics, error);
    int64_t most = metrics.sends_max > metrics.recvs_max ? metrics.sends_max : metrics.recvs_max;
    *counts = (struct counts){most, plan.n_edges};
    cpl_plan_free(&plan);
    return status;
}

static bool fewer(const struct counts *a, const struct counts *b)
{
    return a->most < b->most || (a->most == b->most && a->all < b->all);
}

/* Routes with at least n_waves waves: those of one wave move to the middle, others keep their
 * waves, and rest at the end. */
static enum cpl_status pad_waves(const struct cpl_pattern *pattern, int32_t n_waves,
                                 struct cpl_routes *routes, struct cpl_error *error)
{
    struct cpl_routes padded;
    int32_t has = routes->n_waves, skip = has == 1 ? (n_waves - 1) / 2 : 0;
    if (has >= n_waves)
        return CPL_OK;
    enum cpl_status status = cpl_routes_init(pattern, n_waves, &padded, error);
    if (status)
        return status;
    for (int64_t m = 0; m < padded.n_messages; m++)
        for (int32_t w = skip; w < n_waves; w++)
            cpl_routes_of(&padded, m)[w] =
                cpl_routes_of(routes, m)[w - skip < has ? w - skip : has - 1];
    cpl_routes_free(routes);
    *routes = padded;
    return CPL_OK;
}

/* Replaces routes by those of a choice, with as many waves, where these have fewer combined
 * messages. */
static enum cpl_status start_better(const struct cpl_strategy_input *input,
                                    const struct cpl_strategy_choice *choice,
                                    struct cpl_routes *routes, struct counts *counts,
                                    struct cpl_error *error)
{
    struct cpl_routes other;
    struct counts other_counts;
    enum cpl_status status = cpl_strategy_route(input, choice, &other, error);
    if (status)
        return status == CPL_ERR_UNFIT ? CPL_OK : status;
    status = pad_waves(input->pattern, routes->n_waves, &other, error);
    if (!status)
        status = count(input, &other, &other_counts, error);
    if (!status && fewer(&other_counts, counts)) {
        struct cpl_routes worse = *routes;
        *routes = other;
        *counts = other_counts;
        other = worse;
    }
    cpl_routes_free(&other);
    return status;
}

/* Routes with the fewest combined messages on the busiest rank among direct, vpt:n_hops and
 * part-grid:n_hops. */
static enum cpl_status start_counts(const struct cpl_strategy_input *input, int32_t n_hops,
                                    struct cpl_routes *routes, struct counts *counts,
                                    struct cpl_error *error)
{
    const struct cpl_strategy_choice vpt = {&cpl_strategy_vpt, {1, {n_hops}}};
    const struct cpl_strategy_choice of_parts = {&cpl_strategy_part_grid, {1, {n_hops}}};
    enum cpl_status status = cpl_routes_init(input->pattern, n_hops, routes, error);
    if (status)
        return status;
    status = count(input, routes, counts, error);
    if (!status)
        status = start_better(input, &vpt, routes, counts, error);
    if (!status)
        status = start_better(input, &of_parts, routes, counts, error);
    if (status)
        cpl_routes_free(routes);
    return status;
}

static enum cpl_status copy_routes(const struct cpl_pattern *pattern, const struct cpl_routes *from,
                                   struct cpl_routes *to, struct cpl_error *error)
{
    enum cpl_status status = cpl_routes_init(pattern, from->n_waves, to, error);
    if (!status)
        memcpy(to->stops, from->stops,
               (size_t)from->n_messages * (size_t)from->n_waves * sizeof *to->stops);
    return status;
}

static enum cpl_status route_counts(const struct cpl_strategy_input *input, int32_t n_hops,
                                    struct cpl_routes *routes, struct cpl_error *error)
{
    struct counts before, after;
    struct cpl_routes start, found;
    enum cpl_status status = start_counts(input, n_hops, &start, &before, error);
    if (status)
        return status;
    status = copy_routes(input->pattern, &start, &found, error);
    if (!status) {
        const struct cover_task task = {n_hops, CPL_COVER_COUNTS, effort_ms(input, 0)};
        status = by_pairs(input, search_cover, &task, &found, error);
        if (!status)
            status = count(input, &found, &after, error);
        if (!status && fewer(&after, &before)) {
            struct cpl_routes worse = start;
            start = found;
            found = worse;
        }
        cpl_routes_free(&found);
    }
    if (status)
        cpl_routes_free(&start);
    else
        *routes = start;
    return status;
}

/* Routes being improved, and what they take. */
struct start {
    struct cpl_routes routes;
    double us;
    int32_t n_vain; /* attempts since it was improved */
};

/* Improves routes under the full model, parts apart if there are any. */
static enum cpl_status search_routes(const struct cpl_strategy_input *input, const void *how,
                                     struct cpl_routes *routes, struct cpl_error *error)
{
    return cpl_improve_routes(input, how, routes, error);
}

/* How a start is improved. */
struct attempt {
    bool together; /* parts of a pair keep together */
    double ms;
    double temperature;
    uint64_t seed;
};

/* Improves a start, by pairs or by parts if it has any; it never gets worse by the model's final
 * word, the plan's cost. */
static enum cpl_status improve(const struct cpl_strategy_input *input,
                               const struct attempt *attempt, struct start *start,
                               struct cpl_error *error)
{
    const struct cpl_improve_schedule schedule = {.first_sharpness = 12,
                                                  .last_sharpness = 40,
                                                  .temperature = attempt->temperature,
                                                  .work =
                                                      (int64_t)(attempt->ms * IMPROVE_STEPS_PER_MS),
                                                  .seed = attempt->seed};
    struct cpl_routes before;
    double us;
    if (schedule.work < 2 * cpl_improve_begin_work(&start->routes))
        return CPL_OK;
    enum cpl_status status = copy_routes(input->pattern, &start->routes, &before, error);
    if (status)
        return status;
    status = attempt->together ? by_pairs(input, search_routes, &schedule, &start->routes, error)
                               : search_routes(input, &schedule, &start->routes, error);
    if (!status)
        status = cpl_strategy_time(input, &start->routes, &us, error);
    if (!status && us < start->us) {
        start->us = us;
    } else {
        struct cpl_routes found = start->routes;
        start->routes = before;
        before = found;
    }
    cpl_routes_free(&before);
    return status;
}

/* The search: its starts, and the nominal milliseconds that are left for it, of which each attempt
 * takes a share. */
struct contest {
    const struct cpl_strategy_input *input;
    struct start start[MOST_STARTS];
    int32_t n, most, best;
    double left_ms, share_ms;
};

static double begin_ms(const struct cpl_strategy_input *input)
{
    return (double)input->pattern->n_messages * FEWEST_WAVES * BEGIN_MS_PER_RIDE;
}

/* As many starts as leave attempts time for more than to begin. */
static int32_t most_starts(const struct cpl_strategy_input *input, double ms)
{
    double least_ms = WORTH_BEGINNING * begin_ms(input) * ATTEMPTS_PER_START;
    int32_t most = ms > least_ms / 2;
    while (most < MOST_STARTS && (most + 1) * least_ms < ms)
        most++;
    return most;
}

bool cpl_balance_begins(const struct cpl_strategy_input *input)
{
    return most_starts(input, effort_ms(input, CPL_RANKING_SHARE * input->budget_ms)) > 0;
}

/* Makes the routes of a ranked choice a start. */
static enum cpl_status begin(struct contest *contest, const struct cpl_ranked_choice *ranked,
                             struct cpl_error *error)
{
    const struct cpl_strategy_input *input = contest->input;
    struct start *start = &contest->start[contest->n];
    enum cpl_status status = cpl_strategy_route(input, &ranked->choice, &start->routes, error);
    if (status)
        return status;
    start->us = ranked->us;
    contest->left_ms -= begin_ms(input);
    contest->n++;
    return pad_waves(input->pattern, FEWEST_WAVES, &start->routes, error);
}

/* What a cover search makes of the last start, of three waves, is a start too, where there is room
 * for the search's tables. */
static enum cpl_status begin_covered(struct contest *contest, struct cpl_error *error)
{
    const struct cpl_strategy_input *input = contest->input;
    const struct start *from = &contest->start[contest->n - 1];
    struct start *start = &contest->start[contest->n];
    enum cpl_status status = copy_routes(input->pattern, &from->routes, &start->routes, error);
    if (status)
        return status;
    const struct cover_task task = {3, CPL_COVER_TIME, contest->share_ms};
    contest->left_ms -= contest->share_ms + begin_ms(input);
    status = by_pairs(input, search_cover, &task, &start->routes, error);
    if (!status)
        status = cpl_strategy_time(input, &start->routes, &start->us, error);
    if (!status) {
        contest->n++;
        return CPL_OK;
    }
    cpl_routes_free(&start->routes);
    return status == CPL_ERR_UNFIT ? CPL_OK : status;
}

/* Whether the choice ranked k-th makes the same plan as one before, by its time. */
static bool is_known(const struct cpl_ranking *ranking, size_t k)
{
    return k > 0 && !(ranking->ranked[k].us > ranking->ranked[k - 1].us);
}

/* The starts: the best ranked choices of few waves, two of each number of waves at most, and what a
 * cover makes of the first of three. */
static enum cpl_status begin_all(struct contest *contest, const struct cpl_ranking *ranking,
                                 struct cpl_error *error)
{
    int32_t n_taken[MOST_WAVES + 1] = {0};
    enum cpl_status status = CPL_OK;
    for (size_t k = 0; k < ranking->n && contest->n < contest->most && !status; k++) {
        const struct cpl_ranked_choice *ranked = &ranking->ranked[k];
        int32_t n_waves = ranked->n_waves;
        if (n_waves > MOST_WAVES || n_taken[n_waves] == 2 || is_known(ranking, k) ||
            ranked->us > CPL_WORTH_A_START * ranking->ranked[0].us)
            continue;
        n_taken[n_waves]++;
        status = begin(contest, ranked, error);
        if (!status && contest->n < contest->most && n_waves == 3 && n_taken[3] == 1)
            status = begin_covered(contest, error);
    }
    return status;
}

/* Many short attempts find more than one long one. Those that only go down find most; where they do
 * not, those that accept losses at first may lead out of a bad place. */
static const double temperatures[] = {0, 0.1, 0.3, 1};
#define N_TEMPERATURES ((int32_t)(sizeof temperatures / sizeof temperatures[0]))

/* An attempt in vain counts as if the start took so many times as long. */
#define VAIN 1.03

/* The start that is improved next: the best one, unless it does not get better. */
static struct start *choose_start(struct contest *contest)
{
    struct start *chosen = NULL;
    double least = INFINITY;
    for (int32_t k = 0; k < contest->n; k++) {
        double us = contest->start[k].us;
        for (int32_t n = contest->start[k].n_vain; n > 0; n--)
            us *= VAIN;
        if (us < least) {
            least = us;
            chosen = &contest->start[k];
        }
    }
    return chosen;
}

/* Improves the starts once each, and then the promising ones with what is left; parts are told
 * apart only in the second half. */
static enum cpl_status improve_all(struct contest *contest, struct cpl_error *error)
{
    struct attempt attempt = {.together = true, .ms = contest->share_ms};
    int32_t n = contest->n > 0 ? (int32_t)(contest->left_ms / contest->share_ms) : 0;
    enum cpl_status status = CPL_OK;
    for (int32_t k = 0; k < n && !status; k++) {
        struct start *start = k < contest->n ? &contest->start[k] : choose_start(contest);
        double us = start->us;
        attempt.together = k < (contest->n + n) / 2;
        attempt.temperature = temperatures[start->n_vain % N_TEMPERATURES];
        attempt.seed = (uint64_t)k + 1;
        status = improve(contest->input, &attempt, start, error);
        start->n_vain = start->us < us ? 0 : start->n_vain + 1;
    }
    for (int32_t k = 0; k < contest->n; k++)
        if (contest->start[k].us < contest->start[contest->best].us)
            contest->best = k;
    return status;
}

enum cpl_status cpl_balance_search(const struct cpl_strategy_input *input,
                                   const struct cpl_ranking *ranking, struct cpl_routes *routes,
                                   double *us, struct cpl_error *error)
{
    double ms = effort_ms(input, ranking->ms);
    struct contest contest = {.input = input, .most = most_starts(input, ms), .left_ms = ms};
    contest.share_ms = ms / (ATTEMPTS_PER_START * contest.most);
    enum cpl_status status = begin_all(&contest, ranking, error);
    if (!status)
        status = improve_all(&contest, error);
    const struct start *best = &contest.start[contest.best];
    /* The fastest other plan may have too many waves to start from. */
    bool found = !status && contest.n > 0 && best->us < ranking->ranked[0].us;
    *us = found ? best->us : INFINITY;
    if (found)
        *routes = best->routes;
    for (int32_t k = 0; k < contest.n; k++)
        if (!found || k != contest.best)
            cpl_routes_free(&contest.start[k].routes);
    return status;
}

static enum cpl_status route(const struct cpl_strategy_input *input,
                             const struct cpl_strategy_numbers *numbers, struct cpl_routes *routes,
                             struct cpl_error *error)
{
    struct cpl_ranking ranking;
    if (numbers->at[0] != GOAL_TIME)
        return route_counts(input, numbers->at[0], routes, error);
    double us;
    enum cpl_status status =
        cpl_strategy_rank(input, cpl_balance_begins(input), &ranking, NULL, error);
    if (!status)
        status = cpl_balance_search(input, &ranking, routes, &us, error);
    if (!status && !isfinite(us))
        status = cpl_strategy_route(input, &ranking.ranked[0].choice, routes, error);
    return status;
}

static int32_t most_hops(const struct cpl_strategy_input *input,
                         const struct cpl_strategy_numbers *numbers)
{
    if (numbers->at[0] != GOAL_TIME)
        return numbers->at[0];
    int32_t most = cpl_strategy_rank_most_hops(input);
    return most > MOST_WAVES ? most : MOST_WAVES;
}

static enum cpl_status parse(const struct cpl_strategy *strategy, const char *text,
                             struct cpl_strategy_numbers *numbers, struct cpl_error *error)
{
    *numbers = (struct cpl_strategy_numbers){1, {GOAL_TIME}};
    if (!text)
        return CPL_OK;
    if (strncmp(text, "hops=", 5) != 0)
        return cpl_fail(error, CPL_ERR_ARG,
                        "strategy balance takes hops=%d or hops=%d after ':', not '%s'",
                        FEWEST_HOPS, MOST_HOPS, text);
    return cpl_strategy_parse_number(strategy, text + 5, FEWEST_HOPS, MOST_HOPS, &numbers->at[0],
                                     error);
}

static void format(const struct cpl_strategy_numbers *numbers, char text[CPL_STRATEGY_TEXT])
{
    text[0] = 0;
    if (numbers->at[0] != GOAL_TIME)
        snprintf(text, CPL_STRATEGY_TEXT, "hops=%d", (int)numbers->at[0]);
}

static void candidates(const struct cpl_strategy *strategy, const struct cpl_strategy_input *input,
                       struct cpl_strategy_list *list)
{
    static const int32_t goals[] = {FEWEST_HOPS, MOST_HOPS, GOAL_TIME};
    static const int32_t most_ranks[] = {
        [FEWEST_HOPS] = CPL_COVER_MOST_RANKS_2, [MOST_HOPS] = CPL_COVER_MOST_RANKS_3};
    for (size_t k = 0; k < sizeof goals / sizeof goals[0]; k++)
        if (goals[k] == GOAL_TIME || (INT64_C(1) << goals[k] <= input->pattern->n_ranks &&
                                      input->pattern->n_ranks <= most_ranks[goals[k]]))
            cpl_strategy_add(list, strategy, &(struct cpl_strategy_numbers){1, {goals[k]}});
}

const struct cpl_strategy cpl_strategy_balance = {
    .name = "balance",
    .parameter = "[:hops=2|3]",
    .doc = "searches within the budget for the smallest modelled time, starting from the best "
           "other plans; with hops, for the fewest combined messages on the busiest rank",
    .examples = "balance:hops=3",
    .searches = true,
    .most_hops = most_hops,
    .parse = parse,
    .format = format,
    .candidates = candidates,
    .route = route};
