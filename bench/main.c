/* The frame of programs that run under MPI (main.h). */
#include "main.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void bench_abort(const char *format, ...)
{
    char text[sizeof(struct bench_error)];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "%s: %s\n", bench_program.name, text);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

void *bench_need(size_t n, size_t size)
{
    void *memory = bench_array(n, size);

    if (!memory)
        bench_abort("no memory for %zu items of %zu bytes; %s", n, size, bench_program.remedy);
    return memory;
}

static int check(const struct bench *bench, struct bench_error *error)
{
    if (bench->arguments.n_names > 0 && !bench_program.takes_names)
        return bench_fail(error, "argument '%s' is not wanted", bench->arguments.names[0]);
    return bench_program.check ? bench_program.check(bench, error) : 0;
}

static int run(struct bench *bench, int n_words, char **words, struct bench_error *error)
{
    struct bench_arguments *arguments = &bench->arguments;

    if (bench_read_arguments(n_words, words, bench_program.options, arguments, error) != 0 ||
        (!arguments->wants_help && check(bench, error) != 0)) {
        if (bench->rank == 0)
            fprintf(stderr, "%s: %s\n%s", bench_program.name, error->text, bench_program.usage);
        return 2;
    }
    if (arguments->wants_help) {
        if (bench->rank == 0)
            fputs(bench_program.usage, stdout);
        return 0;
    }
    int status = bench_program.run(bench, error);
    if (status < 0 && bench->rank == 0)
        fprintf(stderr, "%s: %s\n", bench_program.name, error->text);
    return status != 0;
}

int main(int n_words, char **words)
{
    struct bench bench = {0};
    struct bench_error error;

    MPI_Init(&n_words, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &bench.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &bench.n_ranks);
    int status = run(&bench, n_words, words, &error);
    MPI_Finalize();
    return status;
}
