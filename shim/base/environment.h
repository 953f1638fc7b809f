/* Environment variables, without getenv: a program may have its own. Leaf module. */
#ifndef CARPOOL_ENVIRONMENT_H
#define CARPOOL_ENVIRONMENT_H

#include <stddef.h>
#include <string.h>

/* A variable's value in an environment (`environ`); NULL: it is not set. */
static inline const char *cpl_variable(char *const *environment, const char *name)
{
    size_t n = strlen(name);
    for (char *const *at = environment; at && *at; at++)
        if (strncmp(*at, name, n) == 0 && (*at)[n] == '=')
            return *at + n + 1;
    return NULL;
}

#endif
