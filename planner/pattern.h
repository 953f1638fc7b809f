/* Communication patterns: who has a message for whom in an exchange that recurs, as a sparse P x P
 * matrix in compressed row storage (thesis 2.2).
 *
 * Order of calls: fill an array of struct cpl_pattern_entry (or read a file), build, use,
 * cpl_pattern_free. A built pattern never changes. Cost: building sorts by counting, O(messages +
 * ranks). Thread rule: a built pattern may be read by any number of threads. */
#ifndef CARPOOL_PATTERN_H
#define CARPOOL_PATTERN_H

#include "arena.h"
#include "status.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The largest number of ranks a pattern may have. */
#define CPL_MAX_RANKS (1 << 24)

/* The messages of one exchange. Message m of rank i (first[i] <= m < first[i + 1]) goes to dst[m].
 * Destinations of a rank ascend, none is the rank itself.
 *
 * What a rank sends to another may be divided into parts of different payload classes, to tell
 * bytes that go to several ranks from bytes that go to one. Every part is a message here: a
 * destination occurs once per part, and its parts ascend by class, no class twice. `pairs` is then
 * the same pattern undivided, for callers that ask who sends to whom and not what. */
struct cpl_pattern {
    int32_t n_ranks;
    int64_t n_messages; /* counts every part */
    int64_t *first;     /* n_ranks + 1 entries */
    int32_t *dst;       /* n_messages entries, ranks */
    int64_t
        *volume; /* n_messages entries, in units of the caller's choice (bytes in the shim), >= 0 */
    int32_t *
        payload_class; /* NULL, or n_messages entries: messages of one rank with the same class >= 0
                        * carry the same payload and may share one copy; -1: a payload of its own */
    int64_t n_self;    /* dropped entries from a rank to itself: they need no message */
    int64_t n_merged;  /* entries that were merged into an earlier one with the same source,
                          destination and class */
    const struct cpl_pattern *pairs; /* NULL when no destination of a rank occurs twice; else the
                                      * pattern with one message for each source and destination,
                                      * volumes added up, without classes */
    struct cpl_arena arena;          /* owns the arrays */
};

/* One entry as it comes from a file or from a rank's send list. */
struct cpl_pattern_entry {
    int32_t src;
    int32_t dst;
    int64_t volume;
    int32_t payload_class; /* -1 for none */
};

/* Builds a pattern of n_ranks ranks from n_entries entries in any order. Entries with the same
 * source, destination and class (-1 counts as a class) are merged and their volumes added up;
 * entries of a rank to itself are dropped; n_merged and n_self count both. Entries of the same
 * source and destination but of different classes become parts. O(entries + ranks), plus sorting
 * the entries by class when classes differ. Returns CPL_OK, CPL_ERR_ARG (a rank out of range, a
 * negative volume, an overflowing sum, n_ranks outside 1..CPL_MAX_RANKS), CPL_ERR_NOMEM. On success
 * the caller owns *pattern and frees it with cpl_pattern_free. */
enum cpl_status cpl_pattern_build(int32_t n_ranks, const struct cpl_pattern_entry *entries,
                                  int64_t n_entries, struct cpl_pattern *pattern,
                                  struct cpl_error *error);

/* Reads a pattern from a file; gzip-compressed files too when the library was built with zlib. The
 * first line decides the format:
 *  - "%%MatrixMarket matrix coordinate real|integer|pattern general|symmetric|skew-symmetric":
 * entry (i, j) with value v means that rank i-1 sends v units to rank j-1 (1 unit for pattern
 * files); rows and columns must agree in number, values must be whole numbers >= 0 (of
 * skew-symmetric matrices the absolute values are taken);
 *  - otherwise text: `#` starts a comment, the first number is P, then lines "src dst volume",
 * 0-based, or "src dst : item item ...": src sends these items to dst, a unit of volume each; items
 * are distinct whole numbers >= 0 that src chooses. Lines with the same two ranks add up: their
 * volumes, and the union of their items. Items of a rank that go to the same set of several
 * destinations make a payload class; classes of a rank are numbered from 0 by their smallest items.
 * Returns CPL_OK, CPL_ERR_IO (cannot be opened or read), CPL_ERR_FORMAT (text "FILE:LINE: what is
 * wrong"), CPL_ERR_NOMEM. */
enum cpl_status cpl_pattern_read(const char *file, struct cpl_pattern *pattern,
                                 struct cpl_error *error);

/* Writes the pattern as a Matrix Market coordinate integer general matrix: one entry per pair of
 * ranks, no classes. Returns CPL_OK or CPL_ERR_IO. */
enum cpl_status cpl_pattern_write(const struct cpl_pattern *pattern, const char *file,
                                  struct cpl_error *error);

/* The pattern with one message for each source and destination: itself when it has no parts. */
static inline const struct cpl_pattern *cpl_pattern_pairs(const struct cpl_pattern *pattern)
{
    return pattern->pairs ? pattern->pairs : pattern;
}

/* The most messages that any rank sends. */
int64_t cpl_pattern_most_sends(const struct cpl_pattern *pattern);

/* Number of messages that rank sends, counting every part. */
static inline int64_t cpl_pattern_sends(const struct cpl_pattern *pattern, int32_t rank)
{
    return pattern->first[rank + 1] - pattern->first[rank];
}

/* leader[m] (n_messages entries) becomes the first message of the same rank and payload class as
 * message m, m itself for a payload of its own. Returns CPL_OK, CPL_ERR_NOMEM. O(messages), or with
 * very large class numbers O(messages log messages). */
enum cpl_status cpl_pattern_leaders(const struct cpl_pattern *pattern, int64_t *leader);

/* A 64-bit fingerprint of ranks, destinations, volumes and classes: equal patterns have equal
 * fingerprints on every machine and compiler. */
uint64_t cpl_pattern_fingerprint(const struct cpl_pattern *pattern);

/* The fingerprint is made of a hash for each row, whose sum is joined with the number of ranks: so
 * ranks that know only their own row can compute it together. The hash is that of row i for the
 * rank that has the number `rank`; rank_of[k] is the rank that the pattern calls k, NULL: k. */
uint64_t cpl_pattern_row_hash(const struct cpl_pattern *pattern, int32_t i, int32_t rank,
                              const int32_t *rank_of);
uint64_t cpl_pattern_join_hashes(int32_t n_ranks, uint64_t rows);

/* Releases the pattern's memory; the struct may be built again. */
void cpl_pattern_free(struct cpl_pattern *pattern);

#ifdef __cplusplus
}
#endif

#endif
