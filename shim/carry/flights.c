/* The buffers of rides (flights.h). */
#include "shim/carry/flights.h"

#include "shim/base/log.h"
#include "shim/state/memory.h"

#include <stdlib.h>
#include <string.h>

#define MOST_FLYING  32   /* rides under way before the rank checks whether they have been sent */
#define MORE_FLYING  16   /* than were found not to be, before it is looked again */
#define FLIGHT_BYTES 1024 /* smallest buffer of a ride */

#define WHAT "a combined message"

/* Places for one more ride under way, so that sending one needs no memory. */
static void widen(struct cpl_flights *flights)
{
    if (flights->n_made < flights->room)
        return;
    size_t room = flights->room ? 2 * (size_t)flights->room : 2 * MOST_FLYING;
    flights->flying = cpl_memory_grow(flights->flying, room * sizeof(struct cpl_flight *), WHAT);
    flights->request = cpl_memory_grow(flights->request, room * sizeof(MPI_Request), WHAT);
    flights->landed = cpl_memory_grow(flights->landed, room * sizeof(int), WHAT);
    flights->room = (int)room;
}

void cpl_flights_spare(struct cpl_flights *flights, struct cpl_flight *flight)
{
    flight->next = flights->spare;
    flights->spare = flight;
}

void cpl_flight_enlarge(struct cpl_flight *flight, size_t more)
{
    size_t need = flight->used + more;
    flight->room = need < FLIGHT_BYTES ? FLIGHT_BYTES : 2 * need;
    flight->bytes = cpl_memory_grow(flight->bytes, flight->room, WHAT);
}

/* Takes back the buffers of rides that have been sent. */
static void reap(struct cpl_flights *flights)
{
    int n_landed = 0, n = 0;
    PMPI_Testsome(flights->n_flying, flights->request, &n_landed, flights->landed,
                  MPI_STATUSES_IGNORE);
    for (int k = 0; k < n_landed; k++) { /* MPI_UNDEFINED is negative */
        cpl_flights_spare(flights, flights->flying[flights->landed[k]]);
        flights->flying[flights->landed[k]] = NULL;
    }
    for (int k = 0; k < flights->n_flying; k++) {
        if (!flights->flying[k])
            continue;
        flights->flying[n] = flights->flying[k];
        flights->request[n++] = flights->request[k];
    }
    flights->n_flying = n;
    flights->reap_at = n + MORE_FLYING;
}

struct cpl_flight *cpl_flights_take(struct cpl_flights *flights, size_t head, size_t more)
{
    if (!flights->spare && flights->n_flying >= MOST_FLYING &&
        flights->n_flying >= flights->reap_at)
        reap(flights);
    struct cpl_flight *flight = flights->spare;
    if (flight) {
        flights->spare = flight->next;
    } else {
        widen(flights);
        flight = cpl_memory_need(sizeof *flight, WHAT);
        flights->n_made++;
    }
    flight->used = 0;
    flight->n_segments = 0;
    cpl_flight_make_room(flight, head + more);
    flight->used = head;
    return flight;
}

bool cpl_flights_send(struct cpl_flights *flights, struct cpl_flight *flight, int dest, int tag,
                      MPI_Comm comm)
{
    int k = flights->n_flying;
    if (PMPI_Isend(flight->bytes, (int)flight->used, MPI_BYTE, dest, tag, comm,
                   &flights->request[k]) != MPI_SUCCESS) {
        cpl_log(CPL_LOG_ERROR, "rides", "a ride to rank %d cannot be sent", dest);
        cpl_flights_spare(flights, flight);
        return false;
    }
    flights->flying[k] = flight;
    flights->n_flying++;
    return true;
}

void cpl_flights_free(struct cpl_flights *flights)
{
    while (flights->n_flying > 0)
        reap(flights);
    while (flights->spare) {
        struct cpl_flight *flight = flights->spare;
        flights->spare = flight->next;
        free(flight->bytes);
        free(flight);
    }
    free(flights->flying);
    free(flights->request);
    free(flights->landed);
    *flights = (struct cpl_flights){.n_made = flights->n_made};
}
