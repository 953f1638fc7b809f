/* Which MPI is in the process (find.h). */
#include "shim/bind/find.h"

#include "shim/base/environment.h"
#include "shim/base/log.h"
#include "shim/base/settings.h"

#include <mpi.h>

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

extern char **environ;

#ifdef MPI_ABI_VERSION /* built for the standard's ABI (MPI 5.0, chapter 20) */
#define STANDARD    true
#define OTHER_BUILD "libcarpool.so"
#define STANDARDS   CPL_PREDEFINED(MPI_Errhandler, 0x143)
#define INTELS      CPL_PREDEFINED(MPI_Errhandler, 0x142)
MPI_Errhandler cpl_abi_errors_return = STANDARDS;
#else /* for MPICH's */
#define STANDARD    false
#define OTHER_BUILD "libcarpool_abi.so"
#endif

struct text {
    uintptr_t start;
    size_t size; /* 0: not loaded */
};

enum { IN_MPI, IN_LIBRARY, IN_OTHER_BUILD, N_INSIDE };

/* What the loader has mapped. It belongs to the process. */
static struct {
    struct text inside[N_INSIDE];
    uintptr_t address[N_INSIDE]; /* one in each; 0: not known */
    char candidate[PATH_MAX];    /* the first library with a name of MPI's; "": none */
    void *handle;                /* the same, opened where it had to be */
    void *other;                 /* the library's other build */
} objects;

static bool within(const struct text *text, uintptr_t address)
{
    return address - text->start < text->size;
}

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* All MPIs call their libraries libmpi and something. */
static int note_object(struct dl_phdr_info *object, size_t size, void *unused)
{
    (void)size, (void)unused;
    const char *slash = strrchr(object->dlpi_name, '/');
    const char *name = slash ? slash + 1 : object->dlpi_name;
    struct text text = {0, 0};
    size_t n = strlen(object->dlpi_name);
    for (int i = 0; i < object->dlpi_phnum && text.size == 0; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X))
            text = (struct text){object->dlpi_addr + segment->p_vaddr, segment->p_memsz};
    }
    for (size_t k = 0; k < N_INSIDE; k++)
        if (within(&text, objects.address[k]))
            objects.inside[k] = text;
    if (!starts_with(name, "libmpichfort.so") && !starts_with(name, "libmpifort") &&
        starts_with(name, "libmpi") && !objects.candidate[0] && n < sizeof objects.candidate)
        memcpy(objects.candidate, object->dlpi_name, n + 1);
    return 0;
}

/* Opens MPI where a plug-in keeps it to itself; that others cannot see it stays so. */
static void *opened_mpi(void)
{
    if (!objects.handle) {
        dl_iterate_phdr(note_object, NULL);
        if (objects.candidate[0])
            objects.handle = dlopen(objects.candidate, RTLD_LAZY | RTLD_NOLOAD);
    }
    return objects.handle;
}

/* ISO C has no conversion from an object's to a function's address; POSIX promises the copy. */
static cpl_function *function_at(void *address)
{
    cpl_function *function;
    memcpy(&function, &address, sizeof function);
    return function;
}

static void *find(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    return found || !opened_mpi() ? found : dlsym(objects.handle, name);
}

cpl_function *cpl_find_next(const char *name)
{
    return function_at(find(name));
}

int *cpl_find_pointer(const char *name)
{
    int **found = find(name);
    return found ? *found : NULL;
}

/* The library's other build lies beside this one. */
static bool open_other(void)
{
    char path[PATH_MAX];
    Dl_info self;
    if (!dladdr(&objects, &self) || !self.dli_fname)
        return false;
    const char *slash = strrchr(self.dli_fname, '/');
    int n = snprintf(path, sizeof path, "%.*s%s", slash ? (int)(slash - self.dli_fname + 1) : 0,
                     self.dli_fname, OTHER_BUILD);
    if (n < (int)sizeof path)
        objects.other = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    return objects.other;
}

cpl_function *cpl_find_other(const char *name)
{
    return function_at(objects.other ? dlsym(objects.other, name) : NULL);
}

static bool left;

void cpl_find_leave(void)
{
    left = true;
}

bool cpl_find_left(const char *name)
{
    return left && strcmp(name, "MPI_Finalize") != 0 && strcmp(name, "MPI_Query_thread") != 0;
}

/* Whether an MPI that describes itself so has MPICH's ABI, or the standard's by the same code. */
static bool is_relative(const char *version)
{
    static const char *const names[] = {
        "MPICH",      "Intel(R) MPI", "MVAPICH", "CRAY MPICH", "MPI VERSION    : CRAY MPICH",
        "ParaStation"};
    int major = 0, minor = 0;
    /* with MPICH 3.1 its present ABI began */
    if (sscanf(version, "MPICH Version: %d.%d", &major, &minor) == 2 && major * 100 + minor < 301)
        return false;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (starts_with(version, names[k]))
            return true;
    return false;
}

/* One process of the job, by the launcher's variable; all of them where there is none. */
static bool must_tell(void)
{
    static const char *const names[] = {"PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK",
                                        "SLURM_PROCID"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        const char *rank = cpl_variable(environ, names[k]);
        if (rank)
            return strcmp(rank, "0") == 0;
    }
    return true;
}

/* Says once that nothing is done. Who has asked for the library by `carpool run` is warned. */
static void tell(const char *version, const char *why)
{
    static struct cpl_settings settings;
    if (!must_tell())
        return;
    cpl_settings_read(&settings, environ, NULL, NULL);
    cpl_log_init(-1, (enum cpl_log_level)settings.verbose);
    cpl_log(cpl_variable(environ, "_CARPOOL_RUN") ? CPL_LOG_WARN : CPL_LOG_INFO, "bind",
            "the program's MPI (%.*s) %s: the library does nothing", (int)strcspn(version, "\n,"),
            version, why);
}

static enum cpl_mpi recognise(void)
{
    static char version[65536]; /* longer than any MPI's MPI_MAX_LIBRARY_VERSION_STRING */
    cpl_function *found = cpl_find_next("PMPI_Get_library_version"),
                 *init = cpl_find_next("PMPI_Init");
    int length = 0, major = -1, minor = -1;
    if (!init)
        return CPL_MPI_NONE;
    objects.address[IN_MPI] = (uintptr_t)init;
    objects.address[IN_LIBRARY] = (uintptr_t)recognise;
    dl_iterate_phdr(note_object, NULL);
    if (!found || ((int (*)(char *, int *))found)(version, &length) != 0 || !is_relative(version)) {
        tell(version[0] ? version : "of before 2012",
             "is not of MPICH's family (MPICH 3.1 or later, Intel MPI, Cray MPICH, MVAPICH)");
        return CPL_MPI_FOREIGN;
    }
#ifdef MPI_ABI_VERSION
    if (starts_with(version, "Intel(R) MPI"))
        cpl_abi_errors_return = INTELS;
#endif
    found = cpl_find_next("PMPI_Abi_get_version"); /* MPI has it from version 5.0 on */
    bool standard = found && ((int (*)(int *, int *))found)(&major, &minor) == 0 && major >= 1;
    if (standard == STANDARD)
        return CPL_MPI_SERVED;
    if (open_other()) {
        objects.address[IN_OTHER_BUILD] = (uintptr_t)cpl_find_other("MPI_Init");
        dl_iterate_phdr(note_object, NULL);
        return CPL_MPI_OTHER;
    }
    tell(version, STANDARD ? "has MPICH's ABI, and " OTHER_BUILD " is not beside the library"
                           : "has the standard ABI, and " OTHER_BUILD " is not beside the library");
    return CPL_MPI_FOREIGN;
}

enum cpl_mpi cpl_find_mpi(void)
{
    static enum cpl_mpi found = CPL_MPI_NONE;
    static bool asked; /* what is asked may call other functions of MPI */
    if (found == CPL_MPI_NONE && !asked) {
        asked = true;
        found = recognise();
        asked = false;
    }
    return found;
}

bool cpl_find_serves(uintptr_t caller)
{
    enum cpl_mpi mpi = cpl_find_mpi();
    bool serves = mpi == CPL_MPI_SERVED || mpi == CPL_MPI_OTHER;
    for (size_t k = 0; k < N_INSIDE; k++)
        serves &= !within(&objects.inside[k], caller);
    return serves;
}
