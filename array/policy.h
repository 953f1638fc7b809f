/* Policies: what becomes of several writes of one element (carpool_array.h). */
#ifndef CARPOOL_ARRAY_POLICY_H
#define CARPOOL_ARRAY_POLICY_H

#include "array_internal.h"

/* What the datatype of the options is. */
enum cpl_basic cpl_policy_basic(MPI_Datatype type);

/* ns that combining a write into a value takes. */
double cpl_policy_work_ns(const struct cpl_array *array);

/* Whether requests must say which rank wrote. */
bool cpl_policy_needs_rank(const struct cpl_array *array);

/* Combines a write into *value of *writer, -1: of nobody yet. Writes of one rank come in the order
 * in which they were queued. */
void cpl_policy_combine(struct cpl_array *array, char *value, int32_t *writer, const char *written,
                        int32_t rank);

#endif
