/* Plans as bytes, for keeping them. The plans of a pattern are stored with everything that they
 * were made from, so that they are only used where the same plans would be made again.
 *
 * A file has a header (format, byte order, length), a table of sections with their checksums, and
 * the sections: the key, how the plans were made, and each plan's edges and segments. Bundles,
 * volumes and fingerprints follow from the pattern and are computed anew.
 *
 * Cost: O(size). Reading also checks the plans (cpl_plan_check), which takes about as long as all
 * the rest. Thread rule: no state, safe from any thread. */
#ifndef CARPOOL_PLAN_FILE_H
#define CARPOOL_PLAN_FILE_H

#include "planner/base/bytes.h"
#include "planner/plan.h"
#include "planner/status.h"
#include "planner/strategy.h"

#include <stddef.h>
#include <stdint.h>

/* The most plans in a file. */
#define CPL_MOST_KEPT 4

/* Everything that plans depend on. */
struct cpl_plan_key {
    const char *version;  /* Carpool's version: another version may plan differently */
    const char *strategy; /* as cpl_strategy_format writes it */
    int32_t most;         /* plans that were asked for, 1 .. CPL_MOST_KEPT */
    const struct cpl_strategy_input *input; /* pattern with volumes, machine, unit, budget */
};

/* Plans of one pattern, fastest by the model first. */
struct cpl_plan_set {
    int32_t n; /* 1 .. CPL_MOST_KEPT */
    struct cpl_strategy_choice choice[CPL_MOST_KEPT];
    struct cpl_plan plan[CPL_MOST_KEPT];
    double ms; /* milliseconds that planning took, >= 0 */
};

void cpl_plan_set_free(struct cpl_plan_set *set);

/* Writes the key alone, for its hash. Look at key_bytes->failed afterwards. The caller frees it. */
void cpl_plan_key_put(const struct cpl_plan_key *key, struct cpl_bytes *key_bytes);

/* Writes a whole file. key_bytes comes from cpl_plan_key_put. Look at file->failed afterwards. The
 * caller frees it. */
void cpl_plan_file_put(const struct cpl_bytes *key_bytes, const struct cpl_plan_set *set,
                       struct cpl_bytes *file);

/* Reads the plans of a key from the n bytes of a file, in memory aligned to 8 bytes; key_bytes
 * comes from cpl_plan_key_put and is compared in full. Returns CPL_OK (the caller frees *set),
 * CPL_ERR_FORMAT (not a file of plans, cut off or damaged), CPL_ERR_UNFIT (another format, byte
 * order or key), CPL_ERR_BROKEN (whole, but not a plan of this pattern), CPL_ERR_NOMEM.
 */
enum cpl_status cpl_plan_file_take(const unsigned char *file, size_t n,
                                   const struct cpl_plan_key *key,
                                   const struct cpl_bytes *key_bytes, struct cpl_plan_set *set,
                                   struct cpl_error *error);

#endif
