/* Arguments of programs (arguments.h). */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* getopt_long */
#endif
#include "arguments.h"

int bench_read_options(int n_arguments, char **arguments, const struct option *names,
                       bench_option *take, void *options, struct bench_error *error)
{
    int letter;

    opterr = 0; /* rank 0 alone prints */
    while ((letter = getopt_long(n_arguments, arguments, ":", names, NULL)) != -1) {
        if (letter == ':')
            return bench_fail(error, "%s wants a value", arguments[optind - 1]);
        if (letter == '?')
            return bench_fail(error, "unknown option %s", arguments[optind - 1]);
        if (take(letter, options, error) != 0)
            return -1;
    }
    return 0;
}

int bench_read_number(const char *name, int64_t least, int64_t most, int64_t *value,
                      struct bench_error *error)
{
    if (bench_parse_integer(optarg, least, most, value) == 0)
        return 0;
    return bench_fail(error, "--%s wants a number from %lld to %lld, not '%s'", name,
                      (long long)least, (long long)most, optarg);
}
