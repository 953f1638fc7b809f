/* Planning on a thread of the rank that plans, while the program goes on. The thread looks at what
 * it was given only, and makes no MPI calls. Local; the program's side is called by one thread at a
 * time. */
#ifndef CARPOOL_PLAN_ASIDE_H
#define CARPOOL_PLAN_ASIDE_H

#include "planner/keep/plan_file.h"

#include <stdbool.h>

/* Makes plans for a key; sets set->ms, too. Runs on the thread. */
typedef enum cpl_status cpl_aside_planner(const struct cpl_strategy_input *input,
                                          const struct cpl_strategy_choice *choice, int most,
                                          struct cpl_plan_set *set, struct cpl_error *error);

/* What is to be planned: the pattern and the machine, which `begin` takes over when it returns
 * true. */
struct cpl_aside_task {
    struct cpl_pattern *pattern;
    struct cpl_machine *machine;
    const struct cpl_strategy_choice *choice;
    cpl_aside_planner *planner;
    double ms; /* that it takes about, for simulators */
};

/* Plans on the thread, behind what it has to do. Returns false when that cannot be: without memory,
 * without a thread, when it has much to do, or because these plans are there already. */
bool cpl_aside_begin(const struct cpl_plan_key *key, const struct cpl_aside_task *task);

/* Whether the thread has plans to make. */
bool cpl_aside_is_busy(void);

/* The plans of a key, if the thread has made them for messages between the same ranks, which may
 * have had other sizes: they become the caller's, and *pattern, which is the key's, becomes the one
 * that they were made for. */
bool cpl_aside_take(const struct cpl_plan_key *key, struct cpl_pattern *pattern,
                    struct cpl_plan_set *set);

/* Forgets all plans. Does not wait for the thread. */
void cpl_aside_end(void);

#endif
