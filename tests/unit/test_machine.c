/* Tests of machines (machine.h): places, shapes by hwloc, the rule of blocks, machine files. */
#include "planner/machine.h"
#include "temp_dir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <hwloc.h>

#define PACK2 "pack:2 numa:1 core:16 pu:1"

static int make_dir(void **state)
{
    struct temp_dir *dir = malloc(sizeof *dir);
    if (dir)
        temp_dir_make(dir);
    *state = dir;
    return dir ? 0 : -1;
}

static int remove_dir(void **state)
{
    temp_dir_remove(*state);
    free(*state);
    return 0;
}

static struct cpl_machine make_machine(int32_t n_ranks, int32_t ranks_per_node)
{
    struct cpl_machine machine;
    assert_int_equal(cpl_machine_init(n_ranks, ranks_per_node, &machine, NULL), CPL_OK);
    return machine;
}

static void assert_integers(const int32_t *got, const int32_t *expected, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (got[i] != expected[i])
            fail_msg("entry %zu is %d, not %d", i, got[i], expected[i]);
}

static void test_init(void **state)
{
    (void)state;
    struct cpl_machine machine = make_machine(7, 3);
    assert_int_equal(machine.n_nodes, 3);
    assert_integers(machine.node, (const int32_t[]){0, 0, 0, 1, 1, 1, 2}, 7);
    assert_integers(machine.socket, (const int32_t[]){0, 0, 0, 0, 0, 0, 0}, 7);
    assert_int_equal(machine.cores_per_node, 0);
    assert_int_equal(cpl_machine_link(&machine, 0, 2), CPL_LINK_SOCKET);
    assert_int_equal(cpl_machine_link(&machine, 2, 3), CPL_LINK_NETWORK);
    cpl_machine_free(&machine);
    machine = make_machine(5, INT32_MAX);
    assert_int_equal(machine.n_nodes, 1);
    cpl_machine_free(&machine);
    assert_int_equal(cpl_machine_init(0, 3, &machine, NULL), CPL_ERR_ARG);
    assert_int_equal(cpl_machine_init(3, 0, &machine, NULL), CPL_ERR_ARG);
}

static void test_default_costs(void **state)
{
    (void)state;
    struct cpl_costs costs = cpl_costs_default();
    assert_true(costs.link[CPL_LINK_NETWORK].send_us == 0.7);
    assert_true(costs.link[CPL_LINK_NETWORK].latency_us == 1.6);
    assert_true(costs.link[CPL_LINK_SOCKET].recv_us == 0.25);
    assert_true(costs.link[CPL_LINK_NODE].recv_us > 0.25); /* a socket is nearer than a node */
    assert_true(costs.link[CPL_LINK_SOCKET].ns_per_byte == 0.1);
    assert_true(costs.node_ns_per_byte == 0.04);
    assert_true(costs.segment_ns == 5);
}

static void test_places(void **state)
{
    (void)state;
    const int64_t key[] = {900, -5, 900, INT64_MIN, -5, 900, INT64_MAX};
    const int32_t socket[] = {0, 1, 1, 0, 1, 0, 3};
    struct cpl_machine machine;
    assert_int_equal(cpl_machine_from_places(7, key, socket, NULL, 2, &machine, NULL), CPL_OK);
    assert_int_equal(machine.n_nodes, 4);
    assert_int_equal(machine.cores_per_node, 2);
    assert_integers(machine.node, (const int32_t[]){0, 1, 0, 2, 1, 0, 3}, 7);
    assert_integers(machine.socket, socket, 7);
    assert_integers(machine.numa, (const int32_t[]){0, 0, 0, 0, 0, 0, 0}, 7);
    assert_int_equal(cpl_machine_link(&machine, 0, 2), CPL_LINK_NODE);
    assert_int_equal(cpl_machine_link(&machine, 1, 4), CPL_LINK_SOCKET);
    assert_int_equal(cpl_machine_link(&machine, 0, 1), CPL_LINK_NETWORK);
    cpl_machine_free(&machine);
}

static void test_wrong_places(void **state)
{
    (void)state;
    const int64_t key[] = {1, 1};
    const int32_t bad[] = {0, -1};
    struct cpl_machine machine = {.n_ranks = 77};
    struct cpl_error error;
    assert_int_equal(cpl_machine_from_places(0, key, NULL, NULL, 0, &machine, NULL), CPL_ERR_ARG);
    assert_int_equal(cpl_machine_from_places(2, key, NULL, NULL, -1, &machine, NULL), CPL_ERR_ARG);
    assert_int_equal(cpl_machine_from_places(2, key, bad, NULL, 0, &machine, &error), CPL_ERR_ARG);
    assert_non_null(strstr(error.text, "rank 1 is on socket -1"));
    assert_int_equal(cpl_machine_from_places(2, key, NULL, bad, 0, &machine, &error), CPL_ERR_ARG);
    assert_non_null(strstr(error.text, "NUMA"));
    assert_int_equal(machine.n_ranks, 77);
}

static void test_block_rule(void **state)
{
    (void)state;
    for (int32_t n_units = 1; n_units < 9; n_units++) {
        for (int32_t n_local = 1; n_local < 40; n_local++) {
            int32_t n_in[9] = {0};
            int32_t last = 0;
            for (int32_t i = 0; i < n_local; i++) {
                int32_t unit = cpl_machine_block_unit(i, n_local, n_units);
                assert_in_range(unit, last, n_units - 1); /* ascending */
                n_in[unit]++;
                last = unit;
            }
            for (int32_t u = 0; u < n_units; u++) /* as equal as can be */
                assert_in_range(n_in[u], n_local / n_units, (n_local + n_units - 1) / n_units);
        }
    }
    assert_int_equal(cpl_machine_block_unit(2147483645, 2147483647, 65536), 65535);
    assert_int_equal(cpl_machine_block_unit(3, 8, 0), 0);
    assert_int_equal(cpl_machine_block_unit(0, 0, 4), 0);
}

static void test_shape_on_even_nodes(void **state)
{
    (void)state;
    const struct cpl_node_shape shape = {.n_sockets = 2, .n_numa = 4, .n_cores = 8};
    struct cpl_machine machine = make_machine(16, 8);
    cpl_machine_apply_shape(&machine, &shape);
    assert_integers(machine.socket, (const int32_t[]){0, 0, 0, 0, 1, 1, 1, 1, 0, 0}, 10);
    assert_integers(machine.numa, (const int32_t[]){0, 0, 1, 1, 2, 2, 3, 3, 0, 0}, 10);
    assert_int_equal(machine.cores_per_node, 0);
    cpl_machine_apply_shape(&machine, &(const struct cpl_node_shape){1, 1, 6});
    assert_integers(machine.socket, (const int32_t[16]){0}, 16);
    assert_integers(machine.numa, (const int32_t[16]){0}, 16);
    assert_int_equal(machine.cores_per_node, 6);
    cpl_machine_free(&machine);
}

/* Nodes of 5, 1 and 2 ranks that take turns. */
static void test_shape_on_uneven_nodes(void **state)
{
    (void)state;
    const int64_t key[] = {7, 3, 7, 9, 7, 9, 7, 7};
    struct cpl_machine machine;
    assert_int_equal(cpl_machine_from_places(8, key, NULL, NULL, 0, &machine, NULL), CPL_OK);
    cpl_machine_apply_shape(&machine, &(const struct cpl_node_shape){2, 2, 4});
    assert_integers(machine.node, (const int32_t[]){0, 1, 0, 2, 0, 2, 0, 0}, 8);
    assert_integers(machine.socket, (const int32_t[]){0, 0, 0, 0, 0, 1, 1, 1}, 8);
    assert_integers(machine.numa, machine.socket, 8);
    assert_int_equal(machine.cores_per_node, 4);
    cpl_machine_free(&machine);
}

/* The in-place passes of apply_shape against the rule, on random nodes. */
static void test_shape_on_random_nodes(void **state)
{
    (void)state;
    enum { P = 300 };
    int64_t key[P];
    srand(5);
    for (int round = 0; round < 50; round++) {
        int32_t n_local[P] = {0};
        int32_t local[P];
        for (int i = 0; i < P; i++)
            key[i] = rand() % (1 + round * 8);
        struct cpl_machine machine;
        assert_int_equal(cpl_machine_from_places(P, key, NULL, NULL, 0, &machine, NULL), CPL_OK);
        for (int i = 0; i < P; i++)
            local[i] = n_local[machine.node[i]]++;
        cpl_machine_apply_shape(&machine, &(const struct cpl_node_shape){3, 5, 1000});
        for (int i = 0; i < P; i++) {
            int32_t n = n_local[machine.node[i]];
            assert_int_equal(machine.socket[i], cpl_machine_block_unit(local[i], n, 3));
            assert_int_equal(machine.numa[i], cpl_machine_block_unit(local[i], n, 5));
        }
        cpl_machine_free(&machine);
    }
}

static void assert_shape(const char *topology, int32_t n_sockets, int32_t n_numa, int32_t n_cores)
{
    struct cpl_node_shape shape;
    struct cpl_error error = {""};
    if (cpl_node_shape_load(topology, &shape, &error))
        fail_msg("%s", error.text);
    assert_int_equal(shape.n_sockets, n_sockets);
    assert_int_equal(shape.n_numa, n_numa);
    assert_int_equal(shape.n_cores, n_cores);
}

static void assert_no_shape(const char *topology, enum cpl_status expected, const char *fragment)
{
    struct cpl_node_shape shape = {.n_cores = 77};
    struct cpl_error error = {""};
    assert_int_equal(cpl_node_shape_load(topology, &shape, &error), expected);
    if (!strstr(error.text, fragment))
        fail_msg("\"%s\" does not say \"%s\"", error.text, fragment);
    assert_int_equal(shape.n_cores, 77);
}

static void test_synthetic_shapes(void **state)
{
    (void)state;
    assert_shape(PACK2, 2, 2, 32);
    assert_shape("pack:2 numa:4 l3:1 core:3 pu:2", 2, 8, 24);
    assert_shape("pack:4 [numa(memory=1GB)] core:2 pu:1", 4, 4, 8);
    assert_shape("pack:2 [numa] [numa] core:2 pu:2", 2, 2, 4); /* two memories, one domain */
    assert_shape("6", 1, 1, 6);
}

static void test_wrong_descriptions(void **state)
{
    (void)state;
    assert_no_shape("rubbish", CPL_ERR_FORMAT, "neither a readable file nor");
    assert_no_shape("/no/such/file.xml", CPL_ERR_FORMAT, "neither a readable file nor");
    assert_no_shape("pack:2 core:", CPL_ERR_FORMAT, "pack:2 numa:1 core:16 pu:1");
    assert_no_shape("pack:2 core:0 pu:1", CPL_ERR_FORMAT, "neither");
    assert_no_shape("pack:2 core:16000 pu:1", CPL_ERR_FORMAT, "more than 16384 processing");
    assert_no_shape("pack:99999999999999999999 pu:1", CPL_ERR_FORMAT, "more than 16384");
    assert_no_shape("70000 70000 70000 70000 70000", CPL_ERR_FORMAT, "more than 16384");
    assert_no_shape("/", CPL_ERR_IO, "/: cannot be read: ");
}

static void test_own_node(void **state)
{
    (void)state;
    struct cpl_node_shape shape;
    assert_int_equal(cpl_node_shape_load("", &shape, NULL), CPL_OK);
    assert_true(shape.n_sockets >= 1 && shape.n_numa >= 1 && shape.n_cores >= 1);
    assert_int_equal(cpl_node_shape_load(NULL, &shape, NULL), CPL_OK);
}

static void export_xml(const char *description, const char *file)
{
    hwloc_topology_t topology;
    assert_int_equal(hwloc_topology_init(&topology), 0);
    assert_int_equal(hwloc_topology_set_synthetic(topology, description), 0);
    assert_int_equal(hwloc_topology_load(topology), 0);
    assert_int_equal(hwloc_topology_export_xml(topology, file, 0), 0);
    hwloc_topology_destroy(topology);
}

static void test_xml(void **state)
{
    const char *file = temp_dir_path(*state, "node.xml");
    export_xml("pack:2 numa:2 l2:2 core:4 pu:2", file);
    assert_shape(file, 2, 4, 32);
    export_xml("pack:2 l3:2 [numa] core:4 pu:2", file); /* memory below a level of no interest */
    assert_shape(file, 2, 4, 16);
}

static void test_damaged_xml(void **state)
{
    struct temp_dir *dir = *state;
    char xml[32768];
    export_xml(PACK2, temp_dir_path(dir, "node.xml"));
    FILE *in = fopen(dir->file, "r");
    assert_non_null(in);
    size_t n = fread(xml, 1, sizeof xml, in);
    fclose(in);
    assert_true(n > 5000 && n < sizeof xml);
    const size_t cuts[] = {0, 1, 10, 100, 400, 1000, 5000, n / 2, n - 30};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++)
        assert_no_shape(temp_dir_write(dir, "cut.xml", xml, cuts[i]), CPL_ERR_FORMAT, "lstopo");
    char *package = strstr(xml, "\"Package\"");
    assert_non_null(package);
    memcpy(package, "\"Zackage\"", 9);
    assert_no_shape(temp_dir_write(dir, "name.xml", xml, n), CPL_ERR_FORMAT, "lstopo --of xml");
    assert_no_shape(temp_dir_text(dir, "text.xml", "pack:2 core:2\n"), CPL_ERR_FORMAT, "lstopo");
}

static void test_costs_file(void **state)
{
    const char *file = temp_dir_text(*state, "machine",
                                     "# measured\r\n"
                                     "network.latency_us 2.5 # both ways\n"
                                     "\n"
                                     "  socket.send_us\t1e-1\n"
                                     "node.recv_us 12345.678\n"
                                     "network.node_ns_per_byte 0\n"
                                     "socket.lane.recv_us 0.5\n"
                                     "node.lane.ns_per_byte 0.25\n"
                                     "ranks_per_node 48\n"
                                     "segment_ns 0.0000000000000000000000000000001e31");
    struct cpl_machine_file said = {.costs = cpl_costs_default(), .ranks_per_node = 5};
    const struct cpl_costs untouched = said.costs;
    assert_int_equal(cpl_machine_file_read(file, &said, NULL), CPL_OK);
    assert_true(said.costs.link[CPL_LINK_NETWORK].latency_us == 2.5);
    assert_true(said.costs.link[CPL_LINK_SOCKET].send_us == 0.1);
    assert_true(said.costs.link[CPL_LINK_NODE].recv_us == 12345.678);
    assert_true(said.costs.node_ns_per_byte == 0);
    assert_true(said.costs.lane[CPL_LINK_SOCKET].recv_us == 0.5);
    assert_true(said.costs.lane[CPL_LINK_NODE].ns_per_byte == 0.25);
    assert_true(said.costs.segment_ns > 0.999999999 && said.costs.segment_ns < 1.000000001);
    assert_true(said.costs.link[CPL_LINK_NODE].send_us == untouched.link[CPL_LINK_NODE].send_us);
    assert_int_equal(said.ranks_per_node, 48);
    assert_string_equal(said.distances.name, "");
}

static void test_empty_costs_file(void **state)
{
    struct cpl_machine_file said = cpl_machine_file_default();
    const char *file = temp_dir_text(*state, "machine", "# nothing\n");
    said.ranks_per_node = 5;
    assert_int_equal(cpl_machine_file_read(file, &said, NULL), CPL_OK);
    assert_int_equal(said.ranks_per_node, 5);
    assert_true(said.costs.segment_ns == 5);
}

static void assert_costs_fail(void **state, const char *text, int line, const char *fragment)
{
    const char *file = temp_dir_text(*state, "machine", text);
    char start[200];
    struct cpl_error error = {""};
    struct cpl_machine_file said = {.costs = cpl_costs_default(), .ranks_per_node = 5};
    assert_int_equal(cpl_machine_file_read(file, &said, &error), CPL_ERR_FORMAT);
    snprintf(start, sizeof start, "%s:%d: ", file, line);
    if (strncmp(error.text, start, strlen(start)) != 0 || !strstr(error.text, fragment))
        fail_msg("\"%s\" should start with \"%s\" and say \"%s\"", error.text, start, fragment);
    assert_int_equal(said.ranks_per_node, 5);
    assert_true(said.costs.segment_ns == 5 && said.costs.node_ns_per_byte == 0.04);
}

static void test_wrong_costs_files(void **state)
{
    assert_costs_fail(state, "segment_ns 7\nsegment 5\n", 2, "unknown key \"segment\"");
    assert_costs_fail(state, "segment_ns 7\nnode.send_us\n", 2,
                      "node.send_us is missing; "
                      "expected KEY VALUE");
    assert_costs_fail(state, "#\nsegment_ns fast\n", 2, "segment_ns is \"fast\", not a number");
    assert_costs_fail(state, "segment_ns -1\n", 1, "finite number of at least 0");
    assert_costs_fail(state, "segment_ns inf\n", 1, "not a number");
    assert_costs_fail(state, "segment_ns 1e400\n", 1, "1e400; expected a finite number");
    assert_costs_fail(state, "segment_ns 7 8\n", 1, "\"8\" follows the last field");
    assert_costs_fail(state, "segment_ns 7\n\nsegment_ns 8\n", 3, "given in line 1");
    assert_costs_fail(state, "segment_ns 7\nranks_per_node 0\n", 2, "from 1 to 2147483647");
    assert_costs_fail(state, "ranks_per_node 2.5\n", 1, "not a whole number");
    assert_costs_fail(state, "segment_ns=7\n", 1, "unknown key \"segment_ns=7\"");
    struct temp_dir *dir = *state;
    struct cpl_machine_file said = cpl_machine_file_default();
    assert_int_equal(cpl_machine_file_read(dir->path, &said, NULL), CPL_ERR_IO);
    assert_int_equal(cpl_machine_file_read("/no/such/file", &said, NULL), CPL_ERR_IO);
}

/* The path is relative to where the machine file lies, and may have blanks inside. */
static void test_distances_key(void **state)
{
    struct temp_dir *dir = *state;
    struct cpl_machine_file said;
    char expected[200];
    const char *file = temp_dir_text(dir, "machine", "#\n distances\tmy  own.mtx \t# measured\n");
    assert_int_equal(cpl_machine_file_load(file, &said, NULL), CPL_OK);
    snprintf(expected, sizeof expected, "%s/my  own.mtx", dir->path);
    assert_string_equal(said.distances.name, expected);
    assert_int_equal(said.distances.line, 2);
    file = temp_dir_text(dir, "machine", "distances /abs.mtx");
    assert_int_equal(cpl_machine_file_load(file, &said, NULL), CPL_OK);
    assert_string_equal(said.distances.name, "/abs.mtx");
    assert_costs_fail(state, "distances # none\n", 1, "distances is missing");
    assert_costs_fail(state, "distances a\ndistances b\n", 2, "given in line 1");
    char text[CPL_MACHINE_PATH + 40];
    snprintf(text, sizeof text, "distances /%0*d\n", CPL_MACHINE_PATH - 2, 0);
    file = temp_dir_text(dir, "machine", text);
    assert_int_equal(cpl_machine_file_load(file, &said, NULL), CPL_OK);
    assert_int_equal(strlen(said.distances.name), CPL_MACHINE_PATH - 1);
    snprintf(text, sizeof text, "distances /%0*d\n", CPL_MACHINE_PATH - 1, 0);
    assert_costs_fail(state, text, 1, "longer than 1023 bytes");
    file = temp_dir_text(dir, "machine", "distances.ns_per_byte b.mtx\ndistances a.mtx\n");
    assert_int_equal(cpl_machine_file_load(file, &said, NULL), CPL_OK);
    snprintf(expected, sizeof expected, "%s/b.mtx", dir->path);
    assert_string_equal(said.distance_bytes.name, expected);
    assert_int_equal(said.distance_bytes.line, 1);
    assert_costs_fail(state, "\ndistances.ns_per_byte b\n", 2, "but not distances");
}

#define MM "%%MatrixMarket matrix "

static void assert_distances(void **state, const char *text, int32_t n_ranks, const float *expected)
{
    struct cpl_distances distances;
    struct cpl_error error = {""};
    const char *file = temp_dir_text(*state, "distances.mtx", text);
    if (cpl_distances_read(file, n_ranks, &distances, &error))
        fail_msg("%s", error.text);
    assert_int_equal(distances.n_ranks, n_ranks);
    for (int32_t k = 0; k < n_ranks * n_ranks; k++)
        assert_true(distances.us[k] == expected[k]);
    cpl_distances_free(&distances);
}

static void test_distances(void **state)
{
    const float there[] = {0, 1, 2, 3, 0, 4, 5, 6.5F, 0}, both[] = {0, 1, 2, 1, 0, 3, 2, 3, 0};
    assert_distances(
        state, MM "array real general\n% by column\n3 3\n7\n3\n5\n1\n7\n6.5\n2\n\n4\n0", 3, there);
    assert_distances(state, MM "array integer symmetric\n3 3\n0\n1\n2\n0\n3\n0\n", 3, both);
    assert_distances(state,
                     MM "coordinate real general\n3 3 7\n3 2 6.5\n1 2 1\n1 3 2\n2 1 3\n2 3 4\n"
                        "3 1 5\n2 2 9\n",
                     3, there);
    assert_distances(state, MM "coordinate real symmetric\n3 3 3\n2 1 1\n3 1 2\n3 2 3\n", 3, both);
    assert_distances(state, MM "array real general\n1 1\n0\n", 1, there);
}

static void assert_no_distances(void **state, const char *text, enum cpl_status expected, int line,
                                const char *fragment)
{
    const char *file = temp_dir_text(*state, "distances.mtx", text);
    char start[200];
    struct cpl_distances distances = {.n_ranks = 77};
    struct cpl_error error = {""};
    assert_int_equal(cpl_distances_read(file, 2, &distances, &error), expected);
    snprintf(start, sizeof start, "%s:%d: ", file, line);
    if (strncmp(error.text, start, strlen(start)) != 0 || !strstr(error.text, fragment))
        fail_msg("\"%s\" should start with \"%s\" and say \"%s\"", error.text, start, fragment);
    assert_int_equal(distances.n_ranks, 77);
}

static void test_wrong_distances(void **state)
{
    static const struct {
        const char *text;
        int line;
        const char *fragment;
    } wrong[] = {
        {"", 1, "does not start with a banner"},
        {"2 2\n", 1, "starts with \"2\""},
        {MM "array real\n2 2\n", 1, "banner is cut"},
        {MM "array pattern general\n2 2\n", 1, "has no values"},
        {MM "array real skew-symmetric\n2 2\n", 1, "has negative distances"},
        {MM "array real general\n2 3\n", 2, "expected as many rows as columns"},
        {MM "array real general\n2 2 4\n", 2, "follows the last field"},
        {MM "array real general\n2 2\n0\n-1\n1\n0\n", 4, "at least 0"},
        {MM "array real general\n2 2\n0\nnan\n1\n0\n", 4, "not a number"},
        {MM "array real general\n2 2\n0\ninf\n1\n0\n", 4, "not a number"},
        {MM "array real general\n2 2\n0\n1e13\n1\n0\n", 4, "more than 1e+12"},
        {MM "array real general\n2 2\n0\n1\n1\n", 5, "the file ends here"},
        {MM "array real general\n2 2\n0\n1\n1\n0\n0\n", 7, "a line after the 4 entries"},
        {MM "coordinate real general\n2 2 1\n1 2 1\n", 3, "row 2, column 1 is missing"},
        {MM "coordinate real general\n2 2 2\n1 2 1\n1 2 1\n", 4, "was given before"},
        {MM "coordinate real symmetric\n2 2 2\n1 2 1\n2 1 1\n", 4, "was given before"},
        {MM "coordinate real general\n2 2 2\n1 2 1\n1 3 1\n", 4, "from 1 to 2"},
    };
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++)
        assert_no_distances(state, wrong[k].text, CPL_ERR_FORMAT, wrong[k].line, wrong[k].fragment);
    assert_no_distances(state, MM "array real general\n3 3\n", CPL_ERR_UNFIT, 2,
                        "of 3 ranks, for a run of 2; measure them anew: mpiexec -n 2");
    assert_int_equal(cpl_distances_read("/", CPL_MAX_DISTANCE_RANKS + 1, NULL, NULL),
                     CPL_ERR_UNFIT);
}

static void test_missing_distances(void **state)
{
    struct cpl_machine_file said;
    struct cpl_distances distances;
    struct cpl_error error = {""};
    char expected[CPL_MACHINE_PATH + 200];
    const char *file = temp_dir_text(*state, "machine", "#\ndistances none.mtx\n");
    assert_int_equal(cpl_machine_file_load(file, &said, NULL), CPL_OK);
    assert_int_equal(cpl_distances_load(file, &said, 4, &distances, &error), CPL_ERR_IO);
    snprintf(expected, sizeof expected, "%s:2: distances: %s: ", file, said.distances.name);
    assert_memory_equal(error.text, expected, strlen(expected));
    assert_non_null(strstr(error.text, "carpool calibrate --distances, or take the line out"));
}

/* Times per byte are read with the distances, and for as many ranks. */
static void test_times_per_byte(void **state)
{
    struct cpl_machine_file said;
    struct cpl_distances distances;
    struct cpl_error error = {""};
    temp_dir_text(*state, "us.mtx", MM "array real symmetric\n2 2\n0\n5\n0\n");
    temp_dir_text(*state, "ns.mtx", MM "coordinate real general\n2 2 2\n1 2 0.5\n2 1 0.25\n");
    const char *file =
        temp_dir_text(*state, "machine", "distances us.mtx\ndistances.ns_per_byte ns.mtx\n");
    assert_int_equal(cpl_machine_file_load(file, &said, NULL), CPL_OK);
    assert_int_equal(cpl_distances_load(file, &said, 2, &distances, NULL), CPL_OK);
    struct cpl_machine machine = make_machine(2, 1);
    assert_int_equal(cpl_machine_set_distances(&machine, &distances, NULL, NULL), CPL_OK);
    assert_true(machine.distance_us[1] == 5 && machine.distance_ns_per_byte[1] == 0.5);
    assert_true(machine.distance_ns_per_byte[2] == 0.25 && machine.distance_ns_per_byte[3] == 0);
    assert_true(cpl_machine_distance(&machine, 1, 0) == 5 + CPL_DISTANCE_BYTES * 0.25 * 1e-3);
    cpl_machine_free(&machine);
    cpl_distances_free(&distances);
    temp_dir_text(*state, "ns.mtx", MM "array real general\n3 3\n");
    assert_int_equal(cpl_distances_load(file, &said, 2, &distances, &error), CPL_ERR_UNFIT);
    assert_non_null(strstr(error.text, "times per byte of 3 ranks, for a run of 2"));
    snprintf(said.distance_bytes.name, CPL_MACHINE_PATH, "/no/such/file");
    assert_int_equal(cpl_distances_load(file, &said, 2, &distances, &error), CPL_ERR_IO);
    assert_non_null(strstr(error.text, ":2: distances.ns_per_byte: "));
}

/* A communicator's ranks have the distances of theirs in the world. */
static void test_distances_of_some(void **state)
{
    (void)state;
    float us[] = {0, 1, 2, 3, 0, 4, 5, 6, 0};
    const int32_t rank[] = {2, 0};
    struct cpl_distances distances = {.n_ranks = 3, .us = us};
    struct cpl_machine machine = make_machine(2, 1);
    assert_null(machine.distance_us);
    assert_int_equal(cpl_machine_set_distances(&machine, &distances, rank, NULL), CPL_OK);
    assert_true(machine.distance_us[0] == 0 && machine.distance_us[1] == 5);
    assert_true(machine.distance_us[2] == 2 && machine.distance_us[3] == 0);
    cpl_machine_free(&machine);
}

/* Every built-in machine is found by its name. */
static void test_builtin_machines(void **state)
{
    (void)state;
    size_t n;
    const struct cpl_builtin_machine *machines = cpl_builtin_machines(&n);
    assert_true(n >= 3);
    for (size_t k = 0; k < n; k++) {
        struct cpl_machine_file said;
        assert_int_equal(cpl_machine_file_load(machines[k].name, &said, NULL), CPL_OK);
        struct cpl_costs costs = said.costs;
        int32_t ranks_per_node = said.ranks_per_node;
        assert_memory_equal(&costs, &machines[k].costs, sizeof costs);
        assert_int_equal(ranks_per_node, machines[k].ranks_per_node);
        assert_true(ranks_per_node >= 1);
        for (int link = 0; link < CPL_N_LINKS; link++) {
            assert_true(costs.link[link].send_us > 0 && costs.link[link].recv_us > 0);
            assert_true(costs.link[link].latency_us > 0 && costs.link[link].ns_per_byte > 0);
        }
        for (int link = 0; link < CPL_LINK_NETWORK; link++) { /* lanes take less than MPI */
            const struct cpl_link_cost *lane = &costs.lane[link], *mpi = &costs.link[link];
            assert_true(lane->send_us > 0 && lane->send_us < mpi->send_us);
            assert_true(lane->recv_us > 0 && lane->recv_us < mpi->recv_us);
            assert_true(lane->latency_us > 0 && lane->latency_us < mpi->latency_us);
            assert_true(lane->ns_per_byte > 0 && lane->ns_per_byte < mpi->ns_per_byte);
        }
    }
    const struct cpl_costs usual = cpl_costs_default();
    assert_string_equal(machines[0].name, "edr");
    assert_memory_equal(&usual, &machines[0].costs, sizeof usual);
}

static void test_load_costs(void **state)
{
    const char *file = temp_dir_text(*state, "torus", "segment_ns 7\n");
    struct cpl_machine_file said;
    struct cpl_error error = {""};
    assert_int_equal(cpl_machine_file_load("torus", &said, NULL), CPL_OK);
    assert_int_equal(cpl_machine_file_load(file, &said, NULL), CPL_OK);
    assert_true(said.costs.segment_ns == 7 && said.costs.item_ns == 1);
    assert_int_equal(said.ranks_per_node, 0);
    assert_int_equal(cpl_machine_file_load("magic", &said, &error), CPL_ERR_IO);
    assert_string_equal(error.text, "magic: no such file, and no such machine; built-in ones are "
                                    "edr, torus, node");
    struct temp_dir *dir = *state;
    assert_int_equal(cpl_machine_file_load(dir->path, &said, &error), CPL_ERR_IO);
    assert_null(strstr(error.text, "no such machine"));
}

#define TEST_WITH_FILES(function) cmocka_unit_test_setup_teardown(function, make_dir, remove_dir)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_init),
        cmocka_unit_test(test_default_costs),
        cmocka_unit_test(test_builtin_machines),
        TEST_WITH_FILES(test_load_costs),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_wrong_places),
        cmocka_unit_test(test_block_rule),
        cmocka_unit_test(test_shape_on_even_nodes),
        cmocka_unit_test(test_shape_on_uneven_nodes),
        cmocka_unit_test(test_shape_on_random_nodes),
        cmocka_unit_test(test_synthetic_shapes),
        cmocka_unit_test(test_wrong_descriptions),
        cmocka_unit_test(test_own_node),
        TEST_WITH_FILES(test_xml),
        TEST_WITH_FILES(test_damaged_xml),
        TEST_WITH_FILES(test_costs_file),
        TEST_WITH_FILES(test_empty_costs_file),
        TEST_WITH_FILES(test_wrong_costs_files),
        TEST_WITH_FILES(test_distances_key),
        TEST_WITH_FILES(test_distances),
        TEST_WITH_FILES(test_wrong_distances),
        TEST_WITH_FILES(test_missing_distances),
        TEST_WITH_FILES(test_times_per_byte),
        cmocka_unit_test(test_distances_of_some),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
