/* Appointments (appointment.h). */
#include "shim/meet/appointment.h"

#include "shim/meet/meeting.h"
#include "shim/state/comm_state.h"
#include "shim/wait/progress.h"

#define FEW           4  /* without a blocking one between them: their communicator has none */
#define LONGEST_PAUSE 64 /* collectives, before the ranks look again when they meet next */

/* How long a rank waits for others: a part of the time that the program has taken so far, since
 * appointments come after twice as many collectives each time. */
#define PART_WAITED 64
#define SHORTEST    1e-3 /* seconds */
#define LONGEST     20e-3

/* The most time that it waits in vain, of that: then it comes to none for a while. */
#define PART_IN_VAIN 32

#define FIRST_TAG 64 /* on cpl_context.comms.away, beside those of wait and of windows */
#define DEGREE    8  /* of the tree */

enum said {
    NOTHING,
    HAS_COME, /* to the parent: I am here, and so are those below me */
    HAS_GONE, /* to the parent: not all of us are, or not any more */
    ARE_YOU,  /* to the children: are you still there? */
    IS_THERE, /* to the parent: I stay, and so do those below me */
    MEET,     /* to the children: all are there */
    IS_OFF    /* to the children: not all are */
};

struct message {
    int64_t of; /* hash_which */
    int64_t said;
};

/* What a rank knows of an appointment. Ranks are those of MPI_COMM_WORLD. */
struct company {
    int64_t of;
    int tag;
    int parent, first_child, n_children;
    enum said by_parent, by_child[DEGREE]; /* what each has said last */
};

static int count(const struct company *c, enum said said)
{
    int n = 0;
    for (int k = 0; k < c->n_children; k++)
        n += c->by_child[k] == said;
    return n;
}

/* Receives a message of appointments, if there is one. */
static bool receive(int tag, struct message *message, MPI_Status *status)
{
    MPI_Comm comm = cpl_context.comms.away;
    MPI_Request request;
    int flag = 0;
    return PMPI_Iprobe(MPI_ANY_SOURCE, tag, comm, &flag, status) == MPI_SUCCESS && flag &&
           status->MPI_TAG >= FIRST_TAG &&
           PMPI_Irecv(message, sizeof *message, MPI_BYTE, status->MPI_SOURCE, status->MPI_TAG, comm,
                      &request) == MPI_SUCCESS &&
           cpl_progress_wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS;
}

/* Messages of ranks that came to an earlier appointment are not for this one. */
static void hear(struct company *c)
{
    MPI_Status status;
    struct message message;
    while (receive(c->tag, &message, &status)) {
        int child = status.MPI_SOURCE - c->first_child;
        if (message.of != c->of)
            continue;
        if (status.MPI_SOURCE == c->parent)
            c->by_parent = (enum said)message.said;
        else if (child >= 0 && child < c->n_children)
            c->by_child[child] = (enum said)message.said;
    }
}

static void tell(const struct company *c, int rank, enum said said)
{
    const struct message message = {c->of, said};
    MPI_Request request;
    if (PMPI_Isend(&message, sizeof message, MPI_BYTE, rank, c->tag, cpl_context.comms.away,
                   &request) == MPI_SUCCESS)
        cpl_progress_wait(&request, MPI_STATUS_IGNORE);
}

/* Tells the children of whom this was heard last. */
static void tell_children(const struct company *c, enum said heard, enum said said)
{
    for (int k = 0; k < c->n_children; k++)
        if (c->by_child[k] == heard)
            tell(c, c->first_child + k, said);
}

static double elapsed(void)
{
    return PMPI_Wtime() - cpl_context.account.start;
}

static bool is_forced(void)
{
    return cpl_context.settings.mode == CPL_MODE_FORCE;
}

/* The first round. Returns whether this rank is asked whether it is still there: the first one asks
 * itself. If not, it has told that it has gone, if it had told that it has come. */
static bool is_asked(struct company *c)
{
    const double begin = PMPI_Wtime(), part = is_forced() ? LONGEST : elapsed() / PART_WAITED;
    const double end = begin + (part < SHORTEST ? SHORTEST : part > LONGEST ? LONGEST : part);
    bool has_told = false;
    do {
        cpl_progress_poll();
        hear(c);
        if (count(c, HAS_GONE) > 0)
            break;
        if (count(c, HAS_COME) < c->n_children)
            continue;
        if (c->parent < 0 || c->by_parent == ARE_YOU)
            return true;
        if (!has_told)
            tell(c, c->parent, HAS_COME);
        has_told = true;
    } while (PMPI_Wtime() < end);
    if (has_told)
        tell(c, c->parent, HAS_GONE);
    return false;
}

/* The second round. */
static bool all_are_there(struct company *c)
{
    tell_children(c, HAS_COME, ARE_YOU);
    while (count(c, IS_THERE) + count(c, HAS_GONE) < c->n_children) {
        cpl_progress_poll();
        hear(c);
    }
    bool there = count(c, HAS_GONE) == 0;
    if (c->parent >= 0)
        tell(c, c->parent, there ? IS_THERE : HAS_GONE);
    while (there && c->parent >= 0 && c->by_parent == ARE_YOU) {
        cpl_progress_poll();
        hear(c);
    }
    there = there && (c->parent < 0 || c->by_parent == MEET);
    tell_children(c, IS_THERE, there ? MEET : IS_OFF);
    return there;
}

/* Blocking collectives of a communicator so far. */
static int64_t count_blocking(const struct cpl_comm_state *state)
{
    const struct cpl_pass *pass = &state->meeting.pass;
    return state->meeting.n + pass->granted - pass->remaining;
}

/* Which appointment it is: of which nonblocking collective, how many there were since which
 * blocking one, and how many blocking ones of each communicator of all ranks were called, in
 * whatever order this rank knows them. Where ranks have counted differently (one had no memory for
 * a state, or another communicator's meeting came between), they do not find each other. */
static int64_t hash_which(const struct cpl_awaited *a)
{
    struct cpl_alike all = {CPL_HASH_START};
    uint64_t sum = 0;
    for (const struct cpl_comm_state *s = cpl_context.comms.first; s; s = s->next) {
        struct cpl_alike one = {CPL_HASH_START};
        cpl_alike_add(&one, s->meeting.family.number);
        cpl_alike_add(&one, count_blocking(s));
        if (s->size == cpl_context.size && count_blocking(s) > 0)
            sum += one.hash;
    }
    cpl_alike_add(&all, (int64_t)sum);
    cpl_alike_add(&all, a->number);
    cpl_alike_add(&all, a->since);
    cpl_alike_add(&all, a->n);
    return (int64_t)all.hash;
}

static struct company company_of(const struct cpl_comm_state *state)
{
    const int rank = cpl_context.rank, first = rank * DEGREE + 1;
    int n = cpl_context.size - first;
    n = n < DEGREE ? n : DEGREE;
    return (struct company){.of = hash_which(&state->meeting.awaited),
                            .tag = FIRST_TAG + (int)state->meeting.family.number,
                            .parent = rank > 0 ? (rank - 1) / DEGREE : -1,
                            .first_child = first,
                            .n_children = n > 0 ? n : 0};
}

bool cpl_appointment_are_possible(const struct cpl_comm_state *state)
{
    return !state->inter && state->size == cpl_context.size && state->size > 1 &&
           state->meeting.family.number > 0 && state->meeting.family.number <= CPL_MOST_FAMILY &&
           !cpl_context.service.shared && !cpl_context.met_others;
}

/* Counts a nonblocking collective; those before the last blocking one do not matter. */
static void count_one(struct cpl_comm_state *state)
{
    struct cpl_awaited *a = &state->meeting.awaited;
    int64_t since = count_blocking(state);
    if (since != a->since) {
        a->since = since;
        a->n = a->next = 0;
        a->alone = false;
    }
    a->number++;
    a->n++;
    a->alone |= a->n > FEW;
}

/* Whether the ranks have an appointment for the one counted last. Alike on all ranks. */
static bool is_due(struct cpl_comm_state *state)
{
    struct cpl_awaited *a = &state->meeting.awaited;
    if (a->n < a->next)
        return false;
    int64_t distance = cpl_meeting_distance(state);
    if (a->n <= distance) {
        a->next = distance < a->n + LONGEST_PAUSE ? distance + 1 : a->n + LONGEST_PAUSE;
        return false;
    }
    a->next = 2 * a->n;
    return true;
}

struct cpl_comm_state *cpl_appointment_make(MPI_Comm comm, MPI_Request request, bool by_all)
{
    struct cpl_comm_state *state = cpl_comm_state_get(comm);
    struct cpl_appointment *a = &cpl_context.busy.appointment;
    cpl_appointment_cancel();
    if (!state) {
        a->barred = true; /* there is no memory for it, and this one is not counted */
        return NULL;
    }
    if (!cpl_appointment_are_possible(state))
        return NULL;
    count_one(state);
    if (cpl_context.comms.away != MPI_COMM_NULL && is_due(state) && !a->barred &&
        (by_all || !a->others)) {
        cpl_meeting_end_grants(); /* no collective passes unseen */
        a->with = state;
        a->request = request;
    }
    return state->meeting.awaited.alone ? state : NULL;
}

struct cpl_comm_state *cpl_appointment_come(int64_t *n)
{
    struct cpl_comm_state *state = cpl_context.busy.appointment.with;
    struct company company = company_of(state);
    struct cpl_awaited *a = &state->meeting.awaited;
    double *in_vain = &cpl_context.busy.appointment.in_vain;
    const double begin = elapsed();
    cpl_appointment_cancel();
    if (*in_vain > begin / PART_IN_VAIN && !is_forced())
        return NULL;
    cpl_progress_leave();
    if (!is_asked(&company) || !all_are_there(&company)) {
        *in_vain += elapsed() - begin;
        return NULL;
    }
    *n = a->n;
    a->n = a->next = 0;
    a->since = state->meeting.n + *n;
    return state;
}

void cpl_appointment_end(void)
{
    struct message message;
    MPI_Status status;
    while (cpl_context.comms.away != MPI_COMM_NULL && receive(MPI_ANY_TAG, &message, &status))
        continue;
}
