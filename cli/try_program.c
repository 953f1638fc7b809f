/* The runs of a program that is tried, in turns, and what they have given (try.h). */
#include "cli/host/beside.h"
#include "cli/report_read.h"
#include "cli/try.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PLAIN 0 /* the run without the library; the others are the modes */

/* What the runs of one kind have given. */
struct found {
    int n, n_files; /* n_files: that the first run wrote */
    double seconds[CPL_TRY_MOST_REPEAT + 1];
    int code[CPL_TRY_MOST_REPEAT + 1];
};

int cpl_try_complain(int status, const char *format, ...)
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

static void file_of(const struct cpl_try_program *p, const char *run, int number,
                    const char *suffix, char *path, size_t size)
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

static bool fill_words(struct words *w, const struct cpl_try_program *p, const wordexp_t *launcher,
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

static bool run_once(const struct cpl_try_options *o, const struct cpl_try_program *p,
                     const wordexp_t *launcher, const char *run, struct found *found)
{
    static struct words words;
    char out[640], err[640], report[640], files[640];
    file_of(p, run, found->n, "out", out, sizeof out);
    file_of(p, run, found->n, "err", err, sizeof err);
    file_of(p, run, found->n, "json", report, sizeof report);
    file_of(p, run, found->n, "files", files, sizeof files);
    remove(report); /* of an earlier trial */
    if (!fill_words(&words, p, launcher, run, found->n)) {
        cpl_try_complain(0, "the command line of %s is too long", p->name);
        return false;
    }
    struct cpl_launch launch = {
        .argv = (char *const *)words.word, .out = out, .err = err, .limit = (double)o->limit};
    struct cpl_listing *before = cpl_try_list_files();
    bool launched = cpl_try_launch(&launch);
    int code = errno, n_files = cpl_try_keep_files(before, files);
    if (!launched) {
        cpl_try_complain(0, "cannot start %s: %s", words.word[0], strerror(code));
        return false;
    }
    if (found->n == 0)
        found->n_files = n_files;
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
static bool read_outputs(const struct cpl_try_program *p, const char *run, int n,
                         struct cpl_output *outputs)
{
    char path[640], files[640];
    for (int k = 0; k < n; k++) {
        file_of(p, run, k, "out", path, sizeof path);
        file_of(p, run, k, "files", files, sizeof files);
        if (cpl_output_read(path, files, &outputs[k]))
            continue;
        cpl_try_complain(0, "cannot read %s: %s", path, strerror(errno));
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
            cpl_try_complain(0, "no memory to compare outputs");
            return false;
        }
        if (d.n > 0 && !json_object_get(o, "difference") && !json_object_get(o, "failure"))
            tell_difference(o, &d);
    }
    if (d.n_lines == 0 && strcmp(cpl_report_text(o, "output"), "same") == 0)
        json_object_set_new(o, "output", json_string("nothing"));
    json_object_set_new(program, "lines", json_integer((json_int_t)d.n_lines));
    json_object_set_new(program, "own_lines", json_integer((json_int_t)d.n_own));
    return true;
}

/* Whether a run failed: a time limit, or an exit code that plain runs have not. */
static void tell_codes(json_t *o, const struct cpl_try_program *p, const struct found *plain,
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

/* The report of a run as a page, which the trial's page refers to from its own directory. */
static void write_page(const struct cpl_try_options *o, const struct cpl_try_program *p, int number,
                       json_t *run, const json_t *report)
{
    char path[640], directory[520];
    file_of(p, cpl_report_text(run, "run"), number, "html", path, sizeof path);
    FILE *out = fopen(path, "w");
    snprintf(directory, sizeof directory, "%s/", p->directory);
    if (!out)
        return;
    cpl_report_html(report, directory, out);
    if (fclose(out) == 0)
        json_object_set_new(run, "page", json_string(path + strlen(o->directory) + 1));
}

/* The object of the runs of one kind; their times are sorted here. */
static json_t *tell_run(const struct cpl_try_options *o, const struct cpl_try_program *p, int r,
                        struct found *found)
{
    const char *run = o->run[r];
    json_t *one = json_pack("{s:s s:s}", "run", run, "output", r == PLAIN ? "" : "same");
    char path[640];
    tell_codes(one, p, &found[PLAIN], &found[r], r == PLAIN, o->limit);
    if (json_object_get(one, "failure"))
        json_object_set_new(one, "output", json_string("failed"));
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
    if (report) {
        cpl_try_add_report(one, report);
        write_page(o, p, found[r].n - 1, one, report);
    } else if (!json_object_get(one, "failure"))
        json_object_set_new(one, "failure",
                            json_string("there is no report: the program did not call "
                                        "MPI_Finalize, or not with Carpool"));
    json_decref(report);
    return one;
}

static bool tell_runs(const struct cpl_try_options *o, const struct cpl_try_program *p,
                      struct found *found, json_t *program)
{
    struct cpl_output *plain = calloc(CPL_TRY_MOST_REPEAT + 1, sizeof *plain),
                      *outputs = calloc(CPL_TRY_MOST_REPEAT + 1, sizeof *outputs);
    json_t *runs = json_array();
    bool done = plain && outputs && read_outputs(p, "plain", found[PLAIN].n, plain);
    json_object_set_new(program, "files", json_integer(found[PLAIN].n_files));
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

static json_t *describe(const struct cpl_try_options *o, const struct cpl_try_program *p)
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

json_t *cpl_try_program(const struct cpl_try_options *o, const struct cpl_try_program *p,
                        const wordexp_t *launcher)
{
    static struct found found[1 + CPL_TRY_MOST_MODES];
    memset(found, 0, sizeof found);
    if (mkdir(p->directory, 0777) != 0 && errno != EEXIST) {
        cpl_try_complain(0, "cannot make the directory %s: %s; name another one by --output",
                         p->directory, strerror(errno));
        return NULL;
    }
    json_t *program = describe(o, p);
    bool done = program != NULL;
    if (!done)
        cpl_try_complain(0, "the command line of %s is no UTF-8", p->name);
    for (long k = 0; k < o->repeat && done; k++)
        for (int i = 0; i < o->n_runs && done; i++) {
            int r = k % 2 ? o->n_runs - 1 - i : i; /* a run's place in its turn matters */
            done = run_once(o, p, launcher, o->run[r], &found[r]);
        }
    if (done && o->repeat == 1)
        done = run_once(o, p, launcher, o->run[PLAIN], &found[PLAIN]);
    if (done && tell_runs(o, p, found, program)) {
        cpl_try_judge(program);
        return program;
    }
    json_decref(program);
    return NULL;
}
