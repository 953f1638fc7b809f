/* Whether all ranks run with the library (company.h). */
#include "shim/calls/company.h"

#include "shim/base/environment.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE 2048  /* bytes of an answer */
#define TAG  31007 /* used in MPI_Init, before the program has sent any message */

extern char **environ;

static struct {
    int fd; /* connection to the process manager; -1: there is none */
    char table[256];
} manager = {.fd = -1};

/* Sends a request and reads the answer, one line each. */
static bool ask(const char *request, char answer[LINE])
{
    size_t n = strlen(request);
    if (write(manager.fd, request, n) != (ssize_t)n)
        return false;
    for (n = 0; n + 1 < LINE; n++) {
        if (read(manager.fd, answer + n, 1) != 1)
            return false;
        if (answer[n] == '\n')
            break;
    }
    answer[n] = '\0';
    return true;
}

void cpl_company_announce(void)
{
    const char *fd = cpl_variable(environ, "PMI_FD"), *rank = cpl_variable(environ, "PMI_RANK");
    char request[LINE], answer[LINE];
    if (!fd || !rank)
        return;
    manager.fd = (int)strtol(fd, NULL, 10);
    bool known = ask("cmd=init pmi_version=1 pmi_subversion=1\n", answer) &&
                 strstr(answer, " rc=0") && ask("cmd=get_my_kvsname\n", answer);
    const char *name = known ? strstr(answer, "kvsname=") : NULL;
    if (!name || sscanf(name, "kvsname=%255s", manager.table) != 1) {
        manager.fd = -1;
        return;
    }
    snprintf(request, sizeof request, "cmd=put kvsname=%s key=carpool-%ld value=1\n", manager.table,
             strtol(rank, NULL, 10));
    if (!ask(request, answer) || !strstr(answer, "rc=0"))
        manager.fd = -1;
}

static bool has_library(int rank)
{
    char request[LINE], answer[LINE];
    snprintf(request, sizeof request, "cmd=get kvsname=%s key=carpool-%d\n", manager.table, rank);
    return ask(request, answer) && strstr(answer, "rc=0");
}

/* A binomial tree: rank r's parent is r without its lowest bit, its children are r with one lower
 * bit. Messages go only to ranks that have the library, and only these are waited for. */
bool cpl_company_is_complete(int rank, int n_ranks)
{
    int all = 1, theirs;
    if (manager.fd < 0 || n_ranks == 1 || !has_library(rank)) /* no keys were passed on */
        return true;
    unsigned present = 0; /* children, by bit */
    int n_bits = 0;
    while (n_bits < 31 && !(rank & 1 << n_bits) && rank + (1 << n_bits) < n_ranks)
        n_bits++;
    for (int bit = 0; bit < n_bits; bit++) {
        int child = rank + (1 << bit);
        present |= has_library(child) ? 1U << bit : 0;
        theirs = 0;
        if (present & 1U << bit)
            PMPI_Recv(&theirs, 1, MPI_INT, child, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        all &= theirs;
    }
    int parent = rank & (rank - 1);
    if (rank > 0 && !has_library(parent)) {
        all = 0;
    } else if (rank > 0) {
        PMPI_Send(&all, 1, MPI_INT, parent, TAG, MPI_COMM_WORLD);
        PMPI_Recv(&all, 1, MPI_INT, parent, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    for (int bit = 0; bit < n_bits; bit++)
        if (present & 1U << bit)
            PMPI_Send(&all, 1, MPI_INT, rank + (1 << bit), TAG, MPI_COMM_WORLD);
    return all;
}

bool cpl_company_speaks(int rank)
{
    int first = 0;
    while (first < rank && !has_library(first))
        first++;
    return first == rank;
}
