/* Lanes (shim/carry/lanes.h) between ranks of one process, for tests: their ends may be opened in
 * any order, one rank after the other. */
#ifndef CARPOOL_TESTS_MOCK_LANES_H
#define CARPOOL_TESTS_MOCK_LANES_H

/* From now on so many consecutive ranks of the mock of MPI (mock_mpi.h) share a node; 0: no rank
 * gets lanes. */
void mock_lanes_begin(int ranks_per_node);

/* Frees the memory; fails the test when a lane was opened at one end only. Returns how many lanes
 * there were. */
int mock_lanes_end(void);

#endif
