/* MPI's own functions: a preloaded library is met by MPI_ and by PMPI_ names, but not by these. */
#ifndef BENCH_ALONE_H
#define BENCH_ALONE_H

typedef void alone_function(void);

/* The function of that name in the library that is MPI; `otherwise` when it cannot be had. */
alone_function *alone_find(const char *name, alone_function *otherwise);

/* MPI's own MPI_NAME. */
#ifdef CPL_SIMULATED
#define ALONE(name) PMPI_##name
#else
#define ALONE(name)                                                                                \
    ((__typeof__(&PMPI_##name))alone_find("PMPI_" #name, (alone_function *)PMPI_##name))
#endif

#endif
