/* A line: a communicator on which the shim's own messages travel. It has combined messages
 * (rides.h), reductions that carry messages (embed.h), and a matching engine (match.h). Two parts
 * use it: managed point-to-point messages, and neighborhood collectives that travel in reductions.
 * It is open while one of them uses it. */
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
    bool managed; /* the program's point-to-point messages travel on it */
    bool kept;    /* they are MPI's for a while, and what the line has for them is kept */
    bool hosts;   /* its reductions may carry neighborhood collectives */
    bool linked;  /* in cpl_context.comms.first_managed */
    struct cpl_comm_state *next_linked;
    struct cpl_rides rides;
    struct cpl_embed embed;
    /* The program's messages: */
    struct cpl_match match;
    uint32_t *next_number;               /* per rank: number of the next message to it */
    struct cpl_synchronous *synchronous; /* sends that wait for acknowledgements */
    /* Segments of neighborhood collectives: */
    struct cpl_match hosted_match;
    uint32_t *hosted_number; /* per rank: number of the next segment to it */
};

/* cpl_line_open begins to receive rides, unless the line is open; false when memory ran out.
 * cpl_line_link: from then on the communicator is polled. cpl_line_close ends both, unless a part
 * still uses the line; nothing may be under way. All ranks call alike. */
bool cpl_line_open(struct cpl_comm_state *state);
void cpl_line_link(struct cpl_comm_state *state);
void cpl_line_close(struct cpl_comm_state *state);

/* The program's messages are MPI's for a while, and the line's again; nothing may be under way. All
 * ranks call alike. */
void cpl_line_keep(struct cpl_comm_state *state);
void cpl_line_take_up(struct cpl_comm_state *state);

/* Makes room for matching the program's messages; false when memory ran out. */
bool cpl_line_manage(struct cpl_comm_state *state);

/* Waits until no ride is under way any more, on any rank. Collective. */
void cpl_line_drain(struct cpl_comm_state *state);

/* That of all communicators of which nothing is kept. */
extern const struct cpl_line cpl_line_blank;

extern const struct cpl_hooks cpl_line_hooks;

#endif
