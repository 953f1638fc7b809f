"""A neighborhood collective and messages that recur, among ranks that are near each other.

Rank 0 prints a checksum of all that came; wheel.sh compares runs with and without the library, and looks into the
report for both exchanges.
"""

import zlib
from array import array

from mpi4py import MPI

N_CALLS = 60
world = MPI.COMM_WORLD
rank, n_ranks = world.Get_rank(), world.Get_size()
peers = sorted({(rank + step) % n_ranks for step in (1, 2, -1, -2)} - {rank})
graph = world.Create_dist_graph_adjacent(peers, peers)


def count(sender, receiver):
    return 1 + (7 * sender + receiver) % 5


def starts(counts):
    return [sum(counts[:k]) for k in range(len(counts))]


def neighbors(call):
    """MPI_Neighbor_alltoallv of a few numbers to each; returns what came."""
    out, came = [count(rank, peer) for peer in peers], [count(peer, rank) for peer in peers]
    sent = array("i", (1000 * rank + 10 * call + k for k in range(sum(out))))
    got = array("i", [0]) * sum(came)
    graph.Neighbor_alltoallv([sent, out, starts(out), MPI.INT], [got, came, starts(came), MPI.INT])
    return got


def messages(call):
    """MPI_Irecv and MPI_Isend to each, MPI_Waitall; returns what came."""
    got = [array("i", [0]) * count(peer, rank) for peer in peers]
    requests = [world.Irecv([buffer, MPI.INT], peer, 5) for buffer, peer in zip(got, peers)]
    for peer in peers:
        sent = array("i", (rank + peer + call for _ in range(count(rank, peer))))
        requests.append(world.Isend([sent, MPI.INT], peer, 5))
    MPI.Request.Waitall(requests)
    return array("i", (number for buffer in got for number in buffer))


checksum, most = array("q", [0]), array("q", [0])
for call in range(N_CALLS):
    checksum[0] = zlib.crc32(neighbors(call).tobytes(), checksum[0])
    checksum[0] = zlib.crc32(messages(call).tobytes(), checksum[0])
    world.Allreduce([checksum, MPI.INT64_T], [most, MPI.INT64_T], MPI.MAX)
    checksum[0] = most[0] ^ rank
total = world.reduce(checksum[0], MPI.SUM)
if rank == 0:
    print(f"{n_ranks} ranks, {total}")
