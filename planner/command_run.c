/* carpool run: starts a program with the library preloaded. Only sets the environment, then becomes
 * the program. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "command.h"
#include "shim/settings.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef CPL_LIBDIR
#define CPL_LIBDIR "/usr/local/lib"
#endif

static void usage(FILE *out)
{
    fprintf(
        out,
        "usage: mpiexec -n RANKS carpool run [--SETTING=VALUE ...] [--] PROGRAM [ARGUMENT...]\n\n"
        "Starts PROGRAM with libcarpool.so preloaded. --mode=force sets CARPOOL_MODE=force, and "
        "so\n"
        "for every setting that `carpool settings` lists (--ranks-per-node=8, ...).\n");
}

/* Sets the variable of an option "--ranks-per-node=8". */
static bool set_option(const char *option)
{
    char variable[128] = "CARPOOL_";
    size_t used = strlen(variable);
    const char *at = option + 2;
    for (; *at && *at != '=' && used + 1 < sizeof variable; at++)
        variable[used++] = *at == '-' ? '_' : (char)toupper((unsigned char)*at);
    variable[used] = '\0';
    if (*at != '=') {
        fprintf(stderr, "carpool run: option '%s' needs a value, as in --mode=force\n", option);
        return false;
    }
    for (size_t i = 0; i < cpl_settings_count(); i++)
        if (strcmp(cpl_settings_info(i).variable, variable) == 0)
            return setenv(variable, at + 1, 1) == 0;
    fprintf(stderr, "carpool run: no setting '%.*s'; `carpool settings` lists them\n",
            (int)(at - option), option);
    return false;
}

/* The library: where it was installed, or beside this command in a build tree or a moved
 * installation. */
static bool find_library(char path[PATH_MAX])
{
    static const char *const beside[] = {"libcarpool.so", ".libs/libcarpool.so",
                                         "../lib/libcarpool.so"};
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
            access(path, R_OK) == 0)
            return true;
    }
    snprintf(path, PATH_MAX, "%s/libcarpool.so", CPL_LIBDIR);
    return access(path, R_OK) == 0;
}

static bool add_preload(const char *library)
{
    const char *before = getenv("LD_PRELOAD");
    char *both = NULL;
    if (!before || !*before)
        return setenv("LD_PRELOAD", library, 1) == 0;
    if (asprintf(&both, "%s:%s", library, before) < 0)
        return false;
    bool done = setenv("LD_PRELOAD", both, 1) == 0;
    free(both);
    return done;
}

int cpl_command_run(int argc, char **argv)
{
    int at = 1;
    for (; at < argc && strncmp(argv[at], "--", 2) == 0; at++) {
        if (strcmp(argv[at], "--") == 0) {
            at++;
            break;
        }
        if (strcmp(argv[at], "--help") == 0) {
            usage(stdout);
            return 0;
        }
        if (!set_option(argv[at]))
            return CPL_EXIT_USAGE;
    }
    if (at >= argc) {
        usage(stderr);
        return CPL_EXIT_USAGE;
    }
    char library[PATH_MAX];
    if (!find_library(library)) {
        fprintf(stderr,
                "carpool run: cannot read %s; install the library, or start this command from its "
                "build\n",
                library);
        return CPL_EXIT_FAILED;
    }
    if (!add_preload(library)) {
        fprintf(stderr, "carpool run: cannot set LD_PRELOAD: %s\n", strerror(errno));
        return CPL_EXIT_FAILED;
    }
    execvp(argv[at], argv + at);
    fprintf(stderr, "carpool run: cannot start %s: %s\n", argv[at], strerror(errno));
    return CPL_EXIT_FAILED;
}
