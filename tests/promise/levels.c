/*
 * Thread levels: MPI_Init_thread provides, and MPI_Query_thread and MPI_Is_thread_main tell, what
 * they tell without the preload (MPI 4.0, 11.6), for each level asked for, also when ranks ask for
 * different ones, which MPI allows; and exchanges go on after it.
 *
 *   levels init | single | funneled | serialized | multiple
 *   levels mixed    rank 0 asks for MPI_THREAD_MULTIPLE, the others for MPI_THREAD_SINGLE
 *   levels rising   rank r asks for level r modulo 4
 *   levels falling  the other way round
 */
#include "promise.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED,
                             MPI_THREAD_MULTIPLE};
static const char *const names[] = {"single", "funneled", "serialized", "multiple"};

static int asked(const char *what)
{
    const char *text = getenv("PMI_RANK");
    int rank = text ? atoi(text) : 0;
    if (strcmp(what, "mixed") == 0)
        return rank == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
    if (strcmp(what, "rising") == 0)
        return levels[rank % 4];
    if (strcmp(what, "falling") == 0)
        return levels[3 - rank % 4];
    for (int i = 0; i < 4; i++) {
        if (strcmp(what, names[i]) == 0)
            return levels[i];
    }
    return -1;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "init";
    int provided = -1, queried = -1, is_main = -1, error = 0;
    promise_alarm();
    if (strcmp(what, "init") == 0)
        error = MPI_Init(&argc, &argv);
    else
        error = MPI_Init_thread(&argc, &argv, asked(what), &provided);
    promise_started();
    MPI_Query_thread(&queried);
    MPI_Is_thread_main(&is_main);
    say_all("error %d provided %d queried %d main %d", error, provided, queried, is_main);
    warm_up(MPI_COMM_WORLD);
    MPI_Query_thread(&queried);
    say_all("then queried %d", queried);
    return promise_finish();
}
