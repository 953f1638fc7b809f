/* Work of the library's own that the program must not notice: from CPL_ASIDE to the end of the
 * block
 *
 * - floating-point arithmetic is done as the standard says, whatever the program has set: no traps,
 *   rounding to nearest. Afterwards its flags, its rounding and its traps are as they were;
 * - a file that becomes larger than RLIMIT_FSIZE is an error, no signal.
 *
 * Work of the program's that is done meanwhile, as adding up for a reduction of its own, is done in
 * CPL_AS_PROGRAM: under its settings, and the flags that it raises are the program's.
 *
 * Costs some system calls. Local to the calling thread. Leaf module. */
#ifndef CARPOOL_ASIDE_H
#define CARPOOL_ASIDE_H

#include <fenv.h>
#include <signal.h>
#include <stdbool.h>

struct cpl_aside {
    fenv_t floats;
    sigset_t mask; /* the thread's signal mask before */
    bool waits;    /* a signal about a file's size was already waiting */
    struct cpl_aside *outer;
};

/* Within CPL_ASIDE, the program's environment again; else nothing. */
struct cpl_as_program {
    struct cpl_aside *outermost; /* NULL: nothing is to be put back */
    fenv_t own;
};

void cpl_aside_begin(struct cpl_aside *aside);
void cpl_aside_end(struct cpl_aside *aside);
void cpl_as_program_begin(struct cpl_as_program *as, bool wanted);
void cpl_as_program_end(struct cpl_as_program *as);

#ifdef CPL_SIMULATED /* simulated ranks take turns within such blocks */
#define CPL_ASIDE              (void)0
#define CPL_AS_PROGRAM(wanted) (void)(wanted)
#else
#define CPL_ASIDE                                                                                  \
    __attribute__((cleanup(cpl_aside_end))) struct cpl_aside cpl_aside_;                           \
    cpl_aside_begin(&cpl_aside_)
#define CPL_AS_PROGRAM(wanted)                                                                     \
    __attribute__((cleanup(cpl_as_program_end))) struct cpl_as_program cpl_as_program_;            \
    cpl_as_program_begin(&cpl_as_program_, wanted)
#endif

#endif
