/*
 * bfs: breadth-first searches on the graph of a matrix, level by level, with point-to-point
 * messages.
 *
 *     bfs [--roots N] [--warmup N] [--partition block|metis|FILE] [--seed S] [--json]
 *         MATRIX.mtx[.gz]
 *
 * Every rank owns rows, the vertices; vertex i has an edge from each column of its row. A level
 * sends to every rank that refers to vertices of this one which of them were reached last
 * (MPI_Irecv, MPI_Isend, MPI_Waitall: the same ranks each time, other sizes), looks from every
 * vertex that was not reached yet for one that was, and adds up how many there are (MPI_Allreduce).
 * Roots are drawn from the seed among the vertices with edges. The checksum of all levels depends
 * on the matrix and the seed only. Exit status: 0, 1 if the input cannot be used, 2 for bad
 * arguments.
 */
#include "report.h"
#include "spmv.h"
#include "together.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TAG = 5, MOST_ROOTS = 100000, MOST_TRIES = 1000 };

static const char usage[] =
    "usage: bfs [options] MATRIX.mtx[.gz]\n"
    "  searches breadth-first from several vertices and times the levels\n"
    "  --roots N                         timed searches (default 16)\n"
    "  --warmup N                        searches before those (default 4)\n"
    "  --partition block|metis|FILE      as spmv (default block)\n"
    "  --seed S                          of the roots (default 1)\n"
    "  --json                            print one JSON object on one line\n"
    "  --help                            print this\n";

static int n_roots = 16, n_warmup = 4;
static struct spmv_options given = {.form = SPMV_ROW, .partition = "block", .seed = 1};

static const struct bench_option table[] = {
    {"roots", .count = &n_roots, .least = 1, .most = MOST_ROOTS},
    {"warmup", .count = &n_warmup, .most = MOST_ROOTS},
    {"seed", .number = &given.seed, .most = INT64_MAX},
    {"partition", .text = &given.partition},
    {NULL},
};

static int check(const struct bench *bench, struct bench_error *error)
{
    return spmv_take_matrix(bench, &given, error);
}

/* Vertices of a rank: own ones, then, where others' matter, those of the halo. */
struct search {
    const struct spmv_share *share;
    int rank;
    int *level;             /* of own vertices; -1: not reached */
    unsigned char *reached; /* in the last level; own and halo */
    int *sent, *received;   /* places in the lists of border and halo, where counts are at most */
    MPI_Request *requests;
    MPI_Status *statuses;
    int n_levels; /* of all timed searches */
    double *seconds;
    int room;
};

static struct search search_create(const struct spmv_share *share, int rank)
{
    const struct spmv_side *in = &share->halo_side, *out = &share->border_side;
    size_t n_messages = (size_t)in->n_ranks + (size_t)out->n_ranks;

    return (struct search){.share = share,
                           .rank = rank,
                           .level = bench_need((size_t)share->n_own, sizeof(int)),
                           .reached = bench_need((size_t)share->n_own + (size_t)in->n_items, 1),
                           .sent = bench_need((size_t)out->n_items, sizeof(int)),
                           .received = bench_need((size_t)in->n_items, sizeof(int)),
                           .requests = bench_need(n_messages, sizeof(MPI_Request)),
                           .statuses = bench_need(n_messages, sizeof(MPI_Status))};
}

static void search_free(struct search *s)
{
    free(s->level);
    free(s->reached);
    free(s->sent);
    free(s->received);
    free(s->requests);
    free(s->statuses);
    free(s->seconds);
}

/* Tells the other ranks which of the vertices they refer to were reached last, and hears theirs.
 * Messages may be empty. */
static void exchange(struct search *s)
{
    const struct spmv_side *in = &s->share->halo_side, *out = &s->share->border_side;
    int n = 0;

    for (int k = 0; k < in->n_ranks; k++)
        MPI_Irecv(s->received + in->displ[k], in->count[k], MPI_INT, in->rank[k], TAG,
                  MPI_COMM_WORLD, &s->requests[n++]);
    for (int k = 0; k < out->n_ranks; k++) {
        int *places = s->sent + out->displ[k], n_places = 0;
        for (int i = 0; i < out->count[k]; i++)
            if (s->reached[s->share->border[out->displ[k] + i]])
                places[n_places++] = i;
        MPI_Isend(places, n_places, MPI_INT, out->rank[k], TAG, MPI_COMM_WORLD, &s->requests[n++]);
    }
    MPI_Waitall(n, s->requests, s->statuses);
    memset(s->reached + s->share->n_own, 0, (size_t)in->n_items);
    for (int k = 0; k < in->n_ranks; k++) {
        int n_places;
        MPI_Get_count(&s->statuses[k], MPI_INT, &n_places);
        for (int i = 0; i < n_places; i++)
            s->reached[s->share->n_own + in->displ[k] + s->received[in->displ[k] + i]] = 1;
    }
}

/* Own vertices with an edge from one that was reached last become the next level. */
static int64_t look(struct search *s, int level)
{
    const struct spmv_share *share = s->share;
    int64_t n_found = 0;

    for (int i = 0; i < share->n_own; i++) {
        int k = share->start[i];
        if (s->level[i] >= 0)
            continue;
        while (k < share->start[i + 1] && !s->reached[share->entry[k]])
            k++;
        if (k == share->start[i + 1])
            continue;
        s->level[i] = level;
        n_found++;
    }
    for (int i = 0; i < share->n_own; i++)
        s->reached[i] = s->level[i] == level;
    return n_found;
}

static void note_seconds(struct search *s, double seconds)
{
    if (s->n_levels == s->room) {
        s->room = 2 * s->room + 64;
        s->seconds = bench_resize(s->seconds, (size_t)s->room, sizeof *s->seconds);
        if (!s->seconds)
            bench_abort("no memory for the times of %d levels; use fewer roots", s->room);
    }
    s->seconds[s->n_levels++] = seconds;
}

static void search_from(struct search *s, int root, int is_timed)
{
    int64_t n_found = 1;

    for (int i = 0; i < s->share->n_own; i++) {
        s->reached[i] = s->share->own[i] == root;
        s->level[i] = s->reached[i] ? 0 : -1;
    }
    for (int level = 1; n_found > 0; level++) {
        double begin = MPI_Wtime();
        exchange(s);
        int64_t mine = look(s, level);
        MPI_Allreduce(&mine, &n_found, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
        if (is_timed)
            note_seconds(s, MPI_Wtime() - begin);
    }
}

/* A vertex with an edge to another one, if there are any to be found. The same on all ranks. */
static int draw_root(const struct spmv_share *share, struct bench_random *random)
{
    int root = 0;

    for (int k = 0; k < MOST_TRIES; k++) {
        int n_edges = 0, all = 0;
        root = (int)bench_random_below(random, (uint64_t)share->n_rows);
        for (int i = 0; i < share->n_own; i++)
            if (share->own[i] == root)
                for (int e = share->start[i]; e < share->start[i + 1]; e++)
                    n_edges += share->entry[e] != i;
        MPI_Allreduce(&n_edges, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        if (all > 0)
            break;
    }
    return root;
}

/* What the levels of own vertices add up to, in any order. */
static uint64_t sum_levels(const struct search *s, int root)
{
    uint64_t sum = 0;

    for (int i = 0; i < s->share->n_own; i++)
        sum += bench_hash((uint64_t)root, (uint64_t)s->share->own[i], (uint64_t)(s->level[i] + 1));
    return sum;
}

static void print_results(const struct bench *bench, struct search *s, int most, uint64_t sum)
{
    struct report report = report_begin(stdout, bench->arguments.is_json);
    size_t n = (size_t)s->n_levels;
    double total = 0;

    for (size_t i = 0; i < n; i++)
        total += s->seconds[i];
    bench_sort(s->seconds, n);
    spmv_report_matrix(&report, &given, s->share);
    report_integer(&report, "ranks", bench->n_ranks, "");
    report_integer(&report, "sends max", most, "");
    report_integer(&report, "searches", n_roots, "");
    report_integer(&report, "levels", s->n_levels, "");
    report_real(&report, "time", 1e6 * bench_midmean(s->seconds, n), 3, "us");
    report_real(&report, "search average", 1e6 * total / n_roots, 3, "us");
    report_checksum(&report, sum);
    report_end(&report);
}

static int run(const struct bench *bench, struct bench_error *error)
{
    struct bench_random random = {.state = (uint64_t)given.seed};
    struct spmv_share share;
    uint64_t sum = 0;
    int most = 0;

    if (spmv_setup(&given, &share, error) != 0)
        return -1;
    struct search s = search_create(&share, bench->rank);
    for (int k = 0; k < n_warmup + n_roots; k++) {
        int root = draw_root(&share, &random);
        search_from(&s, root, k >= n_warmup);
        sum += sum_levels(&s, root);
    }
    MPI_Reduce(&share.border_side.n_ranks, &most, 1, MPI_INT, MPI_MAX, 0, MPI_COMM_WORLD);
    sum = bench_sum(sum, MPI_COMM_WORLD);
    if (bench->rank == 0)
        print_results(bench, &s, most, sum);
    search_free(&s);
    spmv_share_free(&share);
    return 0;
}

const struct bench_program bench_program = {
    "bfs", usage, spmv_remedy, table, .takes_names = 1, .check = check, .run = run};
