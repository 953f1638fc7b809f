/*
 * Random neighborhood collectives over random graphs, every byte checked.
 *
 *   neighbors [--graph KIND|mix] [--op OP|all] [--types basic|derived|all] [--calls N] [--seed S]
 *             [--max-count C] [--large] [--graphs N] [--alternate]
 *
 * N graphs live at once, and a duplicate of the first; `calls` calls for each are interleaved in
 * random order, with --alternate one after the other. A call repeats the counts of the graph's call
 * before half of the time, sometimes with the very same buffers and types. Plain MPICH's alltoallw
 * is wrong where a rank's in- and out-degree differ: such graphs get other calls.
 */
#include "neighbors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options {
    int kind; /* N_KINDS: all in turn */
    int op;   /* N_OPS: all at random */
    enum types types;
    int n_calls, n_graphs, max_count;
    bool large, alternate;
    uint64_t seed;
};

/* A graph communicator in use. */
struct user {
    struct graph graph;
    struct exchange ex;
    struct step step; /* of its last call */
    int n_calls;
};

static struct options read_options(int argc, char **argv)
{
    static const char *const types_names[] = {"basic", "derived", "all", NULL};
    struct options opt = {
        .kind =
            test_find_name(test_option_text(argc, argv, "--graph", "random"), kind_names, "mix"),
        .op = test_find_name(test_option_text(argc, argv, "--op", "all"), op_names, "all"),
        .types = (enum types)test_find_name(test_option_text(argc, argv, "--types", "all"),
                                            types_names, "all"),
        .n_calls = (int)test_option(argc, argv, "--calls", 10),
        .n_graphs = (int)test_option(argc, argv, "--graphs", 2),
        .max_count = (int)test_option(argc, argv, "--max-count", 20),
        .large = test_flag(argc, argv, "--large"),
        .alternate = test_flag(argc, argv, "--alternate"),
        .seed = test_key((uint64_t)test_option(argc, argv, "--seed", 1), 0),
    };
    return opt;
}

/* Graphs of random edges have equal degrees in every second place, or when alltoallw needs it. */
static void make_users(const struct options *opt, struct user users[])
{
    for (int i = 0; i < opt->n_graphs; i++) {
        int kind = opt->kind < N_KINDS ? opt->kind : i % N_KINDS;
        bool equal = i % 2 == 1 || opt->op == OP_ALLTOALLW;
        users[i] = (struct user){
            .graph = graph_make((enum kind)kind, i, equal, test_key(opt->seed, i)),
        };
    }
    users[opt->n_graphs] = (struct user){.graph = graph_dup(&users[0].graph)};
}

static enum op pick_op(const struct options *opt, const struct graph *graph, struct test_rng *rng)
{
    enum op op = (enum op)(opt->op < N_OPS ? opt->op : test_below(rng, N_OPS));
    if (op == OP_ALLTOALLW && !graph->equal)
        op = OP_ALLTOALLV;
    return op;
}

static void next_step(const struct options *opt, struct user *user, uint64_t key)
{
    struct test_rng rng = {key};

    user->step.repeat = user->n_calls > 0 && test_chance(&rng, 2);
    user->step.call = test_key(key, 1);
    if (user->step.repeat)
        return;
    user->step.op = pick_op(opt, &user->graph, &rng);
    user->step.types = opt->types;
    user->step.max_count = opt->max_count;
    user->step.large = opt->large && test_chance(&rng, 2);
    user->step.same = user->step.op != OP_ALLTOALLW && test_chance(&rng, 4);
    user->step.layout = test_key(key, 2);
}

/* One call on a graph; buffers and types are kept for the next with some probability, which every
 * rank decides for itself. */
static uint64_t use(const struct options *opt, struct user *user, uint64_t key)
{
    struct test_rng own = {test_key(key, 3 + test_rank())};
    uint64_t hash = 0;

    next_step(opt, user, key);
    user->n_calls++;
    if (user->graph.comm == MPI_COMM_NULL)
        return 0;
    if (!user->step.repeat)
        exchange_free(&user->ex);
    if (!user->ex.made)
        exchange_make(&user->ex, &user->graph, &user->step);
    hash = exchange_run(&user->ex, &user->graph, &user->step);
    if (test_chance(&own, 2))
        exchange_free(&user->ex);
    return hash;
}

static void print_results(int n, const uint64_t mine[], const int ids[], const enum op ops[],
                          const struct user users[])
{
    uint64_t *hashes = test_hash_ranks(n, mine);

    for (int i = 0; i < n && test_rank() == 0; i++) {
        printf("call %d graph %d %s %s %016llx\n", i, ids[i], kind_names[users[ids[i]].graph.kind],
               op_names[ops[i]], (unsigned long long)hashes[i]);
    }
    free(hashes);
}

static void run(const struct options *opt, struct user users[])
{
    int n_users = opt->n_graphs + 1;
    int n = opt->n_calls * n_users;
    struct test_rng rng = {test_key(opt->seed, 1000)};
    uint64_t *hashes = test_alloc((size_t)n * sizeof *hashes);
    int *ids = test_alloc((size_t)n * sizeof *ids);
    enum op *ops = test_alloc((size_t)n * sizeof *ops);

    for (int i = 0; i < n; i++)
        ids[i] = i % n_users;
    if (!opt->alternate)
        test_shuffle(&rng, n, ids);
    for (int i = 0; i < n; i++) {
        hashes[i] = use(opt, &users[ids[i]], test_key(opt->seed, 2000 + i));
        ops[i] = users[ids[i]].step.op;
    }
    print_results(n, hashes, ids, ops, users);
    free(hashes);
    free(ids);
    free(ops);
}

int main(int argc, char **argv)
{
    static const char *const known[] = {"--graph",     "--op",     "--types",     "--calls",
                                        "--seed",      "--graphs", "--max-count", "--large",
                                        "--alternate", NULL};
    struct options opt;
    struct user *users;

    test_start(&argc, &argv, known);
    opt = read_options(argc, argv);
    users = test_alloc((size_t)(opt.n_graphs + 1) * sizeof *users);
    make_users(&opt, users);
    run(&opt, users);
    for (int i = 0; i <= opt.n_graphs; i++) {
        exchange_free(&users[i].ex);
        graph_free(&users[i].graph);
    }
    free(users);
    return test_finish();
}
