/* Mutations of inputs for parsers_fuzz.c. */
#include "parsers_fuzz.h"

#include "planner/base/hash.h"

#include <string.h>

/* Pieces that change what an input means more often than chance bytes do; first the numbers. */
static const char *const pieces[] = {"0",
                                     "-1",
                                     "1",
                                     "2147483648",
                                     "4294967296",
                                     "9223372036854775807",
                                     "9223372036854775808",
                                     "-9223372036854775808",
                                     "1e400",
                                     "1e-400",
                                     "nan",
                                     "inf",
                                     "0x10",
                                     "16777217",
                                     "99999999999999999999999",
                                     "1.5",
                                     "\n",
                                     "\r\n",
                                     " ",
                                     "\t",
                                     "#",
                                     ":",
                                     ",",
                                     "%",
                                     "-",
                                     "+",
                                     ".",
                                     "\"",
                                     "{",
                                     "}",
                                     "[",
                                     "]",
                                     "null",
                                     "true",
                                     "{}",
                                     "[]",
                                     "(",
                                     ")",
                                     "=",
                                     "\\u0000",
                                     "\xff\xfe",
                                     "\x1f\x8b",
                                     "general",
                                     "array",
                                     "%%MatrixMarket matrix ",
                                     "pack:2 ",
                                     "numa:3 ",
                                     "+klr",
                                     "balance:hops=2",
                                     "<!--",
                                     "]]>",
                                     "K",
                                     "G",
                                     "CARPOOL_"};

#define N_PIECES  (sizeof pieces / sizeof *pieces)
#define N_NUMBERS 16

size_t draw(uint64_t *random, size_t n)
{
    uint64_t next = cpl_random_next(random);
    return n ? (size_t)(next % n) : 0;
}

static void insert(struct input *input, size_t at, const void *bytes, size_t n)
{
    if (n > MAX_INPUT - input->n)
        return;
    memmove(input->bytes + at + n, input->bytes + at, input->n - at);
    memcpy(input->bytes + at, bytes, n);
    input->n += n;
}

static void cut(struct input *input, size_t at, size_t n)
{
    if (n > input->n - at)
        n = input->n - at;
    memmove(input->bytes + at, input->bytes + at + n, input->n - at - n);
    input->n -= n;
}

static bool is_digit(uint8_t byte)
{
    return byte >= '0' && byte <= '9';
}

/* Another number in the place of the one behind `at`. */
static void replace_number(struct input *input, size_t at, uint64_t *random)
{
    const char *number = pieces[draw(random, N_NUMBERS)];
    size_t n = 0;
    while (at < input->n && !is_digit(input->bytes[at]))
        at++;
    while (at + n < input->n && is_digit(input->bytes[at + n]))
        n++;
    cut(input, at, n);
    insert(input, at, number, strlen(number));
}

static void swap_stretches(struct input *input, uint64_t *random)
{
    size_t n = 1 + draw(random, 16), a, b;
    uint8_t kept[16];
    if (input->n < 2 * n)
        return;
    a = draw(random, input->n - 2 * n + 1);
    b = a + n + draw(random, input->n - a - 2 * n + 1);
    memcpy(kept, input->bytes + a, n);
    memcpy(input->bytes + a, input->bytes + b, n);
    memcpy(input->bytes + b, kept, n);
}

static void splice(struct input *input, size_t at, const struct input *other, uint64_t *random)
{
    size_t from = draw(random, other->n + 1), n = draw(random, other->n - from + 1);
    if (draw(random, 4) == 0)
        input->n = at;
    insert(input, at, other->bytes + from, n);
}

static void mutate_once(struct input *input, const struct input *other, uint64_t *random)
{
    uint8_t copy[256];
    size_t at = draw(random, input->n + 1), left = input->n - at;
    size_t n = left ? 1 + draw(random, left < sizeof copy ? left : sizeof copy) : 0;
    const char *piece = pieces[draw(random, N_PIECES)];
    switch (draw(random, 10)) {
    case 0:
        if (left)
            input->bytes[at] ^= (uint8_t)(1u << draw(random, 8));
        break;
    case 1:
        if (left)
            input->bytes[at] = (uint8_t)draw(random, 256);
        break;
    case 2:
        cut(input, at, draw(random, 3) ? 1 + n % 4 : n);
        break;
    case 3:
        memcpy(copy, input->bytes + at, n);
        for (size_t times = 1 + draw(random, 4); times > 0; times--)
            insert(input, at, copy, n);
        break;
    case 4:
        if (draw(random, 6) == 0)
            input->n = at;
        break;
    case 5:
    case 6:
        replace_number(input, at, random);
        break;
    case 7:
        swap_stretches(input, random);
        break;
    case 8:
        splice(input, at, other, random);
        break;
    default:
        insert(input, at, piece, strlen(piece));
    }
}

void mutate(struct input *input, const struct input *other, uint64_t *random)
{
    for (size_t n = draw(random, 6); n > 0; n--)
        mutate_once(input, other, random);
}
