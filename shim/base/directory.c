/* Directories that settings name (directory.h). */
#include "shim/base/directory.h"

#include <errno.h>
#include <sys/stat.h>

bool cpl_directory_make(const char *name)
{
    struct stat info;
    if (mkdir(name, 0777) != 0 && errno != EEXIST)
        return false;
    if (stat(name, &info) != 0)
        return false;
    errno = ENOTDIR;
    return S_ISDIR(info.st_mode);
}
