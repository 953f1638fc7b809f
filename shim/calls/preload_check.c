/* Whether all ranks of the job run with the library (start.h). */
#include "shim/calls/start.h"

#include "shim/base/log.h"

#include <mpi.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TELL_AFTER 20.0 /* seconds */
#define END_AFTER  180.0

extern char **environ;

/* What /proc says of the ranks on this host. */
struct local {
    int n_ranks; /* of the job */
    char *name;  /* of this library's file, behind a slash, as /proc has it */
    char *has;   /* by rank: 0: not seen, 1: lacks the library, 2: has it */
};

/* Reads a file of /proc; two zero bytes end it, and the caller frees it. NULL: that cannot be done.
 */
static char *read_proc(long pid, const char *name)
{
    char path[64], *text = NULL, *larger;
    snprintf(path, sizeof path, "/proc/%ld/%s", pid, name);
    int in = open(path, O_RDONLY | O_CLOEXEC);
    size_t used = 0, size = 8192;
    ssize_t n = in < 0 ? 0 : 1;
    while (n > 0 && (larger = realloc(text, size))) {
        text = larger;
        while (used + 2 < size && (n = read(in, text + used, size - used - 2)) > 0)
            used += (size_t)n;
        size *= 2;
    }
    if (in >= 0)
        close(in);
    if (used > 0) {
        memset(text + used, 0, 2);
        return text;
    }
    free(text);
    return NULL;
}

/* A process's rank by its environment, -1: it has none; *named: the library is to be preloaded. */
static long find_rank(const struct local *local, long pid, bool *named)
{
    char *environment = read_proc(pid, "environ");
    long rank = -1;
    *named = false;
    for (const char *line = environment; line && *line; line += strlen(line) + 1)
        if (strncmp(line, "PMI_RANK=", strlen("PMI_RANK=")) == 0)
            rank = strtol(line + strlen("PMI_RANK="), NULL, 10);
        else if (strncmp(line, "LD_PRELOAD=", strlen("LD_PRELOAD=")) == 0)
            *named = strstr(line, local->name + 1);
    free(environment);
    return rank;
}

/* A process that has MPI, and so is no shell or wrapper of a rank, has the libraries that were
 * preloaded, too. Returns whether its rank has the library. */
static bool look_at(struct local *local, long pid)
{
    bool named;
    long r = find_rank(local, pid, &named);
    if (r < 0 || r >= local->n_ranks)
        return false;
    if (local->has[r] == 2)
        return true;
    char *maps = named ? NULL : read_proc(pid, "maps"); /* takes longer */
    if (named || (maps && (strstr(maps, local->name) || strstr(maps, "/libcarpool"))))
        local->has[r] = 2;
    else if (maps && strstr(maps, "/libmpi"))
        local->has[r] = 1;
    free(maps);
    return local->has[r] == 2;
}

/* The processes that one has started, directly or over others. */
static void look_below(struct local *local, long pid)
{
    char name[64];
    snprintf(name, sizeof name, "task/%ld/children", pid);
    char *children = read_proc(pid, name), *at = children, *end;
    for (long child = at ? strtol(at, &end, 10) : 0; child > 0; child = strtol(at, &end, 10)) {
        at = end;
        if (!look_at(local, child))
            look_below(local, child);
    }
    free(children);
}

/* The proxy that has started this process, over others perhaps; 0: there is none. */
static long find_proxy(void)
{
    for (long pid = getppid(); pid > 1;) {
        char *stat = read_proc(pid, "stat"), *end = stat ? strrchr(stat, ')') : NULL;
        bool found = stat && strstr(stat, "(hydra_pmi_prox");
        long parent = 0;
        if (!end || sscanf(end, ") %*c %ld", &parent) != 1)
            parent = 0;
        free(stat);
        if (found)
            return pid;
        pid = parent;
    }
    return 0;
}

/* Whether a rank on this host is seen to lack the library. */
static bool sees_lacking(struct local *local)
{
    static const char anything_here;
    Dl_info self;
    bool known = dladdr(&anything_here, &self) && self.dli_fname, lacking = false;
    char *path = known ? realpath(self.dli_fname, NULL) : NULL;
    long proxy = local->has && path ? find_proxy() : 0;
    if (proxy) {
        local->name = strrchr(path, '/');
        look_below(local, proxy);
    }
    for (int r = 0; proxy && r < local->n_ranks; r++)
        lacking |= local->has[r] == 1;
    free(path);
    return lacking;
}

void cpl_preload_await(MPI_Request *request)
{
    const double start = PMPI_Wtime();
    bool told = false;
    for (int done = 0; !done;) {
        PMPI_Test(request, &done, MPI_STATUS_IGNORE);
        double waited = PMPI_Wtime() - start;
        if (!done && !told && waited > TELL_AFTER) {
            cpl_log(CPL_LOG_ERROR, "shim",
                    "not all ranks answer: do some run without the library? Set LD_PRELOAD for "
                    "every program of the launcher's line, or use mpiexec -genv; else the program "
                    "ends in %.0f s",
                    END_AFTER - TELL_AFTER);
            told = true;
        }
        if (!done && waited > END_AFTER)
            PMPI_Abort(MPI_COMM_WORLD, 1);
        if (!done)
            sched_yield();
    }
}

bool cpl_preload_lacks(int rank, int n_ranks, bool *tells)
{
    struct local local = {.n_ranks = n_ranks};
    if (n_ranks > 1)
        local.has = calloc((size_t)n_ranks, 1);
    bool lacking = sees_lacking(&local);
    int first = 0;
    while (lacking && first < rank && local.has[first] != 2)
        first++;
    *tells = first == rank;
    free(local.has);
    return lacking;
}
