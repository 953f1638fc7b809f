/* Datatypes and the copying of typed data (datatype.h). */
#include "shim/state/datatype.h"

#include "shim/state/context.h"
#include "shim/state/device.h"

#include <string.h>

static bool is_dense(MPI_Datatype handle, int depth);

/* A type that repeats one other type without gaps is dense if that type is. */
static bool inner_is_dense(MPI_Datatype handle, int n_integers, int n_addresses, int n_types,
                           int depth)
{
    int integers[1];
    MPI_Aint addresses[1];
    MPI_Datatype inner;
    if (n_integers > 1 || n_addresses > 0 || n_types != 1 ||
        PMPI_Type_get_contents(handle, n_integers, 0, 1, integers, addresses, &inner) !=
            MPI_SUCCESS)
        return false;
    int a, b, c, combiner;
    bool dense = is_dense(inner, depth + 1);
    PMPI_Type_get_envelope(inner, &a, &b, &c, &combiner);
    if (combiner != MPI_COMBINER_NAMED)
        PMPI_Type_free(&inner);
    return dense;
}

static bool is_dense(MPI_Datatype handle, int depth)
{
    int n_integers, n_addresses, n_types, combiner;
    if (depth > 8 || PMPI_Type_get_envelope(handle, &n_integers, &n_addresses, &n_types,
                                            &combiner) != MPI_SUCCESS)
        return false;
    if (combiner == MPI_COMBINER_NAMED) {
        MPI_Count size;
        MPI_Aint lower, extent;
        PMPI_Type_size_x(handle, &size);
        PMPI_Type_get_extent(handle, &lower, &extent);
        return lower == 0 && size == extent; /* pair types such as MPI_DOUBLE_INT have a gap */
    }
    if (combiner != MPI_COMBINER_DUP && combiner != MPI_COMBINER_CONTIGUOUS)
        return false;
    return inner_is_dense(handle, n_integers, n_addresses, n_types, depth);
}

static bool is_named(MPI_Datatype handle)
{
    int a, b, c, combiner;
    return PMPI_Type_get_envelope(handle, &a, &b, &c, &combiner) == MPI_SUCCESS &&
           combiner == MPI_COMBINER_NAMED;
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
