/* The cycle in which a rank's batches recur (doc/point-to-point.md). It tells which exchange the
 * next batch belongs to when several send the same messages, as on levels of a multigrid cycle. An
 * unexpected batch only moves the position; a wrong guess costs time, nothing else. */
#ifndef CARPOOL_CYCLE_H
#define CARPOOL_CYCLE_H

#define CPL_STEP_COLLECTIVE (-1)

/* A batch, or blocking collectives without batches between them. */
struct cpl_step {
    int signature; /* or CPL_STEP_COLLECTIVE */
    int plan;      /* plan of the exchange that the batch belongs to */
};

struct cpl_cycle {
    int n, at; /* at: the step that is expected next */
    struct cpl_step *step;
};

/* Takes over n steps in the order in which they came, and keeps the cycle at their end: the
 * shortest one that covers at least half of the steps, else all steps. The next step expected is
 * its first. */
void cpl_cycle_set(struct cpl_cycle *cycle, struct cpl_step *step, int n);
void cpl_cycle_end(struct cpl_cycle *cycle);

/* cpl_cycle_find: the next step with a signature; -1: there is none. cpl_cycle_take: moves on past
 * that step, once the batch has been sent. */
int cpl_cycle_find(const struct cpl_cycle *cycle, int signature);
void cpl_cycle_take(struct cpl_cycle *cycle, int at);

/* Notes that a blocking collective is entered. */
void cpl_cycle_collective(struct cpl_cycle *cycle);

#endif
