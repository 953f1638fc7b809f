/* MPI_Probe for the distributed array in a simulation. SMPI's looks again and again, each look an
 * event to simulate, and a wait ends with a look: a rank that waits long is slow to simulate, and
 * waits too long. Here a message is received where it is probed, into memory of this file's, and
 * MPI_Recv takes it from there: what is probed must be received, from the same rank with the same
 * tag, and before anything of that tag is received without. Contiguous
 * types only. */
#include "array/work.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Of a rank, for all messages that it has probed and not yet received. Below what SMPI treats as a
 * small message (simulate.sh); pages are taken when messages come. */
#define AREA_BYTES 900000000

#define PROBE_NS 100.0 /* charged for finding a message that is there */

struct probed {
    int from, tag;
    MPI_Comm comm;
    MPI_Status status;
    char *message;
    int bytes;
    bool is_taken;
};

/* The program is loaded once for each rank: these are a rank's. */
static char *area;
static int used_bytes;
static struct probed *probed;
static int n_probed, most_probed, n_taken;

static struct probed *add(void)
{
    if (n_probed == most_probed) {
        int most = most_probed ? 2 * most_probed : 64;
        struct probed *larger = realloc(probed, (size_t)most * sizeof *probed);
        if (!larger)
            return NULL;
        probed = larger;
        most_probed = most;
    }
    return &probed[n_probed++];
}

int MPI_Probe(int from, int tag, MPI_Comm comm, MPI_Status *status)
{
    if (!area) {
        void *memory = mmap(NULL, AREA_BYTES, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED)
            return MPI_ERR_NO_MEM;
        area = memory;
    }
    struct probed *p = add();
    if (!p)
        return MPI_ERR_NO_MEM;
    *p = (struct probed){.from = from, .tag = tag, .comm = comm, .message = area + used_bytes};
    int result =
        PMPI_Recv(p->message, AREA_BYTES - used_bytes, MPI_BYTE, from, tag, comm, &p->status);
    if (result == MPI_SUCCESS)
        result = PMPI_Get_count(&p->status, MPI_BYTE, &p->bytes);
    used_bytes += p->bytes;
    cpl_array_work(PROBE_NS);
    *status = p->status;
    return result;
}

/* The first message of those that were probed and not taken; NULL: none. */
static struct probed *find(int from, int tag, MPI_Comm comm)
{
    for (int k = n_taken; k < n_probed; k++)
        if (!probed[k].is_taken && probed[k].from == from && probed[k].tag == tag &&
            probed[k].comm == comm)
            return &probed[k];
    return NULL;
}

int MPI_Recv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
             MPI_Status *status)
{
    struct probed *p = find(from, tag, comm);
    if (!p)
        return PMPI_Recv(buffer, count, type, from, tag, comm, status);
    int size = 0;
    PMPI_Type_size(type, &size);
    long long room = (long long)count * size;
    bool fits = p->bytes <= room;
    memcpy(buffer, p->message, (size_t)(fits ? p->bytes : room));
    if (status != MPI_STATUS_IGNORE)
        *status = p->status;
    p->is_taken = true;
    while (n_taken < n_probed && probed[n_taken].is_taken)
        n_taken++;
    if (n_taken == n_probed)
        n_taken = n_probed = used_bytes = 0;
    return fits ? MPI_SUCCESS : MPI_ERR_TRUNCATE;
}
