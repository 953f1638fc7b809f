/* Which ranks measure what: a few of them lead for each class of link, one after another. */
#ifndef CARPOOL_CALIBRATE_LINKS_H
#define CARPOOL_CALIBRATE_LINKS_H

#include "planner/machine.h"
#include "probe.h"

#include <stdbool.h>

/* What was measured for a class. */
struct cpl_link_result {
    int n_leads;        /* number of ranks that measured; 0: there is no such link */
    int n_peers;        /* the most peers of one of those ranks */
    double disturbance; /* as cpl_probe_half_trip returns it */
    struct cpl_link_cost cost;
};

struct cpl_links_result {
    struct cpl_link_result link[CPL_N_LINKS];
    struct cpl_link_result lane[CPL_LINK_NETWORK]; /* disturbance: that of the link */
    int n_node_pairs; /* number of pairs of nodes whose network interfaces were measured; 0: no node
                         has more than one sending rank */
    int n_flows;      /* concurrent flows from one node to another */
    double node_ns_per_byte;
};

/* Measures all classes of links of the machine, and lanes, in about `seconds` seconds. most_peers
 * limits bursts where ranks share processors. Collective; rank 0 gets the result. Returns 0, or -1
 * on all ranks when one has no memory. */
int cpl_links_measure(struct cpl_probe *probe, const struct cpl_machine *machine, double seconds,
                      int most_peers, struct cpl_links_result *result);

#endif
