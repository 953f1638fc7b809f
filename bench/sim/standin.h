/* What SimGrid's MPI (SMPI 3.32) lacks of the calls that the shim intercepts or makes, so that the
 * shim's own sources compile for it unchanged. The Makefile includes this header in all files of a
 * simulated program: the shim's, the stand-in's and the program's.
 *
 *  - Distributed graphs and neighborhood collectives: SMPI's abort. standin_graph.c keeps the graph
 *    on a duplicate of the communicator and carries blocking calls, and MPI_Ineighbor_alltoallv
 * (for MPI_Test, MPI_Wait and MPI_Waitall), by a loop of sends and receives, as MPICH does. Both
 * sides of a comparison use it: MPI_Neighbor_alltoallv is the shim's, which leaves to the stand-in
 * what it does not carry; PMPI_Neighbor_alltoallv is the stand-in's.
 *  - Testing many requests, MPI_Ibarrier and MPI_Iallreduce: standin_wait.c. The requests of these
 *    two go to MPI_Test and MPI_Wait only.
 *  - MPI_Allgather of much data: SMPI's ring is another algorithm than MPICH's, which
 *    standin_gather.c has.
 *  - Large-count forms: standin_calls.c makes the int forms of those that the shim calls.
 *  - Attributes of MPI_COMM_WORLD, which all simulated ranks share: kept on MPI_COMM_SELF.
 *  - All other calls that are missing (standin.def): making one says so and ends the run.
 *
 * State per rank: SMPI loads the program once for each rank (smpi/privatization:dlopen), and the
 * shim is part of it. */
#ifndef CARPOOL_BENCH_STANDIN_H
#define CARPOOL_BENCH_STANDIN_H

#include <mpi.h>
#include <stdint.h>

/* MPI 4.1; SMPI's mpi.h does not declare them. */
int PMPI_Request_get_status_all(int, const MPI_Request *, int *, MPI_Status *);
int PMPI_Request_get_status_any(int, const MPI_Request *, int *, int *, MPI_Status *);
int PMPI_Request_get_status_some(int, const MPI_Request *, int *, int *, MPI_Status *);

/* These replace SMPI's; whoever makes the calls by their PMPI_ or MPI_ names gets them. */
#define PMPI_Topo_test                  cpl_sim_topo_test
#define PMPI_Dist_graph_neighbors       cpl_sim_dist_graph_neighbors
#define PMPI_Dist_graph_neighbors_count cpl_sim_dist_graph_neighbors_count
#define PMPI_Dist_graph_create_adjacent cpl_sim_dist_graph_create_adjacent
#define PMPI_Neighbor_alltoall          cpl_sim_neighbor_alltoall
#define PMPI_Neighbor_alltoallv         cpl_sim_neighbor_alltoallv
#define PMPI_Ineighbor_alltoallv        cpl_sim_ineighbor_alltoallv
#define PMPI_Allgather                  cpl_sim_allgather
#define PMPI_Comm_get_attr              cpl_sim_comm_get_attr
#define PMPI_Comm_set_attr              cpl_sim_comm_set_attr
#define PMPI_Comm_delete_attr           cpl_sim_comm_delete_attr
#define PMPI_Comm_get_parent            cpl_sim_comm_get_parent
#define PMPI_Isend                      cpl_sim_isend
#define PMPI_Irecv                      cpl_sim_irecv
#define PMPI_Iallreduce                 cpl_sim_iallreduce
#define PMPI_Ibarrier                   cpl_sim_ibarrier
#define PMPI_Test                       cpl_sim_test
#define PMPI_Testall                    cpl_sim_testall
#define PMPI_Testany                    cpl_sim_testany
#define PMPI_Testsome                   cpl_sim_testsome
#define PMPI_Wait                       cpl_sim_wait
#define PMPI_Waitall                    cpl_sim_waitall
#define PMPI_Wtime                      cpl_sim_wtime
/* Its prototype has no const. */
#define MPI_Comm_spawn_multiple  cpl_sim_comm_spawn_multiple
#define PMPI_Comm_spawn_multiple cpl_sim_pcomm_spawn_multiple

/* What this rank has sent and received so far through the shim and the stand-in's loop: messages as
 * they are simulated, not as a plan says. Messages inside collectives are not counted. */
struct cpl_sim_count {
    int64_t n_sends, n_recvs, bytes;
};
struct cpl_sim_count cpl_sim_counted(void);

/* For standin_lanes.c: a rank looks at memory that others write, so that a look at requests that
 * finds nothing must not wait for a message. */
void cpl_sim_looked(void);

/* For standin_wait.c: whether a request is of PMPI_Ineighbor_alltoallv; tests it, or without flag
 * waits for it. */
int cpl_sim_is_neighbor(MPI_Request request);
int cpl_sim_end_neighbor(MPI_Request *request, int *flag);

int PMPI_Topo_test(MPI_Comm comm, int *topology);
int PMPI_Dist_graph_neighbors(MPI_Comm comm, int n_in, int *sources, int *source_weights, int n_out,
                              int *destinations, int *weights);
int PMPI_Dist_graph_neighbors_count(MPI_Comm comm, int *n_in, int *n_out, int *weighted);
int PMPI_Dist_graph_create_adjacent(MPI_Comm comm, int n_in, const int *sources,
                                    const int *source_weights, int n_out, const int *destinations,
                                    const int *weights, MPI_Info info, int reorder,
                                    MPI_Comm *graph);
int PMPI_Allgather(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                   int recvcount, MPI_Datatype recvtype, MPI_Comm comm);
int PMPI_Comm_get_attr(MPI_Comm comm, int keyval, void *value, int *found);
int PMPI_Comm_set_attr(MPI_Comm comm, int keyval, void *value);
int PMPI_Comm_delete_attr(MPI_Comm comm, int keyval);
int PMPI_Comm_get_parent(MPI_Comm *parent);
int PMPI_Isend(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
               MPI_Request *request);
int PMPI_Irecv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
               MPI_Request *request);
int PMPI_Iallreduce(const void *sent, void *received, int count, MPI_Datatype type, MPI_Op op,
                    MPI_Comm comm, MPI_Request *request);
int PMPI_Ibarrier(MPI_Comm comm, MPI_Request *request);
int PMPI_Test(MPI_Request *request, int *flag, MPI_Status *status);
int PMPI_Testall(int n, MPI_Request *requests, int *flag, MPI_Status *statuses);
int PMPI_Testany(int n, MPI_Request *requests, int *index, int *flag, MPI_Status *status);
int PMPI_Testsome(int n, MPI_Request *requests, int *n_done, int *indices, MPI_Status *statuses);
int PMPI_Wait(MPI_Request *request, MPI_Status *status);
int PMPI_Waitall(int n, MPI_Request *requests, MPI_Status *statuses);
double PMPI_Wtime(void);

/* ---- prototypes of what mpi.h does not declare, from the shim's tables of calls ---- */

#define CPL_SIM_REQUEST(...) (__VA_ARGS__, MPI_Request *)
#define CPL_SIM_INFO(...)    (__VA_ARGS__, MPI_Info, MPI_Request *)
#define PROTOTYPES(name, nonblocking, persistent, parameters)                                      \
    int PMPI_##name parameters;                                                                    \
    int PMPI_##nonblocking CPL_SIM_REQUEST parameters;                                             \
    int PMPI_##persistent CPL_SIM_INFO parameters;
#define NEIGHBOR(name, nonblocking, persistent, parameters, arguments, ...)                        \
    PROTOTYPES(name, nonblocking, persistent, parameters)
#define ALLTOALL NEIGHBOR
#include "shim/tables/calls.def"
#define MOVES(name, nonblocking, parameters, arguments)                                            \
    int PMPI_##name parameters;                                                                    \
    int PMPI_##nonblocking CPL_SIM_REQUEST parameters;
#define GATHERS(name, nonblocking, parameters, arguments, ...)                                     \
    MOVES(name, nonblocking, parameters, arguments)
#define ENTERS(name, comm, parameters, arguments) int PMPI_##name parameters;
#define OPENS                                     ENTERS
#define JOINS                                     ENTERS
#define FREES(name, parameters, arguments)        int PMPI_##name parameters;
#define WAITS                                     ENTERS
#define INITIATES                                 FREES
#include "shim/tables/collectives.def"

#define CPL_SIM_SEND(name, ...)                                                                    \
    int PMPI_##name##_c(const void *buffer, MPI_Count count, MPI_Datatype type, int to, int tag,   \
                        MPI_Comm comm);
#define CPL_SIM_ISEND(name, ...)                                                                   \
    int PMPI_##name##_c(const void *buffer, MPI_Count count, MPI_Datatype type, int to, int tag,   \
                        MPI_Comm comm, MPI_Request *request);
#define SEND      CPL_SIM_SEND
#define ISEND     CPL_SIM_ISEND
#define SEND_INIT CPL_SIM_ISEND
#include "shim/tables/pt2pt.def"

int PMPI_Buffer_attach_c(void *buffer, MPI_Count size);
int PMPI_Buffer_detach_c(void *buffer, MPI_Count *size);
int PMPI_Recv_c(void *buffer, MPI_Count count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                MPI_Status *status);
int PMPI_Irecv_c(void *buffer, MPI_Count count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                 MPI_Request *request);
int PMPI_Recv_init_c(void *buffer, MPI_Count count, MPI_Datatype type, int from, int tag,
                     MPI_Comm comm, MPI_Request *request);
int PMPI_Mrecv_c(void *buffer, MPI_Count count, MPI_Datatype type, MPI_Message *message,
                 MPI_Status *status);
int PMPI_Imrecv_c(void *buffer, MPI_Count count, MPI_Datatype type, MPI_Message *message,
                  MPI_Request *request);
int PMPI_Sendrecv_c(const void *sent, MPI_Count n_sent, MPI_Datatype sent_type, int to,
                    int sent_tag, void *received, MPI_Count n_received, MPI_Datatype received_type,
                    int from, int tag, MPI_Comm comm, MPI_Status *status);
int PMPI_Sendrecv_replace_c(void *buffer, MPI_Count count, MPI_Datatype type, int to, int sent_tag,
                            int from, int tag, MPI_Comm comm, MPI_Status *status);
int PMPI_Isendrecv(const void *sent, int n_sent, MPI_Datatype sent_type, int to, int sent_tag,
                   void *received, int n_received, MPI_Datatype received_type, int from, int tag,
                   MPI_Comm comm, MPI_Request *request);
int PMPI_Isendrecv_c(const void *sent, MPI_Count n_sent, MPI_Datatype sent_type, int to,
                     int sent_tag, void *received, MPI_Count n_received, MPI_Datatype received_type,
                     int from, int tag, MPI_Comm comm, MPI_Request *request);
int PMPI_Isendrecv_replace(void *buffer, int count, MPI_Datatype type, int to, int sent_tag,
                           int from, int tag, MPI_Comm comm, MPI_Request *request);
int PMPI_Isendrecv_replace_c(void *buffer, MPI_Count count, MPI_Datatype type, int to, int sent_tag,
                             int from, int tag, MPI_Comm comm, MPI_Request *request);
int PMPI_Pack_c(const void *from, MPI_Count count, MPI_Datatype type, void *to, MPI_Count size,
                MPI_Count *position, MPI_Comm comm);
int PMPI_Pack_size_c(MPI_Count count, MPI_Datatype type, MPI_Comm comm, MPI_Count *size);
int PMPI_Unpack_c(const void *from, MPI_Count size, MPI_Count *position, void *to, MPI_Count count,
                  MPI_Datatype type, MPI_Comm comm);
int PMPI_Reduce_local_c(const void *in, void *inout, MPI_Count count, MPI_Datatype type, MPI_Op op);
int PMPI_Type_contiguous_c(MPI_Count count, MPI_Datatype old, MPI_Datatype *made);

#endif
