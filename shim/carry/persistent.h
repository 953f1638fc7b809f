/* Persistent requests (doc/point-to-point.md). A persistent request keeps the handle that MPI gave
 * it. A request that the shim carries is not started in MPI; completion calls find it among the
 * shim's requests (requests.h). Its kind starts it and frees it.
 */
#ifndef CARPOOL_PERSISTENT_H
#define CARPOOL_PERSISTENT_H

#include "shim/carry/requests.h"

#include <mpi.h>
#include <stdbool.h>

struct cpl_persistent;

struct cpl_persistent_kind {
    /* Starts a request that is not active. Returns MPI's error codes. */
    int (*start)(struct cpl_persistent *p, MPI_Request *handle);
    /* Frees the memory of a request that is not under way. */
    void (*free)(struct cpl_persistent *p);
    bool is_waited_for; /* freeing it while it is active, which MPI does not allow, waits for it */
};

/* A persistent request. Kinds embed it as the first member of their own struct. */
struct cpl_persistent {
    struct cpl_request request; /* must be first: what a handle leads to */
    const struct cpl_persistent_kind *kind;
    struct cpl_persistent *prev, *next;
};

/* Adds a persistent request that was made and takes over p, which its kind frees. Returns false
 * when memory ran out; p then stays the caller's. */
bool cpl_persistent_add(struct cpl_persistent *p, const struct cpl_persistent_kind *kind,
                        MPI_Request handle);

/* cpl_persistent_find: the request with a handle, NULL: there is none. cpl_persistent_forget:
 * forgets a request and frees its memory. */
struct cpl_persistent *cpl_persistent_find(MPI_Request handle);
void cpl_persistent_forget(struct cpl_persistent *p);

/* Starts a request, of any kind or MPI's. Returns MPI's error codes. */
int cpl_persistent_start(MPI_Request *request);

/* The program frees a request, active or not: its handle is MPI's again, and an active transfer
 * goes on. Does nothing if the request is not one that was added. */
void cpl_persistent_free(MPI_Request request);

/* Forgets all persistent requests. */
void cpl_persistent_end(void);

#endif
