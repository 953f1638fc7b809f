/* carpool try: runs programs without the library and with it, in turns, and tells what became of
 * them (try.h). */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "cli/beside.h"
#include "cli/command.h"
#include "cli/command_program.h"
#include "cli/report_read.h"
#include "cli/try.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wordexp.h>

#define LAUNCHER    "mpiexec.hydra"
#define DIRECTORY   "carpool-try"
#define MOST_RANKS  1000000
#define MOST_REPEAT 1000
#define MOST_MODES  3
#define PLAIN       0 /* the run without the library; the others are the modes */

static const char *const mode_names[] = {"off", "auto", "force", NULL};

struct options {
    const char *launcher; /* NULL: LAUNCHER */
    const char *directory, *json, *table;
    long ranks, repeat, limit;
    int yields; /* 1, 0, or -1: as the cores ask for */
    int n_runs; /* the plain one and the modes */
    const char *run[1 + MOST_MODES];
};

/* A program that is tried. */
struct program {
    char name[64], directory[512];
    long ranks;
    char *const *argv;
    bool yields;
};

/* What the runs of one kind have given. */
struct found {
    int n;
    double seconds[MOST_REPEAT + 1];
    int code[MOST_REPEAT + 1];
};

static void usage(FILE *out)
{
    fputs(
        "usage: carpool try -n RANKS [OPTION...] [--] PROGRAM [ARGUMENT...]\n"
        "       carpool try --table=FILE [OPTION...]\n\n"
        "Runs PROGRAM under mpiexec without Carpool, then with it in several modes, in turns;\n"
        "compares times, exit codes and what the runs print, and tells which exchanges were\n"
        "carried, and why others were left to MPI.\n\n"
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
        "Numbers beside units of time and rates, or behind words such as time, rate and pid,\n"
        "clocks, dates and the host's name are not compared, nor what differs between runs\n"
        "without Carpool; lines may come in any order. The exit status is 0 when all outputs are\n"
        "the same, 1 when one differs or a run failed, 2 for bad usage.\n",
        out);
}

static int complain(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
static int complain(int status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("carpool try: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    return status;
}

/* --- one run */

static void file_of(const struct program *p, const char *run, int number, const char *suffix,
                    char *path, size_t size)
{
    snprintf(path, size, "%s/%s-%d.%s", p->directory, run, number + 1, suffix);
}

/* The words of a launch: launcher, ranks, what starts the program with the library or without. */
struct words {
    size_t n;
    const char *word[1024];
    char ranks[24], mode[32], report[700], preload[PATH_MAX + 16], self[PATH_MAX];
};

static bool add_word(struct words *w, const char *word)
{
    if (w->n + 1 >= sizeof w->word / sizeof *w->word)
        return false;
    w->word[w->n++] = word;
    w->word[w->n] = NULL;
    return true;
}

static bool fill_words(struct words *w, const struct program *p, const wordexp_t *launcher,
                       const char *run, int number)
{
    char yield[PATH_MAX];
    bool done = true, plain = strcmp(run, "plain") == 0;
    w->n = 0;
    for (size_t k = 0; k < launcher->we_wordc; k++)
        done = done && add_word(w, launcher->we_wordv[k]);
    snprintf(w->ranks, sizeof w->ranks, "%ld", p->ranks);
    done = done && add_word(w, "-n") && add_word(w, w->ranks);
    if (plain && p->yields && cpl_beside_yield(yield)) {
        snprintf(w->preload, sizeof w->preload, "LD_PRELOAD=%s", yield);
        done = done && add_word(w, "env") && add_word(w, w->preload);
    } else if (!plain) {
        snprintf(w->mode, sizeof w->mode, "--mode=%s", run);
        memcpy(w->report, "--report=", 10);
        file_of(p, run, number, "json", w->report + 9, sizeof w->report - 9);
        done = done && cpl_beside_self(w->self) && add_word(w, w->self) && add_word(w, "run");
        done = done && (!p->yields || add_word(w, "--yield"));
        done = done && add_word(w, w->mode) && add_word(w, w->report) && add_word(w, "--");
    }
    for (char *const *word = p->argv; *word; word++)
        done = done && add_word(w, *word);
    return done;
}

static bool run_once(const struct options *o, const struct program *p, const wordexp_t *launcher,
                     const char *run, struct found *found)
{
    static struct words words;
    char out[640], err[640], report[640];
    file_of(p, run, found->n, "out", out, sizeof out);
    file_of(p, run, found->n, "err", err, sizeof err);
    file_of(p, run, found->n, "json", report, sizeof report);
    remove(report); /* of an earlier trial */
    if (!fill_words(&words, p, launcher, run, found->n)) {
        complain(0, "the command line of %s is too long", p->name);
        return false;
    }
    struct cpl_launch launch = {
        .argv = (char *const *)words.word, .out = out, .err = err, .limit = (double)o->limit};
    if (!cpl_try_launch(&launch)) {
        complain(0, "cannot start %s: %s", words.word[0], strerror(errno));
        return false;
    }
    found->seconds[found->n] = launch.seconds;
    found->code[found->n++] = launch.code;
    return true;
}

/* --- the runs of a program */

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_of(struct found *f)
{
    qsort(f->seconds, (size_t)f->n, sizeof *f->seconds, compare_doubles);
    int middle = f->n / 2;
    return f->n % 2 ? f->seconds[middle] : (f->seconds[middle - 1] + f->seconds[middle]) / 2;
}

/* The outputs of the runs of one kind; false after a message. */
static bool read_outputs(const struct program *p, const char *run, int n,
                         struct cpl_output *outputs)
{
    char path[640];
    for (int k = 0; k < n; k++) {
        file_of(p, run, k, "out", path, sizeof path);
        if (cpl_output_read(path, &outputs[k]))
            continue;
        complain(0, "cannot read %s: %s", path, strerror(errno));
        return false;
    }
    return true;
}

static void tell_difference(json_t *o, const struct cpl_difference *d)
{
    json_object_set_new(o, "output", json_string("differs"));
    json_object_set_new(o, "differing", json_integer((json_int_t)d->n));
    json_object_set_new(o, "difference",
                        json_pack("{s:s s:s}", "plain", d->plain[0] ? d->plain : "(no such line)",
                                  "found", d->found[0] ? d->found : "(no such line)"));
}

/* Compares the outputs of a mode's runs with the plain ones. */
static bool compare_outputs(json_t *program, json_t *o, const struct cpl_output *plain, int n_plain,
                            const struct cpl_output *outputs, int n)
{
    struct cpl_difference d;
    for (int k = 0; k < n; k++) {
        if (!cpl_output_compare(plain, (size_t)n_plain, &outputs[k], &d)) {
            complain(0, "no memory to compare outputs");
            return false;
        }
        if (d.n > 0 && !json_object_get(o, "difference"))
            tell_difference(o, &d);
    }
    json_object_set_new(program, "lines", json_integer((json_int_t)d.n_lines));
    json_object_set_new(program, "own_lines", json_integer((json_int_t)d.n_own));
    return true;
}

/* Whether a run failed: a time limit, or an exit code that plain runs have not. */
static void tell_codes(json_t *o, const struct program *p, const struct found *plain,
                       const struct found *found, bool is_plain, long limit)
{
    char text[800], err[640];
    json_t *codes = json_array();
    for (int k = 0; k < found->n; k++) {
        int code = found->code[k];
        bool wrong = code == CPL_TRY_TIMED_OUT || (is_plain ? code != 0 : code != plain->code[0]);
        json_array_append_new(codes, json_integer(code));
        if (!wrong || json_object_get(o, "failure"))
            continue;
        file_of(p, cpl_report_text(o, "run"), k, "err", err, sizeof err);
        if (code == CPL_TRY_TIMED_OUT)
            snprintf(text, sizeof text, "run %d was ended after %ld s; see %s", k + 1, limit, err);
        else
            snprintf(text, sizeof text, "run %d ended with code %d; see %s", k + 1, code, err);
        json_object_set_new(o, "failure", json_string(text));
    }
    json_object_set_new(o, "codes", codes);
}

static json_t *times_of(const struct found *f)
{
    json_t *list = json_array();
    for (int k = 0; k < f->n; k++)
        json_array_append_new(list, json_real(f->seconds[k]));
    return list;
}

/* The object of the runs of one kind; their times are sorted here. */
static json_t *tell_run(const struct options *o, const struct program *p, int r,
                        struct found *found)
{
    const char *run = o->run[r];
    json_t *one = json_pack("{s:s s:s}", "run", run, "output", r == PLAIN ? "" : "same");
    char path[640];
    tell_codes(one, p, &found[PLAIN], &found[r], r == PLAIN, o->limit);
    json_object_set_new(one, "seconds", times_of(&found[r]));
    double median = median_of(&found[r]);
    json_object_set_new(one, "median_s", json_real(median));
    json_object_set_new(one, "least_s", json_real(found[r].seconds[0]));
    json_object_set_new(one, "most_s", json_real(found[r].seconds[found[r].n - 1]));
    if (r == PLAIN)
        return one;
    if (median > 0)
        json_object_set_new(one, "speedup", json_real(median_of(&found[PLAIN]) / median));
    file_of(p, run, found[r].n - 1, "json", path, sizeof path);
    json_t *report = json_load_file(path, 0, NULL);
    if (report)
        cpl_try_add_report(one, report);
    else if (!json_object_get(one, "failure"))
        json_object_set_new(one, "failure",
                            json_string("there is no report: the program did not call "
                                        "MPI_Finalize, or not with Carpool"));
    json_decref(report);
    return one;
}

static bool tell_runs(const struct options *o, const struct program *p, struct found *found,
                      json_t *program)
{
    struct cpl_output *plain = calloc(MOST_REPEAT + 1, sizeof *plain),
                      *outputs = calloc(MOST_REPEAT + 1, sizeof *outputs);
    json_t *runs = json_array();
    bool done = plain && outputs && read_outputs(p, "plain", found[PLAIN].n, plain);
    json_object_set_new(program, "runs", runs);
    for (int r = 0; r < o->n_runs && done; r++) {
        json_t *one = tell_run(o, p, r, found);
        json_array_append_new(runs, one);
        if (r == PLAIN)
            continue;
        done = read_outputs(p, o->run[r], found[r].n, outputs) &&
               compare_outputs(program, one, plain, found[PLAIN].n, outputs, found[r].n);
        for (int k = 0; k < found[r].n; k++)
            cpl_output_free(&outputs[k]);
    }
    for (int k = 0; plain && k < found[PLAIN].n; k++)
        cpl_output_free(&plain[k]);
    free(plain);
    free(outputs);
    return done;
}

static json_t *describe(const struct options *o, const struct program *p)
{
    char command[2000] = "", note[300];
    size_t used = 0;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    for (char *const *word = p->argv; *word && used < sizeof command; word++)
        used += (size_t)snprintf(command + used, sizeof command - used, "%s%s",
                                 word == p->argv ? "" : " ", *word);
    json_t *program = json_pack(
        "{s:s s:I s:s s:I s:b s:I}", "name", p->name, "ranks", (json_int_t)p->ranks, "command",
        command, "cores", (json_int_t)cores, "yields", p->yields, "repeat", (json_int_t)o->repeat);
    if (p->ranks > cores && !o->launcher) {
        snprintf(note, sizeof note, "%ld ranks on %ld cores: %s", p->ranks, cores,
                 p->yields ? "all runs have libyield.so, with which ranks that wait give up the "
                             "processor"
                           : "times say more of the scheduler than of the program");
        json_object_set_new(program, "note", json_string(note));
    }
    return program;
}

/* All runs of a program, in turns. The plain one runs twice at least, to know what varies. */
static json_t *try_program(const struct options *o, const struct program *p,
                           const wordexp_t *launcher)
{
    static struct found found[1 + MOST_MODES];
    memset(found, 0, sizeof found);
    if (mkdir(p->directory, 0777) != 0 && errno != EEXIST) {
        complain(0, "cannot make the directory %s: %s; name another one by --output", p->directory,
                 strerror(errno));
        return NULL;
    }
    json_t *program = describe(o, p);
    bool done = program != NULL;
    if (!done)
        complain(0, "the command line of %s is no UTF-8", p->name);
    for (long k = 0; k < o->repeat && done; k++)
        for (int r = 0; r < o->n_runs && done; r++)
            done = run_once(o, p, launcher, o->run[r], &found[r]);
    if (done && o->repeat == 1)
        done = run_once(o, p, launcher, o->run[PLAIN], &found[PLAIN]);
    if (done && tell_runs(o, p, found, program))
        return program;
    json_decref(program);
    return NULL;
}

/* --- which programs */

/* Whether a program can be tried; false after a message. */
static bool is_ready(struct program *p, const struct options *o)
{
    char path[PATH_MAX], why[2 * PATH_MAX];
    if (!cpl_program_find(p->argv[0], path)) {
        complain(0, "cannot start %s: %s", p->argv[0],
                 errno == ENOENT && !strchr(p->argv[0], '/')
                     ? "it is not in PATH; a program in the present directory is called ./NAME"
                     : strerror(errno));
        return false;
    }
    if (!cpl_program_is_fit(p->argv[0], path, why, sizeof why)) {
        complain(0, "%s", why);
        return false;
    }
    bool crowded = !o->launcher && p->ranks > sysconf(_SC_NPROCESSORS_ONLN);
    p->yields = o->yields == 1 || (o->yields < 0 && crowded);
    if (p->yields && !cpl_beside_yield(path)) {
        p->yields = false;
        if (o->yields < 0)
            return true;
        complain(0, "cannot read %s; install all of Carpool, or leave --yield out", path);
        return false;
    }
    return true;
}

static bool add_program(json_t *programs, const struct options *o, struct program *p,
                        const wordexp_t *launcher)
{
    snprintf(p->directory, sizeof p->directory, "%s/%s", o->directory, p->name);
    for (char *at = p->directory + strlen(o->directory) + 1; *at; at++)
        *at = *at == '/' ? '-' : *at;
    json_t *program = is_ready(p, o) ? try_program(o, p, launcher) : NULL;
    return program && json_array_append_new(programs, program) == 0;
}

/* One line of the table: name, ranks, command line. */
static bool add_line(json_t *programs, const struct options *o, const wordexp_t *launcher,
                     char *line, int number)
{
    struct program p = {.ranks = 0};
    wordexp_t words;
    int command = 0;
    char end;
    if (sscanf(line, "%63s %ld %n", p.name, &p.ranks, &command) < 2 || command == 0 ||
        !line[command] || p.ranks < 1 || p.ranks > MOST_RANKS) {
        complain(0, "%s:%d: a line has a name, a number of ranks and a command line", o->table,
                 number);
        return false;
    }
    end = line[strlen(line) - 1];
    if (end == '\n')
        line[strlen(line) - 1] = '\0';
    if (wordexp(line + command, &words, WRDE_NOCMD) != 0 || words.we_wordc == 0) {
        complain(0, "%s:%d: the command line is none that a shell would take", o->table, number);
        return false;
    }
    p.argv = words.we_wordv;
    bool done = add_program(programs, o, &p, launcher);
    wordfree(&words);
    return done;
}

/* Tries all programs of the table, also when one cannot be tried. */
static bool try_table(json_t *programs, const struct options *o, const wordexp_t *launcher)
{
    FILE *in = fopen(o->table, "r");
    char *line = NULL;
    size_t size = 0;
    bool done = in != NULL;
    if (!in)
        complain(0, "%s: %s", o->table, strerror(errno));
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

static bool write_files(const struct options *o, const json_t *result)
{
    char path[600];
    snprintf(path, sizeof path, "%s/try.json", o->directory);
    const char *const files[] = {path, o->json};
    for (size_t k = 0; k < 2; k++)
        if (files[k] && json_dump_file(result, files[k], JSON_INDENT(1) | JSON_REAL_PRECISION(6))) {
            complain(0, "%s: cannot be written: %s", files[k], strerror(errno));
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
        complain(0, "%s: cannot be written: %s", path, strerror(errno));
    return written;
}

static int try_all(const struct options *o, char **argv, const wordexp_t *launcher)
{
    json_t *programs = json_array();
    json_t *result = json_pack("{s:s s:o}", "version", PACKAGE_VERSION, "programs", programs);
    bool done;
    if (o->table) {
        done = try_table(programs, o, launcher);
    } else {
        struct program p = {.ranks = o->ranks, .argv = argv};
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
    complain(0, "%s takes a number from 1 to %ld, not '%s'", what, most, text);
    return false;
}

static bool read_modes(struct options *o, const char *text)
{
    o->n_runs = 1;
    while (*text) {
        size_t n = strcspn(text, ",");
        const char *const *name = mode_names;
        while (*name && (strlen(*name) != n || strncmp(*name, text, n) != 0))
            name++;
        if (!*name || o->n_runs == 1 + MOST_MODES) {
            complain(0, "--modes takes off, auto and force, each once, with commas, not '%s'",
                     text);
            return false;
        }
        o->run[o->n_runs++] = *name;
        text += n + (text[n] == ',');
    }
    if (o->n_runs == 1)
        complain(0, "--modes names no mode; there are off, auto and force");
    return o->n_runs > 1;
}

static bool set_option(struct options *o, int option)
{
    switch (option) {
    case 'n':
        return read_number(optarg, "-n", MOST_RANKS, &o->ranks);
    case 'm':
        return read_modes(o, optarg);
    case 'k':
        return read_number(optarg, "--repeat", MOST_REPEAT, &o->repeat);
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
static bool prepare(const struct options *o, wordexp_t *launcher)
{
    char path[PATH_MAX];
    const char *preload = getenv("LD_PRELOAD");
    if (wordexp(o->launcher ? o->launcher : LAUNCHER, launcher, WRDE_NOCMD) != 0 ||
        launcher->we_wordc == 0) {
        complain(0, "--launcher takes a command line, as in --launcher='srun -N 2'");
        return false;
    }
    if (!cpl_program_find(launcher->we_wordv[0], path)) {
        complain(0,
                 "no launcher: %s: %s; install MPICH's (Debian: mpich), or name another one by "
                 "--launcher",
                 launcher->we_wordv[0], errno == ENOENT ? "there is none" : strerror(errno));
        return false;
    }
    if (!cpl_beside_library(path)) {
        complain(0, "cannot read %s; install the library, or start this command from its build",
                 path);
        return false;
    }
    if (preload && strstr(preload, "libcarpool")) {
        complain(0, "LD_PRELOAD has Carpool already, so no run would be without it; unset it");
        return false;
    }
    if (mkdir(o->directory, 0777) == 0 || errno == EEXIST)
        return true;
    complain(0, "cannot make the directory %s: %s; name another one by --output", o->directory,
             strerror(errno));
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
    struct options o = {.directory = DIRECTORY,
                        .repeat = 3,
                        .limit = 600,
                        .yields = -1,
                        .n_runs = 1 + MOST_MODES,
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
        return complain(CPL_EXIT_USAGE, "%s; `carpool try --help` tells more",
                        o.table ? "a PROGRAM, or a table of them by --table" : "which PROGRAM?");
    if (!o.table && o.ranks == 0)
        return complain(CPL_EXIT_USAGE, "how many ranks? as in carpool try -n 16 ./app");
    if (!prepare(&o, &launcher))
        return CPL_EXIT_FAILED;
    int status = try_all(&o, argv + optind, &launcher);
    wordfree(&launcher);
    return status;
}
