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

void cpl_log_plain(const char *text)
{
    CPL_ASIDE;
    char line[1100];
    int n = snprintf(line, sizeof line, "carpool: %s\n", text);
    if (n > 0 && (size_t)n < sizeof line) {
        ssize_t written = write(STDERR_FILENO, line, (size_t)n);
        (void)written;
    }
}

void cpl_log_write(enum cpl_log_level level, const char *component, const char *format, ...)
{
    static const char *const names[] = {"error", "warn", "info", "debug", "trace"};
    CPL_ASIDE;
    char line[1024];
    int used =
        log_rank < 0
            ? snprintf(line, sizeof line, "carpool %s %s: ", names[level], component)
            : snprintf(line, sizeof line, "carpool[%d] %s %s: ", log_rank, names[level], component);
    if (used < 0)
        return;
    va_list args;
    va_start(args, format);
    int more = vsnprintf(line + used, sizeof line - 1 - (size_t)used, format, args);
    va_end(args);
    if (more < 0)
        return;
    size_t length = strlen(line);
    line[length++] = '\n';
    ssize_t written = write(STDERR_FILENO, line, length);
    (void)written; /* there is nowhere to report that stderr is gone */
}
