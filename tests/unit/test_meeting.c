/* Tests of meetings (shim/meet/meeting.h) and their dates: when items come up, what all ranks'
 * votes come to, and what passes without a look. The other ranks are a vote that the test gives. */
#include "shim/meet/meeting.h"

#include "shim/base/log.h"
#include "shim/meet/agree.h"
#include "shim/state/comm_state.h"
#include "shim/state/hooks.h"
#include "shim/wait/collective.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct cpl_context cpl_context;

/* ---- two parts ---- */

enum { FREQUENT, RARE, N_PARTS };

/* What a part does next, and what it has seen. */
struct part {
    bool attends, sees_all;
    struct cpl_date date;
    int64_t mine[2]; /* its vote: one word that is the least, one that is summed */
    enum cpl_settled outcome;
    int n_settled, n_regular, n_resumed;
    int64_t all[2];
};

static struct part parts[N_PARTS];

static struct cpl_date *date_of(struct part *part)
{
    return part->attends ? &part->date : NULL;
}

static void vote_of(struct part *part, int64_t *words)
{
    assert_int_equal(words[0], 0);
    assert_int_equal(words[1], 0);
    memcpy(words, part->mine, sizeof part->mine);
}

static enum cpl_settled settle_of(struct part *part, bool regular, const int64_t *words)
{
    part->n_settled++;
    part->n_regular += regular;
    memcpy(part->all, words, sizeof part->all);
    enum cpl_settled outcome = part->outcome;
    if (outcome == CPL_SETTLED_MORE) /* once */
        part->outcome = CPL_SETTLED;
    return outcome;
}

#define PART(which, number, its_first)                                                             \
    static struct cpl_date *which##_date(struct cpl_comm_state *state)                             \
    {                                                                                              \
        (void)state;                                                                               \
        return date_of(&parts[number]);                                                            \
    }                                                                                              \
    static bool which##_sees_all(const struct cpl_comm_state *state)                               \
    {                                                                                              \
        (void)state;                                                                               \
        return parts[number].sees_all;                                                             \
    }                                                                                              \
    static void which##_vote(struct cpl_comm_state *state, int64_t *words)                         \
    {                                                                                              \
        (void)state;                                                                               \
        vote_of(&parts[number], words);                                                            \
    }                                                                                              \
    static enum cpl_settled which##_settle(struct cpl_comm_state *state, bool regular,             \
                                           const int64_t *words)                                   \
    {                                                                                              \
        (void)state;                                                                               \
        return settle_of(&parts[number], regular, words);                                          \
    }                                                                                              \
    static void which##_resume(struct cpl_comm_state *state)                                       \
    {                                                                                              \
        (void)state;                                                                               \
        parts[number].n_resumed++;                                                                 \
    }                                                                                              \
    static const struct cpl_item which##_item = {.first = its_first,                               \
                                                 .n_least = 1,                                     \
                                                 .n_sums = 1,                                      \
                                                 .date = which##_date,                             \
                                                 .sees_all = which##_sees_all,                     \
                                                 .vote = which##_vote,                             \
                                                 .settle = which##_settle,                         \
                                                 .resume = which##_resume};                        \
    static const struct cpl_hooks which##_hooks = {.item = &which##_item};

PART(frequent, FREQUENT, 2)
PART(rare, RARE, 4)

static const struct cpl_hooks without_item = {.item = NULL};
static const struct cpl_hooks *const hooks[] = {&without_item, &frequent_hooks, &rare_hooks, NULL};

/* ---- MPI: a vote of this rank and one more ---- */

static MPI_User_function *put_together;
static int64_t other[2];   /* what the other rank votes about every item */
static bool other_differs; /* in what is to be alike */
static int n_reductions, n_words, n_errors;

#define COMMON 3 /* words before those of the items */

/* Not needed: all states are known. */
struct cpl_comm_state *cpl_comm_state_find(MPI_Comm of)
{
    (void)of;
    return NULL;
}

static double now;

double PMPI_Wtime(void)
{
    return now;
}

int PMPI_Type_contiguous(int n, MPI_Datatype old, MPI_Datatype *made)
{
    assert_int_equal(n, 2);
    *made = old;
    return MPI_SUCCESS;
}

int PMPI_Type_commit(MPI_Datatype *type)
{
    (void)type;
    return MPI_SUCCESS;
}

int PMPI_Type_free(MPI_Datatype *type)
{
    *type = MPI_DATATYPE_NULL;
    return MPI_SUCCESS;
}

int PMPI_Op_create(MPI_User_function *function, int commutes, MPI_Op *op)
{
    assert_true(commutes);
    put_together = function;
    *op = MPI_SUM;
    return MPI_SUCCESS;
}

int PMPI_Op_free(MPI_Op *op)
{
    *op = MPI_OP_NULL;
    return MPI_SUCCESS;
}

int cpl_collective_settle(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype,
                          MPI_Op op, MPI_Comm comm)
{
    int64_t theirs[2 * (COMMON + CPL_MOST_WORDS)];
    size_t bytes = (size_t)count * 2 * sizeof(int64_t);
    (void)op;
    (void)comm;
    memcpy(theirs, sendbuf, bytes);
    for (int k = COMMON; k < count; k++)
        theirs[2 * k] = other[(k - COMMON) % 2];
    if (other_differs) {
        theirs[0] -= 1;
        theirs[2] = ~theirs[0];
    }
    memcpy(recvbuf, sendbuf, bytes);
    put_together(theirs, recvbuf, &count, &datatype);
    n_reductions++;
    n_words = count;
    return MPI_SUCCESS;
}

bool cpl_collective_of_this_world(MPI_Comm of)
{
    (void)of;
    return true;
}

static bool lacks_floor, all_yes; /* what the other rank answers */
static int n_floors;

bool cpl_exclusive_take(MPI_Comm of)
{
    (void)of;
    n_floors += !lacks_floor;
    return !lacks_floor;
}

void cpl_exclusive_leave(void)
{
    n_floors--;
}

MPI_Comm cpl_agree_own(struct cpl_comm_state *state)
{
    return state->private_comm = state->comm;
}

int64_t cpl_agree_ns(double seconds)
{
    return (int64_t)(seconds * 1e9);
}

bool cpl_agree_all(MPI_Comm of, bool yes)
{
    (void)of;
    return yes && all_yes;
}

enum cpl_log_level cpl_log_threshold = CPL_LOG_WARN;

void cpl_log_write(enum cpl_log_level level, const char *component, const char *format, ...)
{
    (void)component;
    (void)format;
    n_errors += level == CPL_LOG_ERROR;
}

/* ---- tests ---- */

void cpl_comm_state_begin(struct cpl_comm_state *state)
{
    (void)state; /* none is blank */
}

static struct cpl_comm_state comm;

static int begin(void **state)
{
    (void)state;
    memset(&cpl_context, 0, sizeof cpl_context);
    memset(parts, 0, sizeof parts);
    memset(other, 0, sizeof other);
    comm = (struct cpl_comm_state){.comm = MPI_COMM_WORLD, .size = 2};
    *cpl_context_recent(MPI_COMM_WORLD) =
        (struct cpl_recent){.comm = MPI_COMM_WORLD, .state = &comm};
    cpl_context.comms.first = &comm;
    cpl_context.hooks = hooks;
    parts[FREQUENT].attends = parts[RARE].attends = true;
    other_differs = false;
    n_reductions = n_words = n_errors = n_floors = 0;
    lacks_floor = all_yes = false;
    now = 1;
    return !cpl_meeting_start();
}

static int end(void **state)
{
    (void)state;
    cpl_meeting_stop();
    return 0;
}

static void count(int n)
{
    for (int k = 0; k < n; k++)
        cpl_meeting_count(&comm, 1);
}

static void test_dates_double(void **state)
{
    struct cpl_date date = {0};
    int64_t met = 0;
    (void)state;
    for (int64_t n = 1; n <= 1000; n++)
        if (cpl_date_has_come(&date, 4, n)) {
            assert_true(cpl_date_keep(&date, n, CPL_NEVER));
            met++;
            assert_int_equal(n, INT64_C(2) << met);
        }
    assert_int_equal(met, 8); /* 4 ... 512 */
}

static void test_dates_have_a_longest_pause(void **state)
{
    struct cpl_date date = {0};
    int64_t met = 0;
    (void)state;
    for (int64_t n = 1; n <= 256; n++)
        if (cpl_date_has_come(&date, 2, n)) {
            cpl_date_keep(&date, n, 64);
            met++;
        }
    assert_int_equal(met, 6 + 3); /* 2 ... 64, 128, 192, 256 */
}

static void test_dates_between_regular_ones(void **state)
{
    struct cpl_date date = {0};
    (void)state;
    assert_int_equal(cpl_date_passing(&date, 0, 0), 0);
    assert_true(cpl_date_has_come(&date, 4, 5));
    assert_true(cpl_date_keep(&date, 5, CPL_NEVER)); /* late: the next one is 8 nevertheless */
    assert_int_equal(cpl_date_passing(&date, 0, 5), 2);
    for (int64_t n = 5; n < 8; n++) {
        cpl_date_retry(&date, n);
        assert_true(cpl_date_has_come(&date, 4, n + 1));
        assert_int_equal(cpl_date_keep(&date, n + 1, CPL_NEVER), n + 1 == 8);
    }
    assert_int_equal(date.n_retries, 0);
    for (int64_t n = 8; n < 11; n++) {
        cpl_date_retry(&date, n);
        assert_false(cpl_date_keep(&date, n + 1, CPL_NEVER));
    }
    cpl_date_retry(&date, 11); /* once too often */
    assert_int_equal(date.next, 16);
    cpl_date_hasten(&date, 11, 2);
    assert_int_equal(date.next, 13);
    cpl_date_hasten(&date, 11, 100);
    assert_int_equal(date.next, 13);
}

static void test_items_share_a_reduction(void **state)
{
    (void)state;
    count(3);
    assert_int_equal(n_reductions, 1); /* the second */
    assert_int_equal(n_words, COMMON + 2);
    count(1);
    assert_int_equal(n_reductions, 2);
    assert_int_equal(n_words, COMMON + 2 + 2);
    assert_int_equal(parts[FREQUENT].n_settled, 2);
    assert_int_equal(parts[RARE].n_settled, 1);
    assert_int_equal(parts[RARE].n_resumed, 2); /* whoever settled something */
    parts[RARE].attends = false;
    count(4);
    assert_int_equal(n_words, COMMON + 2);
    assert_int_equal(parts[RARE].n_settled, 1);
    assert_int_equal(n_errors, 0);
}

static void test_votes_are_put_together(void **state)
{
    (void)state;
    parts[FREQUENT].mine[0] = 7;
    parts[FREQUENT].mine[1] = 30;
    parts[RARE].mine[0] = -3;
    parts[RARE].mine[1] = 40;
    other[0] = 5;
    other[1] = 100;
    count(4);
    assert_int_equal(parts[FREQUENT].all[0], 5);
    assert_int_equal(parts[FREQUENT].all[1], 130);
    assert_int_equal(parts[RARE].all[0], -3);
    assert_int_equal(parts[RARE].all[1], 140);
}

static void test_more_to_settle(void **state)
{
    (void)state;
    parts[RARE].outcome = CPL_SETTLED_MORE;
    count(4);
    assert_int_equal(n_reductions, 3); /* at 2, at 4, and again at 4 about one item */
    assert_int_equal(n_words, COMMON + 2);
    assert_int_equal(parts[RARE].n_settled, 2);
    assert_int_equal(parts[RARE].n_regular, 1);
    assert_int_equal(parts[FREQUENT].n_settled, 2);
}

static void test_not_settled_is_tried_again(void **state)
{
    (void)state;
    parts[RARE].outcome = CPL_NOT_SETTLED;
    count(7);
    assert_int_equal(parts[RARE].n_settled, 4); /* 4, 5, 6, 7 */
    assert_int_equal(parts[RARE].n_regular, 1);
    count(1); /* regular */
    assert_int_equal(parts[RARE].n_regular, 2);
    count(7);
    assert_int_equal(parts[RARE].n_settled, 4 + 4);
}

static void test_what_is_not_alike_is_told(void **state)
{
    (void)state;
    count(2);
    assert_int_equal(n_errors, 0);
    other_differs = true;
    count(2);
    assert_int_equal(n_errors, 1);
}

static void test_left_alone(void **state)
{
    (void)state;
    comm.inter = true;
    count(4);
    comm.inter = false;
    comm.size = 1;
    count(4);
    assert_int_equal(n_reductions, 0);
}

static void test_grants_end_before_the_next_meeting(void **state)
{
    (void)state;
    int n_looked_at = 0, n = 0;
    for (; n < 1000; n++) {
        if (cpl_pass_collective(MPI_COMM_WORLD))
            continue;
        n_looked_at++;
        cpl_meeting_count(&comm, 1);
        cpl_meeting_grant(MPI_COMM_WORLD);
    }
    assert_int_equal(n_reductions, 9); /* 2 ... 512 */
    assert_int_equal(n_looked_at, 1 + 9);
    cpl_meeting_end_grants();
    assert_int_equal(comm.meeting.n, n);
    assert_false(cpl_pass_collective(MPI_COMM_WORLD));
}

/* Of a communicator of which many are made, the later ones have later first dates. */
static void test_first_dates_of_many(void **state)
{
    struct cpl_comm_state child = {.comm = MPI_COMM_SELF, .size = 2};
    int n_settled[300];
    (void)state;
    for (int k = 0; k < 300; k++) {
        child.meeting = (struct cpl_meeting){.n = 0};
        *cpl_context_recent(child.comm) = (struct cpl_recent){.comm = child.comm, .state = &child};
        cpl_meeting_made(MPI_COMM_WORLD, child.comm);
        memset(parts, 0, sizeof parts);
        parts[FREQUENT].attends = true;
        n_reductions = 0;
        for (int n = 0; n < 12; n++)
            cpl_meeting_count(&child, 1);
        n_settled[k] = n_reductions;
    }
    assert_int_equal(n_settled[0], 3); /* 2, 4, 8 */
    assert_int_equal(n_settled[7], 3);
    assert_int_equal(n_settled[8], 2); /* 4, 8 */
    assert_int_equal(n_settled[16], 1);
    assert_int_equal(n_settled[32], 0);
    assert_int_equal(n_settled[299], 0);
    assert_int_equal(cpl_meeting_first(&child, 2), 64);
    cpl_context.settings.mode = CPL_MODE_FORCE;
    child.meeting.late = 0;
    cpl_meeting_made(MPI_COMM_WORLD, child.comm);
    assert_int_equal(cpl_meeting_first(&child, 2), 2);
}

/* As long as the program has run for a moment only, in mode auto: about everything at once. */
static void test_at_first_they_meet_rarely(void **state)
{
    (void)state;
    cpl_context.settings.mode = CPL_MODE_AUTO;
    now = 0.1;
    count(63);
    assert_int_equal(n_reductions, 3); /* 2; 4, the rare one's first; 16 */
    assert_int_equal(parts[FREQUENT].n_settled, 2);
    now = 1;
    count(65);
    assert_int_equal(parts[FREQUENT].n_settled, 4); /* 64, 128 */
    count(128);
    assert_int_equal(parts[FREQUENT].n_settled, 5);
    cpl_context.settings.learn = 2; /* the user wants it early */
    now = 0.1;
    count(256);
    assert_int_equal(parts[FREQUENT].n_settled, 6);
    assert_int_equal(parts[FREQUENT].date.next, 1024);
}

static void test_who_must_see_all_is_shown_all(void **state)
{
    (void)state;
    parts[RARE].attends = false;
    parts[RARE].sees_all = true;
    count(2);
    cpl_meeting_grant(MPI_COMM_WORLD);
    assert_false(cpl_pass_collective(MPI_COMM_WORLD));
    parts[RARE].sees_all = false;
    cpl_meeting_grant(MPI_COMM_WORLD);
    assert_true(cpl_pass_collective(MPI_COMM_WORLD));
    cpl_context.busy.n_managed = 1;
    assert_false(cpl_pass_collective(MPI_COMM_WORLD));
}

/* Several threads: others are in calls, and there is no exclusive section; the ranks try again, and
 * settle whether the communicator's collectives poll. */
static void test_threads_take_turns(void **state)
{
    (void)state;
    cpl_context.service.shared = true;
    cpl_context.busy.n_managed = 1;
    lacks_floor = true;
    count(3);
    assert_int_equal(n_reductions, 0);
    assert_int_equal(parts[FREQUENT].n_settled + parts[FREQUENT].n_resumed, 0);
    assert_true(comm.meeting.denied);
    lacks_floor = false;
    count(1);
    assert_int_equal(parts[FREQUENT].n_settled, 1);
    assert_int_equal(parts[RARE].n_settled, 1);
    assert_false(comm.meeting.polls || comm.meeting.denied);
    all_yes = true;
    count(4);
    assert_int_equal(parts[FREQUENT].n_settled, 2);
    assert_true(comm.meeting.polls);
    assert_int_equal(n_floors, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dates_double),
        cmocka_unit_test(test_dates_have_a_longest_pause),
        cmocka_unit_test(test_dates_between_regular_ones),
        cmocka_unit_test_setup_teardown(test_items_share_a_reduction, begin, end),
        cmocka_unit_test_setup_teardown(test_votes_are_put_together, begin, end),
        cmocka_unit_test_setup_teardown(test_more_to_settle, begin, end),
        cmocka_unit_test_setup_teardown(test_not_settled_is_tried_again, begin, end),
        cmocka_unit_test_setup_teardown(test_what_is_not_alike_is_told, begin, end),
        cmocka_unit_test_setup_teardown(test_left_alone, begin, end),
        cmocka_unit_test_setup_teardown(test_grants_end_before_the_next_meeting, begin, end),
        cmocka_unit_test_setup_teardown(test_first_dates_of_many, begin, end),
        cmocka_unit_test_setup_teardown(test_threads_take_turns, begin, end),
        cmocka_unit_test_setup_teardown(test_at_first_they_meet_rarely, begin, end),
        cmocka_unit_test_setup_teardown(test_who_must_see_all_is_shown_all, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
