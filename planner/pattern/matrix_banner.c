/* The banner of Matrix Market files (matrix_banner.h). */
#include "planner/pattern/matrix_banner.h"

enum cpl_status cpl_banner_take(struct cpl_text_reader *reader, const struct cpl_banner_word *words,
                                int *meaning, struct cpl_error *error)
{
    struct cpl_text_word word;
    char quote[CPL_TEXT_QUOTE];
    if (!cpl_text_take_word(reader, &word))
        return cpl_text_fail(reader, error, "the Matrix Market banner is cut; expected %s",
                             reader->expected);
    for (; words->text; words++) {
        if (!cpl_text_word_is(word, words->text))
            continue;
        if (words->remedy)
            return cpl_text_fail(reader, error, "a Matrix Market file of the kind \"%s\" %s",
                                 words->text, words->remedy);
        *meaning = words->meaning;
        return CPL_OK;
    }
    return cpl_text_fail(reader, error, "\"%s\" in the Matrix Market banner; expected %s",
                         cpl_text_quote(word, quote), reader->expected);
}
