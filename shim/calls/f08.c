/* The PMPI_ names that the mpi_f08 module calls, and the real functions behind them (f08.h).
 *
 * The return address tells the caller: the binding calls from the text of a library of its own, and
 * checks each result before it returns, so that none of its calls is a jump. A binding that is
 * linked into the program (libmpichfort.a) is not recognised; such a program is left to MPI.
 *
 * Cost: with the library switched off one branch and an indirect jump; else two comparisons, and
 * for callers that are neither the binding nor MPICH a check of the loader's count of libraries.
 * Thread rule: one thread, as everywhere in the active shim. */
#include "shim/calls/f08.h"

#include "shim/base/log.h"
#include "shim/state/context.h"

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default"), noinline))

struct text {
    uintptr_t start;
    size_t size; /* 0: not loaded */
};

/* The text that the loader has mapped. It belongs to the process. */
static struct {
    struct text binding, mpi;
    char name[512];             /* MPI's file */
    void *handle;               /* when it had to be opened */
    unsigned long long n_loads; /* the loader's count when the addresses were looked up */
} objects;

static bool within(const struct text *text, uintptr_t address)
{
    return address - text->start < text->size;
}

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

static struct text text_of(const struct dl_phdr_info *object)
{
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X))
            return (struct text){object->dlpi_addr + segment->p_vaddr, segment->p_memsz};
    }
    return (struct text){0, 0};
}

static void note_mpi(const struct dl_phdr_info *object)
{
    objects.mpi = text_of(object);
    size_t n = strlen(object->dlpi_name);
    if (n < sizeof objects.name)
        memcpy(objects.name, object->dlpi_name, n + 1);
}

/* Recognises the library names of Debian and of MPICH itself. */
static int note_object(struct dl_phdr_info *object, size_t size, void *unused)
{
    (void)size, (void)unused;
    const char *slash = strrchr(object->dlpi_name, '/');
    const char *name = slash ? slash + 1 : object->dlpi_name;
    objects.n_loads = object->dlpi_adds;
    if (starts_with(name, "libmpichfort.so") || starts_with(name, "libmpifort.so"))
        objects.binding = text_of(object);
    else if (starts_with(name, "libmpich.so") || starts_with(name, "libmpi.so"))
        note_mpi(object);
    return 0;
}

/* Asks the first object only: the loader's count is the same in all. */
static int compare_loads(struct dl_phdr_info *object, size_t size, void *unused)
{
    (void)size, (void)unused;
    return object->dlpi_adds == objects.n_loads ? -1 : 1;
}

static bool from_binding(uintptr_t caller)
{
    if (within(&objects.binding, caller))
        return true;
    if (within(&objects.mpi, caller) || dl_iterate_phdr(compare_loads, NULL) < 0)
        return false;
    dl_iterate_phdr(note_object, NULL);
    return within(&objects.binding, caller);
}

/* A program that loads MPI as part of a plug-in (dlopen with RTLD_LOCAL, as Python does) keeps it
 * out of the scope in which this library's references are resolved, so open it again for all. */
static bool open_mpi(void)
{
    dl_iterate_phdr(note_object, NULL);
    if (!objects.handle && objects.name[0])
        objects.handle = dlopen(objects.name, RTLD_LAZY | RTLD_NOLOAD | RTLD_GLOBAL);
    return objects.handle;
}

/* The function that the program would get without the library; NULL: there is none. */
static void *find(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (!found && open_mpi())
        found = dlsym(objects.handle, name);
    if (!found)
        cpl_log(CPL_LOG_ERROR, "f08", "%s is in no library that comes after this one", name);
    return found;
}

/* Looked up at the first call, since MPI may be loaded after the library. PMPI_NAME is
 * cpl_real_NAME here as in all files; the exported function has that symbol by its label. */
#define FORWARD(name, serves, parameters, arguments)                                               \
    static int first_##name parameters;                                                            \
    static int(*real_##name) parameters = first_##name;                                            \
    static int first_##name parameters                                                             \
    {                                                                                              \
        void *found = find("PMPI_" #name);                                                         \
        if (!found)                                                                                \
            return MPI_ERR_INTERN;                                                                 \
        memcpy(&real_##name, &found, sizeof found);                                                \
        return real_##name arguments;                                                              \
    }                                                                                              \
    int PMPI_##name parameters                                                                     \
    {                                                                                              \
        return real_##name arguments;                                                              \
    }                                                                                              \
    EXPORT int cpl_f08_##name parameters __asm__("PMPI_" #name);                                   \
    EXPORT int cpl_f08_##name parameters                                                           \
    {                                                                                              \
        if (!(serves) || !from_binding((uintptr_t)__builtin_return_address(0)))                    \
            return real_##name arguments;                                                          \
        return MPI_##name arguments;                                                               \
    }
#define STARTS(name, parameters, arguments) FORWARD(name, true, parameters, arguments)
#define VIA_PMPI(name, parameters, arguments)                                                      \
    FORWARD(name, cpl_context.active, parameters, arguments)
#include "shim/tables/f08.def"
