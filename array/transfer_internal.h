/* Functions that transfer.c and transfer_plain.c share. */
#ifndef CARPOOL_ARRAY_TRANSFER_INTERNAL_H
#define CARPOOL_ARRAY_TRANSFER_INTERNAL_H

#include "transfer.h"

int64_t cpl_record_bytes(const struct cpl_array *array, const struct cpl_record *record);

/* Packs requests first .. first+n-1 of a batch into a message; unpacks them from one. */
void cpl_pack(const struct cpl_array *array, const struct cpl_record *record,
              const struct cpl_batch *batch, int64_t first, int64_t n, char *to);
void cpl_unpack(const struct cpl_array *array, const struct cpl_record *record, const char *from,
                int64_t first, int64_t n, struct cpl_batch *batch);

/* The forms of cpl_transfer_forward and cpl_transfer_back on plain routes. packed has the messages
 * of the stage's out_first; answer and result are not NULL. */
void cpl_transfer_plain(struct cpl_array *array, const struct cpl_record *record,
                        const char *packed, struct cpl_batch *in, enum cpl_outcome *outcome);
void cpl_transfer_plain_back(struct cpl_array *array, const char *answer, char *result);

#endif
