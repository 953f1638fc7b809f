/* carpool settings and carpool strategies: the tables, as text. */
#include "cli/command.h"
#include "planner/strategy.h"
#include "shim/base/settings.h"

#include <stdio.h>
#include <string.h>

extern char **environ;

static void warn(void *context, const char *text)
{
    (void)context;
    fprintf(stderr, "carpool: %s\n", text);
}

/* Whether the subcommand was given no arguments; --help is answered here, anything else is refused.
 */
static int refuse_arguments(int argc, char **argv, const char *doc)
{
    if (argc < 2)
        return 0;
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        printf("usage: carpool %s\n%s\n", argv[0], doc);
        return 1;
    }
    fprintf(stderr, "carpool %s: takes no arguments, not '%s'\n", argv[0], argv[1]);
    return 1 + CPL_EXIT_USAGE;
}

/* Prints text in lines of at most 76 characters after a margin. */
static void print_wrapped(const char *margin, const char *text)
{
    const size_t width = 76;
    while (*text) {
        size_t n = strlen(text);
        if (n > width)
            for (n = width; n > 1 && text[n] != ' ';)
                n--;
        printf("%s%.*s\n", margin, (int)n, text);
        text += n;
        while (*text == ' ')
            text++;
    }
}

int cpl_command_settings(int argc, char **argv)
{
    int refused = refuse_arguments(argc, argv,
                                   "Lists every environment variable that Carpool reads, its "
                                   "present value, its default, and what it accepts.");
    if (refused)
        return refused - 1;
    struct cpl_settings settings;
    cpl_settings_read(&settings, environ, warn, NULL);
    for (size_t i = 0; i < cpl_settings_count(); i++) {
        char value[CPL_SETTINGS_TEXT], accepts[256];
        struct cpl_setting_info info = cpl_settings_info(i);
        cpl_settings_value(&settings, i, value, sizeof value);
        cpl_settings_accepts(i, accepts, sizeof accepts);
        if (info.heading)
            printf("%s%s:\n\n", i ? "\n" : "", info.heading);
        printf("%s=%s\n", info.variable, value);
        printf("    default '%s'; takes %s\n", info.preset, accepts);
        print_wrapped("    ", info.doc);
    }
    return 0;
}

int cpl_command_strategies(int argc, char **argv)
{
    int refused = refuse_arguments(
        argc, argv, "Lists every strategy that CARPOOL_STRATEGY and carpool plan accept.");
    if (refused)
        return refused - 1;
    size_t n;
    const struct cpl_strategy *const *table = cpl_strategy_table(&n);
    for (size_t k = 0; k < n; k++) {
        printf("%s%s\n", table[k]->name, table[k]->parameter ? table[k]->parameter : "");
        print_wrapped("    ", table[k]->doc);
        if (table[k]->examples)
            printf("    for example %s\n", table[k]->examples);
    }
    printf("auto\n");
    print_wrapped("    ",
                  "plans by all of them and takes the plan with the smallest modelled time");
    return 0;
}
