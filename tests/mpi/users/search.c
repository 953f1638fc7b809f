/*
 * A program as users write it: a search whose states belong to ranks by a hash. In each round every
 * rank sends the successors of its states to their owners, and receives its own from whoever sends.
 *
 *   search [ROUNDS [STATES]]
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 4 }; /* successors of a state */

static uint64_t hash(uint64_t x)
{
    x = (x ^ x >> 31) * 0x9e3779b97f4a7c15;
    x = (x ^ x >> 27) * 0xbf58476d1ce4e5b9;
    return x ^ x >> 29;
}

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    int n_rounds = argc > 1 ? atoi(argv[1]) : 60, most = argc > 2 ? atoi(argv[2]) : 12;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    uint64_t *states = calloc((size_t)most, sizeof *states),
             *next = calloc((size_t)most, sizeof *next);
    uint64_t *sent = calloc((size_t)most * MOST, sizeof *sent), sum = 0, all = 0;
    MPI_Request *requests = calloc((size_t)most * MOST, sizeof(MPI_Request));
    int *counts = calloc((size_t)size, sizeof *counts), n = 1;
    states[0] = hash((uint64_t)rank);
    for (int round = 0; round < n_rounds; round++) {
        int n_sent = 0, n_coming = 0, n_next = 0;
        for (int r = 0; r < size; r++)
            counts[r] = 0;
        for (int k = 0; k < n; k++)
            for (int s = 0; s < 1 + (int)(states[k] % MOST); s++) {
                sent[n_sent] = hash(states[k] + (uint64_t)s + 1);
                int owner = (int)(sent[n_sent] % (uint64_t)size);
                counts[owner]++;
                MPI_Isend(&sent[n_sent], 1, MPI_UINT64_T, owner, round % 2, MPI_COMM_WORLD,
                          &requests[n_sent]);
                n_sent++;
            }
        MPI_Reduce_scatter_block(counts, &n_coming, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        for (int k = 0; k < n_coming; k++) {
            uint64_t state;
            MPI_Recv(&state, 1, MPI_UINT64_T, MPI_ANY_SOURCE, round % 2, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
            sum += state;
            /* the least ones are kept, in whatever order they come */
            int at = n_next < most ? n_next++ : most - 1;
            if (at == most - 1 && n_next == most && next[at] != 0 && next[at] <= state)
                continue;
            for (; at > 0 && next[at - 1] > state; at--)
                next[at] = next[at - 1];
            next[at] = state;
        }
        MPI_Waitall(n_sent, requests, MPI_STATUSES_IGNORE);
        for (int k = 0; k < n_next; k++) {
            states[k] = next[k];
            next[k] = 0;
        }
        n = n_next;
    }
    MPI_Reduce(&sum, &all, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d rounds, sum %llu\n", n_rounds, (unsigned long long)all);
    free(states);
    free(next);
    free(sent);
    free(requests);
    free(counts);
    MPI_Finalize();
    return 0;
}
