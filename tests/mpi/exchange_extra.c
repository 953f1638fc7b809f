/*
 * What does not belong to a pattern: probes, cancelled receives, messages that do not fit.
 */
#include "exchange.h"

#include <stdlib.h>
#include <string.h>

#define TAG_NEVER    29999
#define TAG_TRUNCATE 29998

/* --- probes -------------------------------------------------------------------------------- */

/* MPI_Probe or a loop of MPI_Iprobe, then MPI_Recv of what was found. */
static void recv_probed(struct round *round, int source, int tag, struct op *op, MPI_Status *status)
{
    MPI_Comm comm = round->ex->comm;
    MPI_Status found;
    int flag = test_chance(&round->own, 2), n_bytes;

    if (flag)
        MPI_Probe(source, tag, comm, &found);
    while (!flag)
        MPI_Iprobe(source, tag, comm, &flag, &found);
    MPI_Get_count(&found, MPI_PACKED, &n_bytes);
    op_make_wild(op, found.MPI_SOURCE, found.MPI_TAG, n_bytes);
    MPI_Recv(op->origin, op->count, MPI_PACKED, op->peer, op->tag, comm, status);
}

/* MPI_Mprobe or MPI_Improbe, then MPI_Mrecv or MPI_Imrecv. */
static void recv_matched(struct round *round, int source, int tag, struct op *op,
                         MPI_Status *status)
{
    MPI_Comm comm = round->ex->comm;
    MPI_Message message;
    MPI_Request request;
    int flag = test_chance(&round->own, 2), n_bytes;

    if (flag)
        MPI_Mprobe(source, tag, comm, &message, status);
    while (!flag)
        MPI_Improbe(source, tag, comm, &flag, &message, status);
    MPI_Get_count(status, MPI_PACKED, &n_bytes);
    op_make_wild(op, status->MPI_SOURCE, status->MPI_TAG, n_bytes);
    if (test_chance(&round->own, 2)) {
        MPI_Mrecv(op->origin, op->count, MPI_PACKED, &message, status);
        return;
    }
    MPI_Imrecv(op->origin, op->count, MPI_PACKED, &message, &request);
    MPI_Wait(&request, status);
}

static uint64_t recv_one(struct round *round, int source, int tag)
{
    struct op op;
    MPI_Status status;
    uint64_t hash = 0;

    if (test_chance(&round->own, 2))
        recv_probed(round, source, tag, &op, &status);
    else
        recv_matched(round, source, tag, &op, &status);
    op.msg = round_take(round, status.MPI_SOURCE, tag);
    if (op.msg == NULL)
        test_fail("no message of source %d tag %d was sent", status.MPI_SOURCE, status.MPI_TAG);
    else
        hash = op_check(&op, &status, round->ex->comm);
    op_free(&op);
    return hash;
}

/* The receives in their order, some by wildcards as in make_wild of exchange_run.c: by any rank and
 * tag, by tag, by source, or exactly. */
uint64_t round_by_probes(struct round *round)
{
    int kind = test_below(&round->own, 4);
    uint64_t hash = 0;

    for (int i = 0; i < round->n_recvs; i++) {
        const struct op *op = round->ops[i];
        int peer = kind < 2 ? MPI_ANY_SOURCE : op->peer;
        int tag = kind == 0 || kind == 2 ? MPI_ANY_TAG : op->tag;
        if (op->msg != NULL)
            hash += recv_one(round, peer, tag);
    }
    MPI_Waitall(round->n - round->n_recvs, round->requests + round->n_recvs, MPI_STATUSES_IGNORE);
    return hash;
}

/* --- cancel -------------------------------------------------------------------------------- */

MPI_Request extra_irecv(struct round *round, int *buffer)
{
    int peer = test_below(&round->own, round->ex->n_ranks);
    MPI_Request request;

    MPI_Irecv(buffer, 1, MPI_INT, test_chance(&round->own, 2) ? peer : MPI_ANY_SOURCE, TAG_NEVER,
              round->ex->comm, &request);
    return request;
}

void extra_cancel(MPI_Request *request)
{
    MPI_Status status;
    int cancelled;

    MPI_Cancel(request);
    MPI_Wait(request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    if (!cancelled)
        test_fail("a receive that nothing matches was not cancelled");
}

/* --- messages that do not fit -------------------------------------------------------------- */

static void expect_truncation(int code, const char *what)
{
    int class = code;

    MPI_Error_class(code, &class);
    if (class != MPI_ERR_TRUNCATE)
        test_fail("%s: error class %d instead of MPI_ERR_TRUNCATE", what, class);
}

/* Two receives: of the message that does not fit, and of one that does. */
static void truncated_waitall(int src, MPI_Comm comm)
{
    char small[16], fits[8];
    MPI_Request requests[2];
    MPI_Status statuses[2];
    int code;

    MPI_Irecv(small, (int)sizeof small, MPI_BYTE, src, TAG_TRUNCATE, comm, &requests[0]);
    MPI_Irecv(fits, (int)sizeof fits, MPI_BYTE, src, TAG_TRUNCATE, comm, &requests[1]);
    code = MPI_Waitall(2, requests, statuses);
    if (statuses[1].MPI_ERROR == MPI_ERR_PENDING) /* as MPICH does */
        statuses[1].MPI_ERROR = MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    if (code != MPI_ERR_IN_STATUS || statuses[1].MPI_ERROR != MPI_SUCCESS)
        test_fail("Waitall: code %d, of the receive that fits %d", code, statuses[1].MPI_ERROR);
    else
        expect_truncation(statuses[0].MPI_ERROR, "Waitall");
    if (memcmp(fits, "carpool", 8) != 0)
        test_fail("the message after the one that did not fit is wrong");
}

static void truncated_single(int kind, int src, MPI_Comm comm)
{
    static const char *const names[] = {"Recv", "Wait", "Test", "Waitany"};
    char small[16], fits[8];
    MPI_Request request;
    int code, flag = 0, index;

    if (kind == 0) {
        code = MPI_Recv(small, 16, MPI_BYTE, src, TAG_TRUNCATE, comm, MPI_STATUS_IGNORE);
    } else {
        MPI_Irecv(small, 16, MPI_BYTE, src, TAG_TRUNCATE, comm, &request);
        code = MPI_SUCCESS;
        if (kind == 1)
            code = MPI_Wait(&request, MPI_STATUS_IGNORE);
        while (kind == 2 && !flag && code == MPI_SUCCESS)
            code = MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        if (kind == 3)
            code = MPI_Waitany(1, &request, &index, MPI_STATUS_IGNORE);
    }
    expect_truncation(code, names[kind]);
    MPI_Recv(fits, 8, MPI_BYTE, src, TAG_TRUNCATE, comm, MPI_STATUS_IGNORE);
    if (memcmp(fits, "carpool", 8) != 0)
        test_fail("the message after the one that did not fit is wrong");
}

/* MPICH reports errors of receives that were complete at once by a predefined communicator's. */
static void set_handlers(MPI_Comm comm, MPI_Errhandler handler)
{
    MPI_Comm_set_errhandler(comm, handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
}

void extra_truncate(struct round *round)
{
    static const char large[6000], fits[8] = "carpool";
    struct test_rng rng = {test_key(round->key, 4)};
    int kind = test_below(&rng, 5), n = test_chance(&rng, 2) ? 6000 : 17;
    MPI_Comm comm = round->ex->comm;
    const struct message *msg = round->list.n > 0 ? &round->list.items[0] : NULL;

    if (msg == NULL || msg->src == msg->dst)
        return;
    set_handlers(comm, MPI_ERRORS_RETURN);
    if (round->ex->rank == msg->src) {
        MPI_Send(large, n, MPI_BYTE, msg->dst, TAG_TRUNCATE, comm);
        MPI_Send(fits, 8, MPI_BYTE, msg->dst, TAG_TRUNCATE, comm);
    } else if (round->ex->rank == msg->dst) {
        if (kind == 4)
            truncated_waitall(msg->src, comm);
        else
            truncated_single(kind, msg->src, comm);
    }
    set_handlers(comm, MPI_ERRORS_ARE_FATAL);
}
