/* bench/yield_fabric.c: reads of completion queues are noticed through all the tables that lie
 * between fi_fabric and a queue, and do what they did; a provider's own use is not noticed. */
#include "bench/yield.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include <cmocka.h>

/* As rdma/fabric.h, fi_domain.h and fi_eq.h have them. */
struct object {
    size_t class;
    void *context;
    const void *common;
    const void *own;
};

int fi_fabric(void *attributes, struct object **fabric, void *context);

typedef int make(struct object *from, void *what, struct object **made, void *context);

struct common_table {
    size_t size;
    int (*close)(struct object *object);
    void *bind;
};
struct fabric_table {
    size_t size;
    make *domain;
    void *others[5];
};
struct domain_table {
    size_t size;
    void *av_open;
    make *cq_open;
    void *others[7];
};
struct queue_table {
    size_t size;
    ssize_t (*read)(struct object *queue, void *entries, size_t count);
    void *others[6];
};

static struct {
    int n_found, n_idle, n_ended, n_closed;
    ssize_t result;
    void *info;
    size_t count;
} seen;

static struct object the_fabric, the_domain, the_queue, inner_fabric;
static int another; /* what other rows of the tables point to */

void cpl_yield_progressed(bool found)
{
    seen.n_found += found;
    seen.n_idle += !found;
}

void cpl_yield_end(void)
{
    seen.n_ended++;
}

static ssize_t read_queue(struct object *queue, void *entries, size_t count)
{
    assert_ptr_equal(queue, &the_queue);
    assert_ptr_equal(entries, &seen);
    seen.count = count;
    return seen.result;
}

static int close_queue(struct object *queue)
{
    assert_ptr_equal(queue, &the_queue);
    seen.n_closed++;
    return 5;
}

static const struct common_table common = {sizeof common, close_queue, &another};
static const struct queue_table queue_rows = {sizeof queue_rows, read_queue, {&another}};

static int open_queue(struct object *domain, void *what, struct object **made, void *context)
{
    assert_ptr_equal(domain, &the_domain);
    seen.info = what;
    if (!what)
        return -22;
    the_queue = (struct object){3, context, &common, &queue_rows};
    *made = &the_queue;
    return 0;
}

static const struct domain_table domain_rows = {
    sizeof domain_rows, &another, open_queue, {&another}};

static int open_domain(struct object *fabric, void *what, struct object **made, void *context)
{
    assert_true(fabric == &the_fabric || fabric == &inner_fabric);
    seen.info = what;
    the_domain = (struct object){2, context, &common, &domain_rows};
    *made = &the_domain;
    return 0;
}

static const struct fabric_table fabric_rows = {sizeof fabric_rows, open_domain, {&another}};
static const struct fabric_table short_rows = {sizeof(size_t), NULL, {NULL}};

/* A provider that is built on another one, which it asks for by the same function. */
static int make_fabric(void *attributes, struct object **made, void *context)
{
    struct object *inner;
    if (!attributes)
        return -61;
    if (strcmp(attributes, "inner") == 0) {
        inner_fabric = (struct object){1, context, &common, &fabric_rows};
        *made = &inner_fabric;
        return 0;
    }
    assert_int_equal(fi_fabric("inner", &inner, NULL), 0);
    the_fabric = (struct object){1, context, &common,
                                 strcmp(attributes, "short") == 0 ? &short_rows : &fabric_rows};
    *made = &the_fabric;
    return 0;
}

bool cpl_yield_look_up(const char *symbol, const char *library, void *function)
{
    int (*made)(void *, struct object **, void *) = make_fabric;
    assert_string_equal(symbol, "fi_fabric");
    assert_string_equal(library, "libfabric.so.1");
    memcpy(function, &made, sizeof made);
    return true;
}

static struct object *open_all(void)
{
    struct object *fabric, *domain, *queue;
    memset(&seen, 0, sizeof seen);
    assert_int_equal(fi_fabric("outer", &fabric, NULL), 0);
    assert_ptr_equal(fabric, &the_fabric);
    const struct fabric_table *of_fabric = fabric->own;
    assert_ptr_equal(of_fabric->others[0], &another);
    assert_int_equal(of_fabric->domain(fabric, &another, &domain, NULL), 0);
    assert_ptr_equal(domain, &the_domain);
    assert_ptr_equal(seen.info, &another);
    const struct domain_table *of_domain = domain->own;
    assert_ptr_equal(of_domain->av_open, &another);
    assert_ptr_equal(of_domain->others[0], &another);
    assert_int_equal(of_domain->cq_open(domain, NULL, &queue, NULL), -22);
    assert_int_equal(of_domain->cq_open(domain, &another, &queue, NULL), 0);
    assert_ptr_equal(queue, &the_queue);
    return queue;
}

static void test_reads_are_noticed(void **state)
{
    (void)state;
    struct object *queue = open_all();
    const struct queue_table *rows = queue->own;
    assert_ptr_equal(rows->others[0], &another);
    seen.result = -11; /* try again */
    assert_int_equal(rows->read(queue, &seen, 7), -11);
    assert_int_equal(seen.count, 7);
    assert_int_equal(seen.n_idle, 1);
    assert_int_equal(seen.n_found, 0);
    seen.result = 2;
    assert_int_equal(rows->read(queue, &seen, 8), 2);
    assert_int_equal(seen.n_idle, 1);
    assert_int_equal(seen.n_found, 1);
}

static void test_the_end_is_noticed(void **state)
{
    (void)state;
    struct object *queue = open_all();
    const struct common_table *rows = queue->common;
    assert_ptr_equal(rows->bind, &another);
    assert_int_equal(rows->close(queue), 5);
    assert_int_equal(seen.n_closed, 1);
    assert_int_equal(seen.n_ended, 1);
}

static void test_tables_of_providers_stay(void **state)
{
    (void)state;
    open_all();
    assert_ptr_equal(fabric_rows.domain, open_domain);
    assert_ptr_not_equal(the_fabric.own, &fabric_rows);
    assert_ptr_equal(inner_fabric.own, &fabric_rows);
}

static void test_other_tables_are_left(void **state)
{
    struct object *fabric;
    (void)state;
    assert_int_equal(fi_fabric(NULL, &fabric, NULL), -61);
    assert_int_equal(fi_fabric("short", &fabric, NULL), 0);
    assert_ptr_equal(fabric->own, &short_rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_are_noticed),
        cmocka_unit_test(test_the_end_is_noticed),
        cmocka_unit_test(test_tables_of_providers_stay),
        cmocka_unit_test(test_other_tables_are_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
