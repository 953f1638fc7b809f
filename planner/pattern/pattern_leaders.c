/* Which messages of a pattern carry the same payload (pattern.h). Classes are mostly small numbers:
 * then a table by class has the message in which a class was last seen, O(messages). Rows with
 * large class numbers are sorted. */
#include "planner/pattern.h"

#include <stdlib.h>

#define LARGEST_IN_TABLE (INT32_C(1) << 20)

struct keyed {
    int32_t class_;
    int64_t message;
};

static int compare_keyed(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;
    if (x->class_ != y->class_)
        return x->class_ < y->class_ ? -1 : 1;
    return (x->message > y->message) - (x->message < y->message);
}

static int32_t largest_class(const struct cpl_pattern *p)
{
    int32_t largest = -1;
    for (int64_t m = 0; m < p->n_messages; m++)
        largest = p->payload_class[m] > largest ? p->payload_class[m] : largest;
    return largest;
}

/* first[class]: the row's first message of the class, as far as it is at least the row's first. */
static void find_by_table(const struct cpl_pattern *p, int64_t *first, int64_t *leader)
{
    for (int32_t i = 0; i < p->n_ranks; i++)
        for (int64_t m = p->first[i]; m < p->first[i + 1]; m++) {
            int32_t class_ = p->payload_class[m];
            leader[m] = m;
            if (class_ < 0)
                continue;
            /* Kept as message + 1, so that the arena's zeros are before every row. */
            if (first[class_] > p->first[i])
                leader[m] = first[class_] - 1;
            else
                first[class_] = m + 1;
        }
}

static void find_by_sorting(const struct cpl_pattern *p, struct keyed *row, int64_t *leader)
{
    for (int32_t i = 0; i < p->n_ranks; i++) {
        size_t n = 0;
        for (int64_t m = p->first[i]; m < p->first[i + 1]; m++) {
            leader[m] = m;
            if (p->payload_class[m] >= 0)
                row[n++] = (struct keyed){p->payload_class[m], m};
        }
        qsort(row, n, sizeof *row, compare_keyed);
        for (size_t k = 1; k < n; k++)
            if (row[k].class_ == row[k - 1].class_)
                leader[row[k].message] = leader[row[k - 1].message];
    }
}

enum cpl_status cpl_pattern_leaders(const struct cpl_pattern *pattern, int64_t *leader)
{
    struct cpl_arena arena = CPL_ARENA_EMPTY;
    int32_t largest = pattern->payload_class ? largest_class(pattern) : -1;
    enum cpl_status status = CPL_OK;
    if (largest < LARGEST_IN_TABLE) {
        int64_t *first = CPL_ARENA_ARRAY(&arena, int64_t, largest + 1);
        status = first ? CPL_OK : CPL_ERR_NOMEM;
        if (first && pattern->payload_class)
            find_by_table(pattern, first, leader);
        else
            for (int64_t m = 0; m < pattern->n_messages; m++)
                leader[m] = m;
    } else {
        struct keyed *row = CPL_ARENA_ARRAY(&arena, struct keyed, cpl_pattern_most_sends(pattern));
        status = row ? CPL_OK : CPL_ERR_NOMEM;
        if (row)
            find_by_sorting(pattern, row, leader);
    }
    cpl_arena_free(&arena);
    return status;
}
