/* A communicator on which the shim's own messages travel: combined messages (rides.h), reductions
 * that carry some (embed.h), and matching what comes (match.h). Two parts use it: the program's
 * messages when they are managed, and neighborhood collectives that ride in reductions; it is open
 * while one of them does. */
#ifndef CARPOOL_LINE_H
#define CARPOOL_LINE_H

#include "shim/carry/embed.h"
#include "shim/carry/match.h"
#include "shim/carry/rides.h"
#include "shim/carry/sending.h"

#include <stdbool.h>
#include <stdint.h>

struct cpl_comm_state;

struct cpl_line {
    /* Alike on all ranks: */
    bool managed; /* the program's messages travel on it */
    bool ridden;  /* neighborhood collectives may ride in its reductions */
    bool linked;  /* in cpl_context.comms.first_managed */
    bool closed;  /* a window or file was opened: nothing waits for reductions any more */
    struct cpl_comm_state *next_linked;
    struct cpl_rides rides;
    struct cpl_embed embed;
    /* The program's messages: */
    struct cpl_match match;
    uint32_t *next_number;               /* per rank: of the next message to it */
    struct cpl_synchronous *synchronous; /* sends that wait for acknowledgements */
    /* Segments of neighborhood collectives: */
    struct cpl_match rider_match;
    uint32_t *rider_number; /* per rank: of the next segment to it */
};

/* Begins to receive rides, unless that has begun; false when memory ran out. Then link: the
 * communicator is polled. Close ends both, unless it is still used; nothing may be under way. On
 * all ranks alike. */
bool cpl_line_open(struct cpl_comm_state *state);
void cpl_line_link(struct cpl_comm_state *state);
void cpl_line_close(struct cpl_comm_state *state);

/* Room for matching the program's messages; false when memory ran out. */
bool cpl_line_manage(struct cpl_comm_state *state);

/* Waits until no ride is under way any more, on any rank. Collective. */
void cpl_line_drain(struct cpl_comm_state *state);

extern const struct cpl_hooks cpl_line_hooks;

#endif
