/* Files of Carpool's that the command needs. */
#ifndef CARPOOL_HOST_BESIDE_H
#define CARPOOL_HOST_BESIDE_H

#include <limits.h>
#include <stdbool.h>

/* libcarpool.so; libyield.so, with which waiting ranks give up the processor; and the MPI program
 * that carpool calibrate becomes. They are looked for beside this command, in a build tree, in a
 * moved installation, and where they were installed. Return false when there is none; path is the
 * last one that was tried then. */
bool cpl_beside_library(char path[PATH_MAX]);
bool cpl_beside_yield(char path[PATH_MAX]);
bool cpl_beside_calibrate(char path[PATH_MAX]);

/* Whether LD_PRELOAD can have a path: spaces and colons part its paths. */
bool cpl_beside_can_preload(const char *path);

/* This command's own file. Returns false when the system does not tell. */
bool cpl_beside_self(char path[PATH_MAX]);

#endif
