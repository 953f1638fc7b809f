/* carpool calibrate: becomes the MPI program of that name (calibrate/), which lies beside the
 * command or among the installed programs that are not for users. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "cli/command.h"
#include "cli/host/beside.h"
#include "cli/host/mpi.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef CPL_CALIBRATE_UNLINKED
#define CPL_CALIBRATE_UNLINKED false
#endif

/* The program of the wheel and of the tarball is linked with no MPI: it gets the one of its
 * launcher, before whatever is preloaded. Returns false after a message. */
static bool add_mpi(void)
{
    struct cpl_mpi_library library = {.path = ""};
    char launcher[PATH_MAX], why[256], both[2 * PATH_MAX];
    const char *before = getenv("LD_PRELOAD");
    if (!cpl_mpi_find_launcher(launcher) || !cpl_mpi_find_library(launcher, library.path))
        library.path[0] = '\0';
    if (!cpl_mpi_ask_library(&library, why) || library.family != CPL_MPI_MPICH) {
        fprintf(stderr,
                "carpool calibrate: no MPICH or Intel MPI to measure: %s; `carpool doctor` tells "
                "more\n",
                library.family == CPL_MPI_MPICH || !library.version[0] ? why : library.version);
        return false;
    }
    bool some = before && *before;
    snprintf(both, sizeof both, "%s%s%s", library.path, some ? ":" : "", some ? before : "");
    return setenv("LD_PRELOAD", both, 1) == 0;
}

int cpl_command_calibrate(int argc, char **argv)
{
    char path[PATH_MAX];
    (void)argc;
    if (!cpl_beside_calibrate(path)) {
        fprintf(stderr,
                "carpool calibrate: cannot start %s: this Carpool was built or installed without "
                "its MPI program; build it with MPICH's compiler (configure MPICC=mpicc.mpich)\n",
                path);
        return CPL_EXIT_FAILED;
    }
    if (CPL_CALIBRATE_UNLINKED && !add_mpi())
        return CPL_EXIT_FAILED;
    /* What is measured is MPI, with the library preloaded or not. */
    if (setenv("CARPOOL_MODE", "off", 1) == 0)
        execv(path, argv);
    fprintf(stderr, "carpool calibrate: cannot start %s: %s\n", path, strerror(errno));
    return CPL_EXIT_FAILED;
}
