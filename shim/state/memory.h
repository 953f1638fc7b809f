/* Memory that a rank cannot do without, because the others would wait for it: it waits for some. */
#ifndef CARPOOL_MEMORY_H
#define CARPOOL_MEMORY_H

/* After an attempt that failed for lack of memory; *tries is 0 at the first one. Gives back what
 * was put by, later waits a millisecond, and returns: try again. After a second without success it
 * says what there is no memory for and ends the program. */
void cpl_memory_wait(int *tries, const char *what);

/* Puts some memory by, if there is none yet; gives it back for good. */
void cpl_memory_put_by(void);
void cpl_memory_free(void);

#endif
