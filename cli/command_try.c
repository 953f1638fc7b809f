/* carpool try: runs programs without the library and with it, in turns, and tells what became of
 * them (try.h). */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "cli/command.h"
#include "cli/host/beside.h"
#include "cli/host/program.h"
#include "cli/report_read.h"
#include "cli/try.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wordexp.h>

#define LAUNCHER   "mpiexec.hydra"
#define DIRECTORY  "carpool-try"
#define MOST_RANKS 1000000

static const char *const mode_names[] = {"off", "auto", "force", NULL};

static void usage(FILE *out)
{
    fputs(
        "usage: carpool try -n RANKS [OPTION...] [--] PROGRAM [ARGUMENT...]\n"
        "       carpool try --table=FILE [OPTION...]\n\n"
        "Runs PROGRAM under mpiexec without Carpool, then with it in several modes, in turns;\n"
        "compares times, exit codes, what the runs print and the text files that they write into\n"
        "the present directory, and tells which exchanges were carried, and why others were left\n"
        "to MPI.\n\n"
        "  --ranks=N           ranks (-n)\n"
        "  --modes=LIST        of off, auto, force (-m; default off,auto,force)\n"
        "  --repeat=K          runs of each kind (default 3)\n"
        "  --table=FILE        try several programs: a line each with a name, ranks, and the\n"
        "                      command line; # begins a comment\n"
        "  --output=DIR        keeps what all runs printed, their reports, try.json and a page,\n"
        "                      index.html (-o; default " DIRECTORY ")\n"
        "  --json=FILE         writes the result there, too\n"
        "  --launcher=COMMAND  in place of " LAUNCHER "; gets -n RANKS and the program\n"
        "  --time-limit=S      ends a run after so many seconds (default 600)\n"
        "  --yield             preload libyield.so on both sides, so that ranks that wait give up\n"
        "                      the processor; done where there are more ranks than cores\n"
        "  --no-yield          never do\n\n"
        "Numbers beside units of time and rates, behind words such as time, rate and pid, or\n"
        "under these in tables (|), clocks, dates and the host's name are not compared, nor what\n"
        "differs between runs without Carpool; lines may come in any order. The exit status is 0\n"
        "when all outputs are the same, 1 when one differs or a run failed, 2 for bad usage.\n",
        out);
}

/* --- which programs */

/* Whether a program can be tried; false after a message. */
static bool is_ready(struct cpl_try_program *p, const struct cpl_try_options *o)
{
    char path[PATH_MAX], why[2 * PATH_MAX];
    if (!cpl_program_find(p->argv[0], path)) {
        cpl_try_complain(
            0, "cannot start %s: %s", p->argv[0],
            errno == ENOENT && !strchr(p->argv[0], '/')
                ? "it is not in PATH; a program in the present directory is called ./NAME"
                : strerror(errno));
        return false;
    }
    if (!cpl_program_is_fit(p->argv[0], path, false, why, sizeof why)) {
        cpl_try_complain(0, "%s", why);
        return false;
    }
    bool crowded = !o->launcher && p->ranks > sysconf(_SC_NPROCESSORS_ONLN);
    p->yields = o->yields == 1 || (o->yields < 0 && crowded);
    if (p->yields && !cpl_beside_yield(path)) {
        p->yields = false;
        if (o->yields < 0)
            return true;
        cpl_try_complain(0, "cannot read %s; install all of Carpool, or leave --yield out", path);
        return false;
    }
    return true;
}

static bool add_program(json_t *programs, const struct cpl_try_options *o,
                        struct cpl_try_program *p, const wordexp_t *launcher)
{
    snprintf(p->directory, sizeof p->directory, "%s/%s", o->directory, p->name);
    for (char *at = p->directory + strlen(o->directory) + 1; *at; at++)
        *at = *at == '/' ? '-' : *at;
    json_t *program = is_ready(p, o) ? cpl_try_program(o, p, launcher) : NULL;
    return program && json_array_append_new(programs, program) == 0;
}

/* One line of the table: name, ranks, command line. */
static bool add_line(json_t *programs, const struct cpl_try_options *o, const wordexp_t *launcher,
                     char *line, int number)
{
    struct cpl_try_program p = {.ranks = 0};
    wordexp_t words;
    int command = 0;
    char end;
    if (sscanf(line, "%63s %ld %n", p.name, &p.ranks, &command) < 2 || command == 0 ||
        !line[command] || p.ranks < 1 || p.ranks > MOST_RANKS) {
        cpl_try_complain(0, "%s:%d: a line has a name, a number of ranks and a command line",
                         o->table, number);
        return false;
    }
    end = line[strlen(line) - 1];
    if (end == '\n')
        line[strlen(line) - 1] = '\0';
    if (wordexp(line + command, &words, WRDE_NOCMD) != 0 || words.we_wordc == 0) {
        cpl_try_complain(0, "%s:%d: the command line is none that a shell would take", o->table,
                         number);
        return false;
    }
    p.argv = words.we_wordv;
    bool done = add_program(programs, o, &p, launcher);
    wordfree(&words);
    return done;
}

/* Tries all programs of the table, also when one cannot be tried. */
static bool try_table(json_t *programs, const struct cpl_try_options *o, const wordexp_t *launcher)
{
    FILE *in = fopen(o->table, "r");
    char *line = NULL;
    size_t size = 0;
    bool done = in != NULL;
    if (!in)
        cpl_try_complain(0, "%s: %s", o->table, strerror(errno));
    for (int number = 1; in && getline(&line, &size, in) >= 0; number++) {
        const char *at = line + strspn(line, " \t\n");
        if (*at && *at != '#')
            done = add_line(programs, o, launcher, line, number) && done;
    }
    free(line);
    if (in)
        fclose(in);
    return done;
}

/* --- the result */

static bool write_files(const struct cpl_try_options *o, const json_t *result)
{
    char path[600];
    snprintf(path, sizeof path, "%s/try.json", o->directory);
    const char *const files[] = {path, o->json};
    for (size_t k = 0; k < 2; k++)
        if (files[k] && json_dump_file(result, files[k], JSON_INDENT(1))) {
            cpl_try_complain(0, "%s: cannot be written: %s", files[k], strerror(errno));
            return false;
        }
    snprintf(path, sizeof path, "%s/index.html", o->directory);
    FILE *page = fopen(path, "w");
    if (page)
        cpl_try_html(result, page);
    bool written = page && !fflush(page) && !ferror(page);
    if (page && fclose(page) != 0)
        written = false;
    if (!written)
        cpl_try_complain(0, "%s: cannot be written: %s", path, strerror(errno));
    return written;
}

static int try_all(const struct cpl_try_options *o, char **argv, const wordexp_t *launcher)
{
    json_t *programs = json_array();
    json_t *result = json_pack("{s:s s:o}", "version", PACKAGE_VERSION, "programs", programs);
    bool done;
    if (o->table) {
        done = try_table(programs, o, launcher);
    } else {
        struct cpl_try_program p = {.ranks = o->ranks, .argv = argv};
        const char *slash = strrchr(argv[0], '/');
        snprintf(p.name, sizeof p.name, "%s", slash ? slash + 1 : argv[0]);
        done = add_program(programs, o, &p, launcher);
    }
    if (json_array_size(programs) > 0) {
        done = write_files(o, result) && done;
        cpl_try_print(result);
        printf("\n%s/index.html has this as a page; %s/NAME what all runs printed\n", o->directory,
               o->directory);
    }
    bool same = cpl_try_is_same(result);
    json_decref(result);
    return done && same && !fflush(stdout) ? 0 : CPL_EXIT_FAILED;
}

/* --- options */

static bool read_number(const char *text, const char *what, long most, long *number)
{
    char *end;
    errno = 0;
    long n = strtol(text, &end, 10);
    if (errno == 0 && end != text && !*end && n >= 1 && n <= most) {
        *number = n;
        return true;
    }
    cpl_try_complain(0, "%s takes a number from 1 to %ld, not '%s'", what, most, text);
    return false;
}

static bool read_modes(struct cpl_try_options *o, const char *text)
{
    o->n_runs = 1;
    while (*text) {
        size_t n = strcspn(text, ",");
        const char *const *name = mode_names;
        while (*name && (strlen(*name) != n || strncmp(*name, text, n) != 0))
            name++;
        if (!*name || o->n_runs == 1 + CPL_TRY_MOST_MODES) {
            cpl_try_complain(
                0, "--modes takes off, auto and force, each once, with commas, not '%s'", text);
            return false;
        }
        o->run[o->n_runs++] = *name;
        text += n + (text[n] == ',');
    }
    if (o->n_runs == 1)
        cpl_try_complain(0, "--modes names no mode; there are off, auto and force");
    return o->n_runs > 1;
}

static bool set_option(struct cpl_try_options *o, int option)
{
    switch (option) {
    case 'n':
        return read_number(optarg, "-n", MOST_RANKS, &o->ranks);
    case 'm':
        return read_modes(o, optarg);
    case 'k':
        return read_number(optarg, "--repeat", CPL_TRY_MOST_REPEAT, &o->repeat);
    case 's':
        return read_number(optarg, "--time-limit", 1000000, &o->limit);
    case 't':
        o->table = optarg;
        return true;
    case 'o':
        o->directory = optarg;
        return true;
    case 'j':
        o->json = optarg;
        return true;
    case 'l':
        o->launcher = optarg;
        return true;
    default:
        o->yields = option == 'y';
        return true;
    }
}

/* Whether the launcher, the library and the directory are there; false after a message. */
static bool prepare(const struct cpl_try_options *o, wordexp_t *launcher)
{
    char path[PATH_MAX];
    const char *preload = getenv("LD_PRELOAD");
    if (wordexp(o->launcher ? o->launcher : LAUNCHER, launcher, WRDE_NOCMD) != 0 ||
        launcher->we_wordc == 0) {
        cpl_try_complain(0, "--launcher takes a command line, as in --launcher='srun -N 2'");
        return false;
    }
    if (!cpl_program_find(launcher->we_wordv[0], path)) {
        cpl_try_complain(
            0,
            "no launcher: %s: %s; install MPICH's (Debian: mpich), or name another one by "
            "--launcher",
            launcher->we_wordv[0], errno == ENOENT ? "there is none" : strerror(errno));
        return false;
    }
    if (!cpl_beside_library(path)) {
        cpl_try_complain(
            0, "cannot read %s; install the library, or start this command from its build", path);
        return false;
    }
    if (preload && strstr(preload, "libcarpool")) {
        cpl_try_complain(0,
                         "LD_PRELOAD has Carpool already, so no run would be without it; unset it");
        return false;
    }
    if (mkdir(o->directory, 0777) == 0 || errno == EEXIST)
        return true;
    cpl_try_complain(0, "cannot make the directory %s: %s; name another one by --output",
                     o->directory, strerror(errno));
    return false;
}

int cpl_command_try(int argc, char **argv)
{
    static const struct option known[] = {
        {"ranks", required_argument, NULL, 'n'},    {"modes", required_argument, NULL, 'm'},
        {"repeat", required_argument, NULL, 'k'},   {"table", required_argument, NULL, 't'},
        {"output", required_argument, NULL, 'o'},   {"json", required_argument, NULL, 'j'},
        {"launcher", required_argument, NULL, 'l'}, {"time-limit", required_argument, NULL, 's'},
        {"yield", no_argument, NULL, 'y'},          {"no-yield", no_argument, NULL, 'Y'},
        {"help", no_argument, NULL, 'h'},           {NULL, 0, NULL, 0}};
    struct cpl_try_options o = {.directory = DIRECTORY,
                                .repeat = 3,
                                .limit = 600,
                                .yields = -1,
                                .n_runs = 1 + CPL_TRY_MOST_MODES,
                                .run = {"plain", "off", "auto", "force"}};
    wordexp_t launcher;
    int option;
    opterr = 0;
    while ((option = getopt_long(argc, argv, "+:n:m:o:h", known, NULL)) != -1) {
        if (option == 'h') {
            usage(stdout);
            return 0;
        }
        if (option == '?' || option == ':')
            return cpl_command_wrong_option(option, argv, known);
        if (!set_option(&o, option))
            return CPL_EXIT_USAGE;
    }
    if (o.table ? optind < argc : optind == argc)
        return cpl_try_complain(CPL_EXIT_USAGE, "%s; `carpool try --help` tells more",
                                o.table ? "a PROGRAM, or a table of them by --table"
                                        : "which PROGRAM?");
    if (!o.table && o.ranks == 0)
        return cpl_try_complain(CPL_EXIT_USAGE, "how many ranks? as in carpool try -n 16 ./app");
    if (!prepare(&o, &launcher))
        return CPL_EXIT_FAILED;
    int status = try_all(&o, argv + optind, &launcher);
    wordfree(&launcher);
    return status;
}
