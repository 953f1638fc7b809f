/* Writing the machine file and the files of distances. On one rank; no MPI. */
#ifndef CARPOOL_CALIBRATE_WRITE_H
#define CARPOOL_CALIBRATE_WRITE_H

#include "distances.h"
#include "links.h"

#include <stdio.h>

/* Where and how the figures were measured. */
struct cpl_run_facts {
    const char *host; /* rank 0's host */
    const char *mpi;  /* the MPI library's version */
    int n_ranks, n_nodes, n_hosts;
    int n_turns; /* the most ranks that share a processor; with more than 1 the figures tell of the
                    scheduler */
    int ranks_per_node; /* consecutive ranks on each node; 0: there is one node, or nodes differ */
    double seconds;     /* duration of the calibration */
};

/* What was measured besides links. */
struct cpl_memory_result {
    double segment_ns, item_ns;
};

/* A class of links that was disturbed more than this was measured on a busy machine. */
#define CPL_MOST_DISTURBANCE 2

/* Writes a machine file (planner/machine.h). distances, distance_bytes: the values of its keys
 * distances and distances.ns_per_byte; NULL, both: none. */
void cpl_write_machine(FILE *out, const struct cpl_run_facts *facts,
                       const struct cpl_links_result *links, const struct cpl_memory_result *memory,
                       const char *distances, const char *distance_bytes);

/* Which figure of a distance a file has. */
enum cpl_distance_figure { CPL_DISTANCE_US, CPL_DISTANCE_NS_PER_BYTE };

/* Writes a figure of n_ranks x n_ranks distances as a symmetric Matrix Market array. */
void cpl_write_distances(FILE *out, const struct cpl_run_facts *facts,
                         const struct cpl_distance *distances, enum cpl_distance_figure figure);

#endif
