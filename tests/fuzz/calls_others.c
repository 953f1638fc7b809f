/* Things that some ranks of calls_fuzz.c do while messages of the others are half way: computing,
 * windows, files, new groups and intercommunicators, generalized requests, attributes; and the
 * making of the communicators that messages travel on. */
#include "calls_fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void compute_event(struct run *run, struct draw *draw)
{
    uint64_t ranks = mix(draw->state);
    int microseconds = below(draw, 3000), busy = below(draw, 200000);
    volatile double sum = 0;
    if (!(ranks >> run->rank & 1))
        return;
    run->where = "computing";
    if (ranks >> 60 & 1)
        usleep((useconds_t)microseconds);
    else
        for (int k = 1; k < busy; k++)
            sum += 1.0 / k;
}

/* --- windows: of the ranks of one color */
static void use_fence(MPI_Win win, int me, int n, int64_t *memory)
{
    int64_t value = 1000 + me;
    MPI_Win_fence(0, win);
    MPI_Put(&value, 1, MPI_INT64_T, (me + 1) % n, 1, 1, MPI_INT64_T, win);
    MPI_Win_fence(0, win);
    memory[0] += memory[1];
}

static void use_lock(MPI_Win win, MPI_Comm comm, int me, int n)
{
    int64_t value = 2000 + me;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, (me + 1) % n, 0, win);
    MPI_Put(&value, 1, MPI_INT64_T, (me + 1) % n, 2 + me, 1, MPI_INT64_T, win);
    MPI_Accumulate(&value, 1, MPI_INT64_T, (me + 1) % n, 1, 1, MPI_INT64_T, MPI_SUM, win);
    MPI_Win_unlock((me + 1) % n, win);
    MPI_Barrier(comm);
    MPI_Win_lock(MPI_LOCK_SHARED, me, 0, win);
    MPI_Win_unlock(me, win);
}

static void use_post(MPI_Win win, MPI_Comm comm, int me, int n)
{
    int64_t value = 3000 + me;
    int right = (me + 1) % n, left = (me + n - 1) % n;
    MPI_Group all, to, from;
    MPI_Comm_group(comm, &all);
    MPI_Group_incl(all, 1, &right, &to);
    MPI_Group_incl(all, 1, &left, &from);
    MPI_Win_post(from, 0, win);
    MPI_Win_start(to, 0, win);
    MPI_Put(&value, 1, MPI_INT64_T, right, 3, 1, MPI_INT64_T, win);
    MPI_Win_complete(win);
    MPI_Win_wait(win);
    MPI_Group_free(&all);
    MPI_Group_free(&to);
    MPI_Group_free(&from);
}

void window_event(struct run *run, struct draw *draw)
{
    int sub = below(draw, 2), color = below(draw, 2), form = below(draw, 3), me, n;
    MPI_Comm comm = run->sub[sub];
    int64_t memory[80] = {0};
    MPI_Win win;
    if (run->sub_color[sub] != color)
        return;
    run->where = "a window";
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &n);
    MUST(run, MPI_Win_create(memory, sizeof memory, sizeof *memory, MPI_INFO_NULL, comm, &win));
    if (form == 0)
        use_fence(win, me, n, memory);
    else if (form == 1)
        use_lock(win, comm, me, n);
    else
        use_post(win, comm, me, n);
    MUST(run, MPI_Win_free(&win));
    note(run, run->iteration, mix3(hash_bytes(memory, sizeof memory), run->event, 11));
}

/* --- files */
void file_event(struct run *run, struct draw *draw)
{
    int sub = below(draw, 2), color = below(draw, 2), me, n, mode;
    MPI_Comm comm = run->sub[sub];
    MPI_File file;
    char name[96];
    uint8_t block[64], other[64] = "";
    if (run->sub_color[sub] != color)
        return;
    run->where = "a file";
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &n);
    snprintf(name, sizeof name, "calls_fuzz-%llu-%u-%d.tmp", (unsigned long long)run->seed,
             (unsigned)run->event, color);
    mode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
    MUST(run, MPI_File_open(comm, name, mode, MPI_INFO_NULL, &file));
    fill_bytes(mix3(run->seed, run->event, (uint64_t)me), block, sizeof block);
    MUST(run,
         MPI_File_write_at_all(file, 64 * (MPI_Offset)me, block, 64, MPI_BYTE, MPI_STATUS_IGNORE));
    MUST(run, MPI_File_sync(file));
    MUST(run, MPI_Barrier(comm));
    MUST(run, MPI_File_sync(file));
    MUST(run, MPI_File_read_at(file, 64 * (MPI_Offset)((me + 1) % n), other, 64, MPI_BYTE,
                               MPI_STATUS_IGNORE));
    MUST(run, MPI_File_close(&file));
    note(run, run->iteration, mix3(hash_bytes(other, sizeof other), run->event, 12));
}

/* --- groups and intercommunicators */
void group_event(struct run *run, struct draw *draw)
{
    uint64_t ranks = mix(draw->state) | (uint64_t)1 << below(draw, run->n_ranks);
    int members[64], n = 0, mine = 100 + run->rank, got = 0, me;
    MPI_Group world, some;
    MPI_Comm comm;
    for (int k = 0; k < run->n_ranks; k++)
        if (ranks >> k & 1)
            members[n++] = k;
    if (!(ranks >> run->rank & 1))
        return;
    run->where = "MPI_Comm_create_group";
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, n, members, &some);
    MUST(run, MPI_Comm_create_group(MPI_COMM_WORLD, some, (int)run->event % 30000, &comm));
    MPI_Comm_rank(comm, &me);
    MUST(run, MPI_Sendrecv(&mine, 1, MPI_INT, (me + 1) % n, 5, &got, 1, MPI_INT, (me + n - 1) % n,
                           5, comm, MPI_STATUS_IGNORE));
    note(run, run->iteration, mix3((uint64_t)got, run->event, 13));
    collective_on(run, comm, below(draw, 13), 3, mix(draw->state));
    MUST(run, MPI_Comm_free(&comm));
    MPI_Group_free(&world);
    MPI_Group_free(&some);
}

void intercomm_event(struct run *run, struct draw *draw)
{
    int side = run->rank % 2, mine[2] = {run->rank + 5, 3 * run->rank}, sum[2] = {0, 0}, n, me;
    MPI_Comm inter, merged;
    uint64_t key = mix(draw->state);
    if (run->n_ranks < 2)
        return;
    run->where = "an intercommunicator";
    MUST(run, MPI_Intercomm_create(run->sub[0], 0, MPI_COMM_WORLD, 1 - side,
                                   700000 + (int)run->event % 1000, &inter));
    MUST(run, MPI_Allreduce(mine, sum, 2, MPI_INT, MPI_SUM, inter));
    note(run, run->iteration, mix3((uint64_t)sum[0], (uint64_t)sum[1], run->event));
    MPI_Comm_remote_size(inter, &n);
    MPI_Comm_rank(inter, &me);
    int peer = me < n ? me : MPI_PROC_NULL, got = 0;
    MUST(run, MPI_Sendrecv(mine, 1, MPI_INT, peer, 6, &got, 1, MPI_INT, peer, 6, inter,
                           MPI_STATUS_IGNORE));
    note(run, run->iteration, mix3((uint64_t)got, 14, run->event));
    MUST(run, MPI_Intercomm_merge(inter, side, &merged));
    collective_on(run, merged, 2, 4, key);
    MUST(run, MPI_Comm_free(&merged));
    MUST(run, MPI_Comm_free(&inter));
}

/* --- generalized requests */
static int grequest_query(void *state, MPI_Status *status)
{
    const struct op *op = state;
    MPI_Status_set_elements(status, MPI_BYTE, op->message.size);
    MPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = op->message.tag;
    return MPI_SUCCESS;
}

static int grequest_free(void *state)
{
    (void)state;
    return MPI_SUCCESS;
}

static int grequest_cancel(void *state, int complete)
{
    (void)state;
    (void)complete;
    return MPI_SUCCESS;
}

void grequest_event(struct run *run, struct draw *draw)
{
    uint64_t ranks = mix(draw->state);
    if (!(ranks >> run->rank & 1))
        return;
    struct op *op = op_new(run, OP_GREQUEST);
    op->message.size = (int)(ranks % 50);
    op->message.tag = (int)run->event;
    MUST(run, MPI_Grequest_start(grequest_query, grequest_free, grequest_cancel, op, &op->request));
    op_add(run, op);
    op->ready = run->event + 1;
    op->message.number = 0; /* not completed: it is at the next event */
    if (ranks >> 62 & 1) {
        MUST(run, MPI_Grequest_complete(op->request));
        op->ready = run->event;
        op->message.number = 1;
    }
}

/* --- attributes: their callbacks call MPI */
static int copy_attribute(MPI_Comm comm, int keyval, void *state, void *in, void *out, int *flag)
{
    struct run *run = state;
    int found;
    (void)comm;
    (void)keyval;
    MPI_Iprobe(MPI_ANY_SOURCE, 4711, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE);
    run->n_attributes++;
    *(void **)out = in;
    *flag = 1;
    return MPI_SUCCESS;
}

static int delete_attribute(MPI_Comm comm, int keyval, void *value, void *state)
{
    struct run *run = state;
    int found;
    (void)comm;
    (void)keyval;
    (void)value;
    MPI_Iprobe(MPI_ANY_SOURCE, 4711, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE);
    run->n_attributes += 100;
    return MPI_SUCCESS;
}

void attribute_event(struct run *run, struct draw *draw)
{
    int sub = below(draw, 2), color = below(draw, 2), flag = 0, keyval;
    void *value = NULL;
    MPI_Comm comm;
    if (run->sub_color[sub] != color)
        return;
    run->where = "attributes";
    MUST(run, MPI_Comm_create_keyval(copy_attribute, delete_attribute, &keyval, run));
    MUST(run, MPI_Comm_set_attr(run->sub[sub], keyval, &run->seed));
    MUST(run, MPI_Comm_dup(run->sub[sub], &comm));
    MUST(run, MPI_Comm_get_attr(comm, keyval, &value, &flag));
    if (!flag || value != &run->seed)
        wrong(run, NULL, "an attribute was not copied");
    MUST(run, MPI_Comm_delete_attr(run->sub[sub], keyval));
    MUST(run, MPI_Comm_free(&comm));
    MUST(run, MPI_Comm_free_keyval(&keyval));
    note(run, run->iteration, mix3((uint64_t)run->n_attributes, run->event, 15));
}

/* --- communicators */
static void make_comm(struct run *run, int k)
{
    if (k == 3 && is_on(run, KIND_reversed))
        MUST(run, MPI_Comm_split(MPI_COMM_WORLD, 0, -run->rank, &run->comm[k]));
    else
        MUST(run, MPI_Comm_dup(MPI_COMM_WORLD, &run->comm[k]));
    MPI_Comm_set_errhandler(run->comm[k], MPI_ERRORS_RETURN);
}

static void make_sub(struct run *run, int k, int color)
{
    run->sub_color[k] = color;
    MUST(run, MPI_Comm_split(MPI_COMM_WORLD, color, run->rank, &run->sub[k]));
    MPI_Comm_set_errhandler(run->sub[k], MPI_ERRORS_RETURN);
}

void make_comms(struct run *run)
{
    run->comm[0] = MPI_COMM_WORLD;
    for (int k = 1; k < MAX_COMMS; k++)
        make_comm(run, k);
    make_sub(run, 0, run->rank % 2);
    make_sub(run, 1, (int)(mix3(run->seed, 71, (uint64_t)run->rank) % 2));
}

void free_comms(struct run *run)
{
    for (int k = 1; k < MAX_COMMS; k++)
        MUST(run, MPI_Comm_free(&run->comm[k]));
    for (int k = 0; k < 2; k++)
        MUST(run, MPI_Comm_free(&run->sub[k]));
}

/* Another communicator in the place of one; exchanges on it go on. What is under way on the old one
 * may be waited for later. */
void dup_event(struct run *run, struct draw *draw)
{
    int k = 1 + below(draw, MAX_COMMS - 1);
    bool is_early = chance_of(run, KIND_freepending, draw, 60);
    MPI_Comm old = run->comm[k];
    if (k == 1 && run->n_cross > 0)
        return;
    run->where = "duplicating a communicator";
    for (int x = 0; x < run->n_exchanges; x++)
        if (run->exchange[x].comm == k)
            free_persistent(run, &run->exchange[x]);
    if (!is_early)
        complete_all(run);
    make_comm(run, k);
    MUST(run, MPI_Comm_free(&old));
}

void split_event(struct run *run, struct draw *draw)
{
    uint64_t colors = mix(draw->state);
    run->where = "splitting";
    MUST(run, MPI_Comm_free(&run->sub[1]));
    make_sub(run, 1, (int)(colors >> run->rank & 1));
}

typedef void (*action)(struct run *, struct draw *);

action some_ranks_action(struct run *run, struct draw *draw)
{
    static const struct {
        enum kind kind;
        action call;
    } actions[] = {{KIND_subcollective, subcollective_event},
                   {KIND_window, window_event},
                   {KIND_file, file_event},
                   {KIND_group, group_event},
                   {KIND_compute, compute_event},
                   {KIND_grequest, grequest_event},
                   {KIND_attribute, attribute_event},
                   {KIND_compute, compute_event},
                   {KIND_subcollective, subcollective_event}};
    int k = below(draw, (int)(sizeof actions / sizeof *actions));
    return is_on(run, actions[k].kind) ? actions[k].call : NULL;
}
