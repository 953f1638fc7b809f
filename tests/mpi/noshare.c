/* Preloaded beside libcarpool.so: shared memory that a process cannot have. For run-noshare.sh.
 *
 * NOSHARE_RANK=R   on rank R of MPI_COMM_WORLD (as the launcher tells it); -1: on all
 * NOSHARE=CALL     `make`: there is no room for memory that a rank makes; `attach`: what another
 * one has made cannot be opened */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

static bool is_told(const char *call)
{
    const char *rank = getenv("PMI_RANK"), *which = getenv("NOSHARE_RANK"),
               *what = getenv("NOSHARE");
    return rank && which && what && strcmp(what, call) == 0 &&
           (strcmp(which, "-1") == 0 || strcmp(which, rank) == 0);
}

int shm_open(const char *name, int flags, mode_t mode)
{
    int (*next)(const char *, int, mode_t);
    *(void **)&next = dlsym(RTLD_NEXT, "shm_open");
    bool attaches = strncmp(name, "/carpool-", 9) == 0 && !(flags & O_CREAT);
    if (!attaches || !is_told("attach"))
        return next(name, flags, mode);
    errno = EACCES;
    return -1;
}

int posix_fallocate(int file, off_t offset, off_t bytes)
{
    int (*next)(int, off_t, off_t);
    *(void **)&next = dlsym(RTLD_NEXT, "posix_fallocate");
    return is_told("make") ? ENOSPC : next(file, offset, bytes);
}
