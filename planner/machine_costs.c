/* Reading costs from a machine file (machine.h). What a line may set is one row of a table each. */
#include "machine.h"
#include "text_reader.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cost_key {
    const char *name;
    size_t offset; /* of a double in struct cpl_costs; NOT_A_COST for ranks_per_node */
};

#define NOT_A_COST       SIZE_MAX
#define LINK(class, key) (offsetof(struct cpl_costs, link[class].key))

static const struct cost_key cost_keys[] = {
    {"socket.send_us", LINK(CPL_LINK_SOCKET, send_us)},
    {"socket.recv_us", LINK(CPL_LINK_SOCKET, recv_us)},
    {"socket.latency_us", LINK(CPL_LINK_SOCKET, latency_us)},
    {"socket.ns_per_byte", LINK(CPL_LINK_SOCKET, ns_per_byte)},
    {"node.send_us", LINK(CPL_LINK_NODE, send_us)},
    {"node.recv_us", LINK(CPL_LINK_NODE, recv_us)},
    {"node.latency_us", LINK(CPL_LINK_NODE, latency_us)},
    {"node.ns_per_byte", LINK(CPL_LINK_NODE, ns_per_byte)},
    {"network.send_us", LINK(CPL_LINK_NETWORK, send_us)},
    {"network.recv_us", LINK(CPL_LINK_NETWORK, recv_us)},
    {"network.latency_us", LINK(CPL_LINK_NETWORK, latency_us)},
    {"network.ns_per_byte", LINK(CPL_LINK_NETWORK, ns_per_byte)},
    {"network.node_ns_per_byte", offsetof(struct cpl_costs, node_ns_per_byte)},
    {"segment_ns", offsetof(struct cpl_costs, segment_ns)},
    {"item_ns", offsetof(struct cpl_costs, item_ns)},
    {"switch_us", offsetof(struct cpl_costs, switch_us)},
    {"ranks_per_node", NOT_A_COST},
};

#define N_KEYS (sizeof cost_keys / sizeof *cost_keys)

/* What a machine file has said so far. */
struct machine_file {
    struct cpl_costs costs;
    int64_t ranks_per_node;
    int64_t line[N_KEYS]; /* that gave a key; 0: none yet */
};

static enum cpl_status find_key(struct cpl_text_reader *reader, struct cpl_text_word word,
                                size_t *key, struct cpl_error *error)
{
    char quote[CPL_TEXT_QUOTE];
    for (size_t k = 0; k < N_KEYS; k++) {
        if (!cpl_text_word_is(word, cost_keys[k].name))
            continue;
        *key = k;
        return CPL_OK;
    }
    return cpl_text_fail(
        reader, error,
        "unknown key \"%s\"; expected {socket,node,network}.{send_us,recv_us,latency_us,"
        "ns_per_byte}, network.node_ns_per_byte, segment_ns, item_ns, switch_us "
        "or ranks_per_node",
        cpl_text_quote(word, quote));
}

static enum cpl_status read_value(struct cpl_text_reader *reader, size_t key,
                                  struct machine_file *file, struct cpl_error *error)
{
    const char *name = cost_keys[key].name;
    if (cost_keys[key].offset == NOT_A_COST)
        return cpl_text_take_integer(reader, name, 1, INT32_MAX, &file->ranks_per_node, error);
    double *value = (double *)(void *)((char *)&file->costs + cost_keys[key].offset);
    return cpl_text_take_real(reader, name, value, error);
}

static enum cpl_status read_line(struct cpl_text_reader *reader, struct machine_file *file,
                                 struct cpl_error *error)
{
    struct cpl_text_word word;
    size_t key = 0;
    if (!cpl_text_take_word(reader, &word))
        return CPL_OK;
    enum cpl_status status = find_key(reader, word, &key, error);
    if (status)
        return status;
    if (file->line[key])
        return cpl_text_fail(reader, error, "%s was given in line %lld; expected it once",
                             cost_keys[key].name, (long long)file->line[key]);
    file->line[key] = reader->line;
    status = read_value(reader, key, file, error);
    return status ? status : cpl_text_end(reader, error);
}

static enum cpl_status read_lines(struct cpl_text_reader *reader, struct machine_file *file,
                                  struct cpl_error *error)
{
    bool found = true;
    enum cpl_status status = CPL_OK;
    reader->comment = '#';
    reader->expected = "KEY VALUE";
    while (!status && found) {
        status = cpl_text_next_fields(reader, &found, error);
        if (!status && found)
            status = read_line(reader, file, error);
    }
    return status;
}

enum cpl_status cpl_costs_read(const char *file, struct cpl_costs *costs, int32_t *ranks_per_node,
                               struct cpl_error *error)
{
    struct cpl_text_reader reader;
    struct machine_file read = {.costs = *costs};
    enum cpl_status status = cpl_text_open(file, &reader, error);
    if (status)
        return status;
    status = read_lines(&reader, &read, error);
    cpl_text_close(&reader);
    if (status)
        return status;
    *costs = read.costs;
    if (ranks_per_node && read.ranks_per_node)
        *ranks_per_node = (int32_t)read.ranks_per_node;
    return CPL_OK;
}
