/* Lines and fields of text files (text_reader.h). A line is found by memchr in the buffer and never
 * copied; the numbers of the common form are one loop over its digits. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "planner/base/text_reader.h"

#include "planner/base/text_stream.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER_SIZE    (4 * CPL_TEXT_MAX_LINE)
#define MAX_NAME_SHOWN 160 /* bytes of a file's name in a message, from its end */

/* A file's name for a message: the end of it, after "..." when it was cut. */
static const char *shown_name(const char *name, const char **dots)
{
    size_t length = strlen(name);
    *dots = length > MAX_NAME_SHOWN ? "..." : "";
    return length > MAX_NAME_SHOWN ? name + (length - MAX_NAME_SHOWN) : name;
}

static enum cpl_status fail_io(const struct cpl_text_reader *reader, const char *what, int code,
                               struct cpl_error *error)
{
    const char *dots;
    const char *name = shown_name(reader->name, &dots);
    if (code == ENOMEM)
        return cpl_fail_memory(error, "reading a file");
    return cpl_fail(error, CPL_ERR_IO, "%s%s: cannot be %s: %s", dots, name, what, strerror(code));
}

enum cpl_status cpl_text_fail(const struct cpl_text_reader *reader, struct cpl_error *error,
                              const char *format, ...)
{
    struct cpl_error what;
    va_list args;
    va_start(args, format);
    vsnprintf(what.text, sizeof what.text, format, args);
    va_end(args);
    const char *dots;
    const char *name = shown_name(reader->name, &dots);
    return cpl_fail(error, CPL_ERR_FORMAT, "%s%s:%lld: %s", dots, name,
                    (long long)(reader->line ? reader->line : 1), what.text);
}

enum cpl_status cpl_text_open(const char *file, struct cpl_text_reader *reader,
                              struct cpl_error *error)
{
    struct cpl_text_reader opened = {.name = file, .expected = "text"};
    opened.stream = cpl_text_stream_open(file);
    if (!opened.stream)
        return fail_io(&opened, "opened", errno, error);
    opened.buffer = malloc(BUFFER_SIZE);
    if (!opened.buffer) {
        cpl_text_close(&opened);
        return cpl_fail_memory(error, "reading a file");
    }
    opened.next = opened.limit = opened.at = opened.end = opened.buffer;
    *reader = opened;
    return CPL_OK;
}

void cpl_text_open_memory(const char *name, const void *bytes, size_t n,
                          struct cpl_text_reader *reader)
{
    const char *text = n ? bytes : "";
    *reader = (struct cpl_text_reader){.name = name,
                                       .at = text,
                                       .end = text,
                                       .expected = "text",
                                       .next = text,
                                       .limit = text + n,
                                       .is_at_end = true};
}

void cpl_text_close(struct cpl_text_reader *reader)
{
    if (reader->stream)
        cpl_text_stream_close(reader->stream);
    free(reader->buffer);
    reader->stream = NULL;
    reader->buffer = NULL;
}

/* Moves the begun line to the buffer's front and reads on behind it. */
static enum cpl_status refill(struct cpl_text_reader *reader, struct cpl_error *error)
{
    size_t n_kept = (size_t)(reader->limit - reader->next);
    memmove(reader->buffer, reader->next, n_kept);
    struct cpl_text_stream_error failure;
    size_t n = cpl_text_stream_read(reader->stream, reader->buffer + n_kept, BUFFER_SIZE - n_kept,
                                    &failure);
    if (failure.io)
        return fail_io(reader, "read", failure.io, error);
    if (failure.damaged) {
        reader->line++;
        return cpl_text_fail(reader, error, "%s", failure.damaged);
    }
    reader->next = reader->buffer;
    reader->limit = reader->buffer + n_kept + n;
    reader->is_at_end = n == 0;
    return CPL_OK;
}

static enum cpl_status take_line(struct cpl_text_reader *reader, size_t length, bool has_end,
                                 struct cpl_error *error)
{
    reader->line++;
    if (length > CPL_TEXT_MAX_LINE)
        return cpl_text_fail(reader, error, "the line is longer than %zu bytes; expected %s",
                             CPL_TEXT_MAX_LINE, reader->expected);
    reader->at = reader->next;
    reader->end = reader->next + length;
    reader->next = reader->end + has_end;
    if (has_end && length && reader->end[-1] == '\r')
        reader->end--;
    return CPL_OK;
}

enum cpl_status cpl_text_next_line(struct cpl_text_reader *reader, bool *found,
                                   struct cpl_error *error)
{
    for (;;) {
        size_t n = (size_t)(reader->limit - reader->next);
        const char *newline = n ? memchr(reader->next, '\n', n) : NULL;
        if (newline || n > CPL_TEXT_MAX_LINE || (n && reader->is_at_end)) {
            *found = true;
            return take_line(reader, newline ? (size_t)(newline - reader->next) : n, newline,
                             error);
        }
        if (reader->is_at_end) {
            *found = false;
            return CPL_OK;
        }
        enum cpl_status status = refill(reader, error);
        if (status)
            return status;
    }
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

bool cpl_text_has_field(struct cpl_text_reader *reader)
{
    while (reader->at < reader->end && is_blank(*reader->at))
        reader->at++;
    return reader->at < reader->end && (!reader->comment || *reader->at != reader->comment);
}

enum cpl_status cpl_text_next_fields(struct cpl_text_reader *reader, bool *found,
                                     struct cpl_error *error)
{
    enum cpl_status status;
    do
        status = cpl_text_next_line(reader, found, error);
    while (!status && *found && !cpl_text_has_field(reader));
    return status;
}

static bool ends_field(const struct cpl_text_reader *reader, const char *at)
{
    return at == reader->end || is_blank(*at) || (reader->comment && *at == reader->comment);
}

bool cpl_text_take_word(struct cpl_text_reader *reader, struct cpl_text_word *word)
{
    if (!cpl_text_has_field(reader))
        return false;
    const char *begin = reader->at;
    while (!ends_field(reader, reader->at))
        reader->at++;
    *word = (struct cpl_text_word){begin, (size_t)(reader->at - begin)};
    return true;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool cpl_text_word_is(struct cpl_text_word word, const char *text)
{
    for (size_t i = 0; i < word.length; i++)
        if (!text[i] || lower(word.begin[i]) != lower(text[i]))
            return false;
    return !text[word.length];
}

const char *cpl_text_quote(struct cpl_text_word word, char text[CPL_TEXT_QUOTE])
{
    size_t n = 0;
    size_t i = 0;
    /* room for one escaped byte, the dots and the end */
    while (i < word.length && n + sizeof "\\xff..." <= CPL_TEXT_QUOTE) {
        unsigned char c = (unsigned char)word.begin[i++];
        if (c >= ' ' && c < 0x7f && c != '\\')
            text[n++] = (char)c;
        else
            n += (size_t)snprintf(text + n, CPL_TEXT_QUOTE - n, "\\x%02x", c);
    }
    snprintf(text + n, CPL_TEXT_QUOTE - n, "%s", i < word.length ? "..." : "");
    return text;
}

enum cpl_status cpl_text_end(struct cpl_text_reader *reader, struct cpl_error *error)
{
    struct cpl_text_word word;
    if (!cpl_text_take_word(reader, &word))
        return CPL_OK;
    char quote[CPL_TEXT_QUOTE];
    return cpl_text_fail(reader, error, "\"%s\" follows the last field; expected %s",
                         cpl_text_quote(word, quote), reader->expected);
}
