/*
 * All collectives that the library intercepts, with checked results, on communicators of each kind.
 *
 *   collectives [--rounds N] [--nodes N] [--no-make]
 *
 * Prints the hash of all received data for each communicator and call. With --nodes MPICH believes
 * that the ranks are on N nodes, round robin: then reductions show whose algorithm has summed.
 */
#define _XOPEN_SOURCE 700 /* setenv, mkstemp */
#include "collectives.h"

#include <stdlib.h>
#include <string.h>

void place_note(struct place *place, const char *name, const void *bytes, size_t n)
{
    int k = 0;
    while (k < place->n_results && strcmp(place->results[k].name, name) != 0)
        k++;
    if (k == MAX_RESULTS)
        return;
    if (k == place->n_results) {
        place->results[k].name = name;
        place->results[k].hash = TEST_HASH_START;
        place->n_results++;
    }
    place->results[k].hash = test_hash(place->results[k].hash, bytes, n);
}

static void print_results(const struct place *place)
{
    uint64_t mine[MAX_RESULTS] = {0};
    for (int k = 0; k < place->n_results; k++)
        mine[k] = place->results[k].hash;
    uint64_t *all = test_hash_ranks(MAX_RESULTS, mine);
    for (int k = 0; k < place->n_results; k++)
        test_print("%s: %s %016llx\n", place->name, place->results[k].name,
                   (unsigned long long)all[k]);
    free(all);
}

/* The root of a round: another rank each time; of two groups always the first rank of one. */
static void choose_root(struct place *place, int round)
{
    if (!place->inter) {
        place->root = round % place->n;
        place->at_root = place->rank == place->root;
        place->reached = true;
        return;
    }
    place->reached = place->my_side == 1;
    place->at_root = !place->reached && place->rank == 0;
    place->root = place->reached ? 0 : place->at_root ? MPI_ROOT : MPI_PROC_NULL;
}

static void visit(const char *name, MPI_Comm comm, int64_t side, int n_rounds, bool make)
{
    struct place place = {.name = name, .comm = comm, .my_side = side, .far_side = side};
    int inter;
    MPI_Comm_rank(comm, &place.rank);
    MPI_Comm_test_inter(comm, &inter);
    place.inter = inter;
    if (inter) {
        place.far_side = 1 - side;
        MPI_Comm_remote_size(comm, &place.n);
    } else {
        MPI_Comm_size(comm, &place.n);
    }
    for (int round = 0; round < n_rounds; round++) {
        choose_root(&place, round);
        collectives_move(&place, round);
    }
    collectives_reduce(&place);
    if (make && !inter)
        collectives_make(&place);
    print_results(&place);
}

static void visit_halves(int n_rounds)
{
    MPI_Comm half, inter;
    int side = test_rank() % 2;
    MPI_Comm_split(MPI_COMM_WORLD, side, -test_rank(), &half);
    visit("half", half, side, n_rounds, false);
    if (test_size() > 1) {
        MPI_Intercomm_create(half, 0, MPI_COMM_WORLD,
                             side ? (test_size() - 1) / 2 * 2 : (test_size() - 2) / 2 * 2 + 1, 3,
                             &inter);
        visit("between halves", inter, side, n_rounds, false);
        MPI_Comm_free(&inter);
    }
    MPI_Comm_free(&half);
}

/* A wrong call returns MPI's error. */
static void try_mistakes(void)
{
    int number = 0, codes[5], classes[5];
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    codes[0] = MPI_Bcast(&number, 1, MPI_INT, test_size(), MPI_COMM_WORLD);
    codes[1] = MPI_Allgather(&number, -1, MPI_INT, NULL, 1, MPI_INT, MPI_COMM_WORLD);
#if MPI_VERSION < 5 /* MPICH 5.0.2 ends there by an assertion */
    codes[2] = MPI_Allreduce(&number, &number, 1, MPI_DATATYPE_NULL, MPI_SUM, MPI_COMM_WORLD);
#else
    codes[2] = MPI_Allreduce(&number, NULL, 1, MPI_INT, MPI_SUM, MPI_COMM_NULL);
#endif
    codes[3] = MPI_Barrier(MPI_COMM_NULL);
    codes[4] = MPI_Comm_split(MPI_COMM_NULL, 0, 0, NULL);
    for (int k = 0; k < 5; k++) {
        MPI_Error_class(codes[k], &classes[k]);
        test_print("mistake %d: error class %d\n", k, classes[k]);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
    static const char *const known[] = {"--rounds", "--nodes", "--no-make", NULL};
    const char *nodes = test_option_text(argc, argv, "--nodes", NULL);
    if (nodes)
        setenv("MPIR_CVAR_NUM_CLIQUES", nodes, 1);
    test_start(&argc, &argv, known);
    int n_rounds = (int)test_option(argc, argv, "--rounds", 16);
    visit("world", MPI_COMM_WORLD, 0, n_rounds, !test_flag(argc, argv, "--no-make"));
    visit("self", MPI_COMM_SELF, test_rank(), n_rounds / 4, false);
    visit_halves(n_rounds);
    try_mistakes();
    return test_finish();
}
