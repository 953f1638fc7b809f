/* Sends of managed communicators (sending.h). */
#include "shim/carry/sending.h"

#include "shim/state/context.h"

#include <stdlib.h>
#include <utlist.h>

#define MOST_SEGMENT_BYTES (16 << 10) /* payloads above always go straight */

bool cpl_goes_straight(int64_t bytes)
{
    int64_t limit = cpl_context.settings.size_limit;
    return bytes > (limit < MOST_SEGMENT_BYTES ? limit : MOST_SEGMENT_BYTES);
}

struct cpl_synchronous *cpl_sending_expect(struct cpl_synchronous **list, int dest, uint32_t number)
{
    struct cpl_synchronous *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->dest = dest;
    s->number = number;
    DL_APPEND(*list, s);
    return s;
}

void cpl_sending_withdraw(struct cpl_synchronous **list, struct cpl_sending *sending)
{
    if (!sending->synchronous)
        return;
    DL_DELETE(*list, sending->synchronous);
    free(sending->synchronous);
    sending->synchronous = NULL;
}

void cpl_sending_acknowledged(struct cpl_synchronous **list, int dest, uint32_t number)
{
    struct cpl_synchronous *s, *next;
    DL_FOREACH_SAFE(*list, s, next)
    {
        if (s->dest != dest || s->number != number)
            continue;
        DL_DELETE(*list, s);
        s->done = true;
        if (s->abandoned)
            free(s);
        return;
    }
}

bool cpl_sending_is_done(struct cpl_sending *sending)
{
    int flag = 1;
    if (sending->inner != MPI_REQUEST_NULL)
        PMPI_Test(&sending->inner, &flag, MPI_STATUS_IGNORE);
    return flag && (!sending->synchronous || sending->synchronous->done);
}

void cpl_sending_forget(struct cpl_sending *sending)
{
    struct cpl_synchronous *s = sending->synchronous;
    if (sending->inner != MPI_REQUEST_NULL)
        PMPI_Request_free(&sending->inner);
    sending->synchronous = NULL;
    if (!s)
        return;
    s->abandoned = true; /* the acknowledgement will free it */
    if (s->done)
        free(s);
}
