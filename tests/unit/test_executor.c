/* Tests of the executor (shim/carry/executor.h): ranks in one process exchange by random plans over
 * a network that delays what it likes. Every payload arrives once, byte for byte, whatever the
 * sizes, whether the ranks wait or poll; and an error on one rank is told to that rank, while the
 * others get what they are owed. */
#include "shim/carry/executor.h"

#include "../failing_heap.h"
#include "fibers.h"
#include "mock_lanes.h"
#include "mock_mpi.h"
#include "planner/rank_plan.h"
#include "plans.h"
#include "random_pattern.h"
#include "shim/wait/collective.h"
#include "shim/wait/progress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_RANKS = FIBERS_MOST, MOST_ROW = 64, EXCHANGES = 12, MOST_SIZE = 5000, NONE = -1 };
enum { PACK_ERROR = 1001, DELIVER_ERROR = 1002 };

/* What one rank is told to do wrong, and where. */
struct fault {
    int rank, exchange;
    int32_t pack, deliver_from; /* a payload; an owner; NONE */
};

static struct {
    uint64_t seed;
    struct cpl_pattern pattern;
    struct cpl_plan plan;
    struct cpl_executor *executor[MOST_RANKS];
    struct fault fault;
    int result[MOST_RANKS]; /* of the faulty exchange */
    int n_exchanges;
    int exchange[MOST_RANKS];          /* that each rank is in */
    bool came[MOST_RANKS][MOST_RANKS]; /* by owner and destination, in its exchange */
    bool reorders;
} world;

/* ---- what the executor calls ---- */

int cpl_collective_waitsome(int n, MPI_Request requests[], int *n_done, int indices[],
                            MPI_Status statuses[])
{
    int code = MPI_SUCCESS;
    while ((code = PMPI_Testsome(n, requests, n_done, indices, statuses)) == MPI_SUCCESS &&
           *n_done == 0)
        fibers_yield();
    return code;
}

int cpl_collective_waitall(int n, MPI_Request requests[], MPI_Status statuses[])
{
    int result = MPI_SUCCESS;
    assert_ptr_equal(statuses, MPI_STATUSES_IGNORE);
    for (int k = 0; k < n; k++) {
        int done = 0, code = MPI_SUCCESS;
        while (!done && (code = PMPI_Test(&requests[k], &done, MPI_STATUS_IGNORE)) == MPI_SUCCESS)
            if (!done)
                fibers_yield();
        result = code != MPI_SUCCESS ? code : result;
    }
    return result;
}

void cpl_progress_pause(int n)
{
    (void)n;
    fibers_yield();
}

/* ---- payloads ---- */

/* What names the payload of a rank's k-th message: messages of one class have the same one. */
static int64_t key_of(int rank, int64_t k)
{
    const struct cpl_pattern *p = &world.pattern;
    int64_t m = p->first[rank] + k;
    return p->payload_class && p->payload_class[m] >= 0 ? MOST_ROW + p->payload_class[m] : k;
}

/* Its bytes in an exchange; returns their number, or CPL_STRAIGHT. */
static int64_t make_payload(int exchange, int owner, int64_t key, unsigned char *to)
{
    uint64_t random = world.seed + (uint64_t)((exchange * 100 + owner) * 1000) + (uint64_t)key;
    uint64_t other = random_draw(&random, 1000) + (uint64_t)exchange;
    int64_t n = 0;
    switch (exchange % 3 == 2 ? random_draw(&other, 6) : 9) { /* else as the time before */
    case 0:
        return CPL_STRAIGHT;
    case 1:
        n = 0;
        break;
    case 2:
        n = (int64_t)random_draw(&other, MOST_SIZE);
        break;
    default:
        n = (owner * 7 + key * 5) % 40;
    }
    for (int64_t k = 0; k < n && to; k++)
        to[k] = (unsigned char)random_draw(&random, 256);
    return n;
}

static bool is_faulty(int rank)
{
    return world.fault.rank == rank && world.fault.exchange == world.exchange[rank];
}

static int64_t size(void *context, int32_t k)
{
    int r = *(int *)context;
    assert_int_equal(r, fibers_rank());
    return make_payload(world.exchange[r], r, key_of(r, k), NULL);
}

static int pack(void *context, int32_t k, unsigned char *to)
{
    int r = *(int *)context;
    int64_t n = make_payload(world.exchange[r], r, key_of(r, k), to);
    assert_true(n > 0); /* nobody asks for what does not ride */
    bool fails =
        is_faulty(r) && world.fault.pack != NONE && key_of(r, world.fault.pack) == key_of(r, k);
    return fails ? PACK_ERROR : MPI_SUCCESS;
}

static int64_t find_message(int owner, int dest)
{
    const struct cpl_pattern *p = &world.pattern;
    for (int64_t m = p->first[owner]; m < p->first[owner + 1]; m++)
        if (p->dst[m] == dest)
            return m - p->first[owner];
    fail_msg("%d has no message for %d", owner, dest);
    return NONE;
}

static int deliver(void *context, int32_t owner, const unsigned char *data, int64_t bytes)
{
    static unsigned char expected[MOST_SIZE];
    int r = *(int *)context;
    int64_t key = key_of(owner, find_message(owner, r));
    int64_t n = make_payload(world.exchange[r], owner, key, expected);
    assert_false(world.came[owner][r]);
    world.came[owner][r] = true;
    assert_int_equal(bytes, n);
    if (n > 0)
        assert_memory_equal(data, expected, (size_t)n);
    return is_faulty(r) && world.fault.deliver_from == owner ? DELIVER_ERROR : MPI_SUCCESS;
}

/* ---- ranks ---- */

static void reverse(struct cpl_relay *relay)
{
    for (int32_t low = 0, high = relay->n_first - 1; low < high; low++, high--) {
        int32_t edge = relay->own[low];
        relay->own[low] = relay->own[high];
        relay->own[high] = edge;
    }
}

static void run_one(int r, int x)
{
    struct cpl_executor *e = world.executor[r];
    const struct cpl_payloads payloads = {&r, size, pack, deliver};
    int result = NONE;
    world.exchange[r] = x;
    if (world.reorders && x == 4)
        reverse(cpl_executor_relay(e));
    cpl_executor_start(e, &payloads);
    if (fibers_draw(2))
        result = cpl_executor_wait(e);
    else
        while (!cpl_executor_progress(e, &result))
            fibers_yield();
    if (x == world.fault.exchange)
        world.result[r] = result;
    else
        assert_int_equal(result, MPI_SUCCESS);
    for (int owner = 0; owner < world.pattern.n_ranks; owner++)
        for (int64_t m = world.pattern.first[owner]; m < world.pattern.first[owner + 1]; m++)
            if (world.pattern.dst[m] == r && !is_faulty(r))
                assert_true(world.came[owner][r]);
    for (int owner = 0; owner < world.pattern.n_ranks; owner++)
        world.came[owner][r] = false;
}

static void program(int r)
{
    for (int x = 0; x < world.n_exchanges; x++)
        run_one(r, x);
}

static int32_t *slice(struct cpl_slicer *slicer, int r, int32_t *n_words)
{
    struct cpl_error error = {""};
    assert_int_equal(cpl_slicer_words(slicer, r, n_words, &error), CPL_OK);
    int32_t *words = malloc((size_t)*n_words * sizeof *words);
    assert_non_null(words);
    cpl_slicer_extract(slicer, r, words);
    return words;
}

/* Executors of all ranks for a pattern, which is taken over. */
static void begin_with(struct cpl_pattern pattern, struct cpl_plan plan, uint64_t seed)
{
    struct cpl_slicer slicer;
    struct cpl_error error = {""};
    memset(&world, 0, sizeof world);
    world.seed = seed;
    world.fault = (struct fault){NONE, NONE, NONE, NONE};
    world.n_exchanges = EXCHANGES;
    world.pattern = pattern;
    world.plan = plan;
    fibers_begin(pattern.n_ranks, seed);
    mock_begin(pattern.n_ranks, seed);
    assert_int_equal(cpl_slicer_init(&slicer, &world.plan, &world.pattern, &error), CPL_OK);
    for (int r = 0; r < pattern.n_ranks; r++) {
        int32_t n_words, *words = slice(&slicer, r, &n_words);
        world.executor[r] = cpl_executor_create(words, n_words, mock_comm(r), 0);
        assert_non_null(world.executor[r]);
    }
    cpl_slicer_free(&slicer);
    mock_lanes_begin(0);
}

/* Lanes for edges between ranks of a node: as many ranks as the seed says. */
static void open_lanes(uint64_t seed)
{
    mock_lanes_begin((int)(seed % 5));
    for (int r = 0; r < world.pattern.n_ranks; r++)
        cpl_executor_open_lanes(world.executor[r], mock_comm(r));
}

static void begin(uint64_t seed)
{
    uint64_t random = seed;
    struct cpl_pattern pattern = random_pattern_undivided(seed, MOST_RANKS);
    for (int r = 0; r < pattern.n_ranks; r++) /* volumes may be beyond what MPI can count */
        assert_in_range(pattern.first[r + 1] - pattern.first[r], 0, MOST_ROW);
    for (int64_t m = 0; m < pattern.n_messages; m++)
        pattern.volume[m] %= 60;
    begin_with(pattern, make_random_plan(&pattern, 1 + random_below(&random, 3), seed), seed);
}

/* Returns how many lanes there were. */
static int end(void)
{
    for (int r = 0; r < world.pattern.n_ranks; r++)
        cpl_executor_destroy(world.executor[r]);
    mock_end();
    cpl_plan_free(&world.plan);
    cpl_pattern_free(&world.pattern);
    return mock_lanes_end();
}

/* ---- tests ---- */

static void test_random_plans(void **state)
{
    (void)state;
    int64_t n_forwarded = 0, n_messages = 0, n_lanes = 0, n_sent = 0, n_edges = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        begin(seed);
        open_lanes(seed);
        fibers_run(program);
        for (int r = 0; r < world.pattern.n_ranks; r++) {
            assert_int_equal(world.exchange[r], EXCHANGES - 1);
            n_forwarded += cpl_executor_relay(world.executor[r])->forwarded;
        }
        n_messages += world.pattern.n_messages;
        n_edges += world.plan.n_edges;
        n_sent += mock_n_sent();
        n_lanes += end();
    }
    assert_true(n_forwarded > 100000 && n_messages > 1000);
    assert_true(n_lanes > 500 && n_sent < (n_edges - n_lanes / 2) * EXCHANGES);
}

/* The same number of messages in any order of the first ones, which need not be told to others. */
static void test_orders(void **state)
{
    (void)state;
    int n_ordered = 0;
    for (uint64_t seed = 300; seed < 400; seed++) {
        begin(seed);
        open_lanes(seed);
        int64_t n_sends = 0;
        for (int r = 0; r < world.pattern.n_ranks; r++) {
            const struct cpl_relay *relay = cpl_executor_relay(world.executor[r]);
            n_sends += relay->slice.n_out;
            n_ordered += relay->n_first > 1;
        }
        assert_int_equal(n_sends, world.plan.n_edges);
        world.reorders = true;
        fibers_run(program);
        end();
    }
    assert_true(n_ordered > 100);
}

/* A rank that does not pack or take one payload tells of it; all others get theirs. The payload is
 * packed here nevertheless, so that it can be compared. */
static void test_faulty_callbacks(void **state)
{
    (void)state;
    int n_pack = 0, n_deliver = 0;
    for (uint64_t seed = 400; seed < 600; seed++) {
        uint64_t random = seed;
        begin(seed);
        open_lanes(seed);
        int who = random_below(&random, world.pattern.n_ranks), n_errors = 0;
        int32_t n = (int32_t)(world.pattern.first[who + 1] - world.pattern.first[who]);
        world.fault = (struct fault){who, EXCHANGES / 2, NONE, NONE};
        if (seed % 2 && n > 0)
            world.fault.pack = random_below(&random, n);
        else
            world.fault.deliver_from = random_below(&random, world.pattern.n_ranks);
        fibers_run(program);
        for (int r = 0; r < world.pattern.n_ranks; r++) {
            n_errors += world.result[r] != MPI_SUCCESS;
            n_pack += world.result[r] == PACK_ERROR;
            n_deliver += world.result[r] == DELIVER_ERROR;
            assert_true(r == who || world.result[r] == MPI_SUCCESS);
        }
        assert_true(n_errors <= 1);
        end();
    }
    assert_true(n_pack > 20 && n_deliver > 20);
}

/* An in-edge of a rank that nothing waits for; NONE: there is none. */
static int find_last_edge(int r)
{
    struct cpl_slicer slicer;
    struct cpl_error error = {""};
    struct cpl_rank_plan p;
    int32_t n_words, found = NONE;
    assert_int_equal(cpl_slicer_init(&slicer, &world.plan, &world.pattern, &error), CPL_OK);
    int32_t *words = slice(&slicer, r, &n_words);
    assert_int_equal(cpl_rank_plan_view(words, n_words, &p, &error), CPL_OK);
    for (int32_t e = 0; e < p.n_in && found == NONE; e++)
        if (p.in_feed_first[e + 1] == p.in_feed_first[e])
            found = e;
    free(words);
    cpl_slicer_free(&slicer);
    return found;
}

/* One call of MPI fails on one rank, at the first exchange or a later one: this rank is told, takes
 * everything else and passes it on. */
static void test_errors_of_mpi(void **state)
{
    (void)state;
    static const enum mock_call calls[] = {MOCK_IRECV, MOCK_TESTSOME, MOCK_TEST};
    int n_told[MOCK_N_CALLS] = {0};
    for (uint64_t seed = 600; seed < 900; seed++) {
        uint64_t random = seed;
        enum mock_call call = calls[seed % 3];
        begin(seed);
        int who = random_below(&random, world.pattern.n_ranks), edge = find_last_edge(who);
        bool all_last = true; /* whatever comes first */
        for (int r = 0; r < world.pattern.n_ranks; r++)
            for (int64_t e = 0; e < world.plan.n_edges; e++)
                all_last &= world.plan.edges[e].wave == world.plan.edges[0].wave;
        if ((call == MOCK_IRECV && edge == NONE) || (call == MOCK_TESTSOME && !all_last)) {
            end();
            continue;
        }
        world.n_exchanges = world.fault.exchange = 0;
        if (seed % 2) { /* where requests hold what is left of an earlier exchange */
            world.fault.exchange = NONE;
            world.n_exchanges = 2;
            fibers_run(program);
            world.fault.exchange = 0;
        }
        world.n_exchanges = 1;
        world.fault.rank = who;
        mock_fail(call, who, call == MOCK_IRECV ? edge : 0);
        fibers_run(program);
        for (int r = 0; r < world.pattern.n_ranks; r++) {
            assert_true(r == who || world.result[r] == MPI_SUCCESS);
            n_told[call] += world.result[r] == MOCK_ERROR;
            assert_true(world.result[r] == MPI_SUCCESS || world.result[r] == MOCK_ERROR);
        }
        if (call == MOCK_IRECV) {
            assert_int_equal(world.result[who], MOCK_ERROR);
            mock_discard();
        }
        end();
    }
    for (int k = 0; k < 3; k++)
        assert_true(n_told[calls[k]] > 10);
}

/* ---- two ranks, by hand ---- */

static struct cpl_pattern two_ranks(void)
{
    const struct cpl_pattern_entry entries[] = {MESSAGE(0, 1, 8)};
    return make_pattern(2, entries, N_OF(entries));
}

static void begin_pair(void)
{
    static const int32_t stops[] = {1};
    struct cpl_pattern pattern = two_ranks();
    begin_with(pattern, make_plan(&pattern, 1, stops), 1);
}

static unsigned char forged[64];
static int forged_bytes;

static void forge_or_take(int r)
{
    static int who = 1;
    const struct cpl_payloads payloads = {&who, size, pack, deliver};
    if (r == 0) {
        MPI_Request request;
        int done = 0;
        PMPI_Isend(forged, forged_bytes, MPI_BYTE, 1, 1, mock_comm(0), &request);
        while (!done) {
            PMPI_Test(&request, &done, MPI_STATUS_IGNORE);
            fibers_yield();
        }
        return;
    }
    world.fault.rank = 1;
    cpl_executor_start(world.executor[1], &payloads);
    world.result[1] = cpl_executor_wait(world.executor[1]);
}

static int forge(uint32_t flags, uint32_t exchange, uint32_t length, int n_bytes)
{
    const uint32_t words[] = {flags, exchange, length, 0, 0};
    begin_pair();
    memcpy(forged, words, sizeof words);
    forged_bytes = n_bytes;
    fibers_run(forge_or_take);
    bool came = world.came[0][1];
    int result = world.result[1];
    assert_true(!came || result == MPI_SUCCESS);
    end();
    return result;
}

/* The first of two messages does not leave: the second one does. */
static void send_or_take(int r)
{
    int who = r;
    const struct cpl_payloads payloads = {&who, size, pack, deliver};
    if (r == 1)
        return; /* it would wait for ever */
    cpl_executor_start(world.executor[r], &payloads);
    world.result[r] = cpl_executor_wait(world.executor[r]);
}

static void test_failing_send(void **state)
{
    (void)state;
    const struct cpl_pattern_entry entries[] = {MESSAGE(0, 1, 8), MESSAGE(0, 2, 8)};
    static const int32_t stops[] = {1, 2};
    struct cpl_pattern pattern = make_pattern(3, entries, N_OF(entries));
    begin_with(pattern, make_plan(&pattern, 1, stops), 5);
    const struct cpl_relay *relay = cpl_executor_relay(world.executor[0]);
    assert_int_equal(relay->n_first, 2);
    mock_fail(MOCK_ISEND, 0, relay->slice.out_to[relay->own[0]] == 1 ? 0 : 1);
    fibers_run(send_or_take);
    assert_int_equal(world.result[0], MOCK_ERROR);
    assert_int_equal(world.result[2], MPI_SUCCESS);
    assert_true(world.came[0][2]);
    end();
}

/* Damaged messages are found, and nothing is delivered; the size of payload 0 of rank 0 in the
 * exchange is 0: none of these is what it sends. */
static void test_damaged_messages(void **state)
{
    (void)state;
    assert_int_equal(forge(1, 1, 8, 16), MPI_ERR_INTERN);             /* too long for its table */
    assert_int_equal(forge(1, 1, 8, 4 * 5 - 12 + 2), MPI_ERR_INTERN); /* shorter than the table */
    assert_int_equal(forge(1, 2, 8, 20), MPI_ERR_INTERN);             /* of another exchange */
    assert_int_equal(forge(0, 1, 0, 8), MPI_ERR_INTERN);              /* the first has a table */
    assert_int_equal(forge(1, 1, 0x7fffffff, 20), MPI_ERR_INTERN);    /* beyond its end */
}

/* Nothing is left behind when there is no memory, or the slice is damaged. */
static void test_create_without_memory(void **state)
{
    (void)state;
    int64_t n_live = heap.n_live, n_failed = 0;
    begin(7);
    struct cpl_slicer slicer;
    struct cpl_error error = {""};
    assert_int_equal(cpl_slicer_init(&slicer, &world.plan, &world.pattern, &error), CPL_OK);
    for (int64_t at = 1;; at++) {
        int32_t n_words, *words = slice(&slicer, 0, &n_words);
        heap = (struct failing_heap){.counts = true, .fail_at = at, .n_live = heap.n_live};
        struct cpl_executor *executor = cpl_executor_create(words, n_words, mock_comm(0), 0);
        heap.counts = false;
        cpl_executor_destroy(executor);
        if (executor)
            break;
        n_failed++;
    }
    int32_t n_words, *words = slice(&slicer, 0, &n_words);
    assert_null(cpl_executor_create(words, n_words - 1, mock_comm(0), 0));
    cpl_slicer_free(&slicer);
    end();
    assert_true(n_failed >= 2); /* the executor, its arrays; buffers, if it has edges */
    assert_int_equal(heap.n_live, n_live);
}

/* Payloads outgrow their room while there is no memory for a time: they arrive nevertheless. */
static void test_run_without_memory(void **state)
{
    (void)state;
    int64_t n_failed = 0;
    for (uint64_t seed = 900; seed < 1000; seed++) {
        begin(seed);
        open_lanes(seed);
        heap = (struct failing_heap){
            .counts = true, .fail_at = 1 + (int64_t)(seed % 16), .n_live = heap.n_live};
        fibers_run(program);
        heap.counts = false;
        n_failed += heap.n_failed;
        end();
    }
    assert_true(n_failed > 20);
}

static void test_counts_work(void **state)
{
    (void)state;
    const struct cpl_pattern_entry entries[] = {MESSAGE(0, 1, 8), MESSAGE(0, 2, 8)};
    struct cpl_pattern pattern = make_pattern(3, entries, N_OF(entries));
    const int32_t by_way[] = {1, 1, 1, 2};
    begin_with(pattern, make_plan(&pattern, 2, by_way), 3);
    fibers_run(program);
    int64_t of_second = 0;
    for (int x = 0; x < EXCHANGES; x++) {
        int64_t n = make_payload(x, 0, key_of(0, 1), NULL);
        of_second += n > 0 ? n : 0;
    }
    assert_true(of_second > 0);
    assert_int_equal(cpl_executor_relay(world.executor[0])->forwarded, 0);
    assert_int_equal(cpl_executor_relay(world.executor[1])->forwarded, of_second);
    assert_int_equal(cpl_executor_relay(world.executor[2])->forwarded, 0);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_plans),          cmocka_unit_test(test_orders),
        cmocka_unit_test(test_faulty_callbacks),      cmocka_unit_test(test_errors_of_mpi),
        cmocka_unit_test(test_failing_send),          cmocka_unit_test(test_damaged_messages),
        cmocka_unit_test(test_create_without_memory), cmocka_unit_test(test_run_without_memory),
        cmocka_unit_test(test_counts_work),
    };
    return cmocka_run_group_tests_name("executor", tests, NULL, NULL);
}
