/* Which MPI there is (mpi.h). */
#include "cli/host/mpi.h"
#include "cli/host/beside.h"
#include "cli/host/program.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ANSWER   16384 /* bytes that are read of an answer; MPICH tells its compilers' flags, too */
#define PATIENCE 10    /* seconds */

/* By these names the loader knows the libraries that serve programs of MPICH's ABI: the common one
 * of MPICH's relatives, and Debian's. */
static const char *const library_names[] = {"libmpi.so.12", "libmpich.so.12"};

#define N_NAMES (sizeof library_names / sizeof library_names[0])

/* --- finding */

/* Puts the folder of a path into folder. */
static bool folder_of(const char *path, char folder[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    return slash && snprintf(folder, PATH_MAX, "%.*s", (int)(slash - path), path) < PATH_MAX;
}

static bool is_command(const char *folder, const char *name, char path[PATH_MAX])
{
    return snprintf(path, PATH_MAX, "%s/%s", folder, name) < PATH_MAX && access(path, X_OK) == 0;
}

static bool find_mpiexec(const char *folder, char path[PATH_MAX])
{
    return is_command(folder, "mpiexec.hydra", path) || is_command(folder, "mpiexec", path);
}

/* Under hydra the parent of a rank is its proxy, which lies beside mpiexec. */
static bool find_starter(char path[PATH_MAX])
{
    char link[64], proxy[PATH_MAX], folder[PATH_MAX];
    snprintf(link, sizeof link, "/proc/%ld/exe", (long)getppid());
    ssize_t length = readlink(link, proxy, sizeof proxy - 1);
    if (length <= 0)
        return false;
    proxy[length] = '\0';
    return strstr(proxy, "/hydra_pmi_proxy") && folder_of(proxy, folder) &&
           find_mpiexec(folder, path);
}

bool cpl_mpi_find_launcher(char path[PATH_MAX])
{
    const char *at = getenv("PATH");
    if (find_starter(path))
        return true;
    for (at = at ? at : ""; *at; at += *at == ':') {
        char folder[PATH_MAX];
        size_t length = strcspn(at, ":");
        snprintf(folder, sizeof folder, "%.*s", (int)length, at);
        if (length > 0 && length < sizeof folder && find_mpiexec(folder, path))
            return true;
        at += length;
    }
    return cpl_program_find("srun", path);
}

bool cpl_mpi_find_beside(char path[PATH_MAX])
{
    char self[PATH_MAX], folder[PATH_MAX];
    return cpl_beside_self(self) && folder_of(self, folder) && find_mpiexec(folder, path);
}

/* The first file that a pattern finds. */
static bool find_file(const char *pattern, char path[PATH_MAX])
{
    glob_t found;
    bool any = glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc > 0 &&
               realpath(found.gl_pathv[0], path) && access(path, R_OK) == 0;
    globfree(&found);
    return any;
}

/* Below the prefix that a folder of commands belongs to. */
static bool find_below(const char *folder, char path[PATH_MAX])
{
    /* as installed; Debian's; Intel's before 2021.11 */
    static const char *const places[] = {"lib", "lib64", "lib/*-linux-gnu", "lib/release"};
    char pattern[2 * PATH_MAX];
    for (size_t p = 0; p < sizeof places / sizeof places[0]; p++)
        for (size_t k = 0; k < N_NAMES; k++) {
            snprintf(pattern, sizeof pattern, "%s/../%s/%s", folder, places[p], library_names[k]);
            if (find_file(pattern, path))
                return true;
        }
    return false;
}

bool cpl_mpi_find_library(const char *launcher, char path[PATH_MAX])
{
    char folder[PATH_MAX], real[PATH_MAX];
    if (folder_of(launcher, folder) && find_below(folder, path))
        return true;
    return realpath(launcher, real) && folder_of(real, folder) && find_below(folder, path);
}

/* --- asking */

/* What a child writes to its standard output, at most ANSWER - 1 bytes. Returns how it ended. */
static int hear(void (*talk)(const char *about), const char *about, char answer[ANSWER])
{
    int ends[2], status = -1;
    size_t used = 0;
    ssize_t n = 1;
    answer[0] = '\0';
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(PATIENCE);
        if (dup2(ends[1], STDOUT_FILENO) >= 0)
            talk(about);
        _exit(127);
    }
    close(ends[1]);
    while (child > 0 && n > 0 && used < ANSWER - 1) {
        n = read(ends[0], answer + used, ANSWER - 1 - used);
        used += n > 0 ? (size_t)n : 0;
    }
    answer[used] = '\0';
    close(ends[0]);
    if (child > 0)
        waitpid(child, &status, 0);
    return status;
}

static void ask_version(const char *launcher)
{
    int nothing = open("/dev/null", O_RDWR);
    if (nothing >= 0 && dup2(nothing, STDIN_FILENO) >= 0 && dup2(nothing, STDERR_FILENO) >= 0)
        execl(launcher, launcher, "--version", (char *)NULL);
}

/* Of a text that has `Label:   words` or `Label words`: the words up to an end of line or `stop`.
 * Returns false when there is no label. */
static bool take(const char *text, const char *label, const char *stop, char *words, size_t size)
{
    const char *at = strstr(text, label);
    if (!at)
        return false;
    at += strlen(label);
    at += strspn(at, " \t:");
    size_t length = strcspn(at, stop);
    snprintf(words, size, "%.*s", (int)(length < size ? length : size - 1), at);
    return true;
}

void cpl_mpi_ask_launcher(struct cpl_mpi_launcher *launcher)
{
    char answer[ANSWER], number[96];
    hear(ask_version, launcher->path, answer);
    launcher->version[0] = '\0';
    launcher->family = CPL_MPI_UNKNOWN;
    if (strstr(answer, "HYDRA") && take(answer, "Version:", "\n", number, sizeof number)) {
        launcher->family = CPL_MPI_MPICH;
        snprintf(launcher->version, sizeof launcher->version, "hydra of MPICH %s", number);
    } else if (take(answer, "Intel(R) MPI Library", "\n", number, sizeof number)) {
        launcher->family = CPL_MPI_MPICH;
        if (!take(answer, "Version ", " \n", number, sizeof number))
            snprintf(number, sizeof number, "of unknown version");
        snprintf(launcher->version, sizeof launcher->version, "hydra of Intel MPI %s", number);
    } else if (strstr(answer, "Open MPI") || strstr(answer, "OpenRTE") || strstr(answer, "PRRTE")) {
        launcher->family = CPL_MPI_OPENMPI;
        snprintf(launcher->version, sizeof launcher->version, "Open MPI's");
    } else if (take(answer, "slurm ", "\n", number, sizeof number)) {
        launcher->family = CPL_MPI_SLURM;
        snprintf(launcher->version, sizeof launcher->version, "Slurm %s", number);
    }
}

/* In the child: the library's path, a line; then what it says of itself, or why it does not. */
static void ask_loaded(const char *path)
{
    const char *name = path;
    char text[ANSWER] = "";
    int length = 0;
    Dl_info info;
    void *library = NULL;
    for (size_t k = 0; !library && k < (*path ? 1 : N_NAMES); k++) {
        name = *path ? path : library_names[k];
        library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
    if (!library) {
        printf("?%s\n", dlerror());
    } else {
        int (*version)(char *, int *);
        *(void **)&version = dlsym(library, "MPI_Get_library_version");
        if (version)
            version(text, &length);
        bool known = version && dladdr(*(void **)&version, &info) && info.dli_fname;
        printf("%s\n%s\n", known ? info.dli_fname : name, text);
    }
    fflush(stdout);
}

static void name_version(struct cpl_mpi_library *library, const char *text)
{
    char number[96] = "";
    library->family = CPL_MPI_MPICH;
    library->device[0] = '\0';
    if (strstr(text, "Open MPI")) {
        library->family = CPL_MPI_OPENMPI;
        snprintf(library->version, sizeof library->version, "Open MPI");
    } else if (take(text, "MPICH Version:", "\n", number, sizeof number)) {
        snprintf(library->version, sizeof library->version, "MPICH %s", number);
        take(text, "MPICH Device:", "\n", library->device, sizeof library->device);
    } else if (take(text, "Intel(R) MPI Library ", " \n", number, sizeof number)) {
        snprintf(library->version, sizeof library->version, "Intel MPI %s", number);
    } else {
        size_t line = strcspn(text, "\n");
        library->family = CPL_MPI_UNKNOWN;
        snprintf(library->version, sizeof library->version, "%.*s", (int)(line < 100 ? line : 100),
                 text);
    }
}

bool cpl_mpi_ask_library(struct cpl_mpi_library *library, char why[256])
{
    char answer[ANSWER];
    int status = hear(ask_loaded, library->path, answer);
    size_t line = strcspn(answer, "\n");
    if (answer[0] == '?' || !answer[line]) {
        if (answer[0] == '?')
            snprintf(why, 256, "%.*s", (int)(line - 1 < 255 ? line - 1 : 255), answer + 1);
        else
            snprintf(why, 256, "it ends the process that loads it (status %d)", status);
        return false;
    }
    snprintf(library->path, sizeof library->path, "%.*s", (int)line, answer);
    name_version(library, answer + line + 1);
    return true;
}
