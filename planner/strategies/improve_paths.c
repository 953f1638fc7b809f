/* The cheapest way of one message (improve_paths.h). */
#include "planner/strategies/improve_paths.h"

#define MAX_PATH_NODES 384
#define MAX_PAIRS      4096 /* tried as ends of a new edge, in each wave */

enum cpl_status cpl_path_finder_init(struct cpl_path_finder *finder,
                                     struct cpl_improve_state *state, struct cpl_arena *arena)
{
    *finder = (struct cpl_path_finder){
        .state = state,
        .seen = CPL_ARENA_ARRAY(arena, uint32_t, state->pattern->n_ranks),
        .place = CPL_ARENA_ARRAY(arena, int32_t, state->pattern->n_ranks),
        .end_price = CPL_ARENA_ARRAY(arena, double, 2 * CPL_N_LINKS * MAX_PATH_NODES)};
    bool done = finder->seen && finder->place && finder->end_price;
    for (int32_t w = 0; w <= state->n_waves && done; w++) {
        finder->forward[w].node = CPL_ARENA_ARRAY(arena, struct cpl_path_node, MAX_PATH_NODES);
        finder->backward[w].node = CPL_ARENA_ARRAY(arena, struct cpl_path_node, MAX_PATH_NODES);
        done = finder->forward[w].node && finder->backward[w].node;
    }
    return done ? CPL_OK : CPL_ERR_NOMEM;
}

static bool is_banned(const struct cpl_banned_edge *banned, int32_t wave, int32_t from, int32_t to)
{
    return wave == banned->wave && from == banned->from && to == banned->to;
}

/* What riding on an edge costs, at both ends. */
static double ride_price(const struct cpl_path_finder *finder, int32_t wave, int32_t from,
                         int32_t to)
{
    const struct cpl_time_loads *loads = &finder->state->loads;
    enum cpl_link_class class_ = cpl_machine_link(loads->machine, from, to);
    return cpl_time_loads_ride_price(loads, wave, from, class_, true, &finder->payload) +
           cpl_time_loads_ride_price(loads, wave, to, class_, false, &finder->payload);
}

/* Puts a rank into a list, or lowers its price there. */
static void reach(struct cpl_path_finder *finder, struct cpl_path_nodes *nodes, int32_t rank,
                  int32_t towards, double price)
{
    struct cpl_path_node node = {rank, towards, price};
    if (finder->seen[rank] != finder->search) {
        if (nodes->n == MAX_PATH_NODES)
            return;
        finder->seen[rank] = finder->search;
        finder->place[rank] = nodes->n;
        nodes->node[nodes->n++] = node;
    } else if (price < nodes->node[finder->place[rank]].price) {
        nodes->node[finder->place[rank]] = node;
    }
}

/* The ranks one wave on from a list: those of the list, and over their edges. Forward the edges of
 * wave `wave` that leave them, backward those that reach them. */
static void spread(struct cpl_path_finder *finder, const struct cpl_path_nodes *from, int32_t wave,
                   bool forward, const struct cpl_banned_edge *banned, struct cpl_path_nodes *to)
{
    const struct cpl_improve_state *state = finder->state;
    finder->search++;
    to->n = 0;
    for (int32_t k = 0; k < from->n; k++)
        reach(finder, to, from->node[k].rank, k, from->node[k].price);
    for (int32_t k = 0; k < from->n && to->n < MAX_PATH_NODES; k++) {
        int32_t rank = from->node[k].rank;
        const struct cpl_layer_links *links =
            forward ? &state->layers.out[wave][rank] : &state->layers.in[wave][rank];
        for (int32_t j = 0; j < links->n; j++) {
            int32_t peer = links->link[j].peer;
            int32_t sender = forward ? rank : peer, receiver = forward ? peer : rank;
            if (is_banned(banned, wave, sender, receiver))
                continue;
            double price = from->node[k].price;
            if (!cpl_improve_rides_free(state, links->link[j].edge))
                price += ride_price(finder, wave, sender, receiver);
            reach(finder, to, peer, k, price);
        }
        finder->work += links->n;
    }
}

/* The best way found: forward place i of wave w, then (when a new edge is used) backward place j of
 * wave w + 1, else the same rank's place j of wave w. */
struct junction {
    int32_t wave, i, j;
    bool new_edge;
    double price;
};

/* Ways without a new edge: ranks in both lists of the wave in the middle. */
static void join_present(struct cpl_path_finder *finder, int32_t wave, struct junction *best)
{
    const struct cpl_path_nodes *f = &finder->forward[wave], *b = &finder->backward[wave];
    finder->search++;
    for (int32_t i = 0; i < f->n; i++) {
        finder->seen[f->node[i].rank] = finder->search;
        finder->place[f->node[i].rank] = i;
    }
    for (int32_t j = 0; j < b->n; j++) {
        if (finder->seen[b->node[j].rank] != finder->search)
            continue;
        int32_t i = finder->place[b->node[j].rank];
        double price = f->node[i].price + b->node[j].price;
        if (price < best->price)
            *best = (struct junction){wave, i, j, false, price};
    }
}

/* What the ends of new edges of a wave cost from each node of a list, with the way up to there. */
static void price_ends(const struct cpl_path_finder *finder, const struct cpl_path_nodes *nodes,
                       int32_t wave, bool sends, double *price)
{
    const struct cpl_time_loads *loads = &finder->state->loads;
    for (int32_t class_ = 0; class_ < CPL_N_LINKS; class_++) {
        enum cpl_link_class link = (enum cpl_link_class)class_;
        if (!loads->class_used[class_])
            continue;
        for (int32_t k = 0; k < nodes->n; k++) {
            int32_t rank = nodes->node[k].rank;
            price[k * CPL_N_LINKS + class_] =
                nodes->node[k].price + cpl_time_loads_open_price(loads, wave, rank, link, sends) +
                cpl_time_loads_ride_price(loads, wave, rank, link, sends, &finder->payload);
        }
    }
}

/* Ways with a new edge in a wave. */
static void join_new(struct cpl_path_finder *finder, int32_t wave,
                     const struct cpl_banned_edge *banned, struct junction *best)
{
    const struct cpl_path_nodes *f = &finder->forward[wave], *b = &finder->backward[wave + 1];
    const struct cpl_machine *machine = finder->state->loads.machine;
    double *sends = finder->end_price, *receives = sends + CPL_N_LINKS * MAX_PATH_NODES;
    price_ends(finder, f, wave, true, sends);
    price_ends(finder, b, wave, false, receives);
    int32_t stride = 1 + f->n * b->n / MAX_PAIRS;
    for (int32_t i = 0; i < f->n; i++)
        for (int32_t j = i % stride; j < b->n; j += stride) {
            int32_t from = f->node[i].rank, to = b->node[j].rank;
            int32_t class_ = (int32_t)cpl_machine_link(machine, from, to);
            double price = sends[i * CPL_N_LINKS + class_] + receives[j * CPL_N_LINKS + class_];
            if (price < best->price && from != to && !is_banned(banned, wave, from, to))
                *best = (struct junction){wave, i, j, true, price};
        }
    finder->work += (f->n + b->n) * 2 + f->n * b->n / stride / 4;
}

static void write_stops(const struct cpl_path_finder *finder, const struct junction *best,
                        int32_t *stops)
{
    int32_t n_waves = finder->state->n_waves;
    for (int32_t w = best->wave, i = best->i; w >= 1; w--) {
        stops[w - 1] = finder->forward[w].node[i].rank;
        i = finder->forward[w].node[i].towards;
    }
    for (int32_t w = best->wave + (best->new_edge ? 1 : 0), j = best->j; w <= n_waves; w++) {
        if (w >= 1)
            stops[w - 1] = finder->backward[w].node[j].rank;
        j = finder->backward[w].node[j].towards;
    }
}

void cpl_path_find(struct cpl_path_finder *finder, int32_t m, double bytes,
                   const struct cpl_banned_edge *banned, int32_t *stops)
{
    struct cpl_improve_state *state = finder->state;
    int32_t n_waves = state->n_waves;
    struct junction best = {.price = 1e300};
    int64_t marking = cpl_improve_mark_free(state, m);
    /* Without parts it was never counted; plans are to stay what they are. */
    finder->work += state->pattern->pairs ? marking / 4 : 0;
    finder->payload = cpl_time_loads_payload(&state->loads, bytes);
    finder->forward[0].n = finder->backward[n_waves].n = 1;
    finder->forward[0].node[0] = (struct cpl_path_node){state->source[m], 0, 0};
    finder->backward[n_waves].node[0] = (struct cpl_path_node){state->pattern->dst[m], 0, 0};
    for (int32_t w = 0; w < n_waves - 1; w++)
        spread(finder, &finder->forward[w], w, true, banned, &finder->forward[w + 1]);
    for (int32_t w = n_waves - 1; w >= 1; w--)
        spread(finder, &finder->backward[w + 1], w, false, banned, &finder->backward[w]);
    if (n_waves > 1)
        join_present(finder, n_waves / 2, &best);
    for (int32_t w = 0; w < n_waves; w++)
        join_new(finder, w, banned, &best);
    write_stops(finder, &best, stops);
}
