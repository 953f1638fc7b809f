/* Lists of matrix entries; see edges.h. */
#include "edges.h"

#include <stdlib.h>
#include <string.h>

enum { DIGIT_BITS = 16, N_DIGITS = 1 << DIGIT_BITS };

static int edges_grow(struct edges *edges)
{
    size_t room = edges->room > 0 ? edges->room : 1 << 16;
    uint64_t *key = room > SIZE_MAX / 2 ? NULL : bench_resize(edges->key, 2 * room, sizeof *key);

    if (!key)
        return -1;
    edges->key = key;
    edges->room = 2 * room;
    return 0;
}

void edges_add(struct edges *edges, int row, int col)
{
    if (edges->is_symmetric && row < col) {
        int upper_row = row;
        row = col;
        col = upper_row;
    }
    if (edges->n == edges->room && edges_grow(edges) != 0)
        edges->is_full = 1;
    else
        edges->key[edges->n++] = (uint64_t)(uint32_t)col << 32 | (uint32_t)row;
}

/* One pass of a radix sort: stable by the digit that begins at the bit. */
static void sort_by_digit(const uint64_t *in, size_t n, int bit, size_t *place, uint64_t *out)
{
    memset(place, 0, (N_DIGITS + 1) * sizeof *place);
    for (size_t k = 0; k < n; k++)
        place[(in[k] >> bit & (N_DIGITS - 1)) + 1]++;
    for (size_t digit = 0; digit < N_DIGITS; digit++)
        place[digit + 1] += place[digit];
    for (size_t k = 0; k < n; k++)
        out[place[in[k] >> bit & (N_DIGITS - 1)]++] = in[k];
}

static int sort_keys(struct edges *edges)
{
    uint64_t *other = bench_array(edges->n, sizeof *other);
    size_t *place = bench_array(N_DIGITS + 1, sizeof *place);

    if (other && place) {
        /* An even number of passes ends in the array where it began. */
        for (int bit = 0; bit < 64; bit += 2 * DIGIT_BITS) {
            sort_by_digit(edges->key, edges->n, bit, place, other);
            sort_by_digit(other, edges->n, bit + DIGIT_BITS, place, edges->key);
        }
    }
    int status = other && place ? 0 : -1;
    free(other);
    free(place);
    return status;
}

int edges_finish(struct edges *edges, struct bench_error *error)
{
    size_t n = 0;

    for (int i = 0; i < edges->n_vertices; i++)
        edges_add(edges, i, i);
    if (edges->is_full || sort_keys(edges) != 0)
        return bench_fail(error, "no memory for more than %zu entries; ask for a smaller matrix",
                          edges->n);
    for (size_t k = 0; k < edges->n; k++)
        if (k == 0 || edges->key[k] != edges->key[k - 1])
            edges->key[n++] = edges->key[k];
    edges->n = n;
    return 0;
}

/* Write the digits of a number backwards, ending before `end`; returns where they begin. */
static char *put_number(uint32_t number, char *end)
{
    do
        *--end = (char)('0' + number % 10);
    while (number /= 10);
    return end;
}

static void write_entry(uint64_t key, FILE *file)
{
    char line[24]; /* two numbers of up to ten digits, a blank and a line end */
    char *end = line + sizeof line;
    char *at = end;

    *--at = '\n';
    at = put_number((uint32_t)(key >> 32) + 1, at);
    *--at = ' ';
    at = put_number((uint32_t)key + 1, at);
    fwrite(at, 1, (size_t)(end - at), file);
}

int edges_write(const struct edges *edges, const char *comment, FILE *file)
{
    fprintf(file, "%%%%MatrixMarket matrix coordinate pattern %s\n%% %s\n%d %d %zu\n",
            edges->is_symmetric ? "symmetric" : "general", comment, edges->n_vertices,
            edges->n_vertices, edges->n);
    for (size_t k = 0; k < edges->n && !ferror(file); k++)
        write_entry(edges->key[k], file);
    return fflush(file) != 0 || ferror(file) ? -1 : 0;
}

void edges_free(struct edges *edges)
{
    free(edges->key);
    edges->key = NULL;
    edges->n = edges->room = 0;
}
