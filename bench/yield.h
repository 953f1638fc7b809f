/* What libyield.so's files share: what happens around a progress call of MPI (yield.c), and the
 * hooks that notice the calls. */
#ifndef CARPOOL_YIELD_H
#define CARPOOL_YIELD_H

#include <stdbool.h>

/* After a progress call: whether it found something to do. May give up the processor. */
void cpl_yield_progressed(bool found);

/* Before MPI ends: back to the scheduler that processes begin with. */
void cpl_yield_end(void);

/* The next definition of a function after this library's, or that of a library that was loaded
 * apart. Copies its address; false: there is none. */
bool cpl_yield_look_up(const char *symbol, const char *library, void *function);

#endif
