/* Ordering sends, all ranks together (send_order.h). */
#include "shim/meet/send_order.h"
#include "shim/meet/agree.h"

#include "planner/order.h"
#include "shim/wait/collective.h"

#include <stdlib.h>

bool cpl_send_order_make(struct cpl_send_order *o, int rank, int n_ranks, int most_sends)
{
    size_t n = (size_t)n_ranks, most = (size_t)most_sends + 1;
    *o = (struct cpl_send_order){.rank = rank,
                                 .n_ranks = n_ranks,
                                 .key = calloc(n, sizeof *o->key),
                                 .given = calloc(most, sizeof *o->given),
                                 .to = calloc(most, sizeof *o->to),
                                 .weight = calloc(most, sizeof *o->weight),
                                 .order = calloc(most, sizeof *o->order),
                                 .wide = calloc(2 * n + 1, sizeof *o->wide),
                                 .when = calloc(2 * (2 * n + 2), sizeof *o->when)};
    return o->key && o->given && o->to && o->weight && o->order && o->wide && o->when;
}

void cpl_send_order_free(struct cpl_send_order *o)
{
    free(o->key);
    free(o->given);
    free(o->to);
    free(o->weight);
    free(o->order);
    free(o->wide);
    free(o->when);
    *o = (struct cpl_send_order){.rank = 0};
}

/* The lists of all ranks, of which this rank's only is filled. */
static bool sort_list(struct cpl_send_order *o)
{
    int64_t *key = o->wide, *first = o->wide + o->n_ranks;
    struct cpl_error error;
    for (int i = 0; i < o->n_ranks; i++) {
        key[i] = o->key[i];
        first[i + 1] = i >= o->rank ? o->n : 0;
    }
    return !cpl_order_sends(o->n_ranks, first, o->to, key, o->order, &error);
}

static void note_arrival(int32_t *when, int32_t to, int32_t at)
{
    when[to] = at > when[to] ? at : when[to];
}

/* When the receivers have this rank's messages in the order of before, and in the new one; when[i]
 * becomes the time at which rank i has all. */
static void time_given(const struct cpl_send_order *o, int32_t *when)
{
    for (int k = 0; k < o->n_given; k++)
        note_arrival(when, o->given[k], k + 1);
    note_arrival(when, o->rank, o->n_given);
}

static void time_ordered(const struct cpl_send_order *o, int32_t *when)
{
    int32_t at = 0;
    for (int k = 0; k < o->n; k++) {
        at += o->weight[o->order[k]];
        note_arrival(when, o->to[o->order[k]], at);
    }
    note_arrival(when, o->rank, at);
}

static int32_t find_last(const struct cpl_send_order *o, const int32_t *when)
{
    int32_t last = 0;
    for (int i = 0; i < o->n_ranks; i++)
        last = when[i] + o->key[i] > last ? when[i] + o->key[i] : last;
    return last;
}

bool cpl_send_order_find(MPI_Comm comm, struct cpl_send_order *o, struct cpl_order_units *units)
{
    int n = 2 * o->n_ranks + 2;
    int32_t *mine = o->when, *all = o->when + n, most_key = 0;
    if (!cpl_agree_all(comm, sort_list(o)))
        return false;
    for (int k = 0; k < n; k++)
        mine[k] = 0;
    time_given(o, mine);
    time_ordered(o, mine + o->n_ranks);
    mine[n - 2] = o->n_given + o->key[o->rank];
    mine[n - 1] = o->n_given;
    if (cpl_collective_Allreduce(mine, all, n, MPI_INT32_T, MPI_MAX, comm) != MPI_SUCCESS)
        return false;
    for (int i = 0; i < o->n_ranks; i++)
        most_key = o->key[i] > most_key ? o->key[i] : most_key;
    *units = (struct cpl_order_units){.given = find_last(o, all),
                                      .ordered = find_last(o, all + o->n_ranks),
                                      .least = all[n - 2],
                                      .most = all[n - 1] + most_key};
    return units->ordered < units->given;
}
