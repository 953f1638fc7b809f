/* Looking at a program before it is started (program.h): the headers of 64-bit ELF files of
 * this machine; a file that it does not understand counts as fitting. */
#include "cli/host/program.h"

#include <elf.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool cpl_program_find(const char *name, char path[PATH_MAX])
{
    const char *at = getenv("PATH");
    int code = ENOENT;
    if (strchr(name, '/')) {
        snprintf(path, PATH_MAX, "%s", name);
        return access(path, X_OK) == 0;
    }
    for (at = at ? at : "/bin:/usr/bin"; *name; at++) {
        size_t length = strcspn(at, ":");
        struct stat info;
        int n = snprintf(path, PATH_MAX, "%.*s%s%s", (int)length, at, length ? "/" : "", name);
        if (n < PATH_MAX && stat(path, &info) == 0 && S_ISREG(info.st_mode)) {
            if (access(path, X_OK) == 0)
                return true;
            code = EACCES;
        }
        at += length;
        if (!*at)
            break;
    }
    errno = code;
    return false;
}

/* Reads n bytes at an offset. */
static bool read_at(FILE *file, uint64_t offset, void *to, size_t n)
{
    return offset <= LONG_MAX && fseek(file, (long)offset, SEEK_SET) == 0 &&
           fread(to, 1, n, file) == n;
}

/* Where an address of the loaded program is in its file; 0 when nowhere. */
static uint64_t offset_of(const Elf64_Phdr *segments, int n, uint64_t address)
{
    for (int k = 0; k < n; k++)
        if (segments[k].p_type == PT_LOAD && address >= segments[k].p_vaddr &&
            address - segments[k].p_vaddr < segments[k].p_filesz)
            return address - segments[k].p_vaddr + segments[k].p_offset;
    return 0;
}

/* Open MPI's libraries; MPICH's are libmpich.so.12 and libmpi.so.12. */
static bool is_foreign(const char *library)
{
    static const char *const prefixes[] = {"libmpi.so.40", "libmpi.so.20", "libmpi.so.80",
                                           "libmpi_mpifh.so", "libopen-rte.so"};
    for (size_t k = 0; k < sizeof prefixes / sizeof prefixes[0]; k++)
        if (strncmp(library, prefixes[k], strlen(prefixes[k])) == 0)
            return true;
    return false;
}

/* Whether the program names a foreign MPI's library among those it needs. */
static bool needs_foreign(FILE *file, const Elf64_Phdr *segments, int n, char library[64])
{
    enum { MOST = 4096 };
    const Elf64_Phdr *dynamic = NULL;
    uint64_t strings = 0;
    Elf64_Dyn entry;
    for (int k = 0; k < n; k++)
        if (segments[k].p_type == PT_DYNAMIC)
            dynamic = &segments[k];
    if (!dynamic)
        return false;
    for (int pass = 0; pass < 2; pass++)
        for (uint64_t k = 0; k < MOST && k < dynamic->p_filesz / sizeof entry; k++) {
            if (!read_at(file, dynamic->p_offset + k * sizeof entry, &entry, sizeof entry) ||
                entry.d_tag == DT_NULL)
                break;
            if (pass == 0 && entry.d_tag == DT_STRTAB)
                strings = offset_of(segments, n, entry.d_un.d_ptr);
            if (pass == 0 || entry.d_tag != DT_NEEDED || !strings)
                continue;
            memset(library, 0, 64);
            if (fseek(file, (long)(strings + entry.d_un.d_val), SEEK_SET) == 0 &&
                fread(library, 1, 63, file) > 0 && is_foreign(library))
                return true;
        }
    return false;
}

static enum cpl_program_kind look_at_elf(FILE *file, char library[64])
{
    enum { MOST = 128 };
    Elf64_Ehdr header;
    Elf64_Phdr segments[MOST];
    if (!read_at(file, 0, &header, sizeof header) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_ident[EI_DATA] !=
            (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB) ||
        header.e_phentsize != sizeof *segments || header.e_phnum > MOST ||
        !read_at(file, header.e_phoff, segments, header.e_phnum * sizeof *segments))
        return CPL_PROGRAM_FITS;
    bool has_interpreter = false;
    for (int k = 0; k < header.e_phnum; k++)
        has_interpreter |= segments[k].p_type == PT_INTERP;
    if (!has_interpreter)
        return CPL_PROGRAM_STATIC;
    return needs_foreign(file, segments, header.e_phnum, library) ? CPL_PROGRAM_FOREIGN
                                                                  : CPL_PROGRAM_FITS;
}

enum cpl_program_kind cpl_program_look(const char *path, char library[64])
{
    struct stat info;
    if (stat(path, &info) == 0 && ((info.st_mode & S_ISUID && info.st_uid != getuid()) ||
                                   (info.st_mode & S_ISGID && info.st_gid != getgid())))
        return CPL_PROGRAM_SPECIAL;
    FILE *file = fopen(path, "rb");
    if (!file)
        return CPL_PROGRAM_FITS;
    enum cpl_program_kind kind = look_at_elf(file, library);
    fclose(file);
    return kind;
}

bool cpl_program_is_fit(const char *program, const char *path, bool of_any_mpi, char *why,
                        size_t size)
{
    char mpi[64];
    switch (cpl_program_look(path, mpi)) {
    case CPL_PROGRAM_STATIC:
        snprintf(why, size,
                 "%s is statically linked, nothing can be preloaded into it; link it dynamically",
                 program);
        return false;
    case CPL_PROGRAM_FOREIGN:
        if (of_any_mpi)
            break;
        snprintf(
            why, size,
            "%s is linked with another MPI (%s); Carpool is for MPICH: build it by mpicc.mpich",
            program, mpi);
        return false;
    case CPL_PROGRAM_SPECIAL:
        snprintf(why, size,
                 "%s runs as another user or group (set-user-ID), which switches preloading off",
                 program);
        return false;
    case CPL_PROGRAM_FITS:
        break;
    }
    return true;
}
