/*
 * Repeated point-to-point exchanges over random graphs, in the shapes that programs use, with
 * iterations in the midst that leave the pattern; everything received is checked.
 *
 *   exchange [--shape NAME] [--seed S] [--iterations N] [--comm world|dup|split]
 *            [--collective allreduce|barrier|mixed|sums] [--nodes N]
 *            [--deviate NAME[,NAME...]|mix] [--at K] [--times N]
 *
 * After every iteration there is a collective on each communicator. The deviations (exchange.h) are
 * in iterations K to K+N-1, all at once; `mix`: from K on some iterations have some. `split` takes
 * two communicators, each of half of the ranks in reverse order. `sums` are reductions of all
 * kinds. With --nodes MPICH takes the ranks to be on N nodes, round robin, and reduces by other
 * algorithms.
 */
#define _XOPEN_SOURCE 700 /* setenv */
#include "exchange.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PATTERNS   4
#define BUFFER_BYTES   (8 << 20) /* for MPI_Bsend */
#define NEEDS_OWN_COMM (1u << DEV_COMMFREE)

#define MODES (1u << MODE_SYNCHRONOUS | 1u << MODE_BUFFERED | 1u << MODE_READY)

static const struct shape shapes[] = {
    {"waits", HOW_REQUESTS, complete_waits, 1, .n_patterns = 1},
    {"waitall", HOW_REQUESTS, complete_waitall, 0, .n_patterns = 1},
    {"sendsfirst", HOW_REQUESTS, complete_sends_first, 0, .n_patterns = 1},
    {"waitany", HOW_REQUESTS, complete_waitany, 0, .n_patterns = 1},
    {"waitsome", HOW_REQUESTS, complete_waitsome, 0, .n_patterns = 1},
    {"test", HOW_REQUESTS, complete_test, 0, .n_patterns = 1},
    {"testall", HOW_REQUESTS, complete_testall, 0, .n_patterns = 1},
    {"testany", HOW_REQUESTS, complete_testany, 0, .n_patterns = 1},
    {"testsome", HOW_REQUESTS, complete_testsome, 0, .n_patterns = 1},
    {"mixed", HOW_REQUESTS, complete_mixed, 2, .n_patterns = 1},
    {"persistent", HOW_REQUESTS, complete_waitall, 0, STARTALL, .n_patterns = 1},
    {"persistent-mixed", HOW_REQUESTS, complete_waits, 0, START_EACH, ROLES_ONE, 1, .modes = MODES},
    {"sendrecv", HOW_SENDRECV, complete_waitall, 0, .n_patterns = 1},
    {"replace", HOW_REPLACE, complete_waitall, 0, .n_patterns = 1},
    {"blocking", HOW_BLOCKING, complete_waits, 1, .n_patterns = 1},
    {"interleaved", HOW_REQUESTS, complete_mixed, 0, .n_patterns = 4},
    {"interleaved-waits", HOW_REQUESTS, complete_waits, 1, .n_patterns = 4},
    {"one-sided", HOW_REQUESTS, complete_waitall, 0, .roles = ROLES_ONE, .n_patterns = 2},
    {"skip", HOW_REQUESTS, complete_waits, 1, .roles = ROLES_SOME, .n_patterns = 2},
    {"sizes", HOW_REQUESTS, complete_waitall, 0, .n_patterns = 1, .sizes = true},
    {"sizes-waits", HOW_REQUESTS, complete_waits, 1, .n_patterns = 2, .sizes = true},
    {"types", HOW_REQUESTS, complete_waitall, 0, .n_patterns = 1, .types = true},
    {"types-sizes", HOW_REQUESTS, complete_mixed, 2, .n_patterns = 1, .sizes = true, .types = true},
    {"ssend", HOW_REQUESTS, complete_waitall, 2, .n_patterns = 1, .modes = 1u << MODE_SYNCHRONOUS},
    {"bsend", HOW_REQUESTS, complete_waitany, 2, .n_patterns = 1, .modes = 1u << MODE_BUFFERED},
    {"rsend", HOW_REQUESTS, complete_waits, 2, .n_patterns = 1, .modes = 1u << MODE_READY},
    {"reduced", HOW_REQUESTS, complete_waitall, 0, .n_patterns = 1, .reduces = BEFORE_COMPLETION},
    {"reduced-mixed", HOW_REQUESTS, complete_mixed, 2, .n_patterns = 2, .sizes = true,
     .reduces = BEFORE_COMPLETION, .modes = 1u << MODE_SYNCHRONOUS},
    {"reduced-around", HOW_REQUESTS, complete_waits, 0, .n_patterns = 1,
     .reduces = AROUND_COMPLETION},
    {"reduced-started", HOW_REQUESTS, complete_mixed, 0, .n_patterns = 1, .reduces = STARTED},
    {"reduced-exact", HOW_REQUESTS, complete_waits, 0, .n_patterns = 1, .reduces = STARTED,
     .exact = true},
    {"modes", HOW_REQUESTS, complete_testsome, 2, .n_patterns = 2, .modes = MODES},
};

enum collective { ALLREDUCE, BARRIER, MIXED, SUMS };

struct options {
    const struct shape *shape;
    const char *comm;
    enum collective collective;
    int n_iterations, at, times;
    unsigned deviations;
    bool mix;
    uint64_t seed;
};

/* The communicators and what is exchanged on them. */
struct program {
    struct options opt;
    int n; /* exchanges */
    MPI_Comm comms[2];
    int n_comms;
    struct exchange exchanges[MAX_PATTERNS];
    int n_made; /* patterns were made so often */
};

static void usage(const char *what, const char *name)
{
    fprintf(stderr, "unknown %s %s\n", what, name);
    MPI_Abort(MPI_COMM_WORLD, 2);
}

static const struct shape *find_shape(const char *name)
{
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        if (strcmp(shapes[i].name, name) == 0)
            return &shapes[i];
    }
    usage("shape", name);
    return NULL;
}

static int find_name(const char *name, const char *const names[])
{
    for (int i = 0; names[i] != NULL; i++) {
        if (strcmp(names[i], name) == 0)
            return i;
    }
    usage("name", name);
    return -1;
}

static unsigned read_deviations(const char *text)
{
    unsigned set = 0;
    char *copy = test_alloc(strlen(text) + 1);

    strcpy(copy, text);
    for (char *name = strtok(copy, ","); name != NULL; name = strtok(NULL, ","))
        set |= 1u << find_name(name, deviation_names);
    free(copy);
    return set;
}

static struct options read_options(int argc, char **argv)
{
    static const char *const collectives[] = {"allreduce", "barrier", "mixed", "sums", NULL};
    const char *deviate = test_option_text(argc, argv, "--deviate", "");
    const char *collective = test_option_text(argc, argv, "--collective", "allreduce");
    struct options opt = {
        .shape = find_shape(test_option_text(argc, argv, "--shape", "waitall")),
        .collective = (enum collective)find_name(collective, collectives),
        .n_iterations = (int)test_option(argc, argv, "--iterations", 24),
        .times = (int)test_option(argc, argv, "--times", 1),
        .mix = strcmp(deviate, "mix") == 0,
        .seed = test_key((uint64_t)test_option(argc, argv, "--seed", 1), 0),
    };
    if (!opt.mix)
        opt.deviations = read_deviations(deviate);
    opt.at = (int)test_option(argc, argv, "--at", opt.n_iterations / 2 + 2);
    opt.comm =
        test_option_text(argc, argv, "--comm", opt.deviations & NEEDS_OWN_COMM ? "dup" : "world");
    return opt;
}

/* --- communicators and exchanges ----------------------------------------------------------- */

static void make_comms(struct program *prog)
{
    int rank = test_rank();

    if (strcmp(prog->opt.comm, "split") == 0)
        MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &prog->comms[0]);
    else if (strcmp(prog->opt.comm, "dup") == 0)
        MPI_Comm_dup(MPI_COMM_WORLD, &prog->comms[0]);
    else
        prog->comms[0] = MPI_COMM_WORLD;
    if (prog->n_comms == 2)
        MPI_Comm_dup(prog->comms[0], &prog->comms[1]);
}

static void free_comms(struct program *prog)
{
    for (int i = 0; i < prog->n_comms; i++) {
        if (prog->comms[i] != MPI_COMM_WORLD)
            MPI_Comm_free(&prog->comms[i]);
    }
}

static void start_exchanges(struct program *prog)
{
    for (int i = 0; i < prog->n; i++) {
        MPI_Comm comm = i == 3 ? prog->comms[1] : prog->comms[0];
        int group = strcmp(prog->opt.comm, "split") == 0 ? test_rank() % 2 : 0;
        uint64_t key = test_key(test_key(prog->opt.seed, 10 * prog->n_made + i), group);
        exchange_start(&prog->exchanges[i], prog->opt.shape, comm, i, key);
    }
}

static void end_exchanges(struct program *prog)
{
    for (int i = 0; i < prog->n; i++)
        exchange_end(&prog->exchanges[i]);
}

/* --- iterations ---------------------------------------------------------------------------- */

static unsigned deviations_at(const struct options *opt, int iteration)
{
    struct test_rng rng = {test_key(opt->seed, 5000 + iteration)};
    unsigned set = 0;

    if (!opt->mix)
        return iteration >= opt->at && iteration < opt->at + opt->times ? opt->deviations : 0;
    while (iteration >= opt->at && test_chance(&rng, 2))
        set |= 1u << test_below(&rng, N_DEVIATIONS);
    return set;
}

static void remake(struct program *prog, unsigned deviations)
{
    bool comms = (deviations & NEEDS_OWN_COMM) && strcmp(prog->opt.comm, "world") != 0;
    bool patterns = deviations & 1u << DEV_DIE;

    if (!comms && !patterns)
        return;
    end_exchanges(prog);
    prog->n_made += patterns;
    if (comms) {
        free_comms(prog);
        make_comms(prog);
    }
    start_exchanges(prog);
}

/* Collectives in which nobody goes on before all have come. */
static uint64_t synchronize(const struct options *opt, MPI_Comm comm, int iteration, uint64_t hash)
{
    if (opt->collective == SUMS)
        return exchange_sums(comm, iteration, hash);
    double load = 1.0 / (double)(1 + hash % 1000003), sum = 0;
    int kind = opt->collective == MIXED ? iteration % 4 : (int)opt->collective;
    int n_ranks;
    double *all;

    if (kind == 1) {
        MPI_Barrier(comm);
    } else if (kind < 3) {
        MPI_Allreduce(&load, &sum, 1, MPI_DOUBLE, MPI_SUM, comm);
    } else {
        MPI_Comm_size(comm, &n_ranks);
        all = test_alloc((size_t)n_ranks * sizeof *all);
        MPI_Allgather(&load, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, comm);
        for (int i = 0; i < n_ranks; i++)
            sum += all[i];
        free(all);
    }
    return test_hash(hash, &sum, sizeof sum);
}

static uint64_t iterate(struct program *prog, int iteration)
{
    const struct options *opt = &prog->opt;
    unsigned deviations = deviations_at(opt, iteration);
    uint64_t hash = 0;

    remake(prog, deviations);
    for (int i = 0; i < prog->n; i++) {
        uint64_t key = test_key(test_key(opt->seed, 100000 + iteration), i);
        uint64_t one =
            exchange_round(&prog->exchanges[i], i == iteration % prog->n ? deviations : 0, key);
        hash = test_key(hash, (int64_t)one);
    }
    for (int i = 0; i < prog->n_comms; i++)
        hash = synchronize(opt, prog->comms[i], iteration, hash);
    return hash;
}

static void print_results(const struct options *opt, const uint64_t mine[])
{
    uint64_t *hashes = test_hash_ranks(opt->n_iterations, mine);

    for (int i = 0; i < opt->n_iterations && test_rank() == 0; i++) {
        unsigned set = deviations_at(opt, i);
        printf("iteration %d %016llx", i, (unsigned long long)hashes[i]);
        for (int j = 0; j < N_DEVIATIONS; j++) {
            if (set & 1u << j)
                printf(" %s", deviation_names[j]);
        }
        printf("\n");
    }
    free(hashes);
}

int main(int argc, char **argv)
{
    static const char *const known[] = {"--shape",   "--seed", "--iterations", "--comm",
                                        "--deviate", "--at",   "--times",      "--collective",
                                        "--nodes",   NULL};
    const char *nodes = test_option_text(argc, argv, "--nodes", NULL);
    struct program prog = {.n_made = 0};
    void *buffer = test_alloc(BUFFER_BYTES);
    uint64_t *hashes;
    int n_buffer;

    if (nodes != NULL)
        setenv("MPIR_CVAR_NUM_CLIQUES", nodes, 1);
    test_start(&argc, &argv, known);
    prog.opt = read_options(argc, argv);
    prog.n = prog.opt.shape->n_patterns;
    prog.n_comms = prog.n == MAX_PATTERNS ? 2 : 1;
    hashes = test_alloc((size_t)prog.opt.n_iterations * sizeof *hashes);
    MPI_Buffer_attach(buffer, BUFFER_BYTES);
    make_comms(&prog);
    start_exchanges(&prog);
    for (int i = 0; i < prog.opt.n_iterations; i++)
        hashes[i] = iterate(&prog, i);
    end_exchanges(&prog);
    free_comms(&prog);
    print_results(&prog.opt, hashes);
    MPI_Buffer_detach(&buffer, &n_buffer);
    free(buffer);
    free(hashes);
    return test_finish();
}
