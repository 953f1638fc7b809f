/* Tests of learned duplicates (shim/duplicates.h, shim/parts.h): a program packs entries of a
 * vector into messages; what it is found to have sent several times must arrive everywhere as it
 * was packed, whatever becomes of the copies later. */
#include "shim/carry/duplicates.h"
#include "shim/carry/parts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_MESSAGES = 9, MOST_ENTRIES = 60, MOST_UNIT = 24 };

/* What a rank sends: entries[m] of the vector to destination m. */
struct program {
    int32_t n_messages, n_vector, unit;
    int32_t n_entries[MOST_MESSAGES];
    int32_t entry[MOST_MESSAGES][MOST_ENTRIES];
    unsigned char data[MOST_MESSAGES][MOST_ENTRIES * MOST_UNIT + 8];
    struct cpl_piece piece[MOST_MESSAGES];
};

static uint64_t random_state;

static uint64_t draw(void)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    uint64_t x = random_state ^ random_state >> 29;
    return x * UINT64_C(0xbf58476d1ce4e5b9) >> 16;
}

static int32_t below(int32_t n)
{
    return (int32_t)(draw() % (uint64_t)n);
}

/* Values that floating point takes for equal, or for different from themselves. */
static void odd_value(unsigned char *to, int32_t unit)
{
    static const double values[] = {0.0, -0.0};
    uint64_t nan = UINT64_C(0x7ff8000000000000) | draw() % 3;
    memset(to, 0, (size_t)unit);
    if (below(2))
        memcpy(to, &values[below(2)], unit < 8 ? (size_t)unit : 8);
    else
        memcpy(to, &nan, unit < 8 ? (size_t)unit : 8);
}

/* Packs a new vector; with oddities its values are few. */
static void pack(struct program *p, bool odd)
{
    unsigned char vector[MOST_ENTRIES * MOST_UNIT];
    for (int32_t k = 0; k < p->n_vector * p->unit; k++)
        vector[k] = (unsigned char)draw();
    for (int32_t k = 0; k < p->n_vector && odd; k++)
        odd_value(vector + (size_t)k * (size_t)p->unit, p->unit);
    for (int32_t m = 0; m < p->n_messages; m++) {
        for (int32_t k = 0; k < p->n_entries[m]; k++)
            memcpy(p->data[m] + k * p->unit, vector + p->entry[m][k] * p->unit, (size_t)p->unit);
        p->piece[m] =
            (struct cpl_piece){p->data[m], (int64_t)p->n_entries[m] * p->unit, p->unit, false};
    }
}

static struct program make_program(uint64_t seed)
{
    static const int32_t units[] = {4, 8, 8, 12, 24};
    struct program p = {.n_messages = 2};
    random_state = seed;
    p.n_messages += below(MOST_MESSAGES - 1);
    p.n_vector = 1 + below(MOST_ENTRIES);
    p.unit = units[below(5)];
    for (int32_t m = 0; m < p.n_messages; m++)
        for (int32_t k = 0; k < p.n_vector; k++)
            if (below(3) == 0)
                p.entry[m][p.n_entries[m]++] = k;
    p.n_entries[0] += p.n_entries[0] == 0; /* the unit is that of some message */
    p.n_entries[1] += p.n_entries[1] == 0;
    for (int32_t m = 0; m < p.n_messages; m++)
        for (int32_t k = p.n_entries[m] - 1; k > 0; k--) { /* any order */
            int32_t at = below(k + 1), entry = p.entry[m][k];
            p.entry[m][k] = p.entry[m][at];
            p.entry[m][at] = entry;
        }
    return p;
}

static struct cpl_parts learn(struct program *p, struct cpl_duplicates **d, int32_t n_exchanges)
{
    struct cpl_parts parts;
    struct cpl_duplicates_found found;
    pack(p, false);
    *d = cpl_duplicates_create(p->n_messages, p->piece);
    assert_non_null(*d);
    for (int32_t k = 0; k < n_exchanges; k++) {
        if (k > 0)
            pack(p, false);
        cpl_duplicates_note(*d, p->piece);
    }
    assert_true(cpl_duplicates_divide(*d, p->piece, &parts, &found));
    return parts;
}

/* Bytes that parts can save: every entry of the vector but once, in parts that are worth it. */
static int64_t most_saved(const struct program *p)
{
    int64_t saved = 0;
    uint32_t set[MOST_ENTRIES] = {0};
    for (int32_t m = 0; m < p->n_messages; m++)
        for (int32_t k = 0; k < p->n_entries[m]; k++)
            set[p->entry[m][k]] |= UINT32_C(1) << m;
    for (int32_t k = 0; k < p->n_vector; k++) {
        int32_t n = 0, n_dests = 0;
        for (int32_t i = 0; i < p->n_vector; i++)
            n += set[i] == set[k];
        for (uint32_t rest = set[k]; rest; rest &= rest - 1)
            n_dests++;
        if (n_dests > 1 && n * (n_dests - 1) * p->unit >= 16)
            saved += (n_dests - 1) * p->unit;
    }
    return saved;
}

static int pack_whole(void *context, int32_t message, unsigned char *to)
{
    const struct program *p = context;
    memcpy(to, p->data[message], (size_t)p->piece[message].bytes);
    return 0;
}

static void count_broken(void *context, int32_t message, int32_t position)
{
    (void)message;
    (void)position;
    ++*(int64_t *)context;
}

/* What a destination makes of a payload. */
static void receive(const struct program *p, int32_t message, const struct cpl_divided *divided,
                    int32_t row, const unsigned char *data, int64_t n, unsigned char *to)
{
    const unsigned char *whole;
    int64_t bytes;
    switch (cpl_divided_read(divided, row, data, n, &whole, &bytes)) {
    case CPL_ROW_ELEMENTS:
        /* all rows of a message or none: receivers count them */
        assert_true(divided->bytes < 0 || (p->piece[message].bytes == divided->bytes &&
                                           p->piece[message].data && !p->piece[message].straight));
        cpl_divided_scatter(divided, row, data, n, to);
        break;
    case CPL_ROW_WHOLE:
        assert_int_equal(bytes, p->piece[message].bytes);
        memcpy(to, whole, (size_t)bytes);
        break;
    case CPL_ROW_STRAIGHT:
        assert_true(p->piece[message].straight);
        memcpy(to, p->data[message], (size_t)p->piece[message].bytes);
        break;
    case CPL_ROW_NOTHING:
        assert_int_not_equal(row, 0);
        break;
    default:
        fail_msg("row %d of message %d is damaged", row, message);
    }
}

/* A part's payload, in memory of its own so that sanitizers see what is out of bounds. */
static unsigned char *pack_part(struct program *p, const struct cpl_parts *parts, int32_t part)
{
    unsigned char *payload = malloc((size_t)parts->part[part].bytes + 1);
    assert_non_null(payload);
    assert_int_equal(cpl_parts_pack(parts, part, p->piece, payload, pack_whole, p), 0);
    return payload;
}

/* Sends everything and compares; returns the elements that were found to be broken. */
static int64_t exchange(struct program *p, struct cpl_parts *parts)
{
    struct cpl_parts_tally tally;
    int64_t n_broken = 0;
    cpl_parts_measure(parts, p->piece, &tally, count_broken, &n_broken);
    assert_int_equal(tally.broken, n_broken);
    for (int32_t m = 0; m < p->n_messages; m++) {
        int32_t n_words = cpl_parts_n_words(parts, m);
        int32_t *words = malloc((size_t)n_words * sizeof *words);
        unsigned char received[sizeof p->data[m]];
        struct cpl_divided divided;
        assert_non_null(words);
        memset(received, 0x5a, sizeof received);
        cpl_parts_write(parts, m, words);
        assert_true(cpl_divided_view(words, n_words, &divided));
        assert_int_equal(divided.n_rows, parts->first_row[m + 1] - parts->first_row[m]);
        for (int32_t r = divided.n_rows - 1; r >= 0; r--) {
            int32_t part = parts->row_part[parts->first_row[m] + r];
            unsigned char *payload = pack_part(p, parts, part);
            receive(p, m, &divided, r, payload, parts->part[part].bytes, received);
            free(payload);
        }
        assert_memory_equal(received, p->data[m], (size_t)p->piece[m].bytes);
        free(words);
    }
    return n_broken;
}

static void test_all_is_found(void **state)
{
    (void)state;
    int64_t n_saved = 0;
    for (uint64_t seed = 1; seed < 300; seed++) {
        struct program p = make_program(seed);
        struct cpl_duplicates *d;
        struct cpl_parts parts = learn(&p, &d, 3);
        int64_t bytes = 0, sent = 0;
        assert_int_equal(parts.saved, most_saved(&p));
        n_saved += parts.saved;
        pack(&p, false);
        assert_int_equal(exchange(&p, &parts), 0);
        for (int32_t m = 0; m < p.n_messages; m++)
            bytes += p.piece[m].bytes;
        for (int32_t k = 0; k < parts.n_parts; k++)
            sent += parts.part[k].bytes;
        assert_int_equal(bytes - sent, parts.saved);
        cpl_parts_free(&parts);
        cpl_duplicates_free(d);
    }
    assert_true(n_saved > 0);
}

/* Of copies one is not like the others, by a bit, or a value is one of those that == misjudges. */
static void test_broken(void **state)
{
    (void)state;
    int64_t n_broken = 0;
    for (uint64_t seed = 1; seed < 300; seed++) {
        struct program p = make_program(seed);
        struct cpl_duplicates *d;
        struct cpl_parts parts = learn(&p, &d, 3);
        for (int32_t k = 0; k < 20; k++) {
            pack(&p, k % 2);
            for (int32_t n = below(4); n > 0; n--) {
                int32_t m = below(p.n_messages);
                if (k % 4 == 1 && p.n_entries[m] > 0)
                    odd_value(p.data[m] + below(p.n_entries[m]) * p.unit, p.unit);
                else if (p.n_entries[m] > 0)
                    p.data[m][below(p.n_entries[m] * p.unit)] ^= (unsigned char)(1 << below(8));
            }
            n_broken += exchange(&p, &parts);
        }
        cpl_parts_free(&parts);
        cpl_duplicates_free(d);
    }
    assert_true(n_broken > 100);
}

/* Messages get shorter, longer, empty, too large to ride, or are in several pieces. */
static void test_other_sizes(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 300; seed++) {
        struct program p = make_program(seed);
        struct cpl_duplicates *d;
        struct cpl_parts parts = learn(&p, &d, 3);
        for (int32_t k = 0; k < 20; k++) {
            pack(&p, false);
            for (int32_t n = below(4); n > 0; n--) {
                struct cpl_piece *piece = &p.piece[below(p.n_messages)];
                if (below(2))
                    piece->bytes = below((int32_t)piece->bytes + 8);
                else if (below(2))
                    piece->data = NULL;
                else
                    piece->straight = true;
            }
            exchange(&p, &parts);
        }
        cpl_parts_free(&parts);
        cpl_duplicates_free(d);
    }
}

/* What never changes proves nothing; what is forgotten is not shared again. */
static void test_not_shared(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 100; seed++) {
        struct program p = make_program(seed);
        struct cpl_duplicates *d;
        struct cpl_parts parts = learn(&p, &d, 1), again;
        struct cpl_duplicates_found found;
        int64_t saved = most_saved(&p);
        assert_int_equal(parts.saved, 0);
        cpl_parts_free(&parts);
        assert_true(cpl_duplicates_divide(d, p.piece, &parts, &found));
        assert_true(found.undecided >= saved);
        cpl_parts_free(&parts);
        pack(&p, false);
        cpl_duplicates_note(d, p.piece);
        assert_true(cpl_duplicates_divide(d, p.piece, &parts, &found));
        assert_int_equal(parts.saved, saved);
        for (int32_t m = 0; m < p.n_messages; m++)
            for (int32_t k = 0; k < p.n_entries[m]; k += 2)
                cpl_duplicates_forget(d, m, k);
        assert_true(cpl_duplicates_divide(d, p.piece, &again, &found));
        assert_true(again.saved < saved || saved == 0);
        for (int32_t k = again.n_messages; k < again.n_parts; k++)
            for (int32_t i = 0; i < again.part[k].n * again.part[k].n_dests; i++)
                assert_int_equal(again.index[again.part[k].first_index + i] % 2, 1);
        assert_int_equal(exchange(&p, &again), 0);
        cpl_parts_free(&again);
        cpl_parts_free(&parts);
        cpl_duplicates_free(d);
    }
}

/* A message that varied while it was observed, or is in pieces, is carried undivided. */
static void test_not_looked_at(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 100; seed++) {
        struct program p = make_program(seed);
        struct cpl_duplicates_found found;
        struct cpl_parts parts;
        pack(&p, false);
        struct cpl_duplicates *d = cpl_duplicates_create(p.n_messages, p.piece);
        assert_non_null(d);
        cpl_duplicates_note(d, p.piece);
        pack(&p, false);
        p.piece[0].bytes -= p.unit;
        p.piece[1].data = seed % 2 ? NULL : p.piece[1].data;
        cpl_duplicates_note(d, p.piece);
        assert_true(cpl_duplicates_divide(d, p.piece, &parts, &found));
        assert_int_equal(parts.first_row[1], 1);
        assert_true(found.undecided >= p.piece[0].bytes);
        assert_int_equal(parts.message_bytes[0], -1);
        pack(&p, false);
        assert_int_equal(exchange(&p, &parts), 0);
        cpl_parts_free(&parts);
        cpl_duplicates_free(d);
    }
}

static void test_nothing_to_find(void **state)
{
    (void)state;
    static const unsigned char data[64];
    const struct cpl_piece alone[] = {{data, 64, 8, false}, {data, 0, 8, false}};
    const struct cpl_piece bytes[] = {{data, 64, 1, false}, {data, 64, 1, false}};
    const struct cpl_piece gaps[] = {{data, 64, 8, false}, {NULL, 64, 8, false}};
    const struct cpl_piece large[] = {{data, INT64_C(4) << 20, 8, false}, {data, 64, 8, false}};
    assert_null(cpl_duplicates_create(2, alone));
    assert_null(cpl_duplicates_create(2, bytes));
    assert_null(cpl_duplicates_create(2, gaps));
    assert_null(cpl_duplicates_create(2, large));
    assert_null(cpl_duplicates_create(0, NULL));
}

/* Payloads and words that were damaged on the way are refused or harmless. */
static void test_damage(void **state)
{
    (void)state;
    int32_t n_refused = 0;
    for (uint64_t seed = 1; seed < 300; seed++) {
        struct program p = make_program(seed);
        struct cpl_duplicates *d;
        struct cpl_parts parts = learn(&p, &d, 3);
        struct cpl_parts_tally tally;
        struct cpl_divided divided;
        int64_t n_broken = 0;
        p.data[1][0] ^= 1;
        p.piece[0].bytes -= p.unit;
        cpl_parts_measure(&parts, p.piece, &tally, count_broken, &n_broken);
        int32_t n_words = cpl_parts_n_words(&parts, 1);
        int32_t *words = malloc((size_t)n_words * sizeof *words);
        assert_non_null(words);
        cpl_parts_write(&parts, 1, words);
        assert_false(cpl_divided_view(words, n_words - 1, &divided));
        words[below(n_words)] = below(100) - 50;
        bool accepted = cpl_divided_view(words, n_words, &divided);
        n_refused += !accepted;
        if (accepted && divided.bytes == p.piece[1].bytes && divided.unit == p.unit) {
            unsigned char received[sizeof p.data[1]];
            int32_t row = below(divided.n_rows), part = parts.row_part[parts.first_row[1] + row];
            unsigned char *payload = pack_part(&p, &parts, part);
            const unsigned char *whole;
            int64_t n = parts.part[part].bytes, bytes;
            for (int64_t at = cpl_parts_volume(&parts, part); at < n; at++)
                payload[at] ^= (unsigned char)(below(8) == 0 ? 1 : 0);
            if (cpl_divided_read(&divided, row, payload, n, &whole, &bytes) == CPL_ROW_ELEMENTS)
                cpl_divided_scatter(&divided, row, payload, n, received);
            assert_int_equal(cpl_divided_read(&divided, divided.n_rows, payload, n, &whole, &bytes),
                             CPL_ROW_DAMAGED);
            free(payload);
        }
        free(words);
        cpl_parts_free(&parts);
        cpl_duplicates_free(d);
    }
    assert_true(n_refused > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_is_found),  cmocka_unit_test(test_broken),
        cmocka_unit_test(test_other_sizes),   cmocka_unit_test(test_not_shared),
        cmocka_unit_test(test_not_looked_at), cmocka_unit_test(test_nothing_to_find),
        cmocka_unit_test(test_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
