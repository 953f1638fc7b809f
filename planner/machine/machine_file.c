/* Reading machine files (machine.h). A table has a row for each key. */
#include "planner/base/text_reader.h"
#include "planner/machine.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum machine_value { VALUE_COST, VALUE_RANKS, VALUE_PATH };

struct machine_key {
    const char *name;
    enum machine_value value;
    size_t offset; /* VALUE_COST: of a double in struct cpl_costs; VALUE_PATH: of a path in struct
                      cpl_machine_file */
};

#define COST(name, member)                                                                         \
    {                                                                                              \
        name, VALUE_COST, offsetof(struct cpl_costs, member)                                       \
    }
#define LINK(name, class, cost) COST(name, link[class].cost)
#define LANE(name, class, cost) COST(name, lane[class].cost)

static const struct machine_key keys[] = {
    LINK("socket.send_us", CPL_LINK_SOCKET, send_us),
    LINK("socket.recv_us", CPL_LINK_SOCKET, recv_us),
    LINK("socket.latency_us", CPL_LINK_SOCKET, latency_us),
    LINK("socket.ns_per_byte", CPL_LINK_SOCKET, ns_per_byte),
    LINK("node.send_us", CPL_LINK_NODE, send_us),
    LINK("node.recv_us", CPL_LINK_NODE, recv_us),
    LINK("node.latency_us", CPL_LINK_NODE, latency_us),
    LINK("node.ns_per_byte", CPL_LINK_NODE, ns_per_byte),
    LINK("network.send_us", CPL_LINK_NETWORK, send_us),
    LINK("network.recv_us", CPL_LINK_NETWORK, recv_us),
    LINK("network.latency_us", CPL_LINK_NETWORK, latency_us),
    LINK("network.ns_per_byte", CPL_LINK_NETWORK, ns_per_byte),
    COST("network.node_ns_per_byte", node_ns_per_byte),
    LANE("socket.lane.send_us", CPL_LINK_SOCKET, send_us),
    LANE("socket.lane.recv_us", CPL_LINK_SOCKET, recv_us),
    LANE("socket.lane.latency_us", CPL_LINK_SOCKET, latency_us),
    LANE("socket.lane.ns_per_byte", CPL_LINK_SOCKET, ns_per_byte),
    LANE("node.lane.send_us", CPL_LINK_NODE, send_us),
    LANE("node.lane.recv_us", CPL_LINK_NODE, recv_us),
    LANE("node.lane.latency_us", CPL_LINK_NODE, latency_us),
    LANE("node.lane.ns_per_byte", CPL_LINK_NODE, ns_per_byte),
    COST("combined_ns", combined_ns),
    COST("segment_ns", segment_ns),
    COST("packed_ns_per_byte", packed_ns_per_byte),
    COST("item_ns", item_ns),
    COST("switch_us", switch_us),
    {"ranks_per_node", VALUE_RANKS, 0},
    {"distances", VALUE_PATH, offsetof(struct cpl_machine_file, distances)},
    {"distances.ns_per_byte", VALUE_PATH, offsetof(struct cpl_machine_file, distance_bytes)},
};

#define N_KEYS (sizeof keys / sizeof *keys)

/* A machine file while it is read. */
struct reading {
    struct cpl_machine_file file;
    int64_t line[N_KEYS]; /* line that gave each key; 0: none yet */
};

static enum cpl_status find_key(struct cpl_text_reader *reader, struct cpl_text_word word,
                                size_t *key, struct cpl_error *error)
{
    char quote[CPL_TEXT_QUOTE];
    for (size_t k = 0; k < N_KEYS; k++) {
        if (!cpl_text_word_is(word, keys[k].name))
            continue;
        *key = k;
        return CPL_OK;
    }
    return cpl_text_fail(
        reader, error,
        "unknown key \"%s\"; expected {socket,node,network}.{send_us,recv_us,latency_us,"
        "ns_per_byte}, {socket,node}.lane.{send_us,recv_us,latency_us,ns_per_byte}, "
        "network.node_ns_per_byte, combined_ns, segment_ns, packed_ns_per_byte, item_ns, "
        "switch_us, ranks_per_node, distances or distances.ns_per_byte",
        cpl_text_quote(word, quote));
}

/* Takes the rest of the line as a path, which may have blanks inside. A relative path starts in the
 * machine file's folder. */
static enum cpl_status take_path(struct cpl_text_reader *reader, const struct machine_key *key,
                                 struct cpl_machine_file *file, struct cpl_error *error)
{
    struct cpl_machine_path *path = (void *)((char *)file + key->offset);
    struct cpl_text_word word, first;
    if (!cpl_text_take_word(reader, &first))
        return cpl_text_fail(reader, error, "%s is missing; expected %s FILE", key->name,
                             key->name);
    for (word = first; cpl_text_take_word(reader, &word);)
        first.length = (size_t)(word.begin + word.length - first.begin);
    const char *slash = first.begin[0] == '/' ? NULL : strrchr(reader->name, '/');
    int n = snprintf(path->name, sizeof path->name, "%.*s%.*s",
                     slash ? (int)(slash + 1 - reader->name) : 0, reader->name, (int)first.length,
                     first.begin);
    if (n < 0 || (size_t)n >= sizeof path->name)
        return cpl_text_fail(reader, error, "the path of %s is longer than %d bytes", key->name,
                             CPL_MACHINE_PATH - 1);
    path->line = reader->line;
    return CPL_OK;
}

static enum cpl_status read_value(struct cpl_text_reader *reader, size_t key,
                                  struct cpl_machine_file *file, struct cpl_error *error)
{
    int64_t n_ranks = 0;
    enum cpl_status status;
    switch (keys[key].value) {
    case VALUE_RANKS:
        status = cpl_text_take_integer(reader, keys[key].name, 1, INT32_MAX, &n_ranks, error);
        if (!status)
            file->ranks_per_node = (int32_t)n_ranks;
        return status;
    case VALUE_PATH:
        return take_path(reader, &keys[key], file, error);
    default:
        return cpl_text_take_real(reader, keys[key].name,
                                  (double *)(void *)((char *)&file->costs + keys[key].offset),
                                  error);
    }
}

static enum cpl_status read_line(struct cpl_text_reader *reader, struct reading *reading,
                                 struct cpl_error *error)
{
    struct cpl_text_word word;
    size_t key = 0;
    if (!cpl_text_take_word(reader, &word))
        return CPL_OK;
    enum cpl_status status = find_key(reader, word, &key, error);
    if (status)
        return status;
    if (reading->line[key])
        return cpl_text_fail(reader, error, "%s was given in line %lld; expected it once",
                             keys[key].name, (long long)reading->line[key]);
    reading->line[key] = reader->line;
    status = read_value(reader, key, &reading->file, error);
    return status ? status : cpl_text_end(reader, error);
}

static enum cpl_status read_lines(struct cpl_text_reader *reader, struct reading *reading,
                                  struct cpl_error *error)
{
    bool found = true;
    enum cpl_status status = CPL_OK;
    reader->comment = '#';
    reader->expected = "KEY VALUE";
    while (!status && found) {
        status = cpl_text_next_fields(reader, &found, error);
        if (!status && found)
            status = read_line(reader, reading, error);
    }
    return status;
}

enum cpl_status cpl_machine_file_read(const char *name, struct cpl_machine_file *file,
                                      struct cpl_error *error)
{
    struct cpl_text_reader reader;
    struct reading reading = {.file = *file};
    enum cpl_status status = cpl_text_open(name, &reader, error);
    if (status)
        return status;
    status = read_lines(&reader, &reading, error);
    cpl_text_close(&reader);
    const struct cpl_machine_path *bytes = &reading.file.distance_bytes;
    if (!status && bytes->name[0] && !reading.file.distances.name[0])
        status =
            cpl_fail(error, CPL_ERR_FORMAT,
                     "%.200s:%lld: distances.ns_per_byte is given, but not distances; expected "
                     "both, as carpool calibrate --distances writes them",
                     name, (long long)bytes->line);
    if (!status)
        *file = reading.file;
    return status;
}
