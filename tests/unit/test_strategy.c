/* Tests of strategies (strategy.h): names, candidates, and what every strategy promises, on random
 * patterns. */
#include "grid.h"
#include "plan.h"
#include "plans.h"
#include "random_pattern.h"
#include "strategy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define N_PATTERNS   1000
#define SEARCH_EVERY 8 /* patterns: searching takes long */
#define BALANCE_HOPS 5 /* more are not promised for a search for time */

static struct cpl_strategy_choice parse(const char *text)
{
    struct cpl_strategy_choice choice;
    struct cpl_error error = {""};
    if (cpl_strategy_parse(text, &choice, &error))
        fail_msg("%s", error.text);
    return choice;
}

static void check_format(const char *text, const char *canonical)
{
    char formatted[CPL_STRATEGY_TEXT];
    struct cpl_strategy_choice choice = parse(text);
    cpl_strategy_format(&choice, formatted);
    assert_string_equal(formatted, canonical);
}

static void test_names(void **state)
{
    (void)state;
    check_format("auto", "auto");
    check_format("direct", "direct");
    check_format("share", "share");
    check_format("share:1", "share:1");
    check_format("share:2", "share");
    check_format("vpt:1", "vpt:1");
    check_format("vpt:24", "vpt:24");
    check_format("balance", "balance");
    check_format("balance:hops=2", "balance:hops=2");
    assert_null(parse("auto").strategy);
    assert_string_equal(parse("vpt:3").strategy->name, "vpt");
    assert_int_equal(parse("vpt:3").numbers.at[0], 3);
    assert_int_equal(parse("share").numbers.at[0], 2);
}

static void check_refused(const char *text, const char *expected)
{
    struct cpl_strategy_choice choice;
    struct cpl_error error = {""};
    assert_int_equal(cpl_strategy_parse(text, &choice, &error), CPL_ERR_ARG);
    if (!strstr(error.text, expected))
        fail_msg("\"%s\" does not say \"%s\"", error.text, expected);
    assert_int_equal(cpl_strategy_parse(text, &choice, NULL), CPL_ERR_ARG);
}

static void test_wrong_names(void **state)
{
    (void)state;
    check_refused("", "no strategy ''; there are direct, ");
    check_refused("Direct", "no strategy 'Direct'; there are direct, ");
    check_refused("vp:2", "auto");
    check_refused("shared", "no strategy 'shared'");
    check_refused("direct:1", "strategy direct takes no parameter");
    check_refused("direct:", "strategy direct takes no parameter");
    check_refused("vpt", "strategy vpt needs its dimensions, as in vpt:2");
    check_refused("vpt:", "strategy vpt takes a whole number from 1 to 24 after ':', not ''");
    check_refused("vpt:0", "from 1 to 24");
    check_refused("vpt:25", "from 1 to 24");
    check_refused("vpt:-1", "from 1 to 24");
    check_refused("vpt:2x", "not '2x'");
    check_refused("vpt:99999999999999999999", "from 1 to 24");
    check_refused("share:3", "strategy share takes a whole number from 1 to 2");
    check_refused("auto:1", "no strategy 'auto:1'");
    check_refused("balance:2", "takes hops=2 or hops=3 after ':', not '2'");
    check_refused("balance:hops=4", "from 2 to 3");
    check_refused("balance:hops=", "from 2 to 3");
}

/* What the candidates of some rank counts are called, and that the names lead back to them. */
static void check_candidates(int32_t n_ranks, const char *expected)
{
    struct cpl_strategy_list list;
    struct cpl_pattern pattern = make_pattern(n_ranks, NULL, 0);
    struct cpl_strategy_input input = {.pattern = &pattern};
    char text[CPL_MAX_CANDIDATES * CPL_STRATEGY_TEXT] = "", one[CPL_STRATEGY_TEXT];
    cpl_strategy_candidates(&input, &list);
    for (size_t k = 0; k < list.n; k++) {
        cpl_strategy_format(&list.choice[k], one);
        strcat(strcat(text, k ? " " : ""), one);
        struct cpl_strategy_choice again = parse(one);
        assert_true(again.strategy == list.choice[k].strategy);
        assert_memory_equal(&again.numbers, &list.choice[k].numbers, sizeof again.numbers);
    }
    assert_string_equal(text, expected);
    cpl_pattern_free(&pattern);
}

static void test_candidates(void **state)
{
    (void)state;
    check_candidates(1, "direct share:1 share balance");
    check_candidates(3, "direct share:1 share balance");
    check_candidates(4, "direct share:1 share vpt:2 balance:hops=2 balance");
    check_candidates(15, "direct share:1 share vpt:2 vpt:3 balance:hops=2 balance:hops=3 balance");
    check_candidates(16, "direct share:1 share vpt:2 vpt:3 vpt:4 balance:hops=2 balance:hops=3 "
                         "balance");
}

static void test_table(void **state)
{
    (void)state;
    size_t n = 0;
    const struct cpl_strategy *const *table = cpl_strategy_table(&n);
    assert_true(n >= 3);
    assert_string_equal(table[0]->name, "direct");
    for (size_t k = 0; k < n; k++)
        assert_non_null(table[k]->doc);
}

/* The most combined messages that a message may ride in. */
static int32_t hops_bound(const struct cpl_strategy_choice *choice)
{
    if (strcmp(choice->strategy->name, "share") == 0)
        return 2 * choice->numbers.at[0];
    if (strcmp(choice->strategy->name, "balance") == 0)
        return choice->numbers.at[0] ? choice->numbers.at[0] : BALANCE_HOPS;
    return strcmp(choice->strategy->name, "vpt") == 0 ? choice->numbers.at[0] : 1;
}

/* The most that a rank may send: of a grid without holes the sum of its sizes less one, else any
 * number. */
static int64_t sends_bound(const struct cpl_strategy_choice *choice, int32_t n_ranks)
{
    int32_t size[CPL_MAX_DIMENSIONS];
    int64_t sum = 0, points = 1;
    if (strcmp(choice->strategy->name, "vpt") != 0)
        return INT64_MAX;
    assert_int_equal(cpl_grid_even_sizes(n_ranks, choice->numbers.at[0], size, NULL), CPL_OK);
    for (int32_t d = 0; d < choice->numbers.at[0]; d++) {
        sum += size[d] - 1;
        points *= size[d];
    }
    return points == n_ranks ? sum : INT64_MAX;
}

struct trial {
    uint64_t seed;
    struct cpl_strategy_input input;
    struct cpl_machine machine;
    struct cpl_pattern pattern;
};

static const char *text_of(const struct cpl_strategy_choice *choice)
{
    static char text[CPL_STRATEGY_TEXT];
    cpl_strategy_format(choice, text);
    return text;
}

static struct cpl_plan plan_by(const struct trial *trial, const struct cpl_strategy_choice *choice)
{
    struct cpl_plan plan;
    struct cpl_error error = {""};
    if (cpl_strategy_plan(&trial->input, choice, &plan, &error) ||
        cpl_plan_check(&plan, &trial->pattern, &error))
        fail_msg("seed %d, %s: %s", (int)trial->seed, text_of(choice), error.text);
    return plan;
}

/* Everything that holds for one strategy's plan. Returns its fingerprint and modelled time. */
static uint64_t check_choice(const struct trial *trial, const struct cpl_strategy_choice *choice,
                             double *us)
{
    struct cpl_metrics metrics;
    struct cpl_plan plan = plan_by(trial, choice), again = plan_by(trial, choice);
    uint64_t fingerprint = plan.fingerprint;
    assert_int_equal(cpl_plan_measure(&plan, &trial->machine, 8, &metrics, NULL), CPL_OK);
    if (fingerprint != again.fingerprint || metrics.hops_max > hops_bound(choice) ||
        metrics.sends_max > sends_bound(choice, plan.n_ranks) ||
        metrics.set_max > metrics.sends_max)
        fail_msg("seed %d, %s: %d hops, %d sends", (int)trial->seed, text_of(choice),
                 metrics.hops_max, (int)metrics.sends_max);
    *us = metrics.modelled_us;
    cpl_plan_free(&again);
    cpl_plan_free(&plan);
    return fingerprint;
}

/* Neither auto nor balance is slower than any strategy that does not search. */
static void check_searches(const struct trial *trial, double fastest_us)
{
    struct cpl_strategy_choice chosen, balance = parse("balance");
    struct cpl_plan plan;
    double us = -1;
    assert_int_equal(cpl_strategy_plan_auto(&trial->input, &chosen, &plan, NULL), CPL_OK);
    assert_int_equal(cpl_plan_check(&plan, &trial->pattern, NULL), CPL_OK);
    assert_int_equal(cpl_plan_cost(&plan, &trial->machine, 8, &us, NULL), CPL_OK);
    if (us > fastest_us)
        fail_msg("seed %d: auto takes %g us, not %g", (int)trial->seed, us, fastest_us);
    cpl_plan_free(&plan);
    check_choice(trial, &balance, &us);
    if (us > fastest_us)
        fail_msg("seed %d: balance takes %g us, not %g", (int)trial->seed, us, fastest_us);
}

/* Enough for auto to try every candidate. */
static double budget_ms(const struct cpl_pattern *pattern)
{
    return 2 + 0.03 * (double)pattern->n_messages;
}

static void set_up_trial(struct trial *trial, uint64_t seed)
{
    uint64_t random = seed;
    trial->seed = seed;
    trial->pattern = random_pattern(seed, seed % 16 ? 80 : RANDOM_PATTERN_MOST_RANKS);
    int32_t n_ranks = trial->pattern.n_ranks;
    assert_int_equal(
        cpl_machine_init(n_ranks, 1 + random_below(&random, n_ranks), &trial->machine, NULL),
        CPL_OK);
    trial->machine.cores_per_node = random_below(&random, 3);
    trial->input = (struct cpl_strategy_input){&trial->pattern, &trial->machine, 8,
                                               budget_ms(&trial->pattern)};
}

static void check_trial(const struct trial *trial)
{
    struct cpl_strategy_list list;
    struct cpl_strategy_choice vpt1 = parse("vpt:1");
    uint64_t direct = 0;
    double fastest_us = 1e300, us;
    cpl_strategy_candidates(&trial->input, &list);
    for (size_t k = 0; k < list.n; k++) {
        if (list.choice[k].strategy->searches && trial->seed % SEARCH_EVERY)
            continue;
        uint64_t fingerprint = check_choice(trial, &list.choice[k], &us);
        direct = k == 0 ? fingerprint : direct;
        if (!list.choice[k].strategy->searches)
            fastest_us = us < fastest_us ? us : fastest_us;
    }
    if (trial->seed % SEARCH_EVERY == 0)
        check_searches(trial, fastest_us);
    assert_true(check_choice(trial, &vpt1, &us) == direct);
}

static void test_promises(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < N_PATTERNS; seed++) {
        struct trial trial;
        set_up_trial(&trial, seed);
        check_trial(&trial);
        cpl_machine_free(&trial.machine);
        cpl_pattern_free(&trial.pattern);
    }
}

/* A grid of more dimensions than the ranks have is refused, with the remedy. */
static void test_unfit(void **state)
{
    (void)state;
    struct trial trial;
    struct cpl_plan plan;
    struct cpl_error error = {""};
    struct cpl_strategy_choice choice = parse("vpt:4");
    trial.pattern = make_pattern(8, NULL, 0);
    trial.input = (struct cpl_strategy_input){&trial.pattern, NULL, 8, 1};
    assert_int_equal(cpl_strategy_plan(&trial.input, &choice, &plan, &error), CPL_ERR_UNFIT);
    assert_string_equal(error.text, "8 ranks fit 1 to 3 dimensions, not 4");
    cpl_pattern_free(&trial.pattern);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),    cmocka_unit_test(test_wrong_names),
        cmocka_unit_test(test_table),    cmocka_unit_test(test_candidates),
        cmocka_unit_test(test_promises), cmocka_unit_test(test_unfit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
