/*
 * Messages on communicators of fewer ranks than MPI_COMM_WORLD, several of them and overlapping:
 * rows and columns of a grid of ranks, the ranks of the same parity, all but the last. Each has an
 * exchange that recurs and collectives of its own; the world reduces now and then.
 *
 *   parts [--iterations N] [--deviate WHAT] [--whole] [--borrow] [--copied]
 *         [--form messages|neighbor|persistent]
 *
 * With --whole each has all ranks, in different orders. With --whole or --borrow they have no
 * collectives: only the world reduces. With --copied each is a copy, or a copy of a copy, of the
 * one that is made, which is freed. The exchanges are messages, or MPI_Ineighbor_alltoallv (not
 * with wild, ssend); persistent: those of rows MPI_Neighbor_alltoallv_init, made when the
 * communicator is made.
 *
 * WHAT, in the second half: none; recreate (rows are freed and made anew), wild (receives from
 * anybody), large (messages above the size limit), ssend, silent (a rank in three skips the
 * exchange of its row), window (fences over all ranks between the exchanges), leave (the parts are
 * freed one after the other, the world goes on), crossed (ranks complete the exchanges of two
 * communicators together, in different orders).
 */
#include "common.h"

#include <stdlib.h>
#include <string.h>

#define MOST_PEERS  3
#define SHORT_BYTES 24
#define MOST_BYTES  20000
#define TAG         5
#define N_PARTS     4

enum deviation { NONE, RECREATE, WILD, LARGE, SSEND, SILENT, WINDOW, LEAVE, CROSSED };
static const char *const names[] = {"none",   "recreate", "wild",  "large",   "ssend",
                                    "silent", "window",   "leave", "crossed", NULL};

enum form { MESSAGES, NEIGHBOR, PERSISTENT };
static const char *const forms[] = {"messages", "neighbor", "persistent", NULL};

struct part {
    MPI_Comm comm; /* MPI_COMM_NULL: this rank is not in it */
    int number, rank, size, n_peers;
    int bytes;
    unsigned char *out[MOST_PEERS], *in[MOST_PEERS];
    MPI_Request request[2 * MOST_PEERS];
    int n_requests;
    /* of collectives: */
    int out_count[MOST_PEERS], in_count[MOST_PEERS], displs[MOST_PEERS];
    MPI_Request persistent;
};

static struct part parts[N_PARTS];
static enum deviation deviation;
static enum form form;
static int width;
static bool whole, borrow, copied;

/* The members of each part, as a colour; MPI_UNDEFINED: not in it. */
static int colour(int number)
{
    int rank = test_rank();
    if (whole)
        return 0;
    if (number == 0)
        return rank / width;
    if (number == 1)
        return rank % width;
    if (number == 2)
        return rank % 2;
    return rank < test_size() - 1 ? 0 : MPI_UNDEFINED;
}

static int after(const struct part *part, int distance)
{
    return (part->rank + distance) % part->size;
}

static int before(const struct part *part, int distance)
{
    return (part->rank + part->size - distance) % part->size;
}

/* Gives the part a communicator with its neighbours, and its persistent request. */
static void make_graph(struct part *part)
{
    int from[MOST_PEERS], to[MOST_PEERS];
    MPI_Comm plain = part->comm;
    for (int k = 0; k < part->n_peers; k++) {
        from[k] = before(part, k + 1);
        to[k] = after(part, k + 1);
        part->displs[k] = k * MOST_BYTES;
        part->out_count[k] = part->in_count[k] = SHORT_BYTES;
    }
    MPI_Dist_graph_create_adjacent(plain, part->n_peers, from, MPI_UNWEIGHTED, part->n_peers, to,
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &part->comm);
    MPI_Comm_free(&plain);
    if (form == PERSISTENT && part->number == 0)
        MPI_Neighbor_alltoallv_init(part->out[0], part->out_count, part->displs, MPI_BYTE,
                                    part->in[0], part->in_count, part->displs, MPI_BYTE, part->comm,
                                    MPI_INFO_NULL, &part->persistent);
}

/* Some ranks make a further one, or none, that nobody uses. */
static void copy(struct part *part)
{
    for (int n = 1 + part->number % 2; n > 0; n--) {
        MPI_Comm plain = part->comm, unused = MPI_COMM_NULL;
        MPI_Comm_dup(plain, &part->comm);
        MPI_Comm_split(plain, test_rank() % 3 ? 0 : MPI_UNDEFINED, 0, &unused);
        if (unused != MPI_COMM_NULL)
            MPI_Comm_free(&unused);
        MPI_Comm_free(&plain);
    }
}

static void make_part(int number)
{
    struct part *part = &parts[number];
    int size = test_size(), periodic = 1, key = whole && number % 2 ? -test_rank() : test_rank();
    if (whole && number == 0)
        MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &part->comm);
    else
        MPI_Comm_split(MPI_COMM_WORLD, colour(number), key, &part->comm);
    part->number = number;
    part->n_peers = 0;
    if (part->comm == MPI_COMM_NULL)
        return;
    if (copied)
        copy(part);
    MPI_Comm_rank(part->comm, &part->rank);
    MPI_Comm_size(part->comm, &part->size);
    part->n_peers = part->size - 1 < MOST_PEERS ? part->size - 1 : MOST_PEERS;
    part->persistent = MPI_REQUEST_NULL;
    if (form == NEIGHBOR || form == PERSISTENT)
        make_graph(part);
}

static void free_part(struct part *part)
{
    if (part->persistent != MPI_REQUEST_NULL)
        MPI_Request_free(&part->persistent);
    MPI_Comm_free(&part->comm);
}

static uint64_t key_of(const struct part *part, int iteration, int from, int to)
{
    return test_key(test_key(test_key((uint64_t)part->number, iteration), from), to);
}

/* Whether a rank of the part takes part in this iteration. */
static bool takes_part(const struct part *part, int iteration, int rank)
{
    return deviation != SILENT || part->number != 0 || (rank + iteration) % 3 != 0;
}

/* Starts the exchange as a neighborhood collective. */
static void start_collective(struct part *part, int iteration, bool deviates)
{
    bool varies = deviates && (deviation == SILENT || deviation == LARGE);
    for (int k = 0; k < part->n_peers; k++) {
        int to = after(part, k + 1), from = before(part, k + 1);
        bool goes = takes_part(part, iteration, part->rank) && takes_part(part, iteration, to);
        bool comes = takes_part(part, iteration, part->rank) && takes_part(part, iteration, from);
        part->out_count[k] = deviates && !goes ? 0 : part->bytes;
        part->in_count[k] = deviates && !comes ? 0 : part->bytes;
        test_stream(key_of(part, iteration, part->rank, to), 0, (size_t)part->bytes, part->out[k]);
    }
    if (part->persistent != MPI_REQUEST_NULL && !varies)
        MPI_Start(&part->persistent);
    else
        MPI_Ineighbor_alltoallv(part->out[0], part->out_count, part->displs, MPI_BYTE, part->in[0],
                                part->in_count, part->displs, MPI_BYTE, part->comm,
                                &part->request[part->n_requests++]);
}

static void start(struct part *part, int iteration, bool deviates)
{
    bool wild = deviates && deviation == WILD;
    part->bytes = deviates && deviation == LARGE ? MOST_BYTES : SHORT_BYTES;
    part->n_requests = 0;
    if (form != MESSAGES) {
        start_collective(part, iteration, deviates);
        return;
    }
    for (int k = 0; k < part->n_peers; k++) {
        int from = before(part, k + 1);
        if (deviates &&
            !(takes_part(part, iteration, part->rank) && takes_part(part, iteration, from)))
            continue;
        MPI_Irecv(part->in[k], part->bytes, MPI_BYTE, wild ? MPI_ANY_SOURCE : from, TAG + k,
                  part->comm, &part->request[part->n_requests++]);
    }
    for (int k = 0; k < part->n_peers; k++) {
        int to = after(part, k + 1);
        if (deviates &&
            !(takes_part(part, iteration, part->rank) && takes_part(part, iteration, to)))
            continue;
        test_stream(key_of(part, iteration, part->rank, to), 0, (size_t)part->bytes, part->out[k]);
        if (deviates && deviation == SSEND)
            MPI_Issend(part->out[k], part->bytes, MPI_BYTE, to, TAG + k, part->comm,
                       &part->request[part->n_requests++]);
        else
            MPI_Isend(part->out[k], part->bytes, MPI_BYTE, to, TAG + k, part->comm,
                      &part->request[part->n_requests++]);
    }
}

static void complete(struct part *part, int iteration, bool deviates)
{
    unsigned char expected[MOST_BYTES];
    if (part->persistent != MPI_REQUEST_NULL && part->n_requests == 0)
        MPI_Wait(&part->persistent, MPI_STATUS_IGNORE);
    MPI_Waitall(part->n_requests, part->request, MPI_STATUSES_IGNORE);
    for (int k = 0; k < part->n_peers; k++) {
        int from = before(part, k + 1);
        if (deviates &&
            !(takes_part(part, iteration, part->rank) && takes_part(part, iteration, from)))
            continue;
        test_stream(key_of(part, iteration, from, part->rank), 0, (size_t)part->bytes, expected);
        if (memcmp(expected, part->in[k], (size_t)part->bytes) != 0)
            test_fail("part %d, iteration %d: wrong bytes from %d", part->number, iteration, from);
    }
}

static void reduce(MPI_Comm comm, int iteration)
{
    int size, sum = 0;
    MPI_Comm_size(comm, &size);
    MPI_Allreduce(&iteration, &sum, 1, MPI_INT, MPI_SUM, comm);
    if (sum != size * iteration)
        test_fail("iteration %d: sum %d", iteration, sum);
}

/* Two exchanges under way together; ranks complete them in one order or the other. */
static void cross(int iteration)
{
    struct part *first = &parts[test_rank() % 2], *second = &parts[1 - test_rank() % 2];
    start(first, iteration, true);
    start(second, iteration, true);
    complete(second, iteration, true);
    complete(first, iteration, true);
}

static void iterate(int iteration, bool deviates, MPI_Win window)
{
    if (deviates && deviation == CROSSED)
        cross(iteration);
    for (int number = 0; number < N_PARTS; number++) {
        struct part *part = &parts[number];
        if (part->comm == MPI_COMM_NULL)
            continue;
        start(part, iteration, deviates);
        complete(part, iteration, deviates);
        if (!whole && !borrow && (number % 2 == 0 || iteration % 2 == 0))
            reduce(part->comm, iteration);
    }
    if (deviates && deviation == WINDOW)
        MPI_Win_fence(0, window);
    reduce(MPI_COMM_WORLD, iteration);
}

static void deviate_once(int iteration, int first)
{
    int number = iteration - first;
    if (deviation == RECREATE && number % 4 == 0) {
        free_part(&parts[0]);
        make_part(0);
    }
    if (deviation == LEAVE && number < N_PARTS && parts[number].comm != MPI_COMM_NULL)
        free_part(&parts[number]);
}

int main(int argc, char **argv)
{
    static const char *const known[] = {"--iterations", "--deviate", "--whole", "--borrow",
                                        "--copied",     "--form",    NULL};
    MPI_Win window;

    test_start(&argc, &argv, known);
    int n = (int)test_option(argc, argv, "--iterations", 80);
    deviation = (enum deviation)test_find_name(test_option_text(argc, argv, "--deviate", "none"),
                                               names, NULL);
    form =
        (enum form)test_find_name(test_option_text(argc, argv, "--form", "messages"), forms, NULL);
    whole = test_flag(argc, argv, "--whole");
    borrow = test_flag(argc, argv, "--borrow");
    copied = test_flag(argc, argv, "--copied");
    width = test_size() % 4 == 0 ? 4 : 3;
    for (int number = 0; number < N_PARTS; number++) {
        parts[number].out[0] = test_alloc((size_t)MOST_PEERS * MOST_BYTES);
        parts[number].in[0] = test_alloc((size_t)MOST_PEERS * MOST_BYTES);
        for (int k = 1; k < MOST_PEERS; k++) {
            parts[number].out[k] = parts[number].out[k - 1] + MOST_BYTES;
            parts[number].in[k] = parts[number].in[k - 1] + MOST_BYTES;
        }
        make_part(number);
    }
    MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    for (int iteration = 0; iteration < n; iteration++) {
        if (iteration >= n / 2)
            deviate_once(iteration, n / 2);
        iterate(iteration, iteration >= n / 2 && iteration % 3 != 0, window);
    }
    MPI_Win_free(&window);
    for (int number = 0; number < N_PARTS; number++) {
        if (parts[number].comm != MPI_COMM_NULL && number != 2) /* one is left to MPI_Finalize */
            free_part(&parts[number]);
        free(parts[number].out[0]);
        free(parts[number].in[0]);
    }
    return test_finish();
}
