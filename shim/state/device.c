/* Memory of devices (device.h). */
#include "shim/state/device.h"

#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int look_at(struct dl_phdr_info *object, size_t size, void *unused)
{
    /* and what there is where there is a device */
    static const char *const runtimes[][2] = {
        {"libcuda.so", "/"}, {"libamdhip64.so", "/dev/kfd"}, {"libze_loader.so", "/dev/dri"}};
    const char *slash = strrchr(object->dlpi_name, '/');
    const char *name = slash ? slash + 1 : object->dlpi_name;
    (void)size, (void)unused;
    for (size_t k = 0; k < sizeof runtimes / sizeof *runtimes; k++)
        if (strncmp(name, runtimes[k][0], strlen(runtimes[k][0])) == 0 &&
            access(runtimes[k][1], F_OK) == 0)
            cpl_context.machine.has_device = true;
    return 0;
}

void cpl_device_look(void)
{
    if (!cpl_context.machine.has_device)
        dl_iterate_phdr(look_at, NULL);
}

/* The kernel reads a signal mask there before it finds that the request makes no sense. */
bool cpl_device_is_unreadable(const void *address)
{
    const long no_request = -1, mask_bytes = 8;
    const uintptr_t at = (uintptr_t)address & ~(uintptr_t)(mask_bytes - 1);
    const int before = errno;
    bool unreadable =
        syscall(SYS_rt_sigprocmask, no_request, at, NULL, mask_bytes) != 0 && errno == EFAULT;
    errno = before;
    return unreadable;
}
