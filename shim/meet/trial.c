/* Choosing by measurement (trial.h). */
#include "shim/meet/trial.h"

/* What drops a candidate: its best time, in times the fastest candidate's in the first round, and
 * in times another's median in the next ones. */
#define HOPELESS 4.0
#define WORSE    2.0 /* until round SURE, when few disturbed calls decide nothing */
#define DEAR     1e3 /* microseconds that it must be longer by until then: cold memory takes less */
#define BEATEN   1.15
#define SURE     3
#define FASTER   0.97 /* of what is in use: worth a change of plan */

/* Calls between the first trial and the second; the interval doubles from trial to trial. */
#define FIRST_INTERVAL 2048
#define LAST_INTERVAL  (INT64_C(1) << 40)

/* Later trials have this part of the first one's rounds. */
#define LATER_PART 2

static void next_turn(struct cpl_trial *trial, int32_t from)
{
    trial->turn = from;
    trial->n_in_turn = 0;
    while (trial->turn < trial->n && !trial->in[trial->turn])
        trial->turn++;
}

static void start(struct cpl_trial *trial)
{
    trial->running = true;
    trial->round = 0;
    for (int32_t k = 0; k < trial->n; k++)
        trial->slowest[k].n = 0;
    next_turn(trial, 0);
}

void cpl_trial_begin(struct cpl_trial *trial, int32_t n, int32_t rounds)
{
    *trial = (struct cpl_trial){.n = n,
                                .rounds = rounds < CPL_TRIAL_ROUNDS ? rounds : CPL_TRIAL_ROUNDS,
                                .calls_a_turn = 1,
                                .chosen = rounds > 0 ? 0 : 1,
                                .interval = FIRST_INTERVAL};
    for (int32_t k = 0; k < n; k++)
        trial->in[k] = true;
    if (rounds > 0)
        start(trial);
}

/* A later trial: MPI against the plan in use, else the best one known, else the first. */
static void start_again(struct cpl_trial *trial)
{
    int32_t plan = trial->chosen > 0 ? trial->chosen : 1;
    for (int32_t k = 1; k < trial->n && trial->chosen == 0; k++) {
        bool better = trial->median_us[k] < trial->median_us[plan] || trial->median_us[plan] <= 0;
        if (trial->median_us[k] > 0 && better)
            plan = k;
    }
    for (int32_t k = 0; k < trial->n; k++)
        trial->in[k] = k == 0 || k == plan;
    trial->versus = plan;
    start(trial);
}

bool cpl_trial_note(struct cpl_trial *trial, double us)
{
    if (!trial->running) {
        if (trial->rounds > 0 && ++trial->calls >= trial->interval)
            start_again(trial);
        return false;
    }
    trial->tried++;
    double *own_us = &trial->own_us[trial->turn];
    *own_us = trial->n_in_turn > trial->lead_in ? *own_us + us : us;
    if (++trial->n_in_turn < trial->lead_in + trial->calls_a_turn)
        return false;
    *own_us /= trial->calls_a_turn;
    next_turn(trial, trial->turn + 1);
    return trial->turn == trial->n;
}

/* The most that a candidate's best call may take to stay in, when another usually takes best_us. */
static double limit_us(int32_t round, double best_us)
{
    if (round >= SURE)
        return best_us * BEATEN;
    double many_us = best_us * (round == 0 ? HOPELESS : WORSE);
    return many_us > best_us + DEAR ? many_us : best_us + DEAR;
}

/* Drops the candidates that cannot win any more. Returns how many are left. */
static int32_t drop(struct cpl_trial *trial, const double *slowest_us)
{
    double best = -1;
    int32_t n = 0;
    for (int32_t k = 0; k < trial->n; k++) {
        double us = trial->round > 0 ? trial->median_us[k] : slowest_us[k];
        if (trial->in[k] && (best < 0 || us < best))
            best = us;
    }
    for (int32_t k = 0; k < trial->n; k++) {
        if (!trial->in[k])
            continue;
        if (trial->round == 0 || slowest_us[k] < trial->least_us[k])
            trial->least_us[k] = slowest_us[k];
        trial->in[k] = trial->least_us[k] <= limit_us(trial->round, best);
        n += trial->in[k];
    }
    return n;
}

/* The candidate to use from now on: one that was not dropped. */
static int32_t choose(const struct cpl_trial *trial)
{
    int32_t best = -1;
    for (int32_t k = 0; k < trial->n; k++)
        if (trial->in[k] && (best < 0 || trial->median_us[k] < trial->median_us[best]))
            best = k;
    if (!trial->in[trial->chosen] || best == 0)
        return best;
    return trial->median_us[best] < FASTER * trial->median_us[trial->chosen] ? best : trial->chosen;
}

void cpl_trial_judge(struct cpl_trial *trial, const double *slowest_us)
{
    for (int32_t k = 0; k < trial->n && trial->round > 0; k++) {
        if (!trial->in[k])
            continue;
        cpl_samples_add(&trial->slowest[k], slowest_us[k]);
        trial->median_us[k] = cpl_samples_median(&trial->slowest[k]);
    }
    int32_t n_left = drop(trial, slowest_us);
    int32_t n_rounds =
        trial->n_trials > 0 ? (trial->rounds + LATER_PART - 1) / LATER_PART : trial->rounds;
    if (n_left > 1 && trial->round < n_rounds) {
        trial->round++;
        next_turn(trial, 0);
        return;
    }
    trial->chosen = choose(trial);
    trial->running = false;
    trial->calls = 0;
    if (trial->n_trials++ > 0 && trial->interval < LAST_INTERVAL)
        trial->interval *= 2;
}
