/* The carpool command's subcommands; each gets its own arguments (argv[0] is its name) and returns
 * the exit status: 0 done, 1 failed (the reason is on stderr), 2 bad usage. */
#ifndef CARPOOL_COMMAND_H
#define CARPOOL_COMMAND_H

#include <getopt.h>
#include <stddef.h>

#define CPL_EXIT_FAILED 1
#define CPL_EXIT_USAGE  2

int cpl_command_plan(int argc, char **argv);       /* command_plan.c */
int cpl_command_run(int argc, char **argv);        /* command_run.c; the program's status, or 126,
                                                      127 when it cannot be started */
int cpl_command_try(int argc, char **argv);        /* command_try.c */
int cpl_command_report(int argc, char **argv);     /* command_report.c */
int cpl_command_compare(int argc, char **argv);    /* command_compare.c */
int cpl_command_map(int argc, char **argv);        /* command_map.c */
int cpl_command_calibrate(int argc, char **argv);  /* command_calibrate.c */
int cpl_command_doctor(int argc, char **argv);     /* command_doctor.c */
int cpl_command_settings(int argc, char **argv);   /* command_list.c */
int cpl_command_strategies(int argc, char **argv); /* command_list.c */

/* Reports a usage error on stderr, with the command's name (argv[0]): one that getopt_long found
 * (option_text.h), or remaining arguments that are not exactly one FILE. Returns CPL_EXIT_USAGE. */
int cpl_command_wrong_option(int result, char **argv, const struct option *known);
int cpl_command_wrong_file(int argc, char **argv);

/* The option of carpool run that sets a variable: "ranks-per-node" for CARPOOL_RANKS_PER_NODE. */
void cpl_command_run_option(const char *variable, char *option, size_t size);

#endif
