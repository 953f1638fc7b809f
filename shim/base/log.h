/* Messages to the user: one line each on stderr, `carpool[RANK] LEVEL COMPONENT: text`, written by
 * one write(2) so that lines of several ranks do not mix. Messages less important than the
 * threshold are not formatted. Leaf module. */
#ifndef CARPOOL_LOG_H
#define CARPOOL_LOG_H

/* error: a fault; warn: something that the user should change; info: a decision. Errors and
 * warnings are shown by default. plain: output that the user asked for, "carpool: TEXT". */
enum cpl_log_level { CPL_LOG_PLAIN = -1, CPL_LOG_ERROR, CPL_LOG_WARN, CPL_LOG_INFO };

/* Sets the rank that marks the lines (-1: not known yet), and the least important level shown. */
void cpl_log_init(int rank, enum cpl_log_level threshold);

/* The present threshold, for the macro below. */
extern enum cpl_log_level cpl_log_threshold;

/* Writes a line; use cpl_log. */
void cpl_log_write(enum cpl_log_level level, const char *component, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#define cpl_log_plain(...) cpl_log_write(CPL_LOG_PLAIN, "", __VA_ARGS__)

#define cpl_log(level, component, ...)                                                             \
    do {                                                                                           \
        if ((level) <= cpl_log_threshold)                                                          \
            cpl_log_write((level), (component), __VA_ARGS__);                                      \
    } while (0)

#endif
