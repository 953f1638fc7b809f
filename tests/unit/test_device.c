/* Tests of copying buffers that are on a device (shim/state/describe.h, datatype.h): here memory
 * that may not be read stands for them, and MPI's message to itself for an MPI that can. */
#include "shim/state/datatype.h"
#include "shim/state/describe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#define PAGE 4096

struct cpl_context cpl_context;

static char *device; /* a page; pattern below is what it holds */
static int n_by_mpi;

static void open_device(bool yes)
{
    assert_int_equal(mprotect(device, PAGE, yes ? PROT_READ | PROT_WRITE : PROT_NONE), 0);
}

int PMPI_Sendrecv_c(const void *from, MPI_Count n_from, MPI_Datatype from_type, int dest,
                    int sendtag, void *to, MPI_Count n_to, MPI_Datatype to_type, int source,
                    int recvtag, MPI_Comm comm, MPI_Status *status)
{
    (void)dest, (void)sendtag, (void)source, (void)recvtag, (void)comm, (void)status;
    n_by_mpi++;
    open_device(true);
    MPI_Count sent = from_type == MPI_INT ? 4 * n_from : n_from;
    MPI_Count room = to_type == MPI_INT ? 4 * n_to : n_to;
    assert_true(sent <= room);
    memcpy(to, from, (size_t)sent);
    open_device(false);
    return MPI_SUCCESS;
}

/* What copying dense data does not call. */
#define UNUSED(name, parameters)                                                                   \
    int name parameters                                                                            \
    {                                                                                              \
        fail();                                                                                    \
        return MPI_ERR_OTHER;                                                                      \
    }
UNUSED(PMPI_Type_get_contents,
       (MPI_Datatype a, int b, int c, int d, int e[], MPI_Aint f[], MPI_Datatype g[]))
UNUSED(PMPI_Type_get_envelope, (MPI_Datatype a, int *b, int *c, int *d, int *e))
UNUSED(PMPI_Get_elements_x, (const MPI_Status *a, MPI_Datatype b, MPI_Count *c))
UNUSED(PMPI_Type_free, (MPI_Datatype * a))
UNUSED(PMPI_Type_dup, (MPI_Datatype a, MPI_Datatype *b))
UNUSED(PMPI_Type_size_x, (MPI_Datatype a, MPI_Count *b))
UNUSED(PMPI_Type_get_extent, (MPI_Datatype a, MPI_Aint *b, MPI_Aint *c))
UNUSED(PMPI_Pack_c,
       (const void *a, MPI_Count b, MPI_Datatype c, void *d, MPI_Count e, MPI_Count *f, MPI_Comm g))
UNUSED(PMPI_Unpack_c,
       (const void *a, MPI_Count b, MPI_Count *c, void *d, MPI_Count e, MPI_Datatype f, MPI_Comm g))

UNUSED(PMPI_Irecv_c,
       (void *a, MPI_Count b, MPI_Datatype c, int d, int e, MPI_Comm f, MPI_Request *g))
UNUSED(PMPI_Isend_c,
       (const void *a, MPI_Count b, MPI_Datatype c, int d, int e, MPI_Comm f, MPI_Request *g))
UNUSED(PMPI_Wait, (MPI_Request * a, MPI_Status *b))

struct cpl_comm_state *cpl_comm_state_find(MPI_Comm comm)
{
    (void)comm;
    return NULL;
}

static struct cpl_span span_of(void *address, int n)
{
    return (struct cpl_span){address, n, {MPI_INT, 4, 4, true, false}};
}

static void test_readable(void **state)
{
    (void)state;
    int here[3] = {1, 2, 3};
    open_device(false);
    assert_true(cpl_device_is_unreadable(device));
    assert_true(cpl_device_is_unreadable(device + PAGE - 1));
    assert_false(cpl_device_is_unreadable(here));
    assert_false(cpl_device_is_unreadable((char *)here + 1));
    assert_false(cpl_device_has(device)); /* no runtime: nobody asks */
}

static void test_copies(void **state)
{
    (void)state;
    int here[4] = {1, 2, 3, 4}, back[4] = {0};
    struct cpl_span on_device = span_of(device, 4), on_host = span_of(here, 4);
    struct cpl_span returned = span_of(back, 4);
    cpl_context.machine.has_device = true;
    n_by_mpi = 0;
    assert_int_equal(cpl_span_copy(&on_host, &returned), MPI_SUCCESS);
    assert_int_equal(n_by_mpi, 0);
    assert_int_equal(cpl_span_copy(&on_host, &on_device), MPI_SUCCESS);
    memset(back, 0, sizeof back);
    assert_int_equal(cpl_span_copy(&on_device, &returned), MPI_SUCCESS);
    assert_memory_equal(back, here, sizeof here);
    assert_int_equal(n_by_mpi, 2);
    cpl_context.machine.has_device = false;
}

static void test_packs(void **state)
{
    (void)state;
    int here[4] = {5, 6, 7, 8};
    unsigned char packed[sizeof here] = {0};
    struct cpl_span on_device = span_of(device, 4);
    cpl_context.machine.has_device = true;
    n_by_mpi = 0;
    assert_int_equal(cpl_span_unpack(&on_device, (unsigned char *)here, sizeof here), MPI_SUCCESS);
    assert_int_equal(cpl_span_pack(&on_device, packed), MPI_SUCCESS);
    assert_memory_equal(packed, here, sizeof here);
    assert_int_equal(n_by_mpi, 2);
    on_device.count = 0;
    assert_int_equal(cpl_span_pack(&on_device, packed), MPI_SUCCESS);
    assert_int_equal(n_by_mpi, 2);
    cpl_context.machine.has_device = false;
}

/* What names a runtime: a library that is not loaded. */
static void test_looks(void **state)
{
    (void)state;
    cpl_device_look();
    assert_false(cpl_context.machine.has_device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_readable),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_packs),
        cmocka_unit_test(test_looks),
    };
    device = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return device == MAP_FAILED ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
