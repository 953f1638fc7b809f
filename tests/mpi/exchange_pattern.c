/*
 * Patterns of the program `exchange`, and the messages of an iteration; the same on all ranks.
 */
#include "exchange.h"

#include <stdlib.h>
#include <string.h>

#define MAX_DEGREE 6
#define TAGS       4 /* different ones within a pattern */

const char *const deviation_names[N_DEVIATIONS + 1] = {
    "silent",   "double",   "larger",   "reorder", "newpeer", "self",
    "procnull", "wildcard", "probe",    "freed",   "slow",    "barrier",
    "cancel",   "truncate", "commfree", "die",     NULL,
};

int message_size(const struct message *msg)
{
    return msg->n * msg->unit * msg->base.size;
}

static struct message *list_add(struct list *list, struct message msg)
{
    if (list->n == list->n_allocated) {
        list->n_allocated = 2 * list->n_allocated + 16;
        list->items = realloc(list->items, (size_t)list->n_allocated * sizeof *list->items);
        if (list->items == NULL)
            abort();
    }
    list->items[list->n] = msg;
    return &list->items[list->n++];
}

static void list_remove_pair(struct list *list, int src, int dst)
{
    int n = 0;
    for (int i = 0; i < list->n; i++) {
        if (list->items[i].src != src || list->items[i].dst != dst)
            list->items[n++] = list->items[i];
    }
    list->n = n;
}

void list_free(struct list *list)
{
    free(list->items);
    *list = (struct list){0};
}

static void list_shuffle(struct list *list, struct test_rng *rng)
{
    for (int i = list->n - 1; i > 0; i--) {
        int other = test_below(rng, i + 1);
        struct message msg = list->items[i];
        list->items[i] = list->items[other];
        list->items[other] = msg;
    }
}

static int pick_size(struct test_rng *rng, const struct shape *shape)
{
    if (!shape->sizes)
        return 1 + test_below(rng, test_chance(rng, 4) ? 2000 : 100);
    switch (test_below(rng, 24)) {
    case 0:
    case 1:
    case 2:
        return 0;
    case 3:
    case 4:
        return 4090 + test_below(rng, 12); /* about the size limit */
    case 5:
        return 60000 + test_below(rng, 12000);
    default:
        return 1 + test_below(rng, 900);
    }
}

static enum mode pick_mode(struct test_rng *rng, unsigned modes)
{
    enum mode mode = (enum mode)test_below(rng, N_MODES);
    return (modes & 1u << mode) != 0 ? mode : MODE_STANDARD;
}

static struct message draw(const struct shape *shape, int src, int dst, int number,
                           struct test_rng *rng)
{
    struct message msg = {.src = src, .dst = dst, .tag = 100 * number + test_below(rng, TAGS)};
    const struct base plain[2] = {{MPI_BYTE, 1, 1}, {MPI_DOUBLE, 8, 8}};

    msg.base = shape->types ? base_pick(rng) : plain[test_below(rng, 2)];
    msg.unit = shape->types ? 1 + test_below(rng, MAX_UNIT) : 1;
    msg.n = (pick_size(rng, shape) + msg.base.size - 1) / (msg.base.size * msg.unit);
    msg.mode = pick_mode(rng, shape->modes);
    return msg;
}

/* Whether a rank sends (end 0) or receives (end 1); ranks 0 to 2 always do. */
static bool takes_part(const struct shape *shape, int number, int rank, int end)
{
    if (shape->roles == ROLES_ONE)
        return rank % 3 == 2 || rank % 3 == end;
    if (shape->roles == ROLES_SOME && number % 2 == 1)
        return rank < 3 || rank % 2 == 0;
    return true;
}

static void add_edge(struct list *list, const struct shape *shape, int src, int dst, int number,
                     struct test_rng *rng)
{
    int n = test_chance(rng, 4) ? 2 + test_below(rng, 2) : 1;

    if (!takes_part(shape, number, src, 0) || !takes_part(shape, number, dst, 1))
        return;
    for (int i = 0; i < n; i++)
        list_add(list, draw(shape, src, dst, number, rng));
}

struct list pattern_make(const struct shape *shape, int n_ranks, int number, uint64_t key)
{
    struct test_rng rng = {test_key(key, 1)};
    int hub = test_chance(&rng, 2) ? test_below(&rng, n_ranks) : -1;
    int *others = test_alloc((size_t)n_ranks * sizeof *others);
    struct list list = {0};

    for (int src = 0; src < n_ranks; src++) {
        int degree = 2 + test_below(&rng, MAX_DEGREE - 1);
        if (degree > n_ranks - 1 || src == hub)
            degree = n_ranks - 1;
        for (int i = 0; i < n_ranks - 1; i++)
            others[i] = (src + 1 + i) % n_ranks;
        test_shuffle(&rng, n_ranks - 1, others);
        for (int i = 0; i < degree; i++)
            add_edge(&list, shape, src, others[i], number, &rng);
    }
    free(others);
    list_shuffle(&list, &rng);
    for (int i = 0; i < list.n; i++)
        list.items[i].slot = i;
    return list;
}

static void deviate_one(struct list *list, unsigned deviations, struct test_rng *rng)
{
    static const int sizes[] = {3000, 5000, 70000, 300000};
    struct message msg;

    if (list->n == 0)
        return;
    if (deviations & 1u << DEV_LARGER) {
        struct message *larger = &list->items[test_below(rng, list->n)];
        larger->n = sizes[test_below(rng, 4)] / (larger->base.size * larger->unit);
    }
    if (deviations & 1u << DEV_DOUBLE) {
        msg = list->items[test_below(rng, list->n)];
        msg.slot = -1;
        list_add(list, msg);
    }
    if (deviations & 1u << DEV_SILENT) {
        msg = list->items[test_below(rng, list->n)];
        list_remove_pair(list, msg.src, msg.dst);
    }
}

static void add_others(struct list *list, const struct shape *shape, int n_ranks, int number,
                       unsigned deviations, struct test_rng *rng)
{
    for (int i = 0; i < n_ranks; i++) {
        struct message self = draw(shape, i, i, number, rng);
        struct message other = draw(shape, i, test_below(rng, n_ranks), number, rng);
        self.slot = other.slot = -1;
        if ((deviations & 1u << DEV_SELF) && test_chance(rng, 2))
            list_add(list, self);
        if ((deviations & 1u << DEV_NEWPEER) && test_chance(rng, 2) && other.dst != i)
            list_add(list, other);
    }
}

/* Sendrecv_replace has one count for both directions. */
static void equal_sizes(struct list *list, struct test_rng *rng)
{
    const struct base byte = {MPI_BYTE, 1, 1};
    int n = 1 + test_below(rng, 500);

    for (int i = 0; i < list->n; i++) {
        list->items[i].base = byte;
        list->items[i].unit = 1;
        list->items[i].n = n;
    }
}

/* Plain MPICH 4.0.2 (ch4:ucx) loses what comes packed and is received as MPI_DOUBLE_INT, when it is
 * so large that UCX cuts it, and cuts an element. */
static void limit_pairs(struct message *msg)
{
    if (msg->base.extent != msg->base.size && message_size(msg) > 4000)
        msg->n = 4000 / (msg->base.size * msg->unit);
}

struct list pattern_messages(const struct list *pattern, const struct shape *shape, int n_ranks,
                             unsigned deviations, uint64_t key)
{
    struct test_rng rng = {test_key(key, 2)};
    int number = pattern->n > 0 ? pattern->items[0].tag / 100 : 0;
    struct list list = {0};

    for (int i = 0; i < pattern->n; i++) {
        struct message *msg = list_add(&list, pattern->items[i]);
        if (shape->sizes)
            msg->n = pick_size(&rng, shape) / (msg->base.size * msg->unit);
    }
    deviate_one(&list, deviations, &rng);
    add_others(&list, shape, n_ranks, number, deviations, &rng);
    if (deviations & 1u << DEV_REORDER)
        list_shuffle(&list, &rng);
    if (shape->how == HOW_REPLACE)
        equal_sizes(&list, &rng);
    for (int i = 0; i < list.n; i++) {
        limit_pairs(&list.items[i]);
        list.items[i].key = test_key(key, 100 + i);
    }
    return list;
}
