/* What hwloc asks of a process, where it is linked into libcarpool.so.
 *
 * A program, or a library of it, may define crc32, or a function with a name of jansson's or
 * hwloc's. So these libraries are static archives inside libcarpool.so, whose symbols nobody else
 * sees and which see none but libc's. Debian's hwloc is compiled for programs: it takes libc's
 * variables to be near, which they are not for a shared library. linked_in.syms gives them the
 * names below. It asks libudev about disks, which no plan needs: here nobody answers, and libudev
 * stays away. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>

FILE *cpl_linked_in_stdin, *cpl_linked_in_stdout, *cpl_linked_in_stderr;
char *cpl_linked_in_name;

static __attribute__((constructor)) void begin(void)
{
    cpl_linked_in_stdin = stdin;
    cpl_linked_in_stdout = stdout;
    cpl_linked_in_stderr = stderr;
    cpl_linked_in_name = program_invocation_name;
}

#define NOBODY(name)                                                                               \
    void *name(void);                                                                              \
    void *name(void)                                                                               \
    {                                                                                              \
        return NULL;                                                                               \
    }
NOBODY(udev_new)
NOBODY(udev_unref)
NOBODY(udev_device_new_from_subsystem_sysname)
NOBODY(udev_device_get_property_value)
NOBODY(udev_device_unref)
