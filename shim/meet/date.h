/* When the ranks meet about something, counted in calls that all of them make alike: at the first
 * date, and each time when the calls are twice as many, or after the longest pause. Between two of
 * these regular dates they may meet early. Leaf module; alike on all ranks. */
#ifndef CARPOOL_DATE_H
#define CARPOOL_DATE_H

#include <stdbool.h>
#include <stdint.h>

#define CPL_NEVER        INT64_MAX
#define CPL_MOST_RETRIES 3

struct cpl_date {
    int64_t next;      /* number of the call at which they meet next; 0: nothing has been counted */
    int64_t regular;   /* number of the next call that is regular */
    int32_t n_retries; /* early dates since the last regular one, made because it came to nothing */
};

/* Whether the n-th call is one at which they meet; `first` is the first regular date. */
static inline bool cpl_date_has_come(struct cpl_date *date, int64_t first, int64_t n)
{
    if (date->next == 0)
        date->next = date->regular = first;
    return n >= date->next;
}

/* They meet at the n-th call, whose date has come: sets the next one. Returns whether this one is
 * regular. */
static inline bool cpl_date_keep(struct cpl_date *date, int64_t n, int64_t longest)
{
    bool regular = n >= date->regular;
    while (date->regular <= n)
        date->regular += date->regular < longest ? date->regular : longest;
    if (regular)
        date->n_retries = 0;
    date->next = date->regular;
    return regular;
}

/* They meet after so many calls from the n-th one on, if not before. */
static inline void cpl_date_hasten(struct cpl_date *date, int64_t n, int64_t calls)
{
    if (date->next - n > calls)
        date->next = n + calls;
}

/* They meet after so many calls from the n-th one on, and not before. */
static inline void cpl_date_put_off(struct cpl_date *date, int64_t n, int64_t calls)
{
    date->next = date->regular = n + calls;
}

/* The meeting at the n-th call came to nothing, perhaps because something was under way: they try
 * again at the next one, unless they have so often since the last regular date. */
static inline void cpl_date_retry(struct cpl_date *date, int64_t n)
{
    if (date->n_retries >= CPL_MOST_RETRIES)
        return;
    date->n_retries++;
    date->next = n + 1;
}

/* Calls after the n-th one that pass before they meet, at `first` when there is no date yet. */
static inline int64_t cpl_date_passing(const struct cpl_date *date, int64_t first, int64_t n)
{
    int64_t next = date->next > 0 ? date->next : first;
    return next > n ? next - n - 1 : 0;
}

#endif
