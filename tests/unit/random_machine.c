/* Random machines (random_machine.h). */
#include "random_machine.h"

#include "random_pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static double vary(double cost, uint64_t *random)
{
    return random_draw(random, 8) ? cost * (double)(1 + random_draw(random, 400)) / 100 : 0;
}

static void vary_link(struct cpl_link_cost *link, uint64_t *random)
{
    link->send_us = vary(link->send_us, random);
    link->recv_us = vary(link->recv_us, random);
    link->latency_us = vary(link->latency_us, random);
    link->ns_per_byte = vary(link->ns_per_byte, random);
}

struct cpl_machine random_machine(uint64_t *random, int32_t n_ranks)
{
    int64_t node[RANDOM_PATTERN_MOST_RANKS];
    int32_t socket[RANDOM_PATTERN_MOST_RANKS];
    struct cpl_machine machine;
    assert_in_range(n_ranks, 1, RANDOM_PATTERN_MOST_RANKS);
    int32_t n_nodes = 1 + random_below(random, n_ranks), n_sockets = 1 + random_below(random, 3);
    for (int32_t i = 0; i < n_ranks; i++) {
        node[i] = random_below(random, 1 + random_below(random, n_nodes));
        socket[i] = random_below(random, n_sockets);
    }
    assert_int_equal(cpl_machine_from_places(n_ranks, node, socket, NULL, 0, &machine, NULL),
                     CPL_OK);
    struct cpl_costs *costs = &machine.costs;
    for (int32_t k = 0; k < CPL_N_LINKS; k++)
        vary_link(&costs->link[k], random);
    for (int32_t k = 0; k < CPL_LINK_NETWORK; k++)
        vary_link(&costs->lane[k], random);
    machine.lanes = random_draw(random, 2) != 0;
    costs->node_ns_per_byte = vary(costs->node_ns_per_byte, random);
    costs->segment_ns = vary(costs->segment_ns, random);
    return machine;
}
