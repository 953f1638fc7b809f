/* Reading patterns (pattern.h): Matrix Market coordinate files (Boisvert, Pozo, Remington, NISTIR
 * 5935) and plain text. Entries are collected in a growing array, every one checked where its line
 * is known, and handed to cpl_pattern_build.
 *
 * Items are collected too, and become entries of payload classes at the end (pattern_items.h).
 *
 * Cost: one pass over the file, 24 bytes per entry and 16 per item while it is read. The sizes in a
 * header are checked but not trusted: memory grows with the entries that are really there. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "planner/pattern/pattern_read.h"

#include "planner/pattern/matrix_banner.h"
#include "planner/pattern/pattern_items.h"

#include <inttypes.h>
#include <stdlib.h>

#define FIRST_CAPACITY 4096

#define EXPECTED_BANNER                                                                            \
    "\"" CPL_BANNER " matrix coordinate FIELD SYMMETRY\", FIELD one of real, integer, pattern, "   \
    "SYMMETRY one of general, symmetric, skew-symmetric"

/* Entries of a file as they come, and items. */
struct entry_list {
    struct cpl_pattern_entry *entries;
    int64_t n;
    int64_t capacity;
    struct cpl_pattern_item *items;
    int64_t n_items;
    int64_t item_capacity;
    int64_t volume; /* of all entries and items that are messages */
};

enum matrix_field { FIELD_REAL, FIELD_INTEGER, FIELD_PATTERN };
enum matrix_symmetry { SYMMETRY_GENERAL, SYMMETRY_SYMMETRIC, SYMMETRY_SKEW };

struct matrix_format {
    enum matrix_field field;
    enum matrix_symmetry symmetry;
};

static const struct cpl_banner_word object_words[] = {{"matrix", 0, NULL}, {NULL, 0, NULL}};

static const struct cpl_banner_word layout_words[] = {
    {"coordinate", 0, NULL},
    {"array", 0,
     "is a dense matrix; write its nonzeros as a coordinate matrix, one line ROW COLUMN VALUE "
     "each"},
    {NULL, 0, NULL}};

static const struct cpl_banner_word field_words[] = {
    {"real", FIELD_REAL, NULL},
    {"double", FIELD_REAL, NULL}, /* in files of the format's first years */
    {"integer", FIELD_INTEGER, NULL},
    {"pattern", FIELD_PATTERN, NULL},
    {"complex", 0,
     "has values that are no volumes; write them as integer, or drop them and write pattern"},
    {NULL, 0, NULL}};

static const struct cpl_banner_word symmetry_words[] = {
    {"general", SYMMETRY_GENERAL, NULL},
    {"symmetric", SYMMETRY_SYMMETRIC, NULL},
    {"skew-symmetric", SYMMETRY_SKEW, NULL},
    {"hermitian", 0, "is for complex values, which are no volumes; write symmetric and integer"},
    {NULL, 0, NULL}};

/* Room for one more element in a growing array, which the caller frees. */
static enum cpl_status reserve(void **array, int64_t n, int64_t *capacity, size_t size,
                               struct cpl_error *error)
{
    if (n < *capacity)
        return CPL_OK;
    int64_t larger = *capacity ? *capacity * 2 : FIRST_CAPACITY;
    void *grown = NULL;
    if ((uint64_t)larger <= SIZE_MAX / 2 / size)
        grown = realloc(*array, (size_t)larger * size);
    if (!grown)
        return cpl_fail_memory(error, "the entries of a pattern file");
    *array = grown;
    *capacity = larger;
    return CPL_OK;
}

static enum cpl_status append(struct entry_list *list, struct cpl_pattern_entry entry,
                              struct cpl_error *error)
{
    void *entries = list->entries;
    enum cpl_status status =
        reserve(&entries, list->n, &list->capacity, sizeof *list->entries, error);
    list->entries = entries;
    if (!status)
        list->entries[list->n++] = entry;
    return status;
}

static enum cpl_status add_volume(struct cpl_text_reader *reader, struct entry_list *list,
                                  int64_t volume, struct cpl_error *error)
{
    if (volume > INT64_MAX - list->volume)
        return cpl_text_fail(reader, error,
                             "the volumes up to here add up to more than %" PRId64
                             "; expected a unit in which they fit",
                             INT64_MAX);
    list->volume += volume;
    return CPL_OK;
}

/* Adds an entry of the current line. */
static enum cpl_status add_entry(struct cpl_text_reader *reader, struct entry_list *list,
                                 int64_t src, int64_t dst, int64_t volume, struct cpl_error *error)
{
    enum cpl_status status =
        append(list, (struct cpl_pattern_entry){(int32_t)src, (int32_t)dst, volume, -1}, error);
    return status || src == dst ? status : add_volume(reader, list, volume, error);
}

static enum cpl_status add_item(struct cpl_text_reader *reader, struct entry_list *list,
                                int64_t src, int64_t dst, int64_t item, struct cpl_error *error)
{
    void *items = list->items;
    enum cpl_status status =
        reserve(&items, list->n_items, &list->item_capacity, sizeof *list->items, error);
    list->items = items;
    if (status)
        return status;
    list->items[list->n_items++] = (struct cpl_pattern_item){(int32_t)src, (int32_t)dst, item};
    return add_volume(reader, list, 1, error);
}

static enum cpl_status fail_early_end(struct cpl_text_reader *reader, struct cpl_error *error)
{
    return cpl_text_fail(reader, error, "the file ends here; expected %s", reader->expected);
}

/* Goes to the next line with fields, which must be there. */
static enum cpl_status need_fields(struct cpl_text_reader *reader, struct cpl_error *error)
{
    bool found;
    enum cpl_status status = cpl_text_next_fields(reader, &found, error);
    if (!status && !found)
        status = fail_early_end(reader, error);
    return status;
}

/* Text: the number of ranks, then lines "SRC DST VOLUME" or "SRC DST : ITEM ...". */

static enum cpl_status read_text_ranks(struct cpl_text_reader *reader, int32_t *n_ranks,
                                       struct cpl_error *error)
{
    int64_t n = 0;
    reader->expected = "the number of ranks alone on a line (or a Matrix Market file)";
    /* The first line was taken already, to tell the formats apart. */
    enum cpl_status status = cpl_text_has_field(reader) ? CPL_OK : need_fields(reader, error);
    if (!status)
        status = cpl_text_take_integer(reader, "the number of ranks", 1, CPL_MAX_RANKS, &n, error);
    if (!status)
        status = cpl_text_end(reader, error);
    if (!status)
        *n_ranks = (int32_t)n;
    return status;
}

static int compare_items(const void *a, const void *b)
{
    const struct cpl_pattern_item *x = a, *y = b;
    return (x->item > y->item) - (x->item < y->item);
}

/* The current line's items, the last n of the list, must be different. */
static enum cpl_status check_distinct(struct cpl_text_reader *reader, struct entry_list *list,
                                      int64_t n, struct cpl_error *error)
{
    struct cpl_pattern_item *items = list->items + list->n_items - n;
    qsort(items, (size_t)n, sizeof *items, compare_items);
    for (int64_t k = 1; k < n; k++)
        if (items[k].item == items[k - 1].item)
            return cpl_text_fail(reader, error,
                                 "item %" PRId64 " is there twice; expected different items",
                                 items[k].item);
    return CPL_OK;
}

/* Reads the items after the colon. Items of a rank for itself are read, checked and dropped. */
static enum cpl_status read_items(struct cpl_text_reader *reader, int64_t src, int64_t dst,
                                  struct entry_list *list, struct cpl_error *error)
{
    int64_t volume = list->volume, n = 0;
    enum cpl_status status = CPL_OK;
    do {
        int64_t item = 0;
        status = cpl_text_take_integer(reader, "the item", 0, INT64_MAX, &item, error);
        if (!status)
            status = add_item(reader, list, src, dst, item, error);
        n++;
    } while (!status && cpl_text_has_field(reader));
    if (!status)
        status = check_distinct(reader, list, n, error);
    if (status || src != dst)
        return status;
    list->n_items -= n;
    list->volume = volume;
    return add_entry(reader, list, src, dst, 0, error); /* to be counted */
}

/* Takes the colon if it comes next. */
static bool take_colon(struct cpl_text_reader *reader)
{
    const char *at = reader->at;
    struct cpl_text_word word;
    if (cpl_text_take_word(reader, &word) && cpl_text_word_is(word, ":"))
        return true;
    reader->at = at;
    return false;
}

static enum cpl_status read_text_entry(struct cpl_text_reader *reader, int32_t n_ranks,
                                       struct entry_list *list, struct cpl_error *error)
{
    int64_t src = 0;
    int64_t dst = 0;
    int64_t volume = 0;
    enum cpl_status status =
        cpl_text_take_integer(reader, "the source rank", 0, n_ranks - 1, &src, error);
    if (!status)
        status = cpl_text_take_integer(reader, "the destination rank", 0, n_ranks - 1, &dst, error);
    if (!status && take_colon(reader))
        return read_items(reader, src, dst, list, error);
    if (!status)
        status = cpl_text_take_integer(reader, "the volume", 0, INT64_MAX, &volume, error);
    if (!status)
        status = cpl_text_end(reader, error);
    return status ? status : add_entry(reader, list, src, dst, volume, error);
}

/* Makes entries of the items. */
static enum cpl_status classify_items(struct entry_list *list, struct cpl_error *error)
{
    int64_t n_made = 0;
    if (list->n_items == 0)
        return CPL_OK;
    struct cpl_pattern_entry *made = malloc((size_t)list->n_items * sizeof *made);
    if (!made)
        return cpl_fail_memory(error, "the entries of a pattern file");
    enum cpl_status status = cpl_pattern_classify(list->items, list->n_items, made, &n_made, error);
    for (int64_t e = 0; e < n_made && !status; e++)
        status = append(list, made[e], error);
    free(made);
    return status;
}

static enum cpl_status read_text(struct cpl_text_reader *reader, int32_t *n_ranks,
                                 struct entry_list *list, struct cpl_error *error)
{
    reader->comment = '#';
    enum cpl_status status = read_text_ranks(reader, n_ranks, error);
    reader->expected = "SRC DST VOLUME, or SRC DST : ITEM ...";
    bool found = true;
    while (!status && found) {
        status = cpl_text_next_fields(reader, &found, error);
        if (!status && found)
            status = read_text_entry(reader, *n_ranks, list, error);
    }
    return status ? status : classify_items(list, error);
}

/* Matrix Market: the banner, comments, "ROWS COLUMNS ENTRIES", then the entries, 1-based. */

static enum cpl_status read_banner(struct cpl_text_reader *reader, struct matrix_format *format,
                                   struct cpl_error *error)
{
    int ignored;
    int field = 0;
    int symmetry = 0;
    reader->expected = EXPECTED_BANNER;
    enum cpl_status status = cpl_banner_take(reader, object_words, &ignored, error);
    if (!status)
        status = cpl_banner_take(reader, layout_words, &ignored, error);
    if (!status)
        status = cpl_banner_take(reader, field_words, &field, error);
    if (!status)
        status = cpl_banner_take(reader, symmetry_words, &symmetry, error);
    if (!status)
        status = cpl_text_end(reader, error);
    if (!status && field == FIELD_PATTERN && symmetry == SYMMETRY_SKEW)
        status = cpl_text_fail(reader, error,
                               "a pattern cannot be skew-symmetric, it has no "
                               "signs; expected symmetric or general");
    format->field = (enum matrix_field)field;
    format->symmetry = (enum matrix_symmetry)symmetry;
    return status;
}

static enum cpl_status read_sizes(struct cpl_text_reader *reader, int32_t *n_ranks,
                                  int64_t *n_entries, struct cpl_error *error)
{
    int64_t n_rows = 0;
    int64_t n_columns = 0;
    reader->expected = "ROWS COLUMNS ENTRIES";
    enum cpl_status status = need_fields(reader, error);
    if (!status)
        status =
            cpl_text_take_integer(reader, "the number of rows", 1, CPL_MAX_RANKS, &n_rows, error);
    if (!status)
        status = cpl_text_take_integer(reader, "the number of columns", 1, CPL_MAX_RANKS,
                                       &n_columns, error);
    if (!status)
        status =
            cpl_text_take_integer(reader, "the number of entries", 0, INT64_MAX, n_entries, error);
    if (!status)
        status = cpl_text_end(reader, error);
    if (!status && n_rows != n_columns)
        status = cpl_text_fail(reader, error,
                               "the matrix has %" PRId64 " rows and %" PRId64
                               " columns; expected as many rows as columns, the number of ranks",
                               n_rows, n_columns);
    if (!status)
        *n_ranks = (int32_t)n_rows;
    return status;
}

static enum cpl_status read_value(struct cpl_text_reader *reader,
                                  const struct matrix_format *format, int64_t *volume,
                                  struct cpl_error *error)
{
    int64_t min = format->symmetry == SYMMETRY_SKEW ? -INT64_MAX : 0;
    enum cpl_status status = CPL_OK;
    *volume = 1;
    if (format->field == FIELD_INTEGER)
        status = cpl_text_take_integer(reader, "the volume", min, INT64_MAX, volume, error);
    else if (format->field == FIELD_REAL)
        status = cpl_text_take_whole(reader, "the volume", min, INT64_MAX, volume, error);
    if (!status && *volume < 0)
        *volume = -*volume;
    return status;
}

/* Symmetric files hold only the lower triangle. One that has both would count every message twice,
 * so this is checked. */
static enum cpl_status check_triangle(struct cpl_text_reader *reader,
                                      const struct matrix_format *format, int64_t row,
                                      int64_t column, struct cpl_error *error)
{
    bool is_skew = format->symmetry == SYMMETRY_SKEW;
    if (format->symmetry == SYMMETRY_GENERAL || row > column || (row == column && !is_skew))
        return CPL_OK;
    return cpl_text_fail(reader, error,
                         "row %" PRId64 ", column %" PRId64 " is not below the diagonal of a %s "
                         "matrix; expected entries with row %s column (or a banner with general)",
                         row, column, is_skew ? "skew-symmetric" : "symmetric",
                         is_skew ? ">" : ">=");
}

static enum cpl_status read_matrix_entry(struct cpl_text_reader *reader,
                                         const struct matrix_format *format, int32_t n_ranks,
                                         struct entry_list *list, struct cpl_error *error)
{
    int64_t row = 0;
    int64_t column = 0;
    int64_t volume = 0;
    enum cpl_status status = cpl_text_take_integer(reader, "the row", 1, n_ranks, &row, error);
    if (!status)
        status = cpl_text_take_integer(reader, "the column", 1, n_ranks, &column, error);
    if (!status)
        status = read_value(reader, format, &volume, error);
    if (!status)
        status = cpl_text_end(reader, error);
    if (!status)
        status = check_triangle(reader, format, row, column, error);
    if (!status)
        status = add_entry(reader, list, row - 1, column - 1, volume, error);
    if (!status && format->symmetry != SYMMETRY_GENERAL && row != column)
        status = add_entry(reader, list, column - 1, row - 1, volume, error);
    return status;
}

/* The line after the last entry: there must be none. */
static enum cpl_status read_matrix_end(struct cpl_text_reader *reader, int64_t n_entries,
                                       struct cpl_error *error)
{
    bool found;
    enum cpl_status status = cpl_text_next_fields(reader, &found, error);
    if (!status && found)
        status = cpl_text_fail(reader, error,
                               "a line after the %" PRId64 " entries that the header announces; "
                               "expected the end of the file",
                               n_entries);
    return status;
}

static enum cpl_status read_matrix(struct cpl_text_reader *reader, int32_t *n_ranks,
                                   struct entry_list *list, struct cpl_error *error)
{
    struct matrix_format format;
    int64_t n_entries = 0;
    enum cpl_status status = read_banner(reader, &format, error);
    reader->comment = '%';
    if (!status)
        status = read_sizes(reader, n_ranks, &n_entries, error);
    reader->expected = format.field == FIELD_PATTERN ? "ROW COLUMN" : "ROW COLUMN VALUE";
    for (int64_t e = 0; !status && e < n_entries; e++) {
        bool found;
        status = cpl_text_next_fields(reader, &found, error);
        if (!status && !found)
            status = cpl_text_fail(reader, error,
                                   "the file ends after %" PRId64 " entries; expected the %" PRId64
                                   " that its header announces",
                                   e, n_entries);
        if (!status)
            status = read_matrix_entry(reader, &format, *n_ranks, list, error);
    }
    return status ? status : read_matrix_end(reader, n_entries, error);
}

/* Tells the formats apart by the first line. */
static enum cpl_status read_entries(struct cpl_text_reader *reader, int32_t *n_ranks,
                                    struct entry_list *list, struct cpl_error *error)
{
    bool found;
    reader->expected = "the number of ranks, or a Matrix Market banner";
    enum cpl_status status = cpl_text_next_line(reader, &found, error);
    if (status)
        return status;
    if (!found)
        return cpl_text_fail(reader, error, "the file is empty; expected %s", reader->expected);
    if (reader->at == reader->end || *reader->at != '%')
        return read_text(reader, n_ranks, list, error);
    struct cpl_text_word word;
    char quote[CPL_TEXT_QUOTE];
    if (cpl_text_take_word(reader, &word) && cpl_text_word_is(word, CPL_BANNER))
        return read_matrix(reader, n_ranks, list, error);
    return cpl_text_fail(reader, error, "the first line starts with \"%s\"; expected %s",
                         cpl_text_quote(word, quote), EXPECTED_BANNER);
}

enum cpl_status cpl_pattern_read_text(struct cpl_text_reader *reader, struct cpl_pattern *pattern,
                                      struct cpl_error *error)
{
    struct entry_list list = {0};
    int32_t n_ranks = 0;
    enum cpl_status status = read_entries(reader, &n_ranks, &list, error);
    if (!status)
        status = cpl_pattern_build(n_ranks, list.entries, list.n, pattern, error);
    free(list.entries);
    free(list.items);
    return status;
}

enum cpl_status cpl_pattern_read(const char *file, struct cpl_pattern *pattern,
                                 struct cpl_error *error)
{
    struct cpl_text_reader reader;
    enum cpl_status status = cpl_text_open(file, &reader, error);
    if (status)
        return status;
    status = cpl_pattern_read_text(&reader, pattern, error);
    cpl_text_close(&reader);
    return status;
}
