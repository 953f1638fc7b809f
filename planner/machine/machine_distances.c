/* Measured distances (machine.h): Matrix Market files, and the machine's own copy.
 *
 * Cost: one pass over the file, 4 bytes per pair of ranks. */
#include "planner/machine.h"
#include "planner/pattern/matrix_banner.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#define EXPECTED_BANNER                                                                            \
    "\"" CPL_BANNER " matrix LAYOUT FIELD SYMMETRY\", LAYOUT array or coordinate, FIELD real or "  \
    "integer, SYMMETRY general or symmetric"

enum { LAYOUT_ARRAY, LAYOUT_COORDINATE };
enum { SYMMETRY_GENERAL, SYMMETRY_SYMMETRIC };

static const struct cpl_banner_word object_words[] = {{"matrix", 0, NULL}, {NULL, 0, NULL}};

static const struct cpl_banner_word layout_words[] = {
    {"array", LAYOUT_ARRAY, NULL}, {"coordinate", LAYOUT_COORDINATE, NULL}, {NULL, 0, NULL}};

static const struct cpl_banner_word field_words[] = {
    {"real", 0, NULL},
    {"double", 0, NULL}, /* in files of the format's first years */
    {"integer", 0, NULL},
    {"pattern", 0, "has no values; distances are real"},
    {"complex", 0, "has values that are no distances; write them as real"},
    {NULL, 0, NULL}};

static const struct cpl_banner_word symmetry_words[] = {
    {"general", SYMMETRY_GENERAL, NULL},
    {"symmetric", SYMMETRY_SYMMETRIC, NULL},
    {"skew-symmetric", 0, "has negative distances; write general"},
    {"hermitian", 0, "is for complex values, which are no distances; write symmetric and real"},
    {NULL, 0, NULL}};

/* A file of distances while it is read. */
struct reading {
    struct cpl_text_reader text;
    int layout;
    int symmetry;
    int32_t n_ranks;
    int64_t n_entries;
    float *us; /* -1 for pairs that are not known yet */
};

static enum cpl_status read_banner(struct reading *reading, struct cpl_error *error)
{
    struct cpl_text_reader *text = &reading->text;
    struct cpl_text_word word;
    char quote[CPL_TEXT_QUOTE];
    bool found;
    int ignored;
    text->expected = EXPECTED_BANNER;
    enum cpl_status status = cpl_text_next_line(text, &found, error);
    if (status)
        return status;
    if (!found || !cpl_text_take_word(text, &word))
        return cpl_text_fail(text, error, "the file does not start with a banner; expected %s",
                             text->expected);
    if (!cpl_text_word_is(word, CPL_BANNER))
        return cpl_text_fail(text, error, "the first line starts with \"%s\"; expected %s",
                             cpl_text_quote(word, quote), text->expected);
    status = cpl_banner_take(text, object_words, &ignored, error);
    if (!status)
        status = cpl_banner_take(text, layout_words, &reading->layout, error);
    if (!status)
        status = cpl_banner_take(text, field_words, &ignored, error);
    if (!status)
        status = cpl_banner_take(text, symmetry_words, &reading->symmetry, error);
    return status ? status : cpl_text_end(text, error);
}

/* Goes to the next line with fields, which must be there. */
static enum cpl_status need_fields(struct cpl_text_reader *text, struct cpl_error *error)
{
    bool found;
    enum cpl_status status = cpl_text_next_fields(text, &found, error);
    if (!status && !found)
        status = cpl_text_fail(text, error, "the file ends here; expected %s", text->expected);
    return status;
}

static int64_t count_array_entries(const struct reading *reading)
{
    int64_t n = reading->n_ranks;
    return reading->symmetry == SYMMETRY_SYMMETRIC ? n * (n + 1) / 2 : n * n;
}

static enum cpl_status read_sizes(struct reading *reading, int32_t n_ranks, struct cpl_error *error)
{
    struct cpl_text_reader *text = &reading->text;
    int64_t n_rows = 0, n_columns = 0;
    bool is_array = reading->layout == LAYOUT_ARRAY;
    text->comment = '%';
    text->expected = is_array ? "ROWS COLUMNS" : "ROWS COLUMNS ENTRIES";
    enum cpl_status status = need_fields(text, error);
    if (!status)
        status = cpl_text_take_integer(text, "the number of rows", 1, INT32_MAX, &n_rows, error);
    if (!status)
        status =
            cpl_text_take_integer(text, "the number of columns", 1, INT32_MAX, &n_columns, error);
    if (!status && !is_array)
        status = cpl_text_take_integer(text, "the number of entries", 0, INT64_MAX,
                                       &reading->n_entries, error);
    if (!status)
        status = cpl_text_end(text, error);
    if (!status && n_rows != n_columns)
        status = cpl_text_fail(text, error,
                               "the matrix has %" PRId64 " rows and %" PRId64
                               " columns; expected as many rows as columns, the number of ranks",
                               n_rows, n_columns);
    if (!status && n_rows != n_ranks) {
        cpl_text_fail(text, error,
                      "distances of %" PRId64 " ranks, for a run of %" PRId32
                      "; measure them anew: mpiexec -n %" PRId32
                      " carpool calibrate --distances FILE",
                      n_rows, n_ranks, n_ranks);
        return CPL_ERR_UNFIT;
    }
    reading->n_ranks = n_ranks;
    if (!status && is_array)
        reading->n_entries = count_array_entries(reading);
    return status;
}

static enum cpl_status set_entry(struct reading *reading, int64_t row, int64_t column,
                                 struct cpl_error *error)
{
    double us = 0;
    enum cpl_status status = cpl_text_take_real(&reading->text, "the distance", &us, error);
    if (!status)
        status = cpl_text_end(&reading->text, error);
    if (!status && us > CPL_MAX_DISTANCE_US)
        status = cpl_text_fail(&reading->text, error,
                               "the distance is more than %g; expected microseconds",
                               CPL_MAX_DISTANCE_US);
    if (status || row == column)
        return status;
    float *there = &reading->us[row * reading->n_ranks + column];
    float *back = &reading->us[column * reading->n_ranks + row];
    if (*there >= 0)
        return cpl_text_fail(&reading->text, error,
                             "row %" PRId64 ", column %" PRId64
                             " was given before; expected each pair of ranks once",
                             row + 1, column + 1);
    *there = (float)us;
    if (reading->symmetry == SYMMETRY_SYMMETRIC)
        *back = *there;
    return CPL_OK;
}

static enum cpl_status read_coordinates(struct reading *reading, struct cpl_error *error)
{
    int64_t row = 0, column = 0;
    enum cpl_status status = CPL_OK;
    reading->text.expected = "ROW COLUMN MICROSECONDS";
    for (int64_t e = 0; e < reading->n_entries && !status; e++) {
        status = need_fields(&reading->text, error);
        if (!status)
            status =
                cpl_text_take_integer(&reading->text, "the row", 1, reading->n_ranks, &row, error);
        if (!status)
            status = cpl_text_take_integer(&reading->text, "the column", 1, reading->n_ranks,
                                           &column, error);
        if (!status)
            status = set_entry(reading, row - 1, column - 1, error);
    }
    return status;
}

/* Reads column after column; of a symmetric matrix only the diagonal and below. */
static enum cpl_status read_array(struct reading *reading, struct cpl_error *error)
{
    enum cpl_status status = CPL_OK;
    reading->text.expected = "MICROSECONDS, one distance a line";
    for (int64_t column = 0; column < reading->n_ranks && !status; column++)
        for (int64_t row = reading->symmetry == SYMMETRY_SYMMETRIC ? column : 0;
             row < reading->n_ranks && !status; row++) {
            status = need_fields(&reading->text, error);
            if (!status)
                status = set_entry(reading, row, column, error);
        }
    return status;
}

static enum cpl_status check_end(struct reading *reading, struct cpl_error *error)
{
    bool found;
    enum cpl_status status = cpl_text_next_fields(&reading->text, &found, error);
    if (!status && found)
        return cpl_text_fail(&reading->text, error,
                             "a line after the %" PRId64 " entries; expected the end of the file",
                             reading->n_entries);
    for (int64_t row = 0; row < reading->n_ranks && !status; row++)
        for (int64_t column = 0; column < reading->n_ranks && !status; column++)
            if (row != column && reading->us[row * reading->n_ranks + column] < 0)
                status = cpl_text_fail(&reading->text, error,
                                       "row %" PRId64 ", column %" PRId64
                                       " is missing; expected the distances of all pairs of ranks",
                                       row + 1, column + 1);
    return status;
}

static enum cpl_status read_matrix(struct reading *reading, int32_t n_ranks,
                                   struct cpl_arena *arena, struct cpl_error *error)
{
    enum cpl_status status = read_banner(reading, error);
    if (!status)
        status = read_sizes(reading, n_ranks, error);
    if (status)
        return status;
    int64_t n_pairs = (int64_t)n_ranks * n_ranks;
    reading->us = CPL_ARENA_ARRAY(arena, float, n_pairs);
    if (!reading->us)
        return cpl_fail_memory(error, "the distances");
    for (int64_t k = 0; k < n_pairs; k++)
        reading->us[k] = k % (n_ranks + 1) ? -1 : 0; /* 0 on the diagonal */
    status = reading->layout == LAYOUT_ARRAY ? read_array(reading, error)
                                             : read_coordinates(reading, error);
    return status ? status : check_end(reading, error);
}

enum cpl_status cpl_distances_read(const char *name, int32_t n_ranks,
                                   struct cpl_distances *distances, struct cpl_error *error)
{
    if (n_ranks > CPL_MAX_DISTANCE_RANKS)
        return cpl_fail(error, CPL_ERR_UNFIT,
                        "%.200s: distances are for at most %d ranks, not %" PRId32, name,
                        CPL_MAX_DISTANCE_RANKS, n_ranks);
    struct reading reading = {0};
    struct cpl_arena arena = CPL_ARENA_EMPTY;
    enum cpl_status status = cpl_text_open(name, &reading.text, error);
    if (status)
        return status;
    status = read_matrix(&reading, n_ranks, &arena, error);
    cpl_text_close(&reading.text);
    if (status)
        cpl_arena_free(&arena);
    else
        *distances = (struct cpl_distances){n_ranks, reading.us, arena};
    return status;
}

enum cpl_status cpl_distances_load(const char *machine_name, const struct cpl_machine_file *file,
                                   int32_t n_ranks, struct cpl_distances *distances,
                                   struct cpl_error *error)
{
    struct cpl_error why = {""};
    enum cpl_status status = cpl_distances_read(file->distances, n_ranks, distances, &why);
    if (status == CPL_ERR_IO)
        return cpl_fail(error, status,
                        "%.100s:%" PRId64 ": distances: %.200s; write them by carpool calibrate "
                        "--distances, or take the line out",
                        machine_name, file->distances_line, why.text);
    return status ? cpl_fail(error, status, "%s", why.text) : CPL_OK;
}

void cpl_distances_free(struct cpl_distances *distances)
{
    cpl_arena_free(&distances->arena);
    *distances = (struct cpl_distances){.arena = CPL_ARENA_EMPTY};
}

enum cpl_status cpl_machine_set_distances(struct cpl_machine *machine,
                                          const struct cpl_distances *distances,
                                          const int32_t *rank, struct cpl_error *error)
{
    int64_t n = machine->n_ranks;
    float *us = CPL_ARENA_ARRAY(&machine->arena, float, n *n);
    if (!us)
        return cpl_fail_memory(error, "the machine's distances");
    for (int64_t i = 0; i < n; i++) {
        const float *row = distances->us + (rank ? rank[i] : i) * distances->n_ranks;
        for (int64_t j = 0; j < n; j++)
            us[i * n + j] = row[rank ? rank[j] : j];
    }
    machine->distance_us = us;
    return CPL_OK;
}
