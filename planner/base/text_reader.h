/* Text files of lines with fields: patterns, machine files. Reads through one buffer, gzip files
 * too when built with zlib, and words the errors of all formats alike: "FILE:LINE: what is wrong;
 * expected ...".
 *
 * Order of calls: cpl_text_open (or cpl_text_open_memory), set comment and expected, then
 * cpl_text_next_line or cpl_text_next_fields for each line, with the field functions taking the
 * line's fields from left to right, cpl_text_end after the last one; cpl_text_close. Lines end in
 * "\n" or "\r\n"; the last one may have no end. Fields are separated by blanks and tabs. Numbers do
 * not depend on the program's locale.
 *
 * Cost: a few nanoseconds per byte and no allocation but the buffer. Thread rule: one thread at a
 * time per reader. */
#ifndef CARPOOL_TEXT_READER_H
#define CARPOOL_TEXT_READER_H

#include "planner/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The longest line in bytes; a longer one is an error. */
#define CPL_TEXT_MAX_LINE ((size_t)64 << 10)

struct cpl_text_reader {
    const char *name;     /* file name, for messages; the caller keeps it alive */
    int64_t line;         /* number of the current line, from 1; 0 before the first */
    const char *at;       /* next byte of the current line */
    const char *end;      /* end of the current line */
    char comment;         /* starts a comment that ends with the line; 0: there are none */
    const char *expected; /* how a line should look; messages about fields end with it */

    /* private */
    const char *next;  /* first buffered byte after the current line */
    const char *limit; /* end of the buffered bytes */
    char *buffer;      /* NULL when the text lies in the caller's memory */
    void *stream;
    bool is_at_end; /* the stream has no more bytes */
};

/* A field: length bytes at begin, not terminated. */
struct cpl_text_word {
    const char *begin;
    size_t length;
};

/* Opens a file. Returns CPL_OK (the caller closes the reader), CPL_ERR_IO, CPL_ERR_NOMEM. */
enum cpl_status cpl_text_open(const char *file, struct cpl_text_reader *reader,
                              struct cpl_error *error);

/* A reader of n bytes of memory, which the caller keeps alive; not decompressed. */
void cpl_text_open_memory(const char *name, const void *bytes, size_t n,
                          struct cpl_text_reader *reader);

/* Releases the reader's memory and file; closing twice does no harm. */
void cpl_text_close(struct cpl_text_reader *reader);

/* Goes to the next line; *found is false at the end of the text, where line stays the number of the
 * last line. Returns CPL_OK, CPL_ERR_IO, CPL_ERR_FORMAT (line too long, damaged or, without zlib,
 * any gzip data). */
enum cpl_status cpl_text_next_line(struct cpl_text_reader *reader, bool *found,
                                   struct cpl_error *error);

/* Goes to the next line that has more than blanks and a comment. */
enum cpl_status cpl_text_next_fields(struct cpl_text_reader *reader, bool *found,
                                     struct cpl_error *error);

/* Whether the line has another field. */
bool cpl_text_has_field(struct cpl_text_reader *reader);

/* Takes the next field of the line; false when there is none. */
bool cpl_text_take_word(struct cpl_text_reader *reader, struct cpl_text_word *word);

/* Whether a field is the given text, capitals or not (ASCII). */
bool cpl_text_word_is(struct cpl_text_word word, const char *text);

/* Takes a whole number in min .. max. what names it in messages ("the source rank"). Returns CPL_OK
 * or CPL_ERR_FORMAT. */
enum cpl_status cpl_text_take_integer(struct cpl_text_reader *reader, const char *what, int64_t min,
                                      int64_t max, int64_t *value, struct cpl_error *error);

/* Takes a whole number in min .. max that may be written like a real one ("3", "3.0", "0.3e1"); it
 * is read exactly. */
enum cpl_status cpl_text_take_whole(struct cpl_text_reader *reader, const char *what, int64_t min,
                                    int64_t max, int64_t *value, struct cpl_error *error);

/* Takes a finite real number >= 0. Returns CPL_OK or CPL_ERR_FORMAT. */
enum cpl_status cpl_text_take_real(struct cpl_text_reader *reader, const char *what, double *value,
                                   struct cpl_error *error);

/* Checks that the line has no more fields. Returns CPL_OK or CPL_ERR_FORMAT. */
enum cpl_status cpl_text_end(struct cpl_text_reader *reader, struct cpl_error *error);

/* CPL_ERR_FORMAT with "FILE:LINE: " and the text of a printf format. */
enum cpl_status cpl_text_fail(const struct cpl_text_reader *reader, struct cpl_error *error,
                              const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The start of a field for messages: printable, cut to fit. Returns text. */
#define CPL_TEXT_QUOTE 40
const char *cpl_text_quote(struct cpl_text_word word, char text[CPL_TEXT_QUOTE]);

#endif
