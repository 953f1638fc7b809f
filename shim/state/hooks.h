/* What a part of the shim does at moments that a room below knows of. calls/start.c lists the
 * parts' tables, which are called in that order; members that are NULL are left out. */
#ifndef CARPOOL_HOOKS_H
#define CARPOOL_HOOKS_H

#include <stdbool.h>

struct cpl_alike;
struct cpl_comm_state;
struct cpl_item;

/* What is needed for a communicator of fewer ranks. */
enum cpl_part_need {
    CPL_PART_NOTHING,
    CPL_PART_LEARNS, /* that its ranks meet: it is learned of */
    CPL_PART_WAITS,  /* that all ranks poll: then its ranks may agree on what they have planned */
    CPL_PART_SERVED  /* that they go on polling */
};

struct cpl_hooks {
    /* A communicator is met, of which nothing is known: the state's member of the part's name
     * becomes what is true of all of these, which nobody writes to. Local. */
    void (*meet)(struct cpl_comm_state *state);

    /* Something is to be kept of it (cpl_comm_state_own): makes what the part keeps, in that
     * member, which is freed with the state. Waits for memory. Local. */
    void (*begin)(struct cpl_comm_state *state);

    /* The communicator is about to be freed, and may still be used. Collective. */
    void (*before_free)(struct cpl_comm_state *state);

    /* It ends: waits for what is under way, adds to the report. Collective, as freeing is. */
    void (*end)(struct cpl_comm_state *state);

    /* A call that may wait is entered: what was held back to leave with others leaves. Local, never
     * waits. */
    void (*leave)(void);

    /* The same for one communicator, whatever its messages are held back for. */
    void (*flush)(struct cpl_comm_state *state);

    /* The program is not in MPI: what it takes for sent leaves. Returns whether there was anything.
     * Local, never waits. */
    bool (*serve)(void);

    /* Receives, forwards, delivers. Returns whether there was anything. Local, never waits. */
    bool (*poll)(void);

    /* A reduction of the communicator starts that carries messages: what waits for it is
     * piggybacked (carry/embed.h). Local. */
    void (*piggyback)(struct cpl_comm_state *state, bool blocking);

    /* Adds what the part takes to be alike on all ranks when they meet (meet/meeting.h). Local. */
    void (*alike)(const struct cpl_comm_state *state, struct cpl_alike *alike);

    /* Something is about to be managed or served: from then on waits are gathered
     * (wait/assembly.h). Polls where it waits. On all ranks of MPI_COMM_WORLD. */
    void (*prepare)(void);

    /* What the part needs for a communicator of fewer ranks than MPI_COMM_WORLD (pt2pt_parts.h).
     * Where it waits, its item's date comes as soon as all ranks poll. Local; alike on the
     * communicator's ranks. NULL: nothing. */
    enum cpl_part_need (*part_need)(const struct cpl_comm_state *state);

    /* What it has to settle with the other ranks at meetings (meet/meeting.h). */
    const struct cpl_item *item;
};

/* For each part in turn: `hooks` is its table. */
#define CPL_EACH_HOOKS(hooks)                                                                      \
    for (const struct cpl_hooks *const *hooks##_at = cpl_context.hooks, *hooks;                    \
         hooks##_at && (hooks = *hooks##_at); hooks##_at++)

/* Calls a member that returns nothing, of each part that has it. */
#define CPL_CALL_HOOKS(member, arguments)                                                          \
    CPL_EACH_HOOKS(hooks)                                                                          \
    if (hooks->member)                                                                             \
    hooks->member arguments

#endif
