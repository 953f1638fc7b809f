/* Reading patterns from an opened text, for cpl_pattern_read and for callers whose text lies in
 * memory (the fuzz test). */
#ifndef CARPOOL_PATTERN_READ_H
#define CARPOOL_PATTERN_READ_H

#include "planner/base/text_reader.h"
#include "planner/pattern.h"

/* Reads a pattern from a reader at its start; the caller closes the reader. Returns what
 * cpl_pattern_read does. */
enum cpl_status cpl_pattern_read_text(struct cpl_text_reader *reader, struct cpl_pattern *pattern,
                                      struct cpl_error *error);

#endif
