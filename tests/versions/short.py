from mpi4py import MPI
world, got = MPI.COMM_WORLD, bytearray(64 * MPI.COMM_WORLD.size)
for _ in range(5000):
    world.Alltoallv(bytes(64 * world.size), got)
