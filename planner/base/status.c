/* Failure texts (status.h). */
#include "planner/status.h"

#include <stdarg.h>
#include <stdio.h>

const char *cpl_status_text(enum cpl_status status)
{
    switch (status) {
    case CPL_OK:
        return "success";
    case CPL_ERR_ARG:
        return "argument out of range";
    case CPL_ERR_NOMEM:
        return "out of memory";
    case CPL_ERR_IO:
        return "file error";
    case CPL_ERR_FORMAT:
        return "malformed input";
    case CPL_ERR_UNFIT:
        return "strategy does not fit";
    case CPL_ERR_BROKEN:
        return "plan invariant violated";
    }
    return "unknown status";
}

enum cpl_status cpl_fail(struct cpl_error *error, enum cpl_status status, const char *format, ...)
{
    if (error) {
        va_list args;
        va_start(args, format);
        vsnprintf(error->text, sizeof error->text, format, args);
        va_end(args);
        /* Names of files and other things that are quoted may hold anything. */
        for (char *at = error->text; *at; at++)
            if ((unsigned char)*at < ' ')
                *at = '?';
    }
    return status;
}

enum cpl_status cpl_fail_memory(struct cpl_error *error, const char *what)
{
    return cpl_fail(error, CPL_ERR_NOMEM, "no memory for %s", what);
}
