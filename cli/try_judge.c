/* The verdict of carpool try: what the times of the runs say, and what they do not (try.h). */
#include "cli/report_read.h"
#include "cli/try.h"

#include <math.h>
#include <string.h>

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
