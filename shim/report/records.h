/* The list of records in cpl_context. For report.c. */
#ifndef CARPOOL_RECORDS_H
#define CARPOOL_RECORDS_H

#include "shim/report/report.h"

struct cpl_record_node {
    struct cpl_record record;
    struct cpl_record_node *next;
};

#endif
