/*
 * Exchanges of all ranks with all others, which are planned twice in mode auto: after a short
 * search as soon as that pays, and again when a full one does (shim/plan/plan_agree.h). The first
 * rank comes late to each call, so that MPI takes long for it. The ranks look at these times when
 * there have been twice as many calls, so there are several exchanges with different times, one
 * after the other: one of them at least is looked at when a short search pays and a full one does
 * not.
 * In each exchange some ranks have no message for one other, so that the report tells them apart.
 *
 *   twice [--ms N] [--late US] [--own-cores]
 *
 * An exchange goes on for N milliseconds, by the first rank's clock. With --own-cores the library
 * takes each rank to have a core, as far as planning goes: then many ranks search together first.
 */
#define _POSIX_C_SOURCE 200809L /* nanosleep, setenv */

#include "common.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BYTES 24

enum form { NEIGHBOR, ALLTOALLV };

static void fill(int call, int from, int to, unsigned char *bytes)
{
    test_stream(test_key(test_key((uint64_t)call, from), to), 0, BYTES, bytes);
}

/* Those of an exchange; messages of a rank to itself are empty. */
struct messages {
    int n;
    int *peer, *count, *displ;
    unsigned char *out, *in;
};

static bool has_message(int number, int rank)
{
    return rank != test_rank() && (rank + test_rank()) % test_size() != number;
}

/* For MPI_Alltoallv all ranks have a place. */
static struct messages make_messages(int number, enum form form)
{
    size_t most = (size_t)test_size();
    struct messages m = {.peer = test_alloc(most * sizeof *m.peer),
                         .count = test_alloc(most * sizeof *m.count),
                         .displ = test_alloc(most * sizeof *m.displ),
                         .out = test_alloc(most * BYTES),
                         .in = test_alloc(most * BYTES)};
    for (int r = 0; r < test_size(); r++) {
        if (form == NEIGHBOR && !has_message(number, r))
            continue;
        m.peer[m.n] = r;
        m.count[m.n] = has_message(number, r) ? BYTES : 0;
        m.displ[m.n] = m.n * BYTES;
        m.n++;
    }
    return m;
}

static void free_messages(struct messages *m)
{
    free(m->peer);
    free(m->count);
    free(m->displ);
    free(m->out);
    free(m->in);
}

static void exchange(struct messages *m, enum form form, MPI_Comm comm, int call)
{
    unsigned char expected[BYTES];
    for (int k = 0; k < m->n; k++)
        fill(call, test_rank(), m->peer[k], m->out + m->displ[k]);
    memset(m->in, 0, (size_t)m->n * BYTES);
    if (form == NEIGHBOR)
        MPI_Neighbor_alltoallv(m->out, m->count, m->displ, MPI_BYTE, m->in, m->count, m->displ,
                               MPI_BYTE, comm);
    else
        MPI_Alltoallv(m->out, m->count, m->displ, MPI_BYTE, m->in, m->count, m->displ, MPI_BYTE,
                      comm);
    for (int k = 0; k < m->n; k++) {
        fill(call, m->peer[k], test_rank(), expected);
        if (m->count[k] > 0 && memcmp(expected, m->in + m->displ[k], BYTES) != 0)
            test_fail("call %d: wrong bytes from %d", call, m->peer[k]);
    }
}

#define N_EXCHANGES 8
#define NEXT        1.1 /* times as late */
#define CALLS       32  /* before the ranks look at the clock */

int main(int argc, char **argv)
{
    static const char *const known[] = {"--ms", "--late", "--own-cores", NULL};
    test_start(&argc, &argv, known);
    if (test_flag(argc, argv, "--own-cores"))
        setenv("MPI_LOCALNRANKS", "1", 1);
    double seconds = 1e-3 * (double)test_option(argc, argv, "--ms", 700);
    double late_us = (double)test_option(argc, argv, "--late", 300);
    for (int number = 0; number < N_EXCHANGES; number++, late_us *= NEXT) {
        const struct timespec pause = {0, (long)(late_us * 1000)};
        enum form form = number % 2 ? ALLTOALLV : NEIGHBOR;
        struct messages m = make_messages(number, form);
        MPI_Comm comm;
        if (form == NEIGHBOR)
            MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, m.n, m.peer, MPI_UNWEIGHTED, m.n, m.peer,
                                           MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
        else
            MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        double end = MPI_Wtime() + seconds;
        for (int call = 0, more = 1; more; call++) {
            if (test_rank() == 0)
                nanosleep(&pause, NULL);
            exchange(&m, form, comm, call);
            if (call % CALLS > 0)
                continue;
            more = MPI_Wtime() < end;
            MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
        }
        MPI_Comm_free(&comm);
        free_messages(&m);
    }
    return test_finish();
}
