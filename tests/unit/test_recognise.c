/* Tests of recognising exchanges (recognise.h): random programs in which ranks repeat a sequence of
 * exchanges, all with one tag, on random subsets of the ranks. */
#include "planner/base/hash.h"
#include "random_pattern.h"
#include "shim/plan/recognise.h"

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

static struct outcome *recognise(const struct program *p, int most)
{
    struct outcome *o = calloc(1, sizeof *o);
    assert_non_null(o);
    for (int r = 0; r < p->n_ranks; r++) {
        o->first[r + 1] = o->first[r] + p->rank[r].n;
        memcpy(&o->note[o->first[r]], p->rank[r].note,
               (size_t)p->rank[r].n * sizeof *p->rank[r].note);
    }
    o->n = cpl_recognise(p->n_ranks, o->first, o->note, most, 3, o->found, o->exchange);
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
    assert_int_equal(cpl_recognise(2, first, both, MOST_EXCHANGES, 1, found, exchange), 2);
    assert_int_equal(found[0].n_messages, 4);
    assert_int_equal(found[0].tag, 8);
    assert_int_equal(found[1].n_messages, 2);
    assert_int_equal(found[1].tag, 7);
    assert_int_equal(exchange[6], 0);
    assert_int_equal(exchange[11], 0);
    assert_int_equal(exchange[14], 1);
    assert_int_equal(cpl_recognise(2, first, both, MOST_EXCHANGES, 2, found, exchange), 0);
    assert_int_equal(exchange[6], -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_programs),
        cmocka_unit_test(test_cut_notes),
        cmocka_unit_test(test_most),
        cmocka_unit_test(test_blocking),
        cmocka_unit_test(test_waits_between),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
