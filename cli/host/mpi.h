/* Which MPI a launch from here would use: the launcher and the library that lies beside it. For
 * carpool doctor, and for carpool calibrate where its program was linked with none.
 */
#ifndef CARPOOL_HOST_MPI_H
#define CARPOOL_HOST_MPI_H

#include <limits.h>
#include <stdbool.h>

enum cpl_mpi_family {
    CPL_MPI_UNKNOWN,
    CPL_MPI_MPICH,   /* or a relative, with its ABI */
    CPL_MPI_OPENMPI, /* the library leaves its programs alone */
    CPL_MPI_SLURM    /* srun, which starts programs of any MPI */
};

struct cpl_mpi_launcher {
    char path[PATH_MAX];
    char version[128]; /* what it says of itself, in a few words; "": it says nothing known */
    enum cpl_mpi_family family;
};

struct cpl_mpi_library {
    char path[PATH_MAX];
    char version[128]; /* "MPICH 4.3.2" */
    char device[128];  /* "ch4:ofi"; "": it does not say */
    enum cpl_mpi_family family;
};

/* The launcher that has started this process, where that is hydra; else the first in PATH: in each
 * folder mpiexec.hydra is looked for before mpiexec, which may be another MPI's there. Without one,
 * srun. Returns false when there is none. */
bool cpl_mpi_find_launcher(char path[PATH_MAX]);

/* The launcher beside this command, as in a venv that is not activated. Returns false when there is
 * none. */
bool cpl_mpi_find_beside(char path[PATH_MAX]);

/* The library of MPICH's ABI that lies beside a launcher, as in a venv or below a prefix. Returns
 * false when there is none; one that the loader finds by its name may serve then. */
bool cpl_mpi_find_library(const char *launcher, char path[PATH_MAX]);

/* Asks launcher->path by --version, or an MPI's library; each in a process of its own, for at most
 * ten seconds. library->path "": the library that the loader finds; its path is filled in. The
 * second returns false when it cannot be loaded, with the reason in `why`. */
void cpl_mpi_ask_launcher(struct cpl_mpi_launcher *launcher);
bool cpl_mpi_ask_library(struct cpl_mpi_library *library, char why[256]);

#endif
