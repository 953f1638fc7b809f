/*
 * order: two exchanges with computation between them, over and over, whose messages leave in
 * different orders (Uçar and Aykanat, A message ordering problem in parallel programs, figure 2).
 *
 *     order [--form pt2pt|neighbor] [--orders LIST] [--pre LEAST:MOST:ALL|FILE]
 *           [--post LEAST:MOST:ALL|FILE] [--bytes N] [--work N] [--pause N] [--warmup N]
 * [--iterations N] [--runs N] [--seed N]
 *           [--json]
 *
 * An iteration is the pre-communication, the computation, the post-communication and a barrier.
 * Whom a rank sends to is drawn: --pre and --post say how many messages the ranks send at least, at
 * most and together, as the paper's table 1 does; or it is read from a file of a pattern
 * (planner/pattern.h). Orders of the first exchange's messages, of LIST,
 * separated by commas, take turns:
 *     best      first to the ranks that send most afterwards (the paper's optimum)
 *     worst     first to those that send least
 *     ranks     by rank
 *     random
 *     carpool   in the worst order, but by the names that a preloaded library catches; the others
 *               are MPI's own functions (alone.h)
 * With --pause a rank sleeps before each MPI_Send: it stands for what starting a message costs,
 * where there are more ranks than cores and a send costs next to nothing. Told are for each the
 * completion in units of time of the paper's model, where a send takes one, and the measured time
 * of an iteration without the barrier, of the slowest rank. Received values are computed with and
 * must come to the same in every order. Exit status: 0, 1 when something went wrong or came wrong,
 * 2 for bad arguments.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* nanosleep, strtok_r */
#endif
#include "planner/order.h"
#include "alone.h"
#include "main.h"
#include "planner/pattern.h"
#include "report.h"
#include "together.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char usage[] =
    "usage: order [options]\n"
    "  two exchanges with computation between, the first one's messages in different orders\n"
    "  --form pt2pt|neighbor   MPI_Send and MPI_Irecv, or MPI_Neighbor_alltoallv (default pt2pt)\n"
    "  --orders LIST           of best, worst, ranks, random, carpool (default "
    "best,worst,carpool)\n"
    "  --pre LEAST:MOST:ALL    messages of a rank and of all in the first exchange (default\n"
    "                          1, all others, half of all pairs)\n"
    "  --post LEAST:MOST:ALL   the same of the second one\n"
    "                          either may be the name of a file with a pattern of so many ranks\n"
    "  --bytes N               bytes of every message, a multiple of 8 (default 8)\n"
    "  --work N                passes of the computation (default 1)\n"
    "  --pause N               microseconds that a rank sleeps before each MPI_Send (default 0)\n"
    "  --warmup N              iterations before the first measured one (default 100)\n"
    "  --iterations N          of each order in a turn (default 100)\n"
    "  --runs N                turns (default 20)\n"
    "  --seed N                of the draw (default 1)\n"
    "  --json                  print one JSON object on one line\n"
    "  --help                  print this\n";

enum { BEST, WORST, RANKS, RANDOM, CARPOOL, N_ORDERS };

static const char *const order_names[] = {"best", "worst", "ranks", "random", "carpool", NULL};
static const char *const forms[] = {"pt2pt", "neighbor", NULL};

/* How many messages an exchange has. */
struct shape {
    int64_t least, most, all; /* -1: the default */
    const char *file;         /* a pattern that is taken instead; NULL: none */
};

struct options {
    int is_neighbor; /* the place among forms */
    int n_orders, order[N_ORDERS];
    struct shape shape[2];
    int64_t bytes, work, pause, n_warmup, n_iterations, n_runs, seed;
};

static struct options given = {.n_orders = 3,
                               .order = {BEST, WORST, CARPOOL},
                               .shape = {{.least = -1}, {.least = -1}},
                               .bytes = 8,
                               .work = 1,
                               .n_warmup = 100,
                               .n_iterations = 100,
                               .n_runs = 20,
                               .seed = 1};

/* ---- arguments ---- */

static int read_shape(const struct bench_option *option, char *value, struct bench_error *error)
{
    struct shape *shape = &given.shape[strcmp(option->name, "post") == 0];
    int64_t *numbers[] = {&shape->least, &shape->most, &shape->all};
    char text[64], *rest = NULL;
    if (!strchr(value, ':')) {
        shape->file = value;
        return 0;
    }
    snprintf(text, sizeof text, "%s", value);
    char *word = strtok_r(text, ":", &rest);
    for (int k = 0; k < 3; k++, word = strtok_r(NULL, ":", &rest))
        if (!word || bench_parse_integer(word, 0, 1 << 30, numbers[k]) != 0)
            return bench_fail(error, "--%s wants three numbers LEAST:MOST:ALL, not '%s'",
                              option->name, value);
    return 0;
}

static int read_orders(const struct bench_option *option, char *value, struct bench_error *error)
{
    char *rest = NULL;
    given.n_orders = 0;
    for (char *word = strtok_r(value, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        int k = bench_choose(option, word, error);
        if (k >= 0 && given.n_orders == N_ORDERS)
            return bench_fail(error, "--orders wants at most %d orders", N_ORDERS);
        if (k < 0)
            return -1;
        given.order[given.n_orders++] = k;
    }
    return given.n_orders > 0 ? 0 : bench_fail(error, "--orders wants a list of orders");
}

static const struct bench_option table[] = {
    {"form", .word = &given.is_neighbor, .words = forms},
    {"orders", .take = read_orders, .words = order_names},
    {"pre", .take = read_shape},
    {"post", .take = read_shape},
    {"bytes", .number = &given.bytes, .least = 8, .most = 1 << 20},
    {"work", .number = &given.work, .most = 1000000},
    {"pause", .number = &given.pause, .most = 999999},
    {"warmup", .number = &given.n_warmup, .most = 1000000},
    {"iterations", .number = &given.n_iterations, .least = 1, .most = 1000000},
    {"runs", .number = &given.n_runs, .least = 1, .most = 1000},
    {"seed", .number = &given.seed, .most = INT64_MAX},
    {NULL},
};

/* Whether exchanges of these shapes exist; fills in defaults. */
static int check(const struct bench *bench, struct bench_error *error)
{
    int64_t n_others = bench->n_ranks - 1;

    if (given.bytes % 8 != 0)
        return bench_fail(error, "--bytes wants a multiple of 8, not '%lld'",
                          (long long)given.bytes);
    for (int k = 0; k < 2; k++) {
        struct shape *s = &given.shape[k];
        if (s->file)
            continue;
        if (s->least < 0)
            *s = (struct shape){n_others > 0, n_others, (n_others + 1) * n_others / 2, NULL};
        int64_t fewest = s->least * n_others + s->most;
        int64_t most = s->most * n_others + s->least;
        if (s->least > s->most || s->most > n_others || s->all < fewest || s->all > most)
            return bench_fail(error,
                              "--%s: no exchange of %d ranks in which one sends %lld messages, one "
                              "%lld and all together %lld",
                              k ? "post" : "pre", bench->n_ranks, (long long)s->least,
                              (long long)s->most, (long long)s->all);
    }
    return 0;
}

/* ---- the exchanges, alike on all ranks ---- */

static int draw_rank(struct bench_random *random, int n)
{
    return (int)bench_random_below(random, (uint64_t)n);
}

/* Numbers of messages: one rank has the most, one the least, the others anything between. */
static void draw_sends(const struct shape *shape, int n_ranks, struct bench_random *random,
                       int *sends)
{
    int idlest = draw_rank(random, n_ranks);
    int busiest = n_ranks > 1 ? (idlest + 1 + draw_rank(random, n_ranks - 1)) % n_ranks : idlest;
    int64_t all = 0;
    for (int i = 0; i < n_ranks; i++)
        all += sends[i] = (int)(i == busiest ? shape->most : shape->least);
    while (all < shape->all) {
        int i = draw_rank(random, n_ranks);
        if (i != idlest && sends[i] < shape->most) {
            sends[i]++;
            all++;
        }
    }
}

static struct cpl_pattern draw_exchange(const struct shape *shape, int n_ranks,
                                        struct bench_random *random)
{
    int *sends = bench_need((size_t)n_ranks, sizeof *sends);
    struct cpl_pattern_entry *entries = bench_need((size_t)shape->all, sizeof *entries);
    struct cpl_pattern pattern;
    struct cpl_error error;
    int64_t n = 0;
    draw_sends(shape, n_ranks, random, sends);
    for (int i = 0; i < n_ranks; i++) {
        int unseen = n_ranks - 1; /* receivers to choose among */
        for (int j = 0; j < n_ranks; j++)
            if (j != i && draw_rank(random, unseen--) < sends[i]) {
                entries[n++] = (struct cpl_pattern_entry){i, j, 1, -1};
                sends[i]--;
            }
    }
    if (cpl_pattern_build(n_ranks, entries, n, &pattern, &error))
        bench_abort("%s", error.text);
    free(sends);
    free(entries);
    return pattern;
}

/* The pattern of a file, or one that is drawn. 0, or -1 with the error set. */
static int take_exchange(const struct shape *shape, int n_ranks, struct bench_random *random,
                         struct cpl_pattern *pattern, struct bench_error *error)
{
    struct cpl_error why;

    if (!shape->file) {
        *pattern = draw_exchange(shape, n_ranks, random);
        return 0;
    }
    if (cpl_pattern_read(shape->file, pattern, &why))
        return bench_fail(error, "%s", why.text);
    if (pattern->n_ranks == n_ranks)
        return 0;
    int n = pattern->n_ranks;
    cpl_pattern_free(pattern);
    return bench_fail(error, "%s: is a pattern of %d ranks, not of %d", shape->file, n, n_ranks);
}

static void reverse(int64_t *order, int64_t n)
{
    for (int64_t low = 0, high = n - 1; low < high; low++, high--) {
        int64_t kept = order[low];
        order[low] = order[high];
        order[high] = kept;
    }
}

static void shuffle(int64_t *order, int64_t n, struct bench_random *random)
{
    for (; n > 1; n--) {
        int64_t k = (int64_t)bench_random_below(random, (uint64_t)n), kept = order[n - 1];
        order[n - 1] = order[k];
        order[k] = kept;
    }
}

/* The messages of the first exchange in the order of a name. The caller frees it. */
static int64_t *make_order(int name, const struct cpl_pattern *pre, const struct cpl_pattern *post,
                           int64_t seed)
{
    int64_t *order = bench_need((size_t)pre->n_messages, sizeof *order);
    struct bench_random random = {(uint64_t)seed + 1};
    struct cpl_error error;
    for (int64_t m = 0; m < pre->n_messages; m++)
        order[m] = m;
    if (name != RANKS && name != RANDOM && cpl_order_between(pre, post, order, &error))
        bench_abort("%s", error.text);
    for (int i = 0; i < pre->n_ranks; i++) {
        int64_t *own = order + pre->first[i], n = cpl_pattern_sends(pre, i);
        if (name == WORST || name == CARPOOL)
            reverse(own, n);
        if (name == RANDOM)
            shuffle(own, n, &random);
    }
    return order;
}

/* ---- communication ---- */

/* By which names MPI is called. */
struct calls {
    int (*send)(const void *, int, MPI_Datatype, int, int, MPI_Comm);
    int (*irecv)(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
    int (*waitall)(int, MPI_Request *, MPI_Status *);
    int (*alltoallv)(const void *, const int *, const int *, MPI_Datatype, void *, const int *,
                     const int *, MPI_Datatype, MPI_Comm);
};

/* This rank's part of an exchange. */
struct lists {
    int n_out, n_in;
    int *to, *from;
    int *counts, *out_displs, *in_displs; /* of values */
    MPI_Request *requests;
    MPI_Comm graph;
};

/* A rank's buffers: a block of values for every rank. */
struct buffers {
    int rank, n_ranks, size; /* size: values of a block */
    struct timespec pause;
    double *send, *receive;
};

static struct lists make_lists(const struct cpl_pattern *pattern, const int64_t *order,
                               const struct buffers *b)
{
    size_t n = (size_t)b->n_ranks;
    struct lists l = {.to = bench_need(n, sizeof(int)),
                      .from = bench_need(n, sizeof(int)),
                      .counts = bench_need(n, sizeof(int)),
                      .out_displs = bench_need(n, sizeof(int)),
                      .in_displs = bench_need(n, sizeof(int)),
                      .requests = bench_need(n, sizeof(MPI_Request)),
                      .graph = MPI_COMM_NULL};
    for (int64_t k = pattern->first[b->rank]; k < pattern->first[b->rank + 1]; k++)
        l.to[l.n_out++] = pattern->dst[order ? order[k] : k];
    for (int i = 0; i < b->n_ranks; i++)
        for (int64_t m = pattern->first[i]; m < pattern->first[i + 1]; m++)
            if (pattern->dst[m] == b->rank)
                l.from[l.n_in++] = i;
    for (int k = 0; k < b->n_ranks; k++)
        l.counts[k] = b->size;
    for (int k = 0; k < l.n_out; k++)
        l.out_displs[k] = l.to[k] * b->size;
    for (int k = 0; k < l.n_in; k++)
        l.in_displs[k] = l.from[k] * b->size;
    return l;
}

static void make_graph(struct lists *l)
{
    int *weights = bench_need((size_t)(l->n_in > l->n_out ? l->n_in : l->n_out), sizeof *weights);
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, l->n_in, l->from, weights, l->n_out, l->to,
                                   weights, MPI_INFO_NULL, 0, &l->graph);
    free(weights);
}

static void free_lists(struct lists *l)
{
    free(l->to);
    free(l->from);
    free(l->counts);
    free(l->out_displs);
    free(l->in_displs);
    free(l->requests);
    if (l->graph != MPI_COMM_NULL)
        MPI_Comm_free(&l->graph);
}

static void communicate(const struct calls *calls, struct lists *l, const struct buffers *b,
                        int tag)
{
    if (l->graph != MPI_COMM_NULL) {
        calls->alltoallv(b->send, l->counts, l->out_displs, MPI_DOUBLE, b->receive, l->counts,
                         l->in_displs, MPI_DOUBLE, l->graph);
        return;
    }
    for (int k = 0; k < l->n_in; k++)
        calls->irecv(b->receive + l->in_displs[k], b->size, MPI_DOUBLE, l->from[k], tag,
                     MPI_COMM_WORLD, &l->requests[k]);
    for (int k = 0; k < l->n_out; k++) {
        if (b->pause.tv_nsec > 0)
            nanosleep(&b->pause, NULL);
        calls->send(b->send + l->out_displs[k], b->size, MPI_DOUBLE, l->to[k], tag, MPI_COMM_WORLD);
    }
    calls->waitall(l->n_in, l->requests, MPI_STATUSES_IGNORE);
}

static void compute(const struct buffers *b, int64_t n_passes)
{
    size_t n = (size_t)b->n_ranks * (size_t)b->size;
    for (int64_t pass = 0; pass < n_passes; pass++)
        for (size_t k = 0; k < n; k++)
            b->send[k] = (b->send[k] + b->receive[k]) / 2;
}

/* ---- orders in turns ---- */

/* One order. */
struct variant {
    int name;
    int64_t units;
    struct calls calls;
    struct lists pre, post;
    struct buffers buffers;
    double *us; /* of the slowest rank, per measured iteration */
    size_t n;
};

static const struct calls caught_calls = {MPI_Send, MPI_Irecv, MPI_Waitall, MPI_Neighbor_alltoallv};

static struct calls own_calls(void)
{
    return (struct calls){ALONE(Send), ALONE(Irecv), ALONE(Waitall), ALONE(Neighbor_alltoallv)};
}

static struct variant make_variant(int name, const struct options *options,
                                   const struct cpl_pattern *pre, const struct cpl_pattern *post,
                                   int rank)
{
    int n_ranks = pre->n_ranks, size = (int)(options->bytes / 8);
    size_t n_values = (size_t)n_ranks * (size_t)size;
    struct variant v = {
        .name = name,
        .calls = name == CARPOOL ? caught_calls : own_calls(),
        .buffers = {rank,
                    n_ranks,
                    size,
                    {0, (long)options->pause * 1000},
                    bench_need(n_values, sizeof(double)),
                    bench_need(n_values, sizeof(double))},
        .us = bench_need((size_t)(options->n_runs * options->n_iterations), sizeof(double))};
    int64_t *order = make_order(name, pre, post, options->seed);
    struct cpl_error error;
    if (cpl_order_completion(pre, order, post, 0, &v.units, &error))
        bench_abort("%s", error.text);
    for (size_t k = 0; k < n_values; k++)
        v.buffers.send[k] = (double)(bench_hash(1, (uint64_t)rank, k) >> 12);
    v.pre = make_lists(pre, order, &v.buffers);
    v.post = make_lists(post, NULL, &v.buffers);
    if (options->is_neighbor) {
        make_graph(&v.pre);
        make_graph(&v.post);
    }
    free(order);
    return v;
}

static void free_variant(struct variant *v)
{
    free_lists(&v->pre);
    free_lists(&v->post);
    free(v->buffers.send);
    free(v->buffers.receive);
    free(v->us);
}

/* Iterations of one order; us is NULL while warming up. */
static void iterate(struct variant *v, int64_t n, int64_t work, double *us)
{
    for (int64_t i = 0; i < n; i++) {
        bench_start_together(MPI_COMM_WORLD);
        double begin = MPI_Wtime();
        communicate(&v->calls, &v->pre, &v->buffers, 1);
        compute(&v->buffers, work);
        communicate(&v->calls, &v->post, &v->buffers, 2);
        if (us)
            us[i] = (MPI_Wtime() - begin) * 1e6;
    }
}

static uint64_t hash_values(const struct buffers *b)
{
    uint64_t hash = 0, word;
    for (size_t k = 0; k < (size_t)b->n_ranks * (size_t)b->size; k++) {
        memcpy(&word, &b->send[k], sizeof word);
        hash = bench_hash(hash, word, k);
    }
    return hash;
}

static void run_in_turns(const struct options *options, struct variant *variants)
{
    for (int k = 0; k < options->n_orders; k++)
        iterate(&variants[k], options->n_warmup, options->work, NULL);
    for (int64_t r = 0; r < options->n_runs; r++)
        for (int k = 0; k < options->n_orders; k++) {
            struct variant *v = &variants[k];
            iterate(v, options->n_iterations, options->work, v->us + v->n);
            v->n += (size_t)options->n_iterations;
        }
}

static void print_results(const struct bench *bench, const struct cpl_pattern *pre,
                          const struct cpl_pattern *post, struct variant *variants, int64_t n_wrong)
{
    struct report report = report_begin(stdout, bench->arguments.is_json);
    struct cpl_order_bounds bound = cpl_order_bound(pre, post, 0);
    report_integer(&report, "ranks", pre->n_ranks, "");
    report_text(&report, "form", forms[given.is_neighbor]);
    report_integer(&report, "bytes", given.bytes, "");
    report_integer(&report, "messages before", pre->n_messages, "");
    report_integer(&report, "messages after", post->n_messages, "");
    report_integer(&report, "no order below", bound.least, "sends");
    report_integer(&report, "no order above", bound.most, "sends");
    for (int k = 0; k < given.n_orders; k++) {
        struct variant *v = &variants[k];
        report.about = order_names[v->name];
        report_integer(&report, "units", v->units, "sends");
        report_real(&report, "median", bench_median(v->us, v->n), 2, "us");
        report_real(&report, "first quartile", bench_quantile(v->us, v->n, 0.25), 2, "us");
        report_real(&report, "least", v->us[0], 2, "us");
    }
    report.about = "";
    report_integer(&report, "wrong", n_wrong, "");
    report_end(&report);
}

static int run(const struct bench *bench, struct bench_error *error)
{
    struct bench_random random = {(uint64_t)given.seed};
    struct cpl_pattern pre, post;
    struct variant variants[N_ORDERS];
    uint64_t n_wrong = 0;

    if (take_exchange(&given.shape[0], bench->n_ranks, &random, &pre, error))
        return -1;
    if (take_exchange(&given.shape[1], bench->n_ranks, &random, &post, error)) {
        cpl_pattern_free(&pre);
        return -1;
    }
    for (int k = 0; k < given.n_orders; k++)
        variants[k] = make_variant(given.order[k], &given, &pre, &post, bench->rank);
    run_in_turns(&given, variants);
    for (int k = 0; k < given.n_orders; k++) {
        n_wrong += hash_values(&variants[k].buffers) != hash_values(&variants[0].buffers);
        bench_slowest(variants[k].us, variants[k].n, MPI_COMM_WORLD);
    }
    n_wrong = bench_sum(n_wrong, MPI_COMM_WORLD);
    if (bench->rank == 0)
        print_results(bench, &pre, &post, variants, (int64_t)n_wrong);
    for (int k = 0; k < given.n_orders; k++)
        free_variant(&variants[k]);
    cpl_pattern_free(&post);
    cpl_pattern_free(&pre);
    return n_wrong != 0;
}

const struct bench_program bench_program = {
    "order", usage, "ask for fewer --runs or --bytes", table, .check = check, .run = run};
