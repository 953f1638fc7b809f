/* Times over calls (timeline.h). */
#include "shim/base/timeline.h"

/* Each point takes the calls of two. */
static void widen(struct cpl_timeline *t)
{
    for (int k = 0; k < CPL_TIMELINE_POINTS; k++) {
        struct cpl_time_point both = {.n = 0};
        for (int j = 2 * k; j < 2 * k + 2 && j < CPL_TIMELINE_POINTS; j++) {
            both.seconds += t->point[j].seconds;
            both.n += t->point[j].n;
            both.n_planned += t->point[j].n_planned;
            both.n_tried += t->point[j].n_tried;
        }
        t->point[k] = both;
    }
    t->width *= 2;
}

void cpl_timeline_add(struct cpl_timeline *t, int64_t call, double seconds, bool planned,
                      bool tried)
{
    if (t->width == 0)
        t->width = 1;
    while (call / t->width >= CPL_TIMELINE_POINTS)
        widen(t);
    struct cpl_time_point *point = &t->point[call / t->width];
    point->seconds += seconds;
    point->n++;
    point->n_planned += planned;
    point->n_tried += tried;
}
