/*
 * Neighborhood collectives in all their forms, left pending across other calls, every byte checked.
 *
 *   pending [--graph KIND|mix] [--op OP|all] [--form FORM|all] [--types basic|derived|all]
 *           [--events N] [--seed S] [--max-count C] [--large] [--graphs N] [--slots N]
 * [--w-unequal]
 *
 * Each graph has some slots, each for one call. An event starts a call in a free slot, completes
 * the call of a slot in one of MPI's ways (which every rank chooses for itself, together with what
 * else it has pending), or makes another call: collectives on other communicators, messages, a
 * blocking neighborhood collective on the same graph. All ranks go through the same events, but
 * some messages and tests in between.
 */
#include "neighbors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct slot {
    struct graph *graph;
    struct exchange ex;
    struct step step;
    enum form form;
    bool busy; /* started and not yet completed by an event: alike on all ranks */
    MPI_Request request;
    int n_starts;  /* of its persistent request */
    uint64_t hash; /* of all that it received */
};

struct program {
    int kind, op, form;
    enum types types;
    int n_events, n_graphs, n_slots, max_count;
    bool large, w_unequal;
    uint64_t seed;
    struct graph *graphs;
    struct slot *slots; /* n_graphs * n_slots */
};

static bool is_persistent(enum form form)
{
    return form == FORM_PERSISTENT || form == FORM_PERSISTENT_C;
}

static bool is_blocking(enum form form)
{
    return form == FORM_BLOCKING || form == FORM_BLOCKING_C;
}

static struct program read_options(int argc, char **argv)
{
    static const char *const types_names[] = {"basic", "derived", "all", NULL};
    return (struct program){
        .kind =
            test_find_name(test_option_text(argc, argv, "--graph", "random"), kind_names, "mix"),
        .op = test_find_name(test_option_text(argc, argv, "--op", "all"), op_names, "all"),
        .form = test_find_name(test_option_text(argc, argv, "--form", "all"), form_names, "all"),
        .types = (enum types)test_find_name(test_option_text(argc, argv, "--types", "all"),
                                            types_names, "all"),
        .n_events = (int)test_option(argc, argv, "--events", 100),
        .n_graphs = (int)test_option(argc, argv, "--graphs", 2),
        .n_slots = (int)test_option(argc, argv, "--slots", 3),
        .max_count = (int)test_option(argc, argv, "--max-count", 20),
        .large = test_flag(argc, argv, "--large"),
        .w_unequal = test_flag(argc, argv, "--w-unequal"),
        .seed = test_key((uint64_t)test_option(argc, argv, "--seed", 1), 0),
    };
}

static void make_slots(struct program *p)
{
    p->graphs = test_alloc((size_t)p->n_graphs * sizeof *p->graphs);
    p->slots = test_alloc((size_t)(p->n_graphs * p->n_slots) * sizeof *p->slots);
    for (int i = 0; i < p->n_graphs; i++) {
        int kind = p->kind < N_KINDS ? p->kind : i % N_KINDS;
        bool equal = !p->w_unequal && (i % 2 == 1 || p->op == OP_ALLTOALLW);
        p->graphs[i] = graph_make((enum kind)kind, i, equal, test_key(p->seed, i));
    }
    for (int i = 0; i < p->n_graphs * p->n_slots; i++)
        p->slots[i] =
            (struct slot){.graph = &p->graphs[i / p->n_slots], .request = MPI_REQUEST_NULL};
}

static enum op pick_op(const struct program *p, const struct graph *graph, struct test_rng *rng)
{
    enum op op = (enum op)(p->op < N_OPS ? p->op : test_below(rng, N_OPS));
    if (op == OP_ALLTOALLW && !graph->equal && !(p->w_unequal && graph->whole))
        op = OP_ALLTOALLV;
    return op;
}

static struct step make_step(const struct program *p, const struct graph *graph, uint64_t key)
{
    struct test_rng rng = {key};
    struct step step = {.types = p->types, .max_count = p->max_count};
    step.op = pick_op(p, graph, &rng);
    step.large = p->large && test_chance(&rng, 2);
    step.same = step.op != OP_ALLTOALLW && test_chance(&rng, 4);
    step.call = test_key(key, 1);
    step.layout = test_key(key, 2);
    return step;
}

static void free_request(struct slot *slot)
{
    if (slot->request != MPI_REQUEST_NULL)
        MPI_Request_free(&slot->request);
    slot->n_starts = 0;
}

/* Starts a slot's persistent request once more, with other contents in the same buffers. */
static void restart(struct slot *slot, uint64_t key)
{
    slot->step.call = test_key(key, 1);
    exchange_fill(&slot->ex, slot->graph, &slot->step);
    if (key % 2 == 0)
        MPI_Start(&slot->request);
    else
        MPI_Startall(1, &slot->request);
    slot->n_starts++;
}

static enum form pick_form(const struct program *p, struct test_rng *rng)
{
    int n_forms = HAS_MPI4 ? N_FORMS : FORM_PERSISTENT; /* blocking, nonblocking */
    return (enum form)(p->form < N_FORMS ? p->form : test_below(rng, n_forms));
}

/* A new call, in a form that all ranks know. */
static void begin(const struct program *p, struct slot *slot, uint64_t key)
{
    struct test_rng rng = {key}, own = {test_key(key, test_rank())};

    slot->form = pick_form(p, &rng);
    if (p->w_unequal && !slot->graph->whole && is_persistent(slot->form))
        slot->form--; /* such are MPI's, and MPICH's (4.0.2) are wrong */
    if (slot->graph->comm == MPI_COMM_NULL)
        return;
    free_request(slot);
    exchange_free(&slot->ex);
    slot->step = make_step(p, slot->graph, test_key(key, 2));
    exchange_make(&slot->ex, slot->graph, &slot->step);
    exchange_fill(&slot->ex, slot->graph, &slot->step);
    exchange_call(&slot->ex, slot->graph, &slot->step, slot->form, &slot->request);
    if (test_chance(&own, 2))
        exchange_free_types(&slot->ex);
    if (is_persistent(slot->form))
        restart(slot, key);
}

static bool can_restart(const struct slot *slot)
{
    return slot->request != MPI_REQUEST_NULL && is_persistent(slot->form) &&
           slot->n_starts < 4 + (int)(slot->step.layout % 8);
}

static void start_slot(const struct program *p, struct slot *slot, uint64_t key)
{
    slot->busy = true;
    if (can_restart(slot))
        restart(slot, key);
    else
        begin(p, slot, key);
}

/* Starts what does not wait, on some ranks before and on others after a collective on another
 * communicator. */
static void start_skewed(const struct program *p, struct slot *slot, uint64_t key)
{
    struct test_rng rng = {key}, own = {test_key(key, 2000 + test_rank())};
    enum form form = pick_form(p, &rng);
    bool local = can_restart(slot) || form == FORM_NONBLOCKING || form == FORM_NONBLOCKING_C;
    bool first = local && test_chance(&own, 2);

    if (first)
        MPI_Barrier(MPI_COMM_WORLD);
    start_slot(p, slot, key);
    if (!first)
        MPI_Barrier(MPI_COMM_WORLD);
}

/* This rank's requests that may be active, the slot's first. Returns their number. */
static int list_requests(const struct program *p, const struct slot *first, MPI_Request *requests,
                         struct slot **slots)
{
    int n = 0;
    requests[n] = first->request;
    slots[n++] = NULL;
    for (int i = 0; i < p->n_graphs * p->n_slots; i++) {
        struct slot *slot = &p->slots[i];
        if (slot == first || !slot->busy || slot->request == MPI_REQUEST_NULL)
            continue;
        requests[n] = slot->request;
        slots[n++] = slot;
    }
    return n;
}

/* Completes requests[0], perhaps others too, in the rank's own way. MPI_Testall of MPICH 4.0.2
 * fails on persistent collectives. */
static void complete(int n, MPI_Request *requests, enum form form, struct test_rng *own)
{
    int flag = 0, index = 0, n_done = 0;
    int *indices = test_alloc((size_t)n * sizeof *indices);
    MPI_Status status, *statuses = test_alloc((size_t)n * sizeof *statuses);

    switch (test_below(own, 8)) {
    case 0:
        while (!flag)
            MPI_Test(requests, &flag, &status);
        break;
    case 1:
        while (!flag && !is_persistent(form))
            MPI_Testall(1, requests, &flag, statuses);
        break;
    case 2:
        while (!flag)
            MPI_Request_get_status(requests[0], &flag, &status);
        break;
    case 3:
        MPI_Waitany(n, requests, &index, &status);
        break;
    case 4:
        MPI_Waitsome(n, requests, &n_done, indices, statuses);
        break;
    case 5:
        MPI_Testany(n, requests, &index, &flag, &status);
        break;
    case 6:
        MPI_Testsome(n, requests, &n_done, indices, MPI_STATUSES_IGNORE);
        break;
    default:
        break;
    }
    MPI_Wait(requests, test_chance(own, 2) ? MPI_STATUS_IGNORE : &status);
    free(indices);
    free(statuses);
}

static void finish_slot(struct program *p, struct slot *slot, uint64_t key)
{
    int most = p->n_graphs * p->n_slots;
    struct test_rng own = {test_key(key, test_rank())};
    MPI_Request *requests = test_alloc((size_t)most * sizeof(MPI_Request));
    struct slot **slots = test_alloc((size_t)most * sizeof *slots);

    slot->busy = false;
    if (slot->graph->comm != MPI_COMM_NULL) {
        int n = list_requests(p, slot, requests, slots);
        complete(n, requests, slot->form, &own);
        slot->request = requests[0];
        for (int i = 1; i < n; i++)
            slots[i]->request = requests[i];
        slot->hash =
            test_key(slot->hash, (int64_t)exchange_check(&slot->ex, slot->graph, &slot->step));
    }
    free(requests);
    free(slots);
}

/* Each rank to the next, with what it got before; the odd ones receive first. */
static void pass_around(struct test_rng *own)
{
    int next = (test_rank() + 1) % test_size(),
        from = (test_rank() + test_size() - 1) % test_size();
    int sent = test_rank(), got = -1, flag = 0;
    MPI_Request request;

    switch (test_size() % 2 ? 0 : test_rank() % 2 + 1) {
    case 0:
        MPI_Irecv(&got, 1, MPI_INT, from, 7, MPI_COMM_WORLD, &request);
        MPI_Send(&sent, 1, MPI_INT, next, 7, MPI_COMM_WORLD);
        while (!flag && test_chance(own, 2))
            MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        break;
    case 1:
        MPI_Ssend(&sent, 1, MPI_INT, next, 7, MPI_COMM_WORLD);
        MPI_Recv(&got, 1, MPI_INT, from, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        break;
    default:
        MPI_Probe(from, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(&got, 1, MPI_INT, from, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Ssend(&sent, 1, MPI_INT, next, 7, MPI_COMM_WORLD);
    }
    if (got != from)
        test_fail("got %d from %d", got, from);
}

/* A collective on all ranks, or among half of them. */
static void other_collective(struct test_rng *rng)
{
    int one = 1, sum = 0, half, size;
    MPI_Comm comm = MPI_COMM_WORLD;

    switch (test_below(rng, 4)) {
    case 0:
        MPI_Barrier(MPI_COMM_WORLD);
        break;
    case 1:
        MPI_Bcast(&one, 1, MPI_INT, test_below(rng, test_size()), MPI_COMM_WORLD);
        break;
    case 2:
        MPI_Comm_split(MPI_COMM_WORLD, test_rank() % 2, 0, &comm);
        MPI_Comm_size(comm, &half);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
        if (sum != half)
            test_fail("sum %d of %d", sum, half);
        MPI_Comm_free(&comm);
        break;
    default:
        MPI_Comm_size(comm, &size);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
        if (sum != size)
            test_fail("sum %d of %d", sum, size);
    }
}

static void blocking_call(const struct program *p, struct graph *graph, uint64_t key)
{
    struct exchange ex = {.made = false};
    struct step step = make_step(p, graph, key);

    if (graph->comm == MPI_COMM_NULL)
        return;
    if (step.op == OP_ALLTOALLW && !graph->equal)
        step.op = OP_ALLTOALLV; /* MPI's own is wrong */
    exchange_make(&ex, graph, &step);
    exchange_run(&ex, graph, &step);
    exchange_free(&ex);
}

/* Tests of what is pending, as this rank likes. */
static void poke(const struct program *p, struct test_rng *own)
{
    for (int i = 0; i < p->n_graphs * p->n_slots; i++) {
        struct slot *slot = &p->slots[i];
        int flag;
        if (slot->busy && slot->request != MPI_REQUEST_NULL && test_chance(own, 4))
            MPI_Test(&slot->request, &flag, MPI_STATUS_IGNORE);
    }
}

static void event(struct program *p, uint64_t key)
{
    struct test_rng rng = {key}, own = {test_key(key, 1000 + test_rank())};
    struct slot *slot = &p->slots[test_below(&rng, p->n_graphs * p->n_slots)];
    int what = test_below(&rng, 8);

    if (what == 0)
        pass_around(&own);
    else if (what == 1)
        other_collective(&rng);
    else if (what == 2)
        blocking_call(p, slot->graph, test_key(key, 3));
    else if (what == 3)
        poke(p, &own);
    else if (slot->busy)
        finish_slot(p, slot, test_key(key, 4));
    else if (what == 7)
        start_skewed(p, slot, test_key(key, 5));
    else
        start_slot(p, slot, test_key(key, 5));
    if (slot->busy && is_blocking(slot->form))
        finish_slot(p, slot, test_key(key, 6));
}

/* Completes everything; some graphs go before their persistent requests. */
static void end(struct program *p)
{
    int n = p->n_graphs * p->n_slots;
    uint64_t *mine = test_alloc((size_t)n * sizeof *mine), *hashes;

    for (int i = 0; i < n; i++) {
        if (p->slots[i].busy)
            finish_slot(p, &p->slots[i], test_key(p->seed, 5000 + i));
        mine[i] = p->slots[i].hash;
        if (i / p->n_slots % 2 == 0)
            free_request(&p->slots[i]);
        if (p->slots[i].request == MPI_REQUEST_NULL)
            exchange_free(&p->slots[i].ex);
    }
    for (int i = 0; i < p->n_graphs; i++)
        if (p->graphs[i].comm != MPI_COMM_NULL)
            MPI_Comm_free(&p->graphs[i].comm);
    for (int i = 0; i < n; i++) {
        struct slot *slot = &p->slots[i];
        if (slot->request == MPI_REQUEST_NULL)
            continue;
        restart(slot, test_key(p->seed, 6000 + i));
        MPI_Wait(&slot->request, MPI_STATUS_IGNORE);
        mine[i] ^= exchange_check(&slot->ex, slot->graph, &slot->step);
        free_request(slot);
        exchange_free(&slot->ex);
    }
    hashes = test_hash_ranks(n, mine);
    for (int i = 0; i < n; i++)
        test_print("slot %d %s %016llx\n", i, kind_names[p->slots[i].graph->kind],
                   (unsigned long long)(test_rank() == 0 ? hashes[i] : 0));
    free(hashes);
    free(mine);
}

int main(int argc, char **argv)
{
    static const char *const known[] = {"--graph",  "--op",    "--form",      "--types",
                                        "--events", "--seed",  "--max-count", "--large",
                                        "--graphs", "--slots", "--w-unequal", NULL};
    struct program p;

    test_start(&argc, &argv, known);
    p = read_options(argc, argv);
    make_slots(&p);
    for (int i = 0; i < p.n_events; i++)
        event(&p, test_key(p.seed, 10000 + i));
    end(&p);
    for (int i = 0; i < p.n_graphs; i++)
        graph_free(&p.graphs[i]);
    free(p.graphs);
    free(p.slots);
    return test_finish();
}
