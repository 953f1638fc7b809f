/* Plans kept in a directory (plan_cache.h). */
#include "planner/keep/plan_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The longest name of a file of plans, with its end; without the directory's. */
#define NAME_ROOM 64

/* The most names tried for the file that is written: programs that were killed leave such files
 * over. */
#define MOST_PARTS 100

/* The path of the file for a key, to be freed by the caller; NULL without memory. */
static char *path_of(const char *directory, const struct cpl_bytes *key)
{
    size_t size = strlen(directory) + NAME_ROOM;
    char *path = malloc(size);
    if (path)
        snprintf(path, size, "%s/plan-%016" PRIx64 ".carpool", directory,
                 cpl_bytes_hash(key->at, key->n));
    return path;
}

/* Reads all of a plain file. Returns CPL_OK (the caller frees *bytes), CPL_ERR_IO, CPL_ERR_NOMEM.
 */
static enum cpl_status read_all(int file, const char *path, unsigned char **bytes, size_t *n,
                                struct cpl_error *error)
{
    struct stat info;
    size_t done = 0;
    if (fstat(file, &info) != 0)
        return cpl_fail(error, CPL_ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
    if (!S_ISREG(info.st_mode))
        return cpl_fail(error, CPL_ERR_IO, "%s: is no plain file", path);
    size_t size = (size_t)info.st_size;
    unsigned char *memory = malloc(size + 1);
    if (!memory)
        return cpl_fail_memory(error, "the kept plans");
    while (done < size) {
        ssize_t more = read(file, memory + done, size - done);
        if (more == 0)
            break; /* cut off meanwhile: the parser will detect it */
        if (more < 0 && errno == EINTR)
            continue;
        if (more < 0) {
            cpl_fail(error, CPL_ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
            free(memory);
            return CPL_ERR_IO;
        }
        done += (size_t)more;
    }
    *bytes = memory;
    *n = done;
    return CPL_OK;
}

static enum cpl_status find(const char *path, const struct cpl_plan_key *key,
                            const struct cpl_bytes *key_bytes, struct cpl_plan_set *set,
                            bool *found, struct cpl_error *error)
{
    unsigned char *bytes = NULL;
    size_t n = 0;
    struct cpl_error why;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0 && errno == ENOENT)
        return CPL_OK;
    if (file < 0)
        return cpl_fail(error, CPL_ERR_IO, "%s: cannot be opened: %s", path, strerror(errno));
    enum cpl_status status = read_all(file, path, &bytes, &n, error);
    close(file);
    if (status)
        return status;
    status = cpl_plan_file_take(bytes, n, key, key_bytes, set, &why);
    free(bytes);
    if (status)
        return cpl_fail(error, status, "%s: %s", path, why.text);
    *found = true;
    return CPL_OK;
}

enum cpl_status cpl_plan_cache_find(const char *directory, const struct cpl_plan_key *key,
                                    struct cpl_plan_set *set, bool *found, struct cpl_error *error)
{
    struct cpl_bytes key_bytes = {NULL, 0, 0, false};
    cpl_plan_key_put(key, &key_bytes);
    char *path = key_bytes.failed ? NULL : path_of(directory, &key_bytes);
    bool is_there = false;
    enum cpl_status status = path ? find(path, key, &key_bytes, set, &is_there, error)
                                  : cpl_fail_memory(error, "looking for kept plans");
    if (!status)
        *found = is_there;
    free(path);
    cpl_bytes_free(&key_bytes);
    return status;
}

/* Makes the file to be written, beside the one that it will replace. Returns -1 and errno if that
 * fails. */
static int make_part(const char *path, char *part, size_t size)
{
    int file = -1;
    errno = EEXIST;
    for (int k = 0; k < MOST_PARTS && file < 0 && errno == EEXIST; k++) {
        snprintf(part, size, "%s.%ld-%d.part", path, (long)getpid(), k);
        file = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    }
    return file;
}

static bool write_all(int file, const struct cpl_bytes *bytes)
{
    size_t done = 0;
    while (done < bytes->n) {
        ssize_t more = write(file, bytes->at + done, bytes->n - done);
        if (more < 0 && errno != EINTR)
            return false;
        done += more > 0 ? (size_t)more : 0;
    }
    return true;
}

/* Returns CPL_OK, CPL_ERR_IO. part: room for the name while it is written. */
static enum cpl_status replace(const char *path, char *part, size_t size,
                               const struct cpl_bytes *bytes, struct cpl_error *error)
{
    int file = make_part(path, part, size), code = errno;
    bool done = file >= 0 && write_all(file, bytes);
    if (file >= 0) {
        code = done ? 0 : errno;
        if (close(file) != 0 && done) {
            code = errno;
            done = false;
        }
        if (done && rename(part, path) != 0) {
            code = errno;
            done = false;
        }
        if (!done)
            unlink(part);
    }
    return done ? CPL_OK
                : cpl_fail(error, CPL_ERR_IO, "%s: cannot be written: %s", path, strerror(code));
}

enum cpl_status cpl_plan_cache_keep(const char *directory, const struct cpl_plan_key *key,
                                    const struct cpl_plan_set *set, struct cpl_error *error)
{
    struct cpl_bytes key_bytes = {NULL, 0, 0, false}, file = {NULL, 0, 0, false};
    enum cpl_status status = CPL_OK;
    cpl_plan_key_put(key, &key_bytes);
    if (!key_bytes.failed)
        cpl_plan_file_put(&key_bytes, set, &file);
    bool ready = !key_bytes.failed && !file.failed;
    char *path = ready ? path_of(directory, &key_bytes) : NULL;
    size_t size = path ? strlen(path) + NAME_ROOM : 0;
    char *part = path ? malloc(size) : NULL;
    status =
        part ? replace(path, part, size, &file, error) : cpl_fail_memory(error, "keeping plans");
    free(part);
    free(path);
    cpl_bytes_free(&file);
    cpl_bytes_free(&key_bytes);
    return status;
}
