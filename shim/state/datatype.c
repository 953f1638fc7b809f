/* Datatypes and the copying of typed data (datatype.h), arguments of messages (describe.h). */
#include "shim/state/datatype.h"

#include "shim/state/comm_state.h"
#include "shim/state/describe.h"

#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool is_named(MPI_Datatype handle)
{
    int a, b, c, combiner;
    return PMPI_Type_get_envelope(handle, &a, &b, &c, &combiner) == MPI_SUCCESS &&
           combiner == MPI_COMBINER_NAMED;
}

/* A type that repeats one other type without gaps is dense if that type is. */
static bool is_dense(MPI_Datatype handle, int depth)
{
    int n_integers, n_addresses, n_types, combiner, integers[1];
    MPI_Aint addresses[1], lower, extent;
    MPI_Datatype inner;
    MPI_Count size;
    if (depth > 8 || PMPI_Type_get_envelope(handle, &n_integers, &n_addresses, &n_types,
                                            &combiner) != MPI_SUCCESS)
        return false;
    if (combiner == MPI_COMBINER_NAMED) {
        PMPI_Type_size_x(handle, &size);
        PMPI_Type_get_extent(handle, &lower, &extent);
        return lower == 0 && size == extent; /* pair types such as MPI_DOUBLE_INT have a gap */
    }
    if ((combiner != MPI_COMBINER_DUP && combiner != MPI_COMBINER_CONTIGUOUS) || n_integers > 1 ||
        n_addresses > 0 || n_types != 1 ||
        PMPI_Type_get_contents(handle, n_integers, 0, 1, integers, addresses, &inner) !=
            MPI_SUCCESS)
        return false;
    bool dense = is_dense(inner, depth + 1);
    if (!is_named(inner))
        PMPI_Type_free(&inner);
    return dense;
}

bool cpl_type_keep(struct cpl_type *type)
{
    if (cpl_type_named(type->handle) || is_named(type->handle))
        return true;
    type->kept = PMPI_Type_dup(type->handle, &type->handle) == MPI_SUCCESS;
    return type->kept;
}

void cpl_type_release(struct cpl_type *type)
{
    if (type->kept)
        PMPI_Type_free(&type->handle);
    type->kept = false;
}

int64_t cpl_type_size(MPI_Datatype handle)
{
    const struct cpl_type *known = cpl_type_named(handle);
    struct cpl_type type = {.size = 0};
    MPI_Count size = 0;
    if (known)
        return known->size;
    if (handle == MPI_DATATYPE_NULL)
        return 0;
    if (is_named(handle))
        return cpl_type_describe(handle, &type) ? type.size : 0;
    return PMPI_Type_size_x(handle, &size) == MPI_SUCCESS ? (int64_t)size : 0;
}

bool cpl_type_describe(MPI_Datatype handle, struct cpl_type *type)
{
    const struct cpl_type *known = cpl_type_named(handle);
    MPI_Count size;
    MPI_Aint lower, extent;
    if (known)
        *type = *known;
    if (known)
        return true;
    if (handle == MPI_DATATYPE_NULL || PMPI_Type_size_x(handle, &size) != MPI_SUCCESS ||
        PMPI_Type_get_extent(handle, &lower, &extent) != MPI_SUCCESS || size < 0)
        return false;
    *type = (struct cpl_type){handle, size, extent, is_dense(handle, 0), false};
    if (extent > 0 && is_named(handle))
        *cpl_context_type(handle) = *type; /* MPI's own types do not change */
    return true;
}

/* A message of this rank to itself converts any type to any other, and takes addresses relative to
 * MPI_BOTTOM, which packing refuses, and on devices. */
static int convert(const void *from, MPI_Count n_from, MPI_Datatype from_type, void *to,
                   MPI_Count n_to, MPI_Datatype to_type)
{
    return PMPI_Sendrecv_c(from, n_from, from_type, 0, 0, to, n_to, to_type, 0, 0,
                           cpl_context.comms.self, MPI_STATUS_IGNORE);
}

int cpl_span_pack(const struct cpl_span *span, unsigned char *to)
{
    int64_t bytes = cpl_span_bytes(span);
    bool is_far = bytes > 0 && cpl_device_has(span->address);
    if (span->type.dense && !is_far) {
        memcpy(to, span->address, (size_t)bytes);
        return MPI_SUCCESS;
    }
    if (!span->address || is_far)
        return convert(span->address, span->count, span->type.handle, to, bytes, MPI_PACKED);
    MPI_Count position = 0;
    return PMPI_Pack_c(span->address, span->count, span->type.handle, to, bytes, &position,
                       cpl_context.comms.self);
}

int cpl_span_copy(const struct cpl_span *from, const struct cpl_span *to)
{
    int64_t bytes = cpl_span_bytes(from);
    bool is_far = bytes > 0 && (cpl_device_has(from->address) || cpl_device_has(to->address));
    if (from->type.dense && to->type.dense && bytes <= cpl_span_bytes(to) && !is_far) {
        if (bytes > 0)
            memmove(to->address, from->address, (size_t)bytes);
        return MPI_SUCCESS;
    }
    return convert(from->address, from->count, from->type.handle, to->address, to->count,
                   to->type.handle);
}

int cpl_span_unpack(const struct cpl_span *span, const unsigned char *from, int64_t bytes)
{
    int64_t room = cpl_span_bytes(span);
    int result = bytes > room ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
    int64_t fitting = bytes > room ? room : bytes;
    MPI_Count position = 0;
    if (fitting == 0)
        return result;
    bool is_far = cpl_device_has(span->address);
    if (span->type.dense && !is_far) {
        memcpy(span->address, from, (size_t)fitting);
        return result;
    }
    int code;
    if (fitting == room && span->address && !is_far)
        code = PMPI_Unpack_c(from, fitting, &position, span->address, span->count,
                             span->type.handle, cpl_context.comms.self);
    else /* it may end inside an element, too */
        code = convert(from, fitting, MPI_PACKED, span->address, span->count, span->type.handle);
    return result == MPI_SUCCESS ? code : result;
}

int64_t cpl_truncated_bytes(void)
{
    char sent[2] = {0}, room;
    MPI_Status status = {0};
    MPI_Count bytes = 0;
    PMPI_Sendrecv_c(sent, 2, MPI_BYTE, 0, 0, &room, 1, MPI_BYTE, 0, 0, cpl_context.comms.self,
                    &status);
    PMPI_Get_elements_x(&status, MPI_BYTE, &bytes);
    return bytes;
}

/* ---- arguments */

/* Whether MPI accepts the arguments, without a message. SimGrid miscounts such requests; simulated
 * programs have no wrong arguments. */
#ifdef CPL_SIMULATED
#define is_refused(buffer, count, type, tag, receives) false
#else
static bool is_refused(const void *buffer, MPI_Count count, MPI_Datatype type, int tag,
                       bool receives)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int result = receives ? PMPI_Irecv_c((void *)(uintptr_t)buffer, count, type, MPI_PROC_NULL, tag,
                                         cpl_context.comms.self, &request)
                          : PMPI_Isend_c(buffer, count, type, MPI_PROC_NULL, tag,
                                         cpl_context.comms.self, &request);
    if (result == MPI_SUCCESS)
        PMPI_Wait(&request, MPI_STATUS_IGNORE);
    return result != MPI_SUCCESS;
}
#endif

bool cpl_describe_with_care(const void *buffer, MPI_Count count, MPI_Datatype type, int tag,
                            bool receives, struct cpl_span *span)
{
    bool plain_tag = (tag >= 0 && tag <= cpl_context.tag_ub) || (receives && tag == MPI_ANY_TAG);
    if (!(cpl_type_named(type) && plain_tag && buffer && count >= 0) &&
        is_refused(buffer, count, type, tag, receives))
        return false;
    span->address = (char *)(uintptr_t)buffer;
    span->count = count;
    return cpl_type_describe(type, &span->type);
}

bool cpl_is_peer(MPI_Comm comm, int peer, bool receives)
{
    const struct cpl_comm_state *state = cpl_comm_state_get(comm);
    return state && !state->inter &&
           (peer == MPI_PROC_NULL || cpl_is_rank(peer, state->size, receives));
}

/* ---- memory of devices */

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
