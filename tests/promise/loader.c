/*
 * A program that is not linked with MPI and loads a plug-in that is, by dlopen, RTLD_LOCAL: so do
 * interpreters. The plug-in makes all calls of MPI.
 *
 *   loader PLUGIN [local|global|deep] [before]
 *
 * PLUGIN: plugin.so; a name without a slash is looked for beside this program. Writes what the
 * plug-in's promise_go(argc, argv) prints, and exits with its result.
 */
#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    char self[PATH_MAX] = "", path[2 * PATH_MAX];
    const char *name = argc > 1 ? argv[1] : "plugin.so";
    int how = RTLD_NOW | RTLD_LOCAL;
    int (*go)(int, char **);
    if (argc > 2 && strcmp(argv[2], "global") == 0)
        how = RTLD_NOW | RTLD_GLOBAL;
    if (argc > 2 && strcmp(argv[2], "deep") == 0)
        how = RTLD_LAZY | RTLD_LOCAL;
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0)
        return 2;
    if (strchr(name, '/'))
        snprintf(path, sizeof path, "%s", name);
    else
        snprintf(path, sizeof path, "%s/%s", dirname(self), name);
    void *plugin = dlopen(path, how);
    if (!plugin) {
        puts(dlerror());
        return 2;
    }
    void *symbol = dlsym(plugin, "promise_go");
    if (!symbol)
        return 2;
    memcpy(&go, &symbol, sizeof go);
    return go(argc, argv);
}
