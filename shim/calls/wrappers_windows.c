/* The intercepted calls on windows that may wait inside MPI for other ranks (wait/assembly.h).
 *
 * MPI_Win_start waits for the posts of its group, and MPI_Win_lock for other ranks to unlock. The
 * shim sends messages about both and waits for these while polling; MPI's own call then need not
 * wait. Each rank queues the locks that are asked of it, in the order in which they
 * are asked for, and answers whenever it polls. All this happens only while something is managed or
 * served; locks that were taken before are reported when that begins. Nothing begins while a rank
 * is between MPI_Win_post and MPI_Win_wait or between MPI_Win_start and MPI_Win_complete
 * (cpl_context.n_epochs). Thread rule: as the shim's. */
#include "shim/calls/wrappers.h"
#include "shim/carry/requests.h"
#include "shim/meet/appointment.h"
#include "shim/state/context.h"
#include "shim/state/hooks.h"
#include "shim/state/memory.h"
#include "shim/wait/assembly.h"
#include "shim/wait/collective.h"
#include "shim/wait/progress.h"

#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <utlist.h>

#define ALL_RANKS (-1)

#define TAG 8 /* on cpl_context.comms.away, beside those of wait/assembly.c */

/* What a message says: about a lock of the receiver's part; that the sender has granted its own, or
 * has posted. */
enum { LOCK_SHARED, LOCK_EXCLUSIVE, UNLOCK, GRANTED, POSTED };

struct message {
    int64_t window;
    int64_t says;
};

/* A lock that this rank has. */
enum held {
    NONE,
    SHARED, /* by MPI alone, as the next one */
    EXCLUSIVE,
    GATED /* it was asked for by messages */
};

/* A message that came. */
struct letter {
    struct letter *next;
    int rank; /* of the sender, in MPI_COMM_WORLD */
    struct message message;
};

struct window {
    struct window *prev, *next;
    MPI_Win win;
    int64_t id; /* alike on all its ranks */
    MPI_Group group;
    int n_ranks;         /* of the group */
    unsigned char *held; /* enum held, per rank */
    /* the lock of this rank's part: */
    int n_shared;
    bool exclusive;
    struct letter *waiting; /* who asks for it */
};

/* State of the process, which has one MPI_COMM_WORLD. */
static struct {
    bool listens;
    int32_t n_ids;       /* windows so far */
    MPI_Request request; /* receive of the next message */
    struct message heard;
    struct window *first;
    struct letter *letters; /* grants and posts that nobody has waited for yet */
} windows;

static struct window *find(MPI_Win win)
{
    struct window *w;
    DL_SEARCH_SCALAR(windows.first, w, win, win);
    return w;
}

void cpl_window_opened(MPI_Comm comm, MPI_Win win)
{
    struct window *w = cpl_memory_need(sizeof *w, "a window");
    w->win = win;
    w->id = (int64_t)cpl_context.rank << 32 | windows.n_ids++;
    cpl_collective_Bcast(&w->id, 1, MPI_INT64_T, 0, comm);
    PMPI_Win_get_group(win, &w->group);
    PMPI_Group_size(w->group, &w->n_ranks);
    w->held = cpl_memory_need((size_t)w->n_ranks, "a window");
    DL_APPEND(windows.first, w);
}

void cpl_window_closes(MPI_Win win)
{
    struct window *w = find(win);
    cpl_away_window(win);
    if (!w)
        return;
    DL_DELETE(windows.first, w);
    PMPI_Group_free(&w->group);
    free(w->held);
    free(w);
}

static void send(int rank, int64_t window, int64_t says)
{
    struct message message = {window, says};
    const struct cpl_span span = {(char *)&message, sizeof message, {MPI_BYTE, 1, 1, true, false}};
    cpl_buffered_send(&span, rank, TAG, cpl_context.comms.away, MPI_COMM_NULL);
}

/* Waits until a rank says so. */
static void await(int rank, int64_t window, int64_t says)
{
    struct letter *l = NULL;
    cpl_progress_leave();
    while (!l) {
        LL_FOREACH(windows.letters, l)
        {
            if (l->rank == rank && l->message.window == window && l->message.says == says)
                break;
        }
        if (!l)
            cpl_progress_poll();
    }
    LL_DELETE(windows.letters, l);
    free(l);
}

/* Tells each rank of a group that this one has posted, or waits until it has; unless the program
 * knows better. */
static void match(bool posts, MPI_Group group, int assert, MPI_Win win)
{
    const struct window *w = find(win);
    int n = 0;
    if (!w || assert & MPI_MODE_NOCHECK || group == MPI_GROUP_NULL || !cpl_away_gathers())
        return;
    PMPI_Group_size(group, &n);
    for (int k = 0; k < n; k++) {
        int rank = cpl_away_world_rank(group, k);
        if (rank != MPI_UNDEFINED && posts)
            send(rank, w->id, POSTED);
        else if (rank != MPI_UNDEFINED)
            await(rank, w->id, POSTED);
    }
}

/* --- locks: the rank that is locked */

/* Grants the lock to the ranks that have waited longest, as many as can have it together. */
static void grant_all(struct window *w)
{
    struct letter *l;
    while ((l = w->waiting) && !w->exclusive &&
           (l->message.says == LOCK_SHARED || w->n_shared == 0)) {
        w->exclusive = l->message.says == LOCK_EXCLUSIVE;
        w->n_shared += !w->exclusive;
        LL_DELETE(w->waiting, l);
        send(l->rank, w->id, GRANTED);
        free(l);
    }
}

static void serve(int rank, const struct message *message)
{
    const bool locks = message->says == LOCK_SHARED || message->says == LOCK_EXCLUSIVE;
    struct window *w;
    DL_SEARCH_SCALAR(windows.first, w, id, message->window);
    if (!w && locks) {
        send(rank, message->window, GRANTED);
    } else if (w && message->says == UNLOCK) {
        w->n_shared -= !w->exclusive && w->n_shared > 0;
        w->exclusive = false;
    } else if (message->says != UNLOCK) {
        struct letter *l = cpl_memory_need(sizeof *l, "a call on a window");
        *l = (struct letter){NULL, rank, *message};
        if (locks)
            LL_APPEND(w->waiting, l);
        else
            LL_APPEND(windows.letters, l);
    }
    if (w)
        grant_all(w);
}

static bool poll(void)
{
    MPI_Status status;
    int done = 0;
    if (windows.n_ids == 0 || cpl_context.comms.away == MPI_COMM_NULL)
        return false;
    if (windows.listens && PMPI_Test(&windows.request, &done, &status) == MPI_SUCCESS && done) {
        const struct message message = windows.heard;
        serve(status.MPI_SOURCE, &message);
        windows.listens = false;
    }
    if (!windows.listens)
        windows.listens = PMPI_Irecv(&windows.heard, sizeof windows.heard, MPI_BYTE, MPI_ANY_SOURCE,
                                     TAG, cpl_context.comms.away, &windows.request) == MPI_SUCCESS;
    return done;
}

/* --- locks: the rank that locks */

static void ask(int rank, int64_t window, int64_t says)
{
    if (rank == cpl_context.rank)
        serve(rank, &(struct message){window, says});
    else
        send(rank, window, says);
}

static void lock_one(struct window *w, bool exclusive, int k)
{
    int rank = cpl_away_world_rank(w->group, k);
    if (rank == MPI_UNDEFINED)
        return;
    ask(rank, w->id, exclusive ? LOCK_EXCLUSIVE : LOCK_SHARED);
    await(rank, w->id, GRANTED);
    w->held[k] = GATED;
}

/* Before a lock of a rank of the window, or of ALL_RANKS, is taken, after that, and after it was
 * released. */
static void before_lock(bool exclusive, int rank, MPI_Win win)
{
    struct window *w = cpl_away_gathers() ? find(win) : NULL;
    for (int k = 0; w && k < w->n_ranks; k++)
        if (rank == ALL_RANKS || k == rank)
            lock_one(w, exclusive, k);
}

static void locked(int result, bool exclusive, int rank, MPI_Win win)
{
    struct window *w = result == MPI_SUCCESS ? find(win) : NULL;
    for (int k = 0; w && k < w->n_ranks; k++)
        if ((rank == ALL_RANKS || k == rank) && w->held[k] == NONE)
            w->held[k] = exclusive ? EXCLUSIVE : SHARED;
}

/* Ranks begin to ask for locks: reports those that this rank has, which are granted at once. */
static void prepare(void)
{
    for (struct window *w = windows.first; w; w = w->next)
        for (int k = 0; k < w->n_ranks; k++)
            if (w->held[k] == SHARED || w->held[k] == EXCLUSIVE)
                lock_one(w, w->held[k] == EXCLUSIVE, k);
}

static void unlocked(int rank, MPI_Win win)
{
    struct window *w = find(win);
    for (int k = 0; w && k < w->n_ranks; k++) {
        if (rank != ALL_RANKS && k != rank)
            continue;
        bool gated = w->held[k] == GATED;
        w->held[k] = NONE;
        if (gated)
            ask(cpl_away_world_rank(w->group, k), w->id, UNLOCK);
    }
}

void cpl_window_end(void)
{
    if (!windows.listens)
        return;
    PMPI_Cancel(&windows.request);
    PMPI_Wait(&windows.request, MPI_STATUS_IGNORE);
    windows.listens = false;
}

const struct cpl_hooks cpl_window_hooks = {.poll = poll, .prepare = prepare};

EXPORT int MPI_Win_test(MPI_Win win, int *flag)
{
    CPL_COLLECTIVE;
    cpl_appointment_note_other();
    if (cpl_context.active && cpl_progress_needed())
        cpl_progress_poll();
    int result = PMPI_Win_test(win, flag);
    cpl_context.n_epochs -= result == MPI_SUCCESS && *flag;
    return result;
}

/* MPI_Win_wait, where other ranks may need this one. */
static int wait_for(MPI_Win win)
{
    int flag = 0, result = MPI_SUCCESS;
    if (!cpl_progress_needed())
        return CPL_AWAY(PMPI_Win_wait(win));
    while (!flag && result == MPI_SUCCESS) {
        result = PMPI_Win_test(win, &flag);
        if (!flag)
            cpl_progress_poll();
    }
    return result;
}

EXPORT int MPI_Win_wait(MPI_Win win)
{
    CPL_COLLECTIVE;
    cpl_appointment_note_other();
    if (cpl_context.active)
        cpl_progress_before_wait();
    int result = wait_for(win);
    cpl_context.n_epochs -= result == MPI_SUCCESS;
    return result;
}

static void note_post(int result, MPI_Group group, int assert, MPI_Win win)
{
    cpl_context.n_epochs += result == MPI_SUCCESS;
    if (result == MPI_SUCCESS)
        match(true, group, assert, win);
}

/* A call that may wait inside MPI for other ranks: what comes before it and after it, where the
 * library is active. */
#define MAY_WAIT(name, parameters, arguments, before, after)                                       \
    EXPORT int MPI_##name parameters                                                               \
    {                                                                                              \
        CPL_COLLECTIVE;                                                                            \
        cpl_appointment_note_other();                                                              \
        if (cpl_context.active) {                                                                  \
            cpl_progress_before_wait();                                                            \
            before;                                                                                \
        }                                                                                          \
        int result = CPL_AWAY(PMPI_##name arguments);                                              \
        if (cpl_context.active)                                                                    \
            after;                                                                                 \
        return result;                                                                             \
    }
#include "shim/tables/others.def"
