/* What carpool try has found: from reports to the result, as a table, and the verdict (try.h). */
#include "cli/report_read.h"
#include "cli/try.h"

#include <math.h>
#include <string.h>

#define MOST_TOLD 6 /* exchanges or reasons of a run in the table; all are in the result */

/* The element of a list whose member `key` is this text, or a new one. */
static json_t *entry(json_t *list, const char *key, const char *text)
{
    size_t k;
    json_t *o;
    json_array_foreach(list, k, o)
    {
        if (strcmp(cpl_report_text(o, key), text) == 0)
            return o;
    }
    o = json_pack("{s:s s:I s:I s:I}", key, text, "exchanges", (json_int_t)0, "calls",
                  (json_int_t)0, "calls_planned", (json_int_t)0);
    json_array_append_new(list, o);
    return o;
}

static void add(json_t *o, const char *key, json_int_t n)
{
    json_object_set_new(o, key, json_integer(cpl_report_integer(o, key) + n));
}

void cpl_try_add_report(json_t *run, const json_t *report)
{
    json_t *carried = json_array(), *left = json_array(), *p;
    json_int_t n = 0, n_carried = 0;
    size_t k;
    json_array_foreach(json_object_get(report, "patterns"), k, p)
    {
        char text[400], name[160];
        bool is_carried = cpl_report_integer(p, "calls_planned") > 0;
        cpl_report_name(p, name, sizeof name);
        snprintf(text, sizeof text, "%s by %s in %lld of %lld calls", name, cpl_report_carrier(p),
                 (long long)cpl_report_integer(p, "calls_planned"),
                 (long long)cpl_report_integer(p, "calls"));
        json_t *o = NULL;
        if (is_carried)
            o = entry(carried, "exchange", text);
        else if (json_object_get(p, "left_alone"))
            o = entry(left, "reason", cpl_report_text(p, "left_alone"));
        else
            o = entry(left, "reason", "too few calls to be planned");
        add(o, "exchanges", 1);
        add(o, "calls", cpl_report_integer(p, "calls"));
        add(o, "calls_planned", cpl_report_integer(p, "calls_planned"));
        if (is_carried && json_object_get(p, "left_alone"))
            json_object_set(o, "later_left", json_object_get(p, "left_alone"));
        n_carried += is_carried;
        n++;
    }
    n += cpl_report_integer(report, "left_out");
    json_object_set_new(run, "exchanges", json_integer(n));
    json_object_set_new(run, "exchanges_carried", json_integer(n_carried));
    json_object_set_new(run, "carried", carried);
    json_object_set_new(run, "left", left);
    const json_t *account = json_object_get(report, "account");
    if (account) {
        json_object_set_new(run, "spent_ms", json_real(cpl_report_spent(account)));
        json_object_set_new(run, "gained_ms", json_real(cpl_report_number(account, "gained_ms")));
    }
    if (json_object_get(report, "all_left"))
        json_object_set(run, "all_left", json_object_get(report, "all_left"));
}

static void print_list(const json_t *list, const char *key, const char *what)
{
    json_t *o;
    size_t k;
    json_array_foreach(list, k, o)
    {
        json_int_t n = cpl_report_integer(o, "exchanges");
        if (k == MOST_TOLD) {
            printf("             and %zu more\n", json_array_size(list) - k);
            break;
        }
        printf("             %s %s", what, cpl_report_text(o, key));
        if (n > 1)
            printf(" (%lld exchanges)", (long long)n);
        if (json_object_get(o, "later_left"))
            printf("; left to MPI later: %s", cpl_report_text(o, "later_left"));
        putchar('\n');
    }
}

static void print_run(const json_t *program, const json_t *run)
{
    char speedup[24] = "", carried[64] = "";
    if (cpl_report_has_number(run, "speedup"))
        snprintf(speedup, sizeof speedup, "%s%.2f",
                 strcmp(cpl_report_text(run, "speed"), "same") == 0 ? "~" : "",
                 cpl_report_number(run, "speedup"));
    if (json_object_get(run, "exchanges") && !json_object_get(run, "all_left"))
        snprintf(carried, sizeof carried, "%lld of %lld",
                 (long long)cpl_report_integer(run, "exchanges_carried"),
                 (long long)cpl_report_integer(run, "exchanges"));
    printf("  %-8s %10.3f %10.3f %10.3f %8s  %-12s %s\n", cpl_report_text(run, "run"),
           cpl_report_number(run, "median_s"), cpl_report_number(run, "least_s"),
           cpl_report_number(run, "most_s"), speedup, cpl_report_text(run, "output"), carried);
    if (json_object_get(run, "difference"))
        printf("             lines that differ from those of the plain run: %lld; the first one:\n"
               "             plain: %s\n             %s: %s\n",
               (long long)cpl_report_integer(run, "differing"),
               cpl_report_text(json_object_get(run, "difference"), "plain"),
               cpl_report_text(run, "run"),
               cpl_report_text(json_object_get(run, "difference"), "found"));
    if (json_object_get(run, "failure"))
        printf("             %s\n", cpl_report_text(run, "failure"));
    if (json_object_get(run, "all_left") && strcmp(cpl_report_text(run, "run"), "off") != 0)
        printf("             all calls were left to MPI: %s\n", cpl_report_text(run, "all_left"));
    print_list(json_object_get(run, "carried"), "exchange", "carried:");
    print_list(json_object_get(run, "left"), "reason", "left to MPI:");
    if (cpl_report_number(run, "spent_ms") > 0)
        printf("             Carpool cost %.1f ms and gained %.1f\n",
               cpl_report_number(run, "spent_ms"), cpl_report_number(run, "gained_ms"));
    (void)program;
}

static void print_program(const json_t *program)
{
    json_t *run;
    size_t k;
    printf("%s: %s\n  %s, %lld ranks, %lld runs each\n", cpl_report_text(program, "name"),
           cpl_report_text(program, "verdict"), cpl_report_text(program, "command"),
           (long long)cpl_report_integer(program, "ranks"),
           (long long)cpl_report_integer(program, "repeat"));
    if (json_object_get(program, "note"))
        printf("  %s\n", cpl_report_text(program, "note"));
    printf("  %-8s %10s %10s %10s %8s  %-12s %s\n", "run", "median s", "min s", "max s", "speed-up",
           "output", "exchanges carried");
    json_array_foreach(json_object_get(program, "runs"), k, run)
    {
        print_run(program, run);
    }
    puts("  ~: within the scatter of the runs");
    if (cpl_report_integer(program, "files") > 0)
        printf("  text files that a run wrote into the present directory, compared, too: %lld\n",
               (long long)cpl_report_integer(program, "files"));
    if (cpl_report_integer(program, "lines") == 0)
        puts("  the program prints nothing, and writes no text file into the present directory: "
             "there was nothing to compare");
    if (cpl_report_integer(program, "own_lines") > 0)
        printf("  %lld of %lld lines vary without Carpool, too: what varies in them is not "
               "compared\n",
               (long long)cpl_report_integer(program, "own_lines"),
               (long long)cpl_report_integer(program, "lines"));
}

void cpl_try_print(const json_t *result)
{
    json_t *program;
    size_t k;
    json_array_foreach(json_object_get(result, "programs"), k, program)
    {
        if (k > 0)
            putchar('\n');
        print_program(program);
    }
}

bool cpl_try_is_same(const json_t *result)
{
    json_t *program, *run;
    size_t k, r;
    json_array_foreach(json_object_get(result, "programs"), k, program)
    {
        json_array_foreach(json_object_get(program, "runs"), r, run)
        {
            if (json_object_get(run, "difference") || json_object_get(run, "failure"))
                return false;
        }
    }
    return true;
}

/* --- the verdict */

/* Beyond so many standard deviations a rank sum is no chance; three runs of each kind get there
 * when all of one are faster than all of the other. */
#define FEW_BY_CHANCE 1.9

/* By how many standard deviations the runs of `a` tend to take longer than those of `b`: the
 * normalised rank sum of Mann and Whitney. */
static double rank_sum(const json_t *a, const json_t *b)
{
    double n = (double)json_array_size(a), m = (double)json_array_size(b), sum = 0;
    const json_t *x, *y;
    size_t i, j;
    json_array_foreach(a, i, x)
    {
        json_array_foreach(b, j, y)
        {
            double d = json_number_value(x) - json_number_value(y);
            sum += d > 0 ? 1 : d < 0 ? 0 : 0.5;
        }
    }
    return n * m > 0 ? (sum - n * m / 2) / sqrt(n * m * (n + m + 1) / 12) : 0;
}

/* Marks a mode's run as faster or slower than the plain one, or as not to be told from it. */
static void judge_run(const json_t *plain, json_t *run)
{
    double deviations =
        rank_sum(json_object_get(plain, "seconds"), json_object_get(run, "seconds"));
    const char *found = deviations > FEW_BY_CHANCE    ? "faster"
                        : deviations < -FEW_BY_CHANCE ? "slower"
                                                      : "same";
    json_object_set_new(run, "speed", json_string(found));
}

static const json_t *find_run(const json_t *program, const char *name)
{
    const json_t *run;
    size_t k;
    json_array_foreach(json_object_get(program, "runs"), k, run)
    {
        if (strcmp(cpl_report_text(run, "run"), name) == 0)
            return run;
    }
    return NULL;
}

/* The first run that is wrong; NULL: none is. */
static const json_t *find_wrong(const json_t *program)
{
    const json_t *run;
    size_t k;
    json_array_foreach(json_object_get(program, "runs"), k, run)
    {
        const char *output = cpl_report_text(run, "output");
        if (strcmp(output, "differs") == 0 || strcmp(output, "failed") == 0)
            return run;
    }
    return NULL;
}

/* What a longer run would change. */
static const char *longer(const json_t *run, double lost_ms)
{
    const json_t *left;
    size_t k;
    if (lost_ms > 0 && 2 * cpl_report_number(run, "spent_ms") > lost_ms)
        return "; most of that is spent once, so longer runs lose less";
    json_array_foreach(json_object_get(run, "left"), k, left)
    {
        if (strstr(cpl_report_text(left, "reason"), "before planning"))
            return "; longer runs may gain";
    }
    return "";
}

static void say_wrong(const json_t *run, char *text, size_t size)
{
    const char *name = cpl_report_text(run, "run");
    bool differs = strcmp(cpl_report_text(run, "output"), "differs") == 0;
    if (strcmp(name, "plain") == 0)
        snprintf(text, size, "the program fails without Carpool, too");
    else
        snprintf(text, size, "do not use Carpool for it: in mode %s it %s", name,
                 differs ? "prints something else" : "fails");
}

static void say_speed(const json_t *plain, const json_t *run, char *text, size_t size)
{
    const char *speed = cpl_report_text(run, "speed");
    double without = cpl_report_number(plain, "median_s"),
           with = cpl_report_number(run, "median_s");
    double most = cpl_report_number(plain, "most_s"), least = cpl_report_number(plain, "least_s");
    if (strcmp(speed, "faster") == 0)
        snprintf(text, size, "use Carpool: %.2f times as fast in runs of %.3g s", without / with,
                 with);
    else if (strcmp(speed, "slower") == 0)
        snprintf(text, size,
                 "do not use Carpool for runs of %.3g s: %.1f%% slower; its meetings, planning and "
                 "trials took %.1f ms%s",
                 with, 100 * (with / without - 1), cpl_report_number(run, "spent_ms"),
                 longer(run, 1e3 * (with - without)));
    else
        snprintf(text, size, "no difference: %.1f%% %s, but plain runs vary by %.1f%%%s",
                 100 * fabs(with / without - 1), with > without ? "slower" : "faster",
                 without > 0 ? 100 * (most - least) / without : 0, longer(run, 0));
}

void cpl_try_judge(json_t *program)
{
    char text[400];
    json_t *runs = json_object_get(program, "runs"), *run;
    const json_t *plain = json_array_get(runs, 0), *wrong = find_wrong(program);
    const json_t *told = find_run(program, "auto");
    size_t k;
    json_array_foreach(runs, k, run)
    {
        if (k > 0)
            judge_run(plain, run);
    }
    if (!told)
        told = json_array_get(runs, json_array_size(runs) - 1);
    if (wrong)
        say_wrong(wrong, text, sizeof text);
    else if (cpl_report_integer(program, "repeat") < 3)
        snprintf(text, sizeof text, "too few runs to judge by: --repeat=5, say");
    else
        say_speed(plain, told, text, sizeof text);
    json_object_set_new(program, "verdict", json_string(text));
}
