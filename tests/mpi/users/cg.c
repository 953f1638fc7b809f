/*
 * A program as users write it: conjugate gradients on an irregular sparse matrix, distributed in
 * blocks of rows; the vector's outside elements come as in HPCG: MPI_Irecv, MPI_Send, MPI_Wait.
 *
 *   cg [ROWS-PER-RANK [ITERATIONS [SOLUTIONS [pipelined]]]]
 *
 * solves once, printing each residual, or SOLUTIONS times, the others silently, with their time on
 * standard error. pipelined: by the method of Ghysels and Vanroose, in which each iteration starts
 * one MPI_Iallreduce, multiplies, and waits; no blocking collective comes while it solves.
 *
 * Row i is linked to i+1 and to i + (some of) 1, 4, 9, ... ranks' rows away, both ways.
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LINKS 16

static int rank, size, n; /* n rows on every rank */
static int n_links[4096];
static int links[4096][MAX_LINKS]; /* places in the vector: below n own rows, then outside */
static double weights[4096][MAX_LINKS];

static int n_peers, n_outside;
static int *peers, *n_from, *first_from; /* outside elements come sorted by owner */
static int *outside;                     /* their global rows */
static int *n_to, **to;                  /* own rows that a peer needs */

static unsigned scramble(unsigned x)
{
    x = (x ^ (x >> 16)) * 0x45d9f3bu;
    x = (x ^ (x >> 16)) * 0x45d9f3bu;
    return x ^ (x >> 16);
}

/* The weight of the link between two global rows, or 0 when there is none. */
static double weight(long a, long b)
{
    long low = a < b ? a : b, distance = (a < b ? b : a) - low;
    if (distance == 1)
        return -1;
    if (distance % n != 0)
        return 0;
    long root = (long)sqrt((double)(distance / n) + 0.5);
    if (root * root * n != distance || scramble((unsigned)(low * 31 + root)) % 3 == 0)
        return 0;
    return -0.5 / (double)root;
}

static int compare(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static int place_of(int row)
{
    if (row / n == rank)
        return row % n;
    int *found = bsearch(&row, outside, (size_t)n_outside, sizeof(int), compare);
    return n + (int)(found - outside);
}

/* Calls back every global row linked to local row i. */
static int neighbors(int i, int rows[])
{
    int row = rank * n + i, count = 0;
    for (int d = -size; d <= size; d++) {
        long other = row + (long)(d < 0 ? -d * d : d * d) * n;
        if (d != 0 && other >= 0 && other < (long)size * n && weight(row, other) != 0)
            rows[count++] = (int)other;
    }
    if (row > 0)
        rows[count++] = row - 1;
    if (row < size * n - 1)
        rows[count++] = row + 1;
    return count;
}

static void find_outside(void)
{
    int rows[MAX_LINKS * 4];

    outside = malloc((size_t)n * MAX_LINKS * sizeof(int));
    for (int i = 0; i < n; i++) {
        int count = neighbors(i, rows);
        for (int k = 0; k < count; k++) {
            if (rows[k] / n != rank)
                outside[n_outside++] = rows[k];
        }
    }
    qsort(outside, (size_t)n_outside, sizeof(int), compare);
    int unique = 0;
    for (int k = 0; k < n_outside; k++) {
        if (k == 0 || outside[k] != outside[k - 1])
            outside[unique++] = outside[k];
    }
    n_outside = unique;
}

/* Who needs what: the matrix is symmetric, so peers are the same both ways. */
static void find_peers(void)
{
    peers = malloc((size_t)size * sizeof(int));
    n_from = calloc((size_t)size, sizeof(int));
    first_from = calloc((size_t)size, sizeof(int));
    n_to = calloc((size_t)size, sizeof(int));
    to = calloc((size_t)size, sizeof(int *));
    for (int k = 0; k < n_outside; k++) {
        if (n_peers == 0 || peers[n_peers - 1] != outside[k] / n) {
            peers[n_peers] = outside[k] / n;
            first_from[n_peers++] = k;
        }
        n_from[n_peers - 1]++;
    }
    for (int p = 0; p < n_peers; p++)
        MPI_Send(&outside[first_from[p]], n_from[p], MPI_INT, peers[p], 98, MPI_COMM_WORLD);
    for (int p = 0; p < n_peers; p++) {
        MPI_Status status;
        MPI_Probe(peers[p], 98, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_INT, &n_to[p]);
        to[p] = malloc((size_t)n_to[p] * sizeof(int));
        MPI_Recv(to[p], n_to[p], MPI_INT, peers[p], 98, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static void make_matrix(void)
{
    int rows[MAX_LINKS * 4];

    for (int i = 0; i < n; i++) {
        n_links[i] = neighbors(i, rows);
        if (n_links[i] > MAX_LINKS)
            MPI_Abort(MPI_COMM_WORLD, 2);
        for (int k = 0; k < n_links[i]; k++) {
            links[i][k] = place_of(rows[k]);
            weights[i][k] = weight(rank * n + i, rows[k]);
        }
    }
}

static void exchange(double *x)
{
    MPI_Request *requests = malloc((size_t)(n_peers + 1) * sizeof(MPI_Request));
    double *buffer = malloc((size_t)n * sizeof(double));

    for (int p = 0; p < n_peers; p++)
        MPI_Irecv(x + n + first_from[p], n_from[p], MPI_DOUBLE, peers[p], 99, MPI_COMM_WORLD,
                  &requests[p]);
    for (int p = 0; p < n_peers; p++) {
        for (int k = 0; k < n_to[p]; k++)
            buffer[k] = x[to[p][k] - rank * n];
        MPI_Send(buffer, n_to[p], MPI_DOUBLE, peers[p], 99, MPI_COMM_WORLD);
    }
    for (int p = 0; p < n_peers; p++)
        MPI_Wait(&requests[p], MPI_STATUS_IGNORE);
    free(requests);
    free(buffer);
}

static void multiply(double *x, double *y)
{
    exchange(x);
    for (int i = 0; i < n; i++) {
        y[i] = (n_links[i] + 0.5) * x[i];
        for (int k = 0; k < n_links[i]; k++)
            y[i] += weights[i][k] * x[links[i][k]];
    }
}

static double dot(const double *x, const double *y)
{
    double mine = 0, all;
    for (int i = 0; i < n; i++)
        mine += x[i] * y[i];
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

static void solve(int iterations, int prints)
{
    size_t all = (size_t)(n + n_outside);
    double *x = calloc(all, sizeof(double)), *r = calloc(all, sizeof(double));
    double *p = calloc(all, sizeof(double)), *q = calloc(all, sizeof(double));

    for (int i = 0; i < n; i++)
        p[i] = r[i] = 1 + (double)((rank * n + i) % 7);
    double rr = dot(r, r);
    for (int it = 1; it <= iterations; it++) {
        multiply(p, q);
        double alpha = rr / dot(p, q), before = rr;
        for (int i = 0; i < n; i++) {
            x[i] += alpha * p[i];
            r[i] -= alpha * q[i];
        }
        rr = dot(r, r);
        for (int i = 0; i < n; i++)
            p[i] = r[i] + rr / before * p[i];
        if (rank == 0 && prints)
            printf("iteration %d residual %.17g\n", it, sqrt(rr));
    }
    double xx = dot(x, x);
    if (rank == 0 && prints)
        printf("norm of the solution %.17g\n", sqrt(xx));
    free(x);
    free(r);
    free(p);
    free(q);
}

/* Figures of the matrix, as programs tell them before they solve. */
static void tell_matrix(void)
{
    const char *names[] = {"peers", "outside elements", "links of a row", "rows"};
    int mine[] = {n_peers, n_outside, 0, n}, most;
    for (int i = 0; i < n; i++)
        mine[2] = n_links[i] > mine[2] ? n_links[i] : mine[2];
    for (int k = 0; k < 4; k++) {
        MPI_Allreduce(&mine[k], &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        if (rank == 0)
            printf("at most %d %s\n", most, names[k]);
    }
}

static void solve_pipelined(int iterations, int prints)
{
    size_t all = (size_t)(n + n_outside);
    double *x = calloc(all, sizeof(double)), *r = calloc(all, sizeof(double));
    double *w = calloc(all, sizeof(double)), *q = calloc(all, sizeof(double));
    double *z = calloc(all, sizeof(double)), *s = calloc(all, sizeof(double));
    double *p = calloc(all, sizeof(double)), alpha = 1, before = 1;

    for (int i = 0; i < n; i++)
        r[i] = 1 + (double)((rank * n + i) % 7);
    multiply(r, w);
    for (int it = 0; it <= iterations; it++) {
        double mine[2] = {0, 0}, sums[2];
        MPI_Request request;
        for (int i = 0; i < n; i++) {
            mine[0] += r[i] * r[i];
            mine[1] += w[i] * r[i];
        }
        MPI_Iallreduce(mine, sums, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
        multiply(w, q);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (rank == 0 && prints)
            printf("iteration %d residual %.17g\n", it, sqrt(sums[0]));
        double beta = it > 0 ? sums[0] / before : 0;
        alpha = sums[0] / (it > 0 ? sums[1] - beta * sums[0] / alpha : sums[1]);
        before = sums[0];
        for (int i = 0; i < n; i++) {
            z[i] = q[i] + beta * z[i];
            s[i] = w[i] + beta * s[i];
            p[i] = r[i] + beta * p[i];
            x[i] += alpha * p[i];
            r[i] -= alpha * s[i];
            w[i] -= alpha * z[i];
        }
    }
    free(x);
    free(r);
    free(w);
    free(q);
    free(z);
    free(s);
    free(p);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    n = argc > 1 ? atoi(argv[1]) : 40;
    if (n < 2 || n > 4096)
        MPI_Abort(MPI_COMM_WORLD, 2);
    find_outside();
    find_peers();
    make_matrix();
    int iterations = argc > 2 ? atoi(argv[2]) : 40, solutions = argc > 3 ? atoi(argv[3]) : 1;
    void (*solver)(int, int) = solve;
    if (argc > 4 && strcmp(argv[4], "pipelined") == 0) {
        tell_matrix();
        solver = solve_pipelined;
    }
    solver(iterations, 1);
    double begin = MPI_Wtime();
    for (int k = 1; k < solutions; k++)
        solver(iterations, 0);
    if (rank == 0 && solutions > 1)
        fprintf(stderr, "%.2f us an iteration\n",
                1e6 * (MPI_Wtime() - begin) / iterations / (solutions - 1));
    for (int p = 0; p < n_peers; p++)
        free(to[p]);
    free(to);
    free(n_to);
    free(n_from);
    free(first_from);
    free(peers);
    free(outside);
    MPI_Finalize();
    return 0;
}
