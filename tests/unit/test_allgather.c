/* Tests of allgathers over placed ranks (allgather.h): the heuristics and the model by hand, and
 * that nothing is ever modelled slower than with the ranks as they are. */
#include "planner/place/allgather.h"
#include "random_machine.h"
#include "random_pattern.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define MOST_RANKS 70

/* Costs that are easily added up: inside a node 1 us and 1 us/KB at each end, between nodes 4 us,
 * 10 us/KB and 20 us/KB for the node's port, with what waves add to that; 5 ns a segment. */
static struct cpl_machine make_machine(int32_t n_ranks, const int64_t *node)
{
    const struct cpl_link_cost inside = {0.5, 0.5, 0, 1}, network = {1, 1, 2, 10};
    struct cpl_machine machine;
    assert_int_equal(cpl_machine_from_places(n_ranks, node, NULL, NULL, 0, &machine, NULL), CPL_OK);
    machine.costs = (struct cpl_costs){
        .link = {inside, inside, network}, .node_ns_per_byte = 20 / CPL_WAVE_NODE, .segment_ns = 5};
    return machine;
}

static double cost(enum cpl_allgather_algorithm way, const struct cpl_machine *machine,
                   const int32_t *rank_at, bool in_order)
{
    double us = -1;
    assert_int_equal(cpl_allgather_cost(way, machine, rank_at, 1000, in_order, &us, NULL), CPL_OK);
    return us;
}

static void assert_us(double us, double expected)
{
    if (us < expected - 1e-9 || us > expected + 1e-9)
        fail_msg("%.6f us instead of %.6f", us, expected);
}

static void assert_placed(enum cpl_allgather_algorithm way, struct cpl_machine machine,
                          const int32_t *expected)
{
    int32_t rank_at[MOST_RANKS];
    assert_int_equal(cpl_allgather_place(way, &machine, rank_at, NULL), CPL_OK);
    assert_memory_equal(rank_at, expected, (size_t)machine.n_ranks * sizeof *rank_at);
    cpl_machine_free(&machine);
}

static void test_classes(void **state)
{
    (void)state;
    assert_int_equal(cpl_allgather_class_of(0), 0);
    assert_int_equal(cpl_allgather_class_of(1023), 0);
    assert_int_equal(cpl_allgather_class_of(1024), 1);
    assert_int_equal(cpl_allgather_class_of(INT64_MAX), CPL_ALLGATHER_CLASSES - 1);
    assert_true(cpl_allgather_class_most(0) == 1023);
    assert_true(cpl_allgather_class_most(CPL_ALLGATHER_CLASSES - 1) == INT64_MAX);
    for (int32_t k = 0; k + 1 < CPL_ALLGATHER_CLASSES; k++) {
        assert_int_equal(cpl_allgather_class_of(cpl_allgather_class_most(k)), k);
        assert_int_equal(cpl_allgather_class_of(cpl_allgather_class_most(k) + 1), k + 1);
    }
}

static void test_mpi(void **state)
{
    (void)state;
    assert_int_equal(cpl_allgather_mpi_algorithm(16, 100), CPL_ALLGATHER_DOUBLING);
    assert_int_equal(cpl_allgather_mpi_algorithm(16, 524287), CPL_ALLGATHER_DOUBLING);
    assert_int_equal(cpl_allgather_mpi_algorithm(16, 524288), CPL_ALLGATHER_RING);
    assert_int_equal(cpl_allgather_mpi_algorithm(17, 81919), CPL_ALLGATHER_BRUCK);
    assert_int_equal(cpl_allgather_mpi_algorithm(17, 81920), CPL_ALLGATHER_RING);
    assert_int_equal(cpl_allgather_steps(CPL_ALLGATHER_RING, 17), 16);
    assert_int_equal(cpl_allgather_steps(CPL_ALLGATHER_DOUBLING, 16), 4);
    assert_int_equal(cpl_allgather_steps(CPL_ALLGATHER_BRUCK, 17), 5);
}

/* The ring goes through a node before it leaves it. */
static void test_ring(void **state)
{
    (void)state;
    const int64_t cyclic[] = {0, 1, 0, 1}, block[] = {0, 0, 1, 1};
    assert_placed(CPL_ALLGATHER_RING, make_machine(4, cyclic), (const int32_t[]){0, 2, 1, 3});
    assert_placed(CPL_ALLGATHER_RING, make_machine(4, block), (const int32_t[]){0, 1, 2, 3});
    struct cpl_machine machine = make_machine(4, cyclic);
    /* all links are between nodes: 4 us, and two KB through each interface; three steps */
    assert_us(cost(CPL_ALLGATHER_RING, &machine, NULL, true), 3 * (4 + 40));
    /* each rank has one KB inside the node, one through the interface; around the ring, but for one
     * link inside a node: two links of 4 us, one of 1 us */
    assert_us(cost(CPL_ALLGATHER_RING, &machine, (const int32_t[]){0, 2, 1, 3}, true),
              4 + 1 + 4 + 3 * (1 + 20));
    cpl_machine_free(&machine);
}

/* What is exchanged last, which is most, stays inside the nodes. */
static void test_doubling(void **state)
{
    (void)state;
    const int64_t cyclic[] = {0, 1, 0, 1}, block[] = {0, 0, 1, 1};
    const int32_t spread[] = {0, 2, 1, 3};
    assert_placed(CPL_ALLGATHER_DOUBLING, make_machine(4, block), spread);
    assert_placed(CPL_ALLGATHER_DOUBLING, make_machine(4, cyclic), (const int32_t[]){0, 1, 2, 3});
    struct cpl_machine machine = make_machine(4, block);
    /* a KB each way inside the node, then two by every rank between the nodes */
    assert_us(cost(CPL_ALLGATHER_DOUBLING, &machine, NULL, true), (1 + 2) + (4 + 80));
    assert_us(cost(CPL_ALLGATHER_DOUBLING, &machine, spread, true), (4 + 40) + (1 + 4));
    assert_us(cost(CPL_ALLGATHER_DOUBLING, &machine, spread, false), 49 + 4 * 1.005);
    cpl_machine_free(&machine);
}

/* Six ranks fold on four corners. Rank 1 shares corner 0 with rank 0; corner 2 is next to it; then
 * corner 1, whose second rank is next to its first, and corner 3. */
static void test_folding(void **state)
{
    (void)state;
    const int64_t node[] = {0, 0, 0, 1, 1, 1};
    assert_placed(CPL_ALLGATHER_DOUBLING, make_machine(6, node),
                  (const int32_t[]){1, 0, 4, 3, 2, 5});
    struct cpl_machine machine = make_machine(3, node);
    /* one KB is handed over; two against one; three come back */
    assert_us(cost(CPL_ALLGATHER_DOUBLING, &machine, NULL, true), (1 + 1) + (1 + 3) + (1 + 3));
    /* Bruck: one KB each way, twice */
    assert_us(cost(CPL_ALLGATHER_BRUCK, &machine, NULL, true), 2 * (1 + 2));
    assert_int_equal(cpl_allgather_place(CPL_ALLGATHER_BRUCK, &machine, NULL, NULL), CPL_ERR_ARG);
    cpl_machine_free(&machine);
}

static void set_distances(struct cpl_machine *machine, float *us)
{
    struct cpl_distances distances = {.n_ranks = machine->n_ranks, .us = us};
    assert_int_equal(cpl_machine_set_distances(machine, &distances, NULL, NULL), CPL_OK);
}

/* Measured distances that contradict the nodes decide where the ranks go, and are charged. */
static void test_distances(void **state)
{
    (void)state;
    const int64_t node[] = {0, 0, 0, 0};
    float us[] = {0, 5, 4, 1, 9, 0, 9, 9, 4, 9, 0, 8, 3, 1, 2, 0};
    const int32_t expected[] = {0, 3, 1, 2};
    int32_t rank_at[4];
    struct cpl_machine machine = make_machine(4, node);
    set_distances(&machine, us);
    assert_int_equal(cpl_allgather_place(CPL_ALLGATHER_RING, &machine, rank_at, NULL), CPL_OK);
    assert_memory_equal(rank_at, expected, sizeof expected);
    /* all messages of the ring but the one that takes least */
    assert_us(cost(CPL_ALLGATHER_RING, &machine, rank_at, true), 1 + 9 + 4 + 3 * 2);
    assert_us(cost(CPL_ALLGATHER_RING, &machine, NULL, true), 5 + 9 + 8 + 3 * 2);
    cpl_machine_free(&machine);
}

/* Four islands of four ranks on one node, dealt in turn, which only distances show: 1 us inside, 20
 * between. MPI's ring crosses at each step, the placed one four times in all. */
static void test_islands(void **state)
{
    (void)state;
    int64_t node[16] = {0};
    float us[16 * 16];
    int32_t rank_at[CPL_N_ALLGATHER_ALGORITHMS * 16];
    struct cpl_allgather_class classes[CPL_ALLGATHER_CLASSES];
    for (int32_t i = 0; i < 16; i++)
        for (int32_t j = 0; j < 16; j++)
            us[i * 16 + j] = i == j ? 0 : i % 4 == j % 4 ? 1 : 20;
    struct cpl_machine machine = make_machine(16, node);
    set_distances(&machine, us);
    assert_int_equal(cpl_allgather_place(CPL_ALLGATHER_RING, &machine, rank_at, NULL), CPL_OK);
    assert_us(cost(CPL_ALLGATHER_RING, &machine, NULL, true), 15 * (20 + 2));
    assert_us(cost(CPL_ALLGATHER_RING, &machine, rank_at, true), 4 * 20 + 11 * 1 + 15 * 2);
    assert_int_equal(cpl_allgather_plan(&machine, rank_at, classes, NULL), CPL_OK);
    int32_t large = cpl_allgather_class_of(1 << 20);
    assert_true(classes[large].placed[CPL_ALLGATHER_RING]);
    assert_true(classes[large].us[CPL_ALLGATHER_RING] < classes[large].mpi_us);
    cpl_machine_free(&machine);
}

/* Two switches of four nodes, dealt in blocks: messages take as long everywhere, bytes ten times as
 * long between the switches. MPI's doubling takes its last, largest step there; the placed one its
 * first. */
static void test_switches(void **state)
{
    (void)state;
    const int64_t node[] = {0, 1, 2, 3, 4, 5, 6, 7};
    float us[8 * 8], ns[8 * 8];
    int32_t rank_at[CPL_N_ALLGATHER_ALGORITHMS * 8];
    struct cpl_allgather_class classes[CPL_ALLGATHER_CLASSES];
    for (int32_t k = 0; k < 8 * 8; k++) {
        bool same = k / 8 / 4 == k % 8 / 4;
        us[k] = k / 8 == k % 8 ? 0 : 30;
        ns[k] = k / 8 == k % 8 ? 0 : same ? 10 : 100;
    }
    struct cpl_machine machine = make_machine(8, node);
    machine.costs.node_ns_per_byte = 0;
    struct cpl_distances distances = {.n_ranks = 8, .us = us, .ns_per_byte = ns};
    assert_int_equal(cpl_machine_set_distances(&machine, &distances, NULL, NULL), CPL_OK);
    assert_int_equal(cpl_allgather_place(CPL_ALLGATHER_DOUBLING, &machine, rank_at, NULL), CPL_OK);
    assert_us(cost(CPL_ALLGATHER_DOUBLING, &machine, NULL, true), 3 * 30 + 10 + 20 + 400);
    assert_us(cost(CPL_ALLGATHER_DOUBLING, &machine, rank_at, true), 3 * 30 + 100 + 20 + 40);
    assert_int_equal(cpl_allgather_plan(&machine, rank_at, classes, NULL), CPL_OK);
    int32_t middle = cpl_allgather_class_of(300000);
    assert_true(classes[middle].placed[CPL_ALLGATHER_DOUBLING]);
    assert_true(classes[middle].us[CPL_ALLGATHER_DOUBLING] < 0.6 * classes[middle].mpi_us);
    cpl_machine_free(&machine);
}

static void assert_permutation(const int32_t *rank_at, int32_t n_ranks)
{
    bool seen[MOST_RANKS] = {false};
    for (int32_t point = 0; point < n_ranks; point++) {
        if (rank_at[point] < 0 || rank_at[point] >= n_ranks || seen[rank_at[point]])
            fail_msg("point %d of %d is rank %d", point, n_ranks, rank_at[point]);
        seen[rank_at[point]] = true;
    }
}

/* In every class a way costs what it does with the placement that is said, and is never dearer than
 * with the ranks as they are. Returns how often ranks are placed. */
static int check_plan(const struct cpl_machine *machine)
{
    int32_t n = machine->n_ranks, n_placed = 0, rank_at[CPL_N_ALLGATHER_ALGORITHMS * MOST_RANKS];
    struct cpl_allgather_class classes[CPL_ALLGATHER_CLASSES];
    assert_int_equal(cpl_allgather_plan(machine, rank_at, classes, NULL), CPL_OK);
    for (int w = 0; w < CPL_N_ALLGATHER_ALGORITHMS; w++) {
        assert_permutation(rank_at + w * n, n);
        for (int32_t k = 0; k < CPL_ALLGATHER_CLASSES; k++) {
            double all = (k > 0 ? 1.5 : 1) * (double)(INT64_C(512) << k), plain, placed;
            enum cpl_allgather_algorithm way = (enum cpl_allgather_algorithm)w;
            bool in_order = cpl_allgather_is_in_place(way);
            cpl_allgather_cost(way, machine, NULL, all / n, true, &plain, NULL);
            cpl_allgather_cost(way, machine, rank_at + w * n, all / n, in_order, &placed, NULL);
            assert_true(classes[k].us[w] <= plain);
            assert_int_equal(classes[k].placed[w], placed < plain);
            assert_us(classes[k].us[w], placed < plain ? placed : plain);
            assert_int_equal(classes[k].mpi_algorithm, cpl_allgather_mpi_algorithm(n, all));
            n_placed += classes[k].placed[w];
        }
    }
    return n_placed;
}

static void test_never_worse(void **state)
{
    (void)state;
    static float us[MOST_RANKS * MOST_RANKS];
    uint64_t random = 7;
    int n_placed = 0;
    for (int32_t n = 1; n <= MOST_RANKS; n++) {
        struct cpl_machine machine = random_machine(&random, n);
        n_placed += check_plan(&machine);
        for (int32_t k = 0; k < n * n; k++)
            us[k] = (float)(1 + random_below(&random, 20));
        set_distances(&machine, us);
        n_placed += check_plan(&machine);
        cpl_machine_free(&machine);
    }
    assert_in_range(n_placed, MOST_RANKS * CPL_ALLGATHER_CLASSES,
                    4 * MOST_RANKS * CPL_ALLGATHER_CLASSES - 1);
}

/* 128 ranks on 4 nodes of the default machine: with the ranks dealt in turn large calls gain by the
 * ring; in blocks the ring is theirs already, and calls below MPI's threshold gain by doubling. */
static void test_gain(void **state)
{
    (void)state;
    int64_t cyclic[128], block[128];
    int32_t rank_at[CPL_N_ALLGATHER_ALGORITHMS * 128], large = cpl_allgather_class_of(4 << 20);
    int32_t small = cpl_allgather_class_of(300000);
    struct cpl_allgather_class classes[CPL_ALLGATHER_CLASSES];
    struct cpl_machine machine;
    for (int i = 0; i < 128; i++) {
        cyclic[i] = i % 4;
        block[i] = i / 32;
    }
    cpl_machine_from_places(128, cyclic, NULL, NULL, 0, &machine, NULL);
    assert_int_equal(cpl_allgather_plan(&machine, rank_at, classes, NULL), CPL_OK);
    assert_true(classes[large].us[CPL_ALLGATHER_RING] < 0.9 * classes[large].mpi_us);
    /* the ranks lie as MPI's doubling likes them, and so does the data */
    assert_false(classes[small].placed[CPL_ALLGATHER_DOUBLING]);
    assert_us(classes[small].us[CPL_ALLGATHER_DOUBLING], classes[small].mpi_us);
    cpl_machine_free(&machine);
    cpl_machine_from_places(128, block, NULL, NULL, 0, &machine, NULL);
    assert_int_equal(cpl_allgather_plan(&machine, rank_at, classes, NULL), CPL_OK);
    assert_us(classes[large].us[CPL_ALLGATHER_RING], classes[large].mpi_us);
    assert_true(classes[small].us[CPL_ALLGATHER_DOUBLING] < 0.9 * classes[small].mpi_us);
    cpl_machine_free(&machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_classes),     cmocka_unit_test(test_mpi),
        cmocka_unit_test(test_ring),        cmocka_unit_test(test_doubling),
        cmocka_unit_test(test_folding),     cmocka_unit_test(test_distances),
        cmocka_unit_test(test_islands),     cmocka_unit_test(test_switches),
        cmocka_unit_test(test_never_worse), cmocka_unit_test(test_gain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
