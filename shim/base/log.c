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

void cpl_log_write(enum cpl_log_level level, const char *component, const char *format, ...)
{
    CPL_ASIDE;
    static const char *const names[] = {"error", "warn", "info"};
    char line[1200], rank[20] = "";
    if (log_rank >= 0)
        snprintf(rank, sizeof rank, "[%d]", log_rank);
    int used = level == CPL_LOG_PLAIN ? snprintf(line, sizeof line, "carpool: ")
                                      : snprintf(line, sizeof line, "carpool%s %s %s: ", rank,
                                                 names[level], component);
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
