/* Two sets of reports side by side (compare.h). */
#include "cli/compare.h"
#include "cli/report_read.h"

#include <stdlib.h>
#include <string.h>

/* --- spreads */

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void add_value(struct cpl_spread *s, double value)
{
    if (s->n < CPL_COMPARE_RUNS)
        s->value[s->n++] = value;
}

static void finish_spread(struct cpl_spread *s)
{
    if (s->n == 0)
        return;
    qsort(s->value, (size_t)s->n, sizeof *s->value, compare_doubles);
    int middle = s->n / 2;
    s->least = s->value[0];
    s->most = s->value[s->n - 1];
    s->median = s->n % 2 ? s->value[middle] : (s->value[middle - 1] + s->value[middle]) / 2;
}

const char *cpl_spread_text(const struct cpl_spread *s, char *text, size_t size)
{
    if (s->n == 0)
        snprintf(text, size, "-");
    else if (s->n == 1)
        snprintf(text, size, "%.4g", s->median);
    else
        snprintf(text, size, "%.4g (%.4g to %.4g)", s->median, s->least, s->most);
    return text;
}

const char *cpl_compare_verdict(const struct cpl_spread *a, const struct cpl_spread *b)
{
    if (a->n < 2 || b->n < 2)
        return "";
    if (b->most < a->least)
        return "faster in every run";
    if (b->least > a->most)
        return "slower in every run";
    return "no clear difference";
}

/* --- rows */

static struct cpl_compared *row_of(struct cpl_comparison *c, const json_t *p)
{
    char key[200], name[160];
    const char *pattern = json_string_value(json_object_get(p, "pattern"));
    cpl_report_name(p, name, sizeof name);
    snprintf(key, sizeof key, "%s|%lld|%s", name, (long long)cpl_report_integer(p, "ranks"),
             pattern ? pattern : "");
    for (size_t k = 0; k < c->n; k++)
        if (strcmp(c->row[k].key, key) == 0)
            return &c->row[k];
    if (c->n == c->room) {
        size_t room = c->room ? 2 * c->room : 16;
        struct cpl_compared *grown = realloc(c->row, room * sizeof *grown);
        if (!grown)
            return NULL;
        c->row = grown;
        c->room = room;
    }
    struct cpl_compared *row = &c->row[c->n++];
    memset(row, 0, sizeof *row);
    memcpy(row->key, key, sizeof key);
    snprintf(row->name, sizeof row->name, "%s on %lld ranks", name,
             (long long)cpl_report_integer(p, "ranks"));
    return row;
}

/* Calls and time that one element of a report adds to those of its exchange in this run. */
struct tally {
    double calls, timed_calls, us;
};

static void count_part(const json_t *side, double calls, struct tally *t)
{
    if (calls <= 0 || !cpl_report_has_number(side, "us_per_call"))
        return;
    t->timed_calls += calls;
    t->us += calls * cpl_report_number(side, "us_per_call");
}

static void count_element(const json_t *p, struct tally *t)
{
    double calls = cpl_report_number(p, "calls"), planned = cpl_report_number(p, "calls_planned");
    t->calls += calls;
    count_part(json_object_get(p, "direct"), calls - planned, t);
    count_part(json_object_get(p, "planned"), planned, t);
}

bool cpl_compare_add(struct cpl_comparison *c, int side, json_t *report)
{
    const json_t *patterns = json_object_get(report, "patterns"), *p;
    struct tally *tally = calloc(json_array_size(patterns) + c->n + 1, sizeof *tally);
    size_t k;
    if (!tally)
        return false;
    json_array_foreach(patterns, k, p)
    {
        struct cpl_compared *row = row_of(c, p);
        if (!row) {
            free(tally);
            return false;
        }
        count_element(p, &tally[row - c->row]);
        if (cpl_report_integer(p, "calls_planned") > 0)
            snprintf(row->side[side].how, sizeof row->side[side].how, "%s",
                     cpl_report_text(p, "strategy"));
        else if (!row->side[side].how[0])
            snprintf(row->side[side].how, sizeof row->side[side].how, "MPI");
    }
    for (k = 0; k < c->n; k++) {
        if (tally[k].calls > 0)
            add_value(&c->row[k].side[side].calls, tally[k].calls);
        if (tally[k].timed_calls > 0)
            add_value(&c->row[k].side[side].us, tally[k].us / tally[k].timed_calls);
    }
    free(tally);
    if (cpl_report_has_number(report, "seconds"))
        add_value(&c->seconds[side], cpl_report_number(report, "seconds"));
    c->n_runs[side]++;
    c->last[side] = report;
    return true;
}

/* --- what follows */

static double time_of(const struct cpl_compared_side *s)
{
    return s->us.n > 0 ? s->us.median * s->calls.median : 0;
}

static int compare_rows(const void *a, const void *b)
{
    const struct cpl_compared *x = a, *y = b;
    double s = time_of(&x->side[0]) + time_of(&x->side[1]);
    double t = time_of(&y->side[0]) + time_of(&y->side[1]);
    return s == t ? strcmp(x->key, y->key) : (s < t) - (s > t);
}

/* Rows of one name are told apart by their patterns. */
static void tell_apart(struct cpl_comparison *c)
{
    for (size_t k = 0; k < c->n; k++)
        for (size_t i = 0; i < c->n; i++) {
            const char *pattern = strrchr(c->row[k].key, '|') + 1;
            size_t n = strcspn(c->row[k].name, "#");
            if (i == k || !pattern[0] || c->row[k].name[n] ||
                strncmp(c->row[i].name, c->row[k].name, n) != 0)
                continue;
            snprintf(c->row[k].name + n, sizeof c->row[k].name - n, " #%.8s", pattern);
        }
}

static void differs(struct cpl_comparison *c, const char *what, const char *a, const char *b)
{
    size_t used = strlen(c->unlike);
    if (strcmp(a, b) != 0)
        snprintf(c->unlike + used, sizeof c->unlike - used, "%s%s (%.80s, %.80s)", used ? ", " : "",
                 what, a, b);
}

static void find_differences(struct cpl_comparison *c)
{
    static const char *const words[] = {"mpi", "machine"};
    const json_t *run[2];
    char text[2][300];
    for (int side = 0; side < 2; side++) {
        run[side] = json_object_get(c->last[side], "run");
        cpl_report_command(c->last[side], text[side], sizeof text[side]);
    }
    differs(c, "program", text[0], text[1]);
    for (int side = 0; side < 2; side++)
        snprintf(text[side], sizeof text[side], "%lld",
                 (long long)cpl_report_integer(c->last[side], "ranks"));
    differs(c, "ranks", text[0], text[1]);
    for (int side = 0; side < 2; side++)
        snprintf(text[side], sizeof text[side], "%lld",
                 (long long)cpl_report_integer(run[side], "cores"));
    if (strcmp(text[0], "0") != 0 && strcmp(text[1], "0") != 0) /* mode off does not know them */
        differs(c, "cores", text[0], text[1]);
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        differs(c, words[k], cpl_report_text(run[0], words[k]), cpl_report_text(run[1], words[k]));
    differs(c, "ranks give up the processor",
            json_is_true(json_object_get(run[0], "yields")) ? "yes" : "no",
            json_is_true(json_object_get(run[1], "yields")) ? "yes" : "no");
}

static void add_up(struct cpl_comparison *c, int side)
{
    for (int run = 0; run < c->n_runs[side]; run++) {
        double sum = 0;
        bool complete = false;
        for (size_t k = 0; k < c->n; k++) {
            const struct cpl_compared_side *s = &c->row[k].side[side];
            if (c->row[k].side[0].us.n < c->n_runs[0] || c->row[k].side[1].us.n < c->n_runs[1])
                continue;
            sum += s->us.value[run] * s->calls.value[run] * 1e-6;
            complete = true;
        }
        if (complete)
            add_value(&c->in_exchanges[side], sum);
    }
}

void cpl_compare_finish(struct cpl_comparison *c)
{
    for (int side = 0; side < 2; side++)
        add_up(c, side); /* values are in the order of the runs till here */
    for (int side = 0; side < 2; side++) {
        finish_spread(&c->seconds[side]);
        finish_spread(&c->in_exchanges[side]);
        for (size_t k = 0; k < c->n; k++) {
            finish_spread(&c->row[k].side[side].us);
            finish_spread(&c->row[k].side[side].calls);
        }
    }
    if (c->n > 0)
        qsort(c->row, c->n, sizeof *c->row, compare_rows);
    tell_apart(c);
    find_differences(c);
}

void cpl_compare_conclude(const struct cpl_comparison *c, char *text, size_t size)
{
    const struct cpl_spread *a = &c->seconds[0], *b = &c->seconds[1];
    const char *verdict = cpl_compare_verdict(a, b);
    if (a->n == 0 || b->n == 0 || b->median <= 0)
        snprintf(text, size, "The reports do not say how long the runs took.");
    else if (!verdict[0])
        snprintf(text, size,
                 "B took %.3g times as long as A. One run tells little: give some of each, as in "
                 "carpool compare A1.json A2.json -- B1.json B2.json.",
                 b->median / a->median);
    else if (verdict[0] == 'n')
        snprintf(text, size,
                 "No clear difference: the runs of A and of B overlap (B took %.3g times as long "
                 "in the median).",
                 b->median / a->median);
    else
        snprintf(text, size, "B was %s: it took %.3g times as long as A in the median.", verdict,
                 b->median / a->median);
}

void cpl_compare_free(struct cpl_comparison *c)
{
    free(c->row);
    c->row = NULL;
    c->n = c->room = 0;
}
