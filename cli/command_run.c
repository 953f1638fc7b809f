/* carpool run: starts a program with the library preloaded. Only sets the environment, then becomes
 * the program. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "cli/command.h"
#include "cli/host/beside.h"
#include "cli/host/program.h"
#include "planner/base/text_distance.h"
#include "shim/base/settings.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PROFILE_DIRECTORY "carpool-profile" /* where --profile writes when nothing else is said */

/* Exit statuses as env(1) and nohup(1) have them. */
#define EXIT_CANNOT_START 126
#define EXIT_NOT_FOUND    127

extern char **environ;

static void usage(FILE *out)
{
    fputs(
        "usage: mpiexec -n RANKS carpool run [OPTION...] [--] PROGRAM [ARGUMENT...]\n\n"
        "Starts PROGRAM with libcarpool.so preloaded.\n\n"
        "  --profile[=DIR]     change nothing, only watch; the report and the patterns go to DIR\n"
        "                      (default " PROFILE_DIRECTORY ")\n"
        "  --yield             preload libyield.so, too: ranks that wait give up the processor,\n"
        "                      for runs with more ranks than cores\n",
        out);
    for (size_t i = 0; i < cpl_settings_count(); i++) {
        char option[64], accepts[256];
        struct cpl_setting_info info = cpl_settings_info(i);
        cpl_command_run_option(info.variable, option, sizeof option);
        cpl_settings_accepts(i, accepts, sizeof accepts);
        if (info.heading)
            fprintf(out, "\n%s:\n\n", info.heading);
        fprintf(out, "  --%s=VALUE%*s sets %s: %s\n", option,
                (int)(strlen(option) < 15 ? 15 - strlen(option) : 0), "", info.variable, accepts);
    }
    fputs("\n`carpool settings` says what they mean. The exit status is the program's; 2: bad "
          "usage,\n126: the program cannot be started, 127: there is no such program, 1: the "
          "library\ncannot be found.\n",
          out);
}

void cpl_command_run_option(const char *variable, char *option, size_t size)
{
    size_t used = 0;
    for (const char *at = variable + strlen("CARPOOL_"); *at && used + 1 < size; at++)
        option[used++] = *at == '_' ? '-' : (char)tolower((unsigned char)*at);
    option[used] = '\0';
}

/* Whether this rank prints errors that all ranks find: the first rank on each node, by hydra's
 * variable or Slurm's, which is also there where hydra was started by Slurm. */
static bool must_tell(void)
{
    const char *local_rank = getenv("MPI_LOCALRANKID");
    if (!local_rank)
        local_rank = getenv("SLURM_LOCALID");
    return !local_rank || strcmp(local_rank, "0") == 0;
}

static void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void complain(const char *format, ...)
{
    char line[4 * PATH_MAX] = "carpool run: ";
    size_t used = strlen(line);
    va_list args;
    if (!must_tell()) { /* the launcher ends all ranks when one has left, also the one that tells */
        nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
        return;
    }
    va_start(args, format);
    vsnprintf(line + used, sizeof line - used, format, args);
    va_end(args);
    fprintf(stderr, "%s\n", line);
}

static bool set(const char *variable, const char *value)
{
    if (setenv(variable, value, 1) == 0)
        return true;
    complain("cannot set %s: %s", variable, strerror(errno));
    return false;
}

/* "--profile" or "--profile=DIR". */
static bool set_profile(const char *option)
{
    const char *equals = strchr(option, '=');
    const char *report = getenv("CARPOOL_REPORT"), *output = getenv("CARPOOL_OUTPUT");
    if (equals && !equals[1]) {
        complain("--profile= names no directory");
        return false;
    }
    if (!set("CARPOOL_MODE", "profile"))
        return false;
    if (equals)
        return set("CARPOOL_OUTPUT", equals + 1);
    bool named = (report && *report) || (output && *output);
    return named || set("CARPOOL_OUTPUT", PROFILE_DIRECTORY);
}

/* Sets the variable of an option "--ranks-per-node=8". */
static bool set_option(const char *option)
{
    char variable[128] = "CARPOOL_", nearest[64];
    size_t used = strlen(variable), distance, of_profile;
    const char *at = option + 2;
    for (; *at && *at != '=' && used + 1 < sizeof variable; at++)
        variable[used++] = *at == '-' ? '_' : (char)toupper((unsigned char)*at);
    variable[used] = '\0';
    for (size_t i = 0; i < cpl_settings_count(); i++) {
        if (strcmp(cpl_settings_info(i).variable, variable) != 0)
            continue;
        if (*at == '=')
            return set(variable, at + 1);
        complain("option '%s' needs a value, as in --mode=force", option);
        return false;
    }
    cpl_command_run_option(cpl_settings_nearest(variable, &distance), nearest, sizeof nearest);
    of_profile = cpl_text_distance(variable, "CARPOOL_PROFILE");
    if (of_profile < distance)
        snprintf(nearest, sizeof nearest, "profile");
    complain("no option '%.*s'; did you mean --%s? `carpool run --help` lists them",
             (int)(at - option), option, nearest);
    return false;
}

static void refuse_setting(void *context, const char *text)
{
    bool *refused = context;
    /* an unknown variable is only worth a warning, which the library will print */
    if (!strstr(text, "cannot be used"))
        return;
    const char *consequence = strstr(text, "; the default '");
    complain("%.*s", consequence ? (int)(consequence - text) : (int)strlen(text), text);
    *refused = true;
}

/* Whether the library can use the options' values. Better an error now than a warning of rank 0
 * later. */
static bool settings_are_usable(void)
{
    struct cpl_settings settings;
    bool refused = false;
    cpl_settings_read(&settings, environ, refuse_setting, &refused);
    return !refused;
}

static bool add_preload(const char *library)
{
    const char *before = getenv("LD_PRELOAD");
    char both[2 * PATH_MAX];
    if (!cpl_beside_can_preload(library)) {
        complain("%s cannot be preloaded: its path has a space or a colon", library);
        return false;
    }
    if (!before || !*before)
        return set("LD_PRELOAD", library);
    if (snprintf(both, sizeof both, "%s:%s", library, before) >= (int)sizeof both) {
        complain("LD_PRELOAD is too long already");
        return false;
    }
    return set("LD_PRELOAD", both);
}

/* Preloads the libraries: yields says whether libyield.so is one. */
static bool preload(bool yields)
{
    char path[PATH_MAX];
    if (yields && !cpl_beside_yield(path)) {
        complain("cannot read %s; install all of Carpool, or leave --yield out", path);
        return false;
    }
    if (yields && !add_preload(path))
        return false;
    if (!cpl_beside_library(path)) {
        complain("cannot read %s; install the library, or start this command from its build", path);
        return false;
    }
    return add_preload(path);
}

static int start(char **argv, bool yields)
{
    char path[PATH_MAX], why[2 * PATH_MAX];
    if (!cpl_program_find(argv[0], path)) {
        int code = errno;
        complain("cannot start %s: %s", argv[0],
                 code == ENOENT && !strchr(argv[0], '/') ? "it is not in PATH; a program in the "
                                                           "present directory is called ./NAME"
                                                         : strerror(code));
        return code == ENOENT || code == ENOTDIR ? EXIT_NOT_FOUND : EXIT_CANNOT_START;
    }
    if (!cpl_program_is_fit(argv[0], path, true, why, sizeof why)) {
        complain("%s", why);
        return EXIT_CANNOT_START;
    }
    /* the library warns, of a program that it cannot serve, only who has asked for it */
    if (!preload(yields) || !set("_CARPOOL_RUN", "1"))
        return CPL_EXIT_FAILED;
    execvp(argv[0], argv);
    complain("cannot start %s: %s", argv[0], strerror(errno));
    return EXIT_CANNOT_START;
}

int cpl_command_run(int argc, char **argv)
{
    int at = 1;
    bool yields = false;
    for (; at < argc && argv[at][0] == '-'; at++) {
        if (strcmp(argv[at], "--") == 0) {
            at++;
            break;
        }
        if (strcmp(argv[at], "--help") == 0 || strcmp(argv[at], "-h") == 0) {
            usage(stdout);
            return 0;
        }
        if (strncmp(argv[at], "--", 2) != 0) {
            complain("no option '%s'; options are long ones, as --mode=force", argv[at]);
            return CPL_EXIT_USAGE;
        }
        if (strcmp(argv[at], "--yield") == 0) {
            yields = true;
            continue;
        }
        bool profile =
            strcmp(argv[at], "--profile") == 0 || strncmp(argv[at], "--profile=", 10) == 0;
        if (!(profile ? set_profile(argv[at]) : set_option(argv[at])))
            return CPL_EXIT_USAGE;
    }
    if (!settings_are_usable())
        return CPL_EXIT_USAGE;
    if (at >= argc) {
        complain("which PROGRAM?");
        if (must_tell())
            usage(stderr);
        return CPL_EXIT_USAGE;
    }
    return start(argv + at, yields);
}
