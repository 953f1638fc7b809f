/* Tests of opening lanes (shim/carry/lanes.h): ranks that are fibers, on several nodes, open lanes
 * in real shared memory. Messages come out at the right end, no lane touches another one, and where
 * one rank cannot, none of them has a lane, one line says so and nothing stays behind. */
#include "shim/carry/lanes.h"

#include "../failing_heap.h"
#include "fibers.h"
#include "random_pattern.h"
#include "shim/base/log.h"
#include "shim/base/shared_memory.h"
#include "shim/meet/agree.h"
#include "shim/wait/collective.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { MOST_RANKS = FIBERS_MOST, MOST_KEYS = 4, MOST_ENDS = MOST_RANKS * MOST_KEYS };
enum { ALL = 1000, FIRST_NODE = 2000 }; /* communicators */

enum fault { NO_FAULT, NOT_ABLE, NOT_MADE, NOT_ATTACHED, NO_SPLIT, TOO_MANY };

/* One side's ends of a rank, in an order of its own. */
struct side {
    int32_t n;
    struct cpl_lane_end end[MOST_ENDS];
};

static struct {
    int n, per_node;
    uint64_t random;
    enum fault fault;
    int faulty; /* rank */
    struct side out[MOST_RANKS], in[MOST_RANKS];
    struct cpl_lanes lanes[MOST_RANKS];
    bool opened[MOST_RANKS];
    int n_lines, n_maps; /* of the log; of the memory, while lanes were open */
    char line[400];
    int n_comms;
} world;

/* ---- what opening calls: collectives between fibers, of all or of a node ---- */

struct meeting {
    int n_here, n_over;
    const void *mine[MOST_RANKS]; /* by rank in the communicator */
    void *result[MOST_RANKS];
};

static struct meeting meetings[1 + MOST_RANKS];

static int node_of(int rank)
{
    return rank / world.per_node;
}

static int size_of(MPI_Comm comm)
{
    int left = world.n - (comm - FIRST_NODE) * world.per_node;
    return comm == ALL ? world.n : left < world.per_node ? left : world.per_node;
}

static int rank_in(MPI_Comm comm)
{
    assert_true(comm == ALL || comm == FIRST_NODE + node_of(fibers_rank()));
    return comm == ALL ? fibers_rank() : fibers_rank() % world.per_node;
}

/* Waits for the others of a communicator; the last one does `together`. */
static void meet(MPI_Comm comm, const void *mine, void *result,
                 void (*together)(struct meeting *meeting, int n))
{
    struct meeting *m = &meetings[comm == ALL ? 0 : 1 + comm - FIRST_NODE];
    int n_over = m->n_over;
    m->mine[rank_in(comm)] = mine;
    m->result[rank_in(comm)] = result;
    if (++m->n_here == size_of(comm)) {
        together(m, m->n_here);
        m->n_here = 0;
        m->n_over++;
    }
    while (m->n_over == n_over)
        fibers_yield();
}

static void minimum_at(struct meeting *m, int n, int k)
{
    int least = ((const int *)m->mine[0])[k];
    for (int r = 1; r < n; r++)
        least = ((const int *)m->mine[r])[k] < least ? ((const int *)m->mine[r])[k] : least;
    for (int r = 0; r < n; r++)
        ((int *)m->result[r])[k] = least;
}

static void minimum(struct meeting *m, int n)
{
    minimum_at(m, n, 0);
}

static void two_minima(struct meeting *m, int n)
{
    minimum_at(m, n, 0);
    minimum_at(m, n, 1);
}

static void sum(struct meeting *m, int n)
{
    int64_t all = 0;
    for (int r = 0; r < n; r++)
        all += *(const int64_t *)m->mine[r];
    for (int r = 0; r < n; r++)
        *(int64_t *)m->result[r] = all;
}

/* As MPI, leaves the first rank's result alone. */
static void sum_before(struct meeting *m, int n)
{
    int64_t all = 0;
    for (int r = 0; r < n; all += *(const int64_t *)m->mine[r++])
        *(int64_t *)m->result[r] = r > 0 ? all : INT64_C(0x5555555555555555);
}

static void take_name(struct meeting *m, int n)
{
    for (int r = 1; r < n; r++)
        memcpy(m->result[r], m->mine[0], sizeof(struct cpl_shared_name));
}

static void nothing(struct meeting *m, int n)
{
    (void)m, (void)n;
}

int cpl_collective_Allreduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
                             MPI_Comm comm)
{
    assert_true((type == MPI_INT && op == MPI_MIN) || (type == MPI_INT64_T && op == MPI_SUM));
    assert_in_range(count, 1, type == MPI_INT ? 2 : 1);
    meet(comm, send, recv, type != MPI_INT ? sum : count == 1 ? minimum : two_minima);
    return MPI_SUCCESS;
}

int cpl_collective_Exscan(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
                          MPI_Comm comm)
{
    assert_true(count == 1 && type == MPI_INT64_T && op == MPI_SUM);
    meet(comm, send, recv, sum_before);
    return MPI_SUCCESS;
}

int cpl_collective_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    assert_true(count == sizeof(struct cpl_shared_name) && type == MPI_BYTE && root == 0);
    meet(comm, buffer, buffer, take_name);
    return MPI_SUCCESS;
}

int cpl_collective_Barrier(MPI_Comm comm)
{
    meet(comm, NULL, NULL, nothing);
    return MPI_SUCCESS;
}

bool cpl_agree_all(MPI_Comm comm, bool yes)
{
    int mine = yes, all = 0;
    cpl_collective_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, comm);
    return all;
}

bool cpl_agree_split_node(MPI_Comm comm, MPI_Comm *node)
{
    assert_int_equal(comm, ALL);
    meet(comm, NULL, NULL, nothing);
    if (world.fault == NO_SPLIT)
        return false;
    *node = FIRST_NODE + node_of(fibers_rank());
    world.n_comms++;
    return true;
}

int PMPI_Comm_free(MPI_Comm *comm)
{
    world.n_comms--;
    *comm = MPI_COMM_NULL;
    return MPI_SUCCESS;
}

int PMPI_Comm_rank(MPI_Comm comm, int *rank)
{
    *rank = rank_in(comm);
    return MPI_SUCCESS;
}

int PMPI_Comm_size(MPI_Comm comm, int *size)
{
    *size = size_of(comm);
    return MPI_SUCCESS;
}

int PMPI_Comm_group(MPI_Comm comm, MPI_Group *group)
{
    *group = comm;
    return MPI_SUCCESS;
}

int PMPI_Group_free(MPI_Group *group)
{
    *group = MPI_GROUP_NULL;
    return MPI_SUCCESS;
}

int PMPI_Group_translate_ranks(MPI_Group from, int n, const int ranks[], MPI_Group to, int made[])
{
    assert_int_equal(from, ALL);
    for (int k = 0; k < n; k++)
        made[k] = to == FIRST_NODE + node_of(ranks[k]) ? ranks[k] % world.per_node : MPI_UNDEFINED;
    return MPI_SUCCESS;
}

enum cpl_log_level cpl_log_threshold = CPL_LOG_WARN;

void cpl_log_write(enum cpl_log_level level, const char *component, const char *format, ...)
{
    va_list args;
    assert_int_equal(level, CPL_LOG_WARN);
    assert_string_equal(component, "lanes");
    va_start(args, format);
    vsnprintf(world.line, sizeof world.line, format, args);
    va_end(args);
    world.n_lines++;
}

void *__real_cpl_shared_make(int64_t bytes, struct cpl_shared_name *name, char *why);
void *__wrap_cpl_shared_make(int64_t bytes, struct cpl_shared_name *name, char *why);
void *__real_cpl_shared_attach(const struct cpl_shared_name *name, char *why);
void *__wrap_cpl_shared_attach(const struct cpl_shared_name *name, char *why);

static bool is_faulty(enum fault fault)
{
    return world.fault == fault && world.faulty == fibers_rank();
}

void *__wrap_cpl_shared_make(int64_t bytes, struct cpl_shared_name *name, char *why)
{
    return __real_cpl_shared_make(is_faulty(NOT_MADE) ? INT64_C(1) << 60 : bytes, name, why);
}

void *__wrap_cpl_shared_attach(const struct cpl_shared_name *name, char *why)
{
    struct cpl_shared_name seen = *name;
    seen.nonce += is_faulty(NOT_ATTACHED); /* memory of another machine */
    return __real_cpl_shared_attach(&seen, why);
}

/* ---- ranks ---- */

static void add(struct side *side, int rank, int key, int64_t room)
{
    int at = random_below(&world.random, ++side->n), last = side->n - 1;
    side->end[last] = side->end[at];
    side->end[at] = (struct cpl_lane_end){rank, key, {.room = room}};
}

/* Edges between random pairs, some with several keys; some ranks have none. */
static void begin(int n, int per_node, uint64_t seed)
{
    memset(&world, 0, sizeof world);
    memset(meetings, 0, sizeof meetings);
    world.n = n;
    world.per_node = per_node;
    world.random = seed;
    fibers_begin(n, seed);
    bool is_alone[MOST_RANKS];
    for (int r = 0; r < n; r++) {
        is_alone[r] = random_below(&world.random, 5) == 0;
        fibers_context(r)->settings.lanes = 1;
        fibers_context(r)->settings.ranks_per_node = per_node;
    }
    for (int from = 0; from < n; from++)
        for (int to = 0; to < n; to++)
            for (int key = 0; key < MOST_KEYS && !is_alone[from] && !is_alone[to]; key++) {
                const int64_t rooms[] = {1, 64, 500, CPL_LANE_MOST, CPL_LANE_MOST + 1};
                int64_t room = rooms[random_below(&world.random, 5)];
                if (random_below(&world.random, 3))
                    continue;
                add(&world.out[from], to, 7 * key, room);
                add(&world.in[to], from, 7 * key, room);
            }
}

static bool is_shared(int rank, const struct side *side, int32_t e)
{
    return node_of(rank) == node_of(side->end[e].rank) && side->end[e].lane.room <= CPL_LANE_MOST;
}

/* Places in this process where some shared memory of carpool's is. */
static int n_maps(void)
{
    char line[600];
    int n = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps))
        n += strstr(line, "/carpool-") != NULL;
    fclose(maps);
    return n;
}

static void open_lanes(int rank)
{
    struct side *out = &world.out[rank], *in = &world.in[rank];
    for (int32_t e = 0; e < out->n; e++)
        out->end[e].lane.shared = (unsigned char *)"left from before";
    world.lanes[rank] = (struct cpl_lanes){.out = {out->n, out->end}, .in = {in->n, in->end}};
    world.opened[rank] = cpl_lanes_open(&world.lanes[rank], ALL, !is_faulty(NOT_ABLE));
}

/* Fills slot after slot, to the last byte, with what tells the lane and the message. */
static void write_all(int rank)
{
    struct side *out = &world.out[rank];
    for (int32_t e = 0; e < out->n; e++)
        for (int k = 0; out->end[e].lane.shared && k < CPL_LANE_SLOTS; k++) {
            unsigned char *slot = cpl_lane_next(&out->end[e].lane);
            assert_non_null(slot);
            memset(slot, rank * 19 + out->end[e].rank * 5 + out->end[e].key + k,
                   (size_t)out->end[e].lane.room);
            cpl_lane_send(&out->end[e].lane, out->end[e].lane.room);
        }
}

static void read_all(int rank)
{
    struct side *in = &world.in[rank];
    for (int32_t e = 0; e < in->n; e++)
        for (int k = 0; in->end[e].lane.shared && k < CPL_LANE_SLOTS; k++) {
            int64_t bytes = -1;
            const unsigned char *message = cpl_lane_look(&in->end[e].lane, &bytes);
            assert_non_null(message);
            assert_int_equal(bytes, in->end[e].lane.room);
            for (int64_t b = 0; b < bytes; b++)
                if (message[b] !=
                    (unsigned char)(in->end[e].rank * 19 + rank * 5 + in->end[e].key + k))
                    fail_msg("byte %d of rank %d's message to %d", (int)b, in->end[e].rank, rank);
            cpl_lane_take(&in->end[e].lane);
        }
}

static void close_lanes(int rank)
{
    cpl_lanes_close(&world.lanes[rank]);
    cpl_lanes_close(&world.lanes[rank]); /* once more does nothing */
}

/* Names that this process has in /dev/shm. */
static int n_names(void)
{
    char mine[64];
    int n = 0, length = snprintf(mine, sizeof mine, "carpool-%ld-", (long)getpid());
    DIR *directory = opendir("/dev/shm");
    assert_non_null(directory);
    for (const struct dirent *entry; (entry = readdir(directory));)
        n += strncmp(entry->d_name, mine, (size_t)length) == 0;
    closedir(directory);
    return n;
}

/* Opens, checks who has lanes, and returns how many there are. */
static int open_and_check(bool expected)
{
    int n = 0;
    int64_t n_live = heap.n_live;
    fibers_run(open_lanes);
    assert_int_equal(heap.n_live, n_live);
    assert_int_equal(world.n_comms, 0);
    assert_int_equal(n_names(), 0);
    for (int r = 0; r < world.n; r++) {
        const struct side *out = &world.out[r], *in = &world.in[r];
        assert_int_equal(world.opened[r], expected);
        for (int32_t e = 0; e < out->n; e++) {
            assert_int_equal(out->end[e].lane.shared != NULL, expected && is_shared(r, out, e));
            n += out->end[e].lane.shared != NULL;
        }
        for (int32_t e = 0; e < in->n; e++)
            assert_int_equal(in->end[e].lane.shared != NULL, expected && is_shared(r, in, e));
    }
    assert_int_equal(n_maps() > 0, n > 0);
    return n;
}

static void close_and_check(void)
{
    fibers_run(close_lanes);
    assert_int_equal(n_maps(), 0);
}

/* ---- tests ---- */

static void test_messages(void **state)
{
    (void)state;
    int n_lanes = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        begin(1 + (int)(seed % MOST_RANKS), 1 + (int)(seed / 3 % 5), seed);
        n_lanes += open_and_check(true);
        for (int round = 0; round < 3; round++) {
            fibers_run(write_all);
            fibers_run(read_all);
        }
        close_and_check();
        assert_int_equal(world.n_lines, 0);
    }
    assert_true(n_lanes > 400);
}

/* Several are open at a time, and the one that closes last can still read what was sent. */
static void test_reader_closes_last(void **state)
{
    (void)state;
    begin(2, 2, 3);
    while (world.out[0].n == 0 || !is_shared(0, &world.out[0], 0))
        begin(2, 2, world.random);
    open_and_check(true);
    fibers_run(write_all);
    cpl_lanes_close(&world.lanes[0]);
    read_all(1);
    cpl_lanes_close(&world.lanes[1]);
    assert_int_equal(n_maps(), 0);
}

static void test_off(void **state)
{
    (void)state;
    begin(6, 3, 1);
    for (int r = 0; r < 6; r++)
        fibers_context(r)->settings.lanes = 0;
    fibers_run(open_lanes);
    for (int r = 0; r < 6; r++) {
        assert_true(world.opened[r]);
        for (int32_t e = 0; e < world.out[r].n; e++)
            assert_null(world.out[r].end[e].lane.shared);
    }
    assert_int_equal(n_maps(), 0);
    assert_int_equal(world.n_lines, 0);
}

static void open_and_fail(void)
{
    open_and_check(false);
    close_and_check();
}

/* Opens twice with a fault, and again without. Returns the lines of the log. */
static int open_with(enum fault fault, int rank, uint64_t seed)
{
    begin(9, 3, seed);
    world.fault = fault;
    world.faulty = rank;
    int64_t *bytes = &fibers_context(rank)->machine.lane_bytes;
    const int64_t open = fault == TOO_MANY ? INT64_C(1) << 30 : 0;
    *bytes = open;
    open_and_fail();
    open_and_fail();
    assert_int_equal(*bytes, open);
    int n_lines = world.n_lines;
    world.fault = NO_FAULT;
    *bytes = 0;
    open_and_check(true);
    close_and_check();
    assert_int_equal(*bytes, 0);
    assert_int_equal(world.n_lines, n_lines);
    return n_lines;
}

/* The lanes of a node are there when any of its ranks has an edge to another. */
static bool shares(int node, uint64_t seed)
{
    begin(9, 3, seed);
    for (int r = node * 3; r < node * 3 + 3; r++)
        for (int32_t e = 0; e < world.out[r].n; e++)
            if (is_shared(r, &world.out[r], e))
                return true;
    return false;
}

/* Nobody has lanes when one rank cannot; one line of a run tells the reason. */
static void test_faults(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        int rank = (int)(seed % 9), node = rank / 3;
        assert_int_equal(open_with(NOT_ABLE, rank, seed), 0); /* the caller has said why */
        if (shares(node, seed)) {
            assert_int_equal(open_with(NOT_MADE, node * 3, seed), 1);
            assert_non_null(strstr(world.line, "(no room for shared memory: "));
            assert_non_null(strstr(world.line, "CARPOOL_LANES=off"));
            if (rank % 3 > 0)
                assert_int_equal(open_with(NOT_ATTACHED, rank, seed), 1);
            assert_int_equal(open_with(TOO_MANY, rank, seed), 1);
            assert_non_null(strstr(world.line, " bytes on a node, more than 1073741824); "));
        }
        assert_int_equal(open_with(NO_SPLIT, rank, seed), 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_reader_closes_last),
        cmocka_unit_test(test_off),
        cmocka_unit_test(test_faults),
    };
    return cmocka_run_group_tests_name("lanes", tests, NULL, NULL);
}
