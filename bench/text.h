/*
 * A text file, plain or gzip, read character by character through a large buffer, with the line
 * number kept for error messages.
 *
 * Use: text_open; then text_peek, text_skip_*, text_number, text_word, text_end_line in any order;
 * text_status once the end was seen (a damaged file looks like one that ends); text_close.
 * Cost: about a nanosecond per character beside the decompression. gzip needs zlib (HAVE_ZLIB);
 * without it a compressed file is refused with a message that says so.
 */
#ifndef BENCH_TEXT_H
#define BENCH_TEXT_H

#include "common.h"

#include <stdint.h>

enum { TEXT_END = -1 };

struct text {
    const char *path; /* the caller's; must outlive the text */
    void *file;       /* gzFile or FILE * */
    unsigned char *buffer;
    size_t length, next; /* bytes in the buffer; the next one to read */
    int64_t line;        /* line number of the next byte, from 1 */
    char damage[128];    /* why reading stopped early, or "" */
};

/* Open the file. 0, or -1 with the error set and nothing to close. */
int text_open(struct text *text, const char *path, struct bench_error *error);

/* Close the file and free the buffer. */
void text_close(struct text *text);

/* 0 if all that was read so far was read well; -1 with the error set after a read error. */
int text_status(const struct text *text, struct bench_error *error);

/* Set the error to `FILE:LINE: message` for the line of the next byte; returns -1. */
int text_fail(const struct text *text, struct bench_error *error, const char *format, ...)
    BENCH_PRINTF(3, 4);

/* Read more bytes and return the first of them, or TEXT_END; only text_peek calls this. */
int text_refill(struct text *text);

/* The next byte without taking it, or TEXT_END. */
static inline int text_peek(struct text *text)
{
    return text->next < text->length ? text->buffer[text->next] : text_refill(text);
}

/* Skip spaces, tabs and carriage returns. */
void text_skip_blanks(struct text *text);

/* Skip lines that are empty or begin with the comment character. 1 if something is left, else 0. */
int text_skip_comments(struct text *text, int comment);

/* Skip blanks and read a number from 0 to most. 0, or -1 if there is none (*out untouched). */
int text_number(struct text *text, int64_t most, int64_t *out);

/* Skip blanks and read up to the next blank or line end. 0, or -1 if empty or size too small. */
int text_word(struct text *text, size_t size, char *out);

/* Skip blanks and take the line end (or stand at the file's end). 0, or -1 if more follows. */
int text_end_line(struct text *text);

/* Read the rest of the line and take its end. 0, or -1 if size is too small. */
int text_line(struct text *text, size_t size, char *out);

#endif
