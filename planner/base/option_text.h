/* What is wrong with an option of the commands. Leaf module. */
#ifndef CARPOOL_OPTION_TEXT_H
#define CARPOOL_OPTION_TEXT_H

#include <getopt.h>
#include <stddef.h>

/* After getopt_long has returned '?' or ':' (opterr 0, a short-option string that begins with ':'):
 * says in at most size bytes what is wrong with the option at which it stopped, and which known
 * option is nearest. known is the table that getopt_long got, at least one row. */
void cpl_option_text(int result, char *const *argv, const struct option *known, char *text,
                     size_t size);

#endif
