/*
 * Erroneous calls with MPI_ERRORS_RETURN, on a managed communicator: the class that MPI returns is
 * the one that the program gets. The only program here that is not correct; what MPI does with such
 * calls is no rule but what users of MPICH 4.0.2 see (MPI 4.0, 9.3: classes). Only cases for which
 * it returns a class, without crash or hang, are in it.
 *
 *   badargs all|one [NAME]    made by all ranks, or by rank 0 alone; by default all cases
 *   badargs early [NAME]      by rank 0 alone; the collective ones also before anything is managed,
 *                             when the library counts collectives: these it must not count
 */
#include "promise.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define C   MPI_COMM_WORLD
#define INT MPI_INT
#define CASE(name, call)                                                                           \
    do {                                                                                           \
        if (chosen(name))                                                                          \
            report(name, (call));                                                                  \
    } while (0)

static const char *only;
static bool by_one;
static int v = 1, w[100], d, n, high, flag, idx;
static MPI_Request q, null = MPI_REQUEST_NULL;
static MPI_Status st;
static MPI_Message message;
static MPI_Datatype raw; /* not committed */
static MPI_Datatype none[MAX_RANKS];
static int ones[MAX_RANKS], below[MAX_RANKS], places[MAX_RANKS];
static MPI_Comm graph; /* a ring */

static bool chosen(const char *name)
{
    q = MPI_REQUEST_NULL;
    if (only && strncmp(only, name, strlen(only)) != 0)
        return false;
    return !by_one || me == 0;
}

static void report(const char *name, int error)
{
    say("%s %d\n", name, class_of(error));
}

static void sends(void)
{
    CASE("isend null buffer", MPI_Isend(NULL, 4, INT, d, 1, C, &q));
    CASE("isend high tag", MPI_Isend(&v, 1, INT, d, high, C, &q));
    CASE("isend negative tag", MPI_Isend(&v, 1, INT, d, -5, C, &q));
    CASE("isend any source", MPI_Isend(&v, 1, INT, MPI_ANY_SOURCE, 1, C, &q));
    CASE("isend any tag", MPI_Isend(&v, 1, INT, d, MPI_ANY_TAG, C, &q));
    CASE("isend null request", MPI_Isend(&v, 1, INT, d, 1, C, NULL));
    CASE("isend type", MPI_Isend(w, 1, raw, d, 1, C, &q));
    CASE("isend rank", MPI_Isend(&v, 1, INT, n + 7, 1, C, &q));
    CASE("send rank", MPI_Send(&v, 1, INT, n, 1, C));
    CASE("send negative rank", MPI_Send(&v, 1, INT, -9, 1, C));
    CASE("send count", MPI_Send(&v, -1, INT, d, 1, C));
    CASE("send null type", MPI_Send(&v, 1, MPI_DATATYPE_NULL, d, 1, C));
    CASE("send type", MPI_Send(w, 1, raw, d, 1, C));
    CASE("send null comm", MPI_Send(&v, 1, INT, d, 1, MPI_COMM_NULL));
    CASE("send null buffer", MPI_Send(NULL, 4, INT, d, 1, C));
    CASE("ssend null buffer", MPI_Ssend(NULL, 4, INT, d, 1, C));
    CASE("ssend tag", MPI_Ssend(&v, 1, INT, d, high, C));
    CASE("issend count", MPI_Issend(&v, -3, INT, d, 1, C, &q));
    CASE("rsend rank", MPI_Rsend(&v, 1, INT, n + 1, 1, C));
    CASE("bsend no buffer", MPI_Bsend(&v, 1, INT, d, 1, C));
    CASE("ibsend no buffer", MPI_Ibsend(&v, 1, INT, d, 1, C, &q));
    CASE("bsend rank", MPI_Bsend(&v, 1, INT, n, 1, C));
    CASE("send_init null buffer", MPI_Send_init(NULL, 3, INT, d, 1, C, &q));
    CASE("send_init tag", MPI_Send_init(&v, 1, INT, d, high, C, &q));
    CASE("ssend_init rank", MPI_Ssend_init(&v, 1, INT, n, 1, C, &q));
}

static void receives(void)
{
    CASE("irecv tag", MPI_Irecv(&v, 1, INT, d, high, C, &q));
    CASE("irecv negative tag", MPI_Irecv(&v, 1, INT, d, -7, C, &q));
    CASE("irecv null buffer", MPI_Irecv(NULL, 4, INT, d, 1, C, &q));
    CASE("irecv count", MPI_Irecv(&v, -2, INT, d, 1, C, &q));
    CASE("irecv type", MPI_Irecv(w, 1, raw, d, 1, C, &q));
    CASE("irecv rank", MPI_Irecv(&v, 1, INT, n, 1, C, &q));
    CASE("irecv null request", MPI_Irecv(&v, 1, INT, d, 1, C, NULL));
    CASE("irecv null comm", MPI_Irecv(&v, 1, INT, d, 1, MPI_COMM_NULL, &q));
    CASE("recv rank", MPI_Recv(&v, 1, INT, -7, 1, C, &st));
    CASE("recv null buffer", MPI_Recv(NULL, 3, INT, d, 1, C, &st));
    CASE("recv tag", MPI_Recv(&v, 1, INT, d, high, C, &st));
    CASE("recv null type", MPI_Recv(&v, 1, MPI_DATATYPE_NULL, d, 1, C, &st));
    CASE("recv null status", MPI_Recv(&v, 1, INT, d, 1, C, NULL));
    CASE("recv_init count", MPI_Recv_init(&v, -1, INT, d, 1, C, &q));
    CASE("sendrecv null buffer",
         MPI_Sendrecv(NULL, 3, INT, d, 1, &v, 1, INT, MPI_PROC_NULL, 1, C, &st));
    CASE("sendrecv rank", MPI_Sendrecv(&v, 1, INT, n + 2, 1, w, 1, INT, d, 1, C, &st));
    CASE("sendrecv tag", MPI_Sendrecv(&v, 1, INT, d, 1, w, 1, INT, d, high, C, &st));
    CASE("replace count", MPI_Sendrecv_replace(w, -1, INT, d, 1, d, 1, C, &st));
    CASE("replace rank", MPI_Sendrecv_replace(w, 1, INT, d, 1, n, 1, C, &st));
    CASE("probe rank", MPI_Probe(n + 3, 1, C, &st));
    CASE("probe tag", MPI_Probe(d, high, C, &st));
    CASE("iprobe negative tag", MPI_Iprobe(0, -9, C, &flag, &st));
    CASE("iprobe tag", MPI_Iprobe(0, high, C, &flag, &st));
    CASE("iprobe null flag", MPI_Iprobe(0, 1, C, NULL, &st));
    CASE("mprobe rank", MPI_Mprobe(n, 1, C, &message, &st));
    CASE("mprobe tag", MPI_Mprobe(d, high, C, &message, &st));
    CASE("improbe tag", MPI_Improbe(d, -3, C, &flag, &message, &st));
    message = MPI_MESSAGE_NULL;
    CASE("mrecv null", MPI_Mrecv(w, 1, INT, &message, &st));
    message = MPI_MESSAGE_NULL;
    CASE("imrecv null", MPI_Imrecv(w, 1, INT, &message, &q));
}

static void completions(void)
{
    int some[2];
    CASE("wait no request", MPI_Wait(NULL, &st));
    CASE("test no request", MPI_Test(NULL, &flag, &st));
    CASE("test no flag", MPI_Test(&null, NULL, &st));
    CASE("waitall count", MPI_Waitall(-1, &null, MPI_STATUSES_IGNORE));
    CASE("waitall no requests", MPI_Waitall(2, NULL, MPI_STATUSES_IGNORE));
    CASE("waitany count", MPI_Waitany(-1, &null, &idx, &st));
    CASE("waitany no index", MPI_Waitany(1, &null, NULL, &st));
    CASE("waitsome no count", MPI_Waitsome(1, &null, NULL, some, MPI_STATUSES_IGNORE));
    CASE("waitsome count", MPI_Waitsome(-2, &null, &idx, some, MPI_STATUSES_IGNORE));
    CASE("testall count", MPI_Testall(-1, &null, &flag, MPI_STATUSES_IGNORE));
    CASE("testall no flag", MPI_Testall(1, &null, NULL, MPI_STATUSES_IGNORE));
    CASE("testany no index", MPI_Testany(1, &null, NULL, &flag, &st));
    CASE("testsome no requests", MPI_Testsome(2, NULL, &idx, some, MPI_STATUSES_IGNORE));
    CASE("start null", MPI_Start(&null));
    CASE("start no request", MPI_Start(NULL));
    CASE("startall count", MPI_Startall(-1, &null));
    CASE("startall null", MPI_Startall(1, &null));
    CASE("free null", MPI_Request_free(&null));
    CASE("free no request", MPI_Request_free(NULL));
    CASE("cancel null", MPI_Cancel(&null));
    CASE("cancel no request", MPI_Cancel(NULL));
    CASE("get_status no flag", MPI_Request_get_status(null, NULL, &st));
    CASE("detach none", MPI_Buffer_attach(w, -1));
}

/* Of a communicator, in which all or one make them: they end before anything is sent. */
static void collectives(void)
{
    float x = 1, y = 0;
    CASE("allreduce alias", MPI_Allreduce(&v, &v, 1, INT, MPI_SUM, C));
    CASE("allreduce null op", MPI_Allreduce(MPI_IN_PLACE, &v, 1, INT, MPI_OP_NULL, C));
    CASE("allreduce op and type", MPI_Allreduce(&x, &y, 1, MPI_FLOAT, MPI_BAND, C));
    CASE("allreduce null comm", MPI_Allreduce(&v, w, 1, INT, MPI_SUM, MPI_COMM_NULL));
    CASE("allreduce null buffer", MPI_Allreduce(&v, NULL, 1, INT, MPI_SUM, C));
    CASE("allreduce null type", MPI_Allreduce(&v, w, 1, MPI_DATATYPE_NULL, MPI_SUM, C));
    CASE("allreduce type", MPI_Allreduce(w, w + 50, 1, raw, MPI_SUM, C));
    CASE("iallreduce null op", MPI_Iallreduce(&v, w, 1, INT, MPI_OP_NULL, C, &q));
    CASE("iallreduce no request", MPI_Iallreduce(&v, w, 1, INT, MPI_SUM, C, NULL));
    CASE("reduce root", MPI_Reduce(&v, w, 1, INT, MPI_SUM, n, C));
    CASE("bcast root", MPI_Bcast(&v, 1, INT, n, C));
    CASE("bcast count", MPI_Bcast(&v, -1, INT, 0, C));
    CASE("gather root", MPI_Gather(&v, 1, INT, w, 1, INT, -3, C));
    CASE("barrier null comm", MPI_Barrier(MPI_COMM_NULL));
    CASE("ibarrier no request", MPI_Ibarrier(C, NULL));
    CASE("allgather count", MPI_Allgather(&v, -1, INT, w, 1, INT, C));
    CASE("alltoallv null comm", MPI_Alltoallv(w, w, w, INT, w, w, w, INT, MPI_COMM_NULL));
    CASE("alltoall null type", MPI_Alltoall(w, 1, MPI_DATATYPE_NULL, w + 50, 1, INT, C));
    CASE("alltoall count", MPI_Alltoall(w, -1, INT, w + 50, 1, INT, C));
    CASE("scan null op", MPI_Scan(&v, w, 1, INT, MPI_OP_NULL, C));
    CASE("exscan alias", MPI_Exscan(&v, &v, 1, INT, MPI_SUM, C));
    CASE("neighbor no topology", MPI_Neighbor_alltoall(w, 1, INT, w + 50, 1, INT, C));
    CASE("neighbor null comm", MPI_Neighbor_allgather(w, 1, INT, w, 1, INT, MPI_COMM_NULL));
    CASE("free world", MPI_Comm_free(NULL));
    CASE("dup null comm", MPI_Comm_rank(MPI_COMM_NULL, &idx));
}

/* What the library does not find before MPI's call; once something is managed it may wait. */
static void refused_late(void)
{
    CASE("alltoall alias", MPI_Alltoall(w, 1, INT, w, 1, INT, C));
    CASE("scatter type", MPI_Scatter(w, 1, raw, w + 50, 1, raw, 0, C));
}

/* Those which all ranks make only (doc/limits.md). */
static void exchanges(void)
{
    if (by_one)
        return;
    refused_late();
    CASE("allgather null type", MPI_Allgather(&v, 1, MPI_DATATYPE_NULL, w, 1, INT, C));
    CASE("allgatherv null buffer", MPI_Allgatherv(&v, 1, INT, NULL, ones, places, INT, C));
    CASE("alltoallv count", MPI_Alltoallv(w, below, places, INT, w + 50, ones, places, INT, C));
    CASE("alltoallv null type",
         MPI_Alltoallv(w, ones, places, INT, w + 50, ones, places, MPI_DATATYPE_NULL, C));
    CASE("alltoallv alias", MPI_Alltoallv(w, ones, places, INT, w, ones, places, INT, C));
    CASE("alltoallw type", MPI_Alltoallw(w, ones, places, none, w + 50, ones, places, none, C));
    CASE("reduce_scatter null buffer", MPI_Reduce_scatter(w, NULL, ones, INT, MPI_SUM, C));
    CASE("neighbor null type",
         MPI_Neighbor_alltoall(w, 1, INT, w + 50, 1, MPI_DATATYPE_NULL, graph));
    CASE("neighbor count", MPI_Neighbor_alltoall(w, -1, INT, w + 50, 1, INT, graph));
    CASE("neighbor counts",
         MPI_Neighbor_alltoallv(w, below, places, INT, w + 50, ones, places, INT, graph));
    CASE("neighbor gather", MPI_Neighbor_allgather(w, 1, MPI_DATATYPE_NULL, w + 50, 1, INT, graph));
}

/* Requests that are there, but in the wrong state. */
static void states(void)
{
    MPI_Request receive;
    MPI_Recv_init(&v, 1, INT, d, 77, C, &receive);
    MPI_Start(&receive);
    CASE("start an active one", MPI_Start(&receive));
    MPI_Cancel(&receive);
    MPI_Wait(&receive, MPI_STATUS_IGNORE);
    MPI_Request_free(&receive);
    MPI_Irecv(&v, 1, INT, d, 77, C, &receive);
    CASE("start one that is not persistent", MPI_Start(&receive));
    MPI_Cancel(&receive);
    MPI_Wait(&receive, MPI_STATUS_IGNORE);
    static char room[MPI_BSEND_OVERHEAD + 8];
    void *address;
    int size;
    MPI_Buffer_attach(room, sizeof room);
    CASE("bsend small buffer", MPI_Bsend(w, 100, INT, d, 1, C));
    CASE("attach twice", MPI_Buffer_attach(w, 100));
    MPI_Buffer_detach(&address, &size);
}

/* A ring on which an exchange recurs. */
static void exchange(void)
{
    int from[2] = {me, me + 1000}, to[2] = {-1, -1};
    MPI_Neighbor_alltoall(from, 1, INT, to, 1, INT, graph);
    expect_int(to[0], beside(-1) + (n > 2 ? 1000 : 0), "from the left");
    expect_int(to[1], beside(1) + (n > 2 ? 0 : 1000), "from the right");
}

static void set_up(void)
{
    MPI_Dist_graph_create_adjacent(C, 2, (int[]){beside(-1), beside(1)}, MPI_UNWEIGHTED, 2,
                                   (int[]){beside(-1), beside(1)}, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                   &graph);
    MPI_Comm_set_errhandler(graph, MPI_ERRORS_RETURN);
    MPI_Type_contiguous(2, INT, &raw);
    for (int i = 0; i < MAX_RANKS; i++) {
        none[i] = MPI_DATATYPE_NULL;
        ones[i] = 1;
        below[i] = -1;
        places[i] = i % 40;
    }
}

int main(int argc, char **argv)
{
    static void (*const groups[])(void) = {sends,       receives,  completions,
                                           collectives, exchanges, states};
    int *upper = NULL;
    promise_start(&argc, &argv);
    bool early = argc > 1 && strcmp(argv[1], "early") == 0;
    by_one = early || (argc > 1 && strcmp(argv[1], "one") == 0);
    only = argc > 2 ? argv[2] : NULL;
    if (!early)
        warm_up(C);
    MPI_Comm_set_errhandler(C, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN); /* calls without a communicator */
    MPI_Comm_get_attr(C, MPI_TAG_UB, &upper, &flag);
    high = *upper + 1;
    n = n_ranks;
    d = beside(1);
    set_up();
    for (int round = 0; early && round < 5; round++) {
        if (round == 2)
            warm_rounds(C, 1); /* from here on there are messages to learn about: nothing passes */
        MPI_Barrier(C);
        collectives();
        refused_late();
        MPI_Allreduce(&me, &v, 1, INT, MPI_SUM, C);
        expect_int(v, n * (n - 1) / 2, "sum of the ranks");
        exchange();
    }
    if (early)
        warm_up(C);
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        groups[i]();
        for (int round = 0; round < 12; round++)
            exchange();
        warm_rounds(C, 2); /* all works as before */
    }
    MPI_Type_free(&raw);
    MPI_Comm_free(&graph);
    return promise_finish();
}
