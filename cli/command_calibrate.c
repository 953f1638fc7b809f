/* carpool calibrate: becomes the MPI program of that name (calibrate/), which lies beside the
 * command or among the installed programs that are not for users. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "cli/command.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef CPL_PKGLIBEXECDIR
#define CPL_PKGLIBEXECDIR "/usr/local/libexec/carpool"
#endif

#define PROGRAM "carpool-calibrate"

/* Beside this command, in a moved installation, in a build tree, or where it was installed. */
static bool find_program(char path[PATH_MAX])
{
    static const char *const beside[] = {PROGRAM, "../libexec/carpool/" PROGRAM,
                                         "../calibrate/" PROGRAM, "../../calibrate/" PROGRAM};
    char directory[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", directory, sizeof directory - 1);
    char *slash = NULL;
    if (length > 0) {
        directory[length] = '\0';
        slash = strrchr(directory, '/');
    }
    for (size_t k = 0; slash && k < sizeof beside / sizeof beside[0]; k++) {
        *slash = '\0';
        if (snprintf(path, PATH_MAX, "%s/%s", directory, beside[k]) < PATH_MAX &&
            access(path, X_OK) == 0)
            return true;
    }
    snprintf(path, PATH_MAX, "%s/%s", CPL_PKGLIBEXECDIR, PROGRAM);
    return access(path, X_OK) == 0;
}

int cpl_command_calibrate(int argc, char **argv)
{
    char path[PATH_MAX];
    (void)argc;
    if (!find_program(path)) {
        fprintf(stderr,
                "carpool calibrate: cannot start %s: this Carpool was built or installed without "
                "its MPI program; build it with MPICH's compiler (configure MPICC=mpicc.mpich)\n",
                path);
        return CPL_EXIT_FAILED;
    }
    /* What is measured is MPI, with the library preloaded or not. */
    if (setenv("CARPOOL_MODE", "off", 1) == 0)
        execv(path, argv);
    fprintf(stderr, "carpool calibrate: cannot start %s: %s\n", path, strerror(errno));
    return CPL_EXIT_FAILED;
}
