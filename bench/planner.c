/*
 * Planning speed and memory: generated patterns x strategies, one process each, without MPI.
 *
 *   planner [-n SIZES] [-r REPETITIONS] [STRATEGY...]
 *
 * SIZES is how many of the sizes below to try, from the smallest (default all); STRATEGY as in
 * CARPOOL_STRATEGY, default all that do not search. Writes tab-separated values, times in processor
 * time: route_ms is the strategy's own time (of auto all), build_ms that of cpl_plan_build,
 * total_ms their sum (medians of the repetitions, each alone), peak_MiB the largest memory of the
 * process with the pattern in it; keep_ms and read_ms are what writing the plan as a file
 * (plan_file.h) and reading it take, in memory, without the disk, and file_MiB how long that file
 * is.
 */
#include "common.h"
#include "planner/keep/plan_file.h"
#include "planner/strategy.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST_REPETITIONS 1000

static const struct size {
    int32_t n_ranks;
    int64_t n_messages;
    int repetitions;
} sizes[] = {{512, 50000, 11}, {8192, 500000, 3}, {32768, 2000000, 1}};

#define N_SIZES ((int64_t)(sizeof sizes / sizeof *sizes))

/* How a shape draws a message; ranks is a power of two. */
typedef void draw(struct bench_random *random, int32_t n_ranks, int32_t *src, int32_t *dst);

/* A number below n, small ones more often: n u^power for a uniform u below 1. */
static int32_t draw_power(struct bench_random *random, int32_t n, int power)
{
    uint64_t u = bench_random_next(random) >> 32, product = u;
    for (int k = 1; k < power; k++)
        product = product * u >> 32;
    return (int32_t)(product * (uint64_t)n >> 32);
}

/* Numbers of few messages for most ranks and very many for some, to receivers of the same kind but
 * not the same ranks. */
static void draw_power_law(struct bench_random *random, int32_t n_ranks, int32_t *src, int32_t *dst)
{
    int32_t from = draw_power(random, n_ranks, 3), to = draw_power(random, n_ranks, 2);
    *src = (int32_t)((uint32_t)from * 2654435761U % (uint32_t)n_ranks);
    *dst = (int32_t)((uint32_t)to * 2246822519U % (uint32_t)n_ranks);
}

/* Recursive quadrants with the Graph500 probabilities (generators.h). */
static void draw_rmat(struct bench_random *random, int32_t n_ranks, int32_t *src, int32_t *dst)
{
    *src = *dst = 0;
    for (int32_t bit = 1; bit < n_ranks; bit *= 2) {
        uint64_t percent = bench_random_below(random, 100);
        *src += percent >= 76 ? bit : 0;
        *dst += (percent >= 57 && percent < 76) || percent >= 95 ? bit : 0;
    }
}

static const struct shape {
    const char *name;
    draw *draw;
} shapes[] = {{"power-law", draw_power_law}, {"rmat", draw_rmat}};

#define N_SHAPES ((int64_t)(sizeof shapes / sizeof *shapes))

static void *checked(void *memory)
{
    if (!memory) {
        fprintf(stderr, "planner: out of memory\n");
        exit(1);
    }
    return memory;
}

/* The shape's pattern: at least 99 of 100 of the messages, fewer only where pairs are hard to
 * find. */
static struct cpl_pattern make_pattern(const struct shape *shape, const struct size *size)
{
    struct bench_random random = {(uint64_t)size->n_ranks};
    struct cpl_pattern_entry *entries = NULL;
    struct cpl_pattern pattern = {.n_ranks = 0};
    struct cpl_error error;
    int64_t n = 0;

    for (int round = 0; round < 40 && pattern.n_messages < size->n_messages * 99 / 100; round++) {
        int64_t end = n + size->n_messages - pattern.n_messages;
        entries = checked(bench_resize(entries, (size_t)end, sizeof *entries));
        for (; n < end; n++) {
            struct cpl_pattern_entry *entry = &entries[n];
            shape->draw(&random, size->n_ranks, &entry->src, &entry->dst);
            entry->volume = 1 + (int64_t)bench_random_below(&random, 64);
            entry->payload_class = -1;
        }
        cpl_pattern_free(&pattern);
        if (cpl_pattern_build(size->n_ranks, entries, n, &pattern, &error)) {
            fprintf(stderr, "planner: %s\n", error.text);
            exit(1);
        }
    }
    free(entries);
    return pattern;
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

struct times {
    double route_ms[MOST_REPETITIONS], build_ms[MOST_REPETITIONS], total_ms[MOST_REPETITIONS];
};

/* Makes the plan, and notes when it was routed; of auto *choice becomes what it chose. */
static enum cpl_status make_plan(const struct cpl_strategy_input *input,
                                 struct cpl_strategy_choice *choice, struct cpl_plan *plan,
                                 double *routed, struct cpl_error *error)
{
    struct cpl_routes routes;
    enum cpl_status status;
    if (!choice->strategy) {
        status = cpl_strategy_plan_auto(input, choice, plan, error);
        *routed = now_ms();
        return status;
    }
    status = choice->strategy->route(input, &choice->numbers, &routes, error);
    *routed = now_ms();
    if (status)
        return status;
    status = cpl_plan_build(input->pattern, &routes, plan, error);
    cpl_routes_free(&routes);
    return status;
}

/* Plan once; exits when the strategy cannot: 0 when it does not fit, else 1. */
static int64_t plan_once(const struct cpl_strategy_input *input, struct cpl_strategy_choice *choice,
                         struct times *times, int k)
{
    struct cpl_plan plan;
    struct cpl_error error;
    double start = now_ms(), routed;
    enum cpl_status status = make_plan(input, choice, &plan, &routed, &error);
    if (status) {
        fprintf(stderr, "planner: %s\n", error.text);
        exit(status == CPL_ERR_UNFIT ? 0 : 1);
    }
    double built = now_ms();
    int64_t n_edges = plan.n_edges;
    times->route_ms[k] = routed - start;
    times->build_ms[k] = built - routed;
    times->total_ms[k] = built - start;
    cpl_plan_free(&plan);
    return n_edges;
}

static double median(double *values, int n)
{
    bench_sort(values, (size_t)n);
    return bench_quantile(values, (size_t)n, 0.5);
}

/* Median times of writing and reading the choice's plan as a file; returns its bytes. */
static size_t measure_keeping(const struct cpl_strategy_input *input,
                              const struct cpl_strategy_choice *choice, int repetitions,
                              double *keep_ms, double *read_ms)
{
    struct times *times = checked(bench_array(1, sizeof *times));
    struct cpl_plan_set set = {.n = 1, .choice = {*choice}}, found;
    struct cpl_error error;
    char name[CPL_STRATEGY_TEXT];
    size_t n_bytes = 0;
    const struct cpl_plan_key key = {"bench", name, 1, input};
    cpl_strategy_format(choice, name);
    enum cpl_status status = cpl_strategy_plan(input, choice, set.plan, &error);
    for (int k = 0; k < repetitions && !status; k++) {
        struct cpl_bytes wanted = {NULL, 0, 0, false}, file = wanted, again = wanted;
        double start = now_ms();
        cpl_plan_key_put(&key, &wanted);
        cpl_plan_file_put(&wanted, &set, &file);
        double kept = now_ms();
        cpl_plan_key_put(&key, &again);
        status = cpl_plan_file_take(file.at, file.n, &key, &again, &found, &error);
        times->route_ms[k] = kept - start;
        times->build_ms[k] = now_ms() - kept;
        n_bytes = file.n;
        if (!status)
            cpl_plan_set_free(&found);
        cpl_bytes_free(&again);
        cpl_bytes_free(&file);
        cpl_bytes_free(&wanted);
    }
    if (status) {
        fprintf(stderr, "planner: %s\n", error.text);
        exit(1);
    }
    *keep_ms = median(times->route_ms, repetitions);
    *read_ms = median(times->build_ms, repetitions);
    cpl_plan_set_free(&set);
    free(times);
    return n_bytes;
}

static void measure(const struct cpl_strategy_input *input,
                    const struct cpl_strategy_choice *choice, const char *shape, int repetitions)
{
    struct times *times = checked(bench_array(1, sizeof *times));
    char name[CPL_STRATEGY_TEXT];
    struct rusage usage;
    struct cpl_strategy_choice made;
    int64_t n_edges = 0;
    for (int k = 0; k < repetitions; k++) {
        made = *choice;
        n_edges = plan_once(input, &made, times, k);
    }
    getrusage(RUSAGE_SELF, &usage);
    double keep_ms, read_ms;
    size_t n_bytes = measure_keeping(input, &made, repetitions, &keep_ms, &read_ms);
    cpl_strategy_format(choice, name);
    printf("%" PRId32 "\t%" PRId64 "\t%s\t%.2f\t%.2f\t%.2f\t%.1f\t%.2f\t%.2f\t%.1f\t%" PRId64
           "\t%s\n",
           input->pattern->n_ranks, input->pattern->n_messages, name,
           median(times->route_ms, repetitions), median(times->build_ms, repetitions),
           median(times->total_ms, repetitions), (double)usage.ru_maxrss / 1024, keep_ms, read_ms,
           (double)n_bytes / (1 << 20), n_edges, shape);
    fflush(stdout);
    free(times);
}

/* Measure in a process of its own, so that memory is that of this strategy. Returns 0, or 1. */
static int measure_apart(const struct cpl_strategy_input *input,
                         const struct cpl_strategy_choice *choice, const char *shape,
                         int repetitions)
{
    int status;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        measure(input, choice, shape, repetitions);
        exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) {
        perror("planner");
        return 1;
    }
    return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

/* What the command line asks for, or all that do not search (those take the budget that one gives
 * them). Returns 0, or 1 after saying why. */
static int choose(char **names, const struct cpl_strategy_input *input,
                  struct cpl_strategy_list *list)
{
    struct cpl_strategy_list all;
    struct cpl_error error;
    list->n = 0;
    if (!*names) {
        cpl_strategy_candidates(input, &all);
        for (size_t k = 0; k < all.n; k++)
            if (!all.choice[k].strategy->searches)
                list->choice[list->n++] = all.choice[k];
    }
    for (; *names; names++, list->n++)
        if (list->n == CPL_MAX_CANDIDATES ||
            cpl_strategy_parse(*names, &list->choice[list->n], &error)) {
            fprintf(stderr, "planner: '%s' is no strategy, or one too many\n", *names);
            return 1;
        }
    return 0;
}

static int run(const struct shape *shape, const struct size *size, int64_t repetitions,
               char **names)
{
    struct cpl_pattern pattern = make_pattern(shape, size);
    struct cpl_machine machine;
    struct cpl_strategy_list list;
    int failed = cpl_machine_init(size->n_ranks, 32, &machine, NULL) != CPL_OK;
    if (!failed) {
        struct cpl_strategy_input input = {&pattern, &machine, 8, CPL_DEFAULT_BUDGET_MS};
        failed = choose(names, &input, &list);
        for (size_t k = 0; k < list.n && !failed; k++)
            failed = measure_apart(&input, &list.choice[k], shape->name,
                                   repetitions ? (int)repetitions : size->repetitions);
        cpl_machine_free(&machine);
    }
    cpl_pattern_free(&pattern);
    return failed;
}

int main(int argc, char **argv)
{
    int64_t n_sizes = N_SIZES, repetitions = 0;
    int option, failed = 0;
    while ((option = getopt(argc, argv, "n:r:")) != -1) {
        if ((option == 'n' && !bench_parse_integer(optarg, 1, N_SIZES, &n_sizes)) ||
            (option == 'r' && !bench_parse_integer(optarg, 1, MOST_REPETITIONS, &repetitions)))
            continue;
        fprintf(stderr, "usage: planner [-n SIZES (1 to %d)] [-r REPETITIONS] [STRATEGY...]\n",
                (int)N_SIZES);
        return 2;
    }
    printf("ranks\tmessages\tstrategy\troute_ms\tbuild_ms\ttotal_ms\tpeak_MiB\tkeep_ms\tread_"
           "ms\tfile_MiB\t"
           "edges\tpattern\n");
    for (int64_t size = 0; size < n_sizes && !failed; size++)
        for (int64_t shape = 0; shape < N_SHAPES && !failed; shape++)
            failed = run(&shapes[shape], &sizes[size], repetitions, argv + optind);
    return failed;
}
