/* Making and comparing plans in tests (plans.h). */
#include "plans.h"

#include "planner/routes.h"
#include "random_pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct cpl_pattern make_pattern(int32_t n_ranks, const struct cpl_pattern_entry *entries,
                                int64_t n_entries)
{
    struct cpl_pattern pattern;
    struct cpl_error error = {""};
    if (cpl_pattern_build(n_ranks, entries, n_entries, &pattern, &error))
        fail_msg("%s", error.text);
    return pattern;
}

static struct cpl_routes make_routes(const struct cpl_pattern *pattern, int32_t n_waves)
{
    struct cpl_routes routes;
    struct cpl_error error = {""};
    if (cpl_routes_init(pattern, n_waves, &routes, &error))
        fail_msg("%s", error.text);
    return routes;
}

static struct cpl_plan plan_routes(const struct cpl_pattern *pattern, struct cpl_routes *routes)
{
    struct cpl_plan plan;
    struct cpl_error error = {""};
    if (cpl_plan_build(pattern, routes, &plan, &error) || cpl_plan_check(&plan, pattern, &error))
        fail_msg("%s", error.text);
    cpl_routes_free(routes);
    return plan;
}

struct cpl_plan make_plan(const struct cpl_pattern *pattern, int32_t n_waves, const int32_t *stops)
{
    struct cpl_routes routes = make_routes(pattern, n_waves);
    size_t n_stops = (size_t)pattern->n_messages * (size_t)n_waves;
    memcpy(routes.stops, stops, n_stops * sizeof *stops);
    return plan_routes(pattern, &routes);
}

struct cpl_plan make_random_plan(const struct cpl_pattern *pattern, int32_t n_waves, uint64_t seed)
{
    struct cpl_routes routes = make_routes(pattern, n_waves);
    int32_t n_intermediate = 1 + random_below(&seed, pattern->n_ranks);
    for (int64_t m = 0; m < pattern->n_messages; m++) {
        int32_t *stops = cpl_routes_of(&routes, m);
        for (int32_t w = 0; w < n_waves - 1; w++) {
            if (random_draw(&seed, 4) == 0)
                stops[w] = pattern->dst[m];
            else if (random_draw(&seed, 3) == 0)
                stops[w] = w > 0 ? stops[w - 1] : stops[w];
            else
                stops[w] = random_below(&seed, n_intermediate);
        }
    }
    return plan_routes(pattern, &routes);
}

char *dump_text(const struct cpl_plan *plan)
{
    char *text = NULL;
    size_t size = 0;
    struct cpl_error error = {""};
    FILE *stream = open_memstream(&text, &size);
    assert_non_null(stream);
    if (cpl_plan_dump(plan, stream, &error))
        fail_msg("%s", error.text);
    assert_int_equal(fclose(stream), 0);
    return text;
}

void assert_edges(const struct cpl_plan *plan, const char *expected)
{
    char *text = dump_text(plan);
    const char *edges = text;
    for (int line = 0; line < 3; line++) {
        edges = strchr(edges, '\n');
        assert_non_null(edges);
        edges++;
    }
    assert_string_equal(edges, expected);
    free(text);
}
