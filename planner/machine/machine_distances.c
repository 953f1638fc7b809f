/* Measured distances (machine.h): Matrix Market files, and the machine's own copy.
 *
 * Cost: one pass over each file, 4 bytes per pair of ranks and file. */
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

/* What a file holds, in words. */
struct content {
    const char *value, *values, *unit;
    const char *entry, *line; /* fields of a line, coordinate and array */
};

static const struct content of_messages = {"the distance", "distances", "microseconds",
                                           "ROW COLUMN MICROSECONDS",
                                           "MICROSECONDS, one distance a line"};
static const struct content of_bytes = {"the time per byte", "times per byte", "nanoseconds",
                                        "ROW COLUMN NANOSECONDS", "NANOSECONDS, one time a line"};

/* A file of distances while it is read. */
struct reading {
    const struct content *content;
    struct cpl_text_reader text;
    int layout;
    int symmetry;
    int32_t n_ranks;
    int64_t n_entries;
    float *value; /* -1 for pairs that are not known yet */
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
                      "%s of %" PRId64 " ranks, for a run of %" PRId32
                      "; measure them anew: mpiexec -n %" PRId32
                      " carpool calibrate --distances FILE",
                      reading->content->values, n_rows, n_ranks, n_ranks);
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
    const struct content *content = reading->content;
    double value = 0;
    enum cpl_status status = cpl_text_take_real(&reading->text, content->value, &value, error);
    if (!status)
        status = cpl_text_end(&reading->text, error);
    if (!status && value > CPL_MAX_DISTANCE_US)
        status = cpl_text_fail(&reading->text, error, "%s is more than %g; expected %s",
                               content->value, CPL_MAX_DISTANCE_US, content->unit);
    if (status || row == column)
        return status;
    float *there = &reading->value[row * reading->n_ranks + column];
    float *back = &reading->value[column * reading->n_ranks + row];
    if (*there >= 0)
        return cpl_text_fail(&reading->text, error,
                             "row %" PRId64 ", column %" PRId64
                             " was given before; expected each pair of ranks once",
                             row + 1, column + 1);
    *there = (float)value;
    if (reading->symmetry == SYMMETRY_SYMMETRIC)
        *back = *there;
    return CPL_OK;
}

static enum cpl_status read_coordinates(struct reading *reading, struct cpl_error *error)
{
    int64_t row = 0, column = 0;
    enum cpl_status status = CPL_OK;
    reading->text.expected = reading->content->entry;
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
    reading->text.expected = reading->content->line;
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
            if (row != column && reading->value[row * reading->n_ranks + column] < 0)
                status = cpl_text_fail(&reading->text, error,
                                       "row %" PRId64 ", column %" PRId64
                                       " is missing; expected the %s of all pairs of ranks",
                                       row + 1, column + 1, reading->content->values);
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
    reading->value = CPL_ARENA_ARRAY(arena, float, n_pairs);
    if (!reading->value)
        return cpl_fail_memory(error, "the distances");
    for (int64_t k = 0; k < n_pairs; k++)
        reading->value[k] = k % (n_ranks + 1) ? -1 : 0; /* 0 on the diagonal */
    status = reading->layout == LAYOUT_ARRAY ? read_array(reading, error)
                                             : read_coordinates(reading, error);
    return status ? status : check_end(reading, error);
}

/* Reads a file's values into the arena. */
static enum cpl_status read_values(const char *name, const struct content *content, int32_t n_ranks,
                                   struct cpl_arena *arena, float **value, struct cpl_error *error)
{
    if (n_ranks > CPL_MAX_DISTANCE_RANKS)
        return cpl_fail(error, CPL_ERR_UNFIT, "%.200s: %s are for at most %d ranks, not %" PRId32,
                        name, content->values, CPL_MAX_DISTANCE_RANKS, n_ranks);
    struct reading reading = {.content = content};
    enum cpl_status status = cpl_text_open(name, &reading.text, error);
    if (status)
        return status;
    status = read_matrix(&reading, n_ranks, arena, error);
    cpl_text_close(&reading.text);
    *value = reading.value;
    return status;
}

enum cpl_status cpl_distances_read(const char *name, int32_t n_ranks,
                                   struct cpl_distances *distances, struct cpl_error *error)
{
    struct cpl_distances read = {.n_ranks = n_ranks, .arena = CPL_ARENA_EMPTY};
    enum cpl_status status = read_values(name, &of_messages, n_ranks, &read.arena, &read.us, error);
    if (status)
        cpl_arena_free(&read.arena);
    else
        *distances = read;
    return status;
}

/* Says which line of the machine file names a file that cannot be opened. */
static enum cpl_status tell_line(enum cpl_status status, const char *machine_name, const char *key,
                                 const struct cpl_machine_path *path, const struct cpl_error *why,
                                 struct cpl_error *error)
{
    if (status == CPL_ERR_IO)
        return cpl_fail(error, status,
                        "%.100s:%" PRId64 ": %s: %.200s; write them by carpool calibrate "
                        "--distances, or take the line out",
                        machine_name, path->line, key, why->text);
    return status ? cpl_fail(error, status, "%s", why->text) : CPL_OK;
}

enum cpl_status cpl_distances_load(const char *machine_name, const struct cpl_machine_file *file,
                                   int32_t n_ranks, struct cpl_distances *distances,
                                   struct cpl_error *error)
{
    const struct cpl_machine_path *bytes = &file->distance_bytes;
    struct cpl_error why = {""};
    struct cpl_distances read;
    enum cpl_status status = cpl_distances_read(file->distances.name, n_ranks, &read, &why);
    if (status)
        return tell_line(status, machine_name, "distances", &file->distances, &why, error);
    if (bytes->name[0])
        status = read_values(bytes->name, &of_bytes, n_ranks, &read.arena, &read.ns_per_byte, &why);
    if (status)
        cpl_arena_free(&read.arena);
    else
        *distances = read;
    return tell_line(status, machine_name, "distances.ns_per_byte", bytes, &why, error);
}

void cpl_distances_free(struct cpl_distances *distances)
{
    cpl_arena_free(&distances->arena);
    *distances = (struct cpl_distances){.arena = CPL_ARENA_EMPTY};
}

/* A copy of the values between the machine's ranks; NULL: no memory. */
static float *copy_values(struct cpl_machine *machine, const float *value, int32_t n_ranks,
                          const int32_t *rank)
{
    int64_t n = machine->n_ranks;
    float *copy = CPL_ARENA_ARRAY(&machine->arena, float, n *n);
    for (int64_t i = 0; i < n && copy; i++) {
        const float *row = value + (rank ? rank[i] : i) * n_ranks;
        for (int64_t j = 0; j < n; j++)
            copy[i * n + j] = row[rank ? rank[j] : j];
    }
    return copy;
}

enum cpl_status cpl_machine_set_distances(struct cpl_machine *machine,
                                          const struct cpl_distances *distances,
                                          const int32_t *rank, struct cpl_error *error)
{
    const float *ns = distances->ns_per_byte;
    float *us = copy_values(machine, distances->us, distances->n_ranks, rank);
    float *byte_ns = ns && us ? copy_values(machine, ns, distances->n_ranks, rank) : NULL;
    if (!us || (ns && !byte_ns))
        return cpl_fail_memory(error, "the machine's distances");
    machine->distance_us = us;
    machine->distance_ns_per_byte = byte_ns;
    return CPL_OK;
}
