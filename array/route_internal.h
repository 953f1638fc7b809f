/* A function that route.c and method.c share. */
#ifndef CARPOOL_ARRAY_ROUTE_INTERNAL_H
#define CARPOOL_ARRAY_ROUTE_INTERNAL_H

#include "route.h"

#include <stdlib.h>

/* Makes the stages of a route that has its grid and maps. Returns CPL_OK, CPL_ERR_NOMEM. */
enum cpl_status cpl_route_stages(struct cpl_route *route, int rank, struct cpl_error *error);

#endif
