/* carpool report: the JSON report of a run (shim/report.c writes it) as text. */
#include "command.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static void usage(FILE *out)
{
    fprintf(out,
            "usage: carpool report FILE\n\n"
            "Shows the report that a run with CARPOOL_REPORT=FILE wrote: for every exchange, how\n"
            "many calls there were, what became of them, and its figures direct and planned.\n");
}

static json_int_t integer(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

static const char *text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    return value ? value : "?";
}

static void print_side(const char *name, const json_t *side)
{
    const json_t *us = json_object_get(side, "us_per_call");
    printf("    %-8s %9lld %9.2f %9lld %5lld %11.2f", name, (long long)integer(side, "sends_max"),
           json_number_value(json_object_get(side, "sends_avg")),
           (long long)integer(side, "recvs_max"), (long long)integer(side, "hops_max"),
           json_number_value(json_object_get(side, "modelled_us")));
    if (json_is_number(us))
        printf(" %11.2f\n", json_number_value(us));
    else
        printf(" %11s\n", "-");
}

static void print_pattern(const json_t *p)
{
    printf("%s on %lld ranks: %lld calls, %lld rerouted by %s\n", text(p, "kind"),
           (long long)integer(p, "ranks"), (long long)integer(p, "calls"),
           (long long)integer(p, "calls_planned"), text(p, "strategy"));
    if (json_object_get(p, "left_alone"))
        printf("    left to MPI: %s\n", text(p, "left_alone"));
    if (!json_object_get(p, "direct")) {
        if (!json_object_get(p, "left_alone"))
            printf("    too few calls to be planned\n");
        return;
    }
    printf("    %lld messages of %lld bytes in all; considered %s, planned in %.2f ms; %lld bytes "
           "forwarded in all calls\n",
           (long long)integer(p, "messages"), (long long)integer(p, "bytes"), text(p, "considered"),
           json_number_value(json_object_get(p, "plan_ms")),
           (long long)integer(p, "forwarded_bytes"));
    printf("    %-8s %9s %9s %9s %5s %11s %11s\n", "", "sends max", "sends avg", "recvs max",
           "hops", "modelled us", "measured us");
    print_side("direct", json_object_get(p, "direct"));
    print_side("planned", json_object_get(p, "planned"));
}

int cpl_command_report(int argc, char **argv)
{
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        usage(stdout);
        return 0;
    }
    if (argc != 2) {
        usage(stderr);
        return CPL_EXIT_USAGE;
    }
    json_error_t error;
    json_t *root = json_load_file(argv[1], 0, &error);
    if (!root) {
        if (error.line > 0)
            fprintf(stderr, "carpool report: %s:%d: %s; is this a report of Carpool's?\n", argv[1],
                    error.line, error.text);
        else
            fprintf(stderr, "carpool report: %s\n", error.text);
        return CPL_EXIT_FAILED;
    }
    const json_t *patterns = json_object_get(root, "patterns");
    if (!json_is_array(patterns)) {
        fprintf(stderr, "carpool report: %s is JSON, but no report of Carpool's\n", argv[1]);
        json_decref(root);
        return CPL_EXIT_FAILED;
    }
    printf("carpool %s, %lld ranks, mode %s\n", text(root, "version"),
           (long long)integer(root, "ranks"), text(root, "mode"));
    for (size_t k = 0; k < json_array_size(patterns); k++)
        print_pattern(json_array_get(patterns, k));
    if (json_array_size(patterns) == 0)
        printf("no exchanges were seen\n");
    json_decref(root);
    return 0;
}
