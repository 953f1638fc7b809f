/* Persistent requests (doc/point-to-point.md). A persistent request has the handle that MPI gave
 * it; what is carried by the shim is not started in MPI, and completion calls find it among the
 * shim's requests (requests.h). What starting one does, and what there is to free, is its kind's.
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
    /* Frees a request's memory; nothing of it is under way. */
    void (*free)(struct cpl_persistent *p);
    bool is_waited_for; /* when it is freed while active, which MPI does not allow */
};

/* The first member of what a kind keeps of a request. */
struct cpl_persistent {
    struct cpl_request request; /* the first member: what is found by the handle */
    const struct cpl_persistent_kind *kind;
    struct cpl_persistent *prev, *next;
};

/* A persistent request was made: takes over p, whose memory is the kind's. Returns false when
 * memory ran out; p is then the caller's. */
bool cpl_persistent_add(struct cpl_persistent *p, const struct cpl_persistent_kind *kind,
                        MPI_Request handle);

/* Forgets a request that was added, and frees its memory. NULL: there is none of that handle. */
struct cpl_persistent *cpl_persistent_find(MPI_Request handle);
void cpl_persistent_forget(struct cpl_persistent *p);

/* The program starts a request, of any kind or MPI's. Returns MPI's error codes. */
int cpl_persistent_start(MPI_Request *request);

/* The request is freed by the program, active or not, and its handle is MPI's again: what is active
 * goes on. Nothing happens if it is no persistent one. */
void cpl_persistent_free(MPI_Request request);

/* Forgets all persistent requests. */
void cpl_persistent_end(void);

#endif
