/*
 * The executor's own work, without MPI: nanoseconds for each end of a combined message, of a
 * segment, of a byte (bench/sim charges them).
 *
 *   packing [--rounds N] [PATTERN...]
 *
 * The executors of all ranks of a plan run in this process, one after the other; in place of MPI a
 * message is copied from buffer to buffer, which is measured along with the rest. Payloads are
 * copied by memcpy, as contiguous datatypes are. PATTERN as for `carpool plan`, at most 128 ranks;
 * default: random ones of 64 ranks. The three figures are those that fit the times of several
 * strategies and payload sizes best (least squares of relative errors).
 */
#include "common.h"
#include "planner/rank_plan.h"
#include "planner/strategy.h"
#include "shim/base/log.h"
#include "shim/carry/executor.h"
#include "shim/carry/lanes.h"
#include "shim/state/context.h"
#include "shim/state/memory.h"
#include "shim/wait/collective.h"
#include "shim/wait/progress.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_RANKS = 128, N_TAGS = CPL_EXECUTOR_TAGS, MOST_REQUESTS = 1 << 20, N_UNKNOWN = 3 };

/* ---- in place of MPI: each message goes into a place of its own, by ends and tag */

struct place {
    unsigned char *to;
    const unsigned char *from;
    int n_bytes;
};

static struct {
    int rank; /* whose executor runs */
    struct place *place;
    int n_requests;
    struct place *of_request[MOST_REQUESTS];
} network;

struct cpl_context cpl_context;
enum cpl_log_level cpl_log_threshold = CPL_LOG_WARN;

void cpl_log_write(enum cpl_log_level level, const char *component, const char *format, ...)
{
    fprintf(stderr, "packing: the executor complains (%d %s: %s)\n", (int)level, component, format);
    exit(1);
}

static MPI_Request request_at(int from, int to, int tag)
{
    struct place *place = &network.place[(from * MOST_RANKS + to) * N_TAGS + tag];
    network.of_request[++network.n_requests] = place;
    return (MPI_Request)network.n_requests;
}

int PMPI_Irecv(void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
               MPI_Request *request)
{
    (void)count, (void)type, (void)comm;
    *request = request_at(source, network.rank, tag);
    network.of_request[*request]->to = buffer;
    return MPI_SUCCESS;
}

int PMPI_Isend(const void *buffer, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm,
               MPI_Request *request)
{
    (void)type, (void)comm;
    *request = request_at(network.rank, dest, tag);
    network.of_request[*request]->from = buffer;
    network.of_request[*request]->n_bytes = count;
    return MPI_SUCCESS;
}

int PMPI_Testsome(int n, MPI_Request requests[], int *n_done, int indices[], MPI_Status statuses[])
{
    *n_done = 0;
    for (int k = 0; k < n; k++) {
        struct place *place = network.of_request[requests[k]];
        if (requests[k] == 0 || !place->from)
            continue;
        memcpy(place->to, place->from, (size_t)place->n_bytes);
        statuses[*n_done].MPI_TAG = place->n_bytes;
        indices[(*n_done)++] = k;
        place->from = NULL;
        requests[k] = 0;
    }
    return MPI_SUCCESS;
}

int PMPI_Get_count(const MPI_Status *status, MPI_Datatype type, int *count)
{
    (void)type;
    *count = status->MPI_TAG;
    return MPI_SUCCESS;
}

int PMPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    (void)status;
    *flag = network.of_request[*request]->from == NULL;
    return MPI_SUCCESS;
}

void cpl_progress_pause(int n)
{
    (void)n;
}

/* The network above carries all. */
bool cpl_lanes_open(struct cpl_lanes *lanes, MPI_Comm comm, bool able)
{
    (void)lanes, (void)comm, (void)able;
    return false;
}

void cpl_lanes_close(struct cpl_lanes *lanes)
{
    (void)lanes;
}

int cpl_collective_waitsome(int n, MPI_Request requests[], int *n_done, int indices[],
                            MPI_Status statuses[])
{
    return PMPI_Testsome(n, requests, n_done, indices, statuses);
}

int cpl_collective_waitall(int n, MPI_Request requests[], MPI_Status statuses[])
{
    (void)n, (void)requests, (void)statuses;
    return MPI_SUCCESS;
}

void cpl_memory_wait(int *tries, const char *what)
{
    (void)tries;
    fprintf(stderr, "no memory for %s\n", what);
    exit(EXIT_FAILURE);
}

/* ---- payloads of one size */

static unsigned char memory[1 << 20];
static int64_t payload_bytes;

static int64_t size(void *context, int32_t k)
{
    (void)context, (void)k;
    return payload_bytes;
}

static unsigned char *where(int32_t k)
{
    return memory + (size_t)k * (size_t)payload_bytes % (sizeof memory / 2);
}

static int pack(void *context, int32_t k, unsigned char *to)
{
    (void)context;
    memcpy(to, where(k), (size_t)payload_bytes);
    return MPI_SUCCESS;
}

static int deliver(void *context, int32_t owner, const unsigned char *data, int64_t bytes)
{
    (void)context;
    memcpy(where(owner), data, (size_t)bytes);
    return MPI_SUCCESS;
}

/* ---- one plan */

static void die(const char *text)
{
    fprintf(stderr, "packing: %s\n", text);
    exit(1);
}

static void make_executors(const struct cpl_pattern *pattern, const struct cpl_plan *plan,
                           struct cpl_executor **executors)
{
    struct cpl_slicer slicer;
    struct cpl_error error;
    if (cpl_slicer_init(&slicer, plan, pattern, &error))
        die(error.text);
    for (int32_t r = 0; r < plan->n_ranks; r++) {
        int32_t n_words;
        if (cpl_slicer_words(&slicer, r, &n_words, &error))
            die(error.text);
        int32_t *words = malloc((size_t)n_words * sizeof *words);
        if (!words)
            die("out of memory");
        cpl_slicer_extract(&slicer, r, words);
        executors[r] = cpl_executor_create(words, n_words, MPI_COMM_WORLD, 0);
        if (!executors[r])
            die("no executor");
    }
    cpl_slicer_free(&slicer);
}

/* Nanoseconds of one exchange on all ranks together. */
static double exchange_ns(struct cpl_executor **executors, int32_t n_ranks)
{
    static const struct cpl_payloads payloads = {NULL, size, pack, deliver};
    struct timespec begin, end;
    int32_t n_open = n_ranks;
    bool done[MOST_RANKS] = {false};
    network.n_requests = 0;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    for (network.rank = 0; network.rank < n_ranks; network.rank++)
        cpl_executor_start(executors[network.rank], &payloads);
    while (n_open > 0)
        for (network.rank = 0; network.rank < n_ranks; network.rank++) {
            int result;
            if (done[network.rank] || !cpl_executor_progress(executors[network.rank], &result))
                continue;
            done[network.rank] = true;
            n_open--;
        }
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    return (double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec);
}

/* The normal equations of the fit, weighted by 1 / time^2. */
struct fit {
    double a[N_UNKNOWN][N_UNKNOWN], b[N_UNKNOWN];
};

static void add_to_fit(struct fit *fit, const double x[N_UNKNOWN], double ns)
{
    for (int i = 0; i < N_UNKNOWN; i++) {
        for (int j = 0; j < N_UNKNOWN; j++)
            fit->a[i][j] += x[i] * x[j] / ns / ns;
        fit->b[i] += x[i] / ns;
    }
}

static void solve(struct fit *fit, double x[N_UNKNOWN])
{
    for (int k = 0; k < N_UNKNOWN; k++)
        for (int i = k + 1; i < N_UNKNOWN; i++) {
            double factor = fit->a[i][k] / fit->a[k][k];
            for (int j = k; j < N_UNKNOWN; j++)
                fit->a[i][j] -= factor * fit->a[k][j];
            fit->b[i] -= factor * fit->b[k];
        }
    for (int k = N_UNKNOWN - 1; k >= 0; k--) {
        x[k] = fit->b[k];
        for (int j = k + 1; j < N_UNKNOWN; j++)
            x[k] -= fit->a[k][j] * x[j];
        x[k] /= fit->a[k][k];
    }
}

static void measure(const struct cpl_pattern *pattern, const char *strategy, int64_t bytes,
                    int rounds, struct fit *fit)
{
    struct cpl_machine machine;
    struct cpl_strategy_choice choice;
    struct cpl_plan plan;
    struct cpl_error error;
    struct cpl_executor *executors[MOST_RANKS];
    double *ns = bench_array((size_t)rounds, sizeof *ns);
    if (!ns || cpl_machine_init(pattern->n_ranks, 32, &machine, &error) ||
        cpl_strategy_parse(strategy, &choice, &error))
        die(ns ? error.text : "out of memory");
    const struct cpl_strategy_input input = {pattern, &machine, 8, 0};
    enum cpl_status status = cpl_strategy_plan(&input, &choice, &plan, &error);
    if (status && status != CPL_ERR_UNFIT)
        die(error.text);
    if (!status) {
        payload_bytes = bytes;
        make_executors(pattern, &plan, executors);
        for (int k = -2; k < rounds; k++) /* the first two agree on lengths */
            ns[k < 0 ? 0 : k] = exchange_ns(executors, pattern->n_ranks);
        bench_sort(ns, (size_t)rounds);
        double median = bench_quantile(ns, (size_t)rounds, 0.5);
        /* each segment is packed where it leaves, and taken out where it is at home */
        double n_copies = (double)(plan.n_segments + pattern->n_messages);
        const double x[] = {2.0 * (double)plan.n_edges, n_copies, n_copies * (double)bytes};
        add_to_fit(fit, x, median);
        printf("%s\t%lld\t%lld\t%lld\t%.0f\n", strategy, (long long)bytes, (long long)plan.n_edges,
               (long long)plan.n_segments, median);
        for (int32_t r = 0; r < pattern->n_ranks; r++)
            cpl_executor_destroy(executors[r]);
        cpl_plan_free(&plan);
    }
    cpl_machine_free(&machine);
    free(ns);
}

static void measure_all(const struct cpl_pattern *pattern, int rounds, struct fit *fit)
{
    static const char *const strategies[] = {"direct", "vpt:2", "vpt:3", "node-grid:0:1:2"};
    static const int64_t sizes[] = {8, 64, 512};
    if (pattern->n_ranks > MOST_RANKS)
        die("a pattern of more than 128 ranks");
    for (size_t s = 0; s < sizeof strategies / sizeof *strategies; s++)
        for (size_t b = 0; b < sizeof sizes / sizeof *sizes; b++)
            measure(pattern, strategies[s], sizes[b], rounds, fit);
}

/* A pattern in which each of n ranks sends to so many random others. */
static void make_random(int32_t n, int32_t degree, struct cpl_pattern *pattern)
{
    struct bench_random random = {(uint64_t)degree};
    struct cpl_pattern_entry *entries = bench_array((size_t)n * (size_t)degree, sizeof *entries);
    struct cpl_error error;
    if (!entries)
        die("out of memory");
    for (int32_t i = 0; i < n; i++)
        for (int32_t k = 0; k < degree; k++) {
            int32_t to = (int32_t)bench_random_below(&random, (uint64_t)n - 1);
            entries[i * degree + k] = (struct cpl_pattern_entry){
                .src = i, .dst = to + (to >= i), .volume = 8, .payload_class = -1};
        }
    if (cpl_pattern_build(n, entries, (int64_t)n * degree, pattern, &error))
        die(error.text);
    free(entries);
}

int main(int n_arguments, char **arguments)
{
    int64_t rounds = 51;
    int first = 1;
    struct fit fit = {{{0}}, {0}};
    double x[N_UNKNOWN];
    if (n_arguments > 2 && strcmp(arguments[1], "--rounds") == 0) {
        if (bench_parse_integer(arguments[2], 1, 100000, &rounds))
            die("--rounds wants a number from 1 to 100000");
        first = 3;
    }
    network.place = bench_array((size_t)MOST_RANKS * MOST_RANKS * N_TAGS, sizeof *network.place);
    if (!network.place)
        die("out of memory");
    printf("strategy\tbytes\tmessages\tsegments\texchange_ns\n");
    for (int k = first; k < n_arguments; k++) {
        struct cpl_pattern pattern;
        struct cpl_error error;
        if (cpl_pattern_read(arguments[k], &pattern, &error))
            die(error.text);
        measure_all(&pattern, (int)rounds, &fit);
        cpl_pattern_free(&pattern);
    }
    for (int32_t degree = 4; degree <= 48 && first == n_arguments; degree *= 3) {
        struct cpl_pattern pattern;
        make_random(64, degree, &pattern);
        measure_all(&pattern, (int)rounds, &fit);
        cpl_pattern_free(&pattern);
    }
    solve(&fit, x);
    printf("each end of a message %.1f ns, of a segment %.1f ns, of a byte %.3f ns\n", x[0], x[1],
           x[2]);
    free(network.place);
    return 0;
}
