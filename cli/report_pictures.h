/* The pictures of an exchange on the report's page, from its element of the report. What the
 * element lacks is left out. The caller looks at the stream's errors. */
#ifndef CARPOOL_REPORT_PICTURES_H
#define CARPOOL_REPORT_PICTURES_H

#include <jansson.h>
#include <stdio.h>

void cpl_html_heats(FILE *out, const json_t *p); /* who sends to whom: messages, bytes; nodes */
void cpl_html_loads(FILE *out, const json_t *p); /* messages of each rank */
void cpl_html_times(FILE *out, const json_t *p); /* measured, modelled */
void cpl_html_sizes(FILE *out, const json_t *p); /* how many messages of which size */

#endif
