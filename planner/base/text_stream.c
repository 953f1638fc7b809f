/* Bytes of plain and of gzip files (text_stream.h). zlib's gzFile passes plain files through
 * unchanged, so with zlib there is one path for both. Without zlib the C library's streams are
 * used, and a gzip file is recognised by its first two bytes (RFC 1952, 2.3.1). */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "planner/base/text_stream.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>

#ifdef HAVE_ZLIB
#include <zlib.h>

#define ZLIB_BUFFER (128u << 10) /* zlib's default of 8 KiB costs a system call each */

void *cpl_text_stream_open(const char *file)
{
    errno = 0;
    gzFile stream = gzopen(file, "rb");
    if (!stream && !errno)
        errno = ENOMEM; /* the only failure that zlib.h gives no errno for */
    if (stream)
        gzbuffer(stream, ZLIB_BUFFER);
    return stream;
}

static void set_failure(gzFile stream, struct cpl_text_stream_error *error)
{
    int code = Z_OK;
    int system = errno;
    gzerror(stream, &code);
    if (code == Z_ERRNO)
        error->io = system ? system : EIO;
    else if (code == Z_MEM_ERROR)
        error->io = ENOMEM;
    else if (code == Z_BUF_ERROR)
        error->damaged = "the gzip data ends early";
    else if (code != Z_OK && code != Z_STREAM_END)
        error->damaged = "the gzip data is damaged";
}

size_t cpl_text_stream_read(void *stream, char *bytes, size_t n,
                            struct cpl_text_stream_error *error)
{
    *error = (struct cpl_text_stream_error){0};
    int got = gzread(stream, bytes, n < INT_MAX ? (unsigned)n : INT_MAX);
    if (got <= 0)
        set_failure(stream, error);
    return got > 0 ? (size_t)got : 0;
}

void cpl_text_stream_close(void *stream)
{
    gzclose(stream);
}

#else
#include <stdio.h>

void *cpl_text_stream_open(const char *file)
{
    return fopen(file, "rb");
}

static bool is_gzip(const char *bytes, size_t n)
{
    return n > 1 && (unsigned char)bytes[0] == 0x1f && (unsigned char)bytes[1] == 0x8b;
}

size_t cpl_text_stream_read(void *stream, char *bytes, size_t n,
                            struct cpl_text_stream_error *error)
{
    *error = (struct cpl_text_stream_error){0};
    errno = 0;
    size_t n_read = fread(bytes, 1, n, stream);
    if (!n_read && ferror((FILE *)stream))
        error->io = errno ? errno : EIO;
    if (!is_gzip(bytes, n_read)) /* no text has these bytes anywhere, so any piece may be tested */
        return n_read;
    error->damaged = "this is a gzip file, and Carpool was built without zlib: gunzip it, or build "
                     "Carpool with zlib (Debian's zlib1g-dev)";
    return 0;
}

void cpl_text_stream_close(void *stream)
{
    fclose(stream);
}
#endif
