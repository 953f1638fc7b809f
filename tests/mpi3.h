/*
 * For the test programs with an MPI of version 3 (MPICH 3.4): there the functions of MPI 4 that
 * they use end the program. Whatever calls them asks HAS_MPI4 before, or its line in
 * tests/mpi/testlist or tests/promise/cases has the flag `mpi4`.
 */
#ifndef TESTS_MPI3_H
#define TESTS_MPI3_H

#include <mpi.h>

#define HAS_MPI4 (MPI_VERSION >= 4)

#if MPI_VERSION < 4
#include <stdio.h>

static inline int mpi3_lacks(const char *name, ...)
{
    fprintf(stderr, "this MPI has no %s\n", name);
    return MPI_Abort(MPI_COMM_WORLD, 1);
}

#define MPI_Allgather_c(...)               mpi3_lacks("MPI_Allgather_c", __VA_ARGS__)
#define MPI_Allgather_init(...)            mpi3_lacks("MPI_Allgather_init", __VA_ARGS__)
#define MPI_Allgather_init_c(...)          mpi3_lacks("MPI_Allgather_init_c", __VA_ARGS__)
#define MPI_Allgatherv_c(...)              mpi3_lacks("MPI_Allgatherv_c", __VA_ARGS__)
#define MPI_Allgatherv_init(...)           mpi3_lacks("MPI_Allgatherv_init", __VA_ARGS__)
#define MPI_Allgatherv_init_c(...)         mpi3_lacks("MPI_Allgatherv_init_c", __VA_ARGS__)
#define MPI_Allreduce_c(...)               mpi3_lacks("MPI_Allreduce_c", __VA_ARGS__)
#define MPI_Allreduce_init(...)            mpi3_lacks("MPI_Allreduce_init", __VA_ARGS__)
#define MPI_Alltoall_c(...)                mpi3_lacks("MPI_Alltoall_c", __VA_ARGS__)
#define MPI_Alltoallv_c(...)               mpi3_lacks("MPI_Alltoallv_c", __VA_ARGS__)
#define MPI_Alltoallv_init(...)            mpi3_lacks("MPI_Alltoallv_init", __VA_ARGS__)
#define MPI_Alltoallv_init_c(...)          mpi3_lacks("MPI_Alltoallv_init_c", __VA_ARGS__)
#define MPI_Alltoallw_c(...)               mpi3_lacks("MPI_Alltoallw_c", __VA_ARGS__)
#define MPI_Alltoallw_init(...)            mpi3_lacks("MPI_Alltoallw_init", __VA_ARGS__)
#define MPI_Alltoallw_init_c(...)          mpi3_lacks("MPI_Alltoallw_init_c", __VA_ARGS__)
#define MPI_Bcast_c(...)                   mpi3_lacks("MPI_Bcast_c", __VA_ARGS__)
#define MPI_Bsend_c(...)                   mpi3_lacks("MPI_Bsend_c", __VA_ARGS__)
#define MPI_Buffer_attach_c(...)           mpi3_lacks("MPI_Buffer_attach_c", __VA_ARGS__)
#define MPI_Buffer_detach_c(...)           mpi3_lacks("MPI_Buffer_detach_c", __VA_ARGS__)
#define MPI_Exscan_c(...)                  mpi3_lacks("MPI_Exscan_c", __VA_ARGS__)
#define MPI_Gather_c(...)                  mpi3_lacks("MPI_Gather_c", __VA_ARGS__)
#define MPI_Gatherv_c(...)                 mpi3_lacks("MPI_Gatherv_c", __VA_ARGS__)
#define MPI_Iallgather_c(...)              mpi3_lacks("MPI_Iallgather_c", __VA_ARGS__)
#define MPI_Iallgatherv_c(...)             mpi3_lacks("MPI_Iallgatherv_c", __VA_ARGS__)
#define MPI_Iallreduce_c(...)              mpi3_lacks("MPI_Iallreduce_c", __VA_ARGS__)
#define MPI_Ialltoallv_c(...)              mpi3_lacks("MPI_Ialltoallv_c", __VA_ARGS__)
#define MPI_Ialltoallw_c(...)              mpi3_lacks("MPI_Ialltoallw_c", __VA_ARGS__)
#define MPI_Imrecv_c(...)                  mpi3_lacks("MPI_Imrecv_c", __VA_ARGS__)
#define MPI_Ineighbor_allgather_c(...)     mpi3_lacks("MPI_Ineighbor_allgather_c", __VA_ARGS__)
#define MPI_Ineighbor_allgatherv_c(...)    mpi3_lacks("MPI_Ineighbor_allgatherv_c", __VA_ARGS__)
#define MPI_Ineighbor_alltoall_c(...)      mpi3_lacks("MPI_Ineighbor_alltoall_c", __VA_ARGS__)
#define MPI_Ineighbor_alltoallv_c(...)     mpi3_lacks("MPI_Ineighbor_alltoallv_c", __VA_ARGS__)
#define MPI_Ineighbor_alltoallw_c(...)     mpi3_lacks("MPI_Ineighbor_alltoallw_c", __VA_ARGS__)
#define MPI_Irecv_c(...)                   mpi3_lacks("MPI_Irecv_c", __VA_ARGS__)
#define MPI_Isend_c(...)                   mpi3_lacks("MPI_Isend_c", __VA_ARGS__)
#define MPI_Isendrecv(...)                 mpi3_lacks("MPI_Isendrecv", __VA_ARGS__)
#define MPI_Isendrecv_c(...)               mpi3_lacks("MPI_Isendrecv_c", __VA_ARGS__)
#define MPI_Isendrecv_replace(...)         mpi3_lacks("MPI_Isendrecv_replace", __VA_ARGS__)
#define MPI_Isendrecv_replace_c(...)       mpi3_lacks("MPI_Isendrecv_replace_c", __VA_ARGS__)
#define MPI_Issend_c(...)                  mpi3_lacks("MPI_Issend_c", __VA_ARGS__)
#define MPI_Mrecv_c(...)                   mpi3_lacks("MPI_Mrecv_c", __VA_ARGS__)
#define MPI_Neighbor_allgather_c(...)      mpi3_lacks("MPI_Neighbor_allgather_c", __VA_ARGS__)
#define MPI_Neighbor_allgather_init(...)   mpi3_lacks("MPI_Neighbor_allgather_init", __VA_ARGS__)
#define MPI_Neighbor_allgather_init_c(...) mpi3_lacks("MPI_Neighbor_allgather_init_c", __VA_ARGS__)
#define MPI_Neighbor_allgatherv_c(...)     mpi3_lacks("MPI_Neighbor_allgatherv_c", __VA_ARGS__)
#define MPI_Neighbor_allgatherv_init(...)  mpi3_lacks("MPI_Neighbor_allgatherv_init", __VA_ARGS__)
#define MPI_Neighbor_allgatherv_init_c(...)                                                        \
    mpi3_lacks("MPI_Neighbor_allgatherv_init_c", __VA_ARGS__)
#define MPI_Neighbor_alltoall_c(...)       mpi3_lacks("MPI_Neighbor_alltoall_c", __VA_ARGS__)
#define MPI_Neighbor_alltoall_init(...)    mpi3_lacks("MPI_Neighbor_alltoall_init", __VA_ARGS__)
#define MPI_Neighbor_alltoall_init_c(...)  mpi3_lacks("MPI_Neighbor_alltoall_init_c", __VA_ARGS__)
#define MPI_Neighbor_alltoallv_c(...)      mpi3_lacks("MPI_Neighbor_alltoallv_c", __VA_ARGS__)
#define MPI_Neighbor_alltoallv_init(...)   mpi3_lacks("MPI_Neighbor_alltoallv_init", __VA_ARGS__)
#define MPI_Neighbor_alltoallv_init_c(...) mpi3_lacks("MPI_Neighbor_alltoallv_init_c", __VA_ARGS__)
#define MPI_Neighbor_alltoallw_c(...)      mpi3_lacks("MPI_Neighbor_alltoallw_c", __VA_ARGS__)
#define MPI_Neighbor_alltoallw_init(...)   mpi3_lacks("MPI_Neighbor_alltoallw_init", __VA_ARGS__)
#define MPI_Neighbor_alltoallw_init_c(...) mpi3_lacks("MPI_Neighbor_alltoallw_init_c", __VA_ARGS__)
#define MPI_Parrived(...)                  mpi3_lacks("MPI_Parrived", __VA_ARGS__)
#define MPI_Pready(...)                    mpi3_lacks("MPI_Pready", __VA_ARGS__)
#define MPI_Pready_range(...)              mpi3_lacks("MPI_Pready_range", __VA_ARGS__)
#define MPI_Precv_init(...)                mpi3_lacks("MPI_Precv_init", __VA_ARGS__)
#define MPI_Psend_init(...)                mpi3_lacks("MPI_Psend_init", __VA_ARGS__)
#define MPI_Recv_c(...)                    mpi3_lacks("MPI_Recv_c", __VA_ARGS__)
#define MPI_Recv_init_c(...)               mpi3_lacks("MPI_Recv_init_c", __VA_ARGS__)
#define MPI_Reduce_c(...)                  mpi3_lacks("MPI_Reduce_c", __VA_ARGS__)
#define MPI_Reduce_scatter_block_c(...)    mpi3_lacks("MPI_Reduce_scatter_block_c", __VA_ARGS__)
#define MPI_Reduce_scatter_c(...)          mpi3_lacks("MPI_Reduce_scatter_c", __VA_ARGS__)
#define MPI_Scan_c(...)                    mpi3_lacks("MPI_Scan_c", __VA_ARGS__)
#define MPI_Scatter_c(...)                 mpi3_lacks("MPI_Scatter_c", __VA_ARGS__)
#define MPI_Scatterv_c(...)                mpi3_lacks("MPI_Scatterv_c", __VA_ARGS__)
#define MPI_Send_c(...)                    mpi3_lacks("MPI_Send_c", __VA_ARGS__)
#define MPI_Send_init_c(...)               mpi3_lacks("MPI_Send_init_c", __VA_ARGS__)
#define MPI_Sendrecv_c(...)                mpi3_lacks("MPI_Sendrecv_c", __VA_ARGS__)
#define MPI_Sendrecv_replace_c(...)        mpi3_lacks("MPI_Sendrecv_replace_c", __VA_ARGS__)
#define MPI_Ssend_c(...)                   mpi3_lacks("MPI_Ssend_c", __VA_ARGS__)
#define MPI_Win_allocate_c(...)            mpi3_lacks("MPI_Win_allocate_c", __VA_ARGS__)
#define MPI_Win_allocate_shared_c(...)     mpi3_lacks("MPI_Win_allocate_shared_c", __VA_ARGS__)
#define MPI_Win_create_c(...)              mpi3_lacks("MPI_Win_create_c", __VA_ARGS__)
#endif

#endif
