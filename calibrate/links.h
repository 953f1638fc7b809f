/* Which ranks measure what: a few of them lead for each class of link, one after another. */
#ifndef CARPOOL_CALIBRATE_LINKS_H
#define CARPOOL_CALIBRATE_LINKS_H

#include "planner/machine.h"
#include "probe.h"

#include <stdbool.h>

/* What was measured for a class. */
struct cpl_link_result {
    int n_leads;        /* ranks that measured; 0: there is no such link */
    int n_peers;        /* most peers of one of them */
    double disturbance; /* as cpl_probe_half_trip tells it */
    struct cpl_link_cost cost;
};

struct cpl_links_result {
    struct cpl_link_result link[CPL_N_LINKS];
    int n_node_pairs; /* whose network interfaces were measured; 0: no node sends by more
                         than one rank */
    int n_flows;      /* at once, from one node to another */
    double node_ns_per_byte;
};

/* Measures all classes of links of the machine in about so many seconds. most_peers limits bursts
 * (where ranks share processors). Collective; the result is rank 0's. Returns 0, or -1 on all
 * ranks when there is no memory on one. */
int cpl_links_measure(struct cpl_probe *probe, const struct cpl_machine *machine, double seconds,
                      int most_peers, struct cpl_links_result *result);

#endif
