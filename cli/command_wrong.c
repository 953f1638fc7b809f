/* Messages of subcommands about wrong arguments (command.h). */
#include "cli/command.h"
#include "planner/base/option_text.h"

#include <stdio.h>

int cpl_command_wrong_option(int result, char **argv, const struct option *known)
{
    char text[160];
    cpl_option_text(result, argv, known, text, sizeof text);
    fprintf(stderr, "carpool %s: %s `carpool %s --help` tells more\n", argv[0], text, argv[0]);
    return CPL_EXIT_USAGE;
}

int cpl_command_wrong_file(int argc, char **argv)
{
    if (optind < argc)
        fprintf(stderr,
                "carpool %s: one FILE at a time, please; '%s' is too much; `carpool %s --help` "
                "tells more\n",
                argv[0], argv[argc - 1], argv[0]);
    else
        fprintf(stderr, "carpool %s: which FILE? `carpool %s --help` tells more\n", argv[0],
                argv[0]);
    return CPL_EXIT_USAGE;
}
