/* What a rank notes of a call until its exchange is planned: of a nonblocking one until it is
 * decided whether such calls are carried (neighbor_serve.c). */
#ifndef CARPOOL_NEIGHBOR_NOTES_H
#define CARPOOL_NEIGHBOR_NOTES_H

#include "shim/exchange/neighbor_internal.h"

/* What a rank wants to send. */
struct cpl_neighbor_notes {
    bool usable;
    struct cpl_neighbor_list list;
    int *token_out, *token_in;
    int *ones, *displs;
    MPI_Request request; /* of the tokens; MPI_REQUEST_NULL: they are here */
    struct cpl_adjacency
        adjacency; /* of MPI_Ialltoallv and _w, of the latest call; and in list.bytes */
};

/* Notes with room for the messages of an adjacency, usable; NULL when memory ran out. Local. */
struct cpl_neighbor_notes *cpl_neighbor_notes_make(const struct cpl_adjacency *adjacency);
void cpl_neighbor_notes_free(struct cpl_neighbor_notes *notes); /* NULL: there are none */

/* Notes the messages of a call, and starts the exchange of tokens. Local; all ranks start it. */
void cpl_neighbor_notes_fill(struct cpl_neighbor_notes *notes, const struct cpl_neighbor_call *call,
                             const struct cpl_adjacency *adjacency);

/* Plans the noted messages, when the tokens are here. Collective over the private communicator; the
 * same result on all ranks. */
bool cpl_neighbor_plan_noted(const struct cpl_comm_state *state, struct cpl_exchange *exchange,
                             const struct cpl_neighbor_notes *notes);

#endif
