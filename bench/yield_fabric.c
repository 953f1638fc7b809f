/* libfabric, for libyield.so: MPICH's ch4:ofi device reads its completion queues in each round of
 * its progress loop. fi_cq_read is no function of the library, but a pointer in a table of the
 * queue's, and the queue is made by a pointer in a table of its domain's, and so on up to
 * fi_fabric, which is one. So fi_fabric is wrapped, and each object that the MPI library makes gets
 * a copy of its table, with one pointer replaced. What the fabric makes for its own use is left
 * alone. With another device nobody calls fi_fabric. */
#include "bench/yield.h"

#include <stdalign.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

/* What all objects of libfabric begin with (rdma/fabric.h, its ABI since version 1.0): own is the
 * table of a fabric, domain or queue. */
struct object {
    size_t class;
    void *context;
    struct common_table *common;
    void *own;
};

/* The tables, up to the pointer that matters here. Each begins with its size. */
struct common_table {
    size_t size;
    int (*close)(struct object *object);
};
struct fabric_table {
    size_t size;
    int (*domain)(struct object *fabric, void *info, struct object **domain, void *context);
};
struct domain_table {
    size_t size;
    int (*av_open)(void);
    int (*cq_open)(struct object *domain, void *attributes, struct object **queue, void *context);
};
struct queue_table {
    size_t size;
    ssize_t (*read)(struct object *queue, void *entries, size_t count);
};

/* Lies before each copy. */
struct original {
    alignas(max_align_t) const void *table;
};

static const void *original(const void *copy)
{
    return ((const struct original *)copy - 1)->table;
}

/* A copy of a table, for good; least: up to the pointer that matters. NULL: it is left as it is. */
static void *copy(const void *table, size_t least)
{
    size_t size;
    memcpy(&size, table, sizeof size);
    struct original *made = size >= least ? malloc(sizeof *made + size) : NULL;
    if (!made)
        return NULL;
    made->table = table;
    memcpy(made + 1, table, size);
    return made + 1;
}

static ssize_t read_queue(struct object *queue, void *entries, size_t count)
{
    const struct queue_table *table = original(queue->own);
    ssize_t n = table->read(queue, entries, count);
    cpl_yield_progressed(n > 0);
    return n;
}

/* MPICH closes its queues in MPI_Finalize. */
static int close_queue(struct object *queue)
{
    const struct common_table *table = original(queue->common);
    cpl_yield_end();
    return table->close(queue);
}

static void watch_queue(struct object *queue)
{
    struct queue_table *own = copy(queue->own, sizeof *own);
    struct common_table *common = copy(queue->common, sizeof *common);
    if (own) {
        own->read = read_queue;
        queue->own = own;
    }
    if (common) {
        common->close = close_queue;
        queue->common = common;
    }
}

static int open_queue(struct object *domain, void *attributes, struct object **queue, void *context)
{
    const struct domain_table *table = original(domain->own);
    int result = table->cq_open(domain, attributes, queue, context);
    if (result == 0)
        watch_queue(*queue);
    return result;
}

static int open_domain(struct object *fabric, void *info, struct object **domain, void *context)
{
    const struct fabric_table *table = original(fabric->own);
    int result = table->domain(fabric, info, domain, context);
    struct domain_table *own = result == 0 ? copy((*domain)->own, sizeof *own) : NULL;
    if (own) {
        own->cq_open = open_queue;
        (*domain)->own = own;
    }
    return result;
}

/* As in libfabric, but for the types. */
int fi_fabric(void *attributes, struct object **fabric, void *context);

int fi_fabric(void *attributes, struct object **fabric, void *context)
{
    static _Thread_local int depth; /* a provider that is built on another one calls it, too */
    int (*make)(void *, struct object **, void *);
    if (!cpl_yield_look_up("fi_fabric", "libfabric.so.1", &make))
        abort(); /* nobody can have linked it */
    depth++;
    int result = make(attributes, fabric, context);
    depth--;
    struct fabric_table *own = result == 0 && depth == 0 ? copy((*fabric)->own, sizeof *own) : NULL;
    if (own) {
        own->domain = open_domain;
        (*fabric)->own = own;
    }
    return result;
}
