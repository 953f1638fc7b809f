/* Reading the report's JSON (report_read.h). */
#include "cli/report_read.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

bool cpl_report_is_trial(const json_t *root)
{
    return json_is_array(json_object_get(root, "programs"));
}

json_t *cpl_report_load(const char *command, const char *file)
{
    json_error_t error;
    struct stat info = {.st_size = 1};
    stat(file, &info);
    if (S_ISDIR(info.st_mode)) {
        fprintf(stderr, "carpool %s: %s is a directory; the report in it is %s/report.json\n",
                command, file, file);
        return NULL;
    }
    if (info.st_size == 0 && S_ISREG(info.st_mode)) {
        fprintf(stderr,
                "carpool %s: %s is empty: the run has not come to its end, or the disk was "
                "full\n",
                command, file);
        return NULL;
    }
    json_t *root = json_load_file(file, 0, &error);
    bool is_trial = cpl_report_is_trial(root) && strcmp(command, "report") == 0;
    if (is_trial || json_is_array(json_object_get(root, "patterns")))
        return root;
    if (root)
        fprintf(stderr, "carpool %s: %s is JSON, but no report of Carpool's\n", command, file);
    else if (error.line > 0)
        fprintf(stderr, "carpool %s: %s:%d: %s; is this a report of Carpool's?\n", command, file,
                error.line, error.text);
    else
        fprintf(stderr, "carpool %s: %s\n", command, error.text);
    json_decref(root);
    return NULL;
}

json_int_t cpl_report_integer(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

double cpl_report_number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

double cpl_report_spent(const json_t *account)
{
    return cpl_report_number(account, "meetings_ms") + cpl_report_number(account, "planning_ms") +
           cpl_report_number(account, "trials_ms");
}

const char *cpl_report_text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    return value ? value : "?";
}

bool cpl_report_is_ordered(const json_t *pattern)
{
    return json_is_true(json_object_get(pattern, "ordered")) || json_object_get(pattern, "order");
}

bool cpl_report_has_number(const json_t *object, const char *key)
{
    return json_is_number(json_object_get(object, key));
}

void cpl_report_name(const json_t *pattern, char *name, size_t size)
{
    json_int_t ordinal = cpl_report_integer(pattern, "ordinal");
    json_int_t most = cpl_report_integer(pattern, "data_bytes_max");
    if (most == INT64_MAX)
        snprintf(name, size, "%s, all larger", cpl_report_text(pattern, "kind"));
    else if (most > 0)
        snprintf(name, size, "%s, below %lld KiB", cpl_report_text(pattern, "kind"),
                 (long long)(most + 1) / 1024);
    else if (!cpl_report_has_number(pattern, "tag"))
        snprintf(name, size, "%s", cpl_report_text(pattern, "kind"));
    else if (ordinal)
        snprintf(name, size, "%s, tag %lld, no. %lld", cpl_report_text(pattern, "kind"),
                 (long long)cpl_report_integer(pattern, "tag"), (long long)ordinal + 1);
    else
        snprintf(name, size, "%s, tag %lld", cpl_report_text(pattern, "kind"),
                 (long long)cpl_report_integer(pattern, "tag"));
}

const char *cpl_report_carrier(const json_t *pattern)
{
    const char *strategy = cpl_report_text(pattern, "strategy");
    bool later_left = strcmp(strategy, "none") == 0 && json_object_get(pattern, "considered");
    return later_left ? cpl_report_text(pattern, "considered") : strategy;
}

void cpl_report_outcome(const json_t *pattern, char *text, size_t size)
{
    json_int_t calls = cpl_report_integer(pattern, "calls");
    json_int_t planned = cpl_report_integer(pattern, "calls_planned");
    if (planned == 0)
        snprintf(text, size, "left to MPI");
    else
        snprintf(text, size, "carried by %s in %lld of %lld calls", cpl_report_carrier(pattern),
                 (long long)planned, (long long)calls);
}

const char *cpl_report_reason(const json_t *pattern, char *text, size_t size)
{
    const json_t *why = json_object_get(pattern, "left_alone");
    bool carried = cpl_report_integer(pattern, "calls_planned") > 0;
    text[0] = '\0';
    if (json_is_string(why))
        snprintf(text, size, "%s%s", carried ? "; later left to MPI: " : ": ",
                 json_string_value(why));
    return text;
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

void cpl_report_directory(const char *file, char *text, size_t size)
{
    const char *slash = strrchr(file, '/');
    snprintf(text, size, "%.*s", slash ? (int)(slash - file) + 1 : 0, file);
}
