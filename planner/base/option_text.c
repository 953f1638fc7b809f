/* What is wrong with an option (option_text.h). */
#include "planner/base/option_text.h"

#include "planner/base/text_distance.h"

#include <stdio.h>
#include <string.h>

void cpl_option_text(int result, char *const *argv, const struct option *known, char *text,
                     size_t size)
{
    const char *given = argv[optind - 1];
    char name[CPL_DISTANCE_MOST];
    const struct option *nearest = known;
    if (result == ':') {
        snprintf(text, size, "option '%s' needs a value;", given);
        return;
    }
    if (strncmp(given, "--", 2) != 0) {
        snprintf(text, size, "no option '-%c'; options are long ones, as --%s;", optopt,
                 known->name);
        return;
    }
    snprintf(name, sizeof name, "%.*s", (int)strcspn(given + 2, "="), given + 2);
    for (const struct option *option = known; option->name; option++)
        if (cpl_text_distance(name, option->name) < cpl_text_distance(name, nearest->name))
            nearest = option;
    if (strcmp(name, nearest->name) == 0)
        snprintf(text, size, "option '--%s' takes no value;", name);
    else
        snprintf(text, size, "no option '--%s'; did you mean --%s?", name, nearest->name);
}
