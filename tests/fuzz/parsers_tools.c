/* Parsers of parsers_fuzz.c besides texts of lines: plan files, reports as carpool report and
 * carpool map read them, lists of hosts, and topologies (hwloc's own parsers included). */
#include "parsers_fuzz.h"

#include "cli/command.h"
#include "cli/report_read.h"
#include "planner/keep/plan_file.h"
#include "planner/machine.h"
#include "planner/pattern/pattern_read.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- plan files: of one of a few patterns, forged so that no checksum gives them away */
#define N_PLANNED 6
#define HEADER    32 /* bytes before the table of sections, and of one of its rows */

static const char *const planned_patterns[N_PLANNED] = {
    "4\n0 1 2\n1 0 5\n1 3 3\n2 0 1\n2 3 6\n3 2 2\n",
    "5\n0 1 : 7 3 4\n0 2 : 3 4\n0 1 5\n0 3 : 1 7\n1 4 : 0\n0 4 : 3\n",
    "8\n0 1 1\n0 2 1\n0 3 1\n0 4 1\n0 5 1\n0 6 1\n0 7 1\n3 7 9\n",
    "9\n0 1 : 1 2\n0 2 : 1 2\n0 8 : 1\n4 5 : 0\n4 0 : 0\n5 4 0\n8 0 3\n7 1 3\n",
    "2\n",
    "6\n0 1 1\n0 2 1\n1 2 1\n1 3 1\n2 3 1\n2 4 1\n3 4 1\n3 5 1\n4 5 1\n4 0 1\n5 0 1\n5 1 1\n"};

static struct planned {
    bool is_made;
    struct cpl_pattern pattern;
    struct cpl_machine machine;
    struct cpl_strategy_input input;
    struct cpl_plan_key key;
    struct cpl_bytes key_bytes, file;
} planned[N_PLANNED], *present;

static void make_planned(size_t which)
{
    struct planned *p = &planned[which];
    struct cpl_text_reader reader;
    struct cpl_error error;
    struct cpl_plan_set set = {.n = 1, .ms = 12.5};
    if (p->is_made)
        return;
    p->is_made = true;
    cpl_text_open_memory("p", planned_patterns[which], strlen(planned_patterns[which]), &reader);
    need(!cpl_pattern_read_text(&reader, &p->pattern, &error));
    cpl_text_close(&reader);
    need(!cpl_machine_init(p->pattern.n_ranks, 2, &p->machine, &error));
    p->input = (struct cpl_strategy_input){&p->pattern, &p->machine, 8, 0.3};
    p->key = (struct cpl_plan_key){"1.2", "auto", 2, &p->input};
    need(!cpl_strategy_plan_several(&p->input, 2, set.choice, set.plan, &set.n, &error));
    cpl_plan_key_put(&p->key, &p->key_bytes);
    cpl_plan_file_put(&p->key_bytes, &set, &p->file);
    need(!p->key_bytes.failed && !p->file.failed && p->file.n <= MAX_INPUT);
    cpl_plan_set_free(&set);
}

static void fill_plan_file(struct input *input, uint64_t *random)
{
    size_t which = draw(random, N_PLANNED);
    make_planned(which);
    present = &planned[which];
    memcpy(input->bytes, present->file.at, present->file.n);
    input->n = present->file.n;
}

/* Changes words behind the key and of the table. */
static void forge(uint8_t *bytes, size_t n, uint64_t *random)
{
    static const int32_t odd[] = {-1, 0, 1, 2, 1 << 30, INT32_MAX, INT32_MIN};
    int32_t *words = (int32_t *)(void *)bytes;
    if (n < 4 * HEADER)
        return;
    size_t behind = (size_t)((uint64_t *)(void *)bytes)[HEADER / 8 + 5] / 4;
    for (size_t times = draw(random, 4); times > 0; times--) {
        bool in_table = behind >= n / 4 || draw(random, 8) == 0;
        size_t at = in_table ? draw(random, HEADER) : behind + draw(random, n / 4 - behind);
        if (draw(random, 3))
            words[at] = (int32_t)((uint32_t)words[at] + (uint32_t)draw(random, 5) - 2);
        else
            words[at] = odd[draw(random, sizeof odd / sizeof *odd)];
    }
}

/* Makes the checksums right again. */
static void sign(uint8_t *bytes, size_t n)
{
    uint64_t *words = (uint64_t *)(void *)bytes;
    if (n < 2 * HEADER || words[3] > 16 || HEADER + words[3] * HEADER + 8 > n)
        return;
    size_t end = HEADER + words[3] * HEADER;
    for (uint64_t k = 0; k < words[3]; k++) {
        uint64_t *row = words + (HEADER + k * HEADER) / 8; /* kind, offset, bytes, checksum */
        if (row[1] % 8 == 0 && row[1] <= n && row[2] <= n - row[1])
            row[3] = cpl_bytes_hash(bytes + row[1], row[2] / 8 * 8);
    }
    words[end / 8] = cpl_bytes_hash(bytes, end);
}

/* What was read is written, read and written again: the same bytes. A forged file may differ from
 * them in the bytes between texts and numbers, which nothing reads. */
static void check_written_plans(const struct cpl_plan_set *set)
{
    struct cpl_bytes first = {NULL, 0, 0, false}, second = first;
    struct cpl_plan_set again;
    struct cpl_error error;
    cpl_plan_file_put(&present->key_bytes, set, &first);
    need(!first.failed);
    need(
        !cpl_plan_file_take(first.at, first.n, &present->key, &present->key_bytes, &again, &error));
    cpl_plan_file_put(&present->key_bytes, &again, &second);
    need(!second.failed && second.n == first.n && memcmp(second.at, first.at, first.n) == 0);
    cpl_plan_set_free(&again);
    cpl_bytes_free(&first);
    cpl_bytes_free(&second);
}

static bool run_plan_file(const uint8_t *bytes, size_t n, uint64_t *random)
{
    struct cpl_plan_set set;
    struct cpl_error error = {""};
    uint8_t *file = malloc(n + 1);
    need(file && present);
    memcpy(file, bytes, n);
    forge(file, n, random);
    if (draw(random, 8))
        sign(file, n);
    enum cpl_status status =
        cpl_plan_file_take(file, n, &present->key, &present->key_bytes, &set, &error);
    need_text(status, &error);
    if (!status) {
        need(set.n >= 1 && set.n <= CPL_MOST_KEPT);
        for (int32_t k = 0; k < set.n; k++)
            need(!cpl_plan_check(&set.plan[k], &present->pattern, &error));
        check_written_plans(&set);
        cpl_plan_set_free(&set);
    }
    free(file);
    return !status;
}

const struct parser parser_plan_file = {"plan files",  30,   false, NULL, fill_plan_file,
                                        run_plan_file, false};

/* --- reports */

#define FIGURES "\"sends_avg\": 2.5, \"recvs_max\": 4, \"hops_max\": 3, \"volume_factor\": 2.12, "
#define CELLS   "\"sends\": [3, 2], \"recvs\": [2, 3], \"cells\": [\"0:4 1:2\", \"1:7\"]"

static const char *const report_seeds[] = {
    "{\"version\": \"9.9\", \"ranks\": 4, \"mode\": \"auto\", \"seconds\": 812.4, \"left_out\": 3,"
    "\"nodes\": [{\"host\": \"a\", \"ranks\": \"0-1\"}, {\"host\": \"b\", \"ranks\": \"2,3\"}],"
    "\"settings\": {\"CARPOOL_MODE\": \"auto\"}, \"patterns\": [{\"kind\": \"pt2pt\", \"tag\": 77,"
    "\"ordinal\": 1, \"ranks\": 4, \"nodes\": 2, \"communicators\": 1, \"calls\": 120000,"
    "\"calls_planned\": 119000, \"strategy\": \"vpt:3\", \"considered\": \"vpt:3\", \"messages\": "
    "40,"
    "\"world\": true, \"pattern\": \"aa\", \"bytes\": 1234, \"straight_messages\": 12,"
    "\"straight_bytes\": 99999, \"forwarded_bytes\": 123456789012, \"plan_ms\": 512.3,"
    "\"times_planned\": 2, \"bytes_min\": 0, \"bytes_max\": 4096, \"file\": \"pattern-aa.mtx\","
    "\"sizes\": [[0, 100], [1, 5], [4095, 120000]], \"cell_ranks\": 2, \"bin_ranks\": 2,"
    "\"ranked\": [{\"strategy\": \"vpt:3\", \"modelled_us\": 81.2}],"
    "\"tried\": [{\"strategy\": \"vpt:2\", \"measured_us\": 171.3}, {\"measured_us\": null}],"
    "\"direct\": {\"sends_max\": 4, " FIGURES "\"modelled_us\": 431.9, \"us_per_call\": 5.1," CELLS
    "}, \"planned\": {\"sends_max\": 2, " FIGURES "\"modelled_us\": 81.2," CELLS "}}]}",
    "{\"ranks\": 4, \"nodes\": [{\"host\": \"<a>\", \"ranks\": \"0-3\"}], \"patterns\": ["
    "{\"kind\": \"Neighbor_alltoall\", \"world\": true, \"calls\": 7, \"pattern\": \"aa\","
    "\"order\": {\"before\": {\"kind\": \"pt2pt\","
    "\"tag\": 4, \"pattern\": \"cc\"}, \"units\": {\"given\": 61, \"ordered\": 47},"
    "\"calls_ordered\": 118}},"
    "{\"kind\": \"<script>\\\"&\", \"ranks\": 3, \"calls\": 2, \"left_alone\": \"a & b < c\"},"
    "{\"kind\": \"Allgather\", \"data_bytes_max\": 65535, \"ranks\": 4, \"calls\": 1},"
    "{\"reorderable\": {\"before_us\": 3.5, \"after_us\": 1, \"made_ms\": 2}}]}",
    "{\"patterns\": [{}, 5, {\"direct\": 3, \"tried\": 4, \"sizes\": \"x\", \"file\": 1}]}", NULL};

static void look_at(const json_t *root)
{
    json_t *patterns = json_object_get(root, "patterns");
    char text[200];
    FILE *null = fopen("/dev/null", "w");
    need(null);
    for (size_t k = 0; k < json_array_size(patterns); k++) {
        const json_t *p = json_array_get(patterns, k);
        cpl_report_name(p, text, sizeof text);
        cpl_report_outcome(p, text, 24);
        cpl_report_nodes_option(p, text, 24);
        need(memchr(text, 0, 24));
    }
    cpl_report_html(root, "", null);
    need(!ferror(null) && !fclose(null));
}

static int command(int (*call)(int, char **), char **argv)
{
    int argc = 0;
    while (argv[argc])
        argc++;
    optind = 0;
    return call(argc, argv);
}

static bool run_report(const uint8_t *bytes, size_t n, uint64_t *random)
{
    char *text[] = {"report", "input", NULL};
    char *map[] = {"map", "input", "--output", "hosts", NULL};
    write_input("input", bytes, n);
    json_t *root = cpl_report_load("report", "input");
    int shown = command(cpl_command_report, text);
    need(shown == (root ? 0 : CPL_EXIT_FAILED));
    if (root && draw(random, 2))
        look_at(root);
    json_decref(root);
    int code = command(cpl_command_map, map);
    need(code == 0 || code == CPL_EXIT_FAILED);
    need(root || code == CPL_EXIT_FAILED);
    return root != NULL;
}

const struct parser parser_report = {"reports", 20, false, report_seeds, NULL, run_report, false};

/* --- hosts: that there are lines for as many ranks as there are */
static const char *const host_seeds[] = {"a:2,b:2", "a:1,b:1,c:1,d:1", "node-1.cluster:4", "a:9",
                                         NULL};

static long count_places(const char *file)
{
    char line[MAX_INPUT + 64];
    long n = 0;
    FILE *in = fopen(file, "r");
    need(in);
    while (fgets(line, sizeof line, in)) {
        const char *colon = strrchr(line, ':');
        n += colon ? strtol(colon + 1, NULL, 10) : 0;
    }
    fclose(in);
    return n;
}

static bool run_hosts(const uint8_t *bytes, size_t n, uint64_t *random)
{
    char *hosts = malloc(n + 1);
    char *map[] = {"map", "report.json", "--hosts", hosts, "--output", "hosts", NULL};
    need(hosts);
    (void)random;
    memcpy(hosts, bytes, n);
    hosts[n] = '\0';
    write_input("report.json", report_seeds[0], strlen(report_seeds[0]));
    int code = command(cpl_command_map, map);
    need(code == 0 || code == CPL_EXIT_FAILED);
    if (code == 0 && !strchr(hosts, '\n'))
        need(count_places("hosts") == 4);
    free(hosts);
    return code == 0;
}

const struct parser parser_hosts = {"hosts", 6, true, host_seeds, NULL, run_hosts, false};

/* --- topologies: synthetic descriptions, XML files */
static const char *const topology_seeds[] = {"pack:2 numa:1 core:16 pu:1",
                                             "package:2 l3:2 core:4 pu:2",
                                             "numa:2(memory=1GB) core:4 pu:1",
                                             "2 2 2",
                                             "pack:2 [numa(memory=1024)] core:3 1",
                                             "core:4(indexes=0,2,1,3) pu:1",
                                             NULL};

static void check_shape(const struct cpl_node_shape *shape)
{
    need(shape->n_sockets >= 1 && shape->n_numa >= 1 && shape->n_cores >= 1);
    struct cpl_machine machine;
    struct cpl_error error;
    need(!cpl_machine_init(7, 3, &machine, &error));
    cpl_machine_apply_shape(&machine, shape);
    for (int k = 0; k < 7; k++) {
        need(machine.socket[k] >= 0 && machine.socket[k] < shape->n_sockets);
        need(machine.numa[k] >= 0 && machine.numa[k] < shape->n_numa);
    }
    need(machine.cores_per_node >= 0);
    cpl_machine_free(&machine);
}

static bool run_topology(const uint8_t *bytes, size_t n, uint64_t *random)
{
    struct cpl_node_shape shape;
    struct cpl_error error = {""};
    (void)n;
    (void)random;
    if (!bytes[0] || access((const char *)bytes, F_OK) == 0)
        return false; /* the machine that the test runs on, or a file */
    enum cpl_status status = cpl_node_shape_load((const char *)bytes, &shape, &error);
    need_text(status, &error);
    if (status)
        return false;
    check_shape(&shape);
    return true;
}

const struct parser parser_topology = {"topologies", 6,    true, topology_seeds, NULL,
                                       run_topology, false};

#define OBJECT(type, more) "<object type=\"" type "\" os_index=\"0\" " more
#define SETS               "cpuset=\"0x3\" complete_cpuset=\"0x3\" nodeset=\"0x1\" complete_nodeset=\"0x1\" "

static const char *const topology_files[] = {
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
    "<topology version=\"2.0\">\n" OBJECT("Machine", SETS "allowed_cpuset=\"0x3\" "
                                                          "allowed_nodeset=\"0x1\" gp_index=\"1\">")
        OBJECT("Package", SETS "gp_index=\"2\">")
            OBJECT("NUMANode", SETS "gp_index=\"3\" local_memory=\"1000000\"/>")
                OBJECT("Core", SETS "gp_index=\"4\">")
                    OBJECT("PU", "cpuset=\"0x1\" complete_cpuset=\"0x1\" "
                                 "nodeset=\"0x1\" complete_nodeset=\"0x1\" "
                                 "gp_index=\"5\"/>") "<object type=\"PU\" "
                                                     "os_index=\"1\" cpuset=\"0x2\" "
                                                     "complete_cpuset=\"0x2\" "
                                                     "nodeset=\"0x1\" "
                                                     "complete_nodeset=\"0x1\" "
                                                     "gp_index=\"6\"/></object></"
                                                     "object></object></topology>\n",
    NULL};

static bool run_topology_file(const uint8_t *bytes, size_t n, uint64_t *random)
{
    struct cpl_node_shape shape;
    struct cpl_error error = {""};
    (void)random;
    write_input("input", bytes, n);
    enum cpl_status status = cpl_node_shape_load("input", &shape, &error);
    need_text(status, &error);
    if (status)
        return false;
    check_shape(&shape);
    return true;
}

/* hwloc 2.9's own reader crashes on XML that leaves out sets, and on some that is cut off. */
const struct parser parser_topology_file = {"topology files",  2,   false, topology_files, NULL,
                                            run_topology_file, true};
