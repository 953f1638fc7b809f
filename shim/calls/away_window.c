/* Locks and epochs of windows (away_window.h). */
#include "shim/calls/away_window.h"
#include "shim/meet/agree.h"
#include "shim/state/hooks.h"
#include "shim/wait/progress.h"

#include "shim/carry/buffered.h"
#include "shim/state/context.h"
#include "shim/wait/away.h"
#include "shim/wait/collective.h"

#include <stdint.h>
#include <stdlib.h>
#include <utlist.h>

/* Tags on cpl_context.comms.away, beside those of away.c. */
enum { ASK = 8, GRANT, POST };

enum asked { LOCK_SHARED, LOCK_EXCLUSIVE, UNLOCK };

struct message {
    int64_t window;
    int64_t asked;
};

/* A lock that this rank has. */
enum held {
    NONE,
    SHARED, /* by MPI alone, as the next one */
    EXCLUSIVE,
    GATED /* it was asked for by messages */
};

/* A rank that wants this rank's lock. */
struct asker {
    struct asker *next;
    int rank; /* in MPI_COMM_WORLD */
    bool exclusive;
};

struct cpl_window {
    struct cpl_window *prev, *next;
    int64_t id;
    MPI_Group group;
    int n_ranks;         /* of the group */
    unsigned char *held; /* enum held, per rank */
    /* the lock of this rank's part: */
    int n_shared;
    bool exclusive;
    struct asker *waiting;
};

/* A post that came while this rank waited for a post of another window. */
struct post {
    struct post *next;
    int rank;
    int64_t window;
};

/* State of the process, which has one MPI_COMM_WORLD. */
static struct {
    int keyval; /* key of the attribute that holds a window's state */
    bool has_keyval, listens;
    int32_t n_ids;
    MPI_Request request; /* receive of the next message that asks for a lock */
    struct message heard;
    struct cpl_window *first;
    struct post *posts;
    int n_granted; /* to this rank by itself */
} windows;

static void free_window(struct cpl_window *w)
{
    PMPI_Group_free(&w->group);
    free(w->held);
    free(w);
}

static int forget_window(MPI_Win win, int keyval, void *attribute, void *extra)
{
    struct cpl_window *w = attribute;
    (void)win, (void)keyval, (void)extra;
    DL_DELETE(windows.first, w);
    free_window(w);
    return MPI_SUCCESS;
}

static struct cpl_window *find(MPI_Win win)
{
    void *found = NULL;
    int flag = 0;
    if (!windows.has_keyval || win == MPI_WIN_NULL ||
        PMPI_Win_get_attr(win, windows.keyval, &found, &flag) != MPI_SUCCESS)
        return NULL;
    return flag ? found : NULL;
}

static struct cpl_window *make(MPI_Win win, int64_t id)
{
    struct cpl_window *w = calloc(1, sizeof *w);
    if (!w || PMPI_Win_get_group(win, &w->group) != MPI_SUCCESS) {
        free(w);
        return NULL;
    }
    PMPI_Group_size(w->group, &w->n_ranks);
    w->id = id;
    w->held = calloc((size_t)w->n_ranks + 1, sizeof *w->held);
    if (!w->held || PMPI_Win_set_attr(win, windows.keyval, w) != MPI_SUCCESS) {
        free_window(w);
        return NULL;
    }
    DL_APPEND(windows.first, w);
    return w;
}

void cpl_window_opened(MPI_Comm comm, MPI_Win win)
{
    int64_t id = (int64_t)cpl_context.rank << 32 | windows.n_ids++;
    cpl_collective_Bcast(&id, 1, MPI_INT64_T, 0, comm);
    if (!windows.has_keyval)
        windows.has_keyval = PMPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, forget_window,
                                                    &windows.keyval, NULL) == MPI_SUCCESS;
    bool made = windows.has_keyval && make(win, id);
    if (!cpl_agree_all(comm, made) && made)
        PMPI_Win_delete_attr(win, windows.keyval);
}

static void send(int rank, int tag, struct message message)
{
    const struct cpl_span span = {(char *)&message, sizeof message, {MPI_BYTE, 1, 1, true, false}};
    cpl_buffered_send(&span, rank, tag, cpl_context.comms.away, MPI_COMM_NULL);
}

/* Returns false when MPI cannot receive. */
static bool receive(int rank, int tag, struct message *message)
{
    MPI_Request request;
    if (PMPI_Irecv(message, sizeof *message, MPI_BYTE, rank, tag, cpl_context.comms.away,
                   &request) != MPI_SUCCESS)
        return false;
    cpl_progress_wait(&request, MPI_STATUS_IGNORE);
    return true;
}

/* --- posts */

/* Does something for each rank of a group that an epoch is for, unless the program knows better. */
static void do_for_each(MPI_Group group, int assert, MPI_Win win,
                        void (*something)(int rank, int64_t window))
{
    const struct cpl_window *w = find(win);
    int n = 0;
    if (!w || assert & MPI_MODE_NOCHECK || group == MPI_GROUP_NULL || !cpl_away_gathers())
        return;
    PMPI_Group_size(group, &n);
    for (int k = 0; k < n; k++) {
        int rank = cpl_away_world_rank(group, k);
        if (rank != MPI_UNDEFINED)
            something(rank, w->id);
    }
}

static void send_post(int rank, int64_t window)
{
    send(rank, POST, (struct message){window, 0});
}

void cpl_window_posted(MPI_Group group, int assert, MPI_Win win)
{
    do_for_each(group, assert, win, send_post);
}

static bool has_posted(int rank, int64_t window)
{
    struct post *p;
    LL_FOREACH(windows.posts, p)
    {
        if (p->rank != rank || p->window != window)
            continue;
        LL_DELETE(windows.posts, p);
        free(p);
        return true;
    }
    return false;
}

static void await_post(int rank, int64_t window)
{
    while (!has_posted(rank, window)) {
        struct message message;
        if (!receive(rank, POST, &message))
            return;
        struct post *p = message.window == window ? NULL : malloc(sizeof *p);
        if (!p) /* or no memory: MPI's own call will wait for the other post */
            return;
        *p = (struct post){NULL, rank, message.window};
        LL_PREPEND(windows.posts, p);
    }
}

void cpl_window_before_start(MPI_Group group, int assert, MPI_Win win)
{
    do_for_each(group, assert, win, await_post);
}

/* --- locks: the rank that is locked */

static void grant(int rank, int64_t window)
{
    if (rank == cpl_context.rank)
        windows.n_granted++;
    else
        send(rank, GRANT, (struct message){window, 0});
}

/* Grants the lock to the ranks that have waited longest, as many as can have it together. */
static void grant_all(struct cpl_window *w)
{
    struct asker *a;
    while ((a = w->waiting) && !w->exclusive && !(a->exclusive && w->n_shared > 0)) {
        w->exclusive = a->exclusive;
        w->n_shared += !a->exclusive;
        LL_DELETE(w->waiting, a);
        grant(a->rank, w->id);
        free(a);
    }
}

/* Without memory a lock is granted at once: MPI's own lock still excludes others. */
static void serve(int rank, const struct message *message)
{
    struct cpl_window *w;
    DL_SEARCH_SCALAR(windows.first, w, id, message->window);
    if (w && message->asked == UNLOCK) {
        w->n_shared -= !w->exclusive && w->n_shared > 0;
        w->exclusive = false;
    } else if (message->asked != UNLOCK) {
        struct asker *a = w ? malloc(sizeof *a) : NULL;
        if (!a) {
            grant(rank, message->window);
            return;
        }
        *a = (struct asker){NULL, rank, message->asked == LOCK_EXCLUSIVE};
        LL_APPEND(w->waiting, a);
    }
    if (w)
        grant_all(w);
}

static bool poll(void)
{
    MPI_Status status;
    int done = 0;
    if (!windows.has_keyval || cpl_context.comms.away == MPI_COMM_NULL)
        return false;
    if (windows.listens && PMPI_Test(&windows.request, &done, &status) == MPI_SUCCESS && done) {
        const struct message message = windows.heard;
        serve(status.MPI_SOURCE, &message);
        windows.listens = false;
    }
    if (!windows.listens)
        windows.listens = PMPI_Irecv(&windows.heard, sizeof windows.heard, MPI_BYTE, MPI_ANY_SOURCE,
                                     ASK, cpl_context.comms.away, &windows.request) == MPI_SUCCESS;
    return done;
}

/* --- locks: the rank that locks */

static void ask(int rank, int64_t window, enum asked asked)
{
    const struct message message = {window, asked};
    if (rank == cpl_context.rank)
        serve(rank, &message);
    else
        send(rank, ASK, message);
}

static void await_grant(int rank)
{
    struct message message;
    if (rank != cpl_context.rank) {
        receive(rank, GRANT, &message);
        return;
    }
    while (windows.n_granted == 0)
        cpl_progress_poll();
    windows.n_granted--;
}

static void lock_one(struct cpl_window *w, bool exclusive, int k)
{
    int rank = cpl_away_world_rank(w->group, k);
    if (rank == MPI_UNDEFINED)
        return;
    ask(rank, w->id, exclusive ? LOCK_EXCLUSIVE : LOCK_SHARED);
    await_grant(rank);
    w->held[k] = GATED;
}

void cpl_window_before_lock(bool exclusive, int rank, MPI_Win win)
{
    struct cpl_window *w = find(win);
    if (!w || !cpl_away_gathers())
        return;
    if (rank >= 0 && rank < w->n_ranks)
        lock_one(w, exclusive, rank);
    for (int k = 0; rank == CPL_ALL_RANKS && k < w->n_ranks; k++)
        lock_one(w, false, k);
}

void cpl_window_locked(bool exclusive, int rank, MPI_Win win)
{
    struct cpl_window *w = find(win);
    for (int k = 0; w && k < w->n_ranks; k++)
        if ((rank == CPL_ALL_RANKS || k == rank) && w->held[k] == NONE)
            w->held[k] = exclusive ? EXCLUSIVE : SHARED;
}

/* Ranks begin to ask for locks: reports those that this rank has, which are granted at once. */
static void prepare(void)
{
    for (struct cpl_window *w = windows.first; w; w = w->next)
        for (int k = 0; k < w->n_ranks; k++)
            if (w->held[k] == SHARED || w->held[k] == EXCLUSIVE)
                lock_one(w, w->held[k] == EXCLUSIVE, k);
}

void cpl_window_unlocked(int rank, MPI_Win win)
{
    struct cpl_window *w = find(win);
    for (int k = 0; w && k < w->n_ranks; k++) {
        if (rank != CPL_ALL_RANKS && k != rank)
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

const struct cpl_hooks cpl_window_hooks = {.name = "windows", .poll = poll, .prepare = prepare};
