/*
 * The calls that make and end communicators, windows and files, and those that wait on windows and
 * files. The test uses everything that it makes: the ranks must see each other in the right order.
 */
#define _XOPEN_SOURCE 700 /* setenv, mkstemp */
#include "collectives.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_RANKS = 64, N_NUMBERS = 16 };

/* Notes who is in a communicator, ends it, and checks that it is gone. */
static void try_out(struct place *place, const char *name, MPI_Comm comm)
{
    int ranks[MAX_RANKS], size, mine = place->rank;
    if (comm == MPI_COMM_NULL) {
        place_note(place, name, "none", 4);
        return;
    }
    MPI_Comm_size(comm, &size);
    MPI_Allgather(&mine, 1, MPI_INT, ranks, 1, MPI_INT, comm);
    place_note(place, name, ranks, (size_t)size * sizeof *ranks);
    if (size % 2)
        MPI_Comm_free(&comm);
    else
        MPI_Comm_disconnect(&comm);
    if (comm != MPI_COMM_NULL)
        test_fail("%s: the communicator is not gone", name);
}

static void plain(struct place *place)
{
    MPI_Comm made;
    MPI_Group all, half;
    int n = place->n, range[1][3] = {{0, n - 1, 2}};
    MPI_Comm_dup(place->comm, &made);
    try_out(place, "Comm_dup", made);
    MPI_Comm_dup_with_info(place->comm, MPI_INFO_NULL, &made);
    try_out(place, "Comm_dup_with_info", made);
    MPI_Comm_split(place->comm, place->rank % 3, -place->rank, &made);
    try_out(place, "Comm_split", made);
    MPI_Comm_split(place->comm, place->rank ? 0 : MPI_UNDEFINED, 0, &made);
    try_out(place, "Comm_split without one", made);
    MPI_Comm_split_type(place->comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made);
    try_out(place, "Comm_split_type", made);
    MPI_Comm_group(place->comm, &all);
    MPI_Group_range_incl(all, 1, range, &half);
    MPI_Comm_create(place->comm, half, &made);
    try_out(place, "Comm_create", made);
    made = MPI_COMM_NULL;
    if (place->rank % 2 == 0)
        MPI_Comm_create_group(place->comm, half, 5, &made);
    try_out(place, "Comm_create_group", made);
    MPI_Group_free(&half);
    MPI_Group_free(&all);
}

/* The neighborhood calls with large counts on a ring. */
static void neighbors(struct place *place, MPI_Comm ring)
{
    int out[4] = {place->rank, place->rank + 100, place->rank + 200, place->rank + 300}, in[4];
    const MPI_Count counts[2] = {2, 2};
    const MPI_Aint displs[2] = {2, 0}, byte_displs[2] = {8, 0};
    const MPI_Datatype types[2] = {MPI_INT, MPI_INT};
    if (!HAS_MPI4)
        return;
    MPI_Neighbor_allgather_c(out, 2, MPI_INT, in, 2, MPI_INT, ring);
    place_note(place, "Neighbor_allgather_c", in, sizeof in);
    MPI_Neighbor_allgatherv_c(out, 2, MPI_INT, in, counts, displs, MPI_INT, ring);
    place_note(place, "Neighbor_allgatherv_c", in, sizeof in);
    MPI_Neighbor_alltoall_c(out, 2, MPI_INT, in, 2, MPI_INT, ring);
    place_note(place, "Neighbor_alltoall_c", in, sizeof in);
    MPI_Neighbor_alltoallv_c(out, counts, displs, MPI_INT, in, counts, displs, MPI_INT, ring);
    place_note(place, "Neighbor_alltoallv_c", in, sizeof in);
    MPI_Neighbor_alltoallw_c(out, counts, byte_displs, types, in, counts, byte_displs, types, ring);
    place_note(place, "Neighbor_alltoallw_c", in, sizeof in);
}

static void with_topology(struct place *place)
{
    MPI_Comm made, line;
    int n = place->n, dims[2] = {0, 0}, periods[2] = {1, 1}, keep[2] = {1, 0};
    int peers[2] = {(place->rank + 1) % n, (place->rank + n - 1) % n};
    int index[MAX_RANKS], edges[MAX_RANKS], degree = 1;
    MPI_Dims_create(n, 2, dims);
    MPI_Cart_create(place->comm, 2, dims, periods, 0, &made);
    MPI_Cart_sub(made, keep, &line);
    try_out(place, "Cart_sub", line);
    try_out(place, "Cart_create", made);
    for (int j = 0; j < n; j++) {
        index[j] = j + 1;
        edges[j] = n - 1 - j;
    }
    MPI_Graph_create(place->comm, n, index, edges, 0, &made);
    try_out(place, "Graph_create", made);
    MPI_Dist_graph_create(place->comm, 1, &place->rank, &degree, peers, MPI_UNWEIGHTED,
                          MPI_INFO_NULL, 0, &made);
    try_out(place, "Dist_graph_create", made);
    MPI_Dist_graph_create_adjacent(place->comm, 2, peers, MPI_UNWEIGHTED, 2, peers, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &made);
    neighbors(place, made);
    try_out(place, "Dist_graph_create_adjacent", made);
}

static void between_halves(struct place *place)
{
    MPI_Comm half, inter, all;
    int low = place->rank < (place->n + 1) / 2;
    if (place->n < 2)
        return;
    MPI_Comm_split(place->comm, low, 0, &half);
    MPI_Intercomm_create(half, 0, place->comm, low ? (place->n + 1) / 2 : 0, 9, &inter);
    MPI_Intercomm_merge(inter, low, &all);
    try_out(place, "Intercomm_merge", all);
    MPI_Comm_free(&inter);
    try_out(place, "Intercomm_create", half);
}

/* Every rank puts numbers into the next one's memory, in epochs of each kind. */
static void put(struct place *place, const char *name, MPI_Win win, int *memory)
{
    int next = (place->rank + 1) % place->n, before = (place->rank + place->n - 1) % place->n;
    int mine[N_NUMBERS];
    MPI_Group all, to, from;
    for (int k = 0; k < N_NUMBERS; k++)
        mine[k] = 100 * place->rank + k;
    MPI_Win_fence(0, win);
    MPI_Put(mine, 4, MPI_INT, next, 0, 4, MPI_INT, win);
    MPI_Win_fence(0, win);
    MPI_Win_get_group(win, &all);
    MPI_Group_incl(all, 1, &next, &to);
    MPI_Group_incl(all, 1, &before, &from);
    MPI_Win_post(from, 0, win);
    MPI_Win_start(to, 0, win);
    MPI_Put(mine + 4, 4, MPI_INT, next, 4, 4, MPI_INT, win);
    MPI_Win_complete(win);
    MPI_Win_wait(win);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, win);
    MPI_Put(mine + 8, 4, MPI_INT, next, 8, 4, MPI_INT, win);
    MPI_Win_flush_local(next, win);
    MPI_Win_flush(next, win);
    MPI_Win_unlock(next, win);
    // MPICH 4 may hang, also without Carpool, when one rank locks all while another locks one
    // rank alone
    MPI_Barrier(place->comm);
    MPI_Win_lock_all(0, win);
    MPI_Put(mine + 12, 4, MPI_INT, next, 12, 4, MPI_INT, win);
    MPI_Win_flush_local_all(win);
    MPI_Win_flush_all(win);
    MPI_Win_unlock_all(win);
    MPI_Win_fence(0, win);
    for (int k = 0; k < N_NUMBERS; k++)
        if (memory[k] != 100 * before + k)
            test_fail("%s: number %d is %d", name, k, memory[k]);
    place_note(place, name, memory, sizeof mine);
    MPI_Group_free(&from);
    MPI_Group_free(&to);
    MPI_Group_free(&all);
    MPI_Win_free(&win);
}

static void windows(struct place *place)
{
    int memory[N_NUMBERS] = {0}, *given;
    const MPI_Aint bytes = sizeof memory;
    MPI_Comm node;
    MPI_Win win;
    MPI_Win_create(memory, bytes, sizeof(int), MPI_INFO_NULL, place->comm, &win);
    put(place, "Win_create", win, memory);
    if (HAS_MPI4) {
        MPI_Win_create_c(memory, bytes, sizeof(int), MPI_INFO_NULL, place->comm, &win);
        put(place, "Win_create_c", win, memory);
    }
    MPI_Win_allocate(bytes, sizeof(int), MPI_INFO_NULL, place->comm, &given, &win);
    put(place, "Win_allocate", win, given);
    if (HAS_MPI4) {
        MPI_Win_allocate_c(bytes, sizeof(int), MPI_INFO_NULL, place->comm, &given, &win);
        put(place, "Win_allocate_c", win, given);
    }
    MPI_Win_create_dynamic(MPI_INFO_NULL, place->comm, &win);
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
    MPI_Comm_split_type(place->comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Win_allocate_shared(bytes, sizeof(int), MPI_INFO_NULL, node, &given, &win);
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
    if (HAS_MPI4) {
        MPI_Win_allocate_shared_c(bytes, sizeof(int), MPI_INFO_NULL, node, &given, &win);
        MPI_Win_fence(0, win);
        MPI_Win_free(&win);
    }
    MPI_Comm_free(&node);
}

/* Every rank writes its numbers and reads those of the rank before. */
static void use_file(struct place *place, MPI_File file)
{
    int out[N_NUMBERS], in[N_NUMBERS], n = N_NUMBERS;
    MPI_Offset bytes = sizeof out, at = place->rank * bytes;
    MPI_Offset before = (place->rank + place->n - 1) % place->n * bytes;
    MPI_Status status;
    for (int k = 0; k < n; k++)
        out[k] = 1000 * place->rank + k;
    MPI_File_set_size(file, 0);
    MPI_File_preallocate(file, place->n * bytes);
    MPI_File_set_atomicity(file, 1);
    MPI_File_write_at_all(file, at, out, n, MPI_INT, &status);
    MPI_File_sync(file);
    MPI_File_read_at_all(file, before, in, n, MPI_INT, &status);
    place_note(place, "File_read_at_all", in, sizeof in);
    MPI_File_write_at_all_begin(file, before, out, n, MPI_INT);
    MPI_File_write_at_all_end(file, out, &status);
    MPI_File_read_at_all_begin(file, at, in, n, MPI_INT);
    MPI_File_read_at_all_end(file, in, &status);
    place_note(place, "File_read_at_all_begin", in, sizeof in);
    MPI_File_set_view(file, at, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    MPI_File_write_all(file, out, n, MPI_INT, &status);
    MPI_File_set_view(file, before, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    MPI_File_read_all(file, in, n, MPI_INT, &status);
    place_note(place, "File_read_all", in, sizeof in);
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    MPI_File_write_ordered(file, out, n, MPI_INT, &status);
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    MPI_File_read_ordered(file, in, n, MPI_INT, &status);
    if (memcmp(in, out, sizeof in) != 0)
        test_fail("File_read_ordered on %s: wrong numbers", place->name);
}

static void files(struct place *place)
{
    char name[] = "/tmp/carpool-test-XXXXXX";
    MPI_File file;
    if (place->rank == 0) {
        int fd = mkstemp(name);
        if (fd >= 0)
            close(fd);
    }
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, place->comm);
    if (MPI_File_open(place->comm, name, MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                      &file) != MPI_SUCCESS) {
        test_fail("the file cannot be opened");
        return;
    }
    use_file(place, file);
    MPI_File_close(&file);
}

void collectives_make(struct place *place)
{
    plain(place);
    with_topology(place);
    between_halves(place);
    windows(place);
    files(place);
}
