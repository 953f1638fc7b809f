/* Strategies: methods of planning. Each is a row of one table (strategy.c) and is selected by a
 * text such as "direct", "share:1", "vpt:3" or "grid:8x8x8", in `carpool plan` and in
 * CARPOOL_STRATEGY. */
#ifndef CARPOOL_STRATEGY_H
#define CARPOOL_STRATEGY_H

#include "machine.h"
#include "pattern.h"
#include "plan.h"
#include "routes.h"
#include "status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a strategy may look at. */
struct cpl_strategy_input {
    const struct cpl_pattern *pattern;
    const struct cpl_machine *machine; /* has the pattern's number of ranks */
    double unit_bytes;                 /* bytes of a unit of volume */
    double budget_ms; /* budget for searching, in nominal milliseconds. It is turned into a number
                         of steps, so that the same input gives the same plan on every machine,
                         however fast. Only strategies that search (balance) and auto spend it */
};

/* The default budget, in nominal milliseconds. */
#define CPL_DEFAULT_BUDGET_MS 500

#define CPL_MAX_NUMBERS 27 /* CPL_MAX_DIMENSIONS (grid.h) + 3 */

/* The part of a strategy's text after ':', as numbers whose meaning is the strategy's own. */
struct cpl_strategy_numbers {
    int32_t n;
    int32_t at[CPL_MAX_NUMBERS];
};

#define CPL_STRATEGY_TEXT 96 /* bytes that hold any choice as text */

struct cpl_strategy;
struct cpl_strategy_list;
struct cpl_router;

struct cpl_strategy {
    const char *name;
    const char *parameter; /* how the part after ':' is written, NULL when there is none */
    /* What it does in a phrase, with the paper it comes from. `sh doc/generate.sh` writes it into
     * carpool(1). */
    const char *doc;
    /* What tests try of it, as in "vpt:2, vpt:3"; NULL when there is no parameter: its name. From
     * two ranks on they fit any number, or tests/mpi/run-matrix.sh says what they fit. */
    const char *examples;
    bool searches; /* spends the budget, and starts from the other strategies' plans */
    /* The most combined messages that one message rides in, for numbers that fit the input. The
     * pattern's messages are not looked at. */
    int32_t (*most_hops)(const struct cpl_strategy_input *input,
                         const struct cpl_strategy_numbers *numbers);
    /* Parses the part after ':' (NULL: there is none). Returns CPL_OK, CPL_ERR_ARG with a text that
     * names what would be accepted. NULL when there is no parameter. */
    enum cpl_status (*parse)(const struct cpl_strategy *strategy, const char *text,
                             struct cpl_strategy_numbers *numbers, struct cpl_error *error);
    /* Writes the part after ':' in its canonical form; nothing when it may be left out. NULL when
     * there is no parameter. */
    void (*format)(const struct cpl_strategy_numbers *numbers, char text[CPL_STRATEGY_TEXT]);
    /* Adds the numbers worth trying for the input by cpl_strategy_add. NULL: `auto` and `all` do
     * not try it. */
    void (*candidates)(const struct cpl_strategy *strategy, const struct cpl_strategy_input *input,
                       struct cpl_strategy_list *list);
    /* Whether `auto` tries such a candidate for the input's pattern; where not, another candidate
     * does the same. Returns CPL_OK, CPL_ERR_NOMEM. NULL: always. */
    enum cpl_status (*applies)(const struct cpl_strategy_input *input,
                               const struct cpl_strategy_numbers *numbers, bool *does,
                               struct cpl_error *error);
    /* Routes for the input's pattern, which has no parts (pattern.h) unless the strategy searches;
     * others call cpl_strategy_route. Returns CPL_OK, CPL_ERR_UNFIT with a text that says which
     * parameters would fit, CPL_ERR_NOMEM. */
    enum cpl_status (*route)(const struct cpl_strategy_input *input,
                             const struct cpl_strategy_numbers *numbers, struct cpl_routes *routes,
                             struct cpl_error *error);
    /* Where routes hang on no other messages: makes the router that gives the same routes, for the
     * input's machine and number of ranks; the pattern's messages are not looked at. Returns
     * CPL_OK (the caller frees *router with cpl_router_free), CPL_ERR_UNFIT, CPL_ERR_NOMEM. NULL:
     * they hang on the whole pattern. */
    enum cpl_status (*router)(const struct cpl_strategy_input *input,
                              const struct cpl_strategy_numbers *numbers, struct cpl_router *router,
                              struct cpl_error *error);
};

/* A strategy with its parameter, as parsed from text. */
struct cpl_strategy_choice {
    const struct cpl_strategy *strategy; /* NULL for "auto" */
    struct cpl_strategy_numbers numbers;
};

#define CPL_MAX_CANDIDATES 96

struct cpl_strategy_list {
    size_t n;
    struct cpl_strategy_choice choice[CPL_MAX_CANDIDATES];
};

/* The table: pointers to *n rows. "auto" is not in it. */
const struct cpl_strategy *const *cpl_strategy_table(size_t *n);

/* Parses "NAME" or "NAME:PARAMETER"; "auto" too. Returns CPL_OK or CPL_ERR_ARG with a text that
 * names what would be accepted. */
enum cpl_status cpl_strategy_parse(const char *text, struct cpl_strategy_choice *choice,
                                   struct cpl_error *error);

/* The canonical text of a choice ("share:1"; a parameter equal to the default is left out). */
void cpl_strategy_format(const struct cpl_strategy_choice *choice, char text[CPL_STRATEGY_TEXT]);

/* What a plan by the choice is called in tables and reports: its canonical text, or "direct by
 * lanes" where the machine's lanes carry what direct sends inside nodes. "direct" is then what MPI
 * does. */
void cpl_strategy_label(const struct cpl_strategy_choice *choice, const struct cpl_machine *machine,
                        char text[CPL_STRATEGY_TEXT]);

/* All choices worth trying for the input's number of ranks and machine, in the order of the table:
 * what `all` and `auto` try. Ignores the pattern's messages. */
void cpl_strategy_candidates(const struct cpl_strategy_input *input,
                             struct cpl_strategy_list *list);

/* For the rows' candidates functions: adds a choice; does nothing when the list is full. */
void cpl_strategy_add(struct cpl_strategy_list *list, const struct cpl_strategy *strategy,
                      const struct cpl_strategy_numbers *numbers);

/* Routes for the input's pattern by one choice, which must not be "auto". Strategies that do not
 * search see the pattern without parts; all parts of a pair take its route. Returns what the route
 * function returns. The caller frees *routes. */
enum cpl_status cpl_strategy_route(const struct cpl_strategy_input *input,
                                   const struct cpl_strategy_choice *choice,
                                   struct cpl_routes *routes, struct cpl_error *error);

/* The router of one choice, which must not be "auto". Returns what the row's router function
 * returns, CPL_ERR_UNFIT where routes hang on the whole pattern. */
enum cpl_status cpl_strategy_router(const struct cpl_strategy_input *input,
                                    const struct cpl_strategy_choice *choice,
                                    struct cpl_router *router, struct cpl_error *error);

/* The time of the plan along routes by the chain model, in microseconds. Returns CPL_OK,
 * CPL_ERR_ARG, CPL_ERR_NOMEM. */
enum cpl_status cpl_strategy_time(const struct cpl_strategy_input *input,
                                  const struct cpl_routes *routes, double *us,
                                  struct cpl_error *error);

/* Plans the input's pattern by one choice, which must not be "auto". Returns what the route
 * function or cpl_plan_build returns. The caller frees *plan. */
enum cpl_status cpl_strategy_plan(const struct cpl_strategy_input *input,
                                  const struct cpl_strategy_choice *choice, struct cpl_plan *plan,
                                  struct cpl_error *error);

/* Plans by every candidate and keeps the plan with the smallest modelled time; of equal plans the
 * first in the table (direct is its first row). Candidates that search come last and start from the
 * others' plans. *choice tells which. Returns CPL_OK, CPL_ERR_NOMEM. The caller frees *plan. */
enum cpl_status cpl_strategy_plan_auto(const struct cpl_strategy_input *input,
                                       struct cpl_strategy_choice *choice, struct cpl_plan *plan,
                                       struct cpl_error *error);

/* Plans as cpl_strategy_plan_auto does, and keeps up to `most` plans (>= 1) to be tried against
 * each other: the fastest by the model, then the fastest of each other number of waves, if it is
 * faster than what MPI does. Where all ranks share a node that has lanes, direct is one of these:
 * which of several plans waits the least there, a model hardly tells. *n becomes the number of
 * plans; choice and plan have room for `most`. */
enum cpl_status cpl_strategy_plan_several(const struct cpl_strategy_input *input, int32_t most,
                                          struct cpl_strategy_choice *choice, struct cpl_plan *plan,
                                          int32_t *n, struct cpl_error *error);

/* Measures what MPI does with the input's pattern, which all plans are compared with: direct, and
 * nothing goes by lanes. Returns CPL_OK, CPL_ERR_NOMEM. */
enum cpl_status cpl_strategy_measure_mpi(const struct cpl_strategy_input *input,
                                         struct cpl_metrics *metrics, struct cpl_error *error);

/* The same of the plan `direct`, which goes by lanes inside nodes if the machine has any. */
enum cpl_status cpl_strategy_measure_direct(const struct cpl_strategy_input *input,
                                            struct cpl_metrics *metrics, struct cpl_error *error);

/* The row of direct: every message travels alone. */
extern const struct cpl_strategy cpl_strategy_direct;

/* Candidates of a row without a parameter that is worth trying for every input: adds it. */
void cpl_strategy_add_itself(const struct cpl_strategy *strategy,
                             const struct cpl_strategy_input *input,
                             struct cpl_strategy_list *list);

/* For rows with a number: parses a whole number from low to high. */
enum cpl_status cpl_strategy_parse_number(const struct cpl_strategy *strategy, const char *text,
                                          int32_t low, int32_t high, int32_t *number,
                                          struct cpl_error *error);

#ifdef __cplusplus
}
#endif

#endif
