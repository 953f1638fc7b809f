/* Whether all ranks of the job run with the library. One that does not would take part in nothing,
 * and the others would wait for it; a launcher's line can start programs with different
 * environments.
 *
 * No protocol of a launcher is spoken. Under hydra each rank looks at the processes that its proxy
 * has started on this host, in /proc. If none is seen to lack the library, the ranks exchange
 * messages, and a rank that hears nothing for long says so and ends the program.
 */
#ifndef CARPOOL_PRELOAD_CHECK_H
#define CARPOOL_PRELOAD_CHECK_H

enum cpl_preload {
    CPL_PRELOAD_ALL,      /* all ranks have the library */
    CPL_PRELOAD_SOME,     /* some rank has not: the library must do nothing */
    CPL_PRELOAD_SOME_TELL /* the same, and this rank is the one to tell */
};

/* In MPI_Init, after MPI's own; collective over the ranks that have the library, which all get the
 * same answer. May end the program (MPI_Abort) when a rank on another host lacks it. */
enum cpl_preload cpl_preload_check(int rank, int n_ranks);

#endif
