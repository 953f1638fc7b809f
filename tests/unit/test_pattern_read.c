/* Tests of reading and writing patterns (pattern.h), and with them of the text reader. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "planner/pattern/pattern_read.h"
#include "temp_dir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#ifdef HAVE_ZLIB
#include <zlib.h>
#endif

#define BANNER "%%MatrixMarket matrix coordinate "

static int make_dir(void **state)
{
    struct temp_dir *dir = malloc(sizeof *dir);
    if (dir)
        temp_dir_make(dir);
    *state = dir;
    return dir ? 0 : -1;
}

static int remove_dir(void **state)
{
    temp_dir_remove(*state);
    free(*state);
    return 0;
}

static struct cpl_pattern read_file(const char *file)
{
    struct cpl_pattern pattern;
    struct cpl_error error = {""};
    enum cpl_status status = cpl_pattern_read(file, &pattern, &error);
    if (status)
        fail_msg("%s", error.text);
    return pattern;
}

/* A pattern read from a file of this text, as "P: src>dst*volume ...". */
static void assert_reads(void **state, const char *text, const char *expected)
{
    char got[400];
    struct cpl_pattern pattern = read_file(temp_dir_text(*state, "good", text));
    int n = snprintf(got, sizeof got, "%d:", pattern.n_ranks);
    for (int32_t i = 0; i < pattern.n_ranks; i++)
        for (int64_t m = pattern.first[i]; m < pattern.first[i + 1]; m++)
            n += snprintf(got + n, sizeof got - (size_t)n, " %d>%d*%lld", i, pattern.dst[m],
                          (long long)pattern.volume[m]);
    cpl_pattern_free(&pattern);
    assert_string_equal(got, expected);
}

/* Reading fails with this status; the message starts with the file's name and, for wrong formats,
 * the line's number, and says the fragment. */
static void assert_file_fails(const char *file, enum cpl_status expected, int line,
                              const char *fragment)
{
    char start[300];
    struct cpl_error error = {""};
    struct cpl_pattern pattern = {.n_ranks = 77};
    assert_int_equal(cpl_pattern_read(file, &pattern, &error), expected);
    snprintf(start, sizeof start, line ? "%s:%d: " : "%s: ", file, line);
    if (strncmp(error.text, start, strlen(start)) != 0 || !strstr(error.text, fragment))
        fail_msg("\"%s\" should start with \"%s\" and say \"%s\"", error.text, start, fragment);
    assert_int_equal(pattern.n_ranks, 77);
}

static void assert_bytes_fail(void **state, const void *bytes, size_t n, int line,
                              const char *fragment)
{
    assert_file_fails(temp_dir_write(*state, "bad", bytes, n), CPL_ERR_FORMAT, line, fragment);
}

static void assert_text_fails(void **state, const char *text, int line, const char *fragment)
{
    assert_bytes_fail(state, text, strlen(text), line, fragment);
}

static void test_text(void **state)
{
    assert_reads(state, "4\n0 1 2\n1 0 5\n1 3 3\n2 0 1\n2 3 6\n3 2 2\n",
                 "4: 0>1*2 1>0*5 1>3*3 2>0*1 2>3*6 3>2*2");
    assert_reads(state, "# who\n\n  \t# more\n 2 # ranks\n\n0 1 7# seven\n#\n", "2: 0>1*7");
    assert_reads(state, "3\n2\t0   9223372036854775807", "3: 2>0*9223372036854775807");
    assert_reads(state, "3\r\n0 1 +2\r\n\r\n1 2 0\r\n", "3: 0>1*2 1>2*0");
    assert_reads(state, "1", "1:");
    assert_reads(state, "\n\n16\n", "16:");
    assert_reads(state, "2\n0 0 5\n1 0 1\n1 0 002\n", "2: 1>0*3");
}

/* Items 5 and 7 go to 1 and 2, item 9 to 1 and 3, item 8 to 3 alone. */
static void test_items(void **state)
{
    const char *text = "4\n0 3 : 9 8\n0 1 : 9 7\n0 1 4\n0 2 : 7 5 # two\n0 1 : 5 7\n";
    const int32_t classes[] = {-1, 0, 1, 0, -1, 1};
    struct cpl_pattern pattern = read_file(temp_dir_text(*state, "good", text));
    assert_int_equal(pattern.n_messages, 6);
    assert_memory_equal(pattern.payload_class, classes, sizeof classes);
    assert_int_equal(cpl_pattern_pairs(&pattern)->n_messages, 3);
    cpl_pattern_free(&pattern);
    assert_reads(state, text, "4: 0>1*4 0>1*2 0>1*1 0>2*2 0>3*1 0>3*1");
    assert_reads(state, "3\n0 1 : 1 2\n0 1 :  2 3\n1 1 : 1\n", "3: 0>1*3");
    assert_reads(state, "3\n0 1 : 9223372036854775807 0\n1 2 : 0\n", "3: 0>1*2 1>2*1");
    assert_text_fails(state, "2\n0 1 : 4 5\n1 0 : 4 5 4\n", 3, "item 4 is there twice");
    assert_text_fails(state, "2\n0 1 :\n", 2, "the item is missing; expected SRC DST VOLUME, or");
    assert_text_fails(state, "2\n0 1 : 3 -1\n", 2,
                      "the item is -1; expected a whole number from 0");
    assert_text_fails(state, "2\n0 1 : 1.5\n", 2, "the item is \"1.5\", not a whole number");
    assert_text_fails(state, "2\n0 1 :5\n", 2, "the volume is \":5\", not a whole number");
    assert_text_fails(state, "2\n0 1 : 5\n1 0 9223372036854775807\n", 3, "add up to more than");
}

static void test_matrix_market(void **state)
{
    assert_reads(state, BANNER "integer general\n% c\n\n%\n3 3 2\n1 2 5\n% carry on\n3 1 6\n",
                 "3: 0>1*5 2>0*6");
    assert_reads(state, "%%matrixMARKET Matrix COORDINATE Real General\r\n2 2 1\r\n1 2 3\r\n",
                 "2: 0>1*3");
    assert_reads(state, BANNER "pattern general\n3 3 2\n1 2\n1 3", "3: 0>1*1 0>2*1");
    assert_reads(state, BANNER "pattern symmetric\n3 3 3\n2 1\n2 2\n3 2\n",
                 "3: 0>1*1 1>0*1 1>2*1 2>1*1");
    assert_reads(state, BANNER "integer skew-symmetric\n3 3 2\n2 1 -4\n3 1 5\n",
                 "3: 0>1*4 0>2*5 1>0*4 2>0*5");
    assert_reads(state, BANNER "integer general\n3 3 0\n", "3:");
    assert_reads(state, BANNER "integer general\n2 2 2\n1 2 5\n1 2 6\n\n%\n\n", "2: 0>1*11");
}

static void test_whole_numbers_written_as_real(void **state)
{
    assert_reads(state,
                 BANNER "real general\n9 9 9\n1 2 4.0\n1 3 4.\n1 4 1.20e+01\n1 5 5000E-3\n"
                        "1 6 .4e1\n1 7 0.000\n1 8 9.223372036854775e18\n2 1 0e99999999999\n"
                        "2 3 -0.0\n",
                 "9: 0>1*4 0>2*4 0>3*12 0>4*5 0>5*4 0>6*0 0>7*9223372036854775000 1>0*0 1>2*0");
    assert_reads(state, BANNER "real general\n2 2 1\n1 2 922337203685477580700.000E-2",
                 "2: 0>1*9223372036854775807");
    const char *wrong[] = {"1.5",   "1e-1",
                           "-1",    "1e19",
                           "1e999", "9223372036854775808",
                           "1e-99", "12345678901234567890123",
                           "0.1",   "1000000000000000000000.5",
                           "nan",   "inf",
                           "1.2.3", "0x10",
                           ".",     "1e",
                           "e5",    "--1",
                           "-",     "1,5",
                           "1e+",   "1234567890123456789.5"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[100];
        snprintf(text, sizeof text, "%sreal general\n2 2 1\n1 2 %s\n", BANNER, wrong[i]);
        assert_text_fails(state, text, 3, "the volume is ");
        assert_text_fails(state, text, 3, wrong[i]);
    }
}

static void test_errors_of_text(void **state)
{
    assert_text_fails(state, "", 1, "empty");
    assert_text_fails(state, "\n", 1, "the file ends here; expected the number of ranks");
    assert_text_fails(state, "# only\n# comments\n", 2, "the file ends here");
    assert_text_fails(state, "0\n", 1, "number of ranks is 0; expected a whole number from 1 to");
    assert_text_fails(state, "16777217\n", 1, "to 16777216");
    assert_text_fails(state, "-4\n", 1, "-4");
    assert_text_fails(state, "99999999999999999999999\n", 1, "99999999999999999999999; expected");
    assert_text_fails(state, "four\n", 1, "\"four\", not a whole number");
    assert_text_fails(state, "4 4\n", 1, "\"4\" follows the last field");
    assert_text_fails(state, "4\n0\n", 2, "the destination rank is missing; expected SRC DST");
    assert_text_fails(state, "4\n0 1 1\n0 1\n", 3, "the volume is missing");
    assert_text_fails(state, "4\n0 1 # 1\n", 2, "the volume is missing");
    assert_text_fails(state, "4\n\n# c\n0 1 2 3\n", 4, "\"3\" follows the last field");
    assert_text_fails(state, "4\n0 1 2x\n", 2, "\"2x\", not a whole number");
    assert_text_fails(state, "4\n0 1 2.0\n", 2, "\"2.0\", not a whole number");
    assert_text_fails(state, "4\n0 4 2\n", 2,
                      "destination rank is 4; expected a whole number "
                      "from 0 to 3");
    assert_text_fails(state, "4\n-1 3 2\n", 2, "source rank is -1");
    assert_text_fails(state, "4\n0 4294967297 2\n", 2, "4294967297");
    assert_text_fails(state, "4\n0 1 -2\n", 2, "the volume is -2");
    assert_text_fails(state, "4\n0 1 9223372036854775808\n", 2, "9223372036854775808");
    assert_text_fails(state, "4\n0 1 1\n2 3 9223372036854775807\n", 3, "add up to more");
    assert_text_fails(state, "4\n0 1 1\r2 3 1\n", 2, "\"1\\x0d2\"");
}

static void test_errors_of_banners(void **state)
{
    assert_text_fails(state, "% hello\n4 4 0\n", 1, "\"%\"; expected \"%%MatrixMarket matrix");
    assert_text_fails(state, "%%MatrixMarkt matrix\n", 1, "starts with \"%%MatrixMarkt\"");
    assert_text_fails(state, "%%MatrixMarket\n", 1, "banner is cut");
    assert_text_fails(state, BANNER "real\n", 1, "banner is cut");
    assert_text_fails(state, "%%MatrixMarket vector coordinate real general\n", 1, "\"vector\"");
    assert_text_fails(state, "%%MatrixMarket matrix array real general\n", 1, "coordinate matrix");
    assert_text_fails(state, BANNER "complex general\n", 1, "write them as integer");
    assert_text_fails(state, BANNER "real hermitian\n", 1, "write symmetric");
    assert_text_fails(state, BANNER "quaternion general\n", 1, "\"quaternion\" in the Matrix");
    assert_text_fails(state, BANNER "pattern skew-symmetric\n", 1, "symmetric or general");
    assert_text_fails(state, BANNER "real general now\n", 1, "\"now\" follows");
}

static void test_errors_of_matrices(void **state)
{
    assert_text_fails(state, BANNER "real general\n", 1, "expected ROWS COLUMNS ENTRIES");
    assert_text_fails(state, BANNER "real general\n%\n3 4 0\n", 3, "as many rows as columns");
    assert_text_fails(state, BANNER "real general\n0 0 0\n", 2, "number of rows is 0");
    assert_text_fails(state, BANNER "real general\n16777217 4 0\n", 2,
                      "number of rows is 16777217");
    assert_text_fails(state, BANNER "real general\n3 3\n", 2, "number of entries is missing");
    assert_text_fails(state, BANNER "real general\n3 3 -1\n", 2, "number of entries is -1");
    assert_text_fails(state, BANNER "real general\n3 3 1 1\n", 2, "\"1\" follows");
    assert_text_fails(state, BANNER "real general\n3 3 2\n1 2 1\n", 3,
                      "ends after 1 entries; "
                      "expected the 2");
    assert_text_fails(state, BANNER "real general\n3 3 9223372036854775807\n1 2 1\n", 3, "ends");
    assert_text_fails(state, BANNER "real general\n3 3 1\n1 2 1\n%\n1 3 1\n", 5,
                      "expected the end");
    assert_text_fails(state, BANNER "real general\n3 3 1\n0 2 1\n", 3,
                      "the row is 0; expected a "
                      "whole number from 1 to 3");
    assert_text_fails(state, BANNER "real general\n3 3 1\n1 4 1\n", 3, "the column is 4");
    assert_text_fails(state, BANNER "real general\n3 3 1\n1 2\n", 3, "expected ROW COLUMN VALUE");
    assert_text_fails(state, BANNER "pattern general\n3 3 1\n1 2 1\n", 3, "expected ROW COLUMN");
    assert_text_fails(state, BANNER "integer general\n3 3 1\n1 2 1.0\n", 3, "\"1.0\", not a whole");
    assert_text_fails(state, BANNER "integer general\n3 3 1\n1 2 -1\n", 3, "the volume is -1");
    assert_text_fails(state, BANNER "integer symmetric\n3 3 1\n1 2 1\n", 3, "below the diagonal");
    assert_text_fails(state, BANNER "integer skew-symmetric\n3 3 1\n2 2 1\n", 3, "row > column");
    assert_text_fails(state, BANNER "integer symmetric\n3 3 1\n2 1 4611686018427387904\n", 3,
                      "add up");
}

static void test_binary_rubbish(void **state)
{
    char bytes[1000];
    srand(3);
    for (int round = 0; round < 200; round++) {
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (char)(rand() % 256);
        bytes[0] = '\x7f'; /* not by chance a gzip file or a blank line */
        assert_bytes_fail(state, bytes, sizeof bytes, 1, "expected");
    }
    assert_bytes_fail(state, "4\n0 1 \0 1\n", 10, 2, "\"\\x00\"");
    assert_bytes_fail(state, "\0\0\0", 3, 1, "\"\\x00\\x00\\x00\"");
    assert_bytes_fail(state, "\x1f\x8b rubbish rubbish", 18, 1, "gzip");
}

static void test_long_lines(void **state)
{
    size_t n = 3 * CPL_TEXT_MAX_LINE;
    char *text = malloc(n + 20);
    assert_non_null(text);
    memset(text, ' ', n);
    memcpy(text, "2\n0 1", 5);
    memcpy(text + CPL_TEXT_MAX_LINE, "7\n", 2); /* the second line is as long as may be */
    assert_bytes_fail(state, text, n, 3, "longer than 65536 bytes");
    memcpy(text + CPL_TEXT_MAX_LINE + 1, " 7\n", 3);
    assert_bytes_fail(state, text, n, 2, "longer than 65536 bytes");
    memset(text, '1', n);
    assert_bytes_fail(state, text, n, 1, "longer than 65536 bytes");
    memset(text, '\n', n);
    memcpy(text + n - 1, "5", 1);
    struct cpl_pattern pattern = read_file(temp_dir_write(*state, "lines", text, n));
    assert_int_equal(pattern.n_ranks, 5);
    cpl_pattern_free(&pattern);
    free(text);
}

static void test_files_that_cannot_be_read(void **state)
{
    struct temp_dir *dir = *state;
    assert_file_fails(dir->path, CPL_ERR_IO, 0, "cannot be read");
    assert_file_fails(temp_dir_path(dir, "missing"), CPL_ERR_IO, 0, "cannot be opened");
    assert_file_fails("", CPL_ERR_IO, 0, "cannot be opened");
    assert_file_fails("/dev/null", CPL_ERR_FORMAT, 1, "empty");
}

/* The end of a long path is shown; the reason is never cut off by it. */
static void test_long_paths(void **state)
{
    (void)state;
    char path[1000];
    struct cpl_error error;
    struct cpl_pattern pattern;
    for (size_t i = 0; i < sizeof path - 1; i++)
        path[i] = i % 100 ? 'x' : '/';
    memcpy(path + sizeof path - 5, ".mtx", 5);
    assert_int_equal(cpl_pattern_read(path, &pattern, &error), CPL_ERR_IO);
    assert_non_null(strstr(error.text, "xxx.mtx: cannot be opened: "));
    assert_int_equal(strncmp(error.text, "...", 3), 0);
}

/* Entries enough for many buffers and growths of the list. */
static struct cpl_pattern large_pattern(void)
{
    enum { P = 3000, N = 100000 };
    struct cpl_pattern pattern;
    struct cpl_pattern_entry *entries = malloc(N * sizeof *entries);
    assert_non_null(entries);
    srand(11);
    for (int e = 0; e < N; e++)
        entries[e] = (struct cpl_pattern_entry){rand() % P, rand() % P, rand(), -1};
    entries[0].volume = (int64_t)1 << 55;
    assert_int_equal(cpl_pattern_build(P, entries, N, &pattern, NULL), CPL_OK);
    free(entries);
    return pattern;
}

static void assert_same(const struct cpl_pattern *a, const struct cpl_pattern *b)
{
    size_t n = (size_t)a->n_messages;
    assert_int_equal(a->n_ranks, b->n_ranks);
    assert_int_equal(a->n_messages, b->n_messages);
    assert_memory_equal(a->first, b->first, sizeof *a->first * ((size_t)a->n_ranks + 1));
    assert_memory_equal(a->dst, b->dst, sizeof *a->dst * n);
    assert_memory_equal(a->volume, b->volume, sizeof *a->volume * n);
    assert_true(cpl_pattern_fingerprint(a) == cpl_pattern_fingerprint(b));
}

static void test_write_then_read(void **state)
{
    const char *file = temp_dir_path(*state, "written.mtx");
    struct cpl_pattern pattern = large_pattern();
    assert_int_equal(cpl_pattern_write(&pattern, file, NULL), CPL_OK);
    struct cpl_pattern copy = read_file(file);
    assert_same(&pattern, &copy);
    assert_int_equal(copy.n_merged + copy.n_self, 0);
    cpl_pattern_free(&copy);
    cpl_pattern_free(&pattern);
}

static void test_write_failures(void **state)
{
    struct temp_dir *dir = *state;
    struct cpl_error error;
    struct cpl_pattern pattern = large_pattern();
    assert_int_equal(cpl_pattern_write(&pattern, dir->path, &error), CPL_ERR_IO);
    assert_non_null(strstr(error.text, "cannot be created"));
    FILE *full = fopen("/dev/full", "w");
    if (full) {
        fclose(full);
        assert_int_equal(cpl_pattern_write(&pattern, "/dev/full", &error), CPL_ERR_IO);
        assert_non_null(strstr(error.text, "/dev/full: cannot be written: "));
    }
    cpl_pattern_free(&pattern);
}

static void test_read_from_memory(void **state)
{
    (void)state;
    const char text[] = "2\n1 0 5\n1 0 6"; /* ends inside the last number */
    struct cpl_text_reader reader;
    struct cpl_pattern pattern;
    cpl_text_open_memory("memory", text, sizeof text - 1, &reader);
    assert_int_equal(cpl_pattern_read_text(&reader, &pattern, NULL), CPL_OK);
    cpl_text_close(&reader);
    assert_int_equal(pattern.volume[0], 11);
    cpl_pattern_free(&pattern);
    cpl_text_open_memory("memory", NULL, 0, &reader);
    assert_int_equal(cpl_pattern_read_text(&reader, &pattern, NULL), CPL_ERR_FORMAT);
    cpl_text_close(&reader);
}

#ifdef HAVE_ZLIB
static char *slurp(const char *file, size_t *n)
{
    const size_t max = (size_t)8 << 20;
    char *bytes = malloc(max);
    FILE *in = fopen(file, "rb");
    assert_true(bytes && in);
    *n = fread(bytes, 1, max, in);
    fclose(in);
    return bytes;
}

static void compress_file(const char *from, const char *to)
{
    size_t n;
    char *bytes = slurp(from, &n);
    gzFile out = gzopen(to, "wb1");
    assert_non_null(out);
    assert_int_equal(gzwrite(out, bytes, (unsigned)n), (int)n);
    assert_int_equal(gzclose(out), Z_OK);
    free(bytes);
}

static void test_gzip(void **state)
{
    struct temp_dir *dir = *state;
    char plain[sizeof dir->file];
    struct cpl_pattern pattern = large_pattern();
    snprintf(plain, sizeof plain, "%s", temp_dir_path(dir, "plain.mtx"));
    assert_int_equal(cpl_pattern_write(&pattern, plain, NULL), CPL_OK);
    compress_file(plain, temp_dir_path(dir, "packed.mtx.gz"));
    struct cpl_pattern copy = read_file(dir->file);
    assert_same(&pattern, &copy);
    cpl_pattern_free(&copy);
    cpl_pattern_free(&pattern);
}

static void test_damaged_gzip(void **state)
{
    struct temp_dir *dir = *state;
    struct cpl_pattern pattern = large_pattern();
    size_t n;
    struct cpl_error error;
    assert_int_equal(cpl_pattern_write(&pattern, temp_dir_path(dir, "plain.mtx"), NULL), CPL_OK);
    cpl_pattern_free(&pattern);
    char plain[sizeof dir->file];
    snprintf(plain, sizeof plain, "%s", dir->file);
    compress_file(plain, temp_dir_path(dir, "packed.gz"));
    char *bytes = slurp(dir->file, &n);
    const size_t cuts[] = {2, 9, 20, n / 2, n - 9, n - 4, n - 1};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        const char *file = temp_dir_write(dir, "cut.gz", bytes, cuts[i]);
        assert_int_equal(cpl_pattern_read(file, &pattern, &error), CPL_ERR_FORMAT);
        if (!strstr(error.text, "gzip"))
            fail_msg("cut at %zu: %s", cuts[i], error.text);
    }
    bytes[n - 6] = (char)(bytes[n - 6] ^ 1); /* the checksum */
    assert_int_equal(cpl_pattern_read(temp_dir_write(dir, "sum.gz", bytes, n), &pattern, &error),
                     CPL_ERR_FORMAT);
    assert_non_null(strstr(error.text, "the gzip data is damaged"));
    free(bytes);
}
#else
static void test_gzip_needs_zlib(void **state)
{
    assert_bytes_fail(state, "\x1f\x8b\x08\0\0\0\0\0", 8, 1, "zlib1g-dev");
}
#endif

#define TEST(function) cmocka_unit_test_setup_teardown(function, make_dir, remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_text),
        TEST(test_items),
        TEST(test_matrix_market),
        TEST(test_whole_numbers_written_as_real),
        TEST(test_errors_of_text),
        TEST(test_errors_of_banners),
        TEST(test_errors_of_matrices),
        TEST(test_binary_rubbish),
        TEST(test_long_lines),
        TEST(test_files_that_cannot_be_read),
        TEST(test_long_paths),
        TEST(test_write_then_read),
        TEST(test_write_failures),
        TEST(test_read_from_memory),
#ifdef HAVE_ZLIB
        TEST(test_gzip),
        TEST(test_damaged_gzip),
#else
        TEST(test_gzip_needs_zlib),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
