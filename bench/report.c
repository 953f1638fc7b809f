/* Results for people and for programs; see report.h. */
#include "report.h"

#include "common.h"

#include <inttypes.h>

enum { NAME_WIDTH = 22 };

struct report report_begin(FILE *file, int is_json)
{
    struct report report = {.file = file, .about = "", .is_json = is_json};

    if (is_json)
        putc('{', file);
    return report;
}

static void put_key(FILE *file, const char *word)
{
    for (; *word; word++)
        putc(*word == ' ' ? '_' : *word, file);
}

static void begin_value(struct report *report, const char *name, const char *unit)
{
    const char *about = report->about, *blank = *about ? " " : "";

    if (!report->is_json) {
        int pad = fprintf(report->file, "%s%s%s:", about, blank, name);
        fprintf(report->file, "%*s", pad < NAME_WIDTH ? NAME_WIDTH - pad : 1, "");
        return;
    }
    fputs(report->n_values++ > 0 ? ", \"" : "\"", report->file);
    put_key(report->file, about);
    put_key(report->file, blank);
    put_key(report->file, name);
    if (*unit) {
        putc('_', report->file);
        put_key(report->file, unit);
    }
    fputs("\": ", report->file);
}

static void end_value(struct report *report, const char *unit)
{
    if (!report->is_json)
        fprintf(report->file, "%s%s\n", *unit ? " " : "", unit);
}

static void put_json_string(FILE *file, const char *text)
{
    putc('"', file);
    for (const unsigned char *byte = (const unsigned char *)text; *byte; byte++) {
        if (*byte == '"' || *byte == '\\')
            fprintf(file, "\\%c", *byte);
        else if (*byte < ' ')
            fprintf(file, "\\u%04x", (unsigned)*byte);
        else
            putc(*byte, file);
    }
    putc('"', file);
}

void report_text(struct report *report, const char *name, const char *value)
{
    begin_value(report, name, "");
    if (report->is_json)
        put_json_string(report->file, value);
    else
        fputs(value, report->file);
    end_value(report, "");
}

void report_integer(struct report *report, const char *name, int64_t value, const char *unit)
{
    begin_value(report, name, unit);
    fprintf(report->file, "%lld", (long long)value);
    end_value(report, unit);
}

void report_real(struct report *report, const char *name, double value, int digits,
                 const char *unit)
{
    begin_value(report, name, unit);
    fprintf(report->file, "%.*f", digits, value);
    end_value(report, unit);
}

void report_quartiles(struct report *report, const char *name, double *values, size_t n, int digits,
                      const char *unit)
{
    const char *before = report->about;

    report->about = name;
    report_real(report, "median", bench_median(values, n), digits, unit);
    report_real(report, "lower quartile", bench_quantile(values, n, 0.25), digits, unit);
    report_real(report, "upper quartile", bench_quantile(values, n, 0.75), digits, unit);
    report->about = before;
}

void report_checksum(struct report *report, uint64_t sum)
{
    char digits[17];

    snprintf(digits, sizeof digits, "%016" PRIx64, sum);
    report_text(report, "checksum", digits);
}

void report_end(struct report *report)
{
    if (report->is_json)
        fputs("}\n", report->file);
    fflush(report->file);
}
