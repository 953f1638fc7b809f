/* Whether the library can be preloaded into a program, judged by its file. For carpool run
 * and carpool try.
 */
#ifndef CARPOOL_HOST_PROGRAM_H
#define CARPOOL_HOST_PROGRAM_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

enum cpl_program_kind {
    CPL_PROGRAM_FITS,    /* dynamically linked, a script, or unknown */
    CPL_PROGRAM_STATIC,  /* an ELF file without an interpreter: nothing is preloaded */
    CPL_PROGRAM_FOREIGN, /* linked with another MPI than MPICH and its relatives */
    CPL_PROGRAM_SPECIAL  /* set-user-ID or set-group-ID: the preload would be ignored */
};

/* The file that execvp would start for a name: itself when it has a slash, else the first one in
 * PATH that can be executed. Returns false, with errno set, when there is none. */
bool cpl_program_find(const char *name, char path[PATH_MAX]);

/* Looks at an executable file; library gets the foreign MPI's name (64 bytes). A file that cannot
 * be read counts as fitting: starting it will show. */
enum cpl_program_kind cpl_program_look(const char *path, char library[64]);

/* Whether the library can do its work in the program, whose file is at path; if not, `why` says so
 * as a sentence. of_any_mpi: a foreign MPI's program fits, too; the library leaves it alone, and
 * says so itself. */
bool cpl_program_is_fit(const char *program, const char *path, bool of_any_mpi, char *why,
                        size_t size);

#endif
