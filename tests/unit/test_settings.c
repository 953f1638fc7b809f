/* Tests of settings (shim/base/settings.h): defaults, good and bad values of every type, and what
 * is said about bad ones. */
#include "shim/base/settings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The warnings of one reading. */
struct warnings {
    int n;
    char text[4096]; /* of the last one */
};

static void collect(void *context, const char *text)
{
    struct warnings *warnings = context;
    warnings->n++;
    snprintf(warnings->text, sizeof warnings->text, "%s", text);
}

/* Reads an environment of one variable, or of none when assignment is NULL. */
static struct warnings read_one(const char *assignment, struct cpl_settings *settings)
{
    char *environment[] = {(char *)(uintptr_t)assignment, NULL};
    struct warnings warnings = {0};
    cpl_settings_read(settings, environment, collect, &warnings);
    return warnings;
}

static size_t row_of(const char *variable)
{
    for (size_t i = 0; i < cpl_settings_count(); i++)
        if (strcmp(cpl_settings_info(i).variable, variable) == 0)
            return i;
    fail_msg("no setting %s", variable);
    return 0;
}

/* The value that VARIABLE=VALUE leads to, as text; no warning is allowed. */
static void check_value(const char *variable, const char *value, const char *expected)
{
    struct cpl_settings settings;
    char assignment[2 * CPL_SETTINGS_TEXT], text[CPL_SETTINGS_TEXT];
    snprintf(assignment, sizeof assignment, "%s=%s", variable, value);
    struct warnings warnings = read_one(assignment, &settings);
    if (warnings.n)
        fail_msg("%s", warnings.text);
    cpl_settings_value(&settings, row_of(variable), text, sizeof text);
    assert_string_equal(text, expected);
}

/* VARIABLE=VALUE keeps the default, with one warning that names the variable, the value, what would
 * be accepted and the default. */
static void check_refused(const char *variable, const char *value, const char *remedy)
{
    struct cpl_settings settings, defaults;
    char assignment[256], text[256];
    read_one(NULL, &defaults);
    snprintf(assignment, sizeof assignment, "%s=%s", variable, value);
    struct warnings warnings = read_one(assignment, &settings);
    assert_int_equal(warnings.n, 1);
    assert_memory_equal(&settings, &defaults, sizeof settings);
    snprintf(text, sizeof text, "%s='%s' cannot be used: ", variable, value);
    assert_ptr_equal(strstr(warnings.text, text), warnings.text);
    if (!strstr(warnings.text, remedy))
        fail_msg("\"%s\" does not say \"%s\"", warnings.text, remedy);
    const char *preset = cpl_settings_info(row_of(variable)).preset;
    snprintf(text, sizeof text, "; the default '%s' holds", preset);
    assert_non_null(strstr(warnings.text, text));
    assert_null(strchr(warnings.text, '\n'));
}

static void test_defaults(void **state)
{
    (void)state;
    struct cpl_settings settings, from_text, again;
    char *none[] = {NULL};
    assert_int_equal(read_one(NULL, &settings).n, 0);
    cpl_settings_read(&again, NULL, NULL, NULL);
    assert_memory_equal(&again, &settings, sizeof settings);
    memset(&again, 0x55, sizeof again);
    cpl_settings_read(&again, none, NULL, NULL);
    assert_memory_equal(&again, &settings, sizeof settings);
    assert_int_equal(settings.mode, CPL_MODE_AUTO);
    assert_string_equal(settings.strategy, "auto");
    assert_string_equal(settings.report, "");
    for (size_t i = 0; i < cpl_settings_count(); i++) {
        struct cpl_setting_info info = cpl_settings_info(i);
        char assignment[256];
        snprintf(assignment, sizeof assignment, "%s=%s", info.variable, info.preset);
        assert_int_equal(read_one(assignment, &from_text).n, 0);
        assert_memory_equal(&from_text, &settings, sizeof settings);
    }
}

static void test_table(void **state)
{
    (void)state;
    size_t n_headings = 0;
    for (size_t i = 0; i < cpl_settings_count(); i++) {
        struct cpl_setting_info info = cpl_settings_info(i);
        char accepts[256] = "";
        n_headings += info.heading != NULL;
        assert_ptr_equal(strstr(info.variable, "CARPOOL_"), info.variable);
        assert_true(strlen(info.doc) > 10);
        cpl_settings_accepts(i, accepts, sizeof accepts);
        assert_true(accepts[0] != '\0');
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(cpl_settings_info(k).variable, info.variable);
    }
    assert_string_equal(cpl_settings_info(0).heading, "For users");
    assert_int_equal(n_headings, 2); /* the rows of a group stand together */
}

static void test_choices(void **state)
{
    (void)state;
    static const char *const modes[] = {"off", "profile", "auto", "force"};
    static const char *const levels[] = {"error", "warn", "info"};
    for (size_t k = 0; k < sizeof modes / sizeof *modes; k++)
        check_value("CARPOOL_MODE", modes[k], modes[k]);
    for (size_t k = 0; k < sizeof levels / sizeof *levels; k++)
        check_value("CARPOOL_VERBOSE", levels[k], levels[k]);
    check_value("CARPOOL_CHECK", "yes", "yes");
    check_refused("CARPOOL_MODE", "", "off|profile|auto|force");
    check_refused("CARPOOL_MODE", "Force", "off|profile|auto|force");
    check_refused("CARPOOL_MODE", "off ", "off|profile|auto|force");
    check_refused("CARPOOL_MODE", "3", "off|profile|auto|force");
    check_refused("CARPOOL_CHECK", "1", "no|yes");
    check_refused("CARPOOL_VERBOSE", "loud", "error|warn|info");
}

static void test_choice_numbers(void **state)
{
    (void)state;
    struct cpl_settings settings;
    read_one("CARPOOL_MODE=force", &settings);
    assert_int_equal(settings.mode, CPL_MODE_FORCE);
    read_one("CARPOOL_MODE=off", &settings);
    assert_int_equal(settings.mode, CPL_MODE_OFF);
    read_one("CARPOOL_CHECK=yes", &settings);
    assert_int_equal(settings.check, 1);
}

static void test_strategies(void **state)
{
    (void)state;
    check_value("CARPOOL_STRATEGY", "direct", "direct");
    check_value("CARPOOL_STRATEGY", "vpt:3", "vpt:3");
    check_value("CARPOOL_STRATEGY", "share:1", "share:1");
    check_refused("CARPOOL_STRATEGY", "", "there are direct, ");
    check_refused("CARPOOL_STRATEGY", "magic", "there are direct, ");
    check_refused("CARPOOL_STRATEGY", "vpt", "as in vpt:2");
    check_refused("CARPOOL_STRATEGY", "vpt:99", "from 1 to 24");
}

static void test_counts(void **state)
{
    (void)state;
    check_value("CARPOOL_BUDGET", "1", "1");
    check_value("CARPOOL_BUDGET", "1000000", "1000000");
    check_value("CARPOOL_LEARN", "0", "0");
    check_value("CARPOOL_RANKS_PER_NODE", "0", "0");
    static const char *const wrong[] = {"",    "0",  "-1", "1000001", "99999999999999999999",
                                        "1.5", "1K", "x",  "1 ",      "0x10"};
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++)
        check_refused("CARPOOL_BUDGET", wrong[k], "1 to 1000000");
}

static void test_bytes(void **state)
{
    (void)state;
    check_value("CARPOOL_SIZE_LIMIT", "0", "0");
    check_value("CARPOOL_SIZE_LIMIT", "1000", "1000");
    check_value("CARPOOL_SIZE_LIMIT", "3K", "3072");
    check_value("CARPOOL_SIZE_LIMIT", "3k", "3072");
    check_value("CARPOOL_SIZE_LIMIT", "16M", "16777216");
    check_value("CARPOOL_SIZE_LIMIT", "16777216", "16777216");
    static const char *const wrong[] = {
        "", "16777217", "17M", "1G", "-1", "1T", "1KB", "K", "9223372036854775807G", "1 K"};
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++)
        check_refused("CARPOOL_SIZE_LIMIT", wrong[k], "0 to 16777216 bytes, K, M or G may follow");
}

static void test_texts(void **state)
{
    (void)state;
    check_value("CARPOOL_REPORT", "/some where/a=b.json", "/some where/a=b.json");
    check_value("CARPOOL_REPORT", "", "");
    check_value("CARPOOL_TOPOLOGY", "pack:2 core:4 pu:1", "pack:2 core:4 pu:1");
    check_value("CARPOOL_MACHINE", "cluster.txt", "cluster.txt");
}

/* The longest text that fits is kept whole; one more byte, and the default holds, with a warning
 * that says how long a text may be and is not itself as long as the text. */
static void test_long_texts(void **state)
{
    (void)state;
    struct cpl_settings settings;
    char assignment[CPL_SETTINGS_TEXT + 64] = "CARPOOL_REPORT=", limit[16];
    char *value = assignment + strlen(assignment);
    memset(value, 'x', CPL_SETTINGS_TEXT);
    value[CPL_SETTINGS_TEXT - 1] = '\0';
    assert_int_equal(read_one(assignment, &settings).n, 0);
    assert_string_equal(settings.report, value);
    value[CPL_SETTINGS_TEXT - 1] = 'x';
    value[CPL_SETTINGS_TEXT] = '\0';
    struct warnings warnings = read_one(assignment, &settings);
    assert_int_equal(warnings.n, 1);
    assert_string_equal(settings.report, "");
    assert_ptr_equal(strstr(warnings.text, "CARPOOL_REPORT='xxx"), warnings.text);
    assert_true(strlen(warnings.text) < 512);
    snprintf(limit, sizeof limit, "%d", CPL_SETTINGS_TEXT - 1);
    if (!strstr(warnings.text, limit))
        fail_msg("the warning does not say that %s bytes fit: \"...%s\"", limit,
                 strstr(warnings.text, "' cannot"));
}

static void check_unknown(const char *assignment, const char *expected)
{
    struct cpl_settings settings, defaults;
    read_one(NULL, &defaults);
    struct warnings warnings = read_one(assignment, &settings);
    assert_int_equal(warnings.n, 1);
    assert_string_equal(warnings.text, expected);
    assert_memory_equal(&settings, &defaults, sizeof settings);
}

static void test_unknown_names(void **state)
{
    (void)state;
    check_unknown("CARPOOL_MODES=force", "CARPOOL_MODES is no setting and has no effect; "
                                         "did you mean CARPOOL_MODE?");
    check_unknown("CARPOOL_STARTEGY=vpt:2", "CARPOOL_STARTEGY is no setting and has no effect; "
                                            "did you mean CARPOOL_STRATEGY?");
    check_unknown("CARPOOL_SIZELIMIT=1", "CARPOOL_SIZELIMIT is no setting and has no effect; "
                                         "did you mean CARPOOL_SIZE_LIMIT?");
    check_unknown("CARPOOL_mode=off", "CARPOOL_mode is no setting and has no effect; "
                                      "did you mean CARPOOL_MODE?");
    check_unknown("CARPOL_MODE=off", "CARPOL_MODE has no effect; did you mean CARPOOL_MODE?");
    check_unknown("carpool_learn=2", "carpool_learn has no effect; did you mean CARPOOL_LEARN?");
    check_unknown("CARPOOLMODE=off", "CARPOOLMODE has no effect; did you mean CARPOOL_MODE?");
}

static void test_long_names(void **state)
{
    (void)state;
    struct cpl_settings settings;
    char assignment[1000] = "CARPOOL_";
    memset(assignment + strlen(assignment), 'X', 900);
    strcpy(assignment + 900, "=1");
    struct warnings warnings = read_one(assignment, &settings);
    assert_int_equal(warnings.n, 1);
    assert_non_null(strstr(warnings.text, "is no setting and has no effect"));
}

/* Other programs' variables, and what is no assignment at all, are left alone. */
static void test_other_variables(void **state)
{
    (void)state;
    struct cpl_settings settings;
    assert_int_equal(read_one("PATH=/bin", &settings).n, 0);
    assert_int_equal(read_one("CARP_SETTINGS=off", &settings).n, 0);
    assert_int_equal(read_one("CARPETS=1", &settings).n, 0);
    assert_int_equal(read_one("MY_CARPOOL_MODE=off", &settings).n, 0);
    assert_int_equal(read_one("CARPOOL=1", &settings).n, 0);
    assert_int_equal(read_one("CARPOOL_MODE", &settings).n, 0);
    assert_int_equal(settings.mode, CPL_MODE_AUTO);
}

/* Several variables at once; the wrong ones do not disturb the others. No warnings are wanted. */
static void test_several(void **state)
{
    (void)state;
    struct cpl_settings settings;
    char mode[] = "CARPOOL_MODE=force", learn[] = "CARPOOL_LEARN=none";
    char strategy[] = "CARPOOL_STRATEGY=vpt:2", other[] = "CARPOOL_X=1";
    char *environment[] = {mode, learn, other, strategy, NULL};
    struct warnings warnings = {0};
    cpl_settings_read(&settings, environment, NULL, NULL);
    assert_int_equal(settings.mode, CPL_MODE_FORCE);
    assert_string_equal(settings.strategy, "vpt:2");
    cpl_settings_read(&settings, environment, collect, &warnings);
    assert_int_equal(warnings.n, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),   cmocka_unit_test(test_table),
        cmocka_unit_test(test_choices),    cmocka_unit_test(test_choice_numbers),
        cmocka_unit_test(test_strategies), cmocka_unit_test(test_counts),
        cmocka_unit_test(test_bytes),      cmocka_unit_test(test_texts),
        cmocka_unit_test(test_long_texts), cmocka_unit_test(test_unknown_names),
        cmocka_unit_test(test_long_names), cmocka_unit_test(test_other_variables),
        cmocka_unit_test(test_several),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
