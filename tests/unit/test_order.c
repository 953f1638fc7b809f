/* Tests of the order of sends (order.h) by the model of its paper: a send takes a unit of time and
 * arrives at its end, receiving takes none, the second exchange waits for the first. All orders are
 * tried where that is possible. */
#include "planner/order.h"
#include "plans.h"
#include "random_pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define MOST_RANKS    24
#define MOST_MESSAGES (MOST_RANKS * (MOST_RANKS - 1))

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* When the last rank is done with both exchanges, receipts of the second one counted too (equation
 * 4 of the paper, without computation); its messages leave by rank. */
static int64_t completion(const struct cpl_pattern *pre, const int64_t *order,
                          const struct cpl_pattern *post)
{
    int64_t entered[MOST_RANKS], last = 0;
    for (int32_t i = 0; i < pre->n_ranks; i++)
        entered[i] = cpl_pattern_sends(pre, i);
    for (int32_t i = 0; i < pre->n_ranks; i++)
        for (int64_t k = pre->first[i]; k < pre->first[i + 1]; k++) {
            int32_t to = pre->dst[order[k]];
            entered[to] = larger(entered[to], k - pre->first[i] + 1);
        }
    for (int32_t i = 0; i < post->n_ranks; i++)
        last = larger(last, entered[i] + cpl_pattern_sends(post, i));
    for (int32_t i = 0; i < post->n_ranks; i++)
        for (int64_t k = post->first[i]; k < post->first[i + 1]; k++)
            last = larger(last, entered[i] + k - post->first[i] + 1);
    return last;
}

static int64_t told_completion(const struct cpl_pattern *pre, const int64_t *order,
                               const struct cpl_pattern *post, int64_t work)
{
    struct cpl_error error = {""};
    int64_t told = -1;
    if (cpl_order_completion(pre, order, post, work, &told, &error))
        fail_msg("%s", error.text);
    return told;
}

static void swap(int64_t *a, int64_t *b)
{
    int64_t kept = *a;
    *a = *b;
    *b = kept;
}

/* The next order of n numbers after theirs; false, and the first order again, after the last. */
static bool next_order(int64_t *order, int64_t n)
{
    int64_t k = n - 2, l = n - 1;
    while (k >= 0 && order[k] > order[k + 1])
        k--;
    if (k >= 0) {
        while (order[l] < order[k])
            l--;
        swap(&order[k], &order[l]);
    }
    for (int64_t low = k + 1, high = n - 1; low < high; low++, high--)
        swap(&order[low], &order[high]);
    return k >= 0;
}

/* The best and the worst of all orders. */
static void try_all(const struct cpl_pattern *pre, const struct cpl_pattern *post, int64_t *best,
                    int64_t *worst)
{
    int64_t order[MOST_MESSAGES];
    int32_t i = 0;
    for (int64_t m = 0; m < pre->n_messages; m++)
        order[m] = m;
    *best = INT64_MAX;
    *worst = 0;
    while (i < pre->n_ranks) {
        int64_t last = completion(pre, order, post);
        *best = last < *best ? last : *best;
        *worst = larger(*worst, last);
        for (i = 0; i < pre->n_ranks; i++)
            if (next_order(order + pre->first[i], cpl_pattern_sends(pre, i)))
                break;
    }
}

static void get_order(const struct cpl_pattern *pre, const struct cpl_pattern *post, int64_t *order)
{
    struct cpl_error error = {""};
    if (cpl_order_between(pre, post, order, &error))
        fail_msg("%s", error.text);
}

static void reverse(const struct cpl_pattern *pre, int64_t *order)
{
    for (int32_t i = 0; i < pre->n_ranks; i++)
        for (int64_t low = pre->first[i], high = pre->first[i + 1] - 1; low < high; low++, high--)
            swap(&order[low], &order[high]);
}

/* The order is the best there is, and the reverse order the worst. Returns whether they differ. */
static bool check_optimal(const struct cpl_pattern *pre, const struct cpl_pattern *post)
{
    int64_t order[MOST_MESSAGES], best, worst;
    try_all(pre, post, &best, &worst);
    get_order(pre, post, order);
    assert_int_equal(completion(pre, order, post), best);
    assert_int_equal(told_completion(pre, order, post, 0), best);
    reverse(pre, order);
    assert_int_equal(completion(pre, order, post), worst);
    assert_int_equal(told_completion(pre, order, post, 0), worst);
    return best < worst;
}

/* A pattern of the pairs (i, j), i != j, numbered 0 .. n (n - 1) - 1, whose bits are set. */
static struct cpl_pattern pattern_of_bits(int32_t n_ranks, uint64_t bits)
{
    struct cpl_pattern_entry entries[32];
    int64_t n = 0;
    int bit = 0;
    for (int32_t i = 0; i < n_ranks; i++)
        for (int32_t j = 0; j < n_ranks; j++)
            if (i != j && (bits >> bit++ & 1))
                entries[n++] = (struct cpl_pattern_entry)MESSAGE(i, j, 1);
    return make_pattern(n_ranks, entries, n);
}

static void shuffle(const struct cpl_pattern *pre, int64_t *order, uint64_t *random)
{
    for (int32_t i = 0; i < pre->n_ranks; i++)
        for (int64_t n = cpl_pattern_sends(pre, i); n > 1; n--)
            swap(&order[pre->first[i] + n - 1],
                 &order[pre->first[i] + (int64_t)random_draw(random, (uint64_t)n)]);
}

/* When the four ranks have all of the first exchange, by every order of it: entries as numbers of
 * two bits a rank; which of the 256 there are. */
static void find_all_entries(const struct cpl_pattern *pre, bool *occurs)
{
    int64_t order[12];
    int32_t i = 0;
    for (int64_t m = 0; m < pre->n_messages; m++)
        order[m] = m;
    memset(occurs, 0, 256 * sizeof *occurs);
    while (i < 4) {
        int64_t entered[4];
        for (i = 0; i < 4; i++)
            entered[i] = cpl_pattern_sends(pre, i);
        for (i = 0; i < 4; i++)
            for (int64_t k = pre->first[i]; k < pre->first[i + 1]; k++)
                entered[pre->dst[order[k]]] =
                    larger(entered[pre->dst[order[k]]], k - pre->first[i] + 1);
        occurs[entered[0] | entered[1] << 2 | entered[2] << 4 | entered[3] << 6] = true;
        for (i = 0; i < 4; i++)
            if (next_order(order + pre->first[i], cpl_pattern_sends(pre, i)))
                break;
    }
}

/* The least and the most of what any of the entries comes to with so many sends afterwards, two
 * bits a rank, too. */
static void find_extremes(const bool *occurs, int sends, int64_t *best, int64_t *worst)
{
    *best = INT64_MAX;
    *worst = 0;
    for (int entries = 0; entries < 256; entries++) {
        int64_t last = 0;
        for (int bit = 0; bit < 8 && occurs[entries]; bit += 2)
            last = larger(last, (entries >> bit & 3) + (sends >> bit & 3));
        if (!occurs[entries])
            continue;
        *best = last < *best ? last : *best;
        *worst = larger(*worst, last);
    }
}

/* A second exchange in which the ranks have so many sends. */
static struct cpl_pattern pattern_of_sends(int sends)
{
    uint64_t bits = 0;
    for (int i = 0; i < 4; i++)
        bits |= (uint64_t)((1 << (sends >> 2 * i & 3)) - 1) << 3 * i;
    return pattern_of_bits(4, bits);
}

/* All cases of 4 ranks: every first exchange (4,096), every number of sends of each rank in the
 * second one (256), every order of the first one's messages. Of the second exchange nothing else
 * matters, as test_second_by_its_sends finds. */
static void test_all_of_four(void **state)
{
    (void)state;
    struct cpl_pattern post[256];
    bool occurs[256];
    int n_matter = 0;
    for (int sends = 0; sends < 256; sends++)
        post[sends] = pattern_of_sends(sends);
    for (uint64_t bits = 0; bits < 1 << 12; bits++) {
        struct cpl_pattern pre = pattern_of_bits(4, bits);
        find_all_entries(&pre, occurs);
        for (int sends = 0; sends < 256; sends++) {
            int64_t order[12], best, worst;
            find_extremes(occurs, sends, &best, &worst);
            get_order(&pre, &post[sends], order);
            if (told_completion(&pre, order, &post[sends], 0) != best)
                fail_msg("exchange %d before sends %d: not %d", (int)bits, sends, (int)best);
            n_matter += best < worst;
        }
        cpl_pattern_free(&pre);
    }
    assert_int_equal(n_matter, 385800);
    for (int sends = 0; sends < 256; sends++)
        cpl_pattern_free(&post[sends]);
}

/* Every second exchange of 4 ranks after a drawn one in a drawn order: when the last message has
 * arrived, the last sender is done, and it does not matter whom ranks send to. */
static void test_second_by_its_sends(void **state)
{
    (void)state;
    uint64_t random = 4;
    for (uint64_t bits = 0; bits < 1 << 12; bits++) {
        struct cpl_pattern pre = pattern_of_bits(4, random_draw(&random, 1 << 12));
        struct cpl_pattern post = pattern_of_bits(4, bits);
        int64_t order[12];
        for (int64_t m = 0; m < pre.n_messages; m++)
            order[m] = m;
        shuffle(&pre, order, &random);
        assert_int_equal(completion(&pre, order, &post), told_completion(&pre, order, &post, 0));
        assert_int_equal(completion(&pre, order, &post) + 7,
                         told_completion(&pre, order, &post, 7));
        check_optimal(&pre, &post);
        cpl_pattern_free(&post);
        cpl_pattern_free(&pre);
    }
}

static void test_some_of_five(void **state)
{
    (void)state;
    uint64_t random = 5;
    int n_matter = 0;
    for (int k = 0; k < 200; k++) {
        /* two draws, of which both must have a pair: about 5 messages, at most a few 1000 orders */
        uint64_t bits = random_draw(&random, 1 << 20) & random_draw(&random, 1 << 20);
        struct cpl_pattern pre = pattern_of_bits(5, bits);
        struct cpl_pattern post = pattern_of_bits(5, random_draw(&random, 1 << 20));
        n_matter += check_optimal(&pre, &post);
        cpl_pattern_free(&post);
        cpl_pattern_free(&pre);
    }
    assert_true(n_matter > 10);
}

/* What a row of the paper's table 1 says of an exchange of 24 ranks: the least and the most sends
 * of a rank, and the sends of all. */
struct shape {
    int32_t least, most, total;
};

static const struct shape table_1[10][2] = {
    {{5, 21, 290}, {6, 22, 358}},  {{3, 23, 313}, {11, 22, 370}}, {{10, 23, 490}, {15, 23, 504}},
    {{6, 22, 312}, {10, 20, 356}}, {{5, 23, 228}, {7, 13, 228}},  {{1, 23, 212}, {4, 17, 236}},
    {{3, 20, 226}, {7, 17, 253}},  {{2, 23, 267}, {4, 22, 278}},  {{3, 16, 167}, {4, 20, 273}},
    {{2, 23, 300}, {10, 23, 316}}};

/* A random exchange of the shape. */
static struct cpl_pattern draw_exchange(const struct shape *shape, uint64_t *random)
{
    struct cpl_pattern_entry entries[MOST_MESSAGES];
    int32_t sends[MOST_RANKS], total = 0, n = 0;
    int32_t idlest = random_below(random, MOST_RANKS);
    int32_t busiest = (idlest + 1 + random_below(random, MOST_RANKS - 1)) % MOST_RANKS;
    for (int32_t i = 0; i < MOST_RANKS; i++)
        total += sends[i] = i == busiest ? shape->most : shape->least;
    while (total < shape->total) {
        int32_t i = random_below(random, MOST_RANKS);
        if (i != idlest && sends[i] < shape->most) {
            sends[i]++;
            total++;
        }
    }
    for (int32_t i = 0; i < MOST_RANKS; i++) {
        int32_t unseen = MOST_RANKS - 1, wanted = sends[i]; /* receivers to choose among */
        for (int32_t j = 0; j < MOST_RANKS; j++)
            if (j != i && random_below(random, unseen--) < wanted) {
                entries[n++] = (struct cpl_pattern_entry)MESSAGE(i, j, 1);
                wanted--;
            }
    }
    assert_int_equal(n, shape->total);
    return make_pattern(MOST_RANKS, entries, n);
}

/* Best <= any <= worst, within the bounds of the paper's section 2. Returns worst - best. */
static int64_t check_between(const struct cpl_pattern *pre, const struct cpl_pattern *post,
                             uint64_t *random)
{
    int64_t order[MOST_MESSAGES];
    struct cpl_order_bounds bound = cpl_order_bound(pre, post, 0);
    get_order(pre, post, order);
    int64_t best = completion(pre, order, post);
    reverse(pre, order);
    int64_t worst = completion(pre, order, post);
    assert_in_range(best, bound.least, worst);
    assert_in_range(worst, best, bound.most);
    assert_in_range(bound.most, bound.least, 2 * bound.least);
    for (int k = 0; k < 100; k++) {
        shuffle(pre, order, random);
        assert_in_range(completion(pre, order, post), best, worst);
    }
    return worst - best;
}

static void test_table_1(void **state)
{
    (void)state;
    uint64_t random = 1;
    int64_t gained = 0;
    for (int row = 0; row < 10; row++)
        for (int k = 0; k < 10; k++) {
            struct cpl_pattern pre = draw_exchange(&table_1[row][0], &random);
            struct cpl_pattern post = draw_exchange(&table_1[row][1], &random);
            gained += check_between(&pre, &post, &random);
            cpl_pattern_free(&post);
            cpl_pattern_free(&pre);
        }
    assert_true(gained > 100); /* a unit of time in each case, on average */
}

static void test_by_key(void **state)
{
    (void)state;
    const int64_t few[] = {2, 0, 7, 2, 7, 1}, huge[] = {5, INT64_MAX, 0, 5};
    int32_t place[6];
    assert_int_equal(cpl_order_by_key(6, few, place, NULL), CPL_OK);
    assert_memory_equal(place, ((const int32_t[]){2, 5, 0, 3, 1, 4}), sizeof place);
    assert_int_equal(cpl_order_by_key(4, huge, place, NULL), CPL_OK);
    assert_memory_equal(place, ((const int32_t[]){1, 0, 3, 2}), 4 * sizeof *place);
    assert_int_equal(cpl_order_by_key(0, few, place, NULL), CPL_OK);
}

/* Lists with the same receiver twice, and empty ones. */
static void test_sends(void **state)
{
    (void)state;
    const int64_t first[] = {0, 4, 4, 5, 8}, key[] = {1, 3, 3, 0};
    const int32_t to[] = {3, 2, 1, 2, /* */ 0, /* */ 0, 1, 2};
    int64_t order[8];
    assert_int_equal(cpl_order_sends(4, first, to, key, order, NULL), CPL_OK);
    assert_memory_equal(order, ((const int64_t[]){2, 1, 3, 0, /* */ 4, /* */ 6, 7, 5}),
                        sizeof order);
}

static void test_other_ranks(void **state)
{
    (void)state;
    struct cpl_pattern pre = make_pattern(3, NULL, 0), post = make_pattern(4, NULL, 0);
    struct cpl_error error = {""};
    int64_t order[1], told;
    assert_int_equal(cpl_order_between(&pre, &post, order, &error), CPL_ERR_ARG);
    assert_string_equal(error.text, "an exchange of 3 ranks before one of 4");
    assert_int_equal(cpl_order_completion(&pre, NULL, &post, 0, &told, &error), CPL_ERR_ARG);
    cpl_pattern_free(&post);
    cpl_pattern_free(&pre);
}

/* Six ranks like the paper's figure 1: the order of numbers, the best one, and the bounds. */
static void test_units(void **state)
{
    (void)state;
    const struct cpl_pattern_entry first[] = {MESSAGE(0, 1, 1), MESSAGE(0, 2, 1), MESSAGE(0, 5, 1),
                                              MESSAGE(1, 5, 1), MESSAGE(3, 4, 1), MESSAGE(3, 5, 1)};
    const struct cpl_pattern_entry second[] = {MESSAGE(5, 0, 1), MESSAGE(5, 1, 1), MESSAGE(5, 2, 1),
                                               MESSAGE(5, 3, 1), MESSAGE(2, 5, 1)};
    struct cpl_pattern pre = make_pattern(6, first, N_OF(first));
    struct cpl_pattern post = make_pattern(6, second, N_OF(second));
    struct cpl_order_bounds bound = cpl_order_bound(&pre, &post, 5);
    int64_t order[N_OF(first)];
    assert_int_equal(told_completion(&pre, NULL, &post, 5), 3 + 5 + 4);
    get_order(&pre, &post, order);
    assert_memory_equal(order, ((const int64_t[]){2, 1, 0, 3, 5, 4}), sizeof order);
    assert_int_equal(told_completion(&pre, order, &post, 5), 1 + 5 + 4);
    assert_int_equal(bound.least, 9);
    assert_int_equal(bound.most, 12);
    cpl_pattern_free(&post);
    cpl_pattern_free(&pre);
}

/* Whether rank's sends of a wave, sorted anew by what the receivers send in later waves, are in the
 * plan's order. Edges e .. are the rest of the plan. */
static void check_edge(const struct cpl_plan *plan, int64_t e)
{
    const struct cpl_edge *a = &plan->edges[e], *b = a + 1;
    int64_t left_a = 0, left_b = 0;
    if (a->wave != b->wave || a->from != b->from)
        return;
    for (int64_t k = e; k < plan->n_edges; k++) {
        left_a += plan->edges[k].wave > a->wave && plan->edges[k].from == a->to;
        left_b += plan->edges[k].wave > a->wave && plan->edges[k].from == b->to;
    }
    assert_true(left_a > left_b || (left_a == left_b && a->to < b->to));
}

static void test_plans(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct cpl_pattern pattern = random_pattern(seed, 20);
        struct cpl_plan plan = make_random_plan(&pattern, 1 + (int32_t)(seed % 5), seed);
        for (int64_t e = 0; e + 1 < plan.n_edges; e++)
            check_edge(&plan, e);
        cpl_plan_free(&plan);
        cpl_pattern_free(&pattern);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_key),
        cmocka_unit_test(test_sends),
        cmocka_unit_test(test_other_ranks),
        cmocka_unit_test(test_all_of_four),
        cmocka_unit_test(test_some_of_five),
        cmocka_unit_test(test_table_1),
        cmocka_unit_test(test_second_by_its_sends),
        cmocka_unit_test(test_units),
        cmocka_unit_test(test_plans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
