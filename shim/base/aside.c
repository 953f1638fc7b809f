/* Work that the program must not notice (aside.h). */
#include "shim/base/aside.h"

#include <pthread.h>
#include <time.h>

/* The calling thread's innermost one. */
static __thread struct cpl_aside *innermost __attribute__((tls_model("initial-exec")));

static void only_file_size(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGXFSZ);
}

static bool is_waiting(void)
{
    sigset_t pending;
    return sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ);
}

void cpl_aside_begin(struct cpl_aside *aside)
{
    sigset_t own;
    fegetenv(&aside->floats);
    fesetenv(FE_DFL_ENV);
    only_file_size(&own);
    aside->waits = is_waiting();
    pthread_sigmask(SIG_BLOCK, &own, &aside->mask);
    aside->outer = innermost;
    innermost = aside;
}

void cpl_aside_end(struct cpl_aside *aside)
{
    static const struct timespec at_once;
    sigset_t own;
    innermost = aside->outer;
    only_file_size(&own);
    if (!aside->waits && is_waiting())
        sigtimedwait(&own, NULL, &at_once);
    pthread_sigmask(SIG_SETMASK, &aside->mask, NULL);
    fesetenv(&aside->floats);
}

void cpl_as_program_begin(struct cpl_as_program *as, bool wanted)
{
    as->outermost = wanted ? innermost : NULL;
    if (!as->outermost)
        return;
    while (as->outermost->outer)
        as->outermost = as->outermost->outer;
    fegetenv(&as->own);
    fesetenv(&as->outermost->floats);
}

void cpl_as_program_end(struct cpl_as_program *as)
{
    if (!as->outermost)
        return;
    fegetenv(&as->outermost->floats);
    fesetenv(&as->own);
}
