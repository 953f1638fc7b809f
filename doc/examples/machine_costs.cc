// What messages cost on the built-in machines, from C++.
//
//   c++ machine_costs.cc $(pkg-config --cflags --libs carpool-planner) -o machine_costs
#include <carpool/machine.h>

#include <cstddef>
#include <iostream>

int main()
{
    std::size_t n;
    const cpl_builtin_machine *machines = cpl_builtin_machines(&n);
    for (std::size_t k = 0; k < n; k++) {
        const cpl_link_cost &link = machines[k].costs.link[CPL_LINK_NETWORK];
        std::cout << machines[k].name << ": " << link.send_us + link.latency_us + link.recv_us
                  << " us between nodes\n";
    }
    return 0;
}
