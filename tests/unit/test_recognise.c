/* Tests of recognising exchanges by all ranks (recognise.h), which must come to the same in
 * every bit as one who has all notes (recognise_plainly.c): random programs in which ranks repeat a
 * sequence of exchanges, all with one tag, on random subsets of the ranks; and notes of no sense.
 */
#include "planner/base/hash.h"
#include "random_pattern.h"
#include "recognise_ranks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MOST_RANKS     12
#define MOST_EXCHANGES 6
#define MOST_SEQUENCE  10
#define MOST_NOTES     4000
#define N_PROGRAMS     400

struct exchange {
    bool takes_part[MOST_RANKS];
    int n[MOST_RANKS][MOST_RANKS]; /* messages from one rank to another */
};

struct rank {
    int n;
    struct cpl_note note[MOST_NOTES];
    int occurrence[MOST_NOTES]; /* of the exchange that the note belongs to; -1: none */
    int n_signatures;
    uint64_t signature[MOST_EXCHANGES];
};

struct program {
    uint64_t random;
    int n_ranks, n_exchanges, n_sequence, n_occurrences;
    struct exchange exchange[MOST_EXCHANGES];
    int sequence[MOST_SEQUENCE];
    int of_occurrence[MOST_NOTES];
    struct rank rank[MOST_RANKS];
    bool collectives;
};

/* A ring over the ranks that take part, so that the exchange is one, and more. */
static void make_exchange(struct program *p, struct exchange *e)
{
    int member[MOST_RANKS], n = 0;
    memset(e, 0, sizeof *e);
    for (int r = 0; r < p->n_ranks; r++)
        if (random_below(&p->random, 3) > 0)
            member[n++] = r;
    if (n < 2)
        member[0] = 0, member[1] = 1, n = 2;
    for (int k = 0; k < n; k++) {
        e->takes_part[member[k]] = true;
        e->n[member[k]][member[(k + 1) % n]]++;
    }
    e->n[member[0]][member[1]]++; /* somebody sends several */
    for (int k = random_below(&p->random, 2 * n); k > 0; k--)
        e->n[member[random_below(&p->random, n)]][member[random_below(&p->random, n)]]++;
}

static void add_note(struct rank *rank, enum cpl_note_kind kind, int peer, int occurrence)
{
    assert_true(rank->n < MOST_NOTES);
    rank->note[rank->n] = (struct cpl_note){kind, peer, 0};
    rank->occurrence[rank->n++] = occurrence;
}

/* The number of what a rank sends; -1: nothing. */
static int signature_of(struct rank *rank, const int *n_to, int n_ranks)
{
    uint64_t hash = CPL_HASH_START;
    int n = 0, k = 0;
    for (int r = 0; r < n_ranks; r++) {
        hash = cpl_hash_word(hash, (uint64_t)n_to[r]);
        n += n_to[r];
    }
    if (n == 0)
        return -1;
    while (k < rank->n_signatures && rank->signature[k] != hash)
        k++;
    if (k == rank->n_signatures)
        rank->signature[rank->n_signatures++] = hash;
    return k;
}

/* Receives are posted before the messages are sent, or a message is received by a blocking call
 * after them. */
static void run_exchange(struct program *p, int number, bool blocking)
{
    const struct exchange *e = &p->exchange[number];
    int occurrence = p->n_occurrences++;
    p->of_occurrence[occurrence] = number;
    for (int r = 0; r < p->n_ranks; r++) {
        struct rank *rank = &p->rank[r];
        if (!e->takes_part[r])
            continue;
        for (int s = 0; s < p->n_ranks && !blocking; s++)
            for (int k = 0; k < e->n[s][r]; k++)
                add_note(rank, CPL_NOTE_POSTED, s, occurrence);
        for (int d = p->n_ranks - 1; d >= 0; d--)
            for (int k = 0; k < e->n[r][d]; k++)
                add_note(rank, CPL_NOTE_SENT, d, occurrence);
        add_note(rank, CPL_NOTE_WINDOW_END, signature_of(rank, e->n[r], p->n_ranks), occurrence);
        for (int s = 0; s < p->n_ranks && blocking; s++)
            for (int k = 0; k < e->n[s][r]; k++)
                add_note(rank, CPL_NOTE_RECEIVED, s, occurrence);
    }
}

static struct program *make_program(uint64_t seed, int n_cycles)
{
    struct program *p = calloc(1, sizeof *p);
    assert_non_null(p);
    p->random = seed;
    p->n_ranks = 2 + random_below(&p->random, MOST_RANKS - 1);
    p->n_exchanges = 1 + random_below(&p->random, MOST_EXCHANGES);
    p->n_sequence = 1 + random_below(&p->random, MOST_SEQUENCE);
    p->collectives = random_below(&p->random, 2);
    for (int k = 0; k < p->n_exchanges; k++)
        make_exchange(p, &p->exchange[k]);
    for (int k = 0; k < p->n_sequence; k++)
        p->sequence[k] = random_below(&p->random, p->n_exchanges);
    for (int c = 0; c < n_cycles; c++) {
        for (int k = 0; k < p->n_sequence; k++)
            run_exchange(p, p->sequence[k], false);
        for (int r = 0; r < p->n_ranks && p->collectives; r++)
            add_note(&p->rank[r], CPL_NOTE_COLLECTIVE, 0, -1);
    }
    return p;
}

/* Drops what a rank noted before some occurrence: it kept its last notes only. */
static void cut_notes(struct program *p, struct rank *rank, int most)
{
    int first = 0, occurrence = random_below(&p->random, most);
    while (first < rank->n && rank->occurrence[first] < occurrence)
        first++;
    rank->n -= first;
    memmove(rank->note, rank->note + first, (size_t)rank->n * sizeof *rank->note);
    memmove(rank->occurrence, rank->occurrence + first, (size_t)rank->n * sizeof *rank->occurrence);
}

static bool same(const struct exchange *a, const struct exchange *b)
{
    return memcmp(a->n, b->n, sizeof a->n) == 0;
}

/* The notes of all, and the exchange that each rank's batches are said to be of. */
struct outcome {
    int n;
    int64_t first[MOST_RANKS + 1];
    struct cpl_note note[MOST_RANKS * MOST_NOTES];
    int32_t exchange[MOST_RANKS * MOST_NOTES];
    struct cpl_recurring found[MOST_EXCHANGES];
};

/* By one who has all notes, and by all ranks: with the same result. */
static int recognise_twice(int n_ranks, const int64_t *first, const struct cpl_note *notes,
                           int most, int64_t least_times, struct cpl_recurring *found,
                           int32_t *exchange)
{
    struct cpl_recurring again[MOST_EXCHANGES];
    int32_t *label = calloc((size_t)first[n_ranks] + 1, sizeof *label);
    int n_rounds;
    assert_non_null(label);
    int n = recognise_plainly(n_ranks, first, notes, most, least_times, found, exchange);
    assert_int_equal(
        recognise_ranks(n_ranks, first, notes, most, least_times, again, label, &n_rounds), n);
    for (int k = 0; k < n; k++) {
        assert_true(again[k].hash == found[k].hash && again[k].tag == found[k].tag);
        assert_true(again[k].times == found[k].times && again[k].n_messages == found[k].n_messages);
    }
    assert_memory_equal(label, exchange, (size_t)first[n_ranks] * sizeof *label);
    free(label);
    return n;
}

static struct outcome *recognise(const struct program *p, int most)
{
    struct outcome *o = calloc(1, sizeof *o);
    assert_non_null(o);
    for (int r = 0; r < p->n_ranks; r++) {
        o->first[r + 1] = o->first[r] + p->rank[r].n;
        memcpy(&o->note[o->first[r]], p->rank[r].note,
               (size_t)p->rank[r].n * sizeof *p->rank[r].note);
    }
    o->n = recognise_twice(p->n_ranks, o->first, o->note, most, 3, o->found, o->exchange);
    return o;
}

/* Every batch is that of its occurrence, on all ranks; those from `certain` on are known. */
static void check(const struct program *p, const struct outcome *o, int certain)
{
    int number[MOST_EXCHANGES];
    for (int k = 0; k < p->n_exchanges; k++)
        number[k] = -1;
    for (int r = 0; r < p->n_ranks; r++) {
        const struct rank *rank = &p->rank[r];
        for (int k = 0; k < rank->n; k++) {
            int e = o->exchange[o->first[r] + k];
            if (rank->note[k].kind != CPL_NOTE_WINDOW_END || rank->note[k].peer < 0) {
                assert_int_equal(e, -1);
                continue;
            }
            assert_true(e >= 0 || rank->occurrence[k] < certain);
            if (e < 0)
                continue;
            int truth = p->of_occurrence[rank->occurrence[k]];
            assert_true(number[truth] < 0 || number[truth] == e);
            number[truth] = e;
        }
    }
    for (int a = 0; a < p->n_exchanges; a++)
        for (int b = 0; b < a; b++)
            if (number[a] >= 0 && number[a] == number[b])
                assert_true(same(&p->exchange[a], &p->exchange[b]));
}

static void test_random_programs(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < N_PROGRAMS; seed++) {
        struct program *p = make_program(seed, 4);
        struct outcome *o = recognise(p, MOST_EXCHANGES);
        assert_true(o->n > 0);
        for (int k = 0; k < o->n; k++)
            assert_true(o->found[k].times >= 4 && o->found[k].times % 4 == 0);
        check(p, o, 0);
        free(o);
        free(p);
    }
}

/* Notes that begin at other places on other ranks: what is not complete is not guessed. */
static void test_cut_notes(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < N_PROGRAMS; seed++) {
        struct program *p = make_program(seed, 8);
        for (int r = 0; r < p->n_ranks; r++)
            cut_notes(p, &p->rank[r], 4 * p->n_sequence);
        struct outcome *o = recognise(p, MOST_EXCHANGES);
        check(p, o, 4 * p->n_sequence);
        free(o);
        free(p);
    }
}

/* Few are wanted: those with most messages. */
static void test_most(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < N_PROGRAMS; seed++) {
        struct program *p = make_program(seed, 4);
        struct outcome *all = recognise(p, MOST_EXCHANGES), *one = recognise(p, 1);
        assert_int_equal(one->n, 1);
        assert_true(one->found[0].hash == all->found[0].hash);
        for (int k = 1; k < all->n; k++)
            assert_true(all->found[k].times * all->found[k].n_messages <=
                        all->found[k - 1].times * all->found[k - 1].n_messages);
        free(all);
        free(one);
        free(p);
    }
}

/* Blocking receives that follow each other belong together. */
static void test_blocking(void **state)
{
    struct program *p = calloc(1, sizeof *p);
    (void)state;
    assert_non_null(p);
    p->n_ranks = 5;
    p->n_exchanges = 1;
    for (int r = 0; r < 5; r++) {
        p->exchange[0].takes_part[r] = true;
        p->exchange[0].n[r][(r + 1) % 5] = p->exchange[0].n[r][(r + 2) % 5] = 1;
    }
    for (int k = 0; k < 3; k++)
        run_exchange(p, 0, true);
    struct outcome *o = recognise(p, MOST_EXCHANGES);
    assert_int_equal(o->n, 1);
    assert_int_equal(o->found[0].n_messages, 10);
    check(p, o, 0);
    free(o);
    free(p);
}

/* A rank that waits in the midst of what another one does at once: its first batch is of the
 * exchange, the second one of another. */
static void test_waits_between(void **state)
{
    static const struct cpl_note both[] = {
        {CPL_NOTE_POSTED, 1, 7},     {CPL_NOTE_POSTED, 1, 7}, {CPL_NOTE_POSTED, 1, 7},
        {CPL_NOTE_POSTED, 1, 7},     {CPL_NOTE_SENT, 1, 8},   {CPL_NOTE_SENT, 1, 8},
        {CPL_NOTE_WINDOW_END, 0, 0}, {CPL_NOTE_POSTED, 0, 8}, {CPL_NOTE_POSTED, 0, 8},
        {CPL_NOTE_SENT, 0, 7},       {CPL_NOTE_SENT, 0, 7},   {CPL_NOTE_WINDOW_END, 0, 0},
        {CPL_NOTE_SENT, 0, 7},       {CPL_NOTE_SENT, 0, 7},   {CPL_NOTE_WINDOW_END, 0, 0}};
    static const int64_t first[] = {0, 7, 15};
    struct cpl_recurring found[MOST_EXCHANGES];
    int32_t exchange[15];
    (void)state;
    assert_int_equal(recognise_twice(2, first, both, MOST_EXCHANGES, 1, found, exchange), 2);
    assert_int_equal(found[0].n_messages, 4);
    assert_int_equal(found[0].tag, 8);
    assert_int_equal(found[1].n_messages, 2);
    assert_int_equal(found[1].tag, 7);
    assert_int_equal(exchange[6], 0);
    assert_int_equal(exchange[11], 0);
    assert_int_equal(exchange[14], 1);
    assert_int_equal(recognise_twice(2, first, both, MOST_EXCHANGES, 2, found, exchange), 0);
    assert_int_equal(exchange[6], -1);
}

/* Equal signatures send equally many messages. */
static void sign(const int64_t *first, int n_ranks, struct cpl_note *notes)
{
    struct cpl_windows windows;
    for (int r = 0; r < n_ranks; r++) {
        assert_true(cpl_windows_cut(&windows, notes + first[r], first[r + 1] - first[r]));
        for (int32_t w = 0; w < windows.n; w++)
            if (windows.window[w].end_note >= 0 && windows.window[w].signature >= 0)
                notes[first[r] + windows.window[w].end_note].peer = windows.window[w].n_sent;
        cpl_windows_free(&windows);
    }
}

/* Notes of every kind by chance, of few ranks: windows of a rank linked with each other, several of
 * a rank in an exchange, messages to itself, now and then an end that is missing. */
enum { MOST_CHAOS = 60 };

static int make_chaos(uint64_t seed, int64_t *first, struct cpl_note *notes)
{
    static struct cpl_note of[MOST_RANKS][2 * MOST_CHAOS];
    uint64_t random = seed;
    int n_ranks = 1 + random_below(&random, 9), n_tags = 1 + random_below(&random, 3);
    int n_of[MOST_RANKS] = {0};
    for (int k = random_below(&random, MOST_CHAOS); k > 0; k--) {
        int from = random_below(&random, n_ranks), to = random_below(&random, n_ranks);
        int tag = random_below(&random, n_tags), missing = random_below(&random, 200);
        int received = random_below(&random, 5) ? CPL_NOTE_POSTED : CPL_NOTE_RECEIVED;
        if (random_below(&random, 4) == 0) {
            int kind = random_below(&random, 3) ? CPL_NOTE_WINDOW_END : CPL_NOTE_COLLECTIVE;
            of[from][n_of[from]++] = (struct cpl_note){kind, random_below(&random, 4) ? 0 : -1, 0};
            continue;
        }
        if (missing != 0)
            of[from][n_of[from]++] = (struct cpl_note){CPL_NOTE_SENT, to, tag};
        if (missing != 1)
            of[to][n_of[to]++] = (struct cpl_note){received, from, tag};
    }
    first[0] = 0;
    for (int r = 0; r < n_ranks; r++) {
        memcpy(notes + first[r], of[r], (size_t)n_of[r] * sizeof *notes);
        first[r + 1] = first[r] + n_of[r];
    }
    return n_ranks;
}

/* The same ones several times over: something recurs, and nothing is missing but at the front. */
static void repeat(int n_ranks, int times, int64_t *first, struct cpl_note *notes)
{
    struct cpl_note *once = calloc((size_t)first[n_ranks] + 1, sizeof *once);
    int64_t before[MOST_RANKS + 1], n = 0;
    assert_non_null(once);
    memcpy(once, notes, (size_t)first[n_ranks] * sizeof *once);
    memcpy(before, first, ((size_t)n_ranks + 1) * sizeof *first);
    for (int r = 0; r < n_ranks; r++) {
        first[r] = n;
        for (int t = 0; t < times; t++) {
            int64_t own = before[r + 1] - before[r];
            memcpy(notes + n, once + before[r], (size_t)own * sizeof *once);
            n += own;
            notes[n++] = (struct cpl_note){CPL_NOTE_WINDOW_END, t % 2, 0};
        }
    }
    first[n_ranks] = n;
    free(once);
}

static void test_chaos(void **state)
{
    enum { MOST = (2 * MOST_CHAOS + MOST_RANKS) * 4 };
    static struct cpl_note notes[MOST];
    static int32_t exchange[MOST];
    int64_t first[MOST_RANKS + 1];
    struct cpl_recurring found[MOST_EXCHANGES];
    int n_found = 0, n_several = 0;
    (void)state;
    for (uint64_t seed = 0; seed < 4000; seed++) {
        int n_ranks = make_chaos(seed, first, notes);
        if (seed % 2)
            repeat(n_ranks, 1 + (int)(seed / 2 % 4), first, notes);
        sign(first, n_ranks, notes);
        int n = recognise_twice(n_ranks, first, notes, 1 + (int)(seed % MOST_EXCHANGES),
                                1 + (int)(seed % 3), found, exchange);
        n_found += n > 0;
        n_several += n > 1;
    }
    assert_true(n_found > 1000 && n_several > 100);
}

/* A ring of many ranks, each of which sends its neighbour two messages: a round leaves about a
 * third of the labels, so there are few rounds. */
static void test_rounds(void **state)
{
    enum { N = 1 << 12, TIMES = 3, OWN = 5 * TIMES };
    struct cpl_note *notes = calloc((size_t)N * OWN, sizeof *notes), *note = notes;
    int32_t *exchange = calloc((size_t)N * OWN, sizeof *exchange);
    int64_t *first = calloc(N + 1, sizeof *first);
    struct cpl_recurring found[MOST_EXCHANGES];
    int n_rounds;
    (void)state;
    assert_true(notes && exchange && first);
    for (int r = 0; r < N; r++) {
        for (int t = 0; t < TIMES; t++) {
            for (int k = 0; k < 2; k++) {
                *note++ = (struct cpl_note){CPL_NOTE_POSTED, (r + N - 1) % N, k};
                *note++ = (struct cpl_note){CPL_NOTE_SENT, (r + 1) % N, k};
            }
            *note++ = (struct cpl_note){CPL_NOTE_WINDOW_END, 0, 0};
        }
        first[r + 1] = note - notes;
    }
    assert_int_equal(
        recognise_ranks(N, first, notes, MOST_EXCHANGES, 3, found, exchange, &n_rounds), 1);
    assert_int_equal(found[0].times, TIMES);
    assert_int_equal(found[0].n_messages, 2 * N);
    assert_in_range(n_rounds, 2, 14);
    free(notes);
    free(exchange);
    free(first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_programs),
        cmocka_unit_test(test_cut_notes),
        cmocka_unit_test(test_most),
        cmocka_unit_test(test_blocking),
        cmocka_unit_test(test_waits_between),
        cmocka_unit_test(test_chaos),
        cmocka_unit_test(test_rounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
