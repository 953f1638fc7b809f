/* Tests of cycles of batches (cycle.h). */
#include "shim/plan/cycle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Steps as text: a letter is a signature, '|' a collective; the digit behind a letter is the plan,
 * which is else 0. */
static struct cpl_cycle make(const char *text)
{
    struct cpl_cycle cycle = {.n = 0};
    struct cpl_step *step = calloc(strlen(text) + 1, sizeof *step);
    int n = 0;

    assert_non_null(step);
    for (; *text; text++) {
        if (*text >= '0' && *text <= '9')
            step[n - 1].plan = *text - '0';
        else
            step[n++].signature = *text == '|' ? CPL_STEP_COLLECTIVE : *text - 'a';
    }
    cpl_cycle_set(&cycle, step, n);
    return cycle;
}

/* What the cycle makes of steps: the plans of the batches, '.' for those that it does not know. */
static void expect(struct cpl_cycle *cycle, const char *steps, const char *plans)
{
    for (; *steps; steps++) {
        if (*steps == '|') {
            cpl_cycle_collective(cycle);
            continue;
        }
        int at = cpl_cycle_find(cycle, *steps - 'a');
        assert_int_equal(at < 0 ? '.' : '0' + cycle->step[at].plan, *plans++);
        if (at >= 0)
            cpl_cycle_take(cycle, at);
    }
}

static void test_period(void **state)
{
    static const struct {
        const char *steps;
        int n;
    } cases[] = {{"a|a|a|a|", 2},
                 {"aaaa", 1},
                 {"abab", 2},
                 {"a1a2a2a1|a1a2a2a1|", 5},
                 {"zyxa|ba|ba|ba|", 3},
                 {"a|b|a|a|b|a|a|b|a|", 6}, /* ends like a shorter one */
                 {"abcd", 4},
                 {"|", 1},
                 {"", 0}};
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        struct cpl_cycle cycle = make(cases[k].steps);
        assert_int_equal(cycle.n, cases[k].n);
        cpl_cycle_end(&cycle);
    }
}

/* The same messages on two levels: told apart by their place. */
static void test_same_signature(void **state)
{
    struct cpl_cycle cycle = make("a1a2b3a2a1|a1a2b3a2a1|a1a2b3a2a1|");
    (void)state;
    expect(&cycle, "aabaa|aabaa|", "1232112321");
    expect(&cycle, "aab|", "123");        /* a shorter cycle */
    expect(&cycle, "aabaa|", "12321");    /* the collective has put it right */
    expect(&cycle, "aacbaa||", "12.321"); /* an unknown batch, two collectives */
    expect(&cycle, "aabaa|", "12321");
    cpl_cycle_end(&cycle);
    expect(&cycle, "ab|a", "...");
}

static void test_without_collectives(void **state)
{
    struct cpl_cycle cycle = make("a1b2a3a1b2a3");
    (void)state;
    expect(&cycle, "aba|ab|aaba", "123123123");
    cpl_cycle_end(&cycle);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_period),
        cmocka_unit_test(test_same_signature),
        cmocka_unit_test(test_without_collectives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
