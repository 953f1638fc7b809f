/* How soon something can be at many ranks (lower_bound_reach.h): the ranks in the order in which
 * they know. All nodes spread what they know alike, so that each only needs to be told when its
 * first rank knows; a message to another node always goes to one where nobody knows yet. */
#include "planner/plan/lower_bound_reach.h"

#include "planner/base/heap.h"

#include <stdbool.h>

/* A rank that knows at us. */
struct knows {
    double us;
    double node_us;   /* when the first rank of its node knew */
    double sender_us; /* between two messages of the rank that told it */
    int32_t place;    /* the how many-th of its node it is, from 0 */
    bool home;        /* it is on the first rank's node */
};

static bool knows_sooner(const struct knows *a, const struct knows *b)
{
    return a->us < b->us;
}

CPL_HEAP(queue, struct knows, knows_sooner)

/* When the ranks of a node know, after its first one, which takes first_us from one message to the
 * next: n entries of after_us. Heap has room for 2 n. */
static void spread(const struct cpl_reach_messages *inside, double first_us, int32_t n,
                   struct knows *heap, double *after_us)
{
    int64_t waiting = 0;
    after_us[0] = 0;
    queue_push(heap, waiting++,
               (struct knows){.us = first_us + inside->way_us, .sender_us = first_us});
    for (int32_t k = 1; k < n; k++) {
        struct knows next = queue_pop(heap, waiting--);
        after_us[k] = next.us;
        queue_push(heap, waiting++,
                   (struct knows){.us = next.us + next.sender_us, .sender_us = next.sender_us});
        queue_push(heap, waiting++,
                   (struct knows){.us = next.us + inside->next_us + inside->way_us,
                                  .sender_us = inside->next_us});
    }
}

/* Whom a rank that knows tells: the next one of its node comes to know, and the first of another
 * node; and when that one has been told, the next of another node. Returns how many wait then. */
static int64_t tell(const struct cpl_reach *reach, const struct knows *rank, const double *after_us,
                    struct knows *heap, int64_t waiting)
{
    bool is_first = rank->home && rank->place == 0;
    double sender_us = is_first ? reach->between.first_us : reach->between.next_us;
    if (rank->place + 1 < reach->ranks_of_node)
        queue_push(heap, waiting++,
                   (struct knows){.us = rank->node_us + after_us[rank->place + 1],
                                  .node_us = rank->node_us,
                                  .place = rank->place + 1,
                                  .home = rank->home});
    if (reach->n_nodes == 1)
        return waiting;
    double us = rank->us + sender_us + reach->between.way_us;
    queue_push(heap, waiting++, (struct knows){us, us, sender_us, 0, false});
    if (rank->place == 0 && !rank->home) {
        us = rank->us + rank->sender_us;
        queue_push(heap, waiting++, (struct knows){us, us, rank->sender_us, 0, false});
    }
    return waiting;
}

enum cpl_status cpl_reach_times(const struct cpl_reach *reach, int64_t n_all, int64_t n_far,
                                double *all_us, double *far_us)
{
    struct cpl_arena arena = CPL_ARENA_EMPTY;
    int32_t in_node = reach->ranks_of_node;
    int64_t most = n_all + n_far + in_node + 2;
    struct knows *heap = CPL_ARENA_ARRAY(&arena, struct knows, 3 * most);
    double *home_us = CPL_ARENA_ARRAY(&arena, double, in_node);
    double *other_us = CPL_ARENA_ARRAY(&arena, double, in_node);
    int64_t waiting = 0, all = -1, far = 0;
    *all_us = *far_us = 0;
    if (!heap || !home_us || !other_us) {
        cpl_arena_free(&arena);
        return CPL_ERR_NOMEM;
    }
    spread(&reach->inside, reach->inside.first_us, in_node, heap, home_us);
    spread(&reach->inside, reach->inside.next_us, in_node, heap, other_us);
    queue_push(heap, waiting++, (struct knows){.home = true});
    while ((all < n_all || far < n_far) && waiting > 0) {
        struct knows rank = queue_pop(heap, waiting--);
        all++;
        far += !rank.home;
        if (all == n_all)
            *all_us = rank.us;
        if (far == n_far && !rank.home)
            *far_us = rank.us;
        waiting = tell(reach, &rank, rank.home ? home_us : other_us, heap, waiting);
    }
    cpl_arena_free(&arena);
    return CPL_OK;
}
