/* What the library has cost the program, and what it has gained for it, in seconds of this rank.
 * Before something that takes time is begun, its price is compared with what may be spent: a part
 * of the program's time so far, which nobody notices, and a part of what was gained. Ranks that
 * decide together compare by sums over all of them. Leaf module. */
#ifndef CARPOOL_ACCOUNT_H
#define CARPOOL_ACCOUNT_H

enum cpl_cost {
    CPL_COST_MEETINGS, /* settling, without what follows */
    CPL_COST_PLANNING, /* agreeing on plans, and waiting for the rank that makes them */
    CPL_COST_TRIALS,   /* what a plan took longer than MPI while both were compared */
    CPL_N_COSTS
};

struct cpl_account {
    double start; /* when MPI was initialised */
    double spent[CPL_N_COSTS], gained;
    double planning_ratio; /* what planning took last, in times what was expected; 0: nothing */
    double communicator;   /* what making a private communicator took last */
};

/* At first nothing is known of how long the program runs: this long, in seconds, is taken. */
#define CPL_ACCOUNT_LEAST 0.3

#define CPL_ACCOUNT_OF_GAIN 0.5 /* part of what was gained that may be spent */

static inline double cpl_account_spent(const struct cpl_account *a)
{
    double spent = 0;
    for (int k = 0; k < CPL_N_COSTS; k++)
        spent += a->spent[k];
    return spent;
}

/* What may be spent now, negative when too much was; `part` of the program's time. */
static inline double cpl_account_balance(const struct cpl_account *a, double now, double part)
{
    double elapsed = now - a->start;
    double time = elapsed > CPL_ACCOUNT_LEAST ? elapsed : CPL_ACCOUNT_LEAST;
    return part * time + CPL_ACCOUNT_OF_GAIN * a->gained - cpl_account_spent(a);
}

/* Something that takes time has begun. */
struct cpl_expense {
    double at, spent;
};

static inline struct cpl_expense cpl_account_begin(const struct cpl_account *a, double now)
{
    return (struct cpl_expense){now, cpl_account_spent(a)};
}

/* Charges the time since then, less what was charged meanwhile. Returns it. */
static inline double cpl_account_end(struct cpl_account *a, struct cpl_expense e,
                                     enum cpl_cost cost, double now)
{
    double seconds = now - e.at - (cpl_account_spent(a) - e.spent);
    a->spent[cost] += seconds > 0 ? seconds : 0;
    return seconds;
}

#endif
