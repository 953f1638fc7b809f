/* Messages divided in parts: what only one destination gets, and what several get alike. A part for
 * several destinations travels once; before each exchange the sender compares the copies, byte for
 * byte, and adds what differs.
 *
 * The payload of a part is its elements one after the other, as its first whole destination has
 * them. Records may follow, which its length tells: the destination's place among those of the part
 * and either the number of an element, with that destination's own, or a word that says that its
 * message is not of the size it was divided by: it is then in the record, in another part, or sent
 * straight. A message that cannot be divided (gaps, several pieces) is always in such a record.
 *
 * Order of calls: the sender builds, hands each destination the words of its message, and then, for
 * every exchange, measures and packs. The receiver views the words and then reads every payload and
 * scatters its elements. Leaf module: no MPI calls. Thread rule: one exchange at a time. */
#ifndef CARPOOL_PARTS_H
#define CARPOOL_PARTS_H

#include "planner/arena.h"

#include <stdbool.h>
#include <stdint.h>

/* A message of the exchange at hand. */
struct cpl_piece {
    const unsigned char *data; /* elements one after the other; NULL: not in one piece */
    int64_t bytes;             /* of the message as packed */
    int32_t unit;              /* bytes of an element */
    bool straight;             /* does not ride this time */
};

/* An element of a message that belongs to a part. */
struct cpl_place {
    int32_t part, message, position;
};

struct cpl_part {
    int32_t n_dests;
    int32_t n;           /* elements */
    int64_t first_dest;  /* into cpl_parts.dest */
    int64_t first_index; /* into cpl_parts.index: n positions for each destination */
    int32_t base;        /* in this exchange: the destination whose elements are sent, -1: none */
    int64_t bytes;       /* of payload in this exchange */
};

/* All messages of a rank. Part m is what message m has alone, perhaps nothing; those of several
 * destinations follow. Rows list the parts of each message, ascending. */
struct cpl_parts {
    int32_t n_messages;
    int32_t unit;
    int32_t n_parts;
    int32_t n_rows;
    int64_t *message_bytes; /* by which the message was divided; -1: it was not */
    struct cpl_part *part;
    int32_t *dest;      /* messages, ascending in a part */
    int32_t *index;     /* positions */
    int32_t *first_row; /* n_messages + 1 */
    int32_t *row_part;
    int32_t *row_place;     /* which of the part's destinations the message is */
    int64_t saved;          /* bytes that need not travel as long as all copies are equal */
    int64_t n_shared;       /* elements of parts with several destinations, copies not counted */
    struct cpl_arena arena; /* owns the arrays */
};

/* What became of the copies in an exchange. */
struct cpl_parts_tally {
    int64_t broken;      /* elements that differed */
    int64_t lost_broken; /* bytes of records because of these */
    int64_t lost;        /* of all records of messages that were divided */
};

/* Divides n messages of message_bytes each (-1: not to be divided). The places, sorted by part
 * (from 0), message and the order in which elements are to travel, say what several destinations
 * share: in a part every message has the same number of them. Returns false when memory ran out.
 * The caller frees *parts. */
bool cpl_parts_build(int32_t n_messages, const int64_t *message_bytes, int32_t unit,
                     const struct cpl_place *places, int64_t n_places, struct cpl_parts *parts);

void cpl_parts_free(struct cpl_parts *parts);

/* The payload class (planner/pattern.h) of a row. */
int32_t cpl_parts_class(const struct cpl_parts *parts, int32_t row);

/* Bytes of a part's elements. */
int64_t cpl_parts_volume(const struct cpl_parts *parts, int32_t part);

/* Called for each copy that is not what the others are. */
typedef void cpl_parts_broken(void *context, int32_t message, int32_t position);

/* Compares all copies and finds the bytes of all payloads. */
void cpl_parts_measure(struct cpl_parts *parts, const struct cpl_piece *pieces,
                       struct cpl_parts_tally *tally, cpl_parts_broken *broken, void *context);

/* Packs a message that is not in one piece; returns an MPI error code. */
typedef int cpl_parts_pack_whole(void *context, int32_t message, unsigned char *to);

/* Writes the payload of a part that was measured. Returns what pack_whole did, else 0. */
int cpl_parts_pack(const struct cpl_parts *parts, int32_t part, const struct cpl_piece *pieces,
                   unsigned char *to, cpl_parts_pack_whole *pack_whole, void *context);

/* How a message is divided, in words, for its destination: their number (at most INT32_MAX, else
 * -1), and themselves. */
int32_t cpl_parts_n_words(const struct cpl_parts *parts, int32_t message);
void cpl_parts_write(const struct cpl_parts *parts, int32_t message, int32_t *words);

/* The same as its destination sees it; points into the words. */
struct cpl_divided {
    int32_t unit;
    int32_t n_rows;
    int64_t bytes;        /* of the whole message; -1: not divided */
    const int32_t *row;   /* ROW_WORDS each */
    const int32_t *index; /* all positions */
};

/* Returns false when the words make no sense. */
bool cpl_divided_view(const int32_t *words, int32_t n_words, struct cpl_divided *divided);

/* What the payload of a row has for this destination. */
enum cpl_row_kind {
    CPL_ROW_ELEMENTS, /* cpl_divided_scatter takes them */
    CPL_ROW_WHOLE,    /* the whole message */
    CPL_ROW_NOTHING,  /* it is in another row */
    CPL_ROW_STRAIGHT, /* it comes straight */
    CPL_ROW_DAMAGED
};

/* Looks at a payload; where it has the whole message, that is *bytes bytes at *whole. */
enum cpl_row_kind cpl_divided_read(const struct cpl_divided *divided, int32_t row,
                                   const unsigned char *data, int64_t n,
                                   const unsigned char **whole, int64_t *bytes);

/* Puts the elements of a row to their places in the message at `to` (divided->bytes of it). */
void cpl_divided_scatter(const struct cpl_divided *divided, int32_t row, const unsigned char *data,
                         int64_t n, unsigned char *to);

#endif
