/* From items to payload classes (pattern_items.h): sorted by source, item and destination, each
 * item is a run of destinations; sorted by their destinations, equal runs are neighbours.
 *
 * Cost: two sorts; 24 bytes per item until the end. */
#include "planner/pattern/pattern_items.h"

#include <stdlib.h>

/* The destinations of an item; when runs have been joined, of `volume` items, the first of them at
 * `at`. */
struct run {
    const struct cpl_pattern_item *at;
    int64_t n; /* destinations */
    int64_t volume;
};

static int compare(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_items(const void *a, const void *b)
{
    const struct cpl_pattern_item *x = a, *y = b;
    if (x->src != y->src)
        return compare(x->src, y->src);
    if (x->item != y->item)
        return compare(x->item, y->item);
    return compare(x->dst, y->dst);
}

/* Whether two runs have the same source and destinations, as an order. */
static int compare_sets(const struct run *a, const struct run *b)
{
    if (a->at->src != b->at->src)
        return compare(a->at->src, b->at->src);
    if (a->n != b->n)
        return compare(a->n, b->n);
    for (int64_t k = 0; k < a->n; k++)
        if (a->at[k].dst != b->at[k].dst)
            return compare(a->at[k].dst, b->at[k].dst);
    return 0;
}

static int compare_runs(const void *a, const void *b)
{
    const struct run *x = a, *y = b;
    int order = compare_sets(x, y);
    return order ? order : (x->at > y->at) - (x->at < y->at);
}

static int compare_first_items(const void *a, const void *b)
{
    const struct run *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

/* Drops duplicates from sorted items; returns the number of items that remain. */
static int64_t drop_doubled(struct cpl_pattern_item *items, int64_t n)
{
    int64_t n_kept = 0;
    for (int64_t k = 0; k < n; k++)
        if (n_kept == 0 || compare_items(&items[n_kept - 1], &items[k]) != 0)
            items[n_kept++] = items[k];
    return n_kept;
}

static int64_t find_runs(const struct cpl_pattern_item *items, int64_t n, struct run *runs)
{
    int64_t n_runs = 0;
    for (int64_t k = 0; k < n; k++)
        if (k > 0 && items[k].src == items[k - 1].src && items[k].item == items[k - 1].item)
            runs[n_runs - 1].n++;
        else
            runs[n_runs++] = (struct run){&items[k], 1, 1};
    return n_runs;
}

/* Joins neighbouring runs with equal destinations; returns the number of runs that remain. */
static int64_t join_runs(struct run *runs, int64_t n)
{
    int64_t n_kept = 0;
    for (int64_t k = 0; k < n; k++)
        if (n_kept > 0 && compare_sets(&runs[n_kept - 1], &runs[k]) == 0)
            runs[n_kept - 1].volume++;
        else
            runs[n_kept++] = runs[k];
    return n_kept;
}

static int64_t write_entries(const struct run *runs, int64_t n, struct cpl_pattern_entry *entries)
{
    int64_t n_entries = 0;
    int32_t next = 0;
    for (int64_t k = 0; k < n; k++) {
        if (k > 0 && runs[k].at->src != runs[k - 1].at->src)
            next = 0;
        int32_t class_ = runs[k].n > 1 ? next++ : -1;
        for (int64_t d = 0; d < runs[k].n; d++)
            entries[n_entries++] = (struct cpl_pattern_entry){runs[k].at[d].src, runs[k].at[d].dst,
                                                              runs[k].volume, class_};
    }
    return n_entries;
}

enum cpl_status cpl_pattern_classify(struct cpl_pattern_item *items, int64_t n_items,
                                     struct cpl_pattern_entry *entries, int64_t *n_entries,
                                     struct cpl_error *error)
{
    if (n_items > INT32_MAX)
        return cpl_fail(error, CPL_ERR_NOMEM, "more than %d items cannot be classified", INT32_MAX);
    struct cpl_arena arena = CPL_ARENA_EMPTY;
    struct run *runs = CPL_ARENA_ARRAY(&arena, struct run, n_items);
    if (!runs)
        return cpl_fail_memory(error, "payload classes");
    if (n_items > 0)
        qsort(items, (size_t)n_items, sizeof *items, compare_items);
    int64_t n_runs = find_runs(items, drop_doubled(items, n_items), runs);
    qsort(runs, (size_t)n_runs, sizeof *runs, compare_runs);
    n_runs = join_runs(runs, n_runs);
    qsort(runs, (size_t)n_runs, sizeof *runs, compare_first_items);
    *n_entries = write_entries(runs, n_runs, entries);
    cpl_arena_free(&arena);
    return CPL_OK;
}
