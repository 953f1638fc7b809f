/* What it costs to put data together and to take it apart, without messages. Local. */
#ifndef CARPOOL_CALIBRATE_MEMORY_H
#define CARPOOL_CALIBRATE_MEMORY_H

/* Nanoseconds per short segment that is copied by a call from somewhere in the cache to the end of
 * a combined message, or back; per item of 8 bytes that is copied by a loop over numbers of items.
 * Medians; a few milliseconds each. Returns 0, or -1 when there is no memory. */
int cpl_memory_measure(double *segment_ns, double *item_ns);

#endif
