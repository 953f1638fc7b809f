/* Comparing what runs of a program have printed (try.h). */
#include "cli/try.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define MASK      '~'
#define NUMBER    '\1' /* in a shape */
#define MOST_WORD 64

/* --- what varies by itself */

static bool is_one_of(const char *word, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(word, *words) == 0)
            return true;
    return false;
}

static bool contains_one_of(const char *word, const char *const *parts)
{
    for (; *parts; parts++)
        if (strstr(word, *parts))
            return true;
    return false;
}

/* The number before such a word varies. Words are in lower case. */
static bool is_unit(const char *word)
{
    static const char *const units[] = {"s",    "sec",  "secs",  "second", "seconds",
                                        "ms",   "us",   "msec",  "usec",   "ns",
                                        "nsec", "teps", "mteps", "gteps",  NULL};
    static const char *const parts[] = {"flop", "/s", NULL};
    return is_one_of(word, units) || contains_one_of(word, parts);
}

/* The numbers behind such a word vary. */
static bool is_volatile(const char *word)
{
    static const char *const words[] = {"rate", "rates", "pid", "wall", "cpu", "date", NULL};
    static const char *const parts[] = {"time",    "timing",   "timer",     "elapsed",
                                        "second",  "duration", "bandwidth", "latency",
                                        "through", "perform",  "speed",     NULL};
    return is_unit(word) || is_one_of(word, words) || contains_one_of(word, parts);
}

/* Characters of a number at this place; 0: there is none. */
static size_t number_at(const char *line, size_t at)
{
    const char *s = line + at;
    bool signs = (*s == '-' || *s == '+') && (at == 0 || !isalnum((unsigned char)s[-1]));
    const char *digits = s + signs;
    if (!isdigit((unsigned char)*digits) && !(*digits == '.' && isdigit((unsigned char)digits[1])))
        return 0;
    char *end;
    strtod(s, &end);
    return (size_t)(end - s);
}

/* Whether a line has a clock (12:34:56) or a date (2026-11-24). */
static bool has_clock(const char *line)
{
    static const char *const forms[] = {"00:00:00", "0:00:00", "0000-00-00", "00/00/0000", NULL};
    for (; *line; line++)
        for (const char *const *form = forms; *form; form++) {
            size_t n = 0;
            while ((*form)[n] &&
                   ((*form)[n] == '0' ? isdigit((unsigned char)line[n]) : line[n] == (*form)[n]))
                n++;
            if (!(*form)[n])
                return true;
        }
    return false;
}

/* A word in lower case; returns its length. Rates have a slash. */
static size_t word_at(const char *s, char word[MOST_WORD])
{
    size_t n = 0;
    while (isalpha((unsigned char)s[n]) || (n > 0 && (s[n] == '/' || s[n] == '_')))
        n++;
    for (size_t k = 0; k < n && k < MOST_WORD - 1; k++)
        word[k] = (char)tolower((unsigned char)s[k]);
    word[n < MOST_WORD ? n : MOST_WORD - 1] = '\0';
    return n;
}

static bool is_day_or_month(const char *word)
{
    static const char *const names[] = {"mon", "tue", "wed", "thu", "fri", "sat", "sun",
                                        "jan", "feb", "mar", "apr", "may", "jun", "jul",
                                        "aug", "sep", "oct", "nov", "dec", NULL};
    char begin[4];
    snprintf(begin, sizeof begin, "%.3s", word);
    return is_one_of(begin, names);
}

/* How far masking has come in a line. */
struct masking {
    bool dated;    /* the line has a clock or a date */
    bool armed;    /* numbers vary from here on */
    bool taken;    /* there has been one */
    size_t n_open; /* fields before here whose unit may follow: the last one, or none */
};

/* Masks a field that has been added. */
static void mask_last(struct cpl_output_line *line, char **end)
{
    char *last = *end - 1;
    while (last > line->fields && last[-1])
        last--;
    last[0] = MASK;
    last[1] = '\0';
    *end = last + 2;
}

static void see_word(struct masking *m, const char *word, struct cpl_output_line *line, char **end)
{
    if (is_unit(word) && m->n_open > 0 && line->n_fields > 0)
        mask_last(line, end);
    else if (is_volatile(word)) {
        m->armed = true;
        m->taken = false;
    } else if (m->taken)
        m->armed = m->taken = false;
    m->n_open = 0;
}

/* Returns the end, where it puts a 0. */
static char *put(char *at, const char *text, size_t n)
{
    memcpy(at, text, n);
    at[n] = '\0';
    return at + n;
}

#define BAR        '|' /* between the cells of a table */
#define MOST_CELLS 32

/* The table that a line may belong to: the cells under a heading of times or shares vary. */
struct table {
    int n_bars; /* in its lines; 0: there is no table */
    bool varies[MOST_CELLS];
};

static int count_bars(const char *text)
{
    int n = 0;
    for (; (text = strchr(text, BAR)); text++)
        n++;
    return n;
}

/* Whether a cell, which ends at a bar or with the text, is the heading of what varies. */
static bool is_varying_heading(const char *cell)
{
    char word[MOST_WORD];
    for (size_t n; *cell && *cell != BAR; cell += n > 0 ? n : 1) {
        n = word_at(cell, word);
        if (*cell == '%' || (n > 0 && is_volatile(word)))
            return true;
    }
    return false;
}

static bool has_number(const char *text)
{
    for (size_t at = 0; text[at]; at++)
        if (number_at(text, at) > 0)
            return true;
    return false;
}

/* A line with bars and without numbers is a heading; a table ends with the first line that has
 * other bars, but for rules of one character. */
static void see_table(struct table *table, const char *text)
{
    int n = count_bars(text), cell = 0;
    if (n == table->n_bars || (n == 0 && strspn(text, "-=+_ ") == strlen(text)))
        return;
    *table = (struct table){.n_bars = 0};
    if (n == 0 || n >= MOST_CELLS || has_number(text))
        return;
    table->n_bars = n;
    for (const char *at = text; at; at = strchr(at, BAR)) {
        at += *at == BAR;
        table->varies[cell++] = is_varying_heading(at);
    }
}

/* Whether a character of a shape is part of a word or a number: blanks count between these only. */
static bool is_wordy(char c)
{
    return c == NUMBER || c == MASK || isalnum((unsigned char)c);
}

/* Divides a text in shape and fields. Both have room for twice the text. */
static void divide(const char *text, const struct table *table, struct cpl_output_line *line)
{
    static const char mask[] = {MASK, '\0'};
    struct masking m = {.dated = has_clock(text)};
    int cell = 0;
    bool apart = false; /* there is a blank between what was seen and what comes */
    char word[MOST_WORD], *shape = line->shape, *end = line->fields;
    for (size_t at = 0; text[at];) {
        size_t n = number_at(text, at);
        bool blank = n == 0 && isspace((unsigned char)text[at]);
        if (apart && !blank && shape > line->shape && is_wordy(shape[-1]) &&
            (n > 0 || isalnum((unsigned char)text[at])))
            *shape++ = ' ';
        apart = blank;
        if (n > 0) {
            bool masked = m.dated || m.armed || (table->n_bars > 0 && table->varies[cell]);
            end = put(end, masked ? mask : text + at, masked ? 1 : n) + 1;
            line->n_fields++;
            m.taken = m.armed;
            m.n_open = 1;
            *shape++ = NUMBER;
            at += n;
        } else if ((n = word_at(text + at, word)) > 0) {
            see_word(&m, word, line, &end);
            bool named = m.dated && is_day_or_month(word);
            shape = put(shape, named ? mask : text + at, named ? 1 : n);
            at += n;
        } else {
            if (!strchr(" \t([", text[at]))
                m.n_open = 0;
            cell += text[at] == BAR;
            if (!blank)
                *shape++ = text[at];
            at++;
        }
    }
    *shape = '\0';
}

/* Replaces the host's name. */
static void mask_host(char *text)
{
    char host[256] = "";
    if (gethostname(host, sizeof host - 1) != 0 || strlen(host) < 3)
        return;
    size_t n = strlen(host);
    for (char *at = text; (at = strstr(at, host)); at++) {
        at[0] = MASK;
        memmove(at + 1, at + n, strlen(at + n) + 1);
    }
}

/* --- reading */

static int by_shape(const void *a, const void *b)
{
    const struct cpl_output_line *x = a, *y = b;
    int order = strcmp(x->shape, y->shape);
    return order ? order : (x->number > y->number) - (x->number < y->number);
}

static bool add_line(struct cpl_output *output, size_t *room, struct table *table, char *text)
{
    size_t bytes = 2 * strlen(text) + 2;
    if (output->n == *room) {
        size_t more = *room ? 2 * *room : 64;
        struct cpl_output_line *grown = realloc(output->line, more * sizeof *grown);
        if (!grown)
            return false;
        output->line = grown;
        *room = more;
    }
    struct cpl_output_line *line = &output->line[output->n];
    *line = (struct cpl_output_line){
        .shape = calloc(1, bytes), .fields = calloc(1, bytes), .number = output->n};
    output->n++;
    if (!line->shape || !line->fields)
        return false;
    mask_host(text);
    see_table(table, text);
    divide(text, table, line);
    return true;
}

static bool add_lines(struct cpl_output *output, size_t *room, FILE *in)
{
    char *text = NULL;
    size_t size = 0;
    ssize_t n;
    struct table table = {.n_bars = 0};
    bool done = in != NULL;
    while (done && (n = getline(&text, &size, in)) >= 0) {
        while (n > 0 && isspace((unsigned char)text[n - 1]))
            text[--n] = '\0';
        done = add_line(output, room, &table, text);
    }
    done = done && !ferror(in);
    free(text);
    if (in)
        fclose(in);
    return done;
}

bool cpl_output_read(const char *file, const char *files, struct cpl_output *output)
{
    size_t room = 0;
    *output = (struct cpl_output){.n = 0};
    bool done = add_lines(output, &room, fopen(file, "r"));
    FILE *more = fopen(files, "r");
    if (more)
        done = add_lines(output, &room, more) && done;
    if (output->n > 0 && done)
        qsort(output->line, output->n, sizeof *output->line, by_shape);
    return done;
}

void cpl_output_free(struct cpl_output *output)
{
    for (size_t k = 0; k < output->n; k++) {
        free(output->line[k].shape);
        free(output->line[k].fields);
    }
    free(output->line);
    *output = (struct cpl_output){.n = 0};
}

/* --- comparing */

/* The lines of one shape. */
struct group {
    struct cpl_output_line *line;
    size_t n;
};

static struct group group_of(const struct cpl_output *output, const char *shape)
{
    size_t low = 0, high = output->n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (strcmp(output->line[middle].shape, shape) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    struct group g = {output->line + low, 0};
    while (low + g.n < output->n && strcmp(g.line[g.n].shape, shape) == 0)
        g.n++;
    return g;
}

static const char *field_of(const struct cpl_output_line *line, size_t k)
{
    const char *at = line->fields;
    for (; k > 0; k--)
        at += strlen(at) + 1;
    return at;
}

/* Compares fields but the volatile ones (NULL: all). */
static const bool *sorting_without;
static int by_fields(const void *a, const void *b)
{
    const struct cpl_output_line *x = a, *y = b;
    const char *f = x->fields, *g = y->fields;
    for (size_t k = 0; k < x->n_fields; k++) {
        int order = sorting_without && sorting_without[k] ? 0 : strcmp(f, g);
        if (order)
            return order;
        f += strlen(f) + 1;
        g += strlen(g) + 1;
    }
    return 0;
}

/* A copy of a group, sorted by its fields but the volatile ones; NULL: no memory. */
static struct cpl_output_line *sorted(struct group g, const bool *without)
{
    struct cpl_output_line *lines = calloc(g.n + 1, sizeof *lines);
    if (lines && g.n > 0) {
        memcpy(lines, g.line, g.n * sizeof *lines);
        sorting_without = without;
        qsort(lines, g.n, sizeof *lines, by_fields);
    }
    return lines;
}

/* Notes the fields in which the lines of two plain runs differ, in the order in which they came. */
static bool learn_fields(struct group a, struct group b, bool *differ)
{
    struct cpl_output_line *x = sorted(a, NULL), *y = sorted(b, NULL);
    bool done = x && y, same = true;
    for (size_t k = 0; done && k < a.n; k++)
        same = same && by_fields(&x[k], &y[k]) == 0;
    for (size_t k = 0; done && !same && k < a.n; k++)
        for (size_t f = 0; f < a.line[k].n_fields; f++)
            differ[f] |= strcmp(field_of(&a.line[k], f), field_of(&b.line[k], f)) != 0;
    free(x);
    free(y);
    return done;
}

/* A line as text, for messages. */
static void write_line(const struct cpl_output_line *line, char *text, size_t size)
{
    const char *field = line->fields;
    size_t used = 0;
    for (const char *at = line->shape; *at && used + 1 < size; at++) {
        if (*at != NUMBER) {
            text[used++] = *at;
            continue;
        }
        used += (size_t)snprintf(text + used, size - used, "%s", field);
        field += strlen(field) + 1;
        used = used < size ? used : size - 1;
    }
    text[used] = '\0';
    for (char *at = text; *at; at++)
        if (!isprint((unsigned char)*at))
            *at = '?';
}

static void note(struct cpl_difference *d, const struct cpl_output_line *plain,
                 const struct cpl_output_line *found)
{
    if (d->n++ > 0)
        return;
    d->plain[0] = d->found[0] = '\0';
    if (plain)
        write_line(plain, d->plain, sizeof d->plain);
    if (found)
        write_line(found, d->found, sizeof d->found);
}

/* Lines that only one side has are noted; `without` are the volatile fields. */
static bool compare_groups(struct group a, struct group b, const bool *without,
                           struct cpl_difference *d)
{
    struct cpl_output_line *x = sorted(a, without), *y = sorted(b, without);
    bool done = x && y;
    for (size_t i = 0, j = 0; done && (i < a.n || j < b.n);) {
        int order = i == a.n ? 1 : j == b.n ? -1 : by_fields(&x[i], &y[j]);
        if (order != 0 && i < a.n && j < b.n && a.n == b.n)
            note(d, &x[i++], &y[j++]); /* as many: they belong together */
        else if (order != 0)
            note(d, order < 0 ? &x[i] : NULL, order > 0 ? &y[j] : NULL);
        if (order == 0 || a.n != b.n) {
            i += order <= 0;
            j += order >= 0;
        }
    }
    free(x);
    free(y);
    return done;
}

/* Compares the lines of one shape, which the first plain run has. */
static bool compare_shape(const struct cpl_output *plain, size_t n, const struct cpl_output *run,
                          struct group g, struct cpl_difference *d)
{
    const char *shape = g.line->shape;
    bool varies = false, done = true, any = false;
    bool *differ = calloc(g.line->n_fields + 1, sizeof *differ);
    for (size_t p = 1; differ && p < n && done; p++) {
        struct group other = group_of(&plain[p], shape);
        varies |= other.n != g.n;
        done = varies || learn_fields(g, other, differ);
    }
    done = done && differ;
    for (size_t f = 0; done && f < g.line->n_fields; f++)
        any |= differ[f];
    d->n_own += varies || any ? g.n : 0;
    if (done && !varies)
        done = compare_groups(g, group_of(run, shape), differ, d);
    free(differ);
    return done;
}

/* How many lines of an output have shapes that the plain run has not; *first is one of them. */
static size_t count_new(const struct cpl_output *plain, const struct cpl_output *run,
                        const struct cpl_output_line **first)
{
    size_t n = 0;
    for (size_t k = 0; k < run->n; k++) {
        if (group_of(plain, run->line[k].shape).n > 0)
            continue;
        if (n++ == 0)
            *first = &run->line[k];
    }
    return n;
}

bool cpl_output_compare(const struct cpl_output *plain, size_t n, const struct cpl_output *run,
                        struct cpl_difference *d)
{
    bool done = true;
    const struct cpl_output_line *line = NULL;
    size_t n_new = count_new(plain, run, &line), allowed = 0;
    *d = (struct cpl_difference){.n_lines = plain->n};
    for (size_t k = 0; k < plain->n && done;) {
        struct group g = group_of(plain, plain->line[k].shape);
        done = compare_shape(plain, n, run, g, d);
        k += g.n;
    }
    for (size_t p = 1; p < n; p++) {
        const struct cpl_output_line *any;
        size_t own = count_new(plain, &plain[p], &any);
        allowed = own > allowed ? own : allowed;
    }
    for (size_t k = allowed; k < n_new; k++)
        note(d, NULL, line);
    return done;
}
