/* Reading and listing settings (settings.h). */
#include "shim/base/settings.h"

#include "planner/base/text_distance.h"
#include "planner/place/allgather.h"
#include "planner/strategy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#define PREFIX "CARPOOL_"

/* How variables begin that may be mistyped settings, and how many letters they may be off. */
#define MISTYPED_PREFIX "CARP"
#define MISTYPED_MOST   2

enum group { FOR_USERS, FOR_TESTS };

static const char *const headings[] = {"For users", "For tests and experiments"};

enum type { TYPE_CHOICE, TYPE_STRATEGY, TYPE_TEXT, TYPE_COUNT, TYPE_BYTES };

struct row {
    const char *variable;
    enum group group;
    const char *preset;
    const char *doc;
    size_t offset; /* of the member in struct cpl_settings */
    enum type type;
    int64_t low, high;    /* of a number */
    const char *words[8]; /* of a choice, NULL-terminated */
};

#define TYPED_CHOICE(...)     .type = TYPE_CHOICE, .words = {__VA_ARGS__, NULL}
#define TYPED_STRATEGY        .type = TYPE_STRATEGY
#define TYPED_TEXT            .type = TYPE_TEXT
#define TYPED_COUNT(from, to) .type = TYPE_COUNT, .low = from, .high = to
#define TYPED_BYTES(from, to) .type = TYPE_BYTES, .low = from, .high = to

/* Words of a choice, with a NULL behind them. */
#define WORD(NAME, name)    #name,
#define CPL_ALLGATHER_WORDS CPL_ALLGATHER_ALGORITHMS(WORD) NULL

static const struct row rows[] = {
#define SETTING(field, name, group, type, preset, doc)                                             \
    {PREFIX #name, FOR_##group, preset, doc, offsetof(struct cpl_settings, field), TYPED_##type},
#include "shim/base/settings.def"
};

#define N_ROWS (sizeof rows / sizeof rows[0])

static bool is_text(const struct row *row)
{
    return row->type == TYPE_TEXT || row->type == TYPE_STRATEGY;
}

size_t cpl_settings_count(void)
{
    return N_ROWS;
}

struct cpl_setting_info cpl_settings_info(size_t i)
{
    const struct row *row = &rows[i];
    bool first = i == 0 || row->group != rows[i - 1].group;
    return (struct cpl_setting_info){row->variable, row->preset, row->doc,
                                     first ? headings[row->group] : NULL};
}

void cpl_settings_accepts(size_t i, char *text, size_t size)
{
    const struct row *row = &rows[i];
    size_t used = 0;
    if (is_text(row))
        snprintf(text, size, row->type == TYPE_TEXT ? "text" : "auto or a strategy");
    else if (row->type != TYPE_CHOICE)
        snprintf(text, size, "%lld to %lld%s", (long long)row->low, (long long)row->high,
                 row->type == TYPE_BYTES ? " bytes, K, M or G may follow" : "");
    for (const char *const *word = row->words; *word && used < size; word++) {
        int n = snprintf(text + used, size - used, "%s%s", used ? "|" : "", *word);
        used += n > 0 ? (size_t)n : 0;
    }
}

void cpl_settings_value(const struct cpl_settings *settings, size_t i, char *text, size_t size)
{
    const char *member = (const char *)settings + rows[i].offset;
    if (rows[i].type == TYPE_CHOICE)
        snprintf(text, size, "%s", rows[i].words[*(const int32_t *)member]);
    else if (is_text(&rows[i]))
        snprintf(text, size, "%s", member);
    else
        snprintf(text, size, "%lld", (long long)*(const int64_t *)member);
}

static bool parse_text(const char *value, char *member)
{
    size_t length = strlen(value);
    if (length >= CPL_SETTINGS_TEXT)
        return false;
    memcpy(member, value, length + 1);
    return true;
}

/* Bits to shift by for a suffix, -1 when it is none. */
static int suffix_shift(const char *suffix)
{
    static const char letters[] = "KMG";
    if (!*suffix)
        return 0;
    const char *at = strchr(letters, suffix[0] & ~0x20); /* either case */
    return at && !suffix[1] ? 10 * (int)(at - letters + 1) : -1;
}

static bool parse_number(const struct row *row, const char *value, char *member)
{
    char *end;
    errno = 0;
    long long number = strtoll(value, &end, 10);
    int shift = row->type == TYPE_BYTES ? suffix_shift(end) : *end ? -1 : 0;
    if (end == value || errno || shift < 0 || number < 0 || number > INT64_MAX >> shift)
        return false;
    number <<= shift;
    if (number < row->low || number > row->high)
        return false;
    *(int64_t *)member = number;
    return true;
}

static bool parse(const struct row *row, const char *value, struct cpl_settings *settings)
{
    char *member = (char *)settings + row->offset;
    struct cpl_strategy_choice choice;
    if (row->type == TYPE_STRATEGY && cpl_strategy_parse(value, &choice, NULL))
        return false;
    if (row->type != TYPE_CHOICE)
        return is_text(row) ? parse_text(value, member) : parse_number(row, value, member);
    int32_t k = 0;
    while (row->words[k] && strcmp(row->words[k], value) != 0)
        k++;
    if (row->words[k])
        *(int32_t *)member = k;
    return row->words[k];
}

const char *cpl_settings_nearest(const char *name, size_t *distance)
{
    size_t best = 0, least = cpl_text_distance(name, rows[0].variable);
    for (size_t k = 1; k < N_ROWS; k++) {
        size_t now = cpl_text_distance(name, rows[k].variable);
        if (now < least) {
            least = now;
            best = k;
        }
    }
    if (distance)
        *distance = least;
    return rows[best].variable;
}

/* Describes what is wrong with a value, for a warning. */
static void explain(size_t i, const char *value, char *text, size_t size)
{
    char accepts[256];
    struct cpl_strategy_choice choice;
    struct cpl_error error;
    cpl_settings_accepts(i, accepts, sizeof accepts);
    if (rows[i].type == TYPE_STRATEGY && cpl_strategy_parse(value, &choice, &error))
        snprintf(text, size, "%s", error.text);
    else if (is_text(&rows[i]))
        snprintf(text, size, "it takes at most %d bytes", CPL_SETTINGS_TEXT - 1);
    else
        snprintf(text, size, "it takes %s", accepts);
}

/* Returns false if the variable is no setting. */
static bool read_variable(struct cpl_settings *settings, const char *name, const char *value,
                          cpl_settings_warn *warn, void *context)
{
    char text[CPL_SETTINGS_TEXT + 256], why[512];
    for (size_t k = 0; k < N_ROWS; k++) {
        if (strcmp(rows[k].variable, name) != 0)
            continue;
        if (parse(&rows[k], value, settings) || !warn)
            return true;
        explain(k, value, why, sizeof why);
        snprintf(text, sizeof text, "%s='%.200s' cannot be used: %s; the default '%s' holds", name,
                 value, why, rows[k].preset);
        warn(context, text);
        return true;
    }
    return false;
}

/* A variable that is no setting but looks like one: CARPOOL_MOD, CARPOL_MODE, carpool_mode. */
static void warn_of_mistyped(const char *name, cpl_settings_warn *warn, void *context)
{
    char text[512];
    size_t distance;
    if (!warn || strncasecmp(name, MISTYPED_PREFIX, strlen(MISTYPED_PREFIX)) != 0)
        return;
    const char *nearest = cpl_settings_nearest(name, &distance);
    const bool is_ours = strncmp(name, PREFIX, strlen(PREFIX)) == 0;
    if (distance > MISTYPED_MOST && !is_ours)
        return;
    snprintf(text, sizeof text, "%.200s %shas no effect; did you mean %s?", name,
             is_ours ? "is no setting and " : "", nearest);
    warn(context, text);
}

void cpl_settings_read(struct cpl_settings *settings, char *const *environment,
                       cpl_settings_warn *warn, void *context)
{
    memset(settings, 0, sizeof *settings); /* padding too: it is broadcast as bytes */
    for (size_t k = 0; k < N_ROWS; k++)
        parse(&rows[k], rows[k].preset, settings);
    for (; environment && *environment; environment++) {
        const char *equals = strchr(*environment, '=');
        char name[128];
        if (!equals)
            continue;
        snprintf(name, sizeof name, "%.*s", (int)(equals - *environment), *environment);
        if (!read_variable(settings, name, equals + 1, warn, context))
            warn_of_mistyped(name, warn, context);
    }
}

bool cpl_settings_make_directory(const char *name)
{
    struct stat info;
    if ((mkdir(name, 0777) != 0 && errno != EEXIST) || stat(name, &info) != 0)
        return false;
    errno = ENOTDIR;
    return S_ISDIR(info.st_mode);
}
