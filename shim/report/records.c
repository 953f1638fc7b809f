/* The records of this process, and whether they are wanted (report.h). */
#include "shim/report/records.h"

#include "shim/report/report.h"
#include "shim/state/context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

static bool alike(const struct cpl_record *a, const struct cpl_record *b)
{
    return a->kind == b->kind && a->reason == b->reason && a->n_ranks == b->n_ranks &&
           a->data_most == b->data_most && a->summary.tag == b->summary.tag &&
           a->summary.ordinal == b->summary.ordinal && a->summary.decided == b->summary.decided &&
           a->summary.plan_fingerprint == b->summary.plan_fingerprint &&
           strcmp(a->way, b->way) == 0 && a->order.units.given == b->order.units.given &&
           a->order.next_kind == b->order.next_kind &&
           a->order.next_pattern == b->order.next_pattern;
}

void cpl_report_add(const struct cpl_record *record)
{
    struct cpl_record_node *node;
    LL_FOREACH(cpl_context.told.records, node)
    {
        if (!alike(&node->record, record))
            continue;
        node->record.n_communicators += record->n_communicators;
        node->record.calls += record->calls;
        node->record.calls_planned += record->calls_planned;
        node->record.passed |= record->passed;
        node->record.direct_seconds += record->direct_seconds;
        node->record.planned_seconds += record->planned_seconds;
        node->record.forwarded_bytes += record->forwarded_bytes;
        node->record.reductions.n += record->reductions.n;
        node->record.reductions.sends += record->reductions.sends;
        node->record.reductions.messages += record->reductions.messages;
        node->record.reductions.late += record->reductions.late;
        node->record.rides += record->rides;
        node->record.late_rides += record->late_rides;
        node->record.order.calls += record->order.calls;
        return;
    }
    node = malloc(sizeof *node);
    if (!node)
        return; /* the record is missing in the report; the program goes on */
    node->record = *record;
    LL_APPEND(cpl_context.told.records, node);
}

void cpl_report_free(void)
{
    struct cpl_record_node *node, *next;
    LL_FOREACH_SAFE(cpl_context.told.records, node, next)
    free(node);
    cpl_context.told.records = NULL;
}

bool cpl_report_has_file(void)
{
    return cpl_context.settings.report[0] || cpl_context.settings.output[0];
}

bool cpl_report_is_wanted(void)
{
    return cpl_report_has_file() || cpl_context.settings.mode == CPL_MODE_PROFILE;
}

void cpl_report_file(char *file, size_t size)
{
    const struct cpl_settings *settings = &cpl_context.settings;
    if (settings->report[0])
        snprintf(file, size, "%s", settings->report);
    else
        snprintf(file, size, "%s/report.json", settings->output);
}
