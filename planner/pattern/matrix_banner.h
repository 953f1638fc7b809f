/* The banner of Matrix Market files (Boisvert, Pozo, Remington, NISTIR 5935): "%%MatrixMarket
 * OBJECT LAYOUT FIELD SYMMETRY". Each reader has tables of the words it knows. */
#ifndef CARPOOL_MATRIX_BANNER_H
#define CARPOOL_MATRIX_BANNER_H

#include "planner/base/text_reader.h"

#define CPL_BANNER "%%MatrixMarket"

/* A word of the banner: its meaning, or a remedy when the reader does not support it. The last word
 * of a table has a text of NULL. */
struct cpl_banner_word {
    const char *text;
    int meaning;
    const char *remedy; /* NULL: the word is understood */
};

/* Takes the banner's next word. Returns CPL_OK with what the word means, CPL_ERR_FORMAT. */
enum cpl_status cpl_banner_take(struct cpl_text_reader *reader, const struct cpl_banner_word *words,
                                int *meaning, struct cpl_error *error);

#endif
