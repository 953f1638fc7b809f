/* A directory of temporary files for a test, removed with all that is in it. Failures of the system
 * fail the test. One file name is kept at a time: a path is valid until the next call. */
#ifndef CARPOOL_TESTS_TEMP_DIR_H
#define CARPOOL_TESTS_TEMP_DIR_H

#include <stddef.h>

struct temp_dir {
    char path[64];
    char file[160]; /* the path given out last */
};

void temp_dir_make(struct temp_dir *dir);
void temp_dir_remove(struct temp_dir *dir);

/* The path of a file in the directory, whether there is one or not. */
const char *temp_dir_path(struct temp_dir *dir, const char *name);

/* Writes a file and returns its path. */
const char *temp_dir_write(struct temp_dir *dir, const char *name, const void *bytes, size_t n);

/* The same for a text. */
const char *temp_dir_text(struct temp_dir *dir, const char *name, const char *text);

#endif
