/* Fuzz test of the preloaded library by MPI calls: a correct MPI program made from a seed.
 *
 *   mpiexec.hydra -n N calls_fuzz SEED [--iterations N] [--seconds N] [--kinds LIST | --without
 * LIST]
 *
 * All ranks draw the same schedule, a linear order of events, and each plays its part: exchanges
 * that recur with deviations, so that the library learns and reroutes them, and between them and in
 * their midst anything else that MPI has. A blocking call depends on what comes earlier in that
 * order only, so the program cannot deadlock, even if no call buffers anything. What must come is
 * checked where it is known (bytes, statuses, error classes); all results go into a hash for each
 * iteration and rank, whatever the order in which things complete, and rank 0 prints them: with the
 * library they must be those that are printed without it. LIST is of the kinds in calls_fuzz.h,
 * separated by commas; `--kinds` leaves only these on. run-calls.sh compares.
 *
 * Known faults of MPICH 4.0.2 are left out: MPI_Neighbor_alltoallw where a rank's in- and
 * out-degree differ, several edges between two ranks, persistent neighborhood collectives. */
#include "calls_fuzz.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct run run;
static int seconds = 50;

#define CALLS_NAME(name) #name,
static const char *const kind_names[] = {CALLS_KINDS(CALLS_NAME)};

bool is_on(const struct run *r, enum kind kind)
{
    return r->kinds >> kind & 1;
}

bool chance_of(const struct run *r, enum kind kind, struct draw *draw, int percent)
{
    return chance(draw, percent) && is_on(r, kind);
}

struct draw event_draw(const struct run *r, uint64_t what)
{
    return (struct draw){mix3(r->seed, what, r->event)};
}

void *get_memory(size_t n)
{
    void *memory = calloc(1, n + 1);
    if (!memory)
        abort();
    return memory;
}

void note(struct run *r, int iteration, uint64_t value)
{
    r->hash[iteration] += mix(value);
}

void wrong(struct run *r, const struct op *op, const char *format, ...)
{
    char text[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    printf("WRONG: rank %d, iteration %d, event %u (%s): %s", r->rank, r->iteration,
           (unsigned)r->event, r->where, text);
    if (op)
        printf("; kind %d from event %u, %d -> %d, tag %d, %d bytes, send %d, receive %d%s",
               (int)op->kind, (unsigned)op->event, op->message.src, op->message.dst,
               op->message.tag, op->message.size, (int)op->message.send, (int)op->message.recv,
               op->is_persistent ? ", persistent" : "");
    printf("\n");
    fflush(stdout);
    r->n_wrong++;
}

int class_of(int code)
{
    int class = MPI_SUCCESS;
    if (code != MPI_SUCCESS)
        MPI_Error_class(code, &class);
    return class;
}

void must(struct run *r, int code, const char *call)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;
    if (code == MPI_SUCCESS)
        return;
    MPI_Error_string(code, text, &length);
    wrong(r, NULL, "%.60s: %.120s", call, text);
    MPI_Abort(MPI_COMM_WORLD, 4);
}

static void on_alarm(int signal)
{
    char text[160];
    int n = snprintf(text, sizeof text, "HANGS: rank %d, iteration %d, event %u: %s\n", run.rank,
                     run.iteration, (unsigned)run.event, run.where);
    (void)signal;
    if (write(STDERR_FILENO, text, (size_t)n) < 0)
        _exit(5);
    for (int k = 0; k < run.n_pool; k++) {
        const struct op *op = run.pool[k];
        if (!op->is_needed)
            continue;
        n = snprintf(
            text, sizeof text,
            "rank %d: kind %d of event %u, %d -> %d, tag %d, %d bytes, send %d, receive %d\n",
            run.rank, (int)op->kind, (unsigned)op->event, op->message.src, op->message.dst,
            op->message.tag, op->message.size, (int)op->message.send, (int)op->message.recv);
        if (write(STDERR_FILENO, text, (size_t)n) < 0)
            _exit(5);
    }
    _exit(3);
}

/* --- events between exchanges */
static const struct {
    enum kind kind;
    int weight;
    void (*call)(struct run *, struct draw *);
} noise[] = {
    {KIND_messages, 12, messages_event},
    {KIND_sendrecv, 8, sendrecv_event},
    {KIND_cancel, 3, cancel_event},
    {KIND_procnull, 3, procnull_event},
    {KIND_truncate, 4, truncate_event},
    {KIND_badargs, 2, badargs_event},
    {KIND_cross, 10, cross_event},
    {KIND_collective, 8, collective_event},
    {KIND_subcollective, 6, subcollective_event},
    {KIND_icollective, 8, icollective_event},
    {KIND_neighbor, 8, neighbor_event},
    {KIND_ineighbor, 8, ineighbor_event},
    {KIND_alltoallv, 5, alltoallv_event},
    {KIND_dup, 2, dup_event},
    {KIND_split, 1, split_event},
    {KIND_group, 1, group_event},
    {KIND_intercomm, 1, intercomm_event},
    {KIND_window, 1, window_event},
    {KIND_file, 1, file_event},
    {KIND_grequest, 4, grequest_event},
    {KIND_attribute, 2, attribute_event},
    {KIND_compute, 8, compute_event},
};

#define N_NOISE (sizeof noise / sizeof *noise)

static void complete_grequests(void)
{
    for (int k = 0; k < run.n_pool; k++) {
        struct op *op = run.pool[k];
        if (op->kind != OP_GREQUEST || op->message.number == 1)
            continue;
        MUST(&run, MPI_Grequest_complete(op->request));
        op->message.number = 1;
        op->ready = run.event;
    }
}

static void renew_buffer(bool always)
{
    void *buffer;
    int size;
    if (run.n_buffered < BSEND_BYTES / 2 && !always)
        return;
    run.where = "MPI_Buffer_detach";
    MUST(&run, MPI_Buffer_detach(&buffer, &size));
    MUST(&run, MPI_Buffer_attach(run.bsend_buffer, BSEND_BYTES));
    run.n_buffered = 0;
}

static struct draw next_event(uint64_t what)
{
    run.event++;
    renew_buffer(false);
    complete_grequests();
    cross_due(&run, false);
    return event_draw(&run, what);
}

static void run_noise(void)
{
    struct draw draw = next_event(1);
    int weight = 0;
    for (size_t k = 0; k < N_NOISE; k++)
        weight += noise[k].weight;
    weight = below(&draw, weight);
    for (size_t k = 0; k < N_NOISE; k++) {
        if (weight >= 0 && weight < noise[k].weight && is_on(&run, noise[k].kind))
            noise[k].call(&run, &draw);
        weight -= noise[k].weight;
    }
}

static void run_iteration(void)
{
    struct draw draw;
    for (int k = 0; k < run.n_exchanges; k++) {
        draw = next_event(2);
        if (chance(&draw, run.iteration < run.quiet_until ? 0 : run.noise_percent))
            run_noise();
        draw = next_event(3);
        exchange_run(&run, k, &draw);
    }
    if (run.has_neighbors) {
        draw = (struct draw){mix3(run.seed, 80, (uint64_t)(run.iteration % 2))};
        next_event(4);
        neighbor_event(&run, &draw);
        ineighbor_event(&run, &draw);
    }
    next_event(5);
    iteration_collective(&run);
    if (run.iteration % 8 == 7)
        complete_all(&run);
}

/* --- the whole run */
static void choose_settings(void)
{
    static const int collectives[] = {0, 1, 1, 2, 2, 10, 3, 4, 7};
    static const int noises[] = {0, 8, 20, 40};
    struct draw draw = {mix3(run.seed, 90, 1)};
    int from = below(&draw, 4);
    run.usual_collective = collectives[below(&draw, 9)];
    run.usual_count = 1 + below(&draw, 4);
    run.is_synchronous = run.usual_collective < 3 || run.usual_collective == 10;
    run.wildcards_from = from == 0 ? 0 : from == 1 ? MAX_ITERATIONS : 10 + 5 * from;
    run.noise_percent = noises[below(&draw, 4)];
    run.quiet_until = below(&draw, 2) * 18;
    run.n_exchanges = 2 + below(&draw, MAX_EXCHANGES - 1);
    run.has_neighbors =
        below(&draw, 3) == 0 && is_on(&run, KIND_neighbor) && is_on(&run, KIND_ineighbor);
    if (run.n_iterations == 0)
        run.n_iterations = 40 + below(&draw, 41);
}

static void print_hashes(void)
{
    size_t n = (size_t)run.n_iterations, n_ranks = (size_t)run.n_ranks;
    uint64_t *all = get_memory(n * n_ranks * sizeof *all);
    int n_wrong = 0;
    MPI_Gather(run.hash, (int)n, MPI_UINT64_T, all, (int)n, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    MPI_Reduce(&run.n_wrong, &n_wrong, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    for (size_t i = 0; run.rank == 0 && i < n; i++) {
        printf("iteration %zu:", i);
        for (size_t k = 0; k < n_ranks; k++)
            printf(" %016" PRIx64, all[k * n + i]);
        printf("\n");
    }
    if (run.rank == 0)
        printf("%d wrong\n", n_wrong);
    fflush(stdout);
    free(all);
}

static void finish(void)
{
    struct draw draw;
    run.iteration = run.n_iterations - 1;
    run.event++;
    complete_grequests();
    cross_due(&run, true);
    draw = next_event(6);
    cancel_event(&run, &draw);
    complete_all(&run);
    for (int k = 0; k < run.n_exchanges; k++)
        exchange_free(&run, &run.exchange[k]);
    renew_buffer(true);
    free_graphs(&run);
    free_comms(&run);
    for (int k = 0; k < MAX_COMMS; k++)
        run.comm[k] = MPI_COMM_WORLD;
    run.where = "the end";
    print_hashes();
}

/* Right before MPI_Finalize, and inside: when MPI_COMM_SELF loses its attributes. What comes is
 * checked, and not in the hash. None is buffered: MPICH 4.0.2 may leave large ones behind in
 * MPI_Finalize, also after MPI_Buffer_detach. */
static void last_exchange(void)
{
    struct draw draw = next_event(7);
    run.kinds &=
        ~((uint64_t)1 << KIND_middle | (uint64_t)1 << KIND_carry | (uint64_t)1 << KIND_buffered);
    random_messages(&run, &draw, 3 * run.n_ranks, 0, FIRST_NOISE_TAG);
    complete_all(&run);
    renew_buffer(true);
}

static int at_finalize(MPI_Comm comm, int keyval, void *value, void *state)
{
    (void)comm;
    (void)keyval;
    (void)value;
    (void)state;
    last_exchange();
    return MPI_SUCCESS;
}

static bool is_in_list(const char *list, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, name, n) == 0 && (at[n] == ',' || at[n] == '\0'))
            return true;
    }
    return false;
}

static bool read_arguments(int argc, char **argv)
{
    run.kinds = ~(uint64_t)0;
    if (argc < 2 || argc % 2 != 0)
        return false;
    run.seed = strtoull(argv[1], NULL, 10);
    for (int a = 2; a < argc; a += 2) {
        bool keeps = strcmp(argv[a], "--kinds") == 0;
        if (strcmp(argv[a], "--iterations") == 0)
            run.n_iterations = atoi(argv[a + 1]);
        else if (strcmp(argv[a], "--seconds") == 0)
            seconds = atoi(argv[a + 1]);
        else if (!keeps && strcmp(argv[a], "--without") != 0)
            return false;
        else
            for (int k = 0; k < N_KINDS; k++)
                if (is_in_list(argv[a + 1], kind_names[k]) != keeps)
                    run.kinds &= ~((uint64_t)1 << k);
    }
    return run.n_iterations >= 0 && run.n_iterations <= MAX_ITERATIONS;
}

static void start(void)
{
    run.where = "starting";
    signal(SIGALRM, on_alarm);
    alarm((unsigned)seconds);
    MPI_Comm_rank(MPI_COMM_WORLD, &run.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &run.n_ranks);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    layout_has_bottom = is_on(&run, KIND_bottom);
    run.loose.state = mix3(run.seed, 99, (uint64_t)run.rank);
    run.hash = get_memory(MAX_ITERATIONS * sizeof *run.hash);
    choose_settings();
    run.bsend_buffer = get_memory(BSEND_BYTES);
    MPI_Buffer_attach(run.bsend_buffer, BSEND_BYTES);
    make_comms(&run);
    make_graphs(&run);
    for (int k = 0; k < run.n_exchanges; k++)
        exchange_make(&run, k);
}

int main(int argc, char **argv)
{
    int keyval;
    if (!read_arguments(argc, argv)) {
        fprintf(stderr,
                "usage: calls_fuzz SEED [--iterations N] [--kinds LIST | --without LIST]\n");
        return 2;
    }
    MPI_Init(&argc, &argv);
    start();
    for (run.iteration = 0; run.iteration < run.n_iterations; run.iteration++)
        run_iteration();
    finish();
    if (is_on(&run, KIND_last)) {
        last_exchange();
        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_finalize, &keyval, NULL);
        MPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL);
    }
    run.where = "MPI_Finalize";
    MPI_Finalize();
    run.where = "after MPI_Finalize";
    while (run.graveyard) {
        struct op *op = run.graveyard;
        run.graveyard = op->next;
        op->layout.owns_type = op->second.owns_type = false;
        op_release(op);
    }
    free(run.hash);
    return run.n_wrong > 0;
}
