/* Preloaded beside libcarpool.so: allocations that the library asks for fail when told; those of
 * the program, MPI and other libraries do not. For run-memory.sh.
 *
 * NOMEMORY_AT=N     the Nth allocation of a rank fails, counted from MPI_Init's first; 0: none
 * NOMEMORY_FOR=M    and so do the M - 1 that follow it (default 1)
 * NOMEMORY_RANK=R   on rank R of MPI_COMM_WORLD only; -1: on all ranks
 * NOMEMORY_OUT=DIR  in MPI_Finalize a rank writes to DIR/RANK how many it asked for and how many
 * failed
 *
 * glibc's own functions do the work, under the names that it exports for this. */
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *memory, size_t size);

static struct {
    uintptr_t begin, end;               /* of libcarpool.so's code */
    uintptr_t others_begin, others_end; /* of the libraries inside it */
    long at, last;                      /* that fail */
    int rank;
    atomic_long n_calls, n_failed;
} state;

/* The libraries inside the library have a section of their own. */
static void find_linked_in(const char *path, uintptr_t base)
{
    ElfW(Ehdr) header;
    ElfW(Shdr) section, names;
    char name[sizeof "linked_in"];
    FILE *file = fopen(path, "rb");
    if (!file)
        return;
    if (fread(&header, sizeof header, 1, file) == 1 &&
        fseek(file, (long)(header.e_shoff + header.e_shstrndx * sizeof names), SEEK_SET) == 0 &&
        fread(&names, sizeof names, 1, file) == 1)
        for (unsigned k = 0; k < header.e_shnum; k++) {
            fseek(file, (long)(header.e_shoff + k * sizeof section), SEEK_SET);
            if (fread(&section, sizeof section, 1, file) != 1)
                break;
            fseek(file, (long)(names.sh_offset + section.sh_name), SEEK_SET);
            if (fread(name, sizeof name, 1, file) == 1 &&
                memcmp(name, "linked_in", sizeof name) == 0) {
                state.others_begin = base + section.sh_addr;
                state.others_end = state.others_begin + section.sh_size;
            }
        }
    fclose(file);
}

static int find_library(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size, (void)unused;
    if (!strstr(info->dlpi_name, "/libcarpool.so"))
        return 0;
    for (int k = 0; k < info->dlpi_phnum; k++)
        if (info->dlpi_phdr[k].p_type == PT_LOAD && info->dlpi_phdr[k].p_flags & PF_X) {
            state.begin = info->dlpi_addr + info->dlpi_phdr[k].p_vaddr;
            state.end = state.begin + info->dlpi_phdr[k].p_memsz;
        }
    find_linked_in(info->dlpi_name, info->dlpi_addr);
    return 1;
}

static long number(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text ? strtol(text, NULL, 10) : otherwise;
}

__attribute__((constructor)) static void begin(void)
{
    state.rank = (int)number("PMI_RANK", 0);
    long which = number("NOMEMORY_RANK", -1);
    if (which < 0 || which == state.rank) {
        state.at = number("NOMEMORY_AT", 0);
        state.last = state.at + number("NOMEMORY_FOR", 1) - 1;
    }
    dl_iterate_phdr(find_library, NULL);
}

/* No more fails: what measures lines is in the library, too, and needs memory at the end. */
static void end(void)
{
    char path[PATH_MAX];
    const char *directory = getenv("NOMEMORY_OUT");
    bool known = state.begin;
    state.begin = state.end = 0;
    if (!directory || !known)
        return;
    snprintf(path, sizeof path, "%s/%d", directory, state.rank);
    FILE *out = fopen(path, "w");
    if (!out)
        return;
    fprintf(out, "%ld %ld\n", atomic_load(&state.n_calls), atomic_load(&state.n_failed));
    fclose(out);
}

/* By MPI's name, so that the library's own call comes here. */
int PMPI_Finalize(void)
{
    int (*next)(void);
    *(void **)&next = dlsym(RTLD_NEXT, "PMPI_Finalize");
    end();
    return next();
}

/* MPI_Abort ends a rank by it. */
void exit(int code)
{
    void (*next)(int) __attribute__((noreturn));
    *(void **)&next = dlsym(RTLD_NEXT, "exit");
    end();
    next(code);
}

static bool fails(const void *caller)
{
    uintptr_t place = (uintptr_t)caller;
    if (place < state.begin || place >= state.end ||
        (place >= state.others_begin && place < state.others_end))
        return false;
    long n = atomic_fetch_add(&state.n_calls, 1) + 1;
    if (state.at == 0 || n < state.at || n > state.last)
        return false;
    atomic_fetch_add(&state.n_failed, 1);
    return true;
}

void *malloc(size_t size)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(n, size);
}

void *realloc(void *memory, size_t size)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_realloc(memory, size);
}
