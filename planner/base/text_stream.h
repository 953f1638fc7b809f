/* A file's bytes, decompressed when it is a gzip file and the library was built with zlib: what
 * text_reader.c reads from. Thread rule: one thread at a time per stream. */
#ifndef CARPOOL_TEXT_STREAM_H
#define CARPOOL_TEXT_STREAM_H

#include <stddef.h>

/* Why reading failed. */
struct cpl_text_stream_error {
    int io;              /* an errno when the system failed, else 0 */
    const char *damaged; /* what is wrong with the data, NULL when it is sound */
};

/* Opens a file, NULL with errno set when that fails. The caller closes it. */
void *cpl_text_stream_open(const char *file);

/* Reads up to n bytes, at least one before the end. Returns the number of bytes read, 0 at the end
 * or after a failure. *error describes the failure, all zero without one. */
size_t cpl_text_stream_read(void *stream, char *bytes, size_t n,
                            struct cpl_text_stream_error *error);

void cpl_text_stream_close(void *stream);

#endif
