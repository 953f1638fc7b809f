/* One launch of a program, with a time limit (try.h). */
#include "cli/try.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
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
