/* Allocation failures: every allocation of the planner fails once, and once it and all later ones.
 * Whatever fails, the caller gets CPL_ERR_NOMEM and a text, nothing leaks, and outputs are
 * unchanged.
 *
 * Linked with --wrap for malloc, calloc, realloc, free and cpl_arena_alloc (Makefile.am), so that
 * the calls in the planner's objects come here; those of hwloc, zlib and the C library do not. */
#include "planner/arena.h"
#include "planner/keep/plan_cache.h"
#include "planner/lower_bound.h"
#include "planner/machine.h"
#include "planner/order.h"
#include "planner/pattern.h"
#include "planner/place.h"
#include "planner/plan.h"
#include "planner/rank_plan.h"
#include "planner/strategy.h"
#include "temp_dir.h"
#include "tests/failing_heap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define N_RANKS    15
#define EACH_UP_TO 150 /* allocations of a scenario that fail one by one; of the later ones ... */
#define MOST_FAILS 400 /* ... so many that all together are about this many */

void *__real_cpl_arena_alloc(struct cpl_arena *arena, size_t count, size_t size);
void *__wrap_cpl_arena_alloc(struct cpl_arena *arena, size_t count, size_t size);

void *__wrap_cpl_arena_alloc(struct cpl_arena *arena, size_t count, size_t size)
{
    return heap_fails() ? NULL : __real_cpl_arena_alloc(arena, count, size);
}

/* What the scenarios work on. */
struct stage {
    struct temp_dir dir;
    const char *strategy; /* of the scenario that plans */
    struct cpl_pattern pattern;
    struct cpl_machine machine;
    struct cpl_plan plan;
    FILE *sink;
};

/* Does something and releases it again; *is_output_kept is false when it failed but changed its
 * output. */
typedef enum cpl_status scenario(struct stage *stage, bool *is_output_kept,
                                 struct cpl_error *error);

static bool is_untouched(const void *output, size_t size)
{
    const unsigned char *bytes = output;
    for (size_t k = 0; k < size; k++)
        if (bytes[k] != 0xa5)
            return false;
    return true;
}

#define POISON(output) memset(&(output), 0xa5, sizeof(output))

static void run(scenario *act, struct stage *stage, const char *name, int64_t fail_at, bool goes_on)
{
    struct cpl_error error = {""};
    bool is_output_kept = true;
    heap.fail_at = fail_at;
    heap.goes_on = goes_on;
    heap.n_calls = heap.n_failed = heap.n_live = 0;
    heap.counts = true;
    enum cpl_status status = act(stage, &is_output_kept, &error);
    heap.counts = false;
    if (status != (heap.n_failed ? CPL_ERR_NOMEM : CPL_OK))
        fail_msg("%s, allocation %d fails: %s (%s)", name, (int)fail_at, cpl_status_text(status),
                 error.text);
    if (heap.n_failed && !error.text[0])
        fail_msg("%s, allocation %d fails: no text", name, (int)fail_at);
    if (heap.n_live)
        fail_msg("%s, allocation %d fails: %d blocks lost", name, (int)fail_at, (int)heap.n_live);
    if (!is_output_kept)
        fail_msg("%s, allocation %d fails: the output has changed", name, (int)fail_at);
}

static void sweep(scenario *act, struct stage *stage, const char *name)
{
    run(act, stage, name, 0, false);
    int64_t n_calls = heap.n_calls, stride = 1 + n_calls / MOST_FAILS;
    if (n_calls == 0)
        fail_msg("%s allocates nothing", name);
    for (int64_t k = 1; k <= n_calls; k += k < EACH_UP_TO || k + stride > n_calls ? 1 : stride) {
        run(act, stage, name, k, false);
        assert_int_equal(heap.n_failed, 1);
        run(act, stage, name, k, true);
    }
}

/* --- scenarios */

static enum cpl_status read_file(struct stage *stage, const char *name, bool *is_output_kept,
                                 struct cpl_error *error)
{
    struct cpl_pattern pattern;
    POISON(pattern);
    enum cpl_status status = cpl_pattern_read(temp_dir_path(&stage->dir, name), &pattern, error);
    if (status)
        *is_output_kept = is_untouched(&pattern, sizeof pattern);
    else
        cpl_pattern_free(&pattern);
    return status;
}

static enum cpl_status read_text(struct stage *stage, bool *is_output_kept, struct cpl_error *error)
{
    return read_file(stage, "pattern.txt", is_output_kept, error);
}

static enum cpl_status read_matrix(struct stage *stage, bool *is_output_kept,
                                   struct cpl_error *error)
{
    return read_file(stage, "pattern.mtx", is_output_kept, error);
}

static enum cpl_status read_costs(struct stage *stage, bool *is_output_kept,
                                  struct cpl_error *error)
{
    struct cpl_machine_file said;
    POISON(said);
    enum cpl_status status =
        cpl_machine_file_load(temp_dir_path(&stage->dir, "costs.machine"), &said, error);
    *is_output_kept = !status || is_untouched(&said, sizeof said);
    return status;
}

static enum cpl_status read_distances(struct stage *stage, bool *is_output_kept,
                                      struct cpl_error *error)
{
    struct cpl_distances distances;
    struct cpl_machine machine;
    POISON(distances);
    enum cpl_status status =
        cpl_distances_read(temp_dir_path(&stage->dir, "distances.mtx"), 2, &distances, error);
    if (status) {
        *is_output_kept = is_untouched(&distances, sizeof distances);
        return status;
    }
    status = cpl_machine_init(2, 1, &machine, error);
    if (!status) {
        status = cpl_machine_set_distances(&machine, &distances, NULL, error);
        *is_output_kept = !status || !machine.distance_us;
        cpl_machine_free(&machine);
    }
    cpl_distances_free(&distances);
    return status;
}

static enum cpl_status make_machines(struct stage *stage, bool *is_output_kept,
                                     struct cpl_error *error)
{
    int64_t node[N_RANKS] = {5, 5, 3, 3, 3, -1, 5, 7, 7, 7, 7, 7, 9, 9, 0};
    struct cpl_machine machine;
    (void)stage;
    POISON(machine);
    enum cpl_status status = cpl_machine_init(N_RANKS, 4, &machine, error);
    if (!status) {
        cpl_machine_free(&machine);
        POISON(machine);
        status = cpl_machine_from_places(N_RANKS, node, NULL, NULL, 2, &machine, error);
    }
    if (status)
        *is_output_kept = is_untouched(&machine, sizeof machine);
    else
        cpl_machine_free(&machine);
    return status;
}

/* Every rank has a payload for its neighbours, and messages of its own for others, some of them
 * twice; none in parts, which slices refuse. */
static enum cpl_status build_pattern(struct cpl_pattern *pattern, struct cpl_error *error)
{
    struct cpl_pattern_entry entries[N_RANKS * 9];
    int64_t n = 0;
    for (int32_t i = 0; i < N_RANKS; i++) {
        for (int32_t k = 1; k <= 4; k++)
            entries[n++] = (struct cpl_pattern_entry){i, (i + k) % N_RANKS, 100, 0};
        for (int32_t k = 0; k < 4; k++)
            entries[n++] = (struct cpl_pattern_entry){i, (i + 5 + k % 3) % N_RANKS, k, -1};
        entries[n++] = (struct cpl_pattern_entry){i, (i + 8) % N_RANKS, 7, -1};
    }
    return cpl_pattern_build(N_RANKS, entries, n, pattern, error);
}

static enum cpl_status build(struct stage *stage, bool *is_output_kept, struct cpl_error *error)
{
    struct cpl_pattern pattern;
    (void)stage;
    POISON(pattern);
    enum cpl_status status = build_pattern(&pattern, error);
    if (status)
        *is_output_kept = is_untouched(&pattern, sizeof pattern);
    else
        cpl_pattern_free(&pattern);
    return status;
}

static enum cpl_status make_plan(struct stage *stage, bool *is_output_kept, struct cpl_error *error)
{
    struct cpl_strategy_input input = {&stage->pattern, &stage->machine, 8, 0.3};
    struct cpl_strategy_choice choice;
    struct cpl_plan plan;
    POISON(plan);
    enum cpl_status status = cpl_strategy_parse(stage->strategy, &choice, error);
    if (!status)
        status = choice.strategy ? cpl_strategy_plan(&input, &choice, &plan, error)
                                 : cpl_strategy_plan_auto(&input, &choice, &plan, error);
    if (status)
        *is_output_kept = is_untouched(&plan, sizeof plan);
    else
        cpl_plan_free(&plan);
    return status;
}

static enum cpl_status check(struct stage *stage, bool *is_output_kept, struct cpl_error *error)
{
    (void)is_output_kept;
    return cpl_plan_check(&stage->plan, &stage->pattern, error);
}

static enum cpl_status measure(struct stage *stage, bool *is_output_kept, struct cpl_error *error)
{
    struct cpl_metrics metrics;
    POISON(metrics);
    enum cpl_status status = cpl_plan_measure(&stage->plan, &stage->machine, 8, &metrics, error);
    *is_output_kept = !status || is_untouched(&metrics, sizeof metrics);
    return status;
}

/* Keeps the stage's plan in a file and finds it again. */
static enum cpl_status keep_plan(struct stage *stage, bool *is_output_kept, struct cpl_error *error)
{
    struct cpl_strategy_input input = {&stage->pattern, &stage->machine, 8, 1};
    struct cpl_plan_key key = {"1", "vpt:3", 1, &input};
    struct cpl_plan_set set = {.n = 1, .ms = 1}, found;
    bool is_found = false;
    POISON(found);
    set.plan[0] = stage->plan;
    enum cpl_status status = cpl_strategy_parse("vpt:3", &set.choice[0], error);
    if (!status)
        status = cpl_plan_cache_keep(stage->dir.path, &key, &set, error);
    if (!status)
        status = cpl_plan_cache_find(stage->dir.path, &key, &found, &is_found, error);
    if (is_found)
        cpl_plan_set_free(&found);
    else
        *is_output_kept = is_untouched(&found, sizeof found);
    return status;
}

/* Dumping allocates nothing; what is dumped is a plan made for it. */
static enum cpl_status dump(struct stage *stage, bool *is_output_kept, struct cpl_error *error)
{
    struct cpl_strategy_input input = {&stage->pattern, &stage->machine, 8, 1};
    struct cpl_strategy_choice choice;
    struct cpl_plan plan;
    (void)is_output_kept;
    enum cpl_status status = cpl_strategy_parse("direct", &choice, error);
    if (!status)
        status = cpl_strategy_plan(&input, &choice, &plan, error);
    if (status)
        return status;
    status = cpl_plan_dump(&plan, stage->sink, error);
    cpl_plan_free(&plan);
    return status;
}

static enum cpl_status extract(struct cpl_slicer *slicer, int32_t rank, struct cpl_error *error)
{
    static int32_t words[1 << 14];
    struct cpl_rank_plan rank_plan;
    int32_t n;
    enum cpl_status status = cpl_slicer_words(slicer, rank, &n, error);
    if (status)
        return status;
    assert_in_range(n, 1, sizeof words / sizeof *words);
    cpl_slicer_extract(slicer, rank, words);
    return cpl_rank_plan_view(words, n, &rank_plan, error);
}

static enum cpl_status slice(struct stage *stage, bool *is_output_kept, struct cpl_error *error)
{
    struct cpl_slicer slicer;
    POISON(slicer);
    enum cpl_status status = cpl_slicer_init(&slicer, &stage->plan, &stage->pattern, error);
    if (status) {
        *is_output_kept = is_untouched(&slicer, sizeof slicer);
        return status;
    }
    for (int32_t rank = 0; rank < N_RANKS && !status; rank++)
        status = extract(&slicer, rank, error);
    cpl_slicer_free(&slicer);
    return status;
}

static enum cpl_status bound(struct stage *stage, bool *is_output_kept, struct cpl_error *error)
{
    int64_t messages;
    double us;
    POISON(messages);
    POISON(us);
    enum cpl_status status = cpl_bound_two_waves(&stage->pattern, &messages, error);
    *is_output_kept = !status || is_untouched(&messages, sizeof messages);
    if (status)
        return status;
    status = cpl_bound_time(&stage->pattern, &stage->machine, 8, &us, error);
    *is_output_kept = !status || is_untouched(&us, sizeof us);
    return status;
}

static enum cpl_status put_in_order(struct stage *stage, bool *is_output_kept,
                                    struct cpl_error *error)
{
    static int64_t order[N_RANKS * N_RANKS];
    int64_t completion;
    POISON(completion);
    enum cpl_status status = cpl_order_between(&stage->pattern, &stage->pattern, order, error);
    if (!status)
        status =
            cpl_order_completion(&stage->pattern, order, &stage->pattern, 0, &completion, error);
    *is_output_kept = !status || is_untouched(&completion, sizeof completion);
    return status;
}

static enum cpl_status place_ranks(struct stage *stage, bool *is_output_kept,
                                   struct cpl_error *error)
{
    int32_t order[N_RANKS], place[N_RANKS];
    struct cpl_place_exchange exchange = {&stage->pattern, 3};
    struct cpl_place_gain gain;
    POISON(gain);
    cpl_place_order_grid(1, (const int32_t[]){N_RANKS}, order);
    enum cpl_status status =
        cpl_place(&exchange, 1, &stage->machine, 8, order, place, &gain, error);
    *is_output_kept = !status || is_untouched(&gain, sizeof gain);
    return status;
}

/* --- tests */

static int set_up(void **state)
{
    static struct stage stage;
    struct cpl_strategy_choice choice;
    temp_dir_make(&stage.dir);
    temp_dir_text(&stage.dir, "pattern.txt", "4\n0 1 2\n1 0 5\n1 3 3\n2 0 1\n2 3 6\n3 2 2\n");
    temp_dir_text(&stage.dir, "pattern.mtx",
                  "%%MatrixMarket matrix coordinate real symmetric\n3 3 3\n2 1 4\n2 2 1\n3 2 5\n");
    temp_dir_text(&stage.dir, "distances.mtx",
                  "%%MatrixMarket matrix array real symmetric\n2 2\n0\n1\n0\n");
    temp_dir_text(&stage.dir, "costs.machine", "ranks_per_node 2\nnetwork.latency_us 100\n");
    stage.sink = fopen("/dev/null", "w");
    assert_non_null(stage.sink);
    assert_int_equal(build_pattern(&stage.pattern, NULL), CPL_OK);
    assert_int_equal(cpl_machine_init(N_RANKS, 4, &stage.machine, NULL), CPL_OK);
    struct cpl_strategy_input input = {&stage.pattern, &stage.machine, 8, 1};
    assert_int_equal(cpl_strategy_parse("vpt:3", &choice, NULL), CPL_OK);
    assert_int_equal(cpl_strategy_plan(&input, &choice, &stage.plan, NULL), CPL_OK);
    *state = &stage;
    return 0;
}

static int tear_down(void **state)
{
    struct stage *stage = *state;
    cpl_plan_free(&stage->plan);
    cpl_machine_free(&stage->machine);
    cpl_pattern_free(&stage->pattern);
    fclose(stage->sink);
    temp_dir_remove(&stage->dir);
    return 0;
}

static void test_reading(void **state)
{
    sweep(read_text, *state, "a pattern as text");
    sweep(read_matrix, *state, "a matrix");
    sweep(read_costs, *state, "a machine file");
    sweep(read_distances, *state, "distances");
}

static void test_building(void **state)
{
    sweep(build, *state, "a pattern");
    sweep(make_machines, *state, "machines");
}

static void test_planning(void **state)
{
    struct stage *stage = *state;
    struct cpl_strategy_list list;
    struct cpl_strategy_input input = {&stage->pattern, &stage->machine, 8, 1};
    char name[CPL_STRATEGY_TEXT];
    cpl_strategy_candidates(&input, &list);
    assert_true(list.n >= 20);
    cpl_strategy_add(&list, NULL, &(struct cpl_strategy_numbers){0});
    for (size_t k = 0; k < list.n; k++) {
        cpl_strategy_format(&list.choice[k], name);
        stage->strategy = name;
        sweep(make_plan, stage, name);
    }
    static const char *const others[] = {"grid:4x4+near", "vpt:2+klf", "grid:2x8+doubling"};
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
        stage->strategy = others[k];
        sweep(make_plan, stage, others[k]);
    }
}

static void test_using_plans(void **state)
{
    sweep(check, *state, "checking a plan");
    sweep(measure, *state, "measuring a plan");
    sweep(dump, *state, "dumping a plan");
    sweep(slice, *state, "slicing a plan");
    sweep(keep_plan, *state, "keeping a plan");
    sweep(bound, *state, "lower bounds");
    sweep(put_in_order, *state, "the order of sends");
    sweep(place_ranks, *state, "placing ranks");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reading),
        cmocka_unit_test(test_building),
        cmocka_unit_test(test_planning),
        cmocka_unit_test(test_using_plans),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
