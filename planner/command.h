/* The carpool command's subcommands; each gets its own arguments (argv[0] is its name) and returns
 * the exit status: 0 done, 1 failed (the reason is on stderr), 2 bad usage. */
#ifndef CARPOOL_COMMAND_H
#define CARPOOL_COMMAND_H

#define CPL_EXIT_FAILED 1
#define CPL_EXIT_USAGE  2

int cpl_command_plan(int argc, char **argv);       /* command_plan.c */
int cpl_command_run(int argc, char **argv);        /* command_run.c */
int cpl_command_report(int argc, char **argv);     /* command_report.c */
int cpl_command_calibrate(int argc, char **argv);  /* command_calibrate.c */
int cpl_command_settings(int argc, char **argv);   /* command_list.c */
int cpl_command_strategies(int argc, char **argv); /* command_list.c */

#endif
