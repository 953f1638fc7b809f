/* The buffers of rides (flights.h). */
#include "shim/carry/flights.h"

#include "shim/base/log.h"

#include <stdlib.h>
#include <string.h>

#define MOST_FLYING  32   /* rides under way before the rank checks whether they have been sent */
#define MORE_FLYING  16   /* than were found not to be, before it is looked again */
#define FLIGHT_BYTES 1024 /* smallest buffer of a ride */

/* Places for one more ride under way, so that sending one needs no memory. */
static bool widen(struct cpl_flights *flights)
{
    if (flights->n_made < flights->room)
        return true;
    size_t room = flights->room ? 2 * (size_t)flights->room : 2 * MOST_FLYING;
    struct cpl_flight **flying = realloc(flights->flying, room * sizeof(struct cpl_flight *));
    if (flying)
        flights->flying = flying;
    MPI_Request *request = realloc(flights->request, room * sizeof *request);
    if (request)
        flights->request = request;
    int *landed = realloc(flights->landed, room * sizeof *landed);
    if (landed)
        flights->landed = landed;
    if (!flying || !request || !landed)
        return false;
    flights->room = (int)room;
    return true;
}

void cpl_flights_spare(struct cpl_flights *flights, struct cpl_flight *flight)
{
    if (flight == flights->reserve) {
        flights->reserve_is_free = true;
        return;
    }
    flight->next = flights->spare;
    flights->spare = flight;
}

bool cpl_flight_enlarge(struct cpl_flight *flight, size_t more)
{
    size_t need = flight->used + more;
    size_t room = need < FLIGHT_BYTES ? FLIGHT_BYTES : 2 * need;
    unsigned char *larger = realloc(flight->bytes, room);
    if (!larger)
        return false;
    flight->bytes = larger;
    flight->room = room;
    return true;
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

bool cpl_flights_init(struct cpl_flights *flights, size_t most_bytes)
{
    flights->most_bytes = most_bytes;
    flights->reserve = calloc(1, sizeof *flights->reserve);
    flights->reserve_is_free =
        flights->reserve && widen(flights) && cpl_flight_make_room(flights->reserve, most_bytes);
    flights->n_made = 1;
    return flights->reserve_is_free;
}

/* One that nobody uses; NULL when memory ran out. */
static struct cpl_flight *take_spare(struct cpl_flights *flights)
{
    if (!flights->spare && flights->n_flying >= MOST_FLYING &&
        flights->n_flying >= flights->reap_at)
        reap(flights);
    struct cpl_flight *flight = flights->spare;
    if (flight) {
        flights->spare = flight->next;
        return flight;
    }
    flight = widen(flights) ? calloc(1, sizeof *flight) : NULL;
    flights->n_made += flight != NULL;
    return flight;
}

static struct cpl_flight *take_reserve(struct cpl_flights *flights)
{
    while (!flights->reserve_is_free)
        reap(flights);
    flights->reserve_is_free = false;
    return flights->reserve;
}

struct cpl_flight *cpl_flights_take(struct cpl_flights *flights, size_t head, size_t more)
{
    struct cpl_flight *flight = take_spare(flights);
    if (flight) {
        flight->used = 0;
        flight->n_segments = 0;
        if (cpl_flight_make_room(flight, head + more)) {
            flight->used = head;
            return flight;
        }
        cpl_flights_spare(flights, flight);
    }
    flight = take_reserve(flights);
    flight->used = head;
    flight->n_segments = 0;
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
    if (flights->reserve)
        free(flights->reserve->bytes);
    free(flights->reserve);
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
