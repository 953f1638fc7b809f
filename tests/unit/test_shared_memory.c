/* Tests of shared memory (shim/base/shared_memory.h) between this process and children: they see
 * the same bytes, what cannot be had is told and leaves nothing behind, and no name stays. */
#include "shim/base/shared_memory.h"

#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { BYTES = 100000, CHILDREN = 3 };

/* Names in /dev/shm that this process, or the one that it was forked from, has made. */
static int n_names(pid_t maker)
{
    char mine[64];
    int n = 0, length = snprintf(mine, sizeof mine, "carpool-%ld-", (long)maker);
    DIR *directory = opendir("/dev/shm");
    assert_non_null(directory);
    for (const struct dirent *entry; (entry = readdir(directory));)
        n += strncmp(entry->d_name, mine, (size_t)length) == 0;
    closedir(directory);
    return n;
}

/* Runs a part of a test in a child, which must end well and leave nothing. */
static void in_child(bool (*part)(const struct cpl_shared_name *name),
                     const struct cpl_shared_name *name)
{
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(part(name) ? 0 : 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(n_names(child), 0);
}

static unsigned char *make(struct cpl_shared_name *name)
{
    char why[CPL_SHARED_WHY] = "";
    unsigned char *memory = cpl_shared_make(BYTES, name, why);
    assert_non_null(memory);
    assert_string_equal(why, "");
    assert_int_equal(name->bytes, BYTES);
    assert_int_equal(n_names(getpid()), 1);
    return memory;
}

/* A child that attaches sees what was written, and adds 1. */
static bool adds_one(const struct cpl_shared_name *name)
{
    char why[CPL_SHARED_WHY] = "";
    unsigned char *memory = cpl_shared_attach(name, why);
    if (!memory || why[0] || memory[CPL_SHARED_HEAD] != 41)
        return false;
    memory[CPL_SHARED_HEAD]++;
    memory[BYTES - 1]++;
    cpl_shared_free(memory, BYTES);
    return true;
}

static void test_same_memory(void **state)
{
    (void)state;
    struct cpl_shared_name name;
    unsigned char *memory = make(&name);
    for (int k = sizeof name; k < BYTES; k++)
        assert_int_equal(memory[k], 0);
    for (int k = 0; k < CHILDREN; k++) {
        memory[CPL_SHARED_HEAD] = 41;
        in_child(adds_one, &name);
        assert_int_equal(memory[CPL_SHARED_HEAD], 42);
    }
    assert_int_equal(memory[BYTES - 1], CHILDREN);
    cpl_shared_unname(&name);
    assert_int_equal(n_names(getpid()), 0);
    memory[BYTES - 1] = 7; /* it stays without its name */
    cpl_shared_free(memory, BYTES);
}

static bool finds_nothing(const struct cpl_shared_name *name)
{
    char why[CPL_SHARED_WHY] = "";
    return !cpl_shared_attach(name, why) && strstr(why, "cannot open") &&
           strstr(why, "No such file");
}

static void test_no_name(void **state)
{
    (void)state;
    struct cpl_shared_name name;
    unsigned char *memory = make(&name);
    cpl_shared_unname(&name);
    in_child(finds_nothing, &name);
    cpl_shared_free(memory, BYTES);
}

static bool finds_another(const struct cpl_shared_name *name)
{
    char why[CPL_SHARED_WHY] = "";
    return !cpl_shared_attach(name, why) && strstr(why, "not that of another");
}

/* Another machine may have other memory by the same name. */
static void test_not_the_same(void **state)
{
    (void)state;
    struct cpl_shared_name name;
    unsigned char *memory = make(&name);
    struct cpl_shared_name nonce = name, longer = name, shorter = name;
    nonce.nonce++;
    longer.bytes += 4096;
    shorter.bytes -= 4096;
    in_child(finds_another, &nonce);
    in_child(finds_another, &longer);
    in_child(finds_another, &shorter);
    memory[CPL_SHARED_HEAD] = 41;
    in_child(adds_one, &name);
    cpl_shared_unname(&name);
    cpl_shared_free(memory, BYTES);
}

static bool fails(int64_t bytes, const char *expected)
{
    struct cpl_shared_name name;
    char why[CPL_SHARED_WHY] = "";
    return !cpl_shared_make(bytes, &name, why) && name.name[0] == '\0' && strstr(why, expected);
}

/* In children, whose limits end with them. */
static bool too_many_files(const struct cpl_shared_name *unused)
{
    (void)unused;
    struct rlimit none = {0, 0};
    return setrlimit(RLIMIT_NOFILE, &none) == 0 && fails(BYTES, "Too many open files");
}

static bool too_large_a_file(const struct cpl_shared_name *unused)
{
    (void)unused;
    struct rlimit some = {BYTES / 2, BYTES / 2};
    return setrlimit(RLIMIT_FSIZE, &some) == 0 && fails(BYTES, "File too large");
}

static bool too_much_memory(const struct cpl_shared_name *unused)
{
    (void)unused;
    struct rlimit some = {4096, 4096};
    return setrlimit(RLIMIT_AS, &some) == 0 && fails(BYTES, "cannot map shared memory");
}

static bool more_than_there_is(const struct cpl_shared_name *unused)
{
    (void)unused;
    return fails(INT64_C(1) << 60, "no room for shared memory");
}

static void test_limits(void **state)
{
    (void)state;
    bool (*const parts[])(const struct cpl_shared_name *) = {too_many_files, too_large_a_file,
                                                             too_much_memory, more_than_there_is};
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
        in_child(parts[k], NULL);
}

/* A file system of which so many bytes are left; 0: the real one. */
static int64_t n_left;

int __real_fstatvfs(int file, struct statvfs *room);
int __wrap_fstatvfs(int file, struct statvfs *room);

int __wrap_fstatvfs(int file, struct statvfs *room)
{
    int result = __real_fstatvfs(file, room);
    if (n_left > 0)
        room->f_bavail = (fsblkcnt_t)n_left / room->f_frsize;
    return result;
}

/* MPI and the program need room, too. */
static void test_half_stays(void **state)
{
    (void)state;
    struct cpl_shared_name name;
    n_left = 2 * BYTES - 8192;
    assert_true(fails(BYTES, "no room for shared memory: No space left"));
    assert_int_equal(n_names(getpid()), 0);
    n_left = 2 * BYTES + 16384;
    unsigned char *memory = make(&name);
    cpl_shared_unname(&name);
    cpl_shared_free(memory, BYTES);
    n_left = 0;
}

/* A kernel that breaks off at each signal, with a profiler whose signals come all the time. */
static int n_interrupted = -1; /* counts from 0 */

int __real_posix_fallocate(int file, off_t offset, off_t bytes);
int __wrap_posix_fallocate(int file, off_t offset, off_t bytes);

int __wrap_posix_fallocate(int file, off_t offset, off_t bytes)
{
    sigset_t blocked;
    sigprocmask(SIG_BLOCK, NULL, &blocked);
    if (n_interrupted < 0 || sigismember(&blocked, SIGPROF))
        return __real_posix_fallocate(file, offset, bytes);
    assert_in_range(++n_interrupted, 0, 1000);
    return EINTR;
}

static void test_signals(void **state)
{
    (void)state;
    struct cpl_shared_name name;
    sigset_t blocked;
    n_interrupted = 0;
    unsigned char *memory = make(&name);
    n_interrupted = -1;
    sigprocmask(SIG_BLOCK, NULL, &blocked);
    assert_false(sigismember(&blocked, SIGPROF));
    cpl_shared_unname(&name);
    cpl_shared_free(memory, BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_memory),  cmocka_unit_test(test_no_name),
        cmocka_unit_test(test_not_the_same), cmocka_unit_test(test_limits),
        cmocka_unit_test(test_half_stays),   cmocka_unit_test(test_signals),
    };
    return cmocka_run_group_tests_name("shared memory", tests, NULL, NULL);
}
