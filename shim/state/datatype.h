/* What the shim must know of an MPI datatype: its size, and whether its data is contiguous in
 * memory, so that memcpy does what packing would. */
#ifndef CARPOOL_DATATYPE_H
#define CARPOOL_DATATYPE_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

struct cpl_type {
    MPI_Datatype handle;
    int64_t size;   /* bytes of data of one element */
    int64_t extent; /* bytes from one element to the next */
    bool dense;     /* memory order is packing order, without gaps or offsets */
    bool kept;      /* the handle is the shim's duplicate */
};

/* Describes a datatype; false for one that cannot be used (MPI_DATATYPE_NULL). Local. */
bool cpl_type_describe(MPI_Datatype handle, struct cpl_type *type);

/* Bytes of data of one element; 0 for a datatype that cannot be used. Local. */
int64_t cpl_type_size(MPI_Datatype handle);

/* Keeps a derived type usable after the program has freed it: the handle becomes a duplicate, until
 * cpl_type_release. MPI's own types stay. Returns false when MPI fails. */
bool cpl_type_keep(struct cpl_type *type);
void cpl_type_release(struct cpl_type *type);

/* Count elements at an address in a program's buffer. */
struct cpl_span {
    char *address;
    MPI_Count count;
    struct cpl_type type;
};

/* Bytes of data in a span. */
static inline int64_t cpl_span_bytes(const struct cpl_span *span)
{
    return span->count * span->type.size;
}

/* Copies between two spans of this rank, of any types with the same signature. Returns MPI_SUCCESS
 * or MPI's error. */
int cpl_span_copy(const struct cpl_span *from, const struct cpl_span *to);

/* Copies a span's data to `to` in packing order. Returns MPI_SUCCESS or MPI's error. */
int cpl_span_pack(const struct cpl_span *span, unsigned char *to);

/* Copies bytes of packed data into a span. Fewer bytes than the span holds leave its rest
 * unchanged; more give MPI_ERR_TRUNCATE and fill the span. */
int cpl_span_unpack(const struct cpl_span *span, const unsigned char *from, int64_t bytes);

/* The bytes that MPI has in the status of a truncated message, which the standard leaves open: MPI
 * is asked, by such a message to this rank. */
int64_t cpl_truncated_bytes(void);

#endif
