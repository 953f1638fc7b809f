/* Writing machine files and distances (write.h). Numbers are written for the "C" locale, which a
 * program has that does not set another. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "write.h"

#include <string.h>
#include <time.h>

/* The comment lines that both files begin with. */
static void write_facts(FILE *out, char comment, const struct cpl_run_facts *facts)
{
    char date[64];
    time_t now = time(NULL);
    struct tm utc;
    if (!gmtime_r(&now, &utc) || !strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", &utc))
        snprintf(date, sizeof date, "an unknown date");
    fprintf(out, "%c carpool calibrate %s, %s, %.1f seconds\n", comment, PACKAGE_VERSION, date,
            facts->seconds);
    fprintf(out, "%c host %s", comment, facts->host);
    if (facts->n_hosts > 1)
        fprintf(out, " and %d more", facts->n_hosts - 1);
    fprintf(out, "; %d ranks on %d node%s\n", facts->n_ranks, facts->n_nodes,
            facts->n_nodes == 1 ? "" : "s");
    fprintf(out, "%c %s\n", comment, facts->mpi);
    if (facts->n_turns > 1)
        fprintf(out,
                "%c Up to %d ranks shared a processor: figures of messages are of the scheduler, "
                "not of the machine.\n",
                comment, facts->n_turns);
}

static void write_link(FILE *out, const char *name, const struct cpl_link_result *link,
                       const char *what, const char *absent)
{
    if (!link->n_leads) {
        fprintf(out, "\n# %s.*: %s; the figures of edr hold\n", name, absent);
        return;
    }
    fprintf(out, "\n# %s: %d rank%s measured, bursts to and from %d peer%s\n", what, link->n_leads,
            link->n_leads == 1 ? "" : "s", link->n_peers, link->n_peers == 1 ? "" : "s");
    if (link->disturbance > CPL_MOST_DISTURBANCE)
        fprintf(
            out,
            "# disturbed by other work (%.3g times as long): measure again on an idle machine\n",
            link->disturbance);
    fprintf(out, "%s.send_us %.4g\n", name, link->cost.send_us);
    fprintf(out, "%s.recv_us %.4g\n", name, link->cost.recv_us);
    fprintf(out, "%s.latency_us %.4g\n", name, link->cost.latency_us);
    fprintf(out, "%s.ns_per_byte %.4g\n", name, link->cost.ns_per_byte);
}

static void write_interface(FILE *out, const struct cpl_links_result *links)
{
    if (!links->link[CPL_LINK_NETWORK].n_leads)
        return;
    if (links->n_node_pairs)
        fprintf(out, "# %d ranks of a node sent to another one at once\n", links->n_flows);
    else
        fprintf(out, "# no two nodes had more than one rank each: the rate of one rank\n");
    fprintf(out, "network.node_ns_per_byte %.4g\n", links->node_ns_per_byte);
}

void cpl_write_machine(FILE *out, const struct cpl_run_facts *facts,
                       const struct cpl_links_result *links, const struct cpl_memory_result *memory,
                       const char *distances, const char *distance_bytes)
{
    write_facts(out, '#', facts);
    fprintf(out,
            "#\n"
            "# Medians. send_us, recv_us: processor time per message of a burst of %d messages "
            "of %d bytes.\n"
            "# latency_us: half a round trip less these two. ns_per_byte: slope of the time of "
            "%d messages\n"
            "# of %d bytes to %d KiB in one direction.\n",
            CPL_PROBE_BURST, CPL_PROBE_MESSAGE, CPL_PROBE_WINDOW,
            CPL_PROBE_BYTES >> 2 * (CPL_PROBE_LENGTHS - 1), CPL_PROBE_BYTES >> 10);
    write_link(out, "socket", &links->link[CPL_LINK_SOCKET], "same socket",
               "no two ranks were on one socket");
    write_link(out, "node", &links->link[CPL_LINK_NODE], "same node, different sockets",
               "no two ranks were on different sockets of one node");
    write_link(out, "network", &links->link[CPL_LINK_NETWORK], "different nodes",
               "all ranks were on one node");
    write_interface(out, links);
    fprintf(out,
            "\n# Lanes: slots in memory that two ranks share, with one writer and one reader each; "
            "bursts "
            "of %d slots.\n# ns_per_byte: slope of a quarter of the round trips.\n",
            CPL_PROBE_BURST);
    write_link(out, "socket.lane", &links->lane[CPL_LINK_SOCKET], "same socket, by lanes",
               "no two ranks of one socket shared memory");
    write_link(out, "node.lane", &links->lane[CPL_LINK_NODE], "same node, by lanes",
               "no two ranks on different sockets of one node shared memory");
    fprintf(out, "\n# copied by rank 0: segments of 8 to 64 bytes, items of 8\n");
    fprintf(out, "segment_ns %.4g\nitem_ns %.4g\n", memory->segment_ns, memory->item_ns);
    fprintf(out, "\n# switch_us is not measured; the figure of edr holds\n");
    if (facts->ranks_per_node)
        fprintf(out, "ranks_per_node %d\n", facts->ranks_per_node);
    else
        fprintf(out, "# ranks_per_node: %s; say how many consecutive ranks a node has\n",
                facts->n_nodes == 1
                    ? "all ranks were on one node"
                    : "nodes had different numbers of ranks, or not consecutive ones");
    if (distances)
        fprintf(out,
                "\n# between the %d ranks of this run\ndistances %s\ndistances.ns_per_byte %s\n",
                facts->n_ranks, distances, distance_bytes);
}

void cpl_write_distances(FILE *out, const struct cpl_run_facts *facts,
                         const struct cpl_distance *distances, enum cpl_distance_figure figure)
{
    size_t n = (size_t)facts->n_ranks;
    fprintf(out, "%%%%MatrixMarket matrix array real symmetric\n");
    write_facts(out, '%', facts);
    if (figure == CPL_DISTANCE_US)
        fprintf(out, "%% half a round trip of %d bytes between any two ranks, in microseconds\n",
                CPL_PROBE_PAIR);
    else
        fprintf(out,
                "%% what a byte of %d to %d adds to it, while other pairs send, in nanoseconds\n",
                CPL_PROBE_PAIR, CPL_PROBE_BYTES);
    fprintf(out, "%zu %zu\n", n, n);
    for (size_t column = 0; column < n; column++)
        for (size_t row = column; row < n; row++) {
            const struct cpl_distance *distance = &distances[row * n + column];
            if (figure == CPL_DISTANCE_US)
                fprintf(out, "%.3f\n", (double)distance->us);
            else
                fprintf(out, "%.4g\n", (double)distance->ns_per_byte);
        }
}
