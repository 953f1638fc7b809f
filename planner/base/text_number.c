/* Numbers of text files (text_reader.h). The C library's strtod and strtoll are not used: they
 * follow the program's locale, read on past the end of a line, and are slower.
 *
 * A number is read as sign, up to 19 decimal digits and a power of ten, which holds every int64_t
 * exactly; whole numbers thus never pass through floating point. */
#include "planner/base/text_reader.h"

#include <inttypes.h>
#include <math.h>

#define MAX_DIGITS   19   /* that surely fit 64 bits */
#define MAX_EXPONENT 9999 /* larger than any useful exponent; keeps sums of exponents small */

/* (-1)^negative * digits * 10^exponent; more digits that are not zero may have been dropped. */
struct decimal {
    bool is_negative;
    bool is_cut;
    uint64_t digits;
    int exponent;
};

/* Reading position inside a field. */
struct cursor {
    const char *at;
    const char *end;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool take_sign(struct cursor *cursor)
{
    if (cursor->at == cursor->end || (*cursor->at != '-' && *cursor->at != '+'))
        return false;
    return *cursor->at++ == '-';
}

/* Appends a run of digits, those behind the point when is_fraction; returns how many. */
static int take_digits(struct cursor *cursor, struct decimal *decimal, bool is_fraction)
{
    const char *begin = cursor->at;
    for (; cursor->at < cursor->end && is_digit(*cursor->at); cursor->at++) {
        unsigned digit = (unsigned)(*cursor->at - '0');
        if (decimal->digits < UINT64_C(1000000000000000000)) { /* 19 digits at most */
            decimal->digits = decimal->digits * 10 + digit;
            decimal->exponent -= is_fraction;
        } else {
            decimal->is_cut |= digit != 0;
            decimal->exponent += !is_fraction;
        }
    }
    return cursor->at > begin;
}

static bool take_exponent(struct cursor *cursor, struct decimal *decimal)
{
    if (cursor->at == cursor->end || (*cursor->at | 0x20) != 'e')
        return true;
    cursor->at++;
    bool is_negative = take_sign(cursor);
    const char *begin = cursor->at;
    int exponent = 0;
    for (; cursor->at < cursor->end && is_digit(*cursor->at); cursor->at++)
        if (exponent < MAX_EXPONENT)
            exponent = exponent * 10 + (*cursor->at - '0');
    decimal->exponent += is_negative ? -exponent : exponent;
    return cursor->at > begin;
}

/* Reads all of a field as a number; false when it is none. */
static bool parse_decimal(struct cpl_text_word word, bool is_real, struct decimal *decimal)
{
    struct cursor cursor = {word.begin, word.begin + word.length};
    *decimal = (struct decimal){0};
    decimal->is_negative = take_sign(&cursor);
    int n = take_digits(&cursor, decimal, false);
    if (is_real) {
        if (cursor.at < cursor.end && *cursor.at == '.') {
            cursor.at++;
            n += take_digits(&cursor, decimal, true);
        }
        if (!n || !take_exponent(&cursor, decimal))
            return false;
    }
    return n && cursor.at == cursor.end;
}

/* The value of a decimal as an integer; false when it has a fraction or does not fit. */
static bool decimal_to_integer(struct decimal decimal, int64_t *value)
{
    *value = 0;
    if (!decimal.digits)
        return true;
    while (decimal.exponent < 0 && decimal.digits % 10 == 0) {
        decimal.digits /= 10;
        decimal.exponent++;
    }
    if (decimal.exponent < 0)
        return false;
    if (decimal.is_cut)
        return false;
    for (; decimal.exponent > 0; decimal.exponent--) {
        if (decimal.digits > INT64_MAX / 10)
            return false;
        decimal.digits *= 10;
    }
    if (decimal.digits > INT64_MAX)
        return false;
    *value = decimal.is_negative ? -(int64_t)decimal.digits : (int64_t)decimal.digits;
    return true;
}

static enum cpl_status take_number(struct cpl_text_reader *reader, const char *what, bool is_real,
                                   struct cpl_text_word *word, struct decimal *decimal,
                                   struct cpl_error *error)
{
    char quote[CPL_TEXT_QUOTE];
    if (!cpl_text_take_word(reader, word))
        return cpl_text_fail(reader, error, "%s is missing; expected %s", what, reader->expected);
    if (!parse_decimal(*word, is_real, decimal))
        return cpl_text_fail(reader, error, "%s is \"%s\", not a %snumber; expected %s", what,
                             cpl_text_quote(*word, quote), is_real ? "" : "whole ",
                             reader->expected);
    return CPL_OK;
}

static enum cpl_status take_in_range(struct cpl_text_reader *reader, const char *what, bool is_real,
                                     int64_t min, int64_t max, int64_t *value,
                                     struct cpl_error *error)
{
    struct cpl_text_word word;
    struct decimal decimal;
    int64_t integer;
    enum cpl_status status = take_number(reader, what, is_real, &word, &decimal, error);
    if (status)
        return status;
    if (decimal_to_integer(decimal, &integer) && integer >= min && integer <= max) {
        *value = integer;
        return CPL_OK;
    }
    char quote[CPL_TEXT_QUOTE];
    return cpl_text_fail(reader, error,
                         "%s is %s; expected a whole number from %" PRId64 " to %" PRId64, what,
                         cpl_text_quote(word, quote), min, max);
}

enum cpl_status cpl_text_take_integer(struct cpl_text_reader *reader, const char *what, int64_t min,
                                      int64_t max, int64_t *value, struct cpl_error *error)
{
    return take_in_range(reader, what, false, min, max, value, error);
}

enum cpl_status cpl_text_take_whole(struct cpl_text_reader *reader, const char *what, int64_t min,
                                    int64_t max, int64_t *value, struct cpl_error *error)
{
    return take_in_range(reader, what, true, min, max, value, error);
}

/* Correctly rounded for up to 15 digits and powers of ten up to 22, else within a few units in the
 * last place. */
static double decimal_to_real(struct decimal decimal)
{
    double value = (double)decimal.digits;
    double power = 1;
    int n = decimal.exponent < 0 ? -decimal.exponent : decimal.exponent;
    for (; n > 22; n -= 22)
        value = decimal.exponent < 0 ? value / 1e22 : value * 1e22;
    for (; n > 0; n--)
        power *= 10;
    return decimal.exponent < 0 ? value / power : value * power;
}

enum cpl_status cpl_text_take_real(struct cpl_text_reader *reader, const char *what, double *value,
                                   struct cpl_error *error)
{
    struct cpl_text_word word;
    struct decimal decimal;
    enum cpl_status status = take_number(reader, what, true, &word, &decimal, error);
    if (status)
        return status;
    double real = decimal_to_real(decimal);
    if (isfinite(real) && !(decimal.is_negative && decimal.digits)) {
        *value = real;
        return CPL_OK;
    }
    char quote[CPL_TEXT_QUOTE];
    return cpl_text_fail(reader, error, "%s is %s; expected a finite number of at least 0", what,
                         cpl_text_quote(word, quote));
}
