/* The cost of packing and unpacking data, without messages. Local. */
#ifndef CARPOOL_CALIBRATE_MEMORY_H
#define CARPOOL_CALIBRATE_MEMORY_H

/* segment_ns: nanoseconds to copy a short segment by a call from somewhere in the cache to the end
 * of a combined message, or back. item_ns: nanoseconds to copy an item of 8 bytes in a loop over
 * item numbers. Both are medians; each takes a few milliseconds. Returns 0, or -1 when there is no
 * memory. */
int cpl_memory_measure(double *segment_ns, double *item_ns);

#endif
