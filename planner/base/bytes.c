/* Byte strings (bytes.h). */
#include "planner/base/bytes.h"

#include "planner/base/hash.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ALIGN      8
#define FIRST_ROOM 4096

static size_t padded(size_t n)
{
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

static bool grow(struct cpl_bytes *bytes, size_t more)
{
    size_t room = bytes->room ? bytes->room : FIRST_ROOM;
    if (more > SIZE_MAX / 4 - bytes->n)
        return false;
    while (room < bytes->n + more)
        room *= 2;
    if (room == bytes->room)
        return true;
    unsigned char *at = realloc(bytes->at, room);
    if (!at)
        return false;
    bytes->at = at;
    bytes->room = room;
    return true;
}

void cpl_bytes_put(struct cpl_bytes *bytes, const void *elements, size_t n, size_t size)
{
    if (n > SIZE_MAX / 4 / size || bytes->failed || !grow(bytes, padded(n * size))) {
        bytes->failed = true;
        return;
    }
    if (n > 0)
        memcpy(bytes->at + bytes->n, elements, n * size);
    memset(bytes->at + bytes->n + n * size, 0, padded(n * size) - n * size);
    bytes->n += padded(n * size);
}

void cpl_bytes_put_integer(struct cpl_bytes *bytes, int64_t value)
{
    cpl_bytes_put(bytes, &value, 1, sizeof value);
}

void cpl_bytes_put_real(struct cpl_bytes *bytes, double value)
{
    cpl_bytes_put(bytes, &value, 1, sizeof value);
}

void cpl_bytes_put_text(struct cpl_bytes *bytes, const char *text)
{
    cpl_bytes_put_integer(bytes, (int64_t)strlen(text));
    cpl_bytes_put(bytes, text, strlen(text), 1);
}

void cpl_bytes_free(struct cpl_bytes *bytes)
{
    free(bytes->at);
    *bytes = (struct cpl_bytes){NULL, 0, 0, false};
}

uint64_t cpl_bytes_hash(const void *at, size_t n)
{
    const uint64_t *words = at;
    uint64_t hash = cpl_hash_word(CPL_HASH_START, n);
    for (size_t k = 0; k < n / sizeof *words; k++)
        hash = cpl_hash_word(hash, words[k]);
    return hash;
}

const void *cpl_bytes_take(struct cpl_byte_reader *reader, uint64_t n, size_t size)
{
    const unsigned char *at = reader->at;
    if (reader->failed || n > reader->n / size || padded((size_t)n * size) > reader->n) {
        reader->failed = true;
        return NULL;
    }
    reader->at += padded((size_t)n * size);
    reader->n -= padded((size_t)n * size);
    return at;
}

int64_t cpl_bytes_take_integer(struct cpl_byte_reader *reader, int64_t low, int64_t high)
{
    const int64_t *value = cpl_bytes_take(reader, 1, sizeof *value);
    if (value && *value >= low && *value <= high)
        return *value;
    reader->failed = true;
    return 0;
}

double cpl_bytes_take_real(struct cpl_byte_reader *reader)
{
    const double *value = cpl_bytes_take(reader, 1, sizeof *value);
    if (value && isfinite(*value) && *value >= 0)
        return *value;
    reader->failed = true;
    return 0;
}

void cpl_bytes_take_text(struct cpl_byte_reader *reader, char *text, size_t size)
{
    int64_t length = cpl_bytes_take_integer(reader, 0, (int64_t)size - 1);
    const char *at = cpl_bytes_take(reader, (uint64_t)length, 1);
    text[0] = '\0';
    if (reader->failed)
        return;
    memcpy(text, at, (size_t)length);
    text[length] = '\0';
}
