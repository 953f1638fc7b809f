/* Fuzz test of reading patterns: whatever the bytes, reading returns, and what it accepts is a
 * pattern as pattern.h says.
 *
 *   pattern_fuzz [N] [SEED]    N (20000) mutations of valid files, the same for the same SEED (1)
 *
 * With -DLIBFUZZER -fsanitize=fuzzer it is a libFuzzer target instead. Writes TAP, one
 * test; a violation aborts. Build with -fsanitize=address,undefined to see the rest. */
#include "planner/pattern/pattern_read.h"

#include "planner/base/hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_AFFORDABLE_RANKS 65536

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

/* Inputs that may ask for millions of ranks are passed over: they are valid, and every one would
 * take a quarter of a gigabyte. Larger numbers are refused by the reader. */
static bool is_affordable(const uint8_t *bytes, size_t n)
{
    uint64_t value = 0;
    for (size_t i = 0; i <= n; i++) {
        if (i < n && bytes[i] >= '0' && bytes[i] <= '9') {
            value = value > CPL_MAX_RANKS ? value : value * 10 + (uint64_t)(bytes[i] - '0');
            continue;
        }
        if (value > MAX_AFFORDABLE_RANKS && value <= CPL_MAX_RANKS)
            return false;
        value = 0;
    }
    return true;
}

static void need(bool condition)
{
    if (!condition)
        abort();
}

/* Whether message m comes behind the one before it: by destination, by class. */
static bool is_behind(const struct cpl_pattern *pattern, int64_t m)
{
    if (pattern->dst[m - 1] != pattern->dst[m])
        return pattern->dst[m - 1] < pattern->dst[m];
    return pattern->pairs && pattern->payload_class[m - 1] < pattern->payload_class[m];
}

static void check_pattern(const struct cpl_pattern *pattern)
{
    need(pattern->n_ranks >= 1 && pattern->n_ranks <= CPL_MAX_RANKS);
    need(pattern->first[0] == 0 && pattern->first[pattern->n_ranks] == pattern->n_messages);
    for (int32_t i = 0; i < pattern->n_ranks; i++) {
        need(pattern->first[i] <= pattern->first[i + 1]);
        for (int64_t m = pattern->first[i]; m < pattern->first[i + 1]; m++) {
            need(pattern->dst[m] >= 0 && pattern->dst[m] < pattern->n_ranks);
            need(pattern->dst[m] != i && pattern->volume[m] >= 0);
            need(m == pattern->first[i] || is_behind(pattern, m));
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    struct cpl_text_reader reader;
    struct cpl_pattern pattern;
    struct cpl_error error = {""};
    if (!is_affordable(bytes, n))
        return 0;
    cpl_text_open_memory("input", bytes, n, &reader);
    enum cpl_status status = cpl_pattern_read_text(&reader, &pattern, &error);
    cpl_text_close(&reader);
    if (status) {
        need(status == CPL_ERR_FORMAT || status == CPL_ERR_NOMEM);
        need(strncmp(error.text, "input:", 6) == 0 || status == CPL_ERR_NOMEM);
        return 0;
    }
    check_pattern(&pattern);
    cpl_pattern_free(&pattern);
    return 0;
}

#ifndef LIBFUZZER
#define BANNER "%%MatrixMarket matrix coordinate "

#define MAX_INPUT 4096

static const char *const valid_files[] = {
    "# a comment\n4\n0 1 2\n1 0 5\n1 3 3\n2 0 1\n2 3 6\n3 2 2\n",
    "5\n0 1 : 7 3 4\n0 2 : 3 4\n0 1 5\n3 3 : 1\n1 4 : 0 9223372036854775807 # all\n0 1 : 3 9\n",
    "64\r\n0 63 9223372036854775807\r\n63 0 0\r\n5 5 1\r\n",
    BANNER "integer general\n% a comment\n4 4 3\n1 2 5\n4 1 6\n1 2 7\n",
    BANNER "real symmetric\n3 3 3\n2 1 4.0\n2 2 1e2\n3 2 12.50e+1\n",
    BANNER "pattern symmetric\n5 5 2\n2 1\n5 4",
    BANNER "integer skew-symmetric\n3 3 2\n2 1 -4\n3 1 5\n",
};

/* Pieces that change what a file means more often than chance bytes do. */
static const char *const pieces[] = {"\n",
                                     "\r\n",
                                     " ",
                                     "\t",
                                     "#",
                                     ":",
                                     " : 1 2",
                                     "%",
                                     "-",
                                     "+",
                                     ".",
                                     "e",
                                     "0",
                                     "1",
                                     "e308",
                                     "e-5",
                                     "65536",
                                     "16777217",
                                     "4294967296",
                                     "9223372036854775807",
                                     "9223372036854775808",
                                     "99999999999999999999999999",
                                     "0.000000000000000000000001",
                                     "general",
                                     "symmetric",
                                     "skew-symmetric",
                                     "pattern",
                                     "integer",
                                     "real",
                                     "complex",
                                     "array",
                                     BANNER,
                                     "\x1f\x8b"};

#define N_OF(array) (sizeof(array) / sizeof *(array))

struct input {
    uint8_t bytes[MAX_INPUT];
    size_t n;
};

static size_t draw(uint64_t *random, size_t n)
{
    return (size_t)(cpl_random_next(random) % n);
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
    memmove(input->bytes + at, input->bytes + at + n, input->n - at - n);
    input->n -= n;
}

static void mutate(struct input *input, uint64_t *random)
{
    uint8_t copy[64];
    size_t at = draw(random, input->n + 1);
    size_t n_left = input->n - at;
    size_t n = n_left ? 1 + draw(random, n_left < sizeof copy ? n_left : sizeof copy) : 0;
    const char *piece = pieces[draw(random, N_OF(pieces))];
    switch (draw(random, 6)) {
    case 0:
        if (n)
            input->bytes[at] = (uint8_t)draw(random, 256);
        break;
    case 1:
        cut(input, at, n);
        break;
    case 2: /* a stretch twice */
        memcpy(copy, input->bytes + at, n);
        insert(input, at, copy, n);
        break;
    case 3: /* the end is lost */
        if (draw(random, 8) == 0)
            input->n = at;
        break;
    case 4:
        cut(input, at, n < 3 ? n : 3);
        insert(input, at, piece, strlen(piece));
        break;
    default:
        insert(input, at, piece, strlen(piece));
    }
}

static void run_one(uint64_t *random)
{
    struct input input;
    const char *file = valid_files[draw(random, N_OF(valid_files))];
    input.n = strlen(file);
    memcpy(input.bytes, file, input.n);
    for (size_t n = 1 + draw(random, 8); n > 0; n--)
        mutate(&input, random);
    /* A block of just this size lets the sanitizers see reads past the end. */
    uint8_t *exact = malloc(input.n ? input.n : 1);
    need(exact);
    memcpy(exact, input.bytes, input.n);
    LLVMFuzzerTestOneInput(exact, input.n);
    free(exact);
}

int main(int argc, char **argv)
{
    uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 10) : 20000;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    printf("1..1\n");
    for (size_t f = 0; f < N_OF(valid_files); f++)
        LLVMFuzzerTestOneInput((const uint8_t *)valid_files[f], strlen(valid_files[f]));
    for (uint64_t i = 0; i < n; i++) {
        uint64_t random = cpl_hash_mix(seed) ^ i;
        run_one(&random);
    }
    printf("ok 1 - %" PRIu64 " inputs with seed %" PRIu64 "\n", n, seed);
    return 0;
}
#endif
