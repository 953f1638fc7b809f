/* Writing patterns (pattern.h) as Matrix Market coordinate files (Boisvert, Pozo, Remington, NISTIR
 * 5935). The format has no place for payload classes, so they are not written, and parts are added
 * up. */
#include "planner/pattern.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool write_matrix(const struct cpl_pattern *pattern, FILE *out)
{
    fprintf(out,
            "%%%%MatrixMarket matrix coordinate integer general\n"
            "%% rank ROW-1 sends VALUE units to rank COLUMN-1\n"
            "%" PRId32 " %" PRId32 " %" PRId64 "\n",
            pattern->n_ranks, pattern->n_ranks, pattern->n_messages);
    for (int32_t i = 0; i < pattern->n_ranks && !ferror(out); i++)
        for (int64_t m = pattern->first[i]; m < pattern->first[i + 1]; m++)
            fprintf(out, "%" PRId32 " %" PRId32 " %" PRId64 "\n", i + 1, pattern->dst[m] + 1,
                    pattern->volume[m]);
    return !fflush(out) && !ferror(out);
}

enum cpl_status cpl_pattern_write(const struct cpl_pattern *pattern, const char *file,
                                  struct cpl_error *error)
{
    FILE *out = fopen(file, "w");
    if (!out)
        return cpl_fail(error, CPL_ERR_IO, "%.200s: cannot be created: %s", file, strerror(errno));
    errno = 0;
    bool is_written = write_matrix(cpl_pattern_pairs(pattern), out);
    int code = errno;
    /* Some file systems report a full disk only here. */
    if (fclose(out) && is_written) {
        is_written = false;
        code = errno;
    }
    if (!is_written)
        return cpl_fail(error, CPL_ERR_IO, "%.200s: cannot be written: %s", file,
                        code ? strerror(code) : "unknown reason");
    return CPL_OK;
}
