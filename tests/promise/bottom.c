/*
 * MPI_BOTTOM with datatypes of absolute addresses (MPI 4.0, 4.1.5), and types with negative lower
 * bounds, in every call that takes a buffer.
 *
 *   bottom nonblocking | blocking | synchronous | sendrecv | replace | persistent | probed
 *   bottom negative       types whose data lie before the address given
 *   bottom alltoallw      MPI_Neighbor_alltoallw, all addresses absolute, and its siblings
 *   bottom allgather      MPI_Neighbor_allgather and MPI_Allgather from and to MPI_BOTTOM
 *
 * Three ints of a rank in reversed order of memory go to the right; each is told by its value.
 */
#include "promise.h"

#include <stdio.h>

#define ROUNDS 16
#define TAG    6

static int out[4], in[4]; /* the first three travel */
static MPI_Datatype out_type, in_type;

/* {x[2], x[0], x[1]}, at their addresses. */
static MPI_Datatype absolute(int *x)
{
    int lengths[2] = {1, 2};
    MPI_Aint addresses[2];
    MPI_Datatype type;
    MPI_Get_address(&x[2], &addresses[0]);
    MPI_Get_address(&x[0], &addresses[1]);
    MPI_Type_create_hindexed(2, lengths, addresses, MPI_INT, &type);
    MPI_Type_commit(&type);
    return type;
}

static void begin(int round)
{
    for (int i = 0; i < 3; i++) {
        out[i] = me * 1000 + round * 10 + i;
        in[i] = -1;
    }
    out[3] = in[3] = -7;
    out_type = absolute(out);
    in_type = absolute(in);
}

static void end(int round)
{
    for (int i = 0; i < 3; i++)
        expect_int(in[i], beside(-1) * 1000 + round * 10 + i, "one of three");
    expect_int(in[3], -7, "what lies behind");
    MPI_Type_free(&out_type);
    MPI_Type_free(&in_type);
    warm_rounds(MPI_COMM_WORLD, 1);
}

static void nonblocking(void)
{
    warm_up(MPI_COMM_WORLD);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request requests[2];
        begin(round);
        MPI_Irecv(MPI_BOTTOM, 1, in_type, beside(-1), TAG, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(MPI_BOTTOM, 1, out_type, beside(1), TAG, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        end(round);
    }
    say("nonblocking\n");
}

static void blocking(void)
{
    warm_up(MPI_COMM_WORLD);
    for (int round = 0; round < ROUNDS; round++) {
        begin(round);
        if (me % 2 == 0)
            MPI_Send(MPI_BOTTOM, 1, out_type, beside(1), TAG, MPI_COMM_WORLD);
        MPI_Recv(MPI_BOTTOM, 1, in_type, beside(-1), TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (me % 2 == 1)
            MPI_Send(MPI_BOTTOM, 1, out_type, beside(1), TAG, MPI_COMM_WORLD);
        end(round);
    }
    say("blocking\n");
}

static void synchronous(void)
{
    warm_up(MPI_COMM_WORLD);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request request;
        begin(round);
        MPI_Irecv(MPI_BOTTOM, 1, in_type, beside(-1), TAG, MPI_COMM_WORLD, &request);
        MPI_Ssend(MPI_BOTTOM, 1, out_type, beside(1), TAG, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        end(round);
    }
    say("synchronous\n");
}

static void sendrecv(void)
{
    warm_up(MPI_COMM_WORLD);
    for (int round = 0; round < ROUNDS; round++) {
        begin(round);
        MPI_Sendrecv(MPI_BOTTOM, 1, out_type, beside(1), TAG, MPI_BOTTOM, 1, in_type, beside(-1),
                     TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        end(round);
    }
    say("sendrecv\n");
}

static void replace(void)
{
    warm_up(MPI_COMM_WORLD);
    for (int round = 0; round < ROUNDS; round++) {
        begin(round);
        for (int i = 0; i < 3; i++)
            in[i] = out[i];
        MPI_Sendrecv_replace(MPI_BOTTOM, 1, in_type, beside(1), TAG, beside(-1), TAG,
                             MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        end(round);
    }
    say("replace\n");
}

static void persistent(void)
{
    warm_up(MPI_COMM_WORLD);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request requests[2];
        begin(round);
        MPI_Recv_init(MPI_BOTTOM, 1, in_type, beside(-1), TAG, MPI_COMM_WORLD, &requests[0]);
        MPI_Send_init(MPI_BOTTOM, 1, out_type, beside(1), TAG, MPI_COMM_WORLD, &requests[1]);
        for (int turn = 0; turn < 2; turn++) {
            MPI_Startall(2, requests);
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        }
        MPI_Request_free(&requests[0]);
        MPI_Request_free(&requests[1]);
        end(round);
    }
    say("persistent\n");
}

static void probed(void)
{
    warm_up(MPI_COMM_WORLD);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request request;
        MPI_Message message;
        MPI_Status status;
        int count;
        begin(round);
        MPI_Isend(MPI_BOTTOM, 1, out_type, beside(1), TAG, MPI_COMM_WORLD, &request);
        MPI_Mprobe(round % 2 ? MPI_ANY_SOURCE : beside(-1), TAG, MPI_COMM_WORLD, &message, &status);
        MPI_Get_count(&status, in_type, &count);
        expect_int(count, 1, "count");
        if (round % 3)
            MPI_Mrecv(MPI_BOTTOM, 1, in_type, &message, &status);
        else {
            MPI_Request receive;
            MPI_Imrecv(MPI_BOTTOM, 1, in_type, &message, &receive);
            MPI_Wait(&receive, &status);
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
        end(round);
    }
    say("probed\n");
}

/* The address given is the one behind the data: displacements are negative. */
static void negative(void)
{
    MPI_Aint displacements[2] = {-4, -12};
    int lengths[2] = {1, 2};
    MPI_Datatype type, wide;
    MPI_Type_create_hindexed(2, lengths, displacements, MPI_INT, &type);
    MPI_Type_create_resized(type, -16, 32, &wide);
    MPI_Type_commit(&wide);
    warm_up(MPI_COMM_WORLD);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request requests[2];
        MPI_Status status;
        begin(round);
        MPI_Irecv(in + 3, 1, wide, beside(-1), TAG, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(out + 3, 1, wide, beside(1), TAG, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < 3; i++)
            in[i] = i == 2 ? -1 : out[i];
        in[2] = out[2];
        MPI_Sendrecv_replace(in + 3, 1, wide, beside(1), TAG, beside(-1), TAG, MPI_COMM_WORLD,
                             &status);
        end(round);
    }
    MPI_Type_free(&wide);
    MPI_Type_free(&type);
    say("negative\n");
}

static MPI_Comm ring(void)
{
    int to[2] = {beside(1), beside(2)}, from[2] = {beside(-1), beside(-2)};
    MPI_Comm comm;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, from, MPI_UNWEIGHTED, 2, to, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &comm);
    return comm;
}

static void neighbor_alltoallw(void)
{
    int ones[2] = {1, 1}, x[2], y[2];
    MPI_Datatype types[2] = {MPI_INT, MPI_INT};
    MPI_Aint from[2], to[2];
    MPI_Comm comm = ring();
    for (int i = 0; i < 2; i++) {
        MPI_Get_address(&x[i], &from[i]);
        MPI_Get_address(&y[i], &to[i]);
    }
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request request;
        for (int i = 0; i < 2; i++) {
            x[i] = me * 100 + round * 2 + i;
            y[i] = -1;
        }
        if (round % 2) {
            MPI_Ineighbor_alltoallw(MPI_BOTTOM, ones, from, types, MPI_BOTTOM, ones, to, types,
                                    comm, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
            MPI_Neighbor_alltoallw(MPI_BOTTOM, ones, from, types, MPI_BOTTOM, ones, to, types,
                                   comm);
        }
        for (int i = 0; i < 2; i++)
            expect_int(y[i], beside(-1 - i) * 100 + round * 2 + i, "of a neighbour");
        MPI_Barrier(comm);
    }
    MPI_Comm_free(&comm);
    say("alltoallw\n");
}

static void allgather(void)
{
    static int all[2 * 3], every[MAX_RANKS * 3];
    MPI_Comm comm = ring();
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Datatype to;
        MPI_Aint address;
        int length = 3;
        begin(round);
        MPI_Type_free(&in_type);
        MPI_Get_address(all, &address);
        MPI_Type_create_hindexed(1, &length, &address, MPI_INT, &to);
        MPI_Type_create_resized(to, address, 3 * (MPI_Aint)sizeof(int), &in_type);
        MPI_Type_commit(&in_type);
        MPI_Neighbor_allgather(MPI_BOTTOM, 1, out_type, MPI_BOTTOM, 1, in_type, comm);
        MPI_Allgather(MPI_BOTTOM, 1, out_type, every, 3, MPI_INT, MPI_COMM_WORLD);
        for (int i = 0; i < 6; i++)
            expect_int(all[i], beside(-1 - i / 3) * 1000 + round * 10 + (i + 2) % 3, "neighbour");
        for (int i = 0; i < 3 * n_ranks; i++)
            expect_int(every[i], i / 3 * 1000 + round * 10 + (i + 2) % 3, "rank");
        MPI_Type_free(&to);
        MPI_Type_free(&in_type);
        MPI_Type_free(&out_type);
    }
    MPI_Comm_free(&comm);
    say("allgather\n");
}

int main(int argc, char **argv)
{
    static const struct promise_case cases[] = {
        {"nonblocking", nonblocking}, {"blocking", blocking}, {"synchronous", synchronous},
        {"sendrecv", sendrecv},       {"replace", replace},   {"persistent", persistent},
        {"probed", probed},           {"negative", negative}, {"alltoallw", neighbor_alltoallw},
        {"allgather", allgather},
    };
    return promise_main(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
