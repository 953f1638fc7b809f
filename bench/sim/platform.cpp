/* A simulated cluster for SimGrid's MPI, from a machine file: what `smpirun -platform` loads.
 * C++, since SimGrid takes callbacks for the costs of messages from C++ only.
 *
 *   CPL_SIM_MACHINE    machine file (planner/machine.h), the same that the shim plans by
 *   CPL_SIM_TOPOLOGY   fattree, torus, dragonfly or switches
 *   CPL_SIM_NODES      nodes; every node is one host, with a core for each of its ranks
 *
 * A message costs its sender send_us and its receiver recv_us of processor time, inside a node and
 * between nodes as the machine file says. Inside a node both ends copy its bytes. Between nodes it
 * travels over the links of the topology, which messages share; a link's latency is such that the
 * mean over all pairs of nodes is the machine's latency_us. Every link, a node's port among them,
 * has the bandwidth that a rank has alone, so network.ns_per_byte and network.node_ns_per_byte must
 * be the same. */
#include <simgrid/s4u.hpp>
#include <simgrid/version.h>
#include <smpi/smpi.h>

#include <cmath>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

extern "C" {
#include "planner/machine.h"
}

namespace sg4 = simgrid::s4u;

namespace
{

cpl_machine_file machine;
unsigned n_nodes;

std::string variable(const char *name)
{
    const char *value = std::getenv(name);
    if (!value || !*value)
        throw std::runtime_error(std::string(name) + " is not set");
    return value;
}

void read_machine()
{
    cpl_error error;
    machine = cpl_machine_file_default();
    if (cpl_machine_file_load(variable("CPL_SIM_MACHINE").c_str(), &machine, &error))
        throw std::runtime_error(std::string("CPL_SIM_MACHINE: ") + error.text);
    const cpl_costs &costs = machine.costs;
    if (costs.link[CPL_LINK_NETWORK].ns_per_byte <= 0 ||
        costs.link[CPL_LINK_NETWORK].ns_per_byte < costs.node_ns_per_byte ||
        costs.link[CPL_LINK_NETWORK].ns_per_byte > costs.node_ns_per_byte)
        throw std::runtime_error("CPL_SIM_MACHINE: expected network.ns_per_byte above 0 and "
                                 "network.node_ns_per_byte the same");
}

const cpl_link_cost &link_cost(const sg4::Host *a, const sg4::Host *b)
{
    return machine.costs.link[a == b ? CPL_LINK_NODE : CPL_LINK_NETWORK];
}

double end_seconds(double overhead_us, size_t bytes, const sg4::Host *a, const sg4::Host *b)
{
    double copied_ns = a == b ? link_cost(a, b).ns_per_byte * static_cast<double>(bytes) : 0;
    return overhead_us * 1e-6 + copied_ns * 1e-9;
}

double send_seconds(size_t bytes, sg4::Host *from, sg4::Host *to)
{
    return end_seconds(link_cost(from, to).send_us, bytes, from, to);
}

double recv_seconds(size_t bytes, sg4::Host *from, sg4::Host *to)
{
    return end_seconds(link_cost(from, to).recv_us, bytes, from, to);
}

sg4::Host *make_host(sg4::NetZone *zone, const std::vector<unsigned long> &, unsigned long id)
{
    sg4::Host *host = zone->create_host("n" + std::to_string(id), 1e9);
    host->set_core_count(machine.ranks_per_node)->seal();
    return host;
}

/* From SimGrid 4 on a node is a host, and all zones are in a root; before, it is a point of the
 * network, and the first zone is the root. */
#if SIMGRID_VERSION >= 40000
constexpr auto make_node = make_host;

sg4::NetZone *root_of(const sg4::Engine &engine)
{
    return engine.get_netzone_root();
}
#else
std::pair<simgrid::kernel::routing::NetPoint *, simgrid::kernel::routing::NetPoint *>
make_node(sg4::NetZone *zone, const std::vector<unsigned long> &position, unsigned long id)
{
    return {make_host(zone, position, id)->get_netpoint(), nullptr};
}

sg4::NetZone *root_of(const sg4::Engine &)
{
    return nullptr;
}
#endif

/* Memory: its bytes are charged to the ranks that copy them. */
sg4::Link *make_memory(sg4::NetZone *zone, const std::vector<unsigned long> &, unsigned long id)
{
    return zone->create_link("memory" + std::to_string(id), 1e13)
        ->set_latency(machine.costs.link[CPL_LINK_NODE].latency_us * 1e-6)
        ->set_sharing_policy(sg4::Link::SharingPolicy::FATPIPE)
        ->seal();
}

unsigned divisor_near(unsigned n, double size)
{
    unsigned d = std::max(1U, static_cast<unsigned>(std::lround(size)));
    while (n % d)
        d--;
    return d;
}

/* Every switch joins as many nodes as it has ways up: nothing is blocked but by static routes. */
sg4::NetZone *make_fat_tree(sg4::NetZone *parent, const sg4::ClusterCallbacks &callbacks,
                            double bandwidth)
{
    unsigned leaf = divisor_near(n_nodes, std::min(8.0, n_nodes / 2.0));
    return sg4::create_fatTree_zone("network", parent,
                                    {2, {leaf, n_nodes / leaf}, {1, leaf}, {1, 1}}, callbacks,
                                    bandwidth, 1e-6, sg4::Link::SharingPolicy::SPLITDUPLEX);
}

/* Two switches with half of the nodes each, joined by one link. */
sg4::NetZone *make_switches(sg4::NetZone *parent, const sg4::ClusterCallbacks &callbacks,
                            double bandwidth)
{
    return sg4::create_fatTree_zone("network", parent, {2, {(n_nodes + 1) / 2, 2}, {1, 1}, {1, 1}},
                                    callbacks, bandwidth, 1e-6,
                                    sg4::Link::SharingPolicy::SPLITDUPLEX);
}

sg4::NetZone *make_torus(sg4::NetZone *parent, const sg4::ClusterCallbacks &callbacks,
                         double bandwidth)
{
    unsigned x = divisor_near(n_nodes, std::cbrt(n_nodes));
    unsigned y = divisor_near(n_nodes / x, std::sqrt(n_nodes / x));
    std::vector<unsigned long> sizes;
    for (unsigned size : {n_nodes / x / y, y, x})
        if (size > 1) /* a node has no link to itself */
            sizes.push_back(size);
    return sg4::create_torus_zone("network", parent, sizes, callbacks, bandwidth, 1e-6,
                                  sg4::Link::SharingPolicy::SPLITDUPLEX);
}

/* Groups of two chassis with two routers each, two nodes a router; more groups for more nodes. */
sg4::NetZone *make_dragonfly(sg4::NetZone *parent, const sg4::ClusterCallbacks &callbacks,
                             double bandwidth)
{
    unsigned groups = (n_nodes + 7) / 8;
    return sg4::create_dragonfly_zone("network", parent,
                                      {{std::max(groups, 2U), 4}, {2, 3}, {2, 2}, 2}, callbacks,
                                      bandwidth, 1e-6, sg4::Link::SharingPolicy::SPLITDUPLEX);
}

/* Mean latency of the routes between different nodes, in seconds. */
double mean_latency(const sg4::Engine &engine)
{
    double sum = 0;
    for (unsigned i = 0; i < n_nodes; i++)
        for (unsigned j = 0; j < n_nodes; j++) {
            if (i == j)
                continue;
            std::vector<sg4::Link *> links;
            double latency = 0;
            engine.host_by_name("n" + std::to_string(i))
                ->route_to(engine.host_by_name("n" + std::to_string(j)), links, &latency);
            sum += latency;
        }
    return sum / n_nodes / (n_nodes - 1);
}

void scale_latencies(const sg4::Engine &engine)
{
    double scale = machine.costs.link[CPL_LINK_NETWORK].latency_us * 1e-6 / mean_latency(engine);
    for (sg4::Link *link : engine.get_all_links())
        if (link->get_name().compare(0, 6, "memory") != 0)
            link->set_latency(link->get_latency() * scale);
}

} // namespace

extern "C" void load_platform(const sg4::Engine &engine);

void load_platform(const sg4::Engine &engine)
{
    sg4::ClusterCallbacks callbacks(make_node, make_memory, {});
    std::string topology = variable("CPL_SIM_TOPOLOGY");
    n_nodes = static_cast<unsigned>(std::stoul(variable("CPL_SIM_NODES")));
    read_machine();
    sg4::NetZone *parent = root_of(engine);
    double bandwidth = 1e9 / machine.costs.link[CPL_LINK_NETWORK].ns_per_byte;
    if (topology == "fattree")
        make_fat_tree(parent, callbacks, bandwidth)->seal();
    else if (topology == "torus")
        make_torus(parent, callbacks, bandwidth)->seal();
    else if (topology == "switches")
        make_switches(parent, callbacks, bandwidth)->seal();
    else if (topology == "dragonfly")
        make_dragonfly(parent, callbacks, bandwidth)->seal();
    else
        throw std::runtime_error("CPL_SIM_TOPOLOGY=" + topology +
                                 "; expected fattree, torus, dragonfly or switches");
    if (n_nodes > 1)
        scale_latencies(engine);
    smpi_register_op_cost_callback(SmpiOperation::ISEND, send_seconds);
    smpi_register_op_cost_callback(SmpiOperation::SEND, send_seconds);
    smpi_register_op_cost_callback(SmpiOperation::RECV, recv_seconds);
}
