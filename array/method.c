/* Methods (route.h): their text, and the grids that they name. */
#include "route_internal.h"

#include "planner/grid/grid_shape.h"

#include <stdio.h>
#include <string.h>

static enum cpl_status fail_method(const char *text, struct cpl_error *error)
{
    return cpl_fail(error, CPL_ERR_ARG,
                    "method '%.60s' is not known; it is auto, plain, or one of sort, hash, tree, "
                    "envelope-sort, envelope-hash, alone or with a route, as in sort:hypercube, "
                    "sort:equal:3, sort:locality, hash:4x8 or hash:plain (not with envelopes)",
                    text);
}

enum cpl_status cpl_method_parse(const char *text, struct cpl_method *method,
                                 struct cpl_error *error)
{
    static const char far[] = "far:";
    struct cpl_method parsed = {.variant = CPL_VARIANT_SORT, .order = CPL_GRID_NEAR_FIRST};
    size_t length = strcspn(text, ":");
    if (strcmp(text, "plain") == 0 || strcmp(text, "auto") == 0) {
        parsed.is_plain = *text == 'p';
        parsed.is_auto = *text == 'a';
        *method = parsed;
        return CPL_OK;
    }
    int v = 0;
    while (v < CPL_N_VARIANTS && (strlen(cpl_variant_name((enum cpl_variant)v)) != length ||
                                  strncmp(cpl_variant_name((enum cpl_variant)v), text, length)))
        v++;
    const char *route = text[length] ? text + length + 1 : "";
    if (strncmp(route, far, strlen(far)) == 0 && route[strlen(far)]) {
        parsed.order = CPL_GRID_FAR_FIRST;
        route += strlen(far);
    }
    if (v == CPL_N_VARIANTS || strlen(route) >= sizeof parsed.route || (text[length] && !*route))
        return fail_method(text, error);
    parsed.variant = (enum cpl_variant)v;
    parsed.is_plain = strcmp(route, "plain") == 0;
    bool is_far = parsed.order == CPL_GRID_FAR_FIRST;
    if (parsed.is_plain && (is_far || v >= CPL_VARIANT_ENVELOPE_SORT))
        return fail_method(text, error);
    memcpy(parsed.route, route, strlen(route) + 1);
    *method = parsed;
    return CPL_OK;
}

/* "SHAPE" or "SHAPE:DIMENSIONS": its sizes in the order of the stages. false: no such shape. */
static bool shape_sizes(const char *text, int32_t n_ranks, int32_t *n, int32_t *size,
                        enum cpl_status *status, struct cpl_error *error)
{
    size_t length = strcspn(text, ":");
    int shape = 0, n_dims = 0, used = 0;
    while (shape < CPL_N_SHAPES &&
           (strlen(cpl_grid_shape_name((enum cpl_grid_shape)shape)) != length ||
            strncmp(cpl_grid_shape_name((enum cpl_grid_shape)shape), text, length)))
        shape++;
    if (shape == CPL_N_SHAPES)
        return false;
    if (text[length] && (sscanf(text + length, ":%4d%n", &n_dims, &used) != 1 || n_dims < 1 ||
                         text[length + (size_t)used]))
        return false;
    *status = cpl_grid_shape_sizes((enum cpl_grid_shape)shape, n_ranks, n_dims, n, size, error);
    /* shapes are of powers of two; other numbers of ranks have more even sizes */
    if (!*status && shape == CPL_SHAPE_EQUAL && *n <= cpl_grid_most_dimensions(n_ranks))
        *status = cpl_grid_even_sizes(n_ranks, *n, size, error);
    return true;
}

/* "AxBx...", in the order of the stages. */
static bool list_sizes(const char *text, int32_t *n, int32_t *size)
{
    int used = 0;
    for (*n = 0; *n < CPL_MAX_DIMENSIONS; text++) {
        if (*text < '1' || *text > '9' || sscanf(text, "%8d%n", &size[*n], &used) != 1)
            return false;
        (*n)++;
        text += used;
        if (!*text)
            return true;
        if (*text != 'x')
            return false;
    }
    return false;
}

static int32_t gcd(int32_t a, int32_t b)
{
    return b ? gcd(b, a % b) : a;
}

struct place {
    int32_t node, socket, rank;
};

static int compare_places(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    if (x->socket != y->socket)
        return x->socket < y->socket ? -1 : 1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

/* The largest number of ranks that divides the ranks of every node, or of every socket. */
static int32_t common_size(int32_t n, const struct place *place, bool of_sockets)
{
    int32_t common = 0, here = 0;
    for (int32_t k = 0; k < n; k++) {
        here++;
        if (k + 1 == n || place[k + 1].node != place[k].node ||
            (of_sockets && place[k + 1].socket != place[k].socket)) {
            common = gcd(common, here);
            here = 0;
        }
    }
    return common;
}

/* locality: inside the sockets, then between the sockets of a node, then a hypercube of nodes (or
 * the other way round); the sizes from the far stage to the near ones. Ranks play the points in the
 * order of nodes and sockets. Peters 2024 has the hypercube first, and one step inside the node. */
static enum cpl_status locality_sizes(const struct cpl_machine *machine, struct cpl_route *route,
                                      int32_t *n, int32_t *size, struct cpl_error *error)
{
    int32_t n_ranks = machine->n_ranks;
    struct place *place = malloc((size_t)n_ranks * sizeof *place);
    route->point_of = CPL_ARENA_ARRAY(&route->arena, int32_t, n_ranks);
    route->rank_at = CPL_ARENA_ARRAY(&route->arena, int32_t, n_ranks);
    if (!place || !route->point_of || !route->rank_at) {
        free(place);
        return cpl_fail_memory(error, "the places of the ranks");
    }
    for (int32_t k = 0; k < n_ranks; k++)
        place[k] = (struct place){machine->node[k], machine->socket[k], k};
    qsort(place, (size_t)n_ranks, sizeof *place, compare_places);
    for (int32_t k = 0; k < n_ranks; k++) {
        route->rank_at[k] = place[k].rank;
        route->point_of[place[k].rank] = k;
    }
    int32_t in_node = common_size(n_ranks, place, false);
    int32_t in_socket = common_size(n_ranks, place, true);
    *n = 0;
    for (int32_t bits = cpl_grid_log2(n_ranks / in_node); bits > 0; bits--)
        size[(*n)++] = 2;
    if (in_node > in_socket)
        size[(*n)++] = in_node / in_socket;
    if (in_socket > 1 || *n == 0)
        size[(*n)++] = in_socket;
    free(place);
    return CPL_OK;
}

static void reverse(int32_t n, int32_t *size)
{
    for (int32_t k = 0; k < n / 2; k++) {
        int32_t size_k = size[k];
        size[k] = size[n - 1 - k];
        size[n - 1 - k] = size_k;
    }
}

/* The sizes of a route's stages. */
static enum cpl_status route_sizes(const char *text, const struct cpl_machine *machine,
                                   struct cpl_route *route, int32_t *n, int32_t *size,
                                   struct cpl_error *error)
{
    enum cpl_status status = CPL_OK;
    if (strcmp(text, "locality") == 0) {
        status = locality_sizes(machine, route, n, size, error);
        if (!status && route->order == CPL_GRID_NEAR_FIRST)
            reverse(*n, size);
        return status;
    }
    if (shape_sizes(text, machine->n_ranks, n, size, &status, error) || list_sizes(text, n, size))
        return status;
    return cpl_fail(error, CPL_ERR_ARG,
                    "route '%.60s' is not known; it is sizes as in 4x8, or equal, hypercube, "
                    "increase, decrease, hourglass, inverse-hourglass, with :DIMENSIONS or "
                    "without, or locality",
                    text);
}

/* The sizes in the order of the stages, as the grid has them. */
static void describe(const struct cpl_method *method, const struct cpl_route *route, char *text,
                     size_t bytes)
{
    if (route->is_plain) {
        snprintf(text, bytes, "%s%s",
                 method->variant == CPL_VARIANT_SORT ? "" : cpl_variant_name(method->variant),
                 method->variant == CPL_VARIANT_SORT ? "plain" : ":plain");
        return;
    }
    bool is_far = route->order == CPL_GRID_FAR_FIRST;
    int n = route->grid.n_dims;
    int used = snprintf(text, bytes, "%s:%s%s", cpl_variant_name(method->variant),
                        is_far ? "far:" : "", route->point_of ? "locality " : "");
    for (int k = 0; k < n && (size_t)used < bytes; k++)
        used += snprintf(text + used, bytes - (size_t)used, "%d%s",
                         (int)route->grid.size[is_far ? n - 1 - k : k], k < n - 1 ? "x" : "");
}

enum cpl_status cpl_route_make(const struct cpl_method *method, const struct cpl_machine *machine,
                               int rank, struct cpl_route *route, char *text, size_t text_bytes,
                               struct cpl_error *error)
{
    struct cpl_route made = {
        .is_plain = method->is_plain, .order = method->order, .arena = CPL_ARENA_EMPTY};
    int32_t n = 1, size[CPL_MAX_DIMENSIONS] = {machine->n_ranks};
    enum cpl_status status = CPL_OK;
    if (!made.is_plain)
        status =
            route_sizes(*method->route ? method->route : "equal", machine, &made, &n, size, error);
    if (made.order == CPL_GRID_FAR_FIRST)
        reverse(n, size);
    if (!status)
        status = cpl_grid_init(&made.grid, machine->n_ranks, n, size, error);
    if (!status)
        status = cpl_route_stages(&made, rank, error);
    if (status) {
        cpl_route_free(&made);
        return status;
    }
    describe(method, &made, text, text_bytes);
    *route = made;
    return CPL_OK;
}
