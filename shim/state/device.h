/* Memory of devices. A program that gives MPI buffers on a GPU has the GPU's runtime in the
 * process; a plain copy cannot read such memory. So where there is a runtime, each buffer is looked
 * at before it is copied, and MPI copies what the processor cannot read: an MPI that takes such
 * buffers knows how. The processor reads managed and pinned memory as any other. */
#ifndef CARPOOL_DEVICE_H
#define CARPOOL_DEVICE_H

#include "shim/state/context.h"

#include <stdbool.h>

/* Looks whether a GPU's runtime is in the process, which the loader may bring in later, and there
 * is a GPU: Debian 13's UCX brings Level Zero's anywhere. Local. */
void cpl_device_look(void);

/* Whether the processor cannot read at an address. Costs a system call. Local. */
bool cpl_device_is_unreadable(const void *address);

/* Whether a buffer is on a device. Costs a branch where there is no runtime. Local. */
static inline bool cpl_device_has(const void *address)
{
    return __builtin_expect(cpl_context.machine.has_device, 0) && cpl_device_is_unreadable(address);
}

#endif
