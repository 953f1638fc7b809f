/* Tests of ranking in a hurry (strategy_rank.h, router_cost.h): the rougher model beside the real
 * one, on all messages and on some; what is chosen by it, and that ranking keeps to its budget. */
#include "planner/plan.h"
#include "planner/plan/router.h"
#include "planner/strategies/router_cost.h"
#include "planner/strategies/strategy_rank.h"
#include "random_pattern.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define RANKS_PER_NODE 32
#define UNIT_BYTES     64

struct trial {
    struct cpl_pattern pattern;
    struct cpl_machine machine;
    struct cpl_strategy_input input;
};

/* n_messages messages, to ranks with low numbers more often the higher the power. */
static void set_up(struct trial *trial, int32_t n_ranks, int64_t n_messages, int power,
                   double budget_ms)
{
    uint64_t random = (uint64_t)n_ranks + (uint64_t)power;
    struct cpl_pattern_entry *entry = calloc((size_t)n_messages, sizeof *entry);
    assert_non_null(entry);
    for (int64_t m = 0; m < n_messages; m++) {
        double draw = 1;
        for (int k = 0; k < power; k++)
            draw *= (double)random_draw(&random, 1 << 20) * 0x1p-20;
        entry[m] = (struct cpl_pattern_entry){random_below(&random, n_ranks),
                                              (int32_t)(draw * n_ranks), 1, -1};
    }
    assert_int_equal(cpl_pattern_build(n_ranks, entry, n_messages, &trial->pattern, NULL), CPL_OK);
    assert_int_equal(cpl_machine_init(n_ranks, RANKS_PER_NODE, &trial->machine, NULL), CPL_OK);
    trial->machine.lanes = true;
    trial->input =
        (struct cpl_strategy_input){&trial->pattern, &trial->machine, UNIT_BYTES, budget_ms};
    free(entry);
}

static void tear_down(struct trial *trial)
{
    cpl_pattern_free(&trial->pattern);
    cpl_machine_free(&trial->machine);
}

static double chain_us(const struct trial *trial, const struct cpl_strategy_choice *choice)
{
    struct cpl_plan plan;
    double us = -1;
    assert_int_equal(cpl_strategy_plan(&trial->input, choice, &plan, NULL), CPL_OK);
    assert_int_equal(
        cpl_plan_chain_cost(&plan, &trial->machine, trial->input.unit_bytes, &us, NULL), CPL_OK);
    cpl_plan_free(&plan);
    return us;
}

/* The time by the rougher model, from one message in `every`; -1: the choice is no router. */
static double look_us(const struct trial *trial, const struct cpl_strategy_choice *choice,
                      int32_t every)
{
    struct cpl_arena arena = CPL_ARENA_EMPTY;
    struct cpl_router_looks looks;
    struct cpl_router router;
    double us = -1;
    if (cpl_strategy_router(&trial->input, choice, &router, NULL))
        return us;
    assert_int_equal(cpl_router_looks_init(&looks, &trial->input, every, &arena), CPL_OK);
    assert_int_equal(cpl_router_look(&looks, &router, &us), CPL_OK);
    cpl_router_free(&router);
    cpl_arena_free(&arena);
    return us;
}

/* For all routers: what the rougher model says is near the model's time, as an order among them
 * needs; what it says from some messages is near what it says from all. */
static void check_looks(const struct trial *trial, int32_t every)
{
    struct cpl_strategy_list list;
    cpl_strategy_candidates(&trial->input, &list);
    for (size_t k = 0; k < list.n; k++) {
        char text[CPL_STRATEGY_TEXT];
        double all_us = look_us(trial, &list.choice[k], 1);
        if (all_us < 0)
            continue;
        double us = chain_us(trial, &list.choice[k]);
        double some_us = look_us(trial, &list.choice[k], every);
        cpl_strategy_format(&list.choice[k], text);
        if (us < 0.5 * all_us || us > 1.6 * all_us)
            fail_msg("%s: %g us are taken for %g", text, us, all_us);
        if (some_us < 0.6 * all_us || some_us > 1.5 * all_us)
            fail_msg("%s: %g us by one message in %d, %g by all", text, some_us, (int)every,
                     all_us);
    }
}

static void test_looks(void **state)
{
    (void)state;
    for (int power = 1; power <= 3; power++) {
        struct trial trial;
        set_up(&trial, 512, 24000, power, 500);
        check_looks(&trial, 4);
        tear_down(&trial);
    }
}

/* A rank that all send to: 255 combined messages by 16 ranks of a row each, by hand. */
static void test_hub_by_hand(void **state)
{
    (void)state;
    struct cpl_pattern_entry entry[255];
    struct trial trial;
    struct cpl_strategy_choice choice;
    for (int32_t i = 0; i < 255; i++)
        entry[i] = (struct cpl_pattern_entry){i + 1, 0, 1, -1};
    assert_int_equal(cpl_pattern_build(256, entry, 255, &trial.pattern, NULL), CPL_OK);
    assert_int_equal(cpl_machine_init(256, 1, &trial.machine, NULL), CPL_OK);
    trial.machine.costs = (struct cpl_costs){
        .link[CPL_LINK_NETWORK] = {.send_us = 1, .recv_us = 2, .latency_us = 10}};
    trial.input = (struct cpl_strategy_input){&trial.pattern, &trial.machine, 1, 500};
    assert_int_equal(cpl_strategy_parse("direct", &choice, NULL), CPL_OK);
    assert_true(fabs(look_us(&trial, &choice, 1) - (10 + 255 * 2)) < 1e-6);
    /* each of 16 ranks receives 15 messages in the first wave, rank 0 as many in the second */
    assert_int_equal(cpl_strategy_parse("vpt:2", &choice, NULL), CPL_OK);
    assert_true(fabs(look_us(&trial, &choice, 1) - 2 * (10 + 15 * 2)) < 1e-6);
    tear_down(&trial);
}

/* In a hurry: what is chosen is at most 4% slower than the best of all, also where long messages
 * make the looks at direct and others far too slow, as they do with power 1; and ranking takes
 * no more than its budget and the price of one. */
static void test_hurry(void **state)
{
    (void)state;
    for (int power = 1; power <= 3; power++) {
        struct cpl_strategy_list list;
        struct cpl_ranking ranking;
        struct cpl_plan best;
        struct trial trial;
        double best_us = INFINITY;
        set_up(&trial, 1024, 60000, power, 100);
        trial.input.unit_bytes = 512;
        assert_int_equal(cpl_strategy_rank(&trial.input, false, &ranking, &best, NULL), CPL_OK);
        assert_int_equal(cpl_plan_check(&best, &trial.pattern, NULL), CPL_OK);
        cpl_plan_free(&best);
        cpl_strategy_candidates(&trial.input, &list);
        for (size_t k = 0; k < list.n; k++)
            if (!list.choice[k].strategy->searches) {
                double us = chain_us(&trial, &list.choice[k]);
                best_us = us < best_us ? us : best_us;
            }
        double us = chain_us(&trial, &ranking.ranked[0].choice);
        if (us > 1.04 * best_us)
            fail_msg("power %d: %g us, not %g", power, us, best_us);
        assert_true(ranking.ms <= 1.25 * trial.input.budget_ms);
        tear_down(&trial);
    }
}

/* Each rank of a periodic grid of 16 x 16 x 16 sends to the 26 around it. */
static void set_up_stencil(struct trial *trial, double budget_ms)
{
    enum { SIDE = 16, RANKS = SIDE * SIDE * SIDE };
    struct cpl_pattern_entry *entry = calloc((size_t)RANKS * 26, sizeof *entry);
    int64_t n = 0;
    assert_non_null(entry);
    for (int32_t i = 0; i < RANKS; i++)
        for (int32_t k = 0; k < 27; k++) {
            int32_t x = (i + k % 3 + SIDE - 1) % SIDE;
            int32_t y = (i / SIDE + k / 3 % 3 + SIDE - 1) % SIDE;
            int32_t z = (i / SIDE / SIDE + k / 9 + SIDE - 1) % SIDE;
            int32_t dst = x + SIDE * (y + SIDE * z);
            if (dst != i)
                entry[n++] = (struct cpl_pattern_entry){i, dst, 1, -1};
        }
    assert_int_equal(cpl_pattern_build(RANKS, entry, n, &trial->pattern, NULL), CPL_OK);
    assert_int_equal(cpl_machine_init(RANKS, RANKS_PER_NODE, &trial->machine, NULL), CPL_OK);
    trial->machine.lanes = true;
    trial->input = (struct cpl_strategy_input){&trial->pattern, &trial->machine, 8, budget_ms};
    free(entry);
}

/* The busiest of ranks that all do the same does not look busier because it was looked at more
 * often, though others do less: one rank in eight of a node sends its messages to other nodes. */
static void test_looks_at_leaders(void **state)
{
    (void)state;
    static const char *const name[] = {"node:4", "node:8"};
    struct trial trial;
    set_up_stencil(&trial, 500);
    trial.input.unit_bytes = UNIT_BYTES;
    for (size_t k = 0; k < sizeof name / sizeof *name; k++) {
        struct cpl_strategy_choice choice;
        assert_int_equal(cpl_strategy_parse(name[k], &choice, NULL), CPL_OK);
        double all_us = look_us(&trial, &choice, 1), some_us = look_us(&trial, &choice, 16);
        if (fabs(some_us - all_us) > 0.15 * all_us)
            fail_msg("%s: %g us by one message in 16, %g by all", name[k], some_us, all_us);
    }
    tear_down(&trial);
}

/* Many candidates make the same plan for a stencil; only one of them is priced, so that there is
 * time for the best one, which makes more waves. */
static void test_same_plans(void **state)
{
    (void)state;
    static const char *const name[] = {"node:8", "node:16", "node:partner", "node-grid:0:1:2"};
    struct cpl_ranking ranking;
    struct trial trial;
    double best_us = INFINITY;
    set_up_stencil(&trial, 100);
    assert_int_equal(cpl_strategy_rank(&trial.input, false, &ranking, NULL, NULL), CPL_OK);
    for (size_t k = 0; k < sizeof name / sizeof *name; k++) {
        struct cpl_strategy_choice choice;
        assert_int_equal(cpl_strategy_parse(name[k], &choice, NULL), CPL_OK);
        best_us = fmin(best_us, chain_us(&trial, &choice));
    }
    if (ranking.ranked[0].us > 1.05 * best_us)
        fail_msg("%g us, not %g", ranking.ranked[0].us, best_us);
    for (size_t k = 1; k < ranking.n; k++)
        assert_true(ranking.ranked[k].us > ranking.ranked[k - 1].us ||
                    ranking.ranked[k].n_waves != ranking.ranked[k - 1].n_waves);
    tear_down(&trial);
}

/* Messages within eight parts, to which grids of parts apply: these have the budget once more. */
static void test_parts_in_a_hurry(void **state)
{
    (void)state;
    enum { RANKS = 4096, PART = RANKS / 8, MESSAGES = 450000 };
    uint64_t random = 1;
    struct cpl_pattern_entry *entry = calloc(MESSAGES, sizeof *entry);
    struct cpl_ranking ranking;
    struct cpl_plan best;
    struct trial trial;
    assert_non_null(entry);
    for (int64_t m = 0; m < MESSAGES; m++) {
        int32_t src = random_below(&random, RANKS);
        entry[m] =
            (struct cpl_pattern_entry){src, src % 8 + 8 * random_below(&random, PART), 1, -1};
    }
    assert_int_equal(cpl_pattern_build(RANKS, entry, MESSAGES, &trial.pattern, NULL), CPL_OK);
    free(entry);
    assert_int_equal(cpl_machine_init(RANKS, RANKS_PER_NODE, &trial.machine, NULL), CPL_OK);
    trial.input = (struct cpl_strategy_input){&trial.pattern, &trial.machine, UNIT_BYTES, 100};
    assert_int_equal(cpl_strategy_rank(&trial.input, false, &ranking, &best, NULL), CPL_OK);
    cpl_plan_free(&best);
    assert_true(ranking.ms <= 2 * trial.input.budget_ms);
    assert_true(ranking.ranked[0].us > 0 && isfinite(ranking.ranked[0].us));
    tear_down(&trial);
}

/* Without time one candidate is chosen, and its time is by the rougher model. */
static void test_no_time(void **state)
{
    (void)state;
    struct cpl_ranking ranking;
    struct cpl_plan best;
    struct trial trial;
    set_up(&trial, 2048, 1000000, 2, 1);
    assert_int_equal(cpl_strategy_rank(&trial.input, false, &ranking, &best, NULL), CPL_OK);
    assert_int_equal(ranking.n, 1);
    assert_true(ranking.ranked[0].us > 0 && isfinite(ranking.ranked[0].us));
    assert_int_equal(best.n_waves, ranking.ranked[0].n_waves);
    cpl_plan_free(&best);
    tear_down(&trial);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_looks),
                                       cmocka_unit_test(test_hub_by_hand),
                                       cmocka_unit_test(test_hurry),
                                       cmocka_unit_test(test_same_plans),
                                       cmocka_unit_test(test_parts_in_a_hurry),
                                       cmocka_unit_test(test_looks_at_leaders),
                                       cmocka_unit_test(test_no_time)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
