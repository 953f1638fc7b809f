/* Messages to the user (log.h). */
#include "shim/base/log.h"

#include "shim/base/aside.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum cpl_log_level cpl_log_threshold = CPL_LOG_WARN;
static int log_rank = -1;

void cpl_log_init(int rank, enum cpl_log_level threshold)
{
    log_rank = rank;
    cpl_log_threshold = threshold;
}

static void put(const char *head, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));
static void put(const char *head, const char *format, va_list args)
{
    CPL_ASIDE;
    char line[1100];
    int used = snprintf(line, sizeof line, "%s: ", head);
    if (used < 0 || vsnprintf(line + used, sizeof line - 1 - (size_t)used, format, args) < 0)
        return;
    size_t length = strlen(line);
    line[length++] = '\n';
    ssize_t written = write(STDERR_FILENO, line, length);
    (void)written; /* there is nowhere to report that stderr is gone */
}

void cpl_log_plain(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    put("carpool", format, args);
    va_end(args);
}

void cpl_log_write(enum cpl_log_level level, const char *component, const char *format, ...)
{
    static const char *const names[] = {"error", "warn", "info"};
    char head[80], rank[20] = "";
    if (log_rank >= 0)
        snprintf(rank, sizeof rank, "[%d]", log_rank);
    snprintf(head, sizeof head, "carpool%s %s %s", rank, names[level], component);
    va_list args;
    va_start(args, format);
    put(head, format, args);
    va_end(args);
}
