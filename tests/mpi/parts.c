/*
 * Messages on communicators of fewer ranks than MPI_COMM_WORLD, several of them and overlapping:
 * rows and columns of a grid of ranks, the ranks of the same parity, all but the last. Each has an
 * exchange that recurs and collectives of its own; the world reduces now and then.
 *
 *   parts [--iterations N] [--deviate WHAT] [--whole]
 *
 * With --whole each has all ranks, in different orders, and no collectives: only the world reduces.
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

#define MOST_PEERS 3
#define MOST_BYTES 20000
#define TAG        5
#define N_PARTS    4

enum deviation { NONE, RECREATE, WILD, LARGE, SSEND, SILENT, WINDOW, LEAVE, CROSSED };
static const char *const names[] = {"none",   "recreate", "wild",  "large",   "ssend",
                                    "silent", "window",   "leave", "crossed", NULL};

struct part {
    MPI_Comm comm; /* MPI_COMM_NULL: this rank is not in it */
    int number, rank, size, n_peers;
    int bytes;
    unsigned char *out[MOST_PEERS], *in[MOST_PEERS];
    MPI_Request request[2 * MOST_PEERS];
    int n_requests;
};

static struct part parts[N_PARTS];
static enum deviation deviation;
static int width;
static bool whole;

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
    MPI_Comm_rank(part->comm, &part->rank);
    MPI_Comm_size(part->comm, &part->size);
    part->n_peers = part->size - 1 < MOST_PEERS ? part->size - 1 : MOST_PEERS;
}

static uint64_t key_of(const struct part *part, int iteration, int from, int to)
{
    return test_key(test_key(test_key((uint64_t)part->number, iteration), from), to);
}

static int after(const struct part *part, int distance)
{
    return (part->rank + distance) % part->size;
}

static int before(const struct part *part, int distance)
{
    return (part->rank + part->size - distance) % part->size;
}

/* Whether a rank of the part takes part in this iteration. */
static bool takes_part(const struct part *part, int iteration, int rank)
{
    return deviation != SILENT || part->number != 0 || (rank + iteration) % 3 != 0;
}

static void start(struct part *part, int iteration, bool deviates)
{
    bool wild = deviates && deviation == WILD;
    part->bytes = deviates && deviation == LARGE ? MOST_BYTES : 24;
    part->n_requests = 0;
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
        if (!whole && (number % 2 == 0 || iteration % 2 == 0))
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
        MPI_Comm_free(&parts[0].comm);
        make_part(0);
    }
    if (deviation == LEAVE && number < N_PARTS && parts[number].comm != MPI_COMM_NULL)
        MPI_Comm_free(&parts[number].comm);
}

int main(int argc, char **argv)
{
    static const char *const known[] = {"--iterations", "--deviate", "--whole", NULL};
    MPI_Win window;

    test_start(&argc, &argv, known);
    int n = (int)test_option(argc, argv, "--iterations", 80);
    deviation = (enum deviation)test_find_name(test_option_text(argc, argv, "--deviate", "none"),
                                               names, NULL);
    whole = test_flag(argc, argv, "--whole");
    width = test_size() % 4 == 0 ? 4 : 3;
    for (int number = 0; number < N_PARTS; number++) {
        for (int k = 0; k < MOST_PEERS; k++) {
            parts[number].out[k] = test_alloc(MOST_BYTES);
            parts[number].in[k] = test_alloc(MOST_BYTES);
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
        for (int k = 0; k < MOST_PEERS; k++) {
            free(parts[number].out[k]);
            free(parts[number].in[k]);
        }
        if (parts[number].comm != MPI_COMM_NULL && number != 2) /* one is left to MPI_Finalize */
            MPI_Comm_free(&parts[number].comm);
    }
    return test_finish();
}
