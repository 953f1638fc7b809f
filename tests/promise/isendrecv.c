/*
 * MPI_Isendrecv and MPI_Isendrecv_replace do not wait (MPI 4.0, 3.10): a rank may start one and
 * then do what its partner waits for.
 *
 *   isendrecv pair [BYTES]      started, then a token is sent, for which the partner waits first
 *   isendrecv replace [BYTES]   the same with MPI_Isendrecv_replace
 *   isendrecv test [BYTES]      completed by MPI_Test
 *   isendrecv any [BYTES]       several, completed by MPI_Waitany, between halves of an exchange
 *   isendrecv self [BYTES]      to the rank itself
 *   isendrecv mixed [BYTES]     against MPI_Send and MPI_Recv, and against MPI_Sendrecv
 *
 * Not with MPI_PROC_NULL: MPICH 4.0.2 alone crashes or hangs there.
 */
#include "promise.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 10
#define TAG    6

static int n, partner;
static unsigned char *out, *in;

static void set_up(void)
{
    n = (int)option(0, 40);
    out = malloc((size_t)n);
    in = malloc((size_t)n);
    partner = partner_of_me();
    warm_up(MPI_COMM_WORLD);
}

static void begin(int round)
{
    fill(out, (size_t)n, me + round);
    memset(in, 0, (size_t)n);
}

static void clear_away(void)
{
    free(out);
    free(in);
    say("%d bytes\n", n);
}

static void token(bool send)
{
    int value = 7;
    if (send)
        MPI_Send(&value, 1, MPI_INT, partner, TAG + 1, MPI_COMM_WORLD);
    else
        MPI_Recv(&value, 1, MPI_INT, partner, TAG + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    expect_int(value, 7, "token");
}

static MPI_Request start(bool replace)
{
    MPI_Request request;
    if (replace) {
        memcpy(in, out, (size_t)n);
        MPI_Isendrecv_replace(in, n, MPI_BYTE, partner, TAG, partner, TAG, MPI_COMM_WORLD,
                              &request);
    } else {
        MPI_Isendrecv(out, n, MPI_BYTE, partner, TAG, in, n, MPI_BYTE, partner, TAG, MPI_COMM_WORLD,
                      &request);
    }
    return request;
}

static void in_pairs(bool replace, bool test)
{
    set_up();
    for (int round = 0; round < ROUNDS; round++) {
        begin(round);
        if (partner >= 0) {
            MPI_Request request;
            int flag = 0;
            if (me % 2)
                token(false);
            request = start(replace);
            if (me % 2 == 0)
                token(true);
            while (test && !flag)
                MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
            if (!test)
                MPI_Wait(&request, MPI_STATUS_IGNORE);
            expect(in, (size_t)n, partner + round, "from the partner");
        }
        warm_rounds(MPI_COMM_WORLD, 1);
    }
    clear_away();
}

static void pair(void)
{
    in_pairs(false, false);
}

static void replace(void)
{
    in_pairs(true, false);
}

static void test(void)
{
    in_pairs(true, true);
}

static void any(void)
{
    enum { MANY = 3 };
    set_up();
    unsigned char *ins = malloc((size_t)n * MANY);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request requests[MANY];
        struct batch batch;
        begin(round);
        batch_begin(&batch, MPI_COMM_WORLD, round);
        for (int k = 0; k < MANY; k++)
            MPI_Isendrecv(out, n, MPI_BYTE, beside(k), TAG + k, ins + (size_t)k * n, n, MPI_BYTE,
                          beside(-k), TAG + k, MPI_COMM_WORLD, &requests[k]);
        for (int k = 0; k < MANY; k++) {
            int which = -1;
            MPI_Waitany(MANY, requests, &which, MPI_STATUS_IGNORE);
            if (which < 0 || which >= MANY)
                wrong("index %d", which);
            else
                expect(ins + (size_t)which * n, (size_t)n, beside(-which) + round, "one of three");
        }
        batch_end(&batch);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    free(ins);
    clear_away();
}

static void self(void)
{
    set_up();
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request request;
        begin(round);
        MPI_Isendrecv(out, n, MPI_BYTE, me, TAG, in, n, MPI_BYTE, me, TAG, MPI_COMM_WORLD,
                      &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        expect(in, (size_t)n, me + round, "from itself");
        MPI_Isendrecv_replace(in, n, MPI_BYTE, me, TAG, me, TAG, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        expect(in, (size_t)n, me + round, "replaced by itself");
        warm_rounds(MPI_COMM_WORLD, 1);
    }
    clear_away();
}

static void mixed(void)
{
    set_up();
    for (int round = 0; round < ROUNDS && partner >= 0; round++) {
        begin(round);
        if (me % 2 == 0) {
            MPI_Request request = start(round % 3 == 0);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else if (round % 2) {
            MPI_Recv(in, n, MPI_BYTE, partner, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(out, n, MPI_BYTE, partner, TAG, MPI_COMM_WORLD);
        } else {
            MPI_Sendrecv(out, n, MPI_BYTE, partner, TAG, in, n, MPI_BYTE, partner, TAG,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        expect(in, (size_t)n, partner + round, "from the partner");
    }
    warm_rounds(MPI_COMM_WORLD, 2);
    clear_away();
}

int main(int argc, char **argv)
{
    static const struct promise_case cases[] = {
        {"pair", pair}, {"replace", replace}, {"test", test},
        {"any", any},   {"self", self},       {"mixed", mixed},
    };
    return promise_main(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
