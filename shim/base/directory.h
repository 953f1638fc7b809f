/* Directories that settings name. Leaf module. */
#ifndef CARPOOL_DIRECTORY_H
#define CARPOOL_DIRECTORY_H

#include <stdbool.h>

/* Makes a directory unless it exists, but not its parents. Returns false, with errno set, when
 * there is no such directory afterwards. */
bool cpl_directory_make(const char *name);

#endif
