/*
 * plan_model: planning without a root (shim/plan/plan_distributed.h) by thousands of ranks, over
 * the model of a cluster (rank_model.h): all ranks in one process.
 *
 *     plan_model RANKS MACHINE [--family random|stencil|powerlaw|band] [--messages N] [--bytes N]
 *                [--strategy NAME] [--json] [--write FILE]
 *
 * The ranks plan one exchange as the preloaded library's would: its own code, every record and
 * byte. Told are the time of the slowest rank by the model, to which each rank's work is charged
 * as in simulations (shim/base/work.h); the most bytes that a rank sent, without collectives; and
 * the most memory that one held at a time, with messages that it has sent and nobody received. Left
 * out is what finding the nodes takes (a communicator is split).
 */
#include "main.h"
#include "rank_model.h"
#include "report.h"

#include "planner/rank_plan.h"
#include "planner/routes.h"
#include "planner/strategies/rows.h"
#include "shim/base/work.h"
#include "shim/meet/agree.h"
#include "shim/plan/plan_distributed.h"
#include "shim/plan/plan_root.h"
#include "shim/state/context.h"
#include "shim/wait/collective.h"
#include "shim/wait/progress.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: plan_model RANKS MACHINE [options]\n"
    "  RANKS ranks of a cluster like MACHINE plan an exchange together, in one process\n"
    "  --family NAME       random (default): to random ranks; stencil: to the 26 around in three\n"
    "                      dimensions; powerlaw: few ranks get most; band: to the nearest\n"
    "  --messages N        of a rank (default 32; stencil: 26)\n"
    "  --bytes N           of each (default 64)\n"
    "  --strategy NAME     default auto\n"
    "  --write FILE        write the pattern for `carpool plan` instead, in units of 8 bytes\n"
    "  --seed N            of random ranks (default 1)\n"
    "  --json              print one JSON object on one line\n"
    "  --help              print this\n";

enum { RANDOM, STENCIL, POWERLAW, BAND };
static const char *const families[] = {"random", "stencil", "powerlaw", "band", NULL};

static struct {
    int family;
    int64_t n_messages, bytes, seed;
    const char *file;
} given = {.n_messages = 32, .bytes = 64, .seed = 1};

static int take_strategy(const struct bench_option *option, char *name, struct bench_error *error)
{
    struct cpl_strategy_choice choice;
    struct cpl_error why;
    (void)option;
    if (strcmp(name, "auto") != 0 && cpl_strategy_parse(name, &choice, &why))
        return bench_fail(error, "--strategy: %s", why.text);
    if (strcmp(name, "auto") != 0 && !choice.strategy->router)
        return bench_fail(error, "--strategy: ranks do not plan together by %s", name);
    snprintf(cpl_context.settings.strategy, sizeof cpl_context.settings.strategy, "%s", name);
    return 0;
}

static const struct bench_option table[] = {
    {"family", .word = &given.family, .words = families},
    {"messages", .number = &given.n_messages, .least = 1, .most = 100000},
    {"bytes", .number = &given.bytes, .least = 1, .most = 1 << 20},
    {"seed", .number = &given.seed, .most = INT64_MAX},
    {"strategy", .take = take_strategy},
    {"write", .text = &given.file},
    {NULL},
};

static int check(const struct bench *bench, struct bench_error *error)
{
    return bench->n_ranks > 1
               ? 0
               : bench_fail(error, "one rank has nobody to send to; ask for two or more");
}

/* ---- what the library's planning calls besides MPI ---- */

struct cpl_context cpl_context;

int cpl_collective_Allreduce(const void *in, void *out, int n, MPI_Datatype type, MPI_Op op,
                             MPI_Comm comm)
{
    return MPI_Allreduce(in, out, n, type, op, comm);
}

int cpl_collective_Allgather(const void *in, int n_in, MPI_Datatype type_in, void *out, int n_out,
                             MPI_Datatype type_out, MPI_Comm comm)
{
    return MPI_Allgather(in, n_in, type_in, out, n_out, type_out, comm);
}

int cpl_collective_Bcast(void *data, int n, MPI_Datatype type, int root, MPI_Comm comm)
{
    return MPI_Bcast(data, n, type, root, comm);
}

bool cpl_agree_all(MPI_Comm comm, bool yes)
{
    int mine = yes, all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, comm);
    return all;
}

struct cpl_seat cpl_agree_seat(MPI_Comm comm)
{
    (void)comm;
    return (struct cpl_seat){.node = rank_model.running / rank_model.ranks_per_node,
                             .world_rank = rank_model.running};
}

const struct cpl_planning_costs *cpl_plan_root_costs(void)
{
    static struct cpl_planning_costs costs;
    costs.costs = rank_model.costs;
    return &costs;
}

enum cpl_status cpl_plan_machine(int32_t n_ranks, const struct cpl_seat *seats,
                                 const struct cpl_planning_costs *costs,
                                 struct cpl_machine *machine, struct cpl_error *error)
{
    (void)seats;
    enum cpl_status status = cpl_machine_init(n_ranks, rank_model.ranks_per_node, machine, error);
    if (!status)
        machine->costs = costs->costs;
    return status;
}

double cpl_plan_root_ms(int64_t n_messages, enum cpl_search search, double ranks_a_core,
                        bool direct)
{
    (void)n_messages, (void)search, (void)ranks_a_core, (void)direct;
    return 0;
}

void cpl_plan_decide(struct cpl_plan_summary *summary, bool fits, bool needed)
{
    (void)fits;
    summary->decided = needed;
}

void cpl_plan_log(const struct cpl_plan_summary *summary, bool tried)
{
    (void)summary, (void)tried;
}

/* Receives are all that is waited for. */
int cpl_progress_wait(MPI_Request *request, MPI_Status *status)
{
    return MPI_Waitall(1, request, status);
}

void cpl_progress_pause(int n)
{
    (void)n;
    rank_model_pause();
}

void cpl_work_planned(double ms)
{
    rank_model.clock[rank_model.running] += ms * 1e-3;
}

/* ---- memory of each rank ---- */

struct block {
    _Alignas(16) size_t size;
    int owner; /* -1: of none */
};

static int64_t *held, *most_held; /* bytes; NULL: not counted */

void *__real_malloc(size_t size);
void __real_free(void *memory);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void __wrap_free(void *memory);

static void count(const struct block *block, int sign)
{
    if (block->owner < 0 || !held)
        return;
    held[block->owner] += sign * (int64_t)block->size;
    if (held[block->owner] > most_held[block->owner])
        most_held[block->owner] = held[block->owner];
}

void *__wrap_malloc(size_t size)
{
    struct block *block =
        size < SIZE_MAX - sizeof *block ? __real_malloc(size + sizeof *block) : NULL;
    if (!block)
        return NULL;
    *block = (struct block){size, held ? rank_model.running : -1};
    count(block, 1);
    return block + 1;
}

void *__wrap_calloc(size_t n, size_t size)
{
    void *memory = size && n > SIZE_MAX / size ? NULL : __wrap_malloc(n * size);
    return memory ? memset(memory, 0, n * size) : NULL;
}

void __wrap_free(void *memory)
{
    struct block *block = (struct block *)memory - 1;
    if (!memory)
        return;
    count(block, -1);
    __real_free(block);
}

void *__wrap_realloc(void *memory, size_t size)
{
    const struct block *block = (const struct block *)memory - 1;
    void *moved = __wrap_malloc(size);
    if (!moved || !memory)
        return moved;
    memcpy(moved, memory, block->size < size ? block->size : size);
    __wrap_free(memory);
    return moved;
}

/* ---- the exchange ---- */

static int compare_ranks(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

/* The nearest factors of n ranks in three dimensions. */
static void box(int n, int size[3])
{
    size[0] = (int)cbrt(n);
    while (n % size[0])
        size[0]--;
    size[1] = (int)sqrt(n / size[0]);
    while (n / size[0] % size[1])
        size[1]--;
    size[2] = n / size[0] / size[1];
}

static int stencil(int rank, int n_ranks, int *dst)
{
    int size[3], n = 0;
    box(n_ranks, size);
    int x = rank % size[2], y = rank / size[2] % size[1], z = rank / size[2] / size[1];
    for (int k = 0; k < 27; k++) {
        int at[3] = {x + k % 3 - 1, y + k / 3 % 3 - 1, z + k / 9 - 1};
        int i = (at[0] + size[2]) % size[2], j = (at[1] + size[1]) % size[1];
        dst[n++] = ((at[2] + size[0]) % size[0] * size[1] + j) * size[2] + i;
    }
    return n;
}

static int drawn(int rank, int n_ranks, int *dst)
{
    struct bench_random random = {bench_mix((uint64_t)(given.seed * n_ranks + rank))};
    for (int k = 0; k < given.n_messages; k++) {
        double u = (double)(bench_random_next(&random) >> 11) * 0x1p-53;
        dst[k] = (int)(given.family == POWERLAW ? pow(n_ranks, u) - 1 : u * n_ranks);
        if (given.family == BAND)
            dst[k] = (rank + k + 1) % n_ranks;
    }
    return (int)given.n_messages;
}

/* The ranks that a rank sends to, ascending, each once and not itself. */
static int choose(int rank, int n_ranks, int *dst)
{
    int n = (given.family == STENCIL ? stencil : drawn)(rank, n_ranks, dst), kept = 0;
    qsort(dst, (size_t)n, sizeof *dst, compare_ranks);
    for (int k = 0; k < n; k++)
        if (dst[k] != rank && (kept == 0 || dst[k] != dst[kept - 1]))
            dst[kept++] = dst[k];
    return kept;
}

/* ---- the plan that the slices make together ---- */

/* Where a segment leaves a rank. */
struct departure {
    int32_t edge; /* -1: it does not */
    int32_t at;   /* its place on the edge */
};

/* A rank's slice, and where its payloads and what it receives leave. */
struct slice {
    struct cpl_rank_plan plan;
    struct departure *payload, *segment;
};

static struct slice *slices;

static int read_slice(const struct cpl_agree_output *output, struct slice *slice,
                      struct bench_error *error)
{
    struct cpl_error why;
    struct cpl_rank_plan *p = &slice->plan;
    if (cpl_rank_plan_view(output->words[0], output->n_words[0], p, &why))
        return bench_fail(error, "a slice: %s", why.text);
    slice->payload = bench_need((size_t)p->n_payloads + 1, sizeof *slice->payload);
    slice->segment = bench_need((size_t)p->n_in_segments + 1, sizeof *slice->segment);
    for (int32_t k = 0; k < p->n_payloads; k++)
        slice->payload[k].edge = -1;
    for (int32_t k = 0; k < p->n_in_segments; k++)
        slice->segment[k].edge = -1;
    for (int32_t e = 0; e < p->n_out; e++)
        for (int32_t j = p->out_first[e]; j < p->out_first[e + 1]; j++) {
            int32_t from = p->out_source[j];
            struct departure *leaves =
                from < 0 ? &slice->payload[-1 - from] : &slice->segment[from];
            *leaves = (struct departure){e, j - p->out_first[e]};
        }
    return 0;
}

/* Where a message is after each wave, by the slices. */
static int follow(int32_t src, int32_t payload, int32_t dst, int32_t n_waves, int32_t *stops,
                  struct bench_error *error)
{
    int32_t here = src, wave = 0;
    struct departure leaves = slices[src].payload[payload];
    while (leaves.edge >= 0) {
        int32_t to = slices[here].plan.out_to[leaves.edge], e = 0;
        int32_t next = slices[here].plan.out_wave[leaves.edge];
        const struct cpl_rank_plan *p = &slices[to].plan;
        while (e < p->n_in && (p->in_from[e] != here || p->in_wave[e] != next))
            e++;
        if (next <= wave || e == p->n_in || leaves.at >= p->in_first[e + 1] - p->in_first[e])
            return bench_fail(error, "rank %d awaits nothing from rank %d", to, here);
        for (; wave < next - 1; wave++)
            stops[wave] = here;
        stops[wave++] = here = to;
        leaves = slices[to].segment[p->in_first[e] + leaves.at];
    }
    for (; wave < n_waves; wave++)
        stops[wave] = here;
    return here == dst
               ? 0
               : bench_fail(error, "a message of rank %d ends at rank %d, not %d", src, here, dst);
}

static int choose(int rank, int n_ranks, int *dst);

/* The time of the whole plan by events. */
static int price_slices(int n_ranks, double *us, struct bench_error *error)
{
    int *dst = bench_need(27 + (size_t)given.n_messages, sizeof *dst), failed = 0;
    struct cpl_pattern_entry *entries =
        bench_need((size_t)n_ranks * (27 + (size_t)given.n_messages), sizeof *entries);
    int64_t n = 0;
    struct cpl_pattern pattern;
    struct cpl_machine machine;
    struct cpl_routes routes;
    struct cpl_error why;
    for (int i = 0; i < n_ranks; i++)
        for (int m = choose(i, n_ranks, dst), k = 0; k < m; k++)
            entries[n++] = (struct cpl_pattern_entry){i, dst[k], given.bytes, -1};
    free(dst);
    int32_t n_waves = slices[0].plan.n_waves;
    if (cpl_pattern_build(n_ranks, entries, n, &pattern, &why) ||
        cpl_machine_init(n_ranks, rank_model.ranks_per_node, &machine, &why) ||
        cpl_routes_init(&pattern, n_waves, &routes, &why))
        return bench_fail(error, "pricing the plan: %s", why.text);
    machine.costs = rank_model.costs;
    machine.lanes = true;
    for (int32_t i = 0; i < n_ranks && !failed; i++)
        for (int64_t m = pattern.first[i]; m < pattern.first[i + 1] && !failed; m++)
            failed = follow(i, (int32_t)(m - pattern.first[i]), pattern.dst[m], n_waves,
                            cpl_routes_of(&routes, m), error);
    const struct cpl_strategy_input input = {&pattern, &machine, 1, 0};
    if (!failed && cpl_strategy_time(&input, &routes, us, &why))
        failed = bench_fail(error, "pricing the plan: %s", why.text);
    free(entries);
    cpl_routes_free(&routes);
    cpl_machine_free(&machine);
    cpl_pattern_free(&pattern);
    return failed;
}

static int write_pattern(int n_ranks, struct bench_error *error)
{
    int *dst = bench_need(27 + (size_t)given.n_messages, sizeof *dst);
    FILE *out = fopen(given.file, "w");
    if (!out)
        return bench_fail(error, "--write: %s can't be written", given.file);
    fprintf(out, "%d\n", n_ranks);
    for (int i = 0; i < n_ranks; i++)
        for (int n = choose(i, n_ranks, dst), k = 0; k < n; k++)
            fprintf(out, "%d %d %lld\n", i, dst[k], (long long)(given.bytes + 7) / 8);
    free(dst);
    return fclose(out) ? bench_fail(error, "--write: %s can't be written", given.file) : 0;
}

static void prepare(const struct bench *bench)
{
    MPI_Barrier(MPI_COMM_WORLD);
    if (bench->rank == 0) {
        int64_t *of_ranks = bench_need(2 * (size_t)bench->n_ranks, sizeof *of_ranks);
        cpl_context.size = bench->n_ranks;
        cpl_context.settings.lanes = true;
        most_held = of_ranks + bench->n_ranks;
        slices = bench_need((size_t)bench->n_ranks, sizeof *slices);
        held = of_ranks; /* memory counts from now on */
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static int run(const struct bench *bench, struct bench_error *error)
{
    int *dst = bench_need(27 + (size_t)given.n_messages, sizeof *dst);
    struct cpl_pattern_entry *messages =
        bench_need(27 + (size_t)given.n_messages, sizeof *messages);
    int n = choose(bench->rank, bench->n_ranks, dst);
    struct cpl_agree_output output;
    if (given.file)
        return bench->rank == 0 ? write_pattern(bench->n_ranks, error) : 0;
    for (int k = 0; k < n; k++)
        messages[k] = (struct cpl_pattern_entry){bench->rank, dst[k], given.bytes, -1};
    struct cpl_plan_turn turn = {.search = CPL_SEARCH_SHORT};
    struct cpl_agree_input input = {.able = true,
                                    .n_messages = n,
                                    .messages = messages,
                                    .needed = true,
                                    .most_plans = 1,
                                    .turn = &turn};
    prepare(bench);
    double start = MPI_Wtime();
    int64_t sent = rank_model.sent[bench->rank];
    bool done = cpl_plan_distributed(MPI_COMM_WORLD, &input, &output);
    double seconds = MPI_Wtime() - start;
    int64_t of_rank[] = {rank_model.sent[bench->rank] - sent, most_held[bench->rank], n}, most[3],
            sum[3];
    MPI_Reduce(&seconds, &start, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Allreduce(of_rank, most, 3, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(of_rank, sum, 3, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    if (!done)
        return bench_fail(error, "there is no plan");
    if (read_slice(&output, &slices[bench->rank], error))
        return 1;
    MPI_Barrier(MPI_COMM_WORLD);
    double events_us = 0;
    if (bench->rank == 0 && price_slices(bench->n_ranks, &events_us, error))
        return 1;
    if (bench->rank == 0) {
        struct report report = report_begin(stdout, bench->arguments.is_json);
        report_text(&report, "family", families[given.family]);
        report_integer(&report, "ranks", bench->n_ranks, "");
        report_integer(&report, "messages", sum[2], "");
        report_text(&report, "strategy", output.summary[0].strategy);
        report_real(&report, "planning", start * 1e3, 3, "ms");
        report_integer(&report, "sent most", most[0], "bytes");
        report_integer(&report, "held most", most[1], "bytes");
        report_real(&report, "direct modelled", output.summary[0].direct_us, 2, "us");
        report_real(&report, "plan modelled", output.summary[0].planned.modelled_us, 2, "us");
        report_real(&report, "plan by events", events_us, 2, "us");
        report_end(&report);
    }
    MPI_Barrier(MPI_COMM_WORLD); /* rank 0 has read the slices */
    cpl_agree_output_free(&output);
    free(slices[bench->rank].payload);
    free(slices[bench->rank].segment);
    free(dst);
    free(messages);
    return 0;
}

const struct bench_program bench_program = {"plan_model", usage,          "ask for fewer ranks",
                                            table,        .check = check, .run = run};
