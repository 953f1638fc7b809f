/* The shape of a node from hwloc (machine.h). Of the levels between packages and cores only those
 * that structure the node are kept, and no devices, which makes discovery cheap. Dropping all these
 * levels would be wrong: a NUMA node below a dropped level moves up and gets all processors of the
 * package.
 *
 * hwloc itself reports broken descriptions only by its return values; it writes to stderr only when
 * the user asks it to by variables of its own (HWLOC_XML_VERBOSE, HWLOC_SYNTHETIC_VERBOSE). */
#include "planner/machine.h"

#include <errno.h>
#include <hwloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* A synthetic description with more processing units than this is a typing error, and hwloc's sets
 * of them would take gigabytes. */
#define MAX_SYNTHETIC_UNITS (1 << 14)

#define REMEDY                                                                                     \
    "expected the name of an XML file of lstopo, or a description such as "                        \
    "\"pack:2 numa:1 core:16 pu:1\""

static enum cpl_status keep_what_counts(hwloc_topology_t topology, struct cpl_error *error)
{
    static const hwloc_obj_type_t kept[] = {HWLOC_OBJ_PACKAGE, HWLOC_OBJ_CORE};
    int result = hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_STRUCTURE);
    for (size_t i = 0; !result && i < sizeof kept / sizeof *kept; i++)
        result = hwloc_topology_set_type_filter(topology, kept[i], HWLOC_TYPE_FILTER_KEEP_ALL);
    if (result)
        return cpl_fail(error, CPL_ERR_IO, "hwloc cannot be told what to look for: %s",
                        strerror(errno));
    return CPL_OK;
}

/* CPL_OK with *is_file when text names a file that can be read. */
static enum cpl_status probe_file(const char *text, bool *is_file, struct cpl_error *error)
{
    errno = 0;
    FILE *file = fopen(text, "r");
    *is_file = file;
    if (!file && errno != ENOENT && errno != ENOTDIR && errno != ENAMETOOLONG)
        return cpl_fail(error, CPL_ERR_IO, "%.200s: cannot be opened: %s", text, strerror(errno));
    if (!file)
        return CPL_OK;
    errno = 0;
    bool has_failed = fgetc(file) == EOF && ferror(file);
    int code = errno;
    fclose(file);
    return has_failed ? cpl_fail(error, CPL_ERR_IO, "%.200s: cannot be read: %s", text,
                                 code ? strerror(code) : "unknown reason")
                      : CPL_OK;
}

/* The number of processing units of a synthetic description, at most MAX_SYNTHETIC_UNITS + 1: the
 * product of the numbers before blanks, ignoring attributes in brackets. hwloc checks the
 * description itself. */
static int64_t count_synthetic_units(const char *text)
{
    int64_t n_units = 1;
    int n_open = 0;
    for (const char *at = text; *at; at++) {
        n_open += (*at == '(' || *at == '[') - (*at == ')' || *at == ']');
        bool is_first = at == text || at[-1] == ' ' || at[-1] == ':';
        if (n_open || !is_first || *at < '0' || *at > '9')
            continue;
        int64_t n = 0;
        for (; *at >= '0' && *at <= '9'; at++)
            n = n > MAX_SYNTHETIC_UNITS ? n : n * 10 + (*at - '0');
        at--;
        n_units *= n;
        if (n_units > MAX_SYNTHETIC_UNITS)
            return MAX_SYNTHETIC_UNITS + 1;
    }
    return n_units;
}

static enum cpl_status set_synthetic(hwloc_topology_t topology, const char *text,
                                     struct cpl_error *error)
{
    if (count_synthetic_units(text) > MAX_SYNTHETIC_UNITS)
        return cpl_fail(error, CPL_ERR_FORMAT,
                        "topology \"%.80s\" has more than %d processing units; " REMEDY, text,
                        MAX_SYNTHETIC_UNITS);
    if (hwloc_topology_set_synthetic(topology, text))
        return cpl_fail(error, CPL_ERR_FORMAT,
                        "topology \"%.80s\" is neither a readable file nor a synthetic "
                        "description of hwloc; " REMEDY,
                        text);
    return CPL_OK;
}

static enum cpl_status fail_xml(const char *file, struct cpl_error *error)
{
    return cpl_fail(error, CPL_ERR_FORMAT,
                    "%.200s: hwloc cannot read this as a topology in XML; write it anew with "
                    "lstopo --of xml",
                    file);
}

/* Whether a file ends as a topology in XML does: hwloc 2.9 crashes on one that was cut off. */
static bool is_whole(const char *name)
{
    static const char end[] = "</topology>";
    char tail[sizeof end + 64] = "";
    FILE *file = fopen(name, "rb");
    if (!file)
        return false;
    if (fseek(file, 0, SEEK_END) == 0) {
        long size = ftell(file), n = (long)sizeof tail - 1;
        rewind(file);
        if (size > n)
            (void)fseek(file, size - n, SEEK_SET);
        tail[fread(tail, 1, sizeof tail - 1, file)] = '\0';
    }
    fclose(file);
    size_t n = strlen(tail);
    while (n > 0 && strchr(" \t\r\n", tail[n - 1]))
        tail[--n] = '\0';
    return n >= sizeof end - 1 && strcmp(tail + n - (sizeof end - 1), end) == 0;
}

static enum cpl_status load_text(hwloc_topology_t topology, const char *text,
                                 struct cpl_error *error)
{
    bool is_file;
    enum cpl_status status = probe_file(text, &is_file, error);
    if (status)
        return status;
    if (!is_file)
        status = set_synthetic(topology, text, error);
    else if (!is_whole(text) || hwloc_topology_set_xml(topology, text))
        status = fail_xml(text, error);
    if (status)
        return status;
    if (!hwloc_topology_load(topology))
        return CPL_OK;
    return is_file ? fail_xml(text, error)
                   : cpl_fail(error, CPL_ERR_FORMAT,
                              "hwloc cannot make a topology of \"%.80s\"; " REMEDY, text);
}

static enum cpl_status load_own_node(hwloc_topology_t topology, struct cpl_error *error)
{
    if (hwloc_topology_load(topology))
        return cpl_fail(error, CPL_ERR_IO, "hwloc cannot look at this node: %s", strerror(errno));
    return CPL_OK;
}

static int32_t count_objects(hwloc_topology_t topology, hwloc_obj_type_t type)
{
    int n = hwloc_get_nbobjs_by_type(topology, type);
    return n > 0 ? n : 0;
}

/* NUMA nodes that have processors, each set of processors once: memory of several kinds beside the
 * same cores (high-bandwidth, persistent) is one domain for ranks. */
static int32_t count_numa_domains(hwloc_topology_t topology)
{
    int32_t n = 0;
    hwloc_obj_t node = NULL;
    while ((node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node))) {
        bool is_new = !hwloc_bitmap_iszero(node->cpuset);
        hwloc_obj_t earlier = NULL;
        while (is_new && (earlier = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE,
                                                               earlier)) != node)
            is_new = !hwloc_bitmap_isequal(node->cpuset, earlier->cpuset);
        n += is_new;
    }
    return n;
}

/* Descriptions may omit any level: there is at least one unit of each, and without cores each
 * processing unit is a core. */
static struct cpl_node_shape measure(hwloc_topology_t topology)
{
    int32_t n_sockets = count_objects(topology, HWLOC_OBJ_PACKAGE);
    int32_t n_numa = count_numa_domains(topology);
    int32_t n_cores = count_objects(topology, HWLOC_OBJ_CORE);
    if (!n_cores)
        n_cores = count_objects(topology, HWLOC_OBJ_PU);
    return (struct cpl_node_shape){.n_sockets = n_sockets ? n_sockets : 1,
                                   .n_numa = n_numa ? n_numa : 1,
                                   .n_cores = n_cores ? n_cores : 1};
}

enum cpl_status cpl_node_shape_load(const char *topology, struct cpl_node_shape *shape,
                                    struct cpl_error *error)
{
    hwloc_topology_t loaded;
    if (hwloc_topology_init(&loaded))
        return cpl_fail_memory(error, "hwloc's topology");
    enum cpl_status status = keep_what_counts(loaded, error);
    if (!status && topology && *topology)
        status = load_text(loaded, topology, error);
    else if (!status)
        status = load_own_node(loaded, error);
    if (!status)
        *shape = measure(loaded);
    hwloc_topology_destroy(loaded);
    return status;
}
