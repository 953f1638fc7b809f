/*
 * Callbacks of attributes that communicate. A delete callback gets the communicator while it is
 * still whole (MPI 4.0, 7.7.2: it is called by MPI_Comm_free before the communicator is gone), a
 * copy callback the old one during MPI_Comm_dup; both may use it.
 *
 *   attributes plain       delete callbacks on communicators that had no messages
 *   attributes warm        the same on such whose exchange is managed
 *   attributes split       on halves of MPI_COMM_WORLD
 *   attributes copy        copy callbacks that communicate on the old communicator
 *   attributes replaced    set anew and deleted by hand: the callback runs at once
 *   attributes self        on MPI_COMM_SELF: runs first in MPI_Finalize, when all still works
 *   attributes other       uses another communicator, and MPI_COMM_WORLD, than the dying one
 */
#include "promise.h"

#include <stdio.h>
#include <string.h>

#define TAG 1

static int n_deleted, n_copied;
static MPI_Comm another = MPI_COMM_NULL;

/* A sum, messages around the ring by several ways, and a full exchange. */
static void talk(MPI_Comm comm)
{
    int rank, size, one = 1, sum = 0, got = -1;
    struct batch batch;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    expect_int(sum, size, "sum in a callback");
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, TAG, &got, 1, MPI_INT,
                 (rank + size - 1) % size, TAG, comm, MPI_STATUS_IGNORE);
    expect_int(got, (rank + size - 1) % size, "message in a callback");
    batch_begin(&batch, comm, 3);
    batch_end(&batch);
    MPI_Barrier(comm);
}

static int on_delete(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)key, (void)extra;
    talk(value ? another : comm);
    n_deleted++;
    return MPI_SUCCESS;
}

static int on_copy(MPI_Comm comm, int key, void *extra, void *value, void *copy, int *flag)
{
    (void)key, (void)extra;
    talk(comm);
    n_copied++;
    *(void **)copy = value;
    *flag = 1;
    return MPI_SUCCESS;
}

static int new_key(void)
{
    int key;
    MPI_Comm_create_keyval(on_copy, on_delete, &key, NULL);
    return key;
}

static void free_some(bool warm)
{
    int key = new_key();
    for (int i = 0; i < 4; i++) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        if (warm && i != 1)
            warm_up(comm);
        MPI_Comm_set_attr(comm, key, NULL);
        if (i == 2)
            MPI_Comm_disconnect(&comm);
        else
            MPI_Comm_free(&comm);
        warm_rounds(MPI_COMM_WORLD, 2);
    }
    MPI_Comm_free_keyval(&key);
    say("deleted %d\n", n_deleted);
}

static void plain(void)
{
    free_some(false);
}

static void warm(void)
{
    warm_up(MPI_COMM_WORLD);
    free_some(true);
}

static void split(void)
{
    int key = new_key();
    warm_up(MPI_COMM_WORLD);
    for (int i = 0; i < 3; i++) {
        MPI_Comm half;
        MPI_Comm_split(MPI_COMM_WORLD, me % 2, -me, &half);
        if (i > 0)
            warm_up(half);
        MPI_Comm_set_attr(half, key, NULL);
        MPI_Comm_free(&half);
    }
    MPI_Comm_free_keyval(&key);
    say("deleted %d\n", n_deleted);
}

static void copy(void)
{
    int key = new_key();
    MPI_Comm comms[4];
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]);
    MPI_Comm_set_attr(comms[0], key, NULL);
    for (int i = 1; i < 4; i++) {
        warm_up(comms[i - 1]);
        MPI_Comm_dup(comms[i - 1], &comms[i]);
    }
    for (int i = 0; i < 4; i++)
        MPI_Comm_free(&comms[(i + 2) % 4]);
    MPI_Comm_free_keyval(&key);
    say("copied %d, deleted %d\n", n_copied, n_deleted);
}

static void replaced(void)
{
    int key = new_key();
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    warm_up(comm);
    MPI_Comm_set_attr(comm, key, NULL);
    MPI_Comm_set_attr(comm, key, NULL);
    say("set anew: deleted %d\n", n_deleted);
    MPI_Comm_delete_attr(comm, key);
    say("by hand: deleted %d\n", n_deleted);
    MPI_Comm_set_attr(comm, key, NULL);
    MPI_Comm_free_keyval(&key); /* the attribute lives on */
    MPI_Comm_free(&comm);
    say("at last: deleted %d\n", n_deleted);
}

static int in_finalize(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)value, (void)extra;
    int finalized = -1;
    MPI_Finalized(&finalized);
    talk(MPI_COMM_WORLD);
    say("finalized %d\n", finalized);
    return MPI_SUCCESS;
}

static void self(void)
{
    int key;
    warm_up(MPI_COMM_WORLD);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, in_finalize, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
    MPI_Comm_free_keyval(&key);
}

static void other(void)
{
    int key = new_key();
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &another);
    warm_up(another);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    warm_up(comm);
    MPI_Comm_set_attr(comm, key, &another);
    MPI_Comm_free(&comm);
    MPI_Comm_free(&another);
    another = MPI_COMM_WORLD;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_attr(comm, key, &another);
    MPI_Comm_free(&comm);
    MPI_Comm_free_keyval(&key);
    say("deleted %d\n", n_deleted);
}

int main(int argc, char **argv)
{
    static const struct promise_case cases[] = {
        {"plain", plain},       {"warm", warm}, {"split", split}, {"copy", copy},
        {"replaced", replaced}, {"self", self}, {"other", other},
    };
    return promise_main(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
