/* Temporary files of tests (temp_dir.h). */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

#include "temp_dir.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void need(int condition, const char *what)
{
    if (condition)
        return;
    perror(what);
    abort();
}

void temp_dir_make(struct temp_dir *dir)
{
    snprintf(dir->path, sizeof dir->path, "/tmp/carpool-test-XXXXXX");
    need(mkdtemp(dir->path) != NULL, "mkdtemp");
}

void temp_dir_remove(struct temp_dir *dir)
{
    DIR *list = opendir(dir->path);
    need(list != NULL, dir->path);
    for (struct dirent *entry = readdir(list); entry; entry = readdir(list))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlink(temp_dir_path(dir, entry->d_name));
    closedir(list);
    need(rmdir(dir->path) == 0, dir->path);
}

const char *temp_dir_path(struct temp_dir *dir, const char *name)
{
    int n = snprintf(dir->file, sizeof dir->file, "%s/%s", dir->path, name);
    need(n > 0 && (size_t)n < sizeof dir->file, name);
    return dir->file;
}

const char *temp_dir_write(struct temp_dir *dir, const char *name, const void *bytes, size_t n)
{
    const char *path = temp_dir_path(dir, name);
    FILE *file = fopen(path, "wb");
    need(file != NULL, path);
    size_t n_written = fwrite(bytes, 1, n, file);
    need(fclose(file) == 0 && n_written == n, path);
    return path;
}

const char *temp_dir_text(struct temp_dir *dir, const char *name, const char *text)
{
    return temp_dir_write(dir, name, text, strlen(text));
}
