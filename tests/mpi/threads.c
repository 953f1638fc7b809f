/*
 * A program with MPI_THREAD_MULTIPLE. Several courses of collectives and messages, each on
 * communicators of its own, and with messages on MPI_COMM_WORLD, too.
 *
 *   threads [--courses N] [--rounds N] [--walk many|one|odd] [--self]     (2 courses, 30 rounds)
 *
 * many: each rank has a thread for each course, so courses are at other steps at the same time, and
 * at other ones on each rank. one: each rank has one thread, which calls as if it had asked for
 * less. odd: one thread on odd ranks, which go through all courses in turn. self: threads also send
 * to each other on their own rank, by blocking calls.
 */
#include "threads.h"
#include "common.h"

#include <pthread.h>
#include <string.h>

#define MOST_COURSES 4

static int n_rounds, n_courses;
static bool to_self;
static struct course courses[MOST_COURSES];

/* From the thread of course 1 to that of course 0. */
static void between_threads(const struct course *c, int round)
{
    int sent = round, received = -1;
    if (c->number == 1)
        MPI_Ssend(&sent, 1, MPI_INT, c->rank, 7, MPI_COMM_WORLD);
    if (c->number == 0)
        MPI_Recv(&received, 1, MPI_INT, c->rank, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (c->number == 0 && received != round)
        course_fail(c, round, c->rank, "itself");
}

static void walk_round(struct course *c, int round)
{
    for (int k = 0; k < N_STEPS; k++)
        course_step(c, round * N_STEPS + k);
}

static void *walk(void *course)
{
    for (int round = 0; round < n_rounds; round++) {
        walk_round(course, round);
        if (to_self)
            between_threads(course, round);
    }
    return NULL;
}

static void walk_all(void)
{
    for (int round = 0; round < n_rounds; round++)
        for (int t = 0; t < n_courses; t++)
            walk_round(&courses[t], round);
}

static void walk_together(void)
{
    pthread_t threads[MOST_COURSES];
    for (int t = 1; t < n_courses; t++)
        pthread_create(&threads[t], NULL, walk, &courses[t]);
    walk(&courses[0]);
    for (int t = 1; t < n_courses; t++)
        pthread_join(threads[t], NULL);
}

static void open_course(struct course *c, int number)
{
    c->number = number;
    c->rank = test_rank();
    c->n_ranks = test_size();
    c->pause = test_key(test_key(91, number), c->rank);
    for (int n = 0; n < N_NEAR; n++) {
        c->near[n] = (c->rank + n + 1) % c->n_ranks;
        c->near[N_NEAR + n] = (c->rank + N_NEAR * c->n_ranks - n - 1) % c->n_ranks;
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &c->comm);
    /* whom edge n comes from is who sends it as edge n of the other side, so sources are swapped */
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2 * N_NEAR, c->near, MPI_UNWEIGHTED, 2 * N_NEAR,
                                   c->near, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &c->graph);
}

int main(int argc, char **argv)
{
    static const char *const known[] = {"--courses", "--rounds", "--walk", "--self", NULL};
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    test_start(&argc, &argv, known);
    const char *walks = test_option_text(argc, argv, "--walk", "many");
    n_courses = (int)test_option(argc, argv, "--courses", 2);
    n_rounds = (int)test_option(argc, argv, "--rounds", 30);
    to_self = test_flag(argc, argv, "--self");
    test_print("provided %d\n", provided);
    if (n_courses > MOST_COURSES)
        n_courses = MOST_COURSES;
    for (int t = 0; t < n_courses; t++)
        open_course(&courses[t], t);
    if (strcmp(walks, "one") == 0 || (strcmp(walks, "odd") == 0 && test_rank() % 2 > 0))
        walk_all();
    else
        walk_together();
    for (int t = 0; t < n_courses; t++) {
        MPI_Comm_free(&courses[t].comm);
        MPI_Comm_free(&courses[t].graph);
    }
    if (course_failures() > 0)
        test_fail("%d wrong messages", course_failures());
    return test_finish();
}
