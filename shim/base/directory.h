/* Directories that settings name. Leaf module. */
#ifndef CARPOOL_DIRECTORY_H
#define CARPOOL_DIRECTORY_H

#include <stdbool.h>

/* Makes a directory unless it is there, not those above it. Returns false, and errno, when there is
 * none afterwards. */
bool cpl_directory_make(const char *name);

#endif
