/* Ordering sends, all ranks together (send_order.h). */
#include "shim/meet/send_order.h"
#include "shim/meet/agree.h"

#include "shim/state/comm_state.h"
#include "shim/wait/collective.h"

#include <stdlib.h>
#include <string.h>

struct send {
    int32_t key, to, message;
};

/* By descending key of the receiver, then by its rank. */
static int compare(const void *a, const void *b)
{
    const struct send *x = a, *y = b;
    if (x->key != y->key)
        return x->key > y->key ? -1 : 1;
    int by_rank = (x->to > y->to) - (x->to < y->to);
    return by_rank ? by_rank : (x->message > y->message) - (x->message < y->message);
}

/* when[i]: when rank i has all that this rank sends it; of this rank: when it has sent all. */
static void note_times(int rank, const struct send *sends, int32_t n, int32_t *when)
{
    for (int32_t k = 0; k < n; k++)
        when[sends[k].to] = k + 1;
    when[rank] = n;
}

static int32_t find_last(const int32_t *key, const int32_t *when, int n_ranks)
{
    int32_t last = 0;
    for (int i = 0; i < n_ranks; i++)
        last = when[i] + key[i] > last ? when[i] + key[i] : last;
    return last;
}

/* Sorts the sends. mine: zeroed room for the times of this rank and of all, in both orders. */
static bool sort(const struct cpl_comm_state *state, struct send *sends, int32_t n,
                 const int32_t *key, int32_t *mine, struct cpl_order_units *units)
{
    int n_ranks = state->size;
    int32_t *all = mine + 2 * (size_t)n_ranks;
    for (int32_t k = 0; k < n; k++)
        sends[k].key = key[sends[k].to];
    note_times(state->rank, sends, n, mine);
    qsort(sends, (size_t)n, sizeof *sends, compare);
    note_times(state->rank, sends, n, mine + n_ranks);
    if (cpl_collective_Allreduce(mine, all, 2 * n_ranks, MPI_INT32_T, MPI_MAX,
                                 state->private_comm) != MPI_SUCCESS)
        return false;
    struct cpl_order_units both = {find_last(key, all, n_ranks),
                                   find_last(key, all + n_ranks, n_ranks)};
    if (both.ordered >= both.given)
        return false;
    *units = both;
    return true;
}

bool cpl_send_order_find(const struct cpl_comm_state *state, int32_t next, int32_t *list, int32_t n,
                         const int32_t *to, struct cpl_order_units *units)
{
    size_t n_ranks = (size_t)state->size;
    int32_t *key = calloc(5 * n_ranks, sizeof *key);
    struct send *sends = calloc((size_t)n + 1, sizeof *sends);
    for (int32_t k = 0; k < n && list && sends; k++)
        sends[k] = (struct send){.to = to[list[k]], .message = list[k]};
    bool better = cpl_agree_all(state->private_comm, key && sends && list) &&
                  cpl_collective_Allgather(&next, 1, MPI_INT32_T, key, 1, MPI_INT32_T,
                                           state->private_comm) == MPI_SUCCESS &&
                  sort(state, sends, n, key, key + n_ranks, units);
    for (int32_t k = 0; k < n && better; k++)
        list[k] = sends[k].message;
    free(key);
    free(sends);
    return better;
}
