/* carpool doctor: what there is here for a run with the library, and what to do about what is
 * missing; a line each. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "cli/command.h"
#include "cli/host/beside.h"
#include "cli/host/mpi.h"
#include "shim/base/settings.h"
#include "shim/base/shared_memory.h"

#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#define MOST_RANKS 65536
#define LANE_BYTES (INT64_C(1) << 20) /* for each rank: lanes take less in most programs */

extern char **environ;

static bool hindered; /* something is missing without which the library can do nothing */

static void usage(FILE *out)
{
    fputs("usage: [mpiexec -n RANKS] carpool doctor [OPTION]\n\n"
          "Tells which launcher and which MPI a run would use, whether lanes can be made (memory\n"
          "that the ranks of a node share), and whether ranks outnumber cores; below a line what\n"
          "to do about it. Under mpiexec the first rank of each node tells.\n\n"
          "  --ranks=N           ranks that will share this node (-n; default: as mpiexec says)\n\n"
          "The exit status is 0, 1 when the library could do nothing here, 2 for bad usage.\n",
          out);
}

static void tell(const char *what, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void tell(const char *what, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    printf("%-9s ", what);
    vprintf(format, args);
    putchar('\n');
    va_end(args);
}

static void advise(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void advise(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    printf("          -> ");
    vprintf(format, args);
    putchar('\n');
    va_end(args);
}

static void tell_carpool(void)
{
    char path[PATH_MAX];
    bool found = cpl_beside_library(path);
    tell("Carpool", "%s, %s%s", PACKAGE_VERSION, path, found ? "" : " cannot be read");
    if (!found) {
        hindered = true;
        advise("install the library, or start this command from its build");
    } else if (!cpl_beside_can_preload(path)) {
        hindered = true;
        advise("it cannot be preloaded, since its path has a space or a colon: move all of "
               "Carpool");
    }
}

static void tell_launcher(struct cpl_mpi_launcher *launcher)
{
    bool in_path = cpl_mpi_find_launcher(launcher->path);
    if (!in_path && !cpl_mpi_find_beside(launcher->path)) {
        hindered = true;
        launcher->path[0] = '\0';
        tell("launcher", "no mpiexec and no srun in PATH");
        advise("pip install mpich, or apt-get install mpich; or load the module of your MPI");
        return;
    }
    cpl_mpi_ask_launcher(launcher);
    tell("launcher", "%s, %s", launcher->path,
         launcher->version[0] ? launcher->version : "which does not tell its version");
    if (!in_path)
        advise("it is not in PATH: activate the venv, or call mpiexec and carpool by their paths");
    if (launcher->family == CPL_MPI_OPENMPI) {
        hindered = true;
        advise("Carpool does nothing in programs of Open MPI: put MPICH or Intel MPI before it in "
               "PATH,");
        advise("or call MPICH's commands by name: mpicc.mpich, mpiexec.hydra (Debian)");
    }
}

static void tell_mpi(const struct cpl_mpi_launcher *launcher)
{
    struct cpl_mpi_library library = {.path = ""};
    char why[256];
    if (!launcher->path[0] || !cpl_mpi_find_library(launcher->path, library.path))
        library.path[0] = '\0';
    if (!cpl_mpi_ask_library(&library, why)) {
        hindered = true;
        tell("MPI", "no library of MPICH or a relative: %s", why);
        advise("pip install mpich, or set LD_LIBRARY_PATH to the folder of libmpi.so.12");
        return;
    }
    tell("MPI", "%s%s%s, %s", library.version, library.device[0] ? ", device " : "", library.device,
         library.path);
    if (library.family != CPL_MPI_MPICH) {
        hindered = true;
        advise("Carpool serves programs of MPICH 3.4 or later and Intel MPI: pip install mpich");
    }
}

static void tell_room(void)
{
    struct statvfs room;
    if (statvfs("/dev/shm", &room) == 0)
        tell("lanes", "can be made; /dev/shm has %.0f MB left",
             (double)room.f_bavail * (double)room.f_frsize / 1e6);
    else
        tell("lanes", "can be made");
}

static void ignore(void *context, const char *text)
{
    (void)context;
    (void)text;
}

static bool lanes_are_off(void)
{
    struct cpl_settings settings;
    char value[CPL_SETTINGS_TEXT] = "";
    cpl_settings_read(&settings, environ, ignore, NULL);
    for (size_t i = 0; i < cpl_settings_count(); i++)
        if (strcmp(cpl_settings_info(i).variable, "CARPOOL_LANES") == 0)
            cpl_settings_value(&settings, i, value, sizeof value);
    return strcmp(value, "off") == 0;
}

static void tell_lanes(long ranks)
{
    struct cpl_shared_name name;
    char why[CPL_SHARED_WHY];
    int64_t bytes = (ranks > 0 ? ranks : cpl_shared_processors()) * LANE_BYTES;
    if (lanes_are_off()) {
        tell("lanes", "are switched off by CARPOOL_LANES");
        advise("unset CARPOOL_LANES, so that ranks of a node need no MPI between them");
        return;
    }
    void *memory = cpl_shared_make(bytes, &name, why);
    if (memory) {
        cpl_shared_unname(&name);
        cpl_shared_free(memory, bytes);
        tell_room();
        return;
    }
    tell("lanes", "cannot be made: %s", why);
    advise(
        "ranks of a node then use MPI between them. They want %.0f MB, half of /dev/shm at most:",
        (double)bytes / 1e6);
    advise("free some of it, or start the container with more (docker run --shm-size=1g)");
}

/* Processors that this process may use: all of the node's under a launcher, which may bind each
 * rank to some. */
static long cores_here(bool launched)
{
    cpu_set_t mine;
    long cores = cpl_shared_processors();
    if (!launched && sched_getaffinity(0, sizeof mine, &mine) == 0 && CPU_COUNT(&mine) < cores)
        cores = CPU_COUNT(&mine);
    return cores;
}

static void tell_cores(long ranks, bool launched)
{
    char path[PATH_MAX];
    long cores = cores_here(launched);
    if (ranks <= 0) {
        tell("cores", "%ld; for more ranks than that on this node use carpool run --yield", cores);
        return;
    }
    bool yields = dlsym(RTLD_DEFAULT, "cpl_yield_waits"); /* bench/yield.c, however named */
    tell("cores", "%ld, for %ld ranks on this node%s", cores, ranks,
         yields ? ", which give up the processor when they wait" : "");
    if (ranks <= cores || yields)
        return;
    advise("ranks outnumber cores, and wait by spinning: use carpool run --yield");
    if (!cpl_beside_yield(path))
        advise("which wants %s: install all of Carpool", path);
}

/* Ranks of this node by the launcher's variables, hydra's or Slurm's ("4(x2),3"); 0: not known. */
static long ranks_here(void)
{
    static const char *const variables[] = {"MPI_LOCALNRANKS", "SLURM_STEP_TASKS_PER_NODE"};
    for (size_t k = 0; k < 2; k++) {
        const char *text = getenv(variables[k]);
        long ranks = text ? strtol(text, NULL, 10) : 0;
        if (ranks > 0)
            return ranks;
    }
    return 0;
}

static bool is_first_here(void)
{
    const char *rank = getenv("MPI_LOCALRANKID");
    if (!rank)
        rank = getenv("SLURM_LOCALID");
    return !rank || strcmp(rank, "0") == 0;
}

static bool read_ranks(const char *text, long *ranks)
{
    char *end;
    errno = 0;
    long n = strtol(text, &end, 10);
    if (errno == 0 && end != text && !*end && n >= 1 && n <= MOST_RANKS) {
        *ranks = n;
        return true;
    }
    fprintf(stderr, "carpool doctor: --ranks takes a number from 1 to %d, not '%s'\n", MOST_RANKS,
            text);
    return false;
}

static int examine(long ranks, bool launched)
{
    struct cpl_mpi_launcher launcher;
    tell_carpool();
    tell_launcher(&launcher);
    tell_mpi(&launcher);
    tell_lanes(ranks);
    tell_cores(ranks, launched);
    return hindered || fflush(stdout) ? CPL_EXIT_FAILED : 0;
}

int cpl_command_doctor(int argc, char **argv)
{
    static const struct option known[] = {{"ranks", required_argument, NULL, 'n'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    long launched = ranks_here(), ranks = launched;
    int option;
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":n:h", known, NULL)) != -1) {
        if (option == 'h') {
            usage(stdout);
            return 0;
        }
        if (option != 'n')
            return cpl_command_wrong_option(option, argv, known);
        if (!read_ranks(optarg, &ranks))
            return CPL_EXIT_USAGE;
    }
    if (optind < argc) {
        fprintf(stderr, "carpool doctor: takes no '%s'; `carpool doctor --help` tells more\n",
                argv[optind]);
        return CPL_EXIT_USAGE;
    }
    return is_first_here() ? examine(ranks, launched > 0) : 0;
}
