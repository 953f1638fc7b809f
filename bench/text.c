/* Buffered reading of plain and gzip text; see text.h. */
#include "text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef HAVE_ZLIB
#include <zlib.h>
#endif

enum { BUFFER_SIZE = 1 << 20 };

static void note_damage(struct text *text, const char *why)
{
    snprintf(text->damage, sizeof text->damage, "%s", why);
}

#ifdef HAVE_ZLIB

/* zlib puts the file's name before its reason; our messages have it already. */
static const char *zlib_reason(const char *path, const char *why)
{
    size_t n = strlen(path);

    if (strncmp(why, path, n) == 0 && strncmp(why + n, ": ", 2) == 0)
        why += n + 2;
    return *why ? why : "damaged gzip data";
}

/* zlib reads plain files too, as they are. */
static int file_open(struct text *text, struct bench_error *error)
{
    errno = 0;
    gzFile file = gzopen(text->path, "rb");
    if (!file)
        return bench_fail(error, "%s: cannot open: %s; check the name and the permissions",
                          text->path, errno ? strerror(errno) : "out of memory");
    gzbuffer(file, BUFFER_SIZE / 4);
    text->file = file;
    return 0;
}

static size_t file_read(struct text *text)
{
    gzFile file = text->file;
    int n = gzread(file, text->buffer, BUFFER_SIZE);
    int code = Z_OK;

    if (n > 0)
        return (size_t)n;
    /* A file cut short returns no byte, and tells so only here. */
    const char *why = gzerror(file, &code);
    if (code == Z_ERRNO)
        note_damage(text, strerror(errno));
    else if (n < 0 || code < 0)
        note_damage(text, zlib_reason(text->path, why));
    return 0;
}

static void file_close(struct text *text)
{
    gzclose_r(text->file);
}

#else

static int file_open(struct text *text, struct bench_error *error)
{
    FILE *file = fopen(text->path, "rb");
    if (!file)
        return bench_fail(error, "%s: cannot open: %s; check the name and the permissions",
                          text->path, strerror(errno));
    int first = getc(file);
    int second = getc(file);
    if (first == 0x1f && second == 0x8b) {
        fclose(file);
        return bench_fail(error,
                          "%s: is gzip-compressed and this program was built without zlib; "
                          "gunzip it, or install zlib1g-dev and build again",
                          text->path);
    }
    rewind(file);
    text->file = file;
    return 0;
}

static size_t file_read(struct text *text)
{
    size_t n = fread(text->buffer, 1, BUFFER_SIZE, text->file);

    if (n == 0 && ferror((FILE *)text->file))
        note_damage(text, strerror(errno));
    return n;
}

static void file_close(struct text *text)
{
    fclose(text->file);
}

#endif

int text_open(struct text *text, const char *path, struct bench_error *error)
{
    memset(text, 0, sizeof *text);
    text->path = path;
    text->line = 1;
    if (file_open(text, error) != 0)
        return -1;
    text->buffer = bench_array(BUFFER_SIZE, 1);
    if (!text->buffer) {
        file_close(text);
        return bench_fail(error, "%s: no memory for a read buffer of %d bytes", path, BUFFER_SIZE);
    }
    return 0;
}

void text_close(struct text *text)
{
    file_close(text);
    free(text->buffer);
    memset(text, 0, sizeof *text);
}

int text_status(const struct text *text, struct bench_error *error)
{
    if (text->damage[0] == '\0')
        return 0;
    return text_fail(text, error, "reading failed: %s; give a whole, readable file", text->damage);
}

int text_fail(const struct text *text, struct bench_error *error, const char *format, ...)
{
    char what[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    return bench_fail(error, "%s:%lld: %s", text->path, (long long)text->line, what);
}

int text_refill(struct text *text)
{
    if (text->damage[0] != '\0')
        return TEXT_END;
    text->next = 0;
    text->length = file_read(text);
    return text->length > 0 ? text->buffer[0] : TEXT_END;
}

void text_skip_blanks(struct text *text)
{
    for (int byte = text_peek(text); byte == ' ' || byte == '\t' || byte == '\r';
         byte = text_peek(text))
        text->next++;
}

static void skip_line(struct text *text)
{
    int byte;

    while ((byte = text_peek(text)) != TEXT_END) {
        text->next++;
        if (byte == '\n')
            break;
    }
    text->line++;
}

int text_skip_comments(struct text *text, int comment)
{
    for (;;) {
        text_skip_blanks(text);
        int byte = text_peek(text);
        if (byte == TEXT_END)
            return 0;
        if (byte != '\n' && byte != comment)
            return 1;
        skip_line(text);
    }
}

int text_number(struct text *text, int64_t most, int64_t *out)
{
    int64_t value = 0;
    int n_digits = 0;

    text_skip_blanks(text);
    for (int byte = text_peek(text); byte >= '0' && byte <= '9'; byte = text_peek(text)) {
        int digit = byte - '0';
        if (value > (most - digit) / 10)
            return -1;
        value = 10 * value + digit;
        n_digits++;
        text->next++;
    }
    if (n_digits == 0 || value > most)
        return -1;
    *out = value;
    return 0;
}

int text_word(struct text *text, size_t size, char *out)
{
    size_t n = 0;

    text_skip_blanks(text);
    for (int byte = text_peek(text); byte > ' '; byte = text_peek(text)) {
        if (n + 1 >= size)
            return -1;
        out[n++] = (char)byte;
        text->next++;
    }
    out[n] = '\0';
    return n > 0 ? 0 : -1;
}

int text_end_line(struct text *text)
{
    text_skip_blanks(text);
    int byte = text_peek(text);
    if (byte != '\n')
        return byte == TEXT_END ? 0 : -1;
    text->next++;
    text->line++;
    return 0;
}

int text_line(struct text *text, size_t size, char *out)
{
    size_t n = 0;

    for (int byte = text_peek(text); byte != '\n' && byte != TEXT_END; byte = text_peek(text)) {
        if (n + 1 >= size)
            return -1;
        out[n++] = (char)byte;
        text->next++;
    }
    out[n] = '\0';
    return text_end_line(text);
}
