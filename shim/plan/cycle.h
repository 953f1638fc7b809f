/* The cycle in which a rank's batches recur (doc/point-to-point.md): which exchange the next one
 * is, where ranks send the same messages in several, on several levels of a multigrid cycle, say.
 *
 * What does not come as expected only moves the place in the cycle; a wrong guess costs time. Cost:
 * a batch that comes as expected takes one look, another one a pass over the cycle. */
#ifndef CARPOOL_CYCLE_H
#define CARPOOL_CYCLE_H

#define CPL_STEP_COLLECTIVE (-1)

/* A batch, or blocking collectives without batches between them. */
struct cpl_step {
    int signature; /* or CPL_STEP_COLLECTIVE */
    int plan;      /* of the exchange that the batch belongs to */
};

struct cpl_cycle {
    int n, at; /* at: the step that is expected next */
    struct cpl_step *step;
};

/* Takes over n steps in the order in which they came, and keeps the cycle that they end with: the
 * shortest one that holds for half of them, or all of them. The next step is then its first. */
void cpl_cycle_set(struct cpl_cycle *cycle, struct cpl_step *step, int n);
void cpl_cycle_end(struct cpl_cycle *cycle);

/* The next step with a signature; -1: there is none. Then, when the batch has left, take it. */
int cpl_cycle_find(const struct cpl_cycle *cycle, int signature);
void cpl_cycle_take(struct cpl_cycle *cycle, int at);

/* A blocking collective is entered. */
void cpl_cycle_collective(struct cpl_cycle *cycle);

#endif
