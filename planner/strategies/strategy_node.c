/* node: all traffic between two nodes in one combined message, or few (three steps; Peters 2024,
 * 3.2.1, after Collom, Li and Bienz 2023), and node:partner, the form of two steps.
 *
 * Three steps: a message is gathered inside its source's node at the rank that sends to the
 * destination's node, goes to the rank that receives there, and is scattered inside that node. Each
 * node deals the other nodes to its ranks in turn, so that ranks of a node send, and receive,
 * equally many combined messages. With more leaders each pair of nodes has so many pairs of ranks,
 * no more than the smaller node has ranks, and ranks choose among them by their place.
 *
 * Two steps: a message goes straight to the rank with its source's place in the destination's node
 * (modulo that node's size), and is scattered. Messages inside a node travel with the scattering.
 * Any placement, any node sizes. O(messages + ranks). */
#include "planner/grid/node_ranks.h"
#include "planner/plan/router.h"
#include "planner/strategies/rows.h"

#include <stdio.h>
#include <string.h>

/* The number: leaders from 1 on, or */
enum { PARTNER = -1, SPREAD = 0, ONE_LEADER = 1 };

static const char partner[] = "partner", spread[] = "spread";

/* As many leaders as give every rank about one combined message to another node. */
static int32_t spread_leaders(const struct cpl_machine *machine)
{
    int32_t others = machine->n_nodes > 1 ? machine->n_nodes - 1 : 1;
    int32_t leaders = machine->n_ranks / machine->n_nodes / others;
    return leaders > 1 ? leaders : 1;
}

/* The rank of `node` that sends to and receives from `other` as one of so many leaders. */
static int32_t leader(const struct cpl_node_ranks *nodes, int32_t node, int32_t other,
                      int32_t leaders, int32_t which)
{
    int64_t turn = (other - node - 1 + nodes->n_nodes) % nodes->n_nodes;
    return cpl_node_rank_at(nodes, node, turn * leaders + which);
}

static int32_t smallest(int32_t a, int32_t b, int32_t c)
{
    int32_t ab = a < b ? a : b;
    return ab < c ? ab : c;
}

/* What the routes follow from. */
struct steps {
    struct cpl_node_ranks nodes;
    int32_t leaders;
};

static void go(const struct cpl_router *router, int32_t src, int32_t dest, int32_t *stops)
{
    const struct cpl_node_ranks *nodes = &((const struct steps *)router->grid)->nodes;
    int32_t leaders = ((const struct steps *)router->grid)->leaders;
    for (int32_t w = 0; w < router->n_waves - 1; w++)
        stops[w] = src;
    stops[router->n_waves - 1] = dest;
    int32_t from = cpl_machine_node(nodes->machine, src),
            to = cpl_machine_node(nodes->machine, dest);
    if (from == to)
        return;
    if (leaders == PARTNER) {
        stops[0] = cpl_node_rank_at(nodes, to, cpl_node_local(nodes, src));
        return;
    }
    int32_t most = smallest(leaders, cpl_node_size(nodes, from), cpl_node_size(nodes, to));
    int32_t which = cpl_node_local(nodes, src) % most;
    stops[0] = leader(nodes, from, to, leaders, which);
    stops[1] = leader(nodes, to, from, leaders, which);
}

static enum cpl_status router(const struct cpl_strategy_input *input,
                              const struct cpl_strategy_numbers *numbers, struct cpl_router *router,
                              struct cpl_error *error)
{
    struct cpl_arena arena = CPL_ARENA_EMPTY;
    struct steps *steps = CPL_ARENA_ARRAY(&arena, struct steps, 1);
    int32_t leaders = numbers->at[0];
    if (!steps || cpl_node_ranks_build(input->machine, &arena, &steps->nodes)) {
        cpl_arena_free(&arena);
        return cpl_fail_memory(error, "the ranks of nodes");
    }
    steps->leaders = leaders == SPREAD ? spread_leaders(input->machine) : leaders;
    *router = (struct cpl_router){leaders == PARTNER ? 2 : 3, go, steps, arena};
    return CPL_OK;
}

static enum cpl_status route(const struct cpl_strategy_input *input,
                             const struct cpl_strategy_numbers *numbers, struct cpl_routes *routes,
                             struct cpl_error *error)
{
    struct cpl_router by;
    enum cpl_status status = router(input, numbers, &by, error);
    if (status)
        return status;
    status = cpl_router_routes(&by, input->pattern, routes, error);
    cpl_router_free(&by);
    return status;
}

static int32_t most_hops(const struct cpl_strategy_input *input,
                         const struct cpl_strategy_numbers *numbers)
{
    (void)input;
    return numbers->at[0] == PARTNER ? 2 : 3;
}

static enum cpl_status parse(const struct cpl_strategy *strategy, const char *text,
                             struct cpl_strategy_numbers *numbers, struct cpl_error *error)
{
    struct cpl_strategy_numbers parsed = {1, {ONE_LEADER}};
    struct cpl_error ignored;
    if (text && strcmp(text, partner) == 0)
        parsed.at[0] = PARTNER;
    else if (text && strcmp(text, spread) == 0)
        parsed.at[0] = SPREAD;
    else if (text && cpl_strategy_parse_number(strategy, text, ONE_LEADER, CPL_MAX_RANKS,
                                               &parsed.at[0], &ignored))
        return cpl_fail(error, CPL_ERR_ARG,
                        "strategy node takes leaders per pair of nodes, a whole number from 1, or "
                        "spread or partner after ':', not '%s'",
                        text);
    *numbers = parsed;
    return CPL_OK;
}

static void format(const struct cpl_strategy_numbers *numbers, char text[CPL_STRATEGY_TEXT])
{
    text[0] = 0;
    if (numbers->at[0] == PARTNER || numbers->at[0] == SPREAD)
        snprintf(text, CPL_STRATEGY_TEXT, "%s", numbers->at[0] == PARTNER ? partner : spread);
    else if (numbers->at[0] != ONE_LEADER)
        snprintf(text, CPL_STRATEGY_TEXT, "%d", (int)numbers->at[0]);
}

/* Where nodes are not the whole machine nor single ranks: one leader, about one combined message a
 * rank where each node sends to all others, two, four and so on, as of those that send to few
 * nodes, and straight. */
static void candidates(const struct cpl_strategy *strategy, const struct cpl_strategy_input *input,
                       struct cpl_strategy_list *list)
{
    const struct cpl_machine *machine = input->machine;
    if (machine->n_nodes < 2 || machine->n_nodes == machine->n_ranks)
        return;
    cpl_strategy_add(list, strategy, &(struct cpl_strategy_numbers){1, {ONE_LEADER}});
    int32_t spread_to = spread_leaders(machine), of_node = machine->n_ranks / machine->n_nodes;
    if (spread_to > ONE_LEADER)
        cpl_strategy_add(list, strategy, &(struct cpl_strategy_numbers){1, {SPREAD}});
    for (int32_t leaders = 2; leaders < of_node; leaders *= 2)
        if (leaders != spread_to)
            cpl_strategy_add(list, strategy, &(struct cpl_strategy_numbers){1, {leaders}});
    cpl_strategy_add(list, strategy, &(struct cpl_strategy_numbers){1, {PARTNER}});
}

const struct cpl_strategy cpl_strategy_node = {
    .name = "node",
    .parameter = "[:LEADERS|spread|partner]",
    .doc = "gathers inside the node, sends one combined message to each other node (LEADERS of "
           "them; spread: one a rank), scatters there; partner: sends straight to a rank of the "
           "other node, which scatters; Collom, Li and Bienz 2023",
    .examples = "node",
    .most_hops = most_hops,
    .parse = parse,
    .format = format,
    .candidates = candidates,
    .route = route,
    .router = router};
