/* A byte string: numbers, arrays and texts are written one after another and read in the same
 * order. Each begins at a multiple of 8 bytes, padding is 0, numbers are in this machine's byte
 * order.
 *
 * Order of calls: cpl_bytes_put..., then check `failed`; cpl_bytes_free. Reading: a struct
 * cpl_byte_reader over memory aligned to 8 bytes, cpl_bytes_take... Thread rule: one thread at a
 * time. */
#ifndef CARPOOL_BYTES_H
#define CARPOOL_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cpl_bytes {
    unsigned char *at; /* NULL when empty; else to be freed by cpl_bytes_free */
    size_t n;          /* a multiple of 8 */
    size_t room;
    bool failed; /* memory ran out; the contents are invalid */
};

/* Appends n elements of size bytes; does nothing once memory has run out. */
void cpl_bytes_put(struct cpl_bytes *bytes, const void *elements, size_t n, size_t size);

/* Appends a number, and a text with its length in front. */
void cpl_bytes_put_integer(struct cpl_bytes *bytes, int64_t value);
void cpl_bytes_put_real(struct cpl_bytes *bytes, double value);
void cpl_bytes_put_text(struct cpl_bytes *bytes, const char *text);

void cpl_bytes_free(struct cpl_bytes *bytes);

/* A hash of n bytes at memory aligned to 8, n a multiple of 8. A change of any one word changes
 * it. */
uint64_t cpl_bytes_hash(const void *at, size_t n);

struct cpl_byte_reader {
    const unsigned char *at;
    size_t n;    /* bytes not yet read */
    bool failed; /* a read asked for more than there is, or found an invalid value */
};

/* The next n elements of size bytes, where they are; NULL, and failed, when there are fewer. */
const void *cpl_bytes_take(struct cpl_byte_reader *reader, uint64_t n, size_t size);

/* The next number; 0, and failed, when there is none or it is not from low to high. */
int64_t cpl_bytes_take_integer(struct cpl_byte_reader *reader, int64_t low, int64_t high);

/* The next number; 0, and failed, when there is none or it is not finite and at least 0. */
double cpl_bytes_take_real(struct cpl_byte_reader *reader);

/* Copies the next text; "", and failed, when there is none or it does not fit size bytes. */
void cpl_bytes_take_text(struct cpl_byte_reader *reader, char *text, size_t size);

#endif
