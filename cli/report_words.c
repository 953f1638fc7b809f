/* What a report's figures and words mean: those that decided, and an explanation of each word that
 * is used (report_read.h). */
#include "cli/report_read.h"

#include "planner/strategy.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* --- what was measured */

static double us_or_none(const json_t *object, const char *key)
{
    return cpl_report_has_number(object, key) ? cpl_report_number(object, key) : -1;
}

/* What the last trial measured: of MPI, and of the plan that is told of, or else the fastest. */
static void measure_trial(const json_t *pattern, struct cpl_measured *m)
{
    const json_t *o;
    size_t k;
    const char *told = cpl_report_text(pattern, "considered");
    bool is_told = false;
    json_array_foreach(json_object_get(pattern, "tried"), k, o)
    {
        const char *name = cpl_report_text(o, "strategy");
        double us = us_or_none(o, "measured_us");
        if (us < 0)
            continue;
        if (strcmp(name, "direct") == 0 && k == 0) {
            m->us[0] = us;
        } else if (!is_told && (m->us[1] < 0 || us < m->us[1] || strcmp(name, told) == 0)) {
            m->us[1] = us;
            is_told = strcmp(name, told) == 0;
        }
    }
}

static void say(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void say(char *text, size_t size, const char *format, ...)
{
    size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + used, size - used, format, args);
    va_end(args);
}

/* " 1.25" or " -", for all calls. */
static void say_us(struct cpl_measured *m, const char *what, double us)
{
    if (us < 0)
        say(m->how, sizeof m->how, "%s -", what);
    else
        say(m->how, sizeof m->how, "%s %.2f", what, us);
}

void cpl_report_measured(const json_t *pattern, struct cpl_measured *m)
{
    static const char *const sides[] = {"direct", "planned"};
    const json_t *windows = json_object_get(pattern, "windows");
    json_int_t pairs = cpl_report_integer(windows, "pairs");
    double all[2];
    *m = (struct cpl_measured){.us = {-1, -1}};
    for (int k = 0; k < 2; k++)
        all[k] = us_or_none(json_object_get(pattern, sides[k]), "us_per_call");
    if (windows && (pairs > 0 || (all[0] < 0 && all[1] < 0))) {
        m->us[0] = us_or_none(windows, "mpi_us");
        m->us[1] = us_or_none(windows, "plan_us");
        say(m->how, sizeof m->how,
            "measured from one collective to the next, all exchanges of the communicator together");
        if (pairs > 0)
            say(m->how, sizeof m->how, "; means of %lld windows each", (long long)pairs);
        return;
    }
    measure_trial(pattern, m);
    if (m->us[0] < 0 || m->us[1] < 0) {
        memcpy(m->us, all, sizeof all);
    } else if (all[0] >= 0 || all[1] >= 0) {
        say(m->how, sizeof m->how, "measured in the last trial, which decides; over all calls");
        say_us(m, " by MPI", all[0]);
        say_us(m, ", by plan", all[1]);
    }
}

const char *cpl_report_sum(const json_t *pattern, char *text, size_t size)
{
    const json_t *o = json_object_get(pattern, "decision");
    double mpi = cpl_report_number(o, "mpi_us"), most = cpl_report_number(o, "most");
    double plan = cpl_report_number(o, "plan_us"), matching = cpl_report_number(o, "matching_us");
    bool pays = plan + matching < most * mpi;
    text[0] = '\0';
    if (!o)
        return text;
    say(text, size,
        "By the model the plan takes %.2f us, with forwarding, and matching its messages %.2f: "
        "%.2f together. ",
        plan, matching, plan + matching);
    say(text, size,
        "This is %sbelow %.2f, which is %.2g of the %.2f that MPI takes, inside nodes reckoned as "
        "through shared memory.",
        pays ? "" : "not ", most * mpi, most, mpi);
    if (!pays && cpl_report_integer(pattern, "calls_planned") > 0)
        say(text, size, " It was tried all the same.");
    return text;
}

const char *cpl_report_forwarders(const json_t *pattern)
{
    json_int_t hops = cpl_report_integer(json_object_get(pattern, "planned"), "hops_max");
    if (cpl_report_integer(pattern, "forwarded_bytes") == 0 || !json_object_get(pattern, "tried"))
        return "";
    return hops > 1 ? ", by all plans that were tried" : ", by other plans that were tried";
}

/* --- words */

/* Whether a name begins with a word, or for a word that begins with a sign has it anywhere. */
static bool is_of(const char *name, const char *word)
{
    size_t n = strlen(word);
    if (word[0] == '+' || word[0] == ' ')
        return strstr(name, word);
    return strncmp(name, word, n) == 0 && strchr(":+ ", name[n]);
}

/* Whether an exchange names the word: its plan, its way, or what was tried. */
static bool names(const json_t *p, const char *word)
{
    static const char *const members[] = {"strategy", "considered", "way", NULL};
    const json_t *o;
    size_t k;
    for (const char *const *member = members; *member; member++)
        if (is_of(cpl_report_text(p, *member), word))
            return true;
    json_array_foreach(json_object_get(p, "tried"), k, o)
    {
        if (is_of(cpl_report_text(o, "strategy"), word))
            return true;
    }
    return false;
}

static bool is_used(const json_t *patterns, const char *word)
{
    const json_t *p;
    size_t k;
    json_array_foreach(patterns, k, p)
    {
        bool is_named = strcmp(word, "no.") == 0   ? cpl_report_integer(p, "ordinal") > 0
                        : strcmp(word, "tag") == 0 ? cpl_report_has_number(p, "tag")
                                                   : names(p, word);
        if (is_named)
            return true;
    }
    return false;
}

size_t cpl_report_words(const json_t *patterns, struct cpl_word words[CPL_MOST_WORDS])
{
    static const struct cpl_word others[] = {
        {"by lanes", "through memory that the ranks of a node share, past MPI"},
        {"+klf", "any two ranks have changed places in the grid, so that less is forwarded"},
        {"+klr", "ranks next to each other in the grid have changed places, so that less is "
                 "forwarded"},
        {"+near", "ranks that are near in the machine are near in the grid"},
        {"+doubling", "ranks that are near in the machine are far from each other in the grid"},
        {"straight", "a way without a plan: each message alone, from the program's buffer"},
        {"packed", "a way without a plan: MPI carries packed copies, where its own call errs"},
        {"ring", "allgather in which each rank hands on to the next what it has got"},
        {"doubling", "allgather in which ranks exchange twice as much in each step"},
        {"tag", "the tag of the exchange's first message"},
        {"no.", "its number among the exchanges whose first message has that tag"},
    };
    size_t n_strategies, n = 0;
    const struct cpl_strategy *const *table = cpl_strategy_table(&n_strategies);
    for (size_t k = 0; k < n_strategies && n < CPL_MOST_WORDS; k++)
        if (is_used(patterns, table[k]->name))
            words[n++] = (struct cpl_word){table[k]->name, table[k]->doc};
    for (size_t k = 0; k < sizeof others / sizeof *others && n < CPL_MOST_WORDS; k++)
        if (is_used(patterns, k == 0 ? " by lanes" : others[k].word))
            words[n++] = others[k];
    return n;
}
