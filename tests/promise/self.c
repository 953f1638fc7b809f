/*
 * Receives of the program's own stay its own: while a receive with wildcards is open, neighborhood
 * collectives run, with edges of a rank to itself and derived types. Messages of collectives never
 * match a receive (MPI 4.0, 6.1: separate contexts), so the receive gets what the program sends it
 * at last, and no probe sees anything.
 *
 *   self receive     open on MPI_COMM_SELF
 *   self graph       open on the graph communicator itself
 *   self world       open on MPI_COMM_WORLD
 *   self probe       MPI_Iprobe and MPI_Improbe on MPI_COMM_SELF between the calls
 *   self persistent  a started persistent receive, and persistent collectives
 */
#include "promise.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALLS 10

static MPI_Comm graph;
static MPI_Datatype gapped; /* two ints of four */
static int out[4 * MAX_RANKS], in[4 * MAX_RANKS];

static void set_up(void)
{
    int all[MAX_RANKS];
    MPI_Datatype vector;
    for (int i = 0; i < n_ranks; i++)
        all[i] = i;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, n_ranks, all, MPI_UNWEIGHTED, n_ranks, all,
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
    MPI_Type_vector(2, 1, 2, MPI_INT, &vector);
    MPI_Type_create_resized(vector, 0, 16, &gapped);
    MPI_Type_commit(&gapped);
    MPI_Type_free(&vector);
}

static void clear_away(void)
{
    MPI_Type_free(&gapped);
    MPI_Comm_free(&graph);
}

static void put(int round)
{
    for (int i = 0; i < n_ranks; i++) {
        out[4 * i] = me * 1000 + i * 10 + round;
        out[4 * i + 2] = out[4 * i] + 500000;
    }
    memset(in, 0xff, sizeof in);
}

static void check(int round, bool same)
{
    for (int i = 0; i < n_ranks; i++) {
        int wanted = i * 1000 + (same ? 0 : me * 10) + round;
        expect_int(in[4 * i], wanted, "first of a pair");
        expect_int(in[4 * i + 2], wanted + 500000, "second of a pair");
        expect_int(in[4 * i + 1], -1, "gap");
    }
}

/* Each kind of neighborhood collective in turn. */
static void collective(int round)
{
    int counts[MAX_RANKS], places[MAX_RANKS];
    MPI_Aint bytes[MAX_RANKS];
    MPI_Datatype types[MAX_RANKS];
    MPI_Request request;
    for (int i = 0; i < n_ranks; i++) {
        counts[i] = 1;
        places[i] = i;
        bytes[i] = 16 * i;
        types[i] = gapped;
    }
    put(round);
    switch (round % 5) {
    case 0:
        MPI_Neighbor_alltoall(out, 1, gapped, in, 1, gapped, graph);
        break;
    case 1:
        MPI_Neighbor_alltoallv(out, counts, places, gapped, in, counts, places, gapped, graph);
        break;
    case 2:
        MPI_Neighbor_alltoallw(out, counts, bytes, types, in, counts, bytes, types, graph);
        break;
    case 3:
        MPI_Ineighbor_alltoall(out, 1, gapped, in, 1, gapped, graph, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        break;
    default:
        MPI_Neighbor_allgather(out, 1, gapped, in, 1, gapped, graph);
        break;
    }
    check(round, round % 5 == 4);
}

static void with_receive_on(MPI_Comm comm, int to, int from)
{
    int mine[4] = {-1, -1, -1, -1}, theirs[4] = {1, 2, 3, from};
    MPI_Request requests[2];
    MPI_Status status;
    MPI_Irecv(mine, 4, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &requests[0]);
    for (int round = 0; round < 5 * CALLS; round++) {
        int flag = -1;
        collective(round);
        MPI_Test(&requests[0], &flag, &status);
        expect_int(flag, 0, "the receive is complete");
        if (flag)
            return;
    }
    theirs[3] = me;
    MPI_Barrier(MPI_COMM_WORLD); /* no message before all have made their calls */
    MPI_Isend(theirs, 4, MPI_INT, to, 3, comm, &requests[1]);
    MPI_Wait(&requests[0], &status);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    for (int i = 0; i < 3; i++)
        expect_int(mine[i], i + 1, "of the receive");
    expect_int(mine[3], from, "sender");
    expect_int(status.MPI_TAG, 3, "tag");
    clear_away();
    say_all("got %d %d %d", mine[0], mine[1], mine[2]);
}

static void on_self(void)
{
    set_up();
    with_receive_on(MPI_COMM_SELF, 0, me);
}

static void on_graph(void)
{
    set_up();
    with_receive_on(graph, beside(1), beside(-1));
}

static void on_world(void)
{
    set_up();
    with_receive_on(MPI_COMM_WORLD, beside(1), beside(-1));
}

static void probe(void)
{
    MPI_Comm comms[3] = {MPI_COMM_SELF, MPI_COMM_WORLD, MPI_COMM_NULL};
    int seen = 0;
    set_up();
    comms[2] = graph;
    for (int round = 0; round < 5 * CALLS; round++) {
        for (int i = 0; i < 3; i++) {
            int flag = 0;
            MPI_Message message;
            MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comms[i], &flag, MPI_STATUS_IGNORE);
            seen += flag;
            if (round % 3 == 0)
                MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, comms[i], &flag, &message,
                            MPI_STATUS_IGNORE);
            seen += flag;
        }
        collective(round);
    }
    clear_away();
    expect_int(seen, 0, "messages seen by probes");
    say_all("seen %d", seen);
}

static void persistent(void)
{
    int mine[2] = {-1, -1}, theirs[2] = {4, me};
    MPI_Request receive, call;
    set_up();
    MPI_Recv_init(mine, 2, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &receive);
    MPI_Start(&receive);
    put(0);
    MPI_Neighbor_alltoall_init(out, 1, gapped, in, 1, gapped, graph, MPI_INFO_NULL, &call);
    for (int round = 0; round < CALLS; round++) {
        put(round);
        MPI_Start(&call);
        MPI_Wait(&call, MPI_STATUS_IGNORE);
        check(round, false);
        collective(round);
    }
    MPI_Send(theirs, 2, MPI_INT, 0, 3, MPI_COMM_SELF);
    MPI_Wait(&receive, MPI_STATUS_IGNORE);
    MPI_Request_free(&receive);
    MPI_Request_free(&call);
    clear_away();
    expect_int(mine[1], me, "of the started receive");
    say_all("got %d", mine[0]);
}

int main(int argc, char **argv)
{
    static const struct promise_case cases[] = {
        {"receive", on_self}, {"graph", on_graph},        {"world", on_world},
        {"probe", probe},     {"persistent", persistent},
    };
    return promise_main(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
