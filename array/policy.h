/* Policies: how several writes of one element are combined (carpool_array.h). */
#ifndef CARPOOL_ARRAY_POLICY_H
#define CARPOOL_ARRAY_POLICY_H

#include "array_internal.h"

/* The basic type behind the datatype of the options. */
enum cpl_basic cpl_policy_basic(MPI_Datatype type);

/* Nanoseconds that combining a write into a value takes. */
double cpl_policy_work_ns(const struct cpl_array *array);

/* Whether requests must say which rank wrote. */
bool cpl_policy_needs_rank(const struct cpl_array *array);

/* Combines the write of a rank into *value, last written by *writer (-1: by nobody yet). Writes of
 * one rank come in the order in which they were queued. */
void cpl_policy_combine(struct cpl_array *array, char *value, int32_t *writer, const char *written,
                        int32_t rank);

#endif
