/* Reading the report's JSON (report_read.h). */
#include "report_read.h"

#include <stdio.h>
#include <string.h>

json_int_t cpl_report_integer(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

double cpl_report_number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

const char *cpl_report_text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    return value ? value : "?";
}

bool cpl_report_has_number(const json_t *object, const char *key)
{
    return json_is_number(json_object_get(object, key));
}

void cpl_report_name(const json_t *pattern, char *name, size_t size)
{
    json_int_t ordinal = cpl_report_integer(pattern, "ordinal");
    if (!cpl_report_has_number(pattern, "tag"))
        snprintf(name, size, "%s", cpl_report_text(pattern, "kind"));
    else if (ordinal)
        snprintf(name, size, "%s, tag %lld, no. %lld", cpl_report_text(pattern, "kind"),
                 (long long)cpl_report_integer(pattern, "tag"), (long long)ordinal + 1);
    else
        snprintf(name, size, "%s, tag %lld", cpl_report_text(pattern, "kind"),
                 (long long)cpl_report_integer(pattern, "tag"));
}

void cpl_report_outcome(const json_t *pattern, char *text, size_t size)
{
    json_int_t calls = cpl_report_integer(pattern, "calls");
    json_int_t planned = cpl_report_integer(pattern, "calls_planned");
    if (planned == 0)
        snprintf(text, size, "left to MPI");
    else
        snprintf(text, size, "rerouted by %s in %lld of %lld calls",
                 cpl_report_text(pattern, "strategy"), (long long)planned, (long long)calls);
}

const char *cpl_report_nodes_option(const json_t *pattern, char *text, size_t size)
{
    json_int_t n_nodes = cpl_report_integer(pattern, "nodes");
    json_int_t n_ranks = cpl_report_integer(pattern, "ranks");
    text[0] = '\0';
    if (n_nodes > 0 && n_ranks >= n_nodes)
        snprintf(text, size, " --ranks-per-node %lld",
                 (long long)((n_ranks + n_nodes - 1) / n_nodes));
    return text;
}
