/* Files of Carpool's that the command needs (beside.h). */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "cli/host/beside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef CPL_LIBDIR
#define CPL_LIBDIR "/usr/local/lib"
#endif
#ifndef CPL_PKGLIBEXECDIR
#define CPL_PKGLIBEXECDIR "/usr/local/libexec/carpool"
#endif
#define CALIBRATE "carpool-calibrate"

bool cpl_beside_self(char path[PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
    if (length <= 0)
        return false;
    path[length] = '\0';
    return true;
}

/* The first of the files that can be read: names relative to this command's directory, up to NULL,
 * then the installed one. */
static bool find(const char *const *beside, const char *installed, char path[PATH_MAX])
{
    char directory[PATH_MAX], found[2 * PATH_MAX];
    char *slash = cpl_beside_self(directory) ? strrchr(directory, '/') : NULL;
    for (; slash && *beside; beside++) {
        *slash = '\0';
        snprintf(found, sizeof found, "%s/%s", directory, *beside);
        if (realpath(found, path) && access(path, R_OK) == 0)
            return true;
    }
    snprintf(path, PATH_MAX, "%s", installed);
    return access(path, R_OK) == 0;
}

bool cpl_beside_library(char path[PATH_MAX])
{
    static const char *const beside[] = {"libcarpool.so", "../shim/.libs/libcarpool.so",
                                         "../../shim/.libs/libcarpool.so", "../lib/libcarpool.so",
                                         NULL};
    return find(beside, CPL_LIBDIR "/libcarpool.so", path);
}

bool cpl_beside_can_preload(const char *path)
{
    return !strpbrk(path, ": ");
}

bool cpl_beside_yield(char path[PATH_MAX])
{
    static const char *const beside[] = {"libyield.so", "../bench/.libs/libyield.so",
                                         "../../bench/.libs/libyield.so",
                                         "../lib/carpool/libyield.so", NULL};
    return find(beside, CPL_LIBDIR "/carpool/libyield.so", path);
}

bool cpl_beside_calibrate(char path[PATH_MAX])
{
    static const char *const beside[] = {CALIBRATE, "../libexec/carpool/" CALIBRATE,
                                         "../calibrate/" CALIBRATE, "../../calibrate/" CALIBRATE,
                                         NULL};
    return find(beside, CPL_PKGLIBEXECDIR "/" CALIBRATE, path);
}
