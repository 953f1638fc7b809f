/* Plans kept in a directory, a file for each key (plan_file.h), named by the key's hash. Files are
 * written under another name and renamed, so that programs that run at the same time never see half
 * a file; when two keep plans of the same key, the later file stays. Any file may be removed at any
 * time.
 *
 * Thread rule: no state, safe from any thread. */
#ifndef CARPOOL_PLAN_CACHE_H
#define CARPOOL_PLAN_CACHE_H

#include "planner/keep/plan_file.h"

#include <stdbool.h>

/* Looks plans up. *found becomes whether there is a file for the key; only then *set is filled, and
 * the caller frees it. Returns CPL_OK, CPL_ERR_IO (the file cannot be read, or is no plain file),
 * or what cpl_plan_file_take returns; the error text names the file. */
enum cpl_status cpl_plan_cache_find(const char *directory, const struct cpl_plan_key *key,
                                    struct cpl_plan_set *set, bool *found, struct cpl_error *error);

/* Keeps plans, and replaces those that were kept for the key. Returns CPL_OK, CPL_ERR_IO with a
 * text that names the file, CPL_ERR_NOMEM. */
enum cpl_status cpl_plan_cache_keep(const char *directory, const struct cpl_plan_key *key,
                                    const struct cpl_plan_set *set, struct cpl_error *error);

#endif
