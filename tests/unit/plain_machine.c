/* plain_machine.h */
#include "plain_machine.h"

#include "plans.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Microseconds: a message inside a socket is 1 to send, 2 to receive, 16 on the way, 1 a byte, and
 * so on outwards; by a lane the first two classes are a quarter of that; a segment is half a
 * microsecond at each end; switching ranks is free. */
const struct cpl_costs plain_costs = {
    .link = {[CPL_LINK_SOCKET] = {1, 2, 16, 1000},
             [CPL_LINK_NODE] = {4, 8, 32, 2000},
             [CPL_LINK_NETWORK] = {64, 128, 256, 4000}},
    .lane = {[CPL_LINK_SOCKET] = {0.25, 0.5, 4, 250}, [CPL_LINK_NODE] = {1, 2, 8, 500}},
    .node_ns_per_byte = 1000,
    .segment_ns = 500,
};

struct cpl_machine make_machine(int32_t n_ranks, int32_t ranks_per_node)
{
    struct cpl_machine machine;
    assert_int_equal(cpl_machine_init(n_ranks, ranks_per_node, &machine, NULL), CPL_OK);
    machine.costs = plain_costs;
    return machine;
}

/* The plan's modelled time with units of one byte is us, but for rounding. */
void check_cost(struct cpl_plan *plan, struct cpl_machine *machine, double us)
{
    double got = -1;
    struct cpl_error error = {""};
    assert_int_equal(cpl_plan_cost(plan, machine, 1, &got, &error), CPL_OK);
    if (fabs(got - us) > 1e-12 * us)
        fail_msg("%.10g us instead of %.10g", got, us);
}

/* The direct plan of the entries. */
struct cpl_plan plan_direct(int32_t n_ranks, const struct cpl_pattern_entry *entries,
                            int64_t n_entries)
{
    struct cpl_pattern pattern = make_pattern(n_ranks, entries, n_entries);
    struct cpl_plan plan = make_plan(&pattern, 1, pattern.dst);
    cpl_pattern_free(&pattern);
    return plan;
}

/* 0 sends 3 units to 1 and, over 2, 5 units to 2; 2 sends 7 units to 1. */
struct cpl_plan plan_shared(void)
{
    const struct cpl_pattern_entry entries[] = {MESSAGE(0, 1, 3), MESSAGE(0, 2, 5),
                                                MESSAGE(2, 1, 7)};
    struct cpl_pattern pattern = make_pattern(3, entries, N_OF(entries));
    struct cpl_plan plan = make_plan(&pattern, 2, (const int32_t[]){2, 1, /* */ 2, 2, /* */ 2, 1});
    cpl_pattern_free(&pattern);
    return plan;
}
