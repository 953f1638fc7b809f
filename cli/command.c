/* carpool: the command. Picks the subcommand; each has a file of its own. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "cli/command.h"
#include "planner/base/text_distance.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *doc;
} commands[] = {
    {"plan", cpl_command_plan, "plan a communication pattern and compare strategies, without MPI"},
    {"run", cpl_command_run, "start a program with the library preloaded"},
    {"try", cpl_command_try, "run a program without the library and with it, and compare"},
    {"report", cpl_command_report, "show the report of a run, as text or as a page"},
    {"compare", cpl_command_compare, "compare the reports of runs: does it pay?"},
    {"map", cpl_command_map, "place the ranks of the next launch by the report of a run"},
    {"calibrate", cpl_command_calibrate, "measure the machine under mpiexec, for the cost model"},
    {"doctor", cpl_command_doctor, "tell whether all is here for a run, and what to do if not"},
    {"settings", cpl_command_settings, "list all settings with their present values"},
    {"strategies", cpl_command_strategies, "list all strategies"},
};

static void usage(FILE *out)
{
    fprintf(out, "usage: carpool COMMAND [ARGUMENT...]\n\ncommands:\n");
    for (size_t k = 0; k < sizeof commands / sizeof commands[0]; k++)
        fprintf(out, "  %-11s %s\n", commands[k].name, commands[k].doc);
    fprintf(out,
            "\n`carpool COMMAND --help` tells more; `carpool --version` prints the version.\n");
}

static int complain_of_command(const char *name)
{
    size_t nearest = 0;
    if (name[0] == '-') {
        fprintf(stderr,
                "carpool: no option '%s' here; there are --help and --version; options of a "
                "command follow its name\n",
                name);
        return CPL_EXIT_USAGE;
    }
    for (size_t k = 1; k < sizeof commands / sizeof commands[0]; k++)
        if (cpl_text_distance(name, commands[k].name) <
            cpl_text_distance(name, commands[nearest].name))
            nearest = k;
    fprintf(stderr, "carpool: no command '%s'; did you mean %s?\n", name, commands[nearest].name);
    usage(stderr);
    return CPL_EXIT_USAGE;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        usage(stderr);
        return CPL_EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        usage(stdout);
        return 0;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("carpool %s\n", PACKAGE_VERSION);
        return 0;
    }
    for (size_t k = 0; k < sizeof commands / sizeof commands[0]; k++)
        if (strcmp(argv[1], commands[k].name) == 0)
            return commands[k].run(argc - 1, argv + 1);
    return complain_of_command(argv[1]);
}
