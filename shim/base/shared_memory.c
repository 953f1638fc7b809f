/* Shared memory (shared_memory.h). */
#include "shim/base/shared_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

_Static_assert(sizeof(struct cpl_shared_name) <= CPL_SHARED_HEAD, "the head has room for the name");

static void *fail(char why[CPL_SHARED_WHY], const char *what)
{
    snprintf(why, CPL_SHARED_WHY, "%s: %s", what, strerror(errno));
    return NULL;
}

static void *map(int file, int64_t bytes, char why[CPL_SHARED_WHY])
{
    void *memory = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return memory == MAP_FAILED ? fail(why, "cannot map shared memory") : memory;
}

/* Gives a file its pages. MPI and the program need room of the same kind: half of what is left
 * stays theirs. Signals have to wait: a kernel that breaks off at each begins anew, and a
 * profiler's would come too often for ever. Beyond the user's limit it would send one that ends the
 * program. Returns what went wrong, 0: nothing. */
static int reserve(int file, int64_t bytes)
{
    struct rlimit most;
    struct statvfs room;
    sigset_t all, before;
    if (getrlimit(RLIMIT_FSIZE, &most) == 0 && (rlim_t)bytes > most.rlim_cur)
        return EFBIG;
    if (fstatvfs(file, &room) == 0 && room.f_blocks > 0 &&
        (uint64_t)bytes / room.f_frsize >= room.f_bavail / 2)
        return ENOSPC;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int code = posix_fallocate(file, 0, bytes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}

void *cpl_shared_make(int64_t bytes, struct cpl_shared_name *name, char why[CPL_SHARED_WHY])
{
    static unsigned n_made;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    *name = (struct cpl_shared_name){.bytes = bytes,
                                     .nonce = now.tv_sec * INT64_C(1000000000) + now.tv_nsec};
    snprintf(name->name, sizeof name->name, "/carpool-%ld-%u-%llx", (long)getpid(), n_made++,
             (unsigned long long)name->nonce);
    int file = shm_open(name->name, O_RDWR | O_CREAT | O_EXCL, S_IRUSR | S_IWUSR);
    if (file < 0) {
        name->name[0] = '\0';
        return fail(why, "cannot make shared memory");
    }
    errno = reserve(file, bytes);
    void *memory = errno ? fail(why, "no room for shared memory") : map(file, bytes, why);
    close(file);
    if (memory) {
        memcpy(memory, name, sizeof *name);
    } else {
        cpl_shared_unname(name);
        name->name[0] = '\0';
    }
    return memory;
}

void *cpl_shared_attach(const struct cpl_shared_name *name, char why[CPL_SHARED_WHY])
{
    struct stat info;
    int file = shm_open(name->name, O_RDWR, 0);
    if (file < 0)
        return fail(why, "cannot open the node's shared memory");
    snprintf(why, CPL_SHARED_WHY, "the shared memory of one process is not that of another");
    bool fits = fstat(file, &info) == 0 && info.st_size == name->bytes;
    void *memory = fits ? map(file, name->bytes, why) : NULL;
    close(file);
    if (memory && memcmp(memory, name, sizeof *name) != 0) {
        cpl_shared_free(memory, name->bytes);
        return NULL;
    }
    if (memory)
        why[0] = '\0';
    return memory;
}

long cpl_shared_processors(void)
{
    return sysconf(_SC_NPROCESSORS_ONLN);
}

void cpl_shared_unname(const struct cpl_shared_name *name)
{
    shm_unlink(name->name);
}

void cpl_shared_free(void *memory, int64_t bytes)
{
    munmap(memory, (size_t)bytes);
}
