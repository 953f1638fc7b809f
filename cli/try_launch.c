/* One launch of a program, with a time limit, and the files that it wrote (try.h). */
#include "cli/try.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define GRACE 5 /* seconds from the request to end to the end by force */

static volatile pid_t running; /* the launcher, which leads a process group; 0: none */

static void end_all(int number)
{
    if (running > 0)
        kill(-running, SIGTERM);
    _exit(128 + number);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* In the child: returns only when something failed. */
static void become(const struct cpl_launch *launch)
{
    int in = open("/dev/null", O_RDONLY);
    int out = open(launch->out, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    int err = open(launch->err, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    setpgid(0, 0);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    if (in >= 0 && out >= 0 && err >= 0 && dup2(in, 0) == 0 && dup2(out, 1) == 1 &&
        dup2(err, 2) == 2)
        execvp(launch->argv[0], launch->argv);
}

/* Forks; a child that cannot become the program tells why by a pipe. */
static pid_t start(const struct cpl_launch *launch)
{
    int ends[2], code = 0;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    pid_t child = fork();
    if (child == 0) {
        become(launch);
        code = errno;
        if (write(ends[1], &code, sizeof code) < 0)
            _exit(126);
        _exit(127);
    }
    int failed = errno;
    close(ends[1]);
    if (child > 0 && read(ends[0], &code, sizeof code) == sizeof code) {
        waitpid(child, NULL, 0);
        child = -1;
        failed = code;
    }
    close(ends[0]);
    errno = failed;
    return child;
}

static int code_of(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool cpl_try_launch(struct cpl_launch *launch)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    int status = 0;
    bool asked = false;
    signal(SIGINT, end_all);
    signal(SIGTERM, end_all);
    double begin = now();
    pid_t child = start(launch);
    if (child < 0)
        return false;
    running = child;
    while (waitpid(child, &status, WNOHANG) == 0) {
        double seconds = now() - begin;
        if (seconds > launch->limit && !asked) {
            kill(-child, SIGTERM);
            asked = true;
        }
        if (seconds > launch->limit + GRACE)
            kill(-child, SIGKILL);
        nanosleep(&pause, NULL);
    }
    running = 0;
    launch->seconds = now() - begin;
    launch->code = asked ? CPL_TRY_TIMED_OUT : code_of(status);
    return true;
}

/* --- files */

#define MOST_FILE_BYTES (16 << 20)

struct listed {
    struct dirent *entry;
    struct timespec changed;
    off_t size;
    bool is_plain; /* a file, not a directory or device */
};

struct cpl_listing {
    int n;
    struct listed *file; /* by name */
};

static void free_listing(struct cpl_listing *listing)
{
    for (int k = 0; listing && k < listing->n; k++)
        free(listing->file[k].entry);
    if (listing)
        free(listing->file);
    free(listing);
}

struct cpl_listing *cpl_try_list_files(void)
{
    struct dirent **entries = NULL;
    struct stat info;
    int n = scandir(".", &entries, NULL, alphasort);
    struct cpl_listing *listing = calloc(1, sizeof *listing);
    struct listed *file = calloc((size_t)(n > 0 ? n : 0) + 1, sizeof *file);
    for (int k = 0; k < n; k++) {
        if (!file || !listing || stat(entries[k]->d_name, &info) != 0) {
            free(entries[k]);
            continue;
        }
        file[listing->n++] = (struct listed){.entry = entries[k],
                                             .changed = info.st_mtim,
                                             .size = info.st_size,
                                             .is_plain = S_ISREG(info.st_mode)};
    }
    free(entries);
    if (listing)
        listing->file = file;
    else
        free(file);
    return listing;
}

static bool was_there(const struct cpl_listing *before, const struct listed *file)
{
    for (int k = 0; k < before->n; k++)
        if (strcmp(before->file[k].entry->d_name, file->entry->d_name) == 0)
            return before->file[k].changed.tv_sec == file->changed.tv_sec &&
                   before->file[k].changed.tv_nsec == file->changed.tv_nsec &&
                   before->file[k].size == file->size;
    return false;
}

/* Appends a text file, if it is one, to what is open then; returns whether. */
static bool append(const char *name, size_t size, const char *to, FILE **out)
{
    char *text = malloc(size + 1);
    FILE *in = text ? fopen(name, "r") : NULL;
    bool is_text = in && fread(text, 1, size, in) == size && !memchr(text, 0, size);
    if (is_text && !*out)
        *out = fopen(to, "w");
    if (is_text && *out)
        fwrite(text, 1, size, *out);
    if (is_text && *out && size > 0 && text[size - 1] != '\n')
        fputc('\n', *out);
    if (in)
        fclose(in);
    free(text);
    return is_text && *out;
}

int cpl_try_keep_files(struct cpl_listing *before, const char *file)
{
    FILE *out = NULL;
    int n = 0;
    struct cpl_listing *after = cpl_try_list_files();
    remove(file); /* of an earlier trial */
    for (int k = 0; before && after && k < after->n; k++) {
        const struct listed *one = &after->file[k];
        if (one->is_plain && one->size <= MOST_FILE_BYTES && !was_there(before, one))
            n += append(one->entry->d_name, (size_t)one->size, file, &out);
    }
    if (out)
        fclose(out);
    free_listing(before);
    free_listing(after);
    return n;
}
