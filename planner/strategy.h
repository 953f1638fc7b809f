/* Strategies: ways to plan. One row of one table each (strategy.c); a strategy is selected by text
 * such as "direct", "share", "share:1" or "vpt:3", in `carpool plan` and in CARPOOL_STRATEGY alike.
 */
#ifndef CARPOOL_STRATEGY_H
#define CARPOOL_STRATEGY_H

#include "machine.h"
#include "pattern.h"
#include "plan.h"
#include "routes.h"
#include "status.h"

#include <stddef.h>
#include <stdint.h>

/* What a strategy may look at. */
struct cpl_strategy_input {
    const struct cpl_pattern *pattern;
    const struct cpl_machine *machine; /* same number of ranks */
    double unit_bytes;                 /* bytes of a unit of volume */
};

struct cpl_strategy {
    const char *name;
    const char *parameter;     /* how the part after ':' is written, NULL when there is none */
    int32_t parameter_default; /* when the text has none; 0: it must have one */
    int32_t parameter_min;
    int32_t parameter_max; /* of any number of ranks; the route function knows the pattern's own
                              limit */
    const char *doc;       /* one sentence, with the paper it comes from */
    /* Routes for the input's pattern. Returns CPL_OK, CPL_ERR_UNFIT with a text that says which
     * parameters would fit, CPL_ERR_NOMEM. */
    enum cpl_status (*route)(const struct cpl_strategy_input *input, int32_t parameter,
                             struct cpl_routes *routes, struct cpl_error *error);
};

/* A strategy with its parameter, as parsed from text. */
struct cpl_strategy_choice {
    const struct cpl_strategy *strategy; /* NULL for "auto" */
    int32_t parameter;
};

#define CPL_STRATEGY_TEXT 24 /* bytes that hold any choice as text */

/* The table; *n rows. "auto" is not in it. */
const struct cpl_strategy *cpl_strategy_table(size_t *n);

/* Parses "NAME" or "NAME:PARAMETER"; "auto" too. Returns CPL_OK or CPL_ERR_ARG with a text that
 * names what would be accepted. */
enum cpl_status cpl_strategy_parse(const char *text, struct cpl_strategy_choice *choice,
                                   struct cpl_error *error);

/* The canonical text of a choice ("share:1"; a parameter equal to the default is left out). */
void cpl_strategy_format(const struct cpl_strategy_choice *choice, char text[CPL_STRATEGY_TEXT]);

/* All choices that fit n_ranks ranks, in the order of the table with every parameter that makes
 * sense: what `all` and `auto` try. At most max are stored; the number stored is returned. */
size_t cpl_strategy_candidates(int32_t n_ranks, struct cpl_strategy_choice *choices, size_t max);

#define CPL_MAX_CANDIDATES 64

/* Plans the input's pattern by one choice, which must not be "auto". Returns what the route
 * function or cpl_plan_build returns. The caller frees *plan. */
enum cpl_status cpl_strategy_plan(const struct cpl_strategy_input *input,
                                  const struct cpl_strategy_choice *choice, struct cpl_plan *plan,
                                  struct cpl_error *error);

/* Plans by every candidate and keeps the plan with the smallest modelled time; of equal ones the
 * first of the table (direct before all others). *choice tells which. Returns CPL_OK,
 * CPL_ERR_NOMEM. The caller frees *plan. */
enum cpl_status cpl_strategy_plan_auto(const struct cpl_strategy_input *input,
                                       struct cpl_strategy_choice *choice, struct cpl_plan *plan,
                                       struct cpl_error *error);

/* Route functions of the table's rows; each has a file of its own, which says what it does. */
enum cpl_status cpl_direct_route(const struct cpl_strategy_input *input, int32_t parameter,
                                 struct cpl_routes *routes, struct cpl_error *error);
enum cpl_status cpl_share_route(const struct cpl_strategy_input *input, int32_t parameter,
                                struct cpl_routes *routes, struct cpl_error *error);
enum cpl_status cpl_vpt_route(const struct cpl_strategy_input *input, int32_t parameter,
                              struct cpl_routes *routes, struct cpl_error *error);

#endif
